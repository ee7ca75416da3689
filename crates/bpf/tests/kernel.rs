//! The programs in the kernel of this machine. The tests are skipped if the kernel cannot load them.
#![cfg(feature = "load")]

use std::fs;
use std::io::ErrorKind;
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;

mod machine;

use airpace_bpf::choose::Chooser;
use airpace_bpf::feed::GrantRecord;
use airpace_bpf::kernel::{Kernel, KernelScheme, LoadError};
use airpace_core::Rate;
use machine::{Flow, Group, InKernel, biscay, feed_until, load, loaded, mbps, morc, pbe, relay, turn};
use rustix::net::sockopt::tcp_congestion;

/// Maximum number of instructions that the verifier may process in a program: a fifth of the kernel's limit, because
/// other kernel versions count instructions differently.
const MAX_VERIFIED: u64 = 200_000;

#[test]
fn the_verifier_s_work_is_bounded() {
    for part in [biscay(), relay(""), relay(":split=app"), morc(), pbe()] {
        let Some((kernel, _turn)) = loaded(&part) else { return };
        let costs = kernel.costs().unwrap();
        let is_relay = matches!(part, KernelScheme::Relay(_));
        assert!(
            costs.len() >= if is_relay { 3 } else { 7 } && costs.iter().all(|cost| cost.verified > 0),
            "{costs:?}"
        );
        for cost in &costs {
            println!("{}: {} instructions", cost.name, cost.verified);
            assert!(cost.verified <= MAX_VERIFIED, "{cost:?}");
        }
        let again = Kernel::load(&part);
        assert!(is_relay || matches!(again, Err(LoadError::Exists { .. })), "a name is taken once");
    }
}

#[test]
fn morc_moves_data_and_needs_no_feed() {
    let Some((kernel, _turn)) = loaded(&morc()) else { return };
    assert!(kernel.feed().is_err());
    let flow = Flow::start("morc").unwrap();
    flow.goes_on();
    feed_until(&kernel, None, |totals| totals.acks > 1_000);
    flow.goes_on();
    let totals = kernel.totals().unwrap();
    assert!(totals.flows == 1 && totals.sends > 0 && totals.fallbacks == 0, "{totals:?}");
}

#[test]
fn a_feeder_that_dies_leaves_the_flow_to_bbr_and_one_that_returns_takes_it_back() {
    let Some((kernel, _turn)) = loaded(&biscay()) else { return };
    let mut feed = kernel.feed().unwrap();
    feed.tell(&mbps(2_000.0));
    let flow = Flow::start("biscay").unwrap();
    feed_until(&kernel, Some((&mut feed, mbps(2_000.0))), |totals| totals.acks > 1_000);
    // The kernel also treats the feeder as silent if a busy machine delays it by 100 ms.
    let before = kernel.totals().unwrap();
    assert_eq!(before.flows, 1, "{before:?}");
    feed_until(&kernel, None, |totals| totals.silences > before.silences);
    flow.goes_on();
    let silent = kernel.totals().unwrap();
    feed_until(&kernel, Some((&mut feed, mbps(1.0))), |totals| totals.returns > silent.returns);
    feed_until(&kernel, Some((&mut feed, mbps(2_000.0))), |totals| totals.acks > before.acks + 1_000);
    flow.goes_on();
}

#[test]
fn it_may_be_removed_and_loaded_anew_while_flows_run() {
    let _turn = turn();
    let before = InKernel::settled();
    let mut flows = vec![];
    for _ in 0..5 {
        let Some(kernel) = load(&biscay()) else { return };
        kernel.feed().unwrap().tell(&mbps(100.0));
        flows.push(Flow::start("biscay").unwrap());
        flows.iter().for_each(Flow::goes_on);
        drop(kernel);
        let refused = Flow::start("biscay").err().map(|error| error.kind());
        assert_eq!(refused, Some(ErrorKind::NotFound), "what is removed cannot be chosen");
        flows.iter().for_each(Flow::goes_on);
    }
    flows.clear();
    before.comes_again();
}

#[test]
fn the_feed_reads_as_it_was_told() {
    let Some((kernel, _turn)) = loaded(&biscay()) else { return };
    let mut feed = kernel.feed().unwrap();
    assert_eq!(feed.read(), None, "nothing was told yet");
    let unknown = GrantRecord { bandwidth: None, burst: Rate::from_mbps(7.0), share: Some((1, 3)) };
    for told in [mbps(20.0), unknown, mbps(0.0), mbps(5.0)] {
        feed.tell(&told);
        assert_eq!(kernel.feed().unwrap().read().map(|(told, _)| told), Some(told));
    }
}

#[test]
fn a_program_in_a_group_uses_a_scheme_that_it_knows_nothing_of() {
    let Some((_kernel, _turn)) = loaded(&morc()) else { return };
    let Some(group) = Group::enter() else { return };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let both = || {
        let opened = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (accepted, _) = listener.accept().unwrap();
        [tcp_congestion(&opened).unwrap(), tcp_congestion(&accepted).unwrap()]
    };
    let usual = both();
    let chooser = Chooser::attach(fs::File::open(&group.path).unwrap().as_fd(), "morc").unwrap();
    assert_eq!(both(), ["morc", "morc"]);
    drop(chooser);
    assert_eq!(both(), usual, "the choice ends with the program");
}
