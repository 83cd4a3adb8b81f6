//! A verdict as somebody at a terminal reads it: the answer, the reasons, and a line per effect.

use serde_json::Value;

use super::answer::text as word;
use super::output;
use super::rows::{Column, members, table_of};
use super::table::Step;

const COLUMNS: [Column; 6] = [
    ("name", "EFFECT"),
    ("key", "KEY"),
    ("state", "STATE"),
    ("repeat", "CLASS"),
    ("would", "WOULD"),
    ("why", "WHY"),
];

const STEPS: [Step; 4] = [
    Step::Shrink("KEY", 12),
    Step::Drop("CLASS"),
    Step::Drop("KEY"),
    Step::Shrink("WHY", 30),
];

/// The verdict as text.
pub(super) fn text(verdict: &Value) -> String {
    let head = [
        format!("verdict   {}", word(&verdict["verdict"])),
        format!("revision  {}", word(&verdict["revision"])),
    ];
    let reasons = members(&verdict["reasons"]).iter();
    let reasons = reasons.map(|reason| format!("  - {}", word(reason)));
    let mut lines: Vec<String> = head.into_iter().chain(reasons).collect();
    let effects = members(&verdict["effects"]);
    if !effects.is_empty() {
        lines.push(String::new());
        lines.push(table_of(&COLUMNS, effects).render(output::width(), &STEPS));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    #[test]
    fn a_verdict_says_what_would_happen_and_why() {
        let verdict = json!({
            "revision": 7, "verdict": "needs_decision", "reasons": ["mail (in_1): nobody can tell."],
            "effects": [{"name": "mail", "key": "in_1", "state": "uncertain", "repeat": "once", "would": "blocked", "why": "w"}],
        });
        assert_eq!(
            super::text(&verdict),
            "\
verdict   needs_decision
revision  7
  - mail (in_1): nobody can tell.

EFFECT  KEY   STATE      CLASS  WOULD    WHY
mail    in_1  uncertain  once   blocked  w"
        );
    }
}
