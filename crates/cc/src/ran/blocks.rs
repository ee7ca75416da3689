//! The device's transport blocks in the order of the data that they carry, and the subframe in which each was released.
//!
//! RLC delivers packets in order. The blocks of all carriers therefore form one sequence, in the order of their first
//! transmissions. A block is released in the subframe in which the last of this block and all earlier blocks was
//! received:
//!
//! ```text
//!  subframe   0  1  2  3  4  5  6  7  8
//!  first      a  b  c  d                     a fails and is sent again in subframe 8
//!  again                              a
//!  released                           abcd   waits: a 8, b 7, c 6, d 5 subframes
//! ```
//!
//! Source: TS 36.322 §5.1.3.2; Gandalf, 2025, arXiv:2507.00337

use std::collections::VecDeque;
use std::time::Duration;

use airpace_core::{Bytes, Direction, Time};
use airpace_radio::{BitLayer, Dci, RadioReport};

/// Maximum number of stored blocks.
///
/// Chosen: five carriers with two codewords for a tenth of a second. A repaired block needs four transmissions of
/// eight subframes.
const MAX_BLOCKS: usize = 1_000;

/// A subframe.
const SUBFRAME: Duration = Duration::from_millis(1);

/// Maximum number of subframes between the release of a block and the arrival of its packets.
///
/// Chosen: a device decodes within four subframes, as the feedback in the fourth shows (TS 36.213 §10.2); the path
/// through the device may take as long again.
const LAGS: usize = 8;

/// Gain of the average share of packets that arrive at each lag.
///
/// Chosen: the average covers some tens of arrivals.
const LAG_GAIN: f64 = 1.0 / 32.0;

/// Minimum share of packets that arrive at a lag for the lag to be accepted.
///
/// Chosen: a wrong lag is contradicted by every block that fails, about one in ten.
const LAG_KNOWN: f64 = 0.9;

/// Share of packets at an accepted lag below which the lag is discarded.
///
/// Chosen: a few blocks with a wrong outcome do not reduce the share below this threshold; a change of the lag does.
const LAG_LOST: f64 = 0.6;

/// Number of subframes after its arrival when a packet is compared with the releases before its arrival.
///
/// Chosen: by then, three transmissions have shown which of a grant's two blocks had failed.
const JUDGED_AFTER: usize = 24;

/// Maximum number of transmissions of a block by HARQ.
///
/// Chosen: as in most networks. If a grant has two blocks, a report contains that one of them failed, but not which.
/// The following grant decides: if a block had fewer transmissions than this number and new data follows, the block was
/// received.
const HARQ_TRANSMISSIONS: u32 = 4;

/// If a block has had no further transmission for this time, it counts as received, although its success was not
/// reported.
///
/// Chosen: an RLC retransmission takes a few tens of ms.
const FORGOTTEN_AFTER: Duration = Duration::from_millis(200);

/// One transport block.
#[derive(Clone, Copy, Debug)]
struct Block {
    first: Time,
    last: Time,
    /// Carrier and codeword. They define the order of the blocks of one subframe.
    place: (u8, usize),
    harq: Option<u8>,
    ndi: Option<bool>,
    bytes: u64,
    transmissions: u32,
    /// The time at which the block was received; `None` if not known.
    done: Option<Time>,
    /// Whether a report contained the outcome of the block.
    is_sure: bool,
}

/// The blocks of a device.
#[derive(Clone, Debug)]
pub struct Blocks {
    blocks: VecDeque<Block>,
    /// Start of the newest subframe that was reported.
    newest: Option<Time>,
    /// The latest release of blocks that are no longer stored.
    released: Time,
    /// Average share of packets that arrive at each lag.
    lags: [f64; LAGS],
    /// The number of subframes between the release of a block and the arrival of its packets; `None` while it is
    /// unknown.
    lag: Option<usize>,
    /// Time of the last arrival.
    last_arrival: Option<Time>,
    /// The newest subframe reported at each arrival that has not been evaluated.
    arrivals: VecDeque<Time>,
    /// The release with which the last packets arrived, and the number of bytes of these packets.
    taken: (Time, u64),
    repeated: u64,
}

