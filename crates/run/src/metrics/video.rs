//! Metrics of the adaptive video of a flow: start-up, stalls and quality for the viewer, and rates of the segments.
//!
//! | metric | definition |
//! | --- | --- |
//! | start-up | from the start of the video to its first picture |
//! | stalled share | length of all interruptions over played time and interruptions |
//! | bitrate | mean of the average bitrates of the representations of all segments that arrived |
//! | score | quality of experience from 1 to 5: the formulas of ITU-T P.1203 without its random forest |
//! | throughput | bytes of all segments over the sum of their times from the request to the last byte |
//! | throughput of segments | of each segment its bytes over its time; the first, the mean and the standard deviation |

use airpace_event::{Segment, Viewing};
use serde::{Deserialize, Serialize};

use super::rounded;

/// The adaptive video of a flow over a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Video {
    /// Time from the start of the video until its first picture; `None` if playback has not started.
    pub start_up_s: Option<f64>,
    /// Number of interruptions of playback.
    pub stalls: u64,
    /// Total length of the interruptions.
    pub stalled_s: f64,
    /// Length of the interruptions over played time and interruptions, in [0, 1]; `None` if playback has not started.
    pub stalled_share: Option<f64>,
    /// Media played.
    pub played_s: f64,
    /// Mean of the average bitrates of the representations of all segments that arrived; `None` without segments.
    pub bitrate_mbps: Option<f64>,
    /// Number of pairs of successive segments with different representations.
    pub switches: u64,
    /// Number of segments that the player abandoned.
    pub abandoned: u64,
    /// Quality of experience from 1 (bad) to 5 (excellent); `None` if less than a second was played.
    ///
    /// Source: MORC §4.2 (video mean opinion score)
    ///
    /// Differs: MORC's score is that of an app by Huawei, whose formula is not published. This one is of ITU-T P.1203.
    pub score: Option<f64>,
    /// Bytes of all segments over the sum of their download times: the server's throughput while it sends.
    pub throughput_mbps: Option<f64>,
    /// Throughput of single segments.
    pub segment_mbps: SegmentRates,
    /// Every segment that arrived, in order.
    pub each: Vec<SegmentTimes>,
}

/// Throughput of the segments of a video in Mbit/s; `None` if too few segments arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SegmentRates {
    /// The first segment.
    ///
    /// Source: MORC §4.2 (initial throughput)
    pub first: Option<f64>,
    /// The arithmetic mean.
    pub mean: Option<f64>,
    /// The sample standard deviation, whose square is the variance; `None` for fewer than two.
    pub sigma: Option<f64>,
}

/// A segment of a video that arrived completely.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SegmentTimes {
    /// Time of the request, since the start of the run.
    pub requested_s: f64,
    /// Time from the request to the last byte.
    pub download_s: f64,
    /// Size in bytes.
    pub bytes: u64,
    /// Average bitrate of the representation.
    pub bitrate_mbps: f64,
    /// Height of the pictures, in pixels.
    pub height: u32,
}

impl Video {
    /// The metrics of a viewing.
    pub fn of(viewing: &Viewing) -> Video {
        let Viewing { start_up_s, played_s, stalls, switches, abandoned, score, segments } = viewing;
        // The sum of no numbers is -0.
        let stalled_s = stalls.iter().map(|stall| stall.length_s).fold(0.0, |sum, length_s| sum + length_s);
        let rates: Vec<f64> = segments.iter().filter_map(|one| rate(one.bytes.0, one.download_s)).collect();
        let bytes = segments.iter().map(|one| one.bytes.0).sum();
        let download_s = segments.iter().map(|one| one.download_s).sum();
        let bitrates: Vec<f64> = segments.iter().map(|one| one.bitrate_mbps).collect();
        Video {
            start_up_s: start_up_s.map(rounded),
            stalls: stalls.len() as u64,
            stalled_s: rounded(stalled_s),
            stalled_share: Some(stalled_s / (stalled_s + played_s))
                .filter(|share| share.is_finite())
                .map(rounded),
            played_s: rounded(*played_s),
            bitrate_mbps: mean(&bitrates).map(rounded),
            switches: *switches,
            abandoned: *abandoned,
            score: score.map(rounded),
            throughput_mbps: rate(bytes, download_s).map(rounded),
            segment_mbps: SegmentRates {
                first: rates.first().copied().map(rounded),
                mean: mean(&rates).map(rounded),
                sigma: sigma(&rates).map(rounded),
            },
            each: segments.iter().map(SegmentTimes::of).collect(),
        }
    }
}

impl SegmentTimes {
    fn of(segment: &Segment) -> SegmentTimes {
        SegmentTimes {
            requested_s: rounded(segment.requested_s),
            download_s: rounded(segment.download_s),
            bytes: segment.bytes.0,
            bitrate_mbps: segment.bitrate_mbps,
            height: segment.height,
        }
    }
}

/// Rate in Mbit/s of bytes in a time; `None` if no time passed.
fn rate(bytes: u64, seconds: f64) -> Option<f64> {
    (seconds > 0.0).then(|| bytes as f64 * 8e-6 / seconds)
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

fn sigma(values: &[f64]) -> Option<f64> {
    let mean = mean(values).filter(|_| values.len() > 1)?;
    let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
    Some((squares / (values.len() - 1) as f64).sqrt())
}

#[cfg(test)]
mod tests {
    use airpace_core::Bytes;
    use airpace_event::Stall;

    use super::*;

    #[test]
    fn a_viewing_has_its_numbers() {
        let segment = |requested_s, download_s, bitrate_mbps| Segment {
            requested_s,
            download_s,
            bytes: Bytes(1_000_000),
            bitrate_mbps,
            height: 720,
        };
        let viewing = Viewing {
            start_up_s: Some(1.5),
            played_s: 6.0,
            stalls: vec![Stall { start_s: 4.0, length_s: 0.5 }, Stall { start_s: 7.0, length_s: 1.5 }],
            switches: 1,
            abandoned: 0,
            score: Some(3.25),
            segments: vec![segment(0.0, 1.0, 2.0), segment(1.0, 4.0, 4.0)],
        };
        let video = Video::of(&viewing);
        assert_eq!((video.start_up_s, video.score), (Some(1.5), Some(3.25)));
        assert_eq!((video.stalls, video.stalled_s, video.stalled_share), (2, 2.0, Some(0.25)));
        assert_eq!(video.bitrate_mbps, Some(3.0));
        assert_eq!(video.throughput_mbps, Some(3.2), "2 MB in 5 s");
        let SegmentRates { first, mean, sigma } = video.segment_mbps;
        assert_eq!((first, mean, sigma), (Some(8.0), Some(5.0), Some(4.242641)), "8 and 2 Mbit/s");
        assert_eq!(video.each[1].requested_s, 1.0);
    }

    #[test]
    fn a_video_that_never_started_has_no_share_of_stalls() {
        let video = Video::of(&Viewing::default());
        assert_eq!((video.start_up_s, video.stalled_share, video.bitrate_mbps), (None, None, None));
        assert_eq!(video.segment_mbps, SegmentRates::default());
        assert!(video.stalled_s.is_sign_positive(), "not -0");
    }
}
