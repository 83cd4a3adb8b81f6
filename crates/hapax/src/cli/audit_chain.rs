//! The chain of the audit log, checked by whoever reads it: from the newest record down to the first.

use hapax_ledger::audit::{GENESIS, Link, chain};
use hapax_ledger::time::Time;
use serde_json::Value;

/// A check that walks down.
#[derive(Debug, Default)]
pub(super) struct Check {
    /// What the record above says of the one below it: its own number, and the hash it follows.
    above: Option<(u64, [u8; 32])>,
    records: u64,
    bad: Option<Bad>,
}

/// The first record, by number, that is not as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Bad {
    /// Its number.
    pub(super) seq: u64,
    /// What is wrong.
    pub(super) why: String,
}

impl Check {
    /// The next older record.
    pub(super) fn take(&mut self, record: &Value) {
        self.records += 1;
        let seq = record["seq"].as_u64().unwrap_or_default();
        let (Some(hash), Some(previous)) = (bytes(&record["hash"]), bytes(&record["previous"]))
        else {
            self.found(seq, "it cannot be read");
            self.above = None;
            return;
        };
        match self.above {
            Some((above, _)) if above != seq + 1 => {
                self.found(
                    seq + 1,
                    &format!("record {above} follows record {seq}: some are missing"),
                );
            }
            Some((above, follows)) if follows != hash => {
                self.found(above, &format!("it does not follow record {seq}"));
            }
            Some(_) | None => {}
        }
        if expected(record, seq, previous) != Some(hash) {
            self.found(seq, "it is not what its hash says");
        }
        self.above = Some((seq, previous));
    }

    /// Whatever is found later stands earlier in the log.
    fn found(&mut self, seq: u64, why: &str) {
        self.bad = Some(Bad {
            seq,
            why: why.to_owned(),
        });
    }

    /// All were taken: how many there are, or the first that is bad.
    pub(super) fn finish(mut self) -> Result<u64, Bad> {
        match self.above {
            Some((seq, _)) if seq != 1 => self.found(1, "the beginning of the log is missing"),
            Some((1, previous)) if previous != GENESIS => {
                self.found(1, "the log does not begin with it");
            }
            Some(_) | None => {}
        }
        match self.bad {
            None => Ok(self.records),
            Some(bad) => Err(bad),
        }
    }
}

/// The hash that the record should have.
fn expected(record: &Value, seq: u64, previous: [u8; 32]) -> Option<[u8; 32]> {
    let text = |name: &str| record[name].as_str();
    let at: jiff::Timestamp = text("at")?.parse().ok()?;
    let link = Link {
        seq,
        at: Time::from_micros(at.as_microsecond()),
        actor: text("actor")?,
        action: text("action")?,
        subject: text("subject")?,
        reason: text("reason")?,
        detail: text("detail")?,
    };
    Some(chain(previous, &link))
}

fn bytes(text: &Value) -> Option<[u8; 32]> {
    hex::decode(text.as_str()?).ok()?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A log of three records, newest first.
    fn log() -> Vec<Value> {
        let mut previous = GENESIS;
        let mut log = Vec::new();
        for seq in 1..=3 {
            let mut record = json!({
                "seq": seq, "at": "2026-11-15T23:30:47.123456Z", "actor": "ada", "action": "event.retry",
                "subject": "evt_1", "reason": "because", "detail": "{}", "previous": hex::encode(previous),
            });
            previous = expected(&record, seq, previous).expect("whole");
            record["hash"] = hex::encode(previous).into();
            log.insert(0, record);
        }
        log
    }

    fn check(log: &[Value]) -> Result<u64, u64> {
        let mut check = Check::default();
        log.iter().for_each(|record| check.take(record));
        check.finish().map_err(|bad| bad.seq)
    }

    /// J1: whatever is done to the log is found, and the first record that it was done to is named.
    #[test]
    fn tampering_is_found() {
        assert_eq!(check(&log()), Ok(3));
        assert_eq!(check(&[]), Ok(0));
        for name in ["actor", "action", "subject", "reason", "detail", "at"] {
            let mut log = log();
            log[1][name] = "2026-11-15T23:30:48Z".into();
            assert_eq!(check(&log), Err(2), "{name} was changed");
        }
        let mut changed_with_its_hash = log();
        changed_with_its_hash[1]["reason"] = "other".into();
        let hash = expected(
            &changed_with_its_hash[1],
            2,
            bytes(&log()[1]["previous"]).expect("bytes"),
        );
        changed_with_its_hash[1]["hash"] = hex::encode(hash.expect("whole")).into();
        assert_eq!(
            check(&changed_with_its_hash),
            Err(3),
            "the one above does not follow"
        );
        let mut missing = log();
        missing.remove(1);
        assert_eq!(check(&missing), Err(2));
        let mut beheaded = log();
        beheaded.pop();
        assert_eq!(check(&beheaded), Err(1));
        let mut unreadable = log();
        unreadable[2]["hash"] = "no".into();
        assert_eq!(check(&unreadable), Err(1));
    }
}