impl Default for Blocks {
    fn default() -> Blocks {
        Blocks {
            blocks: VecDeque::new(),
            newest: None,
            released: Time::ZERO,
            lags: [0.0; LAGS],
            lag: None,
            last_arrival: None,
            arrivals: VecDeque::new(),
            taken: (Time::ZERO, 0),
            repeated: 0,
        }
    }
}

impl Blocks {
    /// Processes the report of a subframe of one carrier. Reports without the device's own part are ignored, as are
    /// reports of a recorded link, which has no blocks.
    pub fn on_report(&mut self, report: &RadioReport) {
        let Some(own) = report.own.as_ref().filter(|_| report.layer == BitLayer::Physical) else { return };
        self.newest = Some(self.newest.map_or(report.time, |newest| newest.max(report.time)));
        for dci in &report.dcis {
            if dci.rnti == own.rnti && dci.direction == Direction::Downlink {
                (0..2).for_each(|codeword| self.on_grant(report, dci, codeword, own.decoded));
            }
        }
        self.learn_lag();
        self.forget();
    }

    fn on_grant(&mut self, report: &RadioReport, dci: &Dci, codeword: usize, decoded: Option<bool>) {
        let place = (report.carrier.0, codeword);
        let newest = |block: &Block| block.harq.is_some() && block.harq == dci.harq && block.place == place;
        let index = self.blocks.iter().rposition(newest);
        let done = if decoded == Some(false) { None } else { Some(report.time) };
        let is_sure = decoded.is_some();
        if let Some(before) = index.map(|index| &mut self.blocks[index]) {
            let is_same = before.ndi.is_some() && before.ndi == dci.ndi[codeword];
            let is_again =
                dci.retransmission[codeword] || is_same && !(before.done.is_some() && before.is_sure);
            if dci.is_sent(codeword) && is_again {
                before.last = report.time;
                before.transmissions += 1;
                (before.done, before.is_sure) = (done, is_sure);
                self.repeated += 1;
                return;
            }
            // A failed block is retransmitted until HARQ gives up. A block that is not retransmitted did not fail: the
            // report of a failure covers both codewords of a grant.
            if before.done.is_none() && before.transmissions < HARQ_TRANSMISSIONS {
                (before.done, before.is_sure) = (Some(before.last), true);
            }
        }
        // If the first transmission of a block was missed, its wait is unknown.
        if !dci.is_sent(codeword) || dci.retransmission[codeword] {
            return;
        }
        let block = Block {
            first: report.time,
            last: report.time,
            place,
            harq: dci.harq,
            ndi: dci.ndi[codeword],
            bytes: dci.tbs[codeword].bytes().0,
            transmissions: 1,
            done,
            is_sure,
        };
        let after = |other: &Block| (other.first, other.place) <= (block.first, block.place);
        let index = self.blocks.iter().rposition(after).map_or(0, |index| index + 1);
        self.blocks.insert(index, block);
    }

    /// Removes blocks whose packets arrived long ago.
    fn forget(&mut self) {
        let Some(newest) = self.newest else { return };
        while let Some(front) = self.blocks.front().copied() {
            let is_old = |time: Time, age: Duration| time + age < newest;
            let release = match front.done {
                Some(done) => self.released.max(done),
                None if is_old(front.last, FORGOTTEN_AFTER) => self.released.max(front.last),
                None => Time::NEVER,
            };
            let is_past = release != Time::NEVER && is_old(release, SUBFRAME * (LAGS + JUDGED_AFTER) as u32);
            if !is_past && self.blocks.len() <= MAX_BLOCKS {
                break;
            }
            self.blocks.pop_front();
            if release != Time::NEVER {
                self.released = release;
            }
        }
    }

