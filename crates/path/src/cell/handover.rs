//! Handovers of one device: the times of the handovers, and the interruptions of the device's data.
//!
//! At a handover, unacknowledged packets return to the queue and are forwarded without loss; HARQ, link adaptation and
//! scheduler are reset; further carriers are deactivated; and the device gets a new C-RNTI.
//!
//! Where NR does not cover the device, the device is on carriers of LTE only. The unacknowledged packets of the carriers that
//! the device leaves are sent on the other carriers, in order.
//!
//! Source: TR 36.881 §5.2 (45–50 ms for the steps of a handover), TS 36.331 §5.3.5.4

use std::time::Duration;

use airpace_core::{Rng, Time};

use super::config::HandoverConfig;

/// The handovers of one device.
#[derive(Clone, Debug)]
pub(super) struct Handover {
    config: HandoverConfig,
    /// Times at which handovers start, in order. Handovers start with a millisecond.
    begins: Vec<Time>,
    next: usize,
    resumes_at: Time,
    rng: Rng,
}

impl Handover {
    pub(super) fn new(config: &HandoverConfig, times_s: &[f64], rng: Rng) -> Handover {
        let start = |&time_s: &f64| Time::from_millis(libm::ceil(time_s * 1e3) as u64);
        let mut begins: Vec<Time> = times_s.iter().map(start).collect();
        begins.sort_unstable();
        Handover { config: config.clone(), begins, next: 0, resumes_at: Time::ZERO, rng }
    }

    /// If a handover starts at `now`, returns the time at which data transmission resumes.
    pub(super) fn begin(&mut self, now: Time) -> Option<Time> {
        if self.begins.get(self.next).is_none_or(|&begin| begin > now) {
            return None;
        }
        self.next += 1;
        self.resumes_at = self.resumes_at.max(now + self.interruption());
        Some(self.resumes_at)
    }

    fn interruption(&mut self) -> Duration {
        let ms = self.rng.range(self.config.interruption_min_ms, self.config.interruption_max_ms);
        Duration::from_millis(libm::ceil(ms) as u64)
    }

    /// Time at which a device can use carriers of the other technology, to which it is handed over from `now` on.
    pub(super) fn change_technology(&mut self, now: Time) -> Time {
        now + self.interruption()
    }

    /// Interrupts the device's data at `now` for this time, because the device becomes connected again. Returns the time at
    /// which data transmission resumes.
    pub(super) fn interrupt(&mut self, now: Time, interruption: Duration) -> Time {
        self.resumes_at = self.resumes_at.max(now + interruption);
        self.resumes_at
    }

    /// Whether the device is unreachable at `now`.
    pub(super) fn is_interrupted(&self, now: Time) -> bool {
        now < self.resumes_at
    }
}

/// The technologies that cover a device over time.
#[derive(Clone, Debug, Default)]
pub(super) struct Coverage {
    /// Times at which NR starts (`true`) or stops to cover the device, in order. Changes occur with a millisecond.
    changes: Vec<(Time, bool)>,
    next: usize,
}

impl Coverage {
    /// Coverage by NR except in these spans (from, until) in s.
    pub(super) fn without_nr(spans_s: &[[f64; 2]]) -> Coverage {
        let time = |time_s: f64| Time::from_millis(libm::ceil(time_s * 1e3) as u64);
        let changes = spans_s.iter().flat_map(|&[from, until]| [(time(from), false), (time(until), true)]);
        Coverage { changes: changes.collect(), next: 0 }
    }

    /// If the coverage changes at `now`, returns whether NR covers the device from now on.
    pub(super) fn begin(&mut self, now: Time) -> Option<bool> {
        let due = self.changes[self.next..].iter().take_while(|(time, _)| *time <= now);
        let (count, last) = due.fold((0, None), |(count, _), &(_, has_nr)| (count + 1, Some(has_nr)));
        self.next += count;
        last
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
        let at = Time::from_millis;
        assert_eq!(handover.begin(at(999)), None);
        let resumes_at = handover.begin(at(1000)).expect("begins at 1 s, whatever the order of the list");
        assert!((at(1030)..=at(1050)).contains(&resumes_at), "{resumes_at}");
        let just_before = resumes_at - Duration::from_nanos(1);
        assert!(handover.is_interrupted(just_before) && !handover.is_interrupted(resumes_at));
        assert!(handover.begin(at(2000)).is_some() && handover.begin(at(9000)).is_none());
    }
}
