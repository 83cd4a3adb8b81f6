//! All guards of a file: each by itself, and what must differ between them.

use std::collections::HashMap;
use std::sync::Arc;

use super::raw::RawGuard;
use super::resolve;
use super::resolved::GuardConfig;
use crate::config::scan::{Scan, Text};

/// More is a mistake, or wants a program that makes the file.
const GUARDS_MAX: usize = 100;

/// Resolves all guards; nothing if there was an error, which is reported.
pub(in crate::config) fn guards(
    scan: &Scan<'_>,
    raw: &[RawGuard],
) -> Option<Vec<Arc<GuardConfig>>> {
    if let Some(beyond) = raw.get(GUARDS_MAX) {
        let wrong = format!("there are more than {GUARDS_MAX} guards");
        scan.error("H0135", &beyond.at, wrong, "remove some");
        return None;
    }
    differ(scan, "name", raw.iter().map(|guard| guard.name.as_ref()));
    differ(
        scan,
        "listen",
        raw.iter().map(|guard| guard.listen.as_ref()),
    );
    let guards: Vec<Option<GuardConfig>> =
        raw.iter().map(|raw| resolve::guard(scan, raw)).collect();
    guards
        .into_iter()
        .map(|guard| guard.map(Arc::new))
        .collect()
}

/// A name is the scope of its keys, and an address has room for one listener. Port 0 is another one each time.
fn differ<'t>(scan: &Scan<'_>, field: &str, texts: impl Iterator<Item = Option<&'t Text>>) {
    let mut seen: HashMap<&str, usize> = HashMap::new();
    for text in texts.flatten() {
        if field == "listen" && text.value.ends_with(":0") {
            continue;
        }
        let count = seen.entry(&text.value).or_default();
        *count += 1;
        if *count == 2 {
            let wrong = format!("two guards have the `{field}` {}", text.shown());
            scan.error("H0150", &text.at, wrong, "give each its own");
        }
    }
}
