//! Endpoints whose vault key is lost: their deliveries wait, and a key that somebody brings repairs them.

use bytes::Bytes;
use hapax::clock;
use hapax::config::StoreTarget;
use hapax::http::serve::open;
use hapax_store::nouns::{Authority, Entry, Put};
use serde_json::{Value, json};

use super::scene::{Scene, message};
use crate::effects::scene::SQLITE;
use crate::support::world::World;

/// Puts something in place of what is sealed of each endpoint that does not open.
async fn lose_secrets(path: &std::path::Path) {
    let target = StoreTarget::Sqlite(path.to_owned());
    let store = open(&target).await.expect("a store that nobody has");
    for entry in store.changes(0).await.expect("the store is well").entries {
        let Entry::Endpoint(mut endpoint) = entry else {
            continue;
        };
        let was = endpoint.revision;
        endpoint.sealed = Bytes::from_static(b"sealed with another key");
        let by = Authority {
            actor: "test".into(),
            reason: "a key is lost".to_owned(),
            at: clock::now(),
            request: None,
        };
        let put = store.put(
            Entry::Endpoint(endpoint),
            was,
            "test.put",
            by,
            String::new(),
        );
        assert!(matches!(
            put.await.expect("the store is well"),
            Put::Done { .. }
        ));
    }
    store.close().await;
}

#[test]
fn a_key_that_is_brought_repairs_an_endpoint() {
    let world = World::well();
    let scene = Scene::with(SQLITE, "");
    scene.app("acme");
    let with_header = json!({"headers": {"x-custom": "1"}});
    scene.endpoint("acme", "crm", &world, with_header);
    let scene = scene.restarted_after(|path| {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        runtime.block_on(lose_secrets(path));
    });
    let other = World::well();
    scene.endpoint("acme", "erp", &other, json!({}));
    scene.publish("acme", &message(1));
    // By then the other delivery has been looked at, too.
    other.wait_for("its delivery", |seen| seen.len() == 1);
    let path = "/app/acme/endpoint/crm/secret";
    let rotate = format!("{path}/rotate");
    // What is drawn would be unknown to the consumer, and what does not open may only want the right vault key.
    assert_eq!(scene.get(path).status, 503);
    assert_eq!(scene.post(&rotate, &json!({})).status, 503);
    assert!(world.seen().is_empty(), "the delivery waits");

    let key = "whsec_YSBrZXkgdGhhdCBzb21lYm9keSBicmluZ3MsIG9r";
    let rotated = scene.told(200, "POST", &rotate, &json!({ "key": key }));
    assert_eq!(rotated["key"], key);
    assert_eq!(scene.told(200, "GET", path, &Value::Null)["key"], key);
    let seen = world.wait_for("what waited", |seen| seen.len() == 1);
    let signatures = seen[0].headers["webhook-signature"].split(' ');
    assert_eq!(signatures.count(), 1, "nothing is left that overlaps");
    assert!(!seen[0].headers.contains_key("x-custom"), "it is lost, too");
    let audit = scene.told(200, "GET", "/audit", &Value::Null);
    let said = audit["data"].as_array().expect("a list").iter();
    let mut said = said.filter(|record| record["action"] == "endpoint.rotate");
    let record = said.next().expect("a record").to_string();
    assert!(record.contains("lost"), "{record}");
    // From now on it is an endpoint like others.
    scene.told(200, "POST", &rotate, &json!({}));
}
