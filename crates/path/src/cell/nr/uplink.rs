//! Uplink of an NR carrier: the slots with data, and the slots that grant them.

use std::time::Duration;

use airpace_core::Time;
use airpace_core::tables::nr::Allocation;
use airpace_radio::Numerology;

use super::super::config::{NrCarrier, NrConfig};
use super::super::pattern::{Pattern, SYMBOLS};

/// Number of HARQ processes of an uplink carrier.
///
/// Source: TS 38.214 §6.1
pub(in super::super) const UPLINK_PROCESSES: u8 = 16;

/// Uplink of an NR carrier.
#[derive(Clone, Debug)]
pub(in super::super) struct Uplink {
    numerology: Numerology,
    pattern: Pattern,
    /// For each slot of the pattern, the numbers of slots from a grant in this slot to its data (K2).
    k2s: Vec<Vec<u64>>,
    /// Number of slots from the end of a block to the first slot that can react to it.
    processing: u64,
    /// Resource elements of a PRB that carry data.
    res_per_prb: u16,
}

impl Uplink {
    pub(in super::super) fn new(carrier: &NrCarrier, config: &NrConfig) -> Uplink {
        let allocation = Allocation {
            n_prb: 1,
            symbols: SYMBOLS,
            dmrs_res_per_prb: config.dmrs_res_per_prb(),
            overhead_res_per_prb: config.xoverhead.into(),
        };
        Uplink {
            numerology: carrier.numerology,
            pattern: carrier.pattern.clone(),
            k2s: k2s(&carrier.pattern, config.k2_min(carrier.numerology), config.coreset_symbols),
            processing: config.gnb_processing(carrier.numerology),
            res_per_prb: allocation.res() as u16,
        }
    }

    pub(in super::super) fn slots_per_ms(&self) -> u64 {
        self.numerology.slots_per_subframe()
    }

    /// Start of a slot.
    pub(in super::super) fn start(&self, slot: u64) -> Time {
        Time::from_nanos(slot * self.numerology.slot_duration().as_nanos() as u64)
    }

    /// Resource elements of a PRB that carry data.
    pub(in super::super) fn res_per_prb(&self) -> u16 {
        self.res_per_prb
    }

    /// Whether a slot carries uplink data.
    pub(in super::super) fn is_uplink(&self, slot: u64) -> bool {
        self.pattern.slot(slot).is_uplink()
    }

    /// The slots whose data is granted in this slot.
    pub(in super::super) fn targets(&self, slot: u64) -> impl Iterator<Item = u64> {
        self.k2s[(slot % self.pattern.period()) as usize].iter().map(move |k2| slot + k2)
    }

    /// The last slot before `slot` in which grants are sent; `None` if there is none from slot 0 on.
    pub(in super::super) fn previous(&self, slot: u64) -> Option<u64> {
        self.pattern.last_before(slot, |slot| self.targets(slot).next().is_some())
    }

    /// Number of the first slot that can react to the data of slot `data`.
    pub(in super::super) fn reaction_slot(&self, data: u64) -> u64 {
        data + 1 + self.processing
    }

    /// Whether a slot is the first uplink slot from a slot with a scheduling request's opportunity on. The opportunities
    /// start with the milliseconds whose number is `offset_ms` modulo `period_ms`.
    pub(in super::super) fn is_request_slot(&self, slot: u64, period_ms: u64, offset_ms: u64) -> bool {
        let millisecond = slot / self.slots_per_ms();
        let since = (millisecond + period_ms - offset_ms) % period_ms;
        let Some(opportunity) = millisecond.checked_sub(since) else { return false };
        self.is_uplink(slot) && self.pattern.uplink_from(opportunity * self.slots_per_ms()) == slot
    }

    /// Mean number of uplink slots per ms.
    pub(in super::super) fn data_slots_per_ms(&self) -> f64 {
        self.pattern.mean(|slot| f64::from(u8::from(self.is_uplink(slot)))) * self.slots_per_ms() as f64
    }

    /// Minimum time in which `count` slots with uplink data can be sent.
    pub(in super::super) fn shortest(&self, count: u64) -> Duration {
        self.numerology.slot_duration() * self.pattern.shortest(count, |slot| self.is_uplink(slot)) as u32
    }

    /// Maximum time from the start of a block to the start of a block that is granted in reaction to it.
    pub(in super::super) fn longest_turnaround(&self) -> Duration {
        let from = 2 * self.pattern.period();
        let turnaround = |data: u64| {
            let reaction = self.reaction_slot(data);
            let next = (reaction..).find_map(|slot| self.targets(slot).next());
            next.map_or(0, |next| next - data)
        };
        let slots =
            (from..from + self.pattern.period()).filter(|&slot| self.is_uplink(slot)).map(turnaround).max();
        self.numerology.slot_duration() * slots.unwrap_or(0) as u32
    }
}

