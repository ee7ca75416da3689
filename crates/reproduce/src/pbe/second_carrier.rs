//! A second carrier that comes with the load and goes with it.

use airpace_plot::{Axis, Entry, Figure, Line, Mark, Panel, Style};
use airpace_run::metrics::RadioTrace;
use airpace_run::statistics;

use crate::experiment::{Campaign, Evidence, Experiment, Findings, Picture, Size};
use crate::number::{Number, Rule};
use crate::results::{Results, Run};

/// Fig. 2.
pub(crate) static FIG_2: Experiment = Experiment {
    id: "pbe/fig2",
    title: "A second carrier for a load of 40 Mbit/s, none for 6 Mbit/s",
    source: "PBE-CC §3 Fig. 2",
    world: "The paper states neither the bandwidth of the carriers nor the signal. Ours have 50 PRBs at 12 dB, so that one \
            carries less than 40 Mbit/s, and two carry more. The time of draining follows from these capacities: with the next \
            better MCS it is shorter, and with the next worse one, two carriers carry less than 40 Mbit/s. The times are those \
            of the cell, from the first grant to the phone.",
    evidence: Evidence::Simulated(campaigns),
    findings,
};

/// The flow starts at 1 s, and its rate changes at 3 s.
const SCENARIO: &str = r#"
name = "pbe-fig2"
about = "A flow of 40 Mbit/s, later of 6 Mbit/s, over two carriers"
source = "PBE-CC §3 Fig. 2"
duration_s = 5
schemes = ["cbr:rate_mbps=100"]

[forward]
jitter_mean_ms = 1.06

[cell]
prbs = 50
carriers = 2
bler.model = "pbe"

[[device]]
radio.channel = { layers = 2, sinr_db = 12 }

[[flow]]
rtt_ms = 42
start_s = 1
rate_mbps = 40
schedule = [{ at_s = 3, rate_mbps = 6 }]
"#;

/// Start of the flow, and time at which its rate falls, in seconds.
const START_S: f64 = 1.0;
const SLOWER_S: f64 = 3.0;

/// Length of the intervals of the figure, in milliseconds.
const INTERVAL_MS: usize = 10;

/// Delay above the smallest delay at which the queue counts as drained, in ms: a retransmission and the jitter.
///
/// Source: PBE-CC §4.2.2
const DRAINED_MS: f64 = 8.0 + 3.0;

/// Delay above the smallest delay that only a queue causes, in ms: longer than three retransmissions and the jitter.
///
/// Source: PBE-CC §4.2.2
const QUEUED_MS: f64 = 3.0 * 8.0 + 3.0;

fn campaigns(size: Size) -> Vec<Campaign> {
    let campaign = Campaign::of("pbe-fig2", &["cbr:rate_mbps=100"], size.seeds(5));
    vec![Campaign { text: SCENARIO, traced_ms: Some((0, 5_000)), ..campaign }]
}

/// The first and the last second at which the phone has PRBs of the carrier with this number.
fn granted_s(trace: &RadioTrace, carrier: u8) -> Option<(f64, f64)> {
    let trace = trace.carriers.iter().find(|known| known.carrier == carrier)?;
    let phone = trace.devices.first()?;
    let first = phone.iter().position(|prbs| *prbs > 0)?;
    let last = phone.iter().rposition(|prbs| *prbs > 0)?;
    Some((first as f64 * 1e-3, last as f64 * 1e-3))
}

/// Time from the first grant until the phone has PRBs of the second carrier, in s.
fn activation_s(run: &Run) -> Option<f64> {
    let trace = run.trace.as_ref()?;
    Some(granted_s(trace, 1)?.0 - granted_s(trace, 0)?.0)
}

/// Time from the first grant until a packet arrives without having waited in a queue, after the second carrier was
/// activated, in s.
fn drained_s(run: &Run) -> Option<f64> {
    let trace = run.trace.as_ref()?;
    let ((start, _), (activated, _)) = (granted_s(trace, 0)?, granted_s(trace, 1)?);
    let packets = trace.packets.first()?;
    let least_ms = packets.iter().map(|(_, delay_ms)| *delay_ms).fold(f64::INFINITY, f64::min);
    let mut arrived =
        packets.iter().map(|(sent_s, delay_ms)| (sent_s + delay_ms * 1e-3, delay_ms - least_ms));
    arrived.find(|(at, waited)| *at > activated && *waited <= DRAINED_MS).map(|(at, _)| at - start)
}

