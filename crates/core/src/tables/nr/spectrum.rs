//! Subcarrier spacings, frequency ranges, and number of resource blocks in a channel bandwidth.

/// Subcarrier spacing of a carrier, a bandwidth part or an SS block: 15 kHz · 2^µ.
///
/// Source: TS 38.211 §4.2 Table 4.2-1
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SubcarrierSpacing {
    /// µ = 0: a slot has 1 ms.
    Khz15,
    /// µ = 1: a slot has 0.5 ms.
    Khz30,
    /// µ = 2: a slot has 0.25 ms.
    Khz60,
    /// µ = 3: a slot has 0.125 ms.
    Khz120,
    /// µ = 4: for SS blocks only.
    Khz240,
}

impl SubcarrierSpacing {
    /// All subcarrier spacings, the smallest first.
    pub const ALL: [SubcarrierSpacing; 5] = [
        SubcarrierSpacing::Khz15,
        SubcarrierSpacing::Khz30,
        SubcarrierSpacing::Khz60,
        SubcarrierSpacing::Khz120,
        SubcarrierSpacing::Khz240,
    ];

    /// The subcarrier spacing with index `mu`, 0…4; `None` for other values.
    pub const fn from_mu(mu: u8) -> Option<SubcarrierSpacing> {
        match mu {
            0 => Some(SubcarrierSpacing::Khz15),
            1 => Some(SubcarrierSpacing::Khz30),
            2 => Some(SubcarrierSpacing::Khz60),
            3 => Some(SubcarrierSpacing::Khz120),
            4 => Some(SubcarrierSpacing::Khz240),
            _ => None,
        }
    }

    /// The subcarrier spacing of `khz` kHz; `None` unless `khz` is 15, 30, 60, 120 or 240.
    pub const fn from_khz(khz: u16) -> Option<SubcarrierSpacing> {
        match khz {
            15 => Some(SubcarrierSpacing::Khz15),
            30 => Some(SubcarrierSpacing::Khz30),
            60 => Some(SubcarrierSpacing::Khz60),
            120 => Some(SubcarrierSpacing::Khz120),
            240 => Some(SubcarrierSpacing::Khz240),
            _ => None,
        }
    }

    /// Index µ of the subcarrier spacing.
    pub const fn mu(self) -> u8 {
        self as u8
    }

    /// Subcarrier spacing in kHz.
    pub const fn khz(self) -> u16 {
        15 << self.mu()
    }
}

/// Frequency range of a band.
///
/// Source: TS 38.101-1 §5.1 Table 5.1-1
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FrequencyRange {
    /// 410…7125 MHz.
    Fr1,
    /// FR2-1: 24,250…52,600 MHz.
    Fr2,
}

impl FrequencyRange {
    /// The frequency range that contains a carrier frequency of `khz` kHz; `None` outside FR1 and FR2-1.
    ///
    /// Source: TS 38.101-1 §5.1 Table 5.1-1
    pub const fn of_khz(khz: u32) -> Option<FrequencyRange> {
        match khz {
            410_000..=7_125_000 => Some(FrequencyRange::Fr1),
            24_250_000..=52_600_000 => Some(FrequencyRange::Fr2),
            _ => None,
        }
    }
}

/// Duplex mode of a band.
///
/// Source: TS 38.101-1 §5.2 Table 5.2-1
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Duplex {
    /// Frequency-division duplex (paired spectrum): downlink and uplink have different frequencies.
    Fdd,
    /// Time-division duplex (unpaired spectrum): downlink and uplink share the frequencies.
    Tdd,
}

/// Number of resource blocks (N_RB) of a carrier with channel bandwidth `bandwidth_mhz` (MHz) and subcarrier spacing
/// `spacing`; `None` if the tables do not permit the combination. Both frequency ranges have channels of 50 and 100 MHz
/// with 60 kHz, and different numbers for them.
///
/// Source: TS 38.101-1 §5.3.2 Table 5.3.2-1; TS 38.101-2 §5.3.2 Table 5.3.2-1
pub fn max_prbs(range: FrequencyRange, spacing: SubcarrierSpacing, bandwidth_mhz: u16) -> Option<u16> {
    let (rows, first): (&[(u16, &[u16])], SubcarrierSpacing) = match range {
        FrequencyRange::Fr1 => (&FR1, SubcarrierSpacing::Khz15),
        FrequencyRange::Fr2 => (&FR2, SubcarrierSpacing::Khz60),
    };
    let (_, numbers) = rows.iter().find(|(bandwidth, _)| *bandwidth == bandwidth_mhz)?;
    let column = spacing.mu().checked_sub(first.mu())?;
    numbers.get(usize::from(column)).copied().filter(|&prbs| prbs > 0)
}

