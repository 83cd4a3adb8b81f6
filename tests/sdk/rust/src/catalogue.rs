//! Applications, types of events, endpoints.

use serde_json::json;
use svix::api::{
    ApplicationListOptions, EndpointListOptions, EventTypeDeleteOptions, EventTypeListOptions, Svix,
};
use svix::models::{
    ApplicationIn, ApplicationPatch, EndpointHeadersIn, EndpointHeadersPatchIn, EndpointIn,
    EndpointPatch, EndpointUpsertIn, EventTypeImportOpenApiIn, EventTypeIn, EventTypePatch,
    EventTypeUpsertIn, Ordering,
};

use crate::sink::Sink;
use crate::{problem, refused, said};

pub async fn apps(svix: &Svix, app: &str) {
    let api = svix.application();
    let mut made = ApplicationIn::new("one".into());
    made.uid = Some(app.into());
    made.metadata = Some([("plan".to_owned(), "a".to_owned())].into());
    let created = api.create(made.clone(), None).await.expect("made");
    assert_eq!(created.uid.as_deref(), Some(app));
    let got = api.get(app.into()).await.expect("there");
    assert_eq!(got, created);
    let again = api.get_or_create(made.clone(), None).await;
    assert_eq!(again.expect("there").id, created.id);
    assert_eq!(refused(api.create(made, None).await), 409);
    let patch = ApplicationPatch {
        name: Some("two".into()),
        ..ApplicationPatch::default()
    };
    let patched = api.patch(app.into(), patch).await.expect("changed");
    assert_eq!(
        (patched.name.as_str(), patched.uid.as_deref()),
        ("two", Some(app))
    );
    assert_eq!(patched.metadata["plan"], "a");
    let replacing = ApplicationIn::new("three".into());
    let replaced = api.upsert(app.into(), replacing).await.expect("replaced");
    assert_eq!(replaced.id, created.id);
    assert!(replaced.metadata.is_empty());
    let other = format!("{app}-b");
    let second = api.upsert(other.clone(), ApplicationIn::new("four".into()));
    let second = second.await.expect("made");
    assert_eq!(second.uid, Some(other));
    let found = listed(svix).await;
    let place = |id: &str| found.iter().position(|one| one == id).expect("listed");
    assert!(place(&second.id) < place(&created.id), "the newest first");
    api.delete(second.id.clone()).await.expect("gone");
    let gone = problem(api.get(second.id).await);
    assert_eq!(gone, (404, "H0302".to_owned()));
    let mut wrong = ApplicationIn::new("x".into());
    wrong.uid = Some("a b".into());
    assert_eq!(refused(api.create(wrong, None).await), 422);
    said("applications: create, get, get_or_create, patch, upsert, list, delete, 404, 409, 422");
}

/// All applications, the newest first, page by page.
async fn listed(svix: &Svix) -> Vec<String> {
    let (mut found, mut iterator) = (Vec::new(), None);
    loop {
        let options = ApplicationListOptions {
            limit: Some(1),
            iterator,
            order: Some(Ordering::Descending),
            ..ApplicationListOptions::default()
        };
        let page = svix.application().list(Some(options)).await;
        let page = page.expect("a list");
        found.extend(page.data.into_iter().map(|one| one.id));
        if page.done {
            return found;
        }
        iterator = page.iterator;
    }
}

/// Makes a type with a schema and two examples, and others that go again.
pub async fn event_types(svix: &Svix, name: &str) {
    let api = svix.event_type();
    let made = EventTypeIn::new(name.into(), "a thing was done".into());
    let made = api.create(made, None).await.expect("made");
    assert_eq!((made.name.as_str(), made.archived), (name, Some(false)));
    let schemas =
        json!({"1": {"type": "object", "required": ["n"], "examples": [{"n": 1}, {"n": 2}]}});
    let patch = json!({"schemas": schemas, "deprecated": true});
    let patch: EventTypePatch = serde_json::from_value(patch).expect("a patch");
    let patched = api.patch(name.into(), patch).await.expect("changed");
    assert!(patched.deprecated);
    let got = api.get(name.into()).await.expect("there");
    assert_eq!(got.schemas, Some(schemas));
    let other = format!("{name}.other");
    let another = EventTypeUpsertIn::new("another".into());
    api.upsert(other.clone(), another).await.expect("made");
    api.delete(other.clone(), None).await.expect("archived");
    let is_listed = async |include_archived: bool| {
        let options = EventTypeListOptions {
            limit: Some(250),
            include_archived: Some(include_archived),
            ..EventTypeListOptions::default()
        };
        let page = api.list(Some(options)).await.expect("a list");
        page.data.iter().any(|one| one.name == other)
    };
    assert!(!is_listed(false).await && is_listed(true).await);
    let archived = api.get(other.clone()).await.expect("there");
    assert_eq!(archived.archived, Some(true));
    let expunge = EventTypeDeleteOptions {
        expunge: Some(true),
    };
    let gone = api.delete(other.clone(), Some(expunge)).await;
    gone.expect("gone");
    assert_eq!(refused(api.get(other.clone()).await), 404);
    let pet = format!("{name}.pet");
    let body = json!({"content": {"application/json": {"schema": {"type": "object"}}}});
    let hook = json!({"post": {"summary": "a pet", "requestBody": body}});
    let import = EventTypeImportOpenApiIn {
        spec: Some(json!({"openapi": "3.1.0", "webhooks": {(pet.as_str()): hook}})),
        ..EventTypeImportOpenApiIn::default()
    };
    let imported = api.import_openapi(import, None).await.expect("imported");
    assert_eq!(imported.data.modified, [pet]);
    said("event types: create, patch, get, upsert, archive, list, expunge, import");
}

