//! Addresses that are not public, as the registries of IANA have them, and addresses that hide another.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::subnet::Subnet;

/// Why an address is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// `0.0.0.0/8`: this host on this network.
    ThisNetwork,
    /// Private networks.
    Private,
    /// Shared between a provider and its customers.
    Shared,
    /// This machine.
    Loopback,
    /// This cable.
    LinkLocal,
    /// Kept for protocols.
    Protocol,
    /// Kept for examples in documents.
    Documentation,
    /// Kept for measurements.
    Benchmark,
    /// Many receivers at once.
    Multicast,
    /// Kept for later.
    Reserved,
    /// IPv6 outside of what is given out.
    NotGlobal,
    /// An IPv4 address in IPv6's clothes.
    Mapped,
    /// The same in an older fashion.
    Compatible,
    /// Translated to IPv4 on the way.
    Nat64,
    /// Carried to IPv4 on the way.
    SixToFour,
    /// The same through a relay.
    Teredo,
    /// It is open, but leads to an IPv4 address that is not.
    Embedded,
    /// Hands out credentials of the machine.
    Metadata,
}

impl Why {
    /// The word that programs know it by.
    pub const fn word(self) -> &'static str {
        match self {
            Why::ThisNetwork => "this-network",
            Why::Private => "private",
            Why::Shared => "shared",
            Why::Loopback => "loopback",
            Why::LinkLocal => "link-local",
            Why::Protocol => "protocol",
            Why::Documentation => "documentation",
            Why::Benchmark => "benchmark",
            Why::Multicast => "multicast",
            Why::Reserved => "reserved",
            Why::NotGlobal => "not-global",
            Why::Mapped => "mapped",
            Why::Compatible => "compatible",
            Why::Nat64 => "nat64",
            Why::SixToFour => "6to4",
            Why::Teredo => "teredo",
            Why::Embedded => "embedded",
            Why::Metadata => "metadata",
        }
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Why::ThisNetwork => "it means this host",
            Why::Private => "it is in a private network",
            Why::Shared => "it is in a provider's shared network",
            Why::Loopback => "it is this machine",
            Why::LinkLocal => "it is on the local link",
            Why::Protocol => "it is kept for protocols",
            Why::Documentation => "it is kept for documents",
            Why::Benchmark => "it is kept for measurements",
            Why::Multicast => "it is no single receiver",
            Why::Reserved => "it is reserved",
            Why::NotGlobal => "it is not a global address",
            Why::Mapped | Why::Compatible | Why::Nat64 | Why::SixToFour | Why::Teredo => {
                "it stands for an IPv4 address"
            }
            Why::Embedded => "the IPv4 address that it stands for is not public",
            Why::Metadata => "it is a cloud's metadata service",
        })
    }
}

const fn v4(a: u8, b: u8, c: u8, d: u8, bits: u8) -> Subnet {
    Subnet::v4(Ipv4Addr::new(a, b, c, d), bits)
}

const fn v6(a: u16, b: u16, c: u16, bits: u8) -> Subnet {
    Subnet::v6(Ipv6Addr::new(a, b, c, 0, 0, 0, 0, 0), bits)
}

/// IPv4 that is not public: the special-purpose registry, multicast, and what is kept for later.
const CLOSED_V4: [(Subnet, Why); 18] = [
    (v4(0, 0, 0, 0, 8), Why::ThisNetwork),
    (v4(10, 0, 0, 0, 8), Why::Private),
    (v4(100, 64, 0, 0, 10), Why::Shared),
    (v4(127, 0, 0, 0, 8), Why::Loopback),
    (v4(169, 254, 0, 0, 16), Why::LinkLocal),
    (v4(172, 16, 0, 0, 12), Why::Private),
    (v4(192, 0, 0, 0, 24), Why::Protocol),
    (v4(192, 0, 2, 0, 24), Why::Documentation),
    // Reachable, but sinks and relays that no webhook is for.
    (v4(192, 31, 196, 0, 24), Why::Protocol),
    (v4(192, 52, 193, 0, 24), Why::Protocol),
    (v4(192, 88, 99, 0, 24), Why::Protocol),
    (v4(192, 168, 0, 0, 16), Why::Private),
    (v4(192, 175, 48, 0, 24), Why::Protocol),
    (v4(198, 18, 0, 0, 15), Why::Benchmark),
    (v4(198, 51, 100, 0, 24), Why::Documentation),
    (v4(203, 0, 113, 0, 24), Why::Documentation),
    (v4(224, 0, 0, 0, 4), Why::Multicast),
    (v4(240, 0, 0, 0, 4), Why::Reserved),
];

