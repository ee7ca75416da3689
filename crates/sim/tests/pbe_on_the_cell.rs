//! What PBE-CC must achieve on the cell, told as stories over the built-in scenarios: conditions → run → check.

use std::ops::{ControlFlow, Range};

use airpace_event::{Event, Fate, Recorder};
use airpace_sim::{Scenario, SchemeSpec, builtin};

/// The Oracle that keeps the device's HARQ processes busy: the honest bound, as the cell delays by itself.
const ORACLE: &str = "oracle:slack_ms=8";

#[test]
fn an_idle_cell_is_used_without_a_queue_at_any_round_trip_time() {
    for rtt_ms in [11, 42, 162, 282] {
        let sets = format!("flow.0.rtt_ms={rtt_ms}");
        for seed in 1..=3 {
            let pbe = first("stationary-idle", &sets, "pbe", seed);
            let oracle = first("stationary-idle", &sets, ORACLE, seed);
            let part = pbe.mbps(0.0..20.0) / oracle.mbps(0.0..20.0);
            assert!(
                part >= 0.95,
                "{rtt_ms} ms, seed {seed}: {part} of what the Oracle carries, start included"
            );
            let p95 = pbe.queueing_p95_ms(0.0..20.0);
            assert!(p95 <= 30.0, "{rtt_ms} ms, seed {seed}: {p95} ms of queueing at p95");
            pbe.was_never_in("Internet");
        }
    }
}

#[test]
fn the_estimate_is_what_the_carriers_together_carry() {
    for carriers in [1, 2, 3] {
        let sets = format!("duration_s=6 cell.carriers={carriers}");
        let carried = first("stationary-idle", &sets, "cbr:rate_mbps=300", 1).mbps(2.0..6.0);
        let translated = first("stationary-idle", &sets, "pbe", 1).mean("ct_mbps", 2.0..6.0);
        assert!(
            (translated / carried - 1.0).abs() <= 0.03,
            "{translated} Mbit/s are said of {carriers} carriers that carry {carried}"
        );
    }
}

#[test]
fn a_backlogged_competitor_leaves_the_fair_share() {
    for rtt_ms in [11, 42, 162, 282] {
        let sets = format!("duration_s=10 flow.0.rtt_ms={rtt_ms}");
        let alone = first("stationary-idle", &sets, ORACLE, 1).mbps(3.0..10.0);
        let rival = format!("{sets} flow.1.scheme=cubic flow.1.start_s=0 flow.1.on_s=100");
        let pbe = first("competitor", &rival, "pbe", 1);
        let part = pbe.mbps(3.0..10.0) / (0.5 * alone);
        assert!(
            part >= 0.9,
            "{rtt_ms} ms: {part} of its fair share beside a CUBIC that is always backlogged"
        );
        pbe.was_never_in("Internet");
    }
}

#[test]
fn a_competitor_that_comes_and_goes_is_not_taken_for_the_internet() {
    for seed in 1..=3 {
        first("competitor", "duration_s=21", "pbe", seed).was_never_in("Internet");
    }
}

#[test]
fn a_start_over_further_carriers_is_not_taken_for_a_stalled_one() {
    for carriers in [2, 3] {
        for (rtt_ms, seed) in [11, 42].into_iter().flat_map(|rtt_ms| (1..=12).map(move |seed| (rtt_ms, seed)))
        {
            let sets = format!("duration_s=1 flow.0.rtt_ms={rtt_ms} cell.carriers={carriers}");
            first("stationary-idle", &sets, "pbe", seed).was_never_in("Drain");
        }
    }
}

#[test]
fn silence_of_200_ms_leaves_no_queue_after_a_second() {
    let outage = "duration_s=7 ack_outage=[{at_s=4,for_s=0.2}]";
    let pbe = first("stationary-idle", outage, "pbe", 1);
    let (before, after) = (2.0..4.0, 5.2..7.0);
    let p95 = (pbe.queueing_p95_ms(before.clone()), pbe.queueing_p95_ms(after.clone()));
    assert!(p95.1 <= p95.0 + 3.0, "{} ms a second after the silence, {} before it", p95.1, p95.0);
    let mbps = (pbe.mbps(before), pbe.mbps(after));
    assert!(mbps.1 >= 0.95 * mbps.0, "{} Mbit/s after the silence, {} before it", mbps.1, mbps.0);
    pbe.was_never_in("Internet");
}

