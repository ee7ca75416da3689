//! `airpace emu`: unmodified programs behind an emulated network. Tests that need rights missing on this machine are
//! skipped, with a message.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;

use super::Shell;

/// A scenario of a wire with a delay of 20 ms in each direction.
pub const WIRE: &str = "name = \"wire\"\nduration_s = 1\n[[flow]]\nrtt_ms = 40\n";

/// Whether emulators can run here; if not, the calling test counts as skipped.
pub fn can_emulate(shell: &Shell) -> bool {
    let tried = shell.run(&["emu", "delay", "1", "--quiet", "--out", "try", "--", "true"]);
    match tried.code {
        Some(2) => {
            airpace_testing::skipped(&format!("no emulation here: {}", tried.err.trim()));
            false
        }
        _ => true,
    }
}

/// The manifest of a run folder.
pub fn manifest(shell: &Shell, folder: &str) -> Value {
    serde_json::from_str(&shell.read(&format!("{folder}/manifest.json"))).unwrap()
}

/// Runs an emulation, which may be unfit on a busy machine, and returns the exit status of the program.
#[track_caller]
fn emulate(shell: &Shell, words: &[&str]) -> i32 {
    let done = shell.run(words);
    let code = done.code.unwrap_or(-1);
    assert!(code != 2 && !done.err.contains("panicked"), "{}: {}{}", done.words, done.err, done.out);
    // Exit status 3 marks an unfit run on a busy machine; its results other than timing must still be correct.
    if code == 3 { 0 } else { code }
}

/// A server that echoes one message, and a client that expects it, in a language that every test machine has.
const ECHO: &str =
    "import socket\ns = socket.create_server(('', 7007))\nc, _ = s.accept()\nc.sendall(c.recv(100))\n";
const ASK: &str = "import os, socket, sys, time\nc = socket.create_connection((os.environ['AIRPACE_BASE'], 7007))\n\
                   t = time.monotonic()\nc.sendall(b'hello')\nassert c.recv(100) == b'hello'\n\
                   open(sys.argv[1], 'w').write(str(time.monotonic() - t))\n";

#[test]
fn a_client_reaches_its_server_over_the_network_and_the_folder_says_so() {
    let shell = Shell::new();
    if !can_emulate(&shell) || !airpace_testing::has_program("python3", "python3") {
        return;
    }
    shell.write("wire.toml", WIRE);
    shell.write("echo.py", ECHO);
    shell.write("ask.py", ASK);
    let words = [
        "emu",
        "wire.toml",
        "--out",
        "run",
        "--server",
        "python3 echo.py",
        "--",
        "python3",
        "ask.py",
        "took",
    ];
    assert_eq!(emulate(&shell, &words), 0);
    // The listing also contains the folder of `can_emulate`.
    let listed = shell.run(&["runs", "--in", ".", "--json"]).json();
    let listed = listed.iter().find(|run| run["name"] == "run").expect("the run is listed");
    let is_fit = manifest(&shell, "run")["emulation"]["fit"] == true;
    assert_eq!(listed["state"], if is_fit { "complete" } else { "unfit" });
    let took: f64 = shell.read("took").parse().unwrap();
    assert!(took >= 0.040, "a round trip takes 40 ms at least, and took {took} s");

    let manifest = manifest(&shell, "run");
    assert_eq!(manifest["complete"], true);
    let programs = manifest["emulation"]["programs"].as_array().unwrap();
    assert_eq!(programs.len(), 2);
    assert_eq!(programs[0]["command"], "python3 echo.py");
    assert_eq!(programs[1]["exit"]["status"], 0);
    assert_eq!(programs[1]["device"], 0);
    let audit = &manifest["emulation"]["audit"];
    assert!(audit["packets_in"].as_u64().unwrap() >= 6, "a connection takes at least six packets: {audit}");
    for part in ["report.html", "summary.json", "departures/scenario=wire/scheme=program/seed=1/part.parquet"]
    {
        assert!(shell.path("run").join(part).exists(), "{part}");
    }
    shell.run(&["report", "run"]).fine();
    // The folder can be used again, and the replay of its packets agrees.
    assert_eq!(emulate(&shell, &["emu", "wire.toml", "--out", "run", "--", "true"]), 0);
    let unfit = manifest["emulation"]["unfit_because"].to_string();
    assert!(!unfit.contains("replay"), "{unfit}");
}

