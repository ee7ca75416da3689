//! Hybrid ARQ of one device on one carrier: stop-and-wait processes, each with a transport block per codeword.
//!
//! The outcome of a transmission is drawn when the block is sent. A HARQ process stays occupied until the base station
//! can react to the feedback. With code block groups, a retransmission contains only the groups that were lost.
//!
//! Source: TS 36.321 §5.3.2, TS 36.213 §7.3 and §10.2; TS 38.214 §5.1.7 (code block groups)

use airpace_core::{Draw, Time};

use super::adaptation::Step;
use super::bler::{Block, SoftBuffer};
use super::region::DataRegion;
use super::rlc::Content;

/// Number of codewords per grant.
pub(super) const CODEWORDS: usize = 2;

/// Value of `free_at` for a process with a pending retransmission, which becomes free only after that retransmission.
const WAITING: Time = Time::NEVER;

/// Redundancy versions in the order of transmissions.
///
/// Source: TS 36.321 §5.4.2.2 gives the order, which downlink schedulers also follow
const REDUNDANCY_VERSIONS: [u8; 4] = [0, 2, 3, 1];

/// Times of the HARQ feedback of a transmission.
#[derive(Clone, Copy, Debug)]
pub(super) struct FeedbackTimes {
    /// Time at which link adaptation knows the acknowledgement.
    pub known_at: Time,
    /// The earliest time of a retransmission, and of new data in the process.
    pub resend_from: Time,
}

/// A transport block in HARQ.
#[derive(Clone, Copy, Debug)]
pub(super) struct InFlight {
    /// Size, MCS and MCS table of the first transmission.
    pub block: Block,
    /// The receiver's soft buffer for the block.
    pub held: SoftBuffer,
    /// RLC data in the block.
    pub content: Content,
    /// Number of data bits in the block, for users without RLC.
    pub payload_bits: u64,
    /// The step of the outer loop when the MCS of the block was chosen.
    pub step: Step,
    pub groups: Groups,
}

/// The groups of a block's code blocks that are acknowledged, and sent again, on their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Groups {
    total: u8,
    /// Number of groups that were not received yet.
    missing: u8,
}

impl Groups {
    /// A block that is acknowledged as a whole.
    pub(super) const WHOLE: Groups = Groups { total: 1, missing: 1 };

    /// The groups of a block before its first transmission, at most `max_groups`; 0: the block is acknowledged as a whole.
    ///
    /// Source: TS 38.214 §5.1.7.1
    pub(super) fn of(block: Block, max_groups: u8) -> Groups {
        let total = block.code_blocks().min(max_groups.into()).max(1) as u8;
        Groups { total, missing: total }
    }

    /// Probability that a group is lost in a transmission in which the whole block would be lost with probability `error`.
    ///
    /// Chosen: groups are lost independently, as the code blocks are.
    pub(super) fn error(self, error: f64) -> f64 {
        match self.total {
            1 => error,
            total => -libm::expm1(libm::log1p(-error) / f64::from(total)),
        }
    }

    /// Sends the missing groups in such a transmission. Returns whether the whole block is received.
    pub(super) fn send(&mut self, error: f64, draw: Draw) -> bool {
        if self.total == 1 {
            return !draw.chance(error);
        }
        let (error, draws) = (self.error(error), draw.draws());
        self.missing = (0..self.missing).map(|group| u8::from(draws.at(group.into(), 0).chance(error))).sum();
        self.missing == 0
    }

    /// The part of `rbgs` RBGs, which the whole block needs, for the missing groups.
    fn part_of(self, rbgs: u32) -> u32 {
        (rbgs * u32::from(self.missing)).div_ceil(self.total.into())
    }
}

/// One stop-and-wait process.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Process {
    /// For each codeword, the block that is not decoded yet; `None` if there is none.
    pub blocks: [Option<InFlight>; CODEWORDS],
    /// New-data indicators of the last new blocks.
    pub ndi: [bool; CODEWORDS],
    /// Number of RBGs of the first transmission, and the resource elements for data of its PRBs (0 for LTE).
    pub rbgs: u8,
    pub res_per_prb: u16,
    /// Start of the slot of the last transmission of the process, and the earliest time of the next transmission.
    pub sent_in: Time,
    pub resend_from: Time,
}

