//! `airpace emu truth`: runs of a kernel's TCP compared with Linux 6.18 and with Airpace's schemes. A measurement takes
//! a minute per run, so these tests use earlier measurements.

use serde_json::Value;

use super::Shell;

/// Two runs on another kernel under conditions for which Linux 6.18 was measured.
const RUNS: &str = "\
# program: a test
# kernel: 9.9
# processors: 1
# refused: 2
trace,queue_packets,scheme,run,throughput_mbps,queueing_mean_ms,queueing_p95_ms,dropped,lateness_p999_us
TMobile-LTE-short.down,300,cubic,1,13.8430,184.88,453.79,174,223
nyc-taxi3.down,300,reno,1,13.4300,179.00,452.00,60,100
";

#[test]
fn a_kernel_is_compared_with_linux_6_18_and_with_our_schemes() {
    let Some(traces) = airpace_testing::recordings("traces") else { return };
    let shell = Shell::new();
    shell.write("kernel.csv", RUNS);
    let traces = traces.to_str().unwrap();
    let words = ["emu", "truth", "--from", "kernel.csv", "--traces", traces, "--page", "page.md"];
    let said = shell.run(&words).fine();
    assert!(said.contains("Linux 9.9 beside Linux 6.18: 2 of 2 within the bounds"), "{said}");
    assert!(said.contains("our schemes beside Linux 9.9: 2 of 2 within the bounds"), "{said}");
    let page = shell.read("page.md");
    assert!(page.contains("- Linux 9.9 on one processor;"), "{page}");
    assert!(page.contains("2 runs are used, and 2 more were refused"), "{page}");
    // Every line is one scheme in one condition.
    let json = shell.run(&[&words[..], &["--json", "--cc", "reno"]].concat()).fine();
    let lines: Vec<Value> = json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 2);
    assert_eq!(lines[0]["within"], true);
    assert_eq!((&lines[0]["other"], &lines[1]["other"]), (&Value::from("reno"), &Value::from("reno@linux")));

    // Half the throughput is outside the bounds.
    shell.write("slow.csv", &RUNS.replace("13.8430", "6.9"));
    let words = ["emu", "truth", "--from", "slow.csv", "--traces", traces, "--cc", "cubic"];
    let done = shell.run(&words);
    assert_eq!(done.code, Some(1), "{}", done.err);
    assert!(done.out.contains("Linux 9.9 beside Linux 6.18: 0 of 1 within the bounds"), "{}", done.out);
}

#[test]
fn what_cannot_be_compared_is_one_sentence() {
    let shell = Shell::new();
    shell.write("kernel.csv", RUNS);
    let truth = |words: &[&str]| shell.run(&[&["emu", "truth", "--traces", "."], words].concat());
    truth(&["--trace", "nowhere"]).refused(&["no such condition", "TMobile-LTE-short"]);
    truth(&["--trace", "TMobile", "--cc", "cubic"])
        .refused(&["`TMobile-LTE-short.down` is not in", "recordings.md"]);
    truth(&["--from", "none.csv"]).refused(&["none.csv", "kernel.csv of a measurement"]);
    truth(&["--from", "kernel.csv", "--trace", "lumos"]).refused(&["kernel.csv has no such condition"]);
    truth(&["--from", "kernel.csv", "--page", "kernel.csv"]).refused(&["kernel.csv"]);
    shell.write("bad.csv", &RUNS.replace("174", "many"));
    truth(&["--from", "bad.csv"]).refused(&["bad.csv: line 6", "`many` is no count"]);
    assert_eq!(shell.read("kernel.csv"), RUNS, "an input is not overwritten");
    assert!(!shell.path("runs").exists(), "a refused measurement leaves no folder");
}

#[test]
fn the_ends_of_a_flow_do_not_change_a_machines_settings() {
    let shell = Shell::new();
    let before = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_rmem").ok();
    for end in [["listen", "127.0.0.1:9", "send", "1"], ["connect", "127.0.0.1:9", "receive", "1"]] {
        shell.run(&[&["emu-bulk", "--wide"], &end[..]].concat()).refused(&["only within an emulated run"]);
    }
    assert_eq!(std::fs::read_to_string("/proc/sys/net/ipv4/tcp_rmem").ok(), before);
}
