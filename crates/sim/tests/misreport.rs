//! Receivers that report more than the truth, and receivers that do not.

mod watched;

use std::path::Path;

use airpace_sim::{Scenario, builtin};
use watched::{Watched, flows, watch};

/// What the guard did to a flow: how often it checked, and whether it flagged.
fn guarded(flow: &Watched) -> (usize, bool) {
    let checks = flow.states.iter().filter(|(_, state)| state == "Check").count();
    let is_flagged = flow.looks.last().is_some_and(|look| look.value("misreport") > 0.0);
    (checks, is_flagged)
}

#[test]
#[ignore]
fn survey_traces() {
    let folder = std::env::var("AIRPACE_DATA").unwrap() + "/traces";
    let mut files: Vec<_> = walk(Path::new(&folder));
    files.sort();
    let only = std::env::var("ONLY").unwrap_or_default();
    for file in files.iter().filter(|file| file.to_string_lossy().contains(&only)) {
        for (name, more) in [("alone", ""), ("two", "[[flow]]\nrtt_ms = 60\n"), ("cubic", "[[flow]]\nrtt_ms = 40\nscheme = \"cubic\"\n")] {
            let text = format!(
                "name = \"recorded\"\nduration_s = 30\n[trace]\nfile = {file:?}\nallow_holes = true\n\
                 link.buffer.bytes = 3_000_000\n[[flow]]\nrtt_ms = 40\n{more}"
            );
            let Ok(scenario) = Scenario::load(&text, "recorded.toml", &[]) else { continue };
            if scenario.prepare().is_err() { println!("SKIP {}", file.display()); break; }
            let seen = watch(&scenario, "pbe", 1);
            let result = guarded(&seen[0]);
            if result.0 > 0 {
                println!("{name} {} {result:?}", file.file_name().unwrap().to_string_lossy());
            }
        }
    }
}

fn walk(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut found = vec![];
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() { found.extend(walk(&path)) } else { found.push(path) }
    }
    found
}

#[test]
#[ignore]
fn survey_builtin() {
    let only = std::env::var("ONLY").unwrap_or_default();
    for (name, text) in builtin() {
        if !name.contains(&only) || *name == "decoder-in-the-loop" || *name == "trace" || *name == "biscay-trace" { continue }
        let Ok(variants) = Scenario::load_variants(text, name, &[]) else { continue };
        for scenario in variants {
            for seed in 1..=3 {
                let seen = watch(&scenario, "pbe", seed);
                for (index, flow) in seen.iter().enumerate() {
                    if flow.looks.last().is_none_or(|l| !format!("{l:?}").contains("misreport")) { continue }
                    let result = guarded(flow);
                    if result.0 > 0 { println!("{} seed {seed} flow {index} {result:?}", scenario.name); 
                        let at = flow.states.iter().find(|(_, s)| s == "Check").unwrap().0;
                        for look in flow.looks_in(at - 0.6..at + 0.4) { println!("{:.3} {} target {:.1} ct {:.1} cf {:.1} btlbw {:.1} n {:.1} own {:.1} idle {:.1} owd {:.1} dprop {:.1}", look.at_s, look.state, look.value("target_mbps"), look.value("ct_mbps"), look.value("cf_mbps"), look.value("btlbw_mbps"), look.value("users_n"), look.value("own_prbs"), look.value("idle_prbs"), look.value("owd_ms"), look.value("dprop_ms")); }
                    }
                }
            }
        }
        println!("done {name}");
    }
}

