//! BISCAY's C port makes the same decisions as the Rust controller, for all events of flows of the built-in scenarios, and
//! for arbitrary ACKs.

use crate::common;

use std::collections::BTreeSet;

use airpace_bpf::replay::Replay;
use airpace_bpf::twin::{self, KernelTuning, State};
use airpace_cc::SchemeSpec;
use airpace_cc::ack_trace::{Answer, Entry, Told};
use airpace_cc::biscay::Tuning;
use airpace_cc::scheme::Options;
use airpace_core::{Bytes, Rate, Time};
use airpace_sim::builtin;
use common::{Step, Trace, drawn, step, told, traced, unless_tie};
use proptest::prelude::*;

/// Maximum relative difference of the two versions' windows and rates: the error of a few roundings of 10^-7 each.
const TOLERANCE: f64 = 1e-6;

/// Maximum relative difference if flows share by recent use. A difference of 10^-8 in the share can change a window by a
/// byte, and the rate follows the window.
const TOLERANCE_BY_USE: f64 = 1e-4;

/// Maximum relative difference after FALLBACK. In FALLBACK the kernel's BBR controls the flow, and its rounds restart after
/// a recovery and after a drain. The C port does not observe this, so its maxima over rounds may differ by one round.
const TOLERANCE_AFTER_FALLBACK: f64 = 0.06;

/// Results of a comparison.
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
    tuning_of(&Options::defaults(&airpace_cc::biscay::SCHEME))
}

fn tuning_of(options: &Options) -> KernelTuning {
    KernelTuning::new(&Tuning::read(options).unwrap()).expect("the kernel knows them")
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

/// Replays a trace of the Rust controller through the C port.
fn compare(
    name: &str,
    (tuning, tolerance): (KernelTuning, f64),
    mss: Bytes,
    entries: &[Entry],
) -> Result<Seen, String> {
    let mut replay = Replay::new(tuning, mss);
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
            0 => (&mut seen.worst, tolerance),
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

#[test]
fn every_flow_of_the_built_in_scenarios_gets_the_same_rates() {
    let (mut compared, mut total) = (0, Seen::default());
    for (name, text) in builtin() {
        // This scenario does not name a trace file, so it cannot run without one.
        if *name == "trace" {
            continue;
        }
        // The test compares one flow of each scenario, and so does not take minutes.
        let seconds = match *name {
            "biscay-wired-bottleneck" => "16",
            // Cells of 5G carry a hundred times as many packets.
            name if name.starts_with("nr-") => "1",
            _ => "6",
        };
        let Some(Trace { mss, entries, .. }) = traced(name, text, "biscay", seconds) else { continue };
        let seen =
            compare(name, (tuning(), TOLERANCE), mss, &entries).unwrap_or_else(|unlike| panic!("{unlike}"));
        println!("{name}: {seen:?}");
        assert!(seen.startup > 0, "{name}: {seen:?}");
        compared += 1;
        total.startup += seen.startup;
        total.biscay += seen.biscay;
        total.after_fallback += seen.after_fallback;
    }
    assert!(compared >= 23, "only {compared} scenarios were compared");
    assert!(total.startup > 10_000 && total.biscay > 500_000 && total.after_fallback > 1_000, "{total:?}");
}

#[test]
fn other_policies_of_sharing_get_the_same_rates() {
    let mut parts = BTreeSet::new();
    for scheme in ["biscay:split=app", "biscay:split=proportional"] {
        let spec = SchemeSpec::parse(scheme).unwrap();
        let mut compared = 0;
        for name in ["biscay-three-flows", "biscay-uplink"] {
            let (_, text) = builtin().iter().find(|(builtin, _)| *builtin == name).unwrap();
            let Trace { mss, entries, .. } =
                traced(name, text, scheme, "6").expect("its flows have no scheme of their own");
            let seen = compare(name, (tuning_of(spec.options()), TOLERANCE_BY_USE), mss, &entries);
            let seen = seen.unwrap_or_else(|unlike| panic!("{scheme}, {unlike}"));
            println!("{scheme}, {name}: {seen:?}");
            compared += seen.biscay;
            parts.extend(entries.iter().filter_map(|entry| match &entry.told {
                Told::Device(device) => Some((device.used_share * 1e6) as u64),
                _ => None,
            }));
        }
        assert!(compared > 3_000, "{scheme}: {compared}");
    }
    assert!(parts.len() > 100, "shares that change, and not {parts:?}");
}

/// Compares the decisions up to FALLBACK: the C port does not observe BBR's decisions in FALLBACK.
fn compare_steps(name: &str, steps: &[Step], mss: Bytes) -> Result<Seen, String> {
    let entries = told("biscay", steps, mss);
    let is_fallback =
        |entry: &Entry| entry.answer.as_ref().is_some_and(|answer| state(answer) == State::Fallback);
    let end = entries.iter().position(is_fallback).unwrap_or(entries.len());
    compare(name, (tuning(), TOLERANCE), mss, &entries[..end])
}

#[test]
fn acks_that_once_parted_the_twins_get_the_same_rates() {
    let (steps, mss) = drawn(include_str!("drawn/biscay-startup.txt"));
    let seen = compare_steps("biscay-startup", &steps, mss).unwrap_or_else(|unlike| panic!("{unlike}"));
    assert!(seen.startup > 10 && seen.biscay > 10, "{seen:?}");
}

proptest! {
    #[test]
    fn arbitrary_acks_get_the_same_rates(steps in prop::collection::vec(step(), 1..400), mss in 200u64..9_000) {
        let mss = Bytes(mss);
        let seen = unless_tie(&steps, mss, |steps| compare_steps("arbitrary", steps, mss));
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
