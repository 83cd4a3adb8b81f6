//! A server under measurement: a child process that listens on a loopback address.

use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context, bail};

use crate::clock::Stopwatch;
use crate::loopback;

/// A server that has not opened its port by then is not going to. Long, since one that is filled first takes minutes.
const START_MAX: Duration = Duration::from_secs(1_800);

/// How often the port is tried.
const START_PAUSE: Duration = Duration::from_millis(20);

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
