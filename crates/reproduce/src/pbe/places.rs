//! Stationary links: 25 in busy cells and 15 in idle ones.

use super::EIGHT;
use crate::experiment::{Campaign, Evidence, Experiment, Findings, Picture, Size};
use crate::look;
use crate::number::{Number, Rule};
use crate::results::{Results, Run, Runs, mean_delay, p95_delay, throughput};
use airpace_plot::{Axis, Bar, Bars, Entry, Figure, Line, Mark, Panel, Percentiles, Spread, Style};
use airpace_run::statistics::Estimate;

/// Table 1: ratios of PBE-CC to other schemes.
pub(crate) static TABLE_1: Experiment = Experiment {
    id: "pbe/table1",
    title: "PBE-CC against BBR, Verus, Copa and CUBIC at 40 places",
    source: "PBE-CC §6.2.1 Table 1",
    world: "The paper's links are not published. Ours are drawn from distributions; the losses of the Internet and the queues \
            of base stations are fitted, and the same places without losses and with deep queues are shown beside them.",
    evidence: Evidence::Simulated(links),
    findings: table_1,
};

/// Fig. 10: distributions over the places.
pub(crate) static FIG_10: Experiment = Experiment {
    id: "pbe/fig10",
    title: "Throughput and delay over the 40 places",
    source: "PBE-CC §6.2.1 Fig. 10",
    world: "",
    evidence: Evidence::Simulated(links),
    findings: fig_10,
};

/// Figs. 11 and 12: percentiles at six places.
pub(crate) static FIG_11: Experiment = Experiment {
    id: "pbe/fig11",
    title: "Percentiles of throughput and delay of eight schemes at six places",
    source: "PBE-CC §6.2.1 Figs. 11, 12",
    world: "",
    evidence: Evidence::Simulated(links),
    findings: fig_11,
};

/// Fig. 13: at how many places a scheme has more than one carrier.
pub(crate) static FIG_13: Experiment = Experiment {
    id: "pbe/fig13",
    title: "Places at which a scheme gets more than one carrier",
    source: "PBE-CC §6.2.1 Fig. 13",
    world: "",
    evidence: Evidence::Simulated(links),
    findings: fig_13,
};

/// Share of time in the Internet state.
pub(crate) static STATES: Experiment = Experiment {
    id: "pbe/states",
    title: "Share of time in which PBE-CC sees its bottleneck in the Internet",
    source: "PBE-CC §6.2.1",
    world: "The Internet of our places loses packets, and no other traffic is on it.",
    evidence: Evidence::Simulated(links),
    findings: states,
};

/// The schemes at the fitted places.
const SCHEMES: &[&str] = &[
    "pbe",
    "bbr",
    "cubic",
    "verus@pantheon",
    "sprout@pantheon",
    "copa@pantheon",
    "allegro@pantheon",
    "vivace@pantheon",
    "pbe@paper",
    "oracle",
];

fn links(size: Size) -> Vec<Campaign> {
    let campaign = |name, schemes| Campaign {
        name,
        per_stratum: size.choose(None, Some(1)),
        ..Campaign::of("pbe-places", schemes, size.seeds(2))
    };
    let deep = campaign("without losses", &["pbe", "bbr", "cubic", "verus@pantheon", "copa@pantheon"][..])
        .with("forward.loss", 0)
        .with("device.0.radio.queue_bytes", 6_000_000);
    vec![campaign("", SCHEMES), deep]
}

fn is_busy(run: &Run) -> bool {
    run.variant.starts_with("busy")
}

/// The places with busy cells, with idle ones, and all.
fn hours<'a>(runs: &Runs<'a>) -> [(&'static str, Runs<'a>); 2] {
    [("busy", runs.such(is_busy)), ("idle", runs.such(|run| !is_busy(run)))]
}

