//! Grants of one user: transmitted and retransmitted blocks, throughput, and inferred radio state of the device.

mod side;

pub use side::OwnSide;

use std::collections::VecDeque;

use airpace_core::{Bits, Direction, Rate};
use airpace_radio::{Dci, Rnti};

use crate::found::Found;

/// A grant of the followed user.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OwnGrant {
    /// Subframe number of the grant.
    pub index: u64,
    /// The grant. Retransmitted blocks have the size of their first transmission, if its grant was decoded.
    pub dci: Dci,
    /// Bits of newly transmitted blocks.
    pub new_bits: Bits,
    /// Number of retransmitted blocks.
    pub again: u8,
    /// Number of blocks of unknown size. These blocks are retransmissions, and the grant of their first transmission
    /// was not decoded.
    pub unknown: u8,
    /// Posterior probability that the grant is correct, 0…1.
    pub confidence: f32,
}

/// Sums over the last subframes, in one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sums {
    /// Number of grants.
    pub grants: u64,
    /// Number of granted PRB pairs.
    pub prbs: u64,
    /// Bits of newly transmitted blocks. The user receives all of them, except blocks whose retransmissions all fail.
    pub new_bits: Bits,
    /// Number of transport blocks, including retransmissions.
    pub blocks: u64,
    /// Number of retransmitted blocks.
    pub again: u64,
}

impl Sums {
    /// Share of retransmissions among all blocks, 0…1.
    pub fn retransmitted(&self) -> f64 {
        if self.blocks == 0 { 0.0 } else { self.again as f64 / self.blocks as f64 }
    }
}

/// Collects the grants of one user.
#[derive(Clone, Debug)]
pub struct Follower {
    rnti: Rnti,
    window: u64,
    recent: VecDeque<OwnGrant>,
    now: u64,
    since: Option<u64>,
}

impl Follower {
    /// Creates a follower of the user with the given RNTI. Sums are computed over the last `window` subframes (at least
    /// one).
    pub fn new(rnti: Rnti, window: u64) -> Follower {
        Follower { rnti, window: window.max(1), recent: VecDeque::new(), now: 0, since: None }
    }

    /// RNTI of the followed user.
    pub fn rnti(&self) -> Rnti {
        self.rnti
    }

    /// Advances to subframe `index`.
    pub fn advance(&mut self, index: u64) {
        self.now = self.now.max(index);
        self.since.get_or_insert(index);
        let first = self.now.saturating_sub(self.window - 1);
        self.recent.retain(|own| own.index >= first);
    }

    /// Takes a message. Returns its grant if the message grants resources to the followed user.
    pub fn take(&mut self, found: &Found) -> Option<OwnGrant> {
        let dci = found.dci.filter(|dci| dci.rnti == self.rnti)?;
        let blocks =
            |of: &dyn Fn(usize) -> bool| (0..2).filter(|&at| dci.mcs[at].is_some() && of(at)).count() as u8;
        let new_bits = (0..2).filter(|&at| !dci.retransmission[at]).map(|at| dci.tbs[at].0).sum();
        let own = OwnGrant {
            index: found.index,
            dci,
            new_bits: Bits(new_bits),
            again: blocks(&|at| dci.retransmission[at]),
            unknown: blocks(&|at| dci.tbs[at].0 == 0),
            confidence: found.confidence,
        };
        self.advance(found.index);
        self.recent.push_back(own);
        Some(own)
    }

    /// Sums over the window.
    pub fn sums(&self, direction: Direction) -> Sums {
        let own = self.recent.iter().filter(|own| own.dci.direction == direction);
        own.fold(Sums::default(), |sums, own| Sums {
            grants: sums.grants + 1,
            prbs: sums.prbs + u64::from(own.dci.prbs.len()),
            new_bits: sums.new_bits + own.new_bits,
            blocks: sums.blocks + own.dci.mcs.iter().flatten().count() as u64,
            again: sums.again + u64::from(own.again),
        })
    }

    /// Bits of new blocks per second over the window. Before a full window has passed, the time since the first
    /// subframe is used.
    pub fn throughput(&self, direction: Direction) -> Rate {
        let passed = self.since.map_or(0, |since| self.now - since);
        let ms = passed.saturating_add(1).min(self.window);
        Rate::from_bps(self.sums(direction).new_bits.0.saturating_mul(1000) / ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dci::{Carrier, Message, Uplink};
    use crate::found::RntiKind;
    use crate::pdcch::CceRange;
    use airpace_radio::PrbSet;

    fn found(rnti: u16, index: u64, size: u64, again: bool) -> Found {
        let message = Message::Uplink(Uplink {
            carrier: None,
            hopping: None,
            start: 0,
            len: 4,
            mcs: 10,
            ndi: true,
            tpc: 1,
            cyclic_shift: 0,
            csi_request: 0,
            srs_request: None,
        });
        let carrier = Carrier::symmetric(25, crate::Ports::Two);
        let rnti = Rnti(rnti);
        let dci = message.to_dci(&carrier, rnti, Default::default()).map(|dci| Dci {
            tbs: [Bits(size), Bits(0)],
            retransmission: [again, false],
            prbs: PrbSet::run(0, 4),
            ..dci
        });
        Found {
            pci: 1,
            index,
            sfn: (index / 10 % 1024) as u16,
            subframe: (index % 10) as u8,
            cfi: 1,
            rnti,
            kind: RntiKind::of(rnti, &message),
            payload: Default::default(),
            place: CceRange { cce: 0, cces: 1 },
            message,
            extras: Default::default(),
            prbs: message.prbs(&carrier),
            dci,
            table: Default::default(),
            is_table_known: false,
            is_format_known: true,
            snr_db: 20.0,
            confidence: 1.0,
        }
    }

    #[test]
    fn only_new_blocks_of_the_user_are_throughput() {
        let mut follower = Follower::new(Rnti(100), 10);
        assert_eq!(follower.take(&found(101, 20, 5000, false)), None);
        follower.take(&found(100, 20, 1000, false)).expect("its own grant");
        let again = follower.take(&found(100, 28, 1000, true)).expect("its own grant");
        assert_eq!((again.new_bits, again.again, again.unknown), (Bits(0), 1, 0));
        let sums = follower.sums(Direction::Uplink);
        assert_eq!((sums.grants, sums.prbs, sums.new_bits, sums.blocks), (2, 8, Bits(1000), 2));
        assert!((sums.retransmitted() - 0.5).abs() < 1e-9);
        assert_eq!(follower.sums(Direction::Downlink), Sums::default());
        follower.advance(29);
        assert_eq!(follower.throughput(Direction::Uplink), Rate::from_bps(100_000), "1000 bits in 10 ms");
        follower.advance(30);
        assert_eq!(follower.sums(Direction::Uplink).grants, 1, "subframe 20 is over");
    }

    #[test]
    fn a_retransmission_without_a_received_first_transmission_has_no_size() {
        let mut follower = Follower::new(Rnti(100), 100);
        let own = follower.take(&found(100, 5, 0, true)).expect("its own grant");
        assert_eq!((own.unknown, own.again, own.new_bits), (1, 1, Bits(0)));
    }

    #[test]
    fn the_last_subframe_of_all_is_one_like_others() {
        let mut follower = Follower::new(Rnti(100), 10);
        follower.take(&found(100, u64::MAX, 1000, false)).expect("its own grant");
        assert_eq!(follower.throughput(Direction::Uplink), Rate::from_bps(1_000_000), "1000 bits in 1 ms");
    }
}
