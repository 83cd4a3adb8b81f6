//! A real server of HTTP/2, without TLS or with it.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::thread;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_rustls::TlsAcceptor;

pub(super) type Answering = UnsyncBoxBody<Bytes, Infallible>;

/// The server.
pub(super) struct Upstream {
    pub(super) address: SocketAddr,
    connections: Arc<AtomicUsize>,
}

/// How it is set up.
#[derive(Clone, Default)]
pub(super) struct Settings {
    pub(super) streams_max: Option<u32>,
    pub(super) tls: Option<Arc<ServerConfig>>,
}

impl Upstream {
    /// Answers each request with what `answer` makes of it, in a thread of its own. It speaks both versions.
    pub(super) fn new<W>(
        settings: Settings,
        answer: impl Fn(Request<Incoming>) -> W + Clone + Send + 'static,
    ) -> Upstream
    where
        W: Future<Output = Response<Answering>> + Send + 'static,
    {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        listener.set_nonblocking(true).expect("it is set");
        let address = listener.local_addr().expect("an address");
        let connections = Arc::new(AtomicUsize::new(0));
        let counted = connections.clone();
        thread::spawn(move || {
            let runtime = tokio::runtime::Runtime::new().expect("a runtime");
            runtime.block_on(async move {
                let listener = TcpListener::from_std(listener).expect("a listener");
                while let Ok((stream, _)) = listener.accept().await {
                    counted.fetch_add(1, Ordering::SeqCst);
                    stream.set_nodelay(true).expect("it is set");
                    let (settings, answer) = (settings.clone(), answer.clone());
                    tokio::spawn(async move {
                        match &settings.tls {
                            None => serve(&settings, stream, answer).await,
                            Some(tls) => {
                                let shaking = TlsAcceptor::from(tls.clone()).accept(stream);
                                if let Ok(stream) = shaking.await {
                                    serve(&settings, stream, answer).await;
                                }
                            }
                        }
                    });
                }
            });
        });
        Upstream {
            address,
            connections,
        }
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// How many connections it has taken.
    pub(super) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

async fn serve<S, W>(
    settings: &Settings,
    stream: S,
    answer: impl Fn(Request<Incoming>) -> W + Send + 'static,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    W: Future<Output = Response<Answering>> + Send + 'static,
{
    let mut server = auto::Builder::new(TokioExecutor::new());
    if let Some(max) = settings.streams_max {
        server.http2().max_concurrent_streams(max);
    }
    let service = service_fn(move |request| {
        let answering = answer(request);
        async move { Ok::<_, Infallible>(answering.await) }
    });
    // A client that breaks off is no event of ours.
    let _ = server.serve_connection(TokioIo::new(stream), service).await;
}

/// A whole answer.
pub(super) fn whole(status: u16, body: impl Into<Bytes>) -> Response<Answering> {
    let mut answer = Response::new(Full::new(body.into()).boxed_unsync());
    *answer.status_mut() = status.try_into().expect("a status");
    answer
}

/// A body whose frames are sent one by one; it ends with its sender.
pub(super) struct Piped(mpsc::UnboundedReceiver<Frame<Bytes>>);

/// Such a body, and its sender.
pub(super) fn piped() -> (mpsc::UnboundedSender<Frame<Bytes>>, Piped) {
    let (sender, receiver) = mpsc::unbounded_channel();
    (sender, Piped(receiver))
}

impl Body for Piped {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(context).map(|frame| frame.map(Ok))
    }
}
