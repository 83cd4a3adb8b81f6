//! The example under `kill -9`: each key is charged once, and all its callers hear the same.

use std::net::SocketAddr;

use bytes::Bytes;
use hapax_store::conformance::database::with_database;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::service::{STEPS, charge, charged_orders, start};

/// How often it is killed, unless `HAPAX_CHAOS_KILLS` says otherwise.
const KILLS_DEFAULT: usize = 100;
/// Callers at a time, each with keys of its own, and each of which sends everything twice at once.
const CALLERS: usize = 4;

/// Which process it is, and where: a port may come again.
type Life = (usize, SocketAddr);

/// H1, H3: whichever two steps it is killed between, the retry charges or gets the answer, and the charge is there once.
#[test]
fn killed_between_any_two_steps_it_charges_once() {
    with_database(|database| async move {
        let url = database.url();
        for step in STEPS {
            let mut service = start(&url, Some((step, 1))).await;
            let address = service.address;
            let caller = tokio::spawn(async move { charge(address, step).await });
            service.halted().await;
            service.kill().await;
            assert_eq!(caller.await.expect("it ends"), None, "{step}");

            let service = start(&url, None).await;
            let first = answered(service.address, step).await.expect("an answer");
            assert_eq!(first.replayed, step == "committed", "{step}");
            let second = answered(service.address, step).await.expect("an answer");
            assert!(second.replayed && second.body == first.body, "{step}");
            let orders = charged_orders(service.address).await;
            let charges = orders.iter().filter(|order| *order == step).count();
            assert_eq!(charges, 1, "{step}");
            service.kill().await;
        }
    });
}

/// H1, H3: killed at random, again and again, while callers retry until they are answered.
#[test]
fn killed_again_and_again_it_charges_once() {
    with_database(|database| async move {
        let url = database.url();
        let (lives, address) = watch::channel(None);
        let stop = watch::Sender::new(false);
        let mut callers = JoinSet::new();
        for caller in 0..CALLERS {
            callers.spawn(call_on(caller, address.clone(), stop.subscribe()));
        }
        let kills = std::env::var("HAPAX_CHAOS_KILLS").ok();
        let kills = kills.map_or(KILLS_DEFAULT, |kills| kills.parse().expect("a number"));
        for kill in 0..kills {
            let halt_at = (STEPS[kill % STEPS.len()], 1 + lot(kill) % 5);
            let mut service = start(&url, Some(halt_at)).await;
            lives.send_replace(Some((kill, service.address)));
            service.halted().await;
            service.kill().await;
        }
        stop.send_replace(true);
        let service = start(&url, None).await;
        lives.send_replace(Some((kills, service.address)));
        let mut orders = callers.join_all().await.concat();
        let mut charged = charged_orders(service.address).await;
        orders.sort();
        charged.sort();
        assert!(orders.len() >= CALLERS, "{} orders", orders.len());
        assert_eq!(charged, orders, "each once, and none that nobody heard of");
        service.kill().await;
    });
}

/// Places one order after the other until it is told to stop; says which.
async fn call_on(
    caller: usize,
    mut address: watch::Receiver<Option<Life>>,
    stop: watch::Receiver<bool>,
) -> Vec<String> {
    let mut orders = Vec::new();
    loop {
        let order = format!("order-{caller}-{}", orders.len());
        // A caller who is too hasty: both are the same request.
        let mut hasty = address.clone();
        let (one, two) = tokio::join!(
            until_answered(&mut address, &order),
            until_answered(&mut hasty, &order)
        );
        assert_eq!(one, two, "one and the same answer");
        orders.push(order);
        if *stop.borrow() {
            return orders;
        }
    }
}

/// Sends an order again and again, to whichever process lives, until it is answered.
async fn until_answered(address: &mut watch::Receiver<Option<Life>>, order: &str) -> Bytes {
    let mut dead = None;
    loop {
        let next = address.wait_for(|next| next.is_some() && *next != dead);
        let life = next.await.expect("somebody starts it").expect("an address");
        match answered(life.1, order).await {
            Some(answer) => return answer.body,
            None => dead = Some(life),
        }
    }
}

struct Answered {
    body: Bytes,
    replayed: bool,
}

/// Asks until it is not in progress any more; `None` if the process dies over it.
async fn answered(address: SocketAddr, order: &str) -> Option<Answered> {
    loop {
        let answer = charge(address, order).await?;
        if answer.status == 201 {
            return Some(Answered {
                replayed: answer.is_replay(),
                body: answer.body,
            });
        }
        // Somebody is at it, or died over it and the database has not noticed yet.
        assert_eq!(answer.refusal(), (409, "in-progress".to_owned()));
    }
}

/// A number that looks random.
fn lot(seed: usize) -> usize {
    (seed.wrapping_add(1)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33
}
