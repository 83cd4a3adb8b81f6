//! Types of events from a description of an API: its webhooks.

use axum::extract::State;
use axum::response::IntoResponse;
use hapax_store::nouns::EventType;
use http::StatusCode;
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::change;
use super::event_type::{blank, to_change};
use super::halt::{Halt, Outcome};
use super::words;
use crate::http::answer;
use crate::http::api::Api;
use crate::http::api::describe::asked_outbox::ImportRequest;
use crate::http::api::once::{self, Said};
use crate::http::api::posted::{LargePosted, Posted};
use crate::outbox::{Catalog, schema};

/// The webhooks of one description.
const TYPES_MAX: usize = 500;

/// What becomes of the types that a description does not name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Others {
    Stay,
    Archived,
}

/// What was taken.
#[derive(Serialize, ToSchema)]
#[schema(as = Imported)]
struct ImportedBody {
    data: ImportedData,
}

/// What was taken, and what would be.
#[derive(Serialize, ToSchema)]
struct ImportedData {
    /// Names of the types that were made or changed.
    modified: Vec<String>,
    /// What they would be, of a dry run.
    #[serde(rename = "to_modify", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    to_modify: Option<Vec<FoundBody>>,
}

/// A type of events that a description names.
#[derive(Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ImportedEventType)]
struct FoundBody {
    name: String,
    description: String,
    #[schema(value_type = Object)]
    schemas: Value,
    deprecated: bool,
    group_name: Option<String>,
    feature_flags: Option<Vec<String>>,
}

/// Makes types of events of the webhooks of an OpenAPI document.
#[utoipa::path(post, path = "/event-type/import/openapi", operation_id = "importEventTypes", tag = "event types",
    request_body = ImportRequest,
    responses((status = OK, description = "they are taken, or would be", body = ImportedBody)))]
pub async fn openapi(
    State(api): State<Api>,
    LargePosted(posted): LargePosted,
) -> impl IntoResponse {
    let mut fields = posted.fields();
    let dry_run = fields.flag("dryRun");
    let others = match fields.flag("replaceAll") {
        true => Others::Archived,
        false => Others::Stay,
    };
    let spec = fields.json("spec");
    let raw = fields.optional_text_up_to("specRaw", 2 * 1024 * 1024);
    let found = match (spec, raw) {
        (Some(spec), None) => webhooks(&spec).map_err(|why| ("spec", why)),
        (None, Some(raw)) => raw_webhooks(&raw).map_err(|why| ("specRaw", why)),
        (Some(_), Some(_)) | (None, None) => {
            Err(("spec", "one of spec and specRaw is expected".to_owned()))
        }
    };
    if let Err((field, why)) = &found {
        fields.refuse(field, why);
    }
    fields.finish()?;
    let found = found.unwrap_or_default();
    if dry_run {
        return Ok(said(&ImportedData {
            modified: Vec::new(),
            to_modify: Some(found),
        }));
    }
    let (own, alone) = (api.clone(), posted.without_key());
    let work = async move {
        match import(&own, &alone, &found, others).await {
            Ok(done) => once::kept(done).await,
            Err(halt) => Said::Pass(halt.answer()),
        }
    };
    Outcome::Ok(once::once(api, posted, work).await)
}

/// One type after the other, each a change of its own: the request's key is for the whole.
async fn import(api: &Api, posted: &Posted, found: &[FoundBody], others: Others) -> Outcome {
    let mut modified = Vec::with_capacity(found.len());
    for one in found {
        take(api, posted, one).await?;
        modified.push(one.name.clone());
    }
    if others == Others::Archived {
        modified.extend(archive_others(api, posted, found).await?);
    }
    Ok(said(&ImportedData {
        modified,
        to_modify: None,
    }))
}

fn said(data: &ImportedData) -> answer::Answer {
    #[derive(Serialize)]
    struct Body<'a> {
        data: &'a ImportedData,
    }
    answer::json(StatusCode::OK, &Body { data })
}

/// The webhooks of a document that came as text.
fn raw_webhooks(raw: &str) -> Result<Vec<FoundBody>, String> {
    let spec = serde_json::from_str(raw);
    let spec: Value =
        spec.map_err(|error| format!("JSON is expected; YAML is not read: {error}"))?;
    webhooks(&spec)
}

