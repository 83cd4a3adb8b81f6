//! From `[[effect]]` to effects: each against the source whose events call for it.

use std::collections::HashSet;
use std::sync::Arc;

use hapax_ledger::condition::Condition;
use hapax_ledger::extract::Fields;
use hapax_ledger::glob::Glob;
use hapax_ledger::order::OrderRule;
use hapax_ledger::plan::{EffectRule, When};
use hapax_ledger::template::Template;
use hapax_store::nouns::is_endpoint_name;

use super::condition::{self, ConditionConfig};
use super::expression::Expression;
use super::order::{Ground, OrderConfig, SourceOfTruth};
use super::raw::{RawEffect, RawEffectOrder};
use super::resolved::EffectConfig;
use super::url::UrlTemplate;
use super::{order, request, settings};
use crate::config::resolved::SourceConfig;
use crate::config::scan::{Scan, Text};
use crate::config::table::Texts;

/// The longest name of an effect: it is part of headers and metrics.
const NAME_BYTES_MAX: usize = 64;

/// What an effect finds at its source.
pub(super) struct Home<'s> {
    /// The set that its fields join.
    pub(super) fields: &'s mut Fields,
    /// How many effects the source has before this one.
    pub(super) place: usize,
    /// What its order stands on; nothing if the source is wrong itself.
    pub(super) ground: Option<Ground<'s>>,
    /// The source's own order.
    pub(super) order: Option<&'s OrderConfig>,
}

