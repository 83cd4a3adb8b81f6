//! All applications, endpoints and types of events as this node knows them, by everything that they are asked for by.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::{Arc, OnceLock};

use hapax_ledger::id::{AppId, EndpointId};
use hapax_store::nouns::{App, Changes, Endpoint, Entry, EventType, Standing};

use super::operational::OPERATIONAL_APP;
use crate::dispatch::directory::Found;

/// Endpoints of one application, at most: a message to all of them is one row each.
pub const ENDPOINTS_PER_APP_MAX: usize = 10_000;
/// Endpoints in all, at most: what a node keeps in memory.
pub const ENDPOINTS_MAX: usize = 200_000;

/// In which order a list goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// The oldest, or the first of the alphabet, first.
    Up,
    /// The other way round.
    Down,
}

/// The catalogue up to a revision.
#[derive(Default)]
pub struct Catalog {
    revision: u64,
    apps: BTreeMap<AppId, Arc<App>>,
    app_uids: HashMap<Arc<str>, AppId>,
    endpoints: HashMap<EndpointId, Held>,
    of_app: HashMap<AppId, OfApp>,
    /// Those that nothing is sent to any more although their owners did not ask for that: few, and asked for often.
    closed: BTreeMap<EndpointId, Arc<Endpoint>>,
    event_types: BTreeMap<Arc<str>, Arc<EventType>>,
}

/// An endpoint, and where it leads once somebody has asked.
pub(super) struct Held {
    pub(super) endpoint: Arc<Endpoint>,
    pub(super) found: OnceLock<Found>,
}

#[derive(Default)]
struct OfApp {
    endpoints: BTreeMap<EndpointId, Arc<Endpoint>>,
    uids: HashMap<Arc<str>, EndpointId>,
}

impl Catalog {
    /// Everything up to this revision is known.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Takes in what has changed.
    pub(super) fn apply(&mut self, changes: Changes) {
        for entry in changes.entries {
            match entry {
                Entry::App(app) => self.take_app(app),
                Entry::Endpoint(endpoint) => self.take_endpoint(*endpoint),
                Entry::EventType(event_type) => self.take_event_type(event_type),
            }
        }
        self.revision = self.revision.max(changes.revision);
    }

    fn take_app(&mut self, app: App) {
        let old = self.apps.remove(&app.id);
        if let Some(uid) = old.as_ref().and_then(|old| old.uid.as_ref()) {
            free(&mut self.app_uids, uid, app.id);
        }
        if app.deleted_at.is_some() {
            // Its endpoints are deleted with it, by changes of their own.
            return;
        }
        if let Some(uid) = &app.uid {
            self.app_uids.insert(uid.clone(), app.id);
        }
        // What its endpoints lead to depends on it.
        let of_app = self.of_app.get(&app.id);
        let ids = of_app
            .into_iter()
            .flat_map(|of_app| of_app.endpoints.keys());
        for id in ids {
            if let Some(held) = self.endpoints.get_mut(id) {
                held.found = OnceLock::new();
            }
        }
        self.apps.insert(app.id, Arc::new(app));
    }

    fn take_endpoint(&mut self, endpoint: Endpoint) {
        let of_app = self.of_app.entry(endpoint.app).or_default();
        let old = of_app.endpoints.remove(&endpoint.id);
        if let Some(uid) = old.as_ref().and_then(|old| old.uid.as_ref()) {
            free(&mut of_app.uids, uid, endpoint.id);
        }
        self.endpoints.remove(&endpoint.id);
        self.closed.remove(&endpoint.id);
        if endpoint.deleted_at.is_some() {
            if of_app.endpoints.is_empty() {
                self.of_app.remove(&endpoint.app);
            }
            return;
        }
        if let Some(uid) = &endpoint.uid {
            of_app.uids.insert(uid.clone(), endpoint.id);
        }
        let endpoint = Arc::new(endpoint);
        of_app.endpoints.insert(endpoint.id, endpoint.clone());
        if matches!(endpoint.standing, Standing::Gone | Standing::Failed) {
            self.closed.insert(endpoint.id, endpoint.clone());
        }
        let held = Held {
            endpoint: endpoint.clone(),
            found: OnceLock::new(),
        };
        self.endpoints.insert(endpoint.id, held);
    }

    fn take_event_type(&mut self, event_type: EventType) {
        match event_type.deleted_at {
            Some(_) => self.event_types.remove(&event_type.name),
            None => {
                let name = event_type.name.clone();
                self.event_types.insert(name, Arc::new(event_type))
            }
        };
    }

    /// What every endpoint leads to is found out anew.
    pub(super) fn forget_targets(&mut self) {
        for held in self.endpoints.values_mut() {
            held.found = OnceLock::new();
        }
    }

    pub(super) fn held(&self, id: EndpointId) -> Option<&Held> {
        self.endpoints.get(&id)
    }

    /// An application, by its id or by what its owner calls it.
    pub fn app(&self, name: &str) -> Option<&Arc<App>> {
        let by_id = name.parse().ok().and_then(|id| self.apps.get(&id));
        by_id.or_else(|| self.apps.get(self.app_uids.get(name)?))
    }

