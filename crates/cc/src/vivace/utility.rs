//! The utility of an interval in Vivace.

use crate::pcc::interval::Report;
use crate::pcc::trend::Trend;

/// x^0.9 − b · x · dRTT/dT − c · x · L, x in Mbit/s.
///
/// Source: Dong et al., PCC Vivace, NSDI 2018, §4.1
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Utility {
    /// b; 900 in Vivace-Latency, 0 in Vivace-Loss.
    pub latency_coefficient: f64,
    /// c; 11.35 tolerates 5 % of random loss.
    pub loss_coefficient: f64,
    /// Share of loss below which c is 1.
    pub tolerated_loss: f64,
    /// Computation of the slope.
    pub slope: Slope,
}

/// Method by which noise is removed from the slope of round-trip times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slope {
    /// A slope below 0.01 counts as zero. A falling slope raises the utility.
    ///
    /// Source: Dong et al., PCC Vivace, NSDI 2018, §4.3
    Signed,
    /// In whole units of 0.02, rounded toward zero.
    Quantised,
    /// A slope within its own error counts as zero, and so does a falling one.
    Growth,
}

/// Exponent of the rate: below 1, so that shares become equal.
///
/// Source: Dong et al., PCC Vivace, NSDI 2018, §4.1
const EXPONENT: f64 = 0.9;

/// Threshold below which a slope is noise.
const NOISE: f64 = 0.01;

/// The unit of a quantised slope.
const QUANTUM: f64 = 0.02;

impl Utility {
    /// The utility of an interval.
    pub fn of(&self, report: &Report) -> f64 {
        self.at(report.sent_mbps, self.slope_of(report), report.loss)
    }

    /// The utility of sending `x` Mbit/s while round-trip times grow by `slope` and the share `loss` is lost.
    pub fn at(&self, x: f64, slope: f64, loss: f64) -> f64 {
        let tolerates = loss < self.tolerated_loss;
        let loss_coefficient = if tolerates { 1.0 } else { self.loss_coefficient };
        libm::pow(x, EXPONENT) - self.latency_coefficient * x * slope - loss_coefficient * x * loss
    }

    /// The slope of an interval after noise removal.
    pub fn slope_of(&self, report: &Report) -> f64 {
        self.slope.of(&report.trend)
    }
}

impl Slope {
    /// The slope after noise removal.
    pub fn of(self, trend: &Trend) -> f64 {
        let Trend { slope, error } = *trend;
        match self {
            Slope::Signed if slope.abs() < NOISE => 0.0,
            Slope::Signed => slope,
            Slope::Quantised => libm::trunc(slope / QUANTUM) * QUANTUM,
            Slope::Growth if slope <= error => 0.0,
            Slope::Growth => slope,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(sent_mbps: f64, slope: f64, loss: f64) -> Report {
        Report { sent_mbps, loss, trend: Trend { slope, error: 0.015 }, ..Report::default() }
    }

    fn utility(slope: Slope) -> Utility {
        Utility { latency_coefficient: 900.0, loss_coefficient: 11.35, tolerated_loss: 0.03, slope }
    }

    #[test]
    fn its_three_terms() {
        let paper = Utility { tolerated_loss: 0.0, ..utility(Slope::Signed) };
        let alone = paper.of(&report(10.0, 0.0, 0.0));
        assert!((alone - 7.943_282).abs() < 1e-5, "10^0.9: {alone}");
        assert!((alone - paper.of(&report(10.0, 0.02, 0.0)) - 180.0).abs() < 1e-9, "900 · 10 · 0.02");
        assert!((alone - paper.of(&report(10.0, 0.0, 0.02)) - 2.27).abs() < 1e-9, "11.35 · 10 · 0.02");
        let tolerant = utility(Slope::Signed);
        assert!((alone - tolerant.of(&report(10.0, 0.0, 0.02)) - 0.2).abs() < 1e-9, "1 · 10 · 0.02");
    }

    #[test]
    fn what_counts_as_a_slope() {
        let of = |kind: Slope, slope: f64| kind.of(&Trend { slope, error: 0.015 });
        assert_eq!((of(Slope::Signed, 0.009), of(Slope::Signed, -0.02)), (0.0, -0.02));
        assert_eq!((of(Slope::Quantised, 0.019), of(Slope::Quantised, 0.05)), (0.0, 0.04));
        assert_eq!(
            (of(Slope::Growth, 0.014), of(Slope::Growth, -0.5), of(Slope::Growth, 0.02)),
            (0.0, 0.0, 0.02)
        );
    }
}
