//! The controller in C answers what the one in Rust answers, on all that flows of the built-in scenarios are told, and on
//! arbitrary ACKs.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use airpace_bpf::replay::Replay;
use airpace_bpf::twin::{self, KernelTuning, State};
use airpace_cc::ack_trace::{Answer, Entry, Tape, Traced};
use airpace_cc::biscay::Tuning;
use airpace_cc::biscay::feedback::Feedback;
use airpace_cc::controller::{Ack, Loss, LossCause, RateSample, Rtt, Sent, SentPacket};
use airpace_cc::scheme::Options;
use airpace_cc::{SchemeSpec, Setup};
use airpace_core::{Bytes, Rate, Streams, Time};
use airpace_sim::{Scenario, builtin};
use proptest::prelude::*;

/// The greatest relative difference of windows and rates: some roundings of one part in 10^7 each.
const TOLERANCE: f64 = 1e-6;

/// The same after FALLBACK. There the kernel's BBR controls, whose rounds begin anew when it recovers and when it drains
/// the path. The twin does not see that, so its maxima of rounds may be older or younger by a round.
const TOLERANCE_AFTER_FALLBACK: f64 = 0.06;

/// What a comparison saw.
#[derive(Debug, Default)]
struct Seen {
    startup: u64,
    biscay: u64,
    fallback: u64,
    after_fallback: u64,
    worst: f64,
    worst_after_fallback: f64,
}

fn tuning() -> KernelTuning {
    let options = Options::defaults(&airpace_cc::biscay::SCHEME);
    KernelTuning::new(&Tuning::read(&options).unwrap()).expect("the kernel knows the defaults")
}

fn state(answer: &Answer) -> State {
    match answer.state.split('.').next() {
        Some("Startup") => State::Startup,
        Some("Biscay") => State::Biscay,
        _ => State::Fallback,
    }
}

fn difference(rust: u64, c: u64) -> f64 {
    rust.abs_diff(c) as f64 / rust.max(1) as f64
}

/// Replays a trace of Rust's BISCAY through that in C.
fn compare(name: &str, mss: Bytes, entries: &[Entry]) -> Result<Seen, String> {
    let mut replay = Replay::new(tuning(), mss);
    let (mut seen, mut rust) = (Seen::default(), None::<&Answer>);
    for entry in entries {
        let c = replay.tell(entry);
        rust = entry.answer.as_ref().or(rust);
        let Some(rust) = rust else { continue };
        let unlike = || format!("{name} at {}: Rust {rust:?}, C {c:?}", entry.time);
        if state(rust) != c.state {
            return Err(unlike());
        }
        if c.state == State::Fallback {
            seen.fallback += 1;
            continue;
        }
        let rate = |rate: Option<Rate>| rate.map_or(0, Rate::as_bps);
        let cwnd = difference(rust.cwnd.0, c.cwnd.0);
        let worst = cwnd.max(difference(rate(rust.pacing_rate), rate(c.pacing_rate)));
        let (kept, allowed) = match seen.fallback {
            0 => (&mut seen.worst, TOLERANCE),
            _ => (&mut seen.worst_after_fallback, TOLERANCE_AFTER_FALLBACK),
        };
        *kept = kept.max(worst);
        if worst > allowed {
            return Err(unlike());
        }
        match c.state {
            _ if seen.fallback > 0 => seen.after_fallback += 1,
            State::Startup => seen.startup += 1,
            _ => seen.biscay += 1,
        }
    }
    Ok(seen)
}

/// Collects what a controller is told.
fn tape() -> (Arc<Mutex<Vec<Entry>>>, Tape) {
    let entries = Arc::new(Mutex::new(vec![]));
    let kept = Arc::clone(&entries);
    (entries, Box::new(move |entry: &Entry| kept.lock().unwrap().push(entry.clone())))
}

fn taken(entries: &Mutex<Vec<Entry>>) -> Vec<Entry> {
    std::mem::take(&mut *entries.lock().unwrap())
}

/// A scenario with a given length, or with its own if that is too short for it.
fn load(name: &str, text: &str, seconds: &str) -> Scenario {
    let sets = [("duration_s".to_owned(), seconds.to_owned())];
    Scenario::load(text, name, &sets).or_else(|_| Scenario::load(text, name, &[])).unwrap()
}

