//! The start: every interval at twice the rate of the one before, until utility no longer rises.

/// A rate and what it was worth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Megabits per second.
    pub rate_mbps: f64,
    /// Utility, in the scheme's measure.
    pub utility: f64,
}

/// Doublings that may go on while the first of them has no report.
///
/// Chosen: on an empty path an interval's report comes when the second after it ends, so that doubling never waits; a
/// queue that delays reports stops it.
const MOST_UNKNOWN: u32 = 2;

/// The doubling.
///
/// Source: Dong et al., NSDI 2015, §3.2 (starting state)
#[derive(Clone, Copy, Debug, Default)]
pub struct Start {
    /// The rate of the last interval that was begun.
    sent_mbps: Option<f64>,
    /// Intervals begun whose reports have not come.
    unknown: u32,
    /// Whether the last rate was sent on for want of a report.
    is_held: bool,
    /// The best so far.
    best: Option<Point>,
}

impl Start {
    /// The rate of the next interval, where the first is at `first_mbps`, and whether it is a new one rather than the
    /// last once more.
    pub fn next(&mut self, first_mbps: f64) -> (f64, bool) {
        let next = match self.sent_mbps {
            Some(sent) if self.unknown >= MOST_UNKNOWN => {
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

    /// Takes in a report of a new interval; the point to go back to if utility no longer rises.
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

    /// The best rate so far; infinite before any report.
    pub fn best_mbps(&self) -> f64 {
        self.best.map_or(f64::INFINITY, |best| best.rate_mbps)
    }

    /// Whether the rate was held until the report that came last; asked once.
    pub fn was_held(&mut self) -> bool {
        std::mem::take(&mut self.is_held)
    }

    /// Doubles once more from the best, because the last report is not believed yet; those to come are not awaited.
    pub fn again(&mut self) {
        self.sent_mbps = self.best.map(|best| best.rate_mbps).or(self.sent_mbps);
        self.unknown = 0;
    }
}
