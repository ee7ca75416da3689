//! Faults of PBE-CC's programs in the kernel while flows use them, at both endpoints. Flows continue, and the kernel
//! afterwards holds the same objects as before.
#![cfg(feature = "load")]

mod machine;

use std::fs::File;
use std::net::TcpListener;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use airpace_bpf::feed::now;
use airpace_bpf::kernel::Kernel;
use airpace_bpf::room::device_number;
use airpace_bpf::twin::pbe_receiver::Cell;
use airpace_core::Rate;
use machine::{
    Flow, Group, InKernel, Namespace, all_move, feed_until, load, may_open, pair, pbe, turn, wire,
};
use rustix::net::sockopt::tcp_congestion;

const FLOWS: usize = 2_000;

/// The scheme with its programs in a control group, and a thread that writes the feed.
struct Phone {
    stop: Arc<AtomicBool>,
    feeder: Option<JoinHandle<()>>,
    kernel: Kernel,
}

impl Phone {
    fn start(group: &Group) -> Option<Phone> {
        let mut kernel = load(&pbe())?;
        kernel.exchange(File::open(&group.path).unwrap().as_fd()).unwrap();
        let (stop, mut feed) = (Arc::new(AtomicBool::new(false)), kernel.cell().unwrap());
        let is_over = Arc::clone(&stop);
        let feeder = std::thread::spawn(move || {
            while !is_over.load(Ordering::Relaxed) {
                feed.tell(&Cell::idle(Rate::from_mbps(1_000.0), now()));
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        Some(Phone { stop, feeder: Some(feeder), kernel })
    }

    fn stop_feeding(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.feeder.take().into_iter().for_each(|feeder| feeder.join().unwrap());
    }
}

impl Drop for Phone {
    fn drop(&mut self) {
        self.stop_feeding();
    }
}

#[test]
fn two_thousand_downloads_at_once_move_data() {
    if !may_open(2 * FLOWS as u64 + 200) {
        return;
    }
    let _turn = turn();
    let Some(group) = Group::enter() else { return };
    let before = InKernel::settled();
    let Some([here, there]) = wire("10.17.2.1", "10.17.2.2") else { return };
    let Some(phone) = Phone::start(&group) else { return };
    let room = phone.kernel.room().unwrap();
    let attached = here.inside(|| room.attach(device_number("wire").unwrap())).unwrap();
    let listener = here.inside(|| TcpListener::bind("10.17.2.1:0").unwrap());
    there.inside(|| {
        let mut pairs: Vec<_> = (0..FLOWS).map(|_| pair(&listener, Some("pbe"))).collect();
        all_move(&mut pairs);
        let totals = phone.kernel.totals().unwrap();
        assert_eq!((totals.flows, totals.confirmed), (FLOWS as u64, FLOWS as u64), "{totals:?}");
        assert!(phone.kernel.active_flows().unwrap().is_some_and(|flows| flows > 10), "they are counted");
        // Half of the flows are closed. The other flows use the bandwidth of the closed flows.
        pairs.truncate(FLOWS / 2);
        all_move(&mut pairs);
    });
    here.inside(move || drop(attached));
    drop((room, phone));
    before.comes_again();
}

#[test]
fn ten_times_loaded_and_unloaded_under_a_transfer() {
    let _turn = turn();
    let Some(group) = Group::enter() else { return };
    let before = InKernel::settled();
    let Some([here, there]) = wire("10.17.3.1", "10.17.3.2") else { return };
    let flow = || {
        // A listener created before the programs were attached would not support the option.
        let listener = here.inside(|| TcpListener::bind("10.17.3.1:0").unwrap());
        let (sender, receiver) = there.inside(|| pair(&listener, Some("pbe")));
        Flow::of(sender, receiver)
    };
    let mut flows: Vec<Flow> = vec![];
    for _ in 0..10 {
        let Some(phone) = Phone::start(&group) else { return };
        let room = phone.kernel.room().unwrap();
        let number = here.inside(|| device_number("wire")).unwrap();
        let attached = here.inside(|| room.attach(number)).unwrap();
        flows.push(flow());
        flows.iter().for_each(Flow::goes_on);
        assert_eq!(phone.kernel.totals().unwrap().confirmed, 1);
        // The scheme and the device program are dropped in alternating order.
        if flows.len().is_multiple_of(2) {
            drop(phone);
            here.inside(move || drop(attached));
        } else {
            here.inside(move || drop(attached));
            drop(phone);
        }
        // Each flow continues after its scheme is removed: ACKs carry no feedback any more, but data packets still
        // carry the sender's option.
        flows.iter().for_each(Flow::goes_on);
        flows.drain(..flows.len().saturating_sub(3));
    }
    flows.clear();
    drop((here, there));
    before.comes_again();
}

#[test]
fn a_feeder_that_dies_leaves_downloads_to_bbr() {
    let _turn = turn();
    let Some(group) = Group::enter() else { return };
    let before = InKernel::settled();
    let Some(namespace) = Namespace::new("silent") else { return };
    let Some(mut phone) = Phone::start(&group) else { return };
    let flow = namespace.inside(|| Flow::between(Some("pbe"), "127.0.0.1:0".parse().unwrap()).unwrap());
    flow.goes_on();
    assert_eq!(phone.kernel.totals().unwrap().fallbacks, 0);
    phone.stop_feeding();
    feed_until(&phone.kernel, None, |totals| totals.fallbacks > 0 && totals.silences > 0);
    flow.goes_on();
    drop((flow, phone));
    before.comes_again();
}

#[test]
fn a_namespace_may_be_removed_with_the_program_at_its_device_and_a_flow_in_it() {
    let _turn = turn();
    let Some(group) = Group::enter() else { return };
    let before = InKernel::settled();
    let Some([mut here, mut there]) = wire("10.17.4.1", "10.17.4.2") else { return };
    let Some(phone) = Phone::start(&group) else { return };
    let room = phone.kernel.room().unwrap();
    let attached = here.inside(|| room.attach(device_number("wire").unwrap())).unwrap();
    assert!(attached.ends_by_itself(), "this kernel knows links at devices");
    let listener = here.inside(|| TcpListener::bind("10.17.4.1:0").unwrap());
    there.inside(|| airpace_files::set_kernel("net/ipv4/tcp_congestion_control", "pbe").unwrap());
    let (sender, receiver) = there.inside(|| pair(&listener, None));
    assert_eq!(tcp_congestion(&sender).unwrap(), "pbe");
    let flow = Flow::of(sender, receiver);
    flow.goes_on();
    here.remove();
    there.remove();
    // The sockets keep both namespaces and the link between them.
    flow.goes_on();
    drop(flow);
    drop((listener, attached, room, phone));
    before.comes_again();
}
