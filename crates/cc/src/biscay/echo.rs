//! Round-trip times measured at a receiver from timestamps that the transport echoes.
//!
//! The receiver puts a timestamp on its ACKs, and the sender puts the newest timestamp on its data. The time from an
//! ACK to the data that the ACK released is one round trip, measured at the receiver. If the sender had no data to
//! send, the measured time is longer. Therefore the minimum is used.
//!
//! Source: RFC 7323 §4.1; Linux net/ipv4/tcp_input.c (`tcp_rcv_rtt_measure_ts`)

use std::time::Duration;

use airpace_core::Time;

use crate::filter::WindowedMin;

use super::rounds::RttMemory;

/// Round-trip times of one flow.
#[derive(Clone, Debug)]
pub struct EchoRtt {
    least: WindowedMin<Duration, Time>,
    /// Start of the current round. `round_least` is the minimum RTT of the current round, `standing` that of the
    /// previous round.
    round_began: Time,
    round_least: Option<Duration>,
    standing: Option<Duration>,
}

impl EchoRtt {
    /// State before the first echoed timestamp.
    pub fn new(memory: RttMemory) -> EchoRtt {
        EchoRtt {
            least: WindowedMin::new(memory.window()),
            round_began: Time::ZERO,
            round_least: None,
            standing: None,
        }
    }

    /// The timestamp of an ACK that leaves at `now`: microseconds, modulo 2³².
    pub fn timestamp(now: Time) -> u32 {
        (now.as_nanos() / 1_000) as u32
    }

    /// Processes data that echoes the timestamp `echoed`.
    pub fn on_echo(&mut self, now: Time, echoed: u32) {
        let rtt = Duration::from_micros(u64::from(EchoRtt::timestamp(now).wrapping_sub(echoed)));
        self.least.update(now, rtt);
        if now - self.round_began > rtt {
            self.round_began = now;
            self.standing = self.round_least.take().or(Some(rtt));
        }
        self.round_least = Some(self.round_least.map_or(rtt, |least| least.min(rtt)));
    }

    /// The recent minimum round-trip time; `None` before the first sample.
    pub fn least(&self) -> Option<Duration> {
        self.least.get()
    }

    /// Time when the minimum returned by [`EchoRtt::least`] was observed.
    pub fn seen(&self) -> Option<Time> {
        self.least.position()
    }

    /// The minimum round-trip time of the previous round. It contains the delay of a standing queue, but no jitter.
    pub fn standing(&self) -> Option<Duration> {
        self.standing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_of_a_round_shows_a_queue_that_stands() {
        let mut rtt = EchoRtt::new(RttMemory::Life);
        let mut echo = |millis: u64, ago: u64| {
            let stamp = EchoRtt::timestamp(Time::from_millis(millis - ago));
            rtt.on_echo(Time::from_millis(millis), stamp);
            (rtt.least().unwrap().as_millis(), rtt.standing().unwrap().as_millis())
        };
        assert_eq!(echo(1_000, 40), (40, 40));
        assert_eq!(echo(1_010, 55), (40, 40), "jitter within a round does not count");
        assert_eq!(echo(1_060, 60), (40, 40));
        assert_eq!(echo(1_130, 62), (40, 40));
        assert_eq!(echo(1_200, 65), (40, 62), "every sample of the round was 62 ms or more");
    }

    #[test]
    fn stamps_wrap() {
        let mut rtt = EchoRtt::new(RttMemory::Life);
        let now = Time::from_millis(4_294_970);
        rtt.on_echo(now, EchoRtt::timestamp(now - Duration::from_millis(10)));
        assert_eq!(rtt.least(), Some(Duration::from_millis(10)));
    }
}
