//! Properties of NR carriers that several schemes need: whether a report is about NR, and the period of a TDD pattern.

use airpace_radio::{RadioReport, Slot};

/// Whether a report is about a carrier of NR. A carrier of LTE has subframes as slots, and its reports contain neither
/// data symbols nor DCI formats of NR.
pub fn is_nr(report: &RadioReport) -> bool {
    report.slot.numerology.mu() > 0
        || report.symbols.is_some()
        || report.dcis.iter().any(|dci| dci.format.is_nr())
}

/// Time after which every TDD pattern repeats, in subframes.
///
/// Source: TS 38.213 §11.1 (the period divides 20 ms; the values below divide 10 ms)
const MAX_PERIOD_MS: u64 = 10;

/// Periods of TDD patterns, in microseconds.
///
/// Source: TS 38.331 §6.3.2 (`dl-UL-TransmissionPeriodicity`)
const PERIODS_US: [u64; 8] = [500, 625, 1_000, 1_250, 2_000, 2_500, 5_000, 10_000];

/// Period that is assumed until the pattern is known, in microseconds.
///
/// Chosen: a multiple of 0.5, 0.625, 1, 1.25, 2.5 and 5 ms, which most networks use.
const UNKNOWN_PERIOD_US: u64 = 5_000;

/// Direction of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Uplink,
    /// A slot with fewer downlink symbols than a downlink slot.
    Special,
    Downlink,
}

/// Minimum number of data symbols of a slot in which all symbols are downlink symbols.
///
/// Source: TS 38.211 §7.3.2.2 (a control region has at most three symbols)
const MIN_DOWNLINK_SYMBOLS: u8 = 11;

/// Learns the period of a carrier's TDD pattern from the symbols of its slots.
#[derive(Clone, Debug, Default)]
pub struct TddPattern {
    /// Whether the carrier is one of NR. `has_short_slots`: whether its slots are shorter than a subframe.
    is_nr: bool,
    has_short_slots: bool,
    /// The last kind of each slot of 10 ms; `None` for a slot that was not reported.
    slots: Vec<Option<Kind>>,
    /// Number of slots that were reported at least once.
    known: usize,
    slots_per_subframe: u64,
    has_uplink: bool,
    /// The shortest period that agrees with all slots, in microseconds; `None` until every slot is known.
    period_us: Option<u64>,
}

impl TddPattern {
    /// Processes the report of a slot of the carrier. Reports of LTE carriers change nothing.
    pub fn on_report(&mut self, report: &RadioReport) {
        self.is_nr |= is_nr(report);
        self.has_short_slots |= report.slot.numerology.mu() > 0;
        let Some(symbols) = report.symbols else { return };
        let kind = match symbols {
            0 => Kind::Uplink,
            MIN_DOWNLINK_SYMBOLS.. => Kind::Downlink,
            _ => Kind::Special,
        };
        self.learn(report.slot, kind);
    }

    fn learn(&mut self, slot: Slot, kind: Kind) {
        let slots_per_subframe = slot.numerology.slots_per_subframe();
        let length = MAX_PERIOD_MS * slots_per_subframe;
        if self.slots_per_subframe != slots_per_subframe {
            *self = TddPattern {
                is_nr: true,
                has_short_slots: slots_per_subframe > 1,
                slots: vec![None; length as usize],
                slots_per_subframe,
                ..TddPattern::default()
            };
        }
        let entry = &mut self.slots[(slot.index % length) as usize];
        let before = entry.replace(kind);
        if before == Some(kind) {
            return;
        }
        self.known += usize::from(before.is_none());
        self.has_uplink |= kind == Kind::Uplink;
        if self.known == self.slots.len() {
            self.period_us = PERIODS_US.into_iter().find(|&period_us| self.repeats_after(period_us));
        }
    }

    /// Whether all slots agree with a pattern of this period.
    fn repeats_after(&self, period_us: u64) -> bool {
        let period = (period_us * self.slots_per_subframe / 1_000) as usize;
        (period_us * self.slots_per_subframe).is_multiple_of(1_000)
            && self.slots.iter().skip(period).zip(&self.slots).all(|(later, earlier)| later == earlier)
    }

    /// Whether the carrier is one of NR.
    pub fn is_nr(&self) -> bool {
        self.is_nr
    }

    /// The period of the TDD pattern, in microseconds; `None` for a carrier without uplink slots, and until the period
    /// is known.
    pub fn tdd_period_us(&self) -> Option<u64> {
        self.period_us.filter(|_| self.has_uplink)
    }

