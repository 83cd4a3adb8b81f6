//! What payloads of a type have to be like: a JSON Schema per version, enforced where one is set.
//!
//! A schema is complete in itself: one that refers to another place is refused when it is written, and nothing is ever fetched.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use hapax_store::nouns::EventType;
use jsonschema::{PatternOptions, Retrieve, Uri, Validator};
use serde_json::{Map, Value};

/// Types whose schemas are kept ready. Of more, those of some are made again and again.
const READY_MAX: usize = 1_000;
/// Versions of one type.
pub const VERSIONS_MAX: usize = 32;
/// What of a payload's faults is told.
const FAULTS_MAX: usize = 8;

/// Why a payload does not fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Misfit {
    /// The type has schemas, and none of this version.
    NoVersion,
    /// What is wrong, and where.
    Wrong(Vec<String>),
    /// The schema cannot be read. It was checked when it was written, so an older version of the program wrote it.
    Schema(String),
}

/// Schemas, ready to be asked.
#[derive(Default)]
pub struct Schemas {
    ready: Mutex<HashMap<Arc<str>, Known>>,
}

/// The revision of a type, and its schemas.
type Known = (u64, Arc<Ready>);

/// The schemas of a type. The last version is the latest.
struct Ready(Vec<(String, Result<Validator, String>)>);

/// Refuses everything.
struct Nothing;

impl Retrieve for Nothing {
    fn retrieve(
        &self,
        uri: &Uri<String>,
    ) -> Result<Value, Box<dyn std::error::Error + Send + Sync>> {
        Err(format!("`{uri}` is elsewhere; a schema has to be complete in itself").into())
    }
}

/// Can these schemas be kept?
///
/// # Errors
/// Says what is wrong with the first that cannot.
pub fn check(schemas: &Map<String, Value>) -> Result<(), String> {
    if schemas.len() > VERSIONS_MAX {
        return Err(format!("at most {VERSIONS_MAX} versions are kept"));
    }
    for (version, schema) in schemas {
        build(schema).map_err(|why| format!("version {version}: {why}"))?;
    }
    Ok(())
}

fn build(schema: &Value) -> Result<Validator, String> {
    jsonschema::options()
        .with_retriever(Nothing)
        // Linear in the text, whatever the pattern.
        .with_pattern_options(PatternOptions::regex())
        .build(schema)
        .map_err(|error| error.to_string())
}

/// The example of a type's schema, of its latest version: one of `examples`, or `example`.
pub fn example(event_type: &EventType, index: usize) -> Option<Value> {
    let schemas: Map<String, Value> = serde_json::from_str(event_type.schemas.as_deref()?).ok()?;
    let (_, latest) = in_order(schemas).pop()?;
    let examples = latest.get("examples").and_then(Value::as_array);
    let listed = examples.and_then(|all| all.get(index).or_else(|| all.first()));
    listed.or_else(|| latest.get("example")).cloned()
}

/// Versions as people count: numbers by value, everything else by its letters, before numbers.
fn in_order(schemas: Map<String, Value>) -> Vec<(String, Value)> {
    let mut all: Vec<(String, Value)> = schemas.into_iter().collect();
    all.sort_by_key(|(version, _)| version.parse::<u64>().ok());
    all
}

impl Schemas {
    /// Does a payload fit the schema of its type? Without a version, the latest counts. A type without schemas takes everything.
    ///
    /// # Errors
    /// If it does not.
    pub fn judge(
        &self,
        event_type: &EventType,
        version: Option<&str>,
        payload: &[u8],
    ) -> Result<(), Misfit> {
        let Some(schemas) = &event_type.schemas else {
            return Ok(());
        };
        let ready = self.ready(event_type, schemas);
        let found = match version {
            None => ready.0.last(),
            Some(version) => ready.0.iter().find(|(one, _)| one == version),
        };
        let schema = match found {
            Some((_, schema)) => schema.as_ref(),
            None if ready.0.is_empty() => return Ok(()),
            None => return Err(Misfit::NoVersion),
        };
        let schema = schema.map_err(|why| Misfit::Schema(why.clone()))?;
        let payload: Value = serde_json::from_slice(payload)
            .map_err(|error| Misfit::Wrong(vec![error.to_string()]))?;
        let faults = schema.iter_errors(&payload).take(FAULTS_MAX);
        let faults: Vec<String> = faults
            .map(|fault| format!("{}: {}", fault.instance_path(), fault.masked()))
            .collect();
        match faults.is_empty() {
            true => Ok(()),
            false => Err(Misfit::Wrong(faults)),
        }
    }

