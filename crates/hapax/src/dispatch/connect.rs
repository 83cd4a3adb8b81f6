//! Connections: where a request may go, and how it gets there.
//!
//! Whatever fails here fails before a request is written, so that every error of this file proves that nothing was sent.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use hapax_ledger::outcome::NotSent;
use http::Uri;
use http::uri::Scheme;
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::rt::TokioIo;
use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tower_service::Service;

use super::gate::Rules;
use super::resolve::Remembering;

/// How many addresses of a host are tried: both families, and one that is down in each.
const ADDRESSES_MAX: usize = 4;

/// Where a request may go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reach {
    /// To any address: the operator wrote the URL.
    Anywhere,
    /// Where the gate lets a URL lead that a consumer wrote.
    Consumer(Arc<Rules>),
}

impl Reach {
    /// May connections be opened to these addresses of one host, at this port? Asked of every address, whether it was written in the
    /// URL, resolved or remembered, and of nothing else: a name proves nothing about where it leads.
    fn vet(&self, addresses: &[IpAddr], port: u16) -> Result<(), Unconnected> {
        let judged = match self {
            Reach::Anywhere => Ok(()),
            Reach::Consumer(rules) => rules.port(port).and_then(|()| rules.vet(addresses)),
        };
        judged.map_err(|refused| Unconnected::new(NotSent::Blocked, refused.to_string()))
    }

    /// Is the connection where it was meant to go? Whatever changes that on the way is not for us to trust (G5).
    fn trusts(&self, stream: &TcpStream, address: IpAddr, port: u16) -> bool {
        match self {
            Reach::Anywhere => true,
            Reach::Consumer(_) => stream
                .peer_addr()
                .is_ok_and(|peer| (peer.ip(), peer.port()) == (address, port)),
        }
    }
}

/// There is no connection, so nothing was sent.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{text}")]
pub(crate) struct Unconnected {
    pub(super) why: NotSent,
    /// For people, short.
    pub(super) text: String,
}

impl Unconnected {
    pub(crate) fn new(why: NotSent, text: impl Into<String>) -> Unconnected {
        let text = text.into();
        Unconnected { why, text }
    }
}

type Stream = TokioIo<TcpStream>;
type Opening<T> = Pin<Box<dyn Future<Output = Result<T, Unconnected>> + Send>>;

/// Opens TCP connections to addresses that its reach allows.
#[derive(Clone)]
pub(crate) struct Tcp {
    resolver: Remembering,
    reach: Reach,
    timeout: Duration,
}

impl Tcp {
    async fn open(self, uri: Uri) -> Result<Stream, Unconnected> {
        let host = uri.host().unwrap_or_default();
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let port = uri.port_u16().unwrap_or(match uri.scheme() {
            Some(scheme) if *scheme == Scheme::HTTPS => 443,
            _ => 80,
        });
        let addresses = self.addresses(host).await?;
        self.reach.vet(&addresses, port)?;
        let tried = &addresses[..addresses.len().min(ADDRESSES_MAX)];
        let opened = self.first_of(tried, port).await;
        if opened.is_err() {
            self.resolver.forget(host);
        }
        opened.map(TokioIo::new)
    }

    /// The addresses of a host, at least one. A literal is an address like any other.
    async fn addresses(&self, host: &str) -> Result<Arc<[IpAddr]>, Unconnected> {
        if let Ok(address) = host.parse::<IpAddr>() {
            return Ok([address].into());
        }
        let unresolved =
            |why: String| Unconnected::new(NotSent::Dns, format!("{host} cannot be resolved{why}"));
        match timeout(self.timeout, self.resolver.resolve(host)).await {
            Ok(Ok(addresses)) => Ok(addresses),
            Ok(Err(error)) if error.kind() == io::ErrorKind::TimedOut => {
                Err(unresolved(": no name server answers".to_owned()))
            }
            Ok(Err(_)) => Err(unresolved(String::new())),
            Err(_) => Err(unresolved(format!(" within {}", length(self.timeout)))),
        }
    }

