//! One attempt, from the claim to its settlement.
//!
//! The order is the promise: the start is durable before a byte leaves (D1), and whatever comes back is settled under the fence of
//! this very claim (C2). Between the two nothing of the ledger is held but a lease, which is kept alive.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hapax_ledger::effect::SkipReason;
use hapax_ledger::outcome::{Lost, NotSent, Outcome};
use hapax_ledger::time::Span;
use hapax_ledger::transition::Did;
use hapax_store::StoreError;
use hapax_store::nouns::{Advanced, Move, Moved, Review};

use super::ask;
use super::delivery;
use super::directory::Found;
use super::dispatcher::{Shared, lock};
use super::job::Job;
use super::lanes::Finished;
use super::log::about;
use super::request::{self, EffectPart, EffectRequest, EventPart};
use super::sender::Sent;
use super::settle::jitter_after;
use super::shards::Hold;
use super::target::{EffectTarget, Target, Way};
use crate::clock;
use crate::config::BodyForm;

/// The review code of an effect whose review condition holds over the snapshot.
const ASKED: &str = "H0222";
/// A claim without a target goes back for so long: the config may name it again at any time.
const NO_TARGET_WAIT: Span = Span::from_secs(60);
/// A claim whose endpoint could not be asked for goes back for so long: the store is busy or away.
const UNKNOWN_WAIT: Span = Span::from_secs(1);
/// May it be sent?
pub(super) enum Ready {
    /// Yes: the start is durable.
    Go,
    /// It ends here, with this.
    Ends(Sent),
    /// Not now, or not by us: the ledger has it.
    Not,
}

impl Shared {
    /// Carries one claim out. The lane counts it as under way until the end.
    pub(super) async fn carry(self: Arc<Self>, lane: Arc<str>, job: Job) {
        let slot = Slot {
            shared: self.clone(),
            lane,
            how: Finished::NotSent,
        };
        match self.find_out(&job).await {
            Ok(Found::Target(target)) => self.carry_to(&target, job, slot).await,
            Ok(Found::Closed(reason)) => self.skip(&job, reason).await,
            // Nobody has heard of it since it was planned.
            Ok(Found::Unknown) => self.skip(&job, SkipReason::EndpointDeleted).await,
            Ok(Found::Nobody | Found::Unready) => self.give_back(&job, NO_TARGET_WAIT).await,
            Err(error) => {
                about!(warn, job, %error, "its endpoint could not be asked for");
                self.give_back(&job, UNKNOWN_WAIT).await;
            }
        }
    }

    async fn carry_to(&self, target: &Target, mut job: Job, mut slot: Slot) {
        let lag = clock::tick().saturating_duration_since(job.due);
        let sent = match self.prepare(target, &mut job).await {
            Ok(Ready::Go) => self.send(target, &mut job).await,
            Ok(Ready::Ends(sent)) => sent,
            Ok(Ready::Not) => return,
            Err(error) => {
                // Nothing has left. If the start is durable after all, the claim's end makes it known.
                about!(warn, job, %error, "an attempt could not be started");
                return;
            }
        };
        self.metrics
            .effects
            .attempt(&job.effect.lane, sent.outcome, lag, sent.duration);
        slot.came_back(sent.outcome);
        let ended = self.settle(target, &job, sent).await;
        // Whoever keeps the endpoints may write something down about this one. Nobody waits for that before the next is claimed.
        drop(slot);
        self.pass_on(target, &job, ended).await;
    }

    /// Everything before the first byte.
    async fn prepare(&self, target: &Target, job: &mut Job) -> Result<Ready, StoreError> {
        if job.effect.record.started {
            return self.still_ours(target, job).await;
        }
        let current = target.repeat();
        if job.effect.record.repeat.stricter(current) != job.effect.record.repeat {
            match self.advance(job, Move::Tighten(current)).await?.moved {
                Moved::Done(change) if change.did == Did::Tightened => {
                    job.effect.record = change.next;
                }
                moved => return Ok(self.not_started(job, &moved)),
            }
        }
        let missing = match self.snapshot(target, job).await {
            Snapshot::Here => None,
            Snapshot::Missing(sent) => Some(sent),
            Snapshot::Review(review) => {
                let moved = self.advance(job, Move::Review(review)).await?.moved;
                return Ok(self.not_started(job, &moved));
            }
        };
        let start = Move::Start(job.snapshot.clone());
        // Never closed, so there is always a place in the end.
        let place = self.starts.acquire().await;
        // It may have waited for its place longer than its claim holds. Asking the store, which would refuse it, keeps those waiting
        // that could still start; where there are many, all of them, for good.
        if job.held_until <= clock::tick() {
            about!(debug, job, "its claim ran out before it could start");
            return Ok(Ready::Not);
        }
        let started = self.advance(job, start).await?.moved;
        drop(place);
        match started {
            Moved::Done(change) => job.effect.record = change.next,
            moved => return Ok(self.not_started(job, &moved)),
        }
        match missing {
            Some(sent) => Ok(Ready::Ends(sent)),
            None => self.still_ours(target, job).await,
        }
    }

