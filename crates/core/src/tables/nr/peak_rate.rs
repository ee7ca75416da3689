//! Peak data rate of a carrier.

use super::spectrum::{FrequencyRange, SubcarrierSpacing};
use crate::direction::Direction;
use crate::tables::Modulation;
use crate::units::Rate;

/// Share of control channels and reference signals in the peak rate, in percent.
///
/// Source: TS 38.306 §4.1.2 (OH)
const fn overhead_percent(range: FrequencyRange, direction: Direction) -> u64 {
    match (range, direction) {
        (FrequencyRange::Fr1, Direction::Downlink) => 14,
        (FrequencyRange::Fr2, Direction::Downlink) => 18,
        (FrequencyRange::Fr1, Direction::Uplink) => 8,
        (FrequencyRange::Fr2, Direction::Uplink) => 10,
    }
}

/// Peak data rate of a carrier with `n_prb` resource blocks ([`max_prbs`](super::max_prbs)) on which all slots belong
/// to `direction`, rounded down to a whole bit/s. The code rate is R_max = 948/1024, the scaling factor f is 1, and the
/// cyclic prefix is normal.
///
/// The formula is an approximation. Exact transport block sizes ([`tbs`](super::tbs)) result in rates that differ by a
/// few percent, because the actual overhead differs.
///
/// Source: TS 38.306 §4.1.2
pub fn peak_rate(
    range: FrequencyRange,
    direction: Direction,
    spacing: SubcarrierSpacing,
    n_prb: u16,
    modulation: Modulation,
    layers: u8,
) -> Rate {
    let symbols_per_second = 14_000 << spacing.mu();
    let res_per_second = 12 * u64::from(n_prb) * symbols_per_second;
    let bits_per_re = u64::from(layers) * u64::from(modulation.bits_per_symbol());
    // 948/1024 is 237/256. Dividing the symbols per second by 100 keeps the product below 2⁶⁴.
    let share = 100 - overhead_percent(range, direction);
    Rate::from_bps(bits_per_re * 237 * (res_per_second / 100) * share / 256)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::nr::{Allocation, McsTable};
    use Direction::{Downlink, Uplink};
    use FrequencyRange::{Fr1, Fr2};
    use SubcarrierSpacing::{Khz15, Khz30, Khz120};

    /// A carrier on which one device gets all slots with the highest MCS and one front-loaded DMRS symbol.
    struct Carrier {
        range: FrequencyRange,
        direction: Direction,
        spacing: SubcarrierSpacing,
        n_prb: u16,
        table: McsTable,
        layers: u8,
        /// Symbols of the slot for data and DMRS.
        symbols: u8,
        x_overhead: u16,
    }

    impl Carrier {
        /// Bits of a slot.
        fn block(&self) -> u64 {
            let allocation = Allocation {
                n_prb: self.n_prb,
                symbols: self.symbols,
                dmrs_res_per_prb: 12,
                overhead_res_per_prb: self.x_overhead,
            };
            self.table.tbs(self.table.last_mcs(), &allocation, self.layers).unwrap().0
        }

        /// Rate of all slots in Mbit/s.
        fn mbps(&self) -> f64 {
            Rate::from_bps((self.block() * 1000) << self.spacing.mu()).as_mbps()
        }

        /// Peak rate of TS 38.306 in Mbit/s.
        fn peak_mbps(&self) -> f64 {
            let mcs = self.table.mcs(self.table.last_mcs()).unwrap();
            let peak =
                peak_rate(self.range, self.direction, self.spacing, self.n_prb, mcs.modulation, self.layers);
            peak.as_mbps()
        }
    }

    /// 100 MHz of n78 with four layers, and one symbol of PDCCH in each slot.
    const N78: Carrier = Carrier {
        range: Fr1,
        direction: Downlink,
        spacing: Khz30,
        n_prb: 273,
        table: McsTable::Qam256,
        layers: 4,
        symbols: 13,
        x_overhead: 0,
    };

    #[test]
    fn full_slots_have_the_rates_worked_out_by_hand_and_almost_those_of_the_formula() {
        let two_layers = Carrier { n_prb: 106, layers: 2, ..N78 };
        let ten_mhz = Carrier { spacing: Khz15, n_prb: 52, ..two_layers };
        let qam64 = Carrier { table: McsTable::Qam64, ..N78 };
        let uplink = Carrier { direction: Uplink, layers: 1, symbols: 14, ..qam64 };
        let fr2 = Carrier { range: Fr2, spacing: Khz120, n_prb: 264, layers: 2, x_overhead: 6, ..qam64 };
        // Rate of the slots and of TS 38.306 in Mbit/s, and their difference in percent.
        let by_hand = [
            (N78, 2359.7, 2337.0, 0.97),
            (two_layers, 450.96, 453.70, -0.60),
            (ten_mhz, 110.63, 111.29, -0.59),
            (uplink, 475.6, 468.8, 1.45),
            (fr2, 3213.1, 3232.3, -0.59),
        ];
        for (carrier, mbps, peak_mbps, percent) in by_hand {
            let is_near = |ours: f64, theirs: f64| (ours / theirs - 1.0).abs() < 0.001;
            assert!(is_near(carrier.mbps(), mbps), "{} Mbit/s instead of {mbps}", carrier.mbps());
            let peak = carrier.peak_mbps();
            assert!(is_near(peak, peak_mbps), "{peak} Mbit/s instead of {peak_mbps}");
            let difference = 100.0 * (carrier.mbps() / peak - 1.0);
            assert!((difference - percent).abs() < 0.01, "{difference} % instead of {percent} %");
        }
    }

    #[test]
    fn a_pattern_of_three_downlink_slots_and_a_special_slot_has_the_rate_worked_out_by_hand() {
        // The special slot has ten downlink symbols; one of them is PDCCH.
        let special = Carrier { symbols: 9, ..N78 };
        assert_eq!((N78.block(), special.block()), (1_179_864, 770_568));
        let mbps = (3 * N78.block() + special.block()) as f64 / 2.5e-3 / 1e6;
        assert!((mbps - 1724.1).abs() < 0.05, "{mbps} Mbit/s in 2.5 ms of DDDSU");
    }

    #[test]
    fn the_overhead_of_the_formula_is_too_large_for_fr2_without_overhead_in_the_blocks() {
        let qam64 = Carrier { table: McsTable::Qam64, layers: 2, ..N78 };
        let fr2 = Carrier { range: Fr2, spacing: Khz120, n_prb: 264, ..qam64 };
        let difference = 100.0 * (fr2.mbps() / fr2.peak_mbps() - 1.0);
        assert!((difference - 5.52).abs() < 0.01, "{difference} %");
    }

    #[test]
    fn the_formula_depends_on_range_and_direction_and_does_not_overflow() {
        let rate = |range, direction| {
            peak_rate(range, direction, SubcarrierSpacing::Khz60, 100, Modulation::Qam16, 1).as_bps()
        };
        // 4 bits · 948/1024 · 1200 subcarriers · 56,000 symbols/s = 248.85 Mbit/s without overhead.
        let rates = [rate(Fr1, Downlink), rate(Fr2, Downlink), rate(Fr1, Uplink), rate(Fr2, Uplink)];
        assert_eq!(rates, [214_011_000, 204_057_000, 228_942_000, 223_965_000]);
        let huge = peak_rate(Fr1, Uplink, SubcarrierSpacing::Khz240, u16::MAX, Modulation::Qam256, u8::MAX);
        assert!(huge.as_mbps() > 1e6);
        assert_eq!(peak_rate(Fr1, Downlink, Khz30, 273, Modulation::Qam256, 0), Rate::ZERO);
    }
}
