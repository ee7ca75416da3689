//! Faults of a kernel scheme while flows use it. In each case, the flows continue, and the kernel afterwards holds the same
//! objects as before: maps, programs and links are counted.
#![cfg(feature = "load")]

use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::process::Command;

mod machine;

use airpace_bpf::kernel::{Kernel, KernelScheme, LoadError};
use airpace_core::Rate;
use airpace_testing::skipped;
use machine::{
    Feeding, Flow, InKernel, Namespace, all_move, biscay, connected, feed_until, load, may_open, mbps, morc,
    pace_at_most, pair, pbe, run, turn, wait_until, wire,
};
use rustix::net::sockopt::tcp_congestion;

const FLOWS: usize = 2_000;

const LOOPBACK: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

#[test]
fn two_thousand_flows_at_once_move_data() {
    if !may_open(2 * FLOWS as u64 + 200) {
        return;
    }
    let _turn = turn();
    let before = InKernel::settled();
    for part in [biscay(), morc()] {
        let Some(kernel) = load(&part) else { return };
        let Some(namespace) = Namespace::new("many") else { return };
        let feeding = kernel.feed().is_ok().then(|| Feeding::start(&kernel, mbps(1_000.0)));
        namespace.inside(|| {
            let listener = TcpListener::bind(LOOPBACK).unwrap();
            let mut pairs: Vec<_> = (0..FLOWS).map(|_| pair(&listener, Some(part.name()))).collect();
            all_move(&mut pairs);
            assert_eq!(kernel.totals().unwrap().flows, FLOWS as u64);
            // Half of the flows are closed. The other flows use the bandwidth of the closed flows.
            pairs.truncate(FLOWS / 2);
            all_move(&mut pairs);
        });
        drop(feeding);
    }
    before.comes_again();
}

