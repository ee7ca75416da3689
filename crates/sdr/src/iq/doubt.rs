//! Detection of samples that do not match their declared format, from the statistics of their values.
//!
//! The real and imaginary parts of samples are most frequent around the middle of their range, at any signal level: for
//! noise, for LTE, and for both after clipping. If they are read in another format, they are not. Only the start of a
//! recording is checked.

use airpace_core::Remedy;

use super::Format;

/// Reason why samples probably do not have the declared format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// Both parts of samples are most frequent at the ends of their range, and rare in its middle.
    Sign(Format),
    /// The high bytes of numbers have the statistics of low bytes.
    Order,
    /// The floating-point samples are whole numbers, and many of them exceed 1.
    Scale,
}

impl std::fmt::Display for Doubt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Doubt::Sign(likely) => write!(
                f,
                "its values are rare around zero and frequent at both ends of their range, as those of {likely} are when \
                 they are read in the wrong way. Then messages are lost, or the whole cell"
            ),
            Doubt::Order => {
                write!(f, "its numbers look like those of ci16_be, whose bytes are in the other order")
            }
            Doubt::Scale => write!(
                f,
                "its numbers are whole numbers above 1, where 1.0 is full scale: clipping cannot be seen"
            ),
        }
    }
}

impl Doubt {
    /// The remedy for the user.
    pub fn remedy(self) -> Remedy {
        match self {
            Doubt::Sign(likely) => Remedy::new("give").value("format", likely.to_string()),
            Doubt::Order => Remedy::new("swap the bytes of each number, for example by `dd conv=swab`"),
            Doubt::Scale => Remedy::new("divide them by the largest number that the receiver gives"),
        }
    }
}

/// Statistics of the bytes of a recording's first antenna.
#[derive(Debug)]
pub struct Look {
    format: Format,
    /// Bytes of all antennas per sampling instant.
    size: usize,
    /// Histogram of values by part (in-phase, quadrature); for numbers of two bytes, by part and byte.
    counts: [[u32; 256]; 4],
    /// Number of floating-point values above 1 (`large`), and number of values that are not whole numbers (`broken`).
    large: u32,
    broken: u32,
    instants: u32,
}

/// Number of instants after which the samples are judged.
///
/// Chosen: one or two milliseconds of the widest cells. One percent of the values are then hundreds of values.
const ENOUGH: u32 = 1 << 16;

/// Minimum number of instants for a judgement, at the end of a short recording.
const MIN_INSTANTS: u32 = 1 << 11;

/// Minimum number of values in the outer half of each side of the range.
const MIN_PER_SIDE: u32 = 100;

/// Ratio of the outer half's frequency to the inner half's, on each side of the range: above it, the values count as
/// most frequent at the ends.
///
/// Chosen: a single tone, whose values are most frequent at its peaks, reaches 2.
const MAX_OUTER: u32 = 3;

impl Look {
    /// Creates the statistics of samples in a format, with this many bytes per instant.
    pub fn new(format: Format, size: usize) -> Look {
        Look { format, size, counts: [[0; 256]; 4], large: 0, broken: 0, instants: 0 }
    }

    /// Returns whether enough instants were counted.
    pub fn is_over(&self) -> bool {
        self.instants >= ENOUGH
    }

    /// Counts the bytes of whole instants.
    pub fn take(&mut self, bytes: &[u8]) {
        let left = (ENOUGH - self.instants.min(ENOUGH)) as usize;
        for instant in bytes.chunks_exact(self.size).take(left) {
            self.instants += 1;
            match self.format {
                Format::Ci8 | Format::Cu8 => {
                    self.counts[0][usize::from(instant[0])] += 1;
                    self.counts[1][usize::from(instant[1])] += 1;
                }
                Format::Ci16 => {
                    for (part, word) in instant[..4].as_chunks::<2>().0.iter().enumerate() {
                        // Clipped values contain no information.
                        if i16::from_le_bytes(*word).unsigned_abs() < 32_766 {
                            self.counts[2 * part][usize::from(word[0])] += 1;
                            self.counts[2 * part + 1][usize::from(word[1])] += 1;
                        }
                    }
                }
                Format::Cf32 => {
                    for part in instant[..8].as_chunks::<4>().0 {
                        let value = f32::from_le_bytes(*part);
                        self.large += u32::from(value.abs() > 1.0);
                        self.broken += u32::from(value != value.trunc());
                    }
                }
            }
        }
    }

