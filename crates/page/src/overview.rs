//! Overview of all scenarios: metrics of the first flow under each scheme.

use serde::Serialize;

use airpace_run::expect::value;
use airpace_run::manifest::Manifest;
use airpace_run::numbers::{Spread, shown};
use airpace_run::summary::{FlowSummary, RunSummary, Summary};

/// A row per scenario, and a column per scheme.
#[derive(Serialize)]
pub(super) struct Overview {
    schemes: Vec<String>,
    rows: Vec<OverviewRow>,
}

#[derive(Serialize)]
struct OverviewRow {
    scenario: String,
    /// A cell per scheme.
    cells: Vec<Option<Cell>>,
    expectations_met: usize,
    expectations: usize,
}

/// Means over seeds, as texts for the page, in Mbit/s and ms.
#[derive(Serialize)]
struct Cell {
    throughput: String,
    one_way_delay_p95: String,
}

impl Overview {
    /// The overview; `None` for fewer than two scenarios.
    pub(super) fn of(manifest: &Manifest, summary: &Summary) -> Option<Overview> {
        if manifest.scenarios.len() < 2 {
            return None;
        }
        let mut schemes: Vec<String> = Vec::new();
        for run in &summary.runs {
            if !schemes.contains(&run.scheme) {
                schemes.push(run.scheme.clone());
            }
        }
        let rows = manifest.scenarios.iter().map(|scenario| {
            let runs: Vec<&RunSummary> =
                summary.runs.iter().filter(|run| run.scenario == scenario.name).collect();
            let verdicts = summary.expectations.iter().filter(|verdict| verdict.scenario == scenario.name);
            OverviewRow {
                scenario: scenario.name.clone(),
                cells: schemes.iter().map(|scheme| Cell::of(&runs, scheme)).collect(),
                expectations: verdicts.clone().count(),
                expectations_met: verdicts.filter(|verdict| verdict.passed).count(),
            }
        });
        Some(Overview { rows: rows.collect(), schemes })
    }
}

impl Cell {
    fn of(runs: &[&RunSummary], scheme: &str) -> Option<Cell> {
        let flows: Vec<&FlowSummary> =
            runs.iter().filter(|run| run.scheme == scheme).filter_map(|run| run.flows.first()).collect();
        if flows.is_empty() {
            return None;
        }
        let mean = |path: &str| {
            let spread = Spread::of(flows.iter().map(|flow| value(&flow.metrics, path)));
            shown(path).text(spread.map(|spread| spread.mean))
        };
        Some(Cell { throughput: mean("throughput_mbps"), one_way_delay_p95: mean("one_way_delay_ms.p95") })
    }
}
