//! The catalogue of the outbox in memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use hapax_ledger::id::{AppId, EffectId, EndpointId, EventId};
use hapax_ledger::time::Time;

use super::ModelStore;
use super::state::State;
use crate::error::StoreError;
use crate::nouns::{
    About, Addressed, App, Authority, CHANGES_PER_PART, Changes, DELETED_KEPT, Deliveries,
    Endpoint, Entry, EventType, FannedOut, Listed, Mark, Message, MessageFilter, NewMessage, Page,
    Posted, PostedFilter, Published, Put, Standing, Tally, Tiding, Tried, TriedPlace, app_source,
};
use crate::outbox::{self, Outbox};
use crate::polling::Consumer;
use crate::posting::{self, Stands};

/// What is kept for the outbox beside the ledger.
#[derive(Default)]
pub(super) struct Kept {
    pub(super) revision: u64,
    apps: BTreeMap<AppId, App>,
    endpoints: BTreeMap<EndpointId, Endpoint>,
    event_types: BTreeMap<Arc<str>, EventType>,
    /// The latest number, by source and key. It goes with the last message that it was given to.
    pub(super) numbers: BTreeMap<(String, String), u64>,
    /// The latest turn that was given to a message which was sent later, by source.
    pub(super) turns: BTreeMap<String, i64>,
    /// Those who ask for messages.
    pub(super) consumers: BTreeMap<(EndpointId, String), Consumer>,
}

impl Kept {
    /// All that stands in the catalogue, or has stood there.
    fn entries(&self) -> impl Iterator<Item = Entry> {
        let apps = self.apps.values().cloned().map(Entry::App);
        let endpoints = self.endpoints.values().cloned();
        let endpoints = endpoints.map(|endpoint| Entry::Endpoint(Box::new(endpoint)));
        let types = self.event_types.values().cloned().map(Entry::EventType);
        apps.chain(endpoints).chain(types)
    }

    /// A message is forgotten: if it was the last one of its key, so is the count.
    pub(super) fn forget_number(&mut self, source: &str, about: Option<&About>) {
        let Some(about) = about else { return };
        if let Some(key) = about.numbered_by() {
            let key = (source.to_owned(), key.to_owned());
            if self.numbers.get(&key).copied() == about.sequence {
                self.numbers.remove(&key);
            }
        }
    }

    fn stands(&self, entry: &Entry) -> Option<Stands> {
        let mut all = self.entries();
        let subject = posting::subject(entry);
        let found = all.find(|other| {
            std::mem::discriminant(other) == std::mem::discriminant(entry)
                && posting::subject(other) == subject
        })?;
        Some(Stands {
            revision: found.revision(),
            deleted: found.deleted_at().is_some(),
            enabled: matches!(&found, Entry::Endpoint(one) if one.standing == Standing::Enabled),
        })
    }

    /// Does another one that is there have its uid?
    fn is_taken(&self, entry: &Entry) -> bool {
        match entry {
            _ if entry.deleted_at().is_some() => false,
            Entry::App(app) => {
                app.uid.is_some() && {
                    let mut others = self.apps.values().filter(|other| other.id != app.id);
                    others.any(|other| other.deleted_at.is_none() && other.uid == app.uid)
                }
            }
            Entry::Endpoint(endpoint) => {
                endpoint.uid.is_some() && {
                    let others = self.endpoints.values();
                    let mut others =
                        others.filter(|other| other.id != endpoint.id && other.app == endpoint.app);
                    others.any(|other| other.deleted_at.is_none() && other.uid == endpoint.uid)
                }
            }
            Entry::EventType(_) => false,
        }
    }

    /// Is the application there that it belongs to?
    fn has_app(&self, entry: &Entry) -> bool {
        match entry {
            Entry::Endpoint(endpoint) => {
                let app = self.apps.get(&endpoint.app);
                app.is_some_and(|app| app.deleted_at.is_none())
            }
            Entry::App(_) | Entry::EventType(_) => true,
        }
    }

