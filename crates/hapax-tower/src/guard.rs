//! A guard: the rules by which requests with a key are treated.

use std::path::PathBuf;
use std::sync::Arc;

use hapax_ledger::guard::{GuardPolicy, OnUnknown, Preset, TtlTooShort, check_ttl};
use hapax_ledger::time::Span;
use hapax_store::vault::Vault;
use http::Method;
use http::header::HeaderName;
use http::request::Parts;

use crate::asked;
use crate::entropy;
use crate::headers::{KEPT_BY_DEFAULT, may_be_kept};
use crate::observe::{Observer, Verdict};
use crate::principal::Principal;

/// How long a run may go without a heartbeat. Long enough for a store that is slow for a while, short enough for a caller to
/// hear soon that a run was lost.
pub const LEASE_DEFAULT: Span = Span::from_secs(30);
/// The shortest lease: heartbeats come three times as often.
pub const LEASE_MIN: Span = Span::from_millis(30);
/// How long an expired key is answered as expired before it may run again.
pub const GRACE_DEFAULT: Span = Span::from_hours(24);
/// The longest wait that `Prefer: wait` gets; most callers and proxies give up soon after.
pub const WAIT_MAX_DEFAULT: Span = Span::from_secs(30);
/// Bytes of a request's body in memory; what is longer waits on disk.
pub const REQUEST_MEMORY_BYTES_MAX_DEFAULT: u64 = 256 * 1024;
/// Bytes of a request's body at all.
pub const REQUEST_BYTES_MAX_DEFAULT: u64 = 16 * 1024 * 1024;
/// Bytes of an answer's body that is kept.
pub const ANSWER_BYTES_MAX_DEFAULT: u64 = 1024 * 1024;
/// Bytes of answers that were replayed lately, and are given out from memory.
pub const RECENT_BYTES_MAX_DEFAULT: u64 = 16 * 1024 * 1024;
/// What may be configured as the most bytes of a stored answer: it is one value in a row.
const ANSWER_BYTES_MAX_MAX: u64 = 64 * 1024 * 1024;

/// Names the route of a request: what a key is unique in, with the method.
pub(crate) type Route = Arc<dyn Fn(&Parts) -> Arc<str> + Send + Sync>;

/// Why a guard cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GuardProblem {
    /// It would forget before callers stop retrying.
    #[error(transparent)]
    Ttl(#[from] TtlTooShort),
    /// A lease that no heartbeat could keep.
    #[error("a lease of {0} is too short for its heartbeats: take {LEASE_MIN} or more")]
    Lease(Span),
    /// It guards nothing.
    #[error("a guard needs at least one method")]
    NoMethods,
    /// A safe method needs no key.
    #[error("{0} needs no key: it changes nothing, so repeating it is harmless")]
    Method(Method),
    /// The header must not be stored.
    #[error("the header `{0}` is never stored: take it out of the list")]
    Header(HeaderName),
    /// The status says something else.
    #[error("{0} is not a status for a reused key: take one from 400 to 499")]
    MismatchStatus(u16),
    /// The bytes in memory are more than the bytes at all, or an answer larger than a row holds.
    #[error("the limit of {0} bytes for {1} is out of range")]
    Limit(u64, &'static str),
    /// Key and work cannot commit together in a layer around the service.
    #[error(
        "`atomic` is for handlers that join the key's transaction: take an `AtomicLayer`, or `hold` or `keyed`"
    )]
    Atomic,
}

/// A guard. Made by [`Guard::new`], adjusted by its methods, checked when a layer is made of it.
#[derive(Clone)]
pub struct Guard {
    pub(crate) name: Arc<str>,
    pub(crate) principal: Arc<dyn Principal>,
    pub(crate) policy: GuardPolicy,
    pub(crate) short_ttl: bool,
    pub(crate) methods: Vec<Method>,
    pub(crate) required: bool,
    pub(crate) route: Route,
    pub(crate) lease: Span,
    pub(crate) grace: Span,
    pub(crate) wait_max: Span,
    pub(crate) request_memory_bytes_max: u64,
    pub(crate) request_bytes_max: u64,
    pub(crate) spool_folder: PathBuf,
    pub(crate) answer_bytes_max: u64,
    pub(crate) recent_bytes_max: u64,
    pub(crate) headers: Vec<HeaderName>,
    pub(crate) publish_expiry: bool,
    pub(crate) vault: Option<Arc<Vault>>,
    pub(crate) observer: Option<Arc<dyn Observer>>,
    pub(crate) node: Arc<str>,
}

