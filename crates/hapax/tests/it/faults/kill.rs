//! `kill -9` under load, again and again: whatever was acknowledged is there once, on either store, whatever becomes of the key
//! index in between.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::thread;

use hapax_ledger::time::Time;
use hapax_store::Store;
use hapax_store::conformance::database::{Database, with_database};
use hapax_store::nouns::StoreStats;
use hapax_store::sqlite::{DiskLimits, Options, SqliteStore};

use crate::support::acks::{Acks, Told};
use crate::support::client::Connection;
use crate::support::lots::Lots;
use crate::support::sender::Sender;
use crate::support::server::{Server, start_and_kill};
use crate::support::site::Site;

/// Crashes per store.
const CYCLES: usize = 24;
/// Senders at a time.
const SENDERS: usize = 6;
/// Requests of one sender per cycle, if the server lives that long.
const REQUESTS_MAX: usize = 80;
/// A start that is itself killed takes up to about so many steps of [`Lots::linger`], as long as a whole start.
const START_STEPS: usize = 600_000;
/// As long as a few commits take.
const COMMIT_STEPS: usize = 200_000;

/// A1, A4, B1: as above, on SQLite, where the key index is derived and may be lost, old or cut back.
#[test]
fn sqlite_survives_kill_9_under_load_and_loss_of_its_index() {
    let site = Site::sqlite();
    let mut lots = Lots::new(1);
    let mut acks = Acks::default();
    let mut index = Index::of(&site);
    for cycle in 0..CYCLES {
        if lots.below(3) == 0 {
            start_and_kill(&mut site.command(), || lots.linger(START_STEPS));
        }
        let server = site.start();
        let fate = index.choose(cycle);
        load_and_kill(server, cycle, &mut acks, &mut lots);
        index.suffer(fate);
    }
    finish(&site, &acks);
    let stats = sqlite_stats(&site);
    assert_eq!(stats.keys_twice, 0);
    assert!(stats.events >= acks.len() as u64);
}

/// A1, A4, B1: the same on PostgreSQL.
#[test]
fn postgres_survives_kill_9_under_load() {
    with_database(|database| async move {
        let url = database.url();
        let work = move || {
            let site = Site::with(&url, "");
            let mut lots = Lots::new(2);
            let mut acks = Acks::default();
            for cycle in 0..CYCLES {
                if lots.below(3) == 0 {
                    start_and_kill(&mut site.command(), || lots.linger(START_STEPS));
                }
                load_and_kill(site.start(), cycle, &mut acks, &mut lots);
            }
            finish(&site, &acks);
            acks.len()
        };
        let acknowledged = tokio::task::spawn_blocking(work)
            .await
            .expect("the checks hold");
        let stats = postgres_stats(&database).await;
        assert_eq!(stats.keys_twice, 0);
        assert!(stats.events >= acknowledged as u64);
    });
}

/// Sends new events and some that were acknowledged before, on several connections, and kills the server after a random number
/// of answers and a random moment more.
fn load_and_kill(server: Server, cycle: usize, acks: &mut Acks, lots: &mut Lots) {
    let kill_at = 1 + lots.below(SENDERS * REQUESTS_MAX * 2 / 3);
    let known = acks.names();
    let answers = AtomicUsize::new(0);
    let address = server.address();
    let (now, moment) = channel();
    let heard: Vec<(String, Told)> = thread::scope(|scope| {
        let senders: Vec<_> = (0..SENDERS)
            .map(|sender| {
                let now = now.clone();
                let mut lots = Lots::new(lots.draw());
                let (known, answers) = (&known, &answers);
                let answered = move || {
                    if answers.fetch_add(1, Ordering::Relaxed) + 1 == kill_at {
                        let _ = now.send(());
                    }
                };
                scope.spawn(move || {
                    send(
                        address,
                        &format!("c{cycle}s{sender}"),
                        known,
                        &mut lots,
                        answered,
                    )
                })
            })
            .collect();
        drop(now);
        // If every sender came to its end first, the kill hits an idle server: also a moment.
        let _ = moment.recv();
        lots.linger(COMMIT_STEPS);
        server.kill();
        senders
            .into_iter()
            .flat_map(|sender| sender.join().expect("a sender never fails"))
            .collect()
    });
    for (name, told) in heard {
        if let Told::Acknowledged { id, .. } = told {
            acks.add(&name, id);
        }
    }
}