    /// The time between the first transmission of a packet's block and the release of the packet, for a packet of
    /// `bytes` that arrives at `now`; zero if unknown. Packets arrive in the order in which RLC delivers them.
    ///
    /// The subframe that released the packet is derived from the order of packets and reports. No clocks are compared.
    pub fn wait(&mut self, now: Time, bytes: Bytes) -> Duration {
        let Some(newest) = self.newest else { return Duration::ZERO };
        // While no reports arrive, arrivals cannot be evaluated.
        if self.last_arrival.replace(now) != Some(now) && self.arrivals.back() != Some(&newest) {
            self.arrivals.push_back(newest);
        }
        let Some(lag) = self.lag() else { return Duration::ZERO };
        let subframe = newest - lag;
        self.repair(subframe);
        if self.taken.0 != subframe {
            self.taken = (subframe, 0);
        }
        self.taken.1 = self.taken.1.saturating_add(bytes.0);
        let mut wait = Duration::ZERO;
        let mut carried = 0;
        for (block, release) in self.releases() {
            if lag_of(subframe, release) == Some(0) {
                wait = release - block.first;
                carried += block.bytes;
                if carried >= self.taken.1 {
                    break;
                }
            }
        }
        wait
    }

    /// The time from the release of blocks to the arrival of their packets, as far as the order of reports and packets
    /// shows it; `None` if it is not known.
    pub fn lag(&self) -> Option<Duration> {
        self.lag.map(|lag| SUBFRAME * lag as u32)
    }

    /// Number of blocks that were transmitted more than once.
    pub fn repeated(&self) -> u64 {
        self.repeated
    }

    /// The released blocks in order, and the time of each release.
    fn releases(&self) -> impl Iterator<Item = (&Block, Time)> {
        self.blocks.iter().scan(self.released, |latest, block| {
            *latest = block.done?.max(*latest);
            Some((block, *latest))
        })
    }

    /// The first block that has not been received.
    fn missing(&self) -> Option<usize> {
        self.blocks.iter().position(|block| block.done.is_none())
    }

    /// A packet arrives only if blocks were released one lag earlier. Between the failure of a block and its
    /// retransmission nothing is released, so wrong lags are detected.
    fn learn_lag(&mut self) {
        let Some(newest) = self.newest else { return };
        while let Some(&arrival) = self.arrivals.front()
            && arrival + SUBFRAME * JUDGED_AFTER as u32 <= newest
        {
            self.arrivals.pop_front();
            let mut seen = [false; LAGS];
            for (_, release) in self.releases() {
                if let Some(lag) = lag_of(arrival, release).filter(|lag| *lag < LAGS) {
                    seen[lag] = true;
                }
            }
            for (lag, seen) in self.lags.iter_mut().zip(seen) {
                *lag += (f64::from(u8::from(seen)) - *lag) * LAG_GAIN;
            }
            let best =
                (0..LAGS).fold(0, |best, lag| if self.lags[lag] > self.lags[best] { lag } else { best });
            if self.lags[best] >= LAG_KNOWN {
                self.lag = Some(best);
            }
            self.lag = self.lag.filter(|lag| self.lags[*lag] >= LAG_LOST);
        }
    }

    /// If the packet of `subframe` cannot come from any received block, the oldest missing block is marked as received
    /// in this subframe: either HARQ gave up the block and RLC retransmitted it, or the grant of its retransmission was
    /// not decoded.
    fn repair(&mut self, subframe: Time) {
        if self.releases().any(|(_, release)| lag_of(subframe, release) == Some(0)) {
            return;
        }
        if let Some(missing) = self.missing().map(|index| &mut self.blocks[index])
            && missing.last < subframe
        {
            (missing.done, missing.is_sure) = (Some(subframe), true);
        }
    }
}

/// Number of whole subframes from `release` to `subframe`; `None` if the release is later.
fn lag_of(subframe: Time, release: Time) -> Option<usize> {
    let lag = subframe.as_nanos().checked_sub(release.as_nanos())?;
    usize::try_from(lag / SUBFRAME.as_nanos() as u64).ok()
}

#[cfg(test)]
mod tests;
