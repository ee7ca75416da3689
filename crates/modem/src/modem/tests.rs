//! Hosts at a modem's front end, in real time. The tests are independent of timing: hosts wait for the expected events.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::mpsc;
use std::thread;

use airpace_diag::{Line, Session, SessionOptions, State};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::*;
use crate::source::{Port, Source};

const CODE: LogCode = LogCode(0xB139);

/// A host at an open port.
struct Host {
    port: Port,
    line: Line,
    opened: Instant,
    came: Vec<(Stamp, Vec<u8>)>,
}

impl Host {
    fn new(source: &Source, codes: &[LogCode]) -> Host {
        let session = Session::new(codes.iter().copied().collect::<BTreeSet<_>>(), SessionOptions::default());
        let port = source.open().unwrap();
        Host { port, line: Line::new(session), opened: Instant::now(), came: vec![] }
    }

    fn until(&mut self, is_there: impl Fn(&Host) -> bool) {
        while !is_there(self) {
            let now = Time::ZERO + self.opened.elapsed();
            assert!(
                now < Time::from_secs(120),
                "{:?}, {} packets",
                self.line.session.state(),
                self.came.len()
            );
            let mut out = vec![];
            self.line.pop(now, &mut out);
            if !out.is_empty() {
                assert_eq!(self.port.write(&out).unwrap(), Some(out.len()));
            }
            let wait = Timespec { tv_sec: 0, tv_nsec: 10_000_000 };
            poll(&mut [PollFd::new(&self.port, PollFlags::IN)], Some(&wait)).unwrap();
            let mut buffer = [0; 256];
            if let Some(count) = self.port.read(&mut buffer).unwrap() {
                let came = &mut self.came;
                self.line
                    .push(now, &buffer[..count], |packet| came.push((packet.stamp, packet.payload.to_vec())));
            }
        }
    }
}

/// Serves an unlimited series of packets, one per millisecond, while `hosts` runs. Returns the notices and the
/// statistics.
fn with_modem(mut door: Door, hosts: impl FnOnce(&AtomicUsize)) -> (Vec<Notice>, ServeStats) {
    let (is_over, went) = (AtomicBool::new(false), AtomicUsize::new(0));
    let (tell, told) = mpsc::channel();
    let stats = thread::scope(|scope| {
        let server = scope.spawn(|| {
            let mut count = 0u64;
            let speech = || {
                count += 1;
                let at = Time::from_millis(count);
                let payload = count.to_le_bytes().to_vec();
                Next::Packet(TimedPacket {
                    at,
                    radio: Radio::FIRST,
                    code: CODE,
                    stamped: Stamped::At(at),
                    payload,
                })
            };
            let notice = |notice| {
                went.fetch_add(usize::from(notice == Notice::HostWent), Ordering::Relaxed);
                tell.send(notice).unwrap();
            };
            serve(&mut door, ModemOptions::default(), false, speech, &is_over, notice).unwrap()
        });
        hosts(&went);
        is_over.store(true, Ordering::Relaxed);
        server.join().unwrap()
    });
    drop(tell);
    (told.iter().collect(), stats)
}

fn two_hosts(source: Source, door: Door) {
    let (notices, stats) = with_modem(door, |went| {
        let mut first = Host::new(&source, &[CODE]);
        first.until(|host| host.came.len() >= 50);
        drop(first);
        // Wait until the modem has noticed the disconnection: if a terminal is opened again at once, it does not report
        // that it was closed.
        while went.load(Ordering::Relaxed) == 0 {
            thread::yield_now();
        }
        let mut second = Host::new(&source, &[LogCode(0xB173)]);
        second.until(|host| host.line.session.state() == State::Streaming);
        let original = second.line.session.original().unwrap().clone();
        assert!(
            original.logs[0].has(CODE),
            "the modem kept what the first host, which vanished, had asked for"
        );
        second.line.session.leave();
        second.until(|host| host.line.session.state() == State::Closed);
        second.came.clear();
        second.until(|host| !host.came.is_empty());
    });
    assert_eq!(stats.hosts, 2);
    let steps = |wanted: fn(&Notice) -> bool| notices.iter().filter(|notice| wanted(notice)).count();
    assert_eq!(steps(|notice| matches!(notice, Notice::HostCame(_))), 2);
    assert!(steps(|notice| matches!(notice, Notice::Asked(Request::SetLogMask(_)))) >= 2);
    let modem = stats.modem;
    assert!(modem.sent >= 50 && modem.fed >= modem.sent + modem.unasked + modem.lost, "{modem:?}");
}

#[test]
fn hosts_come_and_go_at_a_tcp_port() {
    let door = Door::listen("127.0.0.1:0").unwrap();
    two_hosts(Source::Tcp(door.to_string()), door);
}

#[test]
fn hosts_come_and_go_at_a_terminal() {
    let door = Door::terminal().unwrap();
    two_hosts(Source::Serial(door.to_string().into()), door);
}

