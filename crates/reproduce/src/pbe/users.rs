//! The users of a cell as its control channel shows them.

use crate::experiment::{Campaign, Evidence, Experiment, Findings, Picture};
use crate::number::{Number, Rule};
use crate::results::{Results, Run};
use airpace_phy::Ports;
use airpace_phy::dci::{Carrier, Extras, Format};
use airpace_plot::{Axis, Entry, Figure, Layer, Line, Mark, Panel, Stack, Style};
use airpace_run::metrics::radio_trace::{CarrierTrace, ControlTrace, RATE_STEP};
use airpace_run::statistics::Estimate;

/// §4.2.1 and SIGCOMM §7.
pub(crate) static USERS: Experiment = Experiment {
    id: "pbe/users",
    title: "Users and messages of the control channel of a busy cell",
    source: "PBE-CC §4.2.1; SIGCOMM §7",
    world: "Our busy hour was made from these numbers: arrivals of control users from the 15 users in 40 ms, their number \
            from the 68 %, their PRBs from the 70 %, and the load from the 1.3 users and the number of messages. The share \
            of control users depends on the length of the observation, because each download is a new user; the paper does \
            not state its length, ours is 20 s.",
    evidence: Evidence::Simulated(|size| {
        let campaign = Campaign::of("stationary-busy", &["pbe"], size.seeds(3));
        vec![Campaign { traced_ms: Some((0, 20_000)), ..campaign }]
    }),
    findings,
};

/// Bandwidth of the cell in PRBs.
const PRBS: u16 = 100;

fn control(run: &Run) -> Option<&ControlTrace> {
    run.trace.as_ref().map(|trace| &trace.control)
}

fn percent(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| 100.0 * part as f64 / whole as f64)
}

/// Percentage of the subframes with fewer than four messages.
fn few_messages(run: &Run) -> Option<f64> {
    let counts = &control(run)?.subframes_by_messages;
    percent(counts.iter().take(4).sum(), counts.iter().sum())
}

/// Number of bits of the longest message, without its checksum.
fn longest_message(run: &Run) -> Option<f64> {
    let carrier = Carrier::symmetric(PRBS, Ports::Two);
    let bits = |name: &String| {
        let format = Format::ALL.into_iter().find(|format| Some(format.name()) == name.strip_prefix('F'))?;
        Some(f64::from(carrier.size(format, Extras::NONE)))
    };
    // A format without a known size makes the number unknown.
    let all: Option<Vec<f64>> = control(run)?.messages_by_format.keys().map(bits).collect();
    all?.into_iter().reduce(f64::max)
}

fn findings(results: &Results) -> Findings {
    let runs = results.all();
    let users = |index: usize| runs.mean(move |run| Some(control(run)?.users?[index]));
    let most = runs.values(|run| Some(control(run)?.users?[2])).into_iter().reduce(f64::max);
    let of_control = |part: fn(&ControlTrace) -> (u64, u64)| {
        runs.mean(move |run| {
            let (part, whole) = part(control(run)?);
            percent(part, whole)
        })
    };
    let numbers = vec![
        Number::new(
            "users that only exchange control messages",
            "%",
            68.0,
            of_control(|control| (control.control_users, control.known_users)),
            Rule::Factor(1.3),
        )
        .fitted(),
        Number::new(
            "grants of these users with exactly four PRBs",
            "%",
            70.0,
            of_control(|control| (control.control_grants_of_four, control.control_grants)),
            Rule::Factor(1.3),
        )
        .fitted(),
        Number::claim(
            "grants of these users with more than four PRBs; the paper: none",
            "%",
            of_control(|control| (control.control_grants_above_four, control.control_grants)),
            Rule::AtMost(0.0),
        ),
        Number::new("users in 40 ms", "", 15.0, users(0), Rule::Factor(1.3)).fitted(),
        Number::new("users in 40 ms that pass the filter", "", 1.3, users(1), Rule::Factor(1.3)).fitted(),
        Number::new(
            "most users in 40 ms that pass the filter",
            "",
            7.0,
            most.map(|value| Estimate { value, interval: None }),
            Rule::AtMost(7.0),
        ),
        Number::new(
            "subframes with fewer than four control messages",
            "%",
            95.0,
            runs.mean(few_messages),
            Rule::AtLeast(95.0),
        )
        .fitted(),
        Number::new(
            "bits of the longest message, without its CRC",
            "",
            70.0,
            runs.mean(longest_message),
            Rule::AtMost(69.0),
        ),
    ];
    Findings { numbers, pictures: Vec::new() }
}

