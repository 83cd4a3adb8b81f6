//! URLs that Hapax calls: plain ones, and ones with places for an event's fields.

use std::fmt;

use http::Uri;

/// A URL without places. Its `Debug` shows the host only: paths and queries may hold tokens.
#[derive(Clone, PartialEq, Eq)]
pub struct Url(Uri);

/// A URL with places in braces, such as `https://billing.internal/invoices/{data.object.id}`.
#[derive(Clone, PartialEq, Eq)]
pub struct UrlTemplate {
    base: Url,
    pieces: Vec<Piece>,
}

#[derive(Clone, PartialEq, Eq)]
enum Piece {
    Literal(String),
    Value(String),
}

/// Why a text is no URL that Hapax could call. It never quotes the URL, which may hold a token.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum BadUrl {
    #[error("it is not an http or https URL with a host")]
    NotHttp,
    #[error("it holds a user or a password")]
    Userinfo,
    #[error("it has a fragment (#), which is never sent")]
    Fragment,
    #[error("a brace is not closed or not opened")]
    Brace,
    #[error("`{{{0}}}` stands in the host; what an event says must not choose who is called")]
    Place(String),
}

/// Why a URL could not be filled in.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfilled {
    /// The event does not have this field, or it is empty.
    #[error("the URL needs `{0}`, and the event has none")]
    Missing(String),
    /// The value is `.` or `..`: on the way it would be taken for another path.
    #[error("the value of `{0}` cannot be part of a URL")]
    Dots(String),
    /// Too long for a URL.
    #[error("the URL is too long")]
    Long,
}

impl Url {
    pub(super) fn parse(text: &str) -> Result<Url, BadUrl> {
        if text.contains('#') {
            return Err(BadUrl::Fragment);
        }
        let uri: Uri = text.parse().map_err(|_| BadUrl::NotHttp)?;
        let authority = uri.authority().ok_or(BadUrl::NotHttp)?;
        if authority.as_str().contains('@') {
            return Err(BadUrl::Userinfo);
        }
        let scheme = matches!(uri.scheme_str(), Some("http" | "https"));
        let host = !authority.host().is_empty();
        // A port that is no number is kept by the parser as text.
        let port = authority.as_str().len() == authority.host().len() || uri.port_u16().is_some();
        match scheme && host && port && text.is_ascii() {
            true => Ok(Url(uri)),
            false => Err(BadUrl::NotHttp),
        }
    }

    /// The URL.
    pub fn uri(&self) -> &Uri {
        &self.0
    }
}

impl UrlTemplate {
    pub(super) fn parse(text: &str) -> Result<UrlTemplate, BadUrl> {
        let pieces = pieces(text)?;
        let filled = pieces.iter().map(|piece| match piece {
            Piece::Literal(text) => text.as_str(),
            Piece::Value(_) => "x",
        });
        let base = Url::parse(&filled.collect::<String>())?;
        if let [Piece::Literal(first), Piece::Value(name), ..] = &pieces[..] {
            let authority = first.split_once("://").map_or("", |(_, rest)| rest);
            if !authority.contains(['/', '?']) {
                return Err(BadUrl::Place(name.clone()));
            }
        }
        Ok(UrlTemplate { base, pieces })
    }

    /// The names of its places, in their order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Literal(_) => None,
            Piece::Value(name) => Some(name.as_str()),
        })
    }

    /// The URL with every place filled in, percent-encoded so that no value reaches beyond its place.
    ///
    /// # Errors
    /// If a value is missing or cannot be part of a URL.
    pub fn fill<'v>(&self, value: impl Fn(&str) -> Option<&'v str>) -> Result<Uri, Unfilled> {
        let mut text = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Literal(literal) => text.push_str(literal),
                Piece::Value(name) => match value(name) {
                    None | Some("") => return Err(Unfilled::Missing(name.clone())),
                    Some("." | "..") => return Err(Unfilled::Dots(name.clone())),
                    Some(value) => encode(value, &mut text),
                },
            }
        }
        text.parse().map_err(|_| Unfilled::Long)
    }
}

