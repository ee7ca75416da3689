//! Classifies the device's transport blocks as new data or retransmissions.

use airpace_radio::{Dci, RadioReport};

use crate::nr::is_nr;

/// Minimum number of subframes of LTE between two uses of a HARQ process. If two decoded grants of a process are less than
/// twice this number apart, there was no other use between them.
///
/// Source: TS 36.213 §10.1 (the answer comes four subframes later), TS 36.321 §5.3.2
const HARQ_SUBFRAMES: u64 = 8;

/// The corresponding number of slots of NR.
///
/// Chosen: one slot until the answer, and one slot in which the base station processes it. Networks take longer.
///
/// Source: TS 38.214 §5.3 Table 5.3-1 (a device answers after at least 8 to 20 symbols)
const HARQ_NR_SLOTS: u64 = 3;

/// Maximum number of HARQ processes. LTE has at most 16.
///
/// Source: TS 38.214 §5.1 (at most 16, and 32 since Release 17)
const HARQ_PROCESSES: usize = 32;

/// Number of blocks of each kind in a grant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Blocks {
    /// Number of blocks with new data.
    pub new: u64,
    /// Number of retransmitted blocks.
    pub again: u64,
    /// Blocks that may be new data or retransmissions, because grants of the process may have been missed.
    pub unknown: u64,
}

impl Blocks {
    /// Total number of blocks.
    pub fn all(&self) -> u64 {
        self.new + self.again + self.unknown
    }
}

/// The last grant of a HARQ process, for one codeword.
#[derive(Clone, Copy, Debug)]
struct Past {
    ndi: Option<bool>,
    at: u64,
}

/// Distinguishes new data from retransmissions: new data toggles the new-data indicator (NDI) of the HARQ process. If
/// the NDI is not known, the classification in the report is used.
///
/// Source: PBE-CC §4.2.1
///
/// Differs: between two decoded grants of a process, there may be grants that were not decoded. The NDI then gives no
/// information, and the block counts as unknown.
#[derive(Clone, Copy, Debug, Default)]
pub struct NewData {
    /// The last grant of every process and codeword.
    last: [[Option<Past>; 2]; HARQ_PROCESSES],
    /// The last slot with a message that was not decoded, or with a missing report before it.
    lacking: Option<u64>,
    newest: u64,
    is_nr: bool,
}

impl NewData {
    /// Processes the next report, before its grants.
    pub fn on_report(&mut self, report: &RadioReport) {
        let slot = report.slot.index;
        // A reporter that misses grants also misses whole slots. A gap between slots then counts as undecoded messages.
        if report.missed().is_some() || self.lacking.is_some() && slot > self.newest + 1 {
            self.lacking = Some(slot);
        }
        self.newest = self.newest.max(slot);
        self.is_nr |= is_nr(report);
    }

    /// Classifies the blocks of `dci`, a grant of the device in the report that was processed last.
    pub fn split(&mut self, dci: &Dci) -> Blocks {
        let now = self.newest;
        let lacking = self.lacking;
        let between_uses = if self.is_nr { HARQ_NR_SLOTS } else { HARQ_SUBFRAMES };
        let mut process = dci.harq.map(|harq| &mut self.last[usize::from(harq) % HARQ_PROCESSES]);
        let mut blocks = Blocks::default();
        for codeword in (0..2).filter(|&codeword| dci.is_sent(codeword)) {
            let ndi = dci.ndi[codeword];
            let past = Past { ndi, at: now };
            let before = process.as_mut().and_then(|process| process[codeword].replace(past));
            let is_unsure = lacking.is_some_and(|lacking| {
                before.is_none_or(|before| {
                    now - before.at >= 2 * between_uses && lacking >= before.at + between_uses
                })
            });
            if is_unsure {
                blocks.unknown += 1;
            } else if dci.retransmission[codeword]
                || ndi.is_some() && before.is_some_and(|before| before.ndi == ndi)
            {
                blocks.again += 1;
            } else {
                blocks.new += 1;
            }
        }
        blocks
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airpace_core::Time;
    use airpace_radio::{BitLayer, CarrierId, Missed, Scope, Slot};

    const NEW: Blocks = Blocks { new: 1, again: 0, unknown: 0 };
    const AGAIN: Blocks = Blocks { new: 0, again: 1, unknown: 0 };
    const UNKNOWN: Blocks = Blocks { new: 0, again: 0, unknown: 1 };

    /// Processes a report of a subframe, complete or not, and then a grant of process 3 with this NDI.
    fn split(new_data: &mut NewData, subframe: u64, is_whole: bool, ndi: bool) -> Blocks {
        let missed = Some(Missed { recall: 0.5, messages: 1.0, cces: 1.0, prbs: 4.0 });
        let scope = if is_whole { Scope::Everyone } else { Scope::EveryoneBut { unexplained: 1, missed } };
        new_data.on_report(&RadioReport {
            carrier: CarrierId(0),
            slot: Slot::subframe_of_lte(subframe),
            time: Time::ZERO,
            scope,
            carrier_prbs: Some(50),
            cfi: None,
            symbols: None,
            dcis: Vec::new(),
            own: None,
            layer: BitLayer::Physical,
        });
        let dci = Dci { harq: Some(3), mcs: [Some(9), None], ndi: [Some(ndi), None], ..Dci::default() };
        new_data.split(&dci)
    }

    #[test]
    fn every_process_has_its_own_indicator() {
        let mut new_data = NewData::default();
        split(&mut new_data, 0, true, true);
        for harq in (0..HARQ_PROCESSES as u8).filter(|harq| *harq != 3) {
            let dci =
                Dci { harq: Some(harq), mcs: [Some(9), None], ndi: [Some(true), None], ..Dci::default() };
            assert_eq!(new_data.split(&dci), NEW, "process {harq}");
            assert_eq!(new_data.split(&dci), AGAIN, "process {harq}");
        }
    }

    #[test]
    fn new_data_toggles_the_indicator() {
        let mut new_data = NewData::default();
        assert_eq!(split(&mut new_data, 0, true, true), NEW);
        assert_eq!(split(&mut new_data, 8, true, true), AGAIN);
        assert_eq!(split(&mut new_data, 100, true, true), AGAIN, "nothing was missed in between");
        assert_eq!(split(&mut new_data, 101, true, false), NEW);
    }

    #[test]
    fn where_a_grant_may_be_missing_in_between_nothing_is_known() {
        let mut new_data = NewData::default();
        assert_eq!(split(&mut new_data, 0, false, true), UNKNOWN, "nor of what was there before");
        assert_eq!(split(&mut new_data, 8, false, true), AGAIN, "there is no room for another");
        assert_eq!(split(&mut new_data, 15, false, false), NEW);
        assert_eq!(split(&mut new_data, 31, false, false), UNKNOWN);
        assert_eq!(split(&mut new_data, 32, true, true), NEW);
        assert_eq!(split(&mut new_data, 60, true, true), UNKNOWN, "subframes without a report lack it all");
    }
}
