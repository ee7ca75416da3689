//! Senders detect receivers that report more than the true capacity, and limit the rate to these receivers to the rate
//! that the path delivers; flows of honest receivers are not limited.

use crate::watched;

use std::path::{Path, PathBuf};

use airpace_sim::{Scenario, builtin};
use watched::{Watched, flows, watch};

/// Returns the time at which a flow's sender first limited its rate because of doubts about its receiver, and the time
/// at which the sender stopped using the receiver's reports.
fn found(flow: &Watched) -> (f64, f64) {
    let held = flow.enters("Check", 0.0);
    let flagged = flow.looks.iter().find(|look| look.value("misreport") > 0.0);
    (held, flagged.map_or(f64::INFINITY, |look| look.at_s))
}

/// Returns the number of round trips between two times (s), with the round-trip times that packets have in this
/// interval.
fn round_trips(flow: &Watched, rtt_ms: f64, from_s: f64, to_s: f64) -> f64 {
    let (mut at, mut rounds) = (from_s, 0.0);
    while at < to_s {
        let queued = flow.queueing_mean_ms(at..at + 0.02 + rtt_ms * 1e-3);
        let span = (rtt_ms + queued) * 1e-3;
        rounds += (to_s - at).min(span) / span;
        at += span;
    }
    rounds
}

/// Returns whether a flow's scheme detects misreports and ever suspected its receiver.
fn is_doubted(flow: &Watched) -> bool {
    let has_guard = flow.looks.last().is_some_and(|look| look.has("misreport"));
    has_guard && found(flow).0 < f64::INFINITY
}

#[test]
fn who_claims_more_than_the_cell_gives_is_held_within_ten_round_trips() {
    for (scenario, sets) in [
        ("stationary-idle", ""),
        ("mobility", ""),
        ("competitor", "flow.1.scheme=pbe flow.1.start_s=0 flow.1.on_s=100"),
    ] {
        for (rtt_ms, factor, seed) in
            [(11.0, 4.0, 1), (42.0, 4.0, 2), (42.0, 1.3, 1), (42.0, 1.3, 3), (162.0, 1.3, 2)]
        {
            let lie = format!("flow.0.misreport.factor={factor} flow.0.misreport.from_s=4");
            let sets = format!("duration_s=12 {sets} flow.0.rtt_ms={rtt_ms} {lie}");
            let liar = first_of(scenario, &sets, "pbe", seed);
            let what = format!("{scenario}, {rtt_ms} ms, {factor} times, seed {seed}");
            let (held, flagged) = found(&liar);
            assert!(held > 4.0 && flagged < 12.0, "{what}: held at {held} s, flagged at {flagged} s");
            let rounds = round_trips(&liar, rtt_ms, 4.0, flagged);
            assert!(rounds <= 10.0, "{what}: flagged after {rounds} round trips");
            liar.was_never_in("Fallback");
        }
    }
}

#[test]
fn a_held_liar_has_the_queue_of_bbr_and_not_that_of_its_lie() {
    let lie = "duration_s=14 flow.0.misreport.factor=4 flow.0.misreport.from_s=4";
    let (held, free) =
        (first_of("stationary-idle", lie, "pbe", 1), first_of("stationary-idle", lie, "pbe:guard=off", 1));
    let span = 6.0..10.0;
    let (held_ms, free_ms) = (held.queueing_p95_ms(span.clone()), free.queueing_p95_ms(span.clone()));
    assert!(held_ms < 60.0 && free_ms > 120.0, "{held_ms} ms with the guard, {free_ms} ms without");
    let part = held.mbps(span.clone()) / free.mbps(span);
    assert!(part > 0.9, "what the cell can give, it still gives: {part}");
}

#[test]
fn bursts_of_lies_are_found_too() {
    for (factor, seed) in [(4.0, 1), (4.0, 2), (1.3, 1), (1.3, 2)] {
        let lie = format!(
            "flow.0.misreport.factor={factor} flow.0.misreport.from_s=3 flow.0.misreport.burst_s=0.5 \
             flow.0.misreport.every_s=2"
        );
        let liar = first_of("stationary-idle", &lie, "pbe", seed);
        let (_, flagged) = found(&liar);
        assert!(flagged <= 9.5, "{factor} times, seed {seed}: flagged at {flagged} s, after four bursts");
    }
}

#[test]
fn who_lies_no_more_is_believed_again_and_who_goes_on_is_not() {
    let lie = "flow.0.misreport.factor=4 flow.0.misreport.from_s=4";
    let brief = format!("duration_s=28 {lie} flow.0.misreport.burst_s=3 flow.0.misreport.every_s=99");
    let flow = first_of("stationary-idle", &brief, "pbe", 1);
    let again = flow.enters("Wireless", 7.0);
    assert!((17.0..18.5).contains(&again), "believed at {again} s: {:?}", flow.states);
    assert!(flow.mbps(19.0..28.0) > 65.0 && flow.queueing_p95_ms(19.0..28.0) < 30.0, "as before the lie");
    assert_eq!(flow.look_at(27.0).value("misreport"), 0.0);
    let bursts = format!("duration_s=40 {lie} flow.0.misreport.burst_s=1 flow.0.misreport.every_s=5");
    let flow = first_of("stationary-idle", &bursts, "pbe", 1);
    assert!(flow.states_from(15.0).iter().all(|state| state.starts_with("Held")), "{:?}", flow.states);
}

