//! Downlink of an NR carrier: slots, symbols, HARQ times and the control channel.

use std::time::Duration;

use airpace_core::tables::nr::{self, Allocation, FrequencyRange};
use airpace_core::{Bits, Direction, Time};
use airpace_radio::{Dci, DciFormat, Numerology, PrbSet, Rnti, Slot};

use super::super::background::ControlGrant;
use super::super::config::{NrCarrier, NrConfig};
use super::super::harq::FeedbackTimes;
use super::super::pattern::Pattern;
use super::super::region::DataRegion;
use super::broadcast::{Broadcast, SI_RNTI};
use super::coreset::Coreset;

/// Number of data symbols of a full slot: the symbols after a control region of one symbol. The bits per PRB of a radio
/// report belong to such a slot.
const FULL_SYMBOLS: u8 = 13;

/// Resource elements of a PRB that carry no data.
#[derive(Clone, Copy, Debug)]
struct Overhead {
    /// Number of symbols of the control region.
    coreset_symbols: u8,
    /// Resource elements for DMRS.
    dmrs_res: u16,
    /// Further resource elements (xOverhead).
    other_res: u16,
}

/// Downlink of an NR carrier.
#[derive(Clone, Debug)]
pub(in super::super) struct Downlink {
    numerology: Numerology,
    pattern: Pattern,
    /// Minimum number of slots from data to its acknowledgement (K1).
    k1_min: u64,
    /// Number of slots from the end of the acknowledgement's slot to the first slot that can react to it.
    processing: u64,
    overhead: Overhead,
    coreset: Coreset,
    broadcast: Broadcast,
    /// Number of the current slot.
    slot: u64,
}

impl Downlink {
    pub(in super::super) fn new(carrier: &NrCarrier, config: &NrConfig) -> Downlink {
        let usual_beams = match carrier.band.range {
            FrequencyRange::Fr1 => 1,
            FrequencyRange::Fr2 => 16,
        };
        let beams = config.ssb.beams.unwrap_or(usual_beams).into();
        Downlink {
            numerology: carrier.numerology,
            pattern: carrier.pattern.clone(),
            k1_min: config.k1_min(carrier.numerology),
            processing: config.gnb_processing(carrier.numerology),
            overhead: Overhead {
                coreset_symbols: config.coreset_symbols,
                dmrs_res: config.dmrs_res_per_prb(),
                other_res: config.xoverhead.into(),
            },
            coreset: Coreset::new(carrier.prbs, config.coreset_symbols),
            broadcast: Broadcast::new(carrier, config, beams),
            slot: 0,
        }
    }

    /// Starts a slot.
    pub(in super::super) fn begin(&mut self, slot: u64) {
        self.slot = slot;
        self.coreset.clear();
    }

    /// The slot with this number.
    pub(in super::super) fn slot(&self, index: u64) -> Slot {
        Slot { numerology: self.numerology, index }
    }

    /// The last slot before `index` with downlink data; `None` if there is none from slot 0 on.
    pub(in super::super) fn previous(&self, index: u64) -> Option<u64> {
        self.pattern.last_before(index, |slot| self.region(slot).has_data())
    }

    /// The part of a slot that carries downlink data.
    pub(in super::super) fn region(&self, slot: u64) -> DataRegion {
        self.region_of(self.pattern.slot(slot).downlink.saturating_sub(self.overhead.coreset_symbols))
    }

    /// The part of a slot of [`FULL_SYMBOLS`] data symbols that carries downlink data.
    pub(in super::super) fn full_region(&self) -> DataRegion {
        self.region_of(FULL_SYMBOLS)
    }

    fn region_of(&self, symbols: u8) -> DataRegion {
        let res_per_prb = self.allocation(1, symbols).res() as u16;
        DataRegion::Nr { symbols: if res_per_prb == 0 { 0 } else { symbols }, res_per_prb }
    }

    /// The data of `n_prb` PRBs in `symbols` symbols.
    fn allocation(&self, n_prb: u16, symbols: u8) -> Allocation {
        Allocation {
            n_prb,
            symbols,
            dmrs_res_per_prb: self.overhead.dmrs_res,
            overhead_res_per_prb: self.overhead.other_res,
        }
    }

    /// Mean number of slots per ms, each counted by its share of the resource elements of a slot of [`FULL_SYMBOLS`]
    /// data symbols.
    pub(in super::super) fn full_slots_per_ms(&self) -> f64 {
        let full = f64::from(self.full_region().res_per_prb());
        let share = |slot| f64::from(self.region(slot).res_per_prb()) / full;
        self.pattern.mean(share) * self.numerology.slots_per_subframe() as f64
    }

    /// Mean number of slots with downlink data per ms.
    pub(in super::super) fn data_slots_per_ms(&self) -> f64 {
        let count = |slot| f64::from(u8::from(self.region(slot).has_data()));
        self.pattern.mean(count) * self.numerology.slots_per_subframe() as f64
    }

    /// Minimum time in which `count` slots with downlink data can be sent, from the start of the first to the end of the
    /// last.
    pub(in super::super) fn shortest(&self, count: u64) -> Duration {
        let span = self.pattern.shortest(count, |slot| self.region(slot).has_data());
        self.numerology.slot_duration() * span as u32
    }

    /// PRBs that cannot carry data in the current slot.
    pub(in super::super) fn reserved(&self) -> PrbSet {
        self.broadcast.reserved(self.slot)
    }

