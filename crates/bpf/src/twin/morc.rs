//! MORC, compiled for the host.

use airpace_cc::morc::profile::Profile;
use airpace_core::{Bytes, Rate, Time};

use super::{Unsupported, nanos};

mod sys;

/// `struct ap_morc_tuning` of `intf.h`: MORC's options. Times are in nanoseconds.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MorcTuning {
    target: u64,
    octave: u64,
    drain: u64,
    dry_most: u32,
    ahead_loops: u32,
    window_targets: u32,
    memory_loops: u32,
    drain_above: u32,
    boost: u32,
    overflow: u32,
    pub(super) rival: u32,
}

/// Maximum time (in ns: 10 s) and maximum factor (64) of an option that the kernel's arithmetic supports.
const MAX_NANOS: f64 = 1e10;
const MAX_TIMES: f64 = 64.0;

impl MorcTuning {
    /// The kernel's options for `profile`.
    ///
    /// # Errors
    /// An option's value exceeds the range that the kernel's arithmetic supports.
    pub fn new(profile: &Profile) -> Result<MorcTuning, Unsupported> {
        let ms = |option, ms: f64| match ms * 1e6 {
            nanos if nanos <= MAX_NANOS => Ok((nanos + 0.5) as u64),
            _ => Err(Unsupported::one(option, "at most 10 s")),
        };
        let times = |option, times: f64| match times {
            times if times <= MAX_TIMES => Ok((times * 65_536.0 + 0.5) as u32),
            _ => Err(Unsupported::one(option, "at most 64")),
        };
        let drain = profile.drain.map_or(0, nanos);
        if drain as f64 > 60.0 * MAX_NANOS {
            return Err(Unsupported::one("drain_s", "at most 600"));
        }
        Ok(MorcTuning {
            target: ms("target_ms", profile.shape.target_ms)?,
            octave: ms("octave_ms", profile.shape.octave_ms)?,
            drain,
            dry_most: (times("dry_most", profile.shape.dry_most).map(|_| profile.shape.dry_most)? * 1e3 + 0.5)
                as u32,
            ahead_loops: times("ahead_loops", profile.ahead_loops)?,
            window_targets: times("window_targets", profile.window_targets.unwrap_or(0.0))?,
            memory_loops: times("memory_loops", profile.memory_loops)?,
            drain_above: times("drain_above", profile.drain_above.unwrap_or(0.0))?,
            boost: u32::from(profile.boost),
            overflow: u32::from(profile.overflow),
            rival: u32::from(profile.rival),
        })
    }

    /// The bytes of the structure in C.
    pub fn as_bytes(&self) -> &[u8] {
        sys::bytes_of(self)
    }
}

/// `struct morc_ack`: contents of one ACK. [`NONE`](super::NONE) represents missing values.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MorcAck {
    /// Arrival time in nanoseconds.
    pub now: u64,
    /// Bytes that the ACK newly acknowledges.
    pub acked: u64,
    /// Round-trip time in nanoseconds.
    pub rtt: u64,
    /// Smoothed round-trip time in nanoseconds.
    pub smoothed: u64,
    /// Mean deviation of the round-trip time in nanoseconds.
    pub variation: u64,
    /// Minimum round-trip time of the connection in nanoseconds.
    pub least: u64,
    /// Delivery rate in bit/s.
    pub rate: u64,
    /// Number of the newest packet that the ACK acknowledges.
    pub newest: u64,
    /// Send time of that packet in nanoseconds.
    pub newest_sent: u64,
    /// 1 if the application had no more data to send when one of the acknowledged packets was sent.
    pub app_limited: u64,
}

/// `struct pcc_packets`: packets with consecutive numbers.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Packets {
    /// The first packet's number.
    pub number: u64,
    /// Number of packets.
    pub count: u64,
    /// Bytes of each packet.
    pub bytes: u64,
}

/// The phases of MORC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The rate doubles.
    SlowStart,
    /// The rate follows MORC's rule: the rate that is best a few round trips ahead.
    Adjusting,
    /// The window competes with a flow that keeps the queue filled.
    Competing,
    /// The queue is drained.
    Drain,
}