#[test]
#[ignore]
fn survey_lies() {
    for (name, sets) in [("stationary-idle", ""), ("stationary-busy", ""), ("mobility", ""), ("competitor", "duration_s=20 flow.1.scheme=pbe flow.1.start_s=0 flow.1.on_s=100"), ("wired-bottleneck", "flow.0.misreport.denies_internet=true")] {
        for rtt in [11, 42, 162] {
            for (what, lie) in [("4x", "flow.0.misreport.factor=4"), ("1.3x", "flow.0.misreport.factor=1.3"), ("bursts 4x", "flow.0.misreport.factor=4 flow.0.misreport.burst_s=0.5 flow.0.misreport.every_s=2"), ("bursts 1.3x", "flow.0.misreport.factor=1.3 flow.0.misreport.burst_s=0.5 flow.0.misreport.every_s=2")] {
                for from in [0, 4] {
                let sets = format!("{sets} flow.0.rtt_ms={rtt} {lie} flow.0.misreport.from_s={from}");
                let seen = &flows(name, &sets, "pbe", 1)[0];
                let (checks, flagged) = guarded(seen);
                let rtts: Vec<String> = seen.states.iter().map(|(at, s)| format!("{at:.3} {s}")).collect();
                let last = rtts.len().min(6);
                println!("{name} rtt {rtt} {what} from {from}: checks {checks} flagged {flagged} {:?}", &rtts[..last]);
                }
            }
        }
    }
}
#[test]
#[ignore]
fn try_misreport() {
    for scheme in ["pbe", "pbe:guard=off"] { for sets in ["", "flow.1.misreport.factor=1.3", "flow.1.misreport.factor=1 flow.1.misreport.denies_internet=false", "flow.1.misreport.burst_s=0.5 flow.1.misreport.every_s=2", "internet.rate_mbps=1000", "flow.1.misreport.denies_internet=false"] { for seed in 1..=2 {
        let seen = flows("misreport", sets, scheme, seed);
        println!("{scheme} {sets} seed {seed}: {:.1} {:.1}  p95 {:.0} {:.0} flags {:?} {:?}", seen[0].mbps(7.0..30.0), seen[1].mbps(7.0..30.0), seen[0].queueing_p95_ms(7.0..30.0), seen[1].queueing_p95_ms(7.0..30.0), guarded(&seen[0]), guarded(&seen[1]));
        let s: Vec<String> = seen[1].states.iter().filter(|s| s.0 > 4.5).take(7).map(|(at, s)| format!("{at:.3} {s}")).collect();
        println!("    {s:?}");
    }}}
}
#[test]
#[ignore]
fn try_policies() {
    for scheme in ["pbe", "pbe:user_weights=rate"] { for seed in 1..=2 { for sets in ["", "device.1.radio.channel.sinr_db=2"] {
        let seen = flows("rate-weights", sets, scheme, seed);
        println!("{scheme} {sets} seed {seed}: {:.1} {:.1}  p95 {:.0} {:.0} prbs {:.0} {:.0} idle {:.1} n {:.2} {:.2} {:?} {:?}", seen[0].mbps(5.0..30.0), seen[1].mbps(5.0..30.0), seen[0].queueing_p95_ms(5.0..30.0), seen[1].queueing_p95_ms(5.0..30.0), seen[0].mean("own_prbs", 5.0..30.0), seen[1].mean("own_prbs", 5.0..30.0), seen[1].mean("idle_prbs", 5.0..30.0), seen[0].mean("users_n", 5.0..30.0), seen[1].mean("users_n", 5.0..30.0), guarded(&seen[0]), guarded(&seen[1]));
    }}}
    for (name, sets) in [("stationary-idle", ""), ("buffering", ""), ("buffering", "device.0.radio.channel.speed_kmh=1"),("buffering", "device.0.radio.channel.speed_kmh=30"), ("mobility", ""), ("stationary-busy", "")] { for scheme in ["pbe", "pbe:buffer_ms=adaptive", "pbe:buffer_ms=10", "pbe:buffer_ms=20", "bbr"] { 
        let seen = &flows(name, sets, scheme, 1)[0];
        println!("{name} {sets} {scheme}: {:.2} p95 {:.1} target {:.1} {:?}", seen.mbps(0.0..20.0), seen.queueing_p95_ms(0.0..20.0), if scheme == "bbr" { 0.0 } else { seen.mean("buffer_target_ms", 0.5..20.0) }, if scheme == "bbr" { (0, false) } else { guarded(seen) });
    }}
}
