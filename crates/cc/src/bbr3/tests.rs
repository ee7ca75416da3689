//! Tests of spurious losses, with hand-made ACKs. The other tests are in `tests/bbr3.rs`.

use airpace_core::{Streams, Time};

use super::*;
use crate::controller::{LossCause, RateSample, Rtt, SentPacket};

const MSS: Bytes = Bytes(1500);
const RTT: Duration = Duration::from_millis(40);

/// A path that acknowledges one packet every 0.6 ms, at any sending rate: 20 Mbit/s.
struct Path {
    bbr: Bbr3,
    number: u64,
    now: Time,
    lost: u64,
}

impl Path {
    fn new() -> Path {
        let bbr = Bbr3::new(MSS, Streams::new(1).stream("flow.0"), DelayProfile::DRAFT);
        Path { bbr, number: 0, now: Time::from_secs(1), lost: 0 }
    }

    fn packet(&self, number: u64, declared_lost: bool) -> SentPacket {
        let sent = self.now - RTT;
        SentPacket {
            number,
            bytes: MSS,
            sent,
            inflight_at_send: Bytes(99_000),
            declared_lost,
            ..Default::default()
        }
    }

    /// Sends `packets` ACKs. The first ACK also acknowledges the packets `late`, which had been declared lost.
    fn acks(&mut self, packets: u64, late: &[u64]) {
        for index in 0..packets {
            self.number += 1;
            self.now += Duration::from_micros(600);
            let late = if index == 0 { late } else { &[] };
            let mut acked: Vec<_> = late.iter().map(|&number| self.packet(number, true)).collect();
            acked.push(self.packet(self.number, false));
            let delivered = Bytes(self.number * MSS.0);
            self.bbr.on_ack(&Ack {
                now: self.now,
                packets: &acked,
                acked: Bytes(acked.len() as u64 * MSS.0),
                prior_inflight: Bytes(100_500),
                inflight: Bytes(99_000),
                next_number: self.number + 67,
                rtt: Rtt { latest: Some(RTT), smoothed: RTT, variation: Duration::ZERO, min: RTT },
                rate: RateSample {
                    rate: Some(Rate::from_mbps(20.0)),
                    delivered,
                    prior_delivered: delivered - Bytes(100_500),
                    interval: RTT,
                    tx_in_flight: Bytes(99_000),
                    lost: Bytes(self.lost * MSS.0),
                    ..RateSample::default()
                },
                cwnd_limited: false,
                ce: 0,
                feedback: &[],
            });
        }
    }

    /// Declares every second of the next packets lost, `packets` in all. Returns their numbers.
    fn lose(&mut self, packets: u64) -> Vec<u64> {
        let numbers: Vec<u64> = (0..packets).map(|index| self.number + 1 + 2 * index).collect();
        let lost: Vec<_> = numbers.iter().map(|&number| self.packet(number, true)).collect();
        self.lost += packets;
        self.bbr.on_loss(&Loss {
            now: self.now,
            packets: &lost,
            lost: Bytes(packets * MSS.0),
            prior_inflight: Bytes(99_000),
            inflight: Bytes(90_000),
            next_number: self.number + 67,
            cause: LossCause::Threshold,
        });
        numbers
    }
}

#[test]
fn bounds_of_a_recovery_for_nothing_are_taken_back() {
    let mut path = Path::new();
    path.acks(500, &[]);
    assert_eq!(path.bbr.state, State::Cruise);
    let lost = path.lose(3);
    path.acks(150, &[]);
    let bounds = path.bbr.bounds;
    assert!(
        bounds.bw_shortterm.is_some() && bounds.inflight_shortterm.is_some(),
        "loss sets the short-term bounds"
    );
    path.acks(1, &lost[..2]);
    assert_eq!(path.bbr.bounds, bounds, "one of the three packets still counts as lost");
    path.acks(1, &lost[2..]);
    assert_eq!(path.bbr.bounds, Bounds::default(), "all packets arrived, so there was no congestion");
}

#[test]
fn startup_goes_on_after_a_recovery_for_nothing() {
    let mut path = Path::new();
    path.acks(10, &[]);
    assert_eq!(path.bbr.state, State::Startup);
    let lost = path.lose(7);
    path.acks(80, &[]);
    assert!(path.bbr.full_pipe.ever() && path.bbr.state != State::Startup, "seven runs of loss end Startup");
    assert!(path.bbr.bounds.inflight_longterm.is_some());
    path.acks(1, &lost);
    assert_eq!(path.bbr.state, State::Startup, "the pipe is not known to be full");
    assert_eq!(path.bbr.bounds, Bounds::default());
}