#[test]
fn the_status_of_the_program_is_that_of_the_command() {
    let shell = Shell::new();
    if !can_emulate(&shell) {
        return;
    }
    assert_eq!(emulate(&shell, &["emu", "delay", "1", "--out", "a", "--", "sh", "-c", "exit 7"]), 7);
    assert_eq!(emulate(&shell, &["emu", "delay", "1", "--out", "b", "--", "sh", "-c", "kill -9 $$"]), 137);
    let said = shell.run(&["emu", "delay", "1", "--out", "c", "--", "no-such-program-here"]);
    said.refused(&["cannot start `no-such-program-here`", "check its name"]);
    let over = shell.run(&["emu", "delay", "1", "--out", "d", "--for", "0.2", "--", "sleep", "1000"]);
    assert!(matches!(over.code, Some(0 | 3)), "time was up: {}", over.err);
    assert_eq!(manifest(&shell, "d")["emulation"]["programs"][0]["exit"], "stopped");
}

#[test]
fn programs_beside_the_main_one_that_fail_are_named() {
    let shell = Shell::new();
    if !can_emulate(&shell) {
        return;
    }
    shell.write("two.toml", "name = \"two\"\nduration_s = 1\n[[device]]\n[[device]]\n[[flow]]\nrtt_ms = 2\n");
    let said = shell.run(&["emu", "two.toml", "--on", "2=exit 9", "--out", "run", "--", "true"]);
    assert_eq!(said.code, Some(9), "{}", said.err);
    assert!(said.err.contains("`exit 9` ended with 9; its output is in run/programs/1.log"), "{}", said.err);
    let said = shell.run(&["emu", "delay", "1", "--server", "no-such-server", "--out", "b", "--", "true"]);
    assert_eq!(said.code, Some(127), "{}", said.err);
    assert!(said.err.contains("`no-such-server` ended with 127"), "{}", said.err);
    assert!(shell.read("b/programs/1.log").contains("not found"));
}

#[test]
fn emulators_nest_and_their_delays_add_up() {
    let shell = Shell::new();
    if !can_emulate(&shell) || !airpace_testing::has_program("python3", "python3") {
        return;
    }
    shell.write("echo.py", ECHO);
    shell.write("ask.py", ASK);
    let words =
        ["emu", "delay", "10", "--out", "run", "--server", "python3 echo.py", "delay", "7", "delay", "5"];
    let words = [&words[..], &["--out", "inner", "--", "python3", "ask.py", "took"]].concat();
    assert_eq!(emulate(&shell, &words), 0);
    let took: f64 = shell.read("took").parse().unwrap();
    assert!(took >= 0.044, "three emulators delay by 22 ms each way, and a round trip took {took} s");
    // An option after the name of a form (`delay`, `loss`) belongs to this form.
    assert_eq!(manifest(&shell, "inner")["scenarios"][0]["name"], "delay");
    // Options before the first form's name belong to this form.
    assert_eq!(emulate(&shell, &["emu", "--out", "early", "loss", "up", "0", "--quiet", "--", "true"]), 0);
    assert_eq!(manifest(&shell, "early")["scenarios"][0]["name"], "loss");
}

