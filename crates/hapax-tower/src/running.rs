//! What runs in this process: whom a stopping server waits for, and whom those that wait for a key may listen to.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hapax_ledger::key::KeyHash;
use tokio::sync::watch;

/// Tasks and runs under way.
#[derive(Clone, Default)]
pub(crate) struct Running {
    tasks: Tasks,
    runs: Arc<Mutex<HashMap<KeyHash, watch::Sender<()>>>>,
}

#[derive(Clone)]
struct Tasks(watch::Sender<usize>);

impl Default for Tasks {
    fn default() -> Tasks {
        Tasks(watch::Sender::new(0))
    }
}

impl Running {
    /// How many tasks are under way.
    pub(crate) fn count(&self) -> usize {
        *self.tasks.0.borrow()
    }

    /// Waits until none is.
    pub(crate) async fn drained(&self) {
        let mut tasks = self.tasks.0.subscribe();
        // It cannot be closed: `self` holds the sender.
        let _ = tasks.wait_for(|count| *count == 0).await;
    }

    /// A task begins, and is under way until what is returned is dropped.
    pub(crate) fn task(&self) -> Task {
        self.tasks.0.send_modify(|count| *count += 1);
        Task(self.tasks.clone())
    }

    /// A run of this key begins, and goes on until what is returned is dropped.
    pub(crate) fn run(&self, key: KeyHash) -> Run {
        let (ends, _) = watch::channel(());
        let previous = self.lock().insert(key, ends.clone());
        // A run that lost its lease: whoever waits for it looks again, and finds this one.
        drop(previous);
        Run {
            runs: self.runs.clone(),
            key,
            ends,
        }
    }

    /// Changes when the run of this key ends; `None` if it does not run here.
    pub(crate) fn end_of(&self, key: KeyHash) -> Option<watch::Receiver<()>> {
        self.lock().get(&key).map(watch::Sender::subscribe)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<KeyHash, watch::Sender<()>>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A task under way.
pub(crate) struct Task(Tasks);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.0.send_modify(|count| *count -= 1);
    }
}

/// A run under way.
pub(crate) struct Run {
    runs: Arc<Mutex<HashMap<KeyHash, watch::Sender<()>>>>,
    key: KeyHash,
    ends: watch::Sender<()>,
}

impl Drop for Run {
    fn drop(&mut self) {
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Entry::Occupied(entry) = runs.entry(self.key)
            && entry.get().same_channel(&self.ends)
        {
            entry.remove();
        }
        drop(runs);
        self.ends.send_replace(());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn those_who_wait_hear_of_the_end() {
        let running = Running::default();
        let key = KeyHash::from_bytes([1; 16]);
        assert!(running.end_of(key).is_none());
        let run = running.run(key);
        let mut end = running.end_of(key).expect("it runs");
        drop(run);
        end.changed().await.expect("told before it was dropped");
        assert!(running.end_of(key).is_none());
    }

    #[tokio::test]
    async fn a_run_that_was_replaced_leaves_its_successor_in_place() {
        let running = Running::default();
        let key = KeyHash::from_bytes([1; 16]);
        let old = running.run(key);
        let new = running.run(key);
        drop(old);
        let end = running.end_of(key).expect("the new one runs");
        drop(new);
        assert!(end.has_changed().is_err() || end.has_changed().is_ok_and(|changed| changed));
    }

    #[tokio::test]
    async fn drained_means_that_no_task_is_left() {
        let running = Running::default();
        running.drained().await;
        let task = running.task();
        assert_eq!(running.count(), 1);
        let waiting = tokio::spawn({
            let running = running.clone();
            async move { running.drained().await }
        });
        drop(task);
        waiting.await.expect("it ends");
        assert_eq!(running.count(), 0);
    }
}
