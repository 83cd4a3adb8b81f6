//! The company's services: what the six effects go to.

use serde_json::Value;

use super::deed::{Deed, Mishap};
use super::tell::{Who, tell};
use super::world::{Act, Seen, World};

/// The customer whose onboarding cannot be set up at first, so that there is something half done.
pub(super) const UNLUCKY: &str = "acct_3";
/// As often as the schedule tries: the next one, which somebody has to ask for, goes well.
const UNLUCKY_TIMES: u64 = 4;

/// What repeating a request does here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The same state again.
    Sets,
    /// Nothing, if the key is known.
    Dedupes,
    /// The thing once more.
    Repeats,
}

/// What a service does with a repeat, and what its deed is called.
pub(super) fn kind(effect: &str) -> Option<(Kind, &'static str)> {
    Some(match effect {
        "activate-subscription" => (Kind::Sets, "subscription of"),
        "enable-features" => (Kind::Sets, "features for"),
        "ensure-workspace" => (Kind::Sets, "workspace of"),
        "post-finance-event" => (Kind::Dedupes, "finance line for"),
        "create-onboarding-task" => (Kind::Dedupes, "onboarding of"),
        "send-welcome-email" => (Kind::Repeats, "mail to"),
        _ => return None,
    })
}

/// One request of an effect.
pub(super) fn work(world: &World, seen: &Seen) -> Act {
    let effect = seen.header("hapax-effect").to_owned();
    let key = seen.header("idempotency-key");
    let key = key.strip_prefix(&format!("{effect}:")).unwrap_or(key);
    let (Some((kind, what)), Ok(body)) = (kind(&effect), serde_json::from_slice(&seen.body)) else {
        return Act::Answer(404, String::new());
    };
    let About {
        customer,
        fact,
        version,
    } = about(&effect, &body);
    let mut again = false;
    let deed = world.log.decide((&effect, key), |asked, done| {
        again = done;
        let mishap = mishap(world, &effect, key, &customer, asked);
        let repeats = !done || kind != Kind::Dedupes;
        Deed::Asked {
            did: mishap.does_it() && repeats,
            effect: effect.clone(),
            key: key.to_owned(),
            fact,
            version,
            mishap,
        }
    });
    let Deed::Asked { mishap, .. } = deed else {
        return Act::Answer(500, String::new());
    };
    narrate(
        &format!("{what} {customer}"),
        mishap,
        again && kind == Kind::Dedupes,
    );
    Act::of(mishap)
}

/// What a request is about: who, and the business fact.
struct About {
    customer: String,
    fact: String,
    version: Option<u64>,
}

fn about(effect: &str, body: &Value) -> About {
    let object = &body["data"]["object"];
    let text = |field: &str| object[field].as_str().unwrap_or_default().to_owned();
    let (customer, subscription) = (text("customer"), text("subscription"));
    let fact = match effect {
        "activate-subscription" | "ensure-workspace" => subscription,
        "create-onboarding-task" => format!("{customer} in {}", text("period")),
        _ => text("id"),
    };
    About {
        fact,
        customer,
        version: object["version"].as_u64(),
    }
}

/// The first try goes wrong now and then, the second seldom, the third never.
fn mishap(world: &World, effect: &str, key: &str, customer: &str, asked: u64) -> Mishap {
    if effect == "create-onboarding-task" && customer == UNLUCKY {
        return match asked <= UNLUCKY_TIMES {
            true => Mishap::FailsBefore,
            false => Mishap::None,
        };
    }
    let sides = match asked {
        1 => 14,
        2 => 30,
        _ => return Mishap::None,
    };
    match world.lots.below(sides, &[effect, key, &asked.to_string()]) {
        0 => Mishap::Busy,
        1 => Mishap::FailsAfter,
        2 => Mishap::HangsUp,
        3 => Mishap::TooSlow,
        // A mail that may or may not have left is looked for by the probe, whose "no" counts only after half a minute: too long to watch.
        4 if effect != "send-welcome-email" => Mishap::FailsBefore,
        _ => Mishap::None,
    }
}

fn narrate(what: &str, mishap: Mishap, known: bool) {
    let text = match mishap {
        Mishap::None if known => format!("{what}: asked again with the same key, known already"),
        Mishap::FailsAfter if known => format!("{what}: known already, then broke (500)"),
        Mishap::HangsUp if known => format!("{what}: known already, then hung up without a word"),
        Mishap::TooSlow if known => format!("{what}: known already, then too slow to say so"),
        Mishap::None => return,
        Mishap::Busy => format!("{what}: busy, come again (429)"),
        Mishap::FailsBefore => format!("{what}: broke before it was done (500)"),
        Mishap::FailsAfter => format!("{what}: done, then broke (500)"),
        Mishap::HangsUp => format!("{what}: done, then hung up without a word"),
        Mishap::TooSlow => format!("{what}: done, then too slow to say so"),
    };
    tell(Who::World, &text);
}

/// What Hapax asks when it cannot tell: did the mail with this key go out?
pub(super) fn sent(world: &World, seen: &Seen) -> Act {
    let mut pairs = form_urlencoded::parse(seen.query.as_bytes());
    let key = pairs.find(|(name, _)| name == "key");
    let key = key.map_or(String::new(), |(_, key)| key.into_owned());
    let applied = world.log.is_done("send-welcome-email", &key);
    let (customer, _) = key.split_once(':').unwrap_or((&key, ""));
    let answer = if applied { "yes" } else { "no" };
    let text =
        format!("no answer about the mail to {customer}; did it go out? the mailer says {answer}");
    tell(Who::Hapax, &text);
    Act::Answer(200, format!("{{\"applied\":{applied}}}"))
}
