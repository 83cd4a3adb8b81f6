//! Asking name servers, without a thread that waits: a name that nobody answers for costs a socket and a timer.
//!
//! For names that consumers wrote. They are taken as they are, to the last dot: this machine's search domains are not for them. Its hosts file
//! is, since an operator may have put a name there for them.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use async_trait::async_trait;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::timeout;

use super::Resolve;
use super::files::Files;
use super::message::{Kind, Question, Said};
use crate::entropy;

/// Lookups under way of names that answered when they were last asked, and as many of all others: a socket and some kilobytes each.
const LOOKUPS_MAX: usize = 1_024;
/// How often servers are asked, one after the other and then from the first again: datagrams get lost.
const TRIES: usize = 3;
/// How long one try may take: all together less than a connection may, so that the caller hears that nobody answers.
const TRY_TIMEOUT: Duration = Duration::from_millis(1_500);
/// The largest datagram that is read: twice what an answer may have that nobody asked to be longer. What is cut off is not believed.
const DATAGRAM_BYTES_MAX: usize = 1_024;

/// Asks the name servers of this machine, or one that it was told.
#[derive(Default)]
pub struct Dns {
    /// Who is asked instead of this machine's name servers, about every name.
    server: ArcSwapOption<SocketAddr>,
    files: Files,
}

impl Dns {
    /// Asks this server, or those of this machine.
    pub fn new(server: Option<SocketAddr>) -> Dns {
        let dns = Dns::default();
        dns.reload(server);
        dns
    }

    /// Asks another one from now on.
    pub fn reload(&self, server: Option<SocketAddr>) {
        self.server.store(server.map(Arc::new));
    }
}

#[async_trait]
impl Resolve for Dns {
    async fn resolve(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        if let Some(server) = self.server.load_full() {
            return ask(&[*server], host).await;
        }
        let said = self.files.said();
        match said.hosts.get(&host.to_ascii_lowercase()) {
            Some(addresses) => Ok(addresses.clone()),
            None => ask(&said.servers, host).await,
        }
    }

    fn lookups_max(&self) -> usize {
        LOOKUPS_MAX
    }
}

/// One of the two questions about a name.
struct Asked {
    kind: Kind,
    /// The question that an answer is awaited to.
    open: Option<Question>,
    /// What is known for good.
    found: Option<Vec<IpAddr>>,
}

impl Asked {
    fn new(kind: Kind) -> Asked {
        Asked {
            kind,
            open: None,
            found: None,
        }
    }
}

/// The addresses of a host, by the first of these servers that knows.
async fn ask(servers: &[SocketAddr], host: &str) -> io::Result<Vec<IpAddr>> {
    let mut asked = [Kind::V4, Kind::V6].map(Asked::new);
    let mut failed = io::Error::from(io::ErrorKind::TimedOut);
    for server in servers.iter().cycle().take(TRIES) {
        match timeout(TRY_TIMEOUT, ask_once(*server, host, &mut asked)).await {
            Ok(Ok(())) => failed = io::Error::other("the name server could not find out"),
            Ok(Err(error)) => failed = error,
            Err(_) => failed = io::ErrorKind::TimedOut.into(),
        }
        if asked.iter().all(|one| one.found.is_some()) {
            break;
        }
    }
    let [v4, v6] = asked.map(|one| one.found);
    let complete = v4.is_some() && v6.is_some();
    let addresses = in_turn(v4.unwrap_or_default(), v6.unwrap_or_default());
    match (addresses.is_empty(), complete) {
        (false, _) => Ok(addresses),
        (true, true) => Err(io::ErrorKind::NotFound.into()),
        (true, false) => Err(failed),
    }
}

/// Both kinds by turns, so that each is tried; IPv4 first, since machines without a way to IPv6 are many, and receivers with nothing else few.
fn in_turn(v4: Vec<IpAddr>, v6: Vec<IpAddr>) -> Vec<IpAddr> {
    let mut all = Vec::with_capacity(v4.len() + v6.len());
    let (mut v4, mut v6) = (v4.into_iter(), v6.into_iter());
    loop {
        let before = all.len();
        all.extend(v4.next());
        all.extend(v6.next());
        if all.len() == before {
            return all;
        }
    }
}

/// Asks one server for all that is not known yet, and notes what it says, also if it does not answer all of it in time. From a port of its own
/// each time, which the system draws: whoever wants to answer in the server's place has to guess it.
async fn ask_once(server: SocketAddr, host: &str, asked: &mut [Asked]) -> io::Result<()> {
    let socket = open(server).await?;
    for one in asked.iter_mut().filter(|one| one.found.is_none()) {
        let id = u16::from_be_bytes(entropy::bytes());
        let question = Question::new(host, one.kind, id).ok_or(io::ErrorKind::NotFound)?;
        socket.send(&question.bytes()).await?;
        one.open = Some(question);
    }
    let mut packet = [0; DATAGRAM_BYTES_MAX];
    while asked.iter().any(|one| one.open.is_some()) {
        let length = socket.recv(&mut packet).await?;
        for one in asked.iter_mut() {
            let answer = |question: &Question| question.read(&packet[..length]);
            let Some(said) = one.open.as_ref().and_then(answer) else {
                continue;
            };
            let question = one.open.take();
            one.found = match (said, question) {
                (Said::Addresses(addresses), _) => Some(addresses),
                (Said::Truncated, Some(question)) => ask_at_length(server, &question).await?,
                (Said::Truncated, None) | (Said::Failed, _) => None,
            };
        }
    }
    Ok(())
}

#[expect(
    clippy::disallowed_methods,
    reason = "to the name server, which the operator names"
)]
async fn open(server: SocketAddr) -> io::Result<UdpSocket> {
    let any: IpAddr = match server {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0)).await?;
    socket.connect(server).await?;
    Ok(socket)
}

/// Asks over TCP, where an answer may be as long as it likes.
#[expect(
    clippy::disallowed_methods,
    reason = "to the name server, which the operator names"
)]
async fn ask_at_length(server: SocketAddr, question: &Question) -> io::Result<Option<Vec<IpAddr>>> {
    let mut stream = TcpStream::connect(server).await?;
    let bytes = question.bytes();
    let length = u16::try_from(bytes.len()).map_err(io::Error::other)?;
    stream
        .write_all(&[&length.to_be_bytes()[..], &bytes].concat())
        .await?;
    let mut packet = vec![0; usize::from(stream.read_u16().await?)];
    stream.read_exact(&mut packet).await?;
    Ok(match question.read(&packet) {
        Some(Said::Addresses(addresses)) => Some(addresses),
        Some(Said::Truncated | Said::Failed) | None => None,
    })
}
