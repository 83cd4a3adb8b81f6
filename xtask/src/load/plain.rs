//! The same bytes every time.

use super::order::Order;
use super::requests::Requests;
use super::template::Template;

/// Unsigned requests that are all alike.
#[derive(Debug)]
pub(super) struct Plain(Template);

impl Plain {
    /// Requests as `order` wants them.
    pub(super) fn new(order: &Order) -> anyhow::Result<Plain> {
        let mut template = Template::post(&order.path, order.body_bytes);
        template.start_body();
        template.text("{");
        template.pad_body(order.body_bytes)?;
        Ok(Plain(template))
    }
}

impl Requests for Plain {
    fn next(&mut self) -> &[u8] {
        self.0.bytes()
    }
}
