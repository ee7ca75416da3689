//! KPIs of the recorded links beside the throughput of the receiver: Figs. 1, 5 and 7.

use airpace_plot::{Area, Axis, Bar, Bars, Entry, Figure, Line, Mark, Panel, Style};
use airpace_run::statistics::{self, Estimate};
use airpace_sim::scenario::{ModemKpis, Recording};

use super::recording;
use crate::experiment::{Evidence, Experiment, Findings, Picture};
use crate::number::{Number, Rule};
use crate::statistics::pearson;

/// Fig. 5.
pub(crate) static FIG_5: Experiment = Experiment {
    id: "biscay/fig5",
    title: "Correlation of the modem's KPIs with the throughput of the receiver",
    source: "BISCAY §5.2 Fig. 5",
    world: "The first link of each stratum, saturated as in its recording; per 100 ms. The delay from grant to arrival is removed, \
            as in the paper's figure: the shift of at most 40 ms with the largest correlation. Granted bytes are the sum of \
            the transport blocks here, so the paper's two methods are one.",
    evidence: Evidence::Simulated(|_| Vec::new()),
    findings: |_| fig_5(),
};

/// Figs. 1 and 7.
pub(crate) static FIG_7: Experiment = Experiment {
    id: "biscay/fig7",
    title: "Bandwidth and PRBs of a mobile link, as the modem reports them",
    source: "BISCAY §1 Fig. 1, §5.2 Fig. 7",
    world: "The figures show one link each. The paper gives no numbers; the claim is that reports of every second miss changes that \
            reports of every 10 ms show.",
    evidence: Evidence::Simulated(|_| Vec::new()),
    findings: |_| fig_7(),
};

/// The first link of each stratum.
const LINKS: [&str; 8] = [
    "lte-mobile-peak-01",
    "lte-mobile-off-01",
    "lte-static-peak-01",
    "lte-static-off-01",
    "nr-mobile-peak-01",
    "nr-mobile-off-01",
    "nr-static-peak-01",
    "nr-static-off-01",
];

/// Interval of the correlation, in ms.
const INTERVAL: usize = 100;

/// Maximum delay from a grant to the arrival of its data, in ms.
const MAX_SHIFT: usize = 40;

/// Number of opportunities in each millisecond of a recording.
fn arrivals(recording: &Recording) -> Vec<f64> {
    let mut arrivals = vec![0.0; recording.kpis.len()];
    for &time_ms in recording.trace.times_ms() {
        // An opportunity at the end of a millisecond belongs to that millisecond.
        if let Some(count) = arrivals.get_mut((time_ms as usize).saturating_sub(1)) {
            *count += 1.0;
        }
    }
    arrivals
}

/// A value of the KPIs of an interval.
type OfKpis = fn(&[ModemKpis]) -> Option<f64>;

fn granted(kpis: &[ModemKpis]) -> Option<f64> {
    Some(kpis.iter().map(|kpi| kpi.granted.0 as f64).sum())
}

fn prbs(kpis: &[ModemKpis]) -> Option<f64> {
    Some(kpis.iter().map(|kpi| f64::from(kpi.prbs)).sum())
}

fn mcs(kpis: &[ModemKpis]) -> Option<f64> {
    statistics::mean(&kpis.iter().filter_map(|kpi| kpi.mcs).collect::<Vec<_>>())
}

fn sinr(kpis: &[ModemKpis]) -> Option<f64> {
    statistics::mean(&kpis.iter().filter_map(|kpi| kpi.sinr_db).collect::<Vec<_>>())
}

/// The KPIs, with the number of the paper: at least it for the bandwidth, at most it for a raw KPI.
const KPIS: [(&str, OfKpis, Rule); 4] = [
    ("granted bytes", granted, Rule::AtLeast(0.95)),
    ("PRBs", prbs, Rule::AtMost(0.75)),
    ("MCS", mcs, Rule::AtMost(0.75)),
    ("SINR", sinr, Rule::AtMost(0.75)),
];

/// Correlation of a KPI with the arrivals that are `shift` ms later.
fn correlation(kpis: &[ModemKpis], arrivals: &[f64], of: OfKpis, shift: usize) -> Option<f64> {
    let later = &arrivals[shift.min(arrivals.len())..];
    let pairs = kpis.chunks_exact(INTERVAL).zip(later.chunks_exact(INTERVAL));
    let pairs = pairs.filter_map(|(kpis, arrivals)| Some((of(kpis)?, arrivals.iter().sum::<f64>())));
    let (kpi, arrived): (Vec<f64>, Vec<f64>) = pairs.unzip();
    pearson(&kpi, &arrived)
}

