//! When messages come: as from many publishers who do not know of each other, and the same in every row that is compared with another.
//!
//! On a beat nobody ever meets anybody else, or always the same: that would be a measure of the beat.

use std::time::Duration;

use hapax::clock;
use hapax_ledger::key::BodyHash;
use tokio::sync::mpsc;

/// To whom a message goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum To {
    /// The next endpoint that is well.
    Well,
    /// The three others.
    Others,
}

/// Between two messages to endpoints that are well, on average: 500 a second, far below what the store can do.
const WELL_EVERY: Duration = Duration::from_millis(2);
/// Between two to the others: 50 a second, ten times what bad ones could take if they were only as slow as an attempt may be.
const OTHERS_EVERY: Duration = Duration::from_millis(20);
/// Arrivals that the runtime has not heard of yet. More than this, and it stands still.
const UNHEARD_MAX: usize = 1_024;

/// Tells of arrivals as they come, from a thread of its own: the runtime's timer has but milliseconds. What was late is made up for: load
/// does not go away because the process is busy. It ends with whoever listens.
pub(crate) fn start() -> anyhow::Result<mpsc::Receiver<To>> {
    let (tell, told) = mpsc::channel(UNHEARD_MAX);
    let comes = move || {
        let began = clock::tick();
        let mut next = [(To::Well, WELL_EVERY), (To::Others, OTHERS_EVERY)]
            .map(|(to, every)| (to, gaps(to, every)))
            .map(|(to, mut gaps)| (gaps.next().unwrap_or_default(), to, gaps));
        loop {
            next.sort_by_key(|(due, ..)| *due);
            let (due, to, gaps) = &mut next[0];
            std::thread::sleep(due.saturating_sub(clock::since(began)));
            if tell.blocking_send(*to).is_err() {
                return;
            }
            *due += gaps.next().unwrap_or_default();
        }
    };
    std::thread::Builder::new()
        .name("arrivals".into())
        .spawn(comes)?;
    Ok(told)
}

/// Times between arrivals that do not depend on each other: many short ones, few long ones.
fn gaps(to: To, every: Duration) -> impl Iterator<Item = Duration> {
    (0_u64..).map(move |number| {
        let lot = BodyHash::of(format!("{to:?} {number}").as_bytes()).bytes();
        let lot = u32::from_be_bytes([lot[0], lot[1], lot[2], lot[3]]);
        let share = (f64::from(lot) + 1.0) / (f64::from(u32::MAX) + 1.0);
        every.mul_f64(-share.ln())
    })
}
