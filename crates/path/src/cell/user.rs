//! Users that can be granted PRBs for data: the scenario's devices and the background users.

use airpace_core::tables::nr;
use airpace_core::{Bits, Draws, Packet, Time};
use airpace_event::{Fate, Owner};
use airpace_radio::Rnti;

use super::adaptation::LinkAdaptation;
use super::bler::{Block, CodeTable};
use super::channel::Channel;
use super::device::{Device, TechnologyChange};
use super::harq::{CODEWORDS, Harq};
use super::region::DataRegion;
use super::rntis::Rntis;
use super::scheduler::BlockSize;

/// One user of the cell.
#[derive(Debug)]
pub(super) struct User {
    pub rnti: Rnti,
    pub owner: Owner,
    pub source: Source,
    /// The user's links to carriers, leg by leg, in the order of their activation, the primary link first.
    pub links: Vec<RadioLink>,
}

/// Source of a user's data.
#[derive(Debug)]
pub(super) enum Source {
    /// Packets of the scenario's flows.
    Device(Box<Device>),
    /// A background user's download. It is empty while the user has none.
    Session(Session),
    /// An infinite queue.
    Endless,
}

/// A background user's download.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Session {
    /// Number of the download's bits that have not arrived at the base station yet.
    pub to_come: u64,
    /// Number of bits that arrive at the base station per millisecond.
    pub bits_per_ms: u64,
    /// Number of bits queued at the base station.
    pub waiting: u64,
}

/// One user on one carrier.
#[derive(Debug)]
pub(super) struct RadioLink {
    pub carrier: u8,
    pub channel: Channel,
    pub adaptation: LinkAdaptation,
    pub harq: Harq,
    /// The MCS table of the link, which is one of its carrier's technology.
    pub table: CodeTable,
    /// Maximum number of groups of code blocks that are acknowledged on their own; 0: none.
    pub code_block_groups: u8,
    /// Whether the SINRs of the carrier's RBGs differ and are reported individually.
    pub has_subbands: bool,
    /// Random draws for errors of the link's transport blocks, by slot and codeword.
    pub luck: Draws,
    /// The user's average rate for the proportional fair scheduler, in bits per slot.
    pub average_bits: f64,
    /// Number of the last slot in which data was queued for the user.
    pub wanted_in: Option<u64>,
    /// Start of the last slot in which the user was granted PRBs, and whether all blocks of this slot were received.
    pub served_in: Option<Time>,
    pub decoded: Option<bool>,
    /// Number of PRBs granted to the user in the last slots.
    pub granted: RecentPrbs,
}

/// Numbers of PRBs of the last slots.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RecentPrbs {
    /// Slots and numbers of PRBs, by slot modulo the length of the array.
    slots: [(Option<u64>, u16); MAX_SLOTS_PER_MS],
}

/// Maximum number of slots in a millisecond.
const MAX_SLOTS_PER_MS: usize = 8;

impl RecentPrbs {
    /// Number of PRBs in a slot of the last millisecond.
    pub(super) fn of(&self, slot: u64) -> u16 {
        match self.slots[slot as usize % MAX_SLOTS_PER_MS] {
            (known, prbs) if known == Some(slot) => prbs,
            _ => 0,
        }
    }

    /// Adds PRBs in a slot.
    pub(super) fn add(&mut self, slot: u64, prbs: u16) {
        self.slots[slot as usize % MAX_SLOTS_PER_MS] = (Some(slot), self.of(slot) + prbs);
    }
}

impl User {
    /// Prepares a device before a slot is scheduled. If a handover or a promotion of the RRC state starts, returns the time at
    /// which data transmission resumes.
    pub(super) fn begin(
        &mut self,
        now: Time,
        leaves_at: Time,
        rntis: &mut Rntis,
        release: &mut dyn FnMut(Time, Packet, Fate),
    ) -> Option<Time> {
        let Source::Device(device) = &mut self.source else { return None };
        let resumes_at = device.starts_again(now);
        if let Some(resumes_at) = resumes_at {
            self.rnti = rntis.assign();
            device.hand_over(now, resumes_at);
            self.links.iter_mut().for_each(RadioLink::reset);
        }
        device.begin(now, leaves_at, release);
        resumes_at
    }

    /// Hands a device over to carriers of the other technology, if its coverage by NR changes at `now`.
    pub(super) fn change_technology(&mut self, now: Time, rntis: &mut Rntis) -> Option<TechnologyChange> {
        let Source::Device(device) = &mut self.source else { return None };
        let change = device.change_technology(now)?;
        if change.is_complete {
            self.rnti = rntis.assign();
        }
        for links in [change.left.clone(), change.entered.clone()] {
            self.links[links].iter_mut().for_each(RadioLink::reset);
        }
        Some(change)
    }

