//! The programs in the kernel of this machine. Skipped where it takes none.
#![cfg(feature = "load")]

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use airpace_bpf::feed::{Feed, Told};
use airpace_bpf::kernel::{Kernel, LoadError, Totals};
use airpace_bpf::twin::KernelTuning;
use airpace_cc::biscay::Tuning;
use airpace_cc::scheme::Options;
use airpace_core::Rate;
use airpace_testing::skipped;
use libbpf_rs::query::{LinkInfoIter, MapInfoIter};
use rustix::net::sockopt::set_tcp_congestion;
use rustix::net::{AddressFamily, SocketType, connect, socket};

/// Instructions that the verifier may go through in all programs together. The kernel's limit is a million for each.
const MOST_VERIFIED: u64 = 200_000;

/// Names of congestion controls belong to the whole machine, so these tests take turns.
static TURN: Mutex<()> = Mutex::new(());

fn tuning() -> KernelTuning {
    let options = Options::defaults(&airpace_cc::biscay::SCHEME);
    KernelTuning::new(&Tuning::read(&options).unwrap()).expect("the kernel knows the defaults")
}

/// Loads the programs, if this machine takes them.
fn loaded() -> Option<(Kernel, MutexGuard<'static, ()>)> {
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    match Kernel::load(&tuning()) {
        Ok(kernel) => Some((kernel, turn)),
        Err(error @ (LoadError::Refused { .. } | LoadError::File { .. })) => panic!("{error}"),
        Err(error) => {
            skipped(&format!("no programs in the kernel: {error}"));
            None
        }
    }
}

/// A flow over the loopback that goes on until it is dropped.
struct Flow {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
    received: Arc<Mutex<u64>>,
}

impl Flow {
    fn start(scheme: &str) -> std::io::Result<Flow> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let socket = socket(AddressFamily::INET, SocketType::STREAM, None)?;
        set_tcp_congestion(&socket, scheme)?;
        connect(&socket, &address)?;
        let mut sender = TcpStream::from(socket);
        let (mut receiver, _) = listener.accept()?;
        let stop = Arc::new(AtomicBool::new(false));
        let received = Arc::new(Mutex::new(0));
        let (is_over, count) = (Arc::clone(&stop), Arc::clone(&received));
        let writes = move || {
            // Far less than a loopback carries: other tests run at the same time.
            while !is_over.load(Ordering::Relaxed) && sender.write_all(&[0; 20_000]).is_ok() {
                std::thread::sleep(Duration::from_millis(1));
            }
        };
        let reads = move || {
            let mut bytes = [0; 65_536];
            while let Ok(some @ 1..) = receiver.read(&mut bytes) {
                *count.lock().unwrap() += some as u64;
            }
        };
        Ok(Flow { stop, threads: vec![std::thread::spawn(writes), std::thread::spawn(reads)], received })
    }

    /// Waits until a megabyte more has arrived.
    fn goes_on(&self) {
        let before = *self.received.lock().unwrap();
        while *self.received.lock().unwrap() < before + 1_000_000 {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Drop for Flow {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.threads.drain(..).for_each(|thread| thread.join().unwrap());
    }
}

fn mbps(mbps: f64) -> Told {
    Told { bandwidth: Some(Rate::from_mbps(mbps)), burst: Rate::ZERO, share: None }
}

/// Feeds until the totals are as wanted.
fn feed_until(kernel: &Kernel, feed: &mut Feed, told: Option<Told>, is_enough: impl Fn(&Totals) -> bool) {
    while !is_enough(&kernel.totals().unwrap()) {
        told.iter().for_each(|told| feed.tell(told));
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Maps and links of all programs of the machine that have our names.
fn ours_in_the_kernel() -> usize {
    let names = ["feed", "tuning", "totals", "flows", "biscay"];
    let maps = MapInfoIter::default().filter(|map| names.iter().any(|name| map.name == *name));
    maps.count() + LinkInfoIter::default().filter(|link| link.prog_id == 0).count()
}

#[test]
fn the_verifier_s_work_is_bounded() {
    let Some((kernel, _turn)) = loaded() else { return };
    let costs = kernel.costs().unwrap();
    assert!(costs.len() >= 8 && costs.iter().all(|cost| cost.verified > 0), "{costs:?}");
    let all: u64 = costs.iter().map(|cost| cost.verified).sum();
    assert!(all <= MOST_VERIFIED, "{all} instructions: {costs:?}");
    assert!(matches!(Kernel::load(&tuning()), Err(LoadError::Exists)), "a name is taken once");
}

#[test]
fn a_feeder_that_dies_leaves_the_flow_to_bbr_and_one_that_returns_takes_it_back() {
    let Some((kernel, _turn)) = loaded() else { return };
    let mut feed = kernel.feed().unwrap();
    feed.tell(&mbps(2_000.0));
    let flow = Flow::start("biscay").unwrap();
    feed_until(&kernel, &mut feed, Some(mbps(2_000.0)), |totals| totals.acks > 1_000);
    let before = kernel.totals().unwrap();
    assert_eq!((before.flows, before.silences), (1, 0), "{before:?}");
    feed_until(&kernel, &mut feed, None, |totals| totals.silences > 0);
    flow.goes_on();
    feed_until(&kernel, &mut feed, Some(mbps(1.0)), |totals| totals.returns > 0);
    feed_until(&kernel, &mut feed, Some(mbps(2_000.0)), |totals| totals.acks > before.acks + 1_000);
    flow.goes_on();
}

#[test]
fn it_may_be_removed_and_loaded_anew_while_flows_run() {
    let Some((kernel, turn)) = loaded() else { return };
    drop(kernel);
    drop(turn);
    let before = ours_in_the_kernel();
    let mut flows = vec![];
    for _ in 0..5 {
        let Some((kernel, _turn)) = loaded() else { return };
        kernel.feed().unwrap().tell(&mbps(100.0));
        flows.push(Flow::start("biscay").unwrap());
        flows.iter().for_each(Flow::goes_on);
        drop(kernel);
        let refused = Flow::start("biscay").err().map(|error| error.kind());
        assert_eq!(refused, Some(ErrorKind::NotFound), "what is removed cannot be chosen");
        flows.iter().for_each(Flow::goes_on);
    }
    flows.clear();
    // The kernel frees what the last flow held some time after it has ended.
    while ours_in_the_kernel() > before {
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn the_feed_reads_as_it_was_told() {
    let Some((kernel, _turn)) = loaded() else { return };
    let mut feed = kernel.feed().unwrap();
    assert_eq!(feed.read(), None, "nothing was told yet");
    let unknown = Told { bandwidth: None, burst: Rate::from_mbps(7.0), share: Some((1, 3)) };
    for told in [mbps(20.0), unknown, mbps(0.0), mbps(5.0)] {
        feed.tell(&told);
        assert_eq!(kernel.feed().unwrap().read().map(|(told, _)| told), Some(told));
    }
}
