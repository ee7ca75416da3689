//! The quality of experience of a session, for a viewer.

use airpace_core::Refused;
use serde::{Deserialize, Serialize};

use crate::check::{check, pixels};
use crate::p1203::audio::{AudioCodec, audio_quality};
use crate::p1203::integration::{Wait, integrate};
use crate::p1203::video::{Screen, VideoSegment, per_second};
use crate::session::Session;

/// How the video is viewed. The default is a phone with a screen of 1920×1080.
///
/// Chosen: the screen of the Huawei P9, the phone in MORC §4.2.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Viewing {
    /// Width of the screen in pixels.
    pub width: u32,
    /// Height of the screen in pixels.
    pub height: u32,
    /// Whether the screen is a phone's or tablet's. On such a screen, viewers notice less of a low quality.
    pub handheld: bool,
    /// The audio of the video. If absent, its quality is perfect. The player does not download it.
    pub audio: Option<Audio>,
    /// Whether Amendment 1 of ITU-T P.1203.3 applies: stalls of more than 15 s in total, and very low audio quality, lower
    /// the score further.
    ///
    /// Chosen: yes, as in the Recommendation in force.
    pub amendment_1: bool,
}

/// The audio of a video.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Audio {
    /// Codec.
    pub codec: AudioCodec,
    /// Bitrate in kbit/s (10³ bits per second).
    pub bitrate_kbps: f64,
}

impl Default for Viewing {
    fn default() -> Viewing {
        Viewing { width: 1920, height: 1080, handheld: true, audio: None, amendment_1: true }
    }
}

/// Range of an audio bitrate in kbit/s.
///
/// Chosen: from speech to lossless audio.
const AUDIO_KBPS: (f64, f64) = (1.0, 10_000.0);

impl Viewing {
    /// A television with a screen of 3840×2160 (4K).
    pub fn television() -> Viewing {
        Viewing { width: 3840, height: 2160, handheld: false, ..Viewing::default() }
    }

    /// Rejects an invalid screen or bitrate; the error names key and remedy.
    pub fn validate(&self) -> Result<(), Refused> {
        pixels("width", self.width)?;
        pixels("height", self.height)?;
        self.audio.map_or(Ok(()), |audio| {
            check("audio.bitrate_kbps", audio.bitrate_kbps, AUDIO_KBPS, "kbit/s (128 is usual)")
        })
    }
}

/// The quality of experience of a session. All scores are mean opinion scores from 1 (bad) to 5 (excellent).
///
/// The score is the part of ITU-T P.1203 that consists of formulas, without its random forest; [`p1203`](crate::p1203)
/// describes the difference. To compare two schemes by their improvement, subtract the minimum of 1 from both scores.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Quality {
    /// The score of the session.
    pub score: f64,
    /// Quality of picture and sound, without the stalls (O.35).
    pub without_stalls: f64,
    /// Quality of the stalls and of the start-up delay alone (O.23): 5 without any.
    pub stalling: f64,
    /// Quality of the picture of each second that was played (O.22).
    pub video: Vec<f64>,
}

impl Quality {
    /// The quality of the part of a session that was played. `None` if less than a second was played: ITU-T P.1203 has no
    /// score for a video that nobody saw.
    ///
    /// Fails if the viewing is invalid ([`Viewing::validate`]).
    pub fn of(session: &Session, viewing: &Viewing) -> Result<Option<Quality>, Refused> {
        viewing.validate()?;
        let screen = Screen {
            pixels: u64::from(viewing.width) * u64::from(viewing.height),
            handheld: viewing.handheld,
        };
        let video = per_second(&played(session), screen);
        let audio =
            (viewing.audio).map(|audio| vec![audio_quality(audio.codec, audio.bitrate_kbps); video.len()]);
        let integration = integrate(audio.as_deref(), &video, &waits(session), viewing.amendment_1);
        Ok(integration.map(|integration| Quality {
            score: integration.score,
            without_stalls: integration.without_stalls.clamp(1.0, 5.0),
            stalling: integration.stalling,
            video,
        }))
    }
}

/// The segments that were played; the last one may be cut.
fn played(session: &Session) -> Vec<VideoSegment> {
    let mut left_s = session.played_s;
    let mut played = vec![];
    for one in &session.segments {
        let length_s = left_s.min(session.ladder.segment_s);
        left_s -= length_s;
        let Some(representation) = session.ladder.representation.get(one.representation) else { continue };
        if length_s <= 0.0 {
            break;
        }
        played.push(VideoSegment {
            length_s,
            bitrate_kbps: one.bitrate_mbps * 1e3,
            pixels: u64::from(representation.width) * u64::from(representation.height),
            fps: representation.fps,
            codec: representation.codec,
            representation: one.representation,
        });
    }
    played
}

/// The start-up delay and the stalls, in order.
fn waits(session: &Session) -> Vec<Wait> {
    let start_up = session.start_up_s.map(|length_s| Wait { position_s: 0.0, length_s });
    let stalls =
        session.stalls.iter().map(|stall| Wait { position_s: stall.position_s, length_s: stall.length_s });
    start_up.into_iter().chain(stalls).collect()
}
