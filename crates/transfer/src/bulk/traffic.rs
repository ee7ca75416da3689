//! Traffic generator of a scenario's application: on and off periods, write rate and amount of data.

use std::time::Duration;

use airpace_core::{Bytes, Rate, Time};
use serde::{Deserialize, Serialize};

use airpace_transport::endpoint::MSS;

/// Maximum data that an on-off application writes ahead of its sender during an on period: a number of packets, plus this
/// time at the pacing rate, which covers late wake-ups of the thread.
///
/// Differs: the simulator's application takes back unsent data when an off period starts. A stream cannot, so up to this
/// much data leaves during the off period.
const PACKETS_AHEAD: u64 = 2;
const TIME_AHEAD: Duration = Duration::from_millis(2);

/// Maximum time by which a flow's time origin may precede its connection.
///
/// Chosen: longer than any handshake.
const LATEST: Duration = Duration::from_secs(60);

/// Interval at which an on-off application checks the amount of unsent data.
const LOOK: Duration = Duration::from_millis(1);

/// Traffic profile of an application. Times count from `zero_ns`, or else from the start of the connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Traffic {
    /// Origin of the times, in nanoseconds of the machine's monotonic clock; `None`: the start of the connection. An
    /// explicit origin requires both endpoints on one machine.
    pub zero_ns: Option<u64>,
    /// Start time, in seconds.
    pub start_s: f64,
    /// Stop time, in seconds; `None`: never. Data that is unsent at this time is discarded.
    pub stop_s: Option<f64>,
    /// Amount of data, in bytes; `None`: unlimited.
    pub bytes: Option<u64>,
    /// Durations of the alternating on and off periods, in seconds; `None`: always on.
    pub on_off_s: Option<(f64, f64)>,
    /// Write rate, in Mbit/s; `None`: as fast as possible.
    pub rate_mbps: Option<f64>,
}

/// State of a running application.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    stop: Time,
    pauses: Option<(Duration, Duration)>,
    /// Interval between writes of one packet each; `None` without a write rate.
    gap: Option<Duration>,
    left: Option<u64>,
    is_on: bool,
    next_turn: Time,
    next_write: Time,
    next_look: Time,
    /// Bytes of due writes that the transport has not accepted yet.
    due: u64,
    now: Time,
}

impl Source {
    /// Creates the application of a connection that was established at `now`.
    pub(crate) fn new(now: Time, traffic: Traffic) -> Source {
        // The profile comes from the peer and is not trusted: durations are limited to one day, and periods also to 1 ms at
        // least.
        let seconds = |seconds: f64| {
            Duration::from_secs_f64(if seconds.is_finite() { seconds.clamp(0.0, 86_400.0) } else { 0.0 })
        };
        let period = |span: f64| seconds(span).max(Duration::from_millis(1));
        let zero = traffic.zero_ns.map_or(now, Time::from_nanos).clamp(now - LATEST, now + seconds(86_400.0));
        let start = zero + seconds(traffic.start_s);
        Source {
            stop: traffic.stop_s.map_or(Time::NEVER, |stop| zero + seconds(stop)),
            pauses: traffic.on_off_s.map(|(on, off)| (period(on), period(off))),
            gap: traffic.rate_mbps.map(|mbps| Rate::from_mbps(mbps.clamp(0.001, 100_000.0)).time_for(MSS)),
            left: traffic.bytes,
            is_on: false,
            next_turn: start,
            next_write: start,
            next_look: Time::NEVER,
            due: 0,
            now,
        }
    }

    /// Processes due events: on and off switches, and packet writes.
    pub(crate) fn wake(&mut self, now: Time) {
        self.now = now;
        while self.next_turn <= now {
            self.is_on = !self.is_on;
            self.next_write = self.next_turn;
            self.next_turn = match self.pauses {
                Some((on, off)) => self.next_turn + if self.is_on { on } else { off },
                None => Time::NEVER,
            };
        }
        if let (true, Some(gap)) = (self.is_on, self.gap) {
            let gap = gap.max(Duration::from_nanos(1));
            if self.next_write <= now {
                let writes = ((now - self.next_write).as_nanos() / gap.as_nanos()) as u64 + 1;
                self.due = self.due.saturating_add(writes.saturating_mul(MSS.0));
                self.next_write += Duration::from_nanos(gap.as_nanos() as u64 * writes);
            }
        }
        let looks = self.is_on && self.gap.is_none() && self.pauses.is_some();
        self.next_look = if looks { now + LOOK } else { Time::NEVER };
    }

    /// Time of the next call of `wake`.
    pub(crate) fn poll_timeout(&self) -> Option<Time> {
        if self.has_written_all() {
            return (self.stop < Time::NEVER).then_some(self.stop);
        }
        let write = if self.is_on && self.gap.is_some() { self.next_write } else { Time::NEVER };
        let next = write.min(self.next_turn).min(self.next_look).min(self.stop);
        (next < Time::NEVER).then_some(next)
    }

