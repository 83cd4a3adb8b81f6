//! Carries out what operators decide.

use std::sync::Arc;

use hapax_ledger::id::{EffectId, EventId, RunId};
use hapax_ledger::verdict::{Action, Verdict};
use hapax_store::nouns::{
    Authority, Classes, Command, Commanded, Decision, EventDetail, Payload, PayloadAnswer,
};
use hapax_store::{Store, StoreError};

use super::{again, ids, truth};
use crate::dispatch::Dispatcher;
use crate::inbox::{Inbox, Source};

/// No ledger has this revision: revisions fit into a JSON number.
const NO_REVISION: u64 = u64::MAX;

/// Decides in the names of others.
#[derive(Clone)]
pub struct Operator {
    store: Arc<dyn Store>,
    inbox: Arc<Inbox>,
    dispatcher: Dispatcher,
}

/// What somebody wants to be done about an event, before it is known what that takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wish {
    /// Carry out what is not done.
    Retry,
    /// A new run, in which these are sent again.
    Replay {
        /// Names of effects.
        force: Vec<String>,
    },
    /// Ask the source of truth, and send converging effects again.
    Reconcile,
    /// Settle an effect by hand.
    Resolve(EffectId, hapax_ledger::transition::Resolution),
    /// Let an event go on that waits for a person.
    Release,
    /// Let it come to nothing.
    Dismiss,
    /// Delete its bytes at once.
    Erase,
    /// The other body of this delivery means nothing.
    Acknowledge(u32),
    /// The other body of this delivery is an event of its own.
    Promote(u32),
}

/// How it is to be done.
#[derive(Clone, Debug)]
pub struct Terms {
    /// In whose name.
    pub by: Authority,
    /// Only if the ledger has not moved since.
    pub if_revision: Option<u64>,
    /// Only say what would happen.
    pub dry_run: bool,
}

/// What became of a wish.
#[derive(Debug)]
pub enum Granted {
    /// The ledger has answered.
    Commanded(Commanded),
    /// There is no such event.
    NoEvent,
    /// The bytes that it takes are not kept any more.
    NoBytes,
    /// The source has nobody to ask, or is not in the config.
    NoReconcile,
    /// The source of truth was asked in vain.
    NoTruth(String),
    /// The event cannot be planned.
    NoPlan(String),
    /// There is no such conflict.
    NoConflict,
}

impl From<again::Unplanned> for Granted {
    fn from(why: again::Unplanned) -> Granted {
        match why {
            again::Unplanned::NoBytes => Granted::NoBytes,
            again::Unplanned::NoConflict => Granted::NoConflict,
            again::Unplanned::Said(why) => Granted::NoPlan(why),
        }
    }
}

impl Operator {
    /// An operator over a store, with the config that the inbox has.
    pub fn new(store: Arc<dyn Store>, inbox: Arc<Inbox>, dispatcher: Dispatcher) -> Operator {
        Operator {
            store,
            inbox,
            dispatcher,
        }
    }

    pub(super) fn store(&self) -> &dyn Store {
        &*self.store
    }

    /// The verdict on an action; `None` if there is no such event.
    ///
    /// # Errors
    /// If the store cannot answer.
    pub async fn verdict(
        &self,
        event: EventId,
        action: Action<'_>,
    ) -> Result<Option<Verdict>, StoreError> {
        let facts = self.store.facts(event).await?;
        Ok(facts.map(|facts| facts.verdict(action, &self.classes())))
    }

    /// Does what is wished for, as far as the ledger allows it.
    ///
    /// # Errors
    /// If the store cannot answer. Whether it was done is unknown only where the store says so.
    pub async fn grant(
        &self,
        event: EventId,
        wish: Wish,
        terms: Terms,
    ) -> Result<Granted, StoreError> {
        let decision = match self.decision(event, wish, &terms).await? {
            Ok(decision) => decision,
            Err(not) => return Ok(not),
        };
        let command = Command {
            event,
            decision,
            only: None,
            run: RunId(ids::fresh(terms.by.at)),
            by: terms.by,
            if_revision: terms.if_revision,
            dry_run: terms.dry_run,
            classes: self.classes(),
        };
        self.command(command).await.map(Granted::Commanded)
    }

    /// Is it this node's to look after what has this name?
    pub(super) fn looks_after(&self, name: &str) -> bool {
        self.dispatcher.looks_after(name)
    }

    /// Passes on that something in these lanes can be claimed now.
    pub fn opened(&self, lanes: &[Arc<str>]) {
        self.dispatcher.opened(lanes);
    }

