//! `airpace agree`: a scheme in the simulator and over real sockets. No test depends on the machine's timing.

use parquet::file::reader::{FileReader, SerializedFileReader};
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
    for transport in ["udp", "quic"] {
        let label = format!("cbr%3Arate_mbps%3D3%20over%20{transport}");
        let table = format!("run/controller/scenario=link/scheme={label}/seed=1/part.parquet");
        let table =
            std::fs::File::open(shell.path(&table)).unwrap_or_else(|error| panic!("{table}: {error}"));
        let rows = SerializedFileReader::new(table).unwrap().metadata().file_metadata().num_rows();
        // A connection that is established late has fewer samples.
        assert!((1..=101).contains(&rows), "{transport}: looked at {rows} times in a second");
    }
}

#[test]
fn a_scheme_of_the_simulator_alone_is_refused_with_a_remedy() {
    let words = ["agree", "stationary-idle", "--scheme", "oracle"];
    Shell::new().run(&words).refused(&["`oracle` uses information", "airpace list schemes"]);
}

#[test]
fn the_kernel_s_tcp_is_compared_and_its_run_opens() {
    let shell = Shell::new();
    if !can_emulate(&shell) {
        return;
    }
    shell.write("link.toml", LINK);
    // One scheme of Linux, and one that is loaded for the run.
    for scheme in ["cubic", "morc"] {
        let words = ["agree", "link.toml", "--transport", "kernel", "--scheme", scheme, "--again", "0"];
        let done = shell.run(&[&words[..], &["--spread", "0", "--out", scheme, "--json"]].concat());
        let is_refused = [
            "run as root",
            "kernel's part",
            "/sys/kernel/btf",
            "mount -t bpf",
            "left out of this build",
            "/dev/net/tun",
        ];
        if done.code == Some(2) && is_refused.iter().any(|why| done.err.contains(why)) {
            return airpace_testing::skipped(&format!("`{scheme}` cannot run here: {}", done.err.trim()));
        }
        assert!([Some(0), Some(1), Some(3)].contains(&done.code), "{}{}", done.out, done.err);
        let row: Value = serde_json::from_str(done.out.trim()).expect("a row of the one flow");
        assert_eq!((&row["transport"], &row["flow"]), (&"kernel".into(), &"phone".into()));
        let [simulated, carried] = [0, 1].map(|at| row["throughput_mbps"][at].as_f64().unwrap());
        assert!(simulated > 0.0 && carried > 0.0, "bytes came by the simulator and by the kernel: {row}");
        let table = format!("{scheme}/packets/scenario=link/scheme={scheme}%20over%20kernel/seed=1");
        let rows: i64 = std::fs::read_dir(shell.path(&table))
            .unwrap_or_else(|error| panic!("{table}: {error}"))
            .map(|part| {
                SerializedFileReader::new(std::fs::File::open(part.unwrap().path()).unwrap()).unwrap()
            })
            .map(|part| part.metadata().file_metadata().num_rows())
            .sum();
        assert!(rows > 10, "{rows} packets");
        assert_eq!(manifest(&shell, scheme)["complete"], true);
        std::fs::remove_file(shell.path(&format!("{scheme}/report.html"))).expect("there was a page");
        let opened = shell.run(&["report", scheme]);
        assert_eq!(opened.code, Some(0), "{}", opened.err);
        assert!(shell.read(&format!("{scheme}/report.html")).contains(&format!("{scheme} over kernel")));
        // The scheme is unloaded at the end of the run.
        let left = shell.run(&["kernel", "status"]);
        assert!(!left.out.contains("morc"), "{}", left.out);
    }
}
