//! An endpoint as users see it, and as their requests describe it.

use std::collections::BTreeMap;
use std::sync::Arc;

use hapax_ledger::id::{AppId, EndpointId};
use hapax_ledger::time::Time;
use hapax_store::nouns::{Endpoint, Standing};
use hapax_store::vault::Vault;
use hapax_verify::Secret;
use serde::Serialize;
use utoipa::ToSchema;

use super::words::{self, DESCRIPTION_CHARS_MAX};
use crate::clock::text as time_text;
use crate::dispatch::gate::Rules;
use crate::dispatch::signature::{DeliverySigner, LiveSecret, Names, Scheme};
use crate::entropy;
use crate::http::api::body::Fields;
use crate::http::api::describe::{value, value_outbox};
use crate::outbox::extra::{self, BadExtra, EndpointExtra, NamesWord, SchemeWord};
use crate::outbox::headers;
use crate::outbox::operational::{OPERATIONAL_APP, OPERATIONAL_TYPES};
use crate::outbox::sealed::{Opened, fresh_key};

/// How secrets that both sides have begin.
const SHARED_PREFIX: &str = "whsec_";

/// An endpoint as users see it.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Endpoint)]
pub(super) struct EndpointBody {
    #[schema(schema_with = value_outbox::endpoint_id)]
    id: String,
    uid: Option<String>,
    url: String,
    description: String,
    disabled: bool,
    /// `enabled`, `disabled` (by its owner), `gone` (it said so) or `failed` (for too long).
    #[schema(schema_with = value_outbox::standing)]
    standing: &'static str,
    /// Since when nothing but failures has come back.
    #[schema(schema_with = value::time_or_null)]
    failing_since: Option<String>,
    event_types: Option<Vec<String>>,
    /// The same, as older clients call it.
    filter_types: Option<Vec<String>>,
    channels: Option<Vec<String>>,
    throttle_rate: Option<u32>,
    /// The same, as older clients call it.
    rate_limit: Option<u32>,
    metadata: BTreeMap<String, String>,
    /// Older clients want one.
    version: u32,
    concurrency: u32,
    timeout_seconds: u64,
    retry_schedule: Option<Vec<u32>>,
    #[schema(schema_with = value_outbox::signature_scheme)]
    signature_scheme: SchemeWord,
    #[schema(schema_with = value_outbox::signature_names)]
    signature_names: NamesWord,
    signature_header: Option<String>,
    #[schema(schema_with = value::time)]
    created_at: String,
    #[schema(schema_with = value::time)]
    updated_at: String,
}

/// None is all, and said as nothing.
pub(super) fn listed(all: &[String]) -> Option<Vec<String>> {
    (!all.is_empty()).then(|| all.to_vec())
}

pub(super) fn to_body(endpoint: &Endpoint) -> EndpointBody {
    let extra: EndpointExtra = extra::read(&endpoint.extra);
    EndpointBody {
        id: endpoint.id.to_string(),
        uid: endpoint.uid.as_deref().map(str::to_owned),
        url: endpoint.url.clone(),
        description: endpoint.description.clone(),
        disabled: endpoint.standing != Standing::Enabled,
        standing: endpoint.standing.word(),
        failing_since: endpoint.failing_since.map(time_text),
        event_types: listed(&endpoint.event_types),
        filter_types: listed(&endpoint.event_types),
        channels: listed(&endpoint.channels),
        throttle_rate: endpoint.throttle_rate,
        rate_limit: endpoint.throttle_rate,
        metadata: endpoint.metadata.clone(),
        version: 1,
        concurrency: extra.concurrency(),
        timeout_seconds: extra.timeout().as_secs(),
        retry_schedule: extra.retry_schedule.clone(),
        signature_scheme: extra.signature_scheme.unwrap_or(SchemeWord::V1),
        signature_names: extra.signature_names.unwrap_or(NamesWord::Both),
        signature_header: extra.signature_header,
        created_at: time_text(endpoint.created_at),
        updated_at: time_text(endpoint.updated_at),
    }
}

/// One that nothing is known of.
pub(super) fn blank(id: EndpointId, app: AppId, at: Time) -> Endpoint {
    Endpoint {
        id,
        app,
        uid: None,
        url: String::new(),
        description: String::new(),
        event_types: Vec::new(),
        channels: Vec::new(),
        throttle_rate: None,
        metadata: BTreeMap::new(),
        sealed: bytes::Bytes::new(),
        extra: String::new(),
        standing: Standing::Enabled,
        failing_since: None,
        disabled_from: None,
        created_at: at,
        updated_at: at,
        deleted_at: None,
        revision: 0,
    }
}

