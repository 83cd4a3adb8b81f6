"""Drives a Hapax server with the Svix SDK for Python. Exits non-zero at the first thing that is not as the SDK expects it.

HAPAX_URL and HAPAX_TOKEN say where the server is and who asks. Its endpoints may be on 127.0.0.1.
"""

import datetime
import json
import os
import sys
import time
import uuid

import standardwebhooks
from svix.api import (
    AppPortalAccessIn,
    ApplicationIn,
    ApplicationListOptions,
    ApplicationPatch,
    ApplicationTokenExpireIn,
    BulkReplayIn,
    EndpointHeadersIn,
    EndpointHeadersPatchIn,
    EndpointIn,
    EndpointListOptions,
    EndpointPatch,
    EndpointSecretRotateIn,
    EndpointUpsertIn,
    EventExampleIn,
    EventTypeDeleteOptions,
    EventTypeImportOpenApiIn,
    EventTypeIn,
    EventTypeListOptions,
    EventTypePatch,
    EventTypeUpsertIn,
    MessageAttemptListByEndpointOptions,
    MessageCreateOptions,
    MessageGetOptions,
    MessageIn,
    MessageListOptions,
    MessagePollerConsumerPollOptions,
    MessagePollerPollOptions,
    MessagePrecheckIn,
    RecoverIn,
    ReplayIn,
    Svix,
    SvixOptions,
)
from svix.api.errors.http_error import HttpError
from svix.api.errors.http_validation_error import HTTPValidationError
from svix.models import (
    AppUsageStatsIn,
    MessageStatus,
    OperationalWebhookEndpointHeadersIn,
    OperationalWebhookEndpointIn,
    OperationalWebhookEndpointSecretIn,
    OperationalWebhookEndpointUpsertIn,
    PollingEndpointConsumerSeekIn,
)
from svix.webhooks import Webhook, WebhookVerificationError

from sink import TOO_LONG_SECONDS, Sink

URL = os.environ["HAPAX_URL"]
svix = Svix(os.environ["HAPAX_TOKEN"], SvixOptions(server_url=URL))
sink = Sink()
LOT = uuid.uuid4().hex[:8]


def said(what):
    print(f"python: {what}", flush=True)


def refused(status, ask):
    """The problem that a request is refused with."""
    try:
        ask()
    except (HttpError, HTTPValidationError) as problem:
        assert problem.status_code == status, (problem.status_code, problem.to_dict())
        return problem
    raise AssertionError(f"{status} is expected")


def until(what, look):
    """Asks again until the answer is there. Each question is a whole request, which is what paces the loop."""
    end = time.monotonic() + TOO_LONG_SECONDS
    while True:
        found = look()
        if found:
            return found
        assert time.monotonic() < end, what


def verified(headers, body, secret):
    """Verifies with the SDK and with the package of the standard."""
    Webhook(secret).verify(body, headers)
    standardwebhooks.Webhook(secret).verify(body, headers)


def apps():
    uid = f"py-{LOT}"
    app = svix.application.create(ApplicationIn(name="one", uid=uid, metadata={"plan": "a"}))
    assert app.uid == uid and app.metadata == {"plan": "a"}
    assert svix.application.get(uid).id == app.id == svix.application.get(app.id).id
    assert svix.application.get_or_create(ApplicationIn(name="two", uid=uid)).name == "one"
    refused(409, lambda: svix.application.create(ApplicationIn(name="two", uid=uid)))
    assert svix.application.upsert(uid, ApplicationIn(name="three", uid=uid)).metadata == {}
    patched = svix.application.patch(uid, ApplicationPatch(throttle_rate=7))
    assert patched.name == "three" and patched.throttle_rate == 7
    assert svix.application.patch(uid, ApplicationPatch(throttle_rate=None)).throttle_rate is None
    made = svix.application.upsert(f"{uid}-b", ApplicationIn(name="four"))
    assert made.uid == f"{uid}-b"
    found, iterator = [], None
    while True:
        page = svix.application.list(ApplicationListOptions(limit=1, iterator=iterator))
        found += [one.id for one in page.data]
        iterator = page.iterator
        if page.done:
            break
    assert found.index(app.id) < found.index(made.id)
    svix.application.delete(made.id)
    assert refused(404, lambda: svix.application.get(made.id)).code == "H0302"
    wrong = refused(422, lambda: svix.application.create(ApplicationIn(name="x", uid="a b")))
    assert wrong.detail[0].loc == ["body", "uid"]
    said("applications: create, get by uid, get_or_create, upsert, patch, list, delete, 404, 409, 422")
    return uid


