//! Figures as pictures: SVG made here, without a style of its own.

use maud::{Markup, html};

/// How wide and high a chart is drawn; it is scaled to where it stands.
const WIDTH: u64 = 700;
const HEIGHT: u64 = 130;
/// Room for words below the bars.
const FOOT: u64 = 20;
/// Room between bars.
const GAP: u64 = 6;

/// What came back on one day.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Day {
    /// The day, as people say it.
    pub name: String,
    /// Attempts that got through.
    pub success: u64,
    /// Attempts that did not.
    pub fail: u64,
}

/// Attempts by day, the oldest first.
pub fn days(all: &[Day]) -> Markup {
    let most = all.iter().map(|day| day.success + day.fail).max();
    let most = most.unwrap_or_default().max(1);
    let count = u64::try_from(all.len()).unwrap_or(1).max(1);
    let step = WIDTH / count;
    let room = HEIGHT - FOOT;
    // What happened is seen, however little it is.
    let high = |number: u64| (number * (room - 4)).div_ceil(most);
    let sum = |of: fn(&Day) -> u64| all.iter().map(of).sum::<u64>();
    let (success, fail) = (sum(|day| day.success), sum(|day| day.fail));
    html! {
        svg class="bars" viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } role="img"
            aria-label={ "Attempts of the last " (count) " days: " (success) " got through, " (fail) " failed" } {
            @for (index, day) in (0..).zip(all) {
                @let left = index * step + GAP / 2;
                @let (good, bad) = (high(day.success), high(day.fail));
                g {
                    title { (day.name) ": " (day.success) " got through, " (day.fail) " failed" }
                    rect class="rail" x=(left) y=(room - 1) width=(step - GAP) height="1" {}
                    rect class="fill-good" x=(left) y=(room.saturating_sub(good)) width=(step - GAP) height=(good) rx="2" {}
                    rect class="fill-bad" x=(left) y=(room.saturating_sub(good + bad)) width=(step - GAP) height=(bad) rx="2" {}
                    @if index % 2 == 1 || count < 8 {
                        text x=(left + (step - GAP) / 2) y=(HEIGHT - 5) text-anchor="middle" { (day.name) }
                    }
                }
            }
        }
    }
}

/// How many of all got through, as a number and a bar.
pub fn rate(success: u64, fail: u64, waiting: u64) -> Markup {
    let all = success + fail;
    html! {
        div class="rate" {
            @if all == 0 {
                span { b { "–" } }
                @if waiting == 0 { span { "nothing sent in 7 days" } }
            } @else {
                span { b { (share(success, all)) } }
                svg viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true" {
                    rect class="fill-bad" x="0" y="0" width="100" height="6" rx="3" {}
                    rect class="fill-good" x="0" y="0" width=(success * 100 / all) height="6" rx="3" {}
                }
                span { (success) " of " (all) " delivered in 7 days" }
            }
            @if waiting > 0 { span { (waiting) " waiting" } }
        }
    }
}

/// A share in percent. It says 100 only if nothing is missing.
pub fn share(part: u64, all: u64) -> String {
    match all {
        0 => "–".to_owned(),
        _ => format!("{} %", part * 100 / all),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_is_said_of_all_only() {
        assert_eq!(share(999, 1_000), "99 %");
        assert_eq!(share(1_000, 1_000), "100 %");
        assert_eq!(share(0, 0), "–");
    }

    #[test]
    fn the_least_is_seen_beside_the_most() {
        let day = |success, fail| Day {
            name: "1 May".to_owned(),
            success,
            fail,
        };
        let shown = days(&[day(1_000_000, 0), day(0, 1)]).into_string();
        assert!(shown.contains("height=\"1\" rx=\"2\""), "{shown}");
        assert!(days(&[]).into_string().contains("0 got through"));
    }
}
