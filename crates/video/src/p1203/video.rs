//! Video quality (ITU-T P.1203.1, mode 0), and its extension to H.265 and VP9.

use crate::ladder::Codec;

use super::{mos_of, percent, quality_of};

/// Coefficients of the quantization that is estimated from bitrate, resolution and frame rate.
///
/// Source: ITU-T P.1203.1 (10/2017), a1 to a4 of mode 0
const QUANT: [f64; 4] = [11.9983519, -2.99991847, 41.2475074001, 0.13183165961];

/// Coefficients of the coding quality of a quantization.
///
/// Source: ITU-T P.1203.1 (10/2017), q1 to q3
const CODING: [f64; 3] = [4.66, -0.07, 4.06];

/// Coefficients of the degradation by upscaling.
///
/// Source: ITU-T P.1203.1 (10/2017), u1 and u2
const UPSCALING: [f64; 2] = [72.61, 0.32];

/// Coefficients of the degradation by a low frame rate.
///
/// Source: ITU-T P.1203.1 (10/2017), t1 to t3
const FRAME_RATE: [f64; 3] = [30.98, 1.29, 64.65];

/// Frame rate in Hz below which the frame rate lowers the quality.
///
/// Source: ITU-T P.1203.1 (10/2017), the degradation by the frame rate
const FULL_FRAME_RATE: f64 = 24.0;

/// Coefficients of the map from the score on a monitor to that on a hand-held screen, by rising power.
///
/// Source: ITU-T P.1203.1 (10/2017) §8.4.1 Eq. 13 (htv1 to htv4)
const HANDHELD: [f64; 4] = [-0.60293, 2.12382, -0.36936, 0.03409];

/// Coefficients of the map from the score of H.264 to that of H.265 at the same bitrate, by rising power.
///
/// The map was fitted to scores that VMAF gave six clips of 10 s, 360p to 2160p, at 0.2 to 40 Mbit/s.
///
/// Source: itu-p1203-codecextension README.md (Copyright 2018 Technische Universität Ilmenau, MIT licence)
const HEVC: [f64; 4] = [0.50008018, 0.17486221, 0.39430046, -0.05196039];

/// As `HEVC`, for VP9.
///
/// Source: itu-p1203-codecextension README.md (Copyright 2018 Technische Universität Ilmenau, MIT licence)
const VP9: [f64; 4] = [0.5284358, 0.32314399, 0.30953836, -0.04129014];

/// Time before and after a second whose bitrate counts for the second's quality, in seconds.
///
/// Source: ITU-T P.1203 (10/2017) §7.4 (the measurement window of 20 s)
const HALF_WINDOW_S: f64 = 10.0;

/// Part of a second that may lack at the end of the video if the second still gets a score, in seconds.
///
/// Chosen: as in the reference implementation, for segments whose lengths are not exact.
const LACK_S: f64 = 0.01;

/// A segment of video that was played.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VideoSegment {
    /// Length in seconds.
    pub length_s: f64,
    /// Bitrate in kbit/s (10³ bits per second).
    pub bitrate_kbps: f64,
    /// Pixels of the encoded picture: width times height.
    pub pixels: u64,
    /// Frames per second.
    pub fps: f64,
    /// Codec.
    pub codec: Codec,
    /// Identifier of the representation. Adjacent segments of one representation share their bitrate in a window of 20 s.
    pub representation: usize,
}

/// A screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Screen {
    /// Pixels: width times height.
    pub pixels: u64,
    /// Whether the screen is a phone's or tablet's.
    pub handheld: bool,
}

/// Video quality (O.22) of each second of a video on a screen: mean opinion scores from 1 to 5. An incomplete last second has
/// none.
///
/// Source: ITU-T P.1203 (10/2017) §7.4; ITU-T P.1203.1 (10/2017) §8.4.1
pub fn per_second(segments: &[VideoSegment], screen: Screen) -> Vec<f64> {
    let mut ends = Vec::with_capacity(segments.len());
    let mut end = 0.0;
    for one in segments {
        // Whole frames only; the tolerance is for lengths that are not exact, such as 5.48 s.
        end += libm::floor(one.length_s * one.fps + 1e-6) / one.fps;
        ends.push(end);
    }
    let seconds = libm::floor(end + LACK_S) as u32;
    (1..=seconds).map(|second| at_second(segments, &ends, f64::from(second), screen)).collect()
}

