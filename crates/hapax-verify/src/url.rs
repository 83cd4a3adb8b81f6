//! The parts of a public URL that are signed, without a URL library: providers sign text, not a parsed structure.

use std::borrow::Cow;

/// The spellings of one URL that a provider may have signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UrlForm {
    AsIs,
    WithPort,
    WithoutPort,
}

impl UrlForm {
    pub(crate) fn apply(self, url: &str) -> Cow<'_, str> {
        match self {
            UrlForm::AsIs => Cow::Borrowed(url),
            UrlForm::WithPort => with_port(url),
            UrlForm::WithoutPort => without_port(url),
        }
    }
}

/// Where the authority starts and ends.
fn authority(url: &str) -> Option<(usize, usize)> {
    let start = url.find("://")? + 3;
    let length = url[start..]
        .find(['/', '?', '#'])
        .unwrap_or(url.len() - start);
    Some((start, start + length))
}

/// Where the `:port` of an authority starts; a bracketed address has colons of its own.
fn port_start(authority: &str) -> Option<usize> {
    let colon = authority.rfind(':')?;
    let after = &authority[colon + 1..];
    let is_port = !after.is_empty() && after.bytes().all(|b| b.is_ascii_digit());
    is_port.then_some(colon)
}

fn with_port(url: &str) -> Cow<'_, str> {
    let Some((start, end)) = authority(url) else {
        return Cow::Borrowed(url);
    };
    if port_start(&url[start..end]).is_some() {
        return Cow::Borrowed(url);
    }
    let port = if url.starts_with("https:") { 443 } else { 80 };
    Cow::Owned(format!("{}:{port}{}", &url[..end], &url[end..]))
}

fn without_port(url: &str) -> Cow<'_, str> {
    let Some((start, end)) = authority(url) else {
        return Cow::Borrowed(url);
    };
    match port_start(&url[start..end]) {
        Some(colon) => Cow::Owned(format!("{}{}", &url[..start + colon], &url[end..])),
        None => Cow::Borrowed(url),
    }
}

/// Path and query; `/` if there is none.
pub(crate) fn path_and_query(url: &str) -> &str {
    let end = authority(url).map_or(0, |(_, end)| end);
    let rest = &url[end..];
    let rest = rest.split('#').next().unwrap_or(rest);
    if rest.is_empty() { "/" } else { rest }
}

/// The query string, without its question mark.
pub(crate) fn query(url: &str) -> &str {
    let url = url.split('#').next().unwrap_or(url);
    url.split_once('?').map_or("", |(_, query)| query)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_come_and_go() {
        let table = [
            (
                "https://a.example/x?y=1",
                "https://a.example:443/x?y=1",
                "https://a.example/x?y=1",
            ),
            (
                "http://a.example:1234/x",
                "http://a.example:1234/x",
                "http://a.example/x",
            ),
            (
                "http://a.example",
                "http://a.example:80",
                "http://a.example",
            ),
            ("http://[::1]/x", "http://[::1]:80/x", "http://[::1]/x"),
            ("not a url", "not a url", "not a url"),
        ];
        for (url, with, without) in table {
            assert_eq!(UrlForm::WithPort.apply(url), with);
            assert_eq!(UrlForm::WithoutPort.apply(url), without);
        }
    }

    #[test]
    fn parts_of_a_url() {
        assert_eq!(path_and_query("https://a.example/x?y=1#z"), "/x?y=1");
        assert_eq!(path_and_query("https://a.example"), "/");
        assert_eq!(query("https://a.example/x?y=1#z"), "y=1");
        assert_eq!(query("https://a.example/x"), "");
    }
}
