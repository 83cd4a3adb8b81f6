//! A consumer's URL, parsed once.
//!
//! Where two parsers may disagree about who is called, the URL is refused rather than understood: an address may be written in one
//! form only, and a host has nothing in it that would have to be decoded.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use http::Uri;

use super::Refused;

/// The longest URL: what browsers and proxies agree on.
pub const URL_BYTES_MAX: usize = 2_048;
/// The longest name in the DNS, and the longest part of one.
const NAME_BYTES_MAX: usize = 253;
const LABEL_BYTES_MAX: usize = 63;

/// A URL that a consumer wrote, in its one reading. Its `Debug` shows the host only: paths and queries may hold tokens.
#[derive(Clone, PartialEq, Eq)]
pub struct ConsumerUrl {
    uri: Uri,
    host: Host,
    port: u16,
}

/// Who is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Host {
    /// A name to be looked up, in lower case.
    Name(String),
    /// An address.
    Address(IpAddr),
}

impl ConsumerUrl {
    /// Reads a URL. Says nothing about where it may lead: that is [`super::Rules`]' part.
    pub(crate) fn parse(text: &str) -> Result<ConsumerUrl, Refused> {
        if text.len() > URL_BYTES_MAX {
            return Err(Refused::Long);
        }
        if !text
            .bytes()
            .all(|byte| byte.is_ascii_graphic() && byte != b'\\')
        {
            return Err(Refused::Character);
        }
        let (scheme, rest) = text.split_once("://").ok_or(Refused::Scheme)?;
        let (scheme, usual) = match scheme.to_ascii_lowercase().as_str() {
            "http" => ("http", 80),
            "https" => ("https", 443),
            _ => return Err(Refused::Scheme),
        };
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, tail) = rest.split_at(end);
        if authority.contains('@') {
            return Err(Refused::Userinfo);
        }
        if tail.contains('#') {
            return Err(Refused::Fragment);
        }
        let (host, port) = host_and_port(authority)?;
        let port = port.map_or(Ok(usual), parse_port)?;
        let host = Host::parse(host)?;
        let shown = match port == usual {
            true => host.to_string(),
            false => format!("{host}:{port}"),
        };
        let slash = if tail.starts_with('/') { "" } else { "/" };
        let whole = format!("{scheme}://{shown}{slash}{tail}");
        let uri = Uri::try_from(whole).map_err(|_| Refused::Character)?;
        Ok(ConsumerUrl { uri, host, port })
    }

    /// The URL in its one form.
    pub fn uri(&self) -> &Uri {
        &self.uri
    }

    /// Who is called.
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// At which port.
    pub fn port(&self) -> u16 {
        self.port
    }
}

impl fmt::Debug for ConsumerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ConsumerUrl({}:{}/..)", self.host, self.port)
    }
}

fn host_and_port(authority: &str) -> Result<(&str, Option<&str>), Refused> {
    match authority.strip_prefix('[') {
        Some(rest) => {
            let (_, after) = rest.split_once(']').ok_or(Refused::Host)?;
            let host = &authority[..authority.len() - after.len()];
            match after {
                "" => Ok((host, None)),
                after => after
                    .strip_prefix(':')
                    .map(|port| (host, Some(port)))
                    .ok_or(Refused::Host),
            }
        }
        None => match authority.split_once(':') {
            Some((_, port)) if port.contains(':') => Err(Refused::Host),
            Some((host, port)) => Ok((host, Some(port))),
            None => Ok((authority, None)),
        },
    }
}

fn parse_port(text: &str) -> Result<u16, Refused> {
    let plain = !text.is_empty() && !text.starts_with('0');
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    let port = text.parse().ok().filter(|_| plain && digits);
    port.ok_or(Refused::Port)
}

impl Host {
    fn parse(text: &str) -> Result<Host, Refused> {
        if let Some(inner) = text
            .strip_prefix('[')
            .and_then(|text| text.strip_suffix(']'))
        {
            // No zone: it would name a network card of this machine.
            let address: Ipv6Addr = inner.parse().map_err(|_| Refused::Host)?;
            return Ok(Host::Address(IpAddr::V6(address)));
        }
        let name = text.to_ascii_lowercase();
        if name.is_empty() || name.len() > NAME_BYTES_MAX || !name.split('.').all(is_label) {
            return Err(Refused::Host);
        }
        let last = name.rsplit('.').next().unwrap_or(&name);
        match is_number(last) {
            // As browsers have it, a host that ends in a number is an address. There is one way to write it here.
            true => name
                .parse::<Ipv4Addr>()
                .map(|address| Host::Address(IpAddr::V4(address)))
                .map_err(|_| Refused::Number),
            false => Ok(Host::Name(name)),
        }
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Host::Name(name) => f.write_str(name),
            Host::Address(IpAddr::V4(address)) => address.fmt(f),
            Host::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}

fn is_label(label: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    (1..=LABEL_BYTES_MAX).contains(&label.len())
        && label.bytes().all(inner)
        && !label.starts_with('-')
        && !label.ends_with('-')
}

fn is_number(label: &str) -> bool {
    match label.strip_prefix("0x") {
        Some(hex) => hex.bytes().all(|byte| byte.is_ascii_hexdigit()),
        None => label.bytes().all(|byte| byte.is_ascii_digit()),
    }
}
