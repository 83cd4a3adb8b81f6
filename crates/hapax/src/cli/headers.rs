//! A captured request head: `Name: value` lines, as `curl -D` or a copied request has them.

/// What was captured.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Head {
    /// The method of the request line, if there is one.
    pub(super) method: Option<String>,
    /// The path and query of the request line, if there is one.
    pub(super) target: Option<String>,
    /// The headers.
    pub(super) headers: Vec<(String, Vec<u8>)>,
}

/// Reads a head; on failure the number of the line that is none.
pub(super) fn parse(bytes: &[u8]) -> Result<Head, usize> {
    let mut head = Head::default();
    for (index, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
        let line = line.trim_ascii();
        // curl -v marks what it sent with an angle.
        let line = line.strip_prefix(b">").map_or(line, <[u8]>::trim_ascii);
        if line.is_empty() {
            // The empty line before a body; leading and trailing ones do no harm.
            if head.headers.is_empty() {
                continue;
            }
            break;
        }
        if head.headers.is_empty() && request_line(line, &mut head) {
            continue;
        }
        let colon = line
            .iter()
            .position(|byte| *byte == b':')
            .ok_or(index + 1)?;
        let name = std::str::from_utf8(&line[..colon]).map_err(|_| index + 1)?;
        if http::HeaderName::try_from(name).is_err() {
            return Err(index + 1);
        }
        let value = line[colon + 1..].trim_ascii().to_vec();
        head.headers.push((name.to_ascii_lowercase(), value));
    }
    Ok(head)
}

/// `POST /in/billing HTTP/1.1`.
fn request_line(line: &[u8], head: &mut Head) -> bool {
    let Ok(line) = std::str::from_utf8(line) else {
        return false;
    };
    let mut words = line.split_ascii_whitespace();
    match (words.next(), words.next(), words.next(), words.next()) {
        (Some(method), Some(target), Some(version), None) if version.starts_with("HTTP/") => {
            head.method = Some(method.to_ascii_uppercase());
            head.target = Some(target.to_owned());
            true
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_heads_as_tools_write_them() {
        let plain = b"Host: a\nStripe-Signature: t=1,v1=ab:c\n";
        let copied = b"POST /in/x?a=b HTTP/1.1\r\nHost: a\r\nStripe-Signature:  t=1,v1=ab:c \r\n\r\n{\"not\":\"a header\"}";
        let curl = b"> POST /in/x?a=b HTTP/1.1\n> Host: a\n> Stripe-Signature: t=1,v1=ab:c\n> \n";
        let want = [("host", "a"), ("stripe-signature", "t=1,v1=ab:c")];
        let want: Vec<(String, Vec<u8>)> = want.map(|(n, v)| (n.to_owned(), v.into())).into();
        for (text, method) in [
            (&plain[..], None),
            (copied, Some("POST")),
            (curl, Some("POST")),
        ] {
            let head = parse(text).expect("a head");
            assert_eq!(head.headers, want);
            assert_eq!(head.method.as_deref(), method);
        }
        assert_eq!(
            parse(copied).expect("a head").target.as_deref(),
            Some("/in/x?a=b")
        );
        assert_eq!(parse(b"Host: a\nno colon here\n"), Err(2));
        assert_eq!(parse(b"bad name: a\n"), Err(1));
        assert_eq!(parse(b""), Ok(Head::default()));
    }
}
