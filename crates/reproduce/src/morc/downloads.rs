//! Downloads of 50 MB over links that lose packets at random: Fig. 4.

use crate::experiment::{Campaign, Evidence, Experiment, Findings, Picture, Size};
use crate::look;
use crate::number::{Number, Rule};
use crate::results::{Results, Run, Runs};
use crate::statistics::median;
use airpace_plot::{Axis, Entry, Figure, Line, Mark, Panel};
use airpace_run::statistics::{self, Estimate};

/// Fig. 4.
pub(crate) static FIG_4: Experiment = Experiment {
    id: "morc/fig4",
    title: "Download times of 50 MB over a link that loses one packet in 2,800",
    source: "MORC §4.1 Fig. 4",
    world: "The paper's 12 ms stand on top of LTE and of the way to the server, which it does not state. At 12 ms in all, CUBIC \
            cannot take 15 s; the round trip is fitted to CUBIC's longest download. The paper's downloads went through its \
            proxy at the SGi-LAN; ours have no proxy unless the row says so.",
    evidence: Evidence::Simulated(campaigns),
    findings,
};

fn campaigns(size: Size) -> Vec<Campaign> {
    let campaign = |name, variant, rtt_ms: u32| {
        Campaign { name, ..Campaign::of("morc-fig4", &["morc", "cubic", "cubic@linux"], seeds(size)) }
            .with("variant", variant)
            .with("flow.0.rtt_ms", rtt_ms)
    };
    vec![
        campaign("", "120mbps-0.036percent", 12 + WAY_MS),
        campaign("as stated", "120mbps-0.036percent", 12),
        campaign(SPLIT, "120mbps-0.036percent", 12 + WAY_MS + SERVER_MS)
            .with("flow.0.proxy.rtt_ms", 12 + WAY_MS)
            .with("flow.0.proxy.internet", "device"),
        campaign(LONG, "120mbps-0.05percent", 30 + WAY_MS),
    ]
}

/// The campaign with the paper's proxy: the lossy link is between the proxy and the phone.
const SPLIT: &str = "through a proxy";

/// Round trip between the server and the proxy.
///
/// Chosen: a server in another country of the continent.
const SERVER_MS: u32 = 30;

/// Round trip over LTE and to the server, to which the paper's 12 or 30 ms are added.
const WAY_MS: u32 = 18;

/// The campaign with the paper's second delay and loss rate.
const LONG: &str = "0.05 %, 30 ms";

fn seeds(size: Size) -> Vec<u64> {
    (1..=size.choose(100, 5)).collect()
}

fn seconds(run: &Run) -> Option<f64> {
    run.flow(0).transfers.as_ref()?.completion_s.mean
}

/// Least, median, most, deviation and mean of the times.
const PAPER: [(&str, [f64; 5]); 2] =
    [("morc", [3.45, 3.92, 4.76, 0.33, 3.97]), ("cubic", [3.43, 3.92, 15.38, 3.79, 7.15])];

fn findings(results: &Results) -> Findings {
    let mut numbers = Vec::new();
    for (world, suffix) in [("", ""), ("as stated", ", 12 ms in all"), (SPLIT, ", through a proxy")] {
        let runs = results.of(world);
        let is_fit = world.is_empty();
        for (scheme, paper) in PAPER {
            let (times, name) = (runs.with(scheme).values(seconds), look::name(scheme));
            let single = |value: Option<f64>| value.map(|value| Estimate { value, interval: None });
            let least = times.iter().copied().reduce(f64::min);
            let most = times.iter().copied().reduce(f64::max);
            let ours = [
                single(least),
                single(median(&times)),
                single(most),
                single(statistics::deviation(&times)),
                Estimate::of(&times),
            ];
            for ((what, paper), ours) in
                ["least", "median", "most", "deviation", "mean"].iter().zip(paper).zip(ours)
            {
                let rule = if *what == "deviation" { Rule::Factor(2.0) } else { Rule::Factor(1.2) };
                let number = Number::new(format!("{name}, {what}{suffix}"), "s", paper, ours, rule);
                let is_fitted = is_fit && scheme == "cubic" && *what == "most";
                numbers.push(if is_fitted { number.fitted() } else { number });
            }
        }
        numbers.push(ratio(&runs, suffix, 1.8));
    }
    numbers.push(ratio(&results.of(LONG), &format!(", {LONG}"), 2.41));
    let pictures = vec![Picture { name: "morc-fig4", figure: sorted(&results.all()) }];
    Findings { numbers, pictures }
}

/// Ratio of the mean times.
fn ratio(runs: &Runs<'_>, suffix: &str, paper: f64) -> Number {
    let of = |scheme: &str| statistics::mean(&runs.with(scheme).values(seconds));
    let ours =
        of("cubic").zip(of("morc")).map(|(cubic, morc)| Estimate { value: cubic / morc, interval: None });
    Number::new(format!("mean, CUBIC ÷ MORC{suffix}"), "", paper, ours, Rule::Side(1.5))
}

/// The times in ascending order, as in the paper.
fn sorted(runs: &Runs<'_>) -> Figure {
    let line = |scheme: &&str| {
        let mut times = runs.with(scheme).values(seconds);
        times.sort_by(f64::total_cmp);
        let points = times.into_iter().enumerate().map(|(at, time)| (at as f64 + 1.0, time)).collect();
        Mark::Line(Line { markers: true, ..Line::new(look::style(scheme), points) })
    };
    let panel = Panel {
        x: Axis::linear("run, in the order of its time"),
        y: Axis { range: None, ..Axis::linear("download time (s)") },
        marks: ["morc", "cubic", "cubic@linux"].iter().map(line).collect(),
        ..Panel::default()
    };
    Figure {
        title: "MORC Fig. 4".to_owned(),
        caption: "Download times of 50 MB at 120 Mbit/s with 0.036 % loss, sorted.".to_owned(),
        legend: Entry::of(std::slice::from_ref(&panel)),
        panels: vec![panel],
        panel_width: 720.0,
        ..Figure::default()
    }
}
