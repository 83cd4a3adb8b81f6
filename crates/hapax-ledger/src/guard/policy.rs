//! A guarded route's policy: what to keep of an answer, what frees the key, and what to do when nobody knows.

use crate::event::words;
use crate::time::Span;

/// How long an answer is kept unless the route says otherwise: over a weekend.
pub const TTL_DEFAULT: Span = Span::from_hours(72);
/// The shortest time that is taken without being forced: callers commonly retry for a day.
pub const TTL_MIN: Span = Span::from_hours(24);

words!(
    /// What a route does when the outcome of a run is unknown.
    OnUnknown {
        /// Nothing runs until a person or a probe decides.
        Hold = 0, "hold";
        /// It runs again: the upstream gets the same key and dedupes.
        Keyed = 1, "keyed";
        /// It runs again: key and work commit together, so an unfinished run left nothing.
        Atomic = 2, "atomic";
    }
);

words!(
    /// A named set of rules.
    Preset {
        /// As the IETF draft has it.
        Ietf = 0, "ietf";
        /// As Stripe does it.
        Stripe = 1, "stripe";
    }
);

/// The rules of one guarded route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuardPolicy {
    /// For unknown outcomes.
    pub on_unknown: OnUnknown,
    /// How long an answer is kept.
    pub ttl: Span,
    /// The status of a key that is reused for another request.
    pub mismatch_status: u16,
    /// Is a 5xx an answer to be stored? If not, it is an unknown outcome.
    pub store_5xx: bool,
    /// Answers that prove that the work did not run.
    pub not_executed: Vec<u16>,
}

impl Default for GuardPolicy {
    fn default() -> GuardPolicy {
        GuardPolicy {
            on_unknown: OnUnknown::Hold,
            ttl: TTL_DEFAULT,
            mismatch_status: 409,
            store_5xx: false,
            not_executed: vec![401, 403, 405, 413, 415, 429],
        }
    }
}

impl GuardPolicy {
    /// The rules of a preset; a route's own lines override them.
    pub fn of_preset(preset: Preset) -> GuardPolicy {
        match preset {
            Preset::Ietf => GuardPolicy {
                mismatch_status: 422,
                ..GuardPolicy::default()
            },
            // Stripe keeps any answer of work that began, errors included, for a day; a concurrent conflict (409)
            // says that this request did not begin.
            Preset::Stripe => GuardPolicy {
                mismatch_status: 400,
                store_5xx: true,
                ttl: TTL_MIN,
                not_executed: vec![401, 403, 405, 409, 413, 415, 429],
                ..GuardPolicy::default()
            },
        }
    }
}

/// The time to live is shorter than callers retry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a guard that forgets after {0} lets retries run twice: keep answers for at least {TTL_MIN}, or force it"
)]
pub struct TtlTooShort(Span);

/// Refuses a time to live below [`TTL_MIN`].
pub fn check_ttl(ttl: Span) -> Result<Span, TtlTooShort> {
    if ttl < TTL_MIN {
        Err(TtlTooShort(ttl))
    } else {
        Ok(ttl)
    }
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// No byte reached the upstream.
    NotReached,
    /// The upstream answered.
    Answered {
        /// The status code.
        status: u16,
        /// Whether its body could be kept.
        body: Body,
    },
    /// Bytes left, and no whole answer came.
    NoAnswer,
}

/// Can an answer's body be replayed?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// Yes.
    Kept,
    /// No: it was too large, or a stream.
    NotKept,
}

/// What is kept of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settlement {
    /// Its answer: every retry gets it.
    Store(Body),
    /// Nothing: it provably did not run, and the key is free.
    Release,
    /// That nobody knows.
    Unknown,
}

/// What to keep of a run, by how it ended. Released only on proof that nothing ran (H1).
pub fn settlement(ending: Ending, policy: &GuardPolicy) -> Settlement {
    match ending {
        Ending::NotReached => Settlement::Release,
        Ending::NoAnswer => Settlement::Unknown,
        Ending::Answered { status, .. } if policy.not_executed.contains(&status) => {
            Settlement::Release
        }
        Ending::Answered {
            status: 200..=499,
            body,
        } => Settlement::Store(body),
        Ending::Answered {
            status: 500..=599,
            body,
        } if policy.store_5xx => Settlement::Store(body),
        Ending::Answered { .. } => Settlement::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_follows_from_how_it_ended() {
        let answered = |status| Ending::Answered {
            status,
            body: Body::Kept,
        };
        let kept = Settlement::Store(Body::Kept);
        let table = [
            (Ending::NotReached, Settlement::Release, Settlement::Release),
            (Ending::NoAnswer, Settlement::Unknown, Settlement::Unknown),
            (answered(200), kept, kept),
            (answered(302), kept, kept),
            (answered(400), kept, kept),
            (answered(404), kept, kept),
            (answered(409), kept, Settlement::Release),
            (answered(401), Settlement::Release, Settlement::Release),
            (answered(429), Settlement::Release, Settlement::Release),
            (answered(500), Settlement::Unknown, kept),
            (answered(503), Settlement::Unknown, kept),
            (answered(100), Settlement::Unknown, Settlement::Unknown),
        ];
        let (ietf, stripe) = (
            GuardPolicy::of_preset(Preset::Ietf),
            GuardPolicy::of_preset(Preset::Stripe),
        );
        for (ending, by_ietf, by_stripe) in table {
            assert_eq!(settlement(ending, &ietf), by_ietf, "{ending:?}");
            assert_eq!(settlement(ending, &stripe), by_stripe, "{ending:?}");
        }
        let large = Ending::Answered {
            status: 200,
            body: Body::NotKept,
        };
        assert_eq!(settlement(large, &ietf), Settlement::Store(Body::NotKept));
    }

    #[test]
    fn presets_and_times_to_live() {
        assert_eq!(GuardPolicy::default().mismatch_status, 409);
        assert_eq!(GuardPolicy::of_preset(Preset::Ietf).mismatch_status, 422);
        assert_eq!(GuardPolicy::of_preset(Preset::Stripe).mismatch_status, 400);
        assert!(check_ttl(Span::from_hours(23)).is_err());
        assert_eq!(check_ttl(Span::from_hours(24)), Ok(TTL_MIN));
    }
}
