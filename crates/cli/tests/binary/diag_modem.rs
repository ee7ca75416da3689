//! The emulated modem, and hosts that communicate with it.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use airpace_core::{Bits, Direction, Time};
use airpace_diag::grant::{GrantReport, Grants, Source};
use airpace_diag::{
    Buffering, Drain, Framing, Line, LogCode, LogPacket, Radio, Session, SessionOptions, Stamp, State, frame,
    log,
};
use serde_json::Value;

use super::Shell;

const WANTED: LogCode = LogCode(0xB0C0);
const OTHER: LogCode = LogCode(0xB193);

/// A running modem, and the address of its port.
struct Bench {
    modem: Child,
    told: BufReader<std::process::ChildStdout>,
    address: String,
}

impl Bench {
    fn start(shell: &Shell, words: &[&str]) -> Bench {
        let words = [&["diag", "modem", "--listen", "127.0.0.1:0", "--json"], words].concat();
        let mut modem = shell
            .command(&words)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        let told = BufReader::new(modem.stdout.take().expect("its output"));
        let mut bench = Bench { modem, told, address: String::new() };
        let begin = bench.line();
        assert_eq!(
            (begin["event"].as_str(), begin["option"].as_str()),
            (Some("listening"), Some("--tcp")),
            "{begin}"
        );
        bench.address = begin["address"].as_str().expect("an address").to_owned();
        bench
    }

    fn line(&mut self) -> Value {
        let mut line = String::new();
        self.told.read_line(&mut line).expect("its output");
        serde_json::from_str(&line).unwrap_or_else(|error| {
            let mut err = String::new();
            let _ = self.modem.stderr.take().map(|mut stderr| stderr.read_to_string(&mut err));
            panic!("{error}: {line}{err}")
        })
    }

    /// Returns all output until the modem ends. The last line contains its statistics.
    fn end(mut self) -> Vec<Value> {
        let mut told = vec![];
        while told.last().is_none_or(|line: &Value| line["event"] != "end") {
            told.push(self.line());
        }
        assert_eq!(self.modem.wait().expect("it ends").code(), Some(0));
        told
    }
}

/// A received packet: code, timestamp and payload.
type Came = (LogCode, Stamp, Vec<u8>);

/// A host that subscribes to these codes. It disconnects when `is_enough` returns true, or when the modem closes the
/// port.
fn host(
    address: &str,
    codes: &[LogCode],
    options: SessionOptions,
    is_enough: impl Fn(&Line, &[Came]) -> bool,
) -> (Line, Vec<Came>) {
    let mut stream = TcpStream::connect(address).expect("the modem listens");
    stream.set_read_timeout(Some(Duration::from_millis(5))).unwrap();
    let mut line = Line::new(Session::new(codes.iter().copied().collect::<BTreeSet<_>>(), options));
    let (opened, mut came) = (Instant::now(), vec![]);
    let mut buffer = [0; 4_096];
    while line.session.state() != State::Closed {
        let now = Time::ZERO + opened.elapsed();
        assert!(now < Time::from_secs(120), "{:?}, {} packets", line.session.state(), came.len());
        if is_enough(&line, &came) {
            line.session.leave();
        }
        let mut out = vec![];
        line.pop(now, &mut out);
        if stream.write_all(&out).is_err() {
            break;
        }
        match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => line.push(now, &buffer[..count], |packet| {
                came.push((packet.code, packet.stamp, packet.payload.to_vec()));
            }),
            Err(error)
                if matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut) => {}
            Err(_) => break,
        }
    }
    (line, came)
}

/// A log of two codes with one packet each every 10 ms for 3 s, with a jump of the clock and a gap of one minute.
fn recorded() -> Vec<u8> {
    let mut bytes = vec![];
    for at in 0..300u64 {
        let epoch = if at < 20 { 0 } else { 1_400_000_000_000 };
        let silence = if at < 150 { 0 } else { 60_000 };
        let stamp = Stamp::from_nanos((epoch + silence + 10 * at) * 1_000_000);
        for code in [WANTED, OTHER] {
            let mut body = vec![];
            LogPacket { radio: Radio::FIRST, code, stamp, payload: &at.to_le_bytes() }
                .write(false, &mut body);
            frame::encode(Framing::Hdlc, &body, &mut bytes);
        }
    }
    bytes
}

#[test]
fn a_log_is_said_again_to_who_asks_for_it() {
    let shell = Shell::new();
    std::fs::write(shell.path("phone.qmdl"), recorded()).unwrap();
    let words = ["phone.qmdl", "--keep-time", "--longest-gap", "100ms", "--until-end"];
    let bench = Bench::start(&shell, &words);
    let (_, came) = host(&bench.address, &[WANTED], SessionOptions::default(), |_, _| false);
    let numbers: Vec<_> =
        came.iter().map(|(_, _, payload)| payload[0] as u16 | (payload[1] as u16) << 8).collect();
    assert!(came.iter().all(|(code, ..)| *code == WANTED), "masks are honoured");
    assert!(numbers.windows(2).all(|pair| pair[1] == pair[0] + 1), "none is missing: {numbers:?}");
    let (_, last, payload) = came.last().expect("packets came");
    assert_eq!((payload[..2].to_vec(), *last), (vec![43, 1], Stamp::from_nanos(1_400_000_062_990_000_000)));

    let told = bench.end();
    let events: Vec<_> = told.iter().map(|line| line["event"].as_str().unwrap()).collect();
    assert_eq!(events.iter().filter(|event| **event == "host came").count(), 1);
    assert!(told.iter().any(|line| line["text"] == "log packets of equipment 0xB: 0xB0C0"), "{told:?}");
    let end = told.last().unwrap();
    assert_eq!(end["sent"], came.len(), "{end}");
    assert_eq!(
        (end["packets"].as_u64(), end["lost"].as_u64(), end["faults"].as_u64()),
        (Some(600), Some(0), Some(0))
    );
    assert!(end["unasked"].as_u64().unwrap() >= 300, "{end}");
}

