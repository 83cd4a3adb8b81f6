//! Erasing: the bytes of one event, or of all events about an object. What was erased is not left behind in a file either.

use hapax_ledger::id::EventId;
use hapax_store::StoreError;
use hapax_store::nouns::{Authority, Commanded, EventFilter, Page, PageFrom, PayloadAnswer};

use super::operator::{Granted, Operator, Terms, Wish};

/// Events that one request erases: a second or two.
const EVENTS_MAX: u32 = 200;

/// What became of events about an object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Erased {
    /// So many were looked at.
    pub events: u64,
    /// So many still had bytes.
    pub erased: u64,
    /// Where to go on, if there are more.
    pub next: Option<EventId>,
}

impl Operator {
    /// Erases one event.
    ///
    /// # Errors
    /// If the store cannot answer.
    pub async fn erase(&self, event: EventId, terms: Terms) -> Result<Granted, StoreError> {
        let dry_run = terms.dry_run;
        let granted = self.grant(event, Wish::Erase, terms).await?;
        if !dry_run && matches!(granted, Granted::Commanded(Commanded::Done(_))) {
            self.scrub().await;
        }
        Ok(granted)
    }

    /// Erases the next events of a source about an object, newest first, each with its audit record; or counts them.
    ///
    /// # Errors
    /// If the store cannot answer. What was erased until then stays so, and the same again goes on.
    pub async fn erase_entity(
        &self,
        filter: EventFilter,
        from: Option<EventId>,
        by: Authority,
        dry_run: bool,
    ) -> Result<Erased, StoreError> {
        let page = Page {
            limit: EVENTS_MAX,
            from: from.map_or(PageFrom::Newest, PageFrom::OlderThan),
        };
        let listed = self.store().events(filter, page).await?;
        let mut erased = Erased {
            events: listed.rows.len() as u64,
            erased: 0,
            next: listed.next,
        };
        for event in listed.rows {
            let payload = self.store().payload(event.id).await?;
            erased.erased += u64::from(matches!(payload, PayloadAnswer::Kept(_)));
            if !dry_run {
                let terms = Terms {
                    by: Authority {
                        request: None,
                        ..by.clone()
                    },
                    if_revision: None,
                    dry_run,
                };
                self.grant(event.id, Wish::Erase, terms).await?;
            }
        }
        if !dry_run && erased.events > 0 {
            self.scrub().await;
        }
        Ok(erased)
    }

    async fn scrub(&self) {
        if let Err(error) = self.store().scrub().await {
            tracing::warn!(%error, "erased bytes may be left in the store's log until it is next begun anew");
        }
    }
}
