//! The cellular bandwidth: grants are summed over windows of subframes, and the sum is sampled at every sampling
//! interval.
//!
//! Source: BISCAY §3.2.2; BISCAY §5.2
//!
//! Differs: on carriers of NR and TDD, a window is rounded up to whole periods of the TDD pattern. A TTI of NR may be
//! shorter than a subframe, and the uplink of the pattern DDDSU has one slot in 2.5 ms: windows of one to four ms would
//! contain no uplink slot, or one too many.

use airpace_core::{Bits, Direction, Rate};
use airpace_radio::{BitLayer, RadioReport, Slot};

use crate::nr::{TddPattern, aligned, common_alignment};

use super::grants::{BlockTable, Grants};

/// The source of the bandwidth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Sizes of transport blocks, summed over several TTIs.
    ///
    /// Source: BISCAY §3.2.2 Eq. 1
    Blocks {
        /// Number of TTIs of LTE per sum, that is, of milliseconds.
        ttis: u64,
    },
    /// The MAC layer's own summary of the bytes granted to the device.
    ///
    /// Source: BISCAY §3.2.2; BISCAY §5.2 (what the paper ships)
    GrantedBytes,
}

/// Number of subframes that the MAC layer's summary covers.
///
/// Source: BISCAY §3.2.2
const SUMMARY: u64 = 100;

impl Method {
    /// Number of subframes over which grants are summed, before it is rounded up to whole TDD periods.
    pub fn window(self) -> u64 {
        match self {
            Method::Blocks { ttis } => ttis.max(1),
            Method::GrantedBytes => SUMMARY,
        }
    }
}

/// The times at which the scheme samples the bandwidth. Between two samples, the value is constant.
///
/// Source: BISCAY §5.2
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sampling {
    /// One sample every this many ms.
    Every(u64),
    /// Only the first sample is taken.
    Once,
}

/// Settings for determining the bandwidth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Determination {
    /// The source of the bandwidth.
    pub method: Method,
    /// The sampling times.
    pub sampling: Sampling,
    /// The tables of transport block sizes.
    pub table: BlockTable,
    /// Fraction of the physical layer's bits used by headers and padding of the layers above.
    pub overhead: f64,
}

impl Determination {
    /// Maximum age of a bandwidth value, in ms: the summing window plus the time to the next sample. On NR and TDD, the
    /// value may be older by one TDD period.
    pub fn lag_ms(&self) -> u64 {
        let interval = match self.sampling {
            Sampling::Every(ms) => ms,
            Sampling::Once => 0,
        };
        self.method.window().saturating_add(interval)
    }
}

/// The bandwidth granted to a device's radio, as of the last sample.
#[derive(Clone, Debug)]
pub struct CellularBandwidth {
    rules: Determination,
    grants: Grants,
    carriers: Vec<Carrier>,
    /// The TDD pattern of each carrier that has reported, sorted by the carrier's number.
    patterns: Vec<(u8, TddPattern)>,
    /// Number of subframes over which grants are summed.
    window: u64,
    /// Grants of data that is sent after the slot of the last report.
    ahead: Vec<Ahead>,
    /// Number of the newest subframe reported.
    newest: u64,
    next_look: u64,
    sampled: Option<Rate>,
    /// Bits granted in each of the last frames, by frame number modulo [`FRAMES`].
    frames: [(u64, Bits); FRAMES],
    most_in_frame: Bits,
}

/// Number of frames that are summed at the same time.
///
/// Chosen: reports of different carriers may be some tens of milliseconds apart.
const FRAMES: usize = 8;

/// Length of a frame in subframes.
///
/// Source: TS 36.211 §4.1
const FRAME: u64 = 10;

/// The grants of one carrier. Carriers report with different delays, so each has its own windows.
#[derive(Clone, Copy, Debug)]
struct Carrier {
    id: u8,
    /// Index of the window whose grants are being summed.
    window: u64,
    bits: Bits,
    /// The sum of the previous window, in bits; `None` before the first complete window.
    complete: Option<Bits>,
}

