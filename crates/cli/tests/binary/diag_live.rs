//! `airpace diag serve` and `watch`: a daemon, an emulated modem, and programs that read, are slow, or are killed.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use airpace_core::Time;
use airpace_diag::command::Request;
use airpace_diag::modem::{Modem, ModemOptions};
use airpace_diag::{Framing, LogCode, LogPacket, Mask, Radio, Stamp, frame};
use airpace_modem::source::Source;
use od::Od;
use od::clock::now_ns;
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty;
use serde_json::Value;

use super::Shell;

/// Maximum wait for an event before a test fails. The tests do not measure time.
const PATIENCE: Duration = Duration::from_secs(120);
const RSRP: LogCode = LogCode(0xB17F);
/// A log code to which another program had subscribed before the test.
const BEFORE: LogCode = LogCode(0xB0C0);

#[test]
fn a_program_reads_what_the_modem_says_and_the_modem_is_asked_just_for_that() {
    let (shell, modem) = (Shell::new(), TestModem::start());
    let mut daemon = Daemon::start(&shell, &modem, &["--kpi", "lte.rsrp"]);
    daemon.wait_for("streaming");
    assert_eq!(modem.codes(), BTreeSet::from([0xB17F, 0xB179, 0xB193].map(LogCode)), "all codes with RSRP");
    let od = daemon.open();
    let rsrp = od.subscribe("lte.rsrp").unwrap();
    let reading = rsrp.wait(0, PATIENCE).unwrap();
    assert_eq!(reading.value, -95.0);
    assert!(reading.modem_ns > 0 && reading.published_ns >= reading.arrival_ns);
    let next = rsrp.wait(reading.sequence, PATIENCE).unwrap();
    assert!(next.sequence > reading.sequence && next.modem_ns > reading.modem_ns);

    // Another program subscribes to another KPI while the first one continues.
    let other = daemon.open();
    let blocks = other.subscribe("lte.dl.blocks").unwrap();
    let first = blocks.wait(0, PATIENCE).unwrap();
    assert!(modem.codes().contains(&LogCode(0xB173)), "the mask follows");
    assert_eq!(first.value, first.sequence as f64, "a total counts every block from the first that came");
    let third = other.subscribe("lte.rsrq").unwrap();
    third.wait(0, PATIENCE).unwrap();
    let later = blocks.wait(first.sequence + 20, PATIENCE).unwrap();
    assert_eq!(
        later.value, later.sequence as f64,
        "no block is lost or counted twice when subscriptions change"
    );
    drop((blocks, third, other));
    wait_until("the mask follows those who leave", || !modem.codes().contains(&LogCode(0xB173)));
    let seen = rsrp.latest().unwrap().sequence;
    rsrp.wait(seen, PATIENCE).unwrap();

    let refused = od.subscribe("lte.rsrpp").unwrap_err().to_string();
    assert!(refused.contains("`lte.rsrp`"), "an unknown name is answered with similar names: {refused}");
    assert!(od.kpis().unwrap().iter().any(|kpi| kpi.name == "lte.dl.tb_bytes" && kpi.unit == "byte"));

    daemon.signal(Signal::TERM);
    assert_eq!(daemon.end(), Some(0));
    assert_eq!(modem.codes(), BTreeSet::from([BEFORE]), "the modem is as it was");
    wait_until("the reader notices", || !od.is_alive());
}

