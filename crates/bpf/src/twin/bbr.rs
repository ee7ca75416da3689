//! The C port of BBR version 1, compiled for the host.

use airpace_core::{Bytes, Rate, Rng, Time};

mod sys;

/// `struct ibbr_ack`: contents of one ACK. [`NONE`](super::NONE) represents missing values.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BbrAck {
    /// Arrival time in nanoseconds.
    pub now: u64,
    /// Bytes newly acknowledged.
    pub acked: u64,
    /// Bytes outstanding before the ACK.
    pub prior_inflight: u64,
    /// Bytes outstanding after the ACK.
    pub inflight: u64,
    /// Total bytes delivered.
    pub delivered: u64,
    /// Bytes that had been delivered when the newest acknowledged packet was sent.
    pub prior_delivered: u64,
    /// Round-trip time in nanoseconds.
    pub rtt: u64,
    /// Smoothed round-trip time in nanoseconds.
    pub smoothed: u64,
    /// Delivery rate in bit/s.
    pub rate: u64,
    /// 1 if the sender was application-limited when the newest packet was sent.
    pub app_limited: u64,
    /// Send time of the newest packet in nanoseconds.
    pub newest_sent: u64,
    /// Number of the transport's completed recoveries.
    pub recovered: u64,
}

/// The states of BBR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The rate doubles per round trip.
    Startup,
    /// The queue of the start is drained.
    Drain,
    /// BBR cruises at the bandwidth and probes for more.
    ProbeBw,
    /// BBR measures the minimum round-trip time.
    ProbeRtt,
}

impl State {
    pub(super) fn of(state: u64) -> State {
        match state {
            0 => State::Startup,
            1 => State::Drain,
            2 => State::ProbeBw,
            _ => State::ProbeRtt,
        }
    }
}

/// The controller's decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The state.
    pub state: State,
    /// Congestion window.
    pub cwnd: Bytes,
    /// Pacing rate.
    pub pacing_rate: Rate,
}

/// A flow of BBR's C port.
pub struct Bbr {
    /// The memory of `struct ibbr`.
    words: Box<[u64]>,
    rng: Rng,
    /// The start phase of the next cycle.
    next: u64,
    draws: u64,
}

/// Number of phases in which a cycle may start.
pub(super) const PHASES: u64 = 7;

impl Bbr {
    /// A new flow. `rng` draws the start phases of the cycles.
    pub fn new(mss: Bytes, mut rng: Rng) -> Bbr {
        let next = rng.below(PHASES);
        let mut bbr = Bbr { words: sys::bbr(mss.0), rng, next, draws: 0 };
        bbr.draw();
        bbr
    }

    /// Records a sent packet. `is_first`: no other packet is outstanding; `app_limited`: the application has no more
    /// data to send after this packet.
    pub fn on_sent(&mut self, now: Time, is_first: bool, app_limited: bool) {
        sys::sent(&mut self.words, now.as_nanos(), is_first, app_limited);
        self.draw();
    }

    /// Processes an ACK of new packets.
    pub fn on_ack(&mut self, ack: &BbrAck) {
        sys::ack(&mut self.words, ack);
        self.draw();
    }

    /// Processes losses. `is_silence`: all outstanding packets were declared lost. `recovered`: number of recoveries
    /// that were completed before.
    pub fn on_loss(&mut self, lost: Bytes, is_silence: bool, recovered: u64) {
        sys::loss(&mut self.words, lost.0, is_silence, recovered);
    }

    /// If the C port has used its random number, gives it the next one. No call uses more than one random number, so
    /// one in reserve is enough.
    fn draw(&mut self) {
        let used = sys::random(&mut self.words, self.next);
        if used != self.draws {
            (self.draws, self.next) = (used, self.rng.below(PHASES));
            sys::random(&mut self.words, self.next);
        }
    }

    /// The current decision.
    pub fn answer(&self) -> Answer {
        let [state, cwnd, pacing] = sys::answer(&self.words);
        Answer { state: State::of(state), cwnd: Bytes(cwnd), pacing_rate: Rate::from_bps(pacing) }
    }
}

#[cfg(test)]
mod tests {
    use airpace_core::Streams;
    use proptest::prelude::*;

    use super::*;
    use crate::twin::MAX_RATE;

    proptest! {
        #[test]
        fn whatever_a_kernel_says_the_window_is_a_packet_and_the_rate_is_bounded(
            mss in 1u64..65_536,
            acks in prop::collection::vec(any::<([u64; 12], bool)>(), 1..60),
        ) {
            let mut twin = Bbr::new(Bytes(mss), Streams::new(1).stream("bbr"));
            for (told, odd) in acks {
                let [now, acked, prior_inflight, inflight, delivered, prior_delivered, rtt, smoothed, rate, app_limited, newest_sent, recovered] = told;
                twin.on_sent(Time::from_nanos(now), odd, odd);
                twin.on_loss(Bytes(acked), odd, recovered);
                twin.on_ack(&BbrAck { now, acked, prior_inflight, inflight, delivered, prior_delivered, rtt, smoothed, rate, app_limited, newest_sent, recovered });
                let answer = twin.answer();
                prop_assert!(answer.cwnd >= Bytes(mss), "{answer:?}");
                prop_assert!((1..=3 * MAX_RATE.as_bps()).contains(&answer.pacing_rate.as_bps()), "{answer:?}");
            }
        }
    }
}
