//! The generator's process: threads that share nothing, and rounds that end for all of them at the same time.

use std::cell::RefCell;
use std::io::Write;
use std::rc::Rc;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use tokio::runtime;
use tokio::task::LocalSet;

use super::connection;
use super::order::{Order, Signal};
use super::requests::{self, Requests};
use super::tally::Tally;
use crate::{clock, entropy};

/// More threads than this would only take turns with the server they measure.
const THREADS_MAX: u32 = 16;

/// Enough to load any server here, and below the usual limit on open files.
const CONNECTIONS_MAX: u32 = 4096;

/// Reads an order from stdin, carries it out, and writes its signals to stdout, one JSON document a line.
pub(crate) fn serve_order() -> anyhow::Result<()> {
    let order: Order =
        serde_json::from_reader(std::io::stdin().lock()).context("the order is not readable")?;
    check(&order)?;
    run(&order, |signal| {
        let mut out = std::io::stdout().lock();
        serde_json::to_writer(&mut out, &signal)?;
        writeln!(out)?;
        out.flush().context("the bench no longer listens")
    })
}

fn check(order: &Order) -> anyhow::Result<()> {
    ensure!(
        order.address.ip().is_loopback(),
        "{} is not on the loopback interface",
        order.address
    );
    ensure!(
        (1..=THREADS_MAX).contains(&order.threads),
        "threads: 1 to {THREADS_MAX}"
    );
    ensure!(
        (order.threads..=CONNECTIONS_MAX).contains(&order.connections),
        "connections: at least one per thread, at most {CONNECTIONS_MAX}"
    );
    ensure!(
        order.rounds > 0 && order.round_ms > 0,
        "at least one round, and of some length"
    );
    Ok(())
}

/// Starts the threads and adds up what they count, round by round.
fn run(order: &Order, mut tell: impl FnMut(Signal) -> anyhow::Result<()>) -> anyhow::Result<()> {
    let seed = entropy::seed()?;
    // Checked once here, so that a thread cannot find the order impossible.
    requests::maker(order, seed, 0)?;
    let start = clock::now();
    let mut threads = Vec::new();
    for thread in 0..order.threads {
        let (sender, receiver) = mpsc::channel();
        let order = order.clone();
        thread::Builder::new()
            .name(format!("load-{thread}"))
            .spawn(move || drive(&order, seed, thread, start, &sender))
            .context("could not start a thread")?;
        threads.push(receiver);
    }
    // Interval 0 is the warm-up; what it counted is dropped.
    for interval in 0..=order.rounds {
        let mut sum = Tally::default();
        let mut length = Duration::ZERO;
        for receiver in &threads {
            let (tally, took) = receiver.recv().context("a thread of the generator died")?;
            sum.merge(tally);
            length = length.max(took);
        }
        tell(match interval {
            0 => Signal::Warm,
            _ => Signal::Round(sum.round(length)),
        })?;
    }
    Ok(())
}

type Interval = (Tally, Duration);

/// One thread: its share of the connections, and a task that cuts time into intervals.
fn drive(
    order: &Order,
    seed: u64,
    thread: u32,
    start: Instant,
    sender: &mpsc::Sender<Interval>,
) -> anyhow::Result<()> {
    let runtime = runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let local = LocalSet::new();
    let tally = Rc::new(RefCell::new(Tally::default()));
    let own = (0..order.connections).filter(|connection| connection % order.threads == thread);
    for connection in own {
        let requests: Box<dyn Requests> = requests::maker(order, seed, connection)?;
        local.spawn_local(connection::run(order.address, requests, Rc::clone(&tally)));
    }
    local.block_on(&runtime, cut(order, start, &tally, sender));
    Ok(())
}

async fn cut(
    order: &Order,
    start: Instant,
    tally: &RefCell<Tally>,
    sender: &mpsc::Sender<Interval>,
) {
    let mut began = start;
    for interval in 0..=order.rounds {
        let planned = order.warmup_ms + u64::from(interval) * order.round_ms;
        let end = start + Duration::from_millis(planned);
        tokio::time::sleep_until(end.into()).await;
        let ended = clock::now();
        let counted = tally.take();
        if sender.send((counted, ended - began)).is_err() {
            return;
        }
        began = ended;
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    use super::super::order::Shape;
    use super::super::requests::tests::order;
    use super::*;

    /// Answers 200 to the first request of a connection and 503 with `connection: close` to the second.
    fn serve(mut stream: TcpStream) {
        let answers = [
            "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok",
            "HTTP/1.1 503 No\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
        ];
        for answer in answers {
            let mut seen = Vec::new();
            let mut chunk = [0; 4096];
            while !seen.ends_with(b"\"}") {
                match stream.read(&mut chunk) {
                    Ok(0) | Err(_) => return,
                    Ok(read) => seen.extend_from_slice(&chunk[..read]),
                }
            }
            let (first, second) = answer.as_bytes().split_at(9);
            // In two writes: the parser must wait for the rest.
            if stream.write_all(first).is_err() || stream.write_all(second).is_err() {
                return;
            }
        }
    }

    #[test]
    fn rounds_count_what_the_server_answered() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let mut order = order(Shape::Github, "secret");
        order.address = listener.local_addr().expect("bound");
        (order.connections, order.threads) = (4, 2);
        (order.warmup_ms, order.round_ms, order.rounds) = (50, 100, 2);
        // Detached: it ends with the test's process.
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                thread::spawn(move || serve(stream));
            }
        });

        let mut signals = Vec::new();
        run(&order, |signal| {
            signals.push(signal);
            Ok(())
        })
        .expect("it runs");

        let [Signal::Warm, Signal::Round(first), Signal::Round(second)] = &signals[..] else {
            panic!("a warm-up and two rounds, but {signals:?}");
        };
        for round in [first, second] {
            assert_eq!(round.statuses.keys().collect::<Vec<_>>(), [&200, &503]);
            assert!(round.broken.is_empty(), "{round:?}");
            assert!(round.seconds > 0.05 && round.p50_us <= round.max_us);
        }
    }

    #[test]
    fn only_loopback_servers_are_loaded() {
        let mut order = order(Shape::Plain, "");
        assert!(check(&order).is_ok());
        order.address = ([192, 0, 2, 1], 80).into();
        assert!(check(&order).is_err());
    }
}
