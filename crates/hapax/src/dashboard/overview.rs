//! The overview: what needs a person first, then how it goes.

use maud::{Markup, html};
use serde_json::Value;

use super::chart::{Line, chart, number};
use super::frame::{Looker, page as framed};
use super::json::Json;
use super::parts::{ago, badge, figure, heads, linked, span, ticked, time};
use super::trouble::sentence;
use crate::metrics::past::{Sample, quantile};

/// Points of a chart: more than that is not seen.
const POINTS: usize = 60;

/// All that the page shows.
#[derive(Debug, Default)]
pub struct Shown {
    /// Alerts, those that stand first.
    pub alerts: Value,
    /// Sources with their counts.
    pub sources: Value,
    /// The newest that wait for a person: events in review, uncertain effects, dead events, guard keys with an unknown outcome.
    pub waiting: [Value; 4],
    /// What was counted lately.
    pub samples: Vec<Sample>,
    /// Is it the last day's, not the last hour's?
    pub day: bool,
    /// Lanes whose breaker is not closed.
    pub broken: Value,
    /// Attempts by lane since the start: lane, all, failed.
    pub lanes: Vec<(String, f64, f64)>,
}

/// The page.
pub fn page(looker: &Looker, shown: &Shown) -> Markup {
    let content = html! {
        h1 { "Overview" }
        (alerts(looker, &shown.alerts))
        (needs(looker, shown))
        div class="head" {
            h2 { "How it goes" }
            nav class="tabs" aria-label="Span of the charts" {
                a href="/" aria-current=[(!shown.day).then_some("true")] { "Last hour" }
                a href="/?span=day" aria-current=[shown.day.then_some("true")] { "Last day" }
            }
        }
        (figures(&shown.samples))
        (charts(looker, shown))
        p class="dim small" {
            "Charts and counts are this node's, since its start. For all nodes and longer, point a Prometheus at " code {
                "/metrics"
            }
            "."
        }
        div class="grid" { (sources(&shown.sources)) (lanes(looker, shown)) }
    };
    framed(looker, "Overview", &content)
}

fn alerts(looker: &Looker, alerts: &Value) -> Markup {
    let standing = alerts
        .list("data")
        .iter()
        .filter(|alert| alert.maybe("clearedAt").is_none());
    html! {
        @for alert in standing {
            div class=(if alert.text("severity") == "critical" { "note bad" } else { "note warn" }) role="status" {
                p { strong { (ticked(&sentence(alert.text("text")))) } " " span class="small" { (time(looker, alert.text("since"))) } }
                p { (ticked(&sentence(alert.text("advice")))) " " code { "hapax explain " (alert.text("code")) } }
            }
        }
    }
}

fn needs(looker: &Looker, shown: &Shown) -> Markup {
    let [review, uncertain, dead, keys] = &shown.waiting;
    let any = shown
        .waiting
        .iter()
        .any(|list| !list.list("data").is_empty());
    if !any {
        return html! {
            p class="note good" {
                strong { "Nothing waits for a person." }
                " No event in review, no uncertain effect, no dead letter, no guard key with an unknown outcome."
            }
        };
    }
    html! {
        h2 { "Needs a person" }
        div class="grid" {
            (waiting(looker, "Effects of which nobody knows whether they were applied", "/effects?state=uncertain", uncertain, "eventId"))
            (waiting(looker, "Events in review", "/review", review, "id"))
            (waiting(looker, "Events with a dead effect", "/dead", dead, "id"))
            (waiting(looker, "Guard keys with an unknown outcome", "/guard?state=unknown", keys, "key"))
        }
    }
}

fn waiting(looker: &Looker, title: &str, href: &str, list: &Value, id: &str) -> Markup {
    let rows = list.list("data");
    html! {
        @if !rows.is_empty() {
            section class="card" {
                h3 { (title) }
                ul class="plain" {
                    @for row in rows { li {
                        @match id {
                            "key" => (linked(&format!("/guard/{}", row.text("id")), row.text("key"))),
                            id => a href={ "/events/" (row.text(id)) } {
                                (row.maybe("name").or(row.maybe("type")).unwrap_or("event")) " " code { (row.text("key")) }
                            },
                        }
                        " " span class="dim small" { (time(looker, row.maybe("receivedAt").or(row.maybe("startedAt")).unwrap_or_default())) }
                    } }
                }
                p { a href=(href) { "All of them" } }
            }
        }
    }
}

