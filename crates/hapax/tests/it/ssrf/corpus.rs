//! The corpus: vectors as data, one a line.

use std::net::IpAddr;

use hapax::dispatch::gate::{Rules, Subnet};

const CORPUS: &str = include_str!("corpus.txt");

/// What is judged.
pub(super) enum What {
    /// A URL as a consumer wrote it.
    Url(String),
    /// All addresses of one name.
    Addresses(Vec<IpAddr>),
}

pub(super) struct Vector {
    /// As it stands in the file, with its number.
    pub(super) line: String,
    pub(super) what: What,
    /// `allowed`, or the word for why not.
    pub(super) verdict: String,
    pub(super) rules: Rules,
}

/// All vectors, with the canary's port filled in.
pub(super) fn vectors(port: u16) -> Vec<Vector> {
    let lines = CORPUS.lines().enumerate();
    let told = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    told.map(|(number, line)| vector(number + 1, line, port))
        .collect()
}

fn vector(number: usize, line: &str, port: u16) -> Vector {
    let [kind, subject, verdict, opened @ ..] = &line.split(' ').collect::<Vec<_>>()[..] else {
        panic!("line {number} has too few words");
    };
    let address = |text: &str| text.parse::<IpAddr>().expect("an address");
    let what = match *kind {
        "url" => What::Url(unescaped(&subject.replace("{port}", &port.to_string()))),
        "address" => What::Addresses(vec![address(subject)]),
        "name" => What::Addresses(subject.split(',').map(address).collect()),
        other => panic!("line {number} begins with {other}"),
    };
    let (mut subnets, mut ports) = (Vec::new(), Vec::new());
    for word in opened {
        match word.split_once('=').expect("open= or ports=") {
            ("open", list) => {
                let list = list.split(',').map(|subnet| subnet.parse::<Subnet>());
                subnets.extend(list.map(|subnet| subnet.expect("a subnet")));
            }
            ("ports", list) => {
                ports.extend(
                    list.split(',')
                        .map(|port| port.parse::<u16>().expect("a port")),
                );
            }
            other => panic!("line {number} has {other:?}"),
        }
    }
    Vector {
        line: format!("{number}: {line}"),
        what,
        verdict: (*verdict).to_owned(),
        rules: Rules::new(subnets, ports),
    }
}

/// The characters that a line cannot hold: `\s \t \n \r \0 \\ \u{..}`.
fn unescaped(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text.chars();
    while let Some(letter) = rest.next() {
        if letter != '\\' {
            plain.push(letter);
            continue;
        }
        plain.push(match rest.next().expect("a letter after a backslash") {
            's' => ' ',
            't' => '\t',
            'n' => '\n',
            'r' => '\r',
            '0' => '\0',
            '\\' => '\\',
            'u' => {
                let code: String = rest.by_ref().skip(1).take_while(|c| *c != '}').collect();
                let code = u32::from_str_radix(&code, 16).expect("a number");
                char::from_u32(code).expect("a character")
            }
            other => panic!("{text}: \\{other}"),
        });
    }
    plain
}
