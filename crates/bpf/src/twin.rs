//! The kernel's controllers in C, compiled for the host.

pub mod active;
pub mod bbr;
pub mod morc;
pub mod pbe;
pub mod pbe_receiver;
mod sys;
pub mod window;

use std::fmt;
use std::time::Duration;

use airpace_cc::biscay::{Startup, Tuning};
use airpace_core::{Bytes, Rate, Time};

/// Number that represents a missing value.
pub const NONE: u64 = u64::MAX;

/// Maximum rate that the kernel programs can represent.
pub const MAX_RATE: Rate = Rate::from_bps((1 << 34) - 1);

/// Maximum number of bytes that the kernel programs can represent.
pub const MAX_BYTES: Bytes = Bytes((1 << 31) - 1);

/// `struct ap_tuning` of `intf.h`: BISCAY's options. Times are in nanoseconds, fractions in percent.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelTuning {
    slack: u64,
    lag: u64,
    stale_after: u64,
    rtt_window: u64,
    packets: u32,
    bunching: u32,
    hold: u32,
    startup: u32,
    pacing_startup: u32,
    pacing: u32,
    margin: u32,
    tolerance: u32,
    split: u32,
    reserved: u32,
}

/// Options with values that the kernel's scheme does not support: the name of each option, and its supported values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsupported(Vec<(&'static str, &'static str)>);

impl Unsupported {
    /// The error for one option, with its supported values.
    fn one(option: &'static str, known: &'static str) -> Unsupported {
        Unsupported(vec![(option, known)])
    }
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known: Vec<String> = self.0.iter().map(|(option, known)| format!("`{option}` {known}")).collect();
        write!(f, "the kernel's part supports only {}", known.join(", "))
    }
}

impl std::error::Error for Unsupported {}

impl KernelTuning {
    /// The kernel's options for `tuning`.
    ///
    /// # Errors
    /// An option has a value that the kernel's BISCAY does not support.
    pub fn new(tuning: &Tuning) -> Result<KernelTuning, Unsupported> {
        use airpace_cc::biscay::Wired;
        use airpace_cc::biscay::bottleneck::Return;
        use airpace_cc::biscay::rounds::RttMemory;
        let percent = |part: f64| libm_round(part * 100.0);
        let (rules, heeded) = (tuning.bottleneck, tuning.signals);
        let window = match tuning.rtt_memory {
            RttMemory::Window(window) => Some(window),
            RttMemory::Life => None,
        };
        let wanted = [
            (window.is_some(), "rtt_window_s", "above zero"),
            (tuning.wired == Wired::Bbr, "fallback", "`bbr`"),
            (tuning.pacing, "pacing", "`on`"),
            (rules.back == Return::AtMost, "return_test", "`at_most`"),
            (rules.patience == tuning.lag(), "patience", "`on`"),
            (rules.needs_queue, "queue_test", "`on`"),
            (!tuning.queue, "queue", "`off`"),
            (!heeded.ecn, "ecn", "`off`"),
            (!heeded.loss, "loss", "`off`"),
            (!heeded.delay_gradient, "delay_gradient", "`off`"),
        ];
        let lacks: Vec<_> = wanted.iter().filter(|(is_known, ..)| !is_known).collect();
        let (Some(window), true) = (window, lacks.is_empty()) else {
            return Err(Unsupported(lacks.iter().map(|(_, option, known)| (*option, *known)).collect()));
        };
        Ok(KernelTuning {
            slack: nanos(tuning.slack),
            lag: nanos(tuning.lag()),
            stale_after: nanos(tuning.stale_after),
            rtt_window: nanos(window),
            packets: tuning.packets as u32,
            bunching: u32::from(tuning.bunching),
            hold: u32::from(tuning.hold),
            startup: match tuning.startup {
                Startup::First => 0,
                Startup::Full => 1,
                Startup::Bursts => 2,
            },
            // Source: Linux net/ipv4/tcp_input.c (`tcp_pacing_ss_ratio`, `tcp_pacing_ca_ratio`)
            pacing_startup: 200,
            pacing: 120,
            margin: percent(rules.margin),
            tolerance: percent(rules.tolerance),
            split: active::number(tuning.split),
            reserved: 0,
        })
    }

