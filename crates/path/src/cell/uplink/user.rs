//! Users that can be granted uplink PRBs.

use std::ops::Range;

use airpace_core::{Draws, Packet, Time};
use airpace_event::{Fate, Owner};
use airpace_radio::Rnti;

use super::super::bler::Bler;
use super::super::channel::Channel;
use super::super::config::uplink::UplinkConfig;
use super::super::rlc::Content;
use super::super::user::{RecentPrbs, SESSION_HEADER_BITS, Session};
use super::adaptation::{Sounding, UplinkTable};
use super::knowledge::Knowledge;
use super::sender::Sender;

/// One user of the uplink.
#[derive(Debug)]
pub(super) struct UplinkUser {
    pub rnti: Rnti,
    pub owner: Owner,
    pub source: Source,
    /// The user's links to carriers, leg by leg in the order of their activation.
    pub links: Vec<UplinkLink>,
}

/// Source of a user's data.
#[derive(Debug)]
pub(super) enum Source {
    /// A device, and the base station's estimate of its buffer.
    Device(Box<Sender>, Knowledge),
    /// A background user's upload, and the number of its blocks in flight. The upload is empty while the user has none.
    Session(Session, u32),
    /// An infinite queue.
    Endless,
}

/// One user on one uplink carrier.
#[derive(Debug)]
pub(super) struct UplinkLink {
    pub carrier: u8,
    pub channel: Channel,
    pub sounding: Sounding,
    /// Random draws for errors of the link's transport blocks, by slot.
    pub luck: Draws,
    /// New-data indicator of each HARQ process, one bit per process.
    pub indicators: u32,
    /// HARQ processes that cannot take new data, one bit per process: in LTE, those whose block must be retransmitted; in
    /// NR, those whose block is not known to be received.
    pub busy: u32,
    /// The user's average rate for the proportional fair scheduler, in bits per slot with grants.
    pub average_bits: f64,
    /// Start of the last slot in which the user needed PRBs according to the base station.
    pub wanted_in: Option<Time>,
    /// Number of PRBs on which the user sent in the last slots.
    pub sent: RecentPrbs,
}

impl UplinkUser {
    /// The links that may be granted new data at `now`.
    pub(super) fn active_links(&self, now: Time) -> Range<usize> {
        match &self.source {
            Source::Device(sender, _) if sender.is_interrupted(now) => 0..0,
            Source::Device(sender, _) => sender.active_links(),
            _ => 0..self.links.len(),
        }
    }

    /// Total number of bits of transport blocks that the base station would grant to the user on a carrier with this many
    /// bytes of headers per block.
    pub(super) fn wanted_bits(&self, shared: &Shared, header_bytes: u64) -> u64 {
        match &self.source {
            Source::Device(_, knowledge) => match knowledge.wanted(shared.config.sr_grant_bytes) {
                0 => 0,
                bytes => 8 * (bytes + header_bytes),
            },
            Source::Session(session, _) if session.waiting == 0 => 0,
            Source::Session(session, _) => session.waiting + SESSION_HEADER_BITS,
            Source::Endless => u64::MAX,
        }
    }
}

impl Source {
    /// Grants a block of `bits` for the slot that starts at `data_in`. A device's data has `header_bytes` less space than that.
    /// Returns the number of bits of a background user's data in the block.
    pub(super) fn grant(&mut self, header_bytes: u64, data_in: Time, bits: u64) -> u64 {
        match self {
            Source::Device(_, knowledge) => {
                knowledge.grant(data_in, (bits / 8).saturating_sub(header_bytes));
                0
            }
            Source::Session(session, on_air) => {
                let payload_bits = session.waiting.min(bits.saturating_sub(SESSION_HEADER_BITS));
                session.waiting -= payload_bits;
                *on_air += 1;
                payload_bits
            }
            Source::Endless => 0,
        }
    }

    /// Processes a block, sent at `now`, that was received.
    pub(super) fn received(&mut self, now: Time, content: Content, release: &mut dyn FnMut(Packet, Fate)) {
        match self {
            Source::Device(sender, _) => sender.rlc.decoded(now, content, release),
            Source::Session(_, on_air) => *on_air -= 1,
            Source::Endless => {}
        }
    }

    /// Processes a block whose HARQ retransmissions were exhausted with the transmission at `now`.
    pub(super) fn failed(&mut self, now: Time, content: Content, payload_bits: u64) {
        match self {
            Source::Device(sender, _) => sender.rlc.failed(now, content),
            Source::Session(session, on_air) => {
                session.waiting += payload_bits;
                *on_air -= 1;
            }
            Source::Endless => {}
        }
    }
}

impl UplinkLink {
    /// Sets whether a HARQ process cannot take new data.
    pub(super) fn set_busy(&mut self, process: u8, is_busy: bool) {
        self.busy = self.busy & !(1 << process) | u32::from(is_busy) << process;
    }

    /// Number of bits of a block on `prbs` PRB pairs, at the MCS for this number of PRB pairs; 0 while the user is out
    /// of range.
    pub(super) fn bits_on(&self, table: &UplinkTable, prbs: u16) -> u64 {
        self.sounding.mcs(table, prbs).map_or(0, |mcs| table.block(mcs, prbs).bits.0)
    }
}

/// State and configuration shared by all users and carriers of an uplink.
#[derive(Debug)]
pub(super) struct Shared {
    pub config: UplinkConfig,
    pub bler: Bler,
}
