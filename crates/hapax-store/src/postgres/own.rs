//! Effects that the user's own code carries out: claimed and started in one transaction, with the event that calls for them.
//!
//! What is there is looked at first, without a lock. If that turns out to be otherwise once the keys are ours, the claim begins again.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use hapax_ledger::claim::ClaimVerdict;
use hapax_ledger::id::{EffectId, EventId};
use hapax_ledger::time::Time;
use tokio_postgres::types::Type;

use super::accept::key_order;
use super::advance::lock_effects;
use super::called;
use super::carry::carry_out;
use super::decide::Decisions;
use super::effect::to_held;
use super::effect_id::key_shard;
use super::fault::unavailable;
use super::held::Hand;
use super::known;
use super::moment::{LeaseClock, moment};
use super::plan::{self, Calling, Plan};
use super::pool::{Param, Pool, Taken};
use super::seated::Seated;
use super::status::Around;
use super::stored::{GroupRows, store};
use super::wire::{Uuid, received, sendable};
use super::{Entropy, SHARDS};
use crate::error::StoreError;
use crate::nouns::{Arrival, OwnClaim, OwnClaimed};
use crate::own;

/// So often a claim begins again because somebody else made the effect or its event meanwhile, which is rare once.
const TRIES_MAX: u32 = 8;

/// Claims an effect for somebody's own code.
pub(super) async fn claim(
    pool: &Pool,
    claim: &OwnClaim,
    entropy: &Entropy,
    clock: &LeaseClock,
) -> Result<OwnClaimed, StoreError> {
    let arrival = own::arrival(claim);
    for _ in 0..TRIES_MAX {
        let taken = pool.take().await?;
        let ((), seen) = tokio::try_join!(biased; taken.open(), see(&taken, claim, &arrival))?;
        let asking = Asking {
            taken,
            claim,
            arrival: &arrival,
            entropy,
            clock,
        };
        if let Some(claimed) = asking.answer(seen).await? {
            return Ok(claimed);
        }
    }
    Err(unavailable(
        "somebody else made the effect or its event each time it was looked for",
    ))
}

/// What is there, before anything is locked.
struct Seen {
    /// The effect, and whether it is the user's own.
    effect: Option<(EffectId, bool)>,
    /// The event that was named, or that the effect would have of its own.
    event: Option<(EventId, Time)>,
}

async fn see(taken: &Taken, claim: &OwnClaim, arrival: &Arrival) -> Result<Seen, StoreError> {
    let shard = claim.key_hash.shard(SHARDS) as i16;
    let hash = Uuid(claim.key_hash.bytes());
    let named: [Param<'_>; 2] = [(&shard, Type::INT2), (&hash, Type::UUID)];
    let effect = taken.query(
        "SELECT id, lane FROM hapax.effect WHERE shard = $1 AND key_hash = $2",
        &named,
    );
    let (effect, event) = tokio::try_join!(biased; effect, see_event(taken, claim, arrival))?;
    let effect = effect.first().map(|row| {
        let id = EffectId::from_bytes(row.get::<_, Uuid>(0).0);
        (id, own::is_own(&received(row.get(1))))
    });
    Ok(Seen { effect, event })
}

async fn see_event(
    taken: &Taken,
    claim: &OwnClaim,
    arrival: &Arrival,
) -> Result<Option<(EventId, Time)>, StoreError> {
    let rows = match (claim.event, &arrival.events[..]) {
        (Some(event), _) => {
            taken
                .query(
                    "SELECT id, at FROM hapax.event WHERE shard = $1 AND id = $2",
                    &[
                        (&(event.0.shard() as i16), Type::INT2),
                        (&Uuid(event.bytes()), Type::UUID),
                    ],
                )
                .await?
        }
        (None, [own, ..]) => {
            taken
                .query(
                    "SELECT v.id, v.at FROM hapax.identity i JOIN hapax.event v ON v.shard = i.shard AND v.id = i.event
                     WHERE i.shard = $1 AND i.source = $2 AND i.key_hash = $3",
                    &[
                        (&(own.key_hash.shard(SHARDS) as i16), Type::INT2),
                        (&sendable(&arrival.source), Type::TEXT),
                        (&Uuid(own.key_hash.bytes()), Type::UUID),
                    ],
                )
                .await?
        }
        (None, []) => Vec::new(),
    };
    Ok(rows.first().map(|row| {
        let id = EventId::from_bytes(row.get::<_, Uuid>(0).0);
        (id, Time::from_micros(row.get(1)))
    }))
}

/// One try at a claim, in an open transaction.
struct Asking<'a> {
    taken: Taken,
    claim: &'a OwnClaim,
    arrival: &'a Arrival,
    entropy: &'a Entropy,
    clock: &'a LeaseClock,
}

