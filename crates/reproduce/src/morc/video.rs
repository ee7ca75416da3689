//! Adaptive video: the bursts of Fig. 2, the phones of Fig. 6, and the lab of §4.2.

use crate::experiment::{Campaign, Evidence, Experiment, Findings, Picture, Size};
use crate::look;
use crate::number::{Number, Rule};
use crate::results::{Results, Run, Runs};
use airpace_plot::{Axis, Bar, Bars, Dash, Entry, Figure, Line, Mark, Panel, Style};
use airpace_run::metrics::course::between;
use airpace_run::metrics::{Course, Video};
use airpace_run::statistics::{self, Estimate};

/// Fig. 2.
pub(crate) static FIG_2: Experiment = Experiment {
    id: "morc/fig2",
    title: "Course of the throughput of a 4K video over TCP",
    source: "MORC §2 Fig. 2",
    world: "The paper states neither link nor player. Ours is the fastest link of the lab.",
    evidence: Evidence::Simulated(|size| {
        vec![Campaign::of("video-lab", &["cubic@linux"], size.seeds(5)).with("variant", FASTEST)]
    }),
    findings: bursts,
};

/// Fig. 6 and the scores of §4.2.
pub(crate) static FIG_6: Experiment = Experiment {
    id: "morc/fig6",
    title: "Video of 16 phones from a MORC server and a CUBIC server",
    source: "MORC §4.2 Fig. 6",
    world: "The score is that of ITU-T P.1203's formulas; the paper's is that of an app, without a published formula. The base \
            station has a queue per phone, so the servers compete for PRBs only. A phone gets 2 to 5 Mbit/s, at which the \
            paper's losses (0.01 to 0.1 %) do not limit CUBIC: without losses, the ratios are the same. With losses of 1 %, the \
            MORC server is faster. Without fading, both are equally fast (2.76 and 2.74 Mbit/s in the evening, three seeds); \
            that CUBIC's longer queue uses the peaks of fading better is a guess.",
    evidence: Evidence::Simulated(field),
    findings: groups,
};

/// The lab of §4.2.
pub(crate) static LAB: Experiment = Experiment {
    id: "morc/video-lab",
    title: "Start-up and stalls of a video in the lab",
    source: "MORC §4.2",
    world: "The links are six of Table 1's, because the paper does not state those of the video. Our player starts with the \
            lowest bitrate, 72 kB, which arrive in a few round trips, before a scheme has found the rate. With 8.1 Mbit/s \
            only, the first segment has 4 MB.",
    evidence: Evidence::Simulated(|size| {
        vec![lab(size), Campaign { name: ONE.0, ..lab(size) }.with(LADDER, EIGHT_MBPS)]
    }),
    findings: starts,
};

/// The paper's schemes, as in Linux.
pub(super) const SCHEMES: &[&str] = &["morc", "cubic@linux", "bbr"];

/// The link on which the highest representation leaves silences.
const FASTEST: &str = "20-120mbps-12-28ms";

/// A value of a run.
type Value = fn(&Run) -> Option<f64>;

/// Number of phones of each server.
const PHONES: usize = 8;

/// Key of the representations, and one representation whose segments have 4 MB.
const LADDER: &str = "flow.0.video.ladder.representation";
const EIGHT_MBPS: &str = "[{ bitrate_mbps = 8.1, width = 2560, height = 1440 }]";

/// The campaign with a single representation, with the suffix of its numbers.
const ONE: (&str, &str) = ("one bitrate", ", 8.1 Mbit/s only");

/// The videos in the lab.
pub(super) fn lab(size: Size) -> Campaign {
    Campaign::of("video-lab", SCHEMES, size.seeds(5))
}

/// Score of the first flow's video.
pub(super) fn score(run: &Run) -> Option<f64> {
    video(run, 0)?.score
}

fn video(run: &Run, flow: usize) -> Option<&Video> {
    run.flow(flow).video.as_ref()
}

fn single(value: Option<f64>) -> Option<Estimate> {
    value.map(|value| Estimate { value, interval: None })
}