    /// A worker starts nothing that it cannot finish within its lease, or keep alive until it is finished (C4).
    async fn still_ours(&self, target: &Target, job: &mut Job) -> Result<Ready, StoreError> {
        let needed = target.timeout.min(self.lease_length() / 2);
        let now = clock::tick();
        if job.held_until.saturating_duration_since(now) > needed {
            return Ok(Ready::Go);
        }
        match self.extend(job, now).await?.moved {
            Moved::Done(_) => Ok(Ready::Go),
            moved => Ok(self.not_started(job, &moved)),
        }
    }

    async fn extend(&self, job: &mut Job, now: Instant) -> Result<Advanced, StoreError> {
        let extended = self.advance(job, Move::Extend(self.lease)).await?;
        if matches!(extended.moved, Moved::Done(_)) {
            job.held_until = now + self.lease_length();
        }
        Ok(extended)
    }

    pub(super) fn not_started(&self, job: &Job, moved: &Moved) -> Ready {
        let effect = &job.effect;
        match moved {
            Moved::Stale(_) => {
                self.metrics.effects.settled(&effect.lane, "skipped", None);
                about!(info, job, "stale: something newer was sent");
            }
            Moved::Done(change) if change.did == Did::Uncertain => {
                self.metrics
                    .effects
                    .settled(&effect.lane, "uncertain", None);
                self.ask_probe(effect);
            }
            Moved::Review(_) | Moved::Done(_) | Moved::Waits(_) => {
                about!(info, job, ?moved, "not sent for now");
            }
            Moved::Refused(rejected) => {
                about!(warn, job, %rejected, "the claim is not ours any more");
            }
            Moved::NoEffect => about!(warn, job, "the effect is gone"),
        }
        Ready::Not
    }

    /// Sends, and keeps the lease alive as long as that takes.
    async fn send(&self, target: &Target, job: &mut Job) -> Sent {
        let outgoing = match &target.way {
            Way::Effect(to) => request::build(parts(target, to, job)),
            Way::Endpoint(to) => {
                let (event, now) = (job.effect.event, clock::now());
                delivery::build(target, to, event, &job.parcel, now)
            }
        };
        let mut sending = std::pin::pin!(self.sender.send(outgoing));
        let beat = self.lease_length() / 3;
        loop {
            match tokio::time::timeout(beat, &mut sending).await {
                Ok(sent) => return sent,
                Err(_) => {
                    let now = clock::tick();
                    let ours = match self.extend(job, now).await {
                        Ok(extended) => matches!(extended.moved, Moved::Done(_)),
                        // Unheard: what we were given still holds.
                        Err(_) => clock::tick() + beat < job.held_until,
                    };
                    let held = lock(&self.shards).hold(target.shard, clock::tick() + beat);
                    if !ours || held == Hold::NotOurs {
                        // Dropping it ends the request: nobody may go on beyond the lease.
                        return lost_lease();
                    }
                }
            }
        }
    }

    /// A claim that was born started and cannot be sent.
    pub(super) async fn not_sent(&self, job: Job) {
        let target = match self.find(&job.effect.name) {
            Found::Target(target) => target,
            Found::Closed(reason) => return self.skip(&job, reason).await,
            // Its lease ends, and it is seen waiting for a target.
            Found::Unknown | Found::Unready | Found::Nobody => return,
        };
        let sent = Sent {
            outcome: Outcome::NotSent {
                why: NotSent::Breaker,
            },
            excerpt: None,
            error: Some("its target only fails at the moment".to_owned()),
            duration: Duration::ZERO,
        };
        let ended = self.settle(&target, &job, sent).await;
        self.pass_on(&target, &job, ended).await;
    }

    /// Gives an unstarted claim back.
    pub(super) async fn give_back(&self, job: &Job, wait: Span) {
        match self.advance(job, Move::Release(wait)).await {
            Ok(_) => self.give_notice(&job.effect.lane, wait),
            Err(error) => {
                about!(debug, job, %error, "a claim could not be given back; its lease ends");
            }
        }
    }

    /// Moves an effect, and passes on what that set free.
    pub(super) async fn advance(&self, job: &Job, what: Move) -> Result<Advanced, StoreError> {
        let (id, fence) = (job.effect.id, job.effect.record.fence);
        let advanced = self.store.advance(id, fence, what).await;
        let advanced = advanced.inspect_err(|error| self.doubt(error))?;
        self.opened(&advanced);
        Ok(advanced)
    }

