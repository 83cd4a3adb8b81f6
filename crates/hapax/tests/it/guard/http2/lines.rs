//! Connections to upstreams: how many there are, and which version they speak, without TLS and with it.

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use bytes::Bytes;
use hapax::config::UpstreamHttp;
use hapax::guard::upstream::{Arriving, NoAnswer, Upstreams};
use http::{Request, Response, Uri};
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::sync::Semaphore;

use super::TWO;
use super::upstream::{Answering, Settings, Upstream, whole};
use crate::effects::scene::SQLITE;
use crate::guard::scene::{Scene, request};
use crate::support::clock::TOO_LONG;

async fn version(request: Request<Incoming>) -> Response<Answering> {
    whole(200, format!("{:?}", request.version()))
}

/// An upstream that allows few streams at a time gets more connections, and no stream waits for another.
#[test]
fn where_one_connection_is_full_another_is_opened() {
    let gate = Arc::new(Semaphore::new(0));
    let (held, (here, hears)) = (gate.clone(), channel());
    let settings = Settings {
        streams_max: Some(2),
        tls: None,
    };
    let upstream = Upstream::new(settings, move |_| {
        let (held, here) = (held.clone(), here.clone());
        async move {
            here.send(()).expect("the test listens");
            held.acquire().await.expect("it is open").forget();
            whole(200, "")
        }
    });
    let scene = Scene::new(SQLITE, &upstream.url(), TWO);
    let mut waiting = Vec::new();
    for _ in 0..6 {
        let mut connection = scene.connect();
        connection.send(&request("GET", "/", "", "")).expect("sent");
        hears.recv_timeout(TOO_LONG).expect("it has arrived");
        waiting.push(connection);
    }
    assert_eq!(upstream.connections(), 3);
    gate.add_permits(6);
    for mut connection in waiting {
        assert_eq!(connection.answer().expect("an answer").status, 200);
    }
    gate.add_permits(1);
    assert_eq!(scene.ask(&request("GET", "/", "", "")).status, 200);
    assert_eq!(upstream.connections(), 3);
}

#[test]
fn the_config_says_which_version_is_spoken() {
    let upstream = Upstream::new(Settings::default(), version);
    let ask = |line: &str, head: &str| {
        let scene = Scene::new(SQLITE, &upstream.url(), line);
        let answer = scene.ask(&request("GET", "/", head, ""));
        String::from_utf8_lossy(answer.body()).into_owned()
    };
    assert_eq!(ask("", ""), "HTTP/1.1");
    assert_eq!(ask("upstream_http = \"1.1\"", ""), "HTTP/1.1");
    assert_eq!(ask(TWO, ""), "HTTP/2.0");
    // Without TLS there is nothing to choose by.
    assert_eq!(ask("upstream_http = \"auto\"", ""), "HTTP/1.1");
    // Only HTTP/1.1 can change the protocol.
    let upgrade = "connection: upgrade\r\nupgrade: websocket\r\n";
    assert_eq!(ask(TWO, upgrade), "HTTP/1.1");
}

/// An upstream with TLS that offers these protocols, and the certificate that it shows.
fn encrypted(protocols: &[&[u8]]) -> (Upstream, CertificateDer<'static>) {
    let made =
        rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).expect("a certificate");
    let certificate = made.cert.der().clone();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).expect("a key");
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut tls = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("the usual versions")
        .with_no_client_auth()
        .with_single_cert(vec![certificate.clone()], key)
        .expect("its key fits");
    tls.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    let settings = Settings {
        streams_max: None,
        tls: Some(Arc::new(tls)),
    };
    (Upstream::new(settings, version), certificate)
}

async fn ask(
    upstreams: &Upstreams,
    upstream: &Upstream,
    http: UpstreamHttp,
) -> Result<Response<Arriving>, NoAnswer> {
    let uri: Uri = format!("https://{}/", upstream.address)
        .parse()
        .expect("a URI");
    let body = Empty::<Bytes>::new().map_err(|never| match never {});
    let request = Request::get(uri.clone())
        .body(body.boxed_unsync())
        .expect("a request");
    let line = upstreams.line(&uri, http);
    let patience = Duration::from_secs(10);
    upstreams.send(&line, request, patience, None).await
}

#[tokio::test]
async fn over_tls_the_upstream_chooses() {
    use UpstreamHttp::{Auto, One, Two};
    let both: &[&[u8]] = &[b"h2", b"http/1.1"];
    let (one, none): (&[&[u8]], &[&[u8]]) = (&[b"http/1.1"], &[]);
    let table = [
        (both, One, Some("HTTP/1.1")),
        (both, Two, Some("HTTP/2.0")),
        (both, Auto, Some("HTTP/2.0")),
        (one, One, Some("HTTP/1.1")),
        (one, Auto, Some("HTTP/1.1")),
        (none, Auto, Some("HTTP/1.1")),
        (one, Two, None),
        (none, Two, None),
    ];
    for (protocols, http, want) in table {
        let (upstream, certificate) = encrypted(protocols);
        let upstreams = Upstreams::new(vec![certificate]).expect("TLS");
        for _ in 0..3 {
            match (ask(&upstreams, &upstream, http).await, want) {
                (Ok(answer), Some(want)) => {
                    let body = answer.into_body().collect().await.expect("a body");
                    assert_eq!(body.to_bytes(), want, "{protocols:?} {http:?}");
                }
                (Err(NoAnswer::NotSent { .. }), None) => {}
                (Ok(answer), None) => panic!("{protocols:?} {http:?}: {}", answer.status()),
                (Err(error), _) => panic!("{protocols:?} {http:?}: {error:?}"),
            }
        }
        // One to see what is chosen, and one for HTTP/1.1, if that is what was chosen.
        assert!(upstream.connections() <= 3, "{protocols:?} {http:?}");
    }
}
