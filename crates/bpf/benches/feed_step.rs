//! Measures the time from a new rate in the kernel's feed until the sender paces at this rate. BISCAY is measured over
//! a path with a round trip of 20 ms. PBE-CC is measured from the feed of the receiver's kernel, over a link without
//! delay between two network namespaces.
//!
//! ```text
//! cargo bench -p airpace-bpf --features load --bench feed_step      (as root)
//! ```
//!
//! By default, BISCAY keeps its bandwidth until there is a queue (`hold`). In this benchmark, this option and the
//! return to BBR are off. A step counts as followed when BISCAY's pacing rate passes the geometric mean of the old and
//! the new rate. PBE-CC's new rate travels with the next ACK, which is sent for the next two packets: most of the
//! measured time is the transmission time of these packets.
#![allow(unsafe_code)]

use std::fs::File;
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd};
use std::time::{Duration, Instant};

#[path = "ack_cost/far.rs"]
mod far;
#[path = "../tests/machine/mod.rs"]
mod machine;

use airpace_bpf::feed::{GrantRecord, now};
use airpace_bpf::kernel::{Kernel, KernelScheme};
use airpace_bpf::twin::KernelTuning;
use airpace_bpf::twin::pbe_receiver::Cell;
use airpace_cc::SchemeSpec;
use airpace_cc::biscay::Tuning;
use airpace_core::Rate;
use far::Far;
use machine::{Flow, Group, connected, pbe, wire};

const STEPS: u32 = 60;

/// One-way delay of a packet on BISCAY's path. `SETTLES` is the time after which a flow on this path has left STARTUP.
const DELAY: Duration = Duration::from_millis(10);
const SETTLES: Duration = Duration::from_secs(2);

/// Fraction of payload in a packet of 1500 bytes with headers of IPv4, TCP, time stamps, and PBE-CC's option.
const PAYLOAD: f64 = (1500.0 - 20.0 - 20.0 - 12.0 - 8.0) / 1500.0;

/// Maximum time of a step. A step that is not followed within this time counts as failed.
const MAX_STEP_TIME: Duration = Duration::from_secs(2);

/// `IPPROTO_TCP`, `TCP_INFO`, and the offset of `tcpi_pacing_rate` in its structure, in bytes.
///
/// Source: Linux include/uapi/linux/tcp.h (struct tcp_info)
const TCP: i32 = 6;
const TCP_INFO: i32 = 11;
const PACING_AT: usize = 104;

unsafe extern "C" {
    fn getsockopt(fd: i32, level: i32, name: i32, value: *mut u8, length: *mut u32) -> i32;
}

/// Reads the socket's pacing rate in Mbit/s from the kernel.
fn pacing_mbps(socket: &TcpStream) -> f64 {
    let mut info = [0; 256];
    let mut length = info.len() as u32;
    // SAFETY: the system writes at most `length` bytes into `info`, and nothing else.
    let code = unsafe { getsockopt(socket.as_raw_fd(), TCP, TCP_INFO, info.as_mut_ptr(), &mut length) };
    assert!(code == 0 && length as usize >= PACING_AT + 8, "the system says how it paces");
    let bytes = u64::from_ne_bytes(info[PACING_AT..PACING_AT + 8].try_into().expect("eight bytes"));
    bytes as f64 * 8e-6
}

/// Writes the feed every millisecond until the socket paces at the new rate. Returns the time that passed; `None` if
/// the step failed.
fn step(mut tell: impl FnMut(), socket: &TcpStream, is_followed: impl Fn(f64) -> bool) -> Option<Duration> {
    let began = Instant::now();
    let mut told = None;
    while began.elapsed() < MAX_STEP_TIME {
        let millis = began.elapsed().as_millis();
        if told.replace(millis) != Some(millis) {
            tell();
        }
        if is_followed(pacing_mbps(socket)) {
            return Some(began.elapsed());
        }
    }
    None
}

