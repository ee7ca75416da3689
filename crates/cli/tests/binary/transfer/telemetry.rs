//! Radio reports from real sources during a flow: they stop, have the wrong scope, and return. No test measures time:
//! each waits until the program itself reports the state of its telemetry.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use airpace_core::Time;
use airpace_radio::{BitLayer, CarrierId, OwnRadio, RadioReport, Rnti, Scope, Slot, line};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::Value;

use super::{Recv, sending};
use crate::Shell;

/// Number of bytes that must arrive in a phase, so that both endpoints have sampled their state in it: they do so ten
/// times per second, and less than 2 MB arrive per second.
const SOME: u64 = 600_000;

/// Number of events after which a test fails: several minutes of a program that prints ten events per second.
const MAX_EVENTS: u32 = 2_000;

/// A sender whose input grows until the test ends it.
struct Flow {
    child: Child,
    is_over: Arc<AtomicBool>,
    writer: Option<JoinHandle<()>>,
}

impl Flow {
    fn start(shell: &Shell, recv: &Recv, transport: &str, words: &[&str]) -> Flow {
        let at = recv.at.as_str();
        let common = ["--transport", transport, "--key", "key", "--json"];
        let words = [&["send", "-", at], words, &common].concat();
        let mut command = shell.command(&words);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the sender starts");
        let is_over = Arc::new(AtomicBool::new(false));
        let (input, until) = (child.stdin.take().unwrap(), Arc::clone(&is_over));
        let writer = Some(std::thread::spawn(move || grow(input, &until)));
        Flow { child, is_over, writer }
    }

    /// Ends the input. Returns the sender's report.
    #[track_caller]
    fn end(mut self) -> Value {
        self.is_over.store(true, Ordering::Relaxed);
        self.writer.take().unwrap().join().unwrap();
        let [mut out, mut err] = [String::new(), String::new()];
        self.child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
        self.child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
        assert!(self.child.wait().unwrap().success(), "{err}");
        serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}{err}"))
    }
}

impl Drop for Flow {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Writes less than 2 MB per second.
fn grow(mut input: ChildStdin, is_over: &AtomicBool) {
    while !is_over.load(Ordering::Relaxed) && input.write_all(&[7; 8_000]).is_ok() {
        std::thread::sleep(Duration::from_millis(4));
    }
}

impl Recv {
    /// Waits until the telemetry satisfies `wanted`. Returns the event.
    #[track_caller]
    fn wait_for_radio(&self, wanted: impl Fn(&Value) -> bool) -> Value {
        let mut last = Value::Null;
        for _ in 0..MAX_EVENTS {
            let event = self.wait_for("moving");
            if wanted(&event["radio"]) {
                return event;
            }
            last = event;
        }
        panic!("telemetry never becomes so: {last}");
    }

