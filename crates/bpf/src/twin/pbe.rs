//! PBE-CC's sender, compiled for the host, and the messages between sender and receiver.

use std::collections::VecDeque;
use std::time::Duration;

use airpace_cc::pbe::Tuning;
use airpace_cc::pbe::buffer::Goal;
use airpace_core::{Bytes, Rate, Rng, Time};

use super::bbr::{self, BbrAck};
use super::{NONE, Unsupported, nanos};

mod sys;

/// `struct ap_pbe_tuning` of `intf.h`: PBE-CC's options. Times are in nanoseconds, gains in thousandths.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PbeTuning {
    slack: u64,
    unmeasured: u64,
    least_span: u64,
    span: u64,
    packets: u32,
    bunching: u32,
    btlbw_reset: u32,
    from_zero: u32,
    request_start: u32,
    guard: u32,
    probe_gain: u32,
    window: u32,
    pub(super) sent: u32,
    return_needs_rate: u32,
    device_split: u32,
    buffer: u32,
}

/// Maximum gain, number of packets, and slack (ns) that the kernel's arithmetic supports.
const MAX_GAIN: f64 = 16.0;
const MAX_PACKETS: u64 = 1_000;
const MAX_SLACK: u64 = 1_000_000_000;

/// Maximum duration of the queue that the kernel's PBE-CC keeps in the base station.
const MAX_BUFFER: Duration = Duration::from_secs(1);
/// `AP_PBE_ADAPTIVE` of `intf.h`.
const ADAPTIVE: u32 = u32::MAX;

impl PbeTuning {
    /// Returns the kernel's options for `tuning`. The receiver's processing of radio reports has no options in the
    /// kernel.
    ///
    /// # Errors
    /// An option has a value that the kernel's PBE-CC does not support.
    pub fn new(tuning: &Tuning) -> Result<PbeTuning, Unsupported> {
        let refuse = |option, known| Err(Unsupported::one(option, known));
        let thousandths = |option, part: f64| {
            let whole = (part * 1e3 + 0.5) as u32;
            let is_known = (0.0..=MAX_GAIN).contains(&part) && (f64::from(whole) - part * 1e3).abs() < 1e-6;
            let known = "whole thousandths up to 16";
            if is_known { Ok(whole) } else { Err(Unsupported::one(option, known)) }
        };
        if tuning.delay_drain {
            return refuse("delay_drain", "`off`");
        }
        let buffer = match tuning.buffer {
            Goal::None => 0,
            Goal::Adaptive => ADAPTIVE,
            Goal::Fixed(span) if span <= MAX_BUFFER => span.as_micros() as u32,
            Goal::Fixed(_) => return refuse("buffer_ms", "`adaptive`, or at most 1000"),
        };
        let slacks = [tuning.cwnd_slack.map_or(NONE, nanos), nanos(tuning.bbr.cwnd_slack)];
        if slacks.iter().any(|&slack| slack != NONE && slack > MAX_SLACK) {
            return refuse("cwnd_slack_ms", "at most 1000");
        }
        if tuning.cwnd_packets > MAX_PACKETS {
            return refuse("cwnd_packets", "at most 1000");
        }
        Ok(PbeTuning {
            slack: slacks[0],
            unmeasured: slacks[1],
            least_span: nanos(tuning.rules.least_span),
            span: tuning.rules.span.map_or(0, nanos),
            packets: tuning.cwnd_packets as u32,
            bunching: u32::from(tuning.cwnd_bunching),
            btlbw_reset: u32::from(tuning.btlbw_reset),
            from_zero: u32::from(tuning.restart_from_zero),
            request_start: u32::from(tuning.request_start),
            guard: u32::from(tuning.guard),
            probe_gain: thousandths("probe_gain", tuning.probe_gain)?,
            window: thousandths("internet_cwnd_gain", tuning.bbr.cwnd_gain)?,
            sent: thousandths("internet_margin_percent", 1.0 - tuning.bbr.pacing_margin)?,
            return_needs_rate: u32::from(tuning.rules.return_needs_rate),
            device_split: u32::from(tuning.device_split),
            buffer,
        })
    }

