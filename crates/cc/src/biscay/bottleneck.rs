//! Locates the bottleneck: in the cell, or in the wired part of the path.
//!
//! Source: BISCAY §3.2.4; BISCAY §A.5.1

use std::time::Duration;

use airpace_core::{Rate, Time};

/// The condition for the return from the fallback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Return {
    /// The cell's bandwidth and the end-to-end bandwidth are equal, within the tolerance.
    ///
    /// Source: BISCAY §A.5.1 (`cellular_bw == end_to_end_bw`)
    Equal,
    /// The cell's bandwidth does not exceed the end-to-end bandwidth, within the tolerance.
    ///
    /// Source: BISCAY §3.2.4 (lower or equal)
    AtMost,
}

/// Rules for locating the bottleneck.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rules {
    /// Minimum relative excess of the cell's bandwidth over the end-to-end bandwidth for a wired bottleneck.
    pub margin: f64,
    /// Maximum relative difference of two bandwidths that count as equal.
    pub tolerance: f64,
    /// The condition for the return from the fallback.
    pub back: Return,
    /// Time for which the evidence for another location must last before the location changes.
    pub patience: Duration,
    /// Whether the bottleneck counts as wired only if there is also a queue.
    pub needs_queue: bool,
}

/// The values of one ACK that the decision uses.
#[derive(Clone, Copy, Debug)]
pub struct Evidence {
    /// Time of the ACK.
    pub now: Time,
    /// This flow's share of the cell's bandwidth.
    pub cellular: Rate,
    /// The end-to-end bandwidth.
    pub end_to_end: Rate,
    /// Whether there is a queue somewhere on the path.
    pub queue: bool,
    /// Whether a signal shows that the end-to-end bandwidth is the capacity of the path.
    pub certain: bool,
}

/// Decides where the bottleneck is.
#[derive(Clone, Copy, Debug)]
pub struct Bottleneck {
    rules: Rules,
    /// Time since which the evidence has shown the bottleneck at the other location.
    since: Option<Time>,
}

impl Bottleneck {
    /// State without evidence.
    pub fn new(rules: Rules) -> Bottleneck {
        Bottleneck { rules, since: None }
    }

    /// Whether the bottleneck is in the wired part now. Called while the bottleneck counts as being in the cell.
    ///
    /// Differs: patience and a queue are required. The granted rate is a mean over a past interval, and data that is
    /// sent at this rate is delivered a round trip later. Without patience, each step of the cell's bandwidth would
    /// therefore look like a wired bottleneck. And if there is no queue, not the path but only the sender limits the
    /// flow.
    pub fn is_wired(&mut self, seen: &Evidence) -> bool {
        let above = seen.cellular > seen.end_to_end.scaled(1.0 + self.rules.margin);
        let has_queue = seen.queue || !self.rules.needs_queue;
        above && seen.certain || self.has_held(seen.now, above && has_queue)
    }

    /// Whether the bottleneck is in the cell again. Called while the bottleneck counts as being in the wired part.
    ///
    /// Differs: a cell whose bandwidth is below the end-to-end bandwidth is the bottleneck as well. If BISCAY waited
    /// until both bandwidths are equal, BBR would control the flow in a cell whose bandwidth falls, with a maximum that
    /// is up to ten rounds old.
    pub fn is_cellular(&mut self, seen: &Evidence) -> bool {
        let at_most = seen.cellular <= seen.end_to_end.scaled(1.0 + self.rules.tolerance);
        let at_least = seen.cellular >= seen.end_to_end.scaled(1.0 - self.rules.tolerance);
        let met = at_most && (at_least || self.rules.back == Return::AtMost);
        self.has_held(seen.now, met)
    }

    /// Discards all evidence for another location.
    pub fn forget(&mut self) {
        self.since = None;
    }

    fn has_held(&mut self, now: Time, holds: bool) -> bool {
        self.since = holds.then(|| self.since.unwrap_or(now));
        self.since.is_some_and(|since| now - since >= self.rules.patience)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAPER: Rules = Rules {
        margin: 0.0,
        tolerance: 0.05,
        back: Return::Equal,
        patience: Duration::ZERO,
        needs_queue: false,
    };

    fn seen(millis: u64, cellular: f64, end_to_end: f64) -> Evidence {
        Evidence {
            now: Time::from_millis(millis),
            cellular: Rate::from_mbps(cellular),
            end_to_end: Rate::from_mbps(end_to_end),
            queue: true,
            certain: false,
        }
    }

    #[test]
    fn the_text_compares_and_nothing_else() {
        let mut judge = Bottleneck::new(PAPER);
        assert!(!judge.is_wired(&seen(0, 10.0, 10.0)));
        assert!(judge.is_wired(&seen(1, 10.1, 10.0)));
        assert!(judge.is_cellular(&seen(2, 10.4, 10.0)), "equal, within five percent");
        assert!(
            !judge.is_cellular(&seen(3, 9.0, 10.0)),
            "a cell below the end-to-end bandwidth is not equal"
        );
        assert!(!judge.is_cellular(&seen(4, 11.0, 10.0)));
    }

    #[test]
    fn a_step_of_the_cell_is_not_believed_to_be_a_wired_bottleneck() {
        let rules = Rules {
            margin: 0.25,
            back: Return::AtMost,
            patience: Duration::from_millis(200),
            needs_queue: true,
            ..PAPER
        };
        let mut judge = Bottleneck::new(rules);
        assert!(!judge.is_wired(&seen(0, 20.0, 10.0)));
        assert!(!judge.is_wired(&seen(150, 20.0, 10.0)));
        assert!(!judge.is_wired(&seen(160, 20.0, 19.0)), "the packets of the larger window have arrived");
        assert!(!judge.is_wired(&seen(170, 20.0, 10.0)), "the patience starts again");
        assert!(judge.is_wired(&seen(370, 20.0, 10.0)));
        let empty = Evidence { queue: false, ..seen(400, 20.0, 10.0) };
        assert!(!judge.is_wired(&empty), "if the path has no queue, only the sender limits the flow");
        assert!(judge.is_wired(&Evidence { certain: true, ..empty }), "a certain signal needs no queue");
        judge.forget();
        assert!(!judge.is_cellular(&seen(500, 9.0, 10.0)));
        assert!(judge.is_cellular(&seen(700, 9.0, 10.0)), "lower or equal is enough");
    }
}