impl Guard {
    /// A guard of this name, with the default policy. Its name is part of every key, so that guards never share one; a guard that
    /// gets a new name has forgotten its keys. `principal` tells its callers apart.
    pub fn new(name: impl Into<Arc<str>>, principal: impl Principal) -> Guard {
        Guard {
            name: name.into(),
            principal: Arc::new(principal),
            policy: GuardPolicy::default(),
            short_ttl: false,
            methods: vec![Method::POST, Method::PATCH],
            required: false,
            route: Arc::new(|head| Arc::from(asked::uri(head).path())),
            lease: LEASE_DEFAULT,
            grace: GRACE_DEFAULT,
            wait_max: WAIT_MAX_DEFAULT,
            request_memory_bytes_max: REQUEST_MEMORY_BYTES_MAX_DEFAULT,
            request_bytes_max: REQUEST_BYTES_MAX_DEFAULT,
            spool_folder: std::env::temp_dir(),
            answer_bytes_max: ANSWER_BYTES_MAX_DEFAULT,
            recent_bytes_max: RECENT_BYTES_MAX_DEFAULT,
            headers: KEPT_BY_DEFAULT.to_vec(),
            publish_expiry: false,
            vault: None,
            observer: None,
            node: entropy::node_name(),
        }
    }

    /// The rules of a preset; what is set after it overrides it. `ietf` also publishes the key's expiry with the first answer.
    pub fn preset(mut self, preset: Preset) -> Guard {
        self.policy = GuardPolicy::of_preset(preset);
        self.publish_expiry = preset == Preset::Ietf;
        self
    }

    /// What is kept of answers, what frees a key, and what is done about unknown outcomes.
    pub fn policy(mut self, policy: GuardPolicy) -> Guard {
        self.policy = policy;
        self
    }

    /// How long answers are kept: 24 h at least, since callers commonly retry for a day.
    pub fn ttl(mut self, ttl: Span) -> Guard {
        self.policy.ttl = ttl;
        self
    }

    /// Takes a time to live below 24 h. Retries that come later run again.
    pub fn short_ttl(mut self, ttl: Span) -> Guard {
        self.policy.ttl = ttl;
        self.short_ttl = true;
        self
    }

    /// Which methods are guarded; POST and PATCH unless this says otherwise. All others pass, with or without a key.
    pub fn methods(mut self, methods: impl IntoIterator<Item = Method>) -> Guard {
        self.methods = methods.into_iter().collect();
        self
    }

    /// Requests of a guarded method without a key are refused instead of passed.
    pub fn required(mut self) -> Guard {
        self.required = true;
        self
    }

    /// How requests are sorted into routes: with method and caller, what a key is unique in. The path unless this says
    /// otherwise; a template (`/orders/{id}/refunds`) makes one key on two of its paths a reused key.
    ///
    /// axum takes the prefix off the path inside of `Router::nest`. With the feature `axum` the path is the one that the caller wrote, also for
    /// a layer in there; without it two nested routers whose rest of the path is the same share their keys, and need guards of different
    /// names. A function that is given here finds the caller's path in axum's `OriginalUri`.
    pub fn route(mut self, route: impl Fn(&Parts) -> Arc<str> + Send + Sync + 'static) -> Guard {
        self.route = Arc::new(route);
        self
    }

    /// How long a run lives without a heartbeat. A run may take as long as it wants; this is how long a dead one is waited for.
    pub fn lease(mut self, lease: Span) -> Guard {
        self.lease = lease;
        self
    }

    /// How long an expired key is refused as expired before it may run again.
    pub fn grace(mut self, grace: Span) -> Guard {
        self.grace = grace;
        self
    }

    /// The longest time that `Prefer: wait=N` gets.
    pub fn wait_max(mut self, wait_max: Span) -> Guard {
        self.wait_max = wait_max;
        self
    }

    /// Bytes of a request's body that are held in memory; what is longer waits in a file without a name. And bytes of a body at
    /// all: what is longer is refused with 413.
    pub fn request_bytes_max(mut self, memory: u64, all: u64) -> Guard {
        self.request_memory_bytes_max = memory;
        self.request_bytes_max = all;
        self
    }

    /// Where long requests wait; the system's folder for temporary files unless this says otherwise. They are not encrypted there,
    /// and gone with the process.
    pub fn spool_folder(mut self, folder: impl Into<PathBuf>) -> Guard {
        self.spool_folder = folder.into();
        self
    }

    /// Bytes of an answer's body that are kept. A longer one reaches the first caller as a stream, and retries hear that it
    /// was not kept.
    pub fn answer_bytes_max(mut self, bytes_max: u64) -> Guard {
        self.answer_bytes_max = bytes_max;
        self
    }

    /// Bytes of answers that were replayed lately, and are given out from memory for a minute at most; 0 asks the store every time.
    pub fn recent_bytes_max(mut self, bytes_max: u64) -> Guard {
        self.recent_bytes_max = bytes_max;
        self
    }

    /// Which headers of an answer are kept: these, in place of [`KEPT_BY_DEFAULT`].
    pub fn headers(mut self, headers: impl IntoIterator<Item = HeaderName>) -> Guard {
        self.headers = headers.into_iter().collect();
        self
    }

