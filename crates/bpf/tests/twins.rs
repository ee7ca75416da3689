//! The controller in C answers what the one in Rust answers, on everything that flows of the built-in scenarios are
//! told.

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};

use airpace_bpf::replay::Replay;
use airpace_bpf::twin::{KernelTuning, State};
use airpace_cc::ack_trace::{Answer, Entry};
use airpace_cc::biscay::Tuning;
use airpace_cc::scheme::Options;
use airpace_core::{Bytes, Direction};
use airpace_sim::{Scenario, SchemeSpec, builtin};

fn traced(scenario: &Scenario, seed: u64, flow: usize) -> Vec<Entry> {
    let scheme = SchemeSpec::parse("biscay").unwrap();
    let entries = Arc::new(Mutex::new(vec![]));
    let kept = Arc::clone(&entries);
    let tape = Box::new(move |entry: &Entry| kept.lock().unwrap().push(entry.clone()));
    let prepared = scenario.prepare().unwrap();
    let mut go_on = |_| ControlFlow::Continue(());
    airpace_sim::run_traced(&prepared, &scheme, seed, (flow, tape), &mut go_on).unwrap();
    std::mem::take(&mut *entries.lock().unwrap())
}

#[test]
fn look() {
    let tuning = Tuning::read(&Options::defaults(&airpace_cc::biscay::SCHEME)).unwrap();
    let tuning = KernelTuning::new(&tuning).unwrap();
    for (name, text) in builtin() {
        let sets = [("duration_s".to_owned(), "20".to_owned())];
        let Ok(scenario) = Scenario::load(text, name, &sets) else { println!("{name}: not loaded"); continue };
        let Ok(_) = scenario.prepare() else { println!("{name}: not prepared"); continue };
        for flow in 0..scenario.flow.len() {
            let spec = scenario.scheme_of(flow, &SchemeSpec::parse("biscay").unwrap());
            if spec.text() != "biscay" { continue }
            let entries = traced(&scenario, 1, flow);
            let mut replay = Replay::new(tuning, scenario.flow[flow].mss());
            let mut rust: Option<Answer> = None;
            let (mut events, mut compared, mut same, mut states, mut fallback, mut worst, mut rates) = (0, 0, 0, 0, 0, 0.0f64, 0.0f64);
            let mut first = None;
            for entry in &entries {
                let c = replay.tell(entry);
                rust = entry.answer.clone().or(rust);
                let Some(r) = &rust else { continue };
                events += 1;
                let state = match r.state.as_str() { "Startup" => State::Startup, s if s.starts_with("Biscay") => State::Biscay, _ => State::Fallback };
                if state != c.state { states += 1; first.get_or_insert((entry.time, r.clone(), c)); continue }
                if state == State::Fallback { fallback += 1; continue }
                compared += 1;
                let off = (c.cwnd.0 as f64 / r.cwnd.0 as f64 - 1.0).abs();
                let offr = match (c.pacing_rate, r.pacing_rate) { (Some(a), Some(b)) => (a.as_bps() as f64 / b.as_bps() as f64 - 1.0).abs(), (a, b) => if a.is_some() == b.is_some() { 0.0 } else { 9.0 } };
                if off == 0.0 && offr == 0.0 { same += 1 } else { first.get_or_insert((entry.time, r.clone(), c)); }
                worst = worst.max(off); rates = rates.max(offr);
            }
            println!("{name} flow {flow} {:?}: {events} events, {compared} compared, {same} same, {states} other states, {fallback} fallback; worst cwnd {worst:.2e} rate {rates:.2e}; {first:?}", scenario.flow[flow].direction == Direction::Uplink);
        }
    }
    let _ = Bytes(0);
}