/// Bits that are granted for a later subframe.
#[derive(Clone, Copy, Debug)]
struct Ahead {
    carrier: u8,
    subframe: u64,
    bits: Bits,
}

impl CellularBandwidth {
    /// State before the first report.
    pub fn new(direction: Direction, rules: Determination) -> CellularBandwidth {
        CellularBandwidth {
            rules,
            grants: Grants::new(direction, rules.table),
            carriers: vec![],
            patterns: vec![],
            window: rules.method.window(),
            ahead: vec![],
            newest: 0,
            next_look: 0,
            sampled: None,
            frames: [(0, Bits::ZERO); FRAMES],
            most_in_frame: Bits::ZERO,
        }
    }

    /// The rate of a burst: the maximum granted in any frame of 10 ms up to now.
    pub fn burst(&self) -> Rate {
        Rate::from_bps_f64(self.most_in_frame.0 as f64 * 1e3 / FRAME as f64)
    }

    fn add_to_frame(&mut self, subframe: u64, bits: Bits) {
        let frame = subframe / FRAME;
        let entry = &mut self.frames[(frame % FRAMES as u64) as usize];
        if entry.0 < frame {
            *entry = (frame, Bits::ZERO);
        }
        if entry.0 == frame {
            entry.1 += bits;
            self.most_in_frame = self.most_in_frame.max(entry.1);
        }
    }

    /// The last sample. It is zero if nothing was granted in its window, and `None` before the first window is
    /// complete.
    ///
    /// Chosen: it is also `None` until something has been granted. A device that sends gets some grant; if none is
    /// reported, its radio does not report the grants of this direction.
    pub fn get(&self) -> Option<Rate> {
        self.sampled.filter(|_| self.most_in_frame > Bits::ZERO)
    }

    /// Processes one report of one carrier. Returns whether the report contained this device's grants.
    pub fn on_report(&mut self, report: &RadioReport) -> bool {
        let (id, slot) = (report.carrier.0, report.slot);
        let overhead = self.rules.overhead;
        let goodput = |bits: Bits| match report.layer {
            BitLayer::Physical => Bits((bits.0 as f64 * (1.0 - overhead)) as u64),
            BitLayer::Transport => bits,
        };
        let ahead = &mut self.ahead;
        let bits = self.grants.bits(report, |slots, bits| {
            let data = Slot { index: slot.index.saturating_add(u64::from(slots)), ..slot };
            ahead.push(Ahead { carrier: id, subframe: data.subframe(), bits: goodput(bits) });
        });
        let Some(bits) = bits else { return false };
        let subframe = slot.subframe();
        self.newest = self.newest.max(subframe);
        self.learn_period(report);
        self.add_due(id, subframe);
        self.add_to_frame(subframe, goodput(bits));
        self.add(id, subframe / self.window, goodput(bits));
        if self.newest >= self.next_look {
            self.look();
        }
        true
    }

    /// Updates the window. If its length changes, all sums start again; the last sample stays.
    fn learn_period(&mut self, report: &RadioReport) {
        let id = report.carrier.0;
        let index = self.patterns.binary_search_by_key(&id, |(known, _)| *known).unwrap_or_else(|index| {
            self.patterns.insert(index, (id, TddPattern::default()));
            index
        });
        self.patterns[index].1.on_report(report);
        let alignment = common_alignment(self.patterns.iter().map(|(_, pattern)| pattern.alignment()));
        let window = aligned(self.rules.method.window(), alignment);
        if window != self.window {
            self.window = window;
            self.carriers.clear();
            if self.next_look != u64::MAX {
                self.next_look = 0;
            }
        }
    }