    /// Whether a link may carry new data at `now`.
    pub(super) fn is_active(&self, link: usize, now: Time) -> bool {
        match &self.source {
            Source::Device(device) => device.is_active(link, now),
            _ => true,
        }
    }

    /// Whether the user listens for grants at `now`.
    pub(super) fn is_listening(&self, now: Time) -> bool {
        match &self.source {
            Source::Device(device) => device.life.is_listening(now),
            _ => true,
        }
    }

    /// Number of bits of transport blocks on a link that are needed for all data queued at `now`.
    pub(super) fn wanted_bits(&self, link: usize, now: Time) -> u64 {
        match &self.source {
            Source::Device(device) => device.wanted(link, now) * 8,
            Source::Session(session) if session.waiting == 0 => 0,
            Source::Session(session) => session.waiting + SESSION_HEADER_BITS,
            Source::Endless => u64::MAX,
        }
    }
}

/// Layer 2 headers of a background user's transport block, in bits.
pub(super) const SESSION_HEADER_BITS: u64 = 64;

impl Session {
    /// Whether the whole download was delivered, except for pending HARQ retransmissions.
    pub(super) fn is_over(&self) -> bool {
        self.to_come == 0 && self.waiting == 0
    }

    /// Moves the data that arrives in one millisecond to the queue.
    pub(super) fn arrive(&mut self) {
        let arriving = self.to_come.min(self.bits_per_ms);
        self.to_come -= arriving;
        self.waiting += arriving;
    }
}

impl RadioLink {
    /// Discards all blocks and measurements, because the link starts again after a handover.
    pub(super) fn reset(&mut self) {
        self.harq.flush();
        self.adaptation.reset();
        self.average_bits = 1.0;
    }

    /// Whether all blocks sent to the user in the slot that starts at `now` were received; `None` if there were none.
    pub(super) fn decoded_in(&self, now: Time) -> Option<bool> {
        if self.served_in == Some(now) { self.decoded } else { None }
    }

    /// Number of codewords of a grant.
    ///
    /// Source: TS 36.211 §6.3 (one layer for each of two codewords here); TS 38.211 §7.3.1.3 (one codeword for up to four
    /// layers)
    pub(super) fn codewords(&self) -> usize {
        match self.table {
            CodeTable::Turbo(_) => usize::from(self.channel.layers()).min(CODEWORDS),
            CodeTable::Ldpc(_) => 1,
        }
    }

    /// Block size of all codewords for the user at this MCS, as a function of the number of PRBs.
    pub(super) fn block_size(&self, mcs: u8, region: DataRegion) -> BlockSize {
        match (self.table, region) {
            (CodeTable::Ldpc(table), DataRegion::Nr { res_per_prb, .. }) => {
                let row = table.mcs(mcs.min(table.last_mcs()));
                let layers = self.channel.layers();
                let size_of = |row: nr::Mcs| {
                    Some(BlockSize::Nr { modulation: row.modulation, rate: row.rate?, layers, res_per_prb })
                };
                row.and_then(size_of).unwrap_or(BlockSize::NONE)
            }
            (CodeTable::Turbo(table), _) => {
                let row = table.mcs(mcs).and_then(|row| row.i_tbs);
                BlockSize::Lte { i_tbs: row.unwrap_or(0), codewords: self.channel.layers() }
            }
            (CodeTable::Ldpc(_), DataRegion::Lte { .. }) => {
                unreachable!("links with a table of NR are on carriers of NR")
            }
        }
    }

    /// Number of layers of one codeword.
    pub(super) fn layers_per_codeword(&self) -> u8 {
        match self.table {
            CodeTable::Turbo(_) => 1,
            CodeTable::Ldpc(_) => self.channel.layers(),
        }
    }

    /// The block of one codeword on `prbs` PRB pairs at this MCS.
    pub(super) fn block(&self, mcs: u8, prbs: u16, region: DataRegion) -> Block {
        let bits = Bits(self.block_size(mcs, region).bits(prbs) / self.codewords() as u64);
        Block { table: self.table, mcs, bits }
    }

    /// Bits per PRB pair at the MCS for the whole band; 0 while the user is out of range.
    pub(super) fn bits_per_prb(&self, region: DataRegion, carrier_prbs: u16) -> f64 {
        let Some(mcs) = self.adaptation.mcs(region.cfi()) else { return 0.0 };
        self.block_size(mcs, region).bits(carrier_prbs) as f64 / f64::from(carrier_prbs)
    }
}
