//! The server that does nothing: reads a request's body and answers 200. Nothing on this machine can be faster.

use std::convert::Infallible;
use std::io::Read;
use std::net::Ipv4Addr;

use anyhow::Context;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// Serves on `port` until stdin is closed, so that it never outlives the bench that started it.
pub(crate) fn run(port: u16) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    std::thread::spawn(|| {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        std::process::exit(0);
    });
    runtime.block_on(serve(port))
}

async fn serve(port: u16) -> anyhow::Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))
        .await
        .with_context(|| format!("port {port} is taken"))?;
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let (stream, _) = accepted.context("the listener broke")?;
                stream.set_nodelay(true)?;
                connections.spawn(converse(stream));
            }
            // Ended connections are taken out as they end, so that the set does not grow.
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn converse(stream: TcpStream) {
    let service = service_fn(answer);
    // A connection that breaks is the client's affair.
    let _ = http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

async fn answer(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let answer = match request.into_body().collect().await {
        Ok(_) => Full::from("{}"),
        Err(_) => Full::default(),
    };
    Ok(Response::new(answer))
}
