//! How many examples an application may send: they go out whatever the endpoint subscribed to, so a consumer with a link could have
//! them sent to anybody's address without end.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use hapax_ledger::id::AppId;
use hapax_ledger::time::{Span, Time};

/// Examples of one application within [`WINDOW`], on one node.
pub const EXAMPLES_MAX: u32 = 30;
/// See [`EXAMPLES_MAX`].
pub const WINDOW: Span = Span::from_secs(60);
/// Applications that are remembered. When there are more, those whose window is over go, and then all.
const APPS_MAX: usize = 10_000;

/// Examples, by application.
#[derive(Debug, Default)]
pub struct Examples(Mutex<HashMap<AppId, (Time, u32)>>);

impl Examples {
    /// May this application send one more now? If so, it is counted.
    pub fn take(&self, app: AppId, now: Time) -> bool {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= APPS_MAX {
            known.retain(|_, (since, _)| now < *since + WINDOW);
        }
        if known.len() >= APPS_MAX {
            known.clear();
        }
        let entry = known.entry(app).or_insert((now, 0));
        if now >= entry.0 + WINDOW {
            *entry = (now, 0);
        }
        let room = entry.1 < EXAMPLES_MAX;
        entry.1 += u32::from(room);
        room
    }
}

#[cfg(test)]
mod tests {
    use hapax_ledger::id::RawId;

    use super::*;

    #[test]
    fn each_application_has_its_own_and_gets_it_back() {
        let examples = Examples::default();
        let app = |row| AppId(RawId::new(Time::from_secs(0), 0, row));
        let now = Time::from_secs(1_000);
        for _ in 0..EXAMPLES_MAX {
            assert!(examples.take(app(1), now));
        }
        assert!(!examples.take(app(1), now));
        assert!(examples.take(app(2), now));
        assert!(!examples.take(app(1), now + Span::from_secs(59)));
        assert!(examples.take(app(1), now + WINDOW));
    }
}
