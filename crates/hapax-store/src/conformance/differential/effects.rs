//! Effects on both sides: planned with events, claimed, moved with right and with stale fences, resolved, rescued. Ids differ, so
//! each of the store's stands for the model's that was given in its place.

use std::collections::HashMap;
use std::sync::Arc;

use hapax_ledger::effect::EffectState;
use hapax_ledger::id::{EffectId, EventId};
use hapax_ledger::lease::Fence;
use hapax_ledger::order::ReviewWhy;
use hapax_ledger::time::{Span, Time};
use hapax_ledger::transition::{Did, Resolution, Resolver};

use super::super::sample::{Dial, at};
use super::super::worker::{claim_lanes, names, rescued};
use super::Pair;
use super::naming::plain;
use super::sketch::{EffectCommand, LANES, LEASE};
use crate::nouns::{Advanced, Claimed, Effect, Move, Moved, PollPlace, Receipt, Receipted};

/// A claim takes all that is due: which of them come first is only the same within a lane, and there by id.
const EVERYTHING: u32 = 1_000;

/// What is known of effects and deliveries on both sides.
pub(super) struct Known {
    dial: Dial,
    pub(super) now: Time,
    names: HashMap<EffectId, EffectId>,
    pub(super) given: Vec<(EffectId, EffectId)>,
    /// Every claim there was, oldest first.
    claims: Vec<Claim>,
    /// Those of them that nobody has carried out.
    waiting: Vec<Claim>,
    /// Effects that became uncertain.
    uncertain: Vec<(EffectId, EffectId)>,
    /// How far somebody has read who polls an application.
    pub(super) places: HashMap<u64, (PollPlace, PollPlace)>,
}

/// The right to an effect, by the store's name and the model's.
#[derive(Clone, Copy, Debug)]
struct Claim {
    theirs: EffectId,
    ours: EffectId,
    fence: Fence,
}

impl Known {
    /// Nothing yet; the clock begins at the beginning.
    pub(super) fn new(dial: Dial) -> Known {
        dial.set(at(0));
        Known {
            dial,
            now: at(0),
            names: HashMap::new(),
            places: HashMap::new(),
            given: Vec::new(),
            claims: Vec::new(),
            waiting: Vec::new(),
            uncertain: Vec::new(),
        }
    }

    /// The two names of one effect are known from now on.
    pub(super) fn meet(&mut self, pair: (EffectId, EffectId)) {
        if self.names.insert(pair.0, pair.1).is_none() {
            self.given.push(pair);
        }
    }

    /// Somebody holds an effect that they have started.
    pub(super) fn hold(&mut self, theirs: EffectId, fence: Fence) {
        let ours = self.id(theirs);
        self.claims.push(Claim {
            theirs,
            ours,
            fence,
        });
    }

    pub(super) fn id(&self, id: EffectId) -> EffectId {
        *self
            .names
            .get(&id)
            .expect("the store names an effect that no event has shown")
    }
}

impl Pair {
    pub(super) async fn run_effects(&mut self, command: &EffectCommand) {
        match command {
            EffectCommand::Wait { seconds } => {
                self.effects.now = self.effects.now + Span::from_secs(*seconds);
                self.effects.dial.set(self.effects.now);
            }
            EffectCommand::Claim { node, lanes } => {
                self.claim(["one", "two"][*node], *lanes).await;
            }
            EffectCommand::Move { latest, what } => self.advance_latest(*latest, what).await,
            EffectCommand::Carry { nth, start, end } => self.carry(*nth, start, end).await,
            EffectCommand::Resolve {
                nth,
                resolution,
                by,
            } => self.resolve(*nth, *resolution, *by).await,
            EffectCommand::Rescue => self.rescue().await,
            EffectCommand::Look(look) => self.look_at_effects(look).await,
        }
    }

    /// The effect as the model would name it.
    pub(super) fn named_effect(&self, effect: Effect) -> Effect {
        plain(Effect {
            id: self.effects.id(effect.id),
            event: self.named(effect.event),
            ..effect
        })
    }

    /// The event's own effects as they are, then those it shares in the order of the model's ids: which of those that were
    /// planned in one millisecond comes first is the store's choice.
    pub(super) fn named_effects(&self, event: EventId, effects: Vec<Effect>) -> Vec<Effect> {
        let (mut own, mut shared): (Vec<Effect>, Vec<Effect>) = effects
            .into_iter()
            .map(|effect| self.named_effect(effect))
            .partition(|effect| effect.event == event);
        shared.sort_by_key(|effect| effect.id);
        own.append(&mut shared);
        own
    }

    /// The receipt as the model would give it. A new event shows its own effects in plan order: that is how they are named.
    pub(super) async fn named_receipt(&mut self, theirs: Receipt, ours: &Receipt) -> Receipt {
        if theirs.sighting == Receipted::New {
            self.meet_effects(theirs.event, ours.event).await;
        }
        for claimed in theirs.claims.iter().flatten() {
            self.remember(&claimed.effect);
        }
        let mut revived = theirs.revived;
        revived.sort_unstable();
        Receipt {
            event: self.named(theirs.event),
            claims: theirs
                .claims
                .into_iter()
                .map(|claimed| claimed.map(|claimed| self.named_claim(claimed)))
                .collect(),
            revived,
            ..theirs
        }
    }

