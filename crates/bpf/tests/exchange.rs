//! PBE-CC in the kernel of this machine: a receiver's measurements reach the sender with the ACKs, and control the
//! sender's rate. The tests are skipped if the kernel cannot load the programs.
#![cfg(feature = "load")]

mod machine;

use std::fs::File;
use std::net::TcpListener;
use std::os::fd::AsFd;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use airpace_bpf::feed::{CellFeed, now};
use airpace_bpf::kernel::Kernel;
use airpace_bpf::twin::pbe_receiver::Cell;
use airpace_core::Rate;
use airpace_testing::skipped;
use machine::{Flow, Group, Namespace, connected, feed_until, ip, loaded, pbe, wait_until, wire};

/// Payload fraction of a packet of 1500 bytes with headers of IPv4, TCP, time stamps, and PBE-CC's option.
const PAYLOAD: f64 = (1500.0 - 20.0 - 20.0 - 12.0 - 8.0) / 1500.0;

/// The state of a cell with this capacity (Mbit/s) at the current time.
fn told(capacity: f64) -> Cell {
    Cell::constant(Rate::from_mbps(capacity), now())
}

/// Returns the pacing rate of a namespace's sender in Mbit/s; `None` if `ss` shows no pacing rate.
fn pacing_mbps(namespace: &Namespace) -> Option<f64> {
    let output =
        Command::new("ss").args(["-N", namespace.name(), "-tinH"]).output().expect("iproute2 has ss");
    let text = String::from_utf8(output.stdout).unwrap();
    let shown = text.lines().find(|line| line.split_whitespace().next() == Some("pbe"))?;
    let rate = shown.split_once("pacing_rate ")?.1.split_once("bps")?.0;
    let rate = rate.parse::<f64>().unwrap_or_else(|_| panic!("no number of bit/s: {rate}"));
    Some(rate / 1e6)
}

/// Writes records of the same capacity (Mbit/s) until the condition holds.
fn tell_until(feed: &mut CellFeed, capacity: f64, is_enough: impl Fn() -> bool) {
    let mut asked = 0_u32;
    wait_until("what the feed brings", || {
        feed.tell(&told(capacity));
        // Each check of the condition starts a process, so checks are less frequent than writes.
        asked += 1;
        asked.is_multiple_of(20) && is_enough()
    });
}

/// Loads the scheme, and creates a control group whose sockets exchange the scheme's option, and a network namespace.
fn prepared(what: &str) -> Option<(Kernel, impl Sized, Group, Namespace)> {
    let (mut kernel, turn) = loaded(&pbe())?;
    let namespace = Namespace::new(what)?;
    let group = Group::enter()?;
    kernel.exchange(File::open(&group.path).unwrap().as_fd()).unwrap();
    Some((kernel, turn, group, namespace))
}

fn flow_in(namespace: &Namespace) -> Flow {
    namespace.inside(|| Flow::between(Some("pbe"), "127.0.0.1:0".parse().unwrap()).unwrap())
}

#[test]
fn the_sender_paces_at_what_its_receiver_measures_and_without_it_as_bbr() {
    let Some((kernel, _turn, _group, namespace)) = prepared("exchange") else { return };
    let mut feed = kernel.cell().unwrap();
    feed.tell(&told(20.0));
    let flow = flow_in(&namespace);
    for capacity in [20.0, 60.0, 10.0] {
        let expected = capacity * PAYLOAD;
        let follows = || pacing_mbps(&namespace).is_some_and(|mbps| (mbps / expected - 1.0).abs() < 0.005);
        tell_until(&mut feed, capacity, follows);
    }
    let before = kernel.totals().unwrap();
    assert_eq!((before.flows, before.confirmed), (1, 1), "{before:?}");
    // The feeder has stopped: its last record soon becomes too old, and the receiver notifies the sender.
    feed_until(&kernel, None, |totals| totals.fallbacks > 0);
    flow.goes_on();
    let returns = kernel.totals().unwrap().returns;
    tell_until(&mut feed, 40.0, || kernel.totals().unwrap().returns > returns);
    flow.goes_on();
}

#[test]
fn a_peer_that_knows_nothing_of_it_gets_bbr() {
    let Some((mut kernel, _turn)) = loaded(&pbe()) else { return };
    let Some(namespace) = Namespace::new("stranger") else { return };
    // A socket belongs to the group in which its process was when it created the socket.
    let listener = namespace.inside(|| TcpListener::bind("127.0.0.1:0").unwrap());
    let Some(group) = Group::enter() else { return };
    kernel.exchange(File::open(&group.path).unwrap().as_fd()).unwrap();
    kernel.cell().unwrap().tell(&told(1.0));
    let address = listener.local_addr().unwrap();
    let sender = namespace.inside(|| connected(Some("pbe"), address).unwrap());
    let (receiver, _) = listener.accept().unwrap();
    let flow = Flow::of(sender, receiver);
    flow.goes_on();
    flow.goes_on();
    let totals = kernel.totals().unwrap();
    assert_eq!((totals.flows, totals.confirmed, totals.returns), (1, 0, 0), "{totals:?}");
    assert!(pacing_mbps(&namespace).is_some_and(|mbps| mbps > 2.0), "not what nobody confirmed");
}