impl Process {
    /// Whether a retransmission is pending.
    pub(super) fn is_waiting(&self) -> bool {
        self.blocks.iter().any(Option::is_some)
    }

    /// Number of RBGs that a retransmission needs in a slot with this region. A slot with fewer resource elements than that
    /// of the first transmission needs more RBGs.
    pub(super) fn rbgs_in(&self, region: DataRegion) -> u32 {
        let (first, now) = (u32::from(self.res_per_prb), u32::from(region.res_per_prb()));
        let blocks = self.blocks.iter().flatten();
        let rbgs = blocks.map(|block| block.groups.part_of(self.rbgs.into())).max().unwrap_or(0);
        if first > now && now > 0 { (rbgs * first).div_ceil(now) } else { rbgs }
    }
}

/// The processes of one device on one carrier.
#[derive(Clone, Debug)]
pub(super) struct Harq {
    pub processes: Vec<Process>,
    /// Time from which each process may take new data. This is a separate list, because it is read for all processes in
    /// every slot.
    free_at: Vec<Time>,
}

impl Harq {
    /// `count` processes without data.
    pub(super) fn new(count: usize) -> Harq {
        Harq { processes: vec![Process::default(); count], free_at: vec![Time::ZERO; count] }
    }

    /// Index of a process that is free for new data at `now`; `None` if no process is free.
    pub(super) fn free_process(&self, now: Time) -> Option<u8> {
        self.free_at.iter().position(|&free_at| free_at <= now).map(|index| index as u8)
    }

    /// Whether no process has a block that is not decoded yet.
    pub(super) fn is_idle(&self) -> bool {
        self.free_at.iter().all(|&free_at| free_at != WAITING)
    }

    /// Records that the blocks of process `index` were sent at `now`; the base station can react to their feedback from
    /// `reacts_at` on.
    pub(super) fn sent(&mut self, index: u8, now: Time, reacts_at: Time) {
        let index = usize::from(index);
        self.processes[index].sent_in = now;
        self.processes[index].resend_from = reacts_at;
        self.free_at[index] = if self.processes[index].is_waiting() { WAITING } else { reacts_at };
    }

    /// Discards all blocks (handover); the new-data indicators are not reset.
    pub(super) fn flush(&mut self) {
        for process in &mut self.processes {
            process.blocks = [None; CODEWORDS];
        }
        self.free_at.fill(Time::ZERO);
    }
}

impl InFlight {
    /// A block before its first transmission, which is acknowledged as a whole.
    pub(super) fn new(block: Block, content: Content, payload_bits: u64, step: Step) -> InFlight {
        let groups = Groups::WHOLE;
        InFlight { block, held: SoftBuffer::default(), content, payload_bits, step, groups }
    }

    /// The redundancy version of the block's next transmission.
    pub(super) fn redundancy_version(&self) -> u8 {
        REDUNDANCY_VERSIONS[usize::from(self.held.transmissions() % 4)]
    }

    /// The reserved MCS that a retransmission of this block has: it contains only the modulation.
    ///
    /// Source: TS 36.213 §7.1.7.1 Tables 7.1.7.1-1 (29…31) and 7.1.7.1-1A (28…31); TS 38.214 §5.1.3.1 Tables
    /// 5.1.3.1-1 to 5.1.3.1-3 (the same rows)
    pub(super) fn reserved_mcs(&self) -> u8 {
        let step = self.block.modulation().bits_per_symbol() as u8 / 2;
        self.block.table.last_mcs() + step
    }
}

/// A pending retransmission.
#[derive(Clone, Copy, Debug)]
pub(super) struct Due {
    /// The earliest time of the retransmission.
    pub at: Time,
    /// Start of the slot of the transmission that failed.
    pub sent_in: Time,
    /// Index of the user.
    pub user: u16,
    /// Index of the carrier link among the user's links.
    pub link: u8,
    /// Index of the HARQ process.
    pub process: u8,
}