/// What of IPv6 is given out as global addresses. Whatever is outside is closed, known or not.
const GLOBAL_V6: Subnet = v6(0x2000, 0, 0, 3);

/// IPv6 outside of it whose purpose is known, for the sake of a better word.
const NAMED_V6: [(Subnet, Why); 6] = [
    (Subnet::v6(Ipv6Addr::UNSPECIFIED, 128), Why::ThisNetwork),
    (Subnet::v6(Ipv6Addr::LOCALHOST, 128), Why::Loopback),
    (v6(0xfc00, 0, 0, 7), Why::Private),
    (v6(0xfe80, 0, 0, 10), Why::LinkLocal),
    (v6(0xfec0, 0, 0, 10), Why::Private),
    (v6(0xff00, 0, 0, 8), Why::Multicast),
];

/// IPv6 inside of it that is not public.
const CLOSED_V6: [(Subnet, Why); 4] = [
    (v6(0x2001, 0, 0, 23), Why::Protocol),
    (v6(0x2001, 0x0db8, 0, 32), Why::Documentation),
    (v6(0x2620, 0x004f, 0x8000, 48), Why::Protocol),
    (v6(0x3fff, 0, 0, 20), Why::Documentation),
];

/// Prefixes under which an IPv4 address is hidden.
const MAPPED: Subnet = Subnet::v6(Ipv6Addr::new(0, 0, 0, 0, 0, 0xffff, 0, 0), 96);
const TRANSLATED: Subnet = Subnet::v6(Ipv6Addr::new(0, 0, 0, 0, 0xffff, 0, 0, 0), 96);
const COMPATIBLE: Subnet = Subnet::v6(Ipv6Addr::UNSPECIFIED, 96);
const NAT64: Subnet = v6(0x0064, 0xff9b, 0, 96);
const NAT64_LOCAL: Subnet = v6(0x0064, 0xff9b, 1, 48);
const SIX_TO_FOUR: Subnet = v6(0x2002, 0, 0, 16);
const TEREDO: Subnet = v6(0x2001, 0, 0, 32);

/// Why an address is not public; nothing if it is.
pub(super) fn closed(address: IpAddr) -> Option<Why> {
    let in_list = |list: &[(Subnet, Why)]| {
        let found = list.iter().find(|(block, _)| block.contains(address));
        found.map(|(_, why)| *why)
    };
    match address {
        IpAddr::V4(_) => in_list(&CLOSED_V4),
        IpAddr::V6(_) if GLOBAL_V6.contains(address) => in_list(&CLOSED_V6),
        IpAddr::V6(_) => in_list(&NAMED_V6).or(Some(Why::NotGlobal)),
    }
}

/// The IPv4 address that an IPv6 address stands for, if it does. A network that translates by a prefix of its own puts it where it
/// likes: then nobody can say.
pub(super) fn embedded(address: IpAddr) -> Option<(Option<Ipv4Addr>, Why)> {
    let IpAddr::V6(v6) = address else {
        return None;
    };
    let bytes = v6.octets();
    let at = |place: usize| {
        let [a, b, c, d] = [0, 1, 2, 3].map(|more| bytes[place + more]);
        Some(Ipv4Addr::new(a, b, c, d))
    };
    let within = |block: Subnet| block.contains(address);
    if within(MAPPED) || within(TRANSLATED) {
        Some((at(12), Why::Mapped))
    } else if within(NAT64) {
        Some((at(12), Why::Nat64))
    } else if within(NAT64_LOCAL) {
        Some((None, Why::Nat64))
    } else if within(SIX_TO_FOUR) {
        Some((at(2), Why::SixToFour))
    } else if within(TEREDO) {
        // The client's address stands there inverted; the server's, in front, is only a relay.
        let inverted = at(12).map(|inner| Ipv4Addr::from_bits(!inner.to_bits()));
        Some((inverted, Why::Teredo))
    } else if within(COMPATIBLE) && bytes[12] != 0 {
        // `::` and `::1` are not in this form; no other address of `0.0.0.0/8` is worth a word of its own.
        Some((at(12), Why::Compatible))
    } else {
        None
    }
}
