//! The radio's words: who was granted what, per carrier and subframe.
//!
//! The same words come from the simulated cell, from a decoder of IQ samples and from a modem's log.

use crate::time::Time;
use crate::units::{Bits, Bytes};

/// A radio network temporary identifier: whom a DCI is for.
///
/// Source: TS 36.321 §7.1 Table 7.1-1
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rnti(pub u16);

impl Rnti {
    /// Paging.
    pub const PAGING: Rnti = Rnti(0xFFFE);
    /// System information.
    pub const SYSTEM_INFORMATION: Rnti = Rnti(0xFFFF);
}

/// A component carrier, by its place in the scenario's list (0 is the first).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CarrierId(pub u8);

/// A set of PRB pairs of one carrier, at most 128 wide.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct PrbSet(u128);

impl PrbSet {
    /// No PRB.
    pub const EMPTY: PrbSet = PrbSet(0);

    /// The run of `len` PRBs from `start`, cut at PRB 127.
    #[inline]
    pub const fn run(start: u16, len: u16) -> PrbSet {
        if start >= 128 || len == 0 {
            return PrbSet(0);
        }
        let ones = if len >= 128 { u128::MAX } else { (1u128 << len) - 1 };
        PrbSet(ones << start)
    }

    /// How many PRBs are in the set.
    #[inline]
    pub const fn len(self) -> u16 {
        self.0.count_ones() as u16
    }

    /// Whether no PRB is in the set.
    #[inline]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether PRB `index` is in the set.
    #[inline]
    pub const fn contains(self, index: u16) -> bool {
        index < 128 && self.0 >> index & 1 == 1
    }

    /// PRBs of either set.
    #[inline]
    pub const fn union(self, other: PrbSet) -> PrbSet {
        PrbSet(self.0 | other.0)
    }

    /// PRBs of both sets.
    #[inline]
    pub const fn intersection(self, other: PrbSet) -> PrbSet {
        PrbSet(self.0 & other.0)
    }

    /// PRBs of this set that are not in `other`.
    #[inline]
    pub const fn without(self, other: PrbSet) -> PrbSet {
        PrbSet(self.0 & !other.0)
    }

    /// The maximal runs of adjacent PRBs, as (start, length), lowest first.
    #[inline]
    pub fn runs(self) -> impl Iterator<Item = (u16, u16)> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            if rest == 0 {
                return None;
            }
            let start = rest.trailing_zeros() as u16;
            let len = (rest >> start).trailing_ones() as u16;
            rest &= !PrbSet::run(start, len).0;
            Some((start, len))
        })
    }
}

impl std::fmt::Debug for PrbSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.runs()).finish()
    }
}

/// Which way the granted data goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// From the cell to the device.
    #[default]
    Downlink,
    /// From the device to the cell.
    Uplink,
}

/// The DCI formats that carry a grant or assignment of LTE.
///
/// Source: TS 36.212 §5.3.3.1
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)] // the variants are the formats' own names
pub enum DciFormat {
    F0,
    #[default]
    F1,
    F1A,
    F1B,
    F1C,
    F1D,
    F2,
    F2A,
    F2B,
}

/// Downlink control information: one user's grant in one subframe of one carrier.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dci {
    /// Whom it is for.
    pub rnti: Rnti,
    /// Which way the granted data goes.
    pub direction: Direction,
    /// How it was coded.
    pub format: DciFormat,
    /// The PRB pairs granted.
    pub prbs: PrbSet,
    /// MCS index per codeword; `None` for a codeword not sent. 29…31 are retransmissions (TBS unknown here).
    pub mcs: [Option<u8>; 2],
    /// Transport block size per codeword in bits; zero where not sent or unknown (reserved MCS).
    pub tbs: [Bits; 2],
    /// Redundancy version per codeword.
    pub rv: [u8; 2],
    /// New-data indicator per codeword: toggles when the HARQ process takes new data.
    pub ndi: [bool; 2],
    /// HARQ process number.
    pub harq: u8,
    /// Spatial layers.
    pub layers: u8,
    /// Whether the block of each codeword was sent before in this HARQ process; known to who made the grant or
    /// followed the NDI. A block sent again may have a new one beside it.
    pub retransmission: [bool; 2],
}

impl Dci {
    /// Whether any of its blocks was sent before.
    #[inline]
    pub fn is_retransmission(&self) -> bool {
        self.retransmission[0] || self.retransmission[1]
    }

    /// Bits of all transport blocks granted; zero if unknown.
    #[inline]
    pub fn bits(&self) -> Bits {
        self.tbs[0] + self.tbs[1]
    }
}

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
    fn a_set_of_prbs_counts_and_splits_into_runs() {
        let set = PrbSet::run(0, 4).union(PrbSet::run(8, 2));
        assert_eq!(set.len(), 6);
        assert_eq!(set.runs().collect::<Vec<_>>(), [(0, 4), (8, 2)]);
        assert!(set.contains(9) && !set.contains(4));
        assert_eq!(set.without(PrbSet::run(0, 4)), PrbSet::run(8, 2));
        assert_eq!(PrbSet::run(0, 128).len(), 128);
    }

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
