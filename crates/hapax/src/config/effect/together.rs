//! All effects of a file: each at its source, no two under one name, none waiting for itself.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use hapax_ledger::effect::Repeat;
use hapax_ledger::extract::Fields;
use hapax_ledger::plan::{AfterError, EffectRule, When, check_after};
use hapax_ledger::template::Template;

use super::raw::RawEffect;
use super::resolve::{self, Home};
use super::resolved::EffectConfig;
use crate::config::resolved::SourceConfig;
use crate::config::scan::{At, Scan};
use crate::config::suggest;

/// At most so many effects for one source: each is looked at for every event.
pub(super) const PER_SOURCE_MAX: usize = 1_000;

/// Resolves all effects; nothing if there was an error, which is reported. `names` are those of the sources, and a
/// source that is wrong itself is nothing.
pub(in crate::config) fn effects(
    scan: &Scan<'_>,
    raw: &[RawEffect],
    names: &[Option<String>],
    sources: &mut [Option<SourceConfig>],
) -> Option<Vec<Arc<EffectConfig>>> {
    unique_names(scan, raw);
    for name in names.iter().flatten() {
        let of_source: Vec<&RawEffect> = raw
            .iter()
            .filter(|raw| raw.source.as_ref().is_some_and(|text| text.value == *name))
            .collect();
        after(scan, &of_source);
    }
    let mut places: HashMap<usize, usize> = HashMap::new();
    let mut effects = Vec::new();
    for raw in raw {
        let source = source(scan, raw, names);
        let place = source.map_or(0, |source| {
            let place = places.entry(source).or_default();
            *place += 1;
            *place - 1
        });
        if place == PER_SOURCE_MAX {
            let wrong = format!("this source has more than {PER_SOURCE_MAX} effects");
            scan.error("H0135", &raw.at, wrong, "let one effect stand for several");
        }
        let known = source.and_then(|source| sources.get_mut(source)?.as_mut());
        let mut scratch = Fields::new();
        let home = match known {
            Some(source) => Home::of(source, place),
            None => Home {
                fields: &mut scratch,
                place,
                ground: None,
                order: None,
            },
        };
        effects.push(resolve::effect(scan, raw, home).map(Arc::new));
    }
    effects.into_iter().collect()
}

/// Adds what the keys of a source's effects ask for, where the effects themselves are not wanted.
pub(in crate::config) fn expected_fields(keys: &[String], sources: &mut [Option<SourceConfig>]) {
    for source in sources.iter_mut().flatten() {
        for key in keys {
            // A template that is none is the business of whoever reads the whole file.
            let mut fields = source.fields.clone();
            if Template::parse(key, &mut fields).is_ok() {
                source.fields = fields;
            }
        }
    }
}

/// The place of an effect's source.
fn source(scan: &Scan<'_>, raw: &RawEffect, names: &[Option<String>]) -> Option<usize> {
    let Some(text) = &raw.source else {
        let remedy = "write source = \"NAME\" of the [[source]] whose events call for it";
        resolve::missing(scan, raw, "source", remedy);
        return None;
    };
    let known = || names.iter().flatten().map(String::as_str);
    let found = names
        .iter()
        .position(|name| name.as_deref() == Some(&text.value));
    // A source without a name may be the one that is meant, and is a problem already.
    if found.is_none() && names.iter().all(Option::is_some) {
        let remedy = match suggest::nearest(&text.value, known()) {
            Some(near) => format!("did you mean `{near}`?"),
            None if names.is_empty() => "add a [[source]] of this name".to_owned(),
            None => format!(
                "the sources are: {}",
                known().collect::<Vec<_>>().join(", ")
            ),
        };
        let wrong = format!("there is no source named {}", text.shown());
        scan.error("H0127", &text.at, wrong, remedy);
    }
    found
}

fn unique_names(scan: &Scan<'_>, raw: &[RawEffect]) {
    let mut seen = HashSet::new();
    for name in raw.iter().filter_map(|raw| raw.name.as_ref()) {
        if !seen.insert(&name.value) {
            let wrong = format!("two effects are named {}", name.shown());
            let remedy = "give each its own name: keys are unique per name, over all sources";
            scan.error("H0126", &name.at, wrong, remedy);
        }
    }
}

/// Checks who waits for whom among the effects of one source, right or wrong as they may be otherwise.
fn after(scan: &Scan<'_>, raw: &[&RawEffect]) {
    let mut rules: Vec<EffectRule> = raw.iter().filter_map(|raw| bare_rule(raw)).collect();
    if rules.len() < raw.len() {
        // One without a name may be the one that is waited for.
        return;
    }
    let remedy = "name effects of the same source that do not wait for this one";
    let at = |effect: &str| {
        let named = |raw: &&&RawEffect| raw.name.as_ref().is_some_and(|name| name.value == effect);
        let raw = raw.iter().find(named);
        let after = raw.and_then(|raw| raw.after.as_ref());
        after.map_or(At::Nowhere, |texts| texts.at.clone())
    };
    while let Err(error) = check_after(&rules) {
        let wrong = error.to_string();
        match error {
            AfterError::Unknown { effect, after } => {
                scan.error("H0132", &at(&effect), wrong, remedy);
                let waiting = rules.iter_mut().filter(|rule| rule.name == effect);
                waiting.for_each(|rule| rule.after.retain(|name| *name != after));
            }
            AfterError::Circle(circle) => {
                let first = circle.first().map_or("", String::as_str);
                scan.error("H0132", &at(first), wrong, remedy);
                return;
            }
            // Said of the names already.
            AfterError::Twice(_) => return,
        }
    }
}

/// A rule of which only name and `after` count.
fn bare_rule(raw: &RawEffect) -> Option<EffectRule> {
    let after = raw.after.iter().flat_map(|texts| &texts.found);
    Some(EffectRule {
        name: raw.name.as_ref()?.value.clone(),
        types: Vec::new(),
        when: When::Always,
        key: None,
        repeat: Repeat::Keyed,
        after: after.map(|text| text.value.clone()).collect(),
        order: None,
    })
}