/// Time from the change of the rate at the sender until the phone's last PRBs of the second carrier, in s.
fn deactivation_s(run: &Run) -> Option<f64> {
    Some(granted_s(run.trace.as_ref()?, 1)?.1 - SLOWER_S)
}

/// Longest one-way delay above the smallest one, in ms.
fn peak_ms(run: &Run) -> Option<f64> {
    let delays = run.trace.as_ref()?.packets.first()?.iter().map(|(_, delay_ms)| *delay_ms);
    let (least, most) =
        delays.fold((f64::INFINITY, 0.0_f64), |(least, most), ms| (least.min(ms), most.max(ms)));
    (most > 0.0).then_some(most - least)
}

fn findings(results: &Results) -> Findings {
    let runs = results.all();
    let numbers = vec![
        Number::new(
            "time until the second carrier has data",
            "s",
            0.13,
            runs.mean(activation_s),
            Rule::Within(0.03),
        )
        .fitted(),
        Number::new("time until the queue is drained", "s", 0.6, runs.mean(drained_s), Rule::Within(0.2)),
        Number::claim(
            "longest wait in the queue; the paper: packets are buffered at the primary cell",
            "ms",
            runs.mean(peak_ms),
            Rule::AtLeast(QUEUED_MS),
        ),
        Number::claim(
            "time from the fall to 6 Mbit/s until the second carrier is off; the paper shows it within the run",
            "s",
            runs.mean(deactivation_s),
            Rule::AtMost(1.0),
        ),
    ];
    let pictures = runs
        .0
        .first()
        .and_then(|run| run.trace.as_ref())
        .map_or(Vec::new(), |trace| vec![Picture { name: "pbe-fig2", figure: figure(trace) }]);
    Findings { numbers, pictures }
}

/// PRBs per carrier and one-way delay over time.
fn figure(trace: &RadioTrace) -> Figure {
    let carrier = |number: u8, name: &str, colour: &str| {
        let known = trace.carriers.iter().find(|known| known.carrier == number)?;
        let means = known.devices.first()?.chunks(INTERVAL_MS).enumerate().map(|(index, prbs)| {
            let prbs: Vec<f64> = prbs.iter().copied().map(f64::from).collect();
            (since_start(index), statistics::mean(&prbs).unwrap_or_default())
        });
        Some(Mark::Line(Line { stepped: true, ..Line::new(Style::new(name, colour), means.collect()) }))
    };
    let delays = trace.packets.first().map_or(Vec::new(), |packets| {
        let arrival = |(sent_s, delay_ms): &(f64, f64)| (sent_s + delay_ms * 1e-3 - START_S, *delay_ms);
        packets.iter().map(arrival).collect()
    });
    let time = || Axis { range: Some((0.0, 3.0)), ..Axis::linear("time (s)") };
    let panels = vec![
        Panel {
            x: time(),
            y: Axis { range: Some((0.0, 50.0)), ..Axis::linear("allocated PRBs") },
            marks: [carrier(0, "primary carrier", "#0072B2"), carrier(1, "second carrier", "#D55E00")]
                .into_iter()
                .flatten()
                .collect(),
            ..Panel::default()
        },
        Panel {
            x: time(),
            y: Axis::linear("one-way delay (ms)"),
            marks: vec![Mark::Line(Line::new(Style::new("packets", "#009E73"), delays))],
            ..Panel::default()
        },
    ];
    Figure {
        title: "PBE-CC Fig. 2".to_owned(),
        caption: "The sender offers 40 Mbit/s for two seconds, then 6 Mbit/s. Means of the PRBs per 10 ms; every packet.".to_owned(),
        legend: Entry::of(&panels),
        panels,
        columns: 1,
        panel_width: 720.0,
        plot_height: 160.0,
    }
}

/// Start of an interval of the figure, in seconds from the start of the flow.
fn since_start(interval: usize) -> f64 {
    (interval * INTERVAL_MS) as f64 * 1e-3 - START_S
}
