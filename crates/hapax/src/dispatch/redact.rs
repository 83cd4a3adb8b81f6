//! Keeping secrets out of what is stored: receivers echo headers in their error pages.

use hapax_verify::Secret;

/// What stands in place of a secret.
const REDACTED: &[u8] = b"[redacted]";
/// Shorter values are not looked for: `1` and `json` occur by chance, and a text full of holes helps nobody.
const NEEDLE_BYTES_MIN: usize = 6;
/// How keys of common services begin.
const KEY_PREFIXES: [&[u8]; 6] = [
    b"whsec_",
    b"whsk_",
    b"sk_live_",
    b"sk_test_",
    b"rk_live_",
    b"rk_test_",
];
const BEARER: &[u8] = b"bearer ";

/// Where the given bytes stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// They are all there are.
    Whole,
    /// More followed, so that the last of them may be the first half of a secret.
    Cut,
}

/// `bytes` without the given secrets, and without what looks like a key or a bearer token.
pub(super) fn bytes(bytes: &[u8], end: End, secrets: &[Secret]) -> Vec<u8> {
    let needles = needles(secrets);
    let first = first_bytes(&needles);
    let mut clean = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        // Most bytes begin nothing that is looked for: a long answer is gone through while a thread's other work waits.
        let plain = bytes[at..]
            .iter()
            .take_while(|byte| !first[usize::from(**byte)]);
        let plain = plain.count();
        if plain > 0 {
            clean.extend_from_slice(&bytes[at..at + plain]);
            at += plain;
            continue;
        }
        let rest = &bytes[at..];
        let starts_word = at == 0 || !bytes[at - 1].is_ascii_alphanumeric();
        if let Some(length) = secret_length(rest, end, &needles) {
            clean.extend_from_slice(REDACTED);
            at += length;
        } else if let Some((kept, length)) = starts_word.then(|| token(rest)).flatten() {
            clean.extend_from_slice(&rest[..kept]);
            clean.extend_from_slice(REDACTED);
            at += length;
        } else {
            clean.push(rest[0]);
            at += 1;
        }
    }
    clean
}

/// The same for a text.
pub(super) fn text(text: &str, secrets: &[Secret]) -> String {
    String::from_utf8_lossy(&bytes(text.as_bytes(), End::Whole, secrets)).into_owned()
}

/// What to look for, longest first: each secret, and the part of it that is secret if a scheme stands before it.
fn needles(secrets: &[Secret]) -> Vec<&[u8]> {
    let mut needles: Vec<&[u8]> = Vec::new();
    for secret in secrets {
        let whole = secret.expose().trim_ascii();
        let word = whole.rsplit(|byte| *byte == b' ').next().unwrap_or(whole);
        let bare = word.strip_prefix(b"whsec_").unwrap_or(word);
        needles.extend([whole, word, bare]);
    }
    needles.retain(|needle| needle.len() >= NEEDLE_BYTES_MIN);
    needles.sort_unstable_by_key(|needle| std::cmp::Reverse(needle.len()));
    needles.dedup();
    needles
}

/// The bytes that something begins with that is looked for.
fn first_bytes(needles: &[&[u8]]) -> [bool; 256] {
    let mut first = [false; 256];
    let begin = needles.iter().chain(&KEY_PREFIXES).chain([&BEARER]);
    for byte in begin.filter_map(|text| text.first()) {
        first[usize::from(*byte)] = true;
    }
    first[usize::from(BEARER[0].to_ascii_uppercase())] = true;
    first
}

/// How many bytes at the start of `rest` are a secret, or the first part of one that was cut off.
fn secret_length(rest: &[u8], end: End, needles: &[&[u8]]) -> Option<usize> {
    let whole = needles.iter().find(|needle| rest.starts_with(needle));
    if let Some(needle) = whole {
        return Some(needle.len());
    }
    let is_half = |needle: &&&[u8]| rest.len() >= NEEDLE_BYTES_MIN && needle.starts_with(rest);
    match end {
        End::Whole => None,
        End::Cut => needles.iter().find(is_half).map(|_| rest.len()),
    }
}

/// How many bytes at the start of `rest` introduce a token, and how many those and the token are together.
fn token(rest: &[u8]) -> Option<(usize, usize)> {
    let is_bearer = rest
        .get(..BEARER.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(BEARER));
    let (kept, prefix) = if is_bearer {
        (BEARER.len(), BEARER.len())
    } else {
        let prefix = KEY_PREFIXES
            .iter()
            .find(|prefix| rest.starts_with(prefix))?;
        (0, prefix.len())
    };
    let in_token = |byte: &&u8| byte.is_ascii_alphanumeric() || b"-._~+/=".contains(byte);
    let length = rest[prefix..].iter().take_while(in_token).count();
    (length > 0).then_some((kept, prefix + length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_do_not_come_through() {
        let secrets = ["Token hunter2-hunter2", "whsec_c2VjcmV0c2VjcmV0", "abc"].map(Secret::from);
        let table = [
            ("nothing here", "nothing here"),
            ("got Token hunter2-hunter2.", "got [redacted]."),
            ("hunter2-hunter2hunter2-hunter2", "[redacted][redacted]"),
            ("key c2VjcmV0c2VjcmV0!", "key [redacted]!"),
            ("abc is too short", "abc is too short"),
            (
                "authorization: bearer eyJ.x-y_z==, more",
                "authorization: bearer [redacted], more",
            ),
            (r#"{"key":"sk_live_51H"}"#, r#"{"key":"[redacted]"}"#),
            ("task_live_1 and Bearer", "task_live_1 and Bearer"),
            ("whsec_", "whsec_"),
            ("über Bearer é", "über Bearer é"),
        ];
        for (given, clean) in table {
            assert_eq!(text(given, &secrets), clean, "{given}");
        }
    }

    #[test]
    fn all_that_is_looked_for_is_found_anywhere() {
        let secret = Secret::from("hunter2-hunter2");
        let mut looked_for: Vec<Vec<u8>> = KEY_PREFIXES
            .iter()
            .map(|prefix| [prefix, &b"51Hx"[..]].concat())
            .collect();
        looked_for.push(b"hunter2-hunter2".to_vec());
        for needle in looked_for {
            for before in ["", "x", "hun ", "s whs r ", "\u{e9} "] {
                let starts_word = !before.ends_with('x') || needle == b"hunter2-hunter2";
                let text = [before.as_bytes(), &needle, b"!"].concat();
                let clean = bytes(&text, End::Whole, std::slice::from_ref(&secret));
                let wanted = [before.as_bytes(), REDACTED, b"!"].concat();
                assert_eq!(clean == wanted, starts_word, "{before} {needle:?}");
            }
        }
        assert_eq!(text("a BEARER t0ken", &[]), "a BEARER [redacted]");
    }

    #[test]
    fn half_a_secret_at_the_cut_is_a_secret() {
        let secrets = [Secret::from("hunter2-hunter2")];
        assert_eq!(bytes(b"x hunter2-", End::Cut, &secrets), b"x [redacted]");
        assert_eq!(bytes(b"x hunter2-", End::Whole, &secrets), b"x hunter2-");
        assert_eq!(bytes(b"x hun", End::Cut, &secrets), b"x hun");
    }
}
