//! What waits for the writer. Callers at the doors come first, and no group takes so many of our own jobs that they would notice.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use tokio::sync::Semaphore;

use crate::error::{StoreError, StoreErrorKind};

/// Calls that may wait. More callers than this hear *overloaded* at once, while what waits still fits in a second's work.
const CALLS_MAX: usize = 4_096;
/// Chores that may wait. More than this wait for their turn before they queue, so that thousands of attempts that end at once
/// neither shut the doors nor fail.
const CHORES_MAX: usize = 1_024;
/// Jobs in one group.
const GROUP_MAX: usize = 1_024;
/// Chores in one group, unless it has as many calls: a few milliseconds of work, which is what a call may have to wait for.
const CHORES_PER_GROUP: usize = 128;
/// Bytes of bodies in one group, of calls and again of chores; the last job of each may go over.
const GROUP_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Whose job it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whose {
    /// A call: somebody at a door waits for it, and is better refused than left waiting.
    Caller,
    /// A chore of our own, such as a claim, a move or a step of the reaper: it may wait.
    Ours,
}

/// Jobs and the bytes that they will write.
pub(super) struct Queue<J> {
    waiting: Mutex<Waiting<J>>,
    some: Condvar,
    /// Places for chores.
    places: Semaphore,
}

struct Waiting<J> {
    /// With the bytes that each will write.
    calls: VecDeque<(usize, J)>,
    chores: VecDeque<(Place, usize, J)>,
    closed: bool,
    /// Does the writer wait for a job? Waking it is a system call, even if it is awake.
    idle: bool,
}

/// Does a chore stand in a place that is free again once it is taken?
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Taken,
    /// It is one of a few, and asked for none.
    None,
}

fn closed() -> StoreError {
    StoreError::new(StoreErrorKind::Unavailable, "the store is closed")
}

