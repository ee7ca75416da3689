//! OpenDiag, measured on this machine with an emulated modem: Fig. 4.

use airpace_plot::{Axis, Bar, Bars, Entry, Figure, Line, Mark, Panel, Style};
use airpace_run::statistics::Estimate;

use crate::experiment::{Evidence, Experiment, Findings, Picture};
use crate::measure::{Measured, Measurement};
use crate::number::{Number, Rule};
use crate::results::Results;

/// Fig. 4a.
pub(crate) static FIG_4A: Experiment = Experiment {
    id: "biscay/fig4a",
    title: "Interval between two values of a KPI",
    source: "BISCAY §5.1 Fig. 4a",
    world: "An emulated modem reports RSRP every 10 ms, as the chipset of the paper, and keeps packets for a second unless it is \
            drained. The six tools of the paper cannot be run here; all of them leave the modem's buffer as it is, and so does \
            ours without draining.",
    evidence: Evidence::Measured(&[GRANULARITY]),
    findings: fig_4a,
};

/// Fig. 4b.
pub(crate) static FIG_4B: Experiment = Experiment {
    id: "biscay/fig4b",
    title: "Processing time over the number of subscribed packets",
    source: "BISCAY §5.1 Fig. 4b",
    world: "The time is that from the arrival of a packet's bytes to the read of its KPI by another program. One KPI of each kind of \
            packet is subscribed, and the emulated modem sends 1,000 packets per second, all kinds in turn. MobileInsight was not \
            run.",
    evidence: Evidence::Measured(&[KINDS_1, KINDS_10, KINDS_20, KINDS_40]),
    findings: fig_4b,
};

/// Fig. 4c.
pub(crate) static FIG_4C: Experiment = Experiment {
    id: "biscay/fig4c",
    title: "Energy of the modem's KPIs",
    source: "BISCAY §5.1 Fig. 4c",
    world: "The paper shows the battery of a phone over an hour, without numbers. Software measures the processor time and the \
            wake-ups of the daemon only. The share of a battery follows from two assumptions: a core at full load takes 1 W, and \
            the battery has 15 Wh.",
    evidence: Evidence::Measured(&[GRANULARITY]),
    findings: fig_4c,
};

/// Draining and not draining.
const GRANULARITY: Measurement = Measurement {
    name: "modem",
    takes_s: 50,
    scenario: "",
    commands: &["diag granularity --for 20s --json"],
    result: "",
};

const KINDS_1: Measurement = kinds("modem-kinds-1", &["diag granularity --kinds 1 --for 5s --json"]);
const KINDS_10: Measurement = kinds("modem-kinds-10", &["diag granularity --kinds 10 --for 5s --json"]);
const KINDS_20: Measurement = kinds("modem-kinds-20", &["diag granularity --kinds 20 --for 5s --json"]);
const KINDS_40: Measurement = kinds("modem-kinds-40", &["diag granularity --kinds 40 --for 5s --json"]);

