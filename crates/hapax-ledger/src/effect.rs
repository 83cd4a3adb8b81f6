//! Effects: how each behaves when repeated, and what an attempt's outcome does to it.

use crate::event::words;

words!(
    /// What happens if the same effect is carried out twice.
    Repeat {
        /// Sets a target state: repeating is harmless.
        Converges = 0, "converges";
        /// The receiver dedupes on the key that Hapax sends.
        Keyed = 1, "keyed";
        /// Neither: a second send is a second effect.
        Once = 2, "once";
    }
);

impl Repeat {
    /// Of two classes the one that allows less: what counts when the config changed after accept.
    pub fn stricter(self, other: Repeat) -> Repeat {
        self.max(other)
    }
}

words!(
    /// Where an effect stands.
    EffectState {
        /// Waits for its turn.
        Pending = 0, "pending";
        /// A worker holds it.
        Claimed = 1, "claimed";
        /// Applied: final for this generation.
        Done = 2, "done";
        /// Nobody can tell whether it was applied; nothing is sent until a probe or a person decides.
        Uncertain = 3, "uncertain";
        /// Given up after the whole schedule.
        Dead = 4, "dead";
        /// Deliberately not carried out, with a recorded reason.
        Skipped = 5, "skipped";
    }
);
