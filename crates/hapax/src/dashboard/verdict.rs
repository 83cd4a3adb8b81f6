//! The verdict panel: what would happen, effect by effect, before somebody lets it happen.

use maud::{Markup, html};
use serde_json::Value;

use super::frame::Looker;
use super::json::Json;
use super::parts::{badge, copyable, form, heads, reason};

/// What can be done to an event: its word in the API, what it is called, and what it means.
const ACTIONS: [(&str, &str, &str); 3] = [
    (
        "retry",
        "Retry",
        "Carries out what is not done. What is done stays done.",
    ),
    (
        "replay",
        "Replay",
        "A new run under the same identity. What is done is skipped, unless you force it by name: then it is sent again under a new key.",
    ),
    (
        "reconcile",
        "Reconcile",
        "Asks the source of truth, keeps its answer as evidence, and sends converging effects again with it.",
    ),
];

/// What somebody has chosen so far.
#[derive(Clone, Debug, Default)]
pub struct Chosen {
    /// The action.
    pub action: String,
    /// Why.
    pub reason: String,
    /// Effects that are forced.
    pub force: Vec<String>,
    /// Was this a dry run?
    pub dry: bool,
}

impl Chosen {
    /// The word of a known action.
    pub fn word(&self) -> &'static str {
        known(&self.action).0
    }
}

fn known(word: &str) -> (&'static str, &'static str, &'static str) {
    let found = ACTIONS.into_iter().find(|(known, _, _)| *known == word);
    found.unwrap_or(ACTIONS[0])
}

/// The panel for an event.
pub fn panel(looker: &Looker, event: &str, chosen: &Chosen, verdict: &Value) -> Markup {
    let (word, name, means) = known(&chosen.action);
    let kind = verdict.text("verdict");
    html! {
        section class={ "card verdict " (kind) } id="verdict" aria-labelledby="verdict-title" {
            h2 id="verdict-title" { "What would happen" }
            nav class="tabs" aria-label="Actions" {
                @for (other, title, _) in ACTIONS {
                    a href={ "/events/" (event) "?action=" (other) "#verdict" } aria-current=[(other == word).then_some("true")] {
                        (title)
                    }
                }
            }
            p class="dim" { (means) }
            @if chosen.dry {
                p class="note good" role="status" { "Dry run: this is what would have happened. Nothing was changed." }
            }
            p class="says" { (says(kind)) " " (badge(kind)) }
            @if !verdict.list("reasons").is_empty() {
                ul { @for why in verdict.list("reasons") { li { (why.as_str().unwrap_or_default()) } } }
            }
            (effects(verdict))
            @if looker.acts() { (act(looker, event, chosen, verdict, word, name)) }
            @else { p class="dim" { "Your token may look, not act: an operator's may." } }
        }
    }
}

fn says(kind: &str) -> &'static str {
    match kind {
        "nothing_to_do" => "There is nothing to do: every effect is done.",
        "safe" => {
            "This is safe: only what is missing is sent, and what is sent again does no harm."
        }
        _ => "Somebody has to decide something first.",
    }
}

fn effects(verdict: &Value) -> Markup {
    let effects = verdict.list("effects");
    if effects.is_empty() {
        return html! { p class="dim" { "The event calls for no effect." } };
    }
    html! {
        div class="scroll" tabindex="0" { table {
            (heads(&["Effect", "State", "Would", "Why"]))
            tbody { @for effect in effects { tr {
                td { strong { (effect.text("name")) } span class="sub" { (copyable(effect.text("key"))) } }
                td { (badge(effect.text("state"))) span class="sub" { (effect.text("repeat")) } }
                td { (badge(effect.text("would"))) }
                td { (effect.text("why")) }
            } } }
        } }
    }
}

fn act(
    looker: &Looker,
    event: &str,
    chosen: &Chosen,
    verdict: &Value,
    word: &str,
    name: &str,
) -> Markup {
    let done = verdict
        .list("effects")
        .iter()
        .filter(|effect| effect.text("state") != "pending");
    let fields = html! {
        input type="hidden" name="action" value=(word);
        input type="hidden" name="revision" value=(verdict.number("revision"));
        @if word == "replay" {
            fieldset {
                legend { "Send again by force" }
                @for effect in done {
                    @let name = effect.text("name");
                    label class="check" {
                        input type="checkbox" name="force" value=(name) checked[chosen.force.iter().any(|one| one == name)];
                        span { (name) " " span class="dim" { "(" (effect.text("state")) ", " (effect.text("repeat")) ")" } }
                    }
                }
            }
        }
        (reason("verdict-reason", &chosen.reason))
        div class="buttons" {
            button type="submit" name="do" value="preview" { "Dry run" }
            button class="main" type="submit" name="do" value="act" { (name) " now" }
        }
        p class="dim small" {
            "It counts only if nothing has moved since revision " (verdict.number("revision")) "; otherwise you are shown what changed."
        }
    };
    form(looker, &format!("/events/{event}/act"), &fields)
}
