//! Whether Startup has filled the pipe: the bandwidth has stopped growing.

use airpace_core::Rate;

/// If BtlBw grows by this factor in a round, the pipe is not full.
///
/// Source: Linux tcp_bbr.c
pub const GROWTH: f64 = 1.25;

/// After this many rounds without growth, the pipe is full.
///
/// Source: Linux tcp_bbr.c
const ROUNDS: u8 = 3;

/// Watches BtlBw grow.
#[derive(Clone, Copy, Debug, Default)]
pub struct FullPipe {
    baseline: Rate,
    rounds: u8,
    reached: bool,
}

impl FullPipe {
    /// Called with BtlBw at the beginning of every round that was not application limited.
    pub fn on_round(&mut self, btlbw: Rate) {
        if self.reached {
            return;
        }
        if btlbw >= self.baseline.scaled(GROWTH) {
            self.baseline = btlbw;
            self.rounds = 0;
        } else {
            self.rounds += 1;
            self.reached = self.rounds >= ROUNDS;
        }
    }

    /// Whether the pipe has been filled.
    pub fn reached(&self) -> bool {
        self.reached
    }

    /// Counts the pipe as filled.
    pub fn assume(&mut self) {
        self.reached = true;
    }

    /// Measures growth from now on, as everything outstanding was lost.
    pub fn rebase(&mut self) {
        self.baseline = Rate::ZERO;
    }
}
