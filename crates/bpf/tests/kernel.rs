//! The programs in the kernel of this machine. Skipped where it takes none.
#![cfg(feature = "load")]

use airpace_bpf::feed::Told;
use airpace_bpf::kernel::{Kernel, LoadError};
use airpace_bpf::twin::KernelTuning;
use airpace_cc::biscay::Tuning;
use airpace_cc::scheme::Options;
use airpace_core::Rate;

fn tuning() -> KernelTuning {
    let options = Options::defaults(&airpace_cc::biscay::SCHEME);
    KernelTuning::new(&Tuning::read(&options).unwrap()).expect("the kernel knows the defaults")
}

#[test]
fn look() {
    let kernel = match Kernel::load(&tuning()) {
        Ok(kernel) => kernel,
        Err(error) => panic!("{error}: {error:?}"),
    };
    println!("{:#?}", kernel.costs());
    let mut feed = kernel.feed().unwrap();
    feed.tell(&Told { bandwidth: Some(Rate::from_mbps(10.0)), burst: Rate::from_mbps(20.0), share: None });
    println!("{:?} {:?}", feed.read(), kernel.totals());
    println!("{:?}", std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control"));
}