/// Returns the value that `ss` shows after `word` for the only sender in a namespace; `None` if the output does not
/// contain `word`.
fn shown(namespace: &Namespace, word: &str) -> Option<f64> {
    let output =
        Command::new("ss").args(["-N", namespace.name(), "-tinH", "dport", "!=", "0"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text.lines().find(|line| line.contains("bytes_acked") && line.contains("data_segs_out"))?;
    let (_, rest) = line.split_once(&format!(" {word}"))?;
    let number: String = rest.chars().take_while(|char| char.is_ascii_digit() || *char == '.').collect();
    number.parse().ok()
}

/// Sets a namespace's limit of socket memory to zero. Returns whether this is possible.
fn gives_no_memory() -> bool {
    let set = airpace_files::set_kernel("net/core/optmem_max", "0");
    if let Err(error) = &set {
        skipped(&format!("the limit belongs to the whole machine (Linux before 6.9): {error}"));
    }
    set.is_ok()
}

/// A flow's state is stored at its socket, so no map limits the number of flows. The memory of a socket is limited
/// (`net.core.optmem_max`): a flow that gets no memory uses the kernel's BBR.
#[test]
fn a_flow_without_room_for_its_state_goes_on_as_bbr() {
    let _turn = turn();
    let before = InKernel::settled();
    for part in [biscay(), morc(), pbe()] {
        let Some(kernel) = load(&part) else { return };
        let Some(namespace) = Namespace::new("narrow") else { return };
        let feeding = feeding(&part, &kernel);
        namespace.inside(|| {
            if !gives_no_memory() {
                return;
            }
            let narrow = Flow::between(Some(part.name()), LOOPBACK).unwrap();
            narrow.goes_on();
            assert_eq!(kernel.totals().unwrap().flows, 0, "it has no state");
            // Only BBR sets a pacing rate for this flow.
            wait_until("BBR's pacing rate", || {
                shown(&namespace, "pacing_rate ").is_some_and(|bps| bps > 1e6)
            });
            airpace_files::set_kernel("net/core/optmem_max", "131072").unwrap();
            let wide = Flow::between(Some(part.name()), LOOPBACK).unwrap();
            wide.goes_on();
            narrow.goes_on();
            feed_until(&kernel, None, |totals| totals.flows == 1 && totals.acks > 0);
        });
        drop(feeding);
    }
    before.comes_again();
}

/// The limit that an application sets for its socket (`SO_MAX_PACING_RATE`) bounds the pacing rate of each scheme as
/// long as the limit is set.
#[test]
fn a_socket_s_own_limit_bounds_the_pacing_rate() {
    let _turn = turn();
    let before = InKernel::settled();
    for part in [biscay(), morc(), pbe()] {
        let Some(kernel) = load(&part) else { return };
        let Some(namespace) = Namespace::new("limited") else { return };
        let feeding = feeding(&part, &kernel);
        namespace.inside(|| {
            let listener = TcpListener::bind(LOOPBACK).unwrap();
            let sender = connected(Some(part.name()), listener.local_addr().unwrap()).unwrap();
            pace_at_most(&sender, Rate::from_mbps(80.0)).unwrap();
            // This copy of the socket is dropped before the flow, because the flow's receiver waits for the end of the
            // connection.
            let also = sender.try_clone().unwrap();
            let (flow, limited) = (Flow::of(sender, listener.accept().unwrap().0), also);
            for _ in 0..10 {
                flow.goes_on();
                let bps = shown(&namespace, "pacing_rate ").expect("the flow has a pacing rate");
                assert!(bps > 0.0 && bps <= 80.0e6, "{}: {bps} bit/s", part.name());
            }
            pace_at_most(&limited, Rate::from_mbps(8_000.0)).unwrap();
            wait_until("a rate above the old limit", || {
                shown(&namespace, "pacing_rate ").is_some_and(|bps| bps > 80.0e6)
            });
        });
        drop(feeding);
    }
    before.comes_again();
}

/// Only BISCAY uses a feed with a bandwidth.
fn feeding(part: &KernelScheme, kernel: &Kernel) -> Option<Feeding> {
    matches!(part, KernelScheme::Biscay(_)).then(|| Feeding::start(kernel, mbps(1_000.0)))
}

/// If the kernel has no BBR either, such a flow uses Reno: it starts with ten packets, grows, and reduces its window when a
/// queue of some packets overflows.
#[test]
fn without_room_and_without_bbr_a_flow_is_reno_s() {
    let _turn = turn();
    let before = InKernel::settled();
    for part in [biscay(), morc(), pbe()] {
        let loaded = match Kernel::load_without_bbr(&part) {
            Ok(kernel) => kernel,
            Err(error @ (LoadError::Refused { .. } | LoadError::File { .. })) => panic!("{error}"),
            Err(error) => return skipped(&format!("no programs in the kernel: {error}")),
        };
        let Some([here, there]) = wire("10.88.0.1", "10.88.0.2") else { return };
        if !here.inside(gives_no_memory) {
            return;
        }
        let queue = ["-n", here.name(), "qdisc", "add", "dev", "wire", "root", "tbf", "rate", "50mbit"];
        if let Err(said) = run("tc", &[&queue[..], &["burst", "5kb", "limit", "60kb"]].concat()) {
            return skipped(&format!("no such queue here: {said}"));
        }
        let listener = there.inside(|| TcpListener::bind("10.88.0.2:0").unwrap());
        let address = listener.local_addr().unwrap();
        let sender = here.inside(|| connected(Some(part.name()), address).unwrap());
        let (receiver, _) = listener.accept().unwrap();
        let flow = Flow::of(sender, receiver);
        wait_until("a window above the first", || shown(&here, "cwnd:").is_some_and(|cwnd| cwnd > 10.0));
        wait_until("a loss", || shown(&here, "ssthresh:").is_some());
        for _ in 0..10 {
            flow.goes_on();
            // The queue holds about 40 packets.
            let cwnd = shown(&here, "cwnd:").expect("it is there");
            assert!((2.0..=80.0).contains(&cwnd), "{} has a window of {cwnd} packets", part.name());
        }
        assert_eq!(loaded.totals().unwrap().flows, 0, "it has no state");
        drop((flow, loaded));
    }
    before.comes_again();
}

#[test]
fn twenty_times_loaded_and_unloaded_under_a_transfer() {
    let _turn = turn();
    let before = InKernel::settled();
    let Some(first) = load(&biscay()) else { return };
    let transfer = Flow::start("biscay").unwrap();
    transfer.goes_on();
    drop(first);
    let mut last = None;
    for round in 0..20 {
        let part = if round % 2 == 0 { biscay() } else { morc() };
        let Some(kernel) = load(&part) else { return };
        let feeding = kernel.feed().is_ok().then(|| Feeding::start(&kernel, mbps(500.0)));
        let flow = Flow::start(part.name()).unwrap();
        flow.goes_on();
        transfer.goes_on();
        drop((feeding, kernel));
        // This flow continues for one round after its scheme is removed.
        last = Some(flow);
        last.iter().for_each(Flow::goes_on);
        transfer.goes_on();
    }
    drop((last, transfer));
    before.comes_again();
}

#[test]
fn a_namespace_may_be_removed_with_the_scheme_as_its_default_and_a_flow_in_it() {
    let _turn = turn();
    let before = InKernel::settled();
    for part in [biscay(), morc()] {
        let Some(kernel) = load(&part) else { return };
        let Some(mut namespace) = Namespace::new("gone") else { return };
        let feeding = kernel.feed().is_ok().then(|| Feeding::start(&kernel, mbps(500.0)));
        let (flow, mut full) = namespace.inside(|| {
            airpace_files::set_kernel("net/ipv4/tcp_congestion_control", part.name()).unwrap();
            let listener = TcpListener::bind(LOOPBACK).unwrap();
            let (sender, receiver) = pair(&listener, None);
            assert_eq!(tcp_congestion(&sender).unwrap(), part.name());
            (Flow::of(sender, receiver), pair(&listener, None))
        });
        // Nobody reads this flow's data: it ends with unsent bytes.
        full.0.set_nonblocking(true).unwrap();
        while full.0.write(&[0; 65_536]).is_ok() {}
        flow.goes_on();
        namespace.remove();
        flow.goes_on();
        drop((feeding, kernel));
        flow.goes_on();
        drop(full);
        flow.goes_on();
    }
    before.comes_again();
}
