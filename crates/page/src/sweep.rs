//! Report page of a sweep: heat maps over any two keys, one for each scheme.
//!
//! The page holds means over seeds, computed here, for every point, scheme and flow. If there are more than
//! `MAX_ENTRIES` combinations, the page holds only the first value of each key, except for the two keys that it shows
//! initially.

use std::collections::{BTreeMap, BTreeSet};

use airpace_run::comparison::Tally;
use airpace_run::flows::{FlowRow, metric_names};
use airpace_run::numbers::Spread;
use airpace_run::sweep::{About, Failure, SweepReport};
use serde::Serialize;

use super::style::{MARKERS, SchemeStyle, styles};
use super::table::{Column, columns};
use super::{STYLE, embedded, fill, policy, script_source};
use airpace_run::metrics::significant;

const PAGE: &str = include_str!("../../../web/sweep.html");
const SCRIPT: &str = concat!(
    include_str!("../../../web/chart.js"),
    include_str!("../../../web/look.js"),
    include_str!("../../../web/files.js"),
    include_str!("../../../web/sweep.js"),
);

/// Maximum number of points × schemes × flows on a page.
///
/// Chosen: some megabytes, which a browser opens immediately.
const MAX_ENTRIES: usize = 20_000;

/// Maximum number of failures that a page lists.
const MAX_FAILURES: usize = 100;

/// Number of the report's leading columns that the page offers.
const METRICS: usize = 8;

/// Collects the page's data from the runs.
pub struct SweepPage {
    about: About,
    columns: Vec<Column>,
    /// Index of each column among the values of a row.
    places: Vec<usize>,
    /// For each axis, the indices of the values that the page shows.
    shown: Vec<Vec<usize>>,
    flows: Vec<String>,
    /// Indices in the scenario of the flows with a scheme of their own.
    own: BTreeSet<u16>,
    /// Schemes that each of these flows ran, by the flow's label.
    own_schemes: BTreeMap<String, Vec<String>>,
    entries: Vec<Entry>,
    is_cut: bool,
    /// All points, also those that the page does not show.
    tally: Tally,
}

/// Means of one flow at one point under one scheme.
struct Entry {
    scheme: usize,
    /// Index of the entry's point among the points that the page shows.
    point: usize,
    flow: usize,
    values: Vec<Option<f64>>,
    texts: Vec<String>,
    /// Number of seeds that failed.
    failed: usize,
}

#[derive(Serialize)]
struct Data<'a> {
    version: &'a str,
    command: &'a str,
    scenario: &'a str,
    about: &'a str,
    source: &'a str,
    /// Markers of the schemes, as SVG paths in a box of 14 by 14.
    markers: BTreeMap<&'static str, &'static str>,
    schemes: Vec<SchemeStyle>,
    seeds: usize,
    cells: u64,
    failed: usize,
    points: usize,
    axes: Vec<AxisData<'a>>,
    is_cut: bool,
    metrics: &'a [Column],
    flows: &'a [String],
    /// For each metric: a mean per shown scheme, point and flow (the flow index changes fastest).
    means: Vec<Vec<Option<f64>>>,
    texts: Vec<Vec<&'a str>>,
    /// Number of failed seeds, in the order of the means; null if no run exists.
    failed_seeds: Vec<Option<usize>>,
    failures: &'a [Failure<'a>],
    /// Which scheme is best where, and the schemes compared pair by pair.
    sentences: Vec<String>,
}

#[derive(Serialize)]
struct AxisData<'a> {
    key: &'a str,
    /// The values that the page shows.
    values: Vec<&'a str>,
    /// Number of all values.
    count: usize,
}

impl SweepPage {
    /// Name of a flow on the page. It contains the schemes of a flow with a scheme of its own, because the headings of
    /// the heat maps contain only the scheme under test.
    fn name(&self, flow: &String) -> String {
        match self.own_schemes.get(flow) {
            None => flow.clone(),
            Some(schemes) => format!("{flow} (own scheme: {})", schemes.join(", ")),
        }
    }
}

impl SweepReport for SweepPage {
    fn new(about: About, own: BTreeSet<u16>) -> SweepPage {
        let columns: Vec<Column> = columns(&[]).into_iter().take(METRICS).collect();
        let place = |column: &Column| metric_names().iter().position(|name| name == column.path);
        let places = columns.iter().map(|column| place(column).expect("a metric")).collect();
        let all: Vec<Vec<usize>> = about.axes.iter().map(|(_, values)| (0..values.len()).collect()).collect();
        let room = MAX_ENTRIES / about.schemes.len().max(1);
        let count = |shown: &[Vec<usize>]| shown.iter().map(Vec::len).product::<usize>();
        let mut shown = all.clone();
        if count(&shown) > room {
            let swept: Vec<usize> = (0..all.len()).filter(|axis| all[*axis].len() > 1).take(2).collect();
            for (axis, places) in shown.iter_mut().enumerate() {
                if !swept.contains(&axis) {
                    places.truncate(1);
                }
            }
        }
        // Even two keys can have more combinations than the page can hold. Then the page shows no heat map.
        if count(&shown) > room {
            shown.iter_mut().for_each(Vec::clear);
        }
        let is_cut = shown != all;
        let (flows, own_schemes, entries) = (vec![], BTreeMap::new(), vec![]);
        let tally = Tally::of(&about.schemes);
        SweepPage { about, columns, places, shown, flows, own, own_schemes, entries, is_cut, tally }
    }