    /// Waits until the telemetry is in this state and [`SOME`] more bytes have arrived in it. Returns the last event.
    #[track_caller]
    fn phase(&self, state: &str, also: impl Fn(&Value) -> bool) -> Value {
        let is_so = |radio: &Value| radio["state"] == state && also(radio);
        let mut since = self.wait_for_radio(is_so);
        for _ in 0..MAX_EVENTS {
            let event = self.wait_for("moving");
            // On a busy machine telemetry may be late for a short time.
            if !is_so(&event["radio"]) {
                since = self.wait_for_radio(is_so);
            } else if event["bytes_done"].as_u64() >= since["bytes_done"].as_u64().map(|done| done + SOME) {
                return event;
            }
        }
        panic!("telemetry never stays so: {since}");
    }
}

/// Sequence of periods in which the sender used telemetry (`true`) or the fallback (`false`). Other differences between
/// states do not count.
fn was_led(sent: &Value) -> Vec<bool> {
    let is_led = |state: &Value| !state["state"].as_str().unwrap().starts_with("Fallback");
    let mut led: Vec<bool> = sent["states"].as_array().unwrap().iter().map(is_led).collect();
    led.dedup();
    led
}

/// Contents of the reports that a program writes.
#[derive(Clone, Copy)]
struct Told {
    scope: Scope,
    has_own_side: bool,
}

const EVERYONE: Told = Told { scope: Scope::Everyone, has_own_side: true };

/// A program that writes one line per millisecond into a FIFO, starting with subframe 0. Dropping the value stops it.
struct Reporter {
    told: Arc<Mutex<Told>>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Reporter {
    fn start(path: &Path) -> Reporter {
        let told = Arc::new(Mutex::new(EVERYONE));
        let is_over = Arc::new(AtomicBool::new(false));
        let (theirs, until) = (Arc::clone(&told), Arc::clone(&is_over));
        // Opening the FIFO waits for a reader.
        let mut fifo = File::options().write(true).open(path).unwrap();
        let thread = std::thread::spawn(move || {
            for subframe in 0.. {
                let Told { scope, has_own_side } = *theirs.lock().unwrap();
                let text = line::to_line(subframe, &[report(subframe, scope, has_own_side)]) + "\n";
                if until.load(Ordering::Relaxed) || fifo.write_all(text.as_bytes()).is_err() {
                    return;
                }
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        Reporter { told, is_over, thread: Some(thread) }
    }

    fn tell(&self, told: Told) {
        *self.told.lock().unwrap() = told;
    }
}

impl Drop for Reporter {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap();
    }
}

/// A report for a subframe of an idle cell of 50 PRBs, which can carry 25 Mbit/s.
fn report(subframe: u64, scope: Scope, has_own_side: bool) -> RadioReport {
    let own = OwnRadio {
        rnti: Rnti(70),
        active: true,
        sinr_db: Some(15.0),
        bits_per_prb: Some(500.0),
        decoded: None,
        uplink_queue: None,
    };
    RadioReport {
        carrier: CarrierId(0),
        slot: Slot::subframe_of_lte(subframe),
        time: Time::from_millis(subframe),
        scope,
        carrier_prbs: Some(50),
        cfi: Some(2),
        symbols: None,
        dcis: vec![],
        own: has_own_side.then_some(own),
        layer: BitLayer::Physical,
    }
}

#[test]
fn a_writer_that_dies_tells_too_little_or_comes_back_is_seen_on_both_sides() {
    for transport in super::TRANSPORTS {
        let shell = Shell::new();
        let fifo = shell.path("reports");
        mknodat(CWD, &fifo, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let recv = Recv::start(&shell, &["--radio", "reports", "--overwrite"]);
        let reporter = Reporter::start(&fifo);
        let flow = Flow::start(&shell, &recv, transport, &["--scheme", "pbe"]);
        let fresh = recv.phase("fresh", |_| true);
        assert!(fresh["capacity_mbps"].as_f64() > Some(1.0), "PBE-CC uses it: {fresh}");
        assert_eq!(fresh["radio"]["why"], Value::Null);
        assert!(fresh["radio"]["source"].as_str().unwrap().contains("`reports`"), "{fresh}");
        assert_eq!(fresh["radio"]["rnti"], 70);

        let too_little = [
            (Told { scope: Scope::Own, ..EVERYONE }, "only this device's grants"),
            (Told { scope: Scope::EveryoneBut { unexplained: 2, missed: None }, ..EVERYONE }, "not decoded"),
            (Told { has_own_side: false, ..EVERYONE }, "do not name their device"),
        ];
        for (told, why) in too_little {
            reporter.tell(told);
            let wrong = &recv.phase("wrong-scope", |_| true)["radio"];
            assert!(wrong["why"].as_str().unwrap().contains(why), "{wrong}");
            assert!(wrong["age_ms"].as_f64() > Some(100.0) && wrong["refused"].as_u64() > Some(0), "{wrong}");
            reporter.tell(EVERYONE);
            recv.phase("fresh", |_| true);
        }

        drop(reporter);
        let stale = &recv.phase("stale", |_| true)["radio"];
        assert!(stale["age_ms"].as_f64() > Some(100.0), "{stale}");
        assert!(
            stale["why"].as_str().unwrap().contains("retrying") || stale["opened"].as_u64() > Some(1),
            "{stale}"
        );
        // Another program, which starts again with subframe 0.
        let reporter = Reporter::start(&fifo);
        let back = &recv.phase("fresh", |radio| radio["opened"].as_u64() > Some(1))["radio"];
        assert!(back["gaps"].as_u64() >= Some(4), "{back}");
        let sent = flow.end();
        // On a busy machine there may be more changes.
        let led = was_led(&sent);
        assert!(led.len() >= 9 && led[0] && led[led.len() - 1], "it falls back four times: {sent}");
        assert_eq!(sent["radio"], Value::Null, "the sender has none");
        let done = &recv.wait_for("done")["radio"];
        assert!(done["reports"].as_u64() > Some(500) && done["unreadable"] == 0, "{done}");
        drop(reporter);
    }
}

/// An airpace program that runs until the test stops it.
struct Running {
    child: Child,
    /// First line of its output.
    first: Value,
    /// A thread that reads the further output, so that the program can write it.
    _drain: JoinHandle<()>,
}

impl Running {
    fn start(shell: &Shell, words: &[&str]) -> Running {
        let mut child = shell.command(words).stdout(Stdio::piped()).spawn().expect("it starts");
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let first = lines.next().expect("it says where it is").unwrap();
        let first = serde_json::from_str(&first).unwrap_or_else(|error| panic!("{error}: {first}"));
        let drain = std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
        Running { child, first, _drain: drain }
    }

    /// Starts an emulated modem on a pseudo-terminal, and creates `link` to it.
    fn modem(shell: &Shell, link: &str, speech: &[&str]) -> Running {
        let modem =
            Running::start(shell, &[&["diag", "modem", "--pty", "--loop", "--json"], speech].concat());
        let at = PathBuf::from(modem.first["address"].as_str().unwrap());
        let _ = fs::remove_file(shell.path(link));
        symlink(at, shell.path(link)).unwrap();
        modem
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Scenario whose simulated phone downloads; its modem writes the log.
const PHONE: &[&str] = &["stationary-idle", "--scheme", "cubic"];

#[test]
fn a_modems_port_tells_of_own_grants_until_it_is_closed_and_when_it_is_back() {
    let shell = Shell::new();
    let modem = Running::modem(&shell, "dm", PHONE);
    let recv = Recv::start(&shell, &["--radio", "modem:dm", "--overwrite"]);
    // PBE-CC needs more data than a modem reports.
    let flow = Flow::start(&shell, &recv, "quic", &["--scheme", "pbe"]);
    let wrong = &recv.phase("wrong-scope", |_| true)["radio"];
    assert!(wrong["why"].as_str().unwrap().contains("only this device's grants"), "{wrong}");
    let sent = flow.end();
    assert!(!sent["states"].to_string().contains("Wireless"), "{sent}");
    recv.wait_for("done");

    let flow = Flow::start(&shell, &recv, "quic", &["--scheme", "biscay"]);
    let fresh = recv.phase("fresh", |_| true);
    assert!(fresh["capacity_mbps"].as_f64() > Some(1.0), "BISCAY uses it: {fresh}");
    assert!(fresh["radio"]["source"].as_str().unwrap().contains("modem at dm"), "{fresh}");
    drop(modem);
    let stale = &recv.phase("stale", |radio| radio["why"] != "no reports are received")["radio"];
    assert!(stale["why"].as_str().unwrap().contains("port"), "{stale}");
    let modem = Running::modem(&shell, "dm", PHONE);
    let back = &recv.phase("fresh", |radio| radio["opened"].as_u64() > Some(1))["radio"];
    assert_eq!(back["why"], Value::Null);
    flow.end();
    let done = &recv.wait_for("done")["radio"];
    assert!(done["reports"].as_u64() > Some(200), "{done}");
    recv.interrupt();
    drop(modem);
}

/// Sends with this source until it has delivered reports. Returns the sender's report about the radio.
fn until_heard(shell: &Shell, recv: &Recv, transport: &str, source: &str) -> Value {
    // On a busy machine, opening a modem may take longer than a small transfer.
    for megabytes in 1.. {
        let flow = Flow::start(shell, recv, transport, &["--scheme", "biscay", "--radio", source]);
        while recv.wait_for("moving")["bytes_done"].as_u64() < Some(megabytes * 1_000_000) {}
        let radio = flow.end()["radio"].take();
        if radio["reports"].as_u64() > Some(0) {
            return radio;
        }
    }
    unreachable!("it goes on")
}

#[test]
fn the_sender_hears_its_own_modem_through_its_port_and_through_a_daemon() {
    let shell = Shell::new();
    let modem = Running::modem(&shell, "dm", PHONE);
    let recv = Recv::start(&shell, &["--overwrite"]);
    let radio = until_heard(&shell, &recv, "udp", "modem:dm");
    assert_eq!(radio["refused"], radio["reports"], "a modem tells of nobody else: {radio}");
    drop(modem);

    let modem = Running::modem(&shell, "dm", PHONE);
    let serve = ["diag", "serve", "--port", "dm", "--dir", "od", "--json"];
    let daemon = Running::start(&shell, &serve);
    let radio = until_heard(&shell, &recv, "quic", "od:od");
    assert!(radio["source"].as_str().unwrap().contains("libOD in `od`"), "{radio}");
    // A program that already reads the port is not disturbed.
    let words = sending(&recv, "quic", &["film", "--radio", "modem:dm"]);
    fs::write(shell.path("film"), "film").unwrap();
    shell.run(&words).refused(&["--radio od"]);
    drop((daemon, modem));
}

#[test]
fn a_daemon_that_is_killed_and_started_again_is_found_again() {
    let shell = Shell::new();
    let modem = Running::modem(&shell, "dm", PHONE);
    let serve = ["diag", "serve", "--port", "dm", "--dir", "od", "--json"];
    let recv = Recv::start(&shell, &["--radio", "od:od"]);
    let flow = Flow::start(&shell, &recv, "quic", &["--scheme", "biscay"]);
    let none = &recv.phase("waiting", |_| true)["radio"];
    assert!(none["why"].as_str().unwrap().contains("retrying"), "{none}");
    let mut daemon = Running::start(&shell, &serve);
    recv.phase("fresh", |_| true);
    daemon.child.kill().unwrap();
    daemon.child.wait().unwrap();
    let stale = &recv.phase("stale", |radio| radio["why"] != "no reports are received")["radio"];
    assert!(stale["why"].as_str().unwrap().contains("retrying"), "{stale}");
    drop(daemon);
    let daemon = Running::start(&shell, &serve);
    recv.phase("fresh", |radio| radio["opened"].as_u64() > Some(1));
    flow.end();
    drop((daemon, modem));
}

#[test]
fn a_real_modems_log_is_heard() {
    let Some(log) = airpace_testing::recordings("diag/lte_pixel3_a.mi2log") else { return };
    let shell = Shell::new();
    let modem = Running::modem(&shell, "dm", &[log.to_str().unwrap(), "--longest-gap", "50ms"]);
    let recv = Recv::start(&shell, &["--radio", "modem:dm"]);
    let flow = Flow::start(&shell, &recv, "quic", &["--scheme", "biscay"]);
    recv.wait_for_radio(|radio| radio["reports"].as_u64() > Some(100));
    flow.end();
    drop(modem);
}

/// Creates a recording of a small cell of this many seconds. Returns the RNTI of one of its users.
fn record(shell: &Shell, seconds: &str) -> String {
    let words = [
        "encode",
        "stationary-idle",
        "--out",
        "cell",
        "--truth",
        "truth",
        "--snr",
        "20",
        "--seconds",
        seconds,
    ];
    let small = ["--set", "cell.prbs=6", "--rate", "1.92e6", "--format", "ci8"];
    shell.run(&[&words[..], &small].concat()).fine();
    let truth = shell.read("truth");
    let of_phone = |line: &str| {
        let message: Value = serde_json::from_str(line).unwrap();
        let rnti = message["rnti"].as_u64().filter(|rnti| (61..65_000).contains(rnti))?;
        (message["dir"] == "DL").then(|| rnti.to_string())
    };
    truth.lines().find_map(of_phone).expect("somebody is granted something")
}

#[test]
fn a_recording_is_decoded_as_it_was_received_and_its_end_is_told() {
    let shell = Shell::new();
    let rnti = record(&shell, "3");
    let source = format!("cell.sigmf-meta,rnti={rnti},cell=1");
    let recv = Recv::start(&shell, &["--radio", &source]);
    let flow = Flow::start(&shell, &recv, "quic", &["--scheme", "pbe"]);
    let ended = &recv
        .wait_for_radio(|radio| radio["why"].as_str().is_some_and(|why| why == "the recording has ended"))["radio"];
    // A machine that is too slow counts late reports, and does not use them as the present state of the cell.
    let [reports, late] = ["reports", "late"].map(|key| ended[key].as_u64().unwrap());
    assert!(reports + late > 2_000, "all subframes behind the search are read: {ended}");
    assert_eq!(ended["state"], if reports > 0 { "stale" } else { "waiting" }, "{ended}");
    flow.end();
}

#[test]
fn samples_that_come_as_somebody_sends_them_are_decoded() {
    let shell = Shell::new();
    let rnti = record(&shell, "2");
    mknodat(CWD, shell.path("samples"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let (from, to) = (shell.path("cell.sigmf-data"), shell.path("samples"));
    let source = format!("iq:samples,rate=1.92e6,format=ci8,rnti={rnti}");
    let is_over = Arc::new(AtomicBool::new(false));
    let until = Arc::clone(&is_over);
    // Half of real time, so that every machine keeps up. The samples are repeated from the start, as if the radio had
    // been retuned.
    let radio = std::thread::spawn(move || {
        let mut to = File::options().write(true).open(to).unwrap();
        let samples = fs::read(from).unwrap();
        for millisecond in samples.chunks(2 * 1_920).cycle() {
            if until.load(Ordering::Relaxed) || to.write_all(millisecond).is_err() {
                return;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    });
    let recv = Recv::start(&shell, &["--radio", &source]);
    let flow = Flow::start(&shell, &recv, "quic", &["--scheme", "pbe"]);
    let fresh = recv.phase("fresh", |_| true);
    assert!(fresh["capacity_mbps"].as_f64() > Some(0.1), "{fresh}");
    is_over.store(true, Ordering::Relaxed);
    radio.join().unwrap();
    recv.phase("stale", |_| true);
    let sent = flow.end();
    assert!(sent["states"].to_string().contains("Wireless") && was_led(&sent).ends_with(&[false]), "{sent}");
}