/// Channel bandwidth (MHz), and numbers of resource blocks with 15, 30 and 60 kHz; 0 is "N/A".
///
/// Source: TS 38.101-1 §5.3.2 Table 5.3.2-1
static FR1: [(u16, &[u16]); 15] = [
    (5, &[25, 11, 0]),
    (10, &[52, 24, 11]),
    (15, &[79, 38, 18]),
    (20, &[106, 51, 24]),
    (25, &[133, 65, 31]),
    (30, &[160, 78, 38]),
    (35, &[188, 92, 44]),
    (40, &[216, 106, 51]),
    (45, &[242, 119, 58]),
    (50, &[270, 133, 65]),
    (60, &[0, 162, 79]),
    (70, &[0, 189, 93]),
    (80, &[0, 217, 107]),
    (90, &[0, 245, 121]),
    (100, &[0, 273, 135]),
];

/// Channel bandwidth (MHz), and numbers of resource blocks with 60 and 120 kHz; 0 is "N/A".
///
/// Source: TS 38.101-2 §5.3.2 Table 5.3.2-1
static FR2: [(u16, &[u16]); 4] = [(50, &[66, 32]), (100, &[132, 66]), (200, &[264, 132]), (400, &[0, 264])];

#[cfg(test)]
mod tests {
    use super::*;
    use FrequencyRange::{Fr1, Fr2};
    use SubcarrierSpacing::{Khz15, Khz30, Khz60, Khz120, Khz240};

    #[test]
    fn a_spacing_is_found_by_its_index_and_by_its_frequency() {
        for spacing in SubcarrierSpacing::ALL {
            assert_eq!(SubcarrierSpacing::from_mu(spacing.mu()), Some(spacing));
            assert_eq!(SubcarrierSpacing::from_khz(spacing.khz()), Some(spacing));
        }
        assert_eq!(SubcarrierSpacing::ALL.map(SubcarrierSpacing::khz), [15, 30, 60, 120, 240]);
        assert_eq!((SubcarrierSpacing::from_mu(5), SubcarrierSpacing::from_khz(480)), (None, None));
    }

    #[test]
    fn numbers_of_resource_blocks_are_those_of_the_specification() {
        let known = [
            (Fr1, Khz15, 20, 106),
            (Fr1, Khz15, 50, 270),
            (Fr1, Khz30, 40, 106),
            (Fr1, Khz30, 100, 273),
            (Fr1, Khz60, 100, 135),
            (Fr2, Khz60, 100, 132),
            (Fr2, Khz120, 100, 66),
            (Fr2, Khz120, 400, 264),
        ];
        for (range, spacing, bandwidth, prbs) in known {
            assert_eq!(max_prbs(range, spacing, bandwidth), Some(prbs), "{spacing:?}, {bandwidth} MHz");
        }
        let unknown = [
            (Fr1, Khz15, 60),
            (Fr1, Khz60, 5),
            (Fr1, Khz120, 100),
            (Fr1, Khz30, 55),
            (Fr2, Khz60, 400),
            (Fr2, Khz30, 50),
            (Fr2, Khz240, 100),
        ];
        for (range, spacing, bandwidth) in unknown {
            assert_eq!(max_prbs(range, spacing, bandwidth), None, "{spacing:?}, {bandwidth} MHz");
        }
    }

    #[test]
    fn resource_blocks_leave_the_guard_bands_that_the_specification_prints() {
        // Guard bands in units of 0.5 kHz, in the order of the channel bandwidths (TS 38.101-1 Table 5.3.3-1,
        // TS 38.101-2 Table 5.3.3-1). A guard band has half of the unused channel less half a subcarrier.
        #[rustfmt::skip]
        let printed: [(FrequencyRange, SubcarrierSpacing, &[u32]); 5] = [
            (Fr1, Khz15, &[485, 625, 765, 905, 1045, 1185, 1145, 1105, 1425, 1385]),
            (Fr1, Khz30, &[1010, 1330, 1290, 1610, 1570, 1890, 1850, 1810, 2130, 2090, 1650, 1930, 1850, 1770, 1690]),
            (Fr1, Khz60, &[2020, 1980, 2660, 2620, 2580, 3260, 3220, 3180, 3140, 3060, 2980, 2900, 2820, 2740]),
            (Fr2, Khz60, &[2420, 4900, 9860]),
            (Fr2, Khz120, &[3800, 4840, 9800, 19_720]),
        ];
        for (range, spacing, guards) in printed {
            let bandwidths = 1..=400_u16;
            let computed: Vec<u32> = bandwidths
                .filter_map(|mhz| {
                    let used_khz =
                        (u32::from(max_prbs(range, spacing, mhz)?) * 12 + 1) * u32::from(spacing.khz());
                    Some(1000 * u32::from(mhz) - used_khz)
                })
                .collect();
            assert_eq!(computed, guards, "{range:?}, {spacing:?}");
        }
    }

    #[test]
    fn a_carrier_frequency_lies_in_one_frequency_range_or_in_none() {
        assert_eq!(FrequencyRange::of_khz(3_427_500), Some(Fr1));
        assert_eq!(FrequencyRange::of_khz(28_000_000), Some(Fr2));
        assert_eq!(FrequencyRange::of_khz(7_125_001), None);
        assert_eq!(FrequencyRange::of_khz(60_000_000), None, "FR2-2 is not in these tables");
    }
}
