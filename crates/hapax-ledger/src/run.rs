//! Runs: passes over an event, and who asked for them.

use crate::event::words;

words!(
    /// Why an event was gone through.
    RunKind {
        /// It came in.
        Initial = 0, "initial";
        /// Somebody asked for what is not done.
        Retry = 1, "retry";
        /// Somebody asked for a new run.
        Replay = 2, "replay";
        /// Somebody asked the source of truth.
        Reconcile = 3, "reconcile";
    }
);
