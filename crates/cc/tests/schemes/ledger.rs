//! A ledger passes the same events to its controller as a sender does: packets, acknowledgements, samples and losses.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use airpace_cc::controller::{Ack, Arrival, Control, Controller, Inspect, Loss, Sent};
use airpace_cc::endpoint::{
    AckPolicy, Acker, Backlog, Blocked, Ledger, Sender, SenderConfig, Settled, Transmit,
};
use airpace_cc::pacer::PacerConfig;
use airpace_cc::scheme::Setup;
use airpace_cc::schemes::SchemeSpec;
use airpace_core::{Bytes, FlowId, Rider, Streams, Time};

const MSS: Bytes = Bytes(1500);

type Log = Arc<Mutex<Vec<String>>>;

/// A controller that records every call and passes it to `inner`.
struct Recording {
    inner: Box<dyn Controller>,
    log: Log,
}

impl Recording {
    fn note(&self, text: String) {
        self.log.lock().unwrap().push(text);
    }
}

impl Controller for Recording {
    fn on_sent(&mut self, sent: &Sent) {
        self.note(format!("{sent:?}"));
        self.inner.on_sent(sent);
    }

    fn on_ack(&mut self, ack: &Ack<'_>) {
        self.note(format!("{ack:?}"));
        self.inner.on_ack(ack);
    }

    fn on_feedback(&mut self, now: Time, feedback: &[u8]) {
        self.note(format!("{now:?} {feedback:?}"));
        self.inner.on_feedback(now, feedback);
    }

    fn on_loss(&mut self, loss: &Loss<'_>) {
        self.note(format!("{loss:?}"));
        self.inner.on_loss(loss);
    }

    fn handle_timeout(&mut self, now: Time) {
        self.note(format!("timer {now:?}"));
        self.inner.handle_timeout(now);
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.inner.poll_timeout()
    }

    fn control(&self) -> Control {
        self.inner.control()
    }

    fn header(&self) -> Rider {
        self.inner.header()
    }

    fn inspect(&self, out: &mut Inspect) {
        self.inner.inspect(out);
    }
}

fn recording(scheme: &str) -> (Box<Recording>, Log, Option<Box<dyn airpace_cc::controller::Receiver>>) {
    let spec = SchemeSpec::parse(scheme).unwrap();
    let ends = spec.build(&Setup::new(MSS, Streams::new(5).stream("scheme"))).unwrap();
    let log = Log::default();
    (Box::new(Recording { inner: ends.controller, log: log.clone() }), log, ends.receiver)
}

/// Packets and ACKs in transit.
enum Packet {
    Data { number: u64, bytes: Bytes, sent: Time, header: Rider },
    Ack(airpace_cc::endpoint::AckFrame),
}

/// The transport's packet numbers have gaps: every third number belongs to a packet that is not reported to the ledger.
fn name(number: u64) -> u64 {
    number + number / 2
}

/// Results of a run.
#[derive(Default)]
struct Seen {
    acks: usize,
    losses: usize,
    persistent: usize,
    held_by_window: usize,
    held_by_pacer: usize,
    spurious: u64,
}

