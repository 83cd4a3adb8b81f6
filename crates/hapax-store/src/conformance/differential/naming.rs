//! The store's ids in what it says of events, verdicts and claims, as the model would name them.

use hapax_ledger::effect::EffectState;
use hapax_ledger::id::{EffectId, EventId, KeyId, RunId};
use hapax_ledger::lease::Fence;
use hapax_ledger::order::{Gate, OrderVerdict, ReviewWhy};
use hapax_ledger::verdict::Verdict;

use super::super::sample::Subject;
use super::Pair;
use crate::nouns::{
    Before, ConflictDecision, Effect, EffectFacts, EventDetail, EventFacts, OwnClaimed, Run,
};

/// The letters of an id, prefix and all.
const ID_LETTERS: usize = 30;

/// An effect without what says nothing: the gate of one that has ended.
pub(super) fn plain(effect: Effect) -> Effect {
    let gate = match effect.record.state {
        EffectState::Done | EffectState::Dead | EffectState::Skipped => Gate::Open,
        EffectState::Pending | EffectState::Claimed | EffectState::Uncertain => effect.gate,
    };
    Effect { gate, ..effect }
}

/// The model's event, to be compared with [`Pair::named_detail`].
pub(super) fn plain_detail(detail: EventDetail) -> EventDetail {
    let effects = detail.effects.into_iter().map(plain).collect();
    EventDetail { effects, ..detail }
}

impl Pair {
    pub(super) fn named_detail(&self, ours: EventId, detail: EventDetail) -> EventDetail {
        let theirs = detail.event.id;
        let mut named = detail;
        named.event.id = self.named(theirs);
        named.effects = self.named_effects(ours, named.effects);
        for delivery in &mut named.deliveries {
            if let Some(ConflictDecision::Promoted(event)) = &mut delivery.decided {
                *event = self.named(*event);
            }
        }
        let parent = |run: &Run| match run.parent == RunId::initial(theirs) {
            true => RunId::initial(ours),
            false => run.parent,
        };
        for run in &mut named.runs {
            run.parent = parent(run);
        }
        named
    }

    /// All ids in a text.
    pub(super) fn named_text(&self, text: &str) -> String {
        let mut named = String::new();
        let mut rest = text;
        while let Some(start) = ["eff_", "evt_", "key_"]
            .into_iter()
            .filter_map(|prefix| rest.find(prefix))
            .min()
        {
            named.push_str(&rest[..start]);
            let end = (start + ID_LETTERS).min(rest.len());
            let id = &rest[start..end];
            let event = id.parse::<EventId>().map(|id| self.named(id).to_string());
            let effect = id
                .parse::<EffectId>()
                .map(|id| self.effects.id(id).to_string());
            let key = id.parse::<KeyId>().map(|id| self.keys.id(id).to_string());
            let known = event.or(effect).or(key);
            named.push_str(&known.unwrap_or_else(|_| id.to_owned()));
            rest = &rest[end..];
        }
        named.push_str(rest);
        named
    }

    /// In which order an event's shared effects come is the store's choice; once it differs, so may every text that lists them.
    pub(super) fn same_text(&self, theirs: &str, ours: &str, what: &str) {
        if self.same_order {
            assert_eq!(self.named_text(theirs), ours, "{what}");
        }
    }

    pub(super) fn same_verdict(&self, theirs: Verdict, ours: Verdict, what: &str) {
        assert_eq!(theirs.verdict, ours.verdict, "{what}");
        if self.same_order {
            let mut named = theirs;
            for reason in &mut named.reasons {
                *reason = self.named_text(reason);
            }
            for line in &mut named.effects {
                line.why = self.named_text(&line.why);
            }
            assert_eq!(named, ours, "{what}");
        }
    }

    pub(super) fn same_before(&self, theirs: &Before, ours: &Before, what: &str) {
        match (theirs, ours) {
            (Before::Same(theirs), Before::Same(ours)) => self.same_text(theirs, ours, what),
            (theirs, ours) => assert_eq!(theirs, ours, "{what}"),
        }
    }