#[test]
fn what_is_shortened_of_a_log_is_said() {
    let shell = Shell::new();
    std::fs::write(shell.path("phone.qmdl"), recorded()).unwrap();
    let mut command = shell.command(&["diag", "modem", "phone.qmdl"]);
    let mut modem = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(modem.stdout.take().unwrap()).read_line(&mut line).unwrap();
    modem.kill().unwrap();
    modem.wait().unwrap();
    let (place, about) = line.trim_end().split_once(": ").expect("a place and what is there");
    assert!(place.starts_with("modem at /dev/"), "a pseudo-terminal: {line}");
    assert_eq!(
        about,
        "600 packets in 6.0 s; long silences shortened: 1; jumps of the modem's clock left out: 1"
    );
}

#[test]
fn a_simulated_cells_grants_come_as_a_modem_logs_them() {
    let shell = Shell::new();
    let words = ["stationary-idle", "--set", "duration_s=3", "--scheme", "cubic", "--until-end"];
    let bench = Bench::start(&shell, &words);
    let codes = [0xB130, 0xB139, 0xB173, 0xB193].map(LogCode);
    let (line, came) = host(&bench.address, &codes, SessionOptions::default(), |_, _| false);
    assert!(line.session.missing().is_empty());
    let (mut grants, mut bits, mut said) = (Grants::new(), [Bits::ZERO; 2], 0);
    for (code, stamp, payload) in &came {
        let packet = LogPacket { radio: Radio::FIRST, code: *code, stamp: *stamp, payload };
        log::read(&packet).unwrap_or_else(|error| panic!("{error}"));
        grants.push(&packet, |report| {
            if let GrantReport::Grant(grant) = report
                && grant.direction == Direction::Downlink
            {
                said += 1;
                bits[usize::from(grant.source == Source::SharedChannel)] += grant.bits();
            }
        });
    }
    assert_eq!(grants.troubles(), Default::default());
    assert!(said > 100 && bits[1].0 > 1_000_000, "{said} grants of {bits:?}");
    assert!(came.windows(2).all(|pair| pair[1].1 >= pair[0].1), "in order of time");
    let end = bench.end().pop().unwrap();
    assert_eq!((end["sent"].as_u64(), end["lost"].as_u64()), (Some(came.len() as u64), Some(0)), "{end}");
}

#[test]
fn a_buffer_that_would_keep_packets_for_an_hour_is_drained_by_who_can() {
    let shell = Shell::new();
    std::fs::write(shell.path("phone.qmdl"), recorded()).unwrap();
    let words = ["phone.qmdl", "--loop", "--buffer", "3600s"];
    let drain = Drain::new(Some(Buffering::THRESHOLD), Some(Duration::from_millis(10)));
    let options = SessionOptions { drain: Some(drain), ..SessionOptions::default() };
    let mut bench = Bench::start(&shell, &words);
    let (_, came) = host(&bench.address, &[WANTED], options.clone(), |_, came| came.len() >= 10);
    assert!(came.len() >= 10);
    bench.modem.kill().unwrap();
    bench.modem.wait().unwrap();

    let mut bench = Bench::start(&shell, &[&words[..], &["--no-control", "--hdlc-only"]].concat());
    let is_open = |line: &Line, _: &[Came]| line.session.state() == State::Streaming;
    let (line, came) = host(&bench.address, &[WANTED], options, is_open);
    assert!(!line.session.is_draining() && came.is_empty(), "a modem that refuses keeps what it has");
    assert_eq!(line.session.framing(), Framing::Hdlc);
    bench.modem.kill().unwrap();
    bench.modem.wait().unwrap();
}

#[test]
fn mistakes_are_explained() {
    let shell = Shell::new();
    shell.run(&["diag", "modem", "missing.qmdl"]).refused(&["missing.qmdl", "give an existing file"]);
    shell.run(&["diag", "modem", "stationry-idle"]).refused(&["stationry-idle", "stationary-idle"]);
    shell.run(&["diag", "modem", "trace", "--set", "trace.synth.model=constant"]).refused(&["trace"]);
    shell.run(&["diag", "modem", "stationary-idle", "--device", "9"]).refused(&["--device", "1 device"]);
    shell.run(&["diag", "modem", "stationary-idle", "--listen", "nowhere"]).refused(&["HOST:PORT"]);
    shell.run(&["diag", "modem", "phone.qmdl", "--buffer", "1"]).refused(&["1ms"]);
    shell.run(&["diag", "modem", "phone.qmdl", "--speed", "0"]).refused(&["0.001"]);
}
