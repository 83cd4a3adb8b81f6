//! Requests with an `Idempotency-Key`, and nothing else that differs.

use super::order::Order;
use super::requests::{ID_DIGITS, Ids, Requests};
use super::template::{Slot, Template};

/// Requests of one caller, with bodies that are all alike.
#[derive(Debug)]
pub(super) struct Keyed {
    template: Template,
    key: Slot,
    ids: Ids,
}

impl Keyed {
    /// Requests as `order` wants them.
    pub(super) fn new(order: &Order, ids: Ids) -> anyhow::Result<Keyed> {
        let mut template = Template::post(&order.path, order.body_bytes);
        template.text("x-user: bench\r\nidempotency-key: ");
        let key = template.slot(ID_DIGITS);
        template.text("\r\n");
        template.start_body();
        template.text("{");
        template.pad_body(order.body_bytes)?;
        Ok(Keyed { template, key, ids })
    }
}

impl Requests for Keyed {
    fn next(&mut self) -> &[u8] {
        self.ids.write(self.template.at(&self.key));
        self.template.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::super::order::Shape;
    use super::super::requests::maker;
    use super::super::requests::tests::{order, parts};

    #[test]
    fn only_the_key_differs() {
        let mut maker = maker(&order(Shape::Keyed, ""), 1, 0).expect("long enough");
        let (one, body) = parts(maker.next());
        let (other, same_body) = parts(maker.next());
        assert_eq!(body, same_body);
        let differing = one
            .lines()
            .zip(other.lines())
            .filter(|(one, other)| one != other);
        let differing: Vec<_> = differing.map(|(one, _)| one).collect();
        assert!(
            matches!(differing[..], [line] if line.starts_with("idempotency-key: ")),
            "{differing:?}"
        );
    }
}