    /// The message with system information that becomes due in the current slot.
    pub(in super::super) fn system_information(&self) -> Option<ControlGrant> {
        Some(ControlGrant { rnti: SI_RNTI, prbs: self.broadcast.sib1(self.slot)? })
    }

    /// Times of the feedback for data in slot `data`.
    ///
    /// Source: TS 38.213 §9.2.3 (K1), TS 38.214 §5.3 (processing time of the device)
    pub(in super::super) fn feedback_times(&self, data: u64) -> FeedbackTimes {
        let acknowledged = self.pattern.uplink_from(data + self.k1_min);
        let reaction = acknowledged + 1 + self.processing;
        FeedbackTimes {
            known_at: self.start(reaction),
            resend_from: self.start(self.pattern.first_from(reaction, |slot| self.region(slot).has_data())),
        }
    }

    /// Start of a slot.
    fn start(&self, slot: u64) -> Time {
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
        let DataRegion::Nr { symbols, .. } = self.region(self.slot) else {
            unreachable!("the region of a slot of NR is one of NR")
        };
        let allocation = self.allocation(prbs.len(), symbols);
        let bits = nr::McsTable::Qam64.tbs(MCS, &allocation, 1).unwrap_or(Bits::ZERO);
        Dci {
            rnti,
            direction: Direction::Downlink,
            format: DciFormat::Nr10,
            prbs,
            mcs: [Some(MCS), None],
            tbs: [bits, Bits::ZERO],
            layers: 1,
            symbols: Some(symbols),
            offset_slots: Some(0),
            ..Dci::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::CellConfig;
    use super::super::super::config::Rat;
    use super::*;

    fn downlink(pattern: &str) -> Downlink {
        let config = CellConfig {
            rat: Rat::Nr,
            band: Some("n78".into()),
            tdd: Some(pattern.into()),
            ..CellConfig::default()
        };
        Downlink::new(&config.nr_carrier(0).unwrap(), &config.nr)
    }

    /// Milliseconds from the start of a slot to the start of its earliest retransmission.
    fn retransmission_ms(downlink: &Downlink, slot: u64) -> f64 {
        (downlink.feedback_times(slot).resend_from - downlink.start(slot)).as_secs_f64() * 1e3
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

    /// The slots of a pattern with the number of slots until their acknowledgement, with a minimum of four. The lists are those
    /// of 5G-LENA's own test. There, a special slot carries acknowledgements too; here, it does not, so a slot of both
    /// directions (`F`) stands in its place.
    #[test]
    fn acknowledgements_are_sent_in_the_slots_in_which_5g_lena_sends_them() {
        for (pattern, expected) in [
            ("DFUUUDFUUD", "0:4 1:5 5:6 6:5 9:4"),
            ("DFUUUDFUUU", "0:4 1:5 5:4 6:5"),
            ("DFUUDDDDDD", "0:11 1:10 4:7 5:6 6:5 7:4 8:4 9:4"),
            ("DFUDDDDDDD", "0:11 1:10 3:8 4:7 5:6 6:5 7:4 8:4 9:12"),
            ("DFUUU", "0:4 1:5"),
            ("FFFFFFFFFF", "0:4 1:4 2:4 3:4 4:4 5:4 6:4 7:4 8:4 9:4"),
        ] {
            let mut downlink = downlink("DDDSU");
            (downlink.pattern, downlink.k1_min, downlink.processing) = (Pattern::of(pattern), 4, 0);
            let slots = (0..pattern.len() as u64).filter(|&slot| downlink.pattern.slot(slot).downlink > 0);
            let k1 = |slot| {
                let known_at = downlink.feedback_times(slot).known_at - downlink.start(slot + 1);
                (known_at.as_nanos() / downlink.numerology.slot_duration().as_nanos()) as u64
            };
            let text: Vec<String> = slots.map(|slot| format!("{slot}:{}", k1(slot))).collect();
            assert_eq!(text.join(" "), expected, "{pattern}");
        }
    }

    #[test]
    fn a_special_slot_has_fewer_resource_elements_and_an_uplink_slot_has_none() {
        let downlink = downlink("DDDSU");
        let of = |symbols, res_per_prb| DataRegion::Nr { symbols, res_per_prb };
        let regions: Vec<_> = (0..5).map(|slot| downlink.region(slot)).collect();
        assert_eq!(regions, [of(13, 144), of(13, 144), of(13, 144), of(9, 96), of(0, 0)]);
        assert!((downlink.full_slots_per_ms() - (3.0 + 96.0 / 144.0) / 2.5).abs() < 1e-12);
    }

    #[test]
    fn the_shortest_time_of_several_slots_spans_uplink_slots() {
        let downlink = downlink("DDDSU");
        let us = |count| downlink.shortest(count).as_micros();
        assert_eq!([1, 2, 4, 5, 8, 9].map(us), [500, 1_000, 2_000, 3_000, 4_500, 5_500]);
    }

    #[test]
    fn ss_blocks_take_the_middle_of_the_carrier_in_the_first_slots_of_20_ms() {
        let mut downlink = downlink("DDDSU");
        let mut reserved = Vec::new();
        for slot in 0..80 {
            downlink.begin(slot);
            if !downlink.reserved().is_empty() {
                reserved.push((slot, downlink.reserved().runs().collect::<Vec<_>>()));
            }
        }
        let block = vec![(126, 20)];
        assert_eq!(reserved, [(0, block.clone()), (40, block)]);
    }
}
