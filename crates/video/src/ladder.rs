//! The bitrate ladder: the representations of a video.

use std::time::Duration;

use airpace_core::{Refused, Remedy};
use serde::{Deserialize, Serialize};

use crate::check::{check, pixels};

/// Representations of one video, by rising bitrate, and the length of the segments into which each of them is cut.
///
/// The default is the ladder for HEVC at 30 frames per second that Apple recommends: twelve representations from
/// 0.145 Mbit/s at 640×360 to 16.8 Mbit/s at 3840×2160 (4K).
///
/// Source: Apple, HLS Authoring Specification for Apple Devices, 2017 (bit rates for HEVC, SDR, 30 fps)
///
/// Chosen: segments of 4 s, as in the scenario `video`; Apple recommends 6 s.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Ladder {
    /// Length of a segment in seconds.
    pub segment_s: f64,
    /// The representations, by rising bitrate.
    pub representation: Vec<Representation>,
}

/// One encoding of a video.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Representation {
    /// Average bitrate in Mbit/s (10⁶ bits per second).
    pub bitrate_mbps: f64,
    /// Width of the encoded picture in pixels.
    pub width: u32,
    /// Height of the encoded picture in pixels.
    pub height: u32,
    /// Frames per second.
    #[serde(default = "default_fps")]
    pub fps: f64,
    /// Video codec.
    #[serde(default)]
    pub codec: Codec,
}

/// A video codec that the model of quality knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Codec {
    /// H.264 (AVC).
    H264,
    /// H.265 (HEVC).
    #[default]
    Hevc,
    /// VP9.
    Vp9,
}

/// Frames per second of a representation that does not state them.
fn default_fps() -> f64 {
    30.0
}

/// Bitrate in Mbit/s, width and height of the representations of the default ladder.
///
/// Source: Apple, HLS Authoring Specification for Apple Devices, 2017
const APPLE_HEVC: [(f64, u32, u32); 12] = [
    (0.145, 640, 360),
    (0.3, 768, 432),
    (0.6, 960, 540),
    (0.9, 960, 540),
    (1.6, 960, 540),
    (2.4, 1280, 720),
    (3.4, 1280, 720),
    (4.5, 1920, 1080),
    (5.8, 1920, 1080),
    (8.1, 2560, 1440),
    (11.6, 3840, 2160),
    (16.8, 3840, 2160),
];

/// Range of a segment's length in seconds.
///
/// Chosen: from the chunks of low-latency streams to the longest segments in use.
const SEGMENT_S: (f64, f64) = (0.1, 60.0);

/// Range of a bitrate in Mbit/s.
///
/// Chosen: a kilobit per second, and a hundred times the bitrate of 8K.
const BITRATE_MBPS: (f64, f64) = (0.001, 10_000.0);

/// Range of a frame rate in Hz.
///
/// Chosen: from slides to twice the frame rate of the fastest phones.
const FPS: (f64, f64) = (1.0, 240.0);

impl Default for Ladder {
    fn default() -> Ladder {
        let representation = |(bitrate_mbps, width, height)| Representation {
            bitrate_mbps,
            width,
            height,
            fps: default_fps(),
            codec: Codec::Hevc,
        };
        Ladder { segment_s: 4.0, representation: APPLE_HEVC.map(representation).to_vec() }
    }
}

impl Ladder {
    /// Rejects an invalid ladder; the error names key and remedy.
    pub fn validate(&self) -> Result<(), Refused> {
        self.validate_in("")
    }

    /// As [`Ladder::validate`]; the error's keys start with `table`.
    pub(crate) fn validate_in(&self, table: &str) -> Result<(), Refused> {
        check(&format!("{table}segment_s"), self.segment_s, SEGMENT_S, "s (4 is usual)")?;
        if self.representation.is_empty() {
            let remedy = "give one or more, by rising bitrate, or leave the key out for the default ladder";
            return Err(Refused::new(format!("`{table}representation` is empty")).but(Remedy::new(remedy)));
        }
        let key = |index: usize| format!("{table}representation.{index}.");
        for (index, one) in self.representation.iter().enumerate() {
            one.validate_in(&key(index))?;
        }
        let bitrates: Vec<f64> = self.representation.iter().map(|one| one.bitrate_mbps).collect();
        match bitrates.windows(2).position(|pair| pair[1] <= pair[0]) {
            None => Ok(()),
            Some(at) => Err(unsorted(&key(at + 1), bitrates[at], bitrates[at + 1])),
        }
    }

    /// The length of a segment.
    pub fn segment(&self) -> Duration {
        Duration::try_from_secs_f64(self.segment_s).unwrap_or_default()
    }
}

impl Representation {
    /// Rejects an invalid representation; the error's keys start with `table`.
    fn validate_in(&self, table: &str) -> Result<(), Refused> {
        check(&format!("{table}bitrate_mbps"), self.bitrate_mbps, BITRATE_MBPS, "Mbit/s")?;
        check(&format!("{table}fps"), self.fps, FPS, "frames per second (24 to 60 are usual)")?;
        pixels(&format!("{table}width"), self.width)?;
        pixels(&format!("{table}height"), self.height)
    }
}

/// The error of a representation whose bitrate `mbps` is not above the one before it. The keys of `table` are its own.
fn unsorted(table: &str, before: f64, mbps: f64) -> Refused {
    let facts = format!("`{table}bitrate_mbps` is {mbps}, and the one before it is {before}");
    Refused::new(facts).but(Remedy::new("sort the representations by rising bitrate, without equal bitrates"))
}