fn pieces(text: &str) -> Result<Vec<Piece>, BadUrl> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find(['{', '}']) {
        let (literal, after) = rest.split_at(at);
        let place = after
            .strip_prefix('{')
            .and_then(|after| after.split_once('}'));
        let (name, after) = place.ok_or(BadUrl::Brace)?;
        if !literal.is_empty() {
            pieces.push(Piece::Literal(literal.to_owned()));
        }
        pieces.push(Piece::Value(name.to_owned()));
        rest = after;
    }
    if !rest.is_empty() {
        pieces.push(Piece::Literal(rest.to_owned()));
    }
    Ok(pieces)
}

/// Everything but letters, digits and `-._~` is encoded, slashes and ampersands too.
fn encode(value: &str, text: &mut String) {
    for byte in value.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                text.push(byte.into());
            }
            _ => text.push_str(&format!("%{byte:02X}")),
        }
    }
}

impl fmt::Debug for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = self.0.scheme_str().unwrap_or_default();
        let authority = self
            .0
            .authority()
            .map_or("", |authority| authority.as_str());
        write!(f, "Url({scheme}://{authority})")
    }
}

impl fmt::Debug for UrlTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("UrlTemplate").field(&self.base).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_urls_that_can_be_called_are_urls() {
        for good in [
            "http://a",
            "https://a.example:8443/x?y=z",
            "http://[::1]:9000/",
        ] {
            assert!(Url::parse(good).is_ok(), "{good}");
        }
        let table = [
            ("a.example/x", BadUrl::NotHttp),
            ("ftp://a", BadUrl::NotHttp),
            ("http://", BadUrl::NotHttp),
            ("http://a:99999/", BadUrl::NotHttp),
            ("http://a/ä", BadUrl::NotHttp),
            ("/x", BadUrl::NotHttp),
            ("http://u:p@a/", BadUrl::Userinfo),
            ("http://u@a/", BadUrl::Userinfo),
            ("http://a/#x", BadUrl::Fragment),
        ];
        for (text, error) in table {
            assert_eq!(Url::parse(text), Err(error), "{text}");
        }
    }

    #[test]
    fn a_value_stays_in_its_place() {
        let template = UrlTemplate::parse("http://a/i/{x.y}?k={z}").expect("a template");
        assert_eq!(template.names().collect::<Vec<_>>(), ["x.y", "z"]);
        let fill = |x: &'static str, z: &'static str| {
            let filled = template.fill(|name| Some(if name == "z" { z } else { x }));
            filled.map(|uri| uri.to_string())
        };
        let table = [
            ("in_1", "b", Ok("http://a/i/in_1?k=b")),
            (
                "../x?y=1&z#",
                "a b%ü",
                Ok("http://a/i/..%2Fx%3Fy%3D1%26z%23?k=a%20b%25%C3%BC"),
            ),
            ("..", "b", Err(Unfilled::Dots("x.y".into()))),
            ("a", "", Err(Unfilled::Missing("z".into()))),
        ];
        for (x, z, want) in table {
            assert_eq!(fill(x, z), want.map(str::to_owned), "{x} {z}");
        }
        let long = "x".repeat(100_000);
        assert_eq!(template.fill(|_| Some(&long)), Err(Unfilled::Long));
    }

    #[test]
    fn no_value_chooses_who_is_called() {
        let table = [
            ("http://{x}/", BadUrl::Place("x".into())),
            ("http://a.{x}/", BadUrl::Place("x".into())),
            ("http://a:80{x}", BadUrl::NotHttp),
            ("http://a{x}", BadUrl::Place("x".into())),
            ("{x}://a/", BadUrl::NotHttp),
            ("http://a/{x", BadUrl::Brace),
            ("http://a/x}", BadUrl::Brace),
        ];
        for (text, error) in table {
            assert_eq!(UrlTemplate::parse(text), Err(error), "{text}");
        }
    }

    #[test]
    fn debug_shows_the_host_only() {
        let shown = format!("{:?}", UrlTemplate::parse("http://a/{x}?token=hush"));
        assert_eq!(shown, "Ok(UrlTemplate(Url(http://a)))");
    }
}
