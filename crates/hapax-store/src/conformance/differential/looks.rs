//! What is read of effects on both sides: one, all that fit, lanes with something to do, counts, parcels.

use hapax_ledger::effect::EffectState;
use hapax_ledger::id::{EffectId, EventId};
use hapax_ledger::time::Span;
use proptest::prelude::*;

use super::super::sample::Subject;
use super::super::worker::due;
use super::naming::plain;
use super::sketch::{LANES, NAMES};
use super::{Pair, SOURCES};
use crate::nouns::{Effect, EffectDetail, EffectFilter, Page, PageFrom};

const FILTERS: usize = 11;
/// Small, so that lists have many pages.
const ROWS_PER_PAGE: u32 = 3;

/// One thing to read.
#[derive(Clone, Debug)]
pub(super) enum EffectLook {
    One { nth: usize },
    Due,
    Counts,
    Parcels { from: usize },
    List { filter: usize },
}

pub(super) fn effect_look() -> impl Strategy<Value = EffectLook> {
    prop_oneof![
        1 => (0..1_000usize).prop_map(|nth| EffectLook::One { nth }),
        2 => Just(EffectLook::Due),
        1 => Just(EffectLook::Counts),
        1 => (0..1_000usize).prop_map(|from| EffectLook::Parcels { from }),
        2 => (0..FILTERS).prop_map(|filter| EffectLook::List { filter }),
    ]
}

impl Pair {
    pub(super) async fn look_at_effects(&self, look: &EffectLook) {
        match look {
            EffectLook::One { nth } => self.look_at_effect(*nth).await,
            EffectLook::Due => {
                let (theirs, ours) = (due(&self.store).await, due(&self.model).await);
                assert_eq!(theirs, ours, "lanes with something to do");
            }
            EffectLook::Counts => {
                let theirs = self.store.effect_counts().await;
                let ours = self.model.effect_counts().await;
                assert_eq!(
                    theirs.expect("the store counts"),
                    ours.expect("the model counts")
                );
            }
            EffectLook::Parcels { from } => self.look_at_parcels(*from).await,
            EffectLook::List { filter } => self.list_effects(&self.effect_filter(*filter)).await,
        }
    }

    async fn look_at_effect(&self, nth: usize) {
        let given = &self.effects.given;
        let Some(&(theirs, ours)) = given.get(nth % given.len().max(1)) else {
            return;
        };
        let theirs = self.store.effect(theirs).await.expect("the store reads");
        let named = |detail: EffectDetail| {
            let effect = self.named_effect(detail.effect);
            let events: Vec<_> = detail.events.into_iter().map(|id| self.named(id)).collect();
            EffectDetail {
                events: first_first(&effect, events),
                effect,
                ..detail
            }
        };
        let in_order = |detail: EffectDetail| {
            let effect = plain(detail.effect);
            EffectDetail {
                events: first_first(&effect, detail.events),
                effect,
                ..detail
            }
        };
        let ours = self.model.effect(ours).await.expect("the model reads");
        assert_eq!(theirs.map(named), ours.map(in_order));
    }

    async fn look_at_parcels(&self, from: usize) {
        let given = &self.given;
        let chosen = given.iter().skip(from % (given.len() + 1)).take(4);
        let twice = chosen.clone().chain(chosen);
        let (theirs, ours): (Vec<_>, Vec<_>) = twice.copied().unzip();
        let theirs = self.store.parcels(theirs).await.expect("the store reads");
        let ours = self.model.parcels(ours).await.expect("the model reads");
        assert_eq!(theirs, ours, "parcels");
    }

    fn effect_filter(&self, number: usize) -> EffectFilter {
        let all = EffectFilter::default();
        match number {
            0 => all,
            1..=6 => EffectFilter {
                state: Some(EffectState::ALL[number - 1]),
                ..all
            },
            7 => EffectFilter {
                name: Some(NAMES[0].into()),
                state: Some(EffectState::Pending),
                ..all
            },
            8 => EffectFilter {
                lane: Some(LANES[1].into()),
                ..all
            },
            9 => EffectFilter {
                source: Some(SOURCES[0].into()),
                ..all
            },
            _ => EffectFilter {
                since: Some(self.clock - Span::from_secs(20)),
                until: Some(self.clock),
                ..all
            },
        }
    }

    /// Whole lists, page by page. In which order effects of one arrival come is the store's choice.
    async fn list_effects(&self, filter: &EffectFilter) {
        let mut theirs: Vec<Effect> = whole_list(&self.store, filter)
            .await
            .into_iter()
            .map(|effect| self.named_effect(effect))
            .collect();
        let ours = whole_list(&self.model, filter).await;
        let mut ours: Vec<Effect> = ours.into_iter().map(plain).collect();
        theirs.sort_by_key(|effect| effect.id);
        ours.sort_by_key(|effect| effect.id);
        assert_eq!(theirs, ours, "list {filter:?}");
    }

    pub(super) async fn look_at_all_effects(&self) {
        for nth in 0..self.effects.given.len() {
            self.look_at_effect(nth).await;
        }
        for filter in 0..FILTERS {
            self.list_effects(&self.effect_filter(filter)).await;
        }
        for look in [EffectLook::Due, EffectLook::Counts] {
            self.look_at_effects(&look).await;
        }
    }
}

/// The events that call for an effect come in no order but that the first is the first, while it is known: of those that came in one
/// arrival no store is the first to say which is older.
fn first_first(effect: &Effect, mut events: Vec<EventId>) -> Vec<EventId> {
    let rest = usize::from(events.first() == Some(&effect.event));
    events.get_mut(rest..).unwrap_or_default().sort_unstable();
    events
}

async fn whole_list(store: &Subject, filter: &EffectFilter) -> Vec<Effect> {
    let mut all = Vec::new();
    let mut from: PageFrom<EffectId> = PageFrom::Newest;
    loop {
        let limit = ROWS_PER_PAGE;
        let listed = store.effects(filter.clone(), Page { limit, from }).await;
        let listed = listed.expect("the store lists");
        all.extend(listed.rows);
        let Some(next) = listed.next else { return all };
        from = PageFrom::OlderThan(next);
    }
}
