//! Results for the user on a terminal: one table per scenario, then the expectations.

use std::collections::BTreeSet;
use std::io::Write;

use airpace_path::trace::Start;
use airpace_run::comparison;
use airpace_run::numbers::{SHARE_OF_ORACLE, Shown, Spread, is_zero, shown};
use airpace_run::summary::{by_scheme, is_under_test};
use airpace_run::transfers::{self, COLUMNS as COLUMNS_OF_TRANSFERS};
use airpace_run::videos;
use airpace_run::{Choice, Outcome, RunSummary, Summary, metric};
use airpace_sim::Scenario;

use crate::terminal::{Paint, Table, columns, count, fit, hang};

/// Metric: utilization of the path's capacity. In scenarios that also ran the Oracle, the column shows the throughput
/// relative to the Oracle instead.
const UTILIZATION: &str = "utilization";

/// Heading of the throughput relative to the Oracle.
const OF_ORACLE: &str = "oracle %";

/// Columns of numbers: heading, metric, and whether the standard deviation over seeds is shown next to the mean.
const COLUMNS: [(&str, &str, bool); 7] = [
    ("Mbit/s", "throughput_mbps", true),
    ("used %", UTILIZATION, false),
    ("delay ms", "one_way_delay_ms.mean", false),
    ("p95", "one_way_delay_ms.p95", false),
    ("queueing p95", "queueing_delay_ms.p95", true),
    ("loss %", "loss_rate", false),
    ("Jain", "jain", false),
];

/// Writes one table per scenario: one row per scheme and flow, with means over seeds.
pub fn write_tables(
    choices: &[Choice],
    outcome: &Outcome,
    out: &mut dyn Write,
    paint: Paint,
) -> anyhow::Result<()> {
    let Outcome { summary, manifest, .. } = outcome;
    for choice in choices {
        let scenario = &choice.scenario;
        let runs: Vec<_> = summary.runs.iter().filter(|run| run.scenario == scenario.name).collect();
        let about = if scenario.about.is_empty() { String::new() } else { format!(": {}", scenario.about) };
        let title = fit(&format!("{}{about}", scenario.name));
        writeln!(out, "{}", title.replacen(&scenario.name, &paint.bold(&scenario.name), 1))?;
        table(&runs).write(out, paint)?;
        let seeds = runs.iter().map(|run| run.seed).collect::<BTreeSet<_>>().len();
        if seeds > 1 {
            writeln!(out, "{}", fit(&note_on_seeds(&runs, seeds, scenario)))?;
        }
        if let Some(note) = note_on_sharing(&runs) {
            writeln!(out, "{}", fit(&note))?;
        }
        let replays =
            manifest.scenarios.iter().filter(|it| it.name == scenario.name).flat_map(|it| &it.replays);
        for replay in replays {
            writeln!(out, "{}", fit(replay))?;
        }
        if let Some(transfers) = transfer_table(&runs) {
            writeln!(out)?;
            transfers.write(out, paint)?;
            let note = "Transfers of all seeds together: seconds from the beginning until the last byte arrived; \
                        start-up: until the client could show something.";
            writeln!(out, "{}", fit(note))?;
        }
        if let Some(videos) = video_table(&runs) {
            writeln!(out)?;
            videos.write(out, paint)?;
            let note = "Video: start-up, stalls and score of the viewer; Mbit/s of the chosen representations, and of the \
                        server while it sends. The score is 1 (bad) to 5 (excellent).";
            writeln!(out, "{}", fit(note))?;
        }
        for sentence in comparison::sentences(&runs) {
            writeln!(out, "{}", fit(&sentence))?;
        }
        writeln!(out)?;
    }
    Ok(())
}

/// Whether any deviation over the seeds of one scheme's runs is shown as more than zero.
fn seeds_matter(of_scheme: &[&RunSummary]) -> bool {
    let flows = 0..of_scheme[0].flows.len();
    let mut columns = flows.flat_map(|index| COLUMNS.iter().map(move |column| (index, column)));
    columns.any(|(index, (_, path, has_deviation))| {
        let values = of_scheme.iter().map(|run| metric(&run.flows[index].metrics, path));
        let deviation = Spread::of(values).and_then(|spread| spread.deviation);
        *has_deviation && deviation.is_some_and(|deviation| !is_zero(&shown(path).text(Some(deviation))))
    })
}

/// Note on the period in which flows shared the path: Jain's index refers to this period, a flow's throughput to its
/// own duration. `None` if no flows shared the path.
fn note_on_sharing(runs: &[&RunSummary]) -> Option<String> {
    let seconds: BTreeSet<u64> = runs.first()?.jain.iter().map(|window| window.time_s as u64).collect();
    let (first, last) = (seconds.first()?, seconds.last()?);
    Some(format!(
        "Jain: mean over the {} s, from {first} to {} s, in which flows that want an equal share send together.",
        seconds.len(),
        last + 1
    ))
}