#[test]
fn every_flow_of_the_built_in_scenarios_gets_the_same_rates() {
    let biscay = SchemeSpec::parse("biscay").unwrap();
    let (mut compared, mut total) = (0, Seen::default());
    for (name, text) in builtin() {
        // The one that names no file of its own.
        if *name == "trace" {
            continue;
        }
        let scenario = load(name, text, if *name == "biscay-wired-bottleneck" { "16" } else { "6" });
        let prepared = scenario.prepare().unwrap();
        // One flow of each scenario, so that the test does not take minutes: the last one under BISCAY.
        let is_biscay = |&flow: &usize| scenario.scheme_of(flow, &biscay).text() == "biscay";
        let Some(flow) = (0..scenario.flow.len()).rev().find(is_biscay) else { continue };
        let (entries, tape) = tape();
        let mut go_on = |_| ControlFlow::Continue(());
        airpace_sim::run_traced(&prepared, &biscay, 1, (flow, tape), &mut go_on).unwrap();
        let entries = taken(&entries);
        let seen =
            compare(name, scenario.flow[flow].mss(), &entries).unwrap_or_else(|unlike| panic!("{unlike}"));
        println!("{name}, flow {flow}: {seen:?}");
        assert!(seen.startup > 0, "{name}: {seen:?}");
        compared += 1;
        total.startup += seen.startup;
        total.biscay += seen.biscay;
        total.after_fallback += seen.after_fallback;
    }
    assert!(compared >= 23, "only {compared} scenarios were compared");
    assert!(total.startup > 10_000 && total.biscay > 500_000 && total.after_fallback > 1_000, "{total:?}");
}

/// One step of an arbitrary path.
#[derive(Clone, Debug)]
struct Step {
    after_us: u64,
    sent: u64,
    acked: u64,
    rtt_us: Option<u64>,
    rate_kbps: Option<u64>,
    granted_kbps: Option<u32>,
    share: u16,
    burst_kbps: u32,
    lost: bool,
    silence: bool,
    app_limited: bool,
}

/// Rates of up to 90 Mbit/s and shares from a tenth: the device's bandwidth that follows is below the kernel's bound.
fn step() -> impl Strategy<Value = Step> {
    let amounts = (0u64..40_000, 0u64..12, 1u64..9);
    let path = (prop::option::weighted(0.9, 15_000u64..400_000), prop::option::weighted(0.9, 100u64..90_000));
    let radio = (prop::option::weighted(0.9, 0u32..90_000), 6_554u16..=65_535, 0u32..200_000);
    let rare = |part| prop::bool::weighted(part);
    (amounts, path, radio, rare(0.05), rare(0.01), rare(0.05)).prop_map(
        |(
            (after_us, sent, acked),
            (rtt_us, rate_kbps),
            (granted_kbps, share, burst_kbps),
            lost,
            silence,
            app,
        )| Step {
            after_us,
            sent,
            acked,
            rtt_us,
            rate_kbps,
            granted_kbps,
            share,
            burst_kbps,
            lost,
            silence,
            app_limited: app,
        },
    )
}