    /// Gives a command, and passes on what it set free, also if whoever gave it has hung up.
    pub(super) async fn command(&self, command: Command) -> Result<Commanded, StoreError> {
        let operator = self.clone();
        let commanding = async move {
            let commanded = operator.store.command(command).await;
            match &commanded {
                Ok(Commanded::Done(done)) => operator.opened(&done.opened),
                Ok(Commanded::Before(_) | Commanded::Refused { .. } | Commanded::NoEvent) => {}
                Err(error) => operator.dispatcher.doubt(error),
            }
            commanded
        };
        self.dispatcher.outliving(commanding).await
    }

    async fn decision(
        &self,
        event: EventId,
        wish: Wish,
        terms: &Terms,
    ) -> Result<Result<Decision, Granted>, StoreError> {
        Ok(Ok(match wish {
            Wish::Retry => Decision::Retry,
            Wish::Replay { force } => Decision::Replay { force },
            Wish::Resolve(effect, resolution) => Decision::Resolve { effect, resolution },
            Wish::Dismiss => Decision::Dismiss,
            Wish::Erase => Decision::Erase,
            Wish::Acknowledge(delivery) => Decision::Acknowledge { delivery },
            Wish::Reconcile | Wish::Release | Wish::Promote(_) => {
                let Some(detail) = self.store.event(event).await? else {
                    return Ok(Err(Granted::NoEvent));
                };
                if let Some(before) = self.before(event, terms).await? {
                    return Ok(Err(before));
                }
                return self.prepared(&detail, wish, terms).await;
            }
        }))
    }

    /// What was said to an earlier request with the same key. Asked before anything is prepared: the config and the source of
    /// truth may be others by now, and the answer has to be the same. The question is a command about a ledger that cannot be.
    pub(super) async fn before(
        &self,
        event: EventId,
        terms: &Terms,
    ) -> Result<Option<Granted>, StoreError> {
        if terms.by.request.is_none() {
            return Ok(None);
        }
        let question = Command {
            event,
            decision: Decision::Retry,
            only: None,
            run: RunId(ids::fresh(terms.by.at)),
            by: terms.by.clone(),
            if_revision: Some(NO_REVISION),
            dry_run: false,
            classes: Classes::new(),
        };
        Ok(match self.store.command(question).await? {
            before @ Commanded::Before(_) => Some(Granted::Commanded(before)),
            Commanded::Done(_) | Commanded::Refused { .. } | Commanded::NoEvent => None,
        })
    }

    /// What takes more than the ledger: the event's bytes, and the config or the source of truth.
    async fn prepared(
        &self,
        detail: &EventDetail,
        wish: Wish,
        terms: &Terms,
    ) -> Result<Result<Decision, Granted>, StoreError> {
        let event = &detail.event;
        let payload = match self.store.payload(event.id).await? {
            PayloadAnswer::Kept(payload) => Some(payload),
            PayloadAnswer::Reaped => None,
            PayloadAnswer::NoEvent => return Ok(Err(Granted::NoEvent)),
        };
        let sources = self.inbox.sources();
        let source = sources.get(&event.source);
        Ok(match wish {
            // Whoever only wants to know what would happen asks nobody outside.
            Wish::Reconcile if terms.dry_run => Ok(Decision::Reconcile {
                snapshot: bytes::Bytes::new(),
            }),
            Wish::Reconcile => self.truth(source, payload).await,
            Wish::Promote(delivery) => {
                let body = self.store.conflict_body(event.id, delivery).await?;
                let content_type = payload.and_then(|payload| payload.content_type);
                again::promoted(source, detail, delivery, body, content_type, terms.by.at)
                    .map_err(Granted::from)
                    .map(|arrival| Decision::Promote {
                        delivery,
                        arrival: Box::new(arrival),
                    })
            }
            // Where effects are planned already, the plan stays.
            _ if !detail.effects.is_empty() => Ok(Decision::Release {
                effects: Vec::new(),
            }),
            _ => again::planned(source, event, payload)
                .map_err(Granted::from)
                .map(|effects| Decision::Release { effects }),
        })
    }

    async fn truth(
        &self,
        source: Option<&Arc<Source>>,
        payload: Option<Payload>,
    ) -> Result<Decision, Granted> {
        let reconcile = source.and_then(|source| source.config.reconcile.clone());
        let reconcile = reconcile.ok_or(Granted::NoReconcile)?;
        let payload = payload.ok_or(Granted::NoBytes)?;
        match truth::ask(&self.dispatcher, &reconcile, &payload.body).await {
            Ok(snapshot) => Ok(Decision::Reconcile { snapshot }),
            Err(why) => Err(Granted::NoTruth(why)),
        }
    }

    /// The config's classes: the stricter of the frozen and the current one counts.
    pub fn classes(&self) -> Classes {
        let sources = self.inbox.sources();
        let all = sources.all();
        let effects = all.iter().flat_map(|source| &source.effects);
        let class =
            |effect: &Arc<crate::config::EffectConfig>| (effect.name.clone(), effect.rule.repeat);
        effects.map(class).collect()
    }
}