fn table_1(results: &Results) -> Findings {
    /// Scheme; throughput of PBE-CC over it, its p95 delay over PBE-CC's, its mean delay over PBE-CC's, each busy and idle.
    const PAPER: [(&str, [[f64; 2]; 3]); 3] = [
        ("bbr", [[1.04, 1.10], [1.54, 2.07], [1.39, 1.84]]),
        ("verus@pantheon", [[1.25, 2.01], [3.97, 3.44], [2.53, 2.67]]),
        ("copa@pantheon", [[10.35, 12.94], [0.80, 0.79], [0.80, 0.82]]),
    ];
    let mut numbers = Vec::new();
    for (world, suffix) in [("", ""), ("without losses", ", no losses, deep queues")] {
        let runs = results.of(world);
        for (scheme, [rate, p95, mean]) in PAPER {
            let name = look::name(scheme);
            for (at, (hour, runs)) in hours(&runs).iter().enumerate() {
                let ratio = |what: &str, paper: f64, ours: Option<Estimate>, factor: f64| {
                    Number::new(format!("{what}, {hour}{suffix}"), "", paper, ours, Rule::Side(factor))
                };
                let factor = if scheme == "copa@pantheon" { 3.0 } else { 1.3 };
                numbers.extend([
                    ratio(
                        &format!("throughput, PBE-CC ÷ {name}"),
                        rate[at],
                        runs.ratio("pbe", scheme, throughput),
                        factor,
                    ),
                    ratio(
                        &format!("p95 delay, {name} ÷ PBE-CC"),
                        p95[at],
                        runs.ratio(scheme, "pbe", p95_delay),
                        1.5,
                    ),
                    ratio(
                        &format!("mean delay, {name} ÷ PBE-CC"),
                        mean[at],
                        runs.ratio(scheme, "pbe", mean_delay),
                        1.5,
                    ),
                ]);
            }
        }
        let cubic = |what: &str, paper, ours| {
            Number::new(format!("{what}, all{suffix}"), "", paper, ours, Rule::Side(1.5))
        };
        let faster = cubic("throughput, PBE-CC ÷ CUBIC", 2.3, runs.ratio("pbe", "cubic", throughput));
        numbers.push(if world.is_empty() { faster.fitted() } else { faster });
        numbers.push(cubic("p95 delay, CUBIC ÷ PBE-CC", 1.8, runs.ratio("cubic", "pbe", p95_delay)));
    }
    Findings { numbers, ..Findings::default() }
}

/// The distribution of a value over the places.
fn cdf(runs: &Runs<'_>, scheme: &str, of: impl Fn(&Run) -> Option<f64>) -> Mark {
    let values: Vec<f64> = runs.with(scheme).by_place(of).into_iter().map(|(_, value)| value).collect();
    Mark::Line(Line::cdf(look::style(scheme), &values))
}

fn fig_10(results: &Results) -> Findings {
    const FOUR: [&str; 4] = ["pbe", "bbr", "verus@pantheon", "cubic"];
    let runs = results.all();
    let panel = |title: &str, x: Axis, of: fn(&Run) -> Option<f64>| Panel {
        title: title.to_owned(),
        x,
        y: Axis { range: Some((0.0, 1.0)), ..Axis::linear("share of places") },
        marks: FOUR.iter().map(|scheme| cdf(&runs, scheme, of)).collect(),
        ..Panel::default()
    };
    let rate = Axis { range: Some((0.0, 100.0)), ..Axis::linear("throughput (Mbit/s)") };
    let delay = Axis { range: Some((30.0, 640.0)), ..Axis::log("p95 one-way delay (ms)") };
    let panels = vec![panel("a", rate, throughput), panel("b", delay, p95_delay)];
    let deciles = |scheme: &str, of: fn(&Run) -> Option<f64>| {
        let mut values: Vec<f64> =
            runs.with(scheme).by_place(of).into_iter().map(|(_, value)| value).collect();
        values.sort_by(f64::total_cmp);
        (1..10)
            .filter_map(|tenth| airpace_run::metrics::nearest_rank(&values, f64::from(tenth) / 10.0).copied())
            .collect()
    };
    let numbers = FOUR[1..].iter().map(|scheme| {
        let (ours, theirs): (Vec<f64>, Vec<f64>) = (deciles("pbe", p95_delay), deciles(scheme, p95_delay));
        let shorter = ours.iter().zip(&theirs).filter(|(ours, theirs)| ours <= theirs).count();
        let value = (!ours.is_empty()).then_some(Estimate { value: shorter as f64, interval: None });
        let what = format!("deciles of p95 delay at which PBE-CC is not above {}", look::name(scheme));
        Number::claim(what, "of 9", value, Rule::AtLeast(8.0))
    });
    let figure = Figure {
        title: "PBE-CC Fig. 10".to_owned(),
        caption: "Distribution over the places of throughput and 95th percentile of one-way delay."
            .to_owned(),
        legend: Entry::of(&panels),
        panels,
        columns: 2,
        ..Figure::default()
    };
    Findings { numbers: numbers.collect(), pictures: vec![Picture { name: "pbe-fig10", figure }] }
}

/// The six places of Figs. 11 and 12, by stratum and the panel's name.
const SIX: [(&str, &str); 6] = [
    ("busy-1-in-1", "one cell, indoor, busy"),
    ("busy-2-in-1", "two cells, indoor, busy"),
    ("busy-3-in-1", "three cells, indoor, busy"),
    ("idle-3-in-1", "three cells, indoor, idle"),
    ("busy-2-out-1", "two cells, outdoor, busy"),
    ("idle-2-out-1", "two cells, outdoor, idle"),
];

