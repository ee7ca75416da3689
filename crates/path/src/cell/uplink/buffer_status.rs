//! Buffer status: a level that reports the amount of data in a device's buffer to the base station.
//!
//! Source: TS 36.321 §6.1.3.1; TS 38.321 §6.1.3.1

use airpace_core::tables::nr::BufferSizeField;

use super::super::config::uplink::BsrReading;

/// Length of a short buffer status report (bytes): its MAC subheader and its control element.
///
/// Source: TS 36.321 §6.1.2 and §6.1.3.1; TS 38.321 §6.1.2 and §6.1.3.1 (the same length)
pub(super) const REPORT_BYTES: u32 = 2;

/// The tables of levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Levels {
    /// Levels up to 150 kB.
    ///
    /// Source: TS 36.321 Table 6.1.3.1-1
    Plain,
    /// Levels up to 3 MB (`extendedBSR-Sizes`), for devices with several uplink carriers.
    ///
    /// Source: TS 36.321 Table 6.1.3.1-2
    Extended,
    /// Levels of NR's short buffer status report, which devices with one group of logical channels send.
    ///
    /// Source: TS 38.321 §6.1.3.1 Table 6.1.3.1-1
    NrShort,
}

impl Levels {
    /// The level for this many bytes: 0…63, or 0…31 in NR.
    pub(super) fn level_of(self, bytes: u64) -> u8 {
        self.edges().partition_point(|&edge| u64::from(edge) < bytes) as u8
    }

    /// The number of bytes assumed for a level. The highest level has no upper edge. Its assumed upper edge is its
    /// lower edge multiplied by the ratio of the edges of the level below.
    pub(super) fn bytes(self, level: u8, reading: BsrReading) -> u64 {
        let edges = self.edges();
        let last = edges.len() - 1;
        let edge = |index: usize| match edges.get(index) {
            Some(&edge) => u64::from(edge),
            None => u64::from(edges[last]) * u64::from(edges[last]) / u64::from(edges[last - 1]),
        };
        let level = usize::from(level).min(edges.len());
        let upper = edge(level);
        let lower = level.checked_sub(1).map_or(0, |below| edge(below) + 1);
        match reading {
            BsrReading::Upper => upper,
            BsrReading::Middle => (lower + upper).div_ceil(2),
            BsrReading::Lower => lower,
        }
    }

    /// The upper edges of all levels but the highest in bytes.
    fn edges(self) -> &'static [u32] {
        match self {
            Levels::Plain => &PLAIN,
            Levels::Extended => &EXTENDED,
            Levels::NrShort => BufferSizeField::FiveBits.limits(),
        }
    }
}

#[rustfmt::skip]
static PLAIN: [u32; 63] = [
    0, 10, 12, 14, 17, 19, 22, 26, 31, 36, 42, 49, 57, 67, 78, 91, 107, 125, 146, 171, 200, 234, 274, 321, 376, 440,
    515, 603, 706, 826, 967, 1132, 1326, 1552, 1817, 2127, 2490, 2915, 3413, 3995, 4677, 5476, 6411, 7505, 8787,
    10287, 12043, 14099, 16507, 19325, 22624, 26487, 31009, 36304, 42502, 49759, 58255, 68201, 79846, 93479, 109439,
    128125, 150000,
];

#[rustfmt::skip]
static EXTENDED: [u32; 63] = [
    0, 10, 13, 16, 19, 23, 29, 35, 43, 53, 65, 80, 98, 120, 147, 181, 223, 274, 337, 414, 509, 625, 769, 945, 1162,
    1429, 1757, 2161, 2657, 3267, 4017, 4940, 6074, 7469, 9185, 11294, 13888, 17077, 20999, 25822, 31752, 39045,
    48012, 59039, 72598, 89272, 109774, 134986, 165989, 204111, 250990, 308634, 379519, 466683, 573866, 705666,
    867737, 1067031, 1312097, 1613447, 1984009, 2439678, 3000000,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_rise_by_a_constant_factor_as_the_standard_made_them() {
        for (levels, last) in [(Levels::Plain, 150_000.0), (Levels::Extended, 3_000_000.0_f64)] {
            let factor = libm::pow(last / 10.0, 1.0 / 61.0);
            for (index, &edge) in levels.edges().iter().enumerate().skip(1) {
                let exact = 10.0 * libm::pow(factor, (index - 1) as f64);
                let edge = f64::from(edge);
                assert!((edge - exact).abs() <= 1.0 + 1e-4 * exact, "{levels:?} {index}: {edge}, {exact:.1}");
            }
        }
    }

    #[test]
    fn a_level_is_read_as_it_was_written() {
        for levels in [Levels::Plain, Levels::Extended, Levels::NrShort] {
            let finest = if levels == Levels::NrShort { 14 } else { 13 };
            for bytes in [0, 1, 10, 11, 52, 1500, 99_999, 150_000] {
                let level = levels.level_of(bytes);
                let [least, middle, most] = [BsrReading::Lower, BsrReading::Middle, BsrReading::Upper]
                    .map(|reading| levels.bytes(level, reading));
                assert!(least <= bytes && bytes <= most && least <= middle && middle <= most, "{bytes}");
                assert!(most <= bytes * finest / 10 + 10, "{bytes} are not read as {most}");
            }
        }
        assert_eq!(Levels::Plain.level_of(150_001), 63);
        assert_eq!(Levels::Plain.level_of(u64::MAX), 63);
        assert_eq!(Levels::Plain.bytes(63, BsrReading::Upper), 175_609);
    }
}
