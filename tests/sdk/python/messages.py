"""Messages, what became of them, and what they are signed with."""

import datetime

from svix.api import (
    ApplicationIn,
    EndpointIn,
    EndpointSecretRotateIn,
    MessageAttemptListByEndpointOptions,
    MessageAttemptListByMsgOptions,
    MessageCreateOptions,
    MessageGetOptions,
    MessageIn,
    MessageListOptions,
    MessagePrecheckIn,
)
from svix.api.message import message_in_raw
from svix.models import MessageStatus
from svix.webhooks import Webhook, WebhookVerificationError

from scene import LOT, finished, paged, refused, said, sink, svix, until, verified


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
    minute, now = datetime.timedelta(minutes=1), datetime.datetime.now(datetime.timezone.utc)
    assert ids(before=message.timestamp) == [] and len(ids(before=now + minute)) == 2
    assert ids(after=now + minute) == [] and len(ids(after=now - minute)) == 2
    listed = paged(lambda **how: svix.message.list(app, MessageListOptions(**how)), limit=1)
    assert [one.id for one in listed] == [again.id, message.id]
    active = lambda kind: svix.message.precheck(app, MessagePrecheckIn(event_type=kind)).active
    assert active(event_type)
    inline = svix.message.create(f"py-inline-{LOT}", MessageIn(
        event_type=event_type, payload={"n": 5}, application=ApplicationIn(name="inline")),
        MessageCreateOptions(with_content=True))
    assert svix.application.get(f"py-inline-{LOT}").name == "inline"
    assert inline.payload == {"n": 5}
    raw(app)
    svix.message.expunge_content(app, message.id)
    expunged = svix.message.get(app, message.id, MessageGetOptions(with_content=True))
    assert expunged.payload == {"expired": True}
    said("messages: create, eventId, Idempotency-Key, schema, delivery, get, list, filters, raw, expunge")
    return again


def raw(app):
    """Payloads that are sent byte for byte, under a type of their own."""
    kind, json, xml = f"raw.{LOT}", '{"done" :  "\\u0079es"}\n', "<done/>\n"
    svix.endpoint.create(app, EndpointIn(url=sink.url("/raw"), uid="ep-raw", event_types=[kind]))
    secret = svix.endpoint.get_secret(app, "ep-raw").key
    before = len(sink.at("/a"))
    svix.message.create(app, message_in_raw(kind, json))
    headers, body = sink.wait("/raw", 1)[0]
    assert body == json.encode() and headers["content-type"] == "application/json"
    verified(headers, body, secret)
    message = svix.message.create(app, message_in_raw(kind, xml, "text/xml"))
    headers, body = sink.wait("/raw", 2)[1]
    assert body == xml.encode() and headers["content-type"] == "text/xml"
    # The package of the standard takes JSON only.
    Webhook(secret).verify(body, headers)
    got = svix.message.get(app, message.id, MessageGetOptions(with_content=True))
    assert got.payload == {"rawPayload": xml}
    # The first endpoint takes all types. Once it has these, what it has seen changes no more.
    sink.wait("/a", before + 2)
    svix.endpoint.delete(app, "ep-raw")


def expunge_all(app, event_type):
    """Ends the payloads of all messages."""
    message = svix.message.create(app, MessageIn(event_type=event_type, payload={"n": 99}))
    task = svix.message.expunge_all_contents(app)
    assert task.task == "application.purge_content"
    assert finished(task).data["messagesPurged"] >= 1
    got = svix.message.get(app, message.id, MessageGetOptions(with_content=True))
    assert got.payload == {"expired": True}
    said("messages: expunge_all_contents")


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
    assert message.id in [one.msg.id for one in of_endpoint.data]
    none = MessageAttemptListByEndpointOptions(status=MessageStatus.FAIL)
    assert api.list_by_endpoint(app, endpoint, none).data == []
    assert message.id in [one.id for one in api.list_attempted_messages(app, endpoint).data]
    destinations = api.list_attempted_destinations(app, message.id).data
    assert [(one.id, one.status) for one in destinations] == [(endpoint, MessageStatus.SUCCESS)]
    before = len(sink.at("/a"))
    api.resend(app, message.id, endpoint)
    headers, _ = sink.wait("/a", before + 1)[-1]
    assert headers["svix-id"] == message.id
    until("two attempts", lambda: len(api.list_by_msg(app, message.id).data) == 2)
    listed = paged(lambda **how: api.list_by_msg(app, message.id, MessageAttemptListByMsgOptions(**how)), limit=1)
    assert [one.id for one in listed] == [one.id for one in api.list_by_msg(app, message.id).data]
    stats = until("stats", lambda: (lambda s: s if s.success >= 3 else None)(svix.endpoint.get_stats(app, endpoint)))
    assert stats.fail == 0
    assert svix.endpoint.get_attempt_stats(app, endpoint).success >= 3
    said("attempts: by message, by endpoint, by pages, one, destinations, resend, stats")


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
