//! The story as it happens: one short line each, in colour on a terminal, plain elsewhere and with NO_COLOR.

use anstyle::{AnsiColor, Style};

use super::super::output;
use crate::clock;

/// Who a line is about.
#[derive(Clone, Copy, Debug)]
pub(super) enum Who {
    Provider,
    World,
    Hapax,
    Customer,
    Client,
}

impl Who {
    fn name(self) -> &'static str {
        match self {
            Who::Provider => "provider",
            Who::World => "services",
            Who::Hapax => "hapax",
            Who::Customer => "customer",
            Who::Client => "client",
        }
    }

    fn style(self) -> Style {
        let color = match self {
            Who::Provider => AnsiColor::Cyan,
            Who::World => AnsiColor::Yellow,
            Who::Hapax => AnsiColor::Green,
            Who::Customer => AnsiColor::Magenta,
            Who::Client => AnsiColor::Blue,
        };
        color.on_default()
    }
}

/// Tells a line.
pub(super) fn tell(who: Who, text: &str) {
    let (style, name) = (who.style(), who.name());
    let dim = Style::new().dimmed();
    let time = clock::text(clock::now());
    // Only the time of day: `2026-11-16T10:42:41.123456Z`.
    let time = time.get(11..19).unwrap_or(&time);
    say(&format!(
        "{dim}{time}{dim:#}  {style}{name:8}{style:#}  {text}"
    ));
}

/// A line of its own.
pub(super) fn say(text: &str) {
    // Whoever closed the pipe has seen enough; the demo goes on to its end all the same.
    let _ = output::data(text);
}

/// Something to be seen.
pub(super) fn bold(text: &str) -> String {
    let style = Style::new().bold();
    format!("{style}{text}{style:#}")
}