fn fig_11(results: &Results) -> Findings {
    let runs = results.all();
    let spread = |place: &str, scheme: &str| {
        let run = *runs.with(scheme).such(|run| run.variant == place).0.first()?;
        let delay = &run.courses[0].delay_quantiles_ms;
        let rate = run.flow(0).throughput_100ms;
        let [Some(p10), Some(p25), Some(p50), Some(p75), Some(p90)] =
            [rate.p10, rate.p25, rate.p50, rate.p75, rate.p90]
        else {
            return None;
        };
        let &[d10, d25, d50, d75, d90] = delay.as_slice() else { return None };
        Some(Mark::Cross(Spread {
            style: look::style(scheme),
            x: Percentiles { p10: d10, p25: d25, p50: d50, p75: d75, p90: d90 },
            y: Percentiles { p10, p25, p50, p75, p90 },
            labelled: true,
        }))
    };
    let panels: Vec<Panel> = SIX
        .iter()
        .map(|(place, title)| Panel {
            title: (*title).to_owned(),
            x: Axis::log("one-way delay (ms)"),
            y: Axis::linear("throughput (Mbit/s)"),
            marks: EIGHT.iter().filter_map(|scheme| spread(place, scheme)).collect(),
            ..Panel::default()
        })
        .collect();
    let width = |hour: &str| {
        let its = runs.with("pbe").such(|run| run.variant.starts_with(hour));
        Estimate::of(&its.values(|run| {
            let rate = run.flow(0).throughput_100ms;
            Some(rate.p90? / rate.p10.filter(|p10| *p10 > 0.0)?)
        }))
    };
    let (busy, idle) = (width("busy"), width("idle"));
    let ratio =
        busy.zip(idle).map(|(busy, idle)| Estimate { value: busy.value / idle.value, interval: None });
    let figure = Figure {
        title: "PBE-CC Figs. 11 and 12".to_owned(),
        caption: "10th, 25th, 50th, 75th and 90th percentiles of throughput per 100 ms and of one-way delay."
            .to_owned(),
        legend: Entry::of(&panels),
        panels,
        columns: 3,
        ..Figure::default()
    };
    let what = "spread of PBE-CC's throughput (p90 ÷ p10), busy over idle; the paper: smaller when idle";
    Findings {
        numbers: vec![Number::claim(what, "", ratio, Rule::AtLeast(1.0))],
        pictures: vec![Picture { name: "pbe-fig11", figure }],
    }
}

/// Share of the active time with more than the primary carrier, from which on aggregation counts as triggered.
///
/// Chosen: a twentieth of a flow of 20 s is a second.
const TRIGGERED: f64 = 0.05;

fn fig_13(results: &Results) -> Findings {
    let runs = results.all().such(|run| !run.stratum().contains("-1-"));
    let aggregated = |scheme: &str| {
        let share = |run: &Run| Some(run.courses[0].share_beyond_primary((0.0, run.summary.duration_s)));
        let places = runs.with(scheme).by_place(share);
        (places.iter().filter(|(_, share)| *share > TRIGGERED).count(), places.len())
    };
    let bars = EIGHT.iter().enumerate().map(|(at, scheme)| {
        let value = aggregated(scheme).0 as f64;
        let bar = Bar { x: at as f64, value, error: None };
        Mark::Bars(Bars {
            style: Style { name: String::new(), ..look::style(scheme) },
            bars: vec![bar],
            second_y: false,
        })
    });
    let names: Vec<String> = EIGHT.iter().map(|scheme| look::name(scheme)).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let panel = Panel {
        x: Axis::categories("", &names),
        y: Axis::linear("places with several carriers"),
        marks: bars.collect(),
        ..Panel::default()
    };
    let figure = Figure {
        title: "PBE-CC Fig. 13".to_owned(),
        caption:
            "Places, of those where the phone can use several carriers, at which a scheme got more than one."
                .to_owned(),
        panels: vec![panel],
        panel_width: 720.0,
        ..Figure::default()
    };
    let numbers = EIGHT.iter().map(|scheme| {
        let (count, places) = aggregated(scheme);
        let share = (places > 0).then(|| Estimate { value: count as f64 / places as f64, interval: None });
        let is_greedy = ["pbe", "bbr", "cubic", "verus@pantheon"].contains(scheme);
        // 25 of 30 places, or fewer than half.
        let rule = if is_greedy { Rule::AtLeast(0.83) } else { Rule::AtMost(0.49) };
        Number::claim(
            format!("share of places where {} gets further carriers", look::name(scheme)),
            "",
            share,
            rule,
        )
    });
    Findings { numbers: numbers.collect(), pictures: vec![Picture { name: "pbe-fig13", figure }] }
}

fn states(results: &Results) -> Findings {
    let runs = results.all();
    let share = |run: &Run| {
        let states = &run.flow(0).state_share;
        let in_internet = ["Internet", "Drain"].iter().filter_map(|state| states.get(*state));
        Some(100.0 * in_internet.sum::<f64>())
    };
    let mut numbers = Vec::new();
    for (scheme, name) in [("pbe", "PBE-CC"), ("pbe@paper", "PBE-CC as printed")] {
        for ((hour, runs), paper) in hours(&runs).iter().zip([18.0, 4.0]) {
            let ours = runs.with(scheme).mean(share);
            numbers.push(Number::new(
                format!("{name}, {hour}"),
                "% of time",
                paper,
                ours,
                Rule::Within(10.0),
            ));
        }
    }
    Findings { numbers, ..Findings::default() }
}
