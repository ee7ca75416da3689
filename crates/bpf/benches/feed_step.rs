//! How soon a sender of PBE-CC paces at a new rate once its receiver's kernel is told it: over a wire between two network
//! namespaces, without any delay of its own.
//!
//! ```text
//! cargo bench -p airpace-bpf --features load --bench feed_step      (as root)
//! ```
//!
//! A new rate travels with the next ACK, and that is for the next two packets: so most of the time is theirs.
#![allow(unsafe_code)]

use std::fs::File;
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd};
use std::time::{Duration, Instant};

#[path = "../tests/machine/mod.rs"]
mod machine;

use airpace_bpf::feed::{CellFeed, now};
use airpace_bpf::kernel::Kernel;
use airpace_bpf::twin::pbe_receiver::Cell;
use airpace_core::Rate;
use machine::{Flow, Group, connected, pbe, wire};

const STEPS: u32 = 60;

/// What headers leave of a packet of 1500 bytes: IPv4, TCP, time stamps, and our option.
const PAYLOAD: f64 = (1500.0 - 20.0 - 20.0 - 12.0 - 8.0) / 1500.0;

/// A step that takes so long is none.
const LONGEST: Duration = Duration::from_secs(2);

/// `IPPROTO_TCP`, `TCP_INFO`, and where `tcpi_pacing_rate` lies in that, in bytes.
///
/// Source: Linux include/uapi/linux/tcp.h (struct tcp_info)
const TCP: i32 = 6;
const TCP_INFO: i32 = 11;
const PACING_AT: usize = 104;

unsafe extern "C" {
    fn getsockopt(fd: i32, level: i32, name: i32, value: *mut u8, length: *mut u32) -> i32;
}

/// The socket's pacing rate in Mbit/s.
fn pacing_mbps(socket: &TcpStream) -> f64 {
    let mut info = [0; 256];
    let mut length = info.len() as u32;
    // SAFETY: the system writes at most `length` bytes into `info`, and nothing else.
    let code = unsafe { getsockopt(socket.as_raw_fd(), TCP, TCP_INFO, info.as_mut_ptr(), &mut length) };
    assert!(code == 0 && length as usize >= PACING_AT + 8, "the system says how it paces");
    let bytes = u64::from_ne_bytes(info[PACING_AT..PACING_AT + 8].try_into().expect("eight bytes"));
    bytes as f64 * 8e-6
}

/// Tells a rate until the socket paces at it. Returns how long that took.
fn step(feed: &mut CellFeed, socket: &TcpStream, mbps: f64) -> Option<Duration> {
    let began = Instant::now();
    let mut told = None;
    while began.elapsed() < LONGEST {
        let millis = began.elapsed().as_millis();
        if told.replace(millis) != Some(millis) {
            feed.tell(&Cell::idle(Rate::from_mbps(mbps), now()));
        }
        if (pacing_mbps(socket) / (mbps * PAYLOAD) - 1.0).abs() < 0.01 {
            return Some(began.elapsed());
        }
    }
    None
}

/// Goes on telling it.
fn hold(feed: &mut CellFeed, mbps: f64, span: Duration) {
    let began = Instant::now();
    while began.elapsed() < span {
        feed.tell(&Cell::idle(Rate::from_mbps(mbps), now()));
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("Mbit/s        median ms   95 % ms");
    for low in [10.0, 100.0] {
        let mut kernel = Kernel::load(&pbe())?;
        let [phone, server] = wire("192.0.2.1", "192.0.2.2").ok_or("no wire")?;
        let group = Group::enter().ok_or("no control groups")?;
        kernel.exchange(File::open(&group.path)?.as_fd())?;
        let mut feed = kernel.cell()?;
        feed.tell(&Cell::idle(Rate::from_mbps(low), now()));
        let listener = phone.inside(|| TcpListener::bind("192.0.2.1:0"))?;
        let address = listener.local_addr()?;
        let sender = server.inside(|| connected(Some("pbe"), address))?;
        let socket = sender.try_clone()?;
        let flow = Flow::greedy(sender, listener.accept()?.0);
        step(&mut feed, &socket, low).ok_or("it does not come to its rate")?;
        let mut took = vec![];
        for number in 0..STEPS {
            let mbps = if number % 2 == 0 { 2.0 * low } else { low };
            took.push(step(&mut feed, &socket, mbps).ok_or("a step was not followed")?);
            // Not in time with the packets.
            hold(&mut feed, mbps, Duration::from_micros(60_000 + u64::from(number) * 371 % 7_000));
        }
        took.sort();
        let millis = |part: usize| took[took.len() * part / 100].as_secs_f64() * 1e3;
        println!("{low:5} and {:5} {:10.2} {:9.2}", 2.0 * low, millis(50), millis(95));
        // Else the receiver would wait for what this end may still send.
        drop(socket);
        drop(flow);
    }
    Ok(())
}
