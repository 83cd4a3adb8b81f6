//! A stream of server-sent events as the client reads it.

use std::collections::VecDeque;
use std::time::Duration;

use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde_json::Value;

/// A server that says nothing for so long is gone: it says that it is there every 15 s.
const SILENT_MAX: Duration = Duration::from_secs(45);
/// The longest line. A row of the list with the longest key is far below.
const LINE_BYTES_MAX: usize = 1024 * 1024;

/// Events as they come.
pub(super) struct Stream {
    body: Incoming,
    lines: Lines,
}

impl Stream {
    pub(super) fn new(body: Incoming) -> Stream {
        Stream {
            body,
            lines: Lines::default(),
        }
    }

    /// The next event; nothing when the stream has ended, however.
    pub(super) async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(event) = self.lines.next() {
                return Some(event);
            }
            let frame = tokio::time::timeout(SILENT_MAX, self.body.frame()).await;
            let frame = frame.ok()??.ok()?;
            if let Ok(piece) = frame.into_data() {
                self.lines.take(&piece)?;
            }
        }
    }
}

/// Lines, and the events that stand in them. Our server writes an event's data in one line; what else a stream may carry is not ours.
#[derive(Default)]
struct Lines {
    unread: Vec<u8>,
    events: VecDeque<Value>,
}

impl Lines {
    /// Takes what came; nothing if no line ends.
    fn take(&mut self, piece: &[u8]) -> Option<()> {
        self.unread.extend_from_slice(piece);
        let end = self.unread.iter().rposition(|byte| *byte == b'\n');
        let whole = end.map_or(0, |end| end + 1);
        for line in self.unread[..whole].split(|byte| *byte == b'\n') {
            let data = line.strip_prefix(b"data:");
            self.events
                .extend(data.and_then(|data| serde_json::from_slice(data).ok()));
        }
        self.unread.drain(..whole);
        (self.unread.len() <= LINE_BYTES_MAX).then_some(())
    }

    fn next(&mut self) -> Option<Value> {
        self.events.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn events_come_whole_however_the_bytes_are_cut() {
        let text = b": listening\n\nid: evt_1\ndata: {\"id\":\"evt_1\"}\n\n: still here\n\ndata: {\"id\":2}\n\n";
        for size in 1..text.len() {
            let mut lines = Lines::default();
            let mut events = Vec::new();
            for piece in text.chunks(size) {
                lines.take(piece).expect("short lines");
                events.extend(std::iter::from_fn(|| lines.next()));
            }
            assert_eq!(events, [json!({"id": "evt_1"}), json!({"id": 2})]);
        }
    }

    #[test]
    fn a_line_without_end_ends_the_stream() {
        let mut lines = Lines::default();
        assert!(lines.take(&vec![b'x'; LINE_BYTES_MAX]).is_some());
        assert!(lines.take(b"x").is_none());
    }
}