/// Runs a sender over a path that loses, delays and reorders, with an outage and with pauses of the application, and
/// reports the same packets to a ledger. Both controllers must receive the same events.
fn compare(scheme: &str, seed: u64) -> Seen {
    let (controller, told_by_sender, receiver) = recording(scheme);
    let (twin, told_by_ledger, _) = recording(scheme);
    let (pacer, ack) = (PacerConfig::default(), AckPolicy::default());
    let config = SenderConfig::new(FlowId(0), MSS).with_pacer(pacer).with_ack(ack);
    let mut sender = Sender::new(config, controller, Backlog::NOTHING_CARRIED);
    let mut acker = Acker::new(ack, receiver);
    let mut ledger = Ledger::new(Time::ZERO, MSS, pacer, twin);
    let mut rng = Streams::new(seed).stream("path");
    let mut wire: BTreeMap<(Time, u64), Packet> = BTreeMap::new();
    let mut seen = Seen::default();
    let (mut serial, mut now, mut last_sent) = (0, Time::ZERO, 0);
    let end = Time::from_millis(6_000);
    let mut free = [Time::ZERO; 2];
    while now < end {
        // The application pauses for 200 ms. The path delivers nothing for two seconds.
        let busy = !(1_000..1_200).contains(&now.as_millis());
        let dead = (2_500..4_500).contains(&now.as_millis());
        loop {
            let next = if busy { MSS } else { Bytes::ZERO };
            sender.set_backlog(Backlog::Carried { next, rest: next });
            let Some(transmit) = sender.poll_transmit(now) else {
                match ledger.allowance(now, MSS) {
                    _ if !busy => ledger.on_idle(),
                    Ok(_) => panic!("{scheme}: the sender holds at {now} what the ledger lets go"),
                    Err(by) => {
                        seen.held_by_window += usize::from(by == Blocked::Window);
                        seen.held_by_pacer += usize::from(matches!(by, Blocked::Pacing(_)));
                        ledger.on_held(now, MSS, by);
                    }
                }
                break;
            };
            // A transport that must write the header first announces the packet before it sends it.
            if seed % 2 == 1 {
                let header = ledger.announce(now, transmit.bytes, !busy);
                assert_eq!(header, transmit.header);
            }
            let header = ledger.on_sent(now, name(transmit.number), transmit.bytes, !busy);
            assert_eq!(header, transmit.header);
            last_sent = transmit.number;
            if rng.chance(0.02) || dead {
                continue;
            }
            // The path has 12 Mbit/s, a delay of 20 ms, and sometimes an additional delay of up to 12 ms.
            free[0] = free[0].max(now) + Duration::from_millis(1);
            let detour = if rng.chance(0.05) { Duration::from_micros(12_000) } else { Duration::ZERO };
            let at = free[0] + Duration::from_millis(20) + detour;
            serial += 1;
            let Transmit { number, bytes, header, .. } = transmit;
            wire.insert((at, serial), Packet::Data { number, bytes, sent: now, header });
        }
        while let Some(frame) = acker.poll_ack(now) {
            if !rng.chance(0.03) && !dead {
                serial += 1;
                wire.insert((now + Duration::from_millis(20), serial), Packet::Ack(frame));
            }
        }
        let arrival = wire.keys().next().map_or(Time::NEVER, |(at, _)| *at);
        let timers = [sender.poll_timeout(), acker.poll_timeout(), Some(now + Duration::from_millis(50))];
        let timer = timers.into_iter().flatten().min().unwrap().max(now);
        now = arrival.min(timer);
        if arrival <= now {
            let (_, packet) = wire.pop_first().unwrap();
            match packet {
                Packet::Data { number, bytes, sent, header } => {
                    let mut arrival = Arrival::new(now, sent, number, bytes);
                    arrival.header = header.as_bytes();
                    acker.on_packet(&arrival);
                }
                Packet::Ack(frame) => {
                    sender.on_ack(now, &frame).unwrap();
                    report(&mut sender, &mut ledger, last_sent);
                    ledger.settle(now, frame.feedback.as_bytes());
                }
            }
            continue;
        }
        acker.handle_timeout(now);
        sender.handle_timeout(now);
        let lost = report(&mut sender, &mut ledger, last_sent);
        if lost {
            ledger.settle(now, &[]);
        }
        ledger.handle_timeout(now);
        assert_eq!(sender.inflight(), ledger.inflight());
    }
    let (expected, told) = (told_by_sender.lock().unwrap(), told_by_ledger.lock().unwrap());
    for (index, (expected, told)) in expected.iter().zip(told.iter()).enumerate() {
        assert_eq!(told, expected, "{scheme}, seed {seed}, call {index}");
    }
    assert_eq!(told.len(), expected.len());
    let count = |what: &str| told.iter().filter(|line| line.contains(what)).count();
    seen.acks = count("Ack {");
    seen.losses = count("Loss {");
    seen.persistent = count("Persistent");
    seen.spurious = sender.spurious_losses();
    assert_eq!(ledger.counts().spurious, seen.spurious);
    seen
}

/// Reports the outcomes of packets from the sender to the ledger, and returns whether some packets were lost. The
/// newest packet can only be lost by a timeout without ACKs, which a ledger detects by itself.
fn report(sender: &mut Sender, ledger: &mut Ledger, last_sent: u64) -> bool {
    let mut lost = vec![];
    while let Some(settled) = sender.poll_settled() {
        match settled {
            Settled::Delivered { number, .. } => assert!(ledger.on_acked(name(number))),
            Settled::Lost { number } => lost.push(number),
        }
    }
    if lost.last() == Some(&last_sent) {
        return false;
    }
    lost.iter().for_each(|number| assert!(ledger.on_lost(name(*number))));
    !lost.is_empty()
}

