//! Fingerprints: when are two requests the same request?

use crate::extract::Fields;
use crate::field::Field;
use crate::key::{BodyHash, PartsHash};

/// The hash by which two bodies under one key are compared (B3).
///
/// Without volatile fields, or where none is present, it is the hash of the raw bytes. Otherwise the values of these
/// fields are cut out of the bytes and the rest is hashed: everything else must agree to the last byte, so a
/// sender that writes its JSON anew in another order shows up as a conflict and never passes as a duplicate.
/// A body that is not JSON is compared as it is.
pub fn compare_hash(body: &[u8], volatile: &[Field]) -> BodyHash {
    match without_values(body, volatile) {
        Some(rest) => BodyHash::from_bytes(rest),
        None => BodyHash::of(body),
    }
}

fn without_values(body: &[u8], volatile: &[Field]) -> Option<[u8; 32]> {
    if volatile.is_empty() {
        return None;
    }
    let text = std::str::from_utf8(body).ok()?;
    let mut cuts: Vec<(usize, usize)> = Fields::of(volatile)
        .raw(text)
        .ok()?
        .into_iter()
        .flatten()
        .map(|value| {
            // Every value is a part of `text`, so the distance of the two is the value's place in it.
            let start = value.as_ptr() as usize - text.as_ptr() as usize;
            (start, start + value.len())
        })
        .collect();
    if cuts.is_empty() {
        return None;
    }
    cuts.sort_unstable();
    let mut hash = PartsHash::new("hapax/body-without/1");
    let mut kept_from = 0;
    for (start, end) in cuts {
        // A volatile field inside a volatile object is gone with it.
        if start >= kept_from {
            hash = hash.part(&body[kept_from..start]);
            kept_from = end;
        }
    }
    Some(hash.part(&body[kept_from..]).finish())
}

/// What of a guarded request has to be the same for a retry to be a retry (H2).
#[derive(Clone, Copy, Debug)]
pub struct RequestParts<'a> {
    /// The method.
    pub method: &'a str,
    /// The path, as it came.
    pub path: &'a str,
    /// The query without its question mark; the order of its pairs does not count.
    pub query: Option<&'a str>,
    /// The `Content-Type`; only the media type counts, without parameters and case.
    pub content_type: Option<&'a str>,
    /// The body, as it came.
    pub body: &'a [u8],
}

/// The same without the body, for a body that is too large to be held in one piece.
#[derive(Clone, Copy, Debug)]
pub struct RequestHead<'a> {
    /// The method.
    pub method: &'a str,
    /// The path, as it came.
    pub path: &'a str,
    /// The query without its question mark; the order of its pairs does not count.
    pub query: Option<&'a str>,
    /// The `Content-Type`; only the media type counts, without parameters and case.
    pub content_type: Option<&'a str>,
}

impl RequestHead<'_> {
    /// Begins the fingerprint of a request whose body has so many bytes.
    pub fn begin(&self, body_bytes: u64) -> Fingerprinting {
        let mut pairs: Vec<&str> = self.query.unwrap_or("").split('&').collect();
        pairs.retain(|pair| !pair.is_empty());
        pairs.sort_unstable();
        let media_type = self.content_type.unwrap_or("").split(';').next();
        let media_type = media_type.unwrap_or("").trim().to_ascii_lowercase();
        let mut hash = PartsHash::new("hapax/request/1")
            .part(self.method.as_bytes())
            .part(self.path.as_bytes())
            .part(&(pairs.len() as u64).to_be_bytes());
        for pair in pairs {
            hash = hash.part(pair.as_bytes());
        }
        Fingerprinting(hash.part(media_type.as_bytes()).begin_part(body_bytes))
    }
}

/// A fingerprint that is being made: the body goes in piece by piece.
pub struct Fingerprinting(PartsHash);

impl Fingerprinting {
    /// Adds the next bytes of the body.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.more(bytes);
    }

    /// The fingerprint, when all bytes are in.
    pub fn finish(self) -> Fingerprint {
        Fingerprint(self.0.finish())
    }
}