fn figures(samples: &[Sample]) -> Markup {
    let (Some(first), Some(last)) = (samples.first(), samples.last()) else {
        return html! {};
    };
    let grew = |now: f64, then: f64| (now - then).max(0.0);
    let attempts = grew(last.attempts[0], first.attempts[0]);
    let well = grew(last.attempts[1], first.attempts[1]);
    let ended = grew(last.ended[0], first.ended[0]);
    let tries = grew(last.ended[1], first.ended[1]);
    let share = |part: f64, of: f64| match of > 0.0 {
        true => format!("{:.1} %", 100.0 * part / of),
        false => "–".to_owned(),
    };
    let per = if ended > 0.0 {
        format!("{:.2}", tries / ended)
    } else {
        "–".to_owned()
    };
    let accept = quantile(&first.accept, &last.accept, 0.99);
    let lag = quantile(&first.lag, &last.lag, 0.99);
    html! {
        dl class="figures" {
            (figure("Attempts that succeed", &share(well, attempts), ""))
            (figure("Attempts that are retries", &share((tries - ended).max(0.0), tries), ""))
            (figure("Attempts per effect", &per, ""))
            (figure("Accept, 99 of 100", &seconds(accept), ""))
            (figure("Dispatch lag, 99 of 100", &seconds(lag), ""))
        }
    }
}

fn seconds(value: Option<f64>) -> String {
    match value {
        None => "–".to_owned(),
        Some(value) if value < 0.001 => format!("≤ {:.0} µs", value * 1e6),
        Some(value) if value < 1.0 => format!("≤ {:.0} ms", value * 1e3),
        Some(value) => format!("≤ {value:.0} s"),
    }
}

fn charts(looker: &Looker, shown: &Shown) -> Markup {
    let looks = thin(&shown.samples);
    let first = looks.first().map(|look| ago(look.at, looker.now));
    let ago = first.as_deref().unwrap_or_default();
    let line = |name, of: fn(&Sample) -> f64| rate(&looks, name, of);
    let late =
        |name, share: f64, of: fn(&Sample) -> &[(f64, f64)]| slowness(&looks, name, share, of);
    html! {
        div class="grid" {
            (chart("Deliveries", "a minute", ago, &[
                line("accepted", |look| look.deliveries[0]), line("duplicates", |look| look.deliveries[1]),
                line("for review", |look| look.deliveries[2]), line("refused", |look| look.deliveries[3]),
            ]))
            (chart("Effects", "a minute", ago, &[
                line("done", |look| look.settled[0]), line("attempts", |look| look.attempts[0]),
                line("uncertain", |look| look.settled[2]), line("dead", |look| look.settled[1]),
            ]))
            (chart("Accepting takes", "ms", ago, &[
                late("half", 0.5, |look| &look.accept), late("99 of 100", 0.99, |look| &look.accept),
            ]))
            (chart("Attempts begin late by", "ms", ago, &[
                late("half", 0.5, |look| &look.lag), late("99 of 100", 0.99, |look| &look.lag),
            ]))
        }
    }
}

/// At most [`POINTS`] and one looks, evenly apart, the last among them.
fn thin(samples: &[Sample]) -> Vec<&Sample> {
    let step = samples.len().div_ceil(POINTS).max(1);
    let mut looks: Vec<&Sample> = samples.iter().rev().step_by(step).collect();
    looks.reverse();
    looks
}

fn rate(looks: &[&Sample], name: &'static str, of: fn(&Sample) -> f64) -> Line {
    let pairs = looks.iter().zip(looks.iter().skip(1));
    let values = pairs.map(|(from, to)| {
        let minutes = (to.at - from.at) as f64 / 60e6;
        (minutes > 0.0).then(|| (of(to) - of(from)).max(0.0) / minutes)
    });
    let grew = match (looks.first(), looks.last()) {
        (Some(first), Some(last)) => of(last) - of(first),
        _ => 0.0,
    };
    Line {
        name,
        values: values.collect(),
        sum: number(grew),
    }
}

