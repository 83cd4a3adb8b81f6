//! The way back from the writer's thread to those who wait for a commit.
//!
//! A task that is woken from a thread outside its runtime wakes a thread there, which wakes another one to look for more to do: two threads
//! for each commit, and with few callers there is nothing more to do. So the writer rings a bell instead: a socket that a task of the runtime
//! listens to. Whichever thread waits for sockets hears it, and wakes all callers of the group from within.

use std::io::{ErrorKind, Write};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::runtime::Handle;

use super::writer::{Answer, answer_all};

/// Rings that are read at once. There is one for each time that nobody waited before, so more than a few are never there.
const RINGS_MAX: usize = 64;

/// Answers that are to be given; `None` when nobody listens.
type Waiting = Arc<Mutex<Option<Vec<Answer>>>>;

/// The writer's end.
pub(super) struct Bell {
    waiting: Waiting,
    /// `None` without a runtime.
    rope: Option<UnixStream>,
}

impl Bell {
    /// A bell that is heard in the runtime of whoever opens the store; without one, answers are given where they are made.
    pub(super) fn hang() -> Bell {
        let silent = Bell {
            waiting: Waiting::default(),
            rope: None,
        };
        let (Ok(runtime), Ok((rope, ear))) = (Handle::try_current(), pair()) else {
            return silent;
        };
        let waiting = Arc::new(Mutex::new(Some(Vec::new())));
        let listener = Listener {
            waiting: waiting.clone(),
        };
        // It ends with the bell, or with the runtime.
        runtime.spawn(listener.listen(ear));
        Bell {
            waiting,
            rope: Some(rope),
        }
    }

    /// Gives the answers of a group that is committed.
    pub(super) fn tell(&self, answers: Vec<Answer>) {
        let mut waiting = lock(&self.waiting);
        let Some(told) = &mut *waiting else {
            drop(waiting);
            return answer_all(answers);
        };
        let rung = !told.is_empty();
        told.extend(answers);
        drop(waiting);
        if let (false, Some(rope)) = (rung, &self.rope) {
            // If there is no room for a ring there are others to be heard; if nobody listens any more, he has given the answers himself.
            let rung = (&*rope).write(&[1]);
            if rung.is_err_and(|error| error.kind() != ErrorKind::WouldBlock) {
                // Whatever is the matter with it, nobody waits for a ring that does not come.
                let answers = lock(&self.waiting).as_mut().map(std::mem::take);
                answer_all(answers.unwrap_or_default());
            }
        }
    }
}

fn pair() -> std::io::Result<(UnixStream, UnixStream)> {
    let (rope, ear) = UnixStream::pair()?;
    rope.set_nonblocking(true)?;
    ear.set_nonblocking(true)?;
    Ok((rope, ear))
}

fn lock(waiting: &Waiting) -> MutexGuard<'_, Option<Vec<Answer>>> {
    waiting.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The runtime's end.
struct Listener {
    waiting: Waiting,
}

impl Listener {
    async fn listen(self, ear: UnixStream) {
        let Ok(ear) = tokio::net::UnixStream::from_std(ear) else {
            return;
        };
        let mut rings = [0; RINGS_MAX];
        while ear.readable().await.is_ok() {
            let read = ear.try_read(&mut rings);
            // After the ring was read: whatever comes from now on rings again.
            let answers = lock(&self.waiting).as_mut().map(std::mem::take);
            answer_all(answers.unwrap_or_default());
            match read {
                Ok(0) => return,
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(_) => return,
            }
        }
    }
}

impl Drop for Listener {
    /// Nobody listens any more, perhaps because the runtime ends. What is committed is said all the same.
    fn drop(&mut self) {
        let answers = lock(&self.waiting).take();
        answer_all(answers.unwrap_or_default());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use tokio::runtime::{Builder, Runtime};
    use tokio::sync::oneshot;

    use super::*;

    fn runtime() -> Runtime {
        let mut builder = Builder::new_current_thread();
        builder.enable_all().build().expect("a runtime")
    }

    fn bell_in(runtime: &Runtime) -> Bell {
        let _in_it = runtime.enter();
        Bell::hang()
    }

    /// One answer, and where it is heard.
    fn answer() -> (Answer, mpsc::Receiver<bool>) {
        let (reply, heard) = mpsc::channel();
        let answer: Answer =
            Box::new(move |commit| reply.send(commit.is_ok()).expect("somebody waits"));
        (answer, heard)
    }

    #[test]
    fn a_group_is_told_in_the_runtime_and_so_is_the_next() {
        let runtime = runtime();
        let bell = bell_in(&runtime);
        for group in 1..=3 {
            let (mut answers, mut callers) = (Vec::new(), Vec::new());
            for caller in 0..group {
                let (reply, answer) = oneshot::channel();
                let tell: Answer = Box::new(move |_| reply.send(caller).expect("somebody waits"));
                answers.push(tell);
                callers.push(answer);
            }
            bell.tell(answers);
            runtime.block_on(async {
                for (nth, caller) in callers.into_iter().enumerate() {
                    assert_eq!(caller.await.expect("an answer"), nth);
                }
            });
        }
    }

    /// Two groups may be committed before anyone in the runtime looks.
    #[test]
    fn groups_that_nobody_has_looked_at_yet_are_told_together() {
        let runtime = runtime();
        let bell = bell_in(&runtime);
        let ((first, first_heard), (second, second_heard)) = (answer(), answer());
        bell.tell(vec![first]);
        bell.tell(vec![second]);
        assert!(first_heard.try_recv().is_err(), "nobody has looked");
        let (last, last_heard) = oneshot::channel();
        bell.tell(vec![Box::new(move |_| {
            last.send(()).expect("somebody waits")
        })]);
        runtime.block_on(last_heard).expect("told");
        assert_eq!(
            (first_heard.try_recv(), second_heard.try_recv()),
            (Ok(true), Ok(true))
        );
    }

    #[test]
    fn without_a_runtime_answers_are_given_where_they_are_made() {
        let bell = Bell::hang();
        let (answer, heard) = answer();
        bell.tell(vec![answer]);
        assert_eq!(heard.try_recv(), Ok(true));
    }

    /// A commit is there whatever becomes of a runtime: its callers may wait in another one.
    #[test]
    fn when_the_runtime_ends_nobody_is_left_without_an_answer() {
        let runtime = runtime();
        let bell = bell_in(&runtime);
        let ((before, before_heard), (after, after_heard)) = (answer(), answer());
        bell.tell(vec![before]);
        drop(runtime);
        assert_eq!(before_heard.try_recv(), Ok(true));
        bell.tell(vec![after]);
        assert_eq!(after_heard.try_recv(), Ok(true));
    }

    /// A runtime may wait for nothing but time; then it cannot listen.
    #[test]
    fn a_runtime_without_sockets_leaves_the_answers_to_the_writer() {
        let runtime = Builder::new_current_thread().build().expect("a runtime");
        let bell = bell_in(&runtime);
        let ((before, before_heard), (after, after_heard)) = (answer(), answer());
        bell.tell(vec![before]);
        runtime.block_on(tokio::task::yield_now());
        assert_eq!(before_heard.try_recv(), Ok(true));
        bell.tell(vec![after]);
        assert_eq!(after_heard.try_recv(), Ok(true));
    }
}