    fn named_claim(&self, claimed: Claimed) -> Claimed {
        Claimed {
            effect: self.named_effect(claimed.effect),
            ..claimed
        }
    }

    /// What became of a move as the model would say it.
    fn named_move(&self, moved: Moved) -> Moved {
        match moved {
            Moved::Waits(behind) => Moved::Waits(self.effects.id(behind)),
            Moved::Review(ReviewWhy::LaterRan { effect }) => {
                let effect = self.effects.id(effect);
                Moved::Review(ReviewWhy::LaterRan { effect })
            }
            same => same,
        }
    }

    fn remember(&mut self, claimed: &Effect) {
        let claim = Claim {
            theirs: claimed.id,
            ours: self.effects.id(claimed.id),
            fence: claimed.record.fence,
        };
        self.effects.claims.push(claim);
        self.effects.waiting.push(claim);
    }

    async fn claim(&mut self, node: &str, lanes: usize) {
        let asked: Vec<&str> = (0..LANES.len())
            .filter(|lane| lanes & (1 << lane) != 0)
            .map(|lane| LANES[lane])
            .collect();
        self.claim_in(node, &asked).await;
    }

    /// Claims all that is due in these lanes.
    pub(super) async fn claim_in(&mut self, node: &str, lanes: &[&str]) {
        let asked: Vec<(&str, u32)> = lanes.iter().map(|lane| (*lane, EVERYTHING)).collect();
        let mut theirs = Vec::new();
        for claimed in claim_lanes(&self.store, node, &asked, LEASE).await {
            self.remember(&claimed.effect);
            theirs.push(self.named_claim(claimed));
        }
        let mut ours = claim_lanes(&self.model, node, &asked, LEASE).await;
        theirs.sort_by_key(|claimed| claimed.effect.id);
        ours.sort_by_key(|claimed| claimed.effect.id);
        assert_eq!(theirs, ours, "claimed");
    }

    async fn advance_latest(&mut self, latest: usize, what: &Move) {
        let claim = self.effects.claims.iter().rev().nth(latest).copied();
        if let Some(claim) = claim {
            self.advance(claim, what).await;
        }
    }

    async fn carry(&mut self, nth: usize, start: &Move, end: &Move) {
        let waiting = &mut self.effects.waiting;
        if !waiting.is_empty() {
            let claim = waiting.remove(nth % waiting.len());
            self.advance(claim, start).await;
            self.advance(claim, end).await;
        }
    }

    async fn advance(&mut self, claim: Claim, what: &Move) {
        let theirs = self.store.advance(claim.theirs, claim.fence, what.clone());
        let theirs = theirs.await.expect("the store moves");
        let ours = self.model.advance(claim.ours, claim.fence, what.clone());
        let ours = ours.await.expect("the model moves");
        if let Moved::Done(change) = &ours.moved
            && change.did == Did::Uncertain
        {
            self.effects.uncertain.push((claim.theirs, claim.ours));
        }
        self.same_end(theirs, ours, &format!("{what:?}"));
    }

    async fn resolve(&self, nth: usize, resolution: Resolution, by: Resolver) {
        let uncertain = &self.effects.uncertain;
        let Some(&(theirs, ours)) = uncertain.get(nth % uncertain.len().max(1)) else {
            return;
        };
        let theirs = self.store.resolve(theirs, resolution, by).await;
        let ours = self.model.resolve(ours, resolution, by).await;
        let (theirs, ours) = (
            theirs.expect("the store resolves"),
            ours.expect("the model resolves"),
        );
        self.same_end(theirs, ours, &format!("{resolution:?} by {by:?}"));
    }

    fn same_end(&self, theirs: Advanced, ours: Advanced, what: &str) {
        assert_eq!(self.named_move(theirs.moved), ours.moved, "{what}");
        assert_eq!(names(theirs.opened), names(ours.opened), "opened by {what}");
    }

    /// A store rescues shard by shard, the model all at once. So what was freed is compared as it is in the end, and of the lanes
    /// that were set free those count in which nothing was freed itself.
    async fn rescue(&mut self) {
        let (theirs, ours) = (rescued(&self.store).await, rescued(&self.model).await);
        let mut freed = Vec::new();
        for effect in &theirs.effects {
            let read = self.store.effect(effect.id).await.expect("the store reads");
            let named = self.named_effect(read.expect("it is there").effect);
            if named.record.state == EffectState::Uncertain {
                self.effects.uncertain.push((effect.id, named.id));
            }
            freed.push(named);
        }
        freed.sort_by_key(|effect| effect.id);
        let expected: Vec<Effect> = ours.effects.into_iter().map(plain).collect();
        assert_eq!(freed, expected, "rescued");
        let elsewhere = |opened: Vec<Arc<str>>| {
            let mut lanes = names(opened);
            lanes.retain(|lane| freed.iter().all(|effect| *effect.lane != **lane));
            lanes.dedup();
            lanes
        };
        assert_eq!(
            elsewhere(theirs.opened),
            elsewhere(ours.opened),
            "opened by rescue"
        );
    }
}