fn slowness(
    looks: &[&Sample],
    name: &'static str,
    share: f64,
    of: fn(&Sample) -> &[(f64, f64)],
) -> Line {
    let pairs = looks.iter().zip(looks.iter().skip(1));
    let values = pairs.map(|(from, to)| Some(quantile(of(from), of(to), share)? * 1e3));
    let whole = match (looks.first(), looks.last()) {
        (Some(first), Some(last)) => quantile(of(first), of(last), share),
        _ => None,
    };
    Line {
        name,
        values: values.collect(),
        sum: seconds(whole),
    }
}

fn sources(sources: &Value) -> Markup {
    html! {
        section class="card" {
            h2 { "Duplicates by source" }
            p class="dim small" { "Their share of the last five minutes, and what is usual for the source." }
            @if sources.list("data").is_empty() {
                p class="dim" { "No source is configured: " code { "hapax init" } " writes a first one." }
            }
            @else { div class="scroll" tabindex="0" { table {
                (heads(&["Source", "#Accepted", "#Duplicates", "#Now", "#Usual", "#Refused"]))
                tbody { @for source in sources.list("data") {
                    @let (accepted, duplicates) = (source.number("accepted"), source.number("duplicates"));
                    tr {
                        td { a href={ "/sources/" (source.text("name")) } { (source.text("name")) } }
                        td class="num" { (accepted) } td class="num" { (duplicates) }
                        td class="num" { (share(&source["duplicateShare"])) @if is_unusual(source) { " " (badge("warning")) } }
                        td class="num" { (share(&source["duplicateShareUsual"])) }
                        td class="num" { (source.number("refused")) }
                    }
                } }
            } } }
        }
    }
}

fn share(value: &Value) -> String {
    value
        .as_f64()
        .map_or_else(|| "–".to_owned(), |share| format!("{:.1} %", 100.0 * share))
}

/// Far more duplicates than this source usually has: twice as many, and not only a few in a hundred.
fn is_unusual(source: &Value) -> bool {
    let share = |name: &str| source[name].as_f64();
    match (share("duplicateShare"), share("duplicateShareUsual")) {
        (Some(now), Some(usual)) => now > 2.0 * usual && now > usual + 0.05,
        _ => false,
    }
}

/// Lanes that are left alone now, and below those that failed and are open all the same.
fn lanes(looker: &Looker, shown: &Shown) -> Markup {
    let broken = shown.broken.list("data");
    let is_broken = |name: &str| broken.iter().any(|lane| lane.text("lane") == name);
    let others: Vec<_> = shown
        .lanes
        .iter()
        .filter(|(lane, ..)| !is_broken(lane))
        .collect();
    html! {
        section class="card" {
            h2 { "Lanes in trouble" }
            @if broken.is_empty() { p class="dim" { "No breaker is open: whatever is due is sent." } }
            @else {
                p class="dim small" { "Only failures come back from these, so they are left alone for a while, then tried one by one." }
                div class="scroll" tabindex="0" { table {
                    (heads(&["Lane", "Breaker", "#Behind by", "#Failures in a row"]))
                    tbody { @for lane in broken { (broken_lane(looker, lane)) } }
                } }
            }
            @if !others.is_empty() {
                h3 { "Failures since the start, breaker closed" }
                div class="scroll" tabindex="0" { table {
                    (heads(&["Lane", "#Attempts", "#Failed"]))
                    tbody { @for (lane, all, failed) in others { tr {
                        td { a href={ "/effects?lane=" (lane) } { (lane) } }
                        td class="num" { (number(*all)) }
                        td class="num" {
                            (number(*failed)) " " span class="dim" { "(" (number(100.0 * failed / all.max(1.0))) " %)" }
                        }
                    } } }
                } }
            }
        }
    }
}

fn broken_lane(looker: &Looker, lane: &Value) -> Markup {
    let name = lane.text("lane");
    html! {
        tr {
            td { a href={ "/effects?lane=" (name) } { (name) } }
            td {
                (badge(lane.text("breaker")))
                @if let Some(until) = lane.maybe("openUntil") { span class="sub" { "next try " (time(looker, until)) } }
            }
            td class="num" { (span(lane.number("lagSeconds"))) }
            td class="num" { (lane.number("failures")) }
        }
    }
}
