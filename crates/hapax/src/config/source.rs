//! From `[[source]]` to a source: its preset's facts filled in, every field parsed, every window checked.

use std::sync::Arc;

use hapax_ledger::extract::Fields;
use hapax_ledger::field::{BadField, Field, SEGMENTS_MAX};
use hapax_ledger::identity::check_windows;
use hapax_ledger::time::Span;
use hapax_store::nouns::Keep;
use hapax_verify::provider::{self, FieldRef, Provider};
use hapax_verify::{Scheme, SchemeSpec};

use super::effect::{self, OrderConfig, Ordered};
use super::raw::RawSource;
use super::resolve::span;
use super::resolved::{ProviderId, SourceConfig};
use super::scan::{Scan, Text};
use super::table::Texts;
use super::{suggest, trust};

/// The longest name of a source: it is part of URLs, metrics and file names.
const NAME_BYTES_MAX: usize = 64;
/// How long a payload is kept unless told.
const PAYLOAD_DEFAULT: Span = Span::from_days(30);
/// How long an identity is kept unless told, or unless something else lives longer.
const IDENTITY_DEFAULT: Span = Span::from_days(90);
/// For how long a provider that nobody described may try again.
const RETRY_WINDOW_CUSTOM: Span = Span::from_days(7);

/// What `provider` names.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    Preset(&'static Provider),
    Custom,
    Unverified,
}

/// The public URL: not given, or given and maybe wrong.
pub(super) type PublicUrl<'u> = Option<Option<&'u str>>;

/// Resolves one source; nothing if there was an error, which is reported.
pub(super) fn resolve(scan: &Scan<'_>, raw: RawSource, url: PublicUrl<'_>) -> Option<SourceConfig> {
    let name = name(scan, &raw);
    let kind = kind(scan, &raw);
    let scheme = kind.and_then(|kind| trust::scheme(scan, &raw, kind));
    let verifier = match (&scheme, kind) {
        (Some((scheme, _)), Some(kind)) => trust::verifier(scan, &raw, kind, scheme, url),
        _ => {
            trust::judge_secrets(scan, &raw);
            None
        }
    };
    let preset = match kind {
        Some(Kind::Preset(preset)) => Some(preset),
        _ => None,
    };
    let fields = fields(scan, &raw, preset, scheme.as_ref());
    let keep = keep(scan, &raw, kind);
    let ordered = Ordered {
        order: raw.order.as_ref(),
        reconcile: raw.reconcile.as_ref(),
        reconcile_is_there: raw.meant.contains(&"reconcile"),
        on_duplicate_of_failed: raw.on_duplicate_of_failed.as_ref(),
        entity: fields.as_ref().map(|fields| fields.entity.as_ref()),
    };
    let ordered = effect::of_source(scan, &ordered);
    let (fields, ordered, provider) = (fields?, ordered?, raw.provider?);
    let version = ordered.order.as_ref().and_then(OrderConfig::version);
    Some(SourceConfig {
        name: name?,
        preset,
        provider: provider.value.into(),
        verifier: verifier?,
        event_type: fields.event_type,
        provider_id: fields.provider_id,
        key: fields.key,
        composed: preset_fields(preset.map_or(&[], |preset| &preset.composed_key)),
        body_varies: preset.is_some_and(|preset| preset.body_varies),
        trust_unsigned_id: raw.trust_unsigned_id,
        object_id: preset.and_then(|preset| preset_field(preset.object_id.as_ref())),
        entity: fields.entity,
        version: version
            .cloned()
            .or_else(|| preset.and_then(|preset| preset_field(preset.version.as_ref()))),
        volatile: fields.volatile,
        batch: preset.and_then(|preset| preset.batch.clone()),
        keep: keep?,
        order: ordered.order,
        reconcile: ordered.reconcile,
        on_duplicate_of_failed: ordered.on_duplicate_of_failed,
        fields: Fields::new(),
    })
}

fn missing(scan: &Scan<'_>, raw: &RawSource, field: &str, remedy: &str) {
    if !raw.meant.contains(&field) {
        let wrong = format!("this [[source]] has no `{field}`");
        scan.error("H0109", &raw.at, wrong, remedy);
    }
}

