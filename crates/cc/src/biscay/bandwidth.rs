//! The cellular bandwidth: grants are summed over windows of subframes, and the sum is sampled at every sampling
//! interval.
//!
//! Source: BISCAY §3.2.2; BISCAY §5.2

use airpace_core::{Bits, Direction, Rate};
use airpace_radio::RadioReport;

use super::grants::{BlockTable, Grants};

/// The source of the bandwidth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Sizes of transport blocks, summed over several TTIs.
    ///
    /// Source: BISCAY §3.2.2 Eq. 1
    Blocks {
        /// Number of TTIs per sum.
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
    /// Number of subframes over which grants are summed.
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
    /// Maximum age of a bandwidth value, in ms: the summing window plus the time to the next sample.
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

impl CellularBandwidth {
    /// State before the first report.
    pub fn new(direction: Direction, rules: Determination) -> CellularBandwidth {
        CellularBandwidth {
            rules,
            grants: Grants::new(direction, rules.table),
            carriers: vec![],
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
        let Some(bits) = self.grants.bits(report) else { return false };
        let goodput = match report.layer {
            airpace_radio::BitLayer::Physical => Bits((bits.0 as f64 * (1.0 - self.rules.overhead)) as u64),
            airpace_radio::BitLayer::Transport => bits,
        };
        let subframe = report.slot.subframe();
        self.newest = self.newest.max(subframe);
        self.add_to_frame(subframe, goodput);
        self.add(report.carrier.0, subframe / self.rules.method.window(), goodput);
        if self.newest >= self.next_look {
            self.look();
        }
        true
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
        self.newest.is_multiple_of(self.rules.method.window())
    }

    fn look(&mut self) {
        let length = self.rules.method.window();
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
    use airpace_radio::{BitLayer, CarrierId, Dci, OwnRadio, PrbSet, Rnti, Scope, Slot};

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
