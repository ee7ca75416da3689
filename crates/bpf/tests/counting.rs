//! BISCAY in the kernel shares the bandwidth with all flows of the host, not only with flows that use BISCAY.
#![cfg(feature = "load")]

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

mod machine;

use airpace_bpf::kernel::{Kernel, KernelScheme};
use airpace_bpf::twin::KernelTuning;
use airpace_cc::SchemeSpec;
use airpace_cc::biscay::Tuning;
use machine::{Feeding, Flow, Group, InKernel, Namespace, connected, load, mbps, turn, wait_until, wire};

/// Maximum number of counted flows: `AP_MAX_FLOWS`.
const MAX_FLOWS: u64 = 4_096;

const HERE: &str = "10.87.0.1";
const THERE: &str = "10.87.0.2";

/// Opens a flow over the link.
fn flow(ends: &[Namespace; 2], scheme: &str) -> Flow {
    let [here, there] = ends;
    let listener =
        there.inside(|| TcpListener::bind(format!("{THERE}:0").parse::<SocketAddr>().unwrap()).unwrap());
    let address = listener.local_addr().unwrap();
    let sender = here.inside(|| connected(Some(scheme), address).unwrap());
    let (receiver, _) = listener.accept().unwrap();
    Flow::of(sender, receiver)
}

/// Waits until the kernel counts this number of flows.
fn counts(kernel: &Kernel, flows: Option<u64>) {
    wait_until(&format!("{flows:?} flows"), || kernel.active_flows().unwrap() == flows);
}