/// Makes the namespace remove PBE-CC's option from received packets that match `which`. Returns whether the kernel
/// supports this rule.
fn strip(namespace: &Namespace, which: &str) -> bool {
    let rule = format!("{which} reset tcp option 254");
    let rules =
        ["table ip middlebox {", "chain strip {", "type filter hook input priority 0", &rule, "}", "}"];
    let rules = rules.join("\n");
    let name = namespace.name();
    let output = Command::new("ip").args(["netns", "exec", name, "nft", &rules]).output().unwrap();
    if !output.status.success() {
        skipped(&format!("no packet filter: {}", String::from_utf8_lossy(&output.stderr).trim()));
    }
    output.status.success()
}

#[test]
fn a_path_that_takes_the_option_away_has_bbr() {
    for (which, confirmed) in [("tcp flags & syn == syn", 0), ("tcp flags & syn == 0", 1)] {
        let Some((kernel, _turn, _group, namespace)) = prepared("middlebox") else { return };
        if !strip(&namespace, which) {
            return;
        }
        let mut feed = kernel.cell().unwrap();
        feed.tell(&told(1.0));
        let flow = flow_in(&namespace);
        tell_until(&mut feed, 1.0, || pacing_mbps(&namespace).is_some_and(|mbps| mbps > 20.0));
        flow.goes_on();
        let totals = kernel.totals().unwrap();
        assert_eq!((totals.flows, totals.confirmed), (1, confirmed), "{which}: {totals:?}");
        assert_eq!((totals.fallbacks, totals.returns), (confirmed, 0), "{which}: {totals:?}");
    }
}

/// A thread that reports an idle cell with a capacity of this many Mbit/s, until this value is dropped.
struct Telling {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Telling {
    fn start(kernel: &Kernel, mbps: f64) -> Telling {
        let (stop, mut feed) = (Arc::new(AtomicBool::new(false)), kernel.cell().unwrap());
        let is_over = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            while !is_over.load(Ordering::Relaxed) {
                feed.tell(&Cell::idle(Rate::from_mbps(mbps), now()));
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        Telling { stop, thread: Some(thread) }
    }
}

impl Drop for Telling {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().into_iter().for_each(|thread| thread.join().unwrap());
    }
}

/// Creates namespaces of a phone and a server with a link between them, and opens flows from the server to the phone.
fn downloads(flows: usize) -> Option<(Kernel, impl Sized, [Namespace; 2], Vec<Flow>)> {
    let (mut kernel, turn) = loaded(&pbe())?;
    let [phone, server] = wire("10.17.1.1", "10.17.1.2")?;
    let group = Group::enter()?;
    kernel.exchange(File::open(&group.path).unwrap().as_fd()).unwrap();
    kernel.cell().unwrap().tell(&Cell::idle(Rate::from_mbps(20.0), now()));
    let listener = phone.inside(|| TcpListener::bind("10.17.1.1:0").unwrap());
    let address = listener.local_addr().unwrap();
    let flow = |_| {
        let sender = server.inside(|| connected(Some("pbe"), address).unwrap());
        Flow::greedy(sender, listener.accept().unwrap().0)
    };
    let flows = (0..flows).map(flow).collect();
    Some((kernel, (turn, group), [phone, server], flows))
}

#[test]
fn a_bottleneck_elsewhere_is_told_and_left_when_it_is_gone() {
    let Some((kernel, _turn, [phone, server], flows)) = downloads(1) else { return };
    let telling = Telling::start(&kernel, 60.0);
    let paces_at =
        |mbps: f64| pacing_mbps(&server).is_some_and(|seen| (seen / (mbps * PAYLOAD) - 1.0).abs() < 0.02);
    wait_until("the rate that the cell could give", || paces_at(60.0));
    assert_eq!(kernel.totals().unwrap().elsewhere, 0);
    let name = server.name();
    // On this link, the window is the data that the cell's capacity transfers in 4 ms: about 30 kB. At the lower rate
    // of the link, 30 kB wait for 60 ms.
    ip(&[
        "netns", "exec", name, "tc", "qdisc", "add", "dev", "wire", "root", "tbf", "rate", "4mbit", "burst",
        "3000", "latency", "400ms",
    ])
    .unwrap();
    wait_until("a bottleneck elsewhere", || kernel.totals().unwrap().elsewhere > 0);
    // BBR's rate varies around the path's capacity: it is 1.25 times the capacity in a probe, and higher while BBR's
    // rate decreases to the capacity.
    wait_until("its rate", || pacing_mbps(&server).is_some_and(|seen| seen < 6.0));
    flows[0].goes_on();
    ip(&["netns", "exec", name, "tc", "qdisc", "del", "dev", "wire", "root"]).unwrap();
    wait_until("the cell's rate again", || paces_at(60.0));
    let totals = kernel.totals().unwrap();
    assert_eq!((totals.fallbacks, totals.confirmed), (0, 1), "{totals:?}");
    drop((telling, phone));
}

#[test]
fn downloads_share_what_the_cell_could_give() {
    let Some((kernel, _turn, [phone, server], mut flows)) = downloads(3) else { return };
    let telling = Telling::start(&kernel, 60.0);
    for sharing in [3.0, 2.0, 1.0] {
        wait_until("a share", || {
            pacing_mbps(&server).is_some_and(|seen| (seen / (60.0 / sharing * PAYLOAD) - 1.0).abs() < 0.02)
        });
        flows.iter().for_each(Flow::goes_on);
        flows.pop();
    }
    drop((telling, phone));
}
