//! Tests of the common PCC base with hand-made packets.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use airpace_core::{Bytes, Streams, Time};

use super::pairs::{Pairs, Votes};
use super::start::{Point, Start};
use super::trend::Regression;
use super::*;
use crate::controller::{LossCause, RateSample, Rtt, SentPacket};

const MSS: Bytes = Bytes(1500);

/// Sends 12 Mbit/s, a packet per millisecond, in intervals of 10 ms, and stores the reports.
#[derive(Clone, Default)]
struct Listener(Arc<Mutex<Vec<Report>>>);

impl Learner for Listener {
    fn next(&mut self, _: &PathView) -> Trial {
        Trial { rate_mbps: 12.0, span: Duration::from_millis(10), tag: Tag::default() }
    }

    fn learn(&mut self, report: &Report, _: &PathView) -> bool {
        self.0.lock().unwrap().push(*report);
        false
    }

    fn inspect(&self, out: &mut Inspect) {
        out.state = "Listening";
    }
}

struct Bench {
    pcc: Pcc<Listener>,
    reports: Arc<Mutex<Vec<Report>>>,
}

impl Bench {
    fn new() -> Bench {
        let listener = Listener::default();
        let reports = Arc::clone(&listener.0);
        Bench { pcc: Pcc::new(MSS, listener), reports }
    }

    fn send(&mut self, number: u64, ms: u64, app_limited: bool) {
        let sent = Sent { now: Time::from_millis(ms), number, bytes: MSS, inflight: MSS, app_limited };
        self.pcc.on_sent(&sent);
    }

    fn packet(number: u64, sent_ms: u64) -> SentPacket {
        SentPacket { number, bytes: MSS, sent: Time::from_millis(sent_ms), ..SentPacket::default() }
    }

    fn ack(&mut self, number: u64, sent_ms: u64, ms: u64) {
        self.ack_packet(Bench::packet(number, sent_ms), ms);
    }

    fn ack_packet(&mut self, packet: SentPacket, ms: u64) {
        let now = Time::from_millis(ms);
        let rtt = now - packet.sent;
        self.pcc.on_ack(&Ack {
            now,
            packets: &[packet],
            acked: MSS,
            prior_inflight: MSS,
            inflight: Bytes::ZERO,
            next_number: packet.number + 1,
            rtt: Rtt { latest: Some(rtt), smoothed: rtt, variation: rtt / 8, min: rtt },
            rate: RateSample::default(),
            cwnd_limited: false,
            ce: 0,
            feedback: &[],
        });
    }

    fn lose(&mut self, number: u64, sent_ms: u64, ms: u64) {
        self.pcc.on_loss(&Loss {
            now: Time::from_millis(ms),
            packets: &[Bench::packet(number, sent_ms)],
            lost: MSS,
            prior_inflight: MSS,
            inflight: Bytes::ZERO,
            next_number: number + 1,
            cause: LossCause::Threshold,
        });
    }

    fn reports(&self) -> Vec<Report> {
        self.reports.lock().unwrap().clone()
    }
}

#[test]
fn what_becomes_of_a_packet_counts_where_it_was_sent() {
    let mut bench = Bench::new();
    bench.send(0, 0, false);
    bench.ack(0, 0, 5); // the first round trip begins a new interval, from packet 1 on
    for number in 1..40 {
        bench.send(number, 10 + number, false);
    }
    for number in 1..=10 {
        if number != 4 {
            bench.ack(number, 10 + number, 40 + 2 * number);
        }
    }
    assert_eq!(bench.reports().len(), 1, "packet 4 may still come: {:?}", bench.reports());
    bench.lose(4, 14, 70);
    let reports = bench.reports();
    let report = reports[1];
    assert_eq!((report.packets, report.lost), (10, 1), "{report:?}");
    assert!((report.sent_mbps - 12.0).abs() < 1e-9, "a packet per millisecond: {report:?}");
    assert!((report.acked_mbps - 10.8).abs() < 1e-9, "nine of ten packets arrived: {report:?}");
    assert!(
        (report.received_mbps.unwrap() - 8.0 * 12.0 / 18.0).abs() < 1e-9,
        "8 packets in 18 ms: {report:?}"
    );
    assert!((report.trend.slope - 1.0).abs() < 1e-9, "each packet waits 1 ms longer: {report:?}");
    assert!(report.trend.error < 1e-6, "the samples are on a straight line: {report:?}");
}

#[test]
fn a_loss_that_proves_spurious_is_none() {
    let mut bench = Bench::new();
    bench.send(0, 0, false);
    bench.ack(0, 0, 5);
    for number in 1..=11 {
        bench.send(number, 10 + number, false);
    }
    bench.lose(1, 11, 30);
    bench.ack_packet(SentPacket { declared_lost: true, ..Bench::packet(1, 11) }, 31);
    for number in 2..=10 {
        bench.ack(number, 10 + number, 30 + number);
    }
    assert_eq!((bench.reports()[1].packets, bench.reports()[1].lost), (10, 0));
}

