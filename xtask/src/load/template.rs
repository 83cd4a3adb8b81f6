//! A request as bytes, built once; only marked places change from request to request.

use std::ops::Range;

use anyhow::ensure;

/// A place in a template whose bytes change.
#[derive(Clone, Debug)]
pub(super) struct Slot(Range<usize>);

/// A request under construction, then in use: head, blank line, body.
#[derive(Clone, Debug, Default)]
pub(super) struct Template {
    bytes: Vec<u8>,
    body_start: usize,
}

impl Template {
    /// The start of a POST with a JSON body of `body_bytes`.
    pub(super) fn post(path: &str, body_bytes: usize) -> Template {
        let mut template = Template::default();
        template.text(&format!(
            "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
             content-length: {body_bytes}\r\n"
        ));
        template
    }

    /// Adds fixed text.
    pub(super) fn text(&mut self, text: &str) {
        self.bytes.extend_from_slice(text.as_bytes());
    }

    /// Adds a place for `length` bytes.
    pub(super) fn slot(&mut self, length: usize) -> Slot {
        let start = self.bytes.len();
        self.bytes.resize(start + length, b'0');
        Slot(start..start + length)
    }

    /// Ends the head; what follows is the body.
    pub(super) fn start_body(&mut self) {
        self.text("\r\n");
        self.body_start = self.bytes.len();
    }

    /// Ends the body: a last JSON member, as long as it takes to reach `body_bytes`.
    pub(super) fn pad_body(&mut self, body_bytes: usize) -> anyhow::Result<()> {
        self.pad_body_to(body_bytes, "\"}")
    }

    /// The same where more than one object has to be closed: `close` is all that follows the padding.
    pub(super) fn pad_body_to(&mut self, body_bytes: usize, close: &str) -> anyhow::Result<()> {
        const OPEN: &str = "\"padding\":\"";
        let fixed = self.body().len() + OPEN.len() + close.len();
        ensure!(
            fixed <= body_bytes,
            "a body of {body_bytes} bytes is too short; this one needs {fixed}"
        );
        self.text(OPEN);
        self.bytes
            .resize(self.bytes.len() + body_bytes - fixed, b'x');
        self.text(close);
        Ok(())
    }

    /// The bytes of a slot, to be overwritten.
    pub(super) fn at(&mut self, slot: &Slot) -> &mut [u8] {
        &mut self.bytes[slot.0.clone()]
    }

    /// The body as it stands.
    pub(super) fn body(&self) -> &[u8] {
        &self.bytes[self.body_start..]
    }

    /// The whole request as it stands.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}