impl<J> Queue<J> {
    pub(super) fn new() -> Queue<J> {
        Queue {
            waiting: Mutex::new(Waiting {
                calls: VecDeque::new(),
                chores: VecDeque::new(),
                closed: false,
                idle: false,
            }),
            some: Condvar::new(),
            places: Semaphore::new(CHORES_MAX),
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting<J>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a job in line. A chore waits for a place first.
    pub(super) async fn put(&self, whose: Whose, bytes: usize, job: J) -> Result<(), StoreError> {
        match whose {
            Whose::Caller => self.push(|waiting| {
                if waiting.calls.len() >= CALLS_MAX {
                    return Err(StoreError::new(
                        StoreErrorKind::Overloaded,
                        "more requests are waiting than the disk keeps up with",
                    ));
                }
                waiting.calls.push_back((bytes, job));
                Ok(())
            }),
            Whose::Ours => {
                let place = self.places.acquire().await.map_err(|_| closed())?;
                place.forget();
                self.push_chore(Place::Taken, bytes, job)
            }
        }
    }

    /// Puts a chore in line, whether or not there is a place: it is one of a few.
    pub(super) fn put_now(&self, job: J) {
        // Whoever closed it wants nothing more done.
        let _ = self.push_chore(Place::None, 0, job);
    }

    fn push_chore(&self, place: Place, bytes: usize, job: J) -> Result<(), StoreError> {
        self.push(|waiting| {
            waiting.chores.push_back((place, bytes, job));
            Ok(())
        })
    }

    fn push(
        &self,
        put: impl FnOnce(&mut Waiting<J>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let mut waiting = self.waiting();
        if waiting.closed {
            return Err(closed());
        }
        put(&mut waiting)?;
        let idle = std::mem::take(&mut waiting.idle);
        drop(waiting);
        if idle {
            self.some.notify_one();
        }
        Ok(())
    }

    /// Waits for the next group and takes it, with the bytes that it will write; `false` when there will be none.
    pub(super) fn take_group(&self, group: &mut Vec<J>, bytes: &mut usize) -> bool {
        let mut waiting = self.waiting();
        while waiting.is_empty() {
            if waiting.closed {
                return false;
            }
            waiting.idle = true;
            waiting = self
                .some
                .wait(waiting)
                .unwrap_or_else(PoisonError::into_inner);
        }
        waiting.idle = false;
        *bytes = 0;
        // Chores have their share of a group however many calls there are, and however large: what is accepted has to be carried out,
        // too.
        let chores_min = waiting.chores.len().min(CHORES_PER_GROUP);
        let mut calls = 0;
        while calls < GROUP_MAX - chores_min && *bytes < GROUP_BYTES_MAX {
            let Some((weight, job)) = waiting.calls.pop_front() else {
                break;
            };
            *bytes += weight;
            group.push(job);
            calls += 1;
        }
        let share = calls.max(CHORES_PER_GROUP).min(GROUP_MAX - calls);
        let (mut chores, mut places, mut chore_bytes) = (0, 0, 0);
        while chores < share && chore_bytes < GROUP_BYTES_MAX {
            let Some((place, weight, job)) = waiting.chores.pop_front() else {
                break;
            };
            places += usize::from(place == Place::Taken);
            chore_bytes += weight;
            group.push(job);
            chores += 1;
        }
        drop(waiting);
        *bytes += chore_bytes;
        self.places.add_permits(places);
        true
    }

    /// Nothing more is taken in; what waits is still given out.
    pub(super) fn close(&self) {
        self.waiting().closed = true;
        self.places.close();
        self.some.notify_all();
    }
}

impl<J> Waiting<J> {
    fn is_empty(&self) -> bool {
        self.calls.is_empty() && self.chores.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(queue: &Queue<u32>) -> Vec<u32> {
        let (mut group, mut bytes) = (Vec::new(), 0);
        assert!(queue.take_group(&mut group, &mut bytes));
        group
    }

    #[tokio::test]
    async fn callers_come_first_and_chores_have_their_share() {
        let queue = Queue::new();
        for chore in 0..1_000 {
            queue.put(Whose::Ours, 0, chore).await.expect("a place");
        }
        queue.put(Whose::Caller, 0, 9_999).await.expect("a place");
        let first = group(&queue);
        assert_eq!((first[0], first.len()), (9_999, 1 + CHORES_PER_GROUP));
        for call in 0..4_000 {
            queue
                .put(Whose::Caller, 0, 10_000 + call)
                .await
                .expect("a place");
        }
        let second = group(&queue);
        let chores = second.iter().filter(|job| **job < 1_000).count();
        assert_eq!((second.len(), chores), (GROUP_MAX, CHORES_PER_GROUP));
    }

    #[tokio::test]
    async fn large_calls_leave_chores_their_share() {
        let queue = Queue::new();
        for call in 0..3 {
            let put = queue.put(Whose::Caller, GROUP_BYTES_MAX, 10 + call).await;
            put.expect("a place");
        }
        queue.put(Whose::Ours, 0, 1).await.expect("a place");
        assert_eq!(group(&queue), [10, 1]);
    }

    /// What was answered to guarded requests may be large, too.
    #[tokio::test]
    async fn large_chores_make_groups_of_their_own() {
        let queue = Queue::new();
        for chore in 0..3 {
            let put = queue.put(Whose::Ours, GROUP_BYTES_MAX / 2, chore).await;
            put.expect("a place");
        }
        let (mut taken, mut bytes) = (Vec::new(), 0);
        assert!(queue.take_group(&mut taken, &mut bytes));
        assert_eq!((taken, bytes), (vec![0, 1], GROUP_BYTES_MAX));
        assert_eq!(group(&queue), [2]);
    }

    /// Whatever is put in line without a place frees none.
    #[tokio::test]
    async fn places_are_neither_lost_nor_made() {
        let queue = Queue::new();
        for chore in 0..CHORES_MAX {
            let put = queue.put(Whose::Ours, 0, chore as u32).await;
            put.expect("a place");
        }
        queue.put_now(7);
        for _ in 0..=CHORES_MAX / CHORES_PER_GROUP {
            group(&queue);
        }
        assert_eq!(queue.places.available_permits(), CHORES_MAX);
    }

    #[tokio::test]
    async fn too_many_callers_are_refused_and_too_many_chores_wait() {
        let queue = Queue::new();
        for call in 0..CALLS_MAX {
            queue
                .put(Whose::Caller, 0, call as u32)
                .await
                .expect("a place");
        }
        let refused = queue.put(Whose::Caller, 0, 0).await.expect_err("full");
        assert_eq!(refused.kind(), StoreErrorKind::Overloaded);
        for chore in 0..CHORES_MAX {
            queue
                .put(Whose::Ours, 0, chore as u32)
                .await
                .expect("a place");
        }
        // Unconstrained: the budget of this task is spent, and that is not what it is to wait for.
        let late = tokio::task::unconstrained(queue.put(Whose::Ours, 0, 1));
        let mut late = std::pin::pin!(late);
        assert!(poll_once(&mut late).is_none(), "it waits");
        group(&queue);
        assert!(matches!(poll_once(&mut late), Some(Ok(()))));
    }

    fn poll_once<T>(future: &mut std::pin::Pin<&mut impl Future<Output = T>>) -> Option<T> {
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        match future.as_mut().poll(&mut context) {
            std::task::Poll::Ready(value) => Some(value),
            std::task::Poll::Pending => None,
        }
    }

    #[tokio::test]
    async fn what_was_taken_in_is_given_out_after_the_end() {
        let queue = Queue::new();
        queue.put(Whose::Caller, 0, 1).await.expect("a place");
        queue.close();
        assert!(queue.put(Whose::Caller, 0, 2).await.is_err());
        assert!(queue.put(Whose::Ours, 0, 2).await.is_err());
        assert_eq!(group(&queue), [1]);
        assert!(!queue.take_group(&mut Vec::new(), &mut 0));
    }
}