fn fig_5() -> Findings {
    let recordings: Vec<Recording> = LINKS.iter().filter_map(|link| recording(link)).collect();
    let of_link = |recording: &Recording| -> [Option<f64>; 4] {
        let arrivals = arrivals(recording);
        let at = |shift: usize| correlation(&recording.kpis, &arrivals, granted, shift);
        let best = (0..=MAX_SHIFT)
            .max_by(|one, other| at(*one).unwrap_or(-1.0).total_cmp(&at(*other).unwrap_or(-1.0)));
        KPIS.map(|(_, of, _)| correlation(&recording.kpis, &arrivals, of, best.unwrap_or(0)))
    };
    let all: Vec<[Option<f64>; 4]> = recordings.iter().map(of_link).collect();
    let numbers = KPIS.iter().enumerate().map(|(at, (name, _, rule))| {
        let ours = Estimate::of(&all.iter().filter_map(|values| values[at]).collect::<Vec<_>>());
        let paper = if at == 0 { 0.95 } else { 0.75 };
        Number::new(format!("Pearson's r of {name}"), "", paper, ours, *rule)
    });
    const COLOURS: [&str; 4] = ["#0072B2", "#E69F00", "#009E73", "#CC79A7"];
    let bars = |(at, (name, ..)): (usize, &(&str, OfKpis, Rule))| {
        let bar = |(link, values): (usize, &[Option<f64>; 4])| {
            Some(Bar { x: link as f64, value: values[at]?, error: None })
        };
        let bars = all.iter().enumerate().filter_map(bar).collect();
        Mark::Bars(Bars { style: Style::new(name, COLOURS[at]), bars, second_y: false })
    };
    let names = LINKS.map(|link| link.trim_end_matches("-01"));
    let rates = Panel {
        title: "correlation".to_owned(),
        x: Axis::categories("", &names),
        y: Axis { range: Some((-0.5, 1.0)), ..Axis::linear("Pearson's r") },
        marks: KPIS.iter().enumerate().map(bars).collect(),
        ..Panel::default()
    };
    let panels: Vec<Panel> = std::iter::once(rates).chain(bandwidths()).collect();
    let figure = Figure {
        title: "BISCAY Fig. 5".to_owned(),
        caption: "Correlation per 100 ms of KPIs with the throughput of the receiver, and both over time on a mobile link in a \
                  busy hour."
            .to_owned(),
        legend: Entry::of(&panels),
        panels,
        panel_width: 720.0,
        plot_height: 200.0,
        ..Figure::default()
    };
    Findings { numbers: numbers.collect(), pictures: vec![Picture { name: "biscay-fig5", figure }] }
}

/// Mbit/s per interval of a list of amounts per millisecond, each of this many bits.
fn mbps(amounts: &[f64], every_ms: usize, bits: f64) -> Vec<(f64, f64)> {
    let of = |(at, values): (usize, &[f64])| {
        let sum: f64 = values.iter().sum();
        (at as f64 * every_ms as f64 * 1e-3, sum * bits * 1e-3 / values.len() as f64)
    };
    amounts.chunks(every_ms).enumerate().map(of).collect()
}

/// Throughput of the receiver and granted bandwidth of a mobile link with two carriers.
fn bandwidths() -> Option<Panel> {
    let recording = recording(LINKS[0])?;
    let bytes: Vec<f64> = recording.kpis.iter().map(|kpi| kpi.granted.0 as f64).collect();
    let line = |name: &str, colour: &str, points| {
        Mark::Line(Line { stepped: true, ..Line::new(Style::new(name, colour), points) })
    };
    Some(Panel {
        title: LINKS[0].to_owned(),
        x: Axis::linear("time (s)"),
        y: Axis::linear("Mbit/s"),
        marks: vec![
            line("receiver", "#000000", mbps(&arrivals(&recording), INTERVAL, 12_000.0)),
            line("granted bytes", "#0072B2", mbps(&bytes, INTERVAL, 8.0)),
        ],
        ..Panel::default()
    })
}

/// Intervals of reports in ms: those of OpenDiag and of MobileInsight.
const REPORTS: [(usize, &str, &str); 2] = [(10, "every 10 ms", "#0072B2"), (1000, "every second", "#D55E00")];