/// Quality of the second that ends at `time` (seconds). `ends` are the times at which the segments end.
fn at_second(segments: &[VideoSegment], ends: &[f64], time: f64, screen: Screen) -> f64 {
    let last = segments.len() - 1;
    let at = ends.iter().position(|&end| end > time - 1e-6).unwrap_or(last);
    let (from, until) = (time - HALF_WINDOW_S, time + HALF_WINDOW_S);
    let overlap = |index: usize| {
        let start = if index == 0 { 0.0 } else { ends[index - 1] };
        (ends[index].min(until) - start.max(from)).max(0.0)
    };
    let belongs = |index: usize| segments[index].representation == segments[at].representation;
    let first = (0..at).rev().take_while(|&index| belongs(index)).last().unwrap_or(at);
    let run = (first..=last).take_while(|&index| belongs(index));
    let (mut length, mut kbits) = (0.0, 0.0);
    for index in run {
        length += overlap(index);
        kbits += overlap(index) * segments[index].bitrate_kbps;
    }
    let bitrate_kbps = if length > 0.0 { kbits / length } else { segments[at].bitrate_kbps };
    score(&VideoSegment { bitrate_kbps, ..segments[at] }, screen)
}

/// Quality of a segment on a screen.
fn score(segment: &VideoSegment, screen: Screen) -> f64 {
    let h264 = h264_quality(segment.pixels, screen.pixels, segment.bitrate_kbps, segment.fps);
    let coded = match segment.codec {
        Codec::H264 => h264,
        Codec::Hevc => polynomial(&HEVC, h264),
        Codec::Vp9 => polynomial(&VP9, h264),
    };
    if screen.handheld { polynomial(&HANDHELD, coded) } else { coded }
}

/// Quality of H.264 on a monitor: a mean opinion score from 1.05 to 4.9. `pixels` are those of the encoded picture,
/// `display` those of the screen; the bitrate is in kbit/s, the frame rate in Hz.
///
/// Source: ITU-T P.1203.1 (10/2017), mode 0
pub fn h264_quality(pixels: u64, display: u64, bitrate_kbps: f64, fps: f64) -> f64 {
    let coding = percent(100.0 - quality_of(coding_mos(pixels, bitrate_kbps, fps)));
    // Degradation by upscaling to the screen.
    let scale = (display as f64 / pixels as f64).max(1.0);
    let upscaling = percent(UPSCALING[0] * libm::log10(UPSCALING[1] * (scale - 1.0) + 1.0));
    // Degradation by a low frame rate.
    let slow = (100.0 - coding - upscaling) * (FRAME_RATE[0] - FRAME_RATE[1] * fps) / (FRAME_RATE[2] + fps);
    let frame_rate = if fps < FULL_FRAME_RATE { percent(slow) } else { 0.0 };
    mos_of(100.0 - percent(coding + upscaling + frame_rate))
}

/// Mean opinion score of the coding alone, from the estimated quantization.
///
/// Source: ITU-T P.1203.1 (10/2017), mode 0
fn coding_mos(pixels: u64, bitrate_kbps: f64, fps: f64) -> f64 {
    let [a1, a2, a3, a4] = QUANT;
    let per_pixel = bitrate_kbps * bitrate_kbps / (pixels as f64 * fps);
    let quant = a1 + a2 * libm::log(a3 + libm::log(bitrate_kbps) + libm::log(per_pixel + a4));
    let [q1, q2, q3] = CODING;
    (q1 + q2 * libm::exp(q3 * quant)).clamp(1.0, 5.0)
}

/// The polynomial with these coefficients, by rising power, limited to 1 to 5.
fn polynomial(coefficients: &[f64; 4], x: f64) -> f64 {
    coefficients.iter().rev().fold(0.0, |sum, coefficient| sum * x + coefficient).clamp(1.0, 5.0)
}
