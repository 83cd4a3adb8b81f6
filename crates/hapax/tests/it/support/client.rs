//! HTTP/1.1 over one socket: as little as a provider's client needs, and every byte in the test's hands.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

use super::clock::TOO_LONG;
use super::server::TOKEN;

/// More than any answer of the program's that a test reads.
const ANSWER_BYTES_MAX: usize = 4 * 1024 * 1024;

/// A connection that is kept open from request to request.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: TcpStream,
    unread: Vec<u8>,
}

/// A whole answer.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    head: String,
    body: Vec<u8>,
}

impl Answer {
    /// The value of a header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(':'));
        let mut values = lines.filter(|(found, _)| found.eq_ignore_ascii_case(name));
        values.next().map(|(_, value)| value.trim())
    }

    /// The body as it came.
    pub(crate) fn body(&self) -> &[u8] {
        &self.body
    }

    /// The body as JSON.
    #[track_caller]
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error} in {self:?}"))
    }

    /// The code of a problem, empty if the answer is none.
    pub(crate) fn code(&self) -> String {
        let body: Option<serde_json::Value> = serde_json::from_slice(&self.body).ok();
        body.and_then(|body| Some(body["code"].as_str()?.to_owned()))
            .unwrap_or_default()
    }

    /// A refusal that asks the sender to try again: 503, this code, and when to come back (A3, promise 6).
    #[track_caller]
    pub(crate) fn expect_try_again(&self, code: &str) {
        assert_eq!((self.status, self.code().as_str()), (503, code), "{self:?}");
        let after = self
            .header("retry-after")
            .and_then(|after| after.parse::<u32>().ok());
        assert!(after.is_some(), "no Retry-After in {self:?}");
    }
}

impl Connection {
    /// Connects; `TOO_LONG` without a byte is an error from then on.
    #[expect(
        clippy::disallowed_methods,
        reason = "tests speak to the program they started, on loopback"
    )]
    pub(crate) fn open(address: SocketAddr) -> io::Result<Connection> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(TOO_LONG))?;
        stream.set_write_timeout(Some(TOO_LONG))?;
        Ok(Connection {
            stream,
            unread: Vec::new(),
        })
    }

    /// Sends bytes as they are.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// Sends a request and reads its answer.
    pub(crate) fn ask(&mut self, request: &[u8]) -> io::Result<Answer> {
        self.send(request)?;
        self.answer()
    }

    /// Asks the API, with the token.
    #[track_caller]
    pub(crate) fn get(&mut self, path: &str) -> serde_json::Value {
        let request = format!(
            "GET {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {TOKEN}\r\n\r\n"
        );
        self.ask(request.as_bytes()).expect("an answer").json()
    }

    /// Reads one answer. An end of the stream before its first byte is `UnexpectedEof`, as is one in its middle.
    pub(crate) fn answer(&mut self) -> io::Result<Answer> {
        let head_end = loop {
            match find(&self.unread, b"\r\n\r\n") {
                Some(at) => break at + 4,
                None => self.read_more()?,
            }
        };
        let head: Vec<u8> = self.unread.drain(..head_end).collect();
        let head = String::from_utf8_lossy(&head).into_owned();
        let status = head
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok());
        let status = status.ok_or_else(|| io::Error::new(ErrorKind::InvalidData, head.clone()))?;
        let mut answer = Answer {
            status,
            head,
            body: Vec::new(),
        };
        let length = match answer.header("content-length") {
            Some(length) => length
                .parse()
                .map_err(|_| io::Error::new(ErrorKind::InvalidData, answer.head.clone()))?,
            None => 0,
        };
        while self.unread.len() < length {
            self.read_more()?;
        }
        answer.body = self.unread.drain(..length).collect();
        Ok(answer)
    }

    fn read_more(&mut self) -> io::Result<()> {
        let mut piece = [0; 16 * 1024];
        match self.stream.read(&mut piece)? {
            0 => Err(ErrorKind::UnexpectedEof.into()),
            read if self.unread.len() + read > ANSWER_BYTES_MAX => {
                Err(ErrorKind::FileTooLarge.into())
            }
            read => {
                self.unread.extend_from_slice(&piece[..read]);
                Ok(())
            }
        }
    }

    /// What comes up to a text, and without it. For answers that have no end.
    pub(crate) fn read_until(&mut self, wanted: &str) -> io::Result<String> {
        let at = loop {
            match find(&self.unread, wanted.as_bytes()) {
                Some(at) => break at,
                None => self.read_more()?,
            }
        };
        let mut read: Vec<u8> = self.unread.drain(..at + wanted.len()).collect();
        read.truncate(at);
        Ok(String::from_utf8_lossy(&read).into_owned())
    }

    /// The body of an answer that comes in chunks and whose head has been read, to its end.
    pub(crate) fn chunks(&mut self) -> io::Result<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let line = self.read_until("\r\n")?;
            let size = usize::from_str_radix(&line, 16)
                .map_err(|_| io::Error::new(ErrorKind::InvalidData, line))?;
            // Its line ends where it does. The last one is empty, and no trailers are expected behind it.
            while self.unread.len() < size + 2 {
                self.read_more()?;
            }
            body.extend_from_slice(&self.unread[..size]);
            self.unread.drain(..size + 2);
            if size == 0 {
                return Ok(body);
            }
        }
    }

    /// Does nothing come for this long? A peer that closes says something too.
    pub(crate) fn is_silent_for(&mut self, time: Duration) -> bool {
        self.stream.set_read_timeout(Some(time)).expect("a time");
        let silent = matches!(self.stream.peek(&mut [0]), Err(error) if is_timeout(&error));
        self.stream
            .set_read_timeout(Some(TOO_LONG))
            .expect("a time");
        silent
    }

    /// Reads to the end of the stream; a reset is an end too. Fails if the peer keeps it open.
    pub(crate) fn rest(&mut self) -> Vec<u8> {
        loop {
            match self.read_more() {
                Ok(()) => {}
                Err(error) if is_timeout(&error) => panic!("the connection was not closed"),
                Err(_) => return std::mem::take(&mut self.unread),
            }
        }
    }

    /// Says that nothing more will be sent.
    pub(crate) fn finish(&self) {
        let _ = self.stream.shutdown(Shutdown::Write);
    }
}

/// A read that ran into its time limit; which of the two names it has depends on the system.
fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes
        .windows(wanted.len())
        .position(|window| window == wanted)
}