    /// Adds the grants of a carrier whose data is sent up to `subframe`.
    fn add_due(&mut self, id: u8, subframe: u64) {
        let is_due = |(_, ahead): &(usize, &Ahead)| ahead.carrier == id && ahead.subframe <= subframe;
        let first = |all: &[Ahead]| {
            let due = all.iter().enumerate().filter(is_due);
            due.min_by_key(|(_, ahead)| ahead.subframe).map(|(index, _)| index)
        };
        while let Some(index) = first(&self.ahead) {
            let due = self.ahead.remove(index);
            self.add_to_frame(due.subframe, due.bits);
            self.add(id, due.subframe / self.window, due.bits);
        }
    }

    fn add(&mut self, id: u8, window: u64, bits: Bits) {
        let index = match self.carriers.binary_search_by_key(&id, |carrier| carrier.id) {
            Ok(index) => index,
            Err(index) => {
                // The first window of a carrier may have started before its first report, so it does not count.
                self.carriers.insert(index, Carrier { id, window, bits: Bits::ZERO, complete: None });
                self.carriers[index].window = window + u64::from(!self.is_at_a_start());
                index
            }
        };
        let carrier = &mut self.carriers[index];
        if window < carrier.window {
            return;
        }
        if window > carrier.window {
            let was_last = window == carrier.window + 1;
            carrier.complete = Some(if was_last { carrier.bits } else { Bits::ZERO });
            carrier.window = window;
            carrier.bits = Bits::ZERO;
        }
        carrier.bits += bits;
    }

    fn is_at_a_start(&self) -> bool {
        self.newest.is_multiple_of(self.window)
    }

    fn look(&mut self) {
        let length = self.window;
        let present = self.newest / length;
        // Source: BISCAY §3.2.2 Eq. 1 (the sum over carriers)
        // Chosen: a carrier that has not reported for two windows is no longer active.
        self.carriers.retain(|carrier| carrier.window + 2 >= present);
        if self.carriers.iter().all(|carrier| carrier.complete.is_none()) {
            return;
        }
        let bits: Bits = self.carriers.iter().filter_map(|carrier| carrier.complete).sum();
        self.sampled = Some(Rate::from_bps_f64(bits.0 as f64 * 1e3 / length as f64));
        self.next_look = match self.rules.sampling {
            // Samples are taken at the ends of windows. Otherwise every sample would be older by half a window.
            Sampling::Every(ms) => self.newest - self.newest % ms.min(length) + ms,
            Sampling::Once => u64::MAX,
        };
    }
}

#[cfg(test)]
mod tests {
    use airpace_core::Time;
    use airpace_core::tables::lte::McsTable;
    use airpace_core::tables::nr;
    use airpace_radio::{CarrierId, Dci, DciFormat, Numerology, OwnRadio, PrbSet, Rnti, Scope};

    use super::*;

    const RULES: Determination = Determination {
        method: Method::GrantedBytes,
        sampling: Sampling::Every(100),
        table: BlockTable::Lte(McsTable::Qam64),
        overhead: 0.0,
    };

    fn report(carrier: u8, subframe: u64, bits: u64) -> RadioReport {
        let own = Rnti(9);
        RadioReport {
            carrier: CarrierId(carrier),
            time: Time::from_millis(subframe),
            slot: Slot::subframe_of_lte(subframe),
            scope: Scope::Everyone,
            carrier_prbs: Some(50),
            cfi: Some(1),
            symbols: None,
            dcis: vec![Dci {
                rnti: own,
                direction: Direction::Uplink,
                prbs: PrbSet::run(0, 10),
                mcs: [Some(10), None],
                tbs: [Bits(bits), Bits::ZERO],
                harq: Some((subframe % 8) as u8),
                ndi: [Some((subframe / 8).is_multiple_of(2)), None],
                layers: 1,
                ..Dci::default()
            }],
            own: Some(OwnRadio {
                rnti: own,
                active: true,
                sinr_db: Some(20.0),
                bits_per_prb: Some(500.0),
                decoded: None,
                uplink_queue: None,
            }),
            layer: BitLayer::Physical,
        }
    }