#[test]
fn acks_that_come_bunched_by_8_ms_cost_little() {
    let smooth = first("stationary-idle", "duration_s=8", "pbe", 1);
    let bunched = first("stationary-idle", "duration_s=8 reverse.batch_ms=8", "pbe", 1);
    let part = bunched.mbps(0.0..8.0) / smooth.mbps(0.0..8.0);
    assert!(part >= 0.95, "{part} of what it carries with ACKs one by one");
    let p95 = bunched.queueing_p95_ms(0.0..8.0);
    assert!(p95 <= 30.0, "{p95} ms of queueing at p95");
}

#[test]
fn a_step_of_the_clock_is_forgotten_within_12_seconds() {
    for (seed, step_ms) in [(1, 50), (2, 50), (3, 50), (1, -50)] {
        let step = format!("duration_s=19 device.0.clock.step_ms={step_ms} device.0.clock.step_at_s=5");
        let pbe = first("stationary-idle", &step, "pbe", seed);
        let state = pbe.state_at(17.0);
        assert_eq!(state, "Wireless", "12 s after a step of {step_ms} ms, seed {seed}");
        let plain = first("stationary-idle", "duration_s=19", "pbe", seed);
        let part = pbe.mbps(17.0..19.0) / plain.mbps(17.0..19.0);
        assert!(part >= 0.97, "{part} of what it carries with a clock that did not step by {step_ms} ms");
    }
}

#[test]
fn a_clock_that_drifts_by_100_ppm_is_harmless() {
    let mbps = |sets: &str| {
        let pbe = first("stationary-idle", sets, "pbe", 1);
        pbe.was_never_in("Internet");
        pbe.mbps(0.0..12.0)
    };
    let plain = mbps("duration_s=12");
    for ppm in [100, -100] {
        let drifting = mbps(&format!("duration_s=12 device.0.clock.drift_ppm={ppm}"));
        assert!((drifting / plain - 1.0).abs() < 0.01, "{drifting} Mbit/s at {ppm} ppm, {plain} without");
    }
}

#[test]
fn a_wired_bottleneck_is_entered_without_loss_and_left_when_it_goes() {
    for seed in 1..=3 {
        let pbe = first("wired-bottleneck", "duration_s=23", "pbe", seed);
        assert_eq!(pbe.dropped, 0, "300 ms of buffer are enough, seed {seed}");
        let entered = pbe.enters("Drain", 10.5);
        assert!(entered < 10.7, "noticed at {entered} s, seed {seed}");
        let within = pbe.mbps(12.0..20.0);
        assert!((13.8..15.1).contains(&within), "{within} of 15 Mbit/s, seed {seed}");
        let left = pbe.enters("Wireless", 20.0);
        assert!(left <= 22.5, "left at {left} s, seed {seed}");
    }
}

#[test]
fn a_walk_away_from_the_cell_and_back_is_followed() {
    let pbe = first("mobility", "duration_s=34", "pbe", 1);
    let oracle = first("mobility", "duration_s=34", ORACLE, 1);
    let part = pbe.mbps(0.0..34.0) / oracle.mbps(0.0..34.0);
    assert!(part >= 0.95, "{part} of what the Oracle carries");
    let used = pbe.mbps(0.0..34.0) / pbe.capacity_mbps(0.0..34.0);
    assert!(used <= 1.0, "{used} of what the cell could carry: nobody carries more than that");
    let p95 = pbe.queueing_p95_ms(0.0..34.0);
    assert!(p95 <= 30.0, "{p95} ms of queueing at p95");
    pbe.was_never_in("Internet");
}

#[test]
fn a_decoder_that_reads_nothing_is_not_taken_for_an_idle_cell() {
    let deaf = first("stationary-idle", "duration_s=6 cell.telemetry.missed_dci=1", "pbe", 1);
    assert!(deaf.enters("Fallback.Startup", 0.0) < 1.0, "{:?}", deaf.states);
    assert!(deaf.state_at(5.9).starts_with("Fallback."), "and it stays there: {:?}", deaf.states);
    assert_eq!(deaf.mean("carriers_missing_n", 3.0..6.0), 1.0, "the carrier counts as missing");
    let part = deaf.mbps(2.0..6.0) / deaf.capacity_mbps(2.0..6.0);
    assert!(part > 0.9, "{part} of the cell is used without its telemetry");
    let poor = first("stationary-idle", "duration_s=6 cell.telemetry.missed_dci=0.1", "pbe", 1);
    poor.was_never_in("Fallback");
}