def event_types():
    name = f"invoice.paid.{LOT}"
    made = svix.event_type.create(EventTypeIn(name=name, description="an invoice was paid"))
    assert made.name == name and made.archived is False
    schema = {
        "1": {
            "type": "object",
            "required": ["n"],
            "properties": {"n": {"type": "integer"}},
            "examples": [{"n": 1}, {"n": 2}],
        }
    }
    svix.event_type.patch(name, EventTypePatch(schemas=schema))
    assert svix.event_type.get(name).schemas == schema
    other = f"other.{LOT}"
    svix.event_type.upsert(other, EventTypeUpsertIn(description="another"))
    svix.event_type.delete(other)
    listed = lambda **how: [
        one.name for one in svix.event_type.list(EventTypeListOptions(limit=250, **how)).data
    ]
    assert other not in listed() and other in listed(include_archived=True)
    assert svix.event_type.get(other).archived
    svix.event_type.delete(other, EventTypeDeleteOptions(expunge=True))
    refused(404, lambda: svix.event_type.get(other))
    hook = {"post": {"summary": "a pet", "requestBody": {"content": {"application/json": {
        "schema": {"$ref": "#/components/schemas/Pet"}}}}}}
    spec = {"openapi": "3.1.0", "webhooks": {f"pet.{LOT}": hook},
            "components": {"schemas": {"Pet": {"type": "object", "required": ["name"]}}}}
    imported = svix.event_type.import_openapi(EventTypeImportOpenApiIn(spec=spec))
    assert imported.data.modified == [f"pet.{LOT}"]
    said("event types: create, schema, patch, upsert, archive, expunge, list, import")
    return name


def endpoints(app, event_type):
    made = svix.endpoint.create(app, EndpointIn(
        url=sink.url("/a"), uid="ep-a", description="the first", event_types=[event_type],
        headers={"x-tenant": "t1", "authorization": "Bearer x"}, metadata={"k": "v"}))
    assert made.disabled is False and made.event_types == [event_type]
    assert svix.endpoint.get(app, "ep-a").id == made.id
    assert svix.endpoint.patch(app, "ep-a", EndpointPatch(description="b")).url == sink.url("/a")
    replaced = svix.endpoint.upsert(app, "ep-a", EndpointUpsertIn(url=sink.url("/a")))
    assert replaced.description == "" and replaced.event_types is None
    headers = svix.endpoint.get_headers(app, "ep-a")
    assert headers.headers == {"x-tenant": "t1"} and headers.sensitive == ["authorization"]
    svix.endpoint.patch_headers(app, "ep-a", EndpointHeadersPatchIn(
        headers={"x-more": "m"}, delete_headers=["authorization"]))
    assert svix.endpoint.get_headers(app, "ep-a").headers == {"x-tenant": "t1", "x-more": "m"}
    svix.endpoint.set_headers(app, "ep-a", EndpointHeadersIn(headers={"x-tenant": "t2"}))
    assert svix.endpoint.get_headers(app, "ep-a").headers == {"x-tenant": "t2"}
    closed = refused(422, lambda: svix.endpoint.create(app, EndpointIn(url="http://10.0.0.1/")))
    assert closed.detail[0].loc == ["body", "url"], closed.detail
    secret = "whsec_" + "TWZLUTlyOEdLWXFyVHdqVVBEOElMUFpJbzJMYUxhU3c="
    svix.endpoint.create(app, EndpointIn(url=sink.url("/own"), uid="own", secret=secret, disabled=True))
    assert svix.endpoint.get_secret(app, "own").key == secret
    svix.endpoint.delete(app, "own")
    refused(404, lambda: svix.endpoint.get(app, "own"))
    assert [one.id for one in svix.endpoint.list(app, EndpointListOptions(limit=5)).data] == [made.id]
    said("endpoints: create, get, patch, upsert, headers, secret of one's own, gate, list, delete")
    return made.id


