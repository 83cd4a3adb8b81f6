//! Words and numbers of the outgoing API, and what they have to be like.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::http::api::body::Fields;

/// The longest uid, name of a type, channel or tag.
pub(in crate::http::api) const WORD_CHARS_MAX: usize = 256;
/// The longest description.
pub(in crate::http::api) const DESCRIPTION_CHARS_MAX: usize = 4 * 1024;
/// All metadata of one thing together.
const METADATA_BYTES_MAX: usize = 4 * 1024;
/// Channels or tags of a message, and types and channels of an endpoint.
pub(in crate::http::api) const CHANNELS_MAX: usize = 10;
/// Types that an endpoint names.
pub(in crate::http::api) const TYPES_MAX: usize = 1_000;
/// The highest rate: what the SDKs have room for.
pub(in crate::http::api) const RATE_MAX: u64 = 65_535;
/// Attempts of a schedule, and the longest wait: a week.
pub(in crate::http::api) const WAITS_MAX: usize = 32;
/// See [`WAITS_MAX`].
pub(in crate::http::api) const WAIT_SECONDS_MAX: u32 = 7 * 24 * 60 * 60;

const WORD: &str = "1 to 256 letters, digits and any of -_. are expected";
const CHANNEL: &str = "words of 1 to 128 letters, digits and any of -_.: are expected";
/// The longest channel or tag.
pub(in crate::http::api) const CHANNEL_CHARS_MAX: usize = 128;

fn is_word(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    (1..=WORD_CHARS_MAX).contains(&text.len()) && text.bytes().all(fits)
}

fn is_channel(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte);
    (1..=CHANNEL_CHARS_MAX).contains(&text.len()) && text.bytes().all(fits)
}

/// A uid. None looks like an id of ours, so that one name means one thing.
pub(super) fn uid(fields: &mut Fields, name: &str, prefix: &str) -> Option<Option<Arc<str>>> {
    let text = fields.any_text(name, WORD_CHARS_MAX)?;
    let reserved = text
        .strip_prefix(prefix)
        .is_some_and(|rest| rest.starts_with('_'));
    if !is_word(&text) {
        fields.refuse(name, WORD);
    } else if reserved {
        let msg = format!("only ids that the server gives begin with {prefix}_");
        fields.refuse(name, &msg);
    }
    Some(Some(text.into()))
}

/// The name of a type of events. Empty if it is missing or wrong, which is told in the end.
pub(super) fn event_type(fields: &mut Fields, name: &str) -> String {
    let text = fields.text(name);
    if !text.is_empty() && !is_word(&text) {
        fields.refuse(name, WORD);
    }
    text
}

/// Is this the name of a type of events?
pub(super) fn is_event_type(text: &str) -> bool {
    is_word(text)
}

/// Types of events that an endpoint wants.
pub(super) fn event_types(fields: &mut Fields, name: &str) -> Option<Vec<String>> {
    fields.words(name, TYPES_MAX, WORD, is_word)
}

/// Channels.
pub(super) fn channels(fields: &mut Fields, name: &str) -> Option<Vec<String>> {
    fields.words(name, CHANNELS_MAX, CHANNEL, is_channel)
}

/// Messages a second.
pub(super) fn rate(fields: &mut Fields, name: &str) -> Option<Option<u32>> {
    let rate = fields.optional_number(name, 1..=RATE_MAX)?;
    Some(u32::try_from(rate).ok())
}

/// Whatever an owner wants to know about something.
pub(super) fn metadata(fields: &mut Fields, name: &str) -> Option<BTreeMap<String, String>> {
    let found = fields.map(name)?;
    let bytes: usize = found
        .iter()
        .map(|(key, value)| key.len() + value.len())
        .sum();
    if bytes > METADATA_BYTES_MAX {
        fields.refuse(name, "at most 4096 bytes are expected");
    }
    Some(found)
}

/// Waits before each attempt, in seconds.
pub(super) fn waits(fields: &mut Fields, name: &str) -> Option<Option<Vec<u32>>> {
    fields.numbers(name, WAITS_MAX, WAIT_SECONDS_MAX).map(Some)
}
