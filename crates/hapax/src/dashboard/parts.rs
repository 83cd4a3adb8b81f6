//! Small parts that pages share.

use hapax_ledger::id::{EffectId, EventId, KeyId};
use hapax_ledger::time::Time;
use maud::{Markup, html};

use super::frame::Looker;
use super::json::Json;
use crate::clock;
use serde_json::Value;

/// Rows of a page that does not say how many: the API's own number.
const ROWS_OF_A_PAGE: usize = 50;

/// Characters of an id or key that a table shows; the rest is a copy away.
const SHORT_CHARS: usize = 34;

/// A time as people say it, with the exact one behind it. The script keeps it fresh.
pub fn time(looker: &Looker, text: &str) -> Markup {
    let relative = parse(text).map_or_else(|| text.to_owned(), |at| relative(at, looker.now));
    html! { time datetime=(text) title=(text) data-relative { (relative) } }
}

/// A time that may not have come.
pub fn maybe_time(looker: &Looker, text: Option<&str>) -> Markup {
    match text {
        Some(text) => time(looker, text),
        None => html! { span class="dim" { "–" } },
    }
}

fn parse(text: &str) -> Option<Time> {
    let at: jiff::Timestamp = text.parse().ok()?;
    Some(Time::from_micros(at.as_microsecond()))
}

/// A sentence in which what stands between backticks is code.
pub fn ticked(text: &str) -> Markup {
    html! {
        @for (at, piece) in text.split('`').enumerate() {
            @if at % 2 == 1 { code { (piece) } } @else { (piece) }
        }
    }
}

/// How long ago a moment is, as a time is said.
pub fn ago(at_micros: i64, now: Time) -> String {
    relative(Time::from_micros(at_micros), now)
}

/// "3 min ago", "in 2 h".
fn relative(at: Time, now: Time) -> String {
    let seconds = (now.micros() - at.micros()) / 1_000_000;
    let (number, unit) = match seconds.abs() {
        0..=4 => return "just now".to_owned(),
        size @ 5..=89 => (size, "s"),
        size @ 90..=5_399 => (size / 60, "min"),
        size @ 5_400..=129_599 => (size / 3_600, "h"),
        size => (size / 86_400, "d"),
    };
    match seconds > 0 {
        true => format!("{number} {unit} ago"),
        false => format!("in {number} {unit}"),
    }
}

/// A span of time in its largest fitting unit.
pub fn span(seconds: u64) -> String {
    match seconds {
        0..=119 => format!("{seconds} s"),
        120..=7_199 => format!("{} min", seconds / 60),
        7_200..=172_799 => format!("{} h", seconds / 3_600),
        _ => format!("{} d", seconds / 86_400),
    }
}

/// Something that people copy: an id, a key.
pub fn copyable(text: &str) -> Markup {
    html! {
        span class="copyable" {
            code title=(text) { (short(text)) }
            button class="copy" type="button" data-copy=(text) aria-label={ "Copy " (text) } hidden { "copy" }
        }
    }
}

/// The same as a link.
pub fn linked(href: &str, text: &str) -> Markup {
    html! {
        span class="copyable" {
            a href=(href) { code title=(text) { (short(text)) } }
            button class="copy" type="button" data-copy=(text) aria-label={ "Copy " (text) } hidden { "copy" }
        }
    }
}

/// Somebody, by the name of their token. Those of the portal are named after their application, in two long words.
pub fn who(name: &str) -> Markup {
    /// As much of an application's id as tells it from the others on a page.
    const APP_CHARS: usize = 16;
    match name.strip_prefix("portal ") {
        Some(rest) => {
            let app: String = rest.chars().take(APP_CHARS).chain(['…']).collect();
            html! { "portal" span class="sub" title=(name) { (app) } }
        }
        None => html! { (name) },
    }
}

fn short(text: &str) -> String {
    match text.chars().count() > SHORT_CHARS {
        true => text.chars().take(SHORT_CHARS - 1).chain(['…']).collect(),
        false => text.to_owned(),
    }
}

/// A state or status: a colour, a shape and a word.
pub fn badge(word: &str) -> Markup {
    let kind = match word {
        "completed" | "done" | "enabled" | "accepted" | "success" | "safe" | "released" => "good",
        "dead" | "failed" | "gone" | "invalid" | "critical" | "blocked" | "fail" | "open" => "bad",
        "uncertain" | "needs_review" | "needs_decision" | "unknown" | "warning" | "conflict"
        | "trying" => "warn",
        "in_progress" | "claimed" | "running" | "send" | "sending" => "busy",
        _ => "calm",
    };
    html! { span class={ "badge " (kind) } { (word.replace('_', " ")) } }
}

/// What a list says when there is nothing in it: why, and what to do.
pub fn empty(title: &str, advice: &Markup) -> Markup {
    html! { div class="empty" { p { strong { (title) } } p class="dim" { (advice) } } }
}

