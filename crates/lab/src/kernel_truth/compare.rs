//! Bounds on the differences between two sets of runs, and the comparison with the bounds.

use std::fmt::Write;

use super::{Condition, Figures, paths};

/// Maximum relative difference of throughputs over a recorded link.
pub const THROUGHPUT: f64 = 0.05;
/// Maximum relative difference of throughputs over an emulated path, whose losses are random.
pub const PATH_THROUGHPUT: f64 = 0.1;
/// Maximum relative difference of delays. A delay is also accepted if it differs by at most [`DELAY_MS`].
pub const DELAY: f64 = 0.15;
/// Maximum absolute difference of delays (ms) that is always accepted.
pub const DELAY_MS: f64 = 5.0;

/// Mean, minimum and maximum over a set of runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The mean.
    pub mean: f64,
    /// The minimum.
    pub least: f64,
    /// The maximum.
    pub most: f64,
}

impl Spread {
    fn of(runs: &[Figures], value: fn(&Figures) -> f64) -> Spread {
        let values = runs.iter().map(value);
        Spread {
            mean: values.clone().sum::<f64>() / runs.len().max(1) as f64,
            least: values.clone().fold(f64::INFINITY, f64::min),
            most: values.fold(f64::NEG_INFINITY, f64::max),
        }
    }
}

/// One metric of both sets of runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pair {
    /// Metric of the reference: of the kernel's runs, or of the reference kernel's runs.
    pub truth: Spread,
    /// The compared set of runs.
    pub other: Spread,
}

impl Pair {
    fn of(truth: &[Figures], other: &[Figures], value: fn(&Figures) -> f64) -> Pair {
        Pair { truth: Spread::of(truth, value), other: Spread::of(other, value) }
    }

    /// Relative difference of `other` from the reference.
    pub fn off(&self) -> f64 {
        self.other.mean / self.truth.mean - 1.0
    }

    fn is_near(&self) -> bool {
        self.off().abs() <= DELAY || (self.truth.mean - self.other.mean).abs() <= DELAY_MS
    }
}

/// Comparison of two sets of runs of one condition.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The condition.
    pub condition: Condition,
    /// Name of the compared set.
    pub other: String,
    /// Throughput in Mbit/s.
    pub throughput: Pair,
    /// Mean queueing delay in ms.
    pub mean: Pair,
    /// 95th percentile of the queueing delay, in ms.
    pub p95: Pair,
}

impl Comparison {
    /// Compares two sets of runs. Neither may be empty.
    pub fn of(condition: &Condition, truth: &[Figures], name: &str, other: &[Figures]) -> Comparison {
        Comparison {
            condition: condition.clone(),
            other: name.to_owned(),
            throughput: Pair::of(truth, other, |run| run.throughput_mbps),
            mean: Pair::of(truth, other, |run| run.mean_ms),
            p95: Pair::of(truth, other, |run| run.p95_ms),
        }
    }

    /// Whether the differences are within the bounds: throughput and both delays or, over a path, throughput and mean
    /// delay.
    pub fn is_within(&self) -> bool {
        let is_path = self.is_path();
        let most = if is_path { PATH_THROUGHPUT } else { THROUGHPUT };
        self.throughput.off().abs() <= most && self.mean.is_near() && (is_path || self.p95.is_near())
    }

    /// Whether the condition is an emulated path and not a recorded link.
    pub fn is_path(&self) -> bool {
        paths::path(&self.condition).is_some()
    }

    /// Maximum relative difference of the three metrics.
    pub fn most_off(&self) -> f64 {
        [self.throughput, self.mean, self.p95].iter().map(|pair| pair.off().abs()).fold(0.0, f64::max)
    }

    /// The cells of a row with the columns [`HEADS`].
    pub fn cells(&self) -> Vec<String> {
        let Condition { trace, queue_packets, .. } = &self.condition;
        let mut cells =
            vec![name_of(trace).to_owned(), queue_packets.to_string(), format!("`{}`", self.other)];
        let Pair { truth, other } = &self.throughput;
        cells.push(format!("{:.2}", truth.mean));
        cells.push(format!("{:.2} ({} %)", other.mean, percent(self.throughput.off())));
        for pair in [&self.mean, &self.p95] {
            let Pair { truth, other } = pair;
            cells.push(format!("{:.0} ({:.0}–{:.0})", truth.mean, truth.least, truth.most));
            cells.push(format!("{:.0} ({} %)", other.mean, percent(pair.off())));
        }
        cells.push(if self.is_within() { "yes" } else { "**no**" }.to_owned());
        cells
    }
}

/// Column headings of the comparison table.
pub const HEADS: [&str; 10] = [
    "trace",
    "queue",
    "ours",
    "Mbit/s Linux",
    "ours",
    "mean delay, ms: Linux",
    "ours",
    "p95 delay, ms: Linux",
    "ours",
    "within",
];

/// Formats comparisons as a Markdown table.
pub fn table(comparisons: &[Comparison]) -> String {
    let mut text = format!("| {} |\n|{}\n", HEADS.join(" | "), " --- |".repeat(HEADS.len()));
    for comparison in comparisons {
        writeln!(text, "| {} |", comparison.cells().join(" | ")).expect("text takes everything");
    }
    text
}

/// Name of a recorded link without the suffix for the direction.
pub fn name_of(trace: &str) -> &str {
    trace.trim_end_matches(".down")
}

/// A fraction as percent with a sign. Zero has no minus sign.
fn percent(share: f64) -> String {
    format!("{:+.1}", (share * 1e3).round() / 10.0 + 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn comparison(truth: (f64, f64, f64), other: (f64, f64, f64)) -> Comparison {
        let condition = Condition { trace: "a.down".to_owned(), queue_packets: 9, scheme: "reno".to_owned() };
        let figures = |(throughput_mbps, mean_ms, p95_ms)| [Figures { throughput_mbps, mean_ms, p95_ms }];
        Comparison::of(&condition, &figures(truth), "other", &figures(other))
    }

    #[test]
    fn bounds_are_a_share_of_throughput_and_a_share_or_five_ms_of_delay() {
        let truth = (10.0, 100.0, 200.0);
        for (other, is_within) in [
            (truth, true),
            ((10.49, 100.0, 200.0), true),
            ((9.4, 100.0, 200.0), false),
            ((10.0, 114.0, 200.0), true),
            ((10.0, 116.0, 200.0), false),
            ((10.0, 100.0, 169.0), false),
        ] {
            assert_eq!(comparison(truth, other).is_within(), is_within, "{other:?}");
        }
        assert!(comparison((10.0, 3.0, 5.0), (10.0, 7.9, 9.9)).is_within(), "5 ms are near");
        assert!(!comparison((10.0, 3.0, 5.0), (10.0, 8.1, 5.0)).is_within());
    }

    #[test]
    fn a_row_says_how_far_the_other_side_is_off() {
        let row = comparison((10.0, 100.0, 200.0), (9.0, 100.0, 210.0)).cells().join(" | ");
        assert_eq!(
            row,
            "a | 9 | `other` | 10.00 | 9.00 (-10.0 %) | 100 (100–100) | 100 (+0.0 %) | 200 (200–200) | 210 (+5.0 %) | **no**"
        );
        assert!((comparison((10.0, 100.0, 200.0), (9.0, 100.0, 210.0)).most_off() - 0.1).abs() < 1e-9);
    }
}
