//! Handovers of one device: the times of the handovers, and the interruptions of the device's data.
//!
//! At a handover, unacknowledged packets return to the queue and are forwarded without loss; HARQ, link adaptation and
//! scheduler are reset; further carriers are deactivated; and the device gets a new C-RNTI.
//!
//! Source: TR 36.881 §5.2 (45–50 ms for the steps of a handover), TS 36.331 §5.3.5.4

use airpace_core::Rng;

use super::config::HandoverConfig;

/// The handovers of one device.
#[derive(Clone, Debug)]
pub(super) struct Handover {
    config: HandoverConfig,
    /// Subframes in which handovers start, in order.
    begins: Vec<u64>,
    next: usize,
    resumes_at: u64,
    rng: Rng,
}

impl Handover {
    pub(super) fn new(config: &HandoverConfig, times_s: &[f64], rng: Rng) -> Handover {
        let mut begins: Vec<u64> = times_s.iter().map(|&time_s| libm::ceil(time_s * 1e3) as u64).collect();
        begins.sort_unstable();
        Handover { config: config.clone(), begins, next: 0, resumes_at: 0, rng }
    }

    /// If a handover starts in subframe `now`, returns the subframe in which data transmission resumes.
    pub(super) fn begin(&mut self, now: u64) -> Option<u64> {
        if self.begins.get(self.next).is_none_or(|&begin| begin > now) {
            return None;
        }
        self.next += 1;
        let interruption_ms =
            self.rng.range(self.config.interruption_min_ms, self.config.interruption_max_ms);
        self.resumes_at = self.resumes_at.max(now + libm::ceil(interruption_ms) as u64);
        Some(self.resumes_at)
    }

    /// Whether the device is unreachable in subframe `now`.
    pub(super) fn is_interrupted(&self, now: u64) -> bool {
        now < self.resumes_at
    }
}

#[cfg(test)]
mod tests {
    use airpace_core::Streams;

    use super::*;

    #[test]
    fn an_interruption_takes_thirty_to_fifty_milliseconds() {
        let rng = Streams::new(1).stream("handover");
        let mut handover = Handover::new(&HandoverConfig::default(), &[2.0, 1.0], rng);
        assert_eq!(handover.begin(999), None);
        let resumes_at = handover.begin(1000).expect("begins at 1 s, whatever the order of the list");
        assert!((1030..=1050).contains(&resumes_at), "{resumes_at}");
        assert!(handover.is_interrupted(resumes_at - 1) && !handover.is_interrupted(resumes_at));
        assert!(handover.begin(2000).is_some() && handover.begin(9000).is_none());
    }
}
