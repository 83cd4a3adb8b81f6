//! Tells whoever listens that something was accepted. While nobody does, that is one look at a number.

use tokio::sync::watch;

/// The accepts of this node, for those who listen.
#[derive(Debug)]
pub struct Accepts(watch::Sender<u64>);

impl Default for Accepts {
    fn default() -> Accepts {
        Accepts(watch::Sender::new(0))
    }
}

impl Accepts {
    /// Something was accepted.
    pub(super) fn tell(&self) {
        if self.0.receiver_count() > 0 {
            self.0.send_modify(|count| *count = count.wrapping_add(1));
        }
    }

    /// Changes whenever something is accepted from now on.
    pub fn listen(&self) -> watch::Receiver<u64> {
        self.0.subscribe()
    }
}