/// Span of the run in which the buffer is full and segments remain, in s: the last of a video of 120 s is requested before
/// 72 s.
const STEADY_S: (f64, f64) = (40.0, 70.0);

fn bursts(results: &Results) -> Findings {
    let runs = results.all();
    let silent = |run: &Run| {
        let bytes = between(&run.courses[0].bytes, STEADY_S);
        Some(100.0 * bytes.iter().filter(|bytes| **bytes == 0).count() as f64 / bytes.len() as f64)
    };
    let peak = |run: &Run| {
        let bytes = between(&run.courses[0].bytes, STEADY_S);
        let sending: Vec<f64> = bytes.iter().filter(|bytes| **bytes > 0).map(|bytes| *bytes as f64).collect();
        let all = bytes.iter().sum::<u64>() as f64 / bytes.len() as f64;
        statistics::mean(&sending).map(|sending| sending / all)
    };
    let numbers = vec![
        Number::claim(
            "time without data from 40 to 70 s; the paper: bursts with silences",
            "%",
            runs.mean(silent),
            Rule::AtLeast(20.0),
        ),
        Number::claim(
            "throughput while data arrives ÷ that of the whole time; the paper: bursts",
            "",
            runs.mean(peak),
            Rule::AtLeast(1.25),
        ),
    ];
    let line = |run: &&Run| {
        let points = run.courses[0].mbps().enumerate().map(|(at, mbps)| (at as f64 / 10.0, mbps)).collect();
        let style = Style { dash: Dash::Solid, ..look::style(&run.scheme) };
        Mark::Line(Line { stepped: true, ..Line::new(style, points) })
    };
    let panel = Panel {
        x: Axis { range: Some((0.0, 80.0)), ..Axis::linear("time (s)") },
        y: Axis::linear("throughput (Mbit/s)"),
        marks: runs.0.first().map(line).into_iter().collect(),
        ..Panel::default()
    };
    let figure = Figure {
        title: "MORC Fig. 2".to_owned(),
        caption:
            "Throughput of an adaptive 4K video per 100 ms: the buffer fills, then each segment is a burst. The last \
                  segment of the 120 s arrives at about 72 s."
                .to_owned(),
        panels: vec![panel],
        panel_width: 720.0,
        ..Figure::default()
    };
    Findings { numbers, pictures: vec![Picture { name: "morc-fig2", figure }] }
}

/// The campaigns of Fig. 6, with the suffixes of their numbers.
const WORLDS: [(&str, &str); 3] =
    [("", ""), ("without losses", ", no losses"), ("more losses", ", 1 % losses")];

fn field(size: Size) -> Vec<Campaign> {
    let campaign = |(name, _)| Campaign { name, ..Campaign::of("video-adaptive", &["morc"], size.seeds(5)) };
    let [stated, without, more] = WORLDS.map(campaign);
    match size {
        Size::Whole => {
            vec![stated, without.with("forward.loss", 0.0), more.with("forward.loss", 0.01)]
        }
        Size::Quick => vec![stated.with("variant", "evening")],
    }
}

/// A value of each phone of a group: the MORC server's phones come first.
fn of_group(run: &Run, group: usize, of: fn(&Video) -> Option<f64>) -> Vec<f64> {
    (group * PHONES..(group + 1) * PHONES).filter_map(|flow| of(video(run, flow)?)).collect()
}

/// A value of all phones of a group in all runs.
fn of_runs(runs: &Runs<'_>, group: usize, of: fn(&Video) -> Option<f64>) -> Vec<f64> {
    runs.0.iter().flat_map(|run| of_group(run, group, of)).collect()
}

/// Ratio of the groups' means, MORC's over CUBIC's, of each run; then the mean over the runs.
fn ratio(runs: &Runs<'_>, of: fn(&Video) -> Option<f64>) -> Option<Estimate> {
    runs.mean(|run| Some(statistics::mean(&of_group(run, 0, of))? / statistics::mean(&of_group(run, 1, of))?))
}