    /// The bytes of the structure in C.
    pub fn as_bytes(&self) -> &[u8] {
        sys::bytes_of(self)
    }
}

/// `struct pbe_ack`: contents of one ACK. [`NONE`] represents missing values.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PbeAck {
    /// The input of the sender's BBR.
    pub bbr: BbrAck,
    /// Minimum round-trip time of the connection in nanoseconds.
    pub least: u64,
    /// Send time of the first packet that the ACK acknowledges, in nanoseconds.
    pub oldest_sent: u64,
}

/// `struct pbe_fed`: contents of the receiver's feedback. [`NONE`] represents missing values; flags are 0 or 1.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PbeFed {
    /// The cell's capacity in bit/s.
    pub capacity: u64,
    /// The flow's fair share of the capacity in bit/s.
    pub fair_share: u64,
    /// Delay of the radio link without a queue, in nanoseconds.
    pub radio_delay: u64,
    /// Whether the option contained feedback.
    pub is_told: u32,
    /// Whether the receiver reports a bottleneck in the Internet.
    pub internet: u32,
    /// Whether the receiver's telemetry is fresh.
    pub fresh: u32,
    /// Whether the last Npkt packets met no queue outside the cell.
    pub clear: u32,
    /// Number of active carriers.
    pub carriers: u32,
    /// Total number of activations of carriers, modulo 256.
    pub activations: u32,
}

impl PbeFed {
    /// The value for an ACK without feedback.
    pub const NOTHING: PbeFed = PbeFed {
        capacity: NONE,
        fair_share: NONE,
        radio_delay: NONE,
        is_told: 0,
        internet: 0,
        fresh: 0,
        clear: 0,
        carriers: 0,
        activations: 0,
    };
}

/// Reads the contents of an option as the kernel does, without earlier feedback. `length` includes the option's first four
/// bytes.
pub fn read_option(contents: &[u8; 8], length: u32) -> PbeFed {
    let mut fed = PbeFed::NOTHING;
    sys::option(&mut fed, contents, length);
    fed
}

/// Returns the contents of an option with this feedback. Rates are exact to a thousandth. Rates below 512 bit/s are
/// encoded as a missing value, rates above 17 Gbit/s as 17 Gbit/s.
pub fn write_option(fed: &PbeFed) -> [u8; 8] {
    sys::option_write(fed)
}

/// The sender's phases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The rate rises linearly to the fair share.
    Start,
    /// The rate follows the receiver's measurement.
    Wireless,
    /// The queue of a bottleneck in the Internet is drained.
    Drain,
    /// BBR controls the flow, because the bottleneck is in the Internet.
    Internet,
    /// BBR controls the flow, because there is no feedback.
    Fallback,
    /// The path is emptied to check whether the receiver's reports are true.
    Check,
    /// BBR controls the flow, because the receiver's reports were false.
    Held,
}

impl Phase {
    /// Whether BBR controls the flow.
    pub fn is_bbr(self) -> bool {
        matches!(self, Phase::Internet | Phase::Fallback | Phase::Held)
    }
}

/// The controller's decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The sender's phase.
    pub phase: Phase,
    /// The state of the sender's BBR; relevant while BBR controls the flow.
    pub bbr: bbr::State,
    /// Congestion window.
    pub cwnd: Bytes,
    /// Pacing rate.
    pub pacing_rate: Rate,
}

/// A flow of the C port of PBE-CC's sender.
pub struct Pbe {
    /// The memory of the flow's `struct pbe`.
    words: Box<[u64]>,
    rng: Rng,
    /// The start phases of the next cycles of BBR's pacing gains.
    next: VecDeque<u64>,
    draws: u64,
}

/// Number of random numbers that are drawn in advance. One call of the C code uses fewer random numbers.
const READY: usize = 4;

