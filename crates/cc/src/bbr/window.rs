//! BBR's congestion window. It grows to its target by the acknowledged bytes, follows packet conservation in the first
//! round of recovery (one packet leaves per delivered packet), and is restored after recovery.
//!
//! Source: Linux tcp_bbr.c

use airpace_core::Bytes;

use crate::controller::{Ack, Loss, LossCause};

/// The window, and its value before the last loss or ProbeRTT.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    mss: Bytes,
    cwnd: Bytes,
    /// The value to restore after recovery or ProbeRTT.
    prior: Bytes,
    /// Recovery ends when the transport has completed this many recoveries; `None` outside recovery.
    recovery_end: Option<u64>,
    conserving: bool,
    /// Whether recovery has started since the last ACK.
    recovery_began: bool,
}

/// The target of the window's growth.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// The target of the congestion window (bytes).
    pub cwnd: Bytes,
    /// Whether the pipe has been filled: the window may then also shrink to the target.
    pub full_pipe: bool,
    /// Maximum window in ProbeRTT; `None` in other states.
    pub cap: Option<Bytes>,
}

impl Window {
    /// The window of a new connection.
    pub fn new(mss: Bytes, initial: Bytes) -> Window {
        Window {
            mss,
            cwnd: initial,
            prior: initial,
            recovery_end: None,
            conserving: false,
            recovery_began: false,
        }
    }

    /// Maximum number of outstanding bytes.
    pub fn cwnd(&self) -> Bytes {
        self.cwnd
    }

    /// Sets the window when this controller takes over from another one.
    pub fn set(&mut self, cwnd: Bytes) {
        self.cwnd = cwnd.max(self.floor());
        self.prior = self.cwnd;
    }

    /// Saves the window before recovery or ProbeRTT. `untroubled`: whether the current window was not reduced by
    /// ProbeRTT.
    pub fn save(&mut self, untroubled: bool) {
        let untroubled = untroubled && self.recovery_end.is_none();
        self.prior = if untroubled { self.cwnd } else { self.prior.max(self.cwnd) };
    }

    /// Restores the saved window.
    pub fn restore(&mut self) {
        self.cwnd = self.cwnd.max(self.prior);
    }

    /// Processes lost packets. `recovered` is the number of recoveries that the transport has completed
    /// ([`Holes`](crate::window::Holes)).
    pub fn on_loss(&mut self, loss: &Loss<'_>, probing_rtt: bool, recovered: u64) {
        let begins = self.recovery_end.is_none();
        self.save(!probing_rtt);
        self.recovery_end.get_or_insert(recovered + 1);
        match loss.cause {
            LossCause::Threshold => {
                self.cwnd = (self.cwnd - loss.lost).max(self.mss);
                self.recovery_began |= begins;
                self.conserving |= begins;
            }
            LossCause::Persistent => {
                self.recovery_end = Some(recovered + 1);
                self.cwnd = self.mss;
                self.conserving = false;
            }
        }
    }

    /// Starts a round. Packets are conserved only in the first round of recovery.
    pub fn on_round(&mut self) {
        if !self.recovery_began {
            self.conserving = false;
        }
    }

    /// Processes acknowledged packets. `recovered` is the number of recoveries that the transport has completed.
    /// Returns whether a recovery started with the losses that this ACK showed.
    pub fn on_ack(&mut self, ack: &Ack<'_>, initial: Bytes, target: &Target, recovered: u64) -> bool {
        let began = std::mem::take(&mut self.recovery_began);
        if began {
            self.cwnd = ack.inflight + ack.acked;
        } else if self.recovery_end.is_some_and(|end| recovered >= end) {
            self.recovery_end = None;
            self.conserving = false;
            self.restore();
        }
        if self.conserving {
            self.cwnd = self.cwnd.max(ack.inflight + ack.acked);
        } else {
            if target.full_pipe {
                self.cwnd = (self.cwnd + ack.acked).min(target.cwnd);
            } else if self.cwnd < target.cwnd || ack.rate.delivered < initial {
                self.cwnd += ack.acked;
            }
            self.cwnd = self.cwnd.max(self.floor());
        }
        if let Some(cap) = target.cap {
            self.cwnd = self.cwnd.min(cap);
        }
        self.cwnd = self.cwnd.max(self.mss);
        began
    }

    /// Minimum window: four packets keep ACKs arriving even if only every second packet is acknowledged.
    pub fn floor(&self) -> Bytes {
        Bytes(4 * self.mss.0)
    }
}
