//! Subnets: an address and how many of its bits count.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// A block of addresses of one family. An address of the other family is never in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subnet {
    first: IpAddr,
    bits: u8,
}

/// The text is no subnet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadSubnet {
    /// Not an address and a number of bits.
    #[error("it is not an address and a number of bits, such as 10.0.0.0/8 or fd00::/8")]
    Form,
    /// Bits are set that do not count: a slip of the hand.
    #[error("it has bits beyond its length; the subnet would be {0}")]
    HostBits(Subnet),
}

impl Subnet {
    /// A block of IPv4. Bits of `first` that do not count are the caller's mistake.
    pub(super) const fn v4(first: Ipv4Addr, bits: u8) -> Subnet {
        Subnet {
            first: IpAddr::V4(first),
            bits,
        }
    }

    /// A block of IPv6, likewise.
    pub(super) const fn v6(first: Ipv6Addr, bits: u8) -> Subnet {
        Subnet {
            first: IpAddr::V6(first),
            bits,
        }
    }

    /// Is the address in it?
    pub fn contains(self, address: IpAddr) -> bool {
        match (self.first, address) {
            (IpAddr::V4(first), IpAddr::V4(address)) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(self.bits)).unwrap_or(0);
                first.to_bits() & mask == address.to_bits() & mask
            }
            (IpAddr::V6(first), IpAddr::V6(address)) => {
                let mask = u128::MAX
                    .checked_shl(128 - u32::from(self.bits))
                    .unwrap_or(0);
                first.to_bits() & mask == address.to_bits() & mask
            }
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
        }
    }

    /// Is it this address and no other?
    pub(super) fn is_only(self, address: IpAddr) -> bool {
        let whole = match address {
            IpAddr::V4(_) => 32,
            IpAddr::V6(_) => 128,
        };
        self.bits == whole && self.first == address
    }

    fn trimmed(self) -> Subnet {
        let first = match self.first {
            IpAddr::V4(first) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(self.bits)).unwrap_or(0);
                IpAddr::V4(Ipv4Addr::from_bits(first.to_bits() & mask))
            }
            IpAddr::V6(first) => {
                let mask = u128::MAX
                    .checked_shl(128 - u32::from(self.bits))
                    .unwrap_or(0);
                IpAddr::V6(Ipv6Addr::from_bits(first.to_bits() & mask))
            }
        };
        Subnet { first, ..self }
    }
}

impl FromStr for Subnet {
    type Err = BadSubnet;

    fn from_str(text: &str) -> Result<Subnet, BadSubnet> {
        let (first, bits) = text.split_once('/').ok_or(BadSubnet::Form)?;
        let first: IpAddr = first.parse().map_err(|_| BadSubnet::Form)?;
        let whole = match first {
            IpAddr::V4(_) => 32,
            IpAddr::V6(_) => 128,
        };
        let plain = bits.bytes().all(|byte| byte.is_ascii_digit());
        let bits: Option<u8> = bits.parse().ok().filter(|bits| plain && *bits <= whole);
        let subnet = Subnet {
            first,
            bits: bits.ok_or(BadSubnet::Form)?,
        };
        match subnet.trimmed() {
            same if same == subnet => Ok(subnet),
            meant => Err(BadSubnet::HostBits(meant)),
        }
    }
}

impl fmt::Display for Subnet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.first, self.bits)
    }
}