#[test]
fn a_carrier_has_readings_of_its_own_and_none_hides_the_primary() {
    const READINGS: u64 = 30;
    let (shell, modem) = (Shell::new(), TestModem::start());
    let mut daemon = Daemon::start(&shell, &modem, &["--kpi", "lte.rsrp"]);
    daemon.wait_for("streaming");
    let od = daemon.open();
    // The names are also correct if all KPIs are followed at once and the secondary carrier is the last in every batch.
    let kpis = ["lte.dl.prb", "lte.dl.prb#0", "lte.dl.prb#1"].map(|name| (name, od.subscribe(name).unwrap()));
    for (name, kpi) in &kpis {
        let (carrier, prbs) = if name.ends_with("#1") { (1, 25.0) } else { (0, 50.0) };
        let mut seen = 0;
        for _ in 0..READINGS {
            let reading = kpi.wait(seen, PATIENCE).unwrap();
            assert_eq!((reading.carrier, reading.value), (carrier, prbs), "{name}");
            seen = reading.sequence;
        }
    }
    let all = od.subscribe("lte.dl.prb#all").unwrap();
    let (mut seen, mut of_primary) = (0, 0);
    for _ in 0..READINGS {
        let reading = all.wait(seen, PATIENCE).unwrap();
        of_primary += u64::from(reading.carrier == 0);
        seen = reading.sequence;
    }
    assert!(of_primary >= READINGS / 2, "the primary is not hidden: {of_primary} of {READINGS}");
    assert!(seen >= READINGS + of_primary / 2, "readings of both were published: {seen}");
    let refused = od.subscribe("lte.dl.bytes#1").unwrap_err().to_string();
    assert!(refused.contains("is not about one carrier"), "a total is of all carriers: {refused}");
    assert!(od.subscribe("lte.dl.prb#40").unwrap_err().to_string().contains("is no carrier"));
}

#[test]
fn a_daemon_that_is_killed_leaves_the_modem_as_it_was_and_readers_know() {
    let (shell, modem) = (Shell::new(), TestModem::start());
    let mut daemon = Daemon::start(&shell, &modem, &["--kpi", "lte.rsrp"]);
    daemon.wait_for("streaming");
    let od = daemon.open();
    let rsrp = od.subscribe("lte.rsrp").unwrap();
    let seen = rsrp.wait(0, PATIENCE).unwrap().sequence;
    assert!(od.is_alive() && modem.codes().contains(&RSRP));
    daemon.process.kill().unwrap();
    assert_eq!(daemon.end(), None, "by a signal");
    wait_until("the guard gives the modem back", || modem.codes() == BTreeSet::from([BEFORE]));
    wait_until("the reader notices", || !od.is_alive());
    let error = loop {
        match rsrp.wait(rsrp.latest().map_or(seen, |reading| reading.sequence), PATIENCE) {
            Ok(_) => {}
            Err(error) => break error,
        }
    };
    assert!(matches!(error, od::Error::Stale), "{error}");

    let mut second = Daemon::start(&shell, &modem, &["--kpi", "lte.rsrp"]);
    second.wait_for("streaming");
    let reading = second.open().subscribe("lte.rsrp").unwrap().wait(0, PATIENCE).unwrap();
    assert_eq!(reading.value, -95.0, "another daemon takes its place");
}

#[test]
fn a_port_that_is_lost_is_opened_again_and_the_gap_is_marked() {
    let (shell, modem) = (Shell::new(), TestModem::start());
    let mut daemon = Daemon::start(&shell, &modem, &["--kpi", "lte.rsrp", "--metrics", "127.0.0.1:0"]);
    daemon.wait_for("streaming");
    let od = daemon.open();
    let rsrp = od.subscribe("lte.rsrp").unwrap();
    let before = rsrp.wait(0, PATIENCE).unwrap();
    modem.hang_up();
    daemon.wait_for("lost");
    daemon.wait_for("streaming");
    wait_until("readings come again", || {
        rsrp.latest().is_some_and(|reading| reading.arrival_ns > before.arrival_ns)
    });
    assert_eq!(od.gaps(), 1);
    assert!(od.is_alive(), "the daemon was there all the time");
    let page = daemon.metrics();
    assert!(
        page.contains("\nairpace_diag_gaps_total 1\n") && page.contains("\nairpace_diag_sessions_total 2\n"),
        "{page}"
    );
    daemon.signal(Signal::INT);
    assert_eq!(daemon.end(), Some(0));
    assert_eq!(
        modem.codes(),
        BTreeSet::from([BEFORE]),
        "what it was before the first session, not the second"
    );
}