    fn named_order(&self, order: OrderVerdict) -> OrderVerdict {
        match order {
            OrderVerdict::Wait { behind } => OrderVerdict::Wait {
                behind: self.effects.id(behind),
            },
            OrderVerdict::Review {
                why: ReviewWhy::LaterRan { effect },
            } => OrderVerdict::Review {
                why: ReviewWhy::LaterRan {
                    effect: self.effects.id(effect),
                },
            },
            same => same,
        }
    }

    pub(super) async fn look_at_facts(&mut self, on: (EventId, EventId)) {
        let theirs = self.store.facts(on.0).await.expect("the store reads");
        let ours = self.model.facts(on.1).await.expect("the model reads");
        let named = theirs.map(|facts| {
            let effects = facts.effects.into_iter().map(|one| EffectFacts {
                effect: self.named_effect(one.effect),
                order: self.named_order(one.order),
                ..one
            });
            EventFacts {
                effects: effects.collect(),
                ..facts
            }
        });
        let plain = ours.map(|facts| {
            let effects = facts.effects.into_iter().map(|one| EffectFacts {
                effect: plain(one.effect),
                ..one
            });
            EventFacts {
                effects: effects.collect(),
                ..facts
            }
        });
        let ids = |facts: &Option<EventFacts>| -> Vec<EffectId> {
            let all = facts.iter().flat_map(|facts| &facts.effects);
            all.map(|one| one.effect.id).collect()
        };
        self.same_order &= ids(&named) == ids(&plain);
        let sorted = |mut facts: Option<EventFacts>| {
            let effects = facts.as_mut().map(|facts| &mut facts.effects);
            if let Some(effects) = effects {
                effects.sort_by_key(|one| one.effect.id);
            }
            facts
        };
        assert_eq!(sorted(named), sorted(plain), "facts");
        for delivery in 0..4 {
            let theirs = self.store.conflict_body(on.0, delivery).await;
            let ours = self.model.conflict_body(on.1, delivery).await;
            assert_eq!(
                theirs.expect("the store reads"),
                ours.expect("the model reads"),
                "the bytes of delivery {delivery}"
            );
        }
    }

    /// The effects that an event called for first, planned with it or later, are known by both names.
    pub(super) async fn meet_effects(&mut self, theirs: EventId, ours: EventId) {
        let own = async |store: &Subject, event: EventId| -> Vec<EffectId> {
            let detail = store.event(event).await.expect("the store reads");
            let effects = detail.into_iter().flat_map(|detail| detail.effects);
            let own = effects.filter(|effect| effect.event == event);
            own.map(|effect| effect.id).collect()
        };
        let (new, known) = (own(&self.store, theirs).await, own(&self.model, ours).await);
        assert_eq!(new.len(), known.len(), "effects planned");
        for pair in new.into_iter().zip(known) {
            self.effects.meet(pair);
        }
    }

    pub(super) fn effect_of(&self, claimed: &OwnClaimed) -> Option<EffectId> {
        match claimed {
            OwnClaimed::Claimed { effect, .. }
            | OwnClaimed::Done { effect, .. }
            | OwnClaimed::InFlight { effect, .. }
            | OwnClaimed::Uncertain { effect }
            | OwnClaimed::Closed { effect }
            | OwnClaimed::NotYours { effect } => Some(*effect),
            OwnClaimed::NoEvent => None,
        }
    }

    pub(super) fn named_own(&self, claimed: OwnClaimed) -> OwnClaimed {
        let mut named = claimed;
        match &mut named {
            OwnClaimed::Claimed { effect, .. }
            | OwnClaimed::Done { effect, .. }
            | OwnClaimed::InFlight { effect, .. }
            | OwnClaimed::Uncertain { effect }
            | OwnClaimed::Closed { effect }
            | OwnClaimed::NotYours { effect } => *effect = self.effects.id(*effect),
            OwnClaimed::NoEvent => {}
        }
        named
    }

    /// Somebody's own code holds this effect.
    pub(super) fn may_move(&mut self, effect: EffectId, fence: Fence) {
        self.effects.hold(effect, fence);
    }
}
