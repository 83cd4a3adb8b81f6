//! What is counted of guards. Their names come from the config, verdicts and answers from enums.

use hapax_tower::{Observer, Verdict};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct VerdictLabels {
    guard: String,
    verdict: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct AnswerLabels {
    guard: String,
    answer: &'static str,
}

/// The metrics of guards.
#[derive(Default)]
pub struct GuardMetrics {
    requests: Family<VerdictLabels, Counter>,
    probes: Family<AnswerLabels, Counter>,
}

impl GuardMetrics {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register(
            "guard_requests",
            "Requests to guards by what became of them",
            self.requests.clone(),
        );
        registry.register(
            "guard_probes",
            "Questions about guarded requests whose outcome is unknown, by answer",
            self.probes.clone(),
        );
    }

    /// Counts the verdicts of one guard.
    pub fn of(&self, guard: &str) -> Verdicts {
        Verdicts(Verdict::ALL.map(|verdict| {
            let labels = VerdictLabels {
                guard: guard.to_owned(),
                verdict: verdict.as_str(),
            };
            self.requests.get_or_create_owned(&labels)
        }))
    }

    /// A probe was asked.
    pub fn probed(&self, guard: &str, answer: &'static str) {
        let labels = AnswerLabels {
            guard: guard.to_owned(),
            answer,
        };
        self.probes.get_or_create(&labels).inc();
    }
}

/// The counters of one guard, at hand: they are found once, and not for every request.
pub struct Verdicts([Counter; Verdict::ALL.len()]);

impl Observer for Verdicts {
    fn verdict(&self, _guard: &str, verdict: Verdict) {
        // `ALL` has every verdict, in the order of their numbers.
        self.0[verdict as usize].inc();
    }
}
