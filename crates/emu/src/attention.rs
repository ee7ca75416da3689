//! Absences of the emulator's thread from its interfaces. Packets that arrive during an absence wait until the thread
//! reads them, and the emulator cannot observe when they arrived.

use std::time::Duration;

use airpace_core::Time;

/// Maximum sleep of the event loop. An absence within a sleep is detected only if it outlasts the sleep.
///
/// Chosen: the maximum lateness of a fit run ([`MAX_LATENESS`](crate::audit::MAX_LATENESS)).
pub(crate) const MAX_SLEEP: Duration = Duration::from_millis(1);

/// Upper bounds on how long packets waited before the thread read them.
#[derive(Debug)]
pub(crate) struct Attention {
    /// Instant of the last check of the interfaces.
    checked: Time,
    /// Per interface: earliest possible arrival of a packet that has not been read yet.
    since: Vec<Time>,
    /// Per interface: whether packets may be left since its last read.
    is_behind: Vec<bool>,
}

impl Attention {
    /// Creates the state for this many interfaces, all of them empty now.
    pub(crate) fn new(interfaces: usize, now: Time) -> Attention {
        Attention { checked: now, since: vec![now; interfaces], is_behind: vec![false; interfaces] }
    }

    /// Notes that the interfaces were checked at `now`, after a sleep that started at `from` and was to last at most
    /// `asked`, or until a packet arrived. Returns the thread's absence since the previous check: the time in which it
    /// worked, was not scheduled, or was stopped.
    pub(crate) fn checked(&mut self, from: Time, asked: Duration, now: Time) -> Duration {
        let slept = (now - from).min(asked);
        let absent = (now - self.checked).saturating_sub(slept);
        self.checked = now;
        for (since, _) in self.since.iter_mut().zip(&self.is_behind).filter(|(_, is_behind)| !**is_behind) {
            *since = now - absent;
        }
        absent
    }

    /// Maximum wait of a packet that is read from this interface at `now`.
    pub(crate) fn waited(&self, interface: usize, now: Time) -> Duration {
        now - self.since[interface]
    }

    /// Notes that this interface was read; `is_behind` is whether packets may be left there.
    pub(crate) fn was_read(&mut self, interface: usize, is_behind: bool) {
        self.is_behind[interface] = is_behind;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: u64) -> Time {
        Time::from_nanos(micros * 1_000)
    }

    fn micros(count: u64) -> Duration {
        Duration::from_micros(count)
    }

    #[test]
    fn a_sleep_is_no_absence_and_what_outlasts_it_is() {
        let mut attention = Attention::new(1, at(0));
        assert_eq!(attention.checked(at(0), MAX_SLEEP, at(1_000)), Duration::ZERO, "it slept as asked");
        assert_eq!(attention.checked(at(1_000), MAX_SLEEP, at(1_300)), Duration::ZERO, "a packet came");
        // The thread works for 200 µs, and then sleeps.
        assert_eq!(attention.checked(at(1_500), MAX_SLEEP, at(2_500)), micros(200));
        // The process is stopped during a sleep.
        assert_eq!(attention.checked(at(2_500), MAX_SLEEP, at(302_500)), micros(299_000));
        assert_eq!(attention.waited(0, at(302_600)), micros(299_100), "a packet may have waited as long");
        // The process is stopped while it works.
        assert_eq!(attention.checked(at(600_000), micros(500), at(600_500)), micros(297_500));
    }

    #[test]
    fn packets_that_are_left_at_an_interface_go_on_waiting() {
        let mut attention = Attention::new(2, at(0));
        attention.checked(at(100), Duration::ZERO, at(100));
        attention.was_read(0, true);
        attention.was_read(1, false);
        attention.checked(at(400), Duration::ZERO, at(400));
        assert_eq!(attention.waited(0, at(400)), micros(400));
        assert_eq!(attention.waited(1, at(400)), micros(300));
        attention.was_read(0, false);
        attention.checked(at(400), MAX_SLEEP, at(900));
        assert_eq!(attention.waited(0, at(900)), Duration::ZERO);
    }
}
