//! What is counted of guards. Their names come from the config, verdicts and answers from enums.

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

    /// A request was decided about.
    pub fn decided(&self, guard: &str, verdict: &'static str) {
        let labels = VerdictLabels {
            guard: guard.to_owned(),
            verdict,
        };
        self.requests.get_or_create(&labels).inc();
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
