//! Names to addresses, remembered for a few seconds.

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;

use crate::clock;

/// How long an answer is remembered: long enough for a burst of effects to one host, too short to outlive a move of it
/// by much. The operating system tells no time to live.
const REMEMBERED_FOR: Duration = Duration::from_secs(10);
/// How many names are remembered.
const NAMES_MAX: usize = 1_024;

/// Turns a name into addresses.
#[async_trait]
pub trait Resolve: Send + Sync {
    /// The addresses of a host, best first.
    async fn resolve(&self, host: &str) -> io::Result<Vec<IpAddr>>;
}

/// As the operating system resolves names, its hosts file included.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemResolver;

#[async_trait]
impl Resolve for SystemResolver {
    async fn resolve(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        let found = tokio::net::lookup_host((host, 0)).await?;
        Ok(found.map(|address| address.ip()).collect())
    }
}

struct Entry {
    at: Instant,
    addresses: Vec<IpAddr>,
}

/// A resolver that remembers. It speeds up the way to an address and decides nothing: whoever opens a connection
/// asks again whether it may.
pub(crate) struct Remembering {
    inner: Arc<dyn Resolve>,
    known: Mutex<HashMap<String, Entry>>,
}

impl Remembering {
    pub(crate) fn new(inner: Arc<dyn Resolve>) -> Remembering {
        Remembering {
            inner,
            known: Mutex::default(),
        }
    }

    /// The addresses of a host. Failures are not remembered.
    pub(super) async fn resolve(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        if let Some(addresses) = self.recall(host) {
            return Ok(addresses);
        }
        let addresses = self.inner.resolve(host).await?;
        self.remember(host, &addresses);
        Ok(addresses)
    }

    /// Drops what is known of a host: none of its addresses answered, perhaps it has moved.
    pub(super) fn forget(&self, host: &str) {
        self.known().remove(host);
    }

    fn recall(&self, host: &str) -> Option<Vec<IpAddr>> {
        let known = self.known();
        let entry = known.get(host)?;
        (clock::since(entry.at) < REMEMBERED_FOR).then(|| entry.addresses.clone())
    }

    fn remember(&self, host: &str, addresses: &[IpAddr]) {
        let mut known = self.known();
        if known.len() >= NAMES_MAX {
            known.retain(|_, entry| clock::since(entry.at) < REMEMBERED_FOR);
        }
        // So many names within seconds: better to ask again than to grow.
        if known.len() >= NAMES_MAX {
            known.clear();
        }
        let entry = Entry {
            at: clock::tick(),
            addresses: addresses.to_vec(),
        };
        known.insert(host.to_owned(), entry);
    }

    fn known(&self) -> std::sync::MutexGuard<'_, HashMap<String, Entry>> {
        // Nothing panics while it is held, and a half-made cache would still be a cache.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[derive(Default)]
    struct Counting(AtomicUsize);

    #[async_trait]
    impl Resolve for Counting {
        async fn resolve(&self, host: &str) -> io::Result<Vec<IpAddr>> {
            self.0.fetch_add(1, Ordering::Relaxed);
            match host {
                "gone" => Err(io::Error::other("no such name")),
                _ => Ok(vec![IpAddr::from([127, 0, 0, 1])]),
            }
        }
    }

    #[tokio::test]
    async fn answers_are_remembered_and_failures_are_not() {
        let counting = Arc::new(Counting::default());
        let resolver = Remembering::new(Arc::clone(&counting) as Arc<dyn Resolve>);
        let asked = || counting.0.load(Ordering::Relaxed);
        for _ in 0..3 {
            resolver.resolve("here").await.expect("it has an address");
        }
        assert_eq!(asked(), 1);
        resolver.forget("here");
        resolver.resolve("here").await.expect("it has an address");
        assert_eq!(asked(), 2);
        for _ in 0..2 {
            resolver.resolve("gone").await.expect_err("it has none");
        }
        assert_eq!(asked(), 4);
    }

    #[tokio::test]
    async fn the_memory_is_bounded() {
        let resolver = Remembering::new(Arc::new(Counting::default()));
        for number in 0..3 * NAMES_MAX {
            let host = format!("host-{number}");
            resolver.resolve(&host).await.expect("it has an address");
            assert!(resolver.known().len() <= NAMES_MAX);
        }
    }
}
