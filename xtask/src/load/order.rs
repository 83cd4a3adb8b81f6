//! What passes between a bench and the generator's process, as lines of JSON.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

/// What the generator shall do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    /// The server; must be on the loopback interface.
    pub(crate) address: SocketAddr,
    /// The path of every request.
    pub(crate) path: String,
    /// What the requests look like.
    pub(crate) shape: Shape,
    /// The secret that signs them, as bytes of text.
    pub(crate) secret: String,
    /// Length of every body.
    pub(crate) body_bytes: usize,
    /// Connections, shared evenly among the threads.
    pub(crate) connections: u32,
    /// Threads that drive them.
    pub(crate) threads: u32,
    /// Time before the first round, not counted.
    pub(crate) warmup_ms: u64,
    /// Length of a round.
    pub(crate) round_ms: u64,
    /// Rounds to count.
    pub(crate) rounds: u32,
}

/// The kinds of requests that can be ordered. A new one: a variant here, a file beside `github.rs`, an arm in
/// `requests.rs`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Shape {
    /// The same unsigned bytes every time: what the wire alone costs.
    Plain,
    /// A new id per request, signed as GitHub does.
    Github,
    /// A new id per request, signed as Stripe does.
    Stripe,
    /// The same, but the same few events again and again.
    StripeAgain,
    /// Unsigned, with a new `Idempotency-Key` per request.
    Keyed,
    /// The same, but a few keys again and again.
    KeyedAgain,
    /// A message with a new `eventId` per request; the secret is a token.
    Message,
}

/// What the generator reports.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Signal {
    /// The warm-up is over: the first round starts now.
    Warm,
    /// A round is over, and the next one started.
    Round(Round),
}

/// One counted round.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Round {
    /// How long it really took.
    pub(crate) seconds: f64,
    /// Answers by status code.
    pub(crate) statuses: BTreeMap<u16, u64>,
    /// Exchanges without an answer, by what went wrong.
    pub(crate) broken: BTreeMap<String, u64>,
    /// Half of the answers came within this time.
    pub(crate) p50_us: u64,
    /// All but one percent of the answers came within this time.
    pub(crate) p99_us: u64,
    /// The slowest answer.
    pub(crate) max_us: u64,
}

impl Round {
    /// All answers, whatever their status.
    pub(crate) fn answers(&self) -> u64 {
        self.statuses.values().sum()
    }

    /// Answers per second.
    pub(crate) fn rate(&self) -> f64 {
        if self.seconds > 0.0 {
            self.answers() as f64 / self.seconds
        } else {
            0.0
        }
    }
}
