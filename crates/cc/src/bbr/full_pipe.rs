//! Detects that Startup has filled the pipe: the bandwidth has stopped growing.

use airpace_core::Rate;

/// Minimum growth factor of BtlBw per round that shows that the pipe is not full yet.
///
/// Source: Linux tcp_bbr.c
pub const GROWTH: f64 = 1.25;

/// Number of rounds without growth after which the pipe is full.
///
/// Source: Linux tcp_bbr.c
const ROUNDS: u8 = 3;

/// Detector for the end of BtlBw's growth.
#[derive(Clone, Copy, Debug, Default)]
pub struct FullPipe {
    baseline: Rate,
    rounds: u8,
    reached: bool,
}

impl FullPipe {
    /// Processes BtlBw at the start of every round that was not application limited.
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

    /// Sets the state to "filled" without a measurement.
    pub fn assume(&mut self) {
        self.reached = true;
    }

    /// Restarts the measurement of growth, because all outstanding packets were lost.
    pub fn rebase(&mut self) {
        self.baseline = Rate::ZERO;
    }
}