    fn add(&mut self, scheme: usize, places: &[usize], ended: &[&[FlowRow]], failed: usize) {
        let values = self.about.axes.iter().map(|(_, values)| values.len());
        let point =
            values.zip(places).fold(0, |point, (values, place)| point * values as u64 + *place as u64);
        for flows in ended {
            self.tally.add_run(point, scheme, flows, &self.own);
        }
        let mut point = 0;
        for (shown, place) in self.shown.iter().zip(places) {
            let Some(at) = shown.iter().position(|known| known == place) else { return };
            point = point * shown.len() + at;
        }
        for flow in ended.iter().flat_map(|flows| flows.iter()).filter(|flow| self.own.contains(&flow.index))
        {
            let schemes = self.own_schemes.entry(flow.flow.clone()).or_default();
            if !schemes.contains(&flow.scheme) {
                schemes.push(flow.scheme.clone());
            }
        }
        let mut indices: Vec<(u16, &str)> = ended
            .iter()
            .flat_map(|flows| flows.iter().map(|flow| (flow.index, flow.flow.as_str())))
            .collect();
        indices.sort_unstable();
        indices.dedup();
        if indices.is_empty() {
            indices.push((0, self.flows.first().map_or("", String::as_str)));
        }
        let found: Vec<(u16, String)> =
            indices.into_iter().map(|(index, label)| (index, label.to_owned())).collect();
        for (index, label) in found {
            let flow = self.flows.iter().position(|known| *known == label);
            let flow = flow.unwrap_or_else(|| {
                self.flows.push(label.clone());
                self.flows.len() - 1
            });
            let of = |column: usize| {
                let place = self.places[column];
                let rows = ended.iter().filter_map(|flows| flows.iter().find(|flow| flow.index == index));
                Spread::of(rows.map(|row| row.values[place]))
            };
            let spreads: Vec<Option<Spread>> = (0..self.columns.len()).map(of).collect();
            let text = |(column, spread): (&Column, &Option<Spread>)| {
                column.shown.text(spread.map(|spread| spread.mean))
            };
            self.entries.push(Entry {
                scheme,
                point,
                flow,
                texts: self.columns.iter().zip(&spreads).map(text).collect(),
                values: spreads.iter().map(|spread| spread.map(|spread| significant(spread.mean))).collect(),
                failed,
            });
        }
    }

    fn render(self, failures: &[Failure<'_>]) -> String {
        let failed = failures.len();
        let points: usize = self.shown.iter().map(Vec::len).product();
        let (schemes, flows) = (self.about.schemes.len(), self.flows.len());
        let room = schemes * points * flows;
        let place = |entry: &Entry| (entry.scheme * points + entry.point) * flows + entry.flow;
        let mut means = vec![vec![None; room]; self.columns.len()];
        let mut texts = vec![vec!["–"; room]; self.columns.len()];
        let mut failed_seeds = vec![None; room];
        for entry in &self.entries {
            let at = place(entry);
            for (column, (value, text)) in entry.values.iter().zip(&entry.texts).enumerate() {
                means[column][at] = *value;
                texts[column][at] = text;
            }
            failed_seeds[at] = Some(entry.failed);
        }
        let axes = self.about.axes.iter().zip(&self.shown).map(|((key, values), shown)| AxisData {
            key,
            values: shown.iter().map(|at| values[*at].as_str()).collect(),
            count: values.len(),
        });
        let labels: Vec<String> = self.flows.iter().map(|flow| self.name(flow)).collect();
        let names: Vec<&str> = self.about.schemes.iter().map(String::as_str).collect();
        let data = Data {
            version: &self.about.version,
            command: &self.about.command,
            scenario: &self.about.scenario,
            about: &self.about.about,
            source: &self.about.source,
            markers: MARKERS.into(),
            schemes: styles(&names),
            seeds: self.about.seeds,
            cells: self.about.cells,
            failed,
            points: self.about.axes.iter().map(|(_, values)| values.len()).product(),
            axes: axes.collect(),
            is_cut: self.is_cut,
            metrics: &self.columns,
            flows: &labels,
            means,
            texts,
            failed_seeds,
            failures: &failures[..failures.len().min(MAX_FAILURES)],
            sentences: self.tally.sentences(),
        };
        let json = embedded(&serde_json::to_string(&data).expect("plain data with text keys"));
        fill(
            PAGE,
            &[
                ("policy", &policy(&[&script_source(SCRIPT)])),
                ("style", STYLE),
                ("data", &json),
                ("script", SCRIPT),
            ],
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_would_be_too_large_is_cut_and_says_so() {
        let about = |values: usize| About {
            version: String::new(),
            command: "airpace sweep it".to_owned(),
            scenario: "it".to_owned(),
            about: String::new(),
            source: String::new(),
            schemes: vec!["reno".to_owned()],
            seeds: 1,
            cells: 1,
            axes: ["a", "b", "c"]
                .map(|key| (key.to_owned(), (0..values).map(|value| value.to_string()).collect()))
                .into(),
        };
        let data = |values| {
            let page = SweepPage::new(about(values), BTreeSet::new()).render(&[]);
            let (_, rest) = page.split_once(r#"id="data">"#).unwrap();
            serde_json::from_str::<serde_json::Value>(rest.split_once("</script>").unwrap().0).unwrap()
        };
        let shown = |data: &serde_json::Value| -> Vec<usize> {
            data["axes"]
                .as_array()
                .unwrap()
                .iter()
                .map(|axis| axis["values"].as_array().unwrap().len())
                .collect()
        };
        assert_eq!(shown(&data(20)), [20, 20, 20]);
        assert_eq!(data(20)["is_cut"], false);
        assert_eq!(shown(&data(100)), [100, 100, 1]);
        assert_eq!(data(100)["is_cut"], true);
        assert_eq!(shown(&data(200)), [0, 0, 0], "no map can show it");
    }
}
