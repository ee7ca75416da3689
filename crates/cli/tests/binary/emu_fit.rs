//! Self-checks of a run: an emulator that was stopped, a network without traffic, servers that end cleanly.

use std::io::Read;
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};

use super::Shell;
use super::emu::{WIRE, can_emulate, manifest};

#[test]
fn an_emulator_that_stood_still_between_packets_calls_its_run_unfit() {
    let shell = Shell::new();
    if !can_emulate(&shell) {
        return;
    }
    shell.write("wire.toml", WIRE);
    // The program ends at the end of its input, so this test determines the duration of the run.
    let words = ["emu", "wire.toml", "--out", "run", "--", "sh", "-c", "echo begun; read -r end; true"];
    let mut child = shell
        .command(&words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    child.stdout.as_mut().unwrap().read_exact(&mut [0; 6]).unwrap();
    let emulator = Pid::from_child(&child);
    kill_process(emulator, Signal::STOP).unwrap();
    // The emulator is stopped for at least this time, on a busy machine for longer.
    std::thread::sleep(std::time::Duration::from_millis(100));
    kill_process(emulator, Signal::CONT).unwrap();
    drop(child.stdin.take());
    assert_eq!(child.wait().unwrap().code(), Some(3), "the program ended well, and the run is unfit");
    let emulation = &manifest(&shell, "run")["emulation"];
    assert!(emulation["audit"]["absence_max_ms"].as_f64().unwrap() >= 90.0, "{emulation}");
    assert!(emulation["unfit_because"].to_string().contains("the emulator stood still"), "{emulation}");
}

#[test]
fn a_server_below_its_shell_is_asked_to_end_and_has_time_to() {
    let shell = Shell::new();
    if !can_emulate(&shell) {
        return;
    }
    shell.write("wire.toml", WIRE);
    shell.write(
        "server.sh",
        "trap 'sleep 0.1; echo in order >ended; exit 0' TERM\necho >ready\nwhile :; do sleep 0.01; done\n",
    );
    let wait = "while ! [ -e ready ]; do sleep 0.01; done";
    // If a second command follows the server, a shell does not replace itself with the server.
    let server = "sh server.sh; true";
    shell.run(&["emu", "wire.toml", "--out", "run", "--server", server, "--", "sh", "-c", wait]);
    assert_eq!(shell.read("ended").trim(), "in order");
}

#[test]
fn a_network_that_nobody_used_has_no_fit_figures() {
    let shell = Shell::new();
    if !can_emulate(&shell) {
        return;
    }
    shell.write("wire.toml", WIRE);
    let done = shell.run(&["emu", "wire.toml", "--out", "run", "--", "true"]);
    assert_eq!(done.code, Some(3), "{}", done.err);
    assert!(done.err.contains("no packet entered the network"), "{}", done.err);
    assert!(done.err.contains("the program ended with success"), "{}", done.err);
    for line in done.err.lines().filter(|line| !line.contains("run/") && !line.ends_with("run")) {
        assert!(line.chars().count() <= 80, "a line of {}: {line}", line.chars().count());
    }
    assert!(done.err.lines().any(|line| line.starts_with("Emulated:   ")), "{}", done.err);
    let quiet = shell.run(&["emu", "wire.toml", "--out", "run", "--quiet", "--", "true"]);
    assert_eq!(quiet.code, Some(3), "{}", quiet.err);
    assert!(quiet.err.starts_with("Unfit:      no packet entered the network"), "{}", quiet.err);
    assert!(!quiet.err.contains("Run folder"), "nothing else: {}", quiet.err);
}