impl<'s> Home<'s> {
    pub(super) fn of(source: &'s mut SourceConfig, place: usize) -> Home<'s> {
        Home {
            place,
            ground: Some(Ground {
                entity: source.entity.as_ref(),
                source_of_truth: match source.reconcile {
                    Some(_) => SourceOfTruth::Named,
                    None => SourceOfTruth::None,
                },
            }),
            order: source.order.as_ref(),
            fields: &mut source.fields,
        }
    }
}

/// Resolves one effect; nothing if there was an error, which is reported.
pub(super) fn effect(scan: &Scan<'_>, raw: &RawEffect, home: Home<'_>) -> Option<EffectConfig> {
    let name = name(scan, raw);
    let types = types(raw.types.as_ref());
    let when = when(scan, raw.when.as_ref(), home.place, home.fields);
    let key = key(scan, raw.key.as_ref(), home.fields);
    let repeat = settings::repeat(scan, raw.repeat.as_ref());
    let after = names_of(raw.after.as_ref());
    let order = effect_order(scan, raw.order.as_ref(), home);
    let url = url(scan, raw);
    let body = settings::body(scan, raw.body.as_ref());
    let timeout = settings::timeout(scan, raw.timeout.as_ref());
    let retry = settings::retry(scan, raw.retry.as_ref());
    let concurrency = settings::concurrency(scan, raw.concurrency.as_ref());
    let rate = settings::rate(scan, raw.rate.as_ref());
    let probe = probe(scan, raw.probe.as_ref());
    let headers = request::headers(scan, raw.headers.as_ref());
    let signer = match &raw.secret {
        Some(text) => request::signer(scan, text).map(Some),
        None => Some(None),
    };
    let (name, (when, full)) = (name?, when?);
    let (order, review) = order?;
    Some(EffectConfig {
        rule: EffectRule {
            name: name.to_string(),
            types: types?,
            when,
            key: key?,
            repeat: repeat?,
            after: after?,
            order,
        },
        name,
        source: raw.source.as_ref()?.value.as_str().into(),
        when: full,
        review,
        url: url?,
        body: body?,
        timeout: timeout?,
        retry: retry?,
        concurrency: concurrency?,
        rate: rate?,
        probe: probe?,
        headers: headers?,
        signer: signer?,
    })
}

pub(super) fn missing(scan: &Scan<'_>, raw: &RawEffect, field: &str, remedy: &str) {
    if !raw.meant.contains(&field) {
        let wrong = format!("this [[effect]] has no `{field}`");
        scan.error("H0109", &raw.at, wrong, remedy);
    }
}

fn name(scan: &Scan<'_>, raw: &RawEffect) -> Option<Arc<str>> {
    let Some(name) = &raw.name else {
        let remedy = "write name = \"activate\": its keys are unique under this name";
        missing(scan, raw, "name", remedy);
        return None;
    };
    let letter = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let fits = (1..=NAME_BYTES_MAX).contains(&name.value.len()) && name.value.bytes().all(letter);
    if !fits {
        let wrong = format!("{} cannot be the name of an effect", name.shown());
        let remedy = format!("use 1 to {NAME_BYTES_MAX} letters, digits, -, _ and .");
        scan.error("H0126", &name.at, wrong, remedy);
    }
    // A delivery to an endpoint is an effect under the endpoint's id; one key must not mean two things.
    let reserved = is_endpoint_name(&name.value);
    if reserved {
        let wrong = format!(
            "{} cannot be the name of an effect: endpoints are called so",
            name.shown()
        );
        let remedy = "choose a name that does not begin with ep_".to_owned();
        scan.error("H0126", &name.at, wrong, remedy);
    }
    (fits && !reserved).then(|| name.value.as_str().into())
}

fn url(scan: &Scan<'_>, raw: &RawEffect) -> Option<super::Url> {
    let Some(text) = &raw.url else {
        let remedy = "write url = \"http://127.0.0.1:9000/activate\": that is where it is sent";
        missing(scan, raw, "url", remedy);
        return None;
    };
    request::url(scan, "url", text)
}

fn types(texts: Option<&Texts>) -> Option<Vec<Glob>> {
    Some(names_of(texts)?.into_iter().map(Glob::new).collect())
}

/// The texts of a list, each once.
fn names_of(texts: Option<&Texts>) -> Option<Vec<String>> {
    let Some(texts) = texts else {
        return Some(Vec::new());
    };
    let mut seen = HashSet::new();
    let found = texts.found.iter().map(|text| &text.value);
    let names = found
        .filter(|name| seen.insert(name.as_str()))
        .cloned()
        .collect();
    texts.complete.then_some(names)
}

type FullWhen = (When, Option<Arc<Expression>>);

fn when(
    scan: &Scan<'_>,
    text: Option<&Text>,
    place: usize,
    fields: &mut Fields,
) -> Option<FullWhen> {
    let Some(text) = text else {
        return Some((When::Always, None));
    };
    match condition::over_payload(scan, "when", text)? {
        ConditionConfig::Plain(text) => {
            let condition = Condition::parse(&text, fields).ok()?;
            Some((When::Plain(condition), None))
        }
        ConditionConfig::Full(full) => Some((When::Elsewhere(place), Some(full))),
    }
}

fn key(scan: &Scan<'_>, text: Option<&Text>, fields: &mut Fields) -> Option<Option<Template>> {
    let Some(text) = text else {
        return Some(None);
    };
    match Template::parse(&text.value, fields) {
        Ok(template) => Some(Some(template)),
        Err(bad) => {
            let wrong = match text.is_literal() {
                true => format!("{} cannot be a key: {bad}", text.shown()),
                false => format!("{} cannot be a key", text.shown()),
            };
            let remedy = "write fields in braces, such as {data.object.customer}:{data.object.id}";
            scan.error("H0129", &text.at, wrong, remedy);
            None
        }
    }
}

type FullOrder = (Option<OrderRule>, Option<Arc<Expression>>);

fn effect_order(
    scan: &Scan<'_>,
    raw: Option<&RawEffectOrder>,
    home: Home<'_>,
) -> Option<FullOrder> {
    #[derive(Clone, Copy)]
    enum Whose {
        Source,
        Nobody,
    }
    let words = [("source", Whose::Source), ("off", Whose::Nobody)];
    let own;
    let order = match raw {
        Some(RawEffectOrder::Own(raw)) => {
            own = order::resolve(scan, raw, home.ground)?;
            Some(&own)
        }
        Some(RawEffectOrder::Word(text)) => {
            match settings::word(scan, "order", Some(text), &words, Whose::Source)? {
                Whose::Source => home.order,
                Whose::Nobody => None,
            }
        }
        None => home.order,
    };
    let entity = home.ground.and_then(|ground| ground.entity);
    let (Some(order), Some(entity)) = (order, entity) else {
        return Some((None, None));
    };
    let rule = order.rule(entity, home.fields);
    Some((Some(rule), order.full_review().cloned()))
}

fn probe(scan: &Scan<'_>, text: Option<&Text>) -> Option<Option<UrlTemplate>> {
    let Some(text) = text else {
        return Some(None);
    };
    let probe = request::template(scan, "probe", text)?;
    let mut names: Vec<&str> = probe.names().collect();
    names.dedup();
    if names != ["key"] {
        let wrong = match names.is_empty() {
            true => "`probe` does not say where the key goes",
            false => "`probe` has a place for something else than the key",
        };
        let remedy =
            "write {key} where the key goes, as in http://127.0.0.1:9000/applied?key={key}";
        scan.error("H0130", &text.at, wrong, remedy);
        return None;
    }
    Some(Some(probe))
}