    /// A flow's part of the device's bandwidth: numerator and denominator.
    pub fn part(&self, seen: &active::DeviceView) -> [u64; 2] {
        active::split(self.split, seen)
    }

    /// Whether applications share the bandwidth instead of flows. If so, the kernel must record the creator of each
    /// socket.
    pub fn counts_apps(&self) -> bool {
        self.split == active::number(airpace_cc::biscay::split::Split::App)
    }

    /// Whether the policy requires more than the number of flows.
    pub fn needs_counts(&self) -> bool {
        self.split != active::number(airpace_cc::biscay::split::Split::Equal)
    }

    /// The bytes of the structure in C.
    pub fn as_bytes(&self) -> &[u8] {
        sys::bytes_of(self)
    }

    /// Maximum age of a report. If the last report is older, the bandwidth is unknown.
    pub fn stale_after(&self) -> Duration {
        Duration::from_nanos(self.stale_after)
    }
}

/// Converts `span` to nanoseconds; [`NONE`] if the result does not fit into 64 bits.
fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(NONE)
}

/// Rounds to whole percent. No option exceeds a few thousand percent.
fn libm_round(percent: f64) -> u32 {
    (percent + 0.5) as u32
}

/// `struct biscay_ack`: contents of one ACK. [`NONE`] represents missing values.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelAck {
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
    /// Congestion window before this ACK, in bytes.
    pub cwnd: u64,
}

/// `struct biscay_radio`: state of the radio.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelRadio {
    /// Bandwidth of the device in bit/s; [`NONE`] if unknown.
    pub bandwidth: u64,
    /// Maximum rate granted over a frame of 10 ms, in bit/s.
    pub burst: u64,
    /// Numerator of the flow's part of both rates.
    pub share_num: u64,
    /// Denominator of the flow's part.
    pub share_den: u64,
}

/// The states of BISCAY's controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Slow start.
    Startup,
    /// The window follows the cell's bandwidth.
    Biscay,
    /// BBR controls the flow.
    Fallback,
}

/// The controller's decision. In [`State::Fallback`], window and rate keep their previous values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The state.
    pub state: State,
    /// Congestion window.
    pub cwnd: Bytes,
    /// Pacing rate; `None` before the first ACK.
    pub pacing_rate: Option<Rate>,
    /// The end-to-end bandwidth.
    pub end_to_end: Rate,
}

/// A flow of BISCAY's C port.
pub struct Biscay {
    /// The memory of `struct biscay`.
    words: Box<[u64]>,
}

impl Biscay {
    /// A new flow.
    pub fn new(tuning: KernelTuning, mss: Bytes) -> Biscay {
        Biscay { words: sys::biscay(&tuning, mss.0) }
    }

    /// Records a sent packet. `is_first`: no other packet is outstanding; `app_limited`: the application has no more
    /// data to send after this packet.
    pub fn on_sent(&mut self, now: Time, bytes: Bytes, is_first: bool, app_limited: bool) {
        sys::sent(&mut self.words, now.as_nanos(), bytes.0, is_first, app_limited);
    }

    /// Processes an ACK of new packets.
    pub fn on_ack(&mut self, ack: &KernelAck, radio: &KernelRadio) {
        sys::ack(&mut self.words, ack, radio);
    }

    /// Processes losses. `is_silence`: all outstanding packets were declared lost.
    pub fn on_loss(&mut self, lost: Bytes, is_silence: bool, radio: &KernelRadio) {
        sys::loss(&mut self.words, lost.0, is_silence, radio);
    }

    /// Processes the call that the kernel makes before it sends.
    pub fn before_send(&mut self, now: Time, radio: &KernelRadio) {
        sys::before_send(&mut self.words, now.as_nanos(), radio);
    }