/// The fingerprint of a guarded request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// The fingerprint of a request. Its recipe has a version inside: a new recipe never matches an old one by chance.
    pub fn of(request: &RequestParts<'_>) -> Fingerprint {
        let head = RequestHead {
            method: request.method,
            path: request.path,
            query: request.query,
            content_type: request.content_type,
        };
        let mut print = head.begin(request.body.len() as u64);
        print.update(request.body);
        print.finish()
    }

    /// The fingerprint with these bytes.
    pub const fn from_bytes(bytes: [u8; 32]) -> Fingerprint {
        Fingerprint(bytes)
    }

    /// Its bytes.
    pub const fn bytes(self) -> [u8; 32] {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn fields(texts: &[&str]) -> Vec<Field> {
        texts.iter().map(|text| text.parse().expect(text)).collect()
    }

    #[test]
    fn volatile_values_do_not_count_and_everything_else_does() {
        let volatile = fields(&["pending_webhooks", "meta.sent", "gone"]);
        let same = |a: &str, b: &str| {
            compare_hash(a.as_bytes(), &volatile) == compare_hash(b.as_bytes(), &volatile)
        };
        let base = r#"{"id":1,"pending_webhooks":3,"meta":{"sent":"x"}}"#;
        assert!(same(
            base,
            r#"{"id":1,"pending_webhooks":12,"meta":{"sent":"yy"}}"#
        ));
        assert!(same(
            base,
            r#"{"id":1,"pending_webhooks":null,"meta":{"sent":[1]}}"#
        ));
        assert!(!same(
            base,
            r#"{"id":2,"pending_webhooks":3,"meta":{"sent":"x"}}"#
        ));
        assert!(!same(
            base,
            r#"{"id":1,"pending_webhooks":3,"meta":{"sent2":"x"}}"#
        ));
        assert!(!same(
            r#"{"n":9007199254740993,"gone":1}"#,
            r#"{"n":9007199254740992,"gone":1}"#
        ));
    }

    #[test]
    fn bytes_are_compared_where_no_volatile_field_is() {
        for body in [r#"{"a":1}"#, "not json", "{", "\u{0}"] {
            let raw = BodyHash::of(body.as_bytes());
            assert_eq!(compare_hash(body.as_bytes(), &[]), raw);
            assert_eq!(
                compare_hash(body.as_bytes(), &fields(&["b", "header.x"])),
                raw
            );
        }
        assert_eq!(
            compare_hash(b"\xff", &fields(&["b"])),
            BodyHash::of(b"\xff")
        );
    }

    #[test]
    fn a_volatile_field_inside_a_volatile_object_goes_with_it() {
        let volatile = fields(&["a.b", "a"]);
        let one = compare_hash(br#"{"a":{"b":1},"c":1}"#, &volatile);
        assert_eq!(
            one,
            compare_hash(br#"{"a":{"b":2,"x":0},"c":1}"#, &volatile)
        );
        assert_ne!(one, compare_hash(br#"{"a":{"b":1},"c":2}"#, &volatile));
    }

    fn request<'a>(query: &'a str, content_type: &'a str, body: &'a [u8]) -> RequestParts<'a> {
        RequestParts {
            method: "POST",
            path: "/charges",
            query: Some(query),
            content_type: Some(content_type),
            body,
        }
    }

    #[test]
    fn order_of_query_and_parameters_of_the_media_type_do_not_count() {
        let one = Fingerprint::of(&request("a=1&b=2", "application/json", b"{}"));
        assert_eq!(
            one,
            Fingerprint::of(&request(
                "b=2&a=1",
                "Application/JSON; charset=utf-8",
                b"{}"
            ))
        );
        assert_ne!(
            one,
            Fingerprint::of(&request("a=1&b=3", "application/json", b"{}"))
        );
        assert_ne!(
            one,
            Fingerprint::of(&request("a=1&b=2", "text/plain", b"{}"))
        );
        assert_ne!(
            one,
            Fingerprint::of(&request("a=1&b=2", "application/json", b"{ }"))
        );
    }

    #[test]
    fn a_body_in_pieces_has_the_same_fingerprint() {
        let whole = request("a=1", "text/plain", b"in one piece");
        let head = RequestHead {
            method: whole.method,
            path: whole.path,
            query: whole.query,
            content_type: whole.content_type,
        };
        let mut print = head.begin(whole.body.len() as u64);
        for piece in whole.body.chunks(5) {
            print.update(piece);
        }
        assert_eq!(print.finish(), Fingerprint::of(&whole));
    }

    proptest! {
        /// H2: whatever differs in a counted part differs in the fingerprint, also when bytes move between parts.
        #[test]
        fn every_part_counts(a in ("[ab]{0,3}", "[/ab]{0,3}", "[ab]{0,2}", "[ab]{0,3}"), b in ("[ab]{0,3}", "[/ab]{0,3}", "[ab]{0,2}", "[ab]{0,3}")) {
            let print = |parts: &(String, String, String, String)| Fingerprint::of(&RequestParts {
                method: &parts.0, path: &parts.1, query: Some(&parts.2), content_type: None, body: parts.3.as_bytes(),
            });
            prop_assert_eq!(print(&a) == print(&b), a == b);
        }

        /// B3: one changed byte outside the volatile value is a conflict.
        #[test]
        fn one_changed_byte_is_a_conflict(volatile in "[0-9]{1,3}", id in "[a-c]{1,3}", other in "[a-c]{1,3}") {
            let fields = fields(&["v"]);
            let one = compare_hash(format!("{{\"v\":1{volatile},\"id\":\"{id}\"}}").as_bytes(), &fields);
            let two = compare_hash(format!("{{\"v\":7,\"id\":\"{other}\"}}").as_bytes(), &fields);
            prop_assert_eq!(one == two, id == other);
        }
    }
}