/// For each slot of a pattern, the numbers of slots from a grant in this slot to its data. The data of an uplink slot is
/// granted in the last slot with a control region, of `coreset_symbols` symbols, that is at least `k2_min` slots earlier.
///
/// Source: TS 38.214 §6.1.2.1 (K2), §6.4 (preparation time of the device)
fn k2s(pattern: &Pattern, k2_min: u64, coreset_symbols: u8) -> Vec<Vec<u64>> {
    let has_control = |slot| pattern.slot(slot).downlink >= coreset_symbols;
    let mut k2s = vec![Vec::new(); pattern.period() as usize];
    // The second period and later ones are granted alike, because a grant is at most one period and `k2_min` early.
    let from = (k2_min / pattern.period() + 1) * pattern.period();
    for data in (from..from + pattern.period()).filter(|&data| pattern.slot(data).is_uplink()) {
        if let Some(grant) = pattern.last_before(data + 1 - k2_min, has_control) {
            k2s[(grant % pattern.period()) as usize].push(data - grant);
        }
    }
    k2s.iter_mut().for_each(|list| list.sort_unstable());
    k2s
}

#[cfg(test)]
mod tests {
    use super::super::super::CellConfig;
    use super::super::super::config::Rat;
    use super::*;

    fn uplink(pattern: &str) -> Uplink {
        let config = CellConfig {
            rat: Rat::Nr,
            band: Some("n78".into()),
            tdd: Some(pattern.into()),
            ..CellConfig::default()
        };
        Uplink::new(&config.nr_carrier(0).unwrap(), &config.nr)
    }

    /// The slots of the third period whose data is granted in each slot of the period.
    fn targets(uplink: &Uplink, period: u64) -> Vec<Vec<u64>> {
        (0..period)
            .map(|slot| uplink.targets(2 * period + slot).map(|data| data - 2 * period).collect())
            .collect()
    }

    #[test]
    fn each_uplink_slot_is_granted_in_one_slot() {
        assert_eq!(targets(&uplink("DDDSU"), 5), [vec![], vec![], vec![4], vec![], vec![]]);
        assert_eq!(
            targets(&uplink("DDDSUUDDDD"), 10),
            [vec![], vec![], vec![4], vec![5], vec![], vec![], vec![], vec![], vec![], vec![]]
        );
    }

    #[test]
    fn several_uplink_slots_in_a_row_are_granted_in_the_last_slot_that_is_early_enough() {
        assert_eq!(
            targets(&uplink("DSUUUUUUUU"), 10),
            [
                vec![2],
                vec![3, 4, 5, 6, 7, 8, 9],
                vec![],
                vec![],
                vec![],
                vec![],
                vec![],
                vec![],
                vec![],
                vec![]
            ]
        );
    }

    /// The slots with grants of eight patterns and the slots of their data, with a minimum of two slots between them. `F`
    /// is a slot of both directions. The lists are those of 5G-LENA's own test.
    #[test]
    fn grants_are_sent_in_the_slots_in_which_5g_lena_sends_them() {
        for (pattern, expected) in [
            ("DSUUUDSUUU", "0:2 1:3,4 5:7 6:8,9"),
            ("DSUUDDSUUD", "0:2 1:3 5:7 6:8"),
            ("DSUDDDSUDD", "0:2 5:7"),
            ("DSUUUDDDDD", "0:2 1:3,4"),
            ("DSUUDDDDDD", "0:2 1:3"),
            ("DSUDDDDDDD", "0:2"),
            ("DSUUUDSUUD", "0:2 1:3,4 5:7 6:8"),
            ("FFFFFFFFFF", "0:2 1:3 2:4 3:5 4:6 5:7 6:8 7:9 8:10 9:11"),
        ] {
            let lists = k2s(&Pattern::of(pattern), 2, 1);
            let text = (0_u64..).zip(&lists).filter(|(_, list)| !list.is_empty()).map(|(slot, list)| {
                let data: Vec<String> = list.iter().map(|k2| (slot + k2).to_string()).collect();
                format!("{slot}:{}", data.join(","))
            });
            assert_eq!(text.collect::<Vec<_>>().join(" "), expected, "{pattern}");
        }
    }

    #[test]
    fn a_request_is_sent_in_the_first_uplink_slot_after_its_opportunity() {
        let uplink = uplink("DDDSU");
        let requests: Vec<u64> = (0..80).filter(|&slot| uplink.is_request_slot(slot, 10, 3)).collect();
        assert_eq!(requests, [9, 29, 49, 69], "the opportunities are in slots 6, 26, 46 and 66");
    }

    #[test]
    fn a_block_is_answered_by_a_block_one_or_two_periods_later() {
        assert_eq!(uplink("DDDSU").longest_turnaround(), Duration::from_micros(2_500));
        assert_eq!(uplink("DDDSU").shortest(3), Duration::from_micros(5_500));
    }
}
