//! Types of events.

use js_option::JsOption;
use serde_json::json;
use svix::api::{EventTypeDeleteOptions, EventTypeListOptions};
use svix::models::{EventTypeImportOpenApiIn, EventTypeIn, EventTypePatch, EventTypeUpsertIn};

use crate::ask::{refused, said};
use crate::scene::Scene;

pub async fn check(scene: &Scene) {
    let (api, name) = (scene.svix.event_type(), &scene.event_type);
    let made = EventTypeIn::new(name.clone(), "a thing was done".to_owned());
    let made = api.create(made, None).await.expect("made");
    assert_eq!((&made.name, made.archived), (name, Some(false)));
    let schemas = json!({"1": {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}},
        "examples": [{"n": 1}, {"n": 2}]}});
    let mut patch = EventTypePatch::new();
    patch.schemas = JsOption::Some(schemas.clone());
    api.patch(name.clone(), patch).await.expect("changed");
    let got = api.get(name.clone()).await.expect("there");
    assert_eq!(got.schemas, Some(schemas));
    archived(scene).await;
    import(scene).await;
    said("event types: create, schema, get, patch, upsert, list, archive, expunge, import");
}

async fn archived(scene: &Scene) {
    let (api, other) = (scene.svix.event_type(), format!("other.{}", scene.lot));
    let more = EventTypeUpsertIn::new("another".to_owned());
    api.upsert(other.clone(), more).await.expect("made");
    api.delete(other.clone(), None).await.expect("archived");
    let listed = async |include_archived: bool| {
        let options = EventTypeListOptions {
            limit: Some(250),
            include_archived: Some(include_archived),
            ..EventTypeListOptions::default()
        };
        let page = api.list(Some(options)).await.expect("a page");
        page.data.iter().any(|one| one.name == other)
    };
    assert_eq!((listed(false).await, listed(true).await), (false, true));
    let got = api.get(other.clone()).await.expect("there");
    assert_eq!(got.archived, Some(true));
    let expunge = EventTypeDeleteOptions {
        expunge: Some(true),
    };
    let gone = api.delete(other.clone(), Some(expunge)).await;
    gone.expect("gone");
    refused(404, api.get(other.clone()).await);
}

async fn import(scene: &Scene) {
    let (api, pet) = (scene.svix.event_type(), format!("pet.{}", scene.lot));
    let schema = json!({"type": "object", "required": ["name"]});
    let content = json!({"application/json": {"schema": schema}});
    let post = json!({"summary": "a pet", "requestBody": {"content": content}});
    let spec = json!({"openapi": "3.1.0", "webhooks": {&pet: {"post": post}}});
    let mut asked = EventTypeImportOpenApiIn::new();
    asked.spec = Some(spec.clone());
    asked.dry_run = Some(true);
    let would = api.import_openapi(asked.clone(), None).await;
    let would = would.expect("understood").data;
    let named = would.to_modify.expect("what would be taken");
    assert_eq!((would.modified.len(), &named[0].name), (0, &pet));
    refused(404, api.get(pet.clone()).await);
    asked.dry_run = None;
    let taken = api.import_openapi(asked, None).await.expect("taken");
    assert_eq!(taken.data.modified, [pet.clone()]);
    let mut raw = EventTypeImportOpenApiIn::new();
    raw.spec_raw = Some(spec.to_string());
    let taken = api.import_openapi(raw.clone(), None).await.expect("taken");
    assert_eq!(taken.data.modified, [pet.clone()]);
    assert_eq!(api.get(pet).await.expect("there").description, "a pet");
    raw.spec_raw = Some("openapi: 3.1.0\nwebhooks: {}\n".to_owned());
    let yaml = api.import_openapi(raw, None).await;
    assert_eq!(refused(422, yaml), "body.specRaw");
}
