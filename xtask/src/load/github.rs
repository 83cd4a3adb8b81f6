//! Requests as GitHub sends them: `x-hub-signature-256` over the body.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use super::order::Order;
use super::requests::{ID_DIGITS, Ids, Requests};
use super::template::{Slot, Template};

/// Signed requests, each with an id of its own in the body and in `x-github-delivery`.
pub(super) struct Github {
    template: Template,
    delivery: Slot,
    signature: Slot,
    id: Slot,
    key: Hmac<Sha256>,
    ids: Ids,
}

impl Github {
    /// Requests as `order` wants them.
    pub(super) fn new(order: &Order, ids: Ids) -> anyhow::Result<Github> {
        let mut template = Template::post(&order.path, order.body_bytes);
        template.text("user-agent: GitHub-Hookshot/bench\r\nx-github-event: push\r\n");
        template.text("x-github-delivery: ");
        let delivery = template.slot(ID_DIGITS);
        template.text("\r\nx-hub-signature-256: sha256=");
        let signature = template.slot(64);
        template.text("\r\n");
        template.start_body();
        template.text("{\"ref\":\"refs/heads/main\",\"after\":\"");
        let id = template.slot(ID_DIGITS);
        template.text("\",\"repository\":{\"id\":1,\"full_name\":\"example/example\"},");
        template.pad_body(order.body_bytes)?;
        Ok(Github {
            template,
            delivery,
            signature,
            id,
            key: Hmac::new_from_slice(order.secret.as_bytes())?,
            ids,
        })
    }
}

impl Requests for Github {
    fn next(&mut self) -> &[u8] {
        let mut id = [0; ID_DIGITS];
        self.ids.write(&mut id);
        self.template.at(&self.id).copy_from_slice(&id);
        self.template.at(&self.delivery).copy_from_slice(&id);
        let signature = sign(&self.key, self.template.body());
        hex::encode_to_slice(signature, self.template.at(&self.signature))
            .expect("the slot has two digits per byte");
        self.template.bytes()
    }
}

fn sign(key: &Hmac<Sha256>, body: &[u8]) -> [u8; 32] {
    let mut mac = key.clone();
    mac.update(body);
    mac.finalize().into_bytes().into()
}

#[cfg(test)]
mod tests {
    use super::super::order::Shape;
    use super::super::requests::maker;
    use super::super::requests::tests::{order, parts};
    use super::*;

    #[test]
    fn the_signature_is_the_one_in_githubs_documentation() {
        let key = Hmac::new_from_slice(b"It's a Secret to Everybody").expect("any length");
        assert_eq!(
            hex::encode(sign(&key, b"Hello, World!")),
            "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
        );
    }

    #[test]
    fn every_request_is_new_and_signed() {
        let mut maker = maker(&order(Shape::Github, "s3cret"), 1, 0).expect("long enough");
        let first = maker.next().to_vec();
        let second = maker.next().to_vec();
        assert_ne!(first, second);
        for request in [first, second] {
            let (head, body) = parts(&request);
            let key = Hmac::new_from_slice(b"s3cret").expect("any length");
            let line = format!(
                "x-hub-signature-256: sha256={}",
                hex::encode(sign(&key, &body))
            );
            assert!(head.lines().any(|header| header == line), "{head}");
        }
    }
}
