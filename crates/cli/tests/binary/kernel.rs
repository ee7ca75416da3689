//! `airpace kernel`: commands for schemes in the running kernel. The tests need root, and a build that can load
//! schemes.

use std::io::{BufRead, BufReader, Read};
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::net::sockopt::set_tcp_congestion;
use rustix::net::{AddressFamily, SocketType, connect, socket};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::Shell;

/// BISCAY in the kernel until the end of a test. Other tests of this binary do not use it.
struct Loaded<'a> {
    shell: &'a Shell,
    _turn: MutexGuard<'static, ()>,
}

/// Names of schemes are global to the machine, so these tests run one after the other.
static TURN: Mutex<()> = Mutex::new(());

impl Loaded<'_> {
    /// Loads BISCAY; `None` if this machine or this build cannot load it, or if it is already in use.
    fn new(shell: &Shell) -> Option<Loaded<'_>> {
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let done = shell.run(&["kernel", "load", "biscay"]);
        let is_refused = [
            "run as root",
            "kernel's part",
            "/sys/kernel/btf",
            "mount -t bpf",
            "locked down",
            "loaded already",
            "congestion control `biscay` already",
        ];
        if done.code == Some(2) && is_refused.iter().any(|why| done.err.contains(why)) {
            airpace_testing::skipped(&format!("biscay cannot be loaded here: {}", done.err.trim()));
            return None;
        }
        assert!(done.fine().contains("until then its flows use BBR"));
        Some(Loaded { shell, _turn: turn })
    }

    fn status(&self) -> Value {
        let status: Value =
            serde_json::from_str(&self.shell.run(&["kernel", "status", "--json"]).fine()).unwrap();
        let loaded = status["loaded"].as_array().unwrap();
        loaded.iter().find(|scheme| scheme["scheme"] == "biscay").expect("biscay is loaded").clone()
    }
}

impl Drop for Loaded<'_> {
    fn drop(&mut self) {
        self.shell.run(&["kernel", "unload", "biscay"]);
    }
}

/// Starts a program in the background, and waits for its first line.
fn started(shell: &Shell, words: &[&str]) -> (Child, BufReader<std::process::ChildStdout>, String) {
    let mut child = shell
        .command(words)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    out.read_line(&mut line).unwrap();
    (child, out, line)
}

#[test]
fn an_unknown_scheme_is_refused_with_the_schemes_of_the_kernel() {
    let known = "no scheme is called `foo`; there are biscay, biscay@window, morc, pbe";
    Shell::new().run(&["kernel", "load", "foo"]).refused(&[known]);
}

#[test]
fn a_loaded_scheme_is_fed_by_one_feeder_and_shows_its_flows() {
    let shell = Shell::new();
    let Some(loaded) = Loaded::new(&shell) else { return };
    shell.run(&["kernel", "load", "biscay"]).refused(&["`biscay` is loaded already"]);
    let (mut feeder, _out, line) = started(&shell, &["kernel", "feed", "--mbps", "25"]);
    assert!(line.contains("Feeding biscay with 25 Mbit/s"), "{line}");
    shell.run(&["kernel", "feed", "--mbps", "30"]).refused(&["already feeds biscay"]);

    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let sender: OwnedFd = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    set_tcp_congestion(&sender, "biscay").unwrap();
    connect(&sender, &listener.local_addr().unwrap()).unwrap();
    let sender = TcpStream::from(sender);
    let status = loaded.status();
    assert_eq!(status["feed"]["mbps"], 25.0);
    let local = sender.local_addr().unwrap().to_string();
    let flows = status["flows"].as_array().unwrap();
    let flow = flows.iter().find(|flow| flow["local"] == *local).expect("the flow is shown");
    assert_eq!(flow["state"], "STARTUP", "it has sent nothing yet");
    assert_eq!(flow["remote"], *listener.local_addr().unwrap().to_string());
    assert!(flow["window_bytes"].as_u64().unwrap() > 0);
    let text = shell.run(&["kernel", "status"]).fine();
    assert!(text.contains(&local) && text.contains("25.00 Mbit/s"), "{text}");
    // Another congestion control replaces the scheme on this socket.
    set_tcp_congestion(&sender, "reno").unwrap();
    assert!(!loaded.status()["flows"].to_string().contains(&local));

    let removed: Value =
        serde_json::from_str(&shell.run(&["kernel", "unload", "biscay", "--json"]).fine()).unwrap();
    assert_eq!(removed["removed"][0]["scheme"], "biscay");
    assert_eq!(feeder.wait().unwrap().code(), Some(2), "a feeder that nobody hears ends");
    let mut said = String::new();
    feeder.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(said.contains("biscay has been unloaded"), "{said}");
}

