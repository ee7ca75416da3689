//! What a radio says of one subframe of one carrier.

use airpace_core::{Bytes, Direction, Time};

use crate::grant::{Dci, Rnti};
use crate::prb::PrbSet;

/// A component carrier, by its place in the scenario's list (0 is the first).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CarrierId(pub u8);

/// Which layer's bits a report counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BitLayer {
    /// Transport blocks on the air: HARQ errors and protocol headers are still to be taken off.
    #[default]
    Physical,
    /// What a transport gets: nothing is to be taken off (a recorded trace's delivery chances).
    Transport,
}

/// What a device knows of its own side of one carrier, without listening to others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OwnRadio {
    /// Its RNTI on this carrier.
    pub rnti: Rnti,
    /// Whether the carrier is activated for this device in this subframe.
    pub active: bool,
    /// Signal to interference and noise ratio that it measured, in dB.
    pub sinr_db: f64,
    /// Downlink bits that one PRB pair would carry for it at its present CQI, all layers.
    pub bits_per_prb: f64,
    /// Whether the transport block granted in this subframe was received; `None` without a grant.
    pub decoded: Option<bool>,
    /// Bytes that wait in the device for the uplink, all carriers; `None` where they are not known (not from the
    /// modem's own log).
    pub uplink_queue: Option<Bytes>,
}

/// One subframe of one carrier as its control channel tells it.
///
/// Shapes: at most a few tens of [`Dci`]s; reports of one carrier come in order of time, those of different
/// carriers may be late by different amounts (align them by `subframe_index`).
#[derive(Clone, Debug, PartialEq)]
pub struct RadioReport {
    /// The carrier.
    pub carrier: CarrierId,
    /// Start of the subframe, by the clock of who reports.
    pub time: Time,
    /// Number of the subframe: 10 · SFN + subframe, without the wrap at 10,240. Where a cell's frame numbers leap, it goes on
    /// with time.
    pub subframe_index: u64,
    /// Downlink PRB pairs of the carrier.
    pub carrier_prbs: u16,
    /// Control format indicator: OFDM symbols of the control region, 1…4.
    pub cfi: u8,
    /// Every DCI that was read, all users.
    pub dcis: Vec<Dci>,
    /// The reporter's own side; `None` for a bystander (and for the cell's own truth).
    pub own: Option<OwnRadio>,
    /// What the bits of this report count.
    pub layer: BitLayer,
}

impl RadioReport {
    /// Downlink PRB pairs that no DCI of this report grants.
    ///
    /// Source: PBE-CC §4.2.1 Eq. 4
    #[inline]
    pub fn idle_prbs(&self) -> u16 {
        let used = self
            .dcis
            .iter()
            .filter(|dci| dci.direction == Direction::Downlink)
            .fold(PrbSet::EMPTY, |used, dci| used.union(dci.prbs));
        self.carrier_prbs.saturating_sub(used.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_prbs_count_every_user_once() {
        let grant = |start, len| Dci { prbs: PrbSet::run(start, len), ..Dci::default() };
        let report = RadioReport {
            carrier: CarrierId(0),
            time: Time::ZERO,
            subframe_index: 0,
            carrier_prbs: 50,
            cfi: 1,
            dcis: vec![grant(0, 6), grant(6, 4), Dci { direction: Direction::Uplink, ..grant(20, 9) }],
            own: None,
            layer: BitLayer::Physical,
        };
        assert_eq!(report.idle_prbs(), 40);
    }
}