/// Returns the window of the only BISCAY flow, in packets, from the output of `ss`.
fn window(here: &Namespace) -> u32 {
    let output = Command::new("ss").args(["-N", here.name(), "-tinH", "dst", THERE]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line =
        text.lines().find(|line| line.contains(" biscay ") || line.trim_start().starts_with("biscay "));
    let words = line.unwrap_or_else(|| panic!("no flow of BISCAY: {text}")).split_whitespace();
    let cwnd = words.filter_map(|word| word.strip_prefix("cwnd:")).next();
    cwnd.and_then(|cwnd| cwnd.parse().ok()).unwrap_or_else(|| panic!("no window: {text}"))
}

/// The device's bandwidth in Mbit/s. On a link without delay, BISCAY's window is the data of 8 ms and three packets:
/// 269 packets for one flow, and 69 packets at a quarter of the bandwidth.
const MBPS: f64 = 400.0;

fn alone(window: u32) -> bool {
    (250..=290).contains(&window)
}

fn one_of_four(window: u32) -> bool {
    (60..=90).contains(&window)
}

fn steady() -> KernelScheme {
    sharing("equal")
}

fn sharing(policy: &str) -> KernelScheme {
    let options = format!("biscay:cwnd_bunching=off:hold=off:startup=first:split={policy}");
    let spec = SchemeSpec::parse(&options).unwrap();
    KernelScheme::Biscay(KernelTuning::new(&Tuning::read(spec.options()).unwrap()).unwrap())
}

#[test]
fn flows_of_other_schemes_and_of_udp_take_their_part_and_acks_alone_do_not() {
    let _turn = turn();
    let before = InKernel::settled();
    let Some(mut kernel) = load(&steady()) else { return };
    let Some(group) = Group::enter() else { return };
    let Some(ends) = wire(HERE, THERE) else { return };
    // Counts only this program's flows, because other programs on this machine may send at any time.
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
    // A machine that stalls for a moment counts no flows in that moment.
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
                // Sends a datagram without payload.
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

/// Returns the windows of BISCAY's flows by their ports, in packets, from the output of `ss`.
fn windows(here: &Namespace) -> BTreeMap<u16, u32> {
    let output = Command::new("ss").args(["-N", here.name(), "-tinOH", "dst", THERE]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let window = |line: &str| {
        let port = line.split_whitespace().nth(3)?.rsplit_once(':')?.1.parse().ok()?;
        let cwnd = line.split_whitespace().find_map(|word| word.strip_prefix("cwnd:"))?;
        Some((port, cwnd.parse().ok()?))
    };
    text.lines().filter(|line| line.contains(" biscay ")).filter_map(window).collect()
}

/// Waits until each flow of these ports has a window from `least` to `most` packets.
fn windows_come(here: &Namespace, ports: &[u16], least: u32, most: u32) {
    wait_until(&format!("windows from {least} to {most}"), || {
        let windows = windows(here);
        ports.iter().all(|port| windows.get(port).is_some_and(|window| (least..=most).contains(window)))
    });
}

/// Environment variable: the address to which the other program sends.
const TO: &str = "AIRPACE_TEST_SENDS_TO";

/// A second program besides the test: it has one flow that uses BISCAY, until the test ends the program.
#[test]
#[ignore = "it is part of another test"]
fn another_program() {
    let Ok(to) = std::env::var(TO) else { return };
    let mut sender = connected(Some("biscay"), to.parse().unwrap()).unwrap();
    println!("port {}", sender.local_addr().unwrap().port());
    while sender.write_all(&[0; 20_000]).is_ok() {
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_program_with_three_flows_gets_no_more_than_one_with_one_flow() {
    let _turn = turn();
    let before = InKernel::settled();
    let Some(mut kernel) = load(&sharing("app")) else { return };
    let Some(group) = Group::enter() else { return };
    let Some(ends) = wire(HERE, THERE) else { return };
    kernel.count_flows(File::open(&group.path).unwrap().as_fd()).unwrap();
    let feeding = Feeding::start(&kernel, mbps(MBPS));
    let [here, there] = &ends;
    let listener = there.inside(|| TcpListener::bind((THERE, 0)).unwrap());
    let address = listener.local_addr().unwrap();
    let accepted = |sender: TcpStream| Flow::of(sender, listener.accept().unwrap().0);
    let mut ports = vec![];
    let ours: Vec<Flow> = (0..3)
        .map(|_| {
            let sender = here.inside(|| connected(Some("biscay"), address).unwrap());
            ports.push(sender.local_addr().unwrap().port());
            accepted(sender)
        })
        .collect();
    counts(&kernel, Some(3));
    // Each window is a third of 267 packets, plus three packets.
    windows_come(here, &ports, 80, 105);
    let mut other = Command::new("ip")
        .args(["netns", "exec", here.name()])
        .arg(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "another_program", "--nocapture"])
        .env(TO, address.to_string())
        .spawn()
        .unwrap();
    let (mut receiver, from) = listener.accept().unwrap();
    let drain = std::thread::spawn(move || {
        let mut bytes = [0; 65_536];
        while receiver.read(&mut bytes).is_ok_and(|read| read > 0) {}
    });
    // Each program has half of the bandwidth.
    windows_come(here, &[from.port()], 125, 150);
    windows_come(here, &ports, 40, 56);
    counts(&kernel, Some(4));
    other.kill().unwrap();
    other.wait().unwrap();
    drain.join().unwrap();
    windows_come(here, &ports, 80, 105);
    // The share of the closed flow is divided between the two other flows of the same program.
    let mut ours = ours;
    ours.pop();
    ports.pop();
    windows_come(here, &ports, 125, 150);
    drop((ours, feeding, kernel));
    drop(group);
    before.comes_again();
}

#[test]
fn a_flow_that_uses_little_leaves_most_of_its_part_to_one_that_uses_much() {
    let _turn = turn();
    let before = InKernel::settled();
    let Some(mut kernel) = load(&sharing("proportional")) else { return };
    let Some(group) = Group::enter() else { return };
    let Some(ends) = wire(HERE, THERE) else { return };
    kernel.count_flows(File::open(&group.path).unwrap().as_fd()).unwrap();
    let feeding = Feeding::start(&kernel, mbps(MBPS));
    let [here, there] = &ends;
    let listener = there.inside(|| TcpListener::bind((THERE, 0)).unwrap());
    let [(much, much_port), (little, little_port)] = [20_000, 2_000].map(|bytes| {
        let sender = here.inside(|| connected(Some("biscay"), listener.local_addr().unwrap()).unwrap());
        let port = sender.local_addr().unwrap().port();
        (Flow::paced(sender, listener.accept().unwrap().0, bytes), port)
    });
    // The two flows used 10/11 and 1/11 of the bandwidth: their windows are 3/4 · 10/11 + 1/8 of 267 packets, and 3/4 ·
    // 1/11 + 1/8 of 267 packets.
    windows_come(here, &[much_port], 200, 235);
    windows_come(here, &[little_port], 42, 66);
    counts(&kernel, Some(2));
    drop(much);
    windows_come(here, &[little_port], 250, 290);
    drop((little, feeding, kernel));
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
        // The link drops packets that do not fit in its queue; the kernel counts them anyway, because they have left
        // the socket.
        let _ = socket.send_to(&[0; 10], (THERE, port));
        most = most.max(kernel.active_flows().unwrap().unwrap_or(0));
    }
    // The number of packets that are sent within 100 ms depends on the machine.
    assert!((2..=MAX_FLOWS).contains(&most), "{most}");
    ours.goes_on();
    counts(&kernel, Some(1));
    drop((ours, feeding, kernel));
    drop(group);
    before.comes_again();
}
