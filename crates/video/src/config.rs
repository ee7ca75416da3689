//! The configuration of a player: its keys, their defaults and their checks.

use std::time::Duration;

use airpace_core::{Refused, Remedy};
use serde::{Deserialize, Serialize};

use crate::check::check;
use crate::ladder::Ladder;
use crate::rule::Rule;

/// The keys of a player.
///
/// Chosen: the defaults of the three buffers are those of ExoPlayer 2.19 (`DefaultLoadControl`), which many apps for phones
/// use.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PlayerConfig {
    /// The representations and the length of a segment.
    pub ladder: Ladder,
    /// Length of the video in seconds; rounded up to whole segments.
    ///
    /// Chosen: 120 s, within the one to five minutes for which ITU-T P.1203 is validated.
    pub duration_s: f64,
    /// Coefficient of variation of the segments' sizes (standard deviation divided by mean); 0 for a constant bitrate.
    ///
    /// Chosen: 0.3, with which one segment in 160 has twice its average size.
    pub size_variation: f64,
    /// Buffered media with which playback starts, in seconds.
    ///
    /// Source: ExoPlayer DefaultLoadControl.java
    pub start_up_buffer_s: f64,
    /// Buffered media with which playback continues after a stall, in seconds.
    ///
    /// Source: ExoPlayer DefaultLoadControl.java
    pub rebuffer_s: f64,
    /// Maximum buffer in seconds. The player requests a segment only if the buffer has room for it.
    ///
    /// Source: ExoPlayer DefaultLoadControl.java
    pub max_buffer_s: f64,
    /// The rule by which the player chooses representations.
    pub rule: Rule,
    /// Whether the player abandons a segment that would arrive too late, and requests it in a lower representation.
    pub abandon: bool,
}

impl Default for PlayerConfig {
    fn default() -> PlayerConfig {
        PlayerConfig {
            ladder: Ladder::default(),
            duration_s: 120.0,
            size_variation: 0.3,
            start_up_buffer_s: 2.5,
            rebuffer_s: 5.0,
            max_buffer_s: 50.0,
            rule: Rule::default(),
            abandon: false,
        }
    }
}

/// Range of the video's length and of the maximum buffer in seconds.
///
/// Chosen: up to a day, so that a report fits into memory.
const LENGTH_S: (f64, f64) = (0.1, 86_400.0);

/// Range of the coefficient of variation of the segments' sizes.
///
/// Chosen: up to 0.6, the limits of the sizes change their mean by at most 2 %.
const VARIATION: (f64, f64) = (0.0, 0.6);

impl PlayerConfig {
    /// Rejects an invalid configuration; the error names key and remedy.
    pub fn validate(&self) -> Result<(), Refused> {
        self.ladder.validate_in("ladder.")?;
        check("duration_s", self.duration_s, LENGTH_S, "s (120 is usual)")?;
        check("size_variation", self.size_variation, VARIATION, "(0 is a constant bitrate, 0.3 is usual)")?;
        check("start_up_buffer_s", self.start_up_buffer_s, LENGTH_S, "s (2.5 is usual)")?;
        check("rebuffer_s", self.rebuffer_s, LENGTH_S, "s (5 is usual)")?;
        check("max_buffer_s", self.max_buffer_s, LENGTH_S, "s (50 is usual)")?;
        self.room("start_up_buffer_s", self.start_up_buffer_s)?;
        self.room("rebuffer_s", self.rebuffer_s)
    }

    /// Rejects a maximum buffer below the threshold `key` plus one segment. Such a buffer could be full while the player
    /// still waits for the threshold.
    fn room(&self, key: &str, threshold_s: f64) -> Result<(), Refused> {
        let least = threshold_s + self.ladder.segment_s;
        if self.max_buffer_s >= least {
            return Ok(());
        }
        let facts =
            format!("`max_buffer_s` is {}, less than `{key}` plus a segment ({least} s)", self.max_buffer_s);
        Err(Refused::new(facts).but(Remedy::new(format!("raise it to {least} or more, or lower `{key}`"))))
    }

    /// Number of segments of the video; at least 1.
    pub fn segments(&self) -> u32 {
        // Lengths such as 0.3 s are not exact. The tolerance avoids an additional segment without length.
        (libm::ceil(self.duration_s / self.ladder.segment_s - 1e-9) as u32).max(1)
    }

    /// Buffered media with which playback starts.
    pub(crate) fn start_up_buffer(&self) -> Duration {
        seconds(self.start_up_buffer_s)
    }

    /// Buffered media with which playback continues after a stall.
    pub(crate) fn rebuffer(&self) -> Duration {
        seconds(self.rebuffer_s)
    }

    /// Maximum buffer.
    pub(crate) fn max_buffer(&self) -> Duration {
        seconds(self.max_buffer_s)
    }
}

/// The duration of this many seconds; zero if no duration has this length.
fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or_default()
}
