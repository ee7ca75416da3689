//! Detects that acceleration has filled the pipe: three rounds in which the delivery rate did not grow by a quarter.
//!
//! Source: draft-ietf-ccwg-bbr-06 §5.3.1.2

use airpace_core::Rate;

use super::sample::Sample;

/// Growth factor of the rate per round from which on the pipe is not full.
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

    /// Restarts the detection, for growth beyond `baseline`.
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

    /// Sets whether the pipe counts as filled.
    pub fn assume(&mut self, full: bool) {
        self.ever = full;
    }
}