def messages(app, endpoint, event_type):
    secret = svix.endpoint.get_secret(app, endpoint).key
    options = MessageCreateOptions(idempotency_key=f"key-{LOT}", with_content=True)
    first = MessageIn(event_type=event_type, event_id=f"evt-{LOT}", payload={"n": 1},
                      channels=["c1"], tags=["t1"])
    message = svix.message.create(app, first, options)
    assert message.payload == {"n": 1} and message.event_id == f"evt-{LOT}"
    assert svix.message.create(app, first).id == message.id
    other = MessageIn(event_type=event_type, event_id=f"evt-{LOT}", payload={"n": 2})
    assert refused(409, lambda: svix.message.create(app, other)).code == "H0326"
    plain = MessageIn(event_type=event_type, payload={"n": 3}, tags=["t2"])
    keyed = MessageCreateOptions(idempotency_key=f"more-{LOT}")
    again = svix.message.create(app, plain, keyed)
    assert svix.message.create(app, plain, keyed).id == again.id
    changed = MessageIn(event_type=event_type, payload={"n": 4})
    assert refused(409, lambda: svix.message.create(app, changed, keyed)).code == "H0308"
    wrong = MessageIn(event_type=event_type, payload={"n": "no number"})
    assert refused(422, lambda: svix.message.create(app, wrong)).detail[0].loc == ["body", "payload"]
    arrived = sink.wait("/a", 2)
    for headers, body in arrived:
        verified(headers, body, secret)
        assert headers["x-tenant"] == "t2"
        assert headers["hapax-event-type"] == event_type
    assert {headers["svix-id"] for headers, _ in arrived} == {message.id, again.id}
    got = svix.message.get(app, f"evt-{LOT}", MessageGetOptions(with_content=True))
    assert got.id == message.id and got.payload == {"n": 1}
    assert svix.message.get(app, message.id, MessageGetOptions(with_content=False)).payload == {}
    ids = lambda **how: [one.id for one in svix.message.list(app, MessageListOptions(**how)).data]
    assert ids() == [again.id, message.id]
    assert ids(channel="c1") == [message.id] and ids(tag="t2") == [again.id]
    assert ids(event_types=["nothing"]) == [] and len(ids(event_types=[event_type])) == 2
    assert ids(before=message.timestamp) == []
    active = lambda kind: svix.message.precheck(app, MessagePrecheckIn(event_type=kind)).active
    assert active(event_type)
    inline = svix.message.create(f"py-inline-{LOT}", MessageIn(
        event_type=event_type, payload={"n": 5}, application=ApplicationIn(name="inline")),
        MessageCreateOptions(with_content=True))
    assert svix.application.get(f"py-inline-{LOT}").name == "inline"
    assert inline.payload == {"n": 5}
    svix.message.expunge_content(app, message.id)
    expunged = svix.message.get(app, message.id, MessageGetOptions(with_content=True))
    assert expunged.payload == {"expired": True}
    said("messages: create, eventId, Idempotency-Key, schema, delivery, get, list, filters, expunge")
    return again


def attempts(app, endpoint, message):
    api = svix.message_attempt
    until("an attempt", lambda: api.list_by_msg(app, message.id).data)
    by_message = api.list_by_msg(app, message.id).data
    assert [one.endpoint_id for one in by_message] == [endpoint]
    one = by_message[0]
    assert (one.status, one.response_status_code) == (MessageStatus.SUCCESS, 200)
    assert one.response == "ok" and one.msg_id == message.id
    assert api.get(app, message.id, one.id).id == one.id
    of_endpoint = api.list_by_endpoint(
        app, endpoint, MessageAttemptListByEndpointOptions(with_msg=True, status=MessageStatus.SUCCESS))
    assert of_endpoint.data[0].msg.id == message.id
    none = MessageAttemptListByEndpointOptions(status=MessageStatus.FAIL)
    assert api.list_by_endpoint(app, endpoint, none).data == []
    assert api.list_attempted_messages(app, endpoint).data[0].id == message.id
    destinations = api.list_attempted_destinations(app, message.id).data
    assert [(one.id, one.status) for one in destinations] == [(endpoint, MessageStatus.SUCCESS)]
    before = len(sink.at("/a"))
    api.resend(app, message.id, endpoint)
    headers, _ = sink.wait("/a", before + 1)[-1]
    assert headers["svix-id"] == message.id
    stats = until("stats", lambda: (lambda s: s if s.success >= 3 else None)(svix.endpoint.get_stats(app, endpoint)))
    assert stats.fail == 0
    assert svix.endpoint.get_attempt_stats(app, endpoint).success >= 3
    said("attempts: by message, by endpoint, one, destinations, resend, stats")


