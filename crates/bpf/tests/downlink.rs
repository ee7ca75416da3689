//! Downloads in the kernel of this machine, from a sender without BISCAY: the window that the receiver advertises follows
//! the radio's grants. The tests are skipped if the kernel cannot load the programs.
#![cfg(feature = "load")]

use std::fs::File;
use std::net::TcpListener;
use std::os::fd::AsFd;
use std::process::Command;

mod machine;

use airpace_bpf::feed::now;
use airpace_bpf::kernel::{Kernel, LoadError, Pinned, RELAY, unload};
use airpace_bpf::twin::pbe_receiver::Cell;
use airpace_core::Rate;
use airpace_testing::skipped;
use machine::{
    Feeding, Flow, Group, InKernel, Namespace, connected, load, mbps, pbe, relay, run, turn, wait_until, wire,
};

const PHONE: &str = "10.89.0.1";
const SERVER: &str = "10.89.0.2";

/// Time that the window covers in addition to the round-trip time, in seconds: `cwnd_slack_ms`.
const SLACK: f64 = 0.027;

/// Payload fraction of a packet of 1500 bytes with time stamps.
const PAYLOAD: f64 = 1448.0 / 1500.0;

/// Loads the relay for connections of this process, and creates namespaces of a phone and a server with a link between
/// them.
fn prepared(options: &str) -> Option<(Kernel, Group, [Namespace; 2])> {
    let mut kernel = load(&relay(options))?;
    let group = Group::enter()?;
    let ends = wire(PHONE, SERVER)?;
    let folder = File::open(&group.path).unwrap();
    kernel.count_flows(folder.as_fd()).unwrap();
    kernel.bound_downloads(folder.as_fd()).unwrap();
    Some((kernel, group, ends))
}

/// Starts a download from the server to the phone.
fn download([phone, server]: &[Namespace; 2]) -> Flow {
    let listener = server.inside(|| TcpListener::bind((SERVER, 0)).unwrap());
    let address = listener.local_addr().unwrap();
    let receiver = phone.inside(|| connected(None, address).unwrap());
    let (sender, _) = listener.accept().unwrap();
    rustix::net::sockopt::set_tcp_congestion(&sender, "cubic").unwrap();
    Flow::of(sender, receiver)
}