    #[test]
    fn a_direction_of_which_nothing_is_told_is_unknown_and_one_without_grants_for_once_is_zero() {
        let mut bandwidth = CellularBandwidth::new(Direction::Uplink, RULES);
        for subframe in 0..1_000 {
            let silent = RadioReport { dcis: vec![], ..report(0, subframe, 0) };
            assert!(bandwidth.on_report(&silent));
            assert_eq!(bandwidth.get(), None, "nothing was granted up to subframe {subframe}");
        }
        for subframe in 1_000..1_200 {
            bandwidth.on_report(&report(0, subframe, 1_000));
        }
        assert_eq!(bandwidth.get(), Some(Rate::from_mbps(1.0)));
        for subframe in 1_200..1_500 {
            bandwidth.on_report(&RadioReport { dcis: vec![], ..report(0, subframe, 0) });
        }
        assert_eq!(bandwidth.get(), Some(Rate::ZERO));
    }

    /// The bandwidth in Mbit/s after each subframe. The cell grants 10 Mbit/s for 150 ms, then 20 Mbit/s.
    fn seen(rules: Determination, millis: u64) -> Vec<Option<f64>> {
        let mut bandwidth = CellularBandwidth::new(Direction::Uplink, rules);
        (0..millis)
            .map(|subframe| {
                bandwidth.on_report(&report(0, subframe, if subframe < 150 { 10_000 } else { 20_000 }));
                bandwidth.get().map(Rate::as_mbps)
            })
            .collect()
    }

    #[test]
    fn the_summary_of_granted_bytes_comes_every_hundred_milliseconds() {
        let seen = seen(RULES, 401);
        assert_eq!(seen[99], None, "the first summary is not complete");
        assert_eq!((seen[100], seen[199]), (Some(10.0), Some(10.0)));
        assert_eq!((seen[200], seen[299], seen[300]), (Some(15.0), Some(15.0), Some(20.0)));
    }

    #[test]
    fn blocks_and_granted_bytes_agree_where_grants_are_steady() {
        let blocks =
            Determination { method: Method::Blocks { ttis: 20 }, sampling: Sampling::Every(1), ..RULES };
        let by_blocks = seen(blocks, 500);
        assert_eq!(by_blocks[20], Some(10.0), "transport blocks give a value after 20 ms");
        assert_eq!(by_blocks[180], Some(20.0));
        assert_eq!(by_blocks[499], seen(RULES, 500)[499]);
    }

    #[test]
    fn between_two_looks_the_value_holds() {
        let slow = seen(Determination { sampling: Sampling::Every(500), ..RULES }, 1_000);
        assert_eq!((slow[100], slow[599], slow[600]), (Some(10.0), Some(10.0), Some(20.0)));
        let once = seen(Determination { sampling: Sampling::Once, ..RULES }, 1_000);
        assert_eq!((once[100], once[999]), (Some(10.0), Some(10.0)));
    }

    #[test]
    fn carriers_add_up_though_one_reports_late_and_one_that_leaves_counts_no_more() {
        let mut bandwidth = CellularBandwidth::new(Direction::Uplink, RULES);
        for subframe in 0..330 {
            bandwidth.on_report(&report(0, subframe, 10_000));
            if (7..220).contains(&subframe) {
                bandwidth.on_report(&report(1, subframe - 7, 30_000));
            }
        }
        assert_eq!(
            bandwidth.get().map(Rate::as_mbps),
            Some(40.0),
            "the sum of both carriers' last whole windows"
        );
        for subframe in 330..700 {
            bandwidth.on_report(&report(0, subframe, 10_000));
        }
        assert_eq!(bandwidth.get().map(Rate::as_mbps), Some(10.0));
    }

