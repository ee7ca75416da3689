//! Quality of experience by the formulas of ITU-T P.1203, mode 0, which needs only metadata: codec, resolution, frame rate
//! and bitrate of each segment, and the stalls.
//!
//! # Parts of the model
//!
//! This is the part of ITU-T P.1203 that consists of formulas. **It is not an implementation of the Recommendation**, and
//! its score is not the Recommendation's output O.46:
//!
//! | output | module | here |
//! | --- | --- | --- |
//! | O.21, audio quality of each second | P.1203.2 | complete: [`audio`] |
//! | O.22, video quality of each second | P.1203.1, mode 0, H.264 | complete: [`video`]; H.265 and VP9 by a mapping of TU Ilmenau that no Recommendation contains |
//! | O.23, stalling quality | P.1203.3 | complete: [`integration`] |
//! | O.34, audiovisual quality of each second | P.1203.3 | complete |
//! | O.35, audiovisual quality of the session | P.1203.3 | complete |
//! | O.46, quality of the session | P.1203.3 | **without the random forest**: the score is the formula that has a weight of 75 % in O.46; the forest of 20 trees has the other 25 % |
//!
//! The trees are left out because we may not distribute them: the copy of the reference implementation may be used for
//! non-commercial research only, and its licence forbids to merge, publish or distribute it. The score therefore also
//! leaves out the linear map that P.1203.3 applies to the sum (0.028 + 0.981 · x). In nine examples of the reference
//! implementation, of 9 s to 298 s and without Amendment 1, the score is between 0.10 below and 0.16 above O.46 (a test has
//! the values).
//!
//! P.1203 is validated for H.264 up to 1920×1080, and for sessions of one to five minutes.
//! Scores of 4K, of H.265 and of other lengths are extrapolations: compare schemes with them, and do not read them as
//! opinions of viewers. The vMOS in MORC §4.2 comes from an application of Huawei whose formulas we have not
//! found published; it has the scale of 1 to 5 in common with this score, and nothing else.
//!
//! The reference implementation names holders of rights on these Recommendations, and its licence excludes patents. The
//! licence of this crate covers our code only: it gives no licence for patents of others.
//!
//! Clauses and equations are numbered as in the comments of the reference implementation.
//!
//! Source: ITU-T P.1203 (10/2017), P.1203.1 (10/2017), P.1203.2 (10/2017), P.1203.3 (10/2017) with Amendment 1 (01/2019);
//! itu-p1203, version 1.10.0 (facts only)

pub mod audio;
pub mod integration;
pub mod video;

/// Minimum of a mean opinion score (MOS) on the scale of the quality modules.
///
/// Source: ITU-T P.1203.1 (10/2017), the scale of mean opinion scores
const MOS_MIN: f64 = 1.05;

/// Maximum of a mean opinion score on the scale of the quality modules.
///
/// Source: ITU-T P.1203.1 (10/2017), the scale of mean opinion scores
const MOS_MAX: f64 = 4.9;

/// Minimum of the quality Q at which the mean opinion score rises with Q. Below, the cubic term makes it fall.
///
/// Chosen: the first multiple of the step of `quality_of` at which it is above `MOS_MIN`.
const Q_RISING: f64 = 3.25;

/// The mean opinion score, 1.05 to 4.9, of a quality Q from 0 (worst) to 100 (best). A quality beyond these limits has the
/// score of the limit.
///
/// Source: ITU-T P.1203.1 (10/2017), the scale of mean opinion scores
fn mos_of(quality: f64) -> f64 {
    let quality = percent(quality);
    let linear = MOS_MIN + (MOS_MAX - MOS_MIN) * quality / 100.0;
    let cubic = quality * (quality - 60.0) * (100.0 - quality) * 7e-6;
    (linear + cubic).clamp(MOS_MIN, MOS_MAX)
}

/// The quality Q, 0 (worst) to 100 (best), of a mean opinion score: the inverse of `mos_of`.
///
/// Source: ITU-T P.1203.1 (10/2017), the scale of mean opinion scores
fn quality_of(mos: f64) -> f64 {
    if mos <= MOS_MIN {
        return 0.0;
    }
    if mos >= MOS_MAX {
        return 100.0;
    }
    // The score rises from Q_RISING on, so that halving an interval finds its only point with this score.
    let (mut low, mut high) = (Q_RISING, 100.0);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if mos_of(middle) < mos { low = middle } else { high = middle }
    }
    (low + high) / 2.0
}

/// `value` limited to a percentage, 0 to 100.
fn percent(value: f64) -> f64 {
    value.clamp(0.0, 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quality_and_score_are_inverse() {
        for step in 0..=970 {
            let quality = 3.25 + f64::from(step) * 0.0997;
            let back = quality_of(mos_of(quality));
            assert!((back - quality).abs() < 1e-9, "{quality} came back as {back}");
        }
        assert_eq!((quality_of(1.0), quality_of(5.0)), (0.0, 100.0), "scores beyond the scale");
        assert_eq!((mos_of(-5.0), mos_of(0.0), mos_of(100.0)), (1.05, 1.05, 4.9));
    }
}
