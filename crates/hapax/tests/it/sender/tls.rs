//! Encrypted connections: HTTP/2 where the receiver speaks it, and nothing to strangers.

use std::convert::Infallible;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use async_trait::async_trait;
use hapax::dispatch::resolve::Resolve;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

use super::receiver::receiver;
use super::*;

/// Every name is this machine.
struct Here;

#[async_trait]
impl Resolve for Here {
    async fn resolve(&self, _: &str) -> io::Result<Vec<IpAddr>> {
        Ok(vec![IpAddr::from([127, 0, 0, 1])])
    }

    fn lookups_max(&self) -> usize {
        1
    }
}

async fn version(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let body = format!("{:?}", request.version());
    Ok(Response::new(Full::new(body.into())))
}

/// A receiver that says which version it was spoken to in, and the certificate that it shows.
async fn encrypted(protocols: &[&[u8]]) -> (SocketAddr, CertificateDer<'static>) {
    let made = rcgen::generate_simple_self_signed(vec!["receiver.test".to_owned()])
        .expect("a certificate");
    let certificate = made.cert.der().clone();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).expect("a key");
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("the usual versions")
        .with_no_client_auth()
        .with_single_cert(vec![certificate.clone()], key)
        .expect("its key fits");
    config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let address = receiver(move |stream| {
        let acceptor = acceptor.clone();
        async move {
            let Ok(stream) = acceptor.accept(stream).await else {
                return;
            };
            let server = auto::Builder::new(TokioExecutor::new());
            let io = TokioIo::new(stream);
            // The sender closes as it likes.
            let _ = server.serve_connection(io, service_fn(version)).await;
        }
    })
    .await;
    (address, certificate)
}

fn trusting(roots: Vec<CertificateDer<'static>>) -> Sender {
    let settings = Settings {
        roots,
        resolver: Arc::new(Here),
        ..Settings::default()
    };
    Sender::new(settings).expect("good roots")
}

#[tokio::test]
async fn the_receiver_chooses_the_version() {
    let table: [(&[&[u8]], &str); 3] = [
        (&[b"h2", b"http/1.1"], "HTTP/2.0"),
        (&[b"http/1.1"], "HTTP/1.1"),
        (&[], "HTTP/1.1"),
    ];
    for (protocols, version) in table {
        let (address, root) = encrypted(protocols).await;
        let url = format!("https://receiver.test:{}/hook", address.port());
        let sender = Arc::new(trusting(vec![root]));
        // All at once: over HTTP/2 they end up on one connection, and none may be lost on the way there.
        let sending: Vec<_> = (0..20)
            .map(|_| {
                let (sender, request) = (Arc::clone(&sender), post(&url, LONG));
                tokio::spawn(async move { sender.send(request).await })
            })
            .collect();
        for sent in sending {
            let sent = sent.await.expect("no panic");
            assert_eq!(sent.outcome, answered(200), "{:?}", sent.error);
            assert_eq!(sent.excerpt.expect("it answered").bytes, version.as_bytes());
        }
    }
}

#[tokio::test]
async fn a_stranger_hears_nothing() {
    let (address, root) = encrypted(&[b"h2"]).await;
    let known = format!("https://receiver.test:{}/", address.port());
    let other = format!("https://other.test:{}/", address.port());
    for (url, roots) in [(&known, vec![]), (&other, vec![root])] {
        let sent = trusting(roots).send(post(url, LONG)).await;
        assert_eq!(sent.outcome, not_sent(NotSent::Tls), "{url}");
        let error = sent.error.expect("it failed");
        assert!(
            error.starts_with("TLS failed: invalid peer certificate"),
            "{error}"
        );
    }
}