impl Pbe {
    /// Creates the state of a new flow. `rng` draws the start phases of BBR's cycles.
    pub fn new(tuning: &PbeTuning, mss: Bytes, rng: Rng) -> Pbe {
        let mut pbe = Pbe { words: sys::pbe(tuning, mss.0), rng, next: VecDeque::new(), draws: 0 };
        pbe.draw();
        pbe
    }

    /// Records a sent packet. `is_first`: no other packet is outstanding; `app_limited`: the application has no more data
    /// to send after it.
    pub fn on_sent(&mut self, now: Time, is_first: bool, app_limited: bool) {
        sys::sent(&mut self.words, now.as_nanos(), is_first, app_limited);
        self.draw();
    }

    /// Processes an ACK of new packets, and the receiver's feedback in this ACK.
    pub fn on_ack(&mut self, ack: &PbeAck, told: &PbeFed) {
        sys::ack(&mut self.words, ack, told);
        self.draw();
    }

    /// Processes feedback in a packet that acknowledges no data.
    pub fn on_feedback(&mut self, now: Time, told: &PbeFed) {
        sys::feedback(&mut self.words, now.as_nanos(), told);
    }

    /// Processes losses. `is_silence`: all outstanding packets were declared lost. `recovered`: number of recoveries
    /// that the flow completed before.
    pub fn on_loss(&mut self, lost: Bytes, is_silence: bool, recovered: u64) {
        sys::loss(&mut self.words, lost.0, is_silence, recovered);
    }

    /// Updates the state at `now`. Called before the kernel sends a packet.
    pub fn before_send(&mut self, now: Time) {
        sys::before_send(&mut self.words, now.as_nanos());
    }

    /// Draws new random numbers in place of the numbers that the last call of the C code used.
    fn draw(&mut self) {
        let used = sys::random(&mut self.words, 0);
        self.next.drain(..(used - self.draws) as usize);
        self.draws = used;
        while self.next.len() < READY {
            self.next.push_back(self.rng.below(bbr::PHASES));
        }
        let random = self.next.iter().rev().fold(0, |random, digit| random * bbr::PHASES + digit);
        sys::random(&mut self.words, random);
    }

    /// The current decision.
    pub fn answer(&self) -> Answer {
        let [phase, bbr, cwnd, pacing] = sys::answer(&self.words);
        let phase = match phase {
            0 => Phase::Start,
            1 => Phase::Wireless,
            2 => Phase::Drain,
            3 => Phase::Internet,
            4 => Phase::Fallback,
            5 => Phase::Check,
            _ => Phase::Held,
        };
        let bbr = bbr::State::of(bbr);
        Answer { phase, bbr, cwnd: Bytes(cwnd), pacing_rate: Rate::from_bps(pacing) }
    }
}

#[cfg(test)]
mod tests {
    use airpace_cc::pbe::SCHEME;
    use airpace_cc::scheme::Options;
    use airpace_core::Streams;
    use proptest::prelude::*;

    use super::*;
    use crate::twin::MAX_RATE;

    fn defaults() -> Tuning {
        Tuning::read(&Options::defaults(&SCHEME)).unwrap()
    }

    #[test]
    fn what_the_kernel_does_not_have_is_refused() {
        assert!(PbeTuning::new(&defaults()).is_ok());
        let refused = |tuning: Tuning| PbeTuning::new(&tuning).map_err(|error| error.0[0].0);
        assert_eq!(refused(Tuning { delay_drain: true, ..defaults() }), Err("delay_drain"));
        let long = Goal::Fixed(Duration::from_secs(2));
        assert_eq!(refused(Tuning { buffer: long, ..defaults() }), Err("buffer_ms"));
        assert_eq!(refused(Tuning { probe_gain: 2.88539, ..defaults() }), Err("probe_gain"));
        assert_eq!(refused(Tuning { cwnd_packets: 2_000, ..defaults() }), Err("cwnd_packets"));
    }