    /// The current decision.
    pub fn answer(&self) -> Answer {
        let [state, cwnd, pacing, end_to_end] = sys::answer(&self.words);
        Answer {
            state: match state {
                0 => State::Startup,
                1 => State::Biscay,
                _ => State::Fallback,
            },
            cwnd: Bytes(cwnd),
            pacing_rate: (pacing > 0).then(|| Rate::from_bps(pacing)),
            end_to_end: Rate::from_bps(end_to_end),
        }
    }
}

#[cfg(test)]
mod tests {
    use airpace_cc::SchemeSpec;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_the_kernel_does_not_know_is_said_at_once() {
        let told = |scheme: &str| {
            let spec = SchemeSpec::parse(scheme).unwrap();
            KernelTuning::new(&Tuning::read(spec.options()).unwrap()).unwrap_err().to_string()
        };
        assert_eq!(told("biscay:loss=on"), "the kernel's part supports only `loss` `off`");
        assert_eq!(
            told("biscay@paper"),
            "the kernel's part supports only `rtt_window_s` above zero, `pacing` `on`, `return_test` `at_most`, `patience` `on`, \
             `queue_test` `on`"
        );
        let told = "biscay@paper:rtt_window_s=10:pacing=on:return_test=at_most:patience=on:queue_test=on";
        let spec = SchemeSpec::parse(told).unwrap();
        assert!(KernelTuning::new(&Tuning::read(spec.options()).unwrap()).is_ok());
    }

    #[test]
    fn both_sides_have_the_same_layouts() {
        use super::bbr::BbrAck;
        use super::morc::{MorcAck, MorcTuning, Packets};
        use super::pbe::{PbeAck, PbeFed, PbeTuning};
        use super::pbe_receiver::PbeArrival;
        let all = sys::layout();
        let (all, pbe, apps) = (&all[..13], &all[13..22], &all[22..28]);
        let &[layout, feed, told, one, tuning, tolerance, ack, radio, morc, rival, morc_ack, packets, bbr] =
            all
        else {
            panic!("{all:?}");
        };
        assert_eq!(layout, 2);
        use crate::layout::{CellWords, FeedWords, HostWords, SharesWords, ShownWords, TotalsWords};
        use std::mem::offset_of;
        assert_eq!(feed, size_of::<FeedWords>() as u64);
        assert_eq!(told, offset_of!(FeedWords, told) as u64);
        assert_eq!(2 * one, feed - told);
        assert_eq!(tuning, size_of::<KernelTuning>() as u64);
        let ours = [
            8,
            size_of::<active::AppFlow>(),
            size_of::<active::RecentBytes>(),
            size_of::<active::DeviceView>(),
            16,
            size_of::<SharesWords>(),
        ];
        assert_eq!(apps, ours.map(|size| size as u64));
        assert_eq!(tolerance, std::mem::offset_of!(KernelTuning, tolerance) as u64);
        assert_eq!(ack, size_of::<KernelAck>() as u64);
        assert_eq!(radio, size_of::<KernelRadio>() as u64);
        assert_eq!(morc, size_of::<MorcTuning>() as u64);
        assert_eq!(rival, std::mem::offset_of!(MorcTuning, rival) as u64);
        assert_eq!(morc_ack, size_of::<MorcAck>() as u64);
        assert_eq!(packets, size_of::<Packets>() as u64);
        assert_eq!(bbr, size_of::<BbrAck>() as u64);
        let sent = std::mem::offset_of!(PbeTuning, sent);
        let ours = [size_of::<PbeTuning>(), sent, size_of::<PbeAck>(), size_of::<PbeFed>()];
        assert_eq!(pbe[..4], ours.map(|size| size as u64));
        let totals = [size_of::<TotalsWords>(), offset_of!(TotalsWords, confirmed)];
        let host = [size_of::<HostWords>(), offset_of!(HostWords, until)];
        assert_eq!(
            pbe[4..],
            [&[size_of::<CellWords>()][..], &totals, &host]
                .concat()
                .into_iter()
                .map(|size| size as u64)
                .collect::<Vec<_>>()
        );
        let cells = [size_of::<CellWords>(), offset_of!(CellWords, full)];
        let cell = &sys::layout()[28..];
        assert_eq!([pbe[4], cell[1]], cells.map(|size| size as u64));
        assert_eq!(2 * cell[0], cell[1] - 16);
        assert_eq!(cell[2], size_of::<PbeArrival>() as u64);
        let shown = [size_of::<ShownWords>(), offset_of!(ShownWords, rate)];
        assert_eq!(cell[3..], shown.map(|size| size as u64));
    }

