//! Ticks and crosses for the abilities of three schemes: Table 2.

use super::links::COLUMNS;
use super::video::{lab, score};
use crate::experiment::{Campaign, Evidence, Experiment, Findings, Picture, Size};
use crate::look;
use crate::number::{Number, Rule};
use crate::results::{Results, Run, Runs};
use airpace_plot::{Axis, Bar, Bars, Entry, Figure, Mark, Panel};
use airpace_run::statistics::{self, Estimate};

/// Table 2.
pub(crate) static TABLE_2: Experiment = Experiment {
    id: "morc/table2",
    title: "Resilience to losses, jitter and varying bandwidth, and quality of video",
    source: "MORC Table 2",
    world: "The paper has ticks and crosses without a rule. Ours gives a tick (1) for loss or jitter if 75 % of the utilisation \
            remains when losses or jitter rise, for varying bandwidth if the utilisation of all links is 75 %, and for video if \
            the score above 1 is 95 % of the best scheme's. With the numbers that the paper prints, it gives the paper's table.",
    evidence: Evidence::Simulated(campaigns),
    findings,
};

fn campaigns(size: Size) -> Vec<Campaign> {
    let links = Campaign { name: LINKS, ..Campaign::of("morc-table1", &COLUMNS, size.seeds(5)) };
    vec![links, Campaign { name: VIDEO, ..lab(size) }]
}

const LINKS: &str = "links";
const VIDEO: &str = "video";

/// Share of the utilisation, or utilisation, from which a scheme has a tick.
///
/// Chosen: the middle of the values for which the paper's Table 1 gives the marks of its Table 2.
const LEAST: f64 = 0.75;

/// Share of the best scheme's score above 1 from which a scheme has a tick.
///
/// Chosen: between the 86 % of the paper's CUBIC, which has a cross, and the 100 % of its MORC.
const LEAST_OF_BEST: f64 = 0.95;

/// Rows of Table 1 that differ only in their losses, 0.01 and 0.05 %.
const LOSSES: [(usize, usize); 6] = [(0, 2), (1, 3), (4, 6), (5, 7), (8, 10), (9, 11)];

/// Rows of Table 1 that differ only in their jitter.
const JITTERS: [(usize, usize); 7] = [(0, 1), (2, 3), (4, 5), (6, 7), (8, 9), (10, 11), (12, 13)];

/// The columns of Table 2, and the paper's marks for MORC, CUBIC and BBR in each.
///
/// Source: MORC Table 2
const MARKS: [(&str, [bool; 3]); 4] = [
    ("packet loss", [true, false, true]),
    ("RTT jitter", [true, true, false]),
    ("varying bandwidth", [true, false, false]),
    ("quality of video", [true, false, false]),
];

/// The schemes of the paper's rows, in its order.
const ROWS: [&str; 3] = ["morc", "cubic@linux", "bbr"];

/// Mean over pairs of rows of the utilisation in the second over that in the first.
fn remains(rows: &[f64], pairs: &[(usize, usize)]) -> Option<f64> {
    let ratios: Option<Vec<f64>> =
        pairs.iter().map(|&(first, second)| Some(rows.get(second)? / rows.get(first)?)).collect();
    statistics::mean(&ratios?)
}

/// The quantities of the first three columns of Table 2, from the utilisation in percent of the rows of Table 1.
fn of_links(rows: &[f64]) -> [Option<f64>; 3] {
    [remains(rows, &LOSSES), remains(rows, &JITTERS), statistics::mean(rows).map(|percent| percent / 100.0)]
}

/// Utilisation in percent of the rows of Table 1.
fn utilisation(runs: &Runs<'_>, scheme: &str) -> Vec<f64> {
    let percent = |run: &Run| run.flow(0).utilization.map(|share| 100.0 * share);
    let its = runs.with(scheme);
    let value = |variant: &&str| statistics::mean(&its.such(|run| run.variant == **variant).values(percent));
    runs.variants().iter().filter_map(value).collect()
}

fn findings(results: &Results) -> Findings {
    let (links, videos) = (results.of(LINKS), results.of(VIDEO));
    let scores: Vec<Option<f64>> =
        ROWS.iter().map(|scheme| Some(videos.with(scheme).mean(score)?.value - 1.0)).collect();
    let best = scores.iter().copied().flatten().fold(0.0, f64::max);
    let shares: Vec<[Option<f64>; 4]> = ROWS
        .iter()
        .zip(&scores)
        .map(|(scheme, score)| {
            let [loss, jitter, bandwidth] = of_links(&utilisation(&links, scheme));
            [loss, jitter, bandwidth, score.map(|score| score / best)]
        })
        .collect();
    let mut numbers = Vec::new();
    for (column, (what, paper)) in MARKS.iter().enumerate() {
        let least = if column == 3 { LEAST_OF_BEST } else { LEAST };
        for (row, scheme) in ROWS.iter().enumerate() {
            let share = shares[row][column].filter(|share| share.is_finite());
            let mark = |is_tick: bool| f64::from(u8::from(is_tick));
            let ours = share.map(|share| Estimate { value: mark(share >= least), interval: None });
            let name = format!("{}, {what}", look::name(scheme));
            numbers.push(Number::new(name, "", mark(paper[row]), ours, Rule::Within(0.0)));
        }
    }
    Findings { numbers, pictures: vec![Picture { name: "morc-table2", figure: figure(&shares) }] }
}

/// The shares from which the marks follow.
fn figure(shares: &[[Option<f64>; 4]]) -> Figure {
    let bars = |(row, scheme): (usize, &&str)| {
        let bars = shares[row].iter().enumerate();
        let bars =
            bars.filter_map(|(at, share)| Some(Bar { x: at as f64, value: 100.0 * (*share)?, error: None }));
        Mark::Bars(Bars { style: look::style(scheme), bars: bars.collect(), second_y: false })
    };
    let panel = Panel {
        x: Axis::categories("", &MARKS.map(|(what, _)| what)),
        y: Axis { range: Some((0.0, 110.0)), ..Axis::linear("share (%)") },
        marks: ROWS.iter().enumerate().map(bars).collect(),
        ..Panel::default()
    };
    Figure {
        title: "MORC Table 2".to_owned(),
        caption: "A tick is 75 % of the utilisation, or 95 % of the best scheme's quality of video."
            .to_owned(),
        legend: Entry::of(std::slice::from_ref(&panel)),
        panels: vec![panel],
        panel_width: 720.0,
        ..Figure::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::morc::links::PAPER;

    #[test]
    fn the_paper_s_numbers_give_the_paper_s_marks() {
        for (row, scheme) in ROWS.iter().enumerate() {
            let column = COLUMNS.iter().position(|known| known == scheme).expect("a column of Table 1");
            let shares = of_links(&PAPER.map(|row| row[column]));
            for (share, (what, paper)) in shares.into_iter().zip(MARKS) {
                let share = share.expect("the paper has all rows");
                assert_eq!(share >= LEAST, paper[row], "{scheme}, {what}: {share}");
            }
        }
        let (morc, cubic) = (3.74 - 1.0, 3.37 - 1.0);
        assert!(cubic / morc < LEAST_OF_BEST, "the paper's CUBIC has a cross for video");
    }

    #[test]
    fn a_missing_row_has_no_share() {
        assert_eq!(remains(&[80.0, 60.0], &[(0, 1)]), Some(0.75));
        assert_eq!(remains(&[80.0], &[(0, 1)]), None);
    }
}
