"""Applications, types of events, endpoints."""

import json

from svix.api import (
    ApplicationIn,
    ApplicationListOptions,
    ApplicationPatch,
    EndpointHeadersIn,
    EndpointHeadersPatchIn,
    EndpointIn,
    EndpointListOptions,
    EndpointPatch,
    EndpointUpsertIn,
    EventTypeDeleteOptions,
    EventTypeImportOpenApiIn,
    EventTypeIn,
    EventTypeListOptions,
    EventTypePatch,
    EventTypeUpsertIn,
)

from scene import LOT, paged, refused, said, sink, svix


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
    listed = paged(lambda **how: svix.application.list(ApplicationListOptions(**how)), limit=1)
    found = [one.id for one in listed]
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
    take = lambda **how: svix.event_type.import_openapi(EventTypeImportOpenApiIn(**how)).data
    would = take(spec=spec, dry_run=True)
    assert would.modified == [] and [one.name for one in would.to_modify] == [f"pet.{LOT}"]
    refused(404, lambda: svix.event_type.get(f"pet.{LOT}"))
    assert take(spec=spec).modified == [f"pet.{LOT}"]
    assert take(spec_raw=json.dumps(spec)).modified == [f"pet.{LOT}"]
    yaml = refused(422, lambda: take(spec_raw="openapi: 3.1.0"))
    assert yaml.detail[0].loc == ["body", "specRaw"], yaml.detail
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
    more = [svix.endpoint.create(app, EndpointIn(url=sink.url("/paged"), disabled=True)) for _ in range(2)]
    listed = paged(lambda **how: svix.endpoint.list(app, EndpointListOptions(**how)), limit=1)
    assert [one.id for one in listed] == [made.id] + [one.id for one in more]
    for one in more:
        svix.endpoint.delete(app, one.id)
    assert [one.id for one in svix.endpoint.list(app, EndpointListOptions(limit=5)).data] == [made.id]
    said("endpoints: create, get, patch, upsert, headers, secret of one's own, gate, list by pages, delete")
    return made.id