    #[test]
    fn a_bound_is_a_bound_and_not_a_wrap() {
        assert_eq!(sys::rate_of(u64::MAX, 1), MAX_RATE.as_bps());
        assert_eq!(sys::rate_of(1, 0), 0);
        assert_eq!(sys::bytes_in(u64::MAX, 1_000_000_000), MAX_RATE.as_bps() / 8);
        assert_eq!(sys::scaled(5, 1, 0), 0);
    }

    proptest! {
        #[test]
        fn logarithms_are_those_of_doubles(x in 1u64..1 << 40) {
            let exact = libm::log2(x as f64) * 16_777_216.0;
            prop_assert!((sys::log2(x) as f64 - exact).abs() <= 2.0, "{x}");
        }

        #[test]
        fn products_and_quotients_are_those_of_the_units(
            bps in 0..=MAX_RATE.as_bps(),
            bytes in 0..=MAX_BYTES.0,
            nanos in 1u64..1 << 40,
        ) {
            let (rate, span) = (Rate::from_bps(bps), Duration::from_nanos(nanos));
            prop_assert_eq!(sys::bytes_in(bps, nanos), rate.bytes_in(span).0);
            let carried = Rate::from_bytes_per(Bytes(bytes), span).min(MAX_RATE);
            prop_assert_eq!(sys::rate_of(bytes, nanos), carried.as_bps());
        }

        #[test]
        fn whatever_a_kernel_says_the_window_is_a_packet_and_the_rate_is_bounded(
            mss in 1u64..65_536,
            acks in prop::collection::vec(any::<([u64; 9], [u64; 4], bool)>(), 1..60),
        ) {
            let options = airpace_cc::scheme::Options::defaults(&airpace_cc::biscay::SCHEME);
            let tuning = KernelTuning::new(&Tuning::read(&options).unwrap()).unwrap();
            let mut twin = Biscay::new(tuning, Bytes(mss));
            for ([now, acked, prior_inflight, inflight, delivered, prior_delivered, rtt, smoothed, rate], radio, odd) in acks {
                let [bandwidth, burst, share_num, share_den] = radio;
                let (share_num, share_den) = (share_num % (1 << 24), share_den % (1 << 24));
                let radio = KernelRadio { bandwidth, burst, share_num, share_den };
                twin.on_sent(Time::from_nanos(now), Bytes(acked), odd, odd);
                let app_limited = u64::from(odd);
                let cwnd = inflight;
                twin.on_ack(&KernelAck { now, acked, prior_inflight, inflight, delivered, prior_delivered, rtt, smoothed, rate, app_limited, cwnd }, &radio);
                twin.on_loss(Bytes(acked), odd, &radio);
                twin.before_send(Time::from_nanos(now), &radio);
                let answer = twin.answer();
                prop_assert!(answer.cwnd >= Bytes(mss), "{answer:?}");
                let most = MAX_RATE.as_bps() * 2;
                prop_assert!(answer.pacing_rate.is_none_or(|rate| (1_000..=most).contains(&rate.as_bps())), "{answer:?}");
            }
        }

        #[test]
        fn a_part_differs_by_at_most_one(bps in 0..=MAX_RATE.as_bps(), num in 0u64..1 << 20, den in 1u64..1 << 20) {
            let exact = Rate::from_bps(bps).scaled(num as f64 / den as f64).as_bps();
            // A double has 53 bits: if the product with `num` is larger, Rust rounds it, but C does not.
            let allowed = 1 + exact / (1 << 50);
            prop_assert!(sys::scaled(bps, num, den).abs_diff(exact) <= allowed);
        }
    }
}
