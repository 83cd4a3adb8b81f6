//! What runs in this process: whom a stopping server waits for, and whom those that wait for a key may listen to.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hapax_ledger::key::KeyHash;
use tokio::sync::{Notify, watch};

/// Tasks and runs under way.
#[derive(Clone, Default)]
pub(crate) struct Running {
    tasks: Arc<Tasks>,
    runs: Arc<Mutex<Runs>>,
}

#[derive(Default)]
struct Tasks {
    under_way: AtomicUsize,
    /// Told when the last one ends.
    none: Notify,
}

#[derive(Default)]
struct Runs {
    begun: u64,
    by_key: HashMap<KeyHash, Place>,
}

/// The run of a key.
struct Place {
    /// Which one it is of all that began.
    number: u64,
    /// Whoever waits for its end. Hardly anybody does, so it is made for the first who does.
    ends: Option<watch::Sender<()>>,
}

impl Running {
    /// How many tasks are under way.
    pub(crate) fn count(&self) -> usize {
        self.tasks.under_way.load(Ordering::Acquire)
    }

    /// Waits until none is.
    pub(crate) async fn drained(&self) {
        let mut none = pin!(self.tasks.none.notified());
        loop {
            // Before the look, so that an end between the two is heard.
            none.as_mut().enable();
            if self.count() == 0 {
                return;
            }
            none.as_mut().await;
            none.set(self.tasks.none.notified());
        }
    }

    /// A task begins, and is under way until what is returned is dropped.
    pub(crate) fn task(&self) -> Task {
        self.tasks.under_way.fetch_add(1, Ordering::AcqRel);
        Task(self.tasks.clone())
    }

    /// A run of this key begins, and goes on until what is returned is dropped.
    pub(crate) fn run(&self, key: KeyHash) -> Run {
        let mut runs = lock(&self.runs);
        runs.begun += 1;
        let number = runs.begun;
        let place = Place { number, ends: None };
        let previous = runs.by_key.insert(key, place);
        drop(runs);
        // A run that lost its lease: whoever waits for it looks again, and finds this one.
        drop(previous);
        Run {
            runs: self.runs.clone(),
            key,
            number,
        }
    }

    /// Changes when the run of this key ends; `None` if it does not run here.
    pub(crate) fn end_of(&self, key: KeyHash) -> Option<watch::Receiver<()>> {
        let mut runs = lock(&self.runs);
        let place = runs.by_key.get_mut(&key)?;
        let ends = place.ends.get_or_insert_with(|| watch::Sender::new(()));
        Some(ends.subscribe())
    }
}

fn lock(runs: &Mutex<Runs>) -> MutexGuard<'_, Runs> {
    runs.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A task under way.
pub(crate) struct Task(Arc<Tasks>);

impl Drop for Task {
    fn drop(&mut self) {
        if self.0.under_way.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.none.notify_waiters();
        }
    }
}

/// A run under way.
pub(crate) struct Run {
    runs: Arc<Mutex<Runs>>,
    key: KeyHash,
    number: u64,
}

impl Drop for Run {
    fn drop(&mut self) {
        let mut runs = lock(&self.runs);
        let ended = match runs.by_key.entry(self.key) {
            Entry::Occupied(entry) if entry.get().number == self.number => Some(entry.remove()),
            Entry::Occupied(_) | Entry::Vacant(_) => None,
        };
        drop(runs);
        if let Some(ends) = ended.and_then(|place| place.ends) {
            ends.send_replace(());
        }
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
