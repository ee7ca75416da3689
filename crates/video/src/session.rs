//! The report on a session of a player.

use serde::{Deserialize, Serialize};

use crate::ladder::Ladder;
use crate::rule::Rule;

/// The report on a session, from the user's start of the video until the report. All times are in seconds; instants are
/// seconds since the start of the session.
///
/// Start-up, played time and stalls add up to the length of the session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Session {
    /// The adaptation rule.
    pub rule: Rule,
    /// The ladder; segments name their representations by index.
    pub ladder: Ladder,
    /// State of the player at the time of the report.
    pub state: State,
    /// Length of the session. The session ends with the video.
    pub elapsed_s: f64,
    /// Start-up delay: time until the first picture. `None` if playback has not started; the length of the session is then
    /// the time waited.
    pub start_up_s: Option<f64>,
    /// Media played.
    pub played_s: f64,
    /// Total length of the stalls.
    pub stalled_s: f64,
    /// Interruptions of playback, in order.
    pub stalls: Vec<Stall>,
    /// Number of pairs of successive segments with different representations.
    pub switches: u32,
    /// Mean of the average bitrates of the representations of all segments that arrived, in Mbit/s; 0 without segments.
    pub mean_bitrate_mbps: f64,
    /// Number of segments that were abandoned and requested in a lower representation.
    pub abandoned: u32,
    /// Bytes of abandoned segments that arrived before the player abandoned them.
    pub abandoned_bytes: u64,
    /// All segments that arrived completely, in order.
    pub segments: Vec<SegmentReport>,
    /// Course of the buffer's level: its corners. The level is linear between two samples, and jumps where two samples have
    /// one time.
    pub buffer: Vec<BufferSample>,
}

/// State of a player.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// The video has not started: the buffer is below the start-up threshold.
    StartUp,
    /// The video plays. A segment is being downloaded, or all segments are.
    Playing,
    /// The video was interrupted: the buffer ran empty, and is below the threshold for playback to continue.
    Stalled,
    /// The video plays, the buffer is full, and no segment is being downloaded.
    Waiting,
    /// The whole video was played.
    Ended,
}

/// An interruption of playback: the buffer ran empty.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stall {
    /// Start of the stall.
    pub start_s: f64,
    /// Position in the video: media played before the stall.
    pub position_s: f64,
    /// Length of the stall, up to the time of the report.
    pub length_s: f64,
}

/// A segment that arrived completely.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SegmentReport {
    /// Number of the segment, from 0.
    pub segment: u32,
    /// Index of the representation in the ladder.
    pub representation: usize,
    /// Size in bytes.
    pub bytes: u64,
    /// Bitrate of this segment in Mbit/s: its size divided by the length of its media.
    pub bitrate_mbps: f64,
    /// Time of the request; of the second request if the first one was abandoned.
    pub requested_s: f64,
    /// Time from the request until the last byte.
    pub download_s: f64,
    /// Size divided by the download time, in Mbit/s.
    pub throughput_mbps: f64,
}

/// A corner of the course of the buffer's level.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct BufferSample {
    /// Time of the sample.
    pub time_s: f64,
    /// Media in the buffer, in seconds.
    pub level_s: f64,
}