/// Makes an endpoint whose deliveries carry a header, and others that go again.
pub async fn endpoints(svix: &Svix, app: &str, sink: &Sink) -> String {
    let api = svix.endpoint();
    let mut endpoint = EndpointIn::new(sink.url("/a"));
    endpoint.uid = Some("ep-a".into());
    endpoint.description = Some("the first".into());
    let headers = [("x-tenant", "t0"), ("authorization", "Bearer x")];
    endpoint.headers = Some(headers.map(|(a, b)| (a.to_owned(), b.to_owned())).into());
    let made = api.create(app.into(), endpoint, None).await.expect("made");
    assert_eq!(made.disabled, Some(false));
    let got = api.get(app.into(), "ep-a".into()).await.expect("there");
    assert_eq!(got, made);
    let patch = EndpointPatch {
        description: Some("b".into()),
        ..EndpointPatch::default()
    };
    let patched = api.patch(app.into(), "ep-a".into(), patch).await;
    let patched = patched.expect("changed");
    assert_eq!((patched.description.as_str(), patched.url), ("b", made.url));
    let replacing = EndpointUpsertIn::new(sink.url("/a"));
    let replaced = api.upsert(app.into(), "ep-a".into(), replacing).await;
    let replaced = replaced.expect("replaced");
    assert_eq!(
        (replaced.id, replaced.description.as_str()),
        (made.id.clone(), "")
    );
    endpoint_headers(svix, app).await;
    let closed = EndpointIn::new("http://[::1]/".into());
    assert_eq!(refused(api.create(app.into(), closed, None).await), 422);
    let secret = "whsec_TWZLUTlyOEdLWXFyVHdqVVBEOElMUFpJbzJMYUxhU3c=";
    let mut own = EndpointIn::new(sink.url("/own"));
    own.uid = Some("own".into());
    own.secret = Some(secret.into());
    own.disabled = Some(true);
    api.create(app.into(), own, None).await.expect("made");
    let key = api.get_secret(app.into(), "own".into()).await;
    assert_eq!(key.expect("a key").key, secret);
    api.delete(app.into(), "own".into()).await.expect("gone");
    assert_eq!(refused(api.get(app.into(), "own".into()).await), 404);
    let options = EndpointListOptions {
        limit: Some(5),
        ..EndpointListOptions::default()
    };
    let page = api.list(app.into(), Some(options)).await.expect("a list");
    let ids: Vec<&str> = page.data.iter().map(|one| one.id.as_str()).collect();
    assert_eq!(ids, [made.id.as_str()]);
    said("endpoints: create, get, patch, upsert, headers, gate, secret of one's own, list, delete");
    made.id
}

async fn endpoint_headers(svix: &Svix, app: &str) {
    let api = svix.endpoint();
    let known = async || {
        let known = api.get_headers(app.into(), "ep-a".into()).await;
        known.expect("there")
    };
    let first = known().await;
    assert_eq!(first.headers["x-tenant"], "t0");
    assert!(first.sensitive.contains("authorization") && first.headers.len() == 1);
    let more = [("x-more".to_owned(), "m".to_owned())].into();
    let mut patch = EndpointHeadersPatchIn::new(more);
    patch.delete_headers = Some(vec!["authorization".into()]);
    let patched = api.patch_headers(app.into(), "ep-a".into(), patch).await;
    patched.expect("changed");
    let second = known().await;
    assert_eq!((second.headers.len(), second.sensitive.len()), (2, 0));
    let headers = [("x-tenant".to_owned(), "t1".to_owned())].into();
    let headers = EndpointHeadersIn::new(headers);
    let set = api.set_headers(app.into(), "ep-a".into(), headers).await;
    set.expect("set");
    let third = known().await;
    assert_eq!(
        (third.headers.len(), third.headers["x-tenant"].as_str()),
        (1, "t1")
    );
}