/// Note on the meaning of numbers over seeds, and on the schemes whose numbers are the same for every seed.
fn note_on_seeds(runs: &[&RunSummary], seeds: usize, scenario: &Scenario) -> String {
    let schemes = by_scheme(runs);
    let same: Vec<&str> =
        schemes.iter().filter(|(_, of_scheme)| !seeds_matter(of_scheme)).map(|(scheme, _)| *scheme).collect();
    let mut note = match same.len() == schemes.len() {
        true => format!("The {seeds} seeds change nothing here: no digit differs."),
        false => {
            format!("Means over {seeds} seeds; ± is the standard deviation over them, where digits differ.")
        }
    };
    if !same.is_empty() && same.len() < schemes.len() {
        note += &format!(" Seeds change nothing for {}.", same.join(", "));
    }
    let starts = scenario.trace.as_ref().map(|trace| trace.link.start_s);
    if !same.is_empty() && starts.is_some_and(|start| start != Start::Random) {
        note += " `--set trace.link.start_s=random` starts each seed at another place of the trace.";
    }
    note
}

/// The table of transfers; `None` if no flow has transfers.
fn transfer_table(runs: &[&RunSummary]) -> Option<Table> {
    let heads: Vec<&str> = ["scheme", "flow", "arrived"]
        .into_iter()
        .chain(COLUMNS_OF_TRANSFERS.iter().map(|(head, _)| *head))
        .collect();
    let rows = transfers::rows(runs);
    let mut table = Table::new(&heads, 2);
    for row in &rows {
        let own = row.own_scheme.as_ref().map_or_else(String::new, |scheme| format!(" ({scheme})"));
        let cells = [row.scheme.clone(), format!("{}{own}", row.flow), row.complete_text()];
        table.row(cells.into_iter().chain(row.texts()).collect());
    }
    (!rows.is_empty()).then_some(table)
}

/// The table of adaptive videos; `None` if no flow has one.
fn video_table(runs: &[&RunSummary]) -> Option<Table> {
    let heads: Vec<&str> =
        ["scheme", "flow"].into_iter().chain(videos::COLUMNS.iter().map(|(head, ..)| *head)).collect();
    let mut table = Table::new(&heads, 2);
    let rows = videos::rows(runs);
    for row in &rows {
        let own = row.own_scheme.as_ref().map_or_else(String::new, |scheme| format!(" ({scheme})"));
        let cells = [row.scheme.clone(), format!("{}{own}", row.flow)];
        table.row(cells.into_iter().chain(row.texts.iter().cloned()).collect());
    }
    (!rows.is_empty()).then_some(table)
}

/// Writes the failed expectations and, unless `is_quiet`, the number of met expectations.
pub fn write_verdicts(
    summary: &Summary,
    is_quiet: bool,
    out: &mut dyn Write,
    paint: Paint,
) -> std::io::Result<()> {
    const NOT_MET: &str = "not met:";
    let (met, failed): (Vec<_>, Vec<_>) = summary.expectations.iter().partition(|verdict| verdict.passed);
    for verdict in &failed {
        let line = format!(
            "{}: {} ({} of {} with {} is {}, wanted {})",
            verdict.scenario,
            verdict.say,
            verdict.metric,
            verdict.flow,
            verdict.scheme,
            verdict.measured_text(),
            verdict.wanted
        );
        let line = hang(&format!("{NOT_MET} "), &line, 2, columns());
        writeln!(out, "{}", line.replacen(NOT_MET, &paint.bad(NOT_MET), 1))?;
    }
    if !is_quiet && !summary.expectations.is_empty() {
        let line =
            format!("{} of {} met", met.len(), count(summary.expectations.len() as u64, "expectation"));
        writeln!(out, "{}", if failed.is_empty() { paint.good(&line) } else { line })?;
    }
    Ok(())
}

