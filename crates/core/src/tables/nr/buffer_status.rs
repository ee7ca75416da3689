//! Buffer size levels: the amounts of data that a buffer status report can signal.

use crate::units::Bytes;

/// Width of the field of a buffer status report that contains a level.
///
/// Source: TS 38.321 §6.1.3.1
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BufferSizeField {
    /// Five bits, of the short formats.
    FiveBits,
    /// Eight bits, of the long formats.
    EightBits,
}

/// Amounts of data that one level signals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferSize {
    /// Minimum amount.
    pub min: Bytes,
    /// Maximum amount; `None` for the highest level, which has no upper limit.
    pub max: Option<Bytes>,
}

impl BufferSizeField {
    /// The highest level: 31 of the field of five bits, 254 of the field of eight bits. Level 255 is reserved.
    ///
    /// Source: TS 38.321 §6.1.3.1 Tables 6.1.3.1-1 and 6.1.3.1-2
    pub const fn last_level(self) -> u8 {
        match self {
            BufferSizeField::FiveBits => 31,
            BufferSizeField::EightBits => 254,
        }
    }

    /// The level for this amount of data.
    ///
    /// Source: TS 38.321 §6.1.3.1 Tables 6.1.3.1-1 and 6.1.3.1-2
    pub fn level_of(self, amount: Bytes) -> u8 {
        self.limits().partition_point(|&limit| u64::from(limit) < amount.0) as u8
    }

    /// The amounts of data of a level; `None` above the highest level.
    ///
    /// Source: TS 38.321 §6.1.3.1 Tables 6.1.3.1-1 and 6.1.3.1-2
    pub fn size_of(self, level: u8) -> Option<BufferSize> {
        if level > self.last_level() {
            return None;
        }
        let limit = |level: u8| self.limits().get(usize::from(level)).map(|&limit| u64::from(limit));
        let below = level.checked_sub(1).and_then(limit);
        Some(BufferSize { min: Bytes(below.map_or(0, |below| below + 1)), max: limit(level).map(Bytes) })
    }

    /// Maximum amounts (bytes) of all levels except the highest.
    ///
    /// Source: TS 38.321 §6.1.3.1 Tables 6.1.3.1-1 and 6.1.3.1-2
    pub const fn limits(self) -> &'static [u32] {
        match self {
            BufferSizeField::FiveBits => &FIVE_BITS,
            BufferSizeField::EightBits => &EIGHT_BITS,
        }
    }
}

/// Maximum amounts of levels 0…30 in bytes.
///
/// Source: TS 38.321 §6.1.3.1 Table 6.1.3.1-1
#[rustfmt::skip]
static FIVE_BITS: [u32; 31] = [
    0, 10, 14, 20, 28, 38, 53, 74, 102, 142, 198, 276, 384, 535, 745, 1038, 1446, 2014, 2806, 3909, 5446, 7587,
    10570, 14726, 20516, 28581, 39818, 55474, 77284, 107669, 150000,
];