/// Returns the values that `ss` shows after `word` for the server's senders.
fn shown(server: &Namespace, word: &str) -> Vec<f64> {
    let output = Command::new("ss").args(["-N", server.name(), "-tinOH"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let number = |line: &str| {
        let (_, rest) = line.split_once(&format!(" {word}:"))?;
        rest.split(['/', ' ']).next()?.parse().ok()
    };
    text.lines().filter(|line| line.contains(" cubic ")).filter_map(number).collect()
}

/// Whether the windows of the server's `flows` senders match this rate in Mbit/s. The round-trip time of this link is
/// less than two milliseconds.
fn follows(server: &Namespace, mbps: f64, flows: usize) -> bool {
    let bytes = |span: f64| (mbps * 125_000.0 * span + 3.0 * 1500.0) * PAYLOAD;
    // The unit of the header's window field is up to a kilobyte.
    let allowed = bytes(SLACK) * 0.99..=bytes(SLACK + 0.002) + 1_024.0;
    let windows = shown(server, "snd_wnd");
    windows.len() == flows && windows.iter().all(|window| allowed.contains(window))
}

/// Whether the device does not limit the windows of the server's senders.
fn is_open(server: &Namespace) -> bool {
    let windows = shown(server, "snd_wnd");
    !windows.is_empty() && windows.iter().all(|window| *window >= 62_000.0)
}

#[test]
fn the_advertised_window_follows_the_feed_and_opens_when_that_stops() {
    let _turn = turn();
    let before = InKernel::settled();
    let Some((kernel, group, ends)) = prepared(":startup=first:hold=off") else { return };
    let server = &ends[1];
    let flow = download(&ends);
    flow.goes_on();
    wait_until("a window without a feed", || is_open(server));
    for rate in [10.0, 5.0, 15.0] {
        let _feeding = Feeding::start(&kernel, mbps(rate));
        wait_until(&format!("the window of {rate} Mbit/s"), || follows(server, rate, 1));
        flow.goes_on();
    }
    // The feeder has stopped.
    wait_until("an open window", || is_open(server));
    flow.goes_on();
    let feeding = Feeding::start(&kernel, mbps(10.0));
    wait_until("the window of 10 Mbit/s again", || follows(server, 10.0, 1));
    // A second download uses half of the bandwidth.
    let other = download(&ends);
    wait_until("the windows of 5 Mbit/s", || follows(server, 5.0, 2));
    drop(other);
    wait_until("the window of one alone", || follows(server, 10.0, 1));
    assert!(kernel.totals().unwrap().flows >= 2, "{:?}", kernel.totals());
    drop(feeding);
    drop((flow, kernel, group));
    before.comes_again();
}

#[test]
fn without_the_program_no_bound_is_left_in_any_namespace() {
    let _turn = turn();
    let before = InKernel::settled();
    let Some((mut kernel, group, ends)) = prepared(":startup=first:hold=off") else { return };
    let server = &ends[1];
    let flow = download(&ends);
    let feeding = Feeding::start(&kernel, mbps(5.0));
    wait_until("the window of 5 Mbit/s", || follows(server, 5.0, 1));
    kernel.lift().unwrap();
    // The feeder still writes, but no program reads the feed.
    wait_until("an open window", || is_open(server));
    flow.goes_on();
    assert!(is_open(server));
    drop((feeding, kernel));
    flow.goes_on();
    drop((flow, group));
    before.comes_again();
}

#[test]
fn what_stays_in_the_kernel_takes_its_bounds_along_when_it_is_unloaded() {
    let _turn = turn();
    if Pinned::open(RELAY).is_ok_and(|pinned| pinned.is_some()) {
        return skipped("somebody uses the relay of this machine");
    }
    let before = InKernel::settled();
    let Some((mut kernel, group, ends)) = prepared(":startup=first:hold=off") else { return };
    let server = &ends[1];
    let feeding = Feeding::start(&kernel, mbps(5.0));
    match kernel.pin() {
        Err(error @ LoadError::NoPins) => return skipped(&error.to_string()),
        pinned => pinned.unwrap(),
    }
    drop(kernel);
    let flow = download(&ends);
    wait_until("the window of 5 Mbit/s", || follows(server, 5.0, 1));
    let pinned = Pinned::open(RELAY).unwrap().expect("it was pinned");
    wait_until("one flow that counts", || pinned.active_flows().unwrap() == Some(1));
    drop(pinned);
    assert!(unload(RELAY).unwrap());
    assert!(!unload(RELAY).unwrap(), "it is gone");
    wait_until("an open window", || is_open(server));
    flow.goes_on();
    drop((flow, feeding, group));
    before.comes_again();
}

/// Makes the namespace drop received packets with PBE-CC's option after the handshake. Returns whether the kernel
/// supports this rule.
fn drop_options(namespace: &Namespace) -> bool {
    let rules = "table ip strict {\nchain refuse {\ntype filter hook input priority 0\n\
                 tcp flags & syn == 0 tcp option 254 exists drop\n}\n}";
    let dropped = run("ip", &["netns", "exec", namespace.name(), "nft", rules]);
    dropped.map_err(|said| skipped(&format!("no packet filter: {said}"))).is_ok()
}

#[test]
fn pbe_cc_beside_it_leaves_it_the_downloads_of_others_in_whatever_order_they_come() {
    for is_first in [true, false] {
        let _turn = turn();
        let Some(mut exchange) = load(&pbe()) else { return };
        let Some(ends) = wire(PHONE, SERVER) else { return };
        let [phone, server] = &ends;
        if !drop_options(server) {
            return;
        }
        // The server's process is in no control group of the scheme, so its connections do not support PBE-CC.
        let listener = server.inside(|| TcpListener::bind((SERVER, 0)).unwrap());
        let Some(group) = Group::enter() else { return };
        let folder = File::open(&group.path).unwrap();
        if is_first {
            exchange.exchange(folder.as_fd()).unwrap();
        }
        let mut kernel = load(&relay(":startup=first:hold=off")).unwrap();
        kernel.count_flows(folder.as_fd()).unwrap();
        kernel.bound_downloads(folder.as_fd()).unwrap();
        if !is_first {
            exchange.exchange(folder.as_fd()).unwrap();
        }
        exchange.cell().unwrap().tell(&Cell::constant(Rate::from_mbps(50.0), now()));
        let address = listener.local_addr().unwrap();
        let receiver = phone.inside(|| connected(None, address).unwrap());
        let (sender, _) = listener.accept().unwrap();
        rustix::net::sockopt::set_tcp_congestion(&sender, "cubic").unwrap();
        let flow = Flow::of(sender, receiver);
        for rate in [10.0, 5.0] {
            let _feeding = Feeding::start(&kernel, mbps(rate));
            wait_until(&format!("the window of {rate} Mbit/s"), || follows(server, rate, 1));
            flow.goes_on();
        }
    }
}

#[test]
fn a_queue_of_cubic_s_becomes_short() {
    let _turn = turn();
    let before = InKernel::settled();
    let Some((kernel, group, ends)) = prepared("") else { return };
    let server = &ends[1];
    let queue = ["-n", server.name(), "qdisc", "add", "dev", "wire", "root", "tbf", "rate", "20mbit"];
    if let Err(said) = run("tc", &[&queue[..], &["burst", "10kb", "limit", "600kb"]].concat()) {
        return skipped(&format!("no such queue here: {said}"));
    }
    let rtt_ms = || shown(server, "rtt").first().copied().unwrap_or_default();
    let flow = download(&ends);
    wait_until("CUBIC's queue", || rtt_ms() > 50.0);
    let feeding = Feeding::start(&kernel, mbps(20.0));
    wait_until("a short queue", || rtt_ms() < 35.0);
    flow.goes_on();
    flow.goes_on();
    // If a busy machine delays the feeder by 100 ms, the receiver does not limit the window for a moment.
    wait_until("a queue that is short still", || rtt_ms() < 35.0);
    drop(feeding);
    wait_until("CUBIC's queue again", || rtt_ms() > 50.0);
    drop((flow, kernel, group));
    before.comes_again();
}
