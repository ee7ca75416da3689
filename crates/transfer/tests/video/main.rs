//! Server and client over loopback sockets. The client's time is virtual, so that no result depends on the machine's speed.

mod hostile;
mod session;

use std::cell::Cell;
use std::io;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, mpsc};
use std::time::Duration;

use airpace_core::Time;
use airpace_transfer::video::VideoDescription;
use airpace_transfer::video::client::{Clock, Report, Settings, play};
use airpace_transfer::video::server::{Config, Notice, Server, Totals};
use airpace_video::{Codec, Ladder, PlayerConfig, Representation};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::sockopt;

/// A clock that advances with each event of the socket, and jumps to the next deadline if no request is outstanding.
struct VirtualClock {
    now: Cell<Time>,
    /// Time that passes with each event.
    per_event: Duration,
}

impl VirtualClock {
    fn new(per_event: Duration) -> VirtualClock {
        VirtualClock { now: Cell::new(Time::from_secs(7)), per_event }
    }
}

impl Clock for VirtualClock {
    fn now(&self) -> Time {
        self.now.get()
    }

    fn wait(&mut self, event: Option<(BorrowedFd<'_>, PollFlags)>, until: Time) -> io::Result<()> {
        match event {
            Some((socket, flags)) => {
                poll(&mut [PollFd::from_borrowed_fd(socket, flags)], None)?;
                self.now.set(self.now() + self.per_event);
            }
            None => self.now.set(until),
        }
        Ok(())
    }
}

/// A clock for a silent server: it jumps to each deadline.
struct HastyClock(Cell<Time>);

impl Clock for HastyClock {
    fn now(&self) -> Time {
        self.0.get()
    }

    fn wait(&mut self, _: Option<(BorrowedFd<'_>, PollFlags)>, until: Time) -> io::Result<()> {
        self.0.set(until);
        Ok(())
    }
}

/// A player of a short video with small segments. The bitrates are in Mbit/s.
fn player(segment_s: f64, segments: u32, bitrates: &[f64]) -> PlayerConfig {
    let representation = |&bitrate_mbps: &f64| Representation {
        bitrate_mbps,
        width: 640,
        height: 360,
        fps: 30.0,
        codec: Codec::H264,
    };
    PlayerConfig {
        ladder: Ladder { segment_s, representation: bitrates.iter().map(representation).collect() },
        duration_s: segment_s * f64::from(segments),
        ..PlayerConfig::default()
    }
}

fn settings(server: SocketAddr, player: PlayerConfig) -> Settings {
    let patience = Duration::from_secs(60);
    Settings { server, host: server.to_string(), player, duration: None, patience }
}

/// Congestion control that a test selects.
fn choose(socket: BorrowedFd<'_>, name: &str) -> io::Result<()> {
    Ok(sockopt::set_tcp_congestion(socket, name)?)
}

fn config(description: &VideoDescription) -> Config {
    Config {
        listen: "127.0.0.1:0".parse().expect("an address"),
        congestion_control: None,
        choose,
        connections: 64,
        description: description.clone(),
    }
}

/// Stops a server on drop, also if a test panics.
struct Stop<'s>(&'s AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs a server while `work` runs. Returns the result of `work`, the server's counters and its notices.
fn with_server<T>(config: Config, work: impl FnOnce(SocketAddr) -> T) -> (T, Totals, Vec<Notice>) {
    let server = Server::listen(config).expect("a server");
    let (stop, notices) = (AtomicBool::new(false), Mutex::new(vec![]));
    let (done, totals) = std::thread::scope(|scope| {
        let running = scope.spawn(|| {
            server.run(&stop, &|notice| notices.lock().expect("no panic").push(notice)).expect("it runs")
        });
        let stopping = Stop(&stop);
        let done = work(server.local());
        drop(stopping);
        (done, running.join().expect("no panic"))
    });
    (done, totals, notices.into_inner().expect("no panic"))
}
