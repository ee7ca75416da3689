//! The description of a video that a server offers, and the paths of its segments.

use airpace_core::{Bytes, Draws, Refused, Streams};
use airpace_video::{Ladder, PlayerConfig, SegmentSizes};
use serde::{Deserialize, Serialize};

/// Path of the description on the server.
pub const LADDER_PATH: &str = "/ladder.json";

/// Maximum size of the description in bytes.
///
/// Chosen: ten thousand representations.
pub const MAX_LADDER_BYTES: u64 = 1 << 20;

/// Maximum buffer of a player in seconds, which holds every segment.
const MAX_BUFFER_S: f64 = 86_400.0;

/// A video: its ladder, its length, and the numbers from which the sizes of its segments are drawn. Server and client compute the
/// same sizes, which are those of the simulator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VideoDescription {
    /// The representations and the length of a segment.
    pub ladder: Ladder,
    /// Length of the video in seconds; rounded up to whole segments.
    pub duration_s: f64,
    /// Coefficient of variation of the segments' sizes.
    pub size_variation: f64,
    /// Seed of the sizes.
    pub seed: u64,
    /// Index of the scenario's flow whose sizes these are. Each flow has its own random numbers.
    pub flow: u32,
}

impl VideoDescription {
    /// The video that the player `config` of flow `flow` gets in a simulated run with the seed `seed`.
    pub fn of(config: &PlayerConfig, seed: u64, flow: u32) -> VideoDescription {
        VideoDescription {
            ladder: config.ladder.clone(),
            duration_s: config.duration_s,
            size_variation: config.size_variation,
            seed,
            flow,
        }
    }

    /// The configuration of a player with the buffers and the rule of `player`, for this video.
    ///
    /// # Errors
    /// The video is invalid, or the player's maximum buffer is too small for it.
    pub fn config(&self, player: &PlayerConfig) -> Result<PlayerConfig, Refused> {
        let config = PlayerConfig {
            ladder: self.ladder.clone(),
            duration_s: self.duration_s,
            size_variation: self.size_variation,
            ..player.clone()
        };
        config.validate()?;
        Ok(config)
    }

    /// Checks the video for a player with any buffer.
    ///
    /// # Errors
    /// The video is invalid. The error names the key.
    pub fn validate(&self) -> Result<(), Refused> {
        self.config(&PlayerConfig { max_buffer_s: MAX_BUFFER_S, ..PlayerConfig::default() }).map(drop)
    }

    /// The random numbers of the sizes. The simulator draws the sizes of flow N from the stream `flow.N.video`.
    pub fn draws(&self) -> Draws {
        Streams::new(self.seed).draws(&format!("flow.{}.video", self.flow))
    }

    /// The size of a segment; `None` if the video does not have it.
    pub fn bytes(&self, representation: usize, segment: u32) -> Option<Bytes> {
        let exists = representation < self.ladder.representation.len() && segment < self.segments();
        let sizes = SegmentSizes::new(self.draws(), self.size_variation);
        exists.then(|| sizes.bytes(&self.ladder, segment, representation))
    }

    /// Number of segments.
    pub fn segments(&self) -> u32 {
        let ladder = self.ladder.clone();
        PlayerConfig { ladder, duration_s: self.duration_s, ..PlayerConfig::default() }.segments()
    }
}

/// Path of a segment on the server: `/REPRESENTATION/SEGMENT`, both counted from 0.
pub fn segment_path(representation: usize, segment: u32) -> String {
    format!("/{representation}/{segment}")
}

/// Representation and number of the segment with this path; `None` if the path has another form.
pub fn segment_of(path: &str) -> Option<(usize, u32)> {
    let (representation, segment) = path.strip_prefix('/')?.split_once('/')?;
    let found = (representation.parse().ok()?, segment.parse().ok()?);
    // Each segment has one path only: `/01/+2` is not the path of a segment.
    (segment_path(found.0, found.1) == path).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_has_one_path() {
        assert_eq!(segment_of(&segment_path(11, 29)), Some((11, 29)));
        for path in
            ["", "/", "/1", "/1/", "//1", "/01/2", "/1/+2", "/1/2/", "/1/2?a", "/-1/2", "/1/4294967296"]
        {
            assert_eq!(segment_of(path), None, "{path}");
        }
    }

    #[test]
    fn a_description_survives_json_and_keeps_all_sizes() {
        let description = VideoDescription::of(&PlayerConfig::default(), u64::MAX, 3);
        let text = serde_json::to_string(&description).expect("plain data");
        let read: VideoDescription = serde_json::from_str(&text).expect("the same data");
        assert_eq!(read, description);
        assert_eq!(description.segments(), 30);
        for segment in 0..30 {
            assert_eq!(description.bytes(11, segment), read.bytes(11, segment));
        }
        assert_eq!((read.bytes(12, 0), read.bytes(0, 30)), (None, None), "the video has no such segment");
    }

    #[test]
    fn an_invalid_video_is_refused() {
        let mut description = VideoDescription::of(&PlayerConfig::default(), 1, 0);
        description.duration_s = f64::NAN;
        assert!(description.config(&PlayerConfig::default()).is_err());
        description.duration_s = 10.0;
        description.ladder.segment_s = 60.0;
        let error = description.config(&PlayerConfig::default()).expect_err("a segment does not fit");
        assert!(error.to_string().contains("max_buffer_s"), "{error}");
    }
}