/// The controller's decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// MORC's phase.
    pub phase: Phase,
    /// Congestion window.
    pub cwnd: Bytes,
    /// Pacing rate.
    pub pacing_rate: Rate,
}

/// A flow of MORC's C port.
pub struct Morc {
    /// The memory of the flow's `struct morc`.
    words: Box<[u64]>,
}

impl Morc {
    /// Creates the state of a new flow.
    pub fn new(tuning: MorcTuning, mss: Bytes) -> Morc {
        Morc { words: sys::morc(&tuning, mss.0) }
    }

    /// Records sent packets. `app_limited`: the application has no more data to send after them.
    pub fn on_sent(&mut self, now: Time, sent: &Packets, app_limited: bool) {
        sys::sent(&mut self.words, now.as_nanos(), sent, app_limited);
    }

    /// Processes an ACK of `packets`. The flag of each item: the item's packets were declared lost before.
    pub fn on_ack(&mut self, ack: &MorcAck, packets: impl Iterator<Item = (Packets, bool)>) {
        sys::ack(&mut self.words, ack);
        for (acked, were_lost) in packets {
            sys::acked(&mut self.words, &acked, were_lost);
        }
        sys::after_ack(&mut self.words, ack);
    }

    /// Processes losses.
    pub fn on_loss(&mut self, packets: impl Iterator<Item = Packets>) {
        packets.for_each(|lost| sys::lost(&mut self.words, &lost));
        sys::after_loss(&mut self.words);
    }

    /// The current decision.
    pub fn answer(&self) -> Answer {
        let [phase, cwnd, pacing, competes] = sys::answer(&self.words);
        let phase = match (phase, competes) {
            (0, _) => Phase::SlowStart,
            (1, 0) => Phase::Adjusting,
            (1, _) => Phase::Competing,
            _ => Phase::Drain,
        };
        Answer { phase, cwnd: Bytes(cwnd), pacing_rate: Rate::from_bps(pacing) }
    }
}

#[cfg(test)]
mod tests {
    use airpace_cc::morc::{SCHEME, profile};
    use airpace_cc::scheme::Options;
    use proptest::prelude::*;

    use super::*;
    use crate::twin::MAX_RATE;

    fn defaults() -> Profile {
        profile(&Options::defaults(&SCHEME)).unwrap()
    }

    #[test]
    fn what_does_not_fit_into_the_kernel_s_numbers_is_refused() {
        assert!(MorcTuning::new(&defaults()).is_ok());
        let far = Profile { ahead_loops: 65.0, ..defaults() };
        assert_eq!(MorcTuning::new(&far).map_err(|error| error.0[0].0), Err("ahead_loops"));
        let mut long = defaults();
        long.shape.target_ms = 20_000.0;
        assert_eq!(MorcTuning::new(&long).map_err(|error| error.0[0].0), Err("target_ms"));
    }

    proptest! {
        #[test]
        fn whatever_a_kernel_says_the_window_is_a_packet_and_the_rate_is_bounded(
            mss in 1u64..65_536,
            acks in prop::collection::vec(any::<([u64; 10], [u64; 3], bool)>(), 1..60),
        ) {
            let mut twin = Morc::new(MorcTuning::new(&defaults()).unwrap(), Bytes(mss));
            for ([now, acked, rtt, smoothed, variation, least, rate, newest, newest_sent, app_limited], packets, odd) in acks {
                let [number, count, bytes] = packets;
                let packets = Packets { number, count, bytes };
                twin.on_sent(Time::from_nanos(now), &packets, odd);
                let ack = MorcAck { now, acked, rtt, smoothed, variation, least, rate, newest, newest_sent, app_limited };
                twin.on_ack(&ack, std::iter::once((packets, odd)));
                twin.on_loss(std::iter::once(packets));
                let answer = twin.answer();
                prop_assert!(answer.cwnd >= Bytes(mss), "{answer:?}");
                prop_assert!((1..=MAX_RATE.as_bps()).contains(&answer.pacing_rate.as_bps()), "{answer:?}");
            }
        }
    }
}
