//! Where this machine says whom to ask: `/etc/resolv.conf`, and what it knows itself: `/etc/hosts`.

use std::collections::HashMap;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use crate::clock;

const SERVERS_FILE: &str = "/etc/resolv.conf";
const HOSTS_FILE: &str = "/etc/hosts";
/// The port of name servers.
pub(super) const PORT: u16 = 53;
/// How many name servers count, as everywhere.
const SERVERS_MAX: usize = 3;
/// How long files are not looked at again: no longer than an answer is remembered.
const LOOKED_FOR: Duration = Duration::from_secs(10);

/// What the files say.
#[derive(Debug, Default)]
pub(super) struct Said {
    pub(super) servers: Vec<SocketAddr>,
    /// By name, in lower case.
    pub(super) hosts: HashMap<String, Vec<IpAddr>>,
}

/// When a file was changed and how long it is, if it is there.
type Stamp = Option<(Option<SystemTime>, u64)>;

struct Looked {
    at: Instant,
    stamps: [Stamp; 2],
    said: Arc<Said>,
}

/// The files, read when they have changed.
#[derive(Default)]
pub(super) struct Files(Mutex<Option<Looked>>);

impl Files {
    /// What they say. Read where we stand: two small files, seldom.
    pub(super) fn said(&self) -> Arc<Said> {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = clock::tick();
        if let Some(looked) = held.as_ref()
            && now.saturating_duration_since(looked.at) < LOOKED_FOR
        {
            return looked.said.clone();
        }
        let stamps = [SERVERS_FILE, HOSTS_FILE].map(stamp);
        let said = match held.as_ref() {
            Some(looked) if looked.stamps == stamps => looked.said.clone(),
            Some(_) | None => Arc::new(Said {
                servers: servers(&text(SERVERS_FILE)),
                hosts: hosts(&text(HOSTS_FILE)),
            }),
        };
        *held = Some(Looked {
            at: now,
            stamps,
            said: said.clone(),
        });
        said
    }
}

fn stamp(path: &str) -> Stamp {
    let found = fs::metadata(path).ok()?;
    Some((found.modified().ok(), found.len()))
}

/// A file that cannot be read says nothing.
fn text(path: &str) -> String {
    let bytes = fs::read(path).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The words of each line, without remarks.
fn lines(text: &str) -> impl Iterator<Item = impl Iterator<Item = &str>> {
    let said = text
        .lines()
        .map(|line| line.split(['#', ';']).next().unwrap_or_default());
    said.map(str::split_whitespace)
}

/// The name servers, or the one on this machine where none is named.
fn servers(text: &str) -> Vec<SocketAddr> {
    let named = lines(text).filter_map(|mut words| match words.next()? {
        "nameserver" => words.next()?.parse::<IpAddr>().ok(),
        _ => None,
    });
    let mut servers: Vec<SocketAddr> = named
        .take(SERVERS_MAX)
        .map(|address| SocketAddr::new(address, PORT))
        .collect();
    if servers.is_empty() {
        servers.push(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), PORT));
    }
    servers
}

fn hosts(text: &str) -> HashMap<String, Vec<IpAddr>> {
    let mut hosts: HashMap<String, Vec<IpAddr>> = HashMap::new();
    for mut words in lines(text) {
        let Some(address) = words.next().and_then(|word| word.parse().ok()) else {
            continue;
        };
        for name in words {
            let addresses = hosts.entry(name.to_ascii_lowercase()).or_default();
            addresses.push(address);
        }
    }
    hosts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_servers_are_read_as_they_are_usually_written() {
        let text = "# made by hand\nsearch corp.example\nnameserver 192.0.2.53 ; first\n\
            nameserver fe80::1%eth0\nnameserver 2001:db8::53\noptions ndots:5\n\
            nameserver 192.0.2.54\nnameserver 192.0.2.55\n";
        let expected = ["192.0.2.53:53", "[2001:db8::53]:53", "192.0.2.54:53"];
        let expected = expected.map(|text| text.parse().expect("an address"));
        assert_eq!(servers(text), expected);
        let here: SocketAddr = "127.0.0.1:53".parse().expect("an address");
        assert_eq!(servers("search corp.example\n"), [here]);
    }

    #[test]
    fn hosts_are_read_as_they_are_usually_written() {
        let text =
            "127.0.0.1 localhost Here.Example # this machine\n::1\tlocalhost\n\nnonsense x\n";
        let hosts = hosts(text);
        let of = |name: &str| hosts.get(name).map(|all| format!("{all:?}"));
        assert_eq!(of("localhost").as_deref(), Some("[127.0.0.1, ::1]"));
        assert_eq!(of("here.example").as_deref(), Some("[127.0.0.1]"));
        assert_eq!(of("x"), None);
    }
}
