//! The gate: where a consumer's URL may lead, judged vector by vector, and with a canary on loopback that must see nobody.

mod corpus;
mod rebinding;

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use hapax::dispatch::answer::Keep;
use hapax::dispatch::connect::Reach;
use hapax::dispatch::gate::{Refused, Rules};
use hapax::dispatch::resolve::Resolve;
use hapax::dispatch::sender::{Outgoing, Sender, Settings};
use hapax_ledger::outcome::{NotSent, Outcome};
use http::{HeaderMap, Method, Uri};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use self::corpus::{Vector, What, vectors};

/// For whatever is refused or answered at once; only a failing test waits for it.
const PATIENCE: Duration = Duration::from_secs(20);
const BLOCKED: Outcome = Outcome::NotSent {
    why: NotSent::Blocked,
};
const OK: Outcome = Outcome::Answered {
    status: 200,
    retry_after: None,
};

/// Answers 200 to everybody, and counts them.
struct Canary {
    address: SocketAddr,
    seen: Arc<AtomicUsize>,
}

impl Canary {
    /// On every address of this machine, or on one.
    async fn on(address: &str) -> Canary {
        let listener = TcpListener::bind(address).await.expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let seen = Arc::new(AtomicUsize::new(0));
        let counted = seen.clone();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                counted.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(async move {
                    let mut read = [0; 4096];
                    let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
                    while stream.read(&mut read).await.is_ok_and(|bytes| bytes > 0) {
                        if stream.write_all(answer).await.is_err() {
                            return;
                        }
                    }
                });
            }
        });
        Canary { address, seen }
    }

    /// On both kinds of addresses, or a connection to `::1` would be seen by nobody.
    async fn everywhere() -> Canary {
        Canary::on("[::]:0").await
    }

    fn seen(&self) -> usize {
        self.seen.load(Ordering::SeqCst)
    }
}

/// Names with the addresses that a test gave them; every other name is this machine.
#[derive(Default)]
struct Names(HashMap<String, Vec<IpAddr>>);

#[async_trait]
impl Resolve for Names {
    async fn resolve(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        let here = || vec![IpAddr::from([127, 0, 0, 1])];
        Ok(self.0.get(host).cloned().unwrap_or_else(here))
    }

    fn lookups_max(&self) -> usize {
        1
    }
}

fn sender(resolver: impl Resolve + 'static) -> Sender {
    let resolver: Arc<dyn Resolve> = Arc::new(resolver);
    let settings = Settings {
        resolver: resolver.clone(),
        consumers: resolver,
        ..Settings::default()
    };
    Sender::new(settings).expect("no additional roots")
}

fn post(url: Uri, reach: Reach) -> Outgoing {
    Outgoing {
        method: Method::POST,
        url,
        headers: HeaderMap::new(),
        body: Bytes::from_static(b"hello"),
        timeout: PATIENCE,
        reach,
        keep: Keep::Excerpt,
        secrets_to_redact: [].into(),
    }
}

fn open(subnet: &str) -> Arc<Rules> {
    let subnet = subnet.parse().expect("a subnet");
    Arc::new(Rules::new(vec![subnet], Vec::new()))
}

