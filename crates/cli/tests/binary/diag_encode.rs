//! `airpace diag encode`: logs of simulated modems.

use super::Shell;

/// Command for a short log, which is the same in every run.
const SHORT: [&str; 7] =
    ["diag", "encode", "stationary-idle", "--set", "flow.0.acks=cell", "--seconds", "0.5"];

#[test]
fn a_log_has_both_directions_and_is_made_again_by_the_same_command() {
    let shell = Shell::new();
    let encode = |more: &[&str]| shell.run(&[&SHORT[..], more].concat());
    let object = encode(&["--out", "a.qmdl", "--json"]).json().remove(0);
    let bytes = |name: &str| std::fs::read(shell.path(name)).unwrap();
    assert_eq!(object["bytes"].as_u64(), Some(bytes("a.qmdl").len() as u64));
    encode(&["--out", "b.qmdl"]).fine();
    assert!(bytes("a.qmdl") == bytes("b.qmdl"), "the same bytes");
    encode(&["--out", "b.qmdl", "--seed", "2"]).fine();
    assert!(bytes("a.qmdl") != bytes("b.qmdl"), "another seed is another run");

    let info = shell.run(&["diag", "info", "a.qmdl", "--json"]).json().remove(0);
    assert_eq!(info["packets"], object["packets"]);
    assert!(info["faults"].as_object().is_some_and(|faults| faults.is_empty()), "{info}");
    let span = info["duration_s"].as_f64().unwrap();
    assert!((0.4..0.5).contains(&span), "half a second: {span}");
    let told = shell.run(&["diag", "bandwidth", "a.qmdl"]).fine();
    for part in ["radio 1, down: 5 windows", "radio 1, up: 5 windows"] {
        assert!(told.contains(part), "{part}: {told}");
    }
    let first = shell.run(&["diag", "decode", "a.qmdl"]).fine();
    assert!(first.starts_with("2026-01-01T00:00:00.00"), "stamps begin at the documented time: {first:.40}");
}

#[test]
fn mistakes_are_explained() {
    let shell = Shell::new();
    let encode = |scenario: &str, more: &[&str]| {
        shell.run(&[&["diag", "encode", scenario, "--out", "a.qmdl"][..], more].concat())
    };
    encode("stationry-idle", &[]).refused(&["stationry-idle", "stationary-idle"]);
    encode("trace", &["--set", "trace.synth.rate_mbps=3"]).refused(&["no cell"]);
    encode("stationary-idle", &["--device", "9"]).refused(&["--device"]);
    encode("stationary-idle", &["--seconds", "999"]).refused(&["--seconds 999", "duration_s"]);
    shell.run(&["diag", "encode", "stationary-idle", "--out", "no/a.qmdl"]).refused(&["no/a.qmdl", "--out"]);
    shell.write("own.toml", "name = \"own\"\nduration_s = 1\n[cell]\n[[device]]\n[[flow]]\nrtt_ms = 20\n");
    let over = ["diag", "encode", "own.toml", "--out", "own.toml"];
    shell.run(&over).refused(&["would be written over own.toml"]);
    let left = || shell.folder.path().read_dir().unwrap().map(|entry| entry.unwrap().file_name());
    assert!(
        !left().any(|name| name == "a.qmdl" || airpace_files::unfinished(&name).is_some()),
        "no file is left"
    );
}
