//! The congestion window. It grows by the acknowledged bytes towards the target of the model, within the bounds.
//!
//! Source: draft-ietf-ccwg-bbr-06 §5.6.4

use airpace_core::Bytes;

use crate::controller::{Ack, Loss, LossCause};

/// The window, and its value before the last loss or ProbeRTT.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    mss: Bytes,
    initial: Bytes,
    cwnd: Bytes,
    /// The last congestion window that is known to be safe. It is restored after recovery and ProbeRTT.
    prior: Bytes,
    /// Recovery ends when this packet number is acknowledged; `None` outside recovery.
    recovery_end: Option<u64>,
}

/// The target of the window's growth.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// The amount in flight that fills the path.
    pub max_inflight: Bytes,
    /// Maximum amount in flight that the bounds permit in this state; `None`: no limit.
    pub cap: Option<Bytes>,
    /// Maximum window in ProbeRTT; `None` outside ProbeRTT.
    pub probe_rtt: Option<Bytes>,
    /// Whether the pipe has ever been full: the window may then also shrink.
    pub was_full: bool,
}

impl Window {
    /// The window of a new connection.
    pub fn new(mss: Bytes, initial: Bytes) -> Window {
        Window { mss, initial, cwnd: initial, prior: Bytes::ZERO, recovery_end: None }
    }

    /// Maximum number of outstanding bytes.
    pub fn cwnd(&self) -> Bytes {
        self.cwnd
    }

    /// Minimum window: four packets keep ACKs arriving even if only every second packet is acknowledged:
    /// `BBR.MinPipeCwnd`.
    pub fn floor(&self) -> Bytes {
        Bytes(4 * self.mss.0)
    }

    /// Whether the flow is in recovery.
    pub fn is_recovering(&self) -> bool {
        self.recovery_end.is_some()
    }

    /// Saves the window before recovery or ProbeRTT.
    pub fn save(&mut self, probing_rtt: bool) {
        let untroubled = !self.is_recovering() && !probing_rtt;
        self.prior = if untroubled { self.cwnd } else { self.prior.max(self.cwnd) };
    }

    /// Restores the saved window.
    pub fn restore(&mut self) {
        self.cwnd = self.cwnd.max(self.prior);
    }

    /// Processes lost packets. Returns whether they start an episode of recovery. If so, the window before the episode
    /// is saved.
    pub fn on_loss(&mut self, loss: &Loss<'_>, probing_rtt: bool) -> bool {
        let begins = !self.is_recovering() || loss.cause == LossCause::Persistent;
        if begins {
            self.save(probing_rtt);
            self.recovery_end = Some(loss.next_number);
        }
        if loss.cause == LossCause::Persistent {
            self.cwnd = loss.inflight + self.mss;
        }
        begins
    }

    /// Processes acknowledged packets. Recovery may end.
    pub fn on_ack(&mut self, ack: &Ack<'_>) {
        let newest = ack.packets.last().map_or(0, |packet| packet.number);
        if self.recovery_end.is_some_and(|end| newest >= end) {
            self.recovery_end = None;
            self.restore();
        }
    }

    /// Grows the window by the acknowledged bytes.
    ///
    /// Source: draft-ietf-ccwg-bbr-06 §5.6.4.6, §5.6.4.7
    pub fn grow(&mut self, acked: Bytes, delivered: Bytes, target: &Target) {
        if target.was_full {
            self.cwnd = (self.cwnd + acked).min(target.max_inflight);
        } else if self.cwnd < target.max_inflight || delivered < self.initial {
            self.cwnd += acked;
        }
        self.cwnd = self.cwnd.max(self.floor());
        if let Some(probe_rtt) = target.probe_rtt {
            self.cwnd = self.cwnd.min(probe_rtt);
        }
        if let Some(cap) = target.cap {
            self.cwnd = self.cwnd.min(cap.max(self.floor()));
        }
    }
}