fn groups(results: &Results) -> Findings {
    let mut numbers = Vec::new();
    for (world, suffix) in WORLDS {
        let runs = results.of(world);
        if runs.0.is_empty() {
            continue;
        }
        let of_run =
            |group: usize| runs.mean(|run| statistics::mean(&of_group(run, group, |video| video.score)));
        let variance =
            |group: usize| statistics::deviation(&of_runs(&runs, group, |video| video.score)).map(|d| d * d);
        let variances = variance(0).zip(variance(1)).map(|(morc, cubic)| morc / cubic);
        let named = |what: &str| format!("{what}{suffix}");
        if world.is_empty() {
            numbers.extend([
                Number::new("MORC, mean score", "", 3.74, of_run(0), Rule::Within(0.5)),
                Number::new("CUBIC, mean score", "", 3.37, of_run(1), Rule::Within(0.5)),
            ]);
        }
        numbers.extend([
            Number::new(
                named("score above the minimum of 1, MORC ÷ CUBIC"),
                "",
                1.16,
                ratio(&runs, |video| video.score.map(|score| score - 1.0)),
                Rule::Side(2.0),
            ),
            Number::new(
                named("variance of the score over phones and runs, MORC ÷ CUBIC"),
                "",
                0.75,
                single(variances),
                Rule::Side(2.0),
            ),
            Number::claim(
                format!("throughput of the server while it sends, MORC ÷ CUBIC{suffix}; the paper: higher"),
                "",
                ratio(&runs, |video| video.throughput_mbps),
                Rule::AtLeast(1.0),
            ),
            Number::claim(
                format!(
                    "bitrate of the video, MORC ÷ CUBIC{suffix}; the paper: sometimes higher resolutions"
                ),
                "",
                ratio(&runs, |video| video.bitrate_mbps),
                Rule::AtLeast(1.0),
            ),
        ]);
    }
    Findings { numbers, pictures: vec![Picture { name: "morc-fig6", figure: servers(&results.all()) }] }
}

/// Appearance of a group.
fn style_of(group: usize) -> Style {
    look::style(["morc", "cubic@linux"][group])
}

/// Throughput of the two servers over time in one run, and the scores of all phones.
fn servers(runs: &Runs<'_>) -> Figure {
    const EVERY: usize = 20;
    let course = |run: &Run, group: usize| {
        let courses: &[Course] = &run.courses[group * PHONES..(group + 1) * PHONES];
        let sum = |at: usize| courses.iter().flat_map(|one| one.mbps().skip(at).take(EVERY)).sum::<f64>();
        let spans = (0..courses[0].bytes.len()).step_by(EVERY);
        spans.map(|at| ((at + EVERY / 2) as f64 / 10.0, sum(at) / EVERY as f64)).collect()
    };
    let line = |run: &&Run, group| Mark::Line(Line::new(style_of(group), course(run, group)));
    let shown = runs.such(|run| run.variant == "evening");
    let first = shown.0.first();
    let over_time = Panel {
        title: "the servers, in the evening".to_owned(),
        x: Axis { range: Some((0.0, 120.0)), ..Axis::linear("time (s)") },
        y: Axis { range: None, ..Axis::linear("throughput (Mbit/s)") },
        marks: first.map(|run| vec![line(run, 0), line(run, 1)]).unwrap_or_default(),
        ..Panel::default()
    };
    let scores = |group| Mark::Line(Line::cdf(style_of(group), &of_runs(runs, group, |video| video.score)));
    let of_phones = Panel {
        title: "the phones, at all times".to_owned(),
        x: Axis { range: Some((1.0, 5.0)), ..Axis::linear("score") },
        y: Axis { range: Some((0.0, 1.0)), ..Axis::linear("share of phones") },
        marks: vec![scores(0), scores(1)],
        ..Panel::default()
    };
    let panels = vec![over_time, of_phones];
    Figure {
        title: "MORC Fig. 6".to_owned(),
        caption:
            "Throughput of the two servers to eight phones each, means per 2 s; distribution of the scores."
                .to_owned(),
        legend: Entry::of(&panels),
        panels,
        columns: 2,
        ..Figure::default()
    }
}

