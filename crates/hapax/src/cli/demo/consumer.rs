//! The customer's endpoint: verifies what it gets, takes each message once, and is flaky.

use std::sync::{Mutex, PoisonError};

use hapax_verify::{Request, Secret, Verifier, provider};

use super::deed::{Deed, MESSAGE, Mishap};
use super::tell::{Who, tell};
use super::world::{Act, Seen, World};
use crate::clock;

/// What the customer knows of its secret.
#[derive(Default)]
pub(super) struct Consumer {
    verifier: Mutex<Option<Verifier>>,
}

impl Consumer {
    /// Verifies with this secret from now on; says whether it is one.
    pub(super) fn learn(&self, secret: &str) -> bool {
        let scheme = provider::find("standard-webhooks").map(provider::Provider::scheme);
        let verifier = scheme
            .and_then(|scheme| Verifier::new(scheme, vec![Secret::new(secret.as_bytes())]).ok());
        let known = verifier.is_some();
        *self.verifier.lock().unwrap_or_else(PoisonError::into_inner) = verifier;
        known
    }

    fn is_genuine(&self, seen: &Seen) -> bool {
        let headers: Vec<(&str, &[u8])> = seen
            .headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_bytes()))
            .collect();
        let request = Request {
            method: "POST",
            url: None,
            headers: &headers,
            body: &seen.body,
            now: clock::now().micros(),
        };
        let verifier = self.verifier.lock().unwrap_or_else(PoisonError::into_inner);
        let verified = verifier.as_ref().map(|verifier| verifier.verify(&request));
        verified.is_some_and(|verified| verified.is_ok())
    }
}

/// One delivery.
pub(super) fn take(world: &World, seen: &Seen) -> Act {
    let message = seen.header("webhook-id").to_owned();
    let genuine = world.consumer.is_genuine(seen);
    let mut mishap = Mishap::None;
    let mut known = false;
    world.log.decide((MESSAGE, &message), |asked, done| {
        known = done;
        mishap = match asked {
            1 => match world.lots.below(6, &[MESSAGE, &message]) {
                0 => Mishap::Busy,
                1 => Mishap::FailsBefore,
                2 => Mishap::HangsUp,
                _ => Mishap::None,
            },
            _ => Mishap::None,
        };
        Deed::Received {
            message: message.clone(),
            genuine,
            took: genuine && !done && mishap.does_it(),
        }
    });
    if !genuine {
        tell(
            Who::Customer,
            "a message whose signature does not fit: refused",
        );
        return Act::Answer(401, String::new());
    }
    match mishap {
        Mishap::Busy => tell(Who::Customer, "endpoint: busy, come again (429)"),
        Mishap::FailsBefore => tell(Who::Customer, "endpoint: broken (500)"),
        Mishap::HangsUp => tell(Who::Customer, "endpoint: message taken, then hung up"),
        _ if known => tell(
            Who::Customer,
            "endpoint: got a message again, by its id; taken before",
        ),
        _ => {}
    }
    Act::of(mishap)
}
