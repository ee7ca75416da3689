//! A receiver that reports more than the true capacity.

use std::time::Duration;

use airpace_core::Time;
use airpace_path::ConfigError;
use airpace_path::config_error::{not_negative, positive};
use serde::Deserialize;

/// Maximum factor by which a receiver may exaggerate.
///
/// Chosen: with a larger factor, any sender's rate is practically unlimited.
const MAX_FACTOR: f64 = 1e3;

/// Misreporting of capacity in the feedback of a flow's receiver. The feedback of `pbe` contains a capacity; the
/// misreporting has no effect on the reports of other schemes' receivers.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Misreport {
    /// Ratio of the reported capacity and fair share to their true values; below 1, the receiver understates them.
    pub factor: f64,
    /// Start of the misreporting, in s of the run's clock.
    #[serde(default)]
    pub from_s: f64,
    /// Duration of each burst of misreporting, in s; requires `every_s`. If absent, the misreporting does not end.
    pub burst_s: Option<f64>,
    /// Time from the start of a burst to the start of the next burst, in s; requires `burst_s`.
    pub every_s: Option<f64>,
    /// Whether the receiver, while misreporting, denies that the bottleneck is in the Internet.
    #[serde(default)]
    pub denies_internet: bool,
}

impl Misreport {
    /// Whether the receiver misreports at `now`.
    pub fn is_on(&self, now: Time) -> bool {
        let from = Time::from_secs_f64(self.from_s);
        let past = now - from;
        match (self.burst_s, self.every_s) {
            _ if now < from => false,
            (Some(burst), Some(every)) => {
                let every = Duration::from_secs_f64(every).as_nanos().max(1);
                past.as_nanos() % every < Duration::from_secs_f64(burst).as_nanos()
            }
            _ => true,
        }
    }

    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        if positive("factor", self.factor)? > MAX_FACTOR {
            let reason = format!("is {}; the most is {MAX_FACTOR}", self.factor);
            return Err(ConfigError::new("factor", reason));
        }
        not_negative("from_s", self.from_s)?;
        match (self.burst_s, self.every_s) {
            (None, None) => Ok(()),
            (Some(_), None) => Err(ConfigError::new("every_s", "is missing; `burst_s` needs it")),
            (None, Some(_)) => Err(ConfigError::new("burst_s", "is missing; `every_s` needs it")),
            (Some(burst), Some(every)) => {
                positive("burst_s", burst)?;
                if positive("every_s", every)? <= burst {
                    let reason = format!("is {every}; it must be more than `burst_s` ({burst})");
                    return Err(ConfigError::new("every_s", reason));
                }
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bursts_come_again_and_again_from_their_beginning_on() {
        let lie = Misreport {
            factor: 4.0,
            from_s: 5.0,
            burst_s: Some(0.5),
            every_s: Some(2.0),
            denies_internet: false,
        };
        lie.check().unwrap();
        let on: Vec<u64> = (0..100).filter(|tenth| lie.is_on(Time::from_millis(tenth * 100))).collect();
        let expected: Vec<u64> = (0..100).filter(|tenth| *tenth >= 50 && (tenth - 50) % 20 < 5).collect();
        assert_eq!(on, expected);
        let always = Misreport { burst_s: None, every_s: None, ..lie };
        assert!(!always.is_on(Time::from_millis(4_999)) && always.is_on(Time::from_secs(999)));
    }

    #[test]
    fn what_makes_no_lie_is_refused_by_its_key() {
        let good =
            Misreport { factor: 2.0, from_s: 0.0, burst_s: None, every_s: None, denies_internet: true };
        let key = |lie: Misreport| lie.check().unwrap_err().key;
        assert_eq!(key(Misreport { factor: 0.0, ..good }), "factor");
        assert_eq!(key(Misreport { factor: 1e4, ..good }), "factor");
        assert_eq!(key(Misreport { factor: f64::NAN, ..good }), "factor");
        assert_eq!(key(Misreport { from_s: -1.0, ..good }), "from_s");
        assert_eq!(key(Misreport { burst_s: Some(1.0), ..good }), "every_s");
        assert_eq!(key(Misreport { every_s: Some(1.0), ..good }), "burst_s");
        assert_eq!(key(Misreport { burst_s: Some(1.0), every_s: Some(1.0), ..good }), "every_s");
    }
}