#[test]
fn a_program_that_is_stopped_or_does_not_read_delays_nobody() {
    let (shell, modem) = (Shell::new(), TestModem::start());
    let mut daemon = Daemon::start(&shell, &modem, &["--metrics", "127.0.0.1:0"]);
    daemon.wait_for("streaming");
    let dir = daemon.dir.to_str().unwrap().to_owned();
    let mut stopped = shell
        .command(&["diag", "watch", "--od", &dir, "--kpi", "lte.rsrp,lte.dl.prb", "--json"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(stopped.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.contains("lte."), "{line}");
    kill_process(pid(&stopped), Signal::STOP).unwrap();
    // A program that keeps sending requests and never reads a response.
    let mut deaf = std::os::unix::net::UnixStream::connect(daemon.dir.join("control")).unwrap();
    deaf.set_write_timeout(Some(Duration::from_millis(200))).unwrap();
    let asked = (0..20_000).take_while(|_| deaf.write_all(b"list\n").is_ok()).count();
    assert!(asked > 0);

    let od = daemon.open();
    let rsrp = od.subscribe("lte.rsrp").unwrap();
    let mut seen = 0;
    for _ in 0..50 {
        seen = rsrp.wait(seen, PATIENCE).unwrap().sequence;
    }
    assert!(
        od.is_alive()
            && daemon.metrics().contains("airpace_kpi_subscriptions{name=\"lte.dl.prb\",radio=\"1\"} 1\n")
    );
    stopped.kill().unwrap();
    stopped.wait().unwrap();
    wait_until("a dead program's lease ends", || !modem.codes().contains(&LogCode(0xB173)));
    assert!(rsrp.wait(seen, PATIENCE).unwrap().sequence > seen);
}

#[test]
fn a_second_daemon_is_refused_and_so_is_what_cannot_be() {
    let (shell, modem) = (Shell::new(), TestModem::start());
    let mut daemon = Daemon::start(&shell, &modem, &[]);
    daemon.wait_for("streaming");
    let address = modem.address.to_string();
    let dir = daemon.dir.to_str().unwrap().to_owned();
    shell
        .run(&["diag", "serve", "--tcp", &address, "--dir", &dir])
        .refused(&[&format!("another daemon serves {dir}")]);
    shell
        .run(&["diag", "serve", "--tcp", &address, "--dir", "other", "--kpi", "lte.rsrpp"])
        .refused(&["no KPI `lte.rsrpp`", "`lte.rsrp`"]);
    shell.run(&["diag", "serve", "--dir", "other"]).refused(&["--port"]);
    shell.run(&["diag", "serve", "--tcp", &address, "--drain", "1"]).refused(&["500us, 1ms or 2s"]);
    let nowhere = shell.run(&["diag", "watch", "--od", "nowhere"]);
    assert_eq!(nowhere.err.matches("No such file").count(), 1, "said once: {}", nowhere.err);
    nowhere.refused(&["no daemon at nowhere", "airpace diag serve"]);
    shell
        .run(&["diag", "watch", "--tcp", &address, "--kpi", "nope"])
        .refused(&["there is no KPI `nope`", "airpace list kpis"]);
    // The program does not wait for a path that can never be a port.
    std::fs::write(shell.path("file"), "text").unwrap();
    shell.run(&["diag", "watch", "--port", "file"]).refused(&["file: it is no serial device"]);
    shell.run(&["diag", "watch", "--dev", "file"]).refused(&["file: it is no character device"]);
    shell.run(&["diag", "watch", "--port", "no-modem"]).refused(&[
        "no-modem cannot be opened",
        "No such file or directory",
        "airpace doctor",
        "--wait",
    ]);
    shell.run(&["diag", "watch", "--dev", "no-modem"]).refused(&["cannot be opened"]);
    shell.run(&["diag", "watch", "--tcp", "localhost"]).refused(&["localhost: it is not HOST:PORT"]);
}

#[test]
fn a_serial_port_is_one_programs_at_a_time() {
    let shell = Shell::new();
    let terminal = pty::openpt(pty::OpenptFlags::RDWR | pty::OpenptFlags::NOCTTY).unwrap();
    pty::grantpt(&terminal).unwrap();
    pty::unlockpt(&terminal).unwrap();
    let name = pty::ptsname(&terminal, Vec::new()).unwrap().into_string().unwrap();
    let first = Source::Serial(name.clone().into()).open().unwrap();
    for words in [&["serve", "--dir", "second"][..], &["watch"]] {
        let words = [&["diag"], words, &["--port", &name]].concat();
        shell.run(&words).refused(&["another program has this port", "airpace diag watch --od"]);
    }
    drop(first);
}

#[test]
fn a_log_that_takes_nothing_stops_nobody() {
    let (shell, modem) = (Shell::new(), TestModem::start());
    let address = modem.address.to_string();
    for words in [&["--json"][..], &[]] {
        let full = || std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let words =
            [&["diag", "serve", "--tcp", &address, "--dir", "od", "--kpi", "lte.rsrp"], words].concat();
        let mut serve = shell.command(&words).stdout(full()).stderr(full()).spawn().unwrap();
        let dir = shell.path("od");
        let mut od = None;
        wait_until("there is a daemon", || {
            od = Od::open(Some(&dir)).ok();
            od.is_some()
        });
        let rsrp = od.unwrap().subscribe("lte.rsrp").unwrap();
        let seen = rsrp.wait(0, PATIENCE).unwrap().sequence;
        modem.hang_up();
        rsrp.wait(seen + 100, PATIENCE).unwrap();
        assert_eq!(serve.try_wait().unwrap(), None, "it goes on");
        kill_process(pid(&serve), Signal::TERM).unwrap();
        assert!(serve.wait().unwrap().code().is_some(), "and ends in good order");
        assert_eq!(modem.codes(), BTreeSet::from([BEFORE]));
    }
}

#[test]
fn watch_goes_on_with_the_daemon_that_takes_the_place_of_one_that_ended() {
    let (shell, modem) = (Shell::new(), TestModem::start());
    let mut daemon = Daemon::start(&shell, &modem, &[]);
    daemon.wait_for("streaming");
    let dir = daemon.dir.to_str().unwrap().to_owned();
    let mut watch = shell
        .command(&["diag", "watch", "--od", &dir, "--kpi", "lte.rsrp", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut samples = BufReader::new(watch.stdout.take().unwrap());
    let mut notices = BufReader::new(watch.stderr.take().unwrap());
    let mut line = String::new();
    samples.read_line(&mut line).unwrap();
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.end(), Some(0));
    let mut notice = String::new();
    notices.read_line(&mut notice).unwrap();
    assert!(notice.contains("no heartbeat"), "{notice}");
    let restarted_ns = now_ns();
    let mut second = Daemon::start(&shell, &modem, &[]);
    second.wait_for("streaming");
    loop {
        line.clear();
        assert!(samples.read_line(&mut line).unwrap() > 0, "it ended");
        let sample: Value = serde_json::from_str(&line).unwrap();
        if sample["arrival_ns"].as_u64().unwrap() > restarted_ns {
            break;
        }
    }
    notice.clear();
    notices.read_line(&mut notice).unwrap();
    assert_eq!(notice, "the daemon is back\n");
    watch.kill().unwrap();
    watch.wait().unwrap();
}

#[test]
fn watch_opens_a_session_of_its_own_prints_samples_and_gives_the_modem_back() {
    let (shell, modem) = (Shell::new(), TestModem::start());
    let address = modem.address.to_string();
    let words = ["diag", "watch", "--tcp", &address, "--kpi", "lte.rsrp,lte.dl.prb", "--for", "2s", "--json"];
    let printed = shell.run(&words).fine();
    let samples: Vec<Value> = printed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |name: &str| samples.iter().filter(|sample| sample["kpi"] == name).cloned().collect::<Vec<_>>();
    let (rsrp, prb) = (of("lte.rsrp"), of("lte.dl.prb"));
    assert!(rsrp.len() > 10 && prb.len() > 10, "{printed}");
    assert_eq!(
        (&rsrp[0]["value"], &rsrp[0]["unit"], &rsrp[0]["radio"]),
        (&(-95.0).into(), &"dBm".into(), &1.into())
    );
    assert!(
        prb[0]["subframe"].is_number() && prb[0]["time_utc"].as_str().unwrap().starts_with("20"),
        "{}",
        prb[0]
    );
    let carriers: BTreeSet<_> = prb.iter().map(|sample| sample["carrier"].as_u64().unwrap()).collect();
    assert_eq!(carriers, BTreeSet::from([0, 1]), "of all carriers");
    // Samples of the primary carrier are in the shared-memory region and have sequence numbers.
    let sequences: Vec<_> = prb.iter().filter_map(|sample| sample["sequence"].as_u64()).collect();
    assert!(sequences.windows(2).all(|pair| pair[1] == pair[0] + 1), "every sample is printed");
    assert_eq!(modem.codes(), BTreeSet::from([BEFORE]));
    let words = ["diag", "watch", "--tcp", &address, "--kpi", "nr.rsrp", "--for", "1s"];
    shell.run(&words).found_nothing(&["no sample"]);

    let mut killed =
        shell.command(&["diag", "watch", "--tcp", &address]).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(killed.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.contains(" s  lte."), "as text where nobody asked for JSON: {line}");
    assert!(modem.codes().contains(&RSRP));
    killed.kill().unwrap();
    killed.wait().unwrap();
    wait_until("the guard gives the modem back", || modem.codes() == BTreeSet::from([BEFORE]));
}

#[test]
fn on_a_terminal_watch_keeps_a_table_and_leaves_the_screen_as_it_was() {
    let (shell, modem) = (Shell::new(), TestModem::start());
    let terminal = pty::openpt(pty::OpenptFlags::RDWR | pty::OpenptFlags::NOCTTY).unwrap();
    pty::grantpt(&terminal).unwrap();
    pty::unlockpt(&terminal).unwrap();
    let name = pty::ptsname(&terminal, Vec::new()).unwrap().into_string().unwrap();
    let screen = std::fs::OpenOptions::new().read(true).write(true).open(name).unwrap();
    let address = modem.address.to_string();
    let words = ["diag", "watch", "--tcp", &address, "--kpi", "lte.rsrp,lte.cqi", "--for", "2s"];
    let mut watch = shell.command(&words).stdout(screen).spawn().unwrap();
    let (mut shown, mut terminal) = (String::new(), std::fs::File::from(terminal));
    let mut buffer = [0; 4_096];
    // Reading from a terminal fails once no process has it open.
    while let Ok(count) = terminal.read(&mut buffer) {
        shown.push_str(&String::from_utf8_lossy(&buffer[..count]));
    }
    assert_eq!(watch.wait().unwrap().code(), Some(0));
    assert!(
        shown.starts_with("\x1b[?1049h") && shown.contains("\x1b[?1049l"),
        "a screen of its own: {shown:?}"
    );
    let last = shown.rsplit("\x1b[H").next().unwrap();
    assert!(last.contains("lte.rsrp") && last.contains("-95 dBm") && last.contains("/s"), "{last}");
    assert!(last.lines().any(|line| line.contains("lte.cqi") && line.contains('–')), "{last}");
    assert_eq!(modem.codes(), BTreeSet::from([BEFORE]));
}

#[test]
fn a_modem_that_buffers_is_drained_and_another_is_not() {
    let shell = Shell::new();
    for (options, every, drains) in [
        (ModemOptions::default(), "1ms", true),
        (ModemOptions::default(), "off", false),
        (ModemOptions { understands_control: false, ..ModemOptions::default() }, "1ms", false),
    ] {
        let modem = TestModem::with(options);
        let mut daemon = Daemon::start(&shell, &modem, &["--kpi", "lte.rsrp", "--drain", every]);
        daemon.wait_for("streaming");
        let od = daemon.open();
        let rsrp = od.subscribe("lte.rsrp").unwrap();
        let mut seen = 0;
        for _ in 0..20 {
            seen = rsrp.wait(seen, PATIENCE).unwrap().sequence;
        }
        let drained = modem.modem().stats().drains;
        assert_eq!(drained > 10, drains, "{drained} drains with --drain {every}");
        daemon.signal(Signal::TERM);
        assert_eq!(daemon.end(), Some(0));
    }
}

#[test]
fn granularity_measures_with_draining_and_without_and_keeps_a_folder() {
    let shell = Shell::new();
    let words = ["diag", "granularity", "--for", "3s", "--buffer", "500ms", "--json", "--out", "folder"];
    let done = shell.run(&words);
    assert!(matches!(done.code, Some(0 | 1)), "goals may be missed on a busy machine: {}", done.err);
    let printed: Value = serde_json::from_str(&done.out).unwrap();
    let [drained, buffered] = &printed["measurements"].as_array().unwrap()[..] else { panic!("{printed}") };
    assert!(drained["drains_per_s"].as_f64() > Some(0.0) && buffered["drains_per_s"].as_f64() == Some(0.0));
    // On a busy machine gaps are longer, and packets that are sent together arrive in pieces. The modem's own pause
    // remains.
    let gap = |of: &Value, which: &str| of["gap_ms"][which].as_f64().unwrap();
    let pause = gap(buffered, "max");
    assert!(pause > 300.0, "without draining, KPIs come when the buffer is emptied: {printed}");
    assert!(gap(drained, "p50") < 0.5 * pause, "with draining they come earlier: {printed}");

    let goals = printed["goals"].as_array().unwrap();
    let found: Vec<_> = goals.iter().map(|goal| goal["found"].as_f64().unwrap()).collect();
    assert_eq!(Some(found[0]), drained["gap_ms"]["p90"].as_f64());
    assert_eq!(Some(found[1]), drained["gap_ms"]["p99"].as_f64(), "and 99 % beside it");
    assert_eq!(
        (&goals[2]["at_least"], &goals[2]["at_most"]),
        (&450.0.into(), &550.0.into()),
        "about as long as the modem keeps packets"
    );
    assert_eq!(done.code == Some(0), goals.iter().all(|goal| goal["met"] == true));

    let read = |name: &str| -> Value { serde_json::from_str(&shell.read(name)).unwrap() };
    assert_eq!(read("folder/summary.json"), printed);
    let manifest = read("folder/manifest.json");
    assert_eq!((&manifest["complete"], &manifest["seed"]), (&true.into(), &1.into()));
    assert!(manifest["command"].as_str().unwrap().starts_with("airpace diag granularity --for 3s"));
    let csv = shell.read("folder/readings.csv");
    let rows = csv.lines().count() as u64 - 1;
    let counts = [drained, buffered].map(|of| of["arrival_to_reader_us"]["count"].as_u64().unwrap());
    assert_eq!(rows, counts[0] + counts[1]);
    let page = shell.read("folder/report.html");
    assert_eq!(page.matches("<figure>").count(), 3, "a figure for gaps, ages and latencies");
    assert!(!page.contains("NaN") && !page.contains("src="), "complete, and nothing from other servers");
    shell.run(&["diag", "granularity", "--load", "5"]).refused(&["100..=20000"]);
}

/// Process of a daemon.
struct Daemon {
    process: Child,
    says: BufReader<ChildStdout>,
    dir: PathBuf,
    page: String,
}

impl Daemon {
    fn start(shell: &Shell, modem: &TestModem, words: &[&str]) -> Daemon {
        let dir = shell.path("od");
        let address = modem.address.to_string();
        let all =
            [&["diag", "serve", "--json", "--tcp", &address, "--dir", dir.to_str().unwrap()], words].concat();
        let mut process = shell.command(&all).stdout(Stdio::piped()).spawn().unwrap();
        let mut says = BufReader::new(process.stdout.take().unwrap());
        let mut line = String::new();
        says.read_line(&mut line).unwrap();
        let first: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(first["event"], "serving");
        let page = first["metrics"].as_str().unwrap_or("").to_owned();
        Daemon { process, says, dir, page }
    }

    /// Waits for this event in the output.
    fn wait_for(&mut self, event: &str) {
        loop {
            let mut line = String::new();
            assert!(self.says.read_line(&mut line).unwrap() > 0, "it ended before it said {event}");
            let said: Value = serde_json::from_str(&line).unwrap();
            if said["event"] == event {
                return;
            }
        }
    }

    fn open(&self) -> Od {
        Od::open(Some(&self.dir)).unwrap()
    }

    fn signal(&self, signal: Signal) {
        kill_process(pid(&self.process), signal).unwrap();
    }

    /// Waits for the daemon's end. Returns the exit code.
    fn end(&mut self) -> Option<i32> {
        self.process.wait().unwrap().code()
    }

    fn metrics(&self) -> String {
        let address = self.page.trim_start_matches("http://").trim_end_matches("/metrics");
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").unwrap();
        let mut page = String::new();
        stream.read_to_string(&mut page).unwrap();
        page
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn pid(process: &Child) -> Pid {
    Pid::from_child(process)
}

#[track_caller]
fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < PATIENCE, "waited in vain for: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A modem behind a TCP port. It sends RSRP and a grant every 2 ms.
struct TestModem {
    address: SocketAddr,
    modem: Arc<Mutex<Modem>>,
    hangs_up: Arc<AtomicBool>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl TestModem {
    fn start() -> TestModem {
        TestModem::with(ModemOptions::default())
    }

    /// Creates a modem to which another program had already subscribed for a log code.
    fn with(options: ModemOptions) -> TestModem {
        let mut modem = Modem::new(options.clone());
        let mut frames = vec![];
        let mask = Mask::of(BEFORE.equipment(), options.items[usize::from(BEFORE.equipment())], [BEFORE]);
        frame::encode(Framing::Hdlc, &Request::SetLogMask(mask).body(), &mut frames);
        modem.push(Time::ZERO, &frames);
        modem.hang_up();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let modem = Arc::new(Mutex::new(modem));
        let (hangs_up, is_over) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let thread = std::thread::spawn({
            let (modem, hangs_up, is_over) = (modem.clone(), hangs_up.clone(), is_over.clone());
            move || {
                while !is_over.load(Ordering::Relaxed) {
                    match listener.accept() {
                        Ok((stream, _)) => speak(stream, &modem, &hangs_up, &is_over),
                        Err(_) => std::thread::sleep(Duration::from_millis(2)),
                    }
                }
            }
        });
        TestModem { address, modem, hangs_up, is_over, thread: Some(thread) }
    }

    fn modem(&self) -> MutexGuard<'_, Modem> {
        self.modem.lock().unwrap()
    }

    /// Log codes to which programs have subscribed.
    fn codes(&self) -> BTreeSet<LogCode> {
        self.modem().masks().flat_map(|mask| mask.codes().collect::<Vec<_>>()).collect()
    }

    /// Closes the connection.
    fn hang_up(&self) {
        self.hangs_up.store(true, Ordering::Relaxed);
    }
}

impl Drop for TestModem {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn speak(mut stream: TcpStream, modem: &Mutex<Modem>, hangs_up: &AtomicBool, is_over: &AtomicBool) {
    stream.set_nonblocking(false).unwrap();
    stream.set_nodelay(true).unwrap();
    stream.set_read_timeout(Some(Duration::from_millis(2))).unwrap();
    let (mut buffer, mut said, mut said_at) = ([0; 4_096], vec![], 0);
    while !is_over.load(Ordering::Relaxed) && !hangs_up.swap(false, Ordering::Relaxed) {
        let read = stream.read(&mut buffer);
        let mut modem = modem.lock().unwrap();
        let now = Time::from_nanos(now_ns());
        match read {
            Ok(0) => break,
            Ok(count) => modem.push(now, &buffer[..count]),
            Err(error)
                if matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut) => {}
            Err(_) => break,
        }
        if now.as_millis() >= said_at + 2 {
            said_at = now.as_millis();
            let stamp = Stamp::from_nanos(now.as_nanos() + 1_450_000_000_000_000_000);
            let grants = [(0, 50), (1, 25)].map(|(carrier, prbs)| (LogCode(0xB173), grant(carrier, prbs)));
            for (code, payload) in [(RSRP, serving_cell())].into_iter().chain(grants) {
                modem.feed(now, LogPacket { radio: Radio::FIRST, code, stamp, payload: &payload });
            }
        }
        modem.pop(now, &mut said);
        drop(modem);
        if stream.write_all(&said).is_err() {
            break;
        }
        said.clear();
    }
    modem.lock().unwrap().hang_up();
}

/// Log packet 0xB17F, version 5: an RSRP of −95 dBm.
fn serving_cell() -> Vec<u8> {
    let mut payload = vec![0; 36];
    payload[0] = 5;
    payload[12..16].copy_from_slice(&1_360u32.to_le_bytes());
    payload[20..24].copy_from_slice(&300u32.to_le_bytes());
    payload
}

/// Log packet 0xB173, version 36: a block of this many PRBs on a carrier, received without error.
fn grant(carrier: u8, prbs: u8) -> Vec<u8> {
    let mut payload = vec![0; 44];
    payload[..2].copy_from_slice(&[36, 1]);
    payload[4..10].copy_from_slice(&[0x23, 0x01, prbs, 1, 1, carrier]);
    payload[16] = 0b1000_0000;
    payload[20..22].copy_from_slice(&2_000u16.to_le_bytes());
    payload[22..24].copy_from_slice(&[15, prbs]);
    payload
}