impl Asking<'_> {
    /// `None`: what was seen is not so any more.
    async fn answer(self, seen: Seen) -> Result<Option<OwnClaimed>, StoreError> {
        match (seen.effect, self.claim.event, seen.event) {
            (_, Some(_), None) => {
                self.taken.roll_back().await;
                Ok(Some(OwnClaimed::NoEvent))
            }
            (Some((effect, false)), _, _) => {
                self.taken.roll_back().await;
                Ok(Some(OwnClaimed::NotYours { effect }))
            }
            (Some((effect, true)), None, _) => self.claim_known(effect).await,
            (_, _, Some((event, at))) => self.claim_for(event, at).await,
            (None, None, None) => self.claim_alone().await,
        }
    }

    /// The effect is there, and no event is named.
    async fn claim_known(self, effect: EffectId) -> Result<Option<OwnClaimed>, StoreError> {
        let ids = BTreeSet::from([effect]);
        let (found, moment, result) = tokio::try_join!(
            biased;
            lock_effects(&self.taken, &ids),
            moment(&self.taken, self.clock),
            result(&self.taken, effect),
        )?;
        let mut hand = Hand::new(moment, found.iter().map(to_held));
        let verdict = hand.claim_own(effect, self.claim);
        let Some(verdict) = verdict else {
            self.taken.roll_back().await;
            return Ok(None);
        };
        carry_out(self.taken, &hand).await?;
        Ok(Some(say(effect, verdict, result)))
    }

    /// No event calls for the effect yet, and none is named: both are new.
    async fn claim_alone(self) -> Result<Option<OwnClaimed>, StoreError> {
        let taken = self.taken;
        let slots = known::take_keys(&taken, &[self.arrival], self.entropy).await?;
        let mut decisions = Decisions::default();
        for event in &self.arrival.events {
            let slot = slots.get(&key_order(self.arrival, event));
            if let Some(id) = slot.and_then(|slot| slot.reserved) {
                decisions.insert(self.arrival, event, id);
            }
        }
        let wanted = plan::wanted(decisions.calling(), self.entropy);
        let take = called::take_keys(&taken, &wanted);
        let (fresh, moment) = tokio::try_join!(biased; take, moment(&taken, self.clock))?;
        let mut plan = Plan::new(&wanted, &fresh, moment);
        let effect = plan.new.keys().next().copied();
        let claimed = effect.and_then(|id| Some((id, plan.claim_own(id, self.claim)?)));
        let Some((effect, verdict)) = claimed else {
            taken.roll_back().await;
            return Ok(None);
        };
        plan.carry_out(&mut decisions.events, &decisions.deeds)?;
        store(taken, decisions, Some(&plan), &BTreeMap::new()).await?;
        Ok(Some(say(effect, verdict, None)))
    }

    /// An event that is there calls for the effect, which is added or linked.
    async fn claim_for(self, event: EventId, at: Time) -> Result<Option<OwnClaimed>, StoreError> {
        let effects = [own::planned(self.claim)];
        let calling = Calling {
            event,
            at,
            event_type: None,
            effects: &effects,
            from: 0,
        };
        let mut plan = self.lock(&calling).await?;
        let taken = self.taken;
        let effect = plan.keys.values().next().copied();
        let seated = Seated::find(&taken, event, effect).await?;
        let Some((effect, seated)) = effect.zip(seated) else {
            // The event is gone.
            taken.roll_back().await;
            return Ok(None);
        };
        let held = plan.hand.held.get(&effect);
        if held.is_some_and(|held| !own::is_own(&held.effect.lane)) {
            taken.roll_back().await;
            return Ok(Some(OwnClaimed::NotYours { effect }));
        }
        let Some(verdict) = plan.claim_own(effect, self.claim) else {
            taken.roll_back().await;
            return Ok(None);
        };
        seated.link(&mut plan);
        let result = result(&taken, effect).await?;
        let mut around = Around::of(&plan.hand);
        around.lock_too(event);
        let rows = GroupRows::of(Decisions::default(), Some(&plan), &BTreeMap::new());
        let mut first = rows.first();
        first.extend(plan.new.contains_key(&effect).then(|| seated.statement()));
        let (_, stand) = tokio::try_join!(biased; taken.run_all(&first), around.look(&taken))?;
        stand.commit(taken, &plan.hand.reviews, Vec::new()).await?;
        Ok(Some(say(effect, verdict, result)))
    }

    /// Takes or locks the key of the effect, and locks the event and all around it.
    async fn lock(&self, calling: &Calling<'_>) -> Result<Plan, StoreError> {
        let taken = &self.taken;
        let wanted = plan::wanted([*calling], self.entropy);
        let take = called::take_keys(taken, &wanted);
        let (fresh, moment) = tokio::try_join!(biased; take, moment(taken, self.clock))?;
        let mut plan = Plan::new(&wanted, &fresh, moment);
        // All that the event calls for: what was alone will not be.
        let joined = BTreeSet::from([calling.event]);
        called::lock_rest(taken, &wanted, &joined, None, &mut plan).await?;
        plan.joined = joined;
        let mut around = Around::all_of(&plan.hand);
        around.lock_too(calling.event);
        around.lock(taken).await?;
        plan.call(calling)?;
        Ok(plan)
    }
}

/// What was said at the end of the effect's last attempt.
async fn result(taken: &Taken, effect: EffectId) -> Result<Option<Bytes>, StoreError> {
    let rows = taken
        .query(
            "SELECT excerpt FROM hapax.attempt WHERE shard = $1 AND effect = $2 ORDER BY fence DESC LIMIT 1",
            &[
                (&key_shard(effect), Type::INT2),
                (&Uuid(effect.bytes()), Type::UUID),
            ],
        )
        .await?;
    let excerpt = rows
        .first()
        .and_then(|row| row.get::<_, Option<Vec<u8>>>(0));
    Ok(excerpt.map(Bytes::from))
}

fn say(effect: EffectId, verdict: ClaimVerdict, result: Option<Bytes>) -> OwnClaimed {
    match verdict {
        ClaimVerdict::Claimed { fence, .. } => OwnClaimed::Claimed { effect, fence },
        ClaimVerdict::Done => OwnClaimed::Done { effect, result },
        ClaimVerdict::InFlight { until } => OwnClaimed::InFlight { effect, until },
        ClaimVerdict::Uncertain => OwnClaimed::Uncertain { effect },
        ClaimVerdict::Dead | ClaimVerdict::Skipped => OwnClaimed::Closed { effect },
    }
}
