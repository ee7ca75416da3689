//! BISCAY in the kernel, with BBR and CUBIC of Linux, measured behind the emulator: Fig. 11b.

use airpace_plot::{Axis, Figure, Mark, Panel, Point, Points};
use airpace_run::statistics::{Estimate, mean};

use crate::experiment::{Evidence, Experiment, Findings, Picture};
use crate::look;
use crate::measure::{Measured, Measurement};
use crate::number::{Number, Rule};
use crate::results::Results;

/// Fig. 11b.
pub(crate) static FIG_11B: Experiment = Experiment {
    id: "biscay/fig11b",
    title: "BISCAY, BBR and CUBIC in the kernel",
    source: "BISCAY §5.5 Fig. 11b",
    world: "The paper uploads from a Pixel 5 over a private network of two cells, between which the phone is handed over, and over \
            public networks. Here, the kernel's TCP of this machine sends over an emulated cell of 10 MHz whose phone walks to the \
            edge and is handed over twice. BISCAY is in the kernel, fed from the emulated phone's grants.",
    evidence: Evidence::Measured(&RUNS),
    findings,
};

const SCENARIO: &str = r#"
name = "biscay-fig11b"
about = "A phone uploads while it is handed over between two cells"
source = "BISCAY §5.5"
duration_s = 30
schemes = ["biscay", "bbr", "cubic"]

[cell]
prbs = 50
background.hour = "idle"

[[device]]
label = "phone"
radio.channel.sinr_points_db = [[0, 20], [9, 8], [10, 18], [19, 8], [20, 18], [30, 20]]
radio.handover_s = [9.5, 19.5]

[[flow]]
label = "upload"
direction = "up"
rtt_ms = 42
"#;

const RUNS: [Measurement; 3] = [
    run(
        "kernel-1",
        &[
            "agree {folder}/scenario.toml --transport kernel --spread 0 --again 5 --seed 1 --out {folder}/run --json",
        ],
    ),
    run(
        "kernel-2",
        &[
            "agree {folder}/scenario.toml --transport kernel --spread 0 --again 5 --seed 2 --out {folder}/run --json",
        ],
    ),
    run(
        "kernel-3",
        &[
            "agree {folder}/scenario.toml --transport kernel --spread 0 --again 5 --seed 3 --out {folder}/run --json",
        ],
    ),
];

const fn run(name: &'static str, commands: &'static [&'static str]) -> Measurement {
    Measurement { name, takes_s: 140, scenario: SCENARIO, commands, result: "run/summary.json" }
}

/// A metric of the flow of a scheme over the kernel's TCP.
fn metric(measured: &Measured, scheme: &str, path: &str) -> Option<f64> {
    let label = format!("{scheme} over kernel");
    let runs = measured.result.first()?.get("runs")?.as_array()?;
    let its = runs.iter().find(|run| run.get("scheme").and_then(|name| name.as_str()) == Some(&*label))?;
    its.pointer(&format!("/flows/0/{path}"))?.as_f64()
}

const THROUGHPUT: &str = "throughput_mbps";
const MEAN_MS: &str = "one_way_delay_ms/mean";
const TAIL_MS: &str = "one_way_delay_ms/p95";

fn findings(results: &Results) -> Findings {
    let values = |scheme: &str, path: &str| -> Vec<f64> {
        RUNS.iter().filter_map(|run| metric(results.measured(run)?, scheme, path)).collect()
    };
    let ratio = |other: &str, path: &str| {
        let ratio = mean(&values("biscay", path))? / mean(&values(other, path))?;
        Some(Estimate { value: ratio, interval: None })
    };
    let highest = values("biscay", MEAN_MS).into_iter().reduce(f64::max);
    let lowest = [values("bbr", MEAN_MS), values("cubic", MEAN_MS)].concat().into_iter().reduce(f64::min);
    let apart = highest.zip(lowest).map(|(high, low)| Estimate { value: high / low, interval: None });
    let numbers = vec![
        Number::new("throughput, BISCAY ÷ BBR", "", 1.046, ratio("bbr", THROUGHPUT), Rule::Side(1.15)),
        Number::new("throughput, BISCAY ÷ CUBIC", "", 1.046, ratio("cubic", THROUGHPUT), Rule::Side(1.15)),
        Number::new("mean delay, BISCAY ÷ BBR", "", 0.54, ratio("bbr", MEAN_MS), Rule::Within(0.15)),
        Number::new("p95 delay, BISCAY ÷ BBR", "", 0.56, ratio("bbr", TAIL_MS), Rule::Within(0.15)),
        Number::claim(
            "highest mean delay of BISCAY's runs ÷ lowest of BBR's and CUBIC's; the paper: lower",
            "",
            apart,
            Rule::AtMost(1.0),
        ),
    ];
    let marks = ["biscay", "bbr", "cubic"].iter().map(|scheme| {
        let its = values(scheme, TAIL_MS).into_iter().zip(values(scheme, THROUGHPUT));
        let points = its.map(|(x, y)| Point { x, y, label: String::new() }).collect();
        Mark::Points(Points { style: look::style(scheme), points, second_y: false })
    });
    let panel = Panel {
        x: Axis { reversed: true, ..Axis::log("p95 one-way delay (ms)") },
        y: Axis::linear("throughput (Mbit/s)"),
        marks: marks.collect(),
        ..Panel::default()
    };
    let figure = Figure {
        title: "BISCAY Fig. 11b".to_owned(),
        caption: "Throughput and 95th percentile of one-way delay of each run over the kernel's TCP."
            .to_owned(),
        legend: airpace_plot::Entry::of(std::slice::from_ref(&panel)),
        panels: vec![panel],
        panel_width: 560.0,
        ..Figure::default()
    };
    Findings { numbers, pictures: vec![Picture { name: "biscay-fig11b", figure }] }
}
