//! The billing platform: signs and sends, and then sends again, in another order, late; and somebody else forges.

use std::time::Duration;

use hapax_ledger::time::Span;
use hapax_verify::{Secret, SignInput, Verifier, sign};
use serde_json::{Value, json};

use super::super::client::Client;
use super::deed::{Deed, Heard, Log, Manner};
use super::lots::Lots;
use super::tell::{Who, tell};
use crate::clock;
use crate::config::SourceConfig;

/// How old a captured request is: more than any provider's tolerance.
const LATE: Span = Span::from_days(1);
/// What somebody would sign with who does not know the secret.
const OTHER_SECRET: &str = "whsec_what_somebody_else_made_up_for_themselves";
/// How often an honest provider tries until it is heard, and how long it waits in between.
const TRIES_MAX: u32 = 20;
const TRY_AGAIN: Duration = Duration::from_millis(250);

/// The billing platform, and whoever speaks in its name.
pub(super) struct Provider {
    pub(super) client: Client,
    pub(super) source: SourceConfig,
    pub(super) log: Log,
    pub(super) lots: Lots,
}

/// A customer who bought something.
#[derive(Clone, Copy, Debug)]
pub(super) struct Purchase {
    pub(super) number: u64,
}

impl Purchase {
    pub(super) fn customer(self) -> String {
        format!("acct_{}", self.number)
    }

    /// Every third customer is a large one.
    fn plan(self) -> &'static str {
        match self.number.is_multiple_of(3) {
            true => "enterprise",
            false => "team",
        }
    }

    fn body(self, event: &str, kind: &str, object: &str, version: u64) -> Vec<u8> {
        let number = self.number;
        let body = json!({
            "id": event, "object": "event", "type": kind, "created": clock::now().micros() / 1_000_000,
            "data": { "object": {
                "id": object, "customer": self.customer(), "subscription": format!("sub_{number}"),
                "plan": self.plan(), "period": "2026-11", "version": version,
            } },
        });
        body.to_string().into_bytes()
    }
}

impl Provider {
    /// An invoice was paid: sent as often as chance has it, under another event id each time.
    pub(super) async fn invoice(&self, purchase: Purchase) {
        let number = purchase.number.to_string();
        let object = format!("in_{number}");
        let times = 1 + self.lots.below(4, &["times", &number]);
        let at_once = self.lots.below(2, &["at once", &number]) == 0;
        let send = |time: u64| {
            let event = format!("evt_{number}_{time}");
            let body = purchase.body(&event, "invoice.paid", &object, 1);
            self.until_heard(object.clone(), event, body)
        };
        let mut heard = Vec::new();
        if at_once {
            heard = join(times, send).await;
        } else {
            for time in 0..times {
                heard.push(send(time).await);
            }
        }
        let count = |wanted: Heard| heard.iter().filter(|heard| **heard == wanted).count();
        let how = match (times, at_once) {
            (1, _) => "sent once".to_owned(),
            (times, true) => format!("sent {times} times at once"),
            (times, false) => format!("sent {times} times"),
        };
        let (accepted, duplicates) = (count(Heard::Accepted), count(Heard::Duplicate));
        let customer = purchase.customer();
        tell(
            Who::Provider,
            &format!(
                "invoice {object} of {customer} {how}: {accepted} accepted, {duplicates} known already"
            ),
        );
    }

    /// Changes of plan, not in the order in which they happened.
    pub(super) async fn reordered(&self, purchase: Purchase) {
        let number = purchase.number.to_string();
        let order = match self.lots.below(2, &["order", &number]) {
            0 => [2, 1, 3],
            _ => [1, 3, 2],
        };
        let object = format!("sub_{number}");
        for version in order {
            let event = format!("evt_sub_{number}_{version}");
            let kind = "customer.subscription.updated";
            let body = purchase.body(&event, kind, &object, version);
            self.until_heard(object.clone(), event, body).await;
        }
        let [first, second, third] = order;
        tell(
            Who::Provider,
            &format!(
                "plan changes of {object} sent as {first}, {second}, {third}: what is older than the newest is skipped"
            ),
        );
    }

