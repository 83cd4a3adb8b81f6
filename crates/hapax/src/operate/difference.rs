//! How what the source of truth said differs from what the event had said: path by path, and no more than a person reads.

use std::collections::BTreeSet;

use serde_json::{Value, json};

/// Paths that are named. More say that the two have little to do with each other.
const PATHS_MAX: usize = 50;
/// Letters of a value that are shown.
const VALUE_CHARS_MAX: usize = 200;
/// Paths that fit into a sentence.
const PATHS_SAID_MAX: usize = 5;

/// One path at which they differ. `None`: it is not there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Difference {
    /// As a config would name it, within the object.
    pub(super) path: String,
    /// What the event says, as JSON.
    pub(super) event: Option<String>,
    /// What the source of truth says, as JSON.
    pub(super) snapshot: Option<String>,
}

/// Where the event's object differs from the snapshot. `id` is where the object's id stands: the object is what it stands in.
/// `None` if one of them is not JSON.
pub(super) fn difference(
    body: &[u8],
    id: Option<&str>,
    snapshot: &[u8],
) -> Option<Vec<Difference>> {
    let body: Value = serde_json::from_slice(body).ok()?;
    let snapshot: Value = serde_json::from_slice(snapshot).ok()?;
    let mut found = Vec::new();
    let object = object(&body, id);
    compare(
        Some(object),
        Some(&snapshot),
        &mut String::new(),
        &mut found,
    );
    Some(found)
}

/// The object that an id stands in; the whole body, if that cannot be told.
fn object<'v>(body: &'v Value, id: Option<&str>) -> &'v Value {
    let within = id.and_then(|id| id.rsplit_once('.'));
    let Some((path, _)) = within.filter(|(path, _)| !path.contains('\\')) else {
        return body;
    };
    let found = path
        .split('.')
        .try_fold(body, |value, part| value.get(part));
    found.filter(|object| object.is_object()).unwrap_or(body)
}

fn compare(
    event: Option<&Value>,
    snapshot: Option<&Value>,
    path: &mut String,
    found: &mut Vec<Difference>,
) {
    if found.len() == PATHS_MAX || event == snapshot {
        return;
    }
    let (Some(Value::Object(one)), Some(Value::Object(other))) = (event, snapshot) else {
        let shown =
            |value: &Value| -> String { value.to_string().chars().take(VALUE_CHARS_MAX).collect() };
        found.push(Difference {
            path: path.clone(),
            event: event.map(shown),
            snapshot: snapshot.map(shown),
        });
        return;
    };
    let names: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
    for name in names {
        let whole = path.len();
        if !path.is_empty() {
            path.push('.');
        }
        path.push_str(name);
        compare(one.get(name), other.get(name), path, found);
        path.truncate(whole);
    }
}

/// The same for programs.
pub(super) fn detail(differences: &[Difference]) -> Value {
    let all = differences
        .iter()
        .map(|one| json!({ "path": one.path, "event": one.event, "snapshot": one.snapshot }));
    all.collect()
}

/// In a sentence.
pub(super) fn sentence(differences: &[Difference]) -> String {
    let shown = |value: &Option<String>| value.clone().unwrap_or_else(|| "nothing".to_owned());
    let first = differences.iter().take(PATHS_SAID_MAX).map(|one| {
        let path = if one.path.is_empty() {
            "the object"
        } else {
            &one.path
        };
        format!(
            "{path} was {}, is {}",
            shown(&one.event),
            shown(&one.snapshot)
        )
    });
    let first: Vec<String> = first.collect();
    match differences.len() {
        0 => "the source of truth says the same as the event".to_owned(),
        many if many > PATHS_SAID_MAX => {
            format!("{}; and {} more", first.join("; "), many - PATHS_SAID_MAX)
        }
        _ => first.join("; "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVENT: &[u8] =
        br#"{"id":"evt","data":{"object":{"id":"in_1","status":"open","lines":[1],"old":1}}}"#;

    #[test]
    fn the_object_of_the_event_is_compared_with_the_truth() {
        let truth = br#"{"id":"in_1","status":"paid","lines":[1,2],"new":{"a":null}}"#;
        let found = difference(EVENT, Some("data.object.id"), truth).expect("JSON");
        let paths: Vec<&str> = found.iter().map(|one| &*one.path).collect();
        assert_eq!(paths, ["lines", "new", "old", "status"]);
        assert_eq!(found[1].event, None);
        assert_eq!(found[2].snapshot, None);
        let said = sentence(&found);
        assert!(said.ends_with("status was \"open\", is \"paid\""), "{said}");
        assert!(said.contains("old was 1, is nothing"), "{said}");
    }

    #[test]
    fn what_is_the_same_or_no_json_is_said_so() {
        let same = br#"{"id":"in_1","status":"open","lines":[1],"old":1}"#;
        let found = difference(EVENT, Some("data.object.id"), same).expect("JSON");
        assert_eq!(found, []);
        assert_eq!(
            sentence(&found),
            "the source of truth says the same as the event"
        );
        assert_eq!(difference(EVENT, None, b"not JSON"), None);
        let whole = difference(EVENT, None, b"1").expect("JSON");
        assert_eq!((whole.len(), &*whole[0].path), (1, ""));
    }

    #[test]
    fn many_differences_are_bounded() {
        let many: serde_json::Map<String, Value> = (0..500)
            .map(|n| (format!("f{n:03}"), json!("x".repeat(1_000))))
            .collect();
        let many = Value::Object(many).to_string();
        let found = difference(b"{}", None, many.as_bytes()).expect("JSON");
        assert_eq!(found.len(), PATHS_MAX);
        assert!(
            found[0]
                .snapshot
                .as_ref()
                .is_some_and(|text| text.len() == VALUE_CHARS_MAX)
        );
        assert!(sentence(&found).ends_with("; and 45 more"));
    }
}