def rotation(app, endpoint, event_type):
    old = svix.endpoint.get_secret(app, endpoint).key
    new = svix.endpoint.rotate_secret(app, endpoint, EndpointSecretRotateIn(grace_period_seconds=3600)).key
    assert new != old and svix.endpoint.get_secret(app, endpoint).key == new
    before = len(sink.at("/a"))
    svix.message.create(app, MessageIn(event_type=event_type, payload={"n": 6}))
    headers, body = sink.wait("/a", before + 1)[-1]
    verified(headers, body, old)
    verified(headers, body, new)
    last = svix.endpoint.rotate_secret(app, endpoint, EndpointSecretRotateIn(grace_period_seconds=0)).key
    svix.message.create(app, MessageIn(event_type=event_type, payload={"n": 7}))
    headers, body = sink.wait("/a", before + 2)[-1]
    verified(headers, body, last)
    verified(headers, body, old)
    try:
        Webhook(new).verify(body, headers)
    except WebhookVerificationError:
        pass
    else:
        raise AssertionError("a key without a grace period signs no more")
    said("rotation: old and new verify during the overlap, and not beyond it")


def recovery(app, event_type):
    started = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(minutes=1)
    retry = EndpointIn(url=sink.url("/b"), uid="ep-b")
    svix.endpoint.create(app, retry)
    raw = {"url": sink.url("/b"), "retrySchedule": [0]}
    svix.endpoint._request_sync(method="patch", path="/api/v1/app/{app}/endpoint/ep-b",
                                path_params={"app": app}, json_body=json.dumps(raw))
    sink.status = 500
    message = svix.message.create(app, MessageIn(event_type=event_type, payload={"n": 8}))
    sink.wait("/b", 1)
    api = svix.message_attempt
    dead = lambda: [one for one in api.list_attempted_messages(app, "ep-b").data
                    if one.status == MessageStatus.FAIL]
    assert until("a dead letter", dead)[0].id == message.id
    sink.status = 200
    task = svix.endpoint.recover(app, "ep-b", RecoverIn(since=started))
    finished = lambda task: until("the task", lambda: (lambda t: t if t.status == "finished" else None)(
        svix.background_task.get(task.id)))
    assert finished(task).data["messagesSent"] == 1
    sink.wait("/b", 2)
    svix.endpoint.create(app, EndpointIn(url=sink.url("/c"), uid="ep-c"))
    task = svix.endpoint.replay_missing(app, "ep-c", ReplayIn(since=started))
    sent = finished(task).data["messagesSent"]
    assert sent >= 1
    sink.wait("/c", sent)
    task = svix.endpoint.bulk_replay(app, "ep-c", BulkReplayIn(since=started))
    assert finished(task).data["messagesSent"] == sent
    sink.wait("/c", 2 * sent)
    assert task.id in [one.id for one in svix.background_task.list().data]
    svix.endpoint.send_example(app, "ep-c", EventExampleIn(event_type=event_type, example_index=1))
    _, body = sink.wait("/c", 2 * sent + 1)[-1]
    assert body == b'{"n":2}', body
    polled = svix.message.poller.poll(app, "ep-c", MessagePollerPollOptions(limit=2))
    assert len(polled.data) == 2 and not polled.done
    rest = svix.message.poller.poll(app, "ep-c", MessagePollerPollOptions(iterator=polled.iterator))
    assert not {one.id for one in polled.data} & {one.id for one in rest.data}
    said("recover, replay-missing, bulk-replay, background tasks, send-example, poller")


def consumers(app, event_type):
    """A message that is due later is not polled early; a consumer's place is kept by the server."""
    poller = svix.message.poller
    svix.endpoint.create(app, EndpointIn(url=sink.url("/polled"), uid="ep-polled", disabled=True))
    soon = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=2)
    poll = lambda **how: poller.consumer_poll(
        app, "ep-polled", "worker", MessagePollerConsumerPollOptions(**how))
    page = poll()
    while not page.done:
        page = poll(iterator=page.iterator)
    place = page.iterator
    late = svix.message.create(app, MessageIn(event_type=event_type, payload={"n": 9}, deliver_at=soon))
    assert late.id not in [one.id for one in poll(iterator=place).data]
    came = until("its time", lambda: (lambda p: p if late.id in [one.id for one in p.data] else None)(poll()))
    assert datetime.datetime.now(datetime.timezone.utc) >= soon
    assert [one.id for one in came.data].count(late.id) == 1
    assert late.id not in [one.id for one in poll(iterator=came.iterator).data]
    assert late.id not in [one.id for one in poll().data]
    assert refused(409, lambda: poll(iterator=place)).code == "H0333"
    back = PollingEndpointConsumerSeekIn(after=soon)
    assert poller.consumer_seek(app, "ep-polled", "worker", back).iterator
    assert late.id in [one.id for one in poll().data]
    said("poller: nothing before its time; consumers: a place that is kept, seek")