    fn may_put(&self, entry: &Entry, was: u64) -> Result<(), Put> {
        posting::may_put(entry, was, self.stands(entry))?;
        match (self.has_app(entry), self.is_taken(entry)) {
            (false, _) => Err(Put::Moved),
            (true, true) => Err(Put::Taken),
            (true, false) => Ok(()),
        }
    }

    /// Puts it there at the next revision. An application that is deleted takes its endpoints along, each at a revision of its own.
    fn put(&mut self, entry: Entry) {
        self.revision += 1;
        match entry.at_revision(self.revision) {
            Entry::App(app) => {
                if let Some(at) = app.deleted_at {
                    self.delete_endpoints(app.id, at);
                }
                self.apps.insert(app.id, app);
            }
            Entry::Endpoint(endpoint) => {
                self.endpoints.insert(endpoint.id, *endpoint);
            }
            Entry::EventType(event_type) => {
                self.event_types.insert(event_type.name.clone(), event_type);
            }
        }
    }

    fn delete_endpoints(&mut self, app: AppId, at: Time) {
        let endpoints = self.endpoints.values_mut();
        for endpoint in endpoints.filter(|other| other.app == app && other.deleted_at.is_none()) {
            self.revision += 1;
            endpoint.revision = self.revision;
            endpoint.deleted_at = Some(at);
            endpoint.updated_at = at;
        }
    }

    fn changes(&self, since: u64) -> Changes {
        let mut entries: Vec<Entry> = self
            .entries()
            .filter(|entry| entry.revision() > since)
            .filter(|entry| since > 0 || entry.deleted_at().is_none())
            .collect();
        entries.sort_by_key(Entry::revision);
        let more = entries.len() > CHANGES_PER_PART;
        entries.truncate(CHANGES_PER_PART);
        let last = entries.last().map(Entry::revision).filter(|_| more);
        Changes {
            entries,
            revision: last.unwrap_or(self.revision),
            more,
        }
    }
}

impl State {
    fn put(&mut self, entry: Entry, was: u64, action: &str, by: &Authority, answer: String) -> Put {
        if let Some(before) = self.catalog.before(by) {
            return Put::Repeated(before);
        }
        if let Err(refused) = self.outbox.may_put(&entry, was) {
            return refused;
        }
        let subject = posting::subject(&entry);
        let stood = self.outbox.stands(&entry);
        let tidings = Tiding::of_change(&entry, stood, by.at);
        tidings
            .into_iter()
            .for_each(|tiding| self.effects.tidings.write(tiding));
        self.outbox.put(entry);
        self.catalog.write_down(by, action, subject, answer, None);
        Put::Done {
            revision: self.outbox.revision,
        }
    }

    fn mark(&mut self, mark: &Mark, now: Time) -> Put {
        let Mark {
            endpoint: id,
            was,
            standing,
            failing_since,
            disabled_from,
        } = *mark;
        let stands = self.outbox.endpoints.get(&id);
        let stands = stands.filter(|endpoint| endpoint.deleted_at.is_none());
        let Some(endpoint) = stands.filter(|endpoint| endpoint.revision == was) else {
            return Put::Moved;
        };
        let marked = Endpoint {
            standing,
            failing_since,
            disabled_from,
            ..endpoint.clone()
        };
        let disabled = marked.standing != endpoint.standing;
        let tiding = Tiding::of_mark(endpoint, &marked, now);
        if marked != *endpoint {
            self.outbox.put(Entry::Endpoint(Box::new(marked)));
        }
        tiding
            .into_iter()
            .for_each(|tiding| self.effects.tidings.write(tiding));
        if disabled {
            let by = outbox::marked_by(standing, now);
            let detail = outbox::marked_detail(standing);
            self.catalog
                .write_down(&by, outbox::MARKED, id.to_string(), detail, None);
        }
        Put::Done {
            revision: self.outbox.revision,
        }
    }

