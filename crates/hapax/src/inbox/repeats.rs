//! Which events of a source came again since somebody last looked: in memory, bounded, and for alerts only.

use std::sync::{Mutex, PoisonError};

use hapax_ledger::id::EventId;

/// Names that are counted at a time. What is repeated most is among them; what is repeated little may be forgotten.
pub const NAMES_MAX: usize = 16;
/// Characters of a name that are enough to know it again.
const NAME_CHARS_MAX: usize = 100;

/// Names with how often they were seen, the most frequent of many. Whoever comes when all places are taken takes the place and
/// the count of the rarest, so that a frequent one is never missed, and a count may be too high but not too low.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Top<T>(Vec<(T, u64)>);

impl<T> Default for Top<T> {
    fn default() -> Top<T> {
        Top(Vec::new())
    }
}

impl<T> Top<T> {
    /// Counts one that `is` knows again, or else the one that `make` makes.
    pub fn count(&mut self, times: u64, is: impl Fn(&T) -> bool, make: impl FnOnce() -> T) {
        if let Some((_, count)) = self.0.iter_mut().find(|(name, _)| is(name)) {
            *count += times;
            return;
        }
        if self.0.len() < NAMES_MAX {
            self.0.push((make(), times));
            return;
        }
        if let Some(rarest) = self.0.iter_mut().min_by_key(|(_, count)| *count) {
            *rarest = (make(), rarest.1 + times);
        }
    }

    /// The most frequent ones, the most frequent first.
    pub fn most(&self, names: usize) -> Vec<(&T, u64)> {
        let mut all: Vec<(&T, u64)> = self.0.iter().map(|(name, count)| (name, *count)).collect();
        all.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        all.truncate(names);
        all
    }
}

impl<T: PartialEq + Clone> Top<T> {
    /// Adds what another one has counted.
    pub fn add(&mut self, other: &Top<T>) {
        for (name, count) in &other.0 {
            self.count(*count, |known| known == name, || name.clone());
        }
    }
}

/// An event that came again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repeated {
    /// Its id.
    pub event: EventId,
    /// Its key, or as much of it as is enough.
    pub key: String,
}

/// What came again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Again {
    /// By type.
    pub types: Top<String>,
    /// By event.
    pub events: Top<Repeated>,
}

impl Again {
    /// Adds what another one has counted.
    pub fn add(&mut self, other: &Again) {
        self.types.add(&other.types);
        self.events.add(&other.events);
    }
}

/// What came again since somebody last looked.
#[derive(Default)]
pub struct Repeats(Mutex<Again>);

impl Repeats {
    /// An event came again. While another thread counts, this one is not counted by name: the names are a hint, and no request waits
    /// for them.
    pub fn saw(&self, event: EventId, event_type: Option<&str>, key: &str) {
        let Ok(mut again) = self.0.try_lock() else {
            return;
        };
        let name = event_type.unwrap_or("(no type)");
        again
            .types
            .count(1, |known| is_short_for(known, name), || short(name));
        again.events.count(
            1,
            |known| known.event == event,
            || Repeated {
                event,
                key: short(key),
            },
        );
    }

    /// What came again since the last time; from here on it is counted anew.
    pub fn take(&self) -> Again {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn short(name: &str) -> String {
    name.chars().take(NAME_CHARS_MAX).collect()
}

fn is_short_for(known: &str, name: &str) -> bool {
    known.chars().eq(name.chars().take(NAME_CHARS_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_frequent_of_many_are_known() {
        let mut top = Top::default();
        for round in 0..1_000_u32 {
            let rare = format!("rare {round}");
            for name in ["often", "often", "sometimes", &rare] {
                top.count(1, |known: &String| known == name, || name.to_owned());
            }
        }
        assert_eq!(top.0.len(), NAMES_MAX);
        let most: Vec<&str> = top.most(2).iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(most, ["often", "sometimes"]);
        assert_eq!(top.most(1)[0].1, 2_000);
    }

    #[test]
    fn a_look_begins_anew_and_looks_add_up() {
        let repeats = Repeats::default();
        let event = EventId::from_bytes([7; 16]);
        repeats.saw(event, Some("a"), "k");
        repeats.saw(event, None, "k");
        let mut first = repeats.take();
        assert_eq!(repeats.take(), Again::default());
        repeats.saw(event, Some("a"), "k");
        repeats.saw(EventId::from_bytes([8; 16]), Some("b"), &"k".repeat(1_000));
        first.add(&repeats.take());
        assert_eq!(first.types.most(1), [(&"a".to_owned(), 2)]);
        let keys = first.events.most(9).into_iter();
        let keys: Vec<(usize, u64)> = keys.map(|(each, count)| (each.key.len(), count)).collect();
        assert_eq!(keys, [(1, 3), (NAME_CHARS_MAX, 1)]);
    }
}
