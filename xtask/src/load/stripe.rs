//! Requests as Stripe sends them: `stripe-signature` over the time and the body.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use super::order::Order;
use super::requests::{ID_DIGITS, Ids, Requests};
use super::template::{Slot, Template};
use crate::clock;

/// Digits of a time in seconds, until the year 2286.
const TIME_DIGITS: usize = 10;

/// Signed requests, each with an id of its own.
pub(super) struct Stripe {
    template: Template,
    time: Slot,
    signature: Slot,
    id: Slot,
    key: Hmac<Sha256>,
    ids: Ids,
}

impl Stripe {
    /// Requests as `order` wants them.
    pub(super) fn new(order: &Order, ids: Ids) -> anyhow::Result<Stripe> {
        let mut template = Template::post(&order.path, order.body_bytes);
        template.text("user-agent: Stripe/bench\r\nstripe-signature: t=");
        let time = template.slot(TIME_DIGITS);
        template.text(",v1=");
        let signature = template.slot(64);
        template.text("\r\n");
        template.start_body();
        template.text("{\"id\":\"evt_");
        let id = template.slot(ID_DIGITS);
        template.text(
            "\",\"object\":\"event\",\"type\":\"invoice.paid\",\"created\":1700000000,\
             \"data\":{\"object\":{\"id\":\"in_1\",\"object\":\"invoice\",\"amount_paid\":2000}},",
        );
        template.pad_body(order.body_bytes)?;
        Ok(Stripe {
            template,
            time,
            signature,
            id,
            key: Hmac::new_from_slice(order.secret.as_bytes())?,
            ids,
        })
    }
}

impl Requests for Stripe {
    fn next(&mut self) -> &[u8] {
        let time = time_digits(clock::unix_seconds());
        self.ids.write(self.template.at(&self.id));
        self.template.at(&self.time).copy_from_slice(&time);
        let signature = sign(&self.key, &time, self.template.body());
        hex::encode_to_slice(signature, self.template.at(&self.signature))
            .expect("the slot has two digits per byte");
        self.template.bytes()
    }
}

fn sign(key: &Hmac<Sha256>, time: &[u8], body: &[u8]) -> [u8; 32] {
    let mut mac = key.clone();
    mac.update(time);
    mac.update(b".");
    mac.update(body);
    mac.finalize().into_bytes().into()
}

fn time_digits(mut seconds: u64) -> [u8; TIME_DIGITS] {
    let mut digits = [b'0'; TIME_DIGITS];
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (seconds % 10) as u8;
        seconds /= 10;
    }
    digits
}

#[cfg(test)]
mod tests {
    use super::super::order::Shape;
    use super::super::requests::maker;
    use super::super::requests::tests::{order, parts};
    use super::*;

    #[test]
    fn a_time_is_written_in_ten_digits() {
        assert_eq!(&time_digits(1_700_000_005), b"1700000005");
    }

    #[test]
    fn the_signature_covers_time_and_body() {
        let mut maker = maker(&order(Shape::Stripe, "whsec_x"), 1, 0).expect("long enough");
        let (head, body) = parts(maker.next());
        let header = head
            .lines()
            .find_map(|line| line.strip_prefix("stripe-signature: t="))
            .expect("it is signed");
        let (time, signature) = header.split_once(",v1=").expect("both parts");
        let key = Hmac::new_from_slice(b"whsec_x").expect("any length");
        assert_eq!(signature, hex::encode(sign(&key, time.as_bytes(), &body)));
    }
}