    /// Passes on what a move set free.
    pub(super) fn opened(&self, advanced: &Advanced) {
        if !advanced.opened.is_empty() {
            let now = self.drift.theirs(clock::tick());
            let opened = advanced.opened.iter().map(|lane| (lane.clone(), now));
            self.hear(opened.collect::<Vec<_>>());
        }
    }

    /// Fetches the snapshot that goes along. One that was frozen stays, unless the effect converges. What a person has released is
    /// not asked about again, whatever the state is by now.
    async fn snapshot(&self, target: &Target, job: &mut Job) -> Snapshot {
        let wanted = job
            .effect
            .order
            .as_ref()
            .is_some_and(|order| order.snapshot);
        let frozen = job.snapshot.is_some()
            && job.effect.record.repeat != hapax_ledger::effect::Repeat::Converges;
        let Way::Effect(to) = &target.way else {
            return Snapshot::Here;
        };
        let Some(reconcile) = to.reconcile.as_ref().filter(|_| wanted && !frozen) else {
            return Snapshot::Here;
        };
        let (body, released) = (&job.parcel.body, job.effect.released);
        let fetched = match reconcile.url_for(body) {
            Ok(url) => {
                let get = ask::get(url, reconcile.headers.clone(), target.timeout);
                ask::snapshot(&self.sender.send(get).await)
            }
            Err(error) => Err(error.to_string()),
        };
        match fetched {
            Ok(snapshot) if !released && to.effect.review_with_snapshot(body, &snapshot) => {
                Snapshot::Review(Review {
                    code: ASKED.into(),
                    message: format!(
                        "the order of effect `{}` asks for a person: its review condition holds over payload and snapshot",
                        job.effect.name
                    ),
                })
            }
            Ok(snapshot) => {
                job.snapshot = Some(snapshot);
                Snapshot::Here
            }
            Err(error) => Snapshot::Missing(no_snapshot(&error)),
        }
    }
}

/// The state that goes along.
enum Snapshot {
    /// Fetched, frozen, or not wanted.
    Here,
    /// Could not be fetched.
    Missing(Sent),
    /// It asks for a person.
    Review(Review),
}

fn no_snapshot(error: &str) -> Sent {
    Sent {
        outcome: Outcome::NotSent {
            why: NotSent::Snapshot,
        },
        excerpt: None,
        error: Some(format!("the snapshot could not be fetched: {error}")),
        duration: Duration::ZERO,
    }
}

fn lost_lease() -> Sent {
    Sent {
        outcome: Outcome::Lost {
            why: Lost::LostLease,
        },
        excerpt: None,
        error: Some("the lease ran out during the request".to_owned()),
        duration: Duration::ZERO,
    }
}

fn parts<'a>(target: &'a Target, to: &'a EffectTarget, job: &'a Job) -> EffectRequest<'a> {
    let (effect, parcel) = (&job.effect, &job.parcel);
    EffectRequest {
        url: to.effect.url.uri().clone(),
        timeout: target.timeout,
        headers: &to.effect.headers,
        signer: to.signer.as_ref(),
        secrets: target.secrets.clone(),
        body_mode: match to.effect.body {
            BodyForm::Raw => request::BodyMode::Raw,
            BodyForm::Envelope => request::BodyMode::Envelope,
        },
        event: EventPart {
            id: effect.event,
            source: &parcel.source,
            event_type: parcel.event_type.as_deref(),
            key: &parcel.key,
            received_at: parcel.received_at,
            content_type: parcel.content_type.as_deref(),
            body: &parcel.body,
        },
        effect: EffectPart {
            id: effect.id,
            name: &effect.name,
            key: &effect.key,
            generation: effect.record.generation,
            attempt: effect.record.attempts,
            repeat: effect.record.repeat,
        },
        snapshot: job.snapshot.as_deref(),
        now: clock::now(),
    }
}

/// A place among the requests under way; dropped, it is free for the next.
struct Slot {
    shared: Arc<Shared>,
    lane: Arc<str>,
    how: Finished,
}

impl Slot {
    /// The request is not under way any more: the next of its lane may go.
    fn came_back(&mut self, outcome: Outcome) {
        self.how = Finished::Settled;
        let spread = jitter_after(outcome).abs();
        lock(&self.shared.lanes).came_back(&self.lane, outcome, clock::tick(), spread);
        self.shared.work.notify_one();
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        lock(&self.shared.lanes).finished(&self.lane, self.how, clock::tick());
        self.shared.work.notify_one();
    }
}
