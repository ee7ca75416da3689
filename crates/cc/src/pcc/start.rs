//! The start: every interval has twice the rate of the previous one, until the utility no longer rises.

/// A rate and its utility.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// The rate (Mbit/s).
    pub rate_mbps: f64,
    /// Utility, in the scheme's unit.
    pub utility: f64,
}

/// Maximum number of intervals with a doubled rate that may start before the report of the first of these intervals
/// arrives.
///
/// Chosen: on an empty path, an interval's report arrives when the second interval after it ends, so doubling never
/// waits. A queue that delays reports stops the doubling.
const MAX_UNKNOWN: u32 = 2;

/// The doubling phase.
///
/// Source: Dong et al., NSDI 2015, §3.2 (starting state)
#[derive(Clone, Copy, Debug, Default)]
pub struct Start {
    /// The rate of the last interval that started.
    sent_mbps: Option<f64>,
    /// Number of started intervals whose reports have not arrived.
    unknown: u32,
    /// Whether the last rate was not doubled because a report was missing.
    is_held: bool,
    /// The best report up to now.
    best: Option<Point>,
}

impl Start {
    /// The rate of the next interval (Mbit/s), and whether it differs from the previous rate. The rate of the first
    /// interval is `first_mbps`.
    pub fn next(&mut self, first_mbps: f64) -> (f64, bool) {
        let next = match self.sent_mbps {
            Some(sent) if self.unknown >= MAX_UNKNOWN => {
                self.is_held = true;
                return (sent, false);
            }
            Some(sent) => (2.0 * sent).max(first_mbps),
            None => first_mbps,
        };
        self.unknown += 1;
        self.sent_mbps = Some(next);
        (next, true)
    }

    /// Processes the report of an interval. If the utility no longer rises, returns the point to which the rate must
    /// return.
    pub fn learn(&mut self, point: Point) -> Option<Point> {
        self.unknown = self.unknown.saturating_sub(1);
        match self.best {
            Some(best) if point.utility <= best.utility => Some(best),
            _ => {
                self.best = Some(point);
                None
            }
        }
    }

    /// The best rate up to now; infinite before any report.
    pub fn best_mbps(&self) -> f64 {
        self.best.map_or(f64::INFINITY, |best| best.rate_mbps)
    }

    /// Whether the rate was not doubled because a report was missing. The call resets the value.
    pub fn was_held(&mut self) -> bool {
        std::mem::take(&mut self.is_held)
    }

    /// Doubles once more from the best rate, because the last report may be wrong. This doubling does not wait for
    /// outstanding reports.
    pub fn again(&mut self) {
        self.sent_mbps = self.best.map(|best| best.rate_mbps).or(self.sent_mbps);
        self.unknown = 0;
    }
}
