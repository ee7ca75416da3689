//! ProbeBW's cycle of pacing gains: one phase to probe, one to drain, six to cruise; each lasts one RTprop.

use std::time::Duration;

use airpace_core::{Bytes, Rng, Time};

/// Gain of the phase that probes for more bandwidth.
///
/// Source: Linux tcp_bbr.c; PBE-CC §4.2.3
pub const PROBE_GAIN: f64 = 1.25;

/// Gain of the phase that drains the queue of the probe.
///
/// Source: Linux tcp_bbr.c; PBE-CC §4.2.3
pub const DRAIN_GAIN: f64 = 0.75;

const PHASES: u64 = 8;

/// The purpose of a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Sends faster than the known capacity of the path.
    Probe,
    /// Sends slower than the known capacity of the path, to drain the queue of the probe.
    Drain,
    /// Sends at the known capacity of the path.
    Cruise,
}

/// The current phase of the cycle, and its start.
#[derive(Clone, Copy, Debug)]
pub struct Cycle {
    index: u64,
    since: Time,
}

/// The values on which the end of a phase depends.
#[derive(Clone, Copy, Debug)]
pub struct PhaseEnd {
    /// Arrival time of the ACK.
    pub now: Time,
    /// Length of a phase.
    pub rtprop: Duration,
    /// Bytes outstanding before the ACK.
    pub inflight: Bytes,
    /// Bytes in flight at which the probe has filled the path.
    pub probed: Bytes,
    /// Bytes in flight at which the queue has drained.
    pub drained: Bytes,
    /// Whether the ACK showed packets to be lost.
    pub lost: bool,
}

impl Cycle {
    /// Starts at a random phase, so that flows that started together do not probe together. The draining phase is
    /// excluded, because no probe has built a queue yet.
    ///
    /// Source: Linux tcp_bbr.c
    pub fn start(now: Time, rng: &mut Rng) -> Cycle {
        let index = match rng.below(PHASES - 1) {
            0 => 0,
            other => other + 1,
        };
        Cycle { index, since: now }
    }

    /// Starts with the probe.
    pub fn probe(now: Time) -> Cycle {
        Cycle { index: 0, since: now }
    }

    /// The purpose of the present phase.
    pub fn phase(&self) -> Phase {
        match self.index {
            0 => Phase::Probe,
            1 => Phase::Drain,
            _ => Phase::Cruise,
        }
    }

    /// Proceeds to the next phase if the present one is over. A probe lasts until it has filled the path or caused a
    /// loss; a drain ends early once the queue is gone.
    ///
    /// Source: Linux tcp_bbr.c
    pub fn advance(&mut self, end: &PhaseEnd) {
        let full_length = end.now - self.since > end.rtprop;
        let over = match self.phase() {
            Phase::Probe => full_length && (end.lost || end.inflight >= end.probed),
            Phase::Drain => full_length || end.inflight <= end.drained,
            Phase::Cruise => full_length,
        };
        if over {
            self.index = (self.index + 1) % PHASES;
            self.since = end.now;
        }
    }
}

#[cfg(test)]
mod tests {
    use airpace_core::Streams;

    use super::*;

    #[test]
    fn flows_begin_in_any_phase_but_the_draining_one() {
        let mut seen = [0; PHASES as usize];
        let mut rng = Streams::new(1).stream("cycle");
        for _ in 0..700 {
            seen[Cycle::start(Time::ZERO, &mut rng).index as usize] += 1;
        }
        assert_eq!(seen[1], 0, "no flow drains before it has probed");
        assert!(seen.iter().enumerate().all(|(phase, &count)| phase == 1 || count > 60), "{seen:?}");
    }

    #[test]
    fn a_probe_lasts_until_it_shows_in_the_path_and_a_drain_until_the_queue_is_gone() {
        let at = |millis, inflight| PhaseEnd {
            now: Time::from_millis(millis),
            rtprop: Duration::from_millis(40),
            inflight: Bytes(inflight),
            probed: Bytes(125),
            drained: Bytes(100),
            lost: false,
        };
        let mut cycle = Cycle::probe(Time::ZERO);
        cycle.advance(&at(41, 110));
        assert_eq!(cycle.phase(), Phase::Probe, "110 of 125 bytes are no probe yet");
        cycle.advance(&at(50, 125));
        assert_eq!(cycle.phase(), Phase::Drain);
        cycle.advance(&at(55, 110));
        assert_eq!(cycle.phase(), Phase::Drain);
        cycle.advance(&at(60, 100));
        assert_eq!(cycle.phase(), Phase::Cruise, "the queue is gone before the end of the phase");
    }
}
