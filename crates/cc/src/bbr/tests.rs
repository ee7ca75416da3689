//! Tests of the parts of BBR that PBE-CC uses, with hand-made ACKs. BBR's own tests are in `tests/bbr.rs`.

use airpace_core::Streams;

use super::*;
use crate::controller::{RateSample, Rtt, SentPacket};

const MSS: Bytes = Bytes(1500);
const RTT: Duration = Duration::from_millis(40);

/// A path that acknowledges one packet every 0.6 ms, at any sending rate: 20 Mbit/s.
struct Acks {
    number: u64,
    now: Time,
}

impl Acks {
    fn next(&mut self, mut give: impl FnMut(&Ack<'_>)) {
        self.number += 1;
        self.now += Duration::from_micros(600);
        let packet = SentPacket {
            number: self.number,
            bytes: MSS,
            sent: self.now - RTT,
            inflight_at_send: Bytes(99_000),
            ..SentPacket::default()
        };
        let delivered = Bytes(self.number * MSS.0);
        give(&Ack {
            now: self.now,
            packets: &[packet],
            acked: MSS,
            prior_inflight: Bytes(100_500),
            inflight: Bytes(99_000),
            next_number: self.number + 67,
            rtt: Rtt { latest: Some(RTT), smoothed: RTT, variation: Duration::ZERO, min: RTT },
            rate: RateSample {
                rate: Some(Rate::from_mbps(20.0)),
                delivered,
                prior_delivered: delivered - Bytes(100_500),
                interval: RTT,
                ..RateSample::default()
            },
            cwnd_limited: false,
            ce: 0,
            feedback: &[],
        });
    }
}

fn bbr_and_path() -> (Bbr, Acks) {
    let bbr = Bbr::new(MSS, Streams::new(1).stream("flow.0"), Tuning::default());
    (bbr, Acks { number: 0, now: Time::from_secs(1) })
}

#[test]
fn the_model_is_fresh_while_another_control_sends() {
    let (mut bbr, mut path) = bbr_and_path();
    for _ in 0..500 {
        path.next(|ack| {
            bbr.observe(ack, Rate::from_mbps(20.0));
        });
    }
    assert_eq!((bbr.model().btlbw(), bbr.model().rtprop()), (Rate::from_mbps(20.0), Some(RTT)));
    assert_eq!(bbr.state_name(), "Startup", "the state has not changed");
    bbr.enter_probe_bw(path.now, None);
    assert_eq!(bbr.state_name(), "ProbeBW");
    let cwnd = bbr.control().cwnd;
    assert!(cwnd >= Bytes(200_000), "the window is two bandwidth-delay products at once: {cwnd:?}");
}

#[test]
fn what_is_known_of_the_bandwidth_can_be_forgotten() {
    let (mut bbr, mut path) = bbr_and_path();
    for _ in 0..500 {
        path.next(|ack| {
            bbr.observe(ack, Rate::from_mbps(20.0));
        });
    }
    bbr.enter_probe_bw(path.now, Some(Rate::from_mbps(5.0)));
    assert_eq!(bbr.model().btlbw(), Rate::from_mbps(5.0));
    assert!(bbr.control().cwnd < Bytes(80_000), "{:?}", bbr.control().cwnd);
}

#[test]
fn a_probe_never_exceeds_its_cap() {
    let (mut bbr, mut path) = bbr_and_path();
    bbr.set_probe(Probe { gain: STARTUP_GAIN, cap: Some(Rate::from_mbps(22.0)), while_growing: false });
    bbr.enter_probe_bw(path.now, Some(Rate::from_mbps(20.0)));
    let mut fastest = Rate::ZERO;
    for _ in 0..1_000 {
        path.next(|ack| bbr.on_ack(ack));
        fastest = fastest.max(bbr.control().pacing_rate.unwrap());
    }
    assert_eq!(fastest, Rate::from_mbps(22.0).scaled(0.99), "Cf minus the margin");
}
