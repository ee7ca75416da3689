//! The application above a sender: when it runs, how fast it writes, and how much data it has.

use std::collections::VecDeque;
use std::time::Duration;

use airpace_cc::endpoint::{Backlog, Sender};
use airpace_core::{Bytes, Rate, Time};

use airpace_scenario::Flow;

/// Number of full packets that an application with pauses keeps written ahead of its sender while the application is
/// on. Bytes that are unsent when a pause starts are withdrawn.
///
/// Chosen: two packets, one to be sent and one that shows that the first packet is not the last.
const PACKETS_AHEAD: u64 = 2;

/// The application of one flow.
#[derive(Clone, Debug)]
pub(crate) struct Traffic {
    start: Time,
    stop: Time,
    pauses: Option<(Duration, Duration)>,
    /// Writes of an application with a rate; with `None`, the application writes as fast as the sender accepts data.
    writes: Option<Writes>,
    /// Data that the application has not written yet; `None` is unlimited.
    left: Option<Bytes>,
    /// Bytes that the application keeps written ahead of the sender, if it writes as fast as the sender accepts data.
    ahead: Bytes,
    is_on: bool,
    next_turn: Time,
}

/// Writes of an application that produces data at a rate, which may change.
#[derive(Clone, Debug)]
struct Writes {
    bytes: Bytes,
    /// Time between two writes; `None` while the rate is 0.
    gap: Option<Duration>,
    /// Time of the next write; [`Time::NEVER`] while the rate is 0.
    next: Time,
    /// Fraction of a gap that remained when the rate became 0.
    rest: f64,
    /// Later changes of the rate, the next change first.
    changes: VecDeque<(Time, Rate)>,
}

impl Writes {
    fn new(flow: &Flow, start: Time, bytes: Bytes) -> Option<Writes> {
        let gap = gap(Rate::from_mbps(flow.rate_mbps?), bytes);
        let changes = flow.schedule.iter().map(|change| (change.at(), change.rate())).collect();
        Some(Writes { bytes, gap, next: start, rest: 0.0, changes })
    }

    /// Restarts after a pause: the first write is due at `now`.
    fn restart(&mut self, now: Time) {
        while let Some((_, rate)) = self.due_change(now) {
            self.gap = gap(rate, self.bytes);
        }
        (self.next, self.rest) = (if self.gap.is_some() { now } else { Time::NEVER }, 0.0);
    }

    /// The next change of the rate, if it is due at `now`.
    fn due_change(&mut self, now: Time) -> Option<(Time, Rate)> {
        self.changes.front().filter(|(at, _)| *at <= now)?;
        self.changes.pop_front()
    }

    fn poll_timeout(&self) -> Time {
        self.changes.front().map_or(self.next, |(at, _)| self.next.min(*at))
    }

    /// Whether a write is due at `now`. The next write is then scheduled.
    fn pop(&mut self, now: Time) -> bool {
        let next = self.next.min(now);
        while let Some((at, rate)) = self.due_change(next) {
            self.change(at, rate);
        }
        match self.gap {
            Some(gap) if self.next <= now => {
                self.next += gap;
                true
            }
            _ => false,
        }
    }

    /// Changes the rate. The part of a packet that was already produced is kept.
    fn change(&mut self, at: Time, rate: Rate) {
        if let Some(gap) = self.gap {
            self.rest = (self.next - at).as_secs_f64() / gap.as_secs_f64();
        }
        self.gap = gap(rate, self.bytes);
        self.next = self.gap.map_or(Time::NEVER, |gap| at + gap.mul_f64(self.rest));
    }
}

/// Time between two writes of this size; `None` at a rate of 0.
fn gap(rate: Rate, bytes: Bytes) -> Option<Duration> {
    (rate > Rate::ZERO).then(|| rate.time_for(bytes))
}

impl Traffic {
    /// Creates the application of `flow`. The application starts `late` after the time in the scenario, and writes
    /// packets of size `mss`.
    pub(crate) fn new(flow: &Flow, late: Duration, mss: Bytes) -> Traffic {
        let start = flow.start() + late;
        let seconds = Duration::from_secs_f64;
        Traffic {
            start,
            stop: flow.stop(),
            pauses: flow.on_s.zip(flow.off_s).map(|(on, off)| (seconds(on), seconds(off))),
            writes: Writes::new(flow, start, mss),
            left: flow.size(),
            ahead: Bytes(PACKETS_AHEAD * mss.0),
            is_on: false,
            next_turn: start,
        }
    }

    /// Returns the sender's backlog before the application first runs.
    pub(crate) fn backlog(&mut self) -> Backlog {
        match (self.pauses, &self.writes, self.left) {
            (None, None, None) => Backlog::Unlimited,
            (None, None, Some(_)) => Backlog::Limited(self.left.replace(Bytes::ZERO).unwrap_or_default()),
            _ => Backlog::Limited(Bytes::ZERO),
        }
    }

    /// Returns the application's start time.
    pub(crate) fn start(&self) -> Time {
        self.start
    }

    /// Returns the time at which the application stops permanently.
    pub(crate) fn stop(&self) -> Time {
        self.stop
    }