def statistics(app):
    finished = lambda task: until("the task", lambda: (lambda t: t if t.status == "finished" else None)(
        svix.background_task.get(task.id)))
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


def operational(app, event_type):
    api = svix.operational_webhook.endpoint
    made = api.create(OperationalWebhookEndpointIn(
        url=sink.url("/ops"), uid=f"ops-{LOT}", event_types=["endpoint.disabled"], metadata={"k": "v"}))
    assert api.get(made.id).uid == f"ops-{LOT}" and made.id in [one.id for one in api.list().data]
    api.set_headers(made.id, OperationalWebhookEndpointHeadersIn(headers={"x-team": "ops"}))
    assert api.get_headers(made.id).headers == {"x-team": "ops"}
    old = api.get_secret(made.id).key
    api.rotate_secret(made.id, OperationalWebhookEndpointSecretIn(grace_period_seconds=3600))
    new = api.get_secret(made.id).key
    assert new != old
    shown = [one.name for one in svix.application.list(ApplicationListOptions(limit=250)).data]
    assert "operational webhooks" not in shown
    svix.endpoint.create(app, EndpointIn(url=sink.url("/gone"), uid="ep-gone"))
    sink.statuses["/gone"] = 410
    svix.message.create(app, MessageIn(event_type=event_type, payload={"n": 10}))
    headers, body = sink.wait("/ops", 1)[0]
    verified(headers, body, old)
    verified(headers, body, new)
    told = json.loads(body)
    assert told["type"] == "endpoint.disabled" and told["data"]["endpointUid"] == "ep-gone", told
    assert headers["x-team"] == "ops"
    assert svix.endpoint.get(app, "ep-gone").disabled
    changed = api.upsert(made.id, OperationalWebhookEndpointUpsertIn(url=sink.url("/ops2")))
    assert changed.url == sink.url("/ops2") and not changed.event_types
    api.delete(made.id)
    refused(404, lambda: api.get(made.id))
    said("operational webhooks: create, get, list, headers, rotation, a delivery that verifies, upsert, delete")


def portal(app):
    access = svix.authentication.app_portal_access(app, AppPortalAccessIn(session_id="s1"))
    assert access.token in access.url
    consumer = Svix(access.token, SvixOptions(server_url=URL))
    assert consumer.endpoint.list(app).data
    refused(403, lambda: consumer.application.list())
    refused(403, lambda: consumer.endpoint.list(f"py-inline-{LOT}"))
    refused(403, lambda: consumer.message.create(app, MessageIn(event_type="x", payload={})))
    looks = svix.authentication.app_portal_access(app, AppPortalAccessIn(read_only=True))
    viewer = Svix(looks.token, SvixOptions(server_url=URL))
    refused(403, lambda: viewer.endpoint.get_secret(app, "ep-a"))
    viewer.authentication.logout()
    refused(401, lambda: viewer.endpoint.list(app))
    svix.authentication.expire_all(app, ApplicationTokenExpireIn(session_ids=["s1"]))
    refused(401, lambda: consumer.endpoint.list(app))
    said("portal: a token sees its own application, as its role allows, until it ends")


def refusals(app):
    svix.health.get()
    quick = Svix(os.environ["HAPAX_TOKEN"], SvixOptions(server_url=URL, retry_schedule=[]))
    problem = refused(501, lambda: quick.integration.list(app))
    assert problem.code == "H0327"
    refused(501, lambda: quick.streaming.stream.list())
    stranger = Svix("hpx_nobody", SvixOptions(server_url=URL))
    assert refused(401, lambda: stranger.application.list()).code == "H0301"
    said("health; what is not offered answers 501 with a code")


def main():
    app = apps()
    event_type = event_types()
    endpoint = endpoints(app, event_type)
    message = messages(app, endpoint, event_type)
    attempts(app, endpoint, message)
    rotation(app, endpoint, event_type)
    recovery(app, event_type)
    consumers(app, event_type)
    statistics(app)
    operational(app, event_type)
    portal(app)
    refusals(app)
    svix.application.delete(app)
    said("all well")


if __name__ == "__main__":
    sys.exit(main())
