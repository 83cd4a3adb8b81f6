//! `providers.md`: the presets, as they are data.

use hapax_verify::provider::{self, Provider};

use super::{cell, check};

#[test]
fn presets_are_described_as_they_are() {
    let mut page = format!(
        "# Providers\n\nMade by `cargo xt reference` from the presets' own data. {} presets. *Identity* is what tells two events apart unless \
         a source has a `key`; an id that the signature does not cover is evidence and not identity. *Window* is how long the same event \
         may come again. Facts that nobody confirmed are listed as *from memory*.\n\n\
         | `provider` | title | scheme | identity | window | secret | from memory | note |\n|---|---|---|---|---|---|---|---|\n",
        provider::all().len()
    );
    let mut rows: Vec<String> = provider::all().iter().map(row).collect();
    rows.sort();
    page.extend(rows);
    check("providers.md", &page);
}

fn row(provider: &Provider) -> String {
    let hours = provider.retry_window_hours;
    let window = match hours % 24 {
        0 => format!("{} d", hours / 24),
        _ => format!("{hours} h"),
    };
    let note = provider.note.as_deref().unwrap_or_default();
    format!(
        "| `{}` | {} | {} | {} | {window} | {} | {} | {} |\n",
        provider.name,
        cell(&provider.title),
        provider.scheme().name(),
        identity(provider),
        cell(&provider.secret_hint),
        provider.from_memory.join(", "),
        cell(note),
    )
}

/// What identifies an event.
fn identity(provider: &Provider) -> String {
    let composed: Vec<&str> = provider
        .composed_key
        .iter()
        .map(|field| field.as_str())
        .collect();
    match &provider.event_id {
        Some(id) if id.signed => format!("`{}`", id.field),
        Some(id) if composed.is_empty() && !provider.body_varies => {
            format!("the body; `{}` is not signed", id.field)
        }
        _ if !composed.is_empty() => format!("`{}`", composed.join("`, `")),
        _ if provider.body_varies => "none: needs a `key`".to_owned(),
        _ => "the body".to_owned(),
    }
}