    fn ready(&self, event_type: &EventType, schemas: &str) -> Arc<Ready> {
        let lock = || self.ready.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((revision, ready)) = lock().get(&event_type.name)
            && *revision == event_type.revision
        {
            return ready.clone();
        }
        let all: Map<String, Value> = serde_json::from_str(schemas).unwrap_or_default();
        let all = in_order(all).into_iter();
        let built = all.map(|(version, schema)| (version, build(&schema)));
        let ready = Arc::new(Ready(built.collect()));
        let mut known = lock();
        if known.len() >= READY_MAX {
            known.clear();
        }
        let kept = (event_type.revision, ready.clone());
        known.insert(event_type.name.clone(), kept);
        ready
    }
}

#[cfg(test)]
mod tests {
    use hapax_ledger::time::Time;
    use serde_json::json;

    use super::*;

    fn of(schemas: &Value, revision: u64) -> EventType {
        EventType {
            name: "invoice.paid".into(),
            description: String::new(),
            archived: false,
            deprecated: false,
            group_name: None,
            feature_flags: Vec::new(),
            schemas: Some(schemas.to_string()),
            extra: String::new(),
            created_at: Time::from_secs(1),
            updated_at: Time::from_secs(1),
            deleted_at: None,
            revision,
        }
    }

    #[test]
    fn a_payload_is_held_against_the_version_it_names_or_the_latest() {
        let schemas = Schemas::default();
        let one = json!({"type": "object", "required": ["a"], "example": {"a": 1}});
        let ten = json!({"type": "object", "required": ["b"], "examples": [{"b": 1}, {"b": 2}]});
        let known = of(&json!({"1": one, "10": ten, "2": {}}), 1);
        assert_eq!(schemas.judge(&known, Some("1"), b"{\"a\":1}"), Ok(()));
        assert_eq!(
            schemas.judge(&known, Some("3"), b"{}"),
            Err(Misfit::NoVersion)
        );
        assert_eq!(schemas.judge(&known, None, b"{\"b\":1}"), Ok(()));
        let wrong = schemas.judge(&known, None, b"{\"a\":\"secret\"}");
        let Err(Misfit::Wrong(faults)) = wrong else {
            panic!("{wrong:?}");
        };
        assert_eq!(faults.len(), 1);
        assert_eq!(example(&known, 1), Some(json!({"b": 2})));
        assert_eq!(example(&known, 7), Some(json!({"b": 1})));
        // A change of the type is a new revision.
        let changed = of(&json!({"1": {}}), 2);
        assert_eq!(schemas.judge(&changed, None, b"{}"), Ok(()));
    }

    #[test]
    fn a_schema_that_refers_elsewhere_is_refused_and_nothing_is_fetched() {
        for elsewhere in [
            "http://127.0.0.1:1/x.json",
            "file:///etc/passwd",
            "other.json",
        ] {
            let schema = json!({"1": {"$ref": elsewhere}});
            let schema = schema.as_object().expect("an object");
            assert!(check(schema).is_err(), "{elsewhere}");
        }
        let own = json!({"1": {"$ref": "#/$defs/a", "$defs": {"a": {"type": "object"}}}});
        assert_eq!(check(own.as_object().expect("an object")), Ok(()));
    }
}
