//! URL-encoded forms and query strings.

use std::borrow::Cow;

/// The fields of a form, decoded, in the order in which they came.
#[derive(Debug, Clone, Default)]
pub(crate) struct Form(Vec<(Vec<u8>, Vec<u8>)>);

impl Form {
    pub(crate) fn parse(text: &[u8]) -> Form {
        let pairs = text
            .split(|b| *b == b'&')
            .filter(|pair| !pair.is_empty())
            .map(|pair| {
                let at = pair.iter().position(|b| *b == b'=').unwrap_or(pair.len());
                let value = pair.get(at + 1..).unwrap_or_default();
                (decode(&pair[..at]).into_owned(), decode(value).into_owned())
            });
        Form(pairs.collect())
    }

    /// The value of a field that is there once. Twice is as good as none: it would be a guess which one counts.
    pub(crate) fn one(&self, name: &str) -> Option<&[u8]> {
        let mut values = self.0.iter().filter(|(n, _)| n == name.as_bytes());
        let (_, value) = values.next()?;
        values.next().is_none().then_some(value)
    }

    /// Names and values sorted by name, as Twilio and Mandrill sign them.
    pub(crate) fn sorted(&self) -> Vec<(&[u8], &[u8])> {
        let mut pairs: Vec<_> = self
            .0
            .iter()
            .map(|(name, value)| (name.as_slice(), value.as_slice()))
            .collect();
        pairs.sort_by(|left, right| left.0.cmp(right.0));
        pairs
    }

    /// As [`Form::sorted`], with values sorted too and repetitions left out.
    pub(crate) fn sorted_unique(&self) -> Vec<(&[u8], &[u8])> {
        let mut pairs = self.sorted();
        pairs.sort_unstable();
        pairs.dedup();
        pairs
    }
}

/// Percent-decoding with `+` for a space; a `%` that starts no code stands for itself.
pub(crate) fn decode(text: &[u8]) -> Cow<'_, [u8]> {
    if !text.iter().any(|b| matches!(b, b'%' | b'+')) {
        return Cow::Borrowed(text);
    }
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, tail)) = rest.split_first() {
        let code = tail.get(..2).and_then(|code| {
            let mut byte = [0];
            hex::decode_to_slice(code, &mut byte).ok().map(|()| byte[0])
        });
        match (first, code) {
            (b'%', Some(byte)) => {
                decoded.push(byte);
                rest = &tail[2..];
            }
            (b'+', _) => {
                decoded.push(b' ');
                rest = tail;
            }
            _ => {
                decoded.push(*first);
                rest = tail;
            }
        }
    }
    Cow::Owned(decoded)
}

/// Percent-encoding of everything but letters, digits and `-._~`.
pub(crate) fn encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decodes_and_sorts() {
        let form = Form::parse(b"b=2&a=%2B1&b=1&b=2&c&&d=x+y&e=%zz");
        assert_eq!(form.one("a"), Some(&b"+1"[..]));
        assert_eq!(form.one("b"), None, "repeated");
        assert_eq!(form.one("c"), Some(&b""[..]));
        assert_eq!(form.one("d"), Some(&b"x y"[..]));
        assert_eq!(form.one("e"), Some(&b"%zz"[..]));
        assert_eq!(form.sorted().len(), 7);
        assert_eq!(form.sorted_unique().len(), 6);
        assert_eq!(
            form.sorted()[1],
            (&b"b"[..], &b"2"[..]),
            "order of values is kept"
        );
    }

    #[test]
    fn encodes_what_it_decodes() {
        assert_eq!(
            decode(encode("a b+c%&=é").as_bytes()),
            "a b+c%&=é".as_bytes()
        );
    }
}