/// To the newer and the older rows of a list. `path` has the filters, and ends in `?` or `&`.
pub fn pager(path: &str, list: &Value, paged: bool) -> Markup {
    let older = list.maybe("iterator").filter(|_| !list.is("done"));
    let newer = list.maybe("prevIterator").filter(|_| paged);
    html! {
        nav class="pager" aria-label="More rows" {
            @if paged { a href=(path.trim_end_matches(['?', '&'])) { "Newest" } }
            @if let Some(newer) = newer { a rel="prev" href={ (path) "iterator=" (newer) } { "← Newer" } }
            @if let Some(older) = older { a rel="next" href={ (path) "iterator=" (older) } { "Older →" } }
        }
    }
}

/// A page with fewer rows than it could have, although the list goes on: the store looks at so many at a time, and says so.
pub fn looked(looker: &Looker, path: &str, list: &Value) -> Markup {
    let rows = list.list("data");
    let newest = rows.first().map(|row| row.text("id"));
    let (place, how, on) = match looker.path.contains("iterator=-") {
        // Towards newer rows it goes on at its newest row, unless it stopped looking behind it.
        true => {
            let place = list
                .maybe("prevIterator")
                .map(|place| place.trim_start_matches('-'));
            (
                place.filter(|place| Some(*place) != newest),
                "as far as",
                "Look further on",
            )
        }
        false => {
            let place = list.maybe("iterator").filter(|_| !list.is("done"));
            (place, "as far back as", "Look further back")
        }
    };
    let Some(id) = place.filter(|_| rows.len() < ROWS_OF_A_PAGE) else {
        return html! {};
    };
    let minus = if how == "as far as" { "-" } else { "" };
    html! {
        p class="note" role="status" {
            "This page looked " (how) " "
            @match moment(id) {
                Some(at) => (time(looker, &clock::text(at))),
                None => "this row",
            }
            ". "
            a href={ (path) "iterator=" (minus) (id) } { (on) }
        }
    }
}

/// When the row of this id came: ids know.
fn moment(id: &str) -> Option<Time> {
    let event = id.parse::<EventId>().map(|id| id.0);
    let effect = || id.parse::<EffectId>().map(|id| id.0);
    let key = || id.parse::<KeyId>().map(|id| id.0);
    let raw = event.or_else(|_| effect()).or_else(|_| key()).ok()?;
    let millis = i64::try_from(raw.millis()).ok()?;
    Some(Time::from_micros(millis.checked_mul(1_000)?))
}

/// The heads of a table's columns. Those of numbers begin with `#`, and stand at the right.
pub fn heads(names: &[&str]) -> Markup {
    html! {
        thead {
            tr {
                @for name in names {
                    @match name.strip_prefix('#') {
                        Some(name) => th scope="col" class="num" { (name) },
                        None => th scope="col" { (name) },
                    }
                }
            }
        }
    }
}

/// A form that changes something.
pub fn form(looker: &Looker, action: &str, content: &Markup) -> Markup {
    html! {
        form class="act" method="post" action=(action) {
            input type="hidden" name="csrf" value=(looker.csrf);
            input type="hidden" name="once" value=(looker.once);
            (content)
        }
    }
}

/// The field for a reason, which every decision needs.
pub fn reason(id: &str, value: &str) -> Markup {
    html! {
        label for=(id) { "Reason " span class="dim" { "(recorded with your name)" } }
        input id=(id) name="reason" value=(value) required maxlength="500" autocomplete="off" placeholder="what you found out, a ticket";
    }
}

/// A hint at a number: what it is, and how large.
pub fn figure(name: &str, number: &str, kind: &str) -> Markup {
    html! { div class={ "figure " (kind) } { dt { (name) } dd { (number) } } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_said_as_people_say_them() {
        let now = Time::from_secs(1_000_000);
        for (seconds, said) in [
            (0, "just now"),
            (-4, "just now"),
            (30, "30 s ago"),
            (600, "10 min ago"),
            (7_200, "2 h ago"),
            (-7_200, "in 2 h"),
            (864_000, "10 d ago"),
        ] {
            assert_eq!(relative(Time::from_secs(1_000_000 - seconds), now), said);
        }
    }

    #[test]
    fn a_page_that_ends_early_says_how_far_it_looked_and_goes_on() {
        let looker = Looker {
            name: "ada".to_owned(),
            role: hapax_store::nouns::Role::Viewer,
            csrf: String::new(),
            once: String::new(),
            path: "/events".to_owned(),
            done: None,
            now: Time::from_secs(1_000_000),
        };
        let raw = hapax_ledger::id::RawId::new(Time::from_secs(996_400), 0, 7);
        let id = EventId(raw).to_string();
        let list = |done: bool, rows: usize| serde_json::json!({"data": vec![0; rows], "iterator": id, "done": done});
        let said = looked(&looker, "/events?type=a&", &list(false, 3)).into_string();
        assert!(said.contains("60 min ago"), "{said}");
        assert!(
            said.contains(&format!("/events?type=a&amp;iterator={id}")),
            "{said}"
        );
        for quiet in [list(true, 3), list(false, ROWS_OF_A_PAGE)] {
            assert_eq!(looked(&looker, "/events?", &quiet).into_string(), "");
        }
        let empty = pager("/events?", &list(false, 0), false).into_string();
        assert!(empty.contains("Older"), "a page without rows goes on, too");
    }

    #[test]
    fn nothing_in_a_key_is_markup() {
        let shown = copyable("\"><script>alert(1)</script>").into_string();
        assert!(!shown.contains("<script>"), "{shown}");
    }
}
