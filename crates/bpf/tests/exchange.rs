//! PBE-CC in the kernel of this machine: what a receiver measures comes to its sender with the ACKs, and steers it. Skipped
//! where the kernel takes no programs.
#![cfg(feature = "load")]

mod machine;

use std::fs::File;
use std::net::TcpListener;
use std::os::fd::AsFd;
use std::process::Command;

use airpace_bpf::feed::Feedbacks;
use airpace_bpf::kernel::Kernel;
use airpace_cc::pbe::feedback::Feedback;
use airpace_core::Rate;
use airpace_testing::skipped;
use machine::{Flow, Group, Namespace, connected, feed_until, loaded, pbe, wait_until};

/// The headers of a packet of 1500 bytes: IPv4, TCP, time stamps.
const PAYLOAD: f64 = (1500.0 - 20.0 - 20.0 - 12.0) / 1500.0;

/// What a phone tells that could get `capacity`.
fn told(capacity: f64) -> Feedback {
    let rate = Some(Rate::from_mbps(capacity));
    Feedback { fresh: true, carriers: 1, capacity: rate, fair_share: rate, ..Feedback::default() }
}

/// The pacing rate of the sender of `scheme` in a namespace, in Mbit/s; `None` if `ss` shows none.
fn pacing_mbps(namespace: &Namespace) -> Option<f64> {
    let output =
        Command::new("ss").args(["-N", namespace.name(), "-tinH"]).output().expect("iproute2 has ss");
    let text = String::from_utf8(output.stdout).unwrap();
    let shown = text.lines().find(|line| line.split_whitespace().next() == Some("pbe"))?;
    let rate = shown.split_once("pacing_rate ")?.1.split_once("bps")?.0;
    let rate = rate.parse::<f64>().unwrap_or_else(|_| panic!("no number of bit/s: {rate}"));
    Some(rate / 1e6)
}

/// Tells the same until something is as wanted.
fn tell_until(feed: &mut Feedbacks, feedback: &Feedback, is_enough: impl Fn() -> bool) {
    let mut asked = 0_u32;
    wait_until("what the feed brings", || {
        feed.tell(feedback);
        // To ask starts a program each time.
        asked += 1;
        asked.is_multiple_of(20) && is_enough()
    });
}

/// The scheme, a group in which its option is exchanged, and a network.
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
    let mut feed = kernel.feedbacks().unwrap();
    feed.tell(&told(20.0));
    let flow = flow_in(&namespace);
    for capacity in [20.0, 60.0, 10.0] {
        let expected = capacity * PAYLOAD;
        let follows = || pacing_mbps(&namespace).is_some_and(|mbps| (mbps / expected - 1.0).abs() < 0.005);
        tell_until(&mut feed, &told(capacity), follows);
    }
    let before = kernel.totals().unwrap();
    assert_eq!((before.flows, before.confirmed), (1, 1), "{before:?}");
    // The feeder is gone: its last news is soon too old, and the sender hears that.
    feed_until(&kernel, None, |totals| totals.fallbacks > 0);
    flow.goes_on();
    let returns = kernel.totals().unwrap().returns;
    tell_until(&mut feed, &told(40.0), || kernel.totals().unwrap().returns > returns);
    flow.goes_on();
}

#[test]
fn a_peer_that_knows_nothing_of_it_gets_bbr() {
    let Some((mut kernel, _turn)) = loaded(&pbe()) else { return };
    let Some(namespace) = Namespace::new("stranger") else { return };
    // A socket belongs to the group in which its program was when it made it.
    let listener = namespace.inside(|| TcpListener::bind("127.0.0.1:0").unwrap());
    let Some(group) = Group::enter() else { return };
    kernel.exchange(File::open(&group.path).unwrap().as_fd()).unwrap();
    kernel.feedbacks().unwrap().tell(&told(1.0));
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

/// Takes our option out of the packets that come in, where `which` says so. Returns whether the kernel can.
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
        let mut feed = kernel.feedbacks().unwrap();
        feed.tell(&told(1.0));
        let flow = flow_in(&namespace);
        tell_until(&mut feed, &told(1.0), || pacing_mbps(&namespace).is_some_and(|mbps| mbps > 20.0));
        flow.goes_on();
        let totals = kernel.totals().unwrap();
        assert_eq!((totals.flows, totals.confirmed), (1, confirmed), "{which}: {totals:?}");
        assert_eq!((totals.fallbacks, totals.returns), (confirmed, 0), "{which}: {totals:?}");
    }
}
