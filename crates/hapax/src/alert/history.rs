//! From one look to the next: what happened lately, and what is usual.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use super::facts::{Counts, Reviews, Traffic};
use crate::inbox::repeats::{Again, NAMES_MAX, Repeated};
use crate::metrics::Lag;

/// Looks that make up the latest window: five minutes, as looks are usually spaced.
pub const WINDOW_LOOKS: usize = 30;
/// What of the usual is kept at each look: half of it after 2,160 looks, which is six hours. So a spike that goes on for hours
/// becomes the usual, and its alert ends.
const USUAL_KEPT: f64 = 0.999_679;

/// What is remembered of earlier looks.
#[derive(Default)]
pub struct History {
    sources: HashMap<Arc<str>, Past>,
    lags: VecDeque<HashMap<String, Lag>>,
    reviews: VecDeque<u64>,
}

/// One source as it is measured at a look.
pub struct Measured {
    /// The source.
    pub source: Arc<str>,
    /// Its deliveries since start: accepted, duplicates, kept for review, refused.
    pub totals: [u64; 4],
    /// What came again since the look before.
    pub again: Again,
    /// Why the latest of the refused were refused.
    pub causes: Vec<(String, u64)>,
}

/// What is remembered of one source.
#[derive(Default)]
struct Past {
    totals: [u64; 4],
    window: VecDeque<(Counts, Again)>,
    usual: Counts,
}

impl History {
    /// Takes in what was measured of the sources that there are. Gives each with its latest window and what is usual, and what came
    /// again in the window.
    pub fn traffic(&mut self, measured: Vec<Measured>) -> Vec<(Traffic, Vec<Repeated>)> {
        self.sources
            .retain(|name, _| measured.iter().any(|each| each.source == *name));
        let look = |each: Measured| {
            let past = self.sources.entry(each.source.clone()).or_default();
            past.look(each)
        };
        measured.into_iter().map(look).collect()
    }

    /// Takes in how late attempts were since the look before. Gives the latest window.
    pub fn lags(&mut self, lags: HashMap<String, Lag>) -> Vec<(String, Lag)> {
        push(&mut self.lags, lags);
        let mut window: HashMap<&String, Lag> = HashMap::new();
        for (lane, lag) in self.lags.iter().flatten() {
            window.entry(lane).or_default().add(*lag);
        }
        let window = window.into_iter();
        window.map(|(lane, lag)| (lane.clone(), lag)).collect()
    }

    /// Takes in how many events wait for a person.
    pub fn reviews(&mut self, waiting: u64) -> Reviews {
        push(&mut self.reviews, waiting);
        Reviews {
            waiting,
            before: self.reviews.front().copied().unwrap_or(waiting),
        }
    }

    /// Another node looks at the queues now.
    pub fn forget_queues(&mut self) {
        self.reviews.clear();
    }
}

impl Past {
    fn look(&mut self, measured: Measured) -> (Traffic, Vec<Repeated>) {
        let [accepted, duplicates, reviewed, refused] =
            std::array::from_fn(|at| measured.totals[at].saturating_sub(self.totals[at]) as f64);
        self.totals = measured.totals;
        let counts = Counts {
            believed: accepted + duplicates + reviewed,
            duplicates,
            refused,
        };
        self.usual = self.usual.times(USUAL_KEPT);
        if let Some((old, _)) = push(&mut self.window, (counts, measured.again)) {
            self.usual = self.usual.plus(old);
        }
        let mut recent = Counts::default();
        let mut again = Again::default();
        for (counts, each) in &self.window {
            recent = recent.plus(*counts);
            again.add(each);
        }
        let events = again.events.most(NAMES_MAX);
        let traffic = Traffic {
            source: measured.source,
            recent,
            usual: self.usual,
            types: owned(again.types.most(NAMES_MAX), String::clone),
            keys: owned(events.clone(), |repeated| repeated.key.clone()),
            causes: measured.causes,
        };
        let repeated = events.into_iter().map(|(repeated, _)| repeated.clone());
        (traffic, repeated.collect())
    }
}

fn owned<T>(most: Vec<(&T, u64)>, name: impl Fn(&T) -> String) -> Vec<(String, u64)> {
    let most = most.into_iter();
    most.map(|(each, count)| (name(each), count)).collect()
}

/// Adds a look to a window. Gives the one that falls out of it.
fn push<T>(window: &mut VecDeque<T>, look: T) -> Option<T> {
    window.push_back(look);
    match window.len() > WINDOW_LOOKS {
        true => window.pop_front(),
        false => None,
    }
}

impl Counts {
    fn plus(self, other: Counts) -> Counts {
        Counts {
            believed: self.believed + other.believed,
            duplicates: self.duplicates + other.duplicates,
            refused: self.refused + other.refused,
        }
    }

    fn times(self, factor: f64) -> Counts {
        Counts {
            believed: self.believed * factor,
            duplicates: self.duplicates * factor,
            refused: self.refused * factor,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(totals: [u64; 4]) -> Vec<Measured> {
        vec![Measured {
            source: "a".into(),
            totals,
            again: Again::default(),
            causes: Vec::new(),
        }]
    }

    #[test]
    fn what_falls_out_of_the_window_becomes_the_usual() {
        let mut history = History::default();
        let mut looks = (1..=WINDOW_LOOKS as u64 + 10).map(|look| {
            let totals = [look * 3, look, 0, look * 2];
            history.traffic(measured(totals)).remove(0).0
        });
        let (window, beyond) = (WINDOW_LOOKS as f64, 10.0);
        let full = looks.nth(WINDOW_LOOKS - 1).expect("a look");
        assert_eq!(full.recent.believed, window * 4.0);
        assert_eq!(full.usual, Counts::default());
        let last = looks.last().expect("a look");
        assert_eq!(last.recent.duplicates, window);
        let usual = last.usual.refused;
        assert!(
            usual > beyond * 2.0 * 0.99 && usual < beyond * 2.0,
            "{usual}"
        );
    }

    #[test]
    fn half_of_the_usual_is_forgotten_in_six_hours() {
        let left = USUAL_KEPT.powi(6 * 360);
        assert!((left - 0.5).abs() < 0.001, "{left}");
    }

    #[test]
    fn a_source_that_is_gone_is_forgotten() {
        let mut history = History::default();
        history.traffic(measured([100, 0, 0, 0]));
        history.traffic(Vec::new());
        assert!(history.sources.is_empty());
    }

    #[test]
    fn the_lags_of_a_window_add_up() {
        let mut history = History::default();
        let lag = |attempts| Lag {
            attempts,
            ..Lag::default()
        };
        for _ in 0..2 * WINDOW_LOOKS {
            history.lags([("crm".to_owned(), lag(2))].into());
        }
        let all = history.lags(HashMap::new());
        assert_eq!(
            all,
            [("crm".to_owned(), lag(2 * (WINDOW_LOOKS as u64 - 1)))]
        );
    }

    #[test]
    fn a_queue_is_compared_with_the_beginning_of_the_window() {
        let mut history = History::default();
        assert_eq!(history.reviews(3).before, 3);
        assert_eq!(history.reviews(9).before, 3);
        for _ in 0..WINDOW_LOOKS - 1 {
            history.reviews(9);
        }
        assert_eq!(history.reviews(9).before, 9);
    }
}
