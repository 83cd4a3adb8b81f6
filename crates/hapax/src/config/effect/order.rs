//! Order: what a table of it means, and whether it can be kept.

use std::sync::Arc;

use hapax_ledger::condition::Condition;
use hapax_ledger::extract::Fields;
use hapax_ledger::field::Field;
use hapax_ledger::glob::Glob;
use hapax_ledger::order::{OrderRule, Sequence};

use super::condition::{self, ConditionConfig};
use super::expression::Expression;
use super::raw::RawOrder;
use crate::config::scan::{At, Scan};
use crate::config::source::field;
use crate::config::table::Texts;

/// The order that a source or an effect declares.
#[derive(Clone, Debug)]
pub struct OrderConfig {
    /// How attempts of one entity follow each other.
    pub sequence: SequenceConfig,
    /// Types after which other types of the entity need review.
    pub terminal: Vec<Glob>,
    /// Types that open an ended entity again.
    pub reopen: Vec<Glob>,
    /// Fetch the current state before the first attempt and send it along.
    pub snapshot: bool,
    /// Asks for a person where it holds.
    pub review: Option<ConditionConfig>,
}

/// How attempts of one entity follow each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SequenceConfig {
    /// They do not.
    Free,
    /// One at a time, in the order of acceptance.
    Serial,
    /// Serial, and what is older by this field than the newest started is stale.
    Versioned(Field),
}

/// What an order needs of its source.
#[derive(Clone, Copy)]
pub(super) struct Ground<'s> {
    /// Its business object, if it names one.
    pub(super) entity: Option<&'s Field>,
    /// Where to ask for the current state.
    pub(super) source_of_truth: SourceOfTruth,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum SourceOfTruth {
    Named,
    None,
}

/// Resolves a table of order; nothing if there was an error, which is reported. Without ground, because the source is
/// wrong itself, only the table is judged.
pub(super) fn resolve(
    scan: &Scan<'_>,
    raw: &RawOrder,
    ground: Option<Ground<'_>>,
) -> Option<OrderConfig> {
    let sequence = match (&raw.version, raw.serial) {
        (Some(version), _) => field(scan, version).map(SequenceConfig::Versioned),
        (None, Some(true)) => Some(SequenceConfig::Serial),
        (None, None | Some(false)) => Some(SequenceConfig::Free),
    };
    // An empty condition is none, as an empty list is.
    let review = raw.review.as_ref().filter(|text| !text.value.is_empty());
    let review = review.map(|text| condition::over_snapshot(scan, "review", text));
    let terminal = globs(raw.terminal.as_ref());
    let reopen = globs(raw.reopen.as_ref());
    let order = OrderConfig {
        sequence: sequence?,
        terminal: terminal?,
        reopen: reopen?,
        snapshot: raw.snapshot.unwrap_or(false),
        review: match review {
            Some(review) => Some(review?),
            None => None,
        },
    };
    let problems = problems(raw, &order, ground);
    for (at, wrong, remedy) in &problems {
        scan.error("H0133", at, *wrong, *remedy);
    }
    problems.is_empty().then_some(order)
}

type Wrong = (At, &'static str, &'static str);

fn problems(raw: &RawOrder, order: &OrderConfig, ground: Option<Ground<'_>>) -> Vec<Wrong> {
    let mut problems: Vec<Wrong> = Vec::new();
    let mut wrong = |wrong, remedy| problems.push((raw.at.clone(), wrong, remedy));
    let is_free = order.sequence == SequenceConfig::Free && order.terminal.is_empty();
    let is_empty = is_free && !order.snapshot && order.review.is_none();
    if is_empty && !raw.misread {
        wrong(
            "this order declares nothing",
            "write serial = true or another rule, or remove it",
        );
    }
    if raw.version.is_some() && raw.serial == Some(false) {
        wrong(
            "`version` implies `serial`, and `serial` is false",
            "remove `serial = false`, or `version`",
        );
    }
    if order.terminal.is_empty() && !order.reopen.is_empty() {
        wrong(
            "`reopen` has no meaning without `terminal`",
            "say with `terminal` which types end an entity",
        );
    }
    let asks_snapshot = order
        .full_review()
        .is_some_and(|full| full.mentions_snapshot());
    if asks_snapshot && !order.snapshot {
        wrong(
            "`review` speaks of the snapshot, and none is taken",
            "set snapshot = true",
        );
    }
    if ground.is_some_and(|ground| ground.entity.is_none()) {
        wrong(
            "order is about an entity, and the source names none",
            "set `entity` on the [[source]], such as entity = \"data.object.id\"",
        );
    }
    let no_truth = ground.is_some_and(|ground| ground.source_of_truth == SourceOfTruth::None);
    if order.snapshot && no_truth {
        wrong(
            "`snapshot` asks for the current state, and the source does not say where",
            "set reconcile = { url = \"https://...\" } on the [[source]]",
        );
    }
    problems
}

fn globs(texts: Option<&Texts>) -> Option<Vec<Glob>> {
    let found = texts.map_or(&[][..], |texts| &texts.found);
    let globs = found.iter().map(|text| Glob::new(text.value.as_str()));
    texts
        .is_none_or(|texts| texts.complete)
        .then(|| globs.collect())
}

impl OrderConfig {
    /// The field that it compares, if it does.
    pub fn version(&self) -> Option<&Field> {
        match &self.sequence {
            SequenceConfig::Versioned(field) => Some(field),
            SequenceConfig::Free | SequenceConfig::Serial => None,
        }
    }

    /// The review condition, if it is one of the full language.
    pub(super) fn full_review(&self) -> Option<&Arc<Expression>> {
        match &self.review {
            Some(ConditionConfig::Full(expression)) => Some(expression),
            Some(ConditionConfig::Plain(_)) | None => None,
        }
    }

    /// The rule, over the fields of a source.
    pub(super) fn rule(&self, entity: &Field, fields: &mut Fields) -> OrderRule {
        OrderRule {
            entity: fields.add(entity),
            sequence: match &self.sequence {
                SequenceConfig::Free => Sequence::Free,
                SequenceConfig::Serial => Sequence::Serial,
                SequenceConfig::Versioned(version) => Sequence::Versioned(fields.add(version)),
            },
            terminal: self.terminal.clone(),
            reopen: self.reopen.clone(),
            snapshot: self.snapshot,
            review: match &self.review {
                // It was parsed before, so that it parses now.
                Some(ConditionConfig::Plain(text)) => Condition::parse(text, fields).ok(),
                Some(ConditionConfig::Full(_)) | None => None,
            },
        }
    }
}