    /// Should the first answer say when its key expires? Replays always do.
    pub fn publish_expiry(mut self, publish: bool) -> Guard {
        self.publish_expiry = publish;
        self
    }

    /// Seals stored answers. Answers that were stored before there was a vault are still read.
    pub fn vault(mut self, vault: Arc<Vault>) -> Guard {
        self.vault = Some(vault);
        self
    }

    /// Hears the verdict on every request.
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Guard {
        self.observer = Some(observer);
        self
    }

    /// The name of this process, as operators see who ran what. No other process may have it at the same time: by it a claim is known
    /// again whose commit was in doubt.
    pub fn node(mut self, node: impl Into<Arc<str>>) -> Guard {
        self.node = node.into();
        self
    }

    /// Tells the observer, if there is one.
    pub(crate) fn tell(&self, verdict: Verdict) {
        if let Some(observer) = &self.observer {
            observer.verdict(&self.name, verdict);
        }
    }

    /// Can this guard keep its promises around a service whose work it knows nothing of?
    pub(crate) fn check(self) -> Result<Guard, GuardProblem> {
        if self.policy.on_unknown == OnUnknown::Atomic {
            return Err(GuardProblem::Atomic);
        }
        self.check_rest()
    }

    /// Can this guard keep its promises where key and work commit together? There are no unknown outcomes then.
    pub(crate) fn check_atomic(mut self) -> Result<Guard, GuardProblem> {
        self.policy.on_unknown = OnUnknown::Atomic;
        self.check_rest()
    }

    fn check_rest(self) -> Result<Guard, GuardProblem> {
        if !self.short_ttl {
            check_ttl(self.policy.ttl)?;
        }
        if !(400..=499).contains(&self.policy.mismatch_status) {
            return Err(GuardProblem::MismatchStatus(self.policy.mismatch_status));
        }
        if self.lease < LEASE_MIN {
            return Err(GuardProblem::Lease(self.lease));
        }
        if self.methods.is_empty() {
            return Err(GuardProblem::NoMethods);
        }
        if let Some(method) = self.methods.iter().find(|method| method.is_safe()) {
            return Err(GuardProblem::Method(method.clone()));
        }
        if let Some(name) = self.headers.iter().find(|name| !may_be_kept(name)) {
            return Err(GuardProblem::Header(name.clone()));
        }
        if self.request_memory_bytes_max > self.request_bytes_max {
            let bytes = self.request_memory_bytes_max;
            return Err(GuardProblem::Limit(bytes, "requests in memory"));
        }
        if self.answer_bytes_max > ANSWER_BYTES_MAX_MAX {
            return Err(GuardProblem::Limit(self.answer_bytes_max, "stored answers"));
        }
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::principal::SharedScope;
    use http::header::{ETAG, SET_COOKIE};

    fn problem(change: impl FnOnce(Guard) -> Guard) -> Option<GuardProblem> {
        let guard = change(Guard::new("g", SharedScope));
        guard.check().err()
    }

    #[test]
    fn a_guard_that_could_not_keep_its_promises_is_refused() {
        assert_eq!(problem(|guard| guard), None);
        let hour = Span::from_hours(1);
        assert!(matches!(
            problem(|guard| guard.ttl(hour)),
            Some(GuardProblem::Ttl(_))
        ));
        assert_eq!(problem(|guard| guard.short_ttl(hour)), None);
        let lease = Span::from_millis(1);
        assert_eq!(
            problem(|guard| guard.lease(lease)),
            Some(GuardProblem::Lease(lease))
        );
        assert_eq!(
            problem(|guard| guard.methods([])),
            Some(GuardProblem::NoMethods)
        );
        assert_eq!(
            problem(|guard| guard.methods([Method::POST, Method::GET])),
            Some(GuardProblem::Method(Method::GET))
        );
        assert_eq!(
            problem(|guard| guard.headers([ETAG, SET_COOKIE])),
            Some(GuardProblem::Header(SET_COOKIE))
        );
        let policy = |on_unknown, mismatch_status| GuardPolicy {
            on_unknown,
            mismatch_status,
            ..GuardPolicy::default()
        };
        assert_eq!(
            problem(|guard| guard.policy(policy(OnUnknown::Atomic, 409))),
            Some(GuardProblem::Atomic)
        );
        let atomic = Guard::new("g", SharedScope).check_atomic();
        assert!(atomic.is_ok_and(|guard| guard.policy.on_unknown == OnUnknown::Atomic));
        assert_eq!(
            problem(|guard| guard.policy(policy(OnUnknown::Hold, 200))),
            Some(GuardProblem::MismatchStatus(200))
        );
        assert!(problem(|guard| guard.request_bytes_max(2, 1)).is_some());
        assert!(problem(|guard| guard.answer_bytes_max(u64::MAX)).is_some());
    }
}