#[test]
fn every_vector_is_judged_as_the_corpus_says() {
    let vectors = vectors(8_080);
    assert!(vectors.len() >= 300, "{} vectors", vectors.len());
    let mut wrong = Vec::new();
    for vector in &vectors {
        let judged = match &vector.what {
            What::Url(url) => vector.rules.url(url).map(drop),
            What::Addresses(addresses) => vector.rules.vet(addresses),
        };
        let word = judged.as_ref().map_or_else(Refused::word, |()| "allowed");
        if word != vector.verdict {
            wrong.push(format!("{}: {word}", vector.line));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// G5: what the rule refuses, the sender refuses, and nobody is connected to.
#[tokio::test]
async fn the_canary_sees_nobody() {
    let canary = Canary::everywhere().await;
    let vectors = vectors(canary.address.port());
    let named = |(index, vector): (usize, &Vector)| match &vector.what {
        What::Url(_) => None,
        What::Addresses(addresses) => Some((host(index), addresses.clone())),
    };
    let names = vectors.iter().enumerate().filter_map(named).collect();
    let sender = sender(Names(names));
    let (mut sent, mut wrong) = (0, Vec::new());
    for (index, vector) in vectors.iter().enumerate() {
        if vector.verdict == "allowed" {
            continue;
        }
        let url = match &vector.what {
            What::Url(url) => url.clone(),
            What::Addresses(_) => format!("http://{}:{}/", host(index), canary.address.port()),
        };
        // Some of them no client could even hold.
        let Ok(url) = Uri::try_from(url) else {
            continue;
        };
        let reach = Reach::Consumer(Arc::new(vector.rules.clone()));
        let outcome = sender.send(post(url, reach)).await.outcome;
        sent += 1;
        if outcome != BLOCKED {
            wrong.push(format!("{}: {outcome}", vector.line));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(sent >= 300, "{sent} were tried");
    // Whoever had come before would be counted before this one.
    let url = format!("http://here.example:{}/", canary.address.port());
    let url = Uri::try_from(url).expect("a URL");
    let reach = Reach::Consumer(open("127.0.0.0/8"));
    assert_eq!(sender.send(post(url, reach)).await.outcome, OK);
    assert_eq!(canary.seen(), 1);
    let url = format!("http://[::1]:{}/", canary.address.port());
    let url = Uri::try_from(url).expect("a URL");
    let reach = Reach::Consumer(open("::1/128"));
    assert_eq!(sender.send(post(url, reach)).await.outcome, OK);
    assert_eq!(canary.seen(), 2, "it sees both kinds");
}

fn host(index: usize) -> String {
    format!("v{index}.example")
}

/// G5: a connection to where nobody asked for is not used. That `0.0.0.0` leads to this machine is the system's doing: no rule has opened that.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_connection_that_led_elsewhere_is_not_used() {
    let canary = Canary::on("127.0.0.1:0").await;
    let sender = sender(Names::default());
    let url = || {
        let url = format!("http://0.0.0.0:{}/", canary.address.port());
        Uri::try_from(url).expect("a URL")
    };
    let sent = sender.send(post(url(), Reach::Consumer(open("0.0.0.0/32"))));
    let sent = sent.await;
    assert_eq!(sent.outcome, BLOCKED);
    assert_eq!(sent.error.as_deref(), Some("connected to another address"));
    // The operator's own URLs lead wherever they lead.
    let sent = sender.send(post(url(), Reach::Anywhere)).await;
    assert_eq!(sent.outcome, OK);
}

/// A connection that was opened under other rules is nobody's way around these.
#[tokio::test]
async fn connections_are_not_shared_between_rules() {
    let canary = Canary::on("127.0.0.1:0").await;
    let sender = sender(Names::default());
    let url = || Uri::try_from(format!("http://{}/", canary.address)).expect("a URL");
    let by_name = || {
        let port = canary.address.port();
        Uri::try_from(format!("http://here.example:{port}/")).expect("a URL")
    };
    let closed = || Reach::Consumer(Arc::default());
    let opened = || Reach::Consumer(open("127.0.0.0/8"));
    for url in [url(), by_name()] {
        let table = [
            (Reach::Anywhere, OK),
            (closed(), BLOCKED),
            (opened(), OK),
            (closed(), BLOCKED),
            (Reach::Anywhere, OK),
        ];
        for (reach, outcome) in table {
            let sent = sender.send(post(url.clone(), reach.clone())).await;
            assert_eq!(sent.outcome, outcome, "{url} {reach:?}");
        }
    }
    assert_eq!(canary.seen(), 4, "two for each, one per reach");
}
