//! The key ladder: what identifies an event, from the best name it has to the worst.
//!
//! The source's business key, the provider's stable id, the preset's composed key, the hash of the body. A rung whose
//! fields are not all there is passed over and said so; a missing field never becomes an empty part, because
//! then every event that lacks it would be the same event.

use crate::event::KeyOrigin;
use crate::extract::{Extracted, Slot};
use crate::key::{BodyHash, composite};

/// The provider's own event id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProviderId {
    /// Where it stands.
    pub field: Slot,
    /// Does the signature cover it? If not it is evidence, not identity (B4).
    pub signed: bool,
}

/// The rungs that a source has.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Ladder {
    /// The fields that the source's config names; empty if it names none. To name a header here is to trust it.
    pub business: Vec<Slot>,
    /// The provider's id, if it has one.
    pub provider_id: Option<ProviderId>,
    /// The source trusts an id that the signature does not cover. The key is then that id alone.
    pub trust_unsigned_id: bool,
    /// The fields that the preset puts together; empty if there are none.
    pub composed: Vec<Slot>,
    /// The provider is known to change the body between attempts, so that its hash identifies nothing.
    pub body_varies: bool,
}

/// What the ladder found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Derived {
    /// A key.
    Key {
        /// The key, unique among all keys of this ladder.
        text: String,
        /// The rung it was found on.
        origin: KeyOrigin,
        /// The rungs above that were declared and had a field missing.
        fell: Vec<KeyOrigin>,
    },
    /// No rung holds. The event is kept under its body's hash, so that exact repeats still meet, and a person looks.
    NeedsReview {
        /// The key it is kept under.
        text: String,
        /// Why, for the person who looks.
        reason: &'static str,
        /// The rungs that were declared and had a field missing.
        fell: Vec<KeyOrigin>,
    },
}

impl Derived {
    /// The key the event is kept under.
    pub fn text(&self) -> &str {
        match self {
            Derived::Key { text, .. } | Derived::NeedsReview { text, .. } => text,
        }
    }

    /// The rungs that were declared and had a field missing: counted, so that a key that fell is noticed.
    pub fn fell(&self) -> &[KeyOrigin] {
        match self {
            Derived::Key { fell, .. } | Derived::NeedsReview { fell, .. } => fell,
        }
    }

    /// The rung it was found on.
    pub fn origin(&self) -> KeyOrigin {
        match self {
            Derived::Key { origin, .. } => *origin,
            Derived::NeedsReview { .. } => KeyOrigin::Body,
        }
    }
}

impl Ladder {
    /// Derives the key of an event from its fields and the hash of its raw body.
    pub fn derive(&self, fields: &Extracted<'_>, body: BodyHash) -> Derived {
        let mut fell = Vec::new();
        for origin in [
            KeyOrigin::Business,
            KeyOrigin::Provider,
            KeyOrigin::Composed,
        ] {
            match self.rung(origin, fields) {
                Rung::Absent => {}
                Rung::Missing => fell.push(origin),
                Rung::Holds(text) => return Derived::Key { text, origin, fell },
            }
        }
        let text = body_key(body);
        if self.body_varies {
            let reason = "no field that identifies this event is present, and this provider's bodies change between attempts";
            return Derived::NeedsReview { text, reason, fell };
        }
        let origin = KeyOrigin::Body;
        Derived::Key { text, origin, fell }
    }

    /// The provider's event id as it stands in the request, trusted or not: evidence for the timeline.
    pub fn provider_event_id<'f>(&self, fields: &'f Extracted<'_>) -> Option<&'f str> {
        fields.filled(self.provider_id?.field)
    }

    fn rung(&self, origin: KeyOrigin, fields: &Extracted<'_>) -> Rung {
        match (origin, self.provider_id) {
            (KeyOrigin::Business, _) => joined(&self.business, fields, ""),
            // Where a business key was declared, both rungs are arrays; a tag keeps them apart.
            (KeyOrigin::Composed, _) if self.business.is_empty() => {
                joined(&self.composed, fields, "")
            }
            (KeyOrigin::Composed, _) => joined(&self.composed, fields, COMPOSED_PREFIX),
            (KeyOrigin::Provider, Some(id)) if id.signed || self.trust_unsigned_id => {
                match fields.filled(id.field) {
                    Some(text) => Rung::Holds(provider_key(text)),
                    None => Rung::Missing,
                }
            }
            (KeyOrigin::Provider | KeyOrigin::Body, _) => Rung::Absent,
        }
    }
}

enum Rung {
    Absent,
    Missing,
    Holds(String),
}

const BODY_PREFIX: &str = "sha256:";

/// The key of an event that nothing identifies but its bytes.
pub fn body_key(body: BodyHash) -> String {
    format!("{BODY_PREFIX}{body}")
}
const COMPOSED_PREFIX: &str = "composed:";
const PROVIDER_PREFIX: &str = "id:";

fn joined(slots: &[Slot], fields: &Extracted<'_>, prefix: &str) -> Rung {
    if slots.is_empty() {
        return Rung::Absent;
    }
    let parts: Option<Vec<&str>> = slots.iter().map(|slot| fields.filled(*slot)).collect();
    match parts {
        Some(parts) => Rung::Holds(format!("{prefix}{}", composite(&parts))),
        None => Rung::Missing,
    }
}

