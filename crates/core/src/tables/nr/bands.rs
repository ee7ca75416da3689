//! Operating bands: frequencies, duplex mode, channel bandwidths and SS blocks.

use std::ops::RangeInclusive;

use super::spectrum::{Duplex, FrequencyRange, SubcarrierSpacing, max_prbs};
use super::ss_blocks::SsBlockCase;
use SubcarrierSpacing::{Khz15, Khz30, Khz60, Khz120};

/// An operating band.
///
/// Source: TS 38.101-1 §5.2 Table 5.2-1; TS 38.101-2 §5.2 Table 5.2-1
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Band {
    /// Name, for example `n78`.
    pub name: &'static str,
    /// Duplex mode.
    pub duplex: Duplex,
    /// Frequency range.
    pub range: FrequencyRange,
    /// Uplink frequencies (MHz).
    pub uplink_mhz: RangeInclusive<u32>,
    /// Downlink frequencies (MHz); equal to the uplink frequencies in TDD bands.
    pub downlink_mhz: RangeInclusive<u32>,
    /// Permitted subcarrier spacings of carriers, each with its permitted channel bandwidths (MHz), in increasing
    /// order. Some of these bandwidths are optional for devices, or only permitted in one direction.
    ///
    /// Source: TS 38.104 §5.3.5 Tables 5.3.5-1 and 5.3.5-2; TS 38.101-1 §5.3.5 Table 5.3.5-1
    pub channels: &'static [(SubcarrierSpacing, &'static [u16])],
    /// Permitted patterns of SS blocks, and by that the subcarrier spacings of SS blocks.
    ///
    /// Source: TS 38.104 §5.4.3.3 Tables 5.4.3.3-1 and 5.4.3.3-2
    pub ss_blocks: &'static [SsBlockCase],
}

impl Band {
    /// The band with this name (`n78`); `None` if the table does not contain the band. The comparison ignores case.
    ///
    /// Source: TS 38.101-1 §5.2 Table 5.2-1; TS 38.101-2 §5.2 Table 5.2-1
    pub fn named(name: &str) -> Option<&'static Band> {
        BANDS.iter().find(|band| band.name.eq_ignore_ascii_case(name))
    }

    /// All bands of the table, in order of their numbers.
    pub fn all() -> &'static [Band] {
        &BANDS
    }

    /// Names of all bands of the table, for the error message about an unknown name.
    pub fn names() -> Vec<&'static str> {
        BANDS.iter().map(|band| band.name).collect()
    }

    /// Permitted channel bandwidths (MHz) with this subcarrier spacing, in increasing order; empty if the band does not
    /// permit the spacing.
    pub fn bandwidths_mhz(&self, spacing: SubcarrierSpacing) -> &'static [u16] {
        self.channels.iter().find(|(of, _)| *of == spacing).map_or(&[], |(_, bandwidths)| bandwidths)
    }

    /// Number of resource blocks of a carrier with this subcarrier spacing and channel bandwidth (MHz); `None` if the
    /// band does not permit the combination.
    pub fn max_prbs(&self, spacing: SubcarrierSpacing, bandwidth_mhz: u16) -> Option<u16> {
        let is_permitted = self.bandwidths_mhz(spacing).contains(&bandwidth_mhz);
        max_prbs(self.range, spacing, bandwidth_mhz).filter(|_| is_permitted)
    }

    /// The pattern of SS blocks; `None` if the band permits several patterns.
    pub fn ss_block_case(&self) -> Option<SsBlockCase> {
        match self.ss_blocks {
            [case] => Some(*case),
            _ => None,
        }
    }
}

/// Channels of the bands n77 and n78.
///
/// Source: TS 38.104 §5.3.5 Table 5.3.5-1
const C_BAND: &[(SubcarrierSpacing, &[u16])] = &[
    (Khz15, &[10, 15, 20, 25, 30, 40, 50]),
    (Khz30, &[10, 15, 20, 25, 30, 40, 50, 60, 70, 80, 90, 100]),
    (Khz60, &[10, 15, 20, 25, 30, 40, 50, 60, 70, 80, 90, 100]),
];

/// Channels of the bands n257, n258, n260 and n261.
///
/// Source: TS 38.104 §5.3.5 Table 5.3.5-2; TS 38.101-2 §5.3.5 Table 5.3.5-1
const FR2: &[(SubcarrierSpacing, &[u16])] = &[(Khz60, &[50, 100, 200]), (Khz120, &[50, 100, 200, 400])];