const fn kinds(name: &'static str, commands: &'static [&'static str]) -> Measurement {
    Measurement { name, takes_s: 15, scenario: "", commands, result: "" }
}

/// Power of a core at full load (W).
///
/// Chosen: the order of magnitude of a large core of a phone.
const CORE_W: f64 = 1.0;

/// Energy of a phone's battery (Wh).
///
/// Chosen: 4,000 mAh at 3.85 V.
const BATTERY_WH: f64 = 15.4;

/// A number of the result with draining, or without.
fn number(measured: Option<&Measured>, drains: bool, path: &str) -> Option<f64> {
    measured?.number(&format!("/measurements/{}/{path}", usize::from(!drains)))
}

fn alone(value: Option<f64>) -> Option<Estimate> {
    value.map(|value| Estimate { value, interval: None })
}

fn fig_4a(results: &Results) -> Findings {
    let gap_ms = |drains| number(results.measured(&GRANULARITY), drains, "gap_ms/p50");
    let numbers = vec![
        Number::new("median interval with draining", "ms", 10.9, alone(gap_ms(true)), Rule::Factor(1.1)),
        Number::new(
            "median interval without draining",
            "ms",
            1000.0,
            alone(gap_ms(false)),
            Rule::Factor(1.2),
        ),
        Number::new(
            "interval without draining ÷ with draining",
            "",
            100.0,
            alone(gap_ms(false).zip(gap_ms(true)).map(|(without, with)| without / with)),
            Rule::Factor(1.2),
        ),
    ];
    let bars = [
        ("the modem (set)", Some(10.0)),
        ("with draining", gap_ms(true)),
        ("without draining", gap_ms(false)),
    ];
    let names = bars.map(|(name, _)| name);
    let bar = |(index, (_, value)): (usize, (&str, Option<f64>))| {
        Some(Bar { x: index as f64, value: value?, error: None })
    };
    let panel = Panel {
        x: Axis::categories("", &names),
        y: Axis { range: Some((1.0, 3000.0)), ..Axis::log("interval between two values (ms)") },
        marks: vec![Mark::Bars(Bars {
            style: Style::new("median", "#0072B2"),
            bars: bars.into_iter().enumerate().filter_map(bar).collect(),
            second_y: false,
        })],
        ..Panel::default()
    };
    let figure = Figure {
        title: "BISCAY Fig. 4a".to_owned(),
        caption: "Median interval between two values of RSRP. The emulated modem is set to 10 ms.".to_owned(),
        panels: vec![panel],
        panel_width: 560.0,
        ..Figure::default()
    };
    Findings { numbers, pictures: vec![Picture { name: "biscay-fig4a", figure }] }
}

fn fig_4b(results: &Results) -> Findings {
    let latency_us = |of: &Measurement, path| number(results.measured(of), true, path);
    let all = [(1.0, &KINDS_1), (10.0, &KINDS_10), (20.0, &KINDS_20), (40.0, &KINDS_40)];
    let of_40 = |path| alone(latency_us(&KINDS_40, path));
    let numbers = vec![
        Number::claim(
            "median time with 40 kinds of packets; the paper: tens of µs",
            "µs",
            of_40("arrival_to_reader_us/p50"),
            Rule::AtMost(100.0),
        ),
        Number::claim(
            "99th percentile with 40 kinds of packets",
            "µs",
            of_40("arrival_to_reader_us/p99"),
            Rule::AtMost(1000.0),
        ),
    ];
    let line = |name: &str, colour: &str, path: &'static str| {
        let point = |(kinds, of): &(f64, &Measurement)| Some((*kinds, latency_us(of, path)?));
        let points = all.iter().filter_map(point).collect();
        Mark::Line(Line { markers: true, ..Line::new(Style::new(name, colour), points) })
    };
    let panel = Panel {
        x: Axis { range: Some((0.0, 41.0)), ..Axis::linear("subscribed kinds of packets") },
        y: Axis { range: Some((1.0, 10_000.0)), ..Axis::log("processing time (µs)") },
        marks: vec![
            line("99th percentile", "#D55E00", "arrival_to_reader_us/p99"),
            line("median", "#0072B2", "arrival_to_reader_us/p50"),
        ],
        ..Panel::default()
    };
    let figure = Figure {
        title: "BISCAY Fig. 4b".to_owned(),
        caption: "Time from the arrival of a packet to the read of its KPI by another program.".to_owned(),
        legend: Entry::of(std::slice::from_ref(&panel)),
        panels: vec![panel],
        panel_width: 560.0,
        ..Figure::default()
    };
    Findings { numbers, pictures: vec![Picture { name: "biscay-fig4b", figure }] }
}

fn fig_4c(results: &Results) -> Findings {
    let of = |path| number(results.measured(&GRANULARITY), true, path);
    let share = of("cpu_percent").map(|percent| percent / 100.0);
    let battery_percent = share.map(|share| 100.0 * share * CORE_W / BATTERY_WH);
    let numbers = vec![
        Number::claim(
            "share of a battery per hour; the paper: negligible",
            "%",
            alone(battery_percent),
            Rule::AtMost(1.0),
        ),
        Number::claim(
            "processor time per hour",
            "s",
            alone(share.map(|share| 3600.0 * share)),
            Rule::AtMost(72.0),
        ),
        // A drain and a read in each millisecond.
        Number::claim("wake-ups", "per s", alone(of("wakes_per_s")), Rule::AtMost(2000.0)),
    ];
    Findings { numbers, pictures: Vec::new() }
}
