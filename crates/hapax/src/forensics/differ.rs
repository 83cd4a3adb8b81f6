//! Which fields of two bodies differ.

use std::collections::BTreeSet;

use serde_json::Value;

/// Paths that are named; more say that the bodies have little to do with each other.
const PATHS_MAX: usize = 20;

/// The paths at which two bodies differ, as a config would name them. `None` if one of them is not JSON.
pub(super) fn differing(one: &[u8], other: &[u8]) -> Option<Vec<String>> {
    let one: Value = serde_json::from_slice(one).ok()?;
    let other: Value = serde_json::from_slice(other).ok()?;
    let mut paths = Vec::new();
    compare(&one, &other, &mut String::new(), &mut paths);
    Some(paths)
}

fn compare(one: &Value, other: &Value, path: &mut String, paths: &mut Vec<String>) {
    if paths.len() == PATHS_MAX || one == other {
        return;
    }
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            let names: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
            for name in names {
                let (a, b) = (one.get(name), other.get(name));
                let whole = path.len();
                if !path.is_empty() {
                    path.push('.');
                }
                path.push_str(name);
                compare(
                    a.unwrap_or(&Value::Null),
                    b.unwrap_or(&Value::Null),
                    path,
                    paths,
                );
                path.truncate(whole);
            }
        }
        // Lists are named as a whole: what stands where in them is seldom stable.
        _ => paths.push(match path.is_empty() {
            true => "the whole body".to_owned(),
            false => path.clone(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differing_fields_are_named_as_a_config_names_them() {
        let one = br#"{"id":"e","data":{"object":{"id":"in_1","seen":1}},"list":[1],"same":true}"#;
        let two = br#"{"id":"e","data":{"object":{"id":"in_1","seen":2}},"list":[2],"same":true,"new":1}"#;
        assert_eq!(
            differing(one, two),
            Some(vec![
                "data.object.seen".to_owned(),
                "list".to_owned(),
                "new".to_owned()
            ])
        );
        assert_eq!(differing(one, one), Some(Vec::new()));
        assert_eq!(
            differing(b"1", b"2"),
            Some(vec!["the whole body".to_owned()])
        );
        assert_eq!(differing(one, b"not JSON"), None);
    }
}
