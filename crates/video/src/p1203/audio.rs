//! Audio quality (ITU-T P.1203.2).

use serde::{Deserialize, Serialize};

use super::mos_of;

/// An audio codec of ITU-T P.1203.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AudioCodec {
    /// MPEG-1 Layer 2.
    Mp2,
    /// Dolby AC-3.
    Ac3,
    /// AAC, low complexity.
    AacLc,
    /// AAC, high efficiency.
    HeAac,
}

impl AudioCodec {
    /// Decay of the degradation per kbit/s, and the degradation that remains at a high bitrate.
    ///
    /// Source: ITU-T P.1203.2 (10/2017), a2 and a3 (a1 is 100 for all codecs)
    const fn coefficients(self) -> (f64, f64) {
        match self {
            AudioCodec::Mp2 => (-0.02, 15.48),
            AudioCodec::Ac3 => (-0.03, 15.70),
            AudioCodec::AacLc => (-0.05, 14.60),
            AudioCodec::HeAac => (-0.11, 20.06),
        }
    }
}

/// Audio quality (O.21) of a codec at a bitrate in kbit/s: a mean opinion score from 1.05 to 4.9.
///
/// Source: ITU-T P.1203.2 (10/2017), the quality of coding
pub fn audio_quality(codec: AudioCodec, bitrate_kbps: f64) -> f64 {
    let (decay, rest) = codec.coefficients();
    mos_of(100.0 - (100.0 * libm::exp(decay * bitrate_kbps) + rest))
}
