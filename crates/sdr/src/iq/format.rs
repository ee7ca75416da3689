//! Encoding of samples.

use std::fmt;
use std::str::FromStr;

use airpace_phy::Complex32;

/// Encoding of a complex sample: the in-phase part, then the quadrature part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// Two signed bytes (HackRF); 127 is full scale.
    Ci8,
    /// Two unsigned bytes around 127.5 (RTL-SDR).
    Cu8,
    /// Two signed 16-bit numbers, little-endian; 32,767 is full scale.
    Ci16,
    /// Two 32-bit floating-point numbers, little-endian; 1.0 is full scale.
    Cf32,
}

/// The text does not name a supported format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoFormat(pub String);

impl std::error::Error for NoFormat {}

impl fmt::Display for NoFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.0;
        let of_sigmf = name.strip_suffix("_be").or_else(|| name.strip_suffix("_le")).unwrap_or(name);
        let is_one_of = |kinds: &[&str], sizes: &[&str]| {
            kinds.iter().any(|kind| of_sigmf.strip_prefix(kind).is_some_and(|size| sizes.contains(&size)))
        };
        const SIZES: [&str; 4] = ["8", "16", "32", "64"];
        if is_one_of(&["rf", "ri", "ru"], &SIZES) {
            write!(f, "`{name}` has real samples, where a radio's are complex; use {}", Format::NAMES)
        } else if is_one_of(&["cf", "ci", "cu"], &SIZES) && name.ends_with("_be") {
            write!(f, "`{name}` is big-endian, which is not read: convert the samples to {}", Format::NAMES)
        } else if is_one_of(&["cf", "ci", "cu"], &SIZES) {
            write!(f, "`{name}` is not read: convert the samples; use {}", Format::NAMES)
        } else {
            write!(f, "`{name}` is no format of samples; use {}", Format::NAMES)
        }
    }
}

impl Format {
    /// Every format.
    pub const ALL: [Format; 4] = [Format::Ci8, Format::Cu8, Format::Ci16, Format::Cf32];
    /// Names of the formats, for messages.
    pub const NAMES: &str = "ci8, cu8, ci16_le or cf32_le";

    /// Returns SigMF's name for the format.
    pub const fn name(self) -> &'static str {
        match self {
            Format::Ci8 => "ci8",
            Format::Cu8 => "cu8",
            Format::Ci16 => "ci16_le",
            Format::Cf32 => "cf32_le",
        }
    }

    /// Returns the number of bytes of one sample.
    pub const fn size(self) -> usize {
        match self {
            Format::Ci8 | Format::Cu8 => 2,
            Format::Ci16 => 4,
            Format::Cf32 => 8,
        }
    }

    /// Appends the samples in `bytes`; bytes after the last whole sample are ignored. Numbers that are not finite are
    /// replaced by zero. Returns the number of samples with a replaced number.
    pub fn read(self, bytes: &[u8], out: &mut Vec<Complex32>) -> usize {
        // Arrays of known length let the compiler vectorise: a receiver delivers up to 30 million samples per second.
        match self {
            Format::Ci8 => {
                let samples = bytes.as_chunks::<2>().0.iter();
                let signed = |part: u8| f32::from(part as i8);
                out.extend(samples.map(|&[re, im]| Complex32::new(signed(re), signed(im)) / 127.0));
                0
            }
            Format::Cu8 => {
                let samples = bytes.as_chunks::<2>().0.iter();
                let centred = |part: u8| f32::from(part) - 127.5;
                out.extend(samples.map(|&[re, im]| Complex32::new(centred(re), centred(im)) / 127.5));
                0
            }
            Format::Ci16 => {
                let samples = bytes.as_chunks::<4>().0.iter();
                let word = |low, high| f32::from(i16::from_le_bytes([low, high]));
                out.extend(samples.map(|&[a, b, c, d]| Complex32::new(word(a, b), word(c, d)) / 32_767.0));
                0
            }
            Format::Cf32 => {
                let parts = bytes.as_chunks::<4>().0.as_chunks::<2>().0.iter();
                let samples = parts.map(|&[re, im]| [f32::from_le_bytes(re), f32::from_le_bytes(im)]);
                let mut replaced = 0;
                let finite = |part: f32| if part.is_finite() { part } else { 0.0 };
                out.extend(samples.map(|[re, im]| {
                    replaced += usize::from(!re.is_finite() || !im.is_finite());
                    Complex32::new(finite(re), finite(im))
                }));
                replaced
            }
        }
    }

    /// Appends samples as bytes. Values beyond full scale are clipped, except in floating point. Returns the number of
    /// clipped samples.
    pub fn write(self, samples: &[Complex32], out: &mut Vec<u8>) -> usize {
        let mut cut = 0;
        for sample in samples {
            cut += usize::from(self != Format::Cf32 && (sample.re.abs() > 1.0 || sample.im.abs() > 1.0));
            for part in [sample.re, sample.im] {
                // `as` saturates to the type's range and converts NaN to zero.
                match self {
                    Format::Ci8 => out.push((part * 127.0).round().clamp(-127.0, 127.0) as i8 as u8),
                    Format::Cu8 => out.push((part * 127.5 + 127.5).round() as u8),
                    Format::Ci16 => out.extend(((part * 32_767.0).round() as i16).to_le_bytes()),
                    Format::Cf32 => out.extend(part.to_le_bytes()),
                }
            }
        }
        cut
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Format {
    type Err = NoFormat;

    /// Parses SigMF's names; the byte order may be omitted.
    fn from_str(text: &str) -> Result<Format, NoFormat> {
        let is_it =
            |format: &Format| format.name() == text || format.name().strip_suffix("_le") == Some(text);
        Format::ALL.into_iter().find(is_it).ok_or_else(|| NoFormat(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_come_back_within_half_a_step() {
        let samples: Vec<_> =
            (0..200).map(|at| Complex32::new(at as f32 / 100.0 - 1.0, 1.0 - at as f32 / 150.0)).collect();
        for (format, step) in [
            (Format::Ci8, 1.0 / 127.0),
            (Format::Cu8, 1.0 / 127.5),
            (Format::Ci16, 1.0 / 32_767.0),
            (Format::Cf32, 0.0),
        ] {
            let (mut bytes, mut back) = (vec![], vec![]);
            assert_eq!(format.write(&samples, &mut bytes), 0, "{format}: nothing exceeds full scale");
            assert_eq!(bytes.len(), samples.len() * format.size());
            format.read(&bytes, &mut back);
            let far =
                |(a, b): (&Complex32, &Complex32)| (a - b).re.abs().max((a - b).im.abs()) > step * 0.501;
            assert!(!samples.iter().zip(&back).any(far), "{format}");
        }
    }

    #[test]
    fn what_exceeds_full_scale_is_cut_and_counted() {
        let samples = [Complex32::new(3.0, -3.0), Complex32::new(0.5, f32::NAN)];
        let (mut bytes, mut back) = (vec![], vec![]);
        assert_eq!(Format::Ci8.write(&samples, &mut bytes), 1);
        Format::Ci8.read(&bytes, &mut back);
        assert_eq!(back[0], Complex32::new(1.0, -1.0));
        assert_eq!(back[1].im, 0.0);
    }

    #[test]
    fn formats_have_sigmfs_names() {
        assert_eq!("ci16_le".parse(), Ok(Format::Ci16));
        assert_eq!("cf32".parse(), Ok(Format::Cf32));
        assert!("rf32_le".parse::<Format>().unwrap_err().to_string().contains("cf32_le"));
    }
}
