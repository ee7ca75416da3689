//! Downlink of an NR carrier: slots, symbols, HARQ times and the control channel.

use airpace_core::Time;
use airpace_core::tables::nr::{self, Allocation};
use airpace_core::{Bits, Direction};
use airpace_radio::{Dci, DciFormat, Numerology, PrbSet, Rnti, Slot};

use super::coreset::Coreset;
use super::pattern::Pattern;

/// Timing of HARQ in slots.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct HarqSlots {
    /// Minimum number of slots from data to its acknowledgement (K1).
    pub k1_min: u64,
    /// Number of slots from the end of the acknowledgement's slot to the first slot that can react to it.
    pub processing: u64,
}

/// Resource elements of a PRB that carry no data.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Overhead {
    /// Number of symbols of the control region.
    pub coreset_symbols: u8,
    /// Resource elements for DMRS.
    pub dmrs_res: u16,
    /// Further resource elements (xOverhead).
    pub other_res: u16,
}

/// Downlink of an NR carrier.
#[derive(Clone, Debug)]
pub(in super::super) struct Downlink {
    numerology: Numerology,
    pattern: Pattern,
    harq: HarqSlots,
    overhead: Overhead,
    coreset: Coreset,
    /// Number of the current slot.
    slot: u64,
}

impl Downlink {
    pub(in super::super) fn new(
        numerology: Numerology,
        pattern: Pattern,
        harq: HarqSlots,
        overhead: Overhead,
        carrier_prbs: u16,
    ) -> Downlink {
        let coreset = Coreset::new(carrier_prbs, overhead.coreset_symbols);
        Downlink { numerology, pattern, harq, overhead, coreset, slot: 0 }
    }

    /// Starts a slot. Returns whether it has downlink symbols for data.
    pub(in super::super) fn begin(&mut self, slot: u64) -> bool {
        self.slot = slot;
        self.coreset.clear();
        self.data_symbols() > 0
    }

    /// The slot with this number.
    pub(in super::super) fn slot(&self, index: u64) -> Slot {
        Slot { numerology: self.numerology, index }
    }

    /// The last slot before `index` with downlink symbols.
    pub(in super::super) fn previous(&self, index: u64) -> Option<u64> {
        self.pattern.downlink_before(index)
    }

    /// Number of symbols of the current slot that carry downlink data.
    pub(in super::super) fn data_symbols(&self) -> u8 {
        self.pattern.slot(self.slot).downlink.saturating_sub(self.overhead.coreset_symbols)
    }

    /// Resource elements for data of a PRB in the current slot.
    pub(in super::super) fn res_per_prb(&self) -> u16 {
        let allocation = Allocation {
            n_prb: 1,
            symbols: self.data_symbols(),
            dmrs_res_per_prb: self.overhead.dmrs_res,
            overhead_res_per_prb: self.overhead.other_res,
        };
        allocation.res() as u16
    }

    /// The slot of the acknowledgement for data in slot `data`, and the earliest slot of a retransmission.
    ///
    /// Source: TS 38.213 §9.2.3 (K1), TS 38.214 §5.3 (processing time of the device)
    pub(in super::super) fn feedback_slots(&self, data: u64) -> (u64, u64) {
        let acknowledged = self.pattern.uplink_from(data + self.harq.k1_min);
        (acknowledged, self.pattern.downlink_from(acknowledged + 1 + self.harq.processing))
    }

    /// Start of a slot.
    pub(in super::super) fn start(&self, slot: u64) -> Time {
        Time::from_nanos(slot * self.numerology.slot_duration().as_nanos() as u64)
    }

    /// Places a DCI for a device with this SINR in the control region of the current slot. Returns whether a candidate was
    /// free.
    pub(in super::super) fn place(&mut self, rnti: Rnti, sinr_db: f64) -> bool {
        let slots_per_frame = 10 * self.numerology.slots_per_subframe();
        self.coreset.place(rnti, self.slot % slots_per_frame, sinr_db)
    }

    /// The DCI of a control message in the current slot.
    ///
    /// Chosen: MCS 4.
    pub(in super::super) fn control_dci(&self, rnti: Rnti, prbs: PrbSet) -> Dci {
        const MCS: u8 = 4;
        let allocation = Allocation {
            n_prb: prbs.len(),
            symbols: self.data_symbols(),
            dmrs_res_per_prb: self.overhead.dmrs_res,
            overhead_res_per_prb: self.overhead.other_res,
        };
        let bits = nr::McsTable::Qam64.tbs(MCS, &allocation, 1).unwrap_or(Bits::ZERO);
        Dci {
            rnti,
            direction: Direction::Downlink,
            format: DciFormat::Nr10,
            prbs,
            mcs: [Some(MCS), None],
            tbs: [bits, Bits::ZERO],
            layers: 1,
            symbols: Some(self.data_symbols()),
            offset_slots: Some(0),
            ..Dci::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn downlink(pattern: &str) -> Downlink {
        let pattern = Pattern::parse(pattern, [10, 2, 2], 500).unwrap();
        let harq = HarqSlots { k1_min: 2, processing: 2 };
        let overhead = Overhead { coreset_symbols: 1, dmrs_res: 12, other_res: 0 };
        Downlink::new(Numerology::KHZ_30, pattern, harq, overhead, 273)
    }

    /// Milliseconds from the start of a slot to the start of its earliest retransmission.
    fn retransmission_ms(downlink: &Downlink, slot: u64) -> f64 {
        let (_, resent) = downlink.feedback_slots(slot);
        (downlink.start(resent) - downlink.start(slot)).as_secs_f64() * 1e3
    }

    #[test]
    fn retransmissions_of_dddsu_take_three_and_a_half_three_two_and_a_half_and_four_and_a_half_ms() {
        let downlink = downlink("DDDSU");
        for period in [0, 5, 50] {
            assert_eq!(
                [0, 1, 2, 3].map(|slot| retransmission_ms(&downlink, period + slot)),
                [3.5, 3.0, 2.5, 4.5]
            );
        }
    }

    #[test]
    fn a_special_slot_has_fewer_resource_elements_and_an_uplink_slot_has_none() {
        let mut downlink = downlink("DDDSU");
        let symbols: Vec<_> = (0..5)
            .map(|slot| (downlink.begin(slot), downlink.data_symbols(), downlink.res_per_prb()))
            .collect();
        let (full, special) = ((true, 13, 144), (true, 9, 96));
        assert_eq!(symbols, [full, full, full, special, (false, 0, 0)]);
    }
}