/// Puts what the fields say into an endpoint; what they do not mention stays. Says how it signs from now on.
pub(super) fn fill(fields: &mut Fields, endpoint: &mut Endpoint, rules: &Rules) -> EndpointExtra {
    fields.optional_number("version", 0..=u64::from(u32::MAX));
    let had_url = !endpoint.url.is_empty();
    if fields.has("url") || !had_url {
        endpoint.url = fields.text("url");
        if let (false, Err(refused)) = (endpoint.url.is_empty(), rules.url(&endpoint.url)) {
            fields.refuse("url", &refused.to_string());
        }
    }
    fields.set("description", &mut endpoint.description, |fields, name| {
        fields.any_text(name, DESCRIPTION_CHARS_MAX)
    });
    fields.set("uid", &mut endpoint.uid, |fields, name| {
        words::uid(fields, name, EndpointId::PREFIX)
    });
    // The older names first: the newer ones count.
    fields.set("filterTypes", &mut endpoint.event_types, words::event_types);
    fields.set("eventTypes", &mut endpoint.event_types, words::event_types);
    let is_told = |wanted: &String| OPERATIONAL_TYPES.contains(&wanted.as_str());
    if endpoint.app == OPERATIONAL_APP && !endpoint.event_types.iter().all(is_told) {
        let told = OPERATIONAL_TYPES.join(", ");
        fields.refuse("eventTypes", &format!("operators are told of {told}"));
    }
    fields.set("channels", &mut endpoint.channels, words::channels);
    fields.set("rateLimit", &mut endpoint.throttle_rate, words::rate);
    fields.set("throttleRate", &mut endpoint.throttle_rate, words::rate);
    fields.set("metadata", &mut endpoint.metadata, words::metadata);
    if fields.has("disabled") {
        stand(endpoint, fields.flag("disabled"));
    }
    let mut extra: EndpointExtra = extra::read(&endpoint.extra);
    fill_extra(fields, &mut extra);
    endpoint.extra = extra::write(&extra);
    extra
}

/// Enables or disables an endpoint. One that is disabled already stays as it is, with its reason.
fn stand(endpoint: &mut Endpoint, disabled: bool) {
    match (endpoint.standing, disabled) {
        (Standing::Enabled, true) => endpoint.standing = Standing::Disabled,
        (Standing::Disabled | Standing::Gone | Standing::Failed, false) => {
            endpoint.standing = Standing::Enabled;
            endpoint.failing_since = None;
            endpoint.disabled_from = None;
        }
        (Standing::Enabled, false)
        | (Standing::Disabled | Standing::Gone | Standing::Failed, true) => {}
    }
}

fn fill_extra(fields: &mut Fields, extra: &mut EndpointExtra) {
    let number = |fields: &mut Fields, name: &str| {
        let number = fields.optional_number(name, 1..=u64::from(u32::MAX))?;
        Some(u32::try_from(number).ok())
    };
    fields.set("concurrency", &mut extra.concurrency, number);
    fields.set("timeoutSeconds", &mut extra.timeout_seconds, number);
    fields.set("retrySchedule", &mut extra.retry_schedule, words::waits);
    fields.set(
        "signatureScheme",
        &mut extra.signature_scheme,
        |fields, name| {
            let found = fields.word(name, "v1, ed25519, stripe", SchemeWord::from_word);
            found.map(Some)
        },
    );
    fields.set(
        "signatureNames",
        &mut extra.signature_names,
        |fields, name| {
            let found = fields.word(name, "both, webhook, svix", NamesWord::from_word);
            found.map(Some)
        },
    );
    fields.set(
        "signatureHeader",
        &mut extra.signature_header,
        |fields, name| fields.optional_text(name).map(Some),
    );
    if let Err(bad) = extra.check() {
        let name = match &bad {
            BadExtra::Range { field, .. } => field,
            BadExtra::Schedule(_) => "retrySchedule",
            BadExtra::Header => "signatureHeader",
        };
        fields.refuse(name, &bad.to_string());
    }
}

/// A secret that somebody brings, as it is kept; or a new one.
pub(super) fn secret(fields: &mut Fields, name: &str, scheme: Scheme) -> String {
    let Some(given) = fields.optional_text(name) else {
        return fresh_key(&scheme, entropy::bytes());
    };
    let key = match (&scheme, given.starts_with("wh")) {
        (Scheme::Hmac | Scheme::Stripe(_), false) => format!("{SHARED_PREFIX}{given}"),
        _ => given,
    };
    let live = LiveSecret {
        key: Secret::from(key.as_str()),
        expires_at: None,
    };
    if let Err(bad) = DeliverySigner::new(scheme, Names::Both, &[live]) {
        fields.refuse(name, &bad.to_string());
    }
    key
}

/// Headers that go along.
pub(super) fn headers(fields: &mut Fields, name: &str) -> BTreeMap<String, String> {
    let given = fields.map(name).unwrap_or_default();
    if let Err(bad) = headers::check(&given) {
        fields.refuse(name, &bad.to_string());
    }
    given
}

/// Seals the secret part of an endpoint.
pub(super) fn seal(opened: &Opened, vault: &Arc<Vault>, endpoint: &mut Endpoint) {
    endpoint.sealed = opened.seal(vault, endpoint.id, entropy::bytes());
}
