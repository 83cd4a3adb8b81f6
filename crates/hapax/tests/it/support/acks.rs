//! What senders were told, and the checker: it knows nothing but that and what the API shows.

use std::collections::{BTreeMap, BTreeSet};

use super::client::Answer;
use super::sender::Sender;
use super::server::Server;

/// Which event id each name was acknowledged with.
#[derive(Clone, Debug, Default)]
pub(crate) struct Acks(BTreeMap<String, String>);

/// What one answer said about one name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    /// 2xx, under this id.
    Acknowledged { id: String, duplicate: bool },
    /// 503: to be tried again.
    TryAgain,
}

impl Told {
    /// Reads an answer to a correctly signed request. Anything but an ack and 503 breaks A3.
    #[track_caller]
    pub(crate) fn read(answer: &Answer) -> Told {
        match answer.status {
            200 => {
                let body = answer.json();
                let id = body["eventId"].as_str().expect("an event id").to_owned();
                Told::Acknowledged {
                    id,
                    duplicate: body["duplicate"].as_bool().expect("a flag"),
                }
            }
            503 => Told::TryAgain,
            _ => panic!("neither an ack nor 503: {answer:?}"),
        }
    }
}

impl Acks {
    /// A4: remembers an ack; all acks for one name carry the same id.
    #[track_caller]
    pub(crate) fn add(&mut self, name: &str, id: String) {
        let known = self.0.entry(name.to_owned()).or_insert_with(|| id.clone());
        assert_eq!(*known, id, "{name} was acknowledged under two ids");
    }

    /// Remembers what an answer said; true if it was an ack.
    #[track_caller]
    pub(crate) fn hear(&mut self, name: &str, answer: &Answer) -> bool {
        match Told::read(answer) {
            Told::Acknowledged { id, .. } => {
                self.add(name, id);
                true
            }
            Told::TryAgain => false,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.0.keys().cloned().collect()
    }

    /// A1, A4, B1: whatever was acknowledged is there, once, under the id that the sender was told.
    #[track_caller]
    pub(crate) fn check(&self, server: &Server) {
        let lost = self.lost(server);
        assert!(
            lost.is_empty(),
            "acknowledged and lost: {lost:?} of {}",
            self.len()
        );
    }

    /// The names that were acknowledged and are not there. Fails on a name that is there twice or under another id.
    #[track_caller]
    pub(crate) fn lost(&self, server: &Server) -> Vec<String> {
        let stored = stored(server);
        let mut lost = Vec::new();
        for (name, id) in &self.0 {
            match stored.get(name) {
                Some(found) => assert_eq!(
                    found, id,
                    "{name} is stored under another id than its sender was told"
                ),
                None => lost.push(name.clone()),
            }
        }
        lost
    }

    /// A4: every acknowledged name, sent again, is a duplicate under the same id.
    #[track_caller]
    pub(crate) fn resend(&self, server: &Server, sender: &Sender) {
        let mut connection = server.connect();
        for (name, id) in &self.0 {
            let told = Told::read(&connection.ask(&sender.request(name)).expect("an answer"));
            assert_eq!(
                told,
                Told::Acknowledged {
                    id: id.clone(),
                    duplicate: true
                },
                "{name}"
            );
        }
    }
}

/// B1: everything that is stored, name to id, by paging through the list. No name is there twice.
#[track_caller]
pub(crate) fn stored(server: &Server) -> BTreeMap<String, String> {
    let mut stored = BTreeMap::new();
    let mut pages = BTreeSet::new();
    let mut path = "/api/v1/event?limit=250".to_owned();
    loop {
        let page = server.get(&path).json();
        for event in page["data"].as_array().expect("a list") {
            let text = |field: &str| event[field].as_str().expect("a text").to_owned();
            let before = stored.insert(text("providerEventId"), text("id"));
            assert_eq!(before, None, "one key, two events: {event:#}");
        }
        if page["done"] == true {
            return stored;
        }
        let iterator = page["iterator"].as_str().expect("an iterator").to_owned();
        path = format!("/api/v1/event?limit=250&iterator={iterator}");
        assert!(pages.insert(iterator), "the list goes round in circles");
    }
}
