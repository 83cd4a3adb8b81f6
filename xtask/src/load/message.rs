//! Messages to an application, as a publisher's program posts them.

use super::order::Order;
use super::requests::{ID_DIGITS, Ids, Requests};
use super::template::{Slot, Template};

/// Messages that differ in their `eventId` alone. The order's secret is the token.
#[derive(Debug)]
pub(super) struct Message {
    template: Template,
    id: Slot,
    ids: Ids,
}

impl Message {
    /// Requests as `order` wants them.
    pub(super) fn new(order: &Order, ids: Ids) -> anyhow::Result<Message> {
        let mut template = Template::post(&order.path, order.body_bytes);
        template.text(&format!("authorization: Bearer {}\r\n", order.secret));
        template.start_body();
        template.text("{\"eventType\":\"invoice.paid\",\"eventId\":\"");
        let id = template.slot(ID_DIGITS);
        template.text("\",\"payload\":{");
        template.pad_body_to(order.body_bytes, "\"}}")?;
        Ok(Message { template, id, ids })
    }
}

impl Requests for Message {
    fn next(&mut self) -> &[u8] {
        self.ids.write(self.template.at(&self.id));
        self.template.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::super::order::Shape;
    use super::super::requests::maker;
    use super::super::requests::tests::{order, parts};

    #[test]
    fn every_message_has_an_id_of_its_own_and_a_whole_payload() {
        let order = order(Shape::Message, "token");
        let mut requests = maker(&order, 7, 0).expect("a maker");
        let (head, first) = parts(requests.next());
        let (_, second) = parts(requests.next());
        assert!(head.contains("authorization: Bearer token"), "{head}");
        assert_ne!(first, second);
        let body: serde_json::Value = serde_json::from_slice(&first).expect("JSON");
        assert_eq!(body["eventType"], "invoice.paid");
        assert!(body["payload"]["padding"].is_string());
    }
}