/// One row per scheme and flow. The flows of the schemes under test come first, then their rivals.
fn table(runs: &[&RunSummary]) -> Table {
    let has_oracle = runs.iter().any(|run| comparison::is_oracle(&run.scheme));
    let columns =
        COLUMNS.map(|(head, path, _)| if path == UTILIZATION && has_oracle { OF_ORACLE } else { head });
    let heads: Vec<&str> = ["scheme", "flow"].into_iter().chain(columns).collect();
    let mut table = Table::new(&heads, 2);
    let (mut under_test, mut rivals) = (Vec::new(), Vec::new());
    for (scheme, of_scheme) in by_scheme(runs) {
        for (index, flow) in of_scheme[0].flows.iter().enumerate() {
            let is_under_test = is_under_test(runs, index);
            let own = if is_under_test { String::new() } else { format!(" ({})", flow.scheme) };
            let numbers = COLUMNS.map(|(_, path, has_deviation)| {
                if path == UTILIZATION && has_oracle {
                    // The throughput that the Oracle left to a rival is no reference for the rival.
                    let share = is_under_test.then(|| comparison::share_of_oracle(&of_scheme, runs, index));
                    return over_seeds_text(share.flatten(), shown(SHARE_OF_ORACLE), false);
                }
                let over_seeds =
                    Spread::of(of_scheme.iter().map(|run| metric(&run.flows[index].metrics, path)));
                over_seeds_text(over_seeds, shown(path), has_deviation)
            });
            let row = [scheme.to_owned(), format!("{}{own}", flow.flow)].into_iter().chain(numbers).collect();
            if is_under_test { under_test.push(row) } else { rivals.push(row) }
        }
    }
    under_test.into_iter().chain(rivals).for_each(|row| table.row(row));
    table
}

/// The mean, and the deviation if it is requested, exists and is not zero in the displayed digits.
fn over_seeds_text(spread: Option<Spread>, shown: &Shown, has_deviation: bool) -> String {
    let mean = shown.text(spread.map(|spread| spread.mean));
    let deviation = spread.and_then(|spread| spread.deviation).map(|deviation| shown.text(Some(deviation)));
    match deviation.filter(|deviation| has_deviation && !is_zero(deviation)) {
        Some(deviation) => format!("{mean} ±{deviation}"),
        None => mean,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_over_seeds_have_a_mean_and_a_deviation() {
        let delay = shown("queueing_delay_ms.p95");
        let text = |values: &[f64], has_deviation| {
            over_seeds_text(Spread::of(values.iter().copied().map(Some)), delay, has_deviation)
        };
        assert_eq!(text(&[1.0, 3.0], true), "2.0 ±1.4");
        assert_eq!(text(&[1.0, 3.0], false), "2.0");
        assert_eq!(text(&[1.0, 1.0], true), "1.0", "no digit differs");
        assert_eq!(text(&[0.5], true), "0.5", "one seed has no deviation");
        assert_eq!(text(&[], true), "–", "nothing was measured");
    }

    /// A run of two flows. The second has a long name and a scheme with a long name.
    fn run(scheme: &str, seed: u64) -> RunSummary {
        let flow = |flow: &str, scheme: &str, index: u16| {
            serde_json::json!({
                "flow": flow, "index": index, "device": index, "scheme": scheme, "greedy": true,
            })
        };
        let mut flows =
            vec![flow("phone", scheme, 0), flow("another phone in the cell", "cbr:rate_mbps=60", 1)];
        for (at, flow) in flows.iter_mut().enumerate() {
            let mut metrics = airpace_run::FlowMetrics {
                throughput_mbps: 44.604_999 + seed as f64,
                utilization: Some(0.978),
                loss_rate: Some(0.000_031),
                jain: (at == 1).then_some(0.999_84),
                ..airpace_run::FlowMetrics::default()
            };
            metrics.one_way_delay_ms.mean = Some(1_041.25);
            metrics.one_way_delay_ms.p95 = Some(2_187.96);
            metrics.queueing_delay_ms.p95 = Some(1_017.5 + 9.0 * seed as f64);
            let metrics = serde_json::to_value(metrics).unwrap();
            flow.as_object_mut().unwrap().extend(metrics.as_object().unwrap().clone());
        }
        serde_json::from_value(serde_json::json!({
            "scenario": "competitor", "scheme": scheme, "seed": seed, "duration_s": 40.0, "flows": flows,
            "jain": [], "jain_prbs": [], "carriers": [],
        }))
        .unwrap()
    }

    #[test]
    fn the_headline_table_fits_80_columns_and_40_also_with_seeds_and_long_names() {
        let runs: Vec<RunSummary> = ["pbe", "pbe@paper:floor=off"]
            .into_iter()
            .flat_map(|name| [run(name, 1), run(name, 2)])
            .collect();
        let (one, all) = (vec![&runs[0], &runs[2]], runs.iter().collect::<Vec<_>>());
        let shown = [(&one, 120), (&one, 80), (&all, 80), (&all, 40)].map(|(runs, columns)| {
            let text = table(runs).text(columns);
            let widest = text.lines().map(crate::terminal::columns_of).max().unwrap();
            assert!(widest <= columns, "{widest} columns on a terminal of {columns}:\n{text}");
            format!("{columns} columns, {} runs:\n{text}", runs.len())
        });
        insta::assert_snapshot!(shown.join("\n\n"));
    }
}
