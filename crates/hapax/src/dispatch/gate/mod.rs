//! The gate: where a URL that a consumer wrote may lead. Pure: it parses, it judges addresses, it connects to nothing.
//!
//! - [`url`]: a URL, parsed once, in one reading that no other parser can disagree with
//! - `port`: ports that are nobody's web server
//! - `block`, `metadata`: addresses as data, with the reason why each is closed
//! - [`subnet`]: what an operator opens
//!
//! A name proves nothing about where it leads, so no name is judged: [`Rules::vet`] is asked about every address that a name has at
//! the moment of connecting, and the connection goes to an address that it has seen. See
//! `docs/design/where-may-an-endpoint-be.md`.
//!
//! **Invariant**: what is not known to be public is closed.

mod block;
mod metadata;
mod port;
pub mod subnet;
pub mod url;

use std::net::IpAddr;

pub use block::Why;
pub use subnet::{BadSubnet, Subnet};
pub use url::{ConsumerUrl, Host};

/// Subnets that an operator may open, at most: each address is held against all of them.
pub const SUBNETS_MAX: usize = 64;
/// Ports that an operator may open, at most.
pub const PORTS_MAX: usize = 64;

/// What an operator has opened; everything else is as the gate has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    subnets: Vec<Subnet>,
    ports: Vec<u16>,
}

/// Why the gate stays shut. Never quotes the URL, which may hold a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// It does not fit.
    #[error("the URL is longer than {} bytes", url::URL_BYTES_MAX)]
    Long,
    /// A character that different programs read differently: white space, a backslash, anything beyond ASCII.
    #[error("the URL holds a character that has to be written percent-encoded")]
    Character,
    /// Not `http` or `https`.
    #[error("the URL is not one of http or https")]
    Scheme,
    /// It names a user.
    #[error("the URL holds a user or a password; send them as a header")]
    Userinfo,
    /// No host, or not one that can be looked up.
    #[error("the URL has no host that can be looked up")]
    Host,
    /// A number that some programs take for an address.
    #[error(
        "the host is a number in an unusual form; write an IPv4 address as four decimal numbers"
    )]
    Number,
    /// A fragment is never sent.
    #[error("the URL has a fragment (#), which is never sent")]
    Fragment,
    /// Not a port, or not one of a web server.
    #[error("the port is not one that webhooks are sent to")]
    Port,
    /// An address that is not public.
    #[error("the address {0} is not allowed: {1}")]
    Address(IpAddr, Why),
    /// A name without a single address.
    #[error("the name has no address")]
    Nowhere,
}

impl Refused {
    /// The word that programs know it by.
    pub const fn word(&self) -> &'static str {
        match self {
            Refused::Long => "long",
            Refused::Character => "character",
            Refused::Scheme => "scheme",
            Refused::Userinfo => "userinfo",
            Refused::Host => "host",
            Refused::Number => "number",
            Refused::Fragment => "fragment",
            Refused::Port => "port",
            Refused::Address(_, why) => why.word(),
            Refused::Nowhere => "nowhere",
        }
    }
}

impl Rules {
    /// Rules with these subnets and ports open, as far as there is room for them.
    pub fn new(mut subnets: Vec<Subnet>, mut ports: Vec<u16>) -> Rules {
        subnets.truncate(SUBNETS_MAX);
        ports.truncate(PORTS_MAX);
        Rules { subnets, ports }
    }

    /// Reads a URL. An address in it is judged at once; a name is judged whenever it is connected to.
    ///
    /// # Errors
    /// Says why nothing may be sent there.
    pub fn url(&self, text: &str) -> Result<ConsumerUrl, Refused> {
        let url = ConsumerUrl::parse(text)?;
        self.port(url.port())?;
        if let Host::Address(address) = url.host() {
            self.address(*address)?;
        }
        Ok(url)
    }

    /// May this port be connected to?
    ///
    /// # Errors
    /// If not.
    pub fn port(&self, port: u16) -> Result<(), Refused> {
        match self.ports.contains(&port) || port::is_ordinary(port) {
            true => Ok(()),
            false => Err(Refused::Port),
        }
    }

    /// May all of these addresses be connected to? One that may not closes them all: a name that leads to a public and to a
    /// private address is a mistake or an attack, and nothing good is lost by sending nothing.
    ///
    /// # Errors
    /// The first that may not, and why.
    pub fn vet(&self, addresses: &[IpAddr]) -> Result<(), Refused> {
        if addresses.is_empty() {
            return Err(Refused::Nowhere);
        }
        let mut all = addresses.iter();
        all.try_for_each(|address| self.address(*address))
    }

    /// May this address be connected to?
    ///
    /// # Errors
    /// Why not.
    pub fn address(&self, address: IpAddr) -> Result<(), Refused> {
        let refused = |why| Err(Refused::Address(address, why));
        if metadata::is_metadata(address) {
            // Whoever opens a whole network does not mean the one address in it that hands out credentials.
            return match self.subnets.iter().any(|open| open.is_only(address)) {
                true => Ok(()),
                false => refused(Why::Metadata),
            };
        }
        let open = self.subnets.iter().any(|open| open.contains(address));
        match (block::embedded(address), open) {
            // Where the operator's network translates, what counts is where it leads to in the end.
            (Some((Some(inner), _)), true) => match self.address(IpAddr::V4(inner)) {
                Ok(()) => Ok(()),
                Err(_) => refused(Why::Embedded),
            },
            (Some((None, _)), true) => refused(Why::Embedded),
            (Some((_, why)), false) => refused(why),
            (None, true) => Ok(()),
            (None, false) => block::closed(address).map_or(Ok(()), refused),
        }
    }
}