    /// What was deleted long ago and nothing refers to any more.
    pub(super) fn reap_catalogue(&mut self, now: Time) {
        let old = |deleted_at: Option<Time>| deleted_at.is_some_and(|at| at + DELETED_KEPT <= now);
        let lanes: Vec<String> = self.effects.lanes();
        let sources: Vec<Arc<str>> = self.sources();
        let kept = &mut self.outbox;
        kept.endpoints
            .retain(|id, endpoint| !old(endpoint.deleted_at) || lanes.contains(&id.to_string()));
        let endpoints = &kept.endpoints;
        let mut gone = Vec::new();
        kept.apps.retain(|id, app| {
            let source = app_source(*id);
            let wanted = !old(app.deleted_at)
                || endpoints.values().any(|endpoint| endpoint.app == *id)
                || sources.iter().any(|known| **known == *source);
            if !wanted {
                gone.push(source);
            }
            wanted
        });
        kept.numbers.retain(|(source, _), _| !gone.contains(source));
        kept.turns.retain(|source, _| !gone.contains(source));
        kept.event_types
            .retain(|_, event_type| !old(event_type.deleted_at));
    }
}

#[async_trait]
impl Outbox for ModelStore {
    async fn revision(&self) -> Result<u64, StoreError> {
        Ok(self.lock().outbox.revision)
    }

    async fn changes(&self, since: u64) -> Result<Changes, StoreError> {
        Ok(self.lock().outbox.changes(since))
    }

    async fn put(
        &self,
        entry: Entry,
        was: u64,
        action: &'static str,
        by: Authority,
        answer: String,
    ) -> Result<Put, StoreError> {
        Ok(self.lock().put(entry, was, action, &by, answer))
    }

    async fn mark_endpoints(&self, marks: Vec<Mark>, now: Time) -> Result<Vec<Put>, StoreError> {
        let mut state = self.lock();
        Ok(marks.iter().map(|mark| state.mark(mark, now)).collect())
    }

    async fn publish(&self, message: NewMessage) -> Result<Published, StoreError> {
        posting::sound(&message)?;
        Ok(self.lock().publish(message, (self.clock)()))
    }

    async fn fan_out(&self) -> Result<FannedOut, StoreError> {
        Ok(self.lock().fan_out((self.clock)()))
    }

    async fn message(&self, id: EventId) -> Result<Option<Message>, StoreError> {
        Ok(self.lock().message(id))
    }

    async fn messages(
        &self,
        filter: MessageFilter,
        page: Page,
    ) -> Result<Listed<Message>, StoreError> {
        Ok(self.lock().messages(&filter, page))
    }

    async fn addressed(
        &self,
        id: EventId,
        endpoint: EndpointId,
    ) -> Result<Option<Addressed>, StoreError> {
        let state = self.lock();
        let facts = state.facts(id, (self.clock)());
        let lane = endpoint.to_string();
        Ok(facts.map(|facts| {
            let mut effects = facts.effects.into_iter().map(|facts| facts.effect);
            Addressed {
                payload: facts.payload,
                delivery: effects.find(|effect| *effect.lane == *lane),
            }
        }))
    }

    async fn deliveries(
        &self,
        which: Deliveries,
        filter: PostedFilter,
        page: Page<EffectId>,
    ) -> Result<Listed<Posted, EffectId>, StoreError> {
        Ok(self.lock().posted(&which, &filter, page))
    }

    async fn attempts(
        &self,
        which: Deliveries,
        filter: PostedFilter,
        page: Page<TriedPlace>,
    ) -> Result<Listed<Tried, TriedPlace>, StoreError> {
        Ok(self.lock().tried(&which, &filter, page))
    }

    async fn tallies(
        &self,
        endpoint: EndpointId,
        since: Time,
        until: Time,
    ) -> Result<Vec<Tally>, StoreError> {
        Ok(self.lock().effects.tallies(endpoint, since, until))
    }

    async fn usage(&self, app: AppId, since: Time, until: Time) -> Result<u64, StoreError> {
        let state = self.lock();
        let endpoints = state.outbox.endpoints.values();
        let own = endpoints.filter(|endpoint| endpoint.app == app);
        let tallies = own.flat_map(|endpoint| state.effects.tallies(endpoint.id, since, until));
        Ok(tallies.map(|tally| tally.done + tally.failed).sum())
    }

    async fn waiting(&self, endpoint: EndpointId) -> Result<(u64, u64), StoreError> {
        Ok(self.lock().effects.waiting(endpoint))
    }
}
