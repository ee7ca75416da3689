//! Judges a scenario's expectations against the measured metrics.
//!
//! A metric is named by its path in `summary.json`: `throughput_mbps`, `queueing_delay_ms.p95`, `throughput_100ms.p10`,
//! `state_share.Internet` (0 for a state that was never entered). If there are several seeds, their mean is judged. If
//! `of` names another scheme, the ratio to the same flow under that scheme is judged.

use airpace_core::nearest::instead;
use airpace_sim::Scenario;
use airpace_sim::scenario::Expect;
use serde_json::Value;

use crate::error::RunError;
use crate::metrics::{FlowMetrics, RadioUse, Transfers, Video, rounded};
use crate::summary::{RunSummary, Verdict};

/// Metrics that are maps from the name of a state. A state that is missing in the map was never entered.
const BY_STATE: [&str; 2] = ["state_share.", "state_entries."];

/// Rejects expectations about unknown metrics.
///
/// # Errors
/// The message contains the unknown metric and the list of known metrics.
pub fn check_metrics(scenario: &Scenario) -> Result<(), RunError> {
    let mut known = metrics();
    known.extend(BY_STATE.map(|prefix| format!("{prefix}STATE")));
    for expect in &scenario.expect {
        let by_state = BY_STATE.iter().any(|prefix| expect.metric.starts_with(prefix));
        if !by_state && !known.contains(&expect.metric) {
            return Err(RunError::Metric {
                scenario: scenario.name.clone(),
                metric: expect.metric.clone(),
                instead: instead(
                    &expect.metric,
                    &known.iter().map(String::as_str).collect::<Vec<_>>(),
                    "there are",
                ),
            });
        }
    }
    Ok(())
}

/// The verdicts on a scenario's expectations, from the scenario's runs. Expectations of schemes that did not run are
/// skipped.
pub fn verdicts(scenario: &Scenario, runs: &[RunSummary]) -> Vec<Verdict> {
    let was_run = |scheme: &str| runs.iter().any(|run| run.scenario == scenario.name && run.scheme == scheme);
    let asked = scenario.expect.iter().filter(|expect| was_run(&expect.scheme));
    let asked = asked.filter(|expect| expect.of.as_deref().is_none_or(was_run));
    asked.map(|expect| verdict(scenario, expect, runs)).collect()
}

fn verdict(scenario: &Scenario, expect: &Expect, runs: &[RunSummary]) -> Verdict {
    let flow = expect.flow.as_ref().unwrap_or(&scenario.flow[0].label);
    let mean = |scheme: &str| mean_over_seeds(runs, &scenario.name, scheme, flow, &expect.metric);
    let own = mean(&expect.scheme);
    let (metric, measured) = match &expect.of {
        None => (expect.metric.clone(), own),
        Some(other) => {
            let ratio =
                own.zip(mean(other)).map(|(own, other)| own / other).filter(|ratio| ratio.is_finite());
            (format!("{} / that of {other}", expect.metric), ratio)
        }
    };
    let measured = measured.map(rounded);
    let passed = measured.is_some_and(|value| {
        expect.at_least.is_none_or(|least| value >= least) && expect.at_most.is_none_or(|most| value <= most)
    });
    let wanted = match (expect.at_least, expect.at_most) {
        (Some(least), Some(most)) => format!("{least} to {most}"),
        (Some(least), None) => format!("at least {least}"),
        (None, Some(most)) => format!("at most {most}"),
        (None, None) => "anything".to_owned(),
    };
    Verdict {
        scenario: scenario.name.clone(),
        scheme: expect.scheme.clone(),
        flow: flow.clone(),
        say: expect.say.clone(),
        metric,
        wanted,
        measured,
        passed,
    }
}

fn mean_over_seeds(
    runs: &[RunSummary],
    scenario: &str,
    scheme: &str,
    flow: &str,
    metric: &str,
) -> Option<f64> {
    let values = runs
        .iter()
        .filter(|run| run.scenario == scenario && run.scheme == scheme)
        .flat_map(|run| run.flows.iter().filter(|known| known.flow == flow))
        .map(|flow| value(&flow.metrics, metric))
        .collect::<Option<Vec<f64>>>()?;
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The value of the metric at `path`; `None` if it is null.
pub fn value(metrics: &FlowMetrics, path: &str) -> Option<f64> {
    let tree = serde_json::to_value(metrics).expect("plain data with text keys");
    // The name of a state may itself contain a dot.
    if let Some((map, state)) =
        path.split_once('.').filter(|_| BY_STATE.iter().any(|map| path.starts_with(map)))
    {
        return tree.get(map).and_then(|states| states.get(state)).map_or(Some(0.0), Value::as_f64);
    }
    path.split('.').try_fold(&tree, |found, name| found.get(name)).and_then(Value::as_f64)
}

/// The paths of all metrics except those per state.
pub(crate) fn metrics() -> Vec<String> {
    let example = FlowMetrics {
        transfers: Some(Transfers::default()),
        video: Some(Video::default()),
        radio: Some(RadioUse::default()),
        ..FlowMetrics::default()
    };
    let example = serde_json::to_value(example).expect("plain data with text keys");
    let mut known = Vec::new();
    list_paths(&example, "", &mut known);
    known.retain(|path| !BY_STATE.iter().any(|map| map.trim_end_matches('.') == path));
    known
}

/// A flow's values of all [`metrics`], in their order; `None` for metrics without a value.
pub(crate) fn numbers(of: &FlowMetrics) -> Vec<Option<f64>> {
    let tree = serde_json::to_value(of).expect("plain data with text keys");
    let value = |path: &String| {
        path.split('.').try_fold(&tree, |found, name| found.get(name)).and_then(Value::as_f64)
    };
    metrics().iter().map(value).collect()
}

fn list_paths(value: &Value, path: &str, known: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                list_paths(field, &path, known);
            }
        }
        _ => known.push(path.to_owned()),
    }
}
