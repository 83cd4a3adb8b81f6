//! `metrics.md`: metrics as they are registered. A server shows only those that something has happened for; what it shows is in the page.

use super::{cell, check};
use crate::support::site::Site;

/// Where they are registered.
const SOURCES: [&str; 3] = [
    include_str!("../../../src/metrics.rs"),
    include_str!("../../../src/metrics/effects.rs"),
    include_str!("../../../src/metrics/guards.rs"),
];

/// One metric.
struct Metric {
    name: String,
    kind: &'static str,
    labels: Vec<String>,
    help: String,
}

#[test]
fn metrics_are_described_as_they_are() {
    let mut page = "# Metrics\n\nMade by `cargo xt reference` from what the program registers for `GET /metrics` (Prometheus text). Those \
                    with labels appear when something has happened.\n\n| metric | type | labels | meaning |\n|---|---|---|---|\n"
        .to_owned();
    let mut metrics: Vec<Metric> = SOURCES.into_iter().flat_map(registered).collect();
    metrics.sort_by(|one, other| one.name.cmp(&other.name));
    for Metric {
        name,
        kind,
        labels,
        help,
    } in &metrics
    {
        let labels: Vec<String> = labels.iter().map(|label| format!("`{label}`")).collect();
        let labels = labels.join(", ");
        page.push_str(&format!(
            "| `{name}` | {kind} | {labels} | {} |\n",
            cell(help)
        ));
    }
    check("metrics.md", &page);

    let server = Site::sqlite().start();
    let answer = server.get("/metrics");
    let text = String::from_utf8_lossy(answer.body()).into_owned();
    let shown: Vec<(&str, &str)> = text
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '))
        .collect();
    assert!(shown.len() > 10, "{text}");
    for (name, kind) in shown {
        let name = match kind {
            "counter" => format!("{name}_total"),
            _ => name.to_owned(),
        };
        let known = metrics
            .iter()
            .any(|metric| metric.name == name && metric.kind == kind);
        assert!(known, "{name} ({kind}) is not in the page");
    }
}

/// The metrics that a file registers.
fn registered(source: &str) -> Vec<Metric> {
    let calls = source.split("registry.register(").skip(1);
    let metrics = calls.filter_map(|call| {
        let mut quoted = call.split('"');
        let (name, help) = (quoted.nth(1)?, quoted.nth(1)?);
        let field = call.split("self.").nth(1)?.split('.').next()?;
        let (kind, labels) = declared(source, field);
        let name = match kind {
            "counter" => format!("hapax_{name}_total"),
            _ => format!("hapax_{name}"),
        };
        Some(Metric {
            name,
            kind,
            labels,
            help: help.to_owned(),
        })
    });
    metrics.collect()
}

/// What a field is declared as: its kind, and the labels of its family.
fn declared(source: &str, field: &str) -> (&'static str, Vec<String>) {
    let start = format!("{field}: ");
    let lines = source
        .lines()
        .map(|line| line.trim().trim_start_matches("pub "));
    let mut types: Vec<&str> = lines.filter_map(|line| line.strip_prefix(&start)).collect();
    // A family says more than one of its members.
    types.sort_by_key(|kind| !kind.starts_with("Family<"));
    let declared = types
        .first()
        .unwrap_or_else(|| panic!("{field} is declared"));
    let kinds = [
        ("Counter", "counter"),
        ("Gauge", "gauge"),
        ("Histogram", "histogram"),
    ];
    let kind = kinds.iter().find(|(name, _)| declared.contains(name));
    let (_, kind) = kind.unwrap_or_else(|| panic!("{field}: {declared} is a metric"));
    let labels = declared
        .strip_prefix("Family<")
        .and_then(|rest| rest.split(',').next());
    (
        kind,
        labels.map_or(Vec::new(), |labels| fields(source, labels)),
    )
}

/// The fields of a struct.
fn fields(source: &str, name: &str) -> Vec<String> {
    let start = format!("struct {name} {{");
    let body = source
        .split(&start)
        .nth(1)
        .unwrap_or_else(|| panic!("{name} is a struct"));
    let body = body.split('}').next().unwrap_or_default();
    let fields = body.lines().filter_map(|line| line.trim().split_once(':'));
    fields.map(|(field, _)| field.to_owned()).collect()
}