/// Maximum amounts of levels 0…253 in bytes.
///
/// Source: TS 38.321 §6.1.3.1 Table 6.1.3.1-2
#[rustfmt::skip]
static EIGHT_BITS: [u32; 254] = [
    0, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 22, 23, 25, 26, 28, 30, 32, 34, 36, 38, 40, 43, 46, 49, 52, 55,
    59, 62, 66, 71, 75, 80, 85, 91, 97, 103, 110, 117, 124, 132, 141, 150, 160, 170, 181, 193, 205, 218, 233, 248,
    264, 281, 299, 318, 339, 361, 384, 409, 436, 464, 494, 526, 560, 597, 635, 677, 720, 767, 817, 870, 926, 987,
    1051, 1119, 1191, 1269, 1351, 1439, 1532, 1631, 1737, 1850, 1970, 2098, 2234, 2379, 2533, 2698, 2873, 3059,
    3258, 3469, 3694, 3934, 4189, 4461, 4751, 5059, 5387, 5737, 6109, 6506, 6928, 7378, 7857, 8367, 8910, 9488,
    10104, 10760, 11458, 12202, 12994, 13838, 14736, 15692, 16711, 17795, 18951, 20181, 21491, 22885, 24371, 25953,
    27638, 29431, 31342, 33376, 35543, 37850, 40307, 42923, 45709, 48676, 51836, 55200, 58784, 62599, 66663, 70990,
    75598, 80505, 85730, 91295, 97221, 103532, 110252, 117409, 125030, 133146, 141789, 150992, 160793, 171231,
    182345, 194182, 206786, 220209, 234503, 249725, 265935, 283197, 301579, 321155, 342002, 364202, 387842, 413018,
    439827, 468377, 498780, 531156, 565634, 602350, 641449, 683087, 727427, 774645, 824928, 878475, 935498, 996222,
    1060888, 1129752, 1203085, 1281179, 1364342, 1452903, 1547213, 1647644, 1754595, 1868488, 1989774, 2118933,
    2256475, 2402946, 2558924, 2725027, 2901912, 3090279, 3290873, 3504487, 3731968, 3974215, 4232186, 4506902,
    4799451, 5110989, 5442750, 5796046, 6172275, 6572925, 6999582, 7453933, 7937777, 8453028, 9001725, 9586039,
    10208280, 10870913, 11576557, 12328006, 13128233, 13980403, 14887889, 15854280, 16883401, 17979324, 19146385,
    20389201, 21712690, 23122088, 24622972, 26221280, 27923336, 29735875, 31666069, 33721553, 35910462, 38241455,
    40723756, 43367187, 46182206, 49179951, 52372284, 55771835, 59392055, 63247269, 67352729, 71724679, 76380419,
    81338368,
];

#[cfg(test)]
mod tests {
    use super::*;
    use BufferSizeField::{EightBits, FiveBits};

    /// Smallest integer that is not below 10 · (last / 10)^(exponent / steps).
    fn geometric(last: f64, exponent: u32, steps: u32) -> u32 {
        // The tolerance is above the rounding errors of the power and below the distance of any limit from an integer.
        let exact = 10.0 * libm::pow(last / 10.0, f64::from(exponent) / f64::from(steps));
        libm::ceil(exact * (1.0 - 1e-12)) as u32
    }

    #[test]
    fn limits_are_a_geometric_series_that_is_rounded_up() {
        for level in 1..=30 {
            assert_eq!(FIVE_BITS[level as usize], geometric(150_000.0, level - 1, 29), "level {level}");
        }
        // The series of the eight bits would have 13 bytes twice. The table has the limit once.
        let series: Vec<u32> = (0..=253).map(|exponent| geometric(81_338_368.0, exponent, 253)).collect();
        let mut expected = [vec![0], series].concat();
        expected.dedup();
        assert_eq!(EIGHT_BITS[..], expected[..]);
    }

    #[test]
    fn levels_of_amounts_are_those_of_the_specification() {
        let level = |field: BufferSizeField, amount| field.level_of(Bytes(amount));
        assert_eq!([0, 1, 10, 11, 14, 15].map(|amount| level(FiveBits, amount)), [0, 1, 1, 2, 2, 3]);
        assert_eq!([150_000, 150_001, u64::MAX].map(|amount| level(FiveBits, amount)), [30, 31, 31]);
        assert_eq!([0, 1, 10, 11, 1500].map(|amount| level(EightBits, amount)), [0, 1, 1, 2, 80]);
        assert_eq!(
            [81_338_368, 81_338_369, u64::MAX].map(|amount| level(EightBits, amount)),
            [253, 254, 254]
        );
    }

    #[test]
    fn levels_are_adjacent_and_a_level_is_the_level_of_its_amounts() {
        for field in [FiveBits, EightBits] {
            let mut next = 0;
            for level in 0..=field.last_level() {
                let BufferSize { min, max } = field.size_of(level).unwrap();
                assert_eq!(min, Bytes(next), "{field:?}: level {level} starts after the level below");
                assert_eq!(field.level_of(min), level);
                if let Some(max) = max {
                    assert!(max >= min, "{field:?}: level {level} is empty");
                    assert_eq!(field.level_of(max), level);
                    next = max.0 + 1;
                }
                assert_eq!(max.is_none(), level == field.last_level(), "only the highest level has no limit");
            }
            assert_eq!(field.size_of(field.last_level() + 1), None);
        }
    }
}
