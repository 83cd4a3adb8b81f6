//! A reverse proxy of hyper's parts as they come: one request in, the same out, the answer back. No timeouts, no limits, no headers of its own.

use std::io::Read;
use std::net::{Ipv4Addr, SocketAddr};

use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, Uri};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::{TcpListener, TcpStream};

type Upstream = Client<HttpConnector, Incoming>;

/// Passes requests on until stdin is closed.
pub(crate) async fn run(port: u16, upstream: SocketAddr) -> anyhow::Result<()> {
    std::thread::spawn(|| {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        std::process::exit(0);
    });
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
    let pool = pool();
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        tokio::spawn(converse(stream, pool.clone(), upstream));
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a bench's client of a server on loopback"
)]
fn pool() -> Upstream {
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    Client::builder(TokioExecutor::new()).build(connector)
}

async fn converse(stream: TcpStream, pool: Upstream, upstream: SocketAddr) {
    let service = service_fn(|request| pass(&pool, upstream, request));
    // A connection that breaks is the client's affair.
    let _ = http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

async fn pass(
    pool: &Upstream,
    upstream: SocketAddr,
    mut request: Request<Incoming>,
) -> anyhow::Result<Response<Incoming>> {
    let path = request.uri().path_and_query();
    let path = path.map_or("/", |path| path.as_str());
    *request.uri_mut() = format!("http://{upstream}{path}").parse::<Uri>()?;
    Ok(pool.request(request).await?)
}