#[test]
fn what_is_said_bears_the_time_of_today_in_order() {
    let door = Door::listen("127.0.0.1:0").unwrap();
    let source = Source::Tcp(door.to_string());
    with_modem(door, |_| {
        let mut host = Host::new(&source, &[CODE]);
        host.until(|host| host.came.len() >= 20);
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let today = Stamp::from_nanos((unix - EPOCH).as_nanos() as u64);
        assert!(today.since(host.came[0].0).is_some_and(|seconds| (0.0..60.0).contains(&seconds)));
        let numbers: Vec<_> =
            host.came.iter().map(|(_, payload)| payload[0].wrapping_sub(host.came[0].1[0])).collect();
        assert_eq!(numbers[..20], (0..20).collect::<Vec<u8>>(), "none is lost between");
    });
}

#[test]
fn a_log_that_is_over_ends_the_service_if_that_is_wanted() {
    let stamp = |millis: u64| Stamp::from_nanos((1_450_000_000_000 + millis) * 1_000_000);
    let packets = (0..30).map(|at| Recorded {
        radio: Radio::FIRST,
        code: CODE,
        stamp: stamp(10 * at),
        payload: vec![at as u8],
    });
    let options = ReplayOptions { keeps_time: true, ..ReplayOptions::default() };
    let mut replay = Replay::new(packets.collect(), options);
    let mut door = Door::listen("127.0.0.1:0").unwrap();
    let source = Source::Tcp(door.to_string());
    let (stats, came) = thread::scope(|scope| {
        let server = scope.spawn(move || {
            serve(&mut door, ModemOptions::default(), true, || replay.say(), &AtomicBool::new(false), |_| {})
                .unwrap()
        });
        let mut host = Host::new(&source, &[CODE]);
        host.until(|host| host.came.last().is_some_and(|(_, payload)| payload == &[29]));
        drop(host.port);
        (server.join().unwrap(), host.came)
    });
    assert_eq!(came.last(), Some(&(stamp(290), vec![29])), "with the stamps that it was recorded with");
    assert_eq!((stats.modem.fed, stats.modem.sent), (30, came.len() as u64));
}

/// A host that does not read the modem's last packets at once, and continues to send requests, still receives all packets
/// that were sent.
fn a_slow_host(source: Source, mut door: Door) {
    // The packet source starts only after the host's request, however long that takes.
    let has_asked = AtomicBool::new(false);
    let mut count = 0;
    let speech = || {
        if !has_asked.load(Ordering::Relaxed) {
            return Next::Later;
        }
        count += 1;
        if count > 30 {
            return Next::End;
        }
        let stamped = Stamped::At(Time::ZERO);
        Next::Packet(TimedPacket {
            at: Time::ZERO,
            radio: Radio::FIRST,
            code: CODE,
            stamped,
            payload: vec![0; 64],
        })
    };
    let (tell, told) = mpsc::channel();
    thread::scope(|scope| {
        let server = scope.spawn(move || {
            let notice = |notice| tell.send(notice).unwrap();
            let never = AtomicBool::new(false);
            serve(&mut door, ModemOptions::default(), true, speech, &never, notice).unwrap()
        });
        let mut host = Host::new(&source, &[CODE]);
        host.until(|host| host.line.session.state() == State::Streaming);
        has_asked.store(true, Ordering::Relaxed);
        assert!(told.iter().any(|notice| notice == Notice::SpeechOver));
        let _ = host.port.write(&[0x7E; 64]);
        let mut buffer = [0; 256];
        loop {
            poll(&mut [PollFd::new(&host.port, PollFlags::IN)], None).unwrap();
            match host.port.read(&mut buffer) {
                Ok(count) => {
                    let bytes = &buffer[..count.unwrap_or(0)];
                    let came = &mut host.came;
                    let push = |packet: &LogPacket<'_>| came.push((packet.stamp, packet.payload.to_vec()));
                    host.line.push(Time::ZERO + host.opened.elapsed(), bytes, push);
                }
                Err(error) => {
                    assert_ne!(error.kind(), io::ErrorKind::ConnectionReset, "an end, not a break");
                    break;
                }
            }
        }
        // Dropping the port disconnects the host, for which the modem waits.
        drop(host.port);
        let sent = server.join().unwrap().modem.sent;
        assert_eq!((sent, host.came.len()), (30, 30), "sent, and came");
    });
}

#[test]
fn a_slow_host_gets_the_last_of_a_log_at_a_tcp_port() {
    let door = Door::listen("127.0.0.1:0").unwrap();
    a_slow_host(Source::Tcp(door.to_string()), door);
}

#[test]
fn a_slow_host_gets_the_last_of_a_log_at_a_terminal() {
    let door = Door::terminal().unwrap();
    a_slow_host(Source::Serial(door.to_string().into()), door);
}
