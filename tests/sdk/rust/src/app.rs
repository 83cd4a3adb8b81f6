//! Applications.

use std::collections::BTreeMap;

use js_option::JsOption;
use svix::api::ApplicationListOptions;
use svix::models::{ApplicationIn, ApplicationPatch};

use crate::ask::{refused, said};
use crate::scene::Scene;

pub async fn check(scene: &Scene) {
    let (api, app) = (scene.svix.application(), &scene.app);
    let named = |name: &str, uid: &str| {
        let mut application = ApplicationIn::new(name.to_owned());
        application.uid = Some(uid.to_owned());
        application
    };
    let mut first = named("one", app);
    first.metadata = Some(BTreeMap::from([("plan".to_owned(), "a".to_owned())]));
    let made = api.create(first.clone(), None).await.expect("made");
    assert_eq!(made.uid.as_ref(), Some(app));
    assert_eq!(made.metadata["plan"], "a");
    for name in [app.clone(), made.id.clone()] {
        assert_eq!(api.get(name).await.expect("there").id, made.id);
    }
    let again = api.get_or_create(named("two", app), None).await;
    assert_eq!(again.expect("there").name, "one");
    refused(409, api.create(first, None).await);
    let replaced = api.upsert(app.clone(), named("three", app)).await;
    assert!(replaced.expect("changed").metadata.is_empty());
    let mut patch = ApplicationPatch::new();
    patch.throttle_rate = JsOption::Some(7);
    let patched = api
        .patch(app.clone(), patch.clone())
        .await
        .expect("changed");
    assert_eq!((&*patched.name, patched.throttle_rate), ("three", Some(7)));
    patch.throttle_rate = JsOption::Null;
    let patched = api.patch(app.clone(), patch).await.expect("changed");
    assert_eq!(patched.throttle_rate, None);
    let second = format!("{app}-b");
    let other = ApplicationIn::new("four".to_owned());
    let other = api.upsert(second.clone(), other).await.expect("made");
    assert_eq!(other.uid, Some(second));
    let found = pages(scene).await;
    let place = |id: &String| found.iter().position(|one| one == id).expect("listed");
    assert!(place(&made.id) < place(&other.id));
    api.delete(other.id.clone()).await.expect("gone");
    assert_eq!(refused(404, api.get(other.id).await), "H0302");
    let wrong = api.create(named("x", "a b"), None).await;
    assert_eq!(refused(422, wrong), "body.uid");
    said(
        "applications: create, get by uid, get_or_create, upsert, patch, list, delete, 404, 409, 422",
    );
}

/// The ids of all applications, read one by one.
async fn pages(scene: &Scene) -> Vec<String> {
    let (mut found, mut iterator) = (Vec::new(), None);
    loop {
        let options = ApplicationListOptions {
            limit: Some(1),
            iterator,
            ..ApplicationListOptions::default()
        };
        let page = scene.svix.application().list(Some(options)).await;
        let page = page.expect("a page");
        found.extend(page.data.into_iter().map(|one| one.id));
        if page.done {
            return found;
        }
        iterator = page.iterator;
    }
}

/// Leaves nothing of this run.
pub async fn end(scene: &Scene) {
    let (api, app) = (scene.svix.application(), &scene.app);
    api.delete(app.clone()).await.expect("gone");
    refused(404, api.get(app.clone()).await);
    said("an application is deleted");
}