fn name(scan: &Scan<'_>, raw: &RawSource) -> Option<Arc<str>> {
    let Some(name) = &raw.name else {
        let remedy = "write name = \"billing\": it becomes the URL /in/billing";
        missing(scan, raw, "name", remedy);
        return None;
    };
    let letter = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_');
    let fits = (1..=NAME_BYTES_MAX).contains(&name.value.len()) && name.value.bytes().all(letter);
    if !fits {
        let wrong = format!("{} cannot be the name of a source", name.shown());
        let remedy = format!(
            "use 1 to {NAME_BYTES_MAX} of the characters a-z, 0-9, - and _: it is part of a URL"
        );
        scan.error("H0110", &name.at, wrong, remedy);
    }
    fits.then(|| name.value.as_str().into())
}

fn kind(scan: &Scan<'_>, raw: &RawSource) -> Option<Kind> {
    let Some(name) = &raw.provider else {
        let remedy =
            "write provider = \"stripe\" or another preset, or \"custom\" with [source.verify]";
        missing(scan, raw, "provider", remedy);
        return None;
    };
    match name.value.as_str() {
        "custom" => return Some(Kind::Custom),
        "unverified" => return Some(Kind::Unverified),
        _ => {}
    }
    if let Some(preset) = provider::find(&name.value) {
        return Some(Kind::Preset(preset));
    }
    let names = provider::all()
        .iter()
        .map(|provider| provider.name.as_str());
    let remedy = match suggest::nearest(&name.value, names.chain(["custom", "unverified"])) {
        Some(near) => {
            format!("did you mean `{near}`? `hapax explain H0112` says how to describe another one")
        }
        None => "use \"custom\" with [source.verify] to describe how it signs".to_owned(),
    };
    let wrong = format!("there is no preset for {}", name.shown());
    scan.error("H0112", &name.at, wrong, remedy);
    None
}

struct SourceFields {
    event_type: Option<Field>,
    provider_id: Option<ProviderId>,
    key: Vec<Field>,
    entity: Option<Field>,
    volatile: Vec<Field>,
}

fn fields(
    scan: &Scan<'_>,
    raw: &RawSource,
    preset: Option<&'static Provider>,
    scheme: Option<&(Scheme, SchemeSpec)>,
) -> Option<SourceFields> {
    let or_preset = |text: &Option<Text>, fact: Option<&'static FieldRef>| match text {
        Some(text) => field(scan, text).map(Some),
        None => Some(preset_field(fact)),
    };
    let event_type = or_preset(
        &raw.event_type,
        preset.and_then(|preset| preset.event_type.as_ref()),
    );
    let entity = or_preset(
        &raw.entity,
        preset.and_then(|preset| preset.entity.as_ref()),
    );
    let provider_id = provider_id(scan, raw, preset, scheme);
    let key = all(scan, raw.key.as_ref());
    if let (Some(key), Some((scheme, spec))) = (&key, scheme) {
        trust::warn_of_unsigned_key(scan, raw, key, scheme, spec);
    }
    let volatile = match &raw.volatile {
        Some(texts) => all(scan, Some(texts)),
        None => Some(volatile_of(preset)),
    };
    Some(SourceFields {
        event_type: event_type?,
        provider_id: provider_id?,
        key: key?,
        entity: entity?,
        volatile: volatile?,
    })
}

fn provider_id(
    scan: &Scan<'_>,
    raw: &RawSource,
    preset: Option<&'static Provider>,
    scheme: Option<&(Scheme, SchemeSpec)>,
) -> Option<Option<ProviderId>> {
    if let Some(text) = &raw.id {
        let field = field(scan, text)?;
        let signed = scheme.is_some_and(|(scheme, spec)| trust::covers(scheme, spec, &field));
        return Some(Some(ProviderId { field, signed }));
    }
    let fact = preset.and_then(|preset| preset.event_id.as_ref());
    Some(fact.and_then(|fact| {
        let signed = fact.signed;
        preset_field(Some(&fact.field)).map(|field| ProviderId { field, signed })
    }))
}