#[test]
fn a_link_elsewhere_that_is_hardly_narrower_holds_a_flow_no_longer_than_it_is_there() {
    // The cell's capacity is about 16 Mbit/s; from 10.5 to 20 s, the Internet's capacity is 15 Mbit/s.
    let flow = first_of("wired-bottleneck", "duration_s=40 cell.prbs=25", "pbe", 1);
    let state = flow.state_at(36.0);
    assert_eq!(state, "Wireless", "{:?}", flow.states);
}

#[test]
fn a_modest_receiver_is_believed() {
    let flow = first_of("stationary-idle", "duration_s=8 flow.0.misreport.factor=0.7", "pbe", 1);
    assert!(!is_doubted(&flow), "{:?}", flow.states);
    assert!(flow.mbps(2.0..8.0) < 0.8 * 68.0, "and obeyed");
}

#[test]
fn acks_that_wait_behind_an_upload_are_no_lie() {
    // The upload fills the phone's own buffer, and the ACKs of the download wait there.
    let text = "name = \"upload\"\nduration_s = 20\n[cell]\nprbs = 50\n[[device]]\nradio.channel.sinr_db = 16\n\
                [[flow]]\nlabel = \"down\"\nrtt_ms = 42\nacks = \"cell\"\n\
                [[flow]]\nlabel = \"up\"\ndirection = \"up\"\nrtt_ms = 42\nscheme = \"cubic\"\nstart_s = 4\n";
    let scenario = Scenario::load(text, "upload.toml", &[]).unwrap_or_else(|error| panic!("{error}"));
    for seed in 1..=5 {
        let flow = &watch(&scenario, "pbe", seed)[0];
        assert_eq!(found(flow).1, f64::INFINITY, "seed {seed}: {:?}", flow.states);
    }
}

#[test]
fn an_honest_receiver_is_never_doubted_in_any_scenario() {
    // The scenario with the decoder in the loop takes minutes, and the other skipped scenarios need a file.
    let skipped = ["decoder-in-the-loop", "trace", "biscay-trace"];
    for (name, text) in builtin().iter().filter(|(name, _)| !skipped.contains(name)) {
        // Cells of 5G carry a hundred times as many packets.
        let duration_s = if name.starts_with("nr-") { "3" } else { "20" };
        let sets = [("duration_s".to_owned(), duration_s.to_owned())];
        let scenarios = Scenario::load_variants(text, name, &sets)
            .or_else(|_| Scenario::load_variants(text, name, &[]))
            .unwrap_or_else(|error| panic!("{error}"));
        // A population has dozens of alike members.
        let step = if scenarios.len() > 14 { scenarios.len() / 4 } else { 1 };
        for scenario in scenarios.iter().step_by(step) {
            for (seed, scheme) in
                [(1, "pbe"), (2, "pbe"), (3, "pbe:buffer_ms=0"), (4, "pbe:user_weights=rate")]
            {
                for (index, flow) in watch(scenario, scheme, seed).iter().enumerate() {
                    let lies = scenario.flow[index].misreport.is_some();
                    assert!(
                        lies || !is_doubted(flow),
                        "{} under {scheme}, seed {seed}, flow {index}: {:?}",
                        scenario.name,
                        flow.states
                    );
                }
            }
        }
    }
}

#[test]
fn an_honest_receiver_is_never_doubted_over_any_recorded_trace() {
    let Some(folder) = airpace_testing::recordings("traces") else { return };
    let mut traces = files_below(&folder);
    traces.sort();
    let mut run = 0;
    for trace in traces {
        for (seed, more) in [(1, ""), (2, ""), (3, "[[flow]]\nrtt_ms = 60\n")] {
            let text = format!(
                "name = \"recorded\"\nduration_s = 30\n[trace]\nfile = {trace:?}\nallow_holes = true\n\
                 link.buffer.bytes = 3_000_000\n[[flow]]\nrtt_ms = 40\n{more}"
            );
            let scenario =
                Scenario::load(&text, "recorded.toml", &[]).unwrap_or_else(|error| panic!("{error}"));
            // The folder of recordings also contains files that are not traces.
            if scenario.prepare().is_err() {
                break;
            }
            run += 1;
            for flow in watch(&scenario, "pbe", seed) {
                assert!(!is_doubted(&flow), "{}, seed {seed}: {:?}", trace.display(), flow.states);
            }
        }
    }
    assert!(run > 60, "only {run} runs over traces");
}

#[test]
fn on_a_narrow_link_the_liar_takes_what_the_honest_has_without_the_guard() {
    for seed in 1..=2 {
        let shares = |scheme: &str, sets: &str| {
            let flows = flows("misreport", sets, scheme, seed);
            (flows[0].mbps(8.0..30.0) / 30.0, flows[1].mbps(8.0..30.0) / 30.0)
        };
        let (honest, liar) = shares("pbe", "");
        assert!(honest > 0.42 && liar < 0.56, "seed {seed}: {honest} and {liar}");
        let (honest, liar) = shares("pbe:guard=off", "");
        assert!(honest < 0.1 && liar > 0.85, "seed {seed}, without the guard: {honest} and {liar}");
        let truthful = "flow.1.misreport.factor=1 flow.1.misreport.denies_internet=false";
        let (one, other) = shares("pbe", truthful);
        assert!(one > 0.42 && other > 0.42, "seed {seed}, both honest: {one} and {other}");
    }
}

fn first_of(name: &str, sets: &str, scheme: &str, seed: u64) -> Watched {
    flows(name, sets, scheme, seed).swap_remove(0)
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = vec![];
    for entry in std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files_below(&path));
        } else if path.extension().is_some_and(|end| end != "md") {
            found.push(path);
        }
    }
    found
}
