//! Which messages of an application, and where their lists go on.

use std::fmt;
use std::str::FromStr;

use hapax_ledger::id::{AppId, EventId};
use hapax_store::nouns::{MessageFilter, Page, PageFrom};

use super::message_body::Content;
use super::page;
use crate::http::api::list::{self, Invalid};

/// Where a list of messages goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MessageId(pub(super) hapax_ledger::id::MessageId);

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for MessageId {
    type Err = hapax_ledger::id::BadId;
    fn from_str(text: &str) -> Result<MessageId, Self::Err> {
        text.parse().map(MessageId)
    }
}

/// The same place among events.
pub(super) fn page(asked: Page<MessageId>) -> Page {
    let event = |id: MessageId| EventId(id.0.0);
    Page {
        limit: asked.limit,
        from: match asked.from {
            PageFrom::Newest => PageFrom::Newest,
            PageFrom::OlderThan(id) => PageFrom::OlderThan(event(id)),
            PageFrom::NewerThan(id) => PageFrom::NewerThan(event(id)),
        },
    }
}

/// Which messages.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    pub(super) filter: MessageFilter,
    pub(super) content: Content,
}

impl Wanted {
    /// All of an application.
    pub(super) fn of(app: AppId) -> Wanted {
        Wanted {
            filter: MessageFilter {
                app: Some(app),
                ..MessageFilter::default()
            },
            content: Content::With,
        }
    }
}

/// One parameter of a query.
pub(super) fn narrow(wanted: &mut Wanted, name: &str, value: &str) -> Result<(), Option<Invalid>> {
    match name {
        "with_content" => wanted.content = Content::from_flag(page::flag(name, value)?),
        _ => return narrow_filter(&mut wanted.filter, name, value),
    }
    Ok(())
}

/// What of a query is about messages. Types come as one text with commas, or as several parameters.
pub(super) fn narrow_filter(
    filter: &mut MessageFilter,
    name: &str,
    value: &str,
) -> Result<(), Option<Invalid>> {
    match name {
        "channel" => filter.channel = Some(value.to_owned()),
        "tag" => filter.tag = Some(value.to_owned()),
        "after" => filter.since = Some(list::time(name, value)?),
        "before" => filter.until = Some(list::time(name, value)?),
        "event_types" | "event_type" => {
            let types = value.split(',').filter(|one| !one.is_empty());
            filter.event_types.extend(types.map(str::to_owned));
        }
        _ => return Err(None),
    }
    Ok(())
}
