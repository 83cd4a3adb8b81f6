"""Sending again, messages for those who ask, figures."""

import datetime

from svix.api import (
    BulkReplayIn,
    EndpointIn,
    EventExampleIn,
    MessageAttemptListAttemptedMessagesOptions,
    MessageIn,
    MessagePollerConsumerPollOptions,
    MessagePollerPollOptions,
    RecoverIn,
    ReplayIn,
)
from svix.models import AppUsageStatsIn, MessageStatus, PollingEndpointConsumerSeekIn

from scene import LOT, finished, paged, refused, said, sink, svix, until


def recovery(app, event_type):
    started = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(minutes=1)
    svix.endpoint.create(app, EndpointIn(url=sink.url("/b"), uid="ep-b"))
    sink.statuses["/b"] = 500
    message = svix.message.create(app, MessageIn(event_type=event_type, payload={"n": 8}))
    sink.wait("/b", 1)
    api = svix.message_attempt
    dead = lambda: [one for one in api.list_attempted_messages(app, "ep-b").data
                    if one.status == MessageStatus.FAIL]
    assert until("a dead letter", dead)[0].id == message.id
    sink.statuses["/b"] = 200
    task = svix.endpoint.recover(app, "ep-b", RecoverIn(since=started))
    assert finished(task).data["messagesSent"] == 1
    sink.wait("/b", 2)
    svix.endpoint.create(app, EndpointIn(url=sink.url("/c"), uid="ep-c"))
    task = svix.endpoint.replay_missing(app, "ep-c", ReplayIn(since=started))
    sent = finished(task).data["messagesSent"]
    assert sent >= 1
    sink.wait("/c", sent)
    # Sent, but perhaps not settled yet: what is done can be sent again.
    done = MessageAttemptListAttemptedMessagesOptions(status=MessageStatus.SUCCESS, limit=250)
    until("all of it is done", lambda: len(api.list_attempted_messages(app, "ep-c", done).data) == sent)
    task = svix.endpoint.bulk_replay(app, "ep-c", BulkReplayIn(since=started))
    assert finished(task).data["messagesSent"] == sent
    sink.wait("/c", 2 * sent)
    assert task.id in [one.id for one in svix.background_task.list().data]
    svix.endpoint.send_example(app, "ep-c", EventExampleIn(event_type=event_type, example_index=1))
    _, body = sink.wait("/c", 2 * sent + 1)[-1]
    assert body == b'{"n":2}', body
    said("recover, replay-missing, bulk-replay, background tasks, send-example")


def consumers(app):
    """Messages that are due later are not polled early; a consumer's place is kept by the server."""
    poller, kind = svix.message.poller, f"polled.{LOT}"
    svix.endpoint.create(app, EndpointIn(
        url=sink.url("/polled"), uid="ep-polled", event_types=[kind], disabled=True))
    poll = lambda **how: poller.poll(app, "ep-polled", MessagePollerPollOptions(**how))
    soon = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=2)
    due = [svix.message.create(app, MessageIn(event_type=kind, payload={}, deliver_at=soon)).id for _ in range(3)]
    assert poll().data == []
    ids = lambda page: [one.id for one in page.data]
    came = until("their time", lambda: (lambda found: found if len(found) == 3 else None)(ids(poll())))
    assert datetime.datetime.now(datetime.timezone.utc) >= soon and sorted(came) == sorted(due)
    assert [one.id for one in paged(poll, limit=1)] == came
    as_consumer = lambda **how: poller.consumer_poll(
        app, "ep-polled", "worker", MessagePollerConsumerPollOptions(**how))
    first = as_consumer(limit=1)
    assert ids(first) == ids(as_consumer(limit=1)) == came[:1], "it is shown until it is taken"
    second = as_consumer(limit=1, iterator=first.iterator)
    assert ids(second) == came[1:2]
    last = as_consumer(iterator=second.iterator)
    assert ids(last) == ids(as_consumer()) == came[2:]
    assert refused(409, lambda: as_consumer(iterator=first.iterator)).code == "H0333"
    back = PollingEndpointConsumerSeekIn(after=soon)
    assert poller.consumer_seek(app, "ep-polled", "worker", back).iterator
    assert ids(as_consumer()) == came
    said("poller: pages, nothing before its time; consumers: a place that is kept, 409, seek")


def statistics(app):
    now = datetime.datetime.now(datetime.timezone.utc)
    day = datetime.timedelta(days=1)
    task = svix.statistics.aggregate_app_stats(
        AppUsageStatsIn(since=now - day, until=now + day, app_ids=[app, "nobody"]))
    assert task.unresolved_app_ids == ["nobody"] and task.task == "application.stats"
    (stats,) = finished(task).data["appStats"]
    assert stats["appUid"] == app and stats["messageDestinations"] > 3
    none = AppUsageStatsIn(since=now - day, until=now, app_ids=["nobody"])
    refused(422, lambda: svix.statistics.aggregate_app_stats(none))
    found = finished(svix.statistics.aggregate_event_types()).data["event_types"]
    (own,) = [one for one in found if one["appId"] == svix.application.get(app).id]
    assert own["hasCatchAllEndpoint"] is True
    said("statistics: attempts and subscriptions by application")