#[test]
fn a_ledger_tells_its_controller_what_a_sender_tells_its_own() {
    let mut all = Seen::default();
    for scheme in ["cubic", "bbr", "pbe", "copa", "cbr:rate_mbps=10", "vivace", "sprout", "biscay"] {
        for seed in 1..=3 {
            let seen = compare(scheme, seed);
            assert!(
                seen.acks > 100 && seen.losses > 5,
                "{scheme}: {} ACKs, {} losses",
                seen.acks,
                seen.losses
            );
            all.persistent += seen.persistent;
            all.held_by_window += seen.held_by_window;
            all.held_by_pacer += seen.held_by_pacer;
            all.spurious += seen.spurious;
        }
    }
    assert!(all.persistent > 0, "the outage was one");
    assert!(all.held_by_window > 0 && all.held_by_pacer > 0, "window and pacer each held something back");
    assert!(all.spurious > 0, "a detour made a loss spurious");
}

#[test]
fn names_of_strangers_change_nothing() {
    let (controller, log, _) = recording("cubic");
    let mut ledger = Ledger::new(Time::ZERO, MSS, PacerConfig::default(), controller);
    ledger.on_sent(Time::ZERO, 7, MSS, false);
    ledger.on_sent(Time::ZERO, 7, MSS, false);
    assert_eq!(ledger.inflight(), MSS, "a name is used once");
    assert!(!ledger.on_acked(6) && !ledger.on_lost(8));
    ledger.settle(Time::from_millis(1), &[]);
    assert_eq!(log.lock().unwrap().len(), 1, "the controller heard of the sending only");
    assert!(ledger.on_acked(7) && ledger.on_acked(7) && ledger.on_lost(7));
    ledger.settle(Time::from_millis(40), b"news");
    assert_eq!((ledger.inflight(), ledger.counts().acked, ledger.counts().lost), (Bytes::ZERO, 1, 0));
}

#[test]
fn what_was_announced_is_told_once_and_stands_for_the_packet_that_leaves() {
    let (controller, log, _) = recording("sprout");
    let mut ledger = Ledger::new(Time::ZERO, MSS, PacerConfig::default(), controller);
    let first = ledger.announce(Time::ZERO, MSS, false);
    assert_eq!(ledger.announce(Time::from_millis(3), MSS, false), first, "nothing left in between");
    assert_eq!(ledger.inflight(), Bytes::ZERO);
    ledger.on_sent(Time::from_millis(3), 1, Bytes(900), true);
    assert_eq!((ledger.inflight(), ledger.counts().sent), (Bytes(900), 1));
    assert_eq!(log.lock().unwrap().len(), 1);
    assert_ne!(ledger.announce(Time::from_millis(4), MSS, false), first);
}

#[test]
fn packets_that_were_lost_lately_are_delivered_if_the_transport_says_so() {
    let (controller, log, _) = recording("bbr3");
    let mut ledger = Ledger::new(Time::ZERO, MSS, PacerConfig::default(), controller);
    let ms = Time::from_millis;
    for number in 0..10 {
        ledger.on_sent(ms(number), number, MSS, false);
    }
    assert!(ledger.on_acked(0) && ledger.on_lost(1));
    ledger.settle(ms(40), &[]);
    for number in 10..20 {
        ledger.on_sent(ms(90 + number), number, MSS, false);
    }
    assert!(ledger.on_lost(12) && ledger.on_lost(13) && ledger.on_acked(15));
    ledger.settle(ms(145), &[]);
    ledger.on_late(ms(150));
    assert!(ledger.on_acked(16));
    ledger.settle(ms(150), &[]);
    assert_eq!(ledger.counts().spurious, 2, "the loss of long ago was a true one");
    assert_eq!(ledger.delivered(), Bytes(5 * 1500));
    assert_eq!(log.lock().unwrap().last().unwrap().matches("declared_lost: true").count(), 2);
    ledger.on_late(ms(151));
    ledger.settle(ms(151), &[]);
    assert_eq!(ledger.counts().spurious, 2, "once");
}
