//! As the operating system resolves names: its hosts file, search domains and whatever else `nsswitch.conf` says.
//!
//! The system's call blocks its thread for as long as it likes, half a minute if name servers are silent, and cannot be called off. So each
//! lookup has a thread of its own, which is nobody else's: the runtime's threads for blocking work are also those that read the store.

use std::io;
use std::net::{IpAddr, ToSocketAddrs};
use std::thread;

use async_trait::async_trait;
use tokio::sync::oneshot;

use super::Resolve;

/// Threads that may wait for names that answered when they were last asked, and as many for all others. The names are the operator's own, a
/// handful each in most configs; each is looked up once at a time.
const LOOKUPS_MAX: usize = 32;

/// As the operating system resolves names.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemResolver;

#[async_trait]
impl Resolve for SystemResolver {
    async fn resolve(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        let (tell, told) = oneshot::channel();
        let host = host.to_owned();
        // The thread ends with its lookup. Whoever asked may be gone by then, which is fine.
        thread::Builder::new()
            .name("hapax-names".to_owned())
            .spawn(move || drop(tell.send(look_up(&host))))?;
        told.await
            .unwrap_or_else(|_| Err(io::Error::other("the lookup broke off")))
    }

    fn lookups_max(&self) -> usize {
        LOOKUPS_MAX
    }
}

fn look_up(host: &str) -> io::Result<Vec<IpAddr>> {
    let found = (host, 0).to_socket_addrs()?;
    Ok(found.map(|address| address.ip()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_hosts_file_counts() {
        let found = SystemResolver.resolve("localhost").await;
        let found = found.expect("every machine knows itself");
        assert!(found.iter().all(IpAddr::is_loopback), "{found:?}");
    }
}