#[test]
fn an_interval_counts_only_from_where_traffic_is_continuous() {
    let mut bench = Bench::new();
    bench.send(0, 0, false);
    bench.ack(0, 0, 5);
    for number in 1..=5 {
        bench.send(number, 10 + number, number == 5);
    }
    // The application pauses for 100 ms. The five packets before the pause are too few to evaluate 12 Mbit/s.
    for number in 6..=16 {
        bench.send(number, 110 + number, false);
    }
    for number in 1..=16 {
        bench.ack(number, 10 + number, 200 + number);
    }
    let report = bench.reports()[1];
    assert_eq!(report.packets, 10, "only the packets after the pause count: {report:?}");
    assert!((report.sent_mbps - 12.0).abs() < 1e-9, "{report:?}");
}

#[test]
fn a_pause_after_an_interval_was_long_enough_does_not_spoil_it() {
    let mut bench = Bench::new();
    bench.send(0, 0, false);
    bench.ack(0, 0, 5);
    for number in 1..=10 {
        bench.send(number, 10 + number, number == 10);
    }
    bench.send(11, 500, false);
    for number in 1..=10 {
        bench.ack(number, 10 + number, 600 + number);
    }
    let report = bench.reports()[1];
    assert!((report.sent_mbps - 12.0).abs() < 1e-9, "the pause does not count: {report:?}");
}

#[test]
fn a_whole_interval_lost_has_a_report_of_finite_numbers() {
    let mut bench = Bench::new();
    for number in 0..=10 {
        bench.send(number, number, false);
    }
    for number in 0..10 {
        bench.lose(number, number, 2_000);
    }
    let report = bench.reports()[0];
    assert!(report.is_void());
    assert_eq!((report.loss, report.acked_mbps, report.received_mbps), (1.0, 0.0, None));
    assert!(report.rtt_s > 0.0);
}

#[test]
fn intervals_on_their_way_are_bounded_in_number() {
    let mut bench = Bench::new();
    for number in 0..100_000 {
        bench.send(number, number, false);
    }
    assert_eq!(bench.pcc.intervals.len(), MAX_INTERVALS);
    for number in 0..100_000 {
        bench.lose(number, number, 200_000);
    }
    assert!(bench.pcc.intervals.len() <= 1, "only the interval being sent is left");
    assert!(bench.pcc.control().cwnd >= MSS);
}

#[test]
fn a_regression_of_one_instant_has_no_slope() {
    let mut regression = Regression::default();
    assert_eq!(regression.mean(), None);
    for _ in 0..5 {
        regression.add(3.0, 0.25);
    }
    assert_eq!(regression.trend().slope, 0.0);
    assert_eq!(regression.mean(), Some(0.25));
}

#[test]
fn noise_shows_in_the_error_of_the_slope() {
    let mut regression = Regression::default();
    for sample in 0..20 {
        let noise = if sample % 2 == 0 { 1e-3 } else { -1e-3 };
        regression.add(f64::from(sample) * 1e-3, 0.05 + noise);
    }
    let trend = regression.trend();
    assert!(trend.slope.abs() < 2.0 * trend.error, "{trend:?}");
}

#[test]
fn the_start_doubles_until_utility_no_longer_rises() {
    let mut start = Start::default();
    let at = |rate_mbps: f64, utility: f64| Point { rate_mbps, utility };
    assert_eq!(start.next(1.0), (1.0, true));
    assert_eq!(start.next(1.0), (2.0, true));
    assert_eq!(start.next(1.0), (2.0, false), "no report has come, so the rate does not rise further");
    assert_eq!(start.learn(at(1.0, 1.0)), None);
    assert!(start.was_held() && !start.was_held());
    assert_eq!(start.next(1.0), (4.0, true));
    assert_eq!(start.learn(at(2.0, 2.0)), None);
    assert_eq!(start.next(1.0), (8.0, true));
    assert_eq!(start.learn(at(4.0, 1.5)), Some(at(2.0, 2.0)));
    start.again();
    assert_eq!(start.next(1.0), (4.0, true), "the rate with the lower utility is tried once more");
}

#[test]
fn a_series_tries_each_rate_once_per_pair_and_tells_who_won() {
    let mut rng = Streams::new(3).stream("pairs");
    for _ in 0..50 {
        let mut pairs = Pairs::new(&mut rng, 2, 0.05);
        let mut votes = None;
        let mut factors = vec![];
        while let Some((place, factor)) = pairs.begin() {
            factors.push(factor);
            // The higher rate has the higher utility in the first pair, the lower rate in the second.
            votes = pairs.learn(place, if place < 2 { factor } else { -factor });
        }
        assert_eq!(factors.len(), 4);
        assert!(
            factors[0] * factors[1] < 1.0 && factors[2] * factors[3] < 1.0,
            "each pair has one rate above and one below"
        );
        assert_eq!(votes, Some(Votes { higher: 1, lower: 1 }));
        let (higher, lower) = pairs.means(|higher, lower| higher > lower).unwrap();
        assert!((higher - 1.05).abs() < 1e-12 && (lower - 0.95).abs() < 1e-12);
    }
}