/// A paired band.
const fn fdd(
    name: &'static str,
    uplink_mhz: RangeInclusive<u32>,
    downlink_mhz: RangeInclusive<u32>,
    channels: &'static [(SubcarrierSpacing, &'static [u16])],
    ss_blocks: &'static [SsBlockCase],
) -> Band {
    let (duplex, range) = (Duplex::Fdd, FrequencyRange::Fr1);
    Band { name, duplex, range, uplink_mhz, downlink_mhz, channels, ss_blocks }
}

/// An unpaired band from `low` to `high` (MHz).
const fn tdd(
    name: &'static str,
    range: FrequencyRange,
    low: u32,
    high: u32,
    channels: &'static [(SubcarrierSpacing, &'static [u16])],
    ss_blocks: &'static [SsBlockCase],
) -> Band {
    let duplex = Duplex::Tdd;
    Band { name, duplex, range, uplink_mhz: low..=high, downlink_mhz: low..=high, channels, ss_blocks }
}

/// The bands in order of their numbers. Bandwidths are those of Release 17 that several sources agree on.
///
/// Source: TS 38.101-1 §5.2 Table 5.2-1; TS 38.101-2 §5.2 Table 5.2-1; TS 38.104 §5.3.5 Tables 5.3.5-1 and 5.3.5-2
static BANDS: [Band; 22] = {
    use FrequencyRange::{Fr1, Fr2};
    use SsBlockCase::{A, B, C, D, E};
    [
        fdd(
            "n1",
            1920..=1980,
            2110..=2170,
            &[
                (Khz15, &[5, 10, 15, 20, 25, 30, 40, 45, 50]),
                (Khz30, &[10, 15, 20, 25, 30, 40, 45, 50]),
                (Khz60, &[10, 15, 20, 25, 30, 40, 45, 50]),
            ],
            &[A],
        ),
        fdd(
            "n2",
            1850..=1910,
            1930..=1990,
            &[
                (Khz15, &[5, 10, 15, 20, 25, 30, 35, 40]),
                (Khz30, &[10, 15, 20, 25, 30, 35, 40]),
                (Khz60, &[10, 15, 20, 25, 30, 35, 40]),
            ],
            &[A],
        ),
        fdd(
            "n3",
            1710..=1785,
            1805..=1880,
            &[
                (Khz15, &[5, 10, 15, 20, 25, 30, 35, 40, 45, 50]),
                (Khz30, &[10, 15, 20, 25, 30, 35, 40, 45, 50]),
                (Khz60, &[10, 15, 20, 25, 30, 35, 40, 45, 50]),
            ],
            &[A],
        ),
        fdd(
            "n5",
            824..=849,
            869..=894,
            &[(Khz15, &[5, 10, 15, 20, 25]), (Khz30, &[10, 15, 20, 25])],
            &[A, B],
        ),
        fdd(
            "n7",
            2500..=2570,
            2620..=2690,
            &[
                (Khz15, &[5, 10, 15, 20, 25, 30, 35, 40, 50]),
                (Khz30, &[10, 15, 20, 25, 30, 35, 40, 50]),
                (Khz60, &[10, 15, 20, 25, 30, 35, 40, 50]),
            ],
            &[A],
        ),
        fdd("n8", 880..=915, 925..=960, &[(Khz15, &[5, 10, 15, 20, 35]), (Khz30, &[10, 15, 20, 35])], &[A]),
        fdd("n12", 699..=716, 729..=746, &[(Khz15, &[5, 10, 15]), (Khz30, &[10, 15])], &[A]),
        fdd("n20", 832..=862, 791..=821, &[(Khz15, &[5, 10, 15, 20]), (Khz30, &[10, 15, 20])], &[A]),
        fdd(
            "n25",
            1850..=1915,
            1930..=1995,
            &[
                (Khz15, &[5, 10, 15, 20, 25, 30, 35, 40, 45]),
                (Khz30, &[10, 15, 20, 25, 30, 35, 40, 45]),
                (Khz60, &[10, 15, 20, 25, 30, 35, 40, 45]),
            ],
            &[A],
        ),
        fdd(
            "n28",
            703..=748,
            758..=803,
            &[(Khz15, &[5, 10, 15, 20, 30, 40]), (Khz30, &[10, 15, 20, 30, 40])],
            &[A],
        ),
        tdd(
            "n38",
            Fr1,
            2570,
            2620,
            &[
                (Khz15, &[5, 10, 15, 20, 25, 30, 40]),
                (Khz30, &[10, 15, 20, 25, 30, 40]),
                (Khz60, &[10, 15, 20, 25, 30, 40]),
            ],
            &[A, C],
        ),
        tdd(
            "n40",
            Fr1,
            2300,
            2400,
            &[
                (Khz15, &[5, 10, 15, 20, 25, 30, 40, 50]),
                (Khz30, &[10, 15, 20, 25, 30, 40, 50, 60, 70, 80, 90, 100]),
                (Khz60, &[10, 15, 20, 25, 30, 40, 50, 60, 70, 80, 90, 100]),
            ],
            &[C],
        ),
        tdd(
            "n41",
            Fr1,
            2496,
            2690,
            &[
                (Khz15, &[10, 15, 20, 25, 30, 40, 50]),
                (Khz30, &[10, 15, 20, 25, 30, 40, 50, 60, 70, 80, 90, 100]),
                (Khz60, &[10, 15, 20, 25, 30, 40, 50, 60, 70, 80, 90, 100]),
            ],
            &[A, C],
        ),
        fdd(
            "n66",
            1710..=1780,
            2110..=2200,
            &[
                (Khz15, &[5, 10, 15, 20, 25, 30, 35, 40, 45]),
                (Khz30, &[10, 15, 20, 25, 30, 35, 40, 45]),
                (Khz60, &[10, 15, 20, 25, 30, 35, 40, 45]),
            ],
            &[A, B],
        ),
        fdd(
            "n71",
            663..=698,
            617..=652,
            &[(Khz15, &[5, 10, 15, 20, 25, 30, 35]), (Khz30, &[10, 15, 20, 25, 30, 35])],
            &[A],
        ),
        tdd("n77", Fr1, 3300, 4200, C_BAND, &[C]),
        tdd("n78", Fr1, 3300, 3800, C_BAND, &[C]),
        tdd(
            "n79",
            Fr1,
            4400,
            5000,
            &[
                (Khz15, &[40, 50]),
                (Khz30, &[40, 50, 60, 70, 80, 90, 100]),
                (Khz60, &[40, 50, 60, 70, 80, 90, 100]),
            ],
            &[C],
        ),
        tdd("n257", Fr2, 26_500, 29_500, FR2, &[D, E]),
        tdd("n258", Fr2, 24_250, 27_500, FR2, &[D, E]),
        tdd("n260", Fr2, 37_000, 40_000, FR2, &[D, E]),
        tdd("n261", Fr2, 27_500, 28_350, FR2, &[D, E]),
    ]
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_band_is_found_by_its_name() {
        let band = Band::named("n78").unwrap();
        assert_eq!((band.duplex, band.range), (Duplex::Tdd, FrequencyRange::Fr1));
        assert_eq!((&band.downlink_mhz, &band.uplink_mhz), (&(3300..=3800), &(3300..=3800)));
        assert_eq!(band.max_prbs(Khz30, 100), Some(273));
        assert_eq!(band.ss_block_case(), Some(SsBlockCase::C));
        assert_eq!(Band::named("N257").map(|band| band.name), Some("n257"), "case is ignored");
        assert_eq!(Band::named("n257").unwrap().ss_block_case(), None, "FR2 has two patterns");
        assert_eq!((Band::named("b78"), Band::named("78"), Band::named("")), (None, None, None));
    }

    #[test]
    fn a_band_permits_only_some_bandwidths() {
        let band = Band::named("n20").unwrap();
        assert_eq!(band.max_prbs(Khz15, 20), Some(106));
        assert_eq!(band.max_prbs(Khz15, 50), None, "no channel of 50 MHz in 30 MHz of spectrum");
        assert_eq!(band.max_prbs(Khz60, 20), None, "no channel with 60 kHz below 1 GHz");
        assert!(band.bandwidths_mhz(Khz120).is_empty());
        assert_eq!(Band::named("n77").unwrap().max_prbs(Khz30, 35), None);
    }

    #[test]
    fn every_bandwidth_of_every_band_has_a_number_of_resource_blocks() {
        for band in Band::all() {
            assert!(!band.channels.is_empty(), "{}", band.name);
            for (spacing, bandwidths) in band.channels {
                assert!(!bandwidths.is_empty() && bandwidths.is_sorted(), "{}, {spacing:?}", band.name);
                for &mhz in *bandwidths {
                    let prbs = band.max_prbs(*spacing, mhz);
                    assert!(prbs.is_some(), "{}, {spacing:?}, {mhz} MHz", band.name);
                    let width = band.downlink_mhz.end() - band.downlink_mhz.start();
                    assert!(u32::from(mhz) <= width, "{} has no room for {mhz} MHz", band.name);
                }
            }
        }
    }

    #[test]
    fn wider_spacings_of_a_band_permit_the_same_channels_as_far_as_they_exist() {
        for band in Band::all() {
            let (first, narrowest) = band.channels[0];
            for &(spacing, bandwidths) in band.channels {
                let shared: Vec<u16> =
                    narrowest.iter().copied().filter(|&mhz| mhz > 5 || spacing == first).collect();
                let limit = narrowest[narrowest.len() - 1];
                let ours: Vec<u16> = bandwidths.iter().copied().filter(|&mhz| mhz <= limit).collect();
                assert_eq!(ours, shared, "{}, {spacing:?}", band.name);
            }
        }
    }

    #[test]
    fn bands_lie_in_their_frequency_range_and_have_ss_blocks_there() {
        for band in Band::all() {
            for mhz in [&band.downlink_mhz, &band.uplink_mhz].map(|it| [*it.start(), *it.end()]).concat() {
                assert_eq!(FrequencyRange::of_khz(1000 * mhz), Some(band.range), "{}", band.name);
            }
            assert_eq!(band.downlink_mhz == band.uplink_mhz, band.duplex == Duplex::Tdd, "{}", band.name);
            for case in band.ss_blocks {
                let middle_khz = 500 * (band.downlink_mhz.start() + band.downlink_mhz.end());
                assert!(case.first_symbols(middle_khz, band.duplex).is_some(), "{}, {case:?}", band.name);
            }
        }
    }

    #[test]
    fn the_edges_of_the_bands_are_those_of_the_channel_raster() {
        // First and last NR-ARFCN of the downlink (TS 38.104 Table 5.4.2.3-1).
        let rasters = [
            ("n1", 422_000, 434_000),
            ("n2", 386_000, 398_000),
            ("n3", 361_000, 376_000),
            ("n5", 173_800, 178_800),
            ("n7", 524_000, 538_000),
            ("n8", 185_000, 192_000),
            ("n12", 145_800, 149_200),
            ("n20", 158_200, 164_200),
            ("n25", 386_000, 399_000),
            ("n28", 151_600, 160_600),
            ("n38", 514_000, 524_000),
            ("n40", 460_000, 480_000),
            ("n41", 499_200, 537_999),
            ("n66", 422_000, 440_000),
            ("n71", 123_400, 130_400),
            ("n77", 620_000, 680_000),
            ("n78", 620_000, 653_333),
            ("n79", 693_334, 733_333),
            ("n257", 2_054_166, 2_104_165),
            ("n258", 2_016_667, 2_070_832),
            ("n260", 2_229_166, 2_279_165),
            ("n261", 2_070_833, 2_084_999),
        ];
        assert_eq!(rasters.map(|(name, ..)| name), Band::names()[..]);
        for (name, first, last) in rasters {
            // TS 38.104 Table 5.4.2.1-1
            let khz = |arfcn: u32| match arfcn {
                ..600_000 => 5 * arfcn,
                600_000..2_016_667 => 3_000_000 + 15 * (arfcn - 600_000),
                2_016_667.. => 24_250_080 + 60 * (arfcn - 2_016_667),
            };
            let downlink = &Band::named(name).unwrap().downlink_mhz;
            for (edge_mhz, arfcn) in [(downlink.start(), first), (downlink.end(), last)] {
                let distance_khz = (1000 * edge_mhz).abs_diff(khz(arfcn));
                // The raster has 5, 15 or 60 kHz, and FR2 has an offset of 80 kHz.
                assert!(distance_khz <= 100, "{name}: {edge_mhz} MHz and {} kHz", khz(arfcn));
            }
        }
    }

    #[test]
    fn the_uplink_of_a_paired_band_has_the_duplex_distance() {
        // TS 38.101-1 Table 5.4.4-1
        let distances = [
            ("n1", 190),
            ("n2", 80),
            ("n3", 95),
            ("n5", 45),
            ("n7", 120),
            ("n8", 45),
            ("n12", 30),
            ("n20", -41),
            ("n25", 80),
            ("n28", 55),
            ("n66", 400),
            ("n71", -46),
        ];
        let paired = Band::all().iter().filter(|band| band.duplex == Duplex::Fdd).map(|band| band.name);
        assert!(paired.eq(distances.map(|(name, _)| name)));
        for (name, distance) in distances {
            let band = Band::named(name).unwrap();
            let [uplink, downlink] = [&band.uplink_mhz, &band.downlink_mhz].map(|it| i64::from(*it.start()));
            assert_eq!(downlink - uplink, distance, "{name}");
            let widths = [&band.uplink_mhz, &band.downlink_mhz].map(|it| it.end() - it.start());
            assert_eq!(widths[0] == widths[1], name != "n66", "{name}: only n66 has more downlink");
        }
    }

    #[test]
    fn the_names_of_the_bands_are_in_order_of_their_numbers() {
        let names = Band::names();
        let numbers: Vec<u16> = names.iter().map(|name| name[1..].parse().unwrap()).collect();
        assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]), "{numbers:?}");
        assert!(names.iter().all(|name| Band::named(name).is_some_and(|band| band.name == *name)));
    }
}
