//! The description that the server gives of itself: complete in itself, and true about who may do what.

use serde_json::{Value, json};

use super::tokens::token;
use crate::effects::scene::{SQLITE, Scene};
use crate::support::server::Server;

/// Roles, the least first.
const ROLES: [&str; 3] = ["viewer", "operator", "admin"];

/// One operation of the description.
struct Operation {
    method: String,
    /// With something in the place of each parameter. There is no such thing.
    path: String,
    role: Option<String>,
    /// Whose tokens: `all`, `app` or `any`.
    scope: Option<String>,
    about: Value,
}

fn document(server: &Server) -> Value {
    let answer = server.get("/api/v1/openapi.json");
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(answer.header("content-type"), Some("application/json"));
    answer.json()
}

/// A path with something in the place of each parameter. A stream is asked for something that it does not have, so that its answer
/// ends.
fn askable(path: &str, about: &Value) -> String {
    let path = path.replace("{number}", "1").replace(['{', '}'], "");
    match about["responses"]["200"]["content"]["text/event-stream"].is_object() {
        true => format!("{path}?nothing=1"),
        false => path,
    }
}

fn operations(document: &Value) -> Vec<Operation> {
    let paths = document["paths"].as_object().expect("paths");
    let operations = paths.iter().flat_map(|(path, item)| {
        let item = item.as_object().expect("operations by method");
        item.iter().map(|(method, about)| Operation {
            method: method.to_uppercase(),
            path: askable(path, about),
            role: about["x-hapax-role"].as_str().map(str::to_owned),
            scope: about["x-hapax-scope"].as_str().map(str::to_owned),
            about: about.clone(),
        })
    });
    operations.collect()
}

#[test]
fn every_operation_lets_through_whom_it_names() {
    let scene = Scene::new(SQLITE, &[]);
    let server = &scene.server;
    let secret = |role: &str| token(server, &json!({"name": role.to_uppercase(), "role": role})).1;
    let secrets = ROLES.map(secret);
    let of_an_app = json!({"name": "app", "role": "admin", "app": "app_1"});
    let (_, of_an_app) = token(server, &of_an_app);
    let operations = operations(&document(server));
    let mut open = Vec::new();
    for Operation {
        method,
        path,
        role,
        scope,
        ..
    } in &operations
    {
        let ask = |headers: &str| {
            let length = "content-length: 0\r\nconnection: close\r\n";
            let head = format!("{method} {path} HTTP/1.1\r\nhost: hapax\r\n{headers}{length}\r\n");
            server.ask(head.as_bytes()).status
        };
        let Some(role) = role else {
            assert_eq!(ask(""), 200, "{method} {path} is open");
            open.push(path.as_str());
            continue;
        };
        let least = ROLES.iter().position(|one| one == role).expect("a role");
        assert_eq!(ask(""), 401, "{method} {path} without a token");
        let as_one = |token: &str| server.ask_as(token, method, path, "", "").status;
        assert_eq!(as_one("hpx_unknown"), 401, "{method} {path} for a stranger");
        let any = scope.as_deref() == Some("any");
        let refused = as_one(&of_an_app) == 403;
        assert_eq!(refused, !any, "{method} {path} for one app");
        for (place, secret) in secrets.iter().enumerate() {
            let status = as_one(secret);
            let who = ROLES[place];
            assert_eq!(status == 403, place < least, "{method} {path} as {who}");
            assert_ne!(status, 401, "{method} {path} as {who}");
        }
    }
    open.sort_unstable();
    assert_eq!(open.len(), 4, "{open:?}");
    assert!(open[1].starts_with("/jwks/"), "{open:?}");
    assert_eq!(
        [open[0], open[2], open[3]],
        ["/healthz", "/metrics", "/readyz"]
    );
    assert!(operations.len() > 30, "{}", operations.len());
}

#[test]
fn the_description_is_complete_in_itself() {
    let scene = Scene::new(SQLITE, &[]);
    let document = document(&scene.server);
    let version = document["openapi"].as_str().expect("a version");
    assert!(version.starts_with("3.1."), "{version}");
    for reference in references(&document) {
        let place = reference.strip_prefix('#').expect("a local reference");
        assert!(
            document.pointer(place).is_some(),
            "{reference} leads nowhere"
        );
    }
    let mut names = Vec::new();
    for operation in operations(&document) {
        let Operation {
            method,
            path,
            role,
            about,
            ..
        } = operation;
        names.push(about["operationId"].as_str().expect("a name").to_owned());
        assert_eq!(role.is_some(), about["security"].is_array(), "{path}");
        let told = |status: &str| about["responses"][status].is_object();
        if role.is_some() {
            assert!(told("401") && told("403") && told("503"), "{method} {path}");
        }
        if method == "POST" {
            assert!(
                told("400") && told("409") && told("413") && told("422"),
                "{path}"
            );
            let body = &about["requestBody"]["content"]["application/json"]["schema"];
            assert!(body.is_object(), "{path} says what it takes");
        }
    }
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count, "names are unique");
}

/// Every `$ref` in a document.
fn references(value: &Value) -> Vec<&str> {
    match value {
        Value::Object(fields) => {
            let own = fields.get("$ref").and_then(Value::as_str);
            let inner = fields.values().flat_map(references);
            own.into_iter().chain(inner).collect()
        }
        Value::Array(items) => items.iter().flat_map(references).collect(),
        _ => Vec::new(),
    }
}

#[test]
fn a_body_is_described_as_strictly_as_it_is_read() {
    let scene = Scene::new(SQLITE, &[]);
    let document = document(&scene.server);
    let schemas = document["components"]["schemas"].as_object();
    let requests = schemas.expect("schemas").iter();
    for (name, schema) in requests.filter(|(name, _)| name.ends_with("Request")) {
        assert_eq!(schema["additionalProperties"], false, "{name}");
    }
    let reason = "x".repeat(4_096);
    let too_long = format!("{reason}x");
    let ask = |reason: &str| {
        let body = json!({"reason": reason, "dryRun": true});
        scene.server.post("/api/v1/replay", &body).status
    };
    assert_eq!((ask(&reason), ask(&too_long), ask(" ")), (202, 422, 422));
    let schema = &document["components"]["schemas"]["ReplayRequest"]["properties"]["reason"];
    assert_eq!(schema["maxLength"], 4_096);
    assert_eq!(schema["minLength"], 1);
}
