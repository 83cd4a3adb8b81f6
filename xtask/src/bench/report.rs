//! The results of a run: a table for people, JSON for the next run.

use std::fs;
use std::path::PathBuf;

use anyhow::Context;
use comfy_table::{CellAlignment, Table, presets};
use serde::{Deserialize, Serialize};

use super::Load;
use super::row::Row;
use crate::{clock, workspace};

/// What a run measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Report {
    bench: String,
    taken_at_unix_seconds: u64,
    cores: usize,
    load: Load,
    rows: Vec<Row>,
}

const HEADER: [&str; 10] = [
    "row",
    "per s",
    "of ceiling",
    "p50",
    "p99",
    "max",
    "CPU/req",
    "RSS",
    "spread",
    "was",
];

impl Report {
    /// The results of `bench` under this load, taken now.
    pub(super) fn new(bench: String, load: Load, rows: Vec<Row>) -> Report {
        Report {
            bench,
            taken_at_unix_seconds: clock::unix_seconds(),
            cores: std::thread::available_parallelism().map_or(0, usize::from),
            load,
            rows,
        }
    }

    /// The results of the previous run, if they are there and were taken under the same load.
    pub(super) fn previous(&self) -> Option<Report> {
        let text = fs::read_to_string(self.path()).ok()?;
        let previous: Report = serde_json::from_str(&text).ok()?;
        let comparable = previous.load == self.load && previous.cores == self.cores;
        comparable.then_some(previous)
    }

    /// Writes the results where the next run looks for them.
    pub(super) fn keep(&self) -> anyhow::Result<PathBuf> {
        let path = self.path();
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).context("could not create the folder for results")?;
        }
        let text = serde_json::to_string_pretty(self)?;
        fs::write(&path, text).with_context(|| format!("could not write {}", path.display()))?;
        Ok(path)
    }

    /// The table, with ratios to the row called `ceiling` and changes against `previous`.
    pub(super) fn table(&self, ceiling: &str, previous: Option<&Report>) -> String {
        let ceiling = self.row(ceiling);
        let mut table = Table::new();
        table.load_style(presets::ASCII_MARKDOWN);
        table.set_header(HEADER);
        for row in &self.rows {
            let before = previous.and_then(|report| report.row(&row.name));
            table.add_row(cells(row, ceiling, before.map(Row::rate)));
        }
        for column in table.column_iter_mut().skip(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        table.to_string()
    }

    /// A line for every row in which not every request was answered with 2xx.
    pub(super) fn troubles(&self) -> Vec<String> {
        let line = |row: &Row| {
            let troubles = row.troubles();
            let listed = troubles
                .iter()
                .map(|(what, count)| format!("{count} x {what}"));
            let listed: Vec<_> = listed.collect();
            (!listed.is_empty()).then(|| format!("{}: {}", row.name, listed.join(", ")))
        };
        self.rows.iter().filter_map(line).collect()
    }

    fn row(&self, name: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.name == name)
    }

    fn path(&self) -> PathBuf {
        let file = format!("{}.json", self.bench);
        workspace::target().join("bench").join(file)
    }
}

fn cells(row: &Row, ceiling: Option<&Row>, before: Option<f64>) -> Vec<String> {
    let absent = || "-".to_owned();
    let median = row.median();
    let latency = |pick: fn(&crate::load::Round) -> u64| {
        median.map_or_else(absent, |measured| time(pick(&measured.round)))
    };
    let cpu = median.and_then(|measured| measured.cpu_us_per_answer());
    let rss = median.and_then(|measured| measured.rss_kib);
    vec![
        row.name.clone(),
        format!("{:.0}", row.rate()),
        ceiling
            .and_then(|ceiling| row.share_of(ceiling))
            .map_or_else(absent, |share| format!("{share:.2}")),
        latency(|round| round.p50_us),
        latency(|round| round.p99_us),
        latency(|round| round.max_us),
        cpu.map_or_else(absent, |cpu| format!("{cpu:.1} µs")),
        rss.map_or_else(absent, |rss| format!("{} MiB", rss / 1024)),
        row.spread()
            .map_or_else(absent, |spread| format!("{:.0} %", spread * 100.0)),
        match (before, ratio(row.rate(), before)) {
            (Some(before), Some(ratio)) => format!("{before:.0} ({:+.0} %)", (ratio - 1.0) * 100.0),
            _ => absent(),
        },
    ]
}

fn ratio(rate: f64, base: Option<f64>) -> Option<f64> {
    base.filter(|base| *base > 0.0).map(|base| rate / base)
}

/// A time as people read it.
pub(super) fn time(us: u64) -> String {
    match us {
        0..1_000 => format!("{us} µs"),
        1_000..1_000_000 => format!("{:.1} ms", us as f64 / 1e3),
        _ => format!("{:.2} s", us as f64 / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::super::row::tests::row;
    use super::*;

    #[test]
    fn a_row_is_shown_beside_its_ceiling_and_its_past() {
        let ceiling = row("ceiling", &[1000, 1000, 900]);
        let cells = cells(
            &row("intake", &[500, 510, 400]),
            Some(&ceiling),
            Some(400.0),
        );
        let expected = [
            "intake",
            "500",
            "0.50",
            "90 µs",
            "1.5 ms",
            "12.0 ms",
            "1000.0 µs",
            "2 MiB",
            "22 %",
            "400 (+25 %)",
        ];
        assert_eq!(cells, expected);
    }

    #[test]
    fn what_is_unknown_is_a_dash() {
        let cells = cells(&row("intake", &[]), None, None);
        assert_eq!(cells[2..], ["-"; 8]);
    }

    #[test]
    fn a_report_survives_its_file() {
        let load = Load {
            connections: 1,
            threads: 1,
            rounds: 2,
            round_ms: 1000,
            warmup_ms: 0,
            body_bytes: 1024,
            fill: 0,
            no_postgres: true,
        };
        let report = Report::new("x".to_owned(), load, vec![row("a", &[1, 2])]);
        let text = serde_json::to_string(&report).expect("numbers and text");
        let again: Report = serde_json::from_str(&text).expect("what was written");
        assert_eq!(again.row("a").map(Row::rate), Some(1.0));
        let table = again.table("a", Some(&report));
        assert!(table.contains("1.00") && table.contains("+0 %"), "{table}");
    }
}
