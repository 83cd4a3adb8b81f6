//! The provisioning example as it stands in `examples/`, under duplicates and crashes: each effect happens as often as its class
//! allows. The services' own log is the judge.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::support::client::Connection;
use crate::support::clock::until;
use crate::support::example::example;
use crate::support::lots::Lots;
use crate::support::sender::{SECRET, Sender};
use crate::support::server::{Server, TOKEN};
use crate::support::site::Site;

/// Invoices, one customer each.
const INVOICES: usize = 40;
/// Crashes on the way.
const CRASHES: usize = 5;
/// A probe's "no" is believed 30 seconds after the lease; a `once` effect that a crash left open may need that.
const LONG: Duration = Duration::from_secs(150);
/// As long as a few requests take.
const REQUEST_STEPS: usize = 2_000_000;

/// The company's services, as a process. Ends with the value.
struct Services {
    child: Child,
    address: SocketAddr,
}

impl Services {
    fn start() -> Services {
        let mut child = Command::new(example("provisioning"))
            .args(["127.0.0.1:0", "--flaky"])
            .stdout(Stdio::piped())
            .spawn()
            .expect("the services start");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("piped");
        BufReader::new(stdout)
            .read_line(&mut line)
            .expect("it says where it listens");
        let address = line.trim().rsplit(' ').next().expect("an address");
        Services {
            address: address.parse().expect("an address"),
            child,
        }
    }

    /// What happened, by key: requests that came, and times that the thing was done.
    fn world(&self) -> [BTreeMap<String, u64>; 2] {
        let mut connection = Connection::open(self.address).expect("the services answer");
        let answer = connection
            .ask(b"GET /world HTTP/1.1\r\nhost: localhost\r\n\r\n")
            .expect("an answer");
        let world = answer.json();
        ["asked", "done"].map(|part| serde_json::from_value(world[part].clone()).expect("counts"))
    }
}

impl Drop for Services {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The example's own config, with its addresses made free ones and its lease short.
fn site(services: &Services) -> Site {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/provisioning/hapax.toml");
    let config = std::fs::read_to_string(file)
        .expect("the example's config")
        .replace("127.0.0.1:8080", "127.0.0.1:0")
        .replace("127.0.0.1:9000", &services.address.to_string());
    let mut site = Site::sqlite();
    site.configure(&format!("{config}\n[limits]\nlease = \"3s\"\n"));
    site.set("HAPAX_ADMIN_TOKEN", TOKEN);
    site.set("BILLING_SECRET", SECRET);
    site
}

/// An invoice; every third customer is an enterprise. Its event id differs on every attempt, as some platforms have it.
fn invoice(number: usize, attempt: usize) -> Vec<u8> {
    let plan = if number.is_multiple_of(3) {
        "enterprise"
    } else {
        "team"
    };
    let body = serde_json::json!({
        "id": format!("evt_{number}_{attempt}"), "object": "event", "type": "invoice.paid", "created": 1_700_000_000,
        "data": { "object": {
            "id": format!("in_{number}"), "customer": format!("acct_{number}"), "subscription": format!("sub_{number}"),
            "plan": plan, "period": "2026-11",
        } },
    });
    body.to_string().into_bytes()
}

fn request(sender: &Sender, body: &[u8]) -> Vec<u8> {
    let length = body.len().to_string();
    let mut request = sender.head(body, &[("content-length", &length)]);
    request.extend_from_slice(body);
    request
}

fn status_of_all(server: &Server) -> Vec<String> {
    let events = server.get("/api/v1/event?limit=250").json();
    let events = events["data"].as_array().cloned().unwrap_or_default();
    let status = |event: &Value| event["status"].as_str().unwrap_or("none").to_owned();
    events.iter().map(status).collect()
}

/// D1-D6: duplicates, lost answers, crashes; and each effect happens as often as its class allows.
#[test]
fn every_invoice_is_provisioned_and_no_mail_goes_out_twice() {
    let services = Services::start();
    let site = site(&services);
    let sender = Sender::to("billing");
    let mut lots = Lots::new(7);
    let mut unacknowledged: Vec<usize> = (0..INVOICES).collect();
    for crash in 0..CRASHES {
        let server = site.start();
        let mut connection = server.connect();
        let several: Vec<usize> = (0..INVOICES / 2).map(|_| lots.below(INVOICES)).collect();
        for number in several {
            let body = invoice(number, crash);
            let answer = connection.ask(&request(&sender, &body)).expect("an answer");
            assert_eq!(answer.status, 200, "{answer:?}");
            unacknowledged.retain(|other| *other != number);
        }
        lots.linger(REQUEST_STEPS);
        server.kill();
    }
    let server = site.start();
    for number in unacknowledged {
        let answer = server.ask(&request(&sender, &invoice(number, 99)));
        assert_eq!(answer.status, 200, "{answer:?}");
    }
    until(LONG, "every invoice is provisioned", || {
        let all = status_of_all(&server);
        let done = all.iter().all(|status| status == "completed");
        (all.len() == INVOICES && done).then_some(())
    });
    check(&services);
}

fn check(services: &Services) {
    let [asked, done] = services.world();
    for number in 0..INVOICES {
        let plan = if number.is_multiple_of(3) {
            "enterprise"
        } else {
            "team"
        };
        let mut expected = vec![
            format!("activate-subscription:sub_{number}"),
            format!("enable-features:acct_{number}:{plan}"),
            format!("ensure-workspace:acct_{number}"),
            format!("post-finance-event:acct_{number}:in_{number}"),
            format!("send-welcome-email:acct_{number}:in_{number}"),
        ];
        if plan == "enterprise" {
            expected.push(format!("create-onboarding-task:acct_{number}:2026-11"));
        }
        for key in expected {
            assert_eq!(done.get(&key), Some(&1), "{key} in {done:#?}");
        }
    }
    let tasks = |key: &&String| key.starts_with("create-onboarding-task");
    assert_eq!(done.keys().filter(tasks).count(), INVOICES.div_ceil(3));
    assert!(asked.len() == done.len(), "nothing else was asked for");
}
