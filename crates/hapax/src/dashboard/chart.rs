//! Lines over time, as SVG made on the server.

use std::fmt::Write;

use maud::{Markup, html};

/// Inner size of a chart, in units of its view box.
const WIDTH: f64 = 440.0;
const HEIGHT: f64 = 110.0;
/// Room for numbers on the left and times below.
const LEFT: f64 = 40.0;
const BELOW: f64 = 20.0;

/// One line of a chart.
#[derive(Clone, Debug)]
pub struct Line {
    /// What it is.
    pub name: &'static str,
    /// Its values from old to new; `None` where nothing is known.
    pub values: Vec<Option<f64>>,
    /// What it comes to, in words.
    pub sum: String,
}

/// A chart of up to four lines. `unit` says what a number is.
pub fn chart(title: &str, unit: &str, ago: &str, lines: &[Line]) -> Markup {
    let all = lines.iter().flat_map(|line| line.values.iter().flatten());
    let top = nice(all.fold(0.0, |most: f64, value| most.max(*value)));
    let said: Vec<String> = lines
        .iter()
        .map(|line| format!("{} {}", line.name, line.sum))
        .collect();
    let said = format!("{title}: {}", said.join(", "));
    let view = format!("0 0 {} {}", WIDTH + LEFT + 4.0, HEIGHT + BELOW + 8.0);
    html! {
        section class="card" {
            h3 { (title) " " span class="dim small" { (unit) } }
            svg class="chart" viewBox=(view) role="img" aria-label=(said) {
                @for part in [0.0, 0.5, 1.0] {
                    @let y = round(8.0 + HEIGHT * (1.0 - part));
                    line class="axis" x1=(LEFT) x2=(LEFT + WIDTH) y1=(y) y2=(y) {}
                    text x=(LEFT - 6.0) y=(y + 4.0) text-anchor="end" { (number(top * part)) }
                }
                text x=(LEFT) y=(HEIGHT + BELOW + 4.0) { (ago) }
                text x=(LEFT + WIDTH) y=(HEIGHT + BELOW + 4.0) text-anchor="end" { "now" }
                @for (at, line) in lines.iter().enumerate() { path class={ "line c" (at) } d=(path(&line.values, top)) {} }
            }
            ul class="legend" {
                @for (at, line) in lines.iter().enumerate() {
                    li {
                        svg viewBox="0 0 18 8" width="18" height="8" aria-hidden="true" { path class={ "line c" (at) } d="M0 4H18" {} }
                        (line.name) " " b { (line.sum) }
                    }
                }
            }
        }
    }
}

/// The line through known values; it breaks where nothing is known.
fn path(values: &[Option<f64>], top: f64) -> String {
    let steps = values.len().max(2) - 1;
    let mut out = String::new();
    let mut pen = 'M';
    for (at, value) in values.iter().enumerate() {
        let Some(value) = value else {
            pen = 'M';
            continue;
        };
        let x = LEFT + WIDTH * at as f64 / steps as f64;
        let y = 8.0 + HEIGHT * (1.0 - (value / top).clamp(0.0, 1.0));
        // Writing into a text does not fail.
        let _ = write!(out, "{pen}{} {}", round(x), round(y));
        if pen == 'M' {
            // A value alone is a dot.
            out.push_str("h0");
        }
        pen = 'L';
    }
    out
}

fn round(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

/// The next number above that people like to read: 1, 2 or 5 times a power of ten.
fn nice(most: f64) -> f64 {
    if most <= 0.0 {
        return 1.0;
    }
    let power = 10_f64.powf(most.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0];
    let step = steps.into_iter().find(|step| step * power >= most);
    step.unwrap_or(10.0) * power
}

/// A number in few letters.
pub fn number(value: f64) -> String {
    match value {
        _ if value >= 10_000_000.0 => format!("{:.0}M", value / 1e6),
        _ if value >= 10_000.0 => format!("{:.0}k", value / 1e3),
        _ if value >= 10.0 || value.fract() == 0.0 => format!("{value:.0}"),
        _ if value >= 0.1 => format!("{value:.1}"),
        _ => format!("{value:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_end_in_numbers_that_people_read() {
        for (most, top) in [
            (0.0, 1.0),
            (3.0, 5.0),
            (10.0, 10.0),
            (11.0, 20.0),
            (0.03, 0.05),
        ] {
            assert!((nice(most) - top).abs() < 1e-9, "{most}");
        }
        for (value, said) in [
            (0.0, "0"),
            (0.25, "0.2"),
            (12.4, "12"),
            (45_000.0, "45k"),
            (0.004, "0.004"),
        ] {
            assert_eq!(number(value), said);
        }
    }

    #[test]
    fn a_line_breaks_where_nothing_is_known() {
        let drawn = path(&[Some(0.0), Some(1.0), None, Some(1.0)], 1.0);
        assert_eq!(drawn.matches('M').count(), 2, "{drawn}");
        assert_eq!(drawn.matches('L').count(), 1, "{drawn}");
    }
}
