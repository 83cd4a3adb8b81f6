//! Endpoints of operators.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use svix::models::{
    OperationalWebhookEndpointHeadersIn, OperationalWebhookEndpointIn,
    OperationalWebhookEndpointSecretIn, OperationalWebhookEndpointUpsertIn,
};

use crate::ask::{refused, said, verified};
use crate::endpoint::{at, make};
use crate::scene::Scene;

pub async fn check(scene: &Scene) {
    let webhooks = scene.svix.operational_webhook();
    let api = webhooks.endpoint();
    let mut asked = OperationalWebhookEndpointIn::new(scene.sink.url("/ops"));
    asked.uid = Some(format!("ops-{}", scene.lot));
    asked.event_types = Some(BTreeSet::from(["endpoint.disabled".to_owned()]));
    asked.metadata = Some(BTreeMap::from([("k".to_owned(), "v".to_owned())]));
    let made = api.create(asked.clone(), None).await.expect("made");
    let got = api.get(made.id.clone()).await.expect("there");
    assert_eq!((got.uid, got.metadata["k"].as_str()), (asked.uid, "v"));
    let all = api.list(None).await.expect("a page").data;
    assert!(all.iter().any(|one| one.id == made.id));
    let headers = BTreeMap::from([("x-team".to_owned(), "ops".to_owned())]);
    let set = OperationalWebhookEndpointHeadersIn::new(headers.clone());
    api.set_headers(made.id.clone(), set).await.expect("set");
    let known = api.get_headers(made.id.clone()).await.expect("there");
    assert_eq!(known.headers, headers);
    let secret = async || {
        let secret = api.get_secret(made.id.clone()).await;
        secret.expect("a key").key
    };
    let old = secret().await;
    let mut rotate = OperationalWebhookEndpointSecretIn::new();
    rotate.grace_period_seconds = Some(3_600);
    let rotated = api.rotate_secret(made.id.clone(), rotate, None);
    rotated.await.expect("a new key");
    let new = secret().await;
    assert_ne!(new, old);
    told(scene, [&old, &new]).await;
    let upsert = OperationalWebhookEndpointUpsertIn::new(scene.sink.url("/ops2"));
    let changed = api.upsert(made.id.clone(), upsert).await.expect("changed");
    assert_eq!(changed.url, scene.sink.url("/ops2"));
    assert!(changed.event_types.is_none_or(|types| types.is_empty()));
    api.delete(made.id.clone()).await.expect("gone");
    refused(404, api.get(made.id.clone()).await);
    said(
        "operational webhooks: create, get, list, headers, rotation, a delivery that verifies, upsert, delete",
    );
}

/// An endpoint that says it is gone is disabled, and operators are told.
async fn told(scene: &Scene, secrets: [&str; 2]) {
    let (api, gone) = (scene.svix.endpoint(), "ep-gone".to_owned());
    make(scene, at(scene, "/gone", &gone)).await;
    scene.sink.answer("/gone", 410);
    scene.publish(scene.message(10)).await;
    let seen = &scene.sink.wait("/ops", 1).await[0];
    for secret in secrets {
        verified(seen, secret);
    }
    assert_eq!(seen.headers["x-team"], "ops");
    let body: Value = serde_json::from_slice(&seen.body).expect("JSON");
    assert_eq!(body["type"], "endpoint.disabled");
    assert_eq!(body["data"]["endpointUid"], gone.as_str());
    let known = api.get(scene.app.clone(), gone.clone()).await;
    assert_eq!(known.expect("there").disabled, Some(true));
    api.delete(scene.app.clone(), gone).await.expect("gone");
}
