//! What the state of an effect means to somebody who looks at it, and what to do next.

use serde_json::Value;

use super::answer::text;

/// A few sentences for a state that asks for something; nothing for one that does not.
pub(super) fn of(effect: &Value) -> Option<String> {
    match (effect["state"].as_str()?, effect["gate"].as_str()) {
        ("uncertain", _) => Some(UNCERTAIN.to_owned()),
        ("dead", _) => Some(DEAD.to_owned()),
        ("pending", Some("waiting")) => Some(WAITING.to_owned()),
        ("pending", Some("review")) => Some(format!(
            "review: it waits for a person and is not sent; `hapax events show {}` says why",
            text(&effect["eventId"])
        )),
        _ => None,
    }
}

const UNCERTAIN: &str = "\
uncertain: a request left, or may have, and no definite answer came back.
Nobody can tell whether it was applied, and a second one could apply it twice;
so nothing more is sent. An effect with a `probe` is asked about by itself.
Otherwise look at the target for the idempotency key, and say what you found:
`hapax effects resolve ID --outcome applied|not_applied|skip --reason WHY`.";

const DEAD: &str = "\
dead: its whole schedule was used up, and nothing more is sent. Look at what its
attempts say, and mend the target; then `hapax events retry EVENT --reason WHY`
tries again. Where its source has on_duplicate_of_failed = \"retry\", the
provider's next redelivery does, too.";

const WAITING: &str = "\
waiting: others have to end first, those that `after` names or earlier ones of
the same object. It goes on by itself once they have; one that is dead or
uncertain may hold it up for longer.";