/// A field.
pub(super) fn field(scan: &Scan<'_>, text: &Text) -> Option<Field> {
    let why = match text.value.parse::<Field>() {
        Ok(field) => return Some(field),
        Err(BadField::Empty(_)) => "it has an empty part".to_owned(),
        Err(BadField::Deep(_)) => format!("it has more than {SEGMENTS_MAX} parts"),
        Err(BadField::Header(_)) => "what follows `header.` is not a header's name".to_owned(),
    };
    let wrong = format!("{} does not name a field: {why}", text.shown());
    let remedy = "write a path into the body, such as data.object.id, or header.NAME";
    scan.error("H0116", &text.at, wrong, remedy);
    None
}

fn all(scan: &Scan<'_>, texts: Option<&Texts>) -> Option<Vec<Field>> {
    let Some(texts) = texts else {
        return Some(Vec::new());
    };
    let fields: Vec<Option<Field>> = texts.found.iter().map(|text| field(scan, text)).collect();
    let fields: Option<Vec<Field>> = fields.into_iter().collect();
    fields.filter(|_| texts.complete)
}

/// A preset's field. The test `every_preset_is_a_source` shows that none is lost.
pub(super) fn preset_field(fact: Option<&FieldRef>) -> Option<Field> {
    fact?.as_str().parse().ok()
}

fn preset_fields(facts: &[FieldRef]) -> Vec<Field> {
    facts
        .iter()
        .filter_map(|fact| preset_field(Some(fact)))
        .collect()
}

fn volatile_of(preset: Option<&Provider>) -> Vec<Field> {
    let paths = preset.map_or(&[][..], |preset| &preset.volatile);
    paths.iter().filter_map(|path| path.parse().ok()).collect()
}

fn keep(scan: &Scan<'_>, raw: &RawSource, kind: Option<Kind>) -> Option<Keep> {
    let given = |text: &Option<Text>| text.as_ref().map(|text| span(scan, text));
    let (retry, payload, ledger, identity) = (
        given(&raw.retry_window),
        given(&raw.payload),
        given(&raw.ledger),
        given(&raw.identity),
    );
    // Nothing where it was given wrongly, or where it depends on a provider that nobody knows.
    let retry_window = retry.unwrap_or_else(|| match kind? {
        Kind::Preset(preset) => Some(Span::from_hours(preset.retry_window_hours.into())),
        Kind::Custom | Kind::Unverified => Some(RETRY_WINDOW_CUSTOM),
    });
    let payload = payload.unwrap_or(Some(PAYLOAD_DEFAULT));
    let identity = identity.unwrap_or_else(|| {
        let told = ledger.flatten().unwrap_or(Span::ZERO);
        let longest = retry_window.unwrap_or(Span::ZERO).max(payload?).max(told);
        Some(IDENTITY_DEFAULT.max(longest))
    })?;
    let ledger = ledger.unwrap_or(Some(identity))?;
    let at = raw.identity.as_ref().map_or(&raw.at, |text| &text.at);
    let too_early = |until: Span, why: String| {
        let wrong = format!("identities are forgotten after {identity}, {why}");
        let remedy = format!("raise retain.identity to {until} or more");
        scan.error("H0115", at, wrong, remedy);
    };
    if let Some(window) = retry_window.filter(|window| check_windows(identity, *window).is_err()) {
        let why = format!("but the provider may send an event again for {window}");
        too_early(window, why);
        return None;
    }
    if let Some(payload) = payload.filter(|payload| identity < *payload) {
        too_early(payload, format!("before their payloads ({payload})"));
        return None;
    }
    if identity < ledger {
        too_early(ledger, format!("before what happened to them ({ledger})"));
        return None;
    }
    let payload = payload?;
    if ledger < payload {
        let at = raw.ledger.as_ref().map_or(&raw.at, |text| &text.at);
        let wrong =
            format!("what happened is forgotten after {ledger}, before payloads ({payload})");
        let remedy = format!("raise retain.ledger to {payload} or more: payloads go first");
        scan.error("H0115", at, wrong, remedy);
        return None;
    }
    Some(Keep {
        payload,
        ledger,
        identity,
        retry_window: retry_window?,
    })
}
