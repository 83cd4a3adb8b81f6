//! Endpoints.

use std::collections::{BTreeMap, BTreeSet};

use svix::api::EndpointListOptions;
use svix::models::{
    EndpointHeadersIn, EndpointHeadersPatchIn, EndpointIn, EndpointPatch, EndpointUpsertIn,
};

use crate::ask::{refused, said};
use crate::scene::Scene;

/// What every check uses from here on, by its uid.
pub const UID: &str = "ep-a";
const OWN_SECRET: &str = "whsec_TWZLUTlyOEdLWXFyVHdqVVBEOElMUFpJbzJMYUxhU3c=";

fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    pairs.iter().map(owned).collect()
}

/// An endpoint of the sink.
pub fn at(scene: &Scene, path: &str, uid: &str) -> EndpointIn {
    let mut endpoint = EndpointIn::new(scene.sink.url(path));
    endpoint.uid = Some(uid.to_owned());
    endpoint
}

/// Makes it.
pub async fn make(scene: &Scene, endpoint: EndpointIn) -> String {
    let api = scene.svix.endpoint();
    let made = api.create(scene.app.clone(), endpoint, None).await;
    made.expect("made").id
}

pub async fn check(scene: &Scene) -> String {
    let (api, app, uid) = (scene.svix.endpoint(), &scene.app, UID.to_owned());
    let mut first = at(scene, "/a", UID);
    first.description = Some("the first".to_owned());
    first.event_types = Some(BTreeSet::from([scene.event_type.clone()]));
    first.headers = Some(map(&[("x-tenant", "t1"), ("authorization", "Bearer x")]));
    first.metadata = Some(map(&[("k", "v")]));
    let made = api.create(app.clone(), first, None).await.expect("made");
    assert_eq!(made.disabled, Some(false));
    assert_eq!(made.metadata, map(&[("k", "v")]));
    let got = api.get(app.clone(), uid.clone()).await.expect("there");
    assert_eq!(got.id, made.id);
    let mut patch = EndpointPatch::new();
    patch.description = Some("b".to_owned());
    let patched = api.patch(app.clone(), uid.clone(), patch).await;
    let patched = patched.expect("changed");
    assert_eq!((patched.description.as_str(), patched.url), ("b", got.url));
    let upsert = EndpointUpsertIn::new(scene.sink.url("/a"));
    let replaced = api.upsert(app.clone(), uid, upsert).await.expect("changed");
    assert_eq!((replaced.id, replaced.event_types), (made.id.clone(), None));
    assert_eq!(replaced.description, "");
    headers(scene).await;
    let closed = EndpointIn::new("http://[::1]/".to_owned());
    let closed = api.create(app.clone(), closed, None).await;
    assert_eq!(refused(422, closed), "body.url");
    own_secret(scene).await;
    pages(scene, &made.id).await;
    said("endpoints: create, get, patch, upsert, headers, secret of one's own, gate, list, delete");
    made.id
}

async fn headers(scene: &Scene) {
    let (api, app, uid) = (scene.svix.endpoint(), &scene.app, UID.to_owned());
    let known = async || {
        let known = api.get_headers(app.clone(), uid.clone()).await;
        known.expect("there")
    };
    assert_eq!(known().await.headers, map(&[("x-tenant", "t1")]));
    let sensitive = BTreeSet::from(["authorization".to_owned()]);
    assert_eq!(known().await.sensitive, sensitive);
    let mut patch = EndpointHeadersPatchIn::new(map(&[("x-more", "m")]));
    patch.delete_headers = Some(vec!["authorization".to_owned()]);
    let patched = api.patch_headers(app.clone(), uid.clone(), patch);
    patched.await.expect("changed");
    let both = map(&[("x-tenant", "t1"), ("x-more", "m")]);
    assert_eq!(known().await.headers, both);
    assert!(known().await.sensitive.is_empty());
    let headers = EndpointHeadersIn::new(map(&[("x-tenant", "t2")]));
    let set = api.set_headers(app.clone(), uid.clone(), headers);
    set.await.expect("set");
    assert_eq!(known().await.headers, map(&[("x-tenant", "t2")]));
}

async fn own_secret(scene: &Scene) {
    let (api, app, uid) = (scene.svix.endpoint(), &scene.app, "own".to_owned());
    let mut own = at(scene, "/own", &uid);
    own.secret = Some(OWN_SECRET.to_owned());
    own.disabled = Some(true);
    make(scene, own).await;
    let secret = api.get_secret(app.clone(), uid.clone()).await;
    assert_eq!(secret.expect("a key").key, OWN_SECRET);
    api.delete(app.clone(), uid.clone()).await.expect("gone");
    refused(404, api.get(app.clone(), uid).await);
}

/// Lists go on where the page before ended.
async fn pages(scene: &Scene, first: &str) {
    let (api, app) = (scene.svix.endpoint(), &scene.app);
    let mut ids = vec![first.to_owned()];
    for number in 0..2 {
        let mut endpoint = at(scene, "/paged", &format!("paged-{number}"));
        endpoint.disabled = Some(true);
        ids.push(make(scene, endpoint).await);
    }
    let (mut found, mut iterator) = (Vec::new(), None);
    loop {
        let options = EndpointListOptions {
            limit: Some(1),
            iterator,
            ..EndpointListOptions::default()
        };
        let page = api.list(app.clone(), Some(options)).await.expect("a page");
        assert!(page.data.len() <= 1);
        found.extend(page.data.into_iter().map(|one| one.id));
        if page.done {
            break;
        }
        iterator = page.iterator;
    }
    assert_eq!(found, ids);
    for id in &ids[1..] {
        api.delete(app.clone(), id.clone()).await.expect("gone");
    }
    let left = api.list(app.clone(), None).await.expect("a page");
    assert_eq!(left.data.len(), 1);
}
