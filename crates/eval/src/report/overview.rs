//! Who wins, scenario by scenario, at one glance: the first flow under each scheme.

use serde::Serialize;

use super::series::significant;
use crate::folder::Manifest;
use crate::summary::{FlowSummary, RunSummary, Summary};

/// Scenarios down, schemes across.
#[derive(Serialize)]
pub(super) struct Overview {
    schemes: Vec<String>,
    rows: Vec<OverviewRow>,
}

#[derive(Serialize)]
struct OverviewRow {
    scenario: String,
    /// Per scheme: mean over seeds of throughput and of the 95th percentile of one-way delay.
    cells: Vec<Option<Cell>>,
    expectations_met: usize,
    expectations: usize,
}

#[derive(Serialize)]
struct Cell {
    throughput_mbps: f64,
    one_way_delay_p95_ms: Option<f64>,
}

impl Overview {
    /// `None` of fewer than two scenarios.
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
        let count = flows.len() as f64;
        let delays: Option<Vec<f64>> = flows.iter().map(|flow| flow.metrics.one_way_delay_ms.p95).collect();
        Some(Cell {
            throughput_mbps: significant(
                flows.iter().map(|flow| flow.metrics.throughput_mbps).sum::<f64>() / count,
            ),
            one_way_delay_p95_ms: delays.map(|delays| significant(delays.iter().sum::<f64>() / count)),
        })
    }
}