    /// Returns the time at which [`Traffic::wake`] must be called next.
    pub(crate) fn poll_timeout(&self) -> Time {
        let writes = self.writes.as_ref().filter(|_| self.is_on);
        let write = writes.map_or(Time::NEVER, Writes::poll_timeout);
        write.min(self.next_turn).min(self.stop)
    }

    /// Processes the application's events that are due at `now`: it switches on or off, writes data, or stops.
    pub(crate) fn wake(&mut self, now: Time, sender: &mut Sender) {
        if now >= self.stop {
            sender.close();
            (self.is_on, self.next_turn, self.stop) = (false, Time::NEVER, Time::NEVER);
            return;
        }
        while self.next_turn <= now {
            self.is_on = !self.is_on;
            if let Some(writes) = &mut self.writes {
                writes.restart(self.next_turn);
            }
            self.next_turn = match self.pauses {
                Some((on, off)) => self.next_turn + if self.is_on { on } else { off },
                None => Time::NEVER,
            };
            if !self.is_on {
                self.take_back(sender);
            }
        }
        while let Some(writes) = self.writes.as_mut().filter(|_| self.is_on)
            && writes.pop(now)
        {
            let bytes = writes.bytes;
            sender.offer(self.take(bytes));
        }
    }

    /// Lets an application with pauses write ahead of the sender, if the application is on and writes as fast as the
    /// sender accepts data.
    pub(crate) fn top_up(&mut self, sender: &mut Sender) {
        if self.pauses.is_none() || self.writes.is_some() || !self.is_on {
            return;
        }
        if let Backlog::Limited(waiting) = sender.backlog()
            && waiting < self.ahead
        {
            sender.offer(self.take(self.ahead - waiting));
        }
    }

    /// Takes at most this many bytes of what the application still has to write.
    pub(crate) fn take_most(&mut self, most: Bytes) -> Bytes {
        if self.is_on { self.take(most) } else { Bytes::ZERO }
    }

    /// Withdraws the bytes written ahead but not sent when a pause starts; the application writes them after the pause.
    fn take_back(&mut self, sender: &mut Sender) {
        if self.writes.is_some() {
            return;
        }
        if let Backlog::Limited(waiting) = sender.backlog() {
            let taken = waiting.min(self.ahead);
            sender.set_backlog(Backlog::Limited(waiting - taken));
            if let Some(left) = &mut self.left {
                *left += taken;
            }
        }
    }

    fn take(&mut self, wanted: Bytes) -> Bytes {
        let Some(left) = &mut self.left else { return wanted };
        let taken = wanted.min(*left);
        *left -= taken;
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The times of an application's writes until `end_ms`, in ms. It writes 1000 bytes at a time.
    fn written_ms(start_ms: u64, rates: &[(u64, f64)], end_ms: u64) -> Vec<f64> {
        let bytes = Bytes(1000);
        let steps =
            rates[1..].iter().map(|(at_ms, mbps)| (Time::from_millis(*at_ms), Rate::from_mbps(*mbps)));
        let mut writes = Writes {
            bytes,
            gap: gap(Rate::from_mbps(rates[0].1), bytes),
            next: Time::ZERO,
            rest: 0.0,
            changes: steps.collect(),
        };
        writes.restart(Time::from_millis(start_ms));
        let mut times = Vec::new();
        while writes.poll_timeout() <= Time::from_millis(end_ms) {
            let now = writes.poll_timeout();
            while writes.pop(now) {
                times.push(now.as_nanos() as f64 / 1e6);
            }
        }
        times
    }

    #[test]
    fn a_change_of_rate_keeps_the_part_of_the_packet_that_was_produced() {
        // At 1 Mbit/s a packet takes 8 ms. At 12 ms, half of the third packet is left, which takes 2 ms at 2 Mbit/s.
        assert_eq!(written_ms(0, &[(0, 1.0), (12, 2.0)], 22), [0.0, 8.0, 14.0, 18.0, 22.0]);
        // The change comes at the time of a write.
        assert_eq!(written_ms(0, &[(0, 1.0), (8, 4.0)], 12), [0.0, 8.0, 10.0, 12.0]);
        // Two changes within the time of a packet.
        assert_eq!(written_ms(0, &[(0, 1.0), (2, 8.0), (3, 1.0)], 17), [0.0, 2.75, 9.0, 17.0]);
    }

    #[test]
    fn a_rate_of_zero_writes_nothing_until_the_next_change() {
        let times = written_ms(0, &[(0, 1.0), (4, 0.0), (20, 1.0)], 32);
        assert_eq!(times, [0.0, 24.0, 32.0], "half a packet is left at 4 ms, and at 20 ms");
        assert_eq!(written_ms(0, &[(0, 1.0), (4, 0.0)], 100), [0.0], "nothing follows the last change");
    }

    #[test]
    fn changes_before_the_start_or_in_a_pause_count_from_the_start() {
        assert_eq!(written_ms(10, &[(0, 1.0), (5, 4.0), (13, 8.0)], 15), [10.0, 12.0, 13.5, 14.5]);
    }
}