/// SIGCOMM Fig. 11b.
pub(crate) static FIG_11S: Experiment = Experiment {
    id: "pbe/fig11s",
    title: "Data rates of the users of two cells",
    source: "PBE-CC SIGCOMM §6.2 Fig. 11b",
    world: "The paper decodes two cells for 24 hours; ours are simulated for 20 s of a busy hour. The users have SINRs around \
            10 dB, which was chosen before this experiment. Fig. 11a, the number of users per hour, is not repeated: here it \
            is an input, and nothing follows from it.",
    evidence: Evidence::Simulated(|size| {
        let cell = |name, prbs: u16| {
            let campaign = Campaign::of("stationary-busy", &["pbe"], size.seeds(3));
            Campaign { name, traced_ms: Some((0, 20_000)), ..campaign }.with("cell.prbs", prbs)
        };
        CELLS.iter().map(|(name, prbs, _)| cell(name, *prbs)).collect()
    }),
    findings: fig_11s,
};

/// The cells: name, PRBs, and the share of users in the paper that have less than half of the largest rate, in percent.
const CELLS: [(&str, u16, f64); 2] = [("20 MHz", 100, 71.9), ("10 MHz", 50, 77.4)];

/// Half of the largest rate, 1.8 Mbit/s per PRB, in bits per PRB pair.
const HALF_RATE: u64 = 900;

/// Percentage of the users with less than half of the largest rate.
fn slow_users(run: &Run) -> Option<f64> {
    let users = &control(run)?.users_by_rate;
    percent(users.iter().take((HALF_RATE / RATE_STEP) as usize).sum(), users.iter().sum())
}