/// The provider's id is the key as it is, unless it looks like a key of another rung.
fn provider_key(id: &str) -> String {
    let taken = ["[", BODY_PREFIX, COMPOSED_PREFIX, PROVIDER_PREFIX];
    if taken.iter().any(|prefix| id.starts_with(prefix)) {
        format!("{PROVIDER_PREFIX}{id}")
    } else {
        id.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extract::{BodyFormat, Fields};

    struct Source {
        fields: Fields,
        ladder: Ladder,
    }

    fn source(business: &[&str], id: Option<(&str, bool)>, composed: &[&str]) -> Source {
        let mut fields = Fields::new();
        let mut add = |text: &str| fields.add(&text.parse().expect(text));
        let ladder = Ladder {
            business: business.iter().map(|text| add(text)).collect(),
            provider_id: id.map(|(text, signed)| ProviderId {
                field: add(text),
                signed,
            }),
            composed: composed.iter().map(|text| add(text)).collect(),
            ..Ladder::default()
        };
        Source { fields, ladder }
    }

    fn derive(source: &Source, body: &str) -> Derived {
        let headers: &[(&str, &str)] = &[("x-delivery", "d-1")];
        let found = source
            .fields
            .extract(BodyFormat::Json, body.as_bytes(), headers)
            .expect(body);
        source.ladder.derive(&found, BodyHash::of(body.as_bytes()))
    }

    fn key(source: &Source, body: &str) -> (String, KeyOrigin) {
        let derived = derive(source, body);
        (derived.text().to_owned(), derived.origin())
    }

    #[test]
    fn each_rung_holds_when_those_above_are_missing() {
        let source = source(&["type", "obj.id"], Some(("id", true)), &["name", "at"]);
        let table = [
            (
                r#"{"type":"t","obj":{"id":7},"id":"evt_1"}"#,
                r#"["t","7"]"#,
                KeyOrigin::Business,
                0,
            ),
            (
                r#"{"type":"t","obj":{"id":""},"id":"evt_1"}"#,
                "evt_1",
                KeyOrigin::Provider,
                1,
            ),
            (
                r#"{"type":"t","id":null,"name":"n","at":1}"#,
                r#"composed:["n","1"]"#,
                KeyOrigin::Composed,
                2,
            ),
        ];
        for (body, text, origin, fell) in table {
            assert_eq!(key(&source, body), (text.to_owned(), origin), "{body}");
            assert_eq!(derive(&source, body).fell().len(), fell, "{body}");
        }
        let (text, origin) = key(&source, "{}");
        assert_eq!(origin, KeyOrigin::Body);
        assert_eq!(text, format!("sha256:{}", BodyHash::of(b"{}")));
    }

    #[test]
    fn an_unsigned_id_is_evidence_unless_trusted() {
        // B4: the key is a function of authenticated content.
        let mut github = source(&[], Some(("header.x-delivery", false)), &[]);
        let untrusted = derive(&github, "{}");
        assert_eq!(untrusted.origin(), KeyOrigin::Body);
        assert!(
            untrusted.fell().is_empty(),
            "it was not missing, it did not count"
        );
        let headers: &[(&str, &str)] = &[("x-delivery", "d-1")];
        let found = github
            .fields
            .extract(BodyFormat::Json, b"{}", headers)
            .expect("JSON");
        assert_eq!(github.ladder.provider_event_id(&found), Some("d-1"));

        github.ladder.trust_unsigned_id = true;
        assert_eq!(key(&github, "{}"), ("d-1".to_owned(), KeyOrigin::Provider));
        assert_eq!(
            key(&github, r#"{"other":1}"#).0,
            "d-1",
            "a trusted id binds alone"
        );
    }

    #[test]
    fn a_body_that_varies_needs_review_but_exact_repeats_still_meet() {
        let mut source = source(&[], Some(("id", true)), &[]);
        source.ladder.body_varies = true;
        let first = derive(&source, r#"{"a":1}"#);
        assert!(matches!(first, Derived::NeedsReview { .. }));
        assert_eq!(first.fell(), [KeyOrigin::Provider]);
        assert_eq!(first, derive(&source, r#"{"a":1}"#));
        assert_ne!(first.text(), derive(&source, r#"{"a":2}"#).text());
    }

    #[test]
    fn rungs_never_meet() {
        let source = source(&["b"], Some(("id", true)), &["c"]);
        let bodies = [
            r#"{"b":"x"}"#,
            r#"{"id":"[\"x\"]"}"#,
            r#"{"c":"x"}"#,
            r#"{"id":"composed:[\"x\"]"}"#,
            r#"{"id":"id:[\"x\"]"}"#,
            r#"{"id":"sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"}"#,
            "{}",
        ];
        let mut keys: Vec<String> = bodies.iter().map(|body| key(&source, body).0).collect();
        keys.sort();
        keys.dedup();
        assert_eq!(keys.len(), bodies.len(), "{keys:?}");
    }
}