    /// The first address that answers. Each gets its share of the time, so that one that is silent leaves some for the
    /// next.
    async fn first_of(&self, addresses: &[IpAddr], port: u16) -> Result<TcpStream, Unconnected> {
        let share = self.timeout / u32::try_from(addresses.len()).unwrap_or(u32::MAX).max(1);
        let mut failed = Unconnected::new(NotSent::Refused, "no address");
        for address in addresses {
            failed = match timeout(share, dial(SocketAddr::new(*address, port))).await {
                Ok(Ok(stream)) if self.reach.trusts(&stream, *address, port) => return Ok(stream),
                Ok(Ok(_)) => Unconnected::new(NotSent::Blocked, "connected to another address"),
                Ok(Err(error)) => unconnected(&error),
                Err(_) => no_connection_within(share),
            };
        }
        Err(failed)
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the one door outwards, behind `Reach::vet`"
)]
async fn dial(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(address).await?;
    // A request is written in one go and waits for its answer: there is nothing to gather.
    stream.set_nodelay(true)?;
    Ok(stream)
}

fn unconnected(error: &io::Error) -> Unconnected {
    let why = match error.kind() {
        io::ErrorKind::TimedOut => NotSent::ConnectTimeout,
        // Unreachable networks and a lack of local ports too: nobody took the connection.
        _ => NotSent::Refused,
    };
    Unconnected::new(why, error.kind().to_string())
}

/// Nobody took the connection in time.
pub(super) fn no_connection_within(time: Duration) -> Unconnected {
    let text = format!("no connection within {}", length(time));
    Unconnected::new(NotSent::ConnectTimeout, text)
}

/// A length of time for people: `10 s`, `200 ms`.
pub(crate) fn length(time: Duration) -> String {
    match time.as_millis() {
        millis if millis % 1_000 == 0 => format!("{} s", millis / 1_000),
        millis => format!("{millis} ms"),
    }
}

impl Service<Uri> for Tcp {
    type Response = Stream;
    type Error = Unconnected;
    type Future = Opening<Stream>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Unconnected>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Opening<Stream> {
        Box::pin(self.clone().open(uri))
    }
}

/// Opens connections, encrypted where the URL says `https`, all within one time limit.
#[derive(Clone)]
pub(crate) struct Connector {
    https: HttpsConnector<Tcp>,
    timeout: Duration,
}

impl Connector {
    pub(crate) fn new(
        resolver: Remembering,
        reach: Reach,
        tls: Arc<ClientConfig>,
        timeout: Duration,
    ) -> Connector {
        let tcp = Tcp {
            resolver,
            reach,
            timeout,
        };
        Connector {
            https: HttpsConnector::from((tcp, tls)),
            timeout,
        }
    }
}

impl Service<Uri> for Connector {
    type Response = MaybeHttpsStream<Stream>;
    type Error = Unconnected;
    type Future = Opening<MaybeHttpsStream<Stream>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Unconnected>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let (connecting, limit) = (self.https.call(uri), self.timeout);
        Box::pin(async move {
            match timeout(limit, connecting).await {
                Ok(Ok(stream)) => Ok(stream),
                Ok(Err(error)) => Err(match error.downcast::<Unconnected>() {
                    Ok(tcp) => *tcp,
                    Err(tls) => tls_failed(&*tls),
                }),
                Err(_) => Err(no_connection_within(limit)),
            }
        })
    }
}

/// The handshake failed. rustls's own words come inside an error of I/O, perhaps inside another.
fn tls_failed(error: &(dyn std::error::Error + 'static)) -> Unconnected {
    let mut cause = error;
    while let Some(inner) = cause
        .downcast_ref::<io::Error>()
        .and_then(io::Error::get_ref)
    {
        cause = inner;
    }
    let text = match cause.downcast_ref::<rustls::Error>() {
        Some(rustls::Error::InvalidMessage(_)) => {
            "TLS failed; does this port speak plain http?".to_owned()
        }
        Some(_) | None => format!("TLS failed: {cause}"),
    };
    Unconnected::new(NotSent::Tls, text)
}

/// TLS as a client: the roots that browsers trust and `extra` ones, HTTP/2 where the receiver speaks it.
pub(crate) fn tls(extra: Vec<CertificateDer<'static>>) -> Result<Arc<ClientConfig>, rustls::Error> {
    let mut roots = RootCertStore::from_iter(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    for root in extra {
        roots.add(root)?;
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
