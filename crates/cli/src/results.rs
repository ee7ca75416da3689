//! Results as people read them in a terminal: one table per scenario, then what was expected.

use std::io::Write;

use airpace_eval::{Choice, RunSummary, Summary};

use crate::terminal::{Paint, Table};

/// Writes a table per scenario: a row per scheme and flow, means over seeds.
pub fn write_tables(
    choices: &[Choice],
    summary: &Summary,
    out: &mut dyn Write,
    paint: Paint,
) -> anyhow::Result<()> {
    for choice in choices {
        let scenario = &choice.scenario;
        let runs: Vec<_> = summary.runs.iter().filter(|run| run.scenario == scenario.name).collect();
        let about = if scenario.about.is_empty() { String::new() } else { format!(": {}", scenario.about) };
        writeln!(out, "{}{about}", paint.bold(&scenario.name))?;
        table(&runs).write(out, paint)?;
        let seeds = runs.iter().map(|run| run.seed).collect::<std::collections::BTreeSet<_>>().len();
        if seeds > 1 {
            writeln!(out, "Means over {seeds} seeds; ± is the standard deviation over them.")?;
        }
        writeln!(out)?;
    }
    Ok(())
}

/// Writes what was expected and did not come out; what did, unless `is_quiet`, as a count.
pub fn write_verdicts(
    summary: &Summary,
    is_quiet: bool,
    out: &mut dyn Write,
    paint: Paint,
) -> std::io::Result<()> {
    let (met, failed): (Vec<_>, Vec<_>) = summary.expectations.iter().partition(|verdict| verdict.passed);
    for verdict in &failed {
        let measured = verdict.measured.map_or_else(|| "nothing".to_owned(), |value| format!("{value:.4}"));
        writeln!(
            out,
            "{} {}: {} ({} of {} with {} is {measured}, wanted {})",
            paint.bad("not met:"),
            verdict.scenario,
            verdict.say,
            verdict.metric,
            verdict.flow,
            verdict.scheme,
            verdict.wanted
        )?;
    }
    if !is_quiet && !summary.expectations.is_empty() {
        let line = format!("{} of {} expectations met", met.len(), summary.expectations.len());
        writeln!(out, "{}", if failed.is_empty() { paint.good(&line) } else { line })?;
    }
    Ok(())
}

fn table(runs: &[&RunSummary]) -> Table {
    let mut table = Table::new(
        &["scheme", "flow", "Mbit/s", "used", "delay ms", "p95", "queueing p95", "loss", "Jain"],
        2,
    );
    let mut schemes: Vec<&str> = Vec::new();
    for run in runs {
        if !schemes.contains(&run.scheme.as_str()) {
            schemes.push(&run.scheme);
        }
    }
    for scheme in schemes {
        let of_scheme: Vec<_> = runs.iter().filter(|run| run.scheme == scheme).collect();
        for (index, flow) in of_scheme[0].flows.iter().enumerate() {
            let over_seeds = |value: &dyn Fn(&airpace_eval::FlowMetrics) -> Option<f64>| {
                Spread::of(of_scheme.iter().filter_map(|run| value(&run.flows[index].metrics)))
            };
            let own = if flow.scheme == scheme { String::new() } else { format!(" ({})", flow.scheme) };
            table.row(vec![
                scheme.to_owned(),
                format!("{}{own}", flow.flow),
                over_seeds(&|flow| Some(flow.throughput_mbps)).text(2, 1.0, ""),
                over_seeds(&|flow| flow.utilization).mean_text(1, 100.0, " %"),
                over_seeds(&|flow| flow.one_way_delay_ms.mean).mean_text(1, 1.0, ""),
                over_seeds(&|flow| flow.one_way_delay_ms.p95).mean_text(1, 1.0, ""),
                over_seeds(&|flow| flow.queueing_delay_ms.p95).text(1, 1.0, ""),
                over_seeds(&|flow| flow.loss_rate).mean_text(2, 100.0, " %"),
                over_seeds(&|flow| flow.jain).mean_text(3, 1.0, ""),
            ]);
        }
    }
    table
}

/// A number over seeds.
struct Spread {
    count: usize,
    mean: f64,
    deviation: f64,
}

impl Spread {
    fn of(values: impl Iterator<Item = f64>) -> Spread {
        let values: Vec<f64> = values.collect();
        let count = values.len();
        let mean = values.iter().sum::<f64>() / count as f64;
        let squares = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
        Spread { count, mean, deviation: (squares / count.saturating_sub(1).max(1) as f64).sqrt() }
    }

    /// The mean, and the deviation if there is one.
    fn text(&self, decimals: usize, factor: f64, unit: &str) -> String {
        let mean = self.mean_text(decimals, factor, unit);
        if self.count > 1 { format!("{mean} ±{:.decimals$}", self.deviation * factor) } else { mean }
    }

    fn mean_text(&self, decimals: usize, factor: f64, unit: &str) -> String {
        if self.count == 0 { "–".to_owned() } else { format!("{:.decimals$}{unit}", self.mean * factor) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_over_seeds_have_a_mean_and_a_deviation() {
        assert_eq!(Spread::of([1.0, 3.0].into_iter()).text(1, 1.0, ""), "2.0 ±1.4");
        assert_eq!(Spread::of([0.5].into_iter()).text(1, 100.0, " %"), "50.0 %", "one seed has no deviation");
        assert_eq!(Spread::of([].into_iter()).text(1, 1.0, ""), "–", "nothing was measured");
    }
}
