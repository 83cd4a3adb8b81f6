//! The end: what the world's log and the ledger say, side by side.

use super::super::table::Table;
use super::judge::Account;
use super::ledger::Ledger;
use super::tell::{bold, say};

/// States of effects, in the order of a life.
const STATES: [&str; 6] = ["done", "skipped", "dead", "uncertain", "claimed", "pending"];

/// Prints the table, and what differs.
pub(super) fn show(account: &Account, ledger: &Ledger) {
    let mut table = Table::new(&["WHAT", "COUNT", ""]);
    let mut row = |what: &str, count: u64, note: &str| {
        let cells = [what.to_owned(), count.to_string(), note.to_owned()];
        table.rows.push(cells.to_vec());
    };
    row(
        "sent",
        account.sent,
        "requests of the provider, and in its name",
    );
    row(
        "accepted",
        account.accepted,
        "events, each on disk before it was answered",
    );
    row("duplicates", account.duplicates, "the same facts again");
    row(
        "refused",
        account.refused,
        "forged, or captured and sent later",
    );
    if account.unanswered > 0 {
        row(
            "unanswered",
            account.unanswered,
            "sent again until answered",
        );
    }
    for state in STATES {
        let count = ledger.in_state(state) as u64;
        if count > 0 || state == "done" {
            row(&format!("effects {state}"), count, meaning(state));
        }
    }
    row("messages", account.published, "published by the company");
    row(
        "delivered",
        account.taken,
        "taken by the customer's endpoint, each once",
    );
    row(
        "orders",
        account.orders,
        "of the guarded API, each under one key",
    );
    row("charged", account.charged, "executed by the API");
    say(&format!("\n{}", table.render(None, &[])));
    let repeats = format!("repeats: {}", account.repeats);
    say(&format!("\n{}", bold(&repeats)));
    for difference in &account.differences {
        say(&format!("differs: {difference}"));
    }
    if account.differences.is_empty() {
        say("the world's own log agrees with the ledger");
    }
}

fn meaning(state: &str) -> &'static str {
    match state {
        "done" => "happened as often as their class allows",
        "skipped" => "older than what is known already",
        "dead" => "given up; somebody may retry them",
        "uncertain" => "nobody can tell yet, so nothing is sent",
        _ => "under way",
    }
}
