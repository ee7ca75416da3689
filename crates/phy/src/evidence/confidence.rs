//! Conversion of evidence in bits to probabilities, and thresholds for accepting messages.

/// Probability from `score` bits of evidence, which is log2 of the odds.
///
/// The score is limited to 14 bits: in about one of 2^14 cases, a result is wrong for a reason that the model does not
/// contain.
pub fn confidence(score: f32) -> f32 {
    if score.is_nan() {
        return 0.0;
    }
    1.0 / (1.0 + libm::exp2f(-score.clamp(-60.0, 14.0)))
}

/// log2 of the odds that two statements are both true, from the log2 odds of each. Assumes that they are rarely both
/// false.
pub fn all_true(first: f32, second: f32) -> f32 {
    let (least, most) = if first < second { (first, second) } else { (second, first) };
    least - libm::log2f(1.0 + libm::exp2f(least - most))
}

/// Thresholds for accepting messages, and the maximum waiting time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Caution {
    /// Minimum confidence for accepting a message of a known user, or for a broadcast RNTI.
    pub known: f32,
    /// Minimum confidence for accepting a message of an unknown user at once. Otherwise it waits for more messages of
    /// that user.
    pub new: f32,
    /// Maximum waiting time of a message (subframes).
    pub patience: u64,
    /// Minimum confidence for accepting a message at the end of its waiting time.
    pub last: f32,
}

impl Default for Caution {
    /// Chosen: if confidences are true probabilities, these thresholds alone keep the share of false messages well
    /// below one in a hundred, because the confidences of most messages are far above the thresholds.
    fn default() -> Self {
        Caution { known: 0.8, new: 0.99, patience: 100, last: 0.8 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_is_as_strong_as_its_links() {
        assert_eq!(all_true(20.0, f32::INFINITY), 20.0);
        assert_eq!((all_true(3.0, 3.0), all_true(-2.0, 40.0)), (2.0, -2.0));
    }

    #[test]
    fn bits_are_odds() {
        assert_eq!(confidence(0.0), 0.5);
        assert!((confidence(1.0) - 2.0 / 3.0).abs() < 1e-6);
        assert!((confidence(-1.0) - 1.0 / 3.0).abs() < 1e-6);
        assert!(confidence(1e9) < 1.0 && confidence(-1e9) > 0.0 && confidence(f32::NAN) == 0.0);
    }
}
