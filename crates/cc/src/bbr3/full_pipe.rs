//! Whether accelerating has filled the pipe: three rounds in which the delivery rate did not grow by a quarter.
//!
//! Source: draft-ietf-ccwg-bbr-06 §5.3.1.2

use airpace_core::Rate;

use super::sample::Sample;

/// Growth in a round that shows that the pipe is not full.
const GROWTH: f64 = 1.25;
/// Rounds without it that show that the pipe is full.
const ROUNDS: u8 = 3;

/// Watches the delivery rate of Startup and of each ProbeBW_UP.
#[derive(Clone, Copy, Debug, Default)]
pub struct FullPipe {
    baseline: Rate,
    rounds: u8,
    now: bool,
    ever: bool,
}

impl FullPipe {
    /// Told of the sample of every ACK that begins a round.
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

    /// Begins to look anew, for growth beyond `baseline`.
    pub fn look_again(&mut self, baseline: Rate) {
        *self = FullPipe { baseline, ever: self.ever, ..FullPipe::default() };
    }

    /// Whether the pipe is full as far as is known since it was last looked at anew.
    pub fn now(&self) -> bool {
        self.now
    }

    /// Whether it was ever full.
    pub fn ever(&self) -> bool {
        self.ever
    }

    /// Takes the pipe for filled, or for never filled.
    pub fn assume(&mut self, full: bool) {
        self.ever = full;
    }
}