    /// Number of bytes that the application writes now, given the amount of unsent data and the pacing rate.
    pub(crate) fn wanted(&self, unsent: Bytes, rate: Option<Rate>) -> Bytes {
        let wanted = match (self.is_on, self.gap, self.pauses) {
            (_, Some(_), _) => self.due,
            (false, None, _) => 0,
            (true, None, None) => u64::MAX,
            (true, None, Some(_)) => {
                let ahead =
                    rate.map_or(0, |rate| (rate.as_bps() as f64 / 8.0 * TIME_AHEAD.as_secs_f64()) as u64);
                (PACKETS_AHEAD * MSS.0 + ahead).saturating_sub(unsent.0)
            }
        };
        Bytes(self.left.map_or(wanted, |left| wanted.min(left)))
    }

    /// Records that the transport accepted this many bytes.
    pub(crate) fn took(&mut self, bytes: Bytes) {
        self.due = self.due.saturating_sub(bytes.0);
        if let Some(left) = &mut self.left {
            *left = left.saturating_sub(bytes.0);
        }
    }

    /// Whether all data has been written.
    pub(crate) fn has_written_all(&self) -> bool {
        self.left == Some(0)
    }

    /// Stop time.
    pub(crate) fn stops(&self) -> Time {
        self.stop
    }

    /// Whether the stop time has passed.
    pub(crate) fn is_over(&self) -> bool {
        self.now >= self.stop
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const T0: Time = Time::from_secs(1_000);

    fn ms(ms: u64) -> Time {
        T0 + Duration::from_millis(ms)
    }

    #[test]
    fn a_flow_without_pauses_writes_all_it_can_from_start_to_stop() {
        let mut source = Source::new(
            T0,
            Traffic { start_s: 0.5, stop_s: Some(2.0), bytes: Some(10_000), ..Traffic::default() },
        );
        source.wake(ms(499));
        assert_eq!((source.poll_timeout(), source.wanted(Bytes(0), None)), (Some(ms(500)), Bytes(0)));
        source.wake(ms(500));
        assert_eq!(source.wanted(Bytes(1 << 30), None), Bytes(10_000));
        source.took(Bytes(4_000));
        assert_eq!(source.wanted(Bytes(0), None), Bytes(6_000));
        source.took(Bytes(6_000));
        assert!(source.has_written_all() && !source.is_over());
        assert_eq!(source.poll_timeout(), Some(ms(2_000)));
        source.wake(ms(2_000));
        assert!(source.is_over());
    }

    #[test]
    fn a_flow_with_pauses_writes_a_little_ahead_and_nothing_in_a_pause() {
        let mut source = Source::new(T0, Traffic { on_off_s: Some((1.0, 0.5)), ..Traffic::default() });
        let rate = Some(Rate::from_mbps(8.0));
        for (at, is_on) in
            [(0, true), (999, true), (1_000, false), (1_499, false), (1_500, true), (4_100, false)]
        {
            source.wake(ms(at));
            let wanted = source.wanted(Bytes(0), rate);
            assert_eq!(wanted, if is_on { Bytes(3_000 + 2_000) } else { Bytes(0) }, "at {at} ms");
        }
        source.wake(ms(4_500));
        assert_eq!(source.wanted(Bytes(4_900), rate), Bytes(100));
        assert_eq!(source.wanted(Bytes(9_000), rate), Bytes(0));
        assert_eq!(source.poll_timeout(), Some(ms(4_501)));
    }

    #[test]
    fn a_flow_with_a_rate_writes_packet_by_packet() {
        let mut source = Source::new(T0, Traffic { rate_mbps: Some(12.0), ..Traffic::default() });
        source.wake(ms(0));
        assert_eq!((source.wanted(Bytes(0), None), source.poll_timeout()), (Bytes(1_500), Some(ms(1))));
        source.took(Bytes(1_000));
        source.wake(ms(10));
        assert_eq!(source.wanted(Bytes(9_999), None), Bytes(500 + 15_000), "whatever has not left");
    }

    #[test]
    fn impossible_orders_do_no_harm() {
        let values = [f64::NAN, f64::INFINITY, -1.0, 0.0, 1e-9, 1e300];
        for (value, zero_ns) in
            values.into_iter().flat_map(|value| [None, Some(0), Some(u64::MAX)].map(|zero| (value, zero)))
        {
            let traffic = Traffic {
                start_s: value,
                stop_s: Some(value),
                bytes: Some(u64::MAX),
                on_off_s: Some((value, value)),
                rate_mbps: Some(value),
                zero_ns,
            };
            let mut source = Source::new(Time::from_secs(1 << 32), traffic);
            source.wake(Time::from_secs((1 << 32) + 1));
            source.took(source.wanted(Bytes(u64::MAX), Some(Rate::from_bps(u64::MAX))));
            let _ = (source.poll_timeout(), source.is_over());
        }
    }
}