fn fig_11s(results: &Results) -> Findings {
    let number = |(name, _, paper): &(&'static str, u16, f64)| {
        let what = format!("users with less than half of 1.8 Mbit/s per PRB, {name}");
        Number::new(what, "%", *paper, results.of(name).mean(slow_users), Rule::Factor(1.2))
    };
    const COLOURS: [&str; 2] = ["#0072B2", "#D55E00"];
    let line = |((name, ..), colour): (&(&'static str, u16, f64), &str)| {
        let run = results.of(name);
        let users = &control(run.0.first()?)?.users_by_rate;
        let all = users.iter().sum::<u64>() as f64;
        let up_to = users.iter().scan(0, |sum, count| {
            *sum += count;
            Some(*sum as f64 / all)
        });
        let mbps = |step: usize| (step as u64 * RATE_STEP) as f64 * 1e-3;
        let points =
            std::iter::once((0.0, 0.0)).chain(up_to.enumerate().map(|(step, share)| (mbps(step + 1), share)));
        Some(Mark::Line(Line::new(Style::new(name, colour), points.collect())))
    };
    let panel = Panel {
        x: Axis { range: Some((0.0, 1.8)), ..Axis::linear("data rate (Mbit/s per PRB)") },
        y: Axis { range: Some((0.0, 1.0)), ..Axis::linear("share of the users") },
        marks: CELLS.iter().zip(COLOURS).filter_map(line).collect(),
        ..Panel::default()
    };
    let figure = Figure {
        title: "PBE-CC SIGCOMM Fig. 11b".to_owned(),
        caption: "Distribution of the users' data rates at two bandwidths.".to_owned(),
        legend: Entry::of(std::slice::from_ref(&panel)),
        panels: vec![panel],
        panel_width: 560.0,
        ..Figure::default()
    };
    Findings {
        numbers: CELLS.iter().map(number).collect(),
        pictures: vec![Picture { name: "pbe-fig11s", figure }],
    }
}

/// Fig. 5.
pub(crate) static FIG_5: Experiment = Experiment {
    id: "pbe/fig5",
    title: "PRBs of three phones when the flow of one of them ends",
    source: "PBE-CC §4.2 Fig. 5",
    world: "The paper's figure is a sketch of ten subframes, in which a sender reacts within one subframe. Here a reaction \
            takes a round trip of 42 ms.",
    evidence: Evidence::Simulated(|size| {
        let campaign = Campaign::of("pbe-fig5", &["pbe"], size.seeds(5));
        vec![Campaign { text: SCENARIO, traced_ms: Some((2_800, 3_400)), ..campaign }]
    }),
    findings: fig_5,
};

const SCENARIO: &str = r#"
name = "pbe-fig5"
about = "Three phones share a carrier; the flow of the second ends at 3 s"
source = "PBE-CC §4.2 Fig. 5"
duration_s = 4
schemes = ["pbe"]
device = [
    { label = "user 1", radio.channel = { layers = 2, sinr_db = 16.5 } },
    { label = "user 2", radio.channel = { layers = 2, sinr_db = 16.5 } },
    { label = "user 3", radio.channel = { layers = 2, sinr_db = 16.5 } },
]

[forward]
jitter_mean_ms = 1.06

[reverse]
jitter_mean_ms = 1.06

[cell]
prbs = 100
bler.model = "pbe"

[[flow]]
label = "user 1"
rtt_ms = 42

[[flow]]
label = "user 2"
device = 1
stop_s = 3
rtt_ms = 42

[[flow]]
label = "user 3"
device = 2
rtt_ms = 42
"#;

/// Share of the carrier that may stay idle when it counts as used, over [`STRETCH_MS`].
///
/// Chosen: a tenth, because retransmissions and the wait for whole packets leave some PRBs idle.
const IDLE_SHARE: f64 = 0.1;

/// Length of the stretches over which idle PRBs are averaged, in ms.
const STRETCH_MS: usize = 20;

fn carrier(run: &Run) -> Option<&CarrierTrace> {
    run.trace.as_ref()?.carriers.first()
}

/// Idle PRBs per millisecond.
fn idle(carrier: &CarrierTrace) -> Vec<f64> {
    let used = |ms: usize| {
        let devices: u16 = carrier.devices.iter().map(|prbs| prbs[ms]).sum();
        devices + carrier.background[ms] + carrier.control[ms]
    };
    (0..carrier.control.len()).map(|ms| f64::from(carrier.prbs.saturating_sub(used(ms)))).collect()
}

/// Time from the last data of the second phone until the carrier is used again, in ms.
fn reaction_ms(run: &Run) -> Option<f64> {
    let carrier = carrier(run)?;
    let idle = idle(carrier);
    let last = carrier.devices.get(1)?.iter().rposition(|prbs| *prbs > 0)?;
    let is_used = |stretch: &[f64]| {
        stretch.iter().sum::<f64>() <= IDLE_SHARE * f64::from(carrier.prbs) * STRETCH_MS as f64
    };
    idle.get(last + 1..)?.windows(STRETCH_MS).position(is_used).map(|ms| ms as f64)
}

fn fig_5(results: &Results) -> Findings {
    let runs = results.all();
    let numbers = vec![Number::claim(
        "time until the PRBs of the phone that left are used; the paper: at once",
        "ms",
        runs.mean(reaction_ms),
        Rule::AtMost(3.0 * 42.0),
    )];
    let pictures = runs
        .0
        .first()
        .and_then(|run| carrier(run))
        .map_or(Vec::new(), |carrier| vec![Picture { name: "pbe-fig5", figure: figure(carrier) }]);
    Findings { numbers, pictures }
}

/// PRBs of the users per subframe, on top of each other.
fn figure(carrier: &CarrierTrace) -> Figure {
    // The span of the record starts 200 ms before the end of the flow, whose last data arrives some 25 ms later.
    let (from, until) = (170, 330);
    let part =
        |prbs: &[u16]| prbs.iter().take(until).skip(from).map(|prbs| f64::from(*prbs)).collect::<Vec<_>>();
    const COLOURS: [&str; 3] = ["#0072B2", "#D55E00", "#009E73"];
    let layers = carrier.devices.iter().zip(COLOURS).enumerate().map(|(index, (prbs, colour))| Layer {
        style: Style::new(&format!("user {}", index + 1), colour),
        heights: part(prbs),
    });
    let panel = Panel {
        x: Axis::linear("subframe (ms)"),
        y: Axis { range: Some((0.0, f64::from(carrier.prbs))), ..Axis::linear("PRBs") },
        marks: vec![Mark::Stack(Stack {
            x: (0..until - from).map(|ms| ms as f64).collect(),
            layers: layers.collect(),
            stepped: true,
        })],
        ..Panel::default()
    };
    Figure {
        title: "PBE-CC Fig. 5".to_owned(),
        caption: "PRBs of three phones per subframe; white is idle. The flow of user 2 ends.".to_owned(),
        legend: Entry::of(std::slice::from_ref(&panel)),
        panels: vec![panel],
        panel_width: 720.0,
        plot_height: 240.0,
        ..Figure::default()
    }
}
