//! Conditions: plain comparisons run on the extractor, everything else in the full language.

use std::sync::Arc;

use hapax_ledger::condition::Condition;
use hapax_ledger::extract::Fields;
use hapax_ledger::field::Field;

use super::expression::{BadExpression, Expression};
use crate::config::scan::{Scan, Text};

/// A condition that can be asked.
#[derive(Clone, Debug)]
pub enum ConditionConfig {
    /// A plain comparison, as written; it is compiled for each source that asks it.
    Plain(String),
    /// Anything else.
    Full(Arc<Expression>),
}

/// Resolves a condition over the payload.
pub(super) fn over_payload(scan: &Scan<'_>, field: &str, text: &Text) -> Option<ConditionConfig> {
    match Condition::parse(&text.value, &mut Fields::new()) {
        Ok(_) => Some(ConditionConfig::Plain(text.value.clone())),
        Err(_) => full(scan, field, text),
    }
}

/// Resolves a condition over payload and snapshot. One that speaks of the snapshot is never plain: the extractor
/// would look for it in the payload.
pub(super) fn over_snapshot(scan: &Scan<'_>, field: &str, text: &Text) -> Option<ConditionConfig> {
    let mut fields = Fields::new();
    let plain = Condition::parse(&text.value, &mut fields).is_ok();
    let is_snapshot = |field: &Field| {
        let name = field.text();
        name == "snapshot" || name.starts_with("snapshot.")
    };
    match plain && !fields.iter().any(is_snapshot) {
        true => Some(ConditionConfig::Plain(text.value.clone())),
        false => full(scan, field, text),
    }
}

fn full(scan: &Scan<'_>, field: &str, text: &Text) -> Option<ConditionConfig> {
    let bad = match Expression::compile(&text.value) {
        Ok(expression) => return Some(ConditionConfig::Full(Arc::new(expression))),
        Err(bad) => bad,
    };
    let wrong = match &bad {
        // What the parser says quotes the text, and this one came from elsewhere.
        BadExpression::Syntax { column, .. } if !text.is_literal() => {
            format!(
                "`{field}` is not a condition: see character {column} of {}",
                text.shown()
            )
        }
        BadExpression::Function(_) if !text.is_literal() => {
            format!(
                "`{field}` is not a condition: {} calls no known function",
                text.shown()
            )
        }
        bad => format!("`{field}` is not a condition: {bad}"),
    };
    let remedy = match bad {
        BadExpression::Header => {
            "compare the header alone, as in header[\"x-topic\"] == \"orders\""
        }
        BadExpression::Loops | BadExpression::Deep | BadExpression::Long => {
            "make it simpler, or let the receiver decide"
        }
        BadExpression::Syntax { .. } | BadExpression::Function(_) => {
            "write one such as data.object.plan == \"pro\"; `hapax explain H0128` has the language"
        }
    };
    scan.error("H0128", &text.at, wrong, remedy);
    None
}
