//! Schemes over a link that is slower than the sender.

use std::sync::{Arc, Mutex};

use airpace_cc::controller::{Arrival, Inspect, Receiver};
use airpace_cc::endpoint::{AckFrame, AckPolicy, Acker, Backlog, Sender, SenderConfig};
use airpace_cc::pacer::PacerConfig;
use airpace_cc::pbe::feedback::Feedback;
use airpace_core::{FlowId, Rider};

use super::*;

const DELAY: Duration = Duration::from_millis(20);

fn narrow(mbps: f64) -> Path {
    Path { link: Some((Rate::from_mbps(mbps), Time::ZERO)), ..Path::clean(20) }
}

/// Runs a download over `path` with `controller`, for `span` after the handshake.
fn download(
    path: Path,
    (controller, receiver): (Box<dyn Controller>, Option<Box<dyn Receiver>>),
    span: Duration,
) -> Pair {
    let mut pair = Pair::new(path);
    pair.connect();
    let now = pair.now;
    pair.connection(true).steer(now, controller);
    pair.connection(false).listen(receiver);
    pair.work[0].to_send = b"please".to_vec();
    pair.work[1].to_send = pattern(60_000_000);
    pair.run_for(span);
    pair
}

/// Returns the rate (Mbit/s) and mean queueing delay (ms) of the packets that arrived between `from` and `to`.
fn measured(packets: impl Iterator<Item = (Time, Time, u64)>, from: Time, to: Time) -> (f64, f64) {
    let late: Vec<(Duration, u64)> = packets
        .filter(|(_, arrived, _)| from <= *arrived && *arrived < to)
        .map(|(sent, arrived, bytes)| (arrived - sent - DELAY, bytes))
        .collect();
    let bits: u64 = late.iter().map(|(_, bytes)| bytes * 8).sum();
    let delay: f64 = late.iter().map(|(delay, _)| delay.as_secs_f64() * 1e3).sum();
    (bits as f64 * 1e-6 / (to - from).as_secs_f64(), delay / late.len() as f64)
}

fn wire(pair: &Pair, from: Time, to: Time) -> (f64, f64) {
    let data = pair.sent.iter().filter(|sent| sent.from_server && sent.bytes > 1000);
    let data = data.filter_map(|sent| Some((sent.at, sent.arrives?, sent.bytes as u64 + 28)));
    measured(data, from, to)
}

/// Runs an equal flow with the simulator's sender and receiver.
fn simulated(text: &str, mbps: f64, span: Duration, from: Duration) -> (f64, f64) {
    let (controller, receiver) = scheme(text);
    let (pacer, ack) = (PacerConfig::default(), AckPolicy::default());
    let config = SenderConfig::new(FlowId(0), MSS).with_pacer(pacer).with_ack(ack);
    let mut sender = Sender::new(config, controller, Backlog::Carried { next: MSS, rest: Bytes(1 << 40) });
    let mut acker = Acker::new(ack, receiver);
    let mut data = BTreeMap::new();
    let mut acks: BTreeMap<(Time, u64), AckFrame> = BTreeMap::new();
    let mut arrived = vec![];
    let (mut now, mut free, mut serial) = (Time::ZERO, Time::ZERO, 0);
    while now < Time::ZERO + span {
        loop {
            sender.set_backlog(Backlog::Carried { next: MSS, rest: Bytes(1 << 40) });
            let Some(transmit) = sender.poll_transmit(now) else { break };
            free = free.max(now) + Rate::from_mbps(mbps).time_for(transmit.bytes);
            data.insert(free + DELAY, (now, transmit));
        }
        while let Some(frame) = acker.poll_ack(now) {
            serial += 1;
            acks.insert((now + DELAY, serial), frame);
        }
        while sender.poll_settled().is_some() {}
        let next = [
            sender.poll_timeout(),
            acker.poll_timeout(),
            data.keys().next().copied(),
            acks.keys().next().map(|(at, _)| *at),
        ];
        now = now.max(next.into_iter().flatten().min().expect("something is under way"));
        if let Some(entry) = data.first_entry().filter(|entry| *entry.key() <= now) {
            let (sent, transmit) = entry.remove();
            arrived.push((sent, now, transmit.bytes.0));
            let (number, bytes, header) = (transmit.number, transmit.bytes, transmit.header);
            let mut arrival = Arrival::new(now, sent, number, bytes);
            arrival.header = header.as_bytes();
            acker.on_packet(&arrival);
        }
        if let Some(entry) = acks.first_entry().filter(|entry| entry.key().0 <= now) {
            sender.on_ack(now, &entry.remove()).unwrap();
        }
        acker.handle_timeout(now);
        sender.handle_timeout(now);
    }
    measured(arrived.into_iter(), Time::ZERO + from, Time::ZERO + span)
}