/// Coefficient of variation of the throughput per second, from 20 s until the last segments: how bursty the transmission is.
fn burstiness(run: &Run) -> Option<f64> {
    let bytes = between(&run.courses[0].bytes, (20.0, 70.0));
    let seconds: Vec<f64> = bytes.chunks(10).map(|second| second.iter().sum::<u64>() as f64).collect();
    Some(statistics::deviation(&seconds)? / statistics::mean(&seconds)?).filter(|value| value.is_finite())
}

fn starts(results: &Results) -> Findings {
    let mut numbers = Vec::new();
    for (world, suffix) in [("", ""), ONE] {
        let runs = results.of(world);
        numbers.extend(SCHEMES[1..].iter().flat_map(|other| beside(&runs, other, suffix)));
    }
    let runs = results.all();
    let values: [(&str, Value); 3] = [
        ("start-up (s)", |run| video(run, 0)?.start_up_s),
        ("stalls per video", |run| Some(video(run, 0)?.stalls as f64)),
        ("score", score),
    ];
    let panels: Vec<Panel> = values.iter().map(|(label, of)| by_link(&runs, label, *of)).collect();
    let links: Vec<String> =
        runs.variants().iter().enumerate().map(|(at, name)| format!("{}: {name}", at + 1)).collect();
    let figure = Figure {
        title: "MORC §4.2: a video in the lab".to_owned(),
        caption: format!("Start-up, stalls and score on each link. Links: {}.", links.join("; ")),
        legend: Entry::of(&panels),
        panels,
        panel_width: 720.0,
        plot_height: 150.0,
        ..Figure::default()
    };
    Findings { numbers, pictures: vec![Picture { name: "morc-video-lab", figure }] }
}

/// The claims on MORC beside another scheme.
fn beside(runs: &Runs<'_>, other: &str, suffix: &str) -> [Number; 4] {
    let start_up = |run: &Run| video(run, 0)?.start_up_s;
    let first = |run: &Run| video(run, 0)?.segment_mbps.first;
    let stalls = |run: &Run| Some(video(run, 0)?.stalls as f64);
    let (ours, others) = (runs.with("morc").by_place(stalls), runs.with(other).by_place(stalls));
    let fewer: Vec<f64> = ours
        .into_iter()
        .filter_map(|(place, count)| {
            others.iter().find(|(known, _)| *known == place).map(|(_, others)| count - others)
        })
        .collect();
    let ratio = |of: &dyn Fn(&Run) -> Option<f64>| runs.ratio("morc", other, of);
    let name = look::name(other);
    [
        Number::claim(
            format!("start-up time, MORC ÷ {name}{suffix}; the paper: shorter"),
            "",
            ratio(&start_up),
            Rule::AtMost(0.99),
        ),
        Number::claim(
            format!("stalls per video, MORC − {name}{suffix}; the paper: fewer"),
            "",
            Estimate::of(&fewer),
            Rule::AtMost(-0.01),
        ),
        Number::claim(
            format!("throughput of the first segment, MORC ÷ {name}{suffix}; the paper: higher"),
            "",
            ratio(&first),
            Rule::AtLeast(1.01),
        ),
        Number::claim(
            format!("variation of the throughput per second, MORC ÷ {name}{suffix}; the paper: less bursty"),
            "",
            ratio(&burstiness),
            Rule::AtMost(0.99),
        ),
    ]
}

/// Bars of a value for each link and scheme.
fn by_link(runs: &Runs<'_>, label: &str, of: Value) -> Panel {
    let variants = runs.variants();
    let names: Vec<String> = (1..=variants.len()).map(|link| link.to_string()).collect();
    let bars = |scheme: &&str| {
        let value = |variant: &str| {
            statistics::mean(&runs.with(scheme).such(|run| run.variant == variant).values(of))
        };
        let places = variants.iter().enumerate();
        let bars = places
            .filter_map(|(at, variant)| Some(Bar { x: at as f64, value: value(variant)?, error: None }));
        Mark::Bars(Bars { style: look::style(scheme), bars: bars.collect(), second_y: false })
    };
    Panel {
        x: Axis::categories("link", &names.iter().map(String::as_str).collect::<Vec<_>>()),
        y: Axis::linear(label),
        marks: SCHEMES.iter().map(bars).collect(),
        ..Panel::default()
    }
}