/// Runs a built-in scenario with these keys set (`key=value`, separated by blanks); gives its first flow.
fn first(name: &str, sets: &str, scheme: &str, seed: u64) -> FirstFlow {
    let (_, text) = builtin().iter().find(|(known, _)| *known == name).expect("a built-in scenario");
    let sets: Vec<_> = sets
        .split_whitespace()
        .map(|set| set.split_once('=').expect("key=value"))
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect();
    let scenario = Scenario::load(text, name, &sets).unwrap_or_else(|error| panic!("{error}"));
    let spec = SchemeSpec::parse(scheme).unwrap();
    let mut flow = FirstFlow::default();
    airpace_sim::run(&scenario, &spec, seed, &mut flow, &mut |_| ControlFlow::Continue(()))
        .unwrap_or_else(|error| panic!("{error}"));
    flow
}

/// What the first flow and its device, the first one too, went through; times in seconds.
#[derive(Default)]
struct FirstFlow {
    /// Time, bytes and queueing delay in ms of every packet.
    arrivals: Vec<(f64, u64, f64)>,
    dropped: u64,
    /// When it entered which state.
    states: Vec<(f64, String)>,
    /// Named internals.
    values: Vec<(f64, &'static str, f64)>,
    /// What its device's radio could have carried, in bytes.
    capacity: Vec<(f64, u64)>,
}

impl FirstFlow {
    /// Mean rate of what arrived.
    fn mbps(&self, span: Range<f64>) -> f64 {
        let arrived = self.arrivals.iter().filter(|(at, ..)| span.contains(at));
        arrived.map(|(_, bytes, _)| *bytes as f64 * 8e-6).sum::<f64>() / (span.end - span.start)
    }

    /// Mean rate of what could have arrived.
    fn capacity_mbps(&self, span: Range<f64>) -> f64 {
        let possible = self.capacity.iter().filter(|(at, _)| span.contains(at));
        possible.map(|(_, bytes)| *bytes as f64 * 8e-6).sum::<f64>() / (span.end - span.start)
    }

    /// Queueing delay that 95 % of the packets stayed below.
    fn queueing_p95_ms(&self, span: Range<f64>) -> f64 {
        let arrived = self.arrivals.iter().filter(|(at, ..)| span.contains(at));
        let mut delays: Vec<f64> = arrived.map(|(.., delay)| *delay).collect();
        assert!(!delays.is_empty(), "nothing arrived in {span:?}");
        delays.sort_by(f64::total_cmp);
        delays[delays.len() * 95 / 100]
    }

    /// Mean of a named value.
    fn mean(&self, name: &str, span: Range<f64>) -> f64 {
        let seen = self.values.iter().filter(|(at, key, _)| *key == name && span.contains(at));
        let (sum, count) = seen.fold((0.0, 0.0), |(sum, count), (.., value)| (sum + value, count + 1.0));
        sum / count
    }

    /// The state it is in.
    fn state_at(&self, time_s: f64) -> &str {
        let before = self.states.iter().rev().find(|(at, _)| *at <= time_s);
        &before.expect("a state").1
    }

    /// When it first enters a state after `from_s`; infinity if never.
    fn enters(&self, state: &str, from_s: f64) -> f64 {
        let entry = self.states.iter().find(|(at, name)| *at >= from_s && name == state);
        entry.map_or(f64::INFINITY, |(at, _)| *at)
    }

    /// Checks that no state begins with this word.
    fn was_never_in(&self, word: &str) {
        assert!(!self.states.is_empty(), "states are recorded");
        assert!(self.states.iter().all(|(_, state)| !state.starts_with(word)), "{:?}", self.states);
    }
}

impl Recorder for FirstFlow {
    fn record(&mut self, event: Event<'_>) {
        match event {
            Event::Arrived(arrived) if arrived.packet.flow.0 == 0 => match arrived.fate {
                Fate::Delivered => {
                    let one_way = arrived.time - arrived.packet.sent;
                    let queueing = one_way.as_secs_f64() - arrived.propagation_delay.as_secs_f64();
                    let packet = (arrived.time.as_secs_f64(), arrived.packet.bytes.0, queueing * 1e3);
                    self.arrivals.push(packet);
                }
                _ => self.dropped += 1,
            },
            Event::Inspected(seen) if seen.flow.0 == 0 => {
                let now = seen.time.as_secs_f64();
                if seen.state_changed {
                    self.states.push((now, seen.state.to_owned()));
                }
                self.values.extend(seen.values.iter().map(|&(name, value)| (now, name, value)));
            }
            Event::Capacity(capacity) if capacity.device.0 == 0 => {
                self.capacity.push((capacity.time.as_secs_f64(), capacity.bytes.0));
            }
            _ => {}
        }
    }
}
