//! The delay that a lost transport block causes.

use airpace_plot::{Axis, Entry, Figure, Line, Mark, Panel, Point, Points, Style};
use airpace_run::statistics;

use crate::experiment::{Campaign, Evidence, Experiment, Findings, Picture, Size};
use crate::number::{Number, Rule};
use crate::results::{Results, Run};

/// Fig. 3.
pub(crate) static FIG_3: Experiment = Experiment {
    id: "pbe/fig3",
    title: "Delay after a lost transport block",
    source: "PBE-CC §3 Fig. 3",
    world: "One packet per subframe, each in a block of its own, on a path without jitter. In the eighth subframe, our phone \
            gets the retransmission and no other block, because LTE's FDD has one downlink assignment per subframe; so the \
            packet of this subframe waits for the ninth. The paper counts no delay for it.",
    evidence: Evidence::Simulated(campaigns),
    findings,
};

const SCENARIO: &str = r#"
name = "pbe-fig3"
about = "One packet per subframe, each in a transport block of its own"
source = "PBE-CC §3 Fig. 3"
duration_s = 6
schemes = ["cbr:rate_mbps=100"]

[cell]
prbs = 100
bler = { model = "pbe", pbe_bit_error_rate = 3e-6, pbe_retransmission_factor = 0 }

[[device]]
radio.channel = { layers = 1, sinr_db = 25 }

[[flow]]
rtt_ms = 42
mss_bytes = 1000
rate_mbps = 8
stop_s = 5
"#;

/// Delay of the packet of the lost block, then of the packets of the following blocks, in ms.
const PAPER_MS: [f64; 9] = [8.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0, 0.0];

/// Number of packets without a delay before a loss, and number of packets after it, among which it must be the only loss.
const BEFORE: usize = 9;
const AFTER: usize = 10;

fn campaigns(size: Size) -> Vec<Campaign> {
    let campaign = Campaign::of("pbe-fig3", &["cbr:rate_mbps=100"], size.seeds(5));
    vec![Campaign { text: SCENARIO, traced_ms: Some((0, 5_000)), ..campaign }]
}

/// Delays of the packets above the smallest delay, in whole ms, in the order of sending.
fn extra_ms(run: &Run) -> Vec<f64> {
    let packets = run.trace.as_ref().and_then(|trace| trace.packets.first());
    let Some(packets) = packets else { return Vec::new() };
    let least = packets.iter().map(|(_, delay_ms)| *delay_ms).fold(f64::INFINITY, f64::min);
    packets.iter().map(|(_, delay_ms)| (delay_ms - least).round()).collect()
}

/// The delays around each loss that is far from any other.
fn around_losses(extra_ms: &[f64]) -> Vec<&[f64]> {
    let is_alone = |near: &&[f64]| {
        near[..BEFORE].iter().all(|ms| *ms == 0.0)
            && near[BEFORE] == PAPER_MS[0]
            && near[BEFORE + 1..].iter().all(|ms| *ms < PAPER_MS[0])
    };
    extra_ms.windows(BEFORE + 1 + AFTER).filter(is_alone).collect()
}

/// Mean delay of the packet this many packets after the lost one, in ms.
fn delay_after(run: &Run, packets: usize) -> Option<f64> {
    let extra_ms = extra_ms(run);
    let values: Vec<f64> = around_losses(&extra_ms).iter().map(|near| near[BEFORE + packets]).collect();
    statistics::mean(&values)
}

fn findings(results: &Results) -> Findings {
    let runs = results.all();
    let number = |(packets, paper): (usize, f64)| {
        let what = match packets {
            0 => "delay of the packet of a lost block".to_owned(),
            1 => "delay of the packet in the next block".to_owned(),
            _ => format!("delay of the packet {packets} blocks later"),
        };
        Number::new(what, "ms", paper, runs.mean(|run| delay_after(run, packets)), Rule::Within(0.0))
    };
    let numbers = PAPER_MS.into_iter().enumerate().map(number).collect();
    let pictures = runs
        .0
        .first()
        .map_or(Vec::new(), |run| vec![Picture { name: "pbe-fig3", figure: figure(&extra_ms(run)) }]);
    Findings { numbers, pictures }
}

/// The delays of the packets around the first loss.
fn figure(extra_ms: &[f64]) -> Figure {
    let near = around_losses(extra_ms).into_iter().next().unwrap_or_default();
    let at = |index: usize| index as f64 - BEFORE as f64;
    let ours =
        near.iter().enumerate().map(|(index, ms)| Point { x: at(index), y: *ms, label: String::new() });
    let paper = PAPER_MS.iter().enumerate().map(|(packets, ms)| (packets as f64, *ms)).collect();
    let panel = Panel {
        x: Axis {
            range: Some((-5.0, AFTER as f64)),
            ..Axis::linear("subframe of sending, from the lost block")
        },
        y: Axis { range: Some((0.0, 9.0)), ..Axis::linear("additional delay (ms)") },
        marks: vec![
            Mark::Line(Line::new(Style { name: "the paper".to_owned(), ..Style::default() }, paper)),
            Mark::Points(Points {
                style: Style::new("ours", "#0072B2"),
                points: ours.collect(),
                second_y: false,
            }),
        ],
        ..Panel::default()
    };
    Figure {
        title: "PBE-CC Fig. 3".to_owned(),
        caption: "One-way delay above the smallest one of the packets around a lost block.".to_owned(),
        legend: Entry::of(std::slice::from_ref(&panel)),
        panels: vec![panel],
        panel_width: 560.0,
        ..Figure::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_losses_far_from_others_count() {
        let mut extra = vec![0.0; 60];
        extra[20..28].copy_from_slice(&[8.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0]);
        assert_eq!(around_losses(&extra).len(), 1);
        assert_eq!(around_losses(&extra)[0][BEFORE..BEFORE + 3], [8.0, 7.0, 6.0]);
        // A second loss while the first one is repaired.
        extra[26] = 8.0;
        assert!(around_losses(&extra).is_empty());
    }
}