fn fig_7() -> Findings {
    // Fig. 1 is a mobile link of 5G; Fig. 7 has the link of Fig. 5.
    let (mobile, aggregated) = (recording("nr-mobile-peak-01"), recording(LINKS[0]));
    let per_ms = |recording: &Recording| -> Vec<f64> {
        recording.kpis.iter().map(|kpi| f64::from(kpi.prbs)).collect()
    };
    // Mean distance of the PRBs that a reader of reports assumes from those of the present 10 ms, over their mean.
    let off = aggregated.as_ref().and_then(|recording| {
        let prbs = per_ms(recording);
        let means = |every: usize| -> Vec<f64> {
            prbs.chunks(every).map(|part| part.iter().sum::<f64>() / part.len() as f64).collect()
        };
        let (fine, coarse) = (means(REPORTS[0].0), means(REPORTS[1].0));
        let distance = |every: usize, known: &[f64]| {
            let errors = fine.iter().enumerate().skip(100).map(|(at, now)| {
                // A report covers the interval before it.
                let last = at * REPORTS[0].0 / every;
                (now - known[last - 1]).abs()
            });
            statistics::mean(&errors.collect::<Vec<_>>())
        };
        super::over(distance(REPORTS[1].0, &coarse), distance(REPORTS[0].0, &fine))
    });
    let what = "distance of the last report from the present PRBs, reports of every second ÷ of every 10 ms; the paper: outdated";
    let numbers = vec![Number::claim(what, "", off, Rule::AtLeast(1.1))];
    let time = || Axis::linear("time (s)");
    let mut pictures = Vec::new();
    if let Some(recording) = &mobile {
        let bytes: Vec<f64> = recording.kpis.iter().map(|kpi| kpi.granted.0 as f64).collect();
        let link = Area {
            style: Style::new("5G link", "#BBBBBB"),
            points: mbps(&bytes, INTERVAL, 8.0),
            stepped: true,
            second_y: false,
        };
        let received = mbps(&arrivals(recording), INTERVAL, 12_000.0);
        let received = Line { stepped: true, ..Line::new(Style::new("end to end", "#0072B2"), received) };
        let panel = Panel {
            x: time(),
            y: Axis::linear("Mbit/s"),
            marks: vec![Mark::Area(link), Mark::Line(received)],
            ..Panel::default()
        };
        pictures.push(Picture { name: "biscay-fig1", figure: Figure {
            title: "BISCAY Fig. 1".to_owned(),
            caption: "Bandwidth of a mobile 5G link by the modem's grants, and what arrives at the other end, per 100 ms."
                .to_owned(),
            legend: Entry::of(std::slice::from_ref(&panel)),
            panels: vec![panel],
            panel_width: 720.0,
            ..Figure::default()
        }});
    }
    if let Some(recording) = &aggregated {
        let prbs = per_ms(recording);
        let line = |(every, name, colour): (usize, &str, &str)| {
            let of = |(at, part): (usize, &[f64])| {
                // A report is known at the end of its interval.
                ((at + 1) as f64 * every as f64 * 1e-3, part.iter().sum::<f64>() / part.len() as f64)
            };
            let points = prbs.chunks(every).enumerate().map(of).collect();
            Mark::Line(Line { stepped: true, ..Line::new(Style::new(name, colour), points) })
        };
        let panel = Panel {
            x: Axis { range: Some((5.0, 15.0)), ..time() },
            y: Axis::linear("PRBs per ms"),
            marks: REPORTS.into_iter().map(line).collect(),
            ..Panel::default()
        };
        pictures.push(Picture {
            name: "biscay-fig7",
            figure: Figure {
                title: "BISCAY Fig. 7".to_owned(),
                caption: "PRBs granted to a device, as means of the last 10 ms and of the last second."
                    .to_owned(),
                legend: Entry::of(std::slice::from_ref(&panel)),
                panels: vec![panel],
                panel_width: 720.0,
                ..Figure::default()
            },
        });
    }
    Findings { numbers, pictures }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shift_finds_the_delay_from_grant_to_arrival() {
        let amount = |ms: usize| if (ms / 150).is_multiple_of(2) { 3.0 } else { 1.0 };
        let kpi = |ms: usize| ModemKpis { prbs: amount(ms) as u32, ..ModemKpis::default() };
        let kpis: Vec<ModemKpis> = (0..3000).map(kpi).collect();
        let arrivals: Vec<f64> = (0..3000).map(|ms: usize| amount(ms.saturating_sub(20))).collect();
        let at = |shift| correlation(&kpis, &arrivals, prbs, shift).unwrap();
        assert!(at(20) > 0.999 && at(0) < 0.95, "{} and {}", at(20), at(0));
    }
}
