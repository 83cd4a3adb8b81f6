//! Questions to a name server and its answers, as they travel (RFC 1035). Pure.
//!
//! A question says nothing beyond the oldest form, so that every server understands it; an answer that does not fit into a datagram is fetched
//! over TCP.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const HEADER_BYTES: usize = 12;
const NAME_BYTES_MAX: usize = 255;
const LABEL_BYTES_MAX: usize = 63;
/// How often a name may be said to be another one: what resolvers commonly follow.
const ALIASES_MAX: usize = 16;

const CLASS_INTERNET: u16 = 1;
const TYPE_ALIAS: u16 = 5;
const IS_ANSWER: u16 = 1 << 15;
const OPCODE: u16 = 0b1111 << 11;
const IS_TRUNCATED: u16 = 1 << 9;
const RECURSION_DESIRED: u16 = 1 << 8;
const CODE: u16 = 0b1111;

/// Which addresses are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    V4,
    V6,
}

impl Kind {
    const fn code(self) -> u16 {
        match self {
            Kind::V4 => 1,
            Kind::V6 => 28,
        }
    }

    fn address(self, data: &[u8]) -> Option<IpAddr> {
        match self {
            Kind::V4 => <[u8; 4]>::try_from(data)
                .ok()
                .map(|bytes| Ipv4Addr::from(bytes).into()),
            Kind::V6 => <[u8; 16]>::try_from(data)
                .ok()
                .map(|bytes| Ipv6Addr::from(bytes).into()),
        }
    }
}

/// A name, label by label as it travels, in lower case: two that are the same name are the same bytes.
type Name = Vec<u8>;

/// One question.
#[derive(Clone, Debug)]
pub(super) struct Question {
    /// What an answer has to repeat. Drawn, so that nobody who does not see the question can answer it.
    id: u16,
    name: Name,
    kind: Kind,
}

/// What a server said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Said {
    /// These are all; perhaps there is none, or no such name.
    Addresses(Vec<IpAddr>),
    /// More than fits.
    Truncated,
    /// It could not or would not find out, or what it said makes no sense.
    Failed,
}

impl Question {
    /// A question for a host; nothing if no name of the network's can be called that.
    pub(super) fn new(host: &str, kind: Kind, id: u16) -> Option<Question> {
        let mut name = Name::new();
        for label in host.split('.') {
            let length = u8::try_from(label.len()).ok()?;
            if length == 0 || label.len() > LABEL_BYTES_MAX {
                return None;
            }
            name.push(length);
            name.extend(label.bytes().map(|byte| byte.to_ascii_lowercase()));
        }
        name.push(0);
        (name.len() <= NAME_BYTES_MAX).then_some(Question { id, name, kind })
    }

    /// As it is sent.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEADER_BYTES + self.name.len() + 4);
        let counts = [1, 0, 0, 0];
        let header = [self.id, RECURSION_DESIRED].into_iter().chain(counts);
        bytes.extend(header.flat_map(u16::to_be_bytes));
        bytes.extend(&self.name);
        bytes.extend(self.kind.code().to_be_bytes());
        bytes.extend(CLASS_INTERNET.to_be_bytes());
        bytes
    }

    /// Reads a packet; nothing if it is not an answer to this question.
    pub(super) fn read(&self, packet: &[u8]) -> Option<Said> {
        let flags = number(packet, 2)?;
        let is_ours = number(packet, 0)? == self.id && flags & (IS_ANSWER | OPCODE) == IS_ANSWER;
        let (name, after) = name_at(packet, HEADER_BYTES)?;
        let repeats = number(packet, 4)? == 1
            && name == self.name
            && number(packet, after)? == self.kind.code()
            && number(packet, after + 2)? == CLASS_INTERNET;
        if !is_ours || !repeats {
            return None;
        }
        if flags & IS_TRUNCATED != 0 {
            return Some(Said::Truncated);
        }
        let said = match flags & CODE {
            0 => self.addresses(packet, after + 4).map(Said::Addresses),
            // There is no such name.
            3 => Some(Said::Addresses(Vec::new())),
            _ => None,
        };
        Some(said.unwrap_or(Said::Failed))
    }

    /// The addresses in the records from there on, of the name that was asked for or of what it is said to be; nothing if they cannot be
    /// read.
    fn addresses(&self, packet: &[u8], mut at: usize) -> Option<Vec<IpAddr>> {
        let mut aliases: Vec<(Name, Name)> = Vec::new();
        let mut found: Vec<(Name, IpAddr)> = Vec::new();
        for _ in 0..number(packet, 6)? {
            let (owner, fixed) = name_at(packet, at)?;
            let (kind, class) = (number(packet, fixed)?, number(packet, fixed + 2)?);
            // In between is how long it counts, which our own memory decides.
            let length = usize::from(number(packet, fixed + 8)?);
            let start = fixed + 10;
            let data = packet.get(start..start + length)?;
            at = start + length;
            match class == CLASS_INTERNET {
                true if kind == TYPE_ALIAS => aliases.push((owner, name_at(packet, start)?.0)),
                true if kind == self.kind.code() => found.push((owner, self.kind.address(data)?)),
                true | false => {}
            }
        }
        let mut name = &self.name;
        for _ in 0..=ALIASES_MAX {
            let here = found.iter().filter(|(owner, _)| owner == name);
            let here: Vec<IpAddr> = here.map(|(_, address)| *address).collect();
            let next = aliases.iter().find(|(owner, _)| owner == name);
            match (here.is_empty(), next) {
                (true, Some((_, alias))) => name = alias,
                (false, _) | (true, None) => return Some(here),
            }
        }
        None
    }
}

fn number(packet: &[u8], at: usize) -> Option<u16> {
    let bytes = packet.get(at..at + 2)?;
    Some(u16::from_be_bytes([bytes[0], bytes[1]]))
}

/// The name at a place, and what comes after it. A name may end as one that was written before: each such reference has to lead further
/// back than the last, so that reading ends.
fn name_at(packet: &[u8], start: usize) -> Option<(Name, usize)> {
    let mut name = Name::new();
    let (mut at, mut first, mut after) = (start, start, None);
    loop {
        let length = usize::from(*packet.get(at)?);
        match length {
            0 => {
                name.push(0);
                return Some((name, after.unwrap_or(at + 1)));
            }
            1..=LABEL_BYTES_MAX => {
                let label = packet.get(at..=at + length)?;
                name.extend(label.iter().map(u8::to_ascii_lowercase));
                at += 1 + length;
                if name.len() >= NAME_BYTES_MAX {
                    return None;
                }
            }
            0xc0.. => {
                let there = usize::from(number(packet, at)? & 0x3fff);
                if there >= first {
                    return None;
                }
                after.get_or_insert(at + 2);
                (at, first) = (there, there);
            }
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests;
