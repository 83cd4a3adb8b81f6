//! The provisioning example as it stands in `examples/`, under duplicates and crashes: each effect happens as often as its class
//! allows. The services' own log is the judge.

use std::collections::{BTreeMap, HashMap};
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::effects::judge::ledger;
use crate::effects::scene::ended;
use crate::support::acks::{Acks, Told};
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
/// An invoice that comes after all others. Nothing goes wrong with its services, so nobody waits for a probe.
const LAST: usize = 107;
/// A probe's "no" is believed 30 seconds after lease and timeout. A mail may need that twice: a crash left it open before its request had
/// arrived, and then its service fails.
const LONG: Duration = Duration::from_secs(150);
/// When the example tries again, as its config says it.
const SCHEDULE: &str = r#"["0s", "1s", "5s", "1m", "10m", "1h"]"#;
/// When the test does: an effect may lose one try to each crash and one to its service, and the next one is never far away.
const SOON: &str = r#"["0s", "1s", "1s", "1s", "1s", "1s", "1s", "1s"]"#;
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

/// The example's own config, with its addresses made free ones, its lease short, and its tries close to each other.
fn site(services: &Services) -> Site {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/provisioning/hapax.toml");
    let config = std::fs::read_to_string(file).expect("the example's config");
    assert!(config.contains(SCHEDULE), "the example's schedule");
    let config = config
        .replace(SCHEDULE, SOON)
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

/// Sends invoices, and checks the answers: of each invoice the first is new, and all others are duplicates of the same event.
fn send(
    server: &Server,
    acks: &mut Acks,
    numbers: impl IntoIterator<Item = usize>,
    attempt: usize,
) {
    let sender = Sender::to("billing");
    let mut connection = server.connect();
    for number in numbers {
        let body = invoice(number, attempt);
        let answer = connection.ask(&request(&sender, &body)).expect("an answer");
        let Told::Acknowledged { id, duplicate } = Told::read(&answer) else {
            panic!("invoice {number} was refused: {answer:?}");
        };
        let known = acks.len();
        acks.add(&format!("in_{number}"), id);
        assert_eq!(
            duplicate,
            acks.len() == known,
            "invoice {number}: {answer:?}"
        );
    }
}

#[track_caller]
fn wait_until_provisioned(server: &Server, invoices: usize) {
    until(LONG, "every invoice is provisioned", || {
        let all = status_of_all(server);
        let done = all.iter().all(|status| status == "completed");
        (all.len() == invoices && done).then_some(())
    });
}

/// A4, D1-D6: duplicates, lost answers, crashes; and each effect happens as often as its class allows.
#[test]
fn every_invoice_is_provisioned_and_no_mail_goes_out_twice() {
    let services = Services::start();
    let site = site(&services);
    let mut lots = Lots::new(7);
    let mut acks = Acks::default();
    for crash in 0..CRASHES {
        let server = site.start();
        let several: Vec<usize> = (0..INVOICES / 2).map(|_| lots.below(INVOICES)).collect();
        send(&server, &mut acks, several, crash);
        lots.linger(REQUEST_STEPS);
        server.kill();
    }
    let server = site.start();
    send(&server, &mut acks, 0..INVOICES, CRASHES);
    wait_until_provisioned(&server, INVOICES);
    check(&services);
    let [asked, _] = services.world();
    check_attempts(&ledger(&server), &asked);

    // All is done. Neither a crash, nor every invoice once more, nor something new brings any of it back (D2).
    server.kill();
    let server = site.start();
    send(&server, &mut acks, 0..INVOICES, CRASHES + 1);
    send(&server, &mut acks, [LAST], CRASHES + 1);
    wait_until_provisioned(&server, INVOICES + 1);
    let [later, _] = services.world();
    for (key, times) in &asked {
        assert_eq!(later.get(key), Some(times), "{key} was done already");
    }
}

/// D1, D2, D4: every request is an attempt in the ledger, none came after a success, and none without a reason. The services go wrong
/// at most once for each key, so whatever is more than two was lost with a server; and what `once` has lost only goes on after
/// its probe, which the services' own count of mails vouches for.
#[track_caller]
fn check_attempts(ledger: &HashMap<String, Value>, asked: &BTreeMap<String, u64>) {
    assert_eq!(ledger.len(), asked.len());
    for (key, effect) in ledger {
        assert_eq!(effect["state"], "done", "{effect:#}");
        let attempts = ended(effect);
        let requests = usize::try_from(asked[key]).expect("a few");
        assert!(requests <= attempts.len(), "{requests}: {effect:#}");
        let lost = |attempt: &&Value| {
            let outcome = attempt["outcome"].as_str();
            outcome.is_some_and(|outcome| outcome.starts_with("lost"))
        };
        let lost = attempts.iter().filter(lost).count();
        assert!(requests <= 2 + lost, "{requests}: {effect:#}");
        match attempts.iter().position(|attempt| attempt["status"] == 200) {
            Some(applied) => assert_eq!(applied, attempts.len() - 1, "{effect:#}"),
            None => assert_eq!(effect["repeat"], "once", "only a probe knows: {effect:#}"),
        }
    }
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
