//! Detects that the accelerating flow has filled the pipe: the delivery rate did not grow by a quarter within three
//! rounds.
//!
//! Source: draft-ietf-ccwg-bbr-06 §5.3.1.2

use airpace_core::Rate;

use super::sample::Sample;

/// Minimum growth factor of the delivery rate per round that shows that the pipe is not full yet.
const GROWTH: f64 = 1.25;
/// Number of rounds without such growth after which the pipe is full.
const ROUNDS: u8 = 3;

/// Detector for the end of growth in Startup and in each ProbeBW_UP.
#[derive(Clone, Copy, Debug, Default)]
pub struct FullPipe {
    baseline: Rate,
    rounds: u8,
    now: bool,
    ever: bool,
}

impl FullPipe {
    /// Processes the sample of every ACK that starts a round.
    pub fn on_round(&mut self, sample: &Sample) {
        if self.now || sample.app_limited {
            return;
        }
        if sample.rate >= self.baseline.scaled(GROWTH) {
            self.look_again(sample.rate);
            return;
        }
        self.rounds += 1;
        self.now = self.rounds >= ROUNDS;
        self.ever |= self.now;
    }

    /// Restarts the detection. The delivery rate must then grow beyond `baseline`.
    pub fn look_again(&mut self, baseline: Rate) {
        *self = FullPipe { baseline, ever: self.ever, ..FullPipe::default() };
    }

    /// Whether the present detection has found the pipe to be full.
    pub fn now(&self) -> bool {
        self.now
    }

    /// Whether the pipe was ever full.
    pub fn ever(&self) -> bool {
        self.ever
    }

    /// Sets whether the pipe counts as filled, without a measurement.
    pub fn assume(&mut self, full: bool) {
        self.ever = full;
    }
}
