//! What names meant a moment ago, and lookups that many wait for.
//!
//! A lookup that has begun goes on until its resolver is done with it, whether anybody still waits or not: what it holds, perhaps a thread, is
//! held until then, and a second one for the same name would hold as much again. There is room for so many at a time: half of it for names
//! that answered when they were last asked, half for all others. So whoever has names that never answer can hold up other names that are new
//! or failed, and nobody who is known to answer.

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use super::Resolve;
use crate::clock;

/// How long an answer is remembered: long enough for a burst of requests to one host, too short to outlive a move of it by much.
const REMEMBERED_FOR: Duration = Duration::from_secs(10);
/// How long a failure is remembered: as long as a lookup may take, so that a name that never answers is looked up half of the time at most;
/// no longer than the shortest waits between attempts.
const FAILURE_REMEMBERED_FOR: Duration = Duration::from_secs(5);
/// How many names are remembered: a megabyte or two.
const NAMES_MAX: usize = 8_192;

type Answer = Result<Arc<[IpAddr]>, io::ErrorKind>;
type UnderWay = watch::Receiver<Option<Answer>>;

struct Entry {
    answer: Answer,
    /// Until then it is the answer. Later it only says how the name did the last time.
    until: Instant,
}

#[derive(Default)]
struct Names {
    known: HashMap<Arc<str>, Entry>,
    under_way: HashMap<Arc<str>, UnderWay>,
}

/// What is to be done about a name.
enum Looked {
    Known(Answer),
    UnderWay(UnderWay),
    /// It has to be looked up, within this room.
    New(Arc<Semaphore>),
}

/// A resolver that remembers.
#[derive(Clone)]
pub(crate) struct Remembering(Arc<Inner>);

struct Inner {
    resolver: Arc<dyn Resolve>,
    names: Mutex<Names>,
    /// Room for lookups of names that answered when they were last asked.
    proven: Arc<Semaphore>,
    /// Room for all others.
    unproven: Arc<Semaphore>,
}

impl Remembering {
    pub(crate) fn new(resolver: Arc<dyn Resolve>) -> Remembering {
        let room = || Arc::new(Semaphore::new(resolver.lookups_max()));
        Remembering(Arc::new(Inner {
            proven: room(),
            unproven: room(),
            names: Mutex::default(),
            resolver,
        }))
    }

    /// The addresses of a host, at least one. Waits for room, and for as long as the resolver takes: callers have a limit of their own.
    pub(crate) async fn resolve(&self, host: &str) -> io::Result<Arc<[IpAddr]>> {
        let looked = self.0.look(host);
        let looked = match looked {
            Looked::New(room) => {
                let permit = room.acquire_owned().await.map_err(io::Error::other)?;
                self.begin(host, permit)
            }
            looked => looked,
        };
        let answer = match looked {
            Looked::Known(answer) => answer,
            Looked::UnderWay(mut told) => {
                let told = told.wait_for(Option::is_some).await;
                let answer = told.ok().and_then(|answer| answer.clone());
                answer.unwrap_or(Err(io::ErrorKind::Other))
            }
            Looked::New(_) => Err(io::ErrorKind::Other),
        };
        answer.map_err(io::Error::from)
    }

    /// What is known of a host has to be asked for again: none of its addresses answered, perhaps it has moved.
    pub(crate) fn forget(&self, host: &str) {
        if let Some(entry) = self.0.names().known.get_mut(host) {
            entry.until = clock::tick();
        }
    }

    /// Begins a lookup, unless somebody else did while we waited for room.
    fn begin(&self, host: &str, permit: OwnedSemaphorePermit) -> Looked {
        let mut names = self.0.names();
        let looked = names.look(host, &self.0);
        if !matches!(looked, Looked::New(_)) {
            return looked;
        }
        let host: Arc<str> = host.into();
        let (tell, told) = watch::channel(None);
        names.under_way.insert(host.clone(), told.clone());
        let inner = self.0.clone();
        tokio::spawn(async move {
            let found = inner.resolver.resolve(&host).await;
            let answer = match found {
                Ok(addresses) if addresses.is_empty() => Err(io::ErrorKind::NotFound),
                Ok(addresses) => Ok(addresses.into()),
                Err(error) => Err(error.kind()),
            };
            inner.names().land(host, answer.clone());
            tell.send_replace(Some(answer));
            drop(permit);
        });
        Looked::UnderWay(told)
    }
}

impl Inner {
    fn look(&self, host: &str) -> Looked {
        self.names().look(host, self)
    }

    fn names(&self) -> MutexGuard<'_, Names> {
        // Nothing panics while it is held, and a half-made memory would still be one.
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Names {
    fn look(&self, host: &str, inner: &Inner) -> Looked {
        let entry = self.known.get(host);
        if let Some(entry) = entry.filter(|entry| clock::tick() < entry.until) {
            return Looked::Known(entry.answer.clone());
        }
        let under_way = self.under_way.get(host);
        // One whose lookup broke off tells nobody anything any more.
        if let Some(told) = under_way.filter(|told| told.has_changed().is_ok()) {
            return Looked::UnderWay(told.clone());
        }
        match entry {
            Some(entry) if entry.answer.is_ok() => Looked::New(inner.proven.clone()),
            Some(_) | None => Looked::New(inner.unproven.clone()),
        }
    }

    fn land(&mut self, host: Arc<str>, answer: Answer) {
        self.under_way.remove(&host);
        self.make_room();
        let until = clock::tick()
            + match answer {
                Ok(_) => REMEMBERED_FOR,
                Err(_) => FAILURE_REMEMBERED_FOR,
            };
        self.known.insert(host, Entry { answer, until });
    }

    /// What is over goes first, and of that, what failed: that a name answered is worth knowing longer.
    fn make_room(&mut self) {
        let now = clock::tick();
        if self.known.len() >= NAMES_MAX {
            self.known
                .retain(|_, entry| entry.answer.is_ok() || now < entry.until);
        }
        if self.known.len() >= NAMES_MAX {
            self.known.retain(|_, entry| now < entry.until);
        }
        // So many names within seconds: better to ask again than to grow.
        if self.known.len() >= NAMES_MAX {
            self.known.clear();
        }
    }
}

#[cfg(test)]
mod tests;