    /// Somebody who does not know the secret.
    pub(super) async fn forged(&self, purchase: Purchase) {
        let scheme = self.source.verifier.scheme().clone();
        let Ok(other) = Verifier::new(scheme, vec![Secret::from(OTHER_SECRET)]) else {
            return;
        };
        let heard = self
            .strange(purchase, Manner::Forged, &other, clock::now().micros())
            .await;
        tell(Who::Provider, &format!("a forged invoice: {heard}"));
    }

    /// Somebody who has captured a request of yesterday.
    pub(super) async fn late(&self, purchase: Purchase) {
        let at = (clock::now() - LATE).micros();
        let heard = self
            .strange(purchase, Manner::Late, &self.source.verifier, at)
            .await;
        tell(
            Who::Provider,
            &format!("a request captured yesterday: {heard}"),
        );
    }

    async fn strange(
        &self,
        purchase: Purchase,
        manner: Manner,
        signer: &Verifier,
        at: i64,
    ) -> &'static str {
        let word = match manner {
            Manner::Late => "late",
            Manner::Honest | Manner::Forged => "forged",
        };
        let object = format!("in_{word}_{}", purchase.number);
        let event = format!("evt_{object}");
        let body = purchase.body(&event, "invoice.paid", &object, 1);
        let (heard, id) = self.send(signer, &event, &body, at).await;
        self.log.note(Deed::Sent {
            object,
            manner,
            heard,
            event: id,
        });
        match heard {
            Heard::Refused => "refused (401)",
            Heard::Nothing => "no answer",
            Heard::Accepted | Heard::Duplicate => "ACCEPTED",
        }
    }

    /// What a real provider does: again until somebody says that it is safe.
    async fn until_heard(&self, object: String, event: String, body: Vec<u8>) -> Heard {
        let mut heard = Heard::Nothing;
        for tries in 0..TRIES_MAX {
            if tries > 0 {
                tokio::time::sleep(TRY_AGAIN).await;
            }
            let now = clock::now().micros();
            let (said, id) = self.send(&self.source.verifier, &event, &body, now).await;
            heard = said;
            self.log.note(Deed::Sent {
                object: object.clone(),
                manner: Manner::Honest,
                heard,
                event: id,
            });
            if heard != Heard::Nothing {
                break;
            }
            if tries == 0 {
                let text = format!("{object} is not acknowledged, and is sent again until it is");
                tell(Who::Provider, &text);
            }
        }
        heard
    }

    /// One request; what came back, and the id of the event.
    async fn send(
        &self,
        signer: &Verifier,
        event: &str,
        body: &[u8],
        at: i64,
    ) -> (Heard, Option<String>) {
        let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
        let input = SignInput {
            method: "POST",
            url: None,
            headers: &headers,
            body,
            id: event,
            now: at,
        };
        let Ok(signed) = sign(signer, &input) else {
            return (Heard::Nothing, None);
        };
        let headers: Vec<_> = headers.into_iter().chain(signed.headers).collect();
        let path = format!("/in/{}", self.source.name);
        let Ok(answer) = self.client.deliver(&path, &headers, body).await else {
            return (Heard::Nothing, None);
        };
        let said: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        let id = said["eventId"].as_str().map(str::to_owned);
        let heard = match (answer.status, said["duplicate"].as_bool()) {
            (200, Some(false)) => Heard::Accepted,
            (200, Some(true)) => Heard::Duplicate,
            (401, _) => Heard::Refused,
            _ => Heard::Nothing,
        };
        (heard, id)
    }
}

/// All of them at a time, in order.
async fn join<F: Future<Output = Heard>>(times: u64, send: impl Fn(u64) -> F) -> Vec<Heard> {
    let mut all: Vec<_> = (0..times).map(|time| Box::pin(send(time))).collect();
    let mut heard: Vec<Option<Heard>> = all.iter().map(|_| None).collect();
    std::future::poll_fn(move |context| {
        for (future, heard) in all.iter_mut().zip(&mut heard) {
            if heard.is_none()
                && let std::task::Poll::Ready(done) = future.as_mut().poll(context)
            {
                *heard = Some(done);
            }
        }
        match heard.iter().all(Option::is_some) {
            true => std::task::Poll::Ready(heard.iter().copied().flatten().collect()),
            false => std::task::Poll::Pending,
        }
    })
    .await
}
