//! What alerts there are, and what each asks of whoever reads it.

/// What somebody should look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A source delivers far more duplicates than it usually does.
    DuplicateSpike,
    /// Events keep being delivered while they are not done.
    Bouncing,
    /// Events that wait for a person become more.
    ReviewQueue,
    /// Effects were given up.
    DeadLetters,
    /// Attempts begin late.
    DispatchLag,
    /// The disk of the store is filling up.
    Disk,
    /// Far more requests are refused than usual.
    SignatureFailures,
    /// Nothing is sent to an endpoint any more: it answered that it is gone, or failed for too long.
    EndpointDisabled,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Kind; 8] = [
        Kind::DuplicateSpike,
        Kind::Bouncing,
        Kind::ReviewQueue,
        Kind::DeadLetters,
        Kind::DispatchLag,
        Kind::Disk,
        Kind::SignatureFailures,
        Kind::EndpointDisabled,
    ];

    /// Kinds that are about the whole ledger: one node tells them for all.
    pub const OF_ALL: [Kind; 3] = [Kind::ReviewQueue, Kind::DeadLetters, Kind::EndpointDisabled];

    /// The word that programs know it by.
    pub const fn word(self) -> &'static str {
        match self {
            Kind::DuplicateSpike => "duplicate_spike",
            Kind::Bouncing => "bouncing",
            Kind::ReviewQueue => "review_queue",
            Kind::DeadLetters => "dead_letters",
            Kind::DispatchLag => "dispatch_lag",
            Kind::Disk => "disk",
            Kind::SignatureFailures => "signature_failures",
            Kind::EndpointDisabled => "endpoint_disabled",
        }
    }

    /// Its code: `hapax explain CODE` says more.
    pub const fn code(self) -> &'static str {
        match self {
            Kind::DuplicateSpike => "H0501",
            Kind::Bouncing => "H0502",
            Kind::ReviewQueue => "H0503",
            Kind::DeadLetters => "H0504",
            Kind::DispatchLag => "H0505",
            Kind::Disk => "H0506",
            Kind::SignatureFailures => "H0507",
            Kind::EndpointDisabled => "H0508",
        }
    }

    /// What to do next.
    pub const fn advice(self) -> &'static str {
        match self {
            Kind::DuplicateSpike => {
                "nothing takes effect twice; see whether the provider hears our answers in time, and `hapax keys audit` for the keys"
            }
            Kind::Bouncing => {
                "`hapax events timeline EVENT` says what holds an event up; the provider goes on until its own patience ends"
            }
            Kind::ReviewQueue => {
                "`hapax events list --status needs_review` shows them, `hapax events show EVENT` says why each waits, `hapax events review EVENT` decides"
            }
            Kind::DeadLetters => {
                "`hapax effects list --state dead` shows them; mend the target, then `hapax events retry EVENT --reason WHY`"
            }
            Kind::DispatchLag => {
                "see whether the target is slow; raise `concurrency` or `rate` of the effect if it can take more"
            }
            Kind::Disk => "make space, shorten `retain.payload`, or give the store a larger disk",
            Kind::SignatureFailures => {
                "GET /api/v1/source/NAME/refused says the likely cause of each; a secret may have been rotated at the provider"
            }
            Kind::EndpointDisabled => {
                "ask its owner to mend it, enable it again, then recover what was skipped; or delete it"
            }
        }
    }
}

/// How much it matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Somebody should look today.
    Warning,
    /// Somebody should look now.
    Critical,
}

impl Severity {
    /// The word that users see.
    pub const fn word(self) -> &'static str {
        match self {
            Severity::Warning => "warning",
            Severity::Critical => "critical",
        }
    }
}