#[test]
fn a_cellular_link_is_made_of_four_recordings() {
    let shell = Shell::new();
    if !can_emulate(&shell) || !airpace_testing::has_program("python3", "python3") {
        return;
    }
    shell.write("echo.py", ECHO);
    shell.write("ask.py", ASK);
    // Packet trains that start with a delay of 30 ms and of 20 ms.
    shell.write("down.light", "0 30 0 1 2\n1000 30 0 1 2\n");
    shell.write("up.light", "0 20 0 1 2\n1000 20 0 1 2\n");
    shell.write("heavy", "1\n2\n3\n");
    let form = ["emu", "cellular", "up.light", "down.light", "heavy", "heavy", "--light-after", "5"];
    let words = ["--out", "run", "--server", "python3 echo.py", "--", "python3", "ask.py", "took"];
    assert_eq!(emulate(&shell, &[&form[..], &words].concat()), 0);
    let took: f64 = shell.read("took").parse().unwrap();
    assert!(took >= 0.050, "both base delays are 50 ms, and a round trip took {took} s");
    let manifest = manifest(&shell, "run");
    let replays = &manifest["scenarios"][0]["also_replays"];
    assert_eq!(replays["cellular.down.light"]["file"], "down.light", "{replays}");
    assert_eq!(replays["cellular.up.heavy"]["file"], "heavy", "{replays}");

    shell.write("offsets", "100 5\n200 9\n");
    let more = ["--psize-latency-offset-up", "offsets", "--uplink-queue", "droptail:packets=9"];
    let words = ["delay", "1", "--out", "nested", "--", "true"];
    assert_eq!(emulate(&shell, &[&form[..], &more, &words].concat()), 0);
    let wrong = ["emu", "cellular", "heavy", "down.light", "heavy", "heavy", "--", "true"];
    shell.run(&wrong).refused(&["`cellular.up.light.file` has no trains", "a line is"]);
}

