//! The utility of an interval in Vivace.

use crate::pcc::interval::Report;
use crate::pcc::trend::Trend;

/// The utility x^0.9 − b · x · dRTT/dT − c · x · L, with the rate x in Mbit/s and the loss rate L.
///
/// Source: Dong et al., PCC Vivace, NSDI 2018, §4.1
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Utility {
    /// Coefficient b of the slope of round-trip times: 900 in Vivace-Latency, 0 in Vivace-Loss.
    pub latency_coefficient: f64,
    /// Coefficient c of the loss rate. A value of 11.35 tolerates 5 % of random loss.
    pub loss_coefficient: f64,
    /// Loss rate below which c is 1.
    pub tolerated_loss: f64,
    /// How the slope of round-trip times is computed.
    pub slope: Slope,
}

/// Method by which noise is removed from the slope of round-trip times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slope {
    /// A slope with an absolute value below 0.01 counts as zero. A negative slope raises the utility.
    ///
    /// Source: Dong et al., PCC Vivace, NSDI 2018, §4.3
    Signed,
    /// The slope is rounded toward zero to a multiple of 0.02.
    Quantised,
    /// A slope that is smaller than its standard error counts as zero, and so does a negative slope.
    Growth,
}

/// Exponent of the rate in the utility. It is less than 1, so that the rates of competing flows become equal.
///
/// Source: Dong et al., PCC Vivace, NSDI 2018, §4.1
const EXPONENT: f64 = 0.9;

/// Minimum absolute value of a slope that does not count as noise.
const NOISE: f64 = 0.01;

/// The unit of a quantised slope.
const QUANTUM: f64 = 0.02;

impl Utility {
    /// The utility of an interval.
    pub fn of(&self, report: &Report) -> f64 {
        self.at(report.sent_mbps, self.slope_of(report), report.loss)
    }

    /// The utility of the rate `x` (Mbit/s) if round-trip times grow by `slope` seconds per second and the fraction
    /// `loss` of the packets is lost.
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
