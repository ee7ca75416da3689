//! From evidence in bits to probabilities, and the limits for believing.

/// The probability of something that has `score` bits of evidence: log2 of the odds.
///
/// No evidence makes it surer than one in 2^14: that often, something is wrong that the model does not know.
pub fn confidence(score: f32) -> f32 {
    if score.is_nan() {
        return 0.0;
    }
    1.0 / (1.0 + libm::exp2f(-score.clamp(-60.0, 14.0)))
}

/// log2 of the odds that two things are both true, from the odds of each. The two are rarely both false.
pub fn all_true(first: f32, second: f32) -> f32 {
    let (least, most) = if first < second { (first, second) } else { (second, first) };
    least - libm::log2f(1.0 + libm::exp2f(least - most))
}

/// What to believe, and when.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Caution {
    /// A message of a known user, or of everyone's RNTIs, is believed from this confidence on.
    pub known: f32,
    /// A message of an unknown user leaves at once from this confidence on; otherwise it waits for more messages of
    /// that user.
    pub new: f32,
    /// Subframes that a message may wait.
    pub patience: u64,
    /// A message that has waited in vain is believed from this confidence on.
    pub last: f32,
}

impl Default for Caution {
    /// Chosen: if confidences are true, these limits alone keep false output well below one in a hundred, because most
    /// messages are far above them.
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