/// At none of these rates does a tick of Sprout contain a whole number of packets. At 3 Mbit/s, a tick would contain
/// exactly five packets: a nanosecond would decide in which tick a packet counts, and the queueing delay would be 16 ms
/// or 32 ms.
#[test]
fn schemes_with_headers_do_over_quic_what_they_do_in_the_simulator() {
    let (span, from) = (Duration::from_secs(12), Duration::from_secs(4));
    let mut misses = vec![];
    for text in ["sprout", "sprout@ewma"] {
        for mbps in [2.9, 3.1, 4.3, 8.0] {
            let (rate, delay) = simulated(text, mbps, span, from);
            let pair = download(narrow(mbps), scheme(text), span);
            let (wire_rate, wire_delay) = wire(&pair, pair.now - (span - from), pair.now);
            let is_same =
                (wire_rate / rate - 1.0).abs() < 0.03 && (wire_delay - delay).abs() < (0.1 * delay).max(5.0);
            if !is_same {
                misses.push(format!(
                    "{text} at {mbps} Mbit/s: {wire_rate:.2} Mbit/s and {wire_delay:.1} ms over QUIC, {rate:.2} and \
                     {delay:.1} in the simulator"
                ));
            }
        }
    }
    assert!(misses.is_empty(), "{misses:#?}");
}

/// A receiver that reports an invented capacity.
struct Claims {
    claimed: Rate,
    arrivals: Arc<Mutex<u64>>,
}

impl Receiver for Claims {
    fn on_packet(&mut self, _: &Arrival<'_>) {
        *self.arrivals.lock().unwrap() += 1;
    }

    fn feedback(&mut self, _: Time) -> Rider {
        let rate = Some(self.claimed);
        let fed =
            Feedback { fresh: true, carriers: 1, capacity: rate, fair_share: rate, ..Feedback::default() };
        fed.write()
    }

    fn inspect(&self, _: &mut Inspect) {}
}

fn is_flagged(pair: &mut Pair) -> bool {
    let mut inspect = Inspect::default();
    pair.connection(true).inspect(&mut inspect);
    inspect.values.iter().any(|(name, value)| *name == "misreport" && *value == 1.0)
}

/// Runs a flow of PBE-CC over 12 Mbit/s whose receiver reports `factor` times that rate.
fn claims(factor: f64, span: Duration) -> Pair {
    let claimed = Rate::from_mbps(12.0 * factor);
    let half = Claims { claimed, arrivals: Arc::default() };
    download(narrow(12.0), (scheme("pbe").0, Some(Box::new(half))), span)
}

#[test]
fn a_receiver_that_claims_too_much_is_held_within_ten_round_trips() {
    for factor in [4.0, 1.3] {
        let mut pair = claims(factor, Duration::ZERO);
        let mut rounds = 0.0;
        while !is_flagged(&mut pair) {
            pair.run_for(Duration::from_millis(5));
            let rtt = pair.connection(true).figures().rtt;
            let is_queued = rtt.is_some_and(|rtt| rtt.smoothed > rtt.min + Duration::from_millis(11));
            if let Some(rtt) = rtt.filter(|_| is_queued || rounds > 0.0) {
                rounds += 0.005 / rtt.latest.unwrap_or(rtt.smoothed).as_secs_f64();
            }
            assert!(pair.now < Time::from_secs(1_020), "{factor} times the truth is never flagged");
        }
        assert!(rounds > 1.0 && rounds < 10.0, "{factor}: {rounds} round trips since the first queue");
        pair.run_for(Duration::from_secs(3));
        let (rate, delay) = wire(&pair, pair.now - Duration::from_secs(2), pair.now);
        assert!(rate > 11.0, "BBR still uses the path: {rate}");
        assert!(delay < 45.0, "{factor}: a queue of {delay} ms stays");
    }
}

#[test]
fn a_receiver_that_tells_the_truth_is_never_flagged() {
    for factor in [0.5, 0.97] {
        let mut pair = claims(factor, Duration::from_secs(1));
        for _ in 0..100 {
            pair.run_for(Duration::from_millis(100));
            assert!(!is_flagged(&mut pair), "{factor} at {}", pair.now);
        }
        let (rate, _) = wire(&pair, pair.now - Duration::from_secs(5), pair.now);
        assert!((rate / (12.0 * factor) - 1.0).abs() < 0.05, "it is obeyed: {rate} at {factor}");
    }
}

#[test]
fn packets_that_come_late_and_not_never_are_no_losses_in_the_end() {
    let path = Path { detour: (0.02, Duration::from_millis(30)), ..narrow(20.0) };
    let pair = &mut download(path, scheme("cbr:rate_mbps=15"), Duration::from_secs(4));
    let counts = pair.connection(true).ledger().unwrap().counts();
    assert!(counts.lost > 30, "{counts:?}");
    assert!(
        counts.spurious * 10 > counts.lost * 9,
        "nothing was lost, and hardly anything stays so: {counts:?}"
    );
}

#[test]
fn a_path_that_reorders_is_no_path_that_loses() {
    for text in ["reno", "cubic", "bbr"] {
        let path = Path { detour: (0.01, Duration::from_millis(5)), ..narrow(50.0) };
        let pair = &mut download(path, scheme(text), Duration::from_secs(4));
        let (rate, _) = wire(pair, pair.now - Duration::from_secs(2), pair.now);
        assert!(rate > 45.0, "{text}: {rate} of 50 Mbit/s");
    }
}
