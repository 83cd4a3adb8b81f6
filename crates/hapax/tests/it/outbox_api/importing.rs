//! Types of events from a description of an API.

use serde_json::{Value, json};

use super::scene::{Scene, on_each_store};

const IMPORT: &str = "/event-type/import/openapi";

/// A description with these webhooks, whose payloads are a component of it.
fn spec(names: &[&str]) -> Value {
    let content = json!({"application/json": {"schema": {"$ref": "#/components/schemas/Pet"}}});
    let hook = json!({"post": {"summary": "a pet", "requestBody": {"content": content}}});
    let hooks = names.iter().map(|name| ((*name).to_owned(), hook.clone()));
    let pet = json!({"type": "object", "required": ["name"]});
    json!({
        "openapi": "3.1.0",
        "webhooks": hooks.collect::<serde_json::Map<_, _>>(),
        "components": {"schemas": {"Pet": pet}},
    })
}

fn types(scene: &Scene, query: &str) -> Vec<String> {
    let mut names = scene.listed(&format!("/event-type?limit=250{query}"), "name");
    names.sort();
    names
}

#[test]
fn a_dry_run_says_what_would_be_taken_and_takes_nothing() {
    on_each_store(|scene| {
        let body =
            json!({"spec": spec(&["pet.new", "pet.gone"]), "dryRun": true, "replaceAll": true});
        scene.told(
            201,
            "POST",
            "/event-type",
            &json!({"name": "old", "description": "it stays"}),
        );
        let told = scene.told(200, "POST", IMPORT, &body);
        assert_eq!(told["data"]["modified"], json!([]));
        let would = told["data"]["to_modify"].as_array().expect("a list");
        let mut names: Vec<&str> = would
            .iter()
            .map(|one| one["name"].as_str().expect("a name"))
            .collect();
        names.sort_unstable();
        assert_eq!(names, ["pet.gone", "pet.new"]);
        assert_eq!(would[0]["description"], "a pet");
        let schema = &would[0]["schemas"]["1"];
        assert_eq!(schema["$ref"], "#/$defs/Pet", "it is whole: {schema}");
        assert_eq!(schema["$defs"]["Pet"]["required"], json!(["name"]));
        assert_eq!(types(&scene, ""), ["old"]);
    });
}

#[test]
fn what_a_description_does_not_name_is_archived_only_if_asked_for() {
    on_each_store(|scene| {
        let import = |names: &[&str], replace_all: bool| {
            let body = json!({"spec": spec(names), "replaceAll": replace_all});
            let told = scene.told(200, "POST", IMPORT, &body);
            let modified = told["data"]["modified"].as_array().expect("a list").iter();
            let mut modified: Vec<String> = modified
                .map(|name| name.as_str().expect("a name").to_owned())
                .collect();
            modified.sort();
            modified
        };
        assert_eq!(import(&["a", "b"], false), ["a", "b"]);
        assert_eq!(import(&["c"], false), ["c"]);
        assert_eq!(types(&scene, ""), ["a", "b", "c"]);
        assert_eq!(import(&["b"], true), ["a", "b", "c"], "all that changed");
        assert_eq!(types(&scene, ""), ["b"]);
        assert_eq!(types(&scene, "&include_archived=true"), ["a", "b", "c"]);
        assert_eq!(import(&["a"], false), ["a"], "what is named is back");
        assert_eq!(types(&scene, ""), ["a", "b"]);
    });
}

#[test]
fn a_description_may_come_as_text_in_json() {
    on_each_store(|scene| {
        let text = spec(&["pet.new"]).to_string();
        let told = scene.told(200, "POST", IMPORT, &json!({"specRaw": text}));
        assert_eq!(told["data"]["modified"], json!(["pet.new"]));
        let pet = scene.told(200, "GET", "/event-type/pet.new", &Value::Null);
        assert_eq!(pet["description"], "a pet");
        scene.app("acme");
        let nameless = json!({"eventType": "pet.new", "payload": {"age": 3}});
        assert_eq!(scene.post("/app/acme/msg", &nameless).status, 422);
        scene.publish(
            "acme",
            &json!({"eventType": "pet.new", "payload": {"name": "Rex"}}),
        );
        let yaml = "openapi: 3.1.0\nwebhooks: {}\n";
        let no_hooks = json!({"openapi": "3.1.0"});
        for (body, field, why) in [
            (json!({"specRaw": yaml}), "specRaw", "YAML is not read"),
            (
                json!({"specRaw": no_hooks.to_string()}),
                "specRaw",
                "it has no `webhooks`",
            ),
            (json!({"spec": no_hooks}), "spec", "it has no `webhooks`"),
            (
                json!({"spec": no_hooks, "specRaw": text}),
                "spec",
                "one of spec and specRaw",
            ),
            (json!({}), "spec", "one of spec and specRaw"),
        ] {
            let told = scene.told(422, "POST", IMPORT, &body);
            let detail = &told["detail"][0];
            assert_eq!(detail["loc"], json!(["body", field]), "{detail}");
            let msg = detail["msg"].as_str().expect("a text");
            assert!(msg.contains(why), "{msg}");
        }
        assert_eq!(types(&scene, ""), ["pet.new"]);
    });
}
