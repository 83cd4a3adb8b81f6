"""Operators, consumers, strangers."""

import json

from svix.api import (
    AppPortalAccessIn,
    ApplicationListOptions,
    ApplicationTokenExpireIn,
    EndpointIn,
    MessageIn,
)
from svix.models import (
    BulkExpungeContentsIn,
    OperationalWebhookEndpointHeadersIn,
    OperationalWebhookEndpointIn,
    OperationalWebhookEndpointSecretIn,
    OperationalWebhookEndpointUpsertIn,
)

from scene import LOT, client, refused, said, sink, svix, verified


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
    consumer = client(access.token)
    assert consumer.endpoint.list(app).data
    refused(403, lambda: consumer.application.list())
    refused(403, lambda: consumer.endpoint.list(f"py-inline-{LOT}"))
    refused(403, lambda: consumer.message.create(app, MessageIn(event_type="x", payload={})))
    looks = svix.authentication.app_portal_access(app, AppPortalAccessIn(read_only=True))
    viewer = client(looks.token)
    refused(403, lambda: viewer.endpoint.get_secret(app, "ep-a"))
    viewer.authentication.logout()
    refused(401, lambda: viewer.endpoint.list(app))
    svix.authentication.expire_all(app, ApplicationTokenExpireIn(session_ids=["s1"]))
    refused(401, lambda: consumer.endpoint.list(app))
    said("portal: a token sees its own application, as its role allows, until it ends")


def refusals(app, message):
    svix.health.get()
    not_offered = lambda ask: refused(501, ask).code == "H0327"
    assert not_offered(lambda: svix.integration.list(app))
    assert not_offered(lambda: svix.streaming.stream.list())
    assert not_offered(lambda: svix.ingest.source.list())
    flags = AppPortalAccessIn(feature_flags=["beta"])
    assert not_offered(lambda: svix.authentication.app_portal_access(app, flags))
    some = BulkExpungeContentsIn(ids=[message.id])
    assert not_offered(lambda: svix.message.bulk_expunge_content(app, some))
    api = svix.message_attempt
    attempt = api.list_by_msg(app, message.id).data[0].id
    assert not_offered(lambda: api.expunge_content(app, message.id, attempt))
    stranger = client("hpx_nobody")
    assert refused(401, lambda: stranger.application.list()).code == "H0301"
    said("health; what is not offered answers 501 with a code, a stranger 401")