/// The webhooks of a document: `webhooks`, or `x-webhooks` of older ones. References to its components become definitions.
fn webhooks(spec: &Value) -> Result<Vec<FoundBody>, String> {
    let webhooks = spec.get("webhooks").or_else(|| spec.get("x-webhooks"));
    let webhooks = webhooks.and_then(Value::as_object);
    let webhooks = webhooks.ok_or("it has no `webhooks`")?;
    if webhooks.len() > TYPES_MAX {
        return Err(format!("it has more than {TYPES_MAX} webhooks"));
    }
    let components = spec
        .pointer("/components/schemas")
        .and_then(Value::as_object);
    let mut found = Vec::new();
    for (name, item) in webhooks {
        if !words::is_event_type(name) {
            return Err(format!("`{name}` cannot be the name of a type of events"));
        }
        let operation = ["post", "put", "get"]
            .iter()
            .find_map(|method| item.get(method));
        let operation = operation.ok_or_else(|| format!("`{name}` has no operation"))?;
        let content = operation.pointer("/requestBody/content/application~1json/schema");
        let schema = content
            .cloned()
            .unwrap_or_else(|| Value::Object(Map::new()));
        let mut schemas = Map::new();
        schemas.insert("1".to_owned(), whole(schema, components));
        schema::check(&schemas).map_err(|why| format!("`{name}`: {why}"))?;
        let text = |field: &str| {
            operation
                .get(field)
                .and_then(Value::as_str)
                .map(str::to_owned)
        };
        found.push(FoundBody {
            name: name.clone(),
            description: text("description")
                .or_else(|| text("summary"))
                .unwrap_or_default(),
            schemas: Value::Object(schemas),
            deprecated: operation
                .get("deprecated")
                .and_then(Value::as_bool)
                .unwrap_or(false),
            group_name: None,
            feature_flags: None,
        });
    }
    Ok(found)
}

/// A schema that is complete in itself: the document's components come along, and references lead there.
fn whole(schema: Value, components: Option<&Map<String, Value>>) -> Value {
    const THERE: &str = "#/components/schemas/";
    fn turn(value: &mut Value) {
        match value {
            Value::Object(fields) => {
                if let Some(Value::String(reference)) = fields.get_mut("$ref")
                    && let Some(name) = reference.strip_prefix(THERE)
                {
                    *reference = format!("#/$defs/{name}");
                }
                fields.values_mut().for_each(turn);
            }
            Value::Array(items) => items.iter_mut().for_each(turn),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    let refers = schema.to_string().contains(THERE);
    let mut schema = schema;
    if let (true, Some(components), Some(fields)) = (refers, components, schema.as_object_mut()) {
        fields.insert("$defs".to_owned(), Value::Object(components.clone()));
    }
    turn(&mut schema);
    schema
}

async fn take(api: &Api, posted: &Posted, found: &FoundBody) -> Result<(), Halt> {
    let decide = |catalog: &Catalog| {
        let was = catalog.event_type(&found.name);
        let base = was.map_or_else(|| blank(&found.name, posted.at), |was| (**was).clone());
        let taken = EventType {
            description: found.description.clone(),
            deprecated: found.deprecated,
            archived: false,
            schemas: Some(found.schemas.to_string()),
            updated_at: posted.at,
            ..base
        };
        Ok(to_change(taken, was.map_or(0, |was| was.revision)))
    };
    change::make(api, posted, "event_type.import", decide).await?;
    Ok(())
}

/// Archives what the description does not name.
async fn archive_others(
    api: &Api,
    posted: &Posted,
    found: &[FoundBody],
) -> Result<Vec<String>, Halt> {
    let others: Vec<String> = {
        let catalog = api.publisher.registry.catalog();
        let all = catalog.all_event_types().filter(|known| !known.archived);
        let named = |known: &EventType| found.iter().any(|one| one.name == *known.name);
        let others = all.filter(|known| !named(known));
        others.map(|known| known.name.to_string()).collect()
    };
    for name in &others {
        let decide = |catalog: &Catalog| {
            let was = catalog.event_type(name);
            let was = was.ok_or_else(|| Halt::from(answer::NOT_FOUND))?;
            let archived = EventType {
                archived: true,
                updated_at: posted.at,
                ..(**was).clone()
            };
            Ok(to_change(archived, was.revision))
        };
        change::make(api, posted, "event_type.archive", decide).await?;
    }
    Ok(others)
}