/// Writes the feed every millisecond for `span`.
fn hold(mut tell: impl FnMut(), span: Duration) {
    let began = Instant::now();
    while began.elapsed() < span {
        tell();
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Length of the pause before step `number`. The lengths vary, so that steps are not synchronous with packets.
fn pause(number: u32) -> Duration {
    Duration::from_micros(60_000 + u64::from(number) * 371 % 7_000)
}

fn print(scheme: &str, low: f64, mut took: Vec<Duration>) {
    took.sort();
    let millis = |part: usize| took[took.len() * part / 100].as_secs_f64() * 1e3;
    println!("{scheme:8} {low:5} and {:5} {:10.2} {:9.2}", 2.0 * low, millis(50), millis(95));
}

fn steps_of_pbe(low: f64) -> Result<Vec<Duration>, Box<dyn std::error::Error>> {
    let mut kernel = Kernel::load(&pbe())?;
    let [phone, server] = wire("192.0.2.1", "192.0.2.2").ok_or("no wire")?;
    let group = Group::enter().ok_or("no control groups")?;
    kernel.exchange(File::open(&group.path)?.as_fd())?;
    let mut feed = kernel.cell()?;
    let mut tell = |mbps: f64| feed.tell(&Cell::idle(Rate::from_mbps(mbps), now()));
    let paces_at = |mbps: f64| move |pacing: f64| (pacing / (mbps * PAYLOAD) - 1.0).abs() < 0.01;
    tell(low);
    let listener = phone.inside(|| TcpListener::bind("192.0.2.1:0"))?;
    let address = listener.local_addr()?;
    let sender = server.inside(|| connected(Some("pbe"), address))?;
    let socket = sender.try_clone()?;
    let flow = Flow::greedy(sender, listener.accept()?.0);
    // The socket is dropped before the flow: otherwise the receiver would wait for more data from this endpoint.
    let socket = socket;
    step(|| tell(low), &socket, paces_at(low)).ok_or("it does not come to its rate")?;
    let mut took = vec![];
    for number in 0..STEPS {
        let mbps = if number % 2 == 0 { 2.0 * low } else { low };
        took.push(step(|| tell(mbps), &socket, paces_at(mbps)).ok_or("a step was not followed")?);
        hold(|| tell(mbps), pause(number));
    }
    drop(socket);
    drop(flow);
    Ok(took)
}

fn steps_of_biscay(low: f64) -> Result<Vec<Duration>, Box<dyn std::error::Error>> {
    let spec = SchemeSpec::parse("biscay:startup=first:hold=off:switch_margin_percent=100000")?;
    let kernel = Kernel::load(&KernelScheme::Biscay(KernelTuning::new(&Tuning::read(spec.options())?)?))?;
    let far = Far::new(["192.0.2.1", "192.0.2.2"], DELAY).ok_or("no path")?;
    let mut feed = kernel.feed()?;
    let mut tell = |mbps: f64| {
        feed.tell(&GrantRecord { bandwidth: Some(Rate::from_mbps(mbps)), burst: Rate::ZERO, share: None });
    };
    tell(low);
    let listener = far.ends[1].inside(|| TcpListener::bind("192.0.2.2:0"))?;
    let address = listener.local_addr()?;
    let sender = far.ends[0].inside(|| connected(Some("biscay"), address))?;
    let socket = sender.try_clone()?;
    let flow = Flow::greedy(sender, listener.accept()?.0);
    // The socket is dropped before the flow: otherwise the receiver would wait for more data from this endpoint.
    let socket = socket;
    hold(|| tell(low), SETTLES);
    let mut took = vec![];
    for number in 0..STEPS {
        let (mbps, before) = (if number % 2 == 0 { 2.0 * low } else { low }, pacing_mbps(&socket));
        let is_followed = move |pacing: f64| {
            if mbps > low { pacing > before * 2.0_f64.sqrt() } else { pacing < before / 2.0_f64.sqrt() }
        };
        took.push(step(|| tell(mbps), &socket, is_followed).ok_or("a step was not followed")?);
        hold(|| tell(mbps), pause(number));
    }
    drop(socket);
    drop(flow);
    Ok(took)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("         Mbit/s        median ms   95 % ms");
    for low in [10.0, 100.0] {
        print("biscay", low, steps_of_biscay(low)?);
        print("pbe", low, steps_of_pbe(low)?);
    }
    Ok(())
}
