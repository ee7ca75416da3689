//! BISCAY in the kernel shares with all flows of the host, and not only with its own.
#![cfg(feature = "load")]

use std::fs::File;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::os::fd::AsFd;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

mod machine;

use airpace_bpf::kernel::{Kernel, Part};
use airpace_bpf::twin::KernelTuning;
use airpace_cc::SchemeSpec;
use airpace_cc::biscay::Tuning;
use machine::{Feeding, Flow, Group, InKernel, Namespace, connected, load, mbps, turn, wait_until, wire};

/// The most that count: `AP_MOST_FLOWS`.
const MOST: u64 = 4_096;

const HERE: &str = "10.87.0.1";
const THERE: &str = "10.87.0.2";

/// A flow over the wire.
fn flow(ends: &[Namespace; 2], scheme: &str) -> Flow {
    let [here, there] = ends;
    let listener =
        there.inside(|| TcpListener::bind(format!("{THERE}:0").parse::<SocketAddr>().unwrap()).unwrap());
    let address = listener.local_addr().unwrap();
    let sender = here.inside(|| connected(Some(scheme), address).unwrap());
    let (receiver, _) = listener.accept().unwrap();
    Flow::of(sender, receiver)
}

/// Waits until as many flows count.
fn counts(kernel: &Kernel, flows: Option<u64>) {
    wait_until(&format!("{flows:?} flows"), || kernel.active_flows().unwrap() == flows);
}

/// The window of the only BISCAY flow, in packets, as `ss` says.
fn window(here: &Namespace) -> u32 {
    let output = Command::new("ss").args(["-N", here.name(), "-tinH", "dst", THERE]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line =
        text.lines().find(|line| line.contains(" biscay ") || line.trim_start().starts_with("biscay "));
    let words = line.unwrap_or_else(|| panic!("no flow of BISCAY: {text}")).split_whitespace();
    let cwnd = words.filter_map(|word| word.strip_prefix("cwnd:")).next();
    cwnd.and_then(|cwnd| cwnd.parse().ok()).unwrap_or_else(|| panic!("no window: {text}"))
}

/// With 400 Mbit/s for itself, BISCAY's window is that of 8 ms and three packets, on a wire without length: 269 packets.
/// With a quarter of it, 69.
const MBPS: f64 = 400.0;

fn alone(window: u32) -> bool {
    (250..=290).contains(&window)
}

fn one_of_four(window: u32) -> bool {
    (60..=90).contains(&window)
}

fn steady() -> Part {
    let spec = SchemeSpec::parse("biscay:cwnd_bunching=off:hold=off:startup=first").unwrap();
    Part::Biscay(KernelTuning::new(&Tuning::read(spec.options()).unwrap()).unwrap())
}

#[test]
fn flows_of_other_schemes_and_of_udp_take_their_part_and_acks_alone_do_not() {
    let _turn = turn();
    let before = InKernel::settled();
    let Some(mut kernel) = load(&steady()) else { return };
    let Some(group) = Group::enter() else { return };
    let Some(ends) = wire(HERE, THERE) else { return };
    // Only what this program sends: others on this machine do as they like.
    kernel.count_flows(File::open(&group.path).unwrap().as_fd()).unwrap();
    let feeding = Feeding::start(&kernel, mbps(MBPS));
    counts(&kernel, None);
    let ours = flow(&ends, "biscay");
    ours.goes_on();
    counts(&kernel, Some(1));
    while !alone(window(&ends[0])) {
        ours.goes_on();
    }
    let within = ends[0].inside(|| Flow::start("reno").unwrap());
    within.goes_on();
    ours.goes_on();
    // A machine that stood still for a moment counts nothing for that moment.
    let seen = kernel.active_flows().unwrap();
    assert!(
        seen.is_none_or(|flows| flows == 1),
        "what stays on the machine does not share the radio: {seen:?}"
    );
    drop(within);
    let others = ["reno", "cubic"].map(|scheme| flow(&ends, scheme));
    counts(&kernel, Some(3));
    let is_over = AtomicBool::new(false);
    let socket = ends[0].inside(|| UdpSocket::bind((HERE, 0)).unwrap());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                socket.send_to(&[0; 100], (THERE, 4_000)).unwrap();
                // Nothing in it.
                socket.send_to(&[], (THERE, 4_001)).unwrap();
                std::thread::sleep(Duration::from_millis(10));
            }
        });
        counts(&kernel, Some(4));
        while !one_of_four(window(&ends[0])) {
            ours.goes_on();
        }
        is_over.store(true, Ordering::Relaxed);
    });
    counts(&kernel, Some(3));
    drop(others);
    counts(&kernel, Some(1));
    while !alone(window(&ends[0])) {
        ours.goes_on();
    }
    drop((ours, feeding, kernel));
    drop(group);
    before.comes_again();
}

#[test]
fn more_flows_than_the_map_holds_are_counted_up_to_a_bound_and_harm_nobody() {
    let _turn = turn();
    let before = InKernel::settled();
    let Some(mut kernel) = load(&steady()) else { return };
    let Some(group) = Group::enter() else { return };
    let Some(ends) = wire(HERE, THERE) else { return };
    kernel.count_flows(File::open(&group.path).unwrap().as_fd()).unwrap();
    let feeding = Feeding::start(&kernel, mbps(MBPS));
    let ours = flow(&ends, "biscay");
    let socket = ends[0].inside(|| UdpSocket::bind((HERE, 0)).unwrap());
    let mut most = 0;
    for port in 1_000..60_000 {
        // What the wire has no room for is lost; it has left the socket all the same.
        let _ = socket.send_to(&[0; 10], (THERE, port));
        most = most.max(kernel.active_flows().unwrap().unwrap_or(0));
    }
    // How many come within a tenth of a second is for the machine to say.
    assert!((2..=MOST).contains(&most), "{most}");
    ours.goes_on();
    counts(&kernel, Some(1));
    drop((ours, feeding, kernel));
    drop(group);
    before.comes_again();
}
