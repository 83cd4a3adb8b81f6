//! Connections that have changed their protocol: two halves, copied into each other until one ends or the server stops.

use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::io::copy_bidirectional;
use tokio::sync::watch;

use super::place::Place;

/// The tunnels of a server.
#[derive(Clone)]
pub struct Tunnels {
    stop: watch::Sender<bool>,
    open: watch::Sender<usize>,
}

impl Default for Tunnels {
    fn default() -> Tunnels {
        Tunnels {
            stop: watch::Sender::new(false),
            open: watch::Sender::new(0),
        }
    }
}

impl Tunnels {
    /// Connects the caller with the upstream, as soon as both have changed their protocol. The request keeps its place meanwhile.
    pub fn dig(&self, caller: OnUpgrade, upstream: OnUpgrade, place: Option<Place>) {
        let mut stop = self.stop.subscribe();
        let open = self.open.clone();
        open.send_modify(|open| *open += 1);
        tokio::spawn(async move {
            let copying = async {
                let (Ok(caller), Ok(upstream)) = tokio::join!(caller, upstream) else {
                    return;
                };
                let (mut caller, mut upstream) = (TokioIo::new(caller), TokioIo::new(upstream));
                // Whoever breaks off ends it; there is nobody to tell.
                let _ = copy_bidirectional(&mut caller, &mut upstream).await;
            };
            tokio::select! {
                () = copying => {}
                _ = stop.wait_for(|stop| *stop) => {}
            }
            drop(place);
            open.send_modify(|open| *open -= 1);
        });
    }

    /// Ends all tunnels and waits for them. A tunnel has no end of its own that could be waited for.
    pub async fn end(&self) {
        self.stop.send_replace(true);
        let mut open = self.open.subscribe();
        // It cannot be closed: `self` holds the sender.
        let _ = open.wait_for(|open| *open == 0).await;
    }
}
