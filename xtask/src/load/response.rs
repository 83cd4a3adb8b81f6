//! The smallest parser of HTTP/1.1 responses that can be trusted: status and content length, all else is an error.

use std::fmt;

/// A whole response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    /// Its status code.
    pub(super) status: u16,
    /// Will the server close the connection?
    pub(super) close: bool,
}

/// Why bytes are not a response that this parser knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Malformed {
    /// The first line is not `HTTP/1.1 NNN ...`.
    StatusLine,
    /// A header line without a colon.
    Header,
    /// No content length, two of them, or none that is a number.
    ContentLength,
    /// A transfer encoding, which this parser does not read.
    TransferEncoding,
    /// More bytes than the response has.
    Surplus,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Malformed::StatusLine => "response without an HTTP/1.1 status line",
            Malformed::Header => "response with a broken header",
            Malformed::ContentLength => "response without one content-length",
            Malformed::TransferEncoding => "response with a transfer-encoding",
            Malformed::Surplus => "bytes after the response",
        })
    }
}

/// Reads `received`, all bytes since the request was sent: `None` until the response is complete.
pub(super) fn parse(received: &[u8]) -> Result<Option<Answer>, Malformed> {
    let Some(head_end) = find(received, b"\r\n\r\n") else {
        return Ok(None);
    };
    let (head, body) = (&received[..head_end], &received[head_end + 4..]);
    let mut lines = Lines(Some(head));
    let status = status(lines.next().unwrap_or_default())?;
    let mut length = None;
    let mut close = false;
    for line in lines {
        let colon = line.iter().position(|byte| *byte == b':');
        let (name, value) = line.split_at(colon.ok_or(Malformed::Header)?);
        let value = value[1..].trim_ascii();
        if name.eq_ignore_ascii_case(b"content-length") {
            let number = number(value).ok_or(Malformed::ContentLength)?;
            if length.replace(number).is_some() {
                return Err(Malformed::ContentLength);
            }
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            return Err(Malformed::TransferEncoding);
        } else if name.eq_ignore_ascii_case(b"connection") {
            close |= value.eq_ignore_ascii_case(b"close");
        }
    }
    let length = length.ok_or(Malformed::ContentLength)?;
    match body.len().cmp(&length) {
        std::cmp::Ordering::Less => Ok(None),
        std::cmp::Ordering::Equal => Ok(Some(Answer { status, close })),
        std::cmp::Ordering::Greater => Err(Malformed::Surplus),
    }
}

fn status(line: &[u8]) -> Result<u16, Malformed> {
    let rest = line
        .strip_prefix(b"HTTP/1.1 ")
        .ok_or(Malformed::StatusLine)?;
    let (code, reason) = rest.split_at_checked(3).ok_or(Malformed::StatusLine)?;
    match number(code) {
        Some(code @ 100..=599) if reason.is_empty() || reason[0] == b' ' => Ok(code as u16),
        _ => Err(Malformed::StatusLine),
    }
}

/// A decimal number of at most nine digits, so that it cannot overflow.
fn number(digits: &[u8]) -> Option<usize> {
    if digits.is_empty() || digits.len() > 9 || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let value = digits
        .iter()
        .fold(0, |value, digit| value * 10 + usize::from(digit - b'0'));
    Some(value)
}

/// The lines of a head, split at CR LF.
struct Lines<'a>(Option<&'a [u8]>);

impl<'a> Iterator for Lines<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let rest = self.0?;
        match find(rest, b"\r\n") {
            Some(end) => {
                self.0 = Some(&rest[end + 2..]);
                Some(&rest[..end])
            }
            None => {
                self.0 = None;
                Some(rest)
            }
        }
    }
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack
        .windows(needle.len())
        .position(|window| window == needle)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ACCEPTED: &[u8] =
        b"HTTP/1.1 202 Accepted\r\nContent-Length: 11\r\ndate: x\r\n\r\n{\"ok\":true}";

    #[test]
    fn a_response_is_complete_at_its_last_byte_however_it_is_split() {
        for end in 0..ACCEPTED.len() {
            assert_eq!(parse(&ACCEPTED[..end]), Ok(None), "after {end} bytes");
        }
        let answer = Answer {
            status: 202,
            close: false,
        };
        assert_eq!(parse(ACCEPTED), Ok(Some(answer)));
    }

    #[test]
    fn an_empty_body_and_a_closing_connection_are_read() {
        let bytes = b"HTTP/1.1 503 \r\ncontent-length:0\r\nCONNECTION: Close\r\n\r\n";
        let answer = Answer {
            status: 503,
            close: true,
        };
        assert_eq!(parse(bytes), Ok(Some(answer)));
    }

    #[test]
    fn everything_else_is_an_error() {
        let table: [(&[u8], Malformed); 10] = [
            (
                b"HTTP/1.0 200 OK\r\ncontent-length: 0\r\n\r\n",
                Malformed::StatusLine,
            ),
            (
                b"HTTP/1.1 20 OK\r\ncontent-length: 0\r\n\r\n",
                Malformed::StatusLine,
            ),
            (
                b"HTTP/1.1 999 OK\r\ncontent-length: 0\r\n\r\n",
                Malformed::StatusLine,
            ),
            (b"\r\n\r\n", Malformed::StatusLine),
            (b"HTTP/1.1 200 OK\r\nnonsense\r\n\r\n", Malformed::Header),
            (b"HTTP/1.1 204 No Content\r\n\r\n", Malformed::ContentLength),
            (
                b"HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n",
                Malformed::ContentLength,
            ),
            (
                b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 1\r\n\r\na",
                Malformed::ContentLength,
            ),
            (
                b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
                Malformed::TransferEncoding,
            ),
            (
                b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nab",
                Malformed::Surplus,
            ),
        ];
        for (bytes, malformed) in table {
            let shown = String::from_utf8_lossy(bytes);
            assert_eq!(parse(bytes), Err(malformed), "{shown:?}");
        }
    }
}