#[test]
fn a_program_that_is_run_gets_the_signals_and_leaves_nothing_behind() {
    let shell = Shell::new();
    let Some(_loaded) = Loaded::new(&shell) else { return };
    let done = shell.run(&["kernel", "run", "biscay", "--", "sh", "-c", "exit 7"]);
    assert_eq!(done.code, Some(7), "{}", done.err);
    // The shell itself prints its control group, and the program receives the signal.
    let script =
        "cat /proc/self/cgroup; trap 'echo ended; exit 9' TERM; echo ready; while :; do sleep 0.05; done";
    let (mut airpace, mut out, mut line) = started(&shell, &["kernel", "run", "biscay", "sh", "-c", script]);
    let mut group = None;
    while line.trim() != "ready" {
        group = group.or_else(|| Some(line.trim().strip_prefix("0::")?.to_owned()));
        line.clear();
        assert!(out.read_line(&mut line).unwrap() > 0, "the program says that it is ready");
    }
    let group = group.expect("there is a control group of version 2");
    assert!(group.contains("airpace-run-"), "{group}");
    kill_process(Pid::from_child(&airpace), Signal::TERM).unwrap();
    let mut rest = String::new();
    out.read_to_string(&mut rest).unwrap();
    assert_eq!((rest.trim(), airpace.wait().unwrap().code()), ("ended", Some(9)));
    // The control groups of all processes are visible in /proc.
    let groups = std::fs::read_dir("/proc").unwrap().flatten();
    let seen = groups.filter_map(|process| std::fs::read_to_string(process.path().join("cgroup")).ok());
    assert!(!seen.into_iter().any(|groups| groups.contains(&group)), "nobody is left in {group}");
}

#[test]
fn what_cannot_be_fed_is_named() {
    let shell = Shell::new();
    let Some(_loaded) = Loaded::new(&shell) else { return };
    shell.write("not-reports", "root:x:0:0\n");
    shell.run(&["kernel", "feed", "--from", "not-reports"]).refused(&["not-reports", "line 1"]);
    shell.run(&["kernel", "feed", "--from", "/"]).refused(&["cannot read /"]);
    shell.run(&["kernel", "feed", "--from", "diag"]).refused(&["cannot read diag", "`airpace diag serve`"]);
    shell.run(&["kernel", "feed", "--from", "decode"]).refused(&["cannot read decode", "rnti=R"]);
    shell.run(&["kernel", "feed", "--from", ""]).refused(&["--from is empty"]);
    shell.run(&["kernel", "feed", "--mbps", "1e12"]).refused(&["up to 17179"]);
    shell
        .run(&["kernel", "load", "biscay", "--netns", "no/name"])
        .refused(&["is no name of a network namespace"]);
}

#[test]
fn a_default_of_a_container_is_seen_and_renewed() {
    let shell = Shell::new();
    let Some(loaded) = Loaded::new(&shell) else { return };
    let script = "echo biscay > /proc/sys/net/ipv4/tcp_congestion_control && echo $$; read line";
    let container = Command::new("unshare")
        .args(["--net", "sh", "-c", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let mut container = container.expect("unshare of util-linux is on every Linux");
    let mut line = String::new();
    BufReader::new(container.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let process = line.trim();
    assert_eq!(loaded.status()["default_in"], serde_json::json!([format!("pid:{process}")]));
    let unloaded = shell.run(&["kernel", "unload", "biscay"]).fine();
    assert!(unloaded.contains(&format!("in that of process {process}")), "{unloaded}");
    let again = shell.run(&["kernel", "load", "biscay"]).fine();
    assert!(
        again.contains(&format!("that of process {process} again, as it was before")),
        "it is renewed there: {again}"
    );
    drop(container.stdin.take());
    container.wait().unwrap();
}

#[test]
fn many_load_and_unload_it_at_once_and_each_is_told_what_is_so() {
    let shell = Shell::new();
    let Some(_loaded) = Loaded::new(&shell) else { return };
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for _ in 0..3 {
                    let loaded = shell.run(&["kernel", "load", "biscay"]);
                    let is_known =
                        loaded.code == Some(0) || loaded.err.contains("`biscay` is loaded already");
                    assert!(is_known, "{}", loaded.err);
                    shell.run(&["kernel", "unload", "biscay"]).fine();
                }
            });
        }
    });
    let done = shell.run(&["kernel", "unload", "biscay"]).fine();
    assert!(done.contains("is not loaded") || done.contains("is removed"), "{done}");
}
