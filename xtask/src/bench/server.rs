//! A server under measurement: a child process that listens on a loopback address.

use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context, bail};

use super::process;
use crate::clock::Stopwatch;
use crate::loopback;

/// A server that has not opened its port by then is not going to. Long, since one that is filled first takes minutes.
const START_MAX: Duration = Duration::from_secs(1_800);

/// How often the port is tried.
const START_PAUSE: Duration = Duration::from_millis(20);

/// How long a server is watched to see whether it is at rest.
const REST_LOOK: Duration = Duration::from_millis(200);
/// And so often in a row: one look may fall into a moment in which it waits for the disk.
const REST_LOOKS: u32 = 3;
/// A server at rest uses less of a processor than this in that time: a tick or two for what it does now and then.
const REST_CPU_MS: u64 = 20;
/// Whatever a round has left to do is done by then.
const REST_MAX: Duration = Duration::from_secs(120);

/// A running server. Dropping it ends the process.
#[derive(Debug)]
pub(super) struct Server {
    child: Child,
    address: SocketAddr,
}

impl Server {
    /// Starts `command`, which must listen on `address`; returns once it accepts connections.
    pub(super) fn start(command: &mut Command, address: SocketAddr) -> anyhow::Result<Server> {
        let child = command
            .stdin(Stdio::piped())
            .spawn()
            .with_context(|| format!("could not start {command:?}"))?;
        let mut server = Server { child, address };
        server.wait_until_listening()?;
        Ok(server)
    }

    /// Its process, for [`super::process::usage`].
    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Where it listens.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Waits until it has done what the last round left it: the next one, of whichever row, would pay for it.
    pub(super) fn wait_until_at_rest(&self) -> anyhow::Result<()> {
        let watch = Stopwatch::start();
        let used = || process::usage(self.pid()).map(|usage| usage.cpu_ms);
        let (mut before, mut quiet) = (used(), 0);
        while watch.elapsed() < REST_MAX {
            thread::sleep(REST_LOOK);
            let now = used();
            quiet = if is_at_rest(before, now) {
                quiet + 1
            } else {
                0
            };
            if quiet == REST_LOOKS {
                return Ok(());
            }
            before = now;
        }
        bail!("the server is still busy {REST_MAX:?} after its round")
    }

    fn wait_until_listening(&mut self) -> anyhow::Result<()> {
        let watch = Stopwatch::start();
        while !loopback::is_listening(self.address) {
            if let Some(status) = self.child.try_wait()? {
                bail!("the server ended with {status} before it listened");
            }
            if watch.elapsed() > START_MAX {
                bail!("the server does not listen on {}", self.address);
            }
            thread::sleep(START_PAUSE);
        }
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Both fail only if it has ended already, which is what is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Has it done next to nothing between two looks at its CPU time? Where nobody says what it uses, the pause between them has to do.
fn is_at_rest(before: Option<u64>, now: Option<u64>) -> bool {
    let busy = now
        .zip(before)
        .map(|(now, before)| now.saturating_sub(before));
    busy.is_none_or(|busy| busy <= REST_CPU_MS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_at_rest_when_it_uses_next_to_nothing() {
        assert!(is_at_rest(Some(1_000), Some(1_000 + REST_CPU_MS)));
        assert!(!is_at_rest(Some(1_000), Some(1_001 + REST_CPU_MS)));
        assert!(is_at_rest(None, None), "there is no /proc");
        assert!(is_at_rest(Some(1_000), None), "it is gone");
    }
}
