//! A name server on loopback that says what a test wants, also something else each time. It speaks for the real resolution: datagrams, and TCP
//! for what does not fit.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, UdpSocket};
use std::sync::{Arc, Mutex};

/// What it says about a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Says {
    /// These are its addresses.
    Addresses(Vec<IpAddr>),
    /// The same; but a datagram is too small for them.
    AtLength(Vec<IpAddr>),
    /// It is this other name, with these addresses.
    Alias(&'static str, Vec<IpAddr>),
    /// There is no such name.
    NoName,
    /// It cannot find out.
    Fails,
    /// Nothing at all.
    Silence,
}

/// Parses addresses.
pub(crate) fn at(addresses: &[&str]) -> Says {
    Says::Addresses(parsed(addresses))
}

pub(crate) fn parsed(addresses: &[&str]) -> Vec<IpAddr> {
    let addresses = addresses.iter();
    addresses
        .map(|text| text.parse().expect("an address"))
        .collect()
}

type Manners = dyn Fn(&str, usize) -> Says + Send + Sync;

/// How a question came.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Over {
    Udp,
    Tcp,
}

pub(crate) struct NameServer {
    pub(crate) address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    manners: Box<Manners>,
    /// How often each name was asked for, for addresses of IPv4.
    asked: Mutex<HashMap<String, usize>>,
}

impl NameServer {
    /// One that says about each name what `manners` does, which is told how often the name was asked for before.
    pub(crate) fn new(manners: impl Fn(&str, usize) -> Says + Send + Sync + 'static) -> NameServer {
        let (datagrams, streams) = sockets();
        let address = datagrams.local_addr().expect("it is bound");
        let shared = Arc::new(Shared {
            manners: Box::new(manners),
            asked: Mutex::default(),
        });
        let (by_udp, by_tcp) = (shared.clone(), shared.clone());
        std::thread::spawn(move || {
            let mut packet = [0; 1024];
            while let Ok((length, from)) = datagrams.recv_from(&mut packet) {
                if let Some(answer) = by_udp.answer(&packet[..length], Over::Udp) {
                    let _ = datagrams.send_to(&answer, from);
                }
            }
        });
        std::thread::spawn(move || {
            for mut stream in streams.incoming().flatten() {
                let mut length = [0; 2];
                stream.read_exact(&mut length).expect("a length");
                let mut packet = vec![0; usize::from(u16::from_be_bytes(length))];
                stream.read_exact(&mut packet).expect("a question");
                let answer = by_tcp.answer(&packet, Over::Tcp).unwrap_or_default();
                let length = u16::try_from(answer.len()).expect("it fits").to_be_bytes();
                let _ = stream.write_all(&[&length[..], &answer].concat());
            }
        });
        NameServer { address, shared }
    }

    /// How often a name was asked for.
    pub(crate) fn asked(&self, name: &str) -> usize {
        let asked = self.shared.asked.lock().expect("whole");
        asked.get(name).copied().unwrap_or(0)
    }

    /// How many names were asked for.
    pub(crate) fn names(&self) -> usize {
        self.shared.asked.lock().expect("whole").len()
    }
}

/// One port for both.
fn sockets() -> (UdpSocket, TcpListener) {
    let one = || {
        let streams = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = streams.local_addr().expect("it is bound");
        UdpSocket::bind(address).ok().map(|udp| (udp, streams))
    };
    (0..64)
        .find_map(|_| one())
        .expect("a port that is free for both")
}

impl Shared {
    fn answer(&self, question: &[u8], over: Over) -> Option<Vec<u8>> {
        let (name, end) = name_in(question);
        let kind = u16::from_be_bytes([question[end], question[end + 1]]);
        let before = match (kind, over) {
            (1, Over::Udp) => {
                let mut asked = self.asked.lock().expect("whole");
                let times = asked.entry(name.clone()).or_default();
                *times += 1;
                *times - 1
            }
            _ => self
                .asked
                .lock()
                .expect("whole")
                .get(&name)
                .map_or(0, |times| times - 1),
        };
        let (flags, alias, addresses) = match ((self.manners)(&name, before), over) {
            (Says::Silence, _) => return None,
            (Says::Fails, _) => (0x8182_u16, None, Vec::new()),
            (Says::NoName, _) => (0x8183, None, Vec::new()),
            (Says::AtLength(_), Over::Udp) => (0x8380, None, Vec::new()),
            (Says::Addresses(addresses) | Says::AtLength(addresses), _) => {
                (0x8180, None, addresses)
            }
            (Says::Alias(other, addresses), _) => (0x8180, Some(other), addresses),
        };
        let fitting = addresses
            .iter()
            .filter(|address| address.is_ipv4() == (kind == 1));
        let mut records: Vec<Vec<u8>> = Vec::new();
        // Where the name of the question stands.
        let mut owner = vec![0xc0, 12];
        if let Some(other) = alias {
            records.push(record(&owner, 5, &labels(other)));
            owner = labels(other);
        }
        records.extend(fitting.map(|address| match address {
            IpAddr::V4(address) => record(&owner, 1, &address.octets()),
            IpAddr::V6(address) => record(&owner, 28, &address.octets()),
        }));
        let mut answer = question[..2].to_vec();
        answer.extend(flags.to_be_bytes());
        let count = u16::try_from(records.len()).expect("few");
        answer.extend([1, count, 0, 0].into_iter().flat_map(u16::to_be_bytes));
        answer.extend(&question[12..end + 4]);
        answer.extend(records.concat());
        Some(answer)
    }
}

/// The name that is asked for, and where it ends.
fn name_in(question: &[u8]) -> (String, usize) {
    let (mut labels, mut place) = (Vec::new(), 12);
    while question[place] != 0 {
        let end = place + 1 + usize::from(question[place]);
        labels.push(String::from_utf8_lossy(&question[place + 1..end]).into_owned());
        place = end;
    }
    (labels.join("."), place + 1)
}

fn labels(name: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    for label in name.split('.') {
        bytes.push(u8::try_from(label.len()).expect("short"));
        bytes.extend(label.bytes());
    }
    bytes.push(0);
    bytes
}

fn record(owner: &[u8], kind: u16, data: &[u8]) -> Vec<u8> {
    let length = u16::try_from(data.len()).expect("short");
    let fixed = [kind, 1, 0, 60, length].into_iter();
    let fixed: Vec<u8> = fixed.flat_map(u16::to_be_bytes).collect();
    [owner, &fixed, data].concat()
}
