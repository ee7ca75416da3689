//! `airpace agree`: a scheme in the simulator and over real sockets. How late this machine is decides on no test.

use serde_json::Value;

use super::Shell;
use super::emu::{can_emulate, manifest};

const LINK: &str = "name = \"link\"\nduration_s = 1\n[internet]\nrate_mbps = 10\nbuffer.ms = 50\n[[flow]]\n\
                    label = \"phone\"\nrtt_ms = 20\n";

#[test]
fn schemes_are_compared_over_both_transports_beside_the_simulators_own_spread() {
    let shell = Shell::new();
    if !can_emulate(&shell) {
        return;
    }
    shell.write("link.toml", LINK);
    let words = ["agree", "link.toml", "--scheme", "cbr:rate_mbps=3", "--again", "0", "--spread", "3"];
    let done = shell.run(&[&words[..], &["--out", "run", "--json"]].concat());
    let rows: Vec<Value> = done
        .out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}{}", done.err)))
        .collect();
    assert_eq!(rows.len(), 2, "{}{}", done.out, done.err);
    for (row, transport) in rows.iter().zip(["udp", "quic"]) {
        assert_eq!((&row["transport"], &row["flow"]), (&transport.into(), &"phone".into()));
        assert_eq!(row["spread"]["runs"], 4, "the run that is compared, and three more");
        let [least, most] = [0, 1].map(|at| row["spread"]["throughput_mbps"][at].as_f64().unwrap());
        assert!(least <= most && (2.5..3.5).contains(&least), "{row}");
        assert!(row["throughput_mbps"][1].as_f64().unwrap() > 0.0, "packets crossed the real network: {row}");
        let is_unfit = !row["unfit_because"].as_array().unwrap().is_empty();
        assert_eq!(row["verdict"] == "unfit", is_unfit);
    }
    let any = |verdict: &str| rows.iter().any(|row| row["verdict"] == verdict);
    let status = if any("unfit") { 3 } else { i32::from(any("differs")) };
    assert_eq!(done.code, Some(status), "{}", done.err);
    let whole: Vec<Value> = serde_json::from_str(&shell.read("run/agree.json")).unwrap();
    assert_eq!(whole, rows);
    assert!(shell.read("run/report.html").contains("cbr:rate_mbps=3 over quic"));
    assert_eq!(manifest(&shell, "run")["complete"], true);
}