#[test]
fn nothing_is_left_behind() {
    let shell = Shell::new();
    if !can_emulate(&shell) {
        return;
    }
    let interfaces = || -> BTreeSet<String> {
        let table = fs::read_to_string("/proc/self/net/dev").unwrap();
        table.lines().filter_map(|line| Some(line.split_once(':')?.0.trim().to_owned())).collect()
    };
    let before = interfaces();
    // A program that detaches itself as daemons do must end with the run.
    let marker = format!("86400.{}", std::process::id());
    let line = format!("setsid sleep {marker} & echo begun");
    assert_eq!(emulate(&shell, &["emu", "delay", "1", "--out", "run", "--", "sh", "-c", &line]), 0);
    // Other tests create interfaces at the same time, and remove them at the end.
    let mut tries = 0;
    while !interfaces().is_subset(&before) {
        tries += 1;
        assert!(tries < 3_000, "left behind: {:?}", interfaces().difference(&before).collect::<Vec<_>>());
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    let is_alive = |entry: &fs::DirEntry| {
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(&marker)
    };
    let left = fs::read_dir("/proc").unwrap().flatten().filter(is_alive).count();
    assert_eq!(left, 0, "the program ended with the run");
}

#[test]
fn each_device_has_a_place_of_its_own() {
    let shell = Shell::new();
    if !can_emulate(&shell) || !airpace_testing::has_program("ip", "iproute2") {
        return;
    }
    shell.write("two.toml", "name = \"two\"\nduration_s = 1\n[[device]]\n[[device]]\n[[flow]]\nrtt_ms = 2\n[[flow]]\ndevice = 1\nrtt_ms = 2\nlabel = \"b\"\n");
    let words = ["emu", "two.toml", "--out", "run", "--on", "1=ip -4 -br addr > one", "--device", "2"];
    let words = [&words[..], &["--", "sh", "-c", "ip -4 -br addr > two; ip -6 -br addr >> two"]].concat();
    assert_eq!(emulate(&shell, &words), 0);
    // Concurrent emulators use free address ranges.
    let address = |name: &str| {
        let text = shell.read(name);
        let mut words =
            text.split_whitespace().filter(|word| word.starts_with("100.") && word.ends_with(".0.1/32"));
        words.next().unwrap_or_else(|| panic!("{text}")).to_owned()
    };
    assert_ne!(address("one"), address("two"));
    shell.run(&["emu", "two.toml", "--device", "3", "--", "true"]).refused(&["device 3", "2 devices"]);
    shell.run(&["emu", "two.toml", "--on", "x", "--", "true"]).refused(&["give N=LINE"]);
}

#[test]
fn a_link_writes_a_log_that_mahimahis_rules_explain() {
    let shell = Shell::new();
    if !can_emulate(&shell) || !airpace_testing::has_program("ping", "iputils-ping") {
        return;
    }
    shell.run(&["trace", "synth", "--mean-mbps", "3", "--seconds", "5", "--out", "a.down"]).fine();
    shell
        .run(&["trace", "synth", "--mean-mbps", "1", "--seconds", "5", "--seed", "2", "--out", "a.up"])
        .fine();
    let words = ["emu", "link", "a.up", "a.down", "--downlink-queue", "droptail:packets=5", "--out", "run"];
    let logs = ["--mm-log", "down.log", "--mm-back-log", "up.log"];
    let ping = ["--", "ping", "-c", "40", "-i", "0.01", "-s", "1400", "100.64.0.1"];
    let code = emulate(&shell, &[&words[..], &logs, &ping].concat());
    assert!(code < 2, "ping ends with 0 or 1: {code}");
    for (trace, log) in [("a.down", "down.log"), ("a.up", "up.log")] {
        let said = shell.run(&["trace", "check", "--trace", trace, log]).fine();
        assert!(said.contains("our link did the same"), "{said}");
    }
    shell.write("wire.toml", WIRE);
    shell.run(&["emu", "wire.toml", "--mm-log", "x.log", "--", "true"]).refused(&["no `[trace]`"]);
}

#[test]
fn the_radio_is_told_on_sockets_and_by_libod() {
    let shell = Shell::new();
    if !can_emulate(&shell) || !airpace_testing::has_program("python3", "python3") {
        return;
    }
    let reader = "import json, os, socket\n\
        for name, scope in [('AIRPACE_REPORTS', 'everyone'), ('AIRPACE_MODEM_REPORTS', 'own')]:\n\
        \x20   s = socket.socket(socket.AF_UNIX)\n\
        \x20   s.connect(os.environ[name])\n\
        \x20   lines = s.makefile()\n\
        \x20   seen = [json.loads(lines.readline()) for _ in range(20)]\n\
        \x20   numbers = [it['subframe_index'] for it in seen]\n\
        \x20   assert numbers == list(range(numbers[0], numbers[0] + 20)), numbers\n\
        \x20   assert seen[0]['reports'][0]['scope'] == scope, seen[0]\n\
        assert os.path.exists(os.environ['OD_DIR'] + '/control')\n";
    shell.write("reader.py", reader);
    let words = ["emu", "stationary-idle", "--out", "run", "--reports", "told", "--od", "od", "--"];
    assert_eq!(emulate(&shell, &[&words[..], &["python3", "reader.py"]].concat()), 0);
    assert_eq!(fs::read_dir(shell.path("told")).unwrap().count(), 0, "sockets are gone");
    shell.write("wire.toml", WIRE);
    shell.run(&["emu", "wire.toml", "--reports", "told", "--", "true"]).refused(&["no radio"]);
}

#[test]
fn what_cannot_be_emulated_is_one_sentence() {
    let shell = Shell::new();
    shell.run(&["emu", "no-such", "--", "true"]).refused(&["no scenario is called `no-such`"]);
    let loss = shell.run(&["emu", "loss", "up", "2", "--", "true"]);
    let said = loss.refused(&["'2' for '<PROBABILITY>'", "give a probability from 0 to 1"]);
    assert!(!said.contains("reverse.loss"), "{said}");
    shell.run(&["emu", "onoff", "up", "-1", "2", "--", "true"]).refused(&["-1"]);
    shell.run(&["emu", "delay", "nan", "--", "true"]).refused(&["give a time in ms"]);
    shell.run(&["emu", "delay", "1", "bogus", "3", "--", "true"]).refused(&["`bogus` is neither link"]);
    shell.run(&["emu", "link", "none.up", "none.down", "--", "true"]).refused(&["none.", "cannot be read"]);
    // A gap in a trace is rejected wherever it is: the programs, not the scenario, determine the end of the run.
    shell.write("hole.down", "1\n2\n700000\n706000\n");
    shell
        .run(&["emu", "link", "hole.down", "hole.down", "--", "true"])
        .refused(&["hole.down", "--allow-holes"]);
    shell.write("two.csv", "time_s,down_mbps,up_mbps\n0,5,1\n1,6,1\n");
    let two = ["emu", "link", "two.csv", "two.csv", "--uplink-column", "up_mbps", "--", "true"];
    shell.run(&two).refused(&["two.csv", "down_mbps", "--downlink-column"]);
    shell
        .run(&["emu", "link", "a", "b", "--uplink-queue", "red", "--", "true"])
        .refused(&["`red` is no queue"]);
    assert_eq!(shell.run(&["emu-inside", "99"]).code, Some(2), "nobody holds the other end");
    assert!(!shell.path("runs").exists(), "a refused run leaves no folder");
}
