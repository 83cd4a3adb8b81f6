//! The latest requests that a source did not believe: in memory, bounded, never stored (A5).

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use hapax_ledger::time::Time;
use hapax_verify::Refusal;

use super::headers::RequestHeaders;

/// How many are remembered per source.
pub const REMEMBERED_MAX: usize = 50;
/// Bodies up to this size are remembered with them, so that the likely cause can be found; longer ones are not.
pub const BODY_BYTES_MAX: usize = 16 * 1024;

/// One refused request.
#[derive(Clone)]
pub struct RefusedRequest {
    /// When it came.
    pub at: Time,
    /// From where.
    pub remote: Option<Arc<str>>,
    /// What failed.
    pub refusal: Refusal,
    /// Its method.
    pub method: String,
    /// Its headers, kept for the explanation; never shown whole.
    pub headers: RequestHeaders,
    /// Its body, if it was small.
    pub body: Option<Bytes>,
    /// The path and query it came by.
    pub target: String,
}

/// A ring of refused requests.
#[derive(Default)]
pub struct Refused {
    ring: Mutex<VecDeque<RefusedRequest>>,
}

impl Refused {
    /// Remembers one, forgetting the oldest. A flood only costs what the ring already holds: while it is being read, or
    /// another thread is writing, the request is counted and not remembered.
    pub fn remember(&self, make: impl FnOnce() -> RefusedRequest) {
        let Ok(mut ring) = self.ring.try_lock() else {
            return;
        };
        let request = make();
        if ring.len() == REMEMBERED_MAX {
            ring.pop_front();
        }
        ring.push_back(request);
    }

    /// What is remembered, newest first.
    pub fn latest(&self) -> Vec<RefusedRequest> {
        self.ring
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .iter()
            .rev()
            .cloned()
            .collect()
    }
}