    /// Returns the detected mismatch, if any.
    pub fn judge(&self) -> Option<Doubt> {
        if self.instants < MIN_INSTANTS {
            return None;
        }
        match self.format {
            Format::Ci8 => self.has_two_ends(0).then_some(Doubt::Sign(Format::Cu8)),
            Format::Cu8 => self.has_two_ends(128).then_some(Doubt::Sign(Format::Ci8)),
            Format::Ci16 => self.is_swapped().then_some(Doubt::Order),
            // Noise does not consist of whole numbers, and a signal within full scale has no values above 1.
            Format::Cf32 => (self.broken == 0 && self.large > self.instants / 10).then_some(Doubt::Scale),
        }
    }

    /// Returns whether both parts are rare around the byte `middle` and frequent at both ends. A signal whose mean is
    /// not in the middle is rare on at least one side. The extreme values and the values next to the middle are not
    /// counted: extreme values may come from a clipped signal, and values next to the middle may belong to another
    /// format.
    fn has_two_ends(&self, middle: u8) -> bool {
        let count = |part: usize, distances: std::ops::RangeInclusive<u8>, is_below: bool| -> u32 {
            let place = |by: u8| if is_below { middle.wrapping_sub(by) } else { middle.wrapping_add(by) };
            distances.map(|by| self.counts[part][usize::from(place(by))]).sum()
        };
        [(0, false), (0, true), (1, false), (1, true)].into_iter().all(|(part, is_below)| {
            let (inner, outer) = (count(part, 2..=63, is_below), count(part, 64..=126, is_below));
            outer >= MIN_PER_SIDE && outer > MAX_OUTER * inner
        })
    }