    fn told(capacity: u64, fair_share: u64) -> PbeFed {
        PbeFed { capacity, fair_share, is_told: 1, ..PbeFed::NOTHING }
    }

    #[test]
    fn the_layout_of_the_option_never_changes() {
        let told = PbeFed {
            internet: 1,
            carriers: 2,
            activations: 7,
            radio_delay: 8_259_999,
            ..told(1_024_000, NONE)
        };
        // 1,024,000 = 1000 · 2^10: the exponent is 10, the mantissa is 512 + 488.
        let word = 1_u32 << 31 | (10 << 9 | 488) << 14 | 0x3FFF;
        let [a, b, c, d] = word.to_be_bytes();
        assert_eq!(write_option(&told), [a, b, c, d, 2, 7, 3, 57]);
    }

    #[test]
    fn what_cannot_be_written_is_no_rate_or_the_greatest() {
        let fed = read_option(&write_option(&told(511, u64::MAX - 1)), 12);
        assert_eq!((fed.capacity, fed.fair_share), (NONE, MAX_RATE.as_bps()));
        let short = read_option(&write_option(&told(512, NONE)), 8);
        assert_eq!((short.capacity, short.fair_share, short.radio_delay), (512, NONE, NONE));
    }

    proptest! {
        #[test]
        fn the_sender_s_kernel_reads_what_the_receiver_s_wrote(
            flags: [bool; 3], carriers: u8, activations: u8, units in 0u64..=0xFFFE,
            capacity in 512..=MAX_RATE.as_bps(), fair_share in 512..=MAX_RATE.as_bps(),
        ) {
            let [internet, fresh, clear] = flags.map(u32::from);
            let (carriers, activations) = (carriers.into(), activations.into());
            let told = PbeFed { internet, fresh, clear, carriers, activations, radio_delay: units * 10_000, ..told(capacity, fair_share) };
            let fed = read_option(&write_option(&told), 12);
            let near = |read: u64, written: u64| read.abs_diff(written) * 1_000 <= written;
            prop_assert!(near(fed.capacity, capacity) && near(fed.fair_share, fair_share), "{fed:?}");
            prop_assert_eq!(PbeFed { capacity, fair_share, ..fed }, told);
        }

        #[test]
        fn whatever_a_kernel_says_the_window_is_a_packet_and_the_rate_is_bounded(
            mss in 1u64..65_536,
            acks in prop::collection::vec(any::<([u64; 12], [u64; 5], [u32; 6], bool)>(), 1..60),
        ) {
            let tuning = PbeTuning::new(&defaults()).unwrap();
            let mut twin = Pbe::new(&tuning, Bytes(mss), Streams::new(1).stream("pbe"));
            for (told, [least, oldest_sent, capacity, fair_share, radio_delay], flags, odd) in acks {
                let [now, acked, prior_inflight, inflight, delivered, prior_delivered, rtt, smoothed, rate, app_limited, newest_sent, recovered] = told;
                let bbr = BbrAck { now, acked, prior_inflight, inflight, delivered, prior_delivered, rtt, smoothed, rate, app_limited, newest_sent, recovered };
                let [is_told, internet, fresh, clear, carriers, activations] = flags.map(|flag| flag % 2);
                let fed = PbeFed { capacity, fair_share, radio_delay, is_told, internet, fresh, clear, carriers, activations };
                twin.on_sent(Time::from_nanos(now), odd, odd);
                twin.on_loss(Bytes(acked), odd, recovered);
                twin.on_ack(&PbeAck { bbr, least, oldest_sent }, &fed);
                twin.before_send(Time::from_nanos(now));
                twin.on_feedback(Time::from_nanos(now), &fed);
                let answer = twin.answer();
                prop_assert!(answer.cwnd >= Bytes(mss), "{answer:?}");
                prop_assert!((1..=3 * MAX_RATE.as_bps()).contains(&answer.pacing_rate.as_bps()), "{answer:?}");
            }
        }
    }
}