    /// An application, by its id.
    pub fn app_by_id(&self, id: AppId) -> Option<&Arc<App>> {
        self.apps.get(&id)
    }

    /// An endpoint of an application, by its id or by what its owner calls it.
    pub fn endpoint(&self, app: AppId, name: &str) -> Option<&Arc<Endpoint>> {
        let of_app = self.of_app.get(&app)?;
        let by_id = name.parse().ok().and_then(|id| of_app.endpoints.get(&id));
        by_id.or_else(|| of_app.endpoints.get(of_app.uids.get(name)?))
    }

    /// An endpoint, by its id.
    pub fn endpoint_by_id(&self, id: EndpointId) -> Option<&Arc<Endpoint>> {
        self.endpoints.get(&id).map(|held| &held.endpoint)
    }

    /// Endpoints that nothing is sent to any more although their owners did not ask for that, oldest first.
    pub fn closed(&self) -> impl Iterator<Item = &Arc<Endpoint>> {
        self.closed.values()
    }

    /// A type of events.
    pub fn event_type(&self, name: &str) -> Option<&Arc<EventType>> {
        self.event_types.get(name)
    }

    /// All types of events.
    pub fn all_event_types(&self) -> impl Iterator<Item = &Arc<EventType>> {
        self.event_types.values()
    }

    /// Some applications, after this one.
    pub fn apps(&self, after: Option<AppId>, way: Way, max: usize) -> Vec<Arc<App>> {
        // The operators' own is not one of them.
        page(&self.apps, after.as_ref(), way)
            .filter(|app| app.id != OPERATIONAL_APP)
            .take(max)
            .cloned()
            .collect()
    }

    /// Some endpoints of an application, after this one.
    pub fn endpoints(
        &self,
        app: AppId,
        after: Option<EndpointId>,
        way: Way,
        max: usize,
    ) -> Vec<Arc<Endpoint>> {
        let Some(of_app) = self.of_app.get(&app) else {
            return Vec::new();
        };
        let some = page(&of_app.endpoints, after.as_ref(), way);
        some.take(max).cloned().collect()
    }

    /// Some types of events, after the one of this name.
    pub fn event_types(
        &self,
        after: Option<&Arc<str>>,
        way: Way,
        max: usize,
    ) -> Vec<Arc<EventType>> {
        page(&self.event_types, after, way)
            .take(max)
            .cloned()
            .collect()
    }

    /// Has an application any endpoint?
    pub fn has_endpoints(&self, app: AppId) -> bool {
        self.of_app.contains_key(&app)
    }

    /// Has it one that is sent to?
    pub fn has_enabled(&self, app: AppId) -> bool {
        let all = self.of_app.get(&app).into_iter();
        let mut all = all.flat_map(|of_app| of_app.endpoints.values());
        all.any(|endpoint| endpoint.standing == Standing::Enabled)
    }

    /// Is there room for one endpoint more?
    pub fn has_room(&self, app: AppId) -> bool {
        let of_app = self.of_app.get(&app);
        let here = of_app.map_or(0, |of_app| of_app.endpoints.len());
        here < ENDPOINTS_PER_APP_MAX && self.endpoints.len() < ENDPOINTS_MAX
    }

    /// The endpoints of an application that a message goes to, oldest first.
    pub fn subscribed<'a>(
        &'a self,
        app: AppId,
        event_type: &'a str,
        channels: &'a [String],
    ) -> impl Iterator<Item = &'a Arc<Endpoint>> {
        let all = self.of_app.get(&app).into_iter();
        let all = all.flat_map(|of_app| of_app.endpoints.values());
        all.filter(move |endpoint| wants(endpoint, event_type, channels))
    }
}

/// Frees a uid, unless another has taken it by now: changes come in the order of the last one to each.
fn free<I: PartialEq>(uids: &mut HashMap<Arc<str>, I>, uid: &Arc<str>, id: I) {
    if uids.get(uid) == Some(&id) {
        uids.remove(uid);
    }
}

/// Does an endpoint want messages of this type in these channels? One that names channels hears nothing else.
pub fn wants(endpoint: &Endpoint, event_type: &str, channels: &[String]) -> bool {
    let types = &endpoint.event_types;
    let listens = |channel: &String| endpoint.channels.contains(channel);
    endpoint.standing == Standing::Enabled
        && (types.is_empty() || types.iter().any(|wanted| wanted == event_type))
        && (endpoint.channels.is_empty() || channels.iter().any(listens))
}

fn page<'a, K: Ord, V>(
    map: &'a BTreeMap<K, V>,
    after: Option<&K>,
    way: Way,
) -> Box<dyn Iterator<Item = &'a V> + 'a> {
    let from = after.map_or(Bound::Unbounded, Bound::Excluded);
    match way {
        Way::Up => Box::new(map.range((from, Bound::Unbounded)).map(|(_, value)| value)),
        Way::Down => {
            let before = map.range((Bound::Unbounded, from));
            Box::new(before.rev().map(|(_, value)| value))
        }
    }
}