    /// Returns whether the second bytes of the numbers are spread over their range and the first bytes are near zero.
    /// The first bytes are then the high bytes.
    fn is_swapped(&self) -> bool {
        // A quarter of the 256 byte values have a smaller magnitude than this.
        const NEAR: u8 = 32;
        let share = |counts: &[u32; 256]| {
            let near = (0..256).filter(|&byte| (byte as u8 as i8).unsigned_abs() < NEAR);
            let all: u32 = counts.iter().sum();
            f64::from(near.map(|byte| counts[byte]).sum::<u32>()) / f64::from(all.max(1))
        };
        [0, 2].into_iter().all(|part| {
            let (low, high) = (&self.counts[part], &self.counts[part + 1]);
            // Exclude two cases: eight-bit numbers that were shifted up have low bytes of zero, and a weak signal with
            // an offset has few different high bytes.
            let kinds = |counts: &[u32; 256]| counts.iter().filter(|count| **count > 0).count();
            let is_spread = kinds(low) > 1 && kinds(high) > 128;
            low.iter().sum::<u32>() >= MIN_INSTANTS && is_spread && share(low) > 0.6 && share(high) < 0.4
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airpace_core::Streams;
    use airpace_phy::Complex32;

    /// Returns Gaussian samples with this standard deviation, relative to full scale, and this mean.
    fn noise(deviation: f32, mean: Complex32) -> Vec<Complex32> {
        let mut rng = Streams::new(11).stream("noise");
        let mut part = || rng.normal() as f32 * deviation;
        (0..40_000).map(|_| Complex32::new(part(), part()) + mean).collect()
    }

    fn judge(format: Format, bytes: &[u8]) -> Option<Doubt> {
        let mut look = Look::new(format, format.size());
        bytes.chunks(format.size() * 1000).for_each(|piece| look.take(piece));
        look.judge()
    }

    fn written(format: Format, samples: &[Complex32]) -> Vec<u8> {
        let mut bytes = vec![];
        format.write(samples, &mut bytes);
        bytes
    }

    const MEANS: [Complex32; 5] = [
        Complex32::new(0.0, 0.0),
        Complex32::new(0.1, -0.05),
        Complex32::new(0.7, 0.7),
        Complex32::new(0.7, -0.7),
        Complex32::new(0.0, 1.2),
    ];

    #[test]
    fn samples_of_the_declared_format_are_never_doubted() {
        // Signal levels from far below the last bit to far beyond full scale.
        for deviation in (-10..12).map(|step| 0.02 * f32::powi(2.0, step)) {
            for mean in MEANS {
                let samples = noise(deviation, mean);
                for format in Format::ALL {
                    let doubt = judge(format, &written(format, &samples));
                    assert_eq!(doubt, None, "{format}, {deviation} around {mean}");
                }
            }
        }
        let tone = |level: f32| -> Vec<Complex32> {
            let angle = |n: i32| Complex32::new((n as f32 * 0.7).cos(), (n as f32 * 0.7).sin());
            (0..40_000).map(|n| angle(n) * level).collect()
        };
        for level in [0.001, 0.3, 0.8, 0.99, 1.5, 9.0] {
            for format in Format::ALL {
                assert_eq!(
                    judge(format, &written(format, &tone(level))),
                    None,
                    "a tone of {level} in {format}"
                );
            }
        }
        for format in Format::ALL {
            assert_eq!(judge(format, &vec![0; 400_000]), None, "zeros in {format}");
        }
    }

    #[test]
    fn signed_and_unsigned_bytes_are_told_apart() {
        for (is, said) in [(Format::Cu8, Format::Ci8), (Format::Ci8, Format::Cu8)] {
            for deviation in [0.02, 0.05, 0.1, 0.2, 0.3, 0.4] {
                for mean in [0.0, if deviation > 0.25 { 0.0 } else { 0.5 * deviation }] {
                    let mean = Complex32::new(mean, -0.5 * mean);
                    let doubt = judge(said, &written(is, &noise(deviation, mean)));
                    assert_eq!(doubt, Some(Doubt::Sign(is)), "{is} as {said}, {deviation} around {mean}");
                }
            }
        }
    }

    #[test]
    fn bytes_in_the_other_order_are_found_where_they_can_be() {
        for deviation in [0.003, 0.02, 0.1, 0.2] {
            let mut bytes = written(Format::Ci16, &noise(deviation, Complex32::default()));
            bytes.chunks_exact_mut(2).for_each(|word| word.swap(0, 1));
            assert_eq!(judge(Format::Ci16, &bytes), Some(Doubt::Order), "{deviation}");
        }
        // Eight-bit values that were shifted up to 16 bits, or repeated in both bytes.
        for deviation in [0.1, 0.4, 1.0] {
            let bytes = written(Format::Ci8, &noise(deviation, Complex32::default()));
            for low in [|_: u8| 0, |byte: u8| byte] {
                let words: Vec<u8> = bytes.iter().flat_map(|&byte| [low(byte), byte]).collect();
                assert_eq!(judge(Format::Ci16, &words), None, "{deviation}");
            }
        }
    }

    #[test]
    fn whole_numbers_are_not_scaled() {
        let samples: Vec<_> = noise(300.0, Complex32::default())
            .iter()
            .map(|sample| Complex32::new(sample.re.round(), sample.im.round()))
            .collect();
        assert_eq!(judge(Format::Cf32, &written(Format::Cf32, &samples)), Some(Doubt::Scale));
    }

    #[test]
    fn a_few_samples_are_not_judged() {
        let bytes = written(Format::Cu8, &noise(0.1, Complex32::default())[..2000]);
        assert_eq!(judge(Format::Ci8, &bytes), None);
    }
}