/// Rust's BISCAY at a server, told these steps.
fn told(steps: &[Step], mss: Bytes) -> Vec<Entry> {
    let spec = SchemeSpec::parse("biscay").unwrap();
    let setup = Setup { mss, rng: Streams::new(1).stream("twins") };
    let (entries, tape) = tape();
    let mut controller = Traced::new(spec.build(&setup).unwrap().controller, &spec, tape);
    let (mut now, mut next_number, mut delivered, mut inflight) =
        (Time::from_secs(100), 0, Bytes::ZERO, Bytes::ZERO);
    let mut outstanding: VecDeque<(SentPacket, Bytes)> = VecDeque::new();
    let mut least = Duration::MAX;
    let mut smoothed = Duration::from_millis(50);
    use airpace_cc::Controller;
    for step in steps {
        now += Duration::from_micros(step.after_us);
        for _ in 0..step.sent {
            inflight += mss;
            let packet = SentPacket { number: next_number, bytes: mss, sent: now, ..SentPacket::default() };
            outstanding.push_back((packet, delivered));
            let app_limited = step.app_limited;
            controller.on_sent(&Sent { now, number: next_number, bytes: mss, inflight, app_limited });
            next_number += 1;
        }
        let prior_inflight = inflight;
        if let (true, Some((packet, _))) = (step.lost || step.silence, outstanding.pop_front()) {
            inflight -= mss;
            let cause = if step.silence { LossCause::Persistent } else { LossCause::Threshold };
            let packets = &[packet];
            controller.on_loss(&Loss {
                now,
                packets,
                lost: mss,
                prior_inflight,
                inflight,
                next_number,
                cause,
            });
        }
        let count = (step.acked as usize).min(outstanding.len());
        let taken: Vec<_> = outstanding.drain(..count).collect();
        let Some(&(_, prior_delivered)) = taken.last() else { continue };
        let acked = Bytes(mss.0 * taken.len() as u64);
        (inflight, delivered) = (inflight - acked, delivered + acked);
        // The first ACK of a connection always has one.
        let latest =
            step.rtt_us.or((prior_delivered == Bytes::ZERO).then_some(50_000)).map(Duration::from_micros);
        least = least.min(latest.unwrap_or(least));
        smoothed = (smoothed * 7 + latest.unwrap_or(smoothed)) / 8;
        let rate = step.rate_kbps.map(|kbps| Rate::from_bps(kbps * 1_000));
        let packets: Vec<SentPacket> = taken.iter().map(|(packet, _)| *packet).collect();
        let feedback = Feedback {
            timestamp: 0,
            bandwidth: step.granted_kbps.map(|kbps| Rate::from_bps(u64::from(kbps) * 1_000)),
            share: f64::from(step.share) / 65_535.0,
            burst: Rate::from_bps(u64::from(step.burst_kbps) * 1_000),
        };
        controller.on_ack(&Ack {
            now,
            packets: &packets,
            acked,
            prior_inflight,
            inflight,
            next_number,
            rtt: Rtt { latest, smoothed, variation: Duration::ZERO, min: least.min(smoothed) },
            rate: RateSample {
                rate,
                delivered,
                prior_delivered,
                app_limited: step.app_limited,
                ..RateSample::default()
            },
            cwnd_limited: true,
            ce: 0,
            feedback: feedback.write().as_bytes(),
        });
    }
    drop(controller);
    taken(&entries)
}

proptest! {
    #[test]
    fn arbitrary_acks_get_the_same_rates(steps in prop::collection::vec(step(), 1..400), mss in 200u64..9_000) {
        let entries = told(&steps, Bytes(mss));
        // What BBR did in FALLBACK is not the twin's to know; up to its end, all must be the same.
        let is_fallback = |entry: &&Entry| entry.answer.as_ref().is_some_and(|answer| state(answer) == State::Fallback);
        let began = entries.iter().position(|entry| is_fallback(&entry)).unwrap_or(entries.len());
        let seen = compare("arbitrary", Bytes(mss), &entries[..began]);
        prop_assert!(seen.is_ok(), "{}", seen.unwrap_err());
    }
}

#[test]
fn a_radio_that_falls_silent_is_not_believed_before_the_next_packet_either() {
    let mss = Bytes(1500);
    let mut twin = twin::Biscay::new(tuning(), mss);
    let radio = |bandwidth| twin::KernelRadio { bandwidth, burst: 0, share_num: 1, share_den: 2 };
    let known = radio(20_000_000);
    for at in 0..200u64 {
        let ms = 1_000_000;
        twin.on_sent(Time::from_millis(at), mss, at == 0, false);
        let rtt = if at < 100 { 40 } else { 60 } * ms;
        let ack = twin::KernelAck {
            now: at * ms,
            acked: 1500,
            prior_inflight: 60_000,
            inflight: 58_500,
            delivered: 1500 * (at + 1),
            prior_delivered: 1500 * at.saturating_sub(40),
            rtt,
            smoothed: rtt,
            rate: 12_000_000,
            app_limited: 0,
            cwnd: 60_000,
        };
        twin.on_ack(&ack, &known);
    }
    let before = twin.answer();
    assert_eq!(before.state, State::Biscay);
    twin.before_send(Time::from_millis(200), &radio(80_000_000));
    let after = twin.answer();
    assert_eq!(after.pacing_rate, Some(Rate::from_mbps(48.0)), "120 % of half of 80 Mbit/s, without an ACK");
    assert!(after.cwnd > before.cwnd);
    twin.before_send(Time::from_millis(201), &radio(twin::NONE));
    assert_eq!(twin.answer().state, State::Fallback);
}
