//! Where requests come from: one maker per connection.

use super::order::{Order, Shape};
use super::{github, keyed, message, plain, stripe};

/// Makes one request after the other.
pub(super) trait Requests {
    /// The next request, head and body.
    fn next(&mut self) -> &[u8];
}

/// The maker that `order` asks for. `seed` is random per run, `connection` counts within it.
pub(super) fn maker(
    order: &Order,
    seed: u64,
    connection: u32,
) -> anyhow::Result<Box<dyn Requests>> {
    let ids = Ids::new(seed, connection);
    Ok(match order.shape {
        Shape::Plain => Box::new(plain::Plain::new(order)?),
        Shape::Github => Box::new(github::Github::new(order, ids)?),
        Shape::Stripe => Box::new(stripe::Stripe::new(order, ids)?),
        Shape::StripeAgain => Box::new(stripe::Stripe::new(order, ids.that_return(RETURNING_IDS))?),
        Shape::Message => Box::new(message::Message::new(order, ids)?),
        Shape::Keyed => Box::new(keyed::Keyed::new(order, ids)?),
        Shape::KeyedAgain => Box::new(keyed::Keyed::new(order, ids.that_return(RETURNING_KEYS))?),
    })
}

/// Ids of 32 hexadecimal digits that look random and never repeat.
#[derive(Clone, Debug)]
pub(super) struct Ids {
    seed: u64,
    first: u64,
    count: u64,
    /// After so many they begin again.
    cycle: u64,
}

/// How many ids a connection has that sends the same events again and again.
const RETURNING_IDS: u64 = 256;
/// How many keys a connection has that sends the same keys again and again. Few: the first of each is a first request, and all of
/// those belong into the warm-up.
const RETURNING_KEYS: u64 = 8;

/// Digits of an id.
pub(super) const ID_DIGITS: usize = 32;

impl Ids {
    fn new(seed: u64, connection: u32) -> Ids {
        Ids {
            seed,
            first: u64::from(connection) << 40,
            count: 0,
            cycle: u64::MAX,
        }
    }

    /// The same, but a few ids over and over.
    fn that_return(self, cycle: u64) -> Ids {
        Ids { cycle, ..self }
    }

    /// Writes the next id into `digits`, which must be [`ID_DIGITS`] long.
    pub(super) fn write(&mut self, digits: &mut [u8]) {
        // `scramble` is a bijection, so that within a run the left half never repeats; the right half tells runs apart.
        let left = scramble(self.seed.wrapping_add(self.first + self.count));
        let right = scramble(left ^ self.seed);
        self.count = (self.count + 1) % self.cycle;
        let mut bytes = [0; ID_DIGITS / 2];
        bytes[..8].copy_from_slice(&left.to_be_bytes());
        bytes[8..].copy_from_slice(&right.to_be_bytes());
        hex::encode_to_slice(bytes, digits).expect("an id slot has 32 digits");
    }
}

/// The finaliser of SplitMix64: neighbours in, unrelated numbers out.
fn scramble(number: u64) -> u64 {
    let number = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

#[cfg(test)]
pub(super) mod tests {
    use std::collections::HashSet;

    use super::*;

    /// An order for tests of makers; nothing listens at its address.
    pub(in crate::load) fn order(shape: Shape, secret: &str) -> Order {
        Order {
            address: ([127, 0, 0, 1], 1).into(),
            path: "/in/test".to_owned(),
            shape,
            secret: secret.to_owned(),
            body_bytes: 1024,
            connections: 1,
            threads: 1,
            warmup_ms: 0,
            round_ms: 1,
            rounds: 1,
        }
    }

    /// Head and body of a request; checks that the content length is the body's.
    pub(in crate::load) fn parts(request: &[u8]) -> (String, Vec<u8>) {
        let text = String::from_utf8(request.to_vec()).expect("text");
        let (head, body) = text.split_once("\r\n\r\n").expect("a blank line");
        let length = format!("content-length: {}", body.len());
        assert!(head.lines().any(|line| line == length), "{head}");
        (head.to_owned(), body.as_bytes().to_vec())
    }

    #[test]
    fn ids_do_not_repeat_over_connections() {
        let mut seen = HashSet::new();
        for connection in 0..4 {
            let mut ids = Ids::new(7, connection);
            for _ in 0..1000 {
                let mut id = [0; ID_DIGITS];
                ids.write(&mut id);
                assert!(seen.insert(id));
            }
        }
    }

    #[test]
    fn ids_that_return_begin_again() {
        let mut ids = Ids::new(7, 0).that_return(RETURNING_IDS);
        let mut id = [0; ID_DIGITS];
        ids.write(&mut id);
        let first = id;
        for _ in 0..RETURNING_IDS {
            ids.write(&mut id);
        }
        assert_eq!(id, first);
    }

    #[test]
    fn every_shape_makes_bodies_of_the_ordered_length_that_are_json() {
        for shape in [Shape::Plain, Shape::Github, Shape::Stripe, Shape::Keyed] {
            let mut maker = maker(&order(shape, "secret"), 1, 0).expect("long enough");
            let (_, body) = parts(maker.next());
            assert_eq!(body.len(), 1024, "{shape:?}");
            serde_json::from_slice::<serde_json::Value>(&body).expect("JSON");
        }
    }

    #[test]
    fn a_body_that_cannot_be_that_short_is_refused() {
        let mut order = order(Shape::Stripe, "secret");
        order.body_bytes = 10;
        assert!(maker(&order, 1, 0).is_err());
    }
}
