//! Links whose rate and delay change: Table 1.

use crate::experiment::{Campaign, Evidence, Experiment, Findings, Picture};
use crate::look;
use crate::number::{Number, Rule};
use crate::results::{Results, Run};
use crate::statistics::kendall;
use airpace_plot::{Axis, Bar, Bars, Entry, Figure, Mark, Panel};
use airpace_run::statistics::{self, Estimate};

/// Table 1.
pub(crate) static TABLE_1: Experiment = Experiment {
    id: "morc/table1",
    title: "Utilisation of links whose rate and delay change",
    source: "MORC §4.1 Table 1",
    world: "The paper prints 14 of its profiles; the means are those of these 14 rows. The rules \
            of the means were set after a prototype had been measured.",
    evidence: Evidence::Simulated(|size| vec![Campaign::of("morc-table1", SCHEMES, size.seeds(5))]),
    findings,
};

const SCHEMES: &[&str] = &["morc", "cubic@linux", "bbr", "cubic", "morc@paper"];

/// Utilisation in percent of CUBIC, MORC and BBR, in the order of the scenario's variants.
pub(super) const PAPER: [[f64; 3]; 14] = [
    [64.0, 90.0, 70.0],
    [45.0, 84.0, 40.0],
    [36.0, 84.0, 64.0],
    [25.0, 76.0, 34.0],
    [93.0, 93.0, 84.0],
    [84.0, 89.0, 55.0],
    [73.0, 92.0, 82.0],
    [52.0, 89.0, 54.0],
    [97.0, 97.0, 89.0],
    [95.0, 77.0, 52.0],
    [96.0, 93.0, 91.0],
    [80.0, 80.0, 51.0],
    [90.0, 97.0, 90.0],
    [70.0, 85.0, 53.0],
];

/// The schemes of the paper's columns.
pub(super) const COLUMNS: [&str; 3] = ["cubic@linux", "morc", "bbr"];

fn percent(run: &Run) -> Option<f64> {
    run.flow(0).utilization.map(|share| 100.0 * share)
}

fn findings(results: &Results) -> Findings {
    let runs = results.all();
    let variants = runs.variants();
    let rows = |scheme: &str| -> Vec<f64> {
        let its = runs.with(scheme);
        let value =
            |variant: &&str| statistics::mean(&its.such(|run| run.variant == **variant).values(percent));
        variants.iter().filter_map(value).collect()
    };
    let single = |value: Option<f64>| value.map(|value| Estimate { value, interval: None });
    let mut numbers = Vec::new();
    for (column, scheme) in COLUMNS.iter().enumerate() {
        let (ours, paper) = (rows(scheme), PAPER.map(|row| row[column]));
        let name = look::name(scheme);
        let mean = paper.iter().sum::<f64>() / paper.len() as f64;
        numbers.push(Number::new(
            format!("{name}, mean of the 14 rows"),
            "%",
            mean,
            Estimate::of(&ours),
            Rule::Within(10.0),
        ));
        let rank = single(kendall(&ours, &paper));
        numbers.push(Number::claim(
            format!("{name}, rank correlation of the rows"),
            "",
            rank,
            Rule::AtLeast(0.6),
        ));
    }
    let mean = |scheme: &str| statistics::mean(&rows(scheme));
    let over = |one: &str, other: &str| single(mean(one).zip(mean(other)).map(|(one, other)| one / other));
    numbers.push(Number::new("MORC ÷ CUBIC", "", 87.6 / 71.4, over("morc", "cubic@linux"), Rule::Side(1.3)));
    numbers.push(Number::new("CUBIC ÷ BBR", "", 71.4 / 64.9, over("cubic@linux", "bbr"), Rule::Side(1.3)));
    let bars = |scheme: &&str, values: Vec<f64>, is_paper: bool| {
        let mut style = look::style(scheme);
        if is_paper {
            style.name = format!("{} (paper)", style.name);
            style.hatch = airpace_plot::Hatch::Rising;
        }
        let bars =
            values.iter().enumerate().map(|(at, value)| Bar { x: at as f64, value: *value, error: None });
        Mark::Bars(Bars { style, bars: bars.collect(), second_y: false })
    };
    let label =
        |variant: &&str| variant.replace("mbps", " Mbit/s").replace("percent", " %").replace('-', " ");
    let panels: Vec<Panel> = COLUMNS
        .iter()
        .enumerate()
        .map(|(column, scheme)| Panel {
            title: look::name(scheme),
            x: Axis::categories("row of the table", &(1..=14).map(|row| ROWS[row - 1]).collect::<Vec<_>>()),
            y: Axis { range: Some((0.0, 100.0)), ..Axis::linear("utilisation (%)") },
            marks: vec![
                bars(scheme, PAPER.iter().map(|row| row[column]).collect(), true),
                bars(scheme, rows(scheme), false),
            ],
            ..Panel::default()
        })
        .collect();
    let rows_text: Vec<String> =
        variants.iter().enumerate().map(|(at, variant)| format!("{}: {}", at + 1, label(variant))).collect();
    let figure = Figure {
        title: "MORC Table 1".to_owned(),
        caption: format!("Utilisation of each link, the paper's and ours. Rows: {}.", rows_text.join("; ")),
        legend: Entry::of(&panels),
        panels,
        panel_width: 720.0,
        plot_height: 150.0,
        ..Figure::default()
    };
    Findings { numbers, pictures: vec![Picture { name: "morc-table1", figure }] }
}

/// Labels of the rows.
const ROWS: [&str; 14] = ["1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14"];