/// One sender: until the connection breaks, or all is sent.
fn send(
    server: SocketAddr,
    prefix: &str,
    known: &[String],
    lots: &mut Lots,
    answered: impl Fn(),
) -> Vec<(String, Told)> {
    let sender = Sender::to("billing");
    let mut heard: Vec<(String, Told)> = Vec::new();
    let Ok(mut connection) = Connection::open(server) else {
        return heard;
    };
    for n in 0..REQUESTS_MAX {
        let name = match lots.below(8) {
            // As a provider that tries again what was acknowledged in an earlier life of the server, or just now.
            0 if !known.is_empty() => known[lots.below(known.len())].clone(),
            1 if !heard.is_empty() => heard[lots.below(heard.len())].0.clone(),
            // The same as what other senders send, some of them at this moment.
            2 => format!("evt_shared_{n}"),
            _ => format!("evt_{prefix}_{n}"),
        };
        let Ok(answer) = connection.ask(&sender.request(&name)) else {
            return heard;
        };
        heard.push((name, Told::read(&answer)));
        answered();
    }
    heard
}

/// After the last crash: all is there, and sent again it is known. The server ends in peace.
fn finish(site: &Site, acks: &Acks) {
    let server = site.start();
    acks.check(&server);
    acks.resend(&server, &Sender::to("billing"));
    acks.check(&server);
    server.signal("TERM");
    assert!(server.wait().success());
    assert!(
        acks.len() > CYCLES,
        "the load was no load: {} acks",
        acks.len()
    );
}

/// The cross-check, by a process of our own after the server has ended.
fn sqlite_stats(site: &Site) -> StoreStats {
    let clock = std::sync::Arc::new(|| Time::from_micros(0));
    let options = Options {
        clock,
        nonce: [0; 16],
        disk: DiskLimits::default(),
    };
    let store = SqliteStore::open(&site.data().join("hapax.db"), options).expect("the store opens");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(store.stats()).expect("the store counts")
}

async fn postgres_stats(database: &Database) -> StoreStats {
    let store = database.open().await;
    let stats = store.stats().await.expect("the store counts");
    store.close().await;
    stats
}

/// The key index's folder, and copies of it from earlier.
struct Index {
    folder: PathBuf,
    copies: PathBuf,
    kept: Option<PathBuf>,
}

/// What becomes of the key index after a crash.
#[derive(Clone, Debug)]
enum Fate {
    /// Nothing.
    Left,
    /// It is gone.
    Deleted,
    /// It is as it was in an earlier run of the server.
    FromEarlierRun(PathBuf),
    /// It is as it was at the beginning of this run: all it was told since is lost.
    CutBack(PathBuf),
}

impl Index {
    fn of(site: &Site) -> Index {
        let copies = site.path().join("copies");
        std::fs::create_dir(&copies).expect("a folder");
        Index {
            folder: site.data().join("hapax.db.keys"),
            copies,
            kept: None,
        }
    }

    /// Chooses by turns; called while the server runs and nothing is sent to it yet.
    fn choose(&mut self, cycle: usize) -> Fate {
        match cycle % 4 {
            0 => Fate::Left,
            1 => Fate::Deleted,
            2 => {
                let copy = self.copies.join(cycle.to_string());
                copy_folder(&self.folder, &copy);
                self.kept = Some(copy.clone());
                Fate::CutBack(copy)
            }
            _ => self.kept.take().map_or(Fate::Left, Fate::FromEarlierRun),
        }
    }

    fn suffer(&self, fate: Fate) {
        match fate {
            Fate::Left => {}
            Fate::Deleted => std::fs::remove_dir_all(&self.folder).expect("it was there"),
            Fate::FromEarlierRun(copy) | Fate::CutBack(copy) => {
                std::fs::remove_dir_all(&self.folder).expect("it was there");
                copy_folder(&copy, &self.folder);
            }
        }
    }
}

fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir(to).expect("a new folder");
    for entry in std::fs::read_dir(from).expect("a folder") {
        let entry = entry.expect("an entry");
        let target = to.join(entry.file_name());
        match entry.file_type().expect("a type").is_dir() {
            true => copy_folder(&entry.path(), &target),
            false => copy_file(&entry.path(), &target),
        }
    }
}

/// Copies without writing the zeros at the end: the index's journal is mostly space that is reserved for later.
fn copy_file(from: &Path, to: &Path) {
    let bytes = std::fs::read(from).expect("a file");
    let used = bytes
        .chunks(4096)
        .rposition(|page| page != &[0; 4096][..page.len()]);
    let used = used.map_or(0, |page| ((page + 1) * 4096).min(bytes.len()));
    std::fs::write(to, &bytes[..used]).expect("written");
    let file = std::fs::File::options()
        .write(true)
        .open(to)
        .expect("a file");
    file.set_len(bytes.len() as u64).expect("as long as it was");
}
