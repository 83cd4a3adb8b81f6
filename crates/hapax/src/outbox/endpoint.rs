//! An endpoint, ready to be sent to: everything read, opened and checked that an attempt needs.

use std::sync::Arc;

use hapax_ledger::effect::SkipReason;
use hapax_ledger::retry::Schedule;
use hapax_store::nouns::{App, Endpoint, Standing, lane_shard};
use hapax_store::vault::Vault;
use hapax_verify::Secret;

use super::extra::{self, AppExtra, EndpointExtra};
use super::headers::{self, BadHeader};
use super::sealed::{BadSealed, Opened};
use crate::dispatch::connect::Reach;
use crate::dispatch::directory::Found;
use crate::dispatch::gate::{ConsumerUrl, Refused, Rules};
use crate::dispatch::lane::Caps;
use crate::dispatch::signature::{BadSecret, DeliverySigner};
use crate::dispatch::target::{EndpointTarget, Retries, SchedulesByType, Target, Way};

/// What an endpoint needs beside itself.
pub(super) struct Surroundings<'a> {
    pub(super) app: &'a App,
    /// Nothing if there is no key.
    pub(super) vault: Option<&'a Vault>,
    pub(super) rules: &'a Arc<Rules>,
    pub(super) by_type: &'a Arc<SchedulesByType>,
    pub(super) retry: &'a Arc<Schedule>,
    pub(super) shards: u16,
}

/// Why an endpoint cannot be sent to although it should be.
#[derive(Debug, thiserror::Error)]
enum Unready {
    #[error("no vault key is configured")]
    NoVault,
    #[error(transparent)]
    Sealed(#[from] BadSealed),
    #[error(transparent)]
    Secret(#[from] BadSecret),
    #[error(transparent)]
    Header(#[from] BadHeader),
    #[error(transparent)]
    Url(#[from] Refused),
}

/// Where an endpoint leads.
pub(super) fn resolve(endpoint: &Endpoint, around: &Surroundings<'_>) -> Found {
    match endpoint.standing {
        Standing::Enabled => {}
        Standing::Disabled | Standing::Gone | Standing::Failed => {
            return Found::Closed(SkipReason::EndpointDisabled);
        }
    }
    match target(endpoint, around) {
        Ok(target) => Found::Target(Arc::new(target)),
        Err(error) => {
            tracing::error!(%error, endpoint = %endpoint.id, "an endpoint cannot be sent to; its deliveries wait");
            Found::Unready
        }
    }
}

fn target(endpoint: &Endpoint, around: &Surroundings<'_>) -> Result<Target, Unready> {
    let extra: EndpointExtra = extra::read(&endpoint.extra);
    let of_app: AppExtra = extra::read(&around.app.extra);
    let vault = around.vault.ok_or(Unready::NoVault)?;
    let opened = Opened::open(vault, endpoint.id, &endpoint.sealed)?;
    let signer = DeliverySigner::new(extra.scheme(), extra.names(), &opened.live())?;
    let keys = opened.secrets.iter().map(|secret| secret.key.as_str());
    let values = opened.headers.values().map(String::as_str);
    Ok(Target {
        caps: Caps {
            concurrency: extra.concurrency(),
            rate: lower(endpoint.throttle_rate, around.app.throttle_rate),
        },
        shard: lane_shard(&endpoint.id.to_string(), around.shards),
        timeout: extra.timeout(),
        secrets: keys.chain(values).map(Secret::from).collect(),
        way: Way::Endpoint(Box::new(EndpointTarget {
            // Not judged here: the rules of today are asked when it is sent, and what they refuse is seen at the attempt.
            url: ConsumerUrl::parse(&endpoint.url)?,
            reach: Reach::Consumer(around.rules.clone()),
            headers: headers::check(&opened.headers)?,
            signer,
            payload: of_app.payload(),
            retries: Retries {
                own: extra.retry(),
                by_type: around.by_type.clone(),
                otherwise: of_app.retry().unwrap_or_else(|| around.retry.clone()),
            },
        })),
    })
}

/// The lower of an endpoint's own rate and its application's, which holds for each of its endpoints.
fn lower(own: Option<u32>, of_app: Option<u32>) -> Option<u32> {
    match (own, of_app) {
        (Some(own), Some(of_app)) => Some(own.min(of_app)),
        (one, other) => one.or(other),
    }
}
