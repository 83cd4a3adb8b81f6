//! What of a `[[source]]` concerns its effects: order, the source of truth, repeats of what failed.

use std::sync::Arc;

use hapax_ledger::extract::Fields;
use hapax_ledger::field::Field;

use super::order::{self, Ground, OrderConfig, SourceOfTruth};
use super::raw::{RawOrder, RawReconcile};
use super::request;
use super::resolved::{OnDuplicateOfFailed, ReconcileConfig};
use super::settings::on_duplicate_of_failed;
use crate::config::scan::{Scan, Text};
use crate::config::source::field;

/// As written.
pub(in crate::config) struct Ordered<'r> {
    pub(in crate::config) order: Option<&'r RawOrder>,
    pub(in crate::config) reconcile: Option<&'r RawReconcile>,
    /// Is `reconcile` there, right or wrong or not wanted?
    pub(in crate::config) reconcile_is_there: bool,
    pub(in crate::config) on_duplicate_of_failed: Option<&'r Text>,
    /// The source's entity; nothing if that is wrong itself.
    pub(in crate::config) entity: Option<Option<&'r Field>>,
}

/// As resolved.
pub(in crate::config) struct OfSource {
    pub(in crate::config) order: Option<OrderConfig>,
    pub(in crate::config) reconcile: Option<Arc<ReconcileConfig>>,
    pub(in crate::config) on_duplicate_of_failed: OnDuplicateOfFailed,
}

/// Resolves it; nothing if there was an error, which is reported.
pub(in crate::config) fn of_source(scan: &Scan<'_>, raw: &Ordered<'_>) -> Option<OfSource> {
    let ground = raw.entity.map(|entity| Ground {
        entity,
        source_of_truth: match raw.reconcile_is_there {
            true => SourceOfTruth::Named,
            false => SourceOfTruth::None,
        },
    });
    let order = raw.order.map(|raw| order::resolve(scan, raw, ground));
    let reconcile = raw.reconcile.map(|raw| reconcile(scan, raw));
    let on_duplicate_of_failed = on_duplicate_of_failed(scan, raw.on_duplicate_of_failed);
    Some(OfSource {
        order: match order {
            Some(order) => Some(order?),
            None => None,
        },
        reconcile: match reconcile {
            Some(reconcile) => Some(reconcile?),
            None => None,
        },
        on_duplicate_of_failed: on_duplicate_of_failed?,
    })
}

fn reconcile(scan: &Scan<'_>, raw: &RawReconcile) -> Option<Arc<ReconcileConfig>> {
    let headers = request::headers(scan, raw.headers.as_ref());
    let Some(text) = &raw.url else {
        if !raw.meant.contains(&"url") {
            let remedy = "write url = \"https://billing.internal/invoices/{data.object.id}\"";
            scan.error("H0109", &raw.at, "`reconcile` has no `url`", remedy);
        }
        return None;
    };
    let url = request::template(scan, "reconcile", text)?;
    let mut fields = Fields::new();
    let mut slots = Vec::new();
    for name in url.names() {
        let field = field(scan, &text.part(name))?;
        if field.is_header() {
            let wrong = format!("`reconcile` needs `{field}`, and headers are not kept");
            scan.error("H0130", &text.at, wrong, "use a field of the body");
            return None;
        }
        slots.push((name.to_owned(), fields.add(&field)));
    }
    Some(Arc::new(ReconcileConfig {
        url,
        fields,
        slots,
        headers: headers?,
    }))
}
