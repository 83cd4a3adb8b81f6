//! `GET /settings`: what this node goes by, after the file, the environment and reloads. For admins; without secrets.

use axum::extract::State;
use axum::response::IntoResponse;
use http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

use super::Api;
use crate::config::{EffectConfig, Limits};
use crate::guard::guards::Served;
use crate::http::answer;
use crate::inbox::Source;

/// Settings as running.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Settings)]
struct SettingsBody {
    /// The program's.
    version: &'static str,
    /// Where consumers see their own endpoints.
    portal: String,
    limits: LimitsBody,
    sources: Vec<SourceSettings>,
    effects: Vec<EffectSettings>,
    guards: Vec<GuardSettings>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct LimitsBody {
    body_bytes: u64,
    connections: u64,
    inflight_bytes: u64,
    header_timeout_seconds: u64,
    body_timeout_seconds: u64,
    lease_seconds: u64,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct SourceSettings {
    name: String,
    provider: String,
    scheme: String,
    /// The fields of its business key; none where the provider's id is used.
    key: Vec<String>,
    entity: Option<String>,
    reconciles: bool,
    effects: Vec<String>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct EffectSettings {
    name: String,
    source: String,
    repeat: &'static str,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct GuardSettings {
    name: String,
    ttl_seconds: i64,
}

/// What this node goes by, without secrets.
#[utoipa::path(get, path = "/settings", operation_id = "getSettings", tag = "operations",
    responses((status = OK, description = "the settings", body = SettingsBody)))]
pub async fn show(State(api): State<Api>) -> impl IntoResponse {
    let sources = api.inbox.sources();
    let all = sources.all();
    let effects = all.iter().flat_map(|source| {
        let name = source.name().to_string();
        let effects = source.effects.iter();
        effects.map(move |effect| effect_body(&name, effect))
    });
    let body = SettingsBody {
        version: env!("CARGO_PKG_VERSION"),
        portal: api.portal.to_string(),
        limits: limits(&api.guards.parts().limits),
        effects: effects.collect(),
        sources: all.iter().map(|source| source_body(source)).collect(),
        guards: api
            .guards
            .all()
            .iter()
            .map(|served| guard_body(served))
            .collect(),
    };
    answer::json(StatusCode::OK, &body)
}

fn limits(limits: &Limits) -> LimitsBody {
    LimitsBody {
        body_bytes: limits.body_bytes_max as u64,
        connections: limits.connections_max as u64,
        inflight_bytes: limits.inflight_bytes_max as u64,
        header_timeout_seconds: limits.header_timeout.as_secs(),
        body_timeout_seconds: limits.body_timeout.as_secs(),
        lease_seconds: limits.lease.as_secs(),
    }
}

fn source_body(source: &Source) -> SourceSettings {
    let config = &source.config;
    SourceSettings {
        name: source.name().to_string(),
        provider: config.provider.to_string(),
        scheme: source.scheme_label.to_string(),
        key: config.key.iter().map(ToString::to_string).collect(),
        entity: config.entity.as_ref().map(ToString::to_string),
        reconciles: config.reconcile.is_some(),
        effects: source
            .effects
            .iter()
            .map(|effect| effect.name.to_string())
            .collect(),
    }
}

fn effect_body(source: &str, effect: &EffectConfig) -> EffectSettings {
    EffectSettings {
        name: effect.name.to_string(),
        source: source.to_owned(),
        repeat: effect.rule.repeat.word(),
    }
}

fn guard_body(served: &Served) -> GuardSettings {
    let config = served.config();
    GuardSettings {
        name: config.scope().to_string(),
        ttl_seconds: config.policy.ttl.secs_ceil(),
    }
}
