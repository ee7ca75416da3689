//! Undoes a recovery without real losses. For every acknowledged packet, the endpoint reports whether it had been
//! declared lost. If all packets declared lost in a recovery have arrived, there was no real loss.
//!
//! Source: draft-ietf-ccwg-bbr-06 §5.5.11

use airpace_core::Rate;

use super::bounds::Bounds;
use super::{Bbr3, State};
use crate::controller::SentPacket;

/// The values to restore if all losses of a recovery prove spurious.
///
/// Source: draft-ietf-ccwg-bbr-06 §5.5.11.1
#[derive(Clone, Copy, Debug, Default)]
pub struct Undo {
    pub(super) bounds: Bounds,
    /// The accelerating state that the losses ended.
    pub(super) state: Option<State>,
    /// Number of the first packet lost.
    pub(super) first: u64,
    pub(super) lost: u64,
    /// Number of lost packets that arrived after all.
    pub(super) arrived: u64,
}

impl Bbr3 {
    /// Saves the values to restore if the losses of this recovery prove spurious.
    ///
    /// Source: draft-ietf-ccwg-bbr-06 §5.5.11.1
    pub(super) fn save_state(&mut self, first: u64) {
        self.window.save(self.state == State::ProbeRtt);
        self.undo = Undo { bounds: self.bounds, first, ..Undo::default() };
    }

    /// Counts the losses that proved spurious. If all losses of a recovery were spurious, the recovery is undone.
    ///
    /// Source: draft-ietf-ccwg-bbr-06 §5.5.11.2
    pub(super) fn check_spurious(&mut self, packets: &[SentPacket]) {
        let spurious = |packet: &&SentPacket| packet.declared_lost && packet.number >= self.undo.first;
        let arrived = packets.iter().filter(spurious).count() as u64;
        if arrived == 0 || self.undo.lost == 0 {
            return;
        }
        self.undo.arrived += arrived;
        if self.undo.arrived < self.undo.lost {
            return;
        }
        let undo = std::mem::take(&mut self.undo);
        self.window.restore();
        self.signals.forget_congestion();
        self.full_pipe.look_again(Rate::ZERO);
        self.bounds.loosen(&undo.bounds);
        match undo.state {
            Some(State::Startup) if self.state != State::Startup => {
                self.full_pipe.assume(false);
                if self.state != State::ProbeRtt {
                    self.state = State::Startup;
                }
            }
            Some(State::Up) if self.state != State::Up && self.state != State::ProbeRtt => {
                self.start_refill()
            }
            _ => {}
        }
    }
}
