//! BBR version 1, compiled for the host.

use airpace_core::{Bytes, Rate, Rng, Time};

use super::sys;

/// `struct ibbr_ack`: what one ACK says. [`NONE`](super::NONE) stands for what it does not say.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BbrAck {
    /// Nanoseconds.
    pub now: u64,
    /// Bytes newly acknowledged.
    pub acked: u64,
    /// Bytes outstanding before.
    pub prior_inflight: u64,
    /// Bytes outstanding afterwards.
    pub inflight: u64,
    /// Bytes delivered so far.
    pub delivered: u64,
    /// The same when the newest acknowledged packet left.
    pub prior_delivered: u64,
    /// Round-trip time in nanoseconds.
    pub rtt: u64,
    /// Smoothed round-trip time in nanoseconds.
    pub smoothed: u64,
    /// Delivery rate in bit/s.
    pub rate: u64,
    /// 1 if the sender was application limited when the newest packet left.
    pub app_limited: u64,
    /// When the newest packet left, in nanoseconds.
    pub newest_sent: u64,
    /// Recoveries of the transport that are over.
    pub recovered: u64,
}

/// The states of BBR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The rate doubles.
    Startup,
    /// The queue of the start is drained.
    Drain,
    /// It cruises and probes.
    ProbeBw,
    /// It measures the least round-trip time.
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

/// What the controller answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The state.
    pub state: State,
    /// Congestion window.
    pub cwnd: Bytes,
    /// Pacing rate.
    pub pacing_rate: Rate,
}

/// BBR in C.
pub struct Bbr {
    /// `struct ibbr`.
    words: Box<[u64]>,
    rng: Rng,
    /// The phase in which the next cycle begins.
    next: u64,
    draws: u64,
}

/// The phases in which a cycle may begin.
pub(super) const PHASES: u64 = 7;

impl Bbr {
    /// A new flow. `rng` draws the phases in which its cycles begin.
    pub fn new(mss: Bytes, mut rng: Rng) -> Bbr {
        let next = rng.below(PHASES);
        let mut bbr = Bbr { words: sys::bbr(mss.0), rng, next, draws: 0 };
        bbr.draw();
        bbr
    }

    /// A packet leaves. `is_first` says that nothing else is outstanding; `app_limited`, that the application has no
    /// more to send after it.
    pub fn on_sent(&mut self, now: Time, is_first: bool, app_limited: bool) {
        sys::bbr_sent(&mut self.words, now.as_nanos(), is_first, app_limited);
        self.draw();
    }

    /// An acknowledgement of new packets.
    pub fn on_ack(&mut self, ack: &BbrAck) {
        sys::bbr_ack(&mut self.words, ack);
        self.draw();
    }

    /// Packets were declared lost; with `is_silence`, all that were outstanding. `recovered` recoveries were over before.
    pub fn on_loss(&mut self, lost: Bytes, is_silence: bool, recovered: u64) {
        sys::bbr_loss(&mut self.words, lost.0, is_silence, recovered);
    }

    /// No call uses more than one number, so one that lies ready is enough.
    fn draw(&mut self) {
        let used = sys::bbr_random(&mut self.words, self.next);
        if used != self.draws {
            (self.draws, self.next) = (used, self.rng.below(PHASES));
            sys::bbr_random(&mut self.words, self.next);
        }
    }

    /// What it answers now.
    pub fn answer(&self) -> Answer {
        let [state, cwnd, pacing] = sys::bbr_answer(&self.words);
        Answer { state: State::of(state), cwnd: Bytes(cwnd), pacing_rate: Rate::from_bps(pacing) }
    }
}

#[cfg(test)]
mod tests {
    use airpace_core::Streams;
    use proptest::prelude::*;

    use super::*;
    use crate::twin::MOST_RATE;

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
                prop_assert!((1..=3 * MOST_RATE.as_bps()).contains(&answer.pacing_rate.as_bps()), "{answer:?}");
            }
        }
    }
}
