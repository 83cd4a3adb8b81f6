//! The subject of a client's certificate, as a name.
//!
//! The certificate has been verified when this reads it, so that its form is known to be right; what is not understood names nobody.

/// One element of DER: its tag, what is in it, and what follows it.
type Element<'d> = (u8, &'d [u8], &'d [u8]);

const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const OBJECT_ID: u8 = 0x06;
const VERSION: u8 = 0xa0;
/// Types of text whose bytes are UTF-8 or a part of it: UTF8String, PrintableString, IA5String.
const TEXTS: [u8; 3] = [0x0c, 0x13, 0x16];
/// The attributes that people know by a short name (RFC 4514, 3), all below 2.5.4.
const SHORT: [(u8, &str); 7] = [
    (3, "CN"),
    (5, "SERIALNUMBER"),
    (6, "C"),
    (7, "L"),
    (8, "ST"),
    (10, "O"),
    (11, "OU"),
];

/// The subject of a certificate, such as `CN=billing,O=Example`, in the order of the certificate.
pub fn of(certificate: &[u8]) -> Option<String> {
    let (_, inner, _) = element(certificate).filter(|(tag, ..)| *tag == SEQUENCE)?;
    let (_, mut rest, _) = element(inner).filter(|(tag, ..)| *tag == SEQUENCE)?;
    if let Some((VERSION, _, after)) = element(rest) {
        rest = after;
    }
    // Serial number, algorithm, issuer and validity stand before it.
    for _ in 0..4 {
        rest = element(rest)?.2;
    }
    let (_, names, _) = element(rest).filter(|(tag, ..)| *tag == SEQUENCE)?;
    let mut text = Vec::new();
    let mut rest = names;
    while !rest.is_empty() {
        let (_, set, after) = element(rest).filter(|(tag, ..)| *tag == SET)?;
        text.push(attributes(set)?);
        rest = after;
    }
    (!text.is_empty()).then(|| text.join(","))
}

fn attributes(mut set: &[u8]) -> Option<String> {
    let mut text = Vec::new();
    while !set.is_empty() {
        let (_, pair, after) = element(set).filter(|(tag, ..)| *tag == SEQUENCE)?;
        let (_, id, value) = element(pair).filter(|(tag, ..)| *tag == OBJECT_ID)?;
        let (tag, value, _) = element(value)?;
        text.push(format!("{}={}", attribute(id), shown(tag, value)));
        set = after;
    }
    (!text.is_empty()).then(|| text.join("+"))
}

fn attribute(id: &[u8]) -> String {
    let short = match id {
        [0x55, 0x04, last] => SHORT.iter().find(|(number, _)| number == last),
        _ => None,
    };
    match short {
        Some((_, name)) => (*name).to_owned(),
        None => format!("#{}", hex::encode(id)),
    }
}

/// Text with whatever separates attributes escaped, so that no value can pretend to be two; bytes in hexadecimal otherwise.
fn shown(tag: u8, value: &[u8]) -> String {
    let text = std::str::from_utf8(value).ok();
    let Some(text) = text.filter(|text| TEXTS.contains(&tag) && !text.contains(char::is_control))
    else {
        return format!("#{tag:02x}{}", hex::encode(value));
    };
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        if matches!(letter, ',' | '+' | '=' | '#' | '\\' | '"' | '<' | '>' | ';') {
            escaped.push('\\');
        }
        escaped.push(letter);
    }
    escaped
}

fn element(bytes: &[u8]) -> Option<Element<'_>> {
    let [tag, length, rest @ ..] = bytes else {
        return None;
    };
    let (length, rest) = match *length {
        short @ 0..=0x7f => (usize::from(short), rest),
        long => {
            let count = usize::from(long & 0x7f);
            // Four bytes are gigabytes: no certificate is as long.
            let bytes = rest.get(..count).filter(|_| (1..=4).contains(&count))?;
            let length = bytes
                .iter()
                .fold(0, |length, byte| (length << 8) | usize::from(*byte));
            (length, &rest[count..])
        }
    };
    Some((*tag, rest.get(..length)?, rest.get(length..)?))
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};

    use super::*;

    fn subject(names: &[(DnType, &str)]) -> Option<String> {
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).expect("a name");
        params.distinguished_name = DistinguishedName::new();
        for (kind, name) in names {
            params.distinguished_name.push(kind.clone(), *name);
        }
        let key = KeyPair::generate().expect("a key");
        let certificate = params.self_signed(&key).expect("a certificate");
        of(certificate.der())
    }

    #[test]
    fn a_certificate_names_its_subject() {
        let names = [
            (DnType::CommonName, "billing"),
            (DnType::OrganizationName, "Example, Inc. ü"),
        ];
        let name = subject(&names);
        assert_eq!(name.as_deref(), Some("CN=billing,O=Example\\, Inc. ü"));
        assert_ne!(
            subject(&[(DnType::CommonName, "a,O=b")]),
            subject(&[(DnType::CommonName, "a"), (DnType::OrganizationName, "b")])
        );
    }

    #[test]
    fn what_is_no_certificate_names_nobody() {
        assert_eq!(subject(&[]), None);
        let good = [0x30, 0x03, 0x30, 0x01, 0x05];
        for cut in 0..good.len() {
            assert_eq!(of(&good[..cut]), None);
        }
        assert_eq!(of(&[0x30, 0x84, 0xff, 0xff, 0xff, 0xff, 0]), None);
    }
}
