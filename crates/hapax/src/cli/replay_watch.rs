//! How far a replay of many events has come, as somebody at a terminal sees it; elsewhere nothing is drawn and nobody is waited for.

use std::time::{Duration, Instant};

use hapax_store::nouns::ReplayState;
use serde_json::{Value, json};

use super::answer::text;
use super::client::Client;
use super::events::EVENT;
use super::exit::Failure;
use super::list::{self, Filter};
use super::progress::Bar;
use super::replay::REPLAY;
use crate::clock;

/// How often the bar looks.
const LOOK_EVERY: Duration = Duration::from_millis(300);
/// Pages of events that are counted before a replay begins. Of more events than these hold, the bar has no total: counting them would
/// take longer than anybody waits.
const COUNTED_PAGES_MAX: usize = 100;

/// A replay at a terminal, or not.
pub(super) struct Seen {
    bar: Option<Bar>,
}

impl Seen {
    /// Only a person is shown a bar, and only if they want to see one.
    pub(super) fn new(wanted: bool) -> Seen {
        let bar = Bar::new("counting");
        Seen {
            bar: Some(bar).filter(|bar| wanted && bar.is_shown()),
        }
    }

    /// How many events a replay will look at, if that is soon counted and somebody wants to see it.
    pub(super) async fn count(
        &self,
        client: &Client,
        filter: &Filter,
    ) -> Result<Option<u64>, Failure> {
        let Some(bar) = &self.bar else {
            return Ok(None);
        };
        let counted = list::count(client, EVENT, filter, COUNTED_PAGES_MAX, |so_far| {
            bar.at(so_far, None);
        });
        let counted = counted.await;
        bar.end();
        counted
    }

    /// A replay as it is; at a terminal, when it has ended.
    pub(super) async fn watch(
        &self,
        client: &Client,
        id: &str,
        total: Option<u64>,
    ) -> Result<Value, Failure> {
        let mut replay = list::show(client, REPLAY, id).await?;
        let Some(bar) = &self.bar else {
            return Ok(replay);
        };
        let from = (looked_at(&replay), clock::tick());
        loop {
            bar.draw(&line(&replay, total, rate(from, looked_at(&replay))));
            if replay["state"] != ReplayState::Running.word() {
                bar.keep();
                return Ok(replay);
            }
            tokio::time::sleep(LOOK_EVERY).await;
            replay = list::show(client, REPLAY, id).await?;
        }
    }
}

fn looked_at(replay: &Value) -> u64 {
    replay["total"].as_u64().unwrap_or(0)
}

/// Events a second since somebody looks.
fn rate(from: (u64, Instant), now: u64) -> f64 {
    let (then, since) = from;
    let seconds = clock::since(since).as_secs_f64();
    match seconds > 0.0 {
        true => now.saturating_sub(then) as f64 / seconds,
        false => 0.0,
    }
}

/// `running  [############............]  50%  60 of 120  20/s: 40 sent, 15 nothing to do, 5 blocked, 0 failed`
fn line(replay: &Value, total: Option<u64>, rate: f64) -> String {
    let sent = match replay["dryRun"] == json!(true) {
        true => "would be sent",
        false => "sent",
    };
    let count = |name: &str| text(&replay[name]);
    let done = looked_at(replay);
    // What came between the count and the start is part of it, and what changed meanwhile may not be.
    let total = match replay["state"] == ReplayState::Completed.word() {
        true => Some(done),
        false => total.map(|total| total.max(done)),
    };
    format!(
        "{}  {rate:.0}/s: {} {sent}, {} nothing to do, {} blocked, {} failed",
        super::progress::line(&count("state"), done, total),
        count("done"),
        count("skipped"),
        count("blocked"),
        count("failed")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_in_one_line() {
        let mut replay = json!({
            "state": "running", "dryRun": true, "total": 6, "done": 3, "skipped": 2, "blocked": 1, "failed": 0,
        });
        let rest = "3 would be sent, 2 nothing to do, 1 blocked, 0 failed";
        assert_eq!(
            line(&replay, Some(12), 2.4),
            format!("running  [############............]  50%  6 of 12  2/s: {rest}")
        );
        assert_eq!(line(&replay, None, 0.0), format!("running  6  0/s: {rest}"));
        let over = line(&replay, Some(5), 1.0);
        assert!(over.contains("100%  6 of 6"), "{over}");
        replay["state"] = json!(ReplayState::Completed.word());
        let ended = line(&replay, Some(9), 1.0);
        assert!(ended.starts_with("completed  ["), "{ended}");
        assert!(ended.contains("100%  6 of 6"), "{ended}");
    }
}
