//! Base delay and current delay. Their difference is the queueing delay.

use std::collections::VecDeque;

use airpace_core::Time;

/// Converts delays with an unknown clock offset to delays relative to the first delay. The results are signed and do
/// not wrap.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unwrap {
    first_us: Option<u32>,
}

impl Unwrap {
    /// The delay minus the first delay.
    pub fn relative_us(&mut self, delay_us: u32) -> i64 {
        let first_us = *self.first_us.get_or_insert(delay_us);
        i64::from(delay_us.wrapping_sub(first_us) as i32)
    }
}

/// The delay of an empty path: the minimum of the minimum delays of the last minutes. It can rise when the route
/// becomes longer.
///
/// Source: RFC 6817 §2.4.2 (`base_delays`, `update_base_delay`)
#[derive(Clone, Debug)]
pub struct BaseDelay {
    minutes_us: VecDeque<i64>,
    length: usize,
    minute: u64,
}

impl BaseDelay {
    /// A base delay over the last `minutes` minutes.
    pub fn new(minutes: usize) -> BaseDelay {
        BaseDelay { minutes_us: VecDeque::with_capacity(minutes), length: minutes, minute: 0 }
    }

    /// Adds a delay.
    pub fn update(&mut self, now: Time, delay_us: i64) {
        let minute = now.as_millis() / 60_000;
        match self.minutes_us.back_mut().filter(|_| minute == self.minute) {
            Some(least_us) => *least_us = delay_us.min(*least_us),
            None => {
                if self.minutes_us.len() == self.length {
                    self.minutes_us.pop_front();
                }
                self.minutes_us.push_back(delay_us);
                self.minute = minute;
            }
        }
    }

    /// The base delay; `None` before the first delay.
    pub fn get_us(&self) -> Option<i64> {
        self.minutes_us.iter().copied().min()
    }
}

/// The current delay: the minimum of the last few delays, so that jitter and delayed ACKs do not affect the result.
///
/// Source: RFC 6817 §2.4.2 (`current_delays`, `update_current_delay`, `FILTER`: the minimum)
#[derive(Clone, Debug)]
pub struct CurrentDelay {
    delays_us: VecDeque<i64>,
    length: usize,
}

impl CurrentDelay {
    /// A current delay over the last `length` delays.
    pub fn new(length: usize) -> CurrentDelay {
        CurrentDelay { delays_us: VecDeque::with_capacity(length), length }
    }

    /// Adds a delay.
    pub fn update(&mut self, delay_us: i64) {
        if self.delays_us.len() == self.length {
            self.delays_us.pop_front();
        }
        self.delays_us.push_back(delay_us);
    }

    /// The current delay; `None` before the first delay.
    pub fn get_us(&self) -> Option<i64> {
        self.delays_us.iter().copied().min()
    }
}

/// Base delay and current delay of one direction.
#[derive(Clone, Debug)]
pub struct QueueingDelay {
    base: BaseDelay,
    current: CurrentDelay,
}

impl QueueingDelay {
    /// The base delay covers `minutes` minutes, the current delay the last `length` delays.
    pub fn new(minutes: usize, length: usize) -> QueueingDelay {
        QueueingDelay { base: BaseDelay::new(minutes), current: CurrentDelay::new(length) }
    }

    /// Adds a delay.
    pub fn update(&mut self, now: Time, delay_us: i64) {
        self.base.update(now, delay_us);
        self.current.update(delay_us);
    }

    /// The queueing delay: the current delay minus the delay of an empty path, in µs; `None` before the first delay.
    pub fn get_us(&self) -> Option<i64> {
        Some(self.current.get_us()? - self.base.get_us()?)
    }

    /// The delay of an empty path, in µs; `None` before the first delay.
    pub fn base_us(&self) -> Option<i64> {
        self.base.get_us()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wraps_and_offsets_do_not_matter() {
        let mut unwrap = Unwrap::default();
        assert_eq!(unwrap.relative_us(u32::MAX - 10), 0);
        assert_eq!(unwrap.relative_us(9), 20);
        assert_eq!(unwrap.relative_us(u32::MAX - 15), -5);
    }

    #[test]
    fn the_base_is_that_of_the_last_minutes() {
        let mut base = BaseDelay::new(3);
        for (second, delay_us, expected_us) in [
            (5, 50, 50),
            (30, 40, 40),
            (61, 70, 40),
            (90, 60, 40),
            (130, 80, 40),
            (185, 90, 60),
            (250, 90, 80),
        ] {
            base.update(Time::from_secs(second), delay_us);
            assert_eq!(base.get_us(), Some(expected_us), "after {second} s");
        }
    }

    #[test]
    fn one_late_packet_is_no_queue() {
        let mut delay = QueueingDelay::new(10, 4);
        assert_eq!(delay.get_us(), None);
        for (delay_us, expected_us) in
            [(100, 0), (900, 0), (110, 0), (120, 0), (130, 10), (140, 10), (150, 20)]
        {
            delay.update(Time::ZERO, delay_us);
            assert_eq!(delay.get_us(), Some(expected_us));
        }
    }
}
