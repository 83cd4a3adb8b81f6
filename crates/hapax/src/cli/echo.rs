//! `hapax echo`: a service that says what it gets, for trying effects out before there is a real one.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};

use super::client::block_on;
use super::exit::{Exit, Failure};
use super::{output, table};
use crate::http::listen;

/// Connections at a time: one person tries something out.
const CONNECTIONS_MAX: usize = 64;
/// The largest body that is shown and not cut off.
const BODY_BYTES_MAX: usize = 1024 * 1024;

/// Answer every request with the same status, and say what came
///
/// For trying effects out before there is a service. It listens on this machine only, and runs until Ctrl-C.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The port on 127.0.0.1
    #[arg(long, value_name = "PORT", default_value_t = 9000)]
    port: u16,
    /// The status of the answer
    #[arg(long, value_name = "STATUS", default_value_t = 200, value_parser = clap::value_parser!(u16).range(200..=599))]
    status: u16,
}

pub(super) fn run(args: &Args) -> Result<Exit, Failure> {
    block_on(async {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, args.port));
        let listener = TcpListener::bind(address).await;
        let listener = listener.map_err(|error| {
            let text = format!("cannot listen on {address}: {error}");
            Failure::new(
                Exit::Failed,
                "H0407",
                text,
                "choose another port with --port",
            )
        })?;
        let address = listener.local_addr().unwrap_or(address);
        output::talk(&format!("answering {} at http://{address}", args.status));
        let permits = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        let (_running, stop) = watch::channel(false);
        let status = args.status;
        let answering = listen::accept(&listener, &permits, stop, |stream, _, permit| {
            tokio::spawn(async move {
                let service = service_fn(move |request| answer(request, status));
                let connection =
                    http1::Builder::new().serve_connection(TokioIo::new(stream), service);
                // A client that breaks off has its reasons.
                let _ = connection.await;
                drop(permit);
            });
        });
        tokio::select! {
            () = answering => {}
            _ = tokio::signal::ctrl_c() => {}
        }
        Ok(Exit::Ok)
    })
}

async fn answer(
    request: Request<Incoming>,
    status: u16,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (parts, body) = request.into_parts();
    let body = Limited::new(body, BODY_BYTES_MAX).collect().await;
    let body = body.map(|body| body.to_bytes()).unwrap_or_default();
    let key = header(&parts.headers, "idempotency-key");
    let attempt = header(&parts.headers, "hapax-attempt");
    let text = String::from_utf8_lossy(&body);
    let line = format!(
        "{} {}  key {key}  attempt {attempt}  {}",
        parts.method,
        parts.uri.path(),
        table::one_line(&text)
    );
    // Whoever closed the pipe has seen enough; the answers go on.
    let _ = output::data(&line);
    let mut answer = Response::new(Full::new(Bytes::new()));
    if let Ok(status) = status.try_into() {
        *answer.status_mut() = status;
    }
    Ok(answer)
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    let value = headers.get(name);
    value.and_then(|value| value.to_str().ok()).unwrap_or("-")
}