    /// The uplink of a carrier at 30 kHz with the TDD pattern DDDSU. The first slot of each period has the grant of the
    /// uplink slot. `change` is applied to every report.
    fn tdd_uplink(method: Method, change: impl Fn(&mut RadioReport)) -> Vec<f64> {
        let rules = Determination {
            method,
            sampling: Sampling::Every(method.window().min(10)),
            table: BlockTable::Nr(nr::McsTable::Qam64),
            ..RULES
        };
        let mut bandwidth = CellularBandwidth::new(Direction::Uplink, rules);
        let mut seen = vec![];
        for index in 0..1_200 {
            let mut report = report(0, 0, 0);
            report.slot = Slot { numerology: Numerology::KHZ_30, index };
            report.symbols = Some([13, 13, 13, 9, 0][index as usize % 5]);
            report.carrier_prbs = Some(273);
            if index % 5 == 0 {
                let dci = &mut report.dcis[0];
                (dci.prbs, dci.mcs[0], dci.tbs[0]) = (PrbSet::run(0, 273), Some(28), Bits::ZERO);
                (dci.format, dci.symbols, dci.offset_slots) = (DciFormat::Nr01, Some(14), Some(4));
                (dci.harq, dci.ndi[0]) = (None, None);
            } else {
                report.dcis.clear();
            }
            change(&mut report);
            bandwidth.on_report(&report);
            seen.extend(bandwidth.get().filter(|_| index >= 400).map(Rate::as_mbps));
        }
        assert_eq!(seen.len(), 800, "a value exists after 200 ms");
        seen
    }

    #[test]
    fn windows_of_a_tdd_uplink_contain_whole_periods() {
        // A block of 237,776 bits in 2.5 ms.
        let expected = 237.776 / 2.5;
        let methods = (1..=20).map(|ttis| Method::Blocks { ttis }).chain([Method::GrantedBytes]);
        for method in methods {
            let seen = tdd_uplink(method, |_| ());
            assert!(seen.iter().all(|mbps| (mbps / expected - 1.0).abs() < 1e-6), "{method:?}: {seen:?}");
        }
        let without_pattern = tdd_uplink(Method::Blocks { ttis: 1 }, |report| report.symbols = None);
        assert!(without_pattern.iter().all(|mbps| (mbps / expected - 1.0).abs() < 1e-6), "5 ms is assumed");
    }

    #[test]
    fn uplink_data_counts_when_it_is_sent() {
        let mut bandwidth = CellularBandwidth::new(
            Direction::Uplink,
            Determination { method: Method::Blocks { ttis: 10 }, sampling: Sampling::Every(10), ..RULES },
        );
        let mut first_seen = None;
        for index in 0..60 {
            let mut report = report(0, 0, 10_000);
            report.slot = Slot { numerology: Numerology::KHZ_15, index };
            report.symbols = Some(13);
            report.dcis[0].offset_slots = Some(4);
            if index != 8 {
                report.dcis.clear();
            }
            bandwidth.on_report(&report);
            first_seen = first_seen
                .or(bandwidth.get().filter(|rate| *rate > Rate::ZERO).map(|rate| (index, rate.as_mbps())));
        }
        assert_eq!(first_seen, Some((20, 1.0)), "granted in subframe 8, sent in subframe 12");
    }

    #[test]
    fn headers_are_taken_off_physical_bits_only() {
        let rules = Determination { overhead: 0.1, ..RULES };
        assert_eq!(seen(rules, 101)[100], Some(9.0));
        let mut bandwidth = CellularBandwidth::new(Direction::Uplink, rules);
        for subframe in 0..=100 {
            let trace =
                RadioReport { layer: BitLayer::Transport, carrier_prbs: Some(20), ..report(0, subframe, 0) };
            bandwidth.on_report(&trace);
        }
        assert_eq!(bandwidth.get().map(Rate::as_mbps), Some(10.0));
    }
}
