//! The loop over lanes: start what can start, claim what is due, sleep until something changes.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use hapax_ledger::id::EventId;
use hapax_ledger::outcome::{NotSent, Outcome};
use hapax_ledger::retry::Next;
use hapax_ledger::time::Span;
use hapax_store::StoreError;
use hapax_store::nouns::{
    ClaimAsk, Claimed, Claims, Effect, LaneRoom, Move, Moved, Parcel, Settlement,
};

use super::dispatcher::{Shared, lock};
use super::job::Job;
use super::log::{Origin, Subject, of_effect};
use crate::clock;

impl Shared {
    /// Looks at lanes whenever there may be something to do.
    pub(super) async fn look_after_lanes(self: Arc<Self>) {
        loop {
            // Registered before looking, so that nothing that happens meanwhile is missed.
            let work = self.work.notified();
            match self.step() {
                Some(at) => {
                    let at = tokio::time::Instant::from_std(at);
                    // Either way there is something to look at.
                    let _ = tokio::time::timeout_at(at, work).await;
                }
                None => work.await,
            }
        }
    }

    /// Does what can be done now. Gives the moment of the next look, if there is one.
    pub(super) fn step(self: &Arc<Self>) -> Option<Instant> {
        let now = clock::tick();
        let (todo, next) = {
            let mut lanes = lock(&self.lanes);
            let todo = lanes.todo(now, |lane| self.standing(lane, now));
            (todo, lanes.next_look(now))
        };
        for (lane, job) in todo.start {
            self.spawn(self.clone().carry(lane, job));
        }
        for (shard, lanes) in todo.ask {
            self.spawn(self.clone().claim(shard, lanes));
        }
        for job in todo.stranded {
            self.spawn(self.clone().strand(job));
        }
        next
    }

    /// Claims from some lanes of a shard.
    async fn claim(self: Arc<Self>, shard: u16, lanes: Vec<LaneRoom>) {
        let under_way = UnderWay(self.clone(), shard);
        let asked = clock::tick();
        let ask = ClaimAsk {
            shard,
            node: self.node.clone(),
            lease: self.lease,
            lanes: lanes.clone(),
        };
        match self.claim_with_parcels(ask).await {
            Ok((claims, parcels)) => self.claimed(&lanes, claims, &parcels, asked),
            Err(error) => {
                tracing::warn!(%error, "nothing could be claimed; trying again");
                let now = clock::tick();
                let mut known = lock(&self.lanes);
                lanes
                    .iter()
                    .for_each(|room| known.unanswered(&room.lane, now));
            }
        }
        drop(under_way);
        self.work.notify_one();
    }

    async fn claim_with_parcels(
        &self,
        ask: ClaimAsk,
    ) -> Result<(Claims, HashMap<EventId, Arc<Parcel>>), StoreError> {
        let claims = self.store.claim(ask).await?;
        let mut events: Vec<EventId> = claims.claimed.iter().map(|one| one.effect.event).collect();
        events.sort_unstable();
        events.dedup();
        if events.is_empty() {
            return Ok((claims, HashMap::new()));
        }
        // What was claimed and cannot be read now is taken up again when its lease ends.
        let parcels = self.store.parcels(events.clone()).await?;
        let found = events.into_iter().zip(parcels);
        let found = found.filter_map(|(event, parcel)| Some((event, Arc::new(parcel?))));
        Ok((claims, found.collect()))
    }

    fn claimed(
        self: &Arc<Self>,
        lanes: &[LaneRoom],
        claims: Claims,
        parcels: &HashMap<EventId, Arc<Parcel>>,
        asked: Instant,
    ) {
        let held_until = asked + self.lease_length();
        let mut jobs: HashMap<Arc<str>, Vec<Job>> = HashMap::new();
        for Claimed { effect, snapshot } in claims.claimed {
            let Some(parcel) = parcels.get(&effect.event) else {
                self.spawn(self.clone().give_up_without_bytes(effect));
                continue;
            };
            let job = Job {
                parcel: parcel.clone(),
                snapshot,
                held_until,
                due: self.drift.local(effect.record.next_attempt_at),
                effect,
            };
            jobs.entry(job.effect.lane.clone()).or_default().push(job);
        }
        let now = clock::tick();
        let mut known = lock(&self.lanes);
        for (room, next) in lanes.iter().zip(claims.next) {
            let jobs = jobs.remove(&room.lane).unwrap_or_default();
            let next = next.map(|at| self.drift.local(at));
            known.answered(&room.lane, jobs, next, now);
        }
    }

    /// The bytes were erased or reaped, and something brought the effect back: it ends as what it is, certainly not sent and given up.
    async fn give_up_without_bytes(self: Arc<Self>, effect: Effect) {
        let (id, fence) = (effect.id, effect.record.fence);
        let mut settlement = Settlement::new(
            Outcome::NotSent {
                why: NotSent::Payload,
            },
            Next::Exhausted,
        );
        settlement.said.error = Some("the event's payload is no longer kept".to_owned());
        let ended = match self.store.advance(id, fence, Move::Start(None)).await {
            Ok(started) if matches!(started.moved, Moved::Done(_)) => {
                self.store
                    .advance(id, fence, Move::Settle(settlement))
                    .await
            }
            other => other,
        };
        let origin = Origin::ask(&*self.store, effect.event).await;
        let (subject, origin) = (Subject::from(&effect), origin.as_ref());
        match ended {
            Ok(advanced) => {
                let text = "an effect is given up: its event's payload is no longer kept";
                of_effect!(warn, subject, origin, "{text}");
                self.opened(&advanced);
            }
            Err(error) => {
                of_effect!(debug, subject, origin, %error, "it is looked at again when its lease ends");
                self.doubt(&error);
            }
        }
    }

    /// A claim that cannot be sent for now goes back. One that was born started ends without having been sent.
    async fn strand(self: Arc<Self>, job: Job) {
        match job.effect.record.started {
            true => self.not_sent(job).await,
            false => self.give_back(&job, Span::ZERO).await,
        }
    }
}

/// Counts a claim until it has ended, also if that is in a panic.
struct UnderWay(Arc<Shared>, u16);

impl Drop for UnderWay {
    fn drop(&mut self) {
        lock(&self.0.lanes).claim_ended(self.1);
    }
}