    /// Alignment of averaging windows, in subframes. A window whose length is a multiple of the alignment contains whole
    /// periods. LTE and FDD have the alignment 1.
    pub fn alignment(&self) -> u64 {
        if !self.has_uplink && !self.has_short_slots {
            return 1;
        }
        let period_us = self.period_us.unwrap_or(UNKNOWN_PERIOD_US);
        (1..=MAX_PERIOD_MS)
            .find(|subframes| (subframes * 1_000).is_multiple_of(period_us))
            .unwrap_or(MAX_PERIOD_MS)
    }
}

/// Alignment of a common window of several carriers, in subframes.
pub fn common_alignment(alignments: impl Iterator<Item = u64>) -> u64 {
    alignments.fold(1, |common, alignment| {
        (1..=MAX_PERIOD_MS)
            .find(|subframes| subframes.is_multiple_of(common) && subframes.is_multiple_of(alignment))
            .unwrap_or(MAX_PERIOD_MS)
    })
}

/// The window of at least `subframes` subframes that is a multiple of `alignment`.
pub fn aligned(subframes: u64, alignment: u64) -> u64 {
    subframes.next_multiple_of(alignment)
}

#[cfg(test)]
mod tests {
    use airpace_core::Time;
    use airpace_radio::{CarrierId, Dci, DciFormat, Numerology};

    use super::*;

    fn report(mu: u8, index: u64, symbols: Option<u8>) -> RadioReport {
        let slot = Slot { numerology: Numerology::new(mu).unwrap(), index };
        RadioReport { symbols, ..RadioReport::new(CarrierId(0), slot, Time::ZERO) }
    }

    /// The pattern after 30 ms of slots with these symbols.
    fn after(mu: u8, symbols: &[u8]) -> TddPattern {
        let mut pattern = TddPattern::default();
        for index in 0..30u64 << mu {
            pattern.on_report(&report(mu, index, Some(symbols[index as usize % symbols.len()])));
        }
        pattern
    }

    #[test]
    fn the_period_is_the_shortest_that_repeats() {
        let of = |mu, symbols: &[u8]| {
            let pattern = after(mu, symbols);
            (pattern.tdd_period_us(), pattern.alignment())
        };
        assert_eq!(of(1, &[13, 13, 13, 9, 0]), (Some(2_500), 5), "DDDSU at 30 kHz");
        assert_eq!(of(1, &[13, 12, 13, 9, 0, 0, 13, 13, 11, 13]), (Some(5_000), 5), "DDDSUUDDDD");
        assert_eq!(of(3, &[13, 13, 13, 9, 0]), (Some(625), 5), "DDDSU at 120 kHz");
        assert_eq!(of(1, &[13, 0]), (Some(1_000), 1));
        assert_eq!(of(0, &[13, 0]), (Some(2_000), 2));
        assert_eq!(of(1, &[13, 13, 13, 13, 13, 13, 13, 9, 0, 0]), (Some(5_000), 5));
        assert_eq!(of(0, &[13, 13, 13, 13, 13, 13, 13, 9, 0, 0]), (Some(10_000), 10));
        assert_eq!((of(0, &[13]), of(1, &[13])), ((None, 1), (None, 1)), "FDD");
    }

    #[test]
    fn an_unknown_period_is_five_milliseconds() {
        let mut pattern = TddPattern::default();
        assert_eq!((pattern.is_nr(), pattern.alignment()), (false, 1));
        pattern.on_report(&report(0, 7, None));
        assert_eq!((pattern.is_nr(), pattern.alignment()), (false, 1), "LTE");
        pattern.on_report(&report(1, 7, None));
        assert_eq!((pattern.is_nr(), pattern.alignment()), (true, 5));
        for index in 0..19 {
            pattern.on_report(&report(1, index, Some([13, 0][index as usize % 2])));
        }
        assert_eq!((pattern.tdd_period_us(), pattern.alignment()), (None, 5), "a slot is missing");
        pattern.on_report(&report(1, 39, Some(0)));
        assert_eq!((pattern.tdd_period_us(), pattern.alignment()), (Some(1_000), 1));
        let dci = Dci { format: DciFormat::Nr11, ..Dci::default() };
        let fdd = RadioReport { dcis: vec![dci], ..report(0, 0, None) };
        let mut pattern = TddPattern::default();
        pattern.on_report(&fdd);
        assert_eq!((is_nr(&fdd), pattern.is_nr(), pattern.alignment()), (true, true, 1), "15 kHz");
    }

    #[test]
    fn a_window_is_rounded_up() {
        assert_eq!([1, 5, 6, 43].map(|subframes| aligned(subframes, 5)), [5, 5, 10, 45]);
        assert_eq!(aligned(43, 1), 43);
        let common = |alignments: &[u64]| common_alignment(alignments.iter().copied());
        assert_eq!([common(&[]), common(&[1, 5, 1]), common(&[5, 2]), common(&[10, 5])], [1, 5, 10, 10]);
    }
}
