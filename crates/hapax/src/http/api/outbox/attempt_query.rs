//! Which attempts, and where their lists go on.

use std::fmt;
use std::str::FromStr;

use hapax_store::nouns::{MessageFilter, Tried, TriedPlace};

use super::message_body::Content;
use super::message_query::narrow_filter;
use super::page::flag;
use super::status::{Status, status_code};
use crate::http::api::list::Invalid;

/// Where a list of attempts goes on: an effect and a fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place(pub(super) TriedPlace);

impl Place {
    pub(super) fn of(tried: &Tried) -> Place {
        Place(TriedPlace {
            effect: tried.posted.effect.id,
            fence: tried.attempt.fence.as_u64(),
        })
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0.effect, self.0.fence)
    }
}

/// Not a place.
#[derive(Debug)]
pub(super) struct NoPlace;

impl FromStr for Place {
    type Err = NoPlace;
    fn from_str(text: &str) -> Result<Place, NoPlace> {
        let (effect, fence) = text.split_once('.').ok_or(NoPlace)?;
        let effect = effect.parse().map_err(|_| NoPlace)?;
        let fence = fence.parse().map_err(|_| NoPlace)?;
        Ok(Place(TriedPlace { effect, fence }))
    }
}

/// Which attempts.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    pub(super) filter: MessageFilter,
    status: Option<Status>,
    /// 0: nothing came back; else 100, 200 and so on.
    status_code_class: Option<u16>,
    /// Of this endpoint.
    pub(super) endpoint: Option<String>,
    pub(super) content: Content,
    pub(super) with_msg: bool,
}

impl Default for Wanted {
    fn default() -> Wanted {
        Wanted {
            filter: MessageFilter::default(),
            status: None,
            status_code_class: None,
            endpoint: None,
            content: Content::With,
            with_msg: false,
        }
    }
}

impl Wanted {
    /// Is more asked for than the store can tell apart?
    pub(super) fn narrows(&self) -> bool {
        self.status.is_some() || self.status_code_class.is_some() || self.endpoint.is_some()
    }

    pub(super) fn fits(&self, tried: &Tried) -> bool {
        let class = status_code(tried.attempt.outcome) / 100 * 100;
        let effect = &tried.posted.effect;
        self.status
            .is_none_or(|status| status == Status::of_attempt(&tried.attempt))
            && self.status_code_class.is_none_or(|wanted| wanted == class)
            && self
                .endpoint
                .as_deref()
                .is_none_or(|endpoint| endpoint == &*effect.name)
    }
}

/// One parameter of a query.
pub(super) fn narrow(wanted: &mut Wanted, name: &str, value: &str) -> Result<(), Option<Invalid>> {
    match name {
        "status" => wanted.status = Some(status(name, value)?),
        "status_code_class" => {
            let class = value.parse().ok().filter(|class| CLASSES.contains(class));
            let expected = "one of 0, 100, 200, 300, 400, 500 is expected";
            wanted.status_code_class = Some(class.ok_or_else(|| Invalid::query(name, expected))?);
        }
        "endpoint_id" => wanted.endpoint = Some(value.to_owned()),
        "with_content" => wanted.content = Content::from_flag(flag(name, value)?),
        "with_msg" => wanted.with_msg = flag(name, value)?,
        // An attempt has ended, one way or the other: there is nothing more to tell.
        "expanded_statuses" => drop(flag(name, value)?),
        _ => return narrow_filter(&mut wanted.filter, name, value),
    }
    Ok(())
}

/// Classes of status codes.
pub(in crate::http::api) const CLASSES: [u16; 6] = [0, 100, 200, 300, 400, 500];

/// A status in a query.
pub(super) fn status(name: &str, value: &str) -> Result<Status, Option<Invalid>> {
    let expected =
        "one of 0 (success), 1 (pending), 2 (fail), 3 (sending), 4 (canceled) is expected";
    Status::from_text(value).ok_or_else(|| Some(Invalid::query(name, expected)))
}
