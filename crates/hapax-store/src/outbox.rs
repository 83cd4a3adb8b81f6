//! What the outbox may ask of a store.

use async_trait::async_trait;
use hapax_ledger::id::{AppId, EffectId, EndpointId, EventId};
use hapax_ledger::time::Time;
use serde_json::json;

use crate::error::StoreError;
use crate::nouns::{
    Addressed, Authority, Changes, Deliveries, Entry, FannedOut, Listed, Mark, Message,
    MessageFilter, NewMessage, Page, Posted, PostedFilter, Published, Put, Standing, Tally, Tried,
    TriedPlace,
};

/// So many endpoints are marked in one transaction at most: whoever changes the catalogue waits for it, which is then not for long.
pub const MARKS_PER_COMMIT: usize = 100;
/// What a new standing of an endpoint is called in the audit log, where Hapax itself gave it.
pub(crate) const MARKED: &str = "endpoint.disable";

/// Under whose name Hapax gives an endpoint a new standing.
pub(crate) fn marked_by(standing: Standing, now: Time) -> Authority {
    let reason = match standing {
        Standing::Gone => "it answered that it is gone",
        Standing::Failed => "nothing but failures came back for too long",
        Standing::Enabled | Standing::Disabled => "",
    };
    Authority {
        actor: "~hapax".into(),
        reason: reason.to_owned(),
        at: now,
        request: None,
    }
}

/// What the audit record says of it.
pub(crate) fn marked_detail(standing: Standing) -> String {
    json!({ "standing": standing.word() }).to_string()
}

/// Each method is one transaction.
///
/// The catalogue (applications, endpoints, types of events) is small and read all the time, so every node keeps it in memory and asks for
/// what has changed since the revision it knows. Changes are made one after the other, each raising the revision by one, so that
/// a revision says what is known with it.
#[async_trait]
pub trait Outbox: Send + Sync + 'static {
    /// The catalogue's revision.
    async fn revision(&self) -> Result<u64, StoreError>;

    /// What has changed since this revision, in small parts. 0: everything that there is, without what is deleted.
    async fn changes(&self, since: u64) -> Result<Changes, StoreError>;

    /// Makes, changes or deletes something in the catalogue, if it still stands at revision `was` (0: is not there). Audited as `action`,
    /// about its id or name; `answer` is what is said to whoever asked. What is done to an endpoint is told.
    async fn put(
        &self,
        entry: Entry,
        was: u64,
        action: &'static str,
        by: Authority,
        answer: String,
    ) -> Result<Put, StoreError>;

    /// The dispatcher has seen how endpoints do: since when they only fail, or that they are not to be sent to any more. Changes nothing
    /// about one that was changed since its revision. A new standing is audited, as `endpoint.disable` by the actor `~hapax`, and told; so is,
    /// once, from when on it is disabled if it goes on failing.
    /// Says of each what became of it, in their order; see [`MARKS_PER_COMMIT`].
    async fn mark_endpoints(&self, marks: Vec<Mark>, now: Time) -> Result<Vec<Put>, StoreError>;

    /// Stores a message with its deliveries, all or nothing (G1), under the same rules as [`crate::Store::accept`].
    async fn publish(&self, message: NewMessage) -> Result<Published, StoreError>;

    /// Makes some of the deliveries that follow their message. Every node may do it at any time.
    async fn fan_out(&self) -> Result<FannedOut, StoreError>;

    /// One message.
    async fn message(&self, id: EventId) -> Result<Option<Message>, StoreError>;

    /// A page of messages, newest first.
    async fn messages(
        &self,
        filter: MessageFilter,
        page: Page,
    ) -> Result<Listed<Message>, StoreError>;

    /// A message as far as one endpoint is concerned, found without looking at its other deliveries; `None`: there is no such message.
    async fn addressed(
        &self,
        id: EventId,
        endpoint: EndpointId,
    ) -> Result<Option<Addressed>, StoreError>;

    /// A page of deliveries, newest first.
    async fn deliveries(
        &self,
        which: Deliveries,
        filter: PostedFilter,
        page: Page<EffectId>,
    ) -> Result<Listed<Posted, EffectId>, StoreError>;

    /// A page of ended attempts: newest message first, and of each the latest attempt first.
    async fn attempts(
        &self,
        which: Deliveries,
        filter: PostedFilter,
        page: Page<TriedPlace>,
    ) -> Result<Listed<Tried, TriedPlace>, StoreError>;

    /// What attempts to an endpoint came to, hour by hour, oldest first, within these times; costs by the number of hours.
    async fn tallies(
        &self,
        endpoint: EndpointId,
        since: Time,
        until: Time,
    ) -> Result<Vec<Tally>, StoreError>;

    /// Attempts to all endpoints of an application within these times, by the hour; also to those that were deleted and are still kept.
    async fn usage(&self, app: AppId, since: Time, until: Time) -> Result<u64, StoreError>;

    /// Deliveries to an endpoint that wait for their time or their turn, and that are under way; counted up to a limit.
    async fn waiting(&self, endpoint: EndpointId) -> Result<(u64, u64), StoreError>;
}
