//! CPU cost of an ACK in each scheme of the kernel, compared with the kernel's own BBR called in the same way.
//!
//! ```text
//! cargo bench -p airpace-bpf --features load --bench ack_cost      (as root)
//! ```
//!
//! Further figures: the cost of BISCAY's count of all flows of the host, per packet sent over a link between two network
//! namespaces, for each split policy; and the cost of bounding a download, per packet that its receiver sends.
//!
//! Each scheme sends at the same rates, over a path with a round trip of 20 ms and over the loopback. The kernel counts the
//! time in each program (`kernel.bpf_stats_enabled`). The time includes the same clock calls for all programs.
//!
//! Rounds alternate: in each round, every scheme sends once, and BBR twice, first and last. A scheme's figure is the median
//! of its ratios to BBR of the same round, with the quartiles. The ratio of BBR's second run to its first shows the
//! variation by chance.
//!
//! `-- acks`, `-- flows` and `-- downloads` measure only one of the three.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

mod far;
#[path = "../../tests/machine/mod.rs"]
mod machine;

use airpace_bpf::feed::{GrantRecord, now};
use airpace_bpf::kernel::{Kernel, KernelScheme};
use airpace_bpf::twin::KernelTuning;
use airpace_bpf::twin::morc::MorcTuning;
use airpace_bpf::twin::pbe::PbeTuning;
use airpace_bpf::twin::pbe_receiver::Cell;
use airpace_cc::SchemeSpec;
use airpace_cc::biscay::Tuning;
use airpace_cc::scheme::Options;
use airpace_cc::{morc, pbe};
use airpace_core::Rate;
use far::Far;
use machine::Group;
use rustix::net::sockopt::set_tcp_congestion;
use rustix::net::{AddressFamily, SocketType, connect, socket};

const STATS: &str = "/proc/sys/kernel/bpf_stats_enabled";
const ROUNDS: usize = 15;
const SPAN: Duration = Duration::from_millis(600);
/// Duration of many round trips, so that the start of a flow has little effect.
const LONG_SPAN: Duration = Duration::from_millis(1_500);

/// The path of a flow.
#[derive(Clone, Copy)]
enum Over {
    /// The round trip takes 20 ms, as over a mobile network: many ACKs arrive per round trip.
    Path,
    /// The round trip is shorter than the time between two ACKs, so each ACK ends one.
    Loopback,
}

/// Measured paths and rates (Mbit/s). At the lower rate, the processor executes other code between two ACKs; at the higher
/// rate it does not.
const PLACES: [(Over, f64); 3] = [(Over::Path, 200.0), (Over::Loopback, 200.0), (Over::Loopback, 2_000.0)];

/// One-way delay of a packet on the path.
const DELAY: Duration = Duration::from_millis(10);
const ENDS: [&str; 2] = ["192.0.2.1", "192.0.2.2"];
const MSS: u32 = 1448;
/// Pacing limit as a multiple of the rate.
const PACE: f64 = 1.1;

/// A listener, and a socket that can connect to it.
fn ends(far: Option<&Far>) -> std::io::Result<(TcpListener, OwnedFd)> {
    let listen = |address| TcpListener::bind((address, 0));
    let socket = || socket(AddressFamily::INET, SocketType::STREAM, None).map_err(std::io::Error::from);
    match far {
        Some(far) => Ok((far.ends[1].inside(|| listen(ENDS[1]))?, far.ends[0].inside(socket)?)),
        None => Ok((listen("127.0.0.1")?, socket()?)),
    }
}

/// Sends for a while. The kernel counts the costs.
fn send(part: &KernelScheme, kernel: &Kernel, far: Option<&Far>, mbps: f64) -> std::io::Result<()> {
    let scheme = part.name();
    let (listener, socket) = ends(far)?;
    set_tcp_congestion(&socket, scheme)?;
    // As over a network: one ACK for two packets of 1500 bytes.
    socket2::SockRef::from(&socket).set_tcp_mss(MSS)?;
    // The same pacing limit for all schemes makes their ACKs arrive at the same pace.
    machine::pace_at_most(&socket, Rate::from_mbps(PACE * mbps))?;
    connect(&socket, &listener.local_addr()?)?;
    let mut sender = TcpStream::from(socket);
    let (mut receiver, _) = listener.accept()?;
    let reads = std::thread::spawn(move || {
        let mut bytes = [0; 65_536];
        while receiver.read(&mut bytes).is_ok_and(|read| read > 0) {}
    });
    let stop = Arc::new(AtomicBool::new(false));
    let cell = matches!(part, KernelScheme::Pbe(_)).then(|| kernel.cell()).transpose()?;
    let tells_cell = cell.map(|mut feed| {
        let stop = Arc::clone(&stop);
        std::thread::spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                feed.tell(&Cell::idle(Rate::from_mbps(4.0 * mbps), now()));
                std::thread::sleep(Duration::from_millis(1));
            }
        })
    });
    let feed = matches!(part, KernelScheme::Biscay(_)).then(|| kernel.feed()).transpose()?;
    let feeds = feed.map(|mut feed| {
        let stop = Arc::clone(&stop);
        // Far above the sent rate: BISCAY then leaves its start at once, because the start is not to be measured.
        let bandwidth = Some(Rate::from_mbps(4.0 * mbps));
        let told = GrantRecord { bandwidth, burst: Rate::ZERO, share: None };
        // A flow that starts before the feed is written would end its start without the bandwidth.
        feed.tell(&told);
        std::thread::spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                feed.tell(&told);
                std::thread::sleep(Duration::from_millis(1));
            }
        })
    });
    // Sends as much as the rate carries, in pieces of a millisecond: all schemes send the same amount, independent of their
    // decisions on a loopback.
    let (began, mut sent) = (Instant::now(), 0.0);
    let span = if far.is_some() { LONG_SPAN } else { SPAN };
    while began.elapsed() < span {
        let due = began.elapsed().as_secs_f64() * mbps * 125_000.0;
        if sent < due {
            let piece = vec![0; (mbps * 125.0) as usize];
            sender.write_all(&piece)?;
            sent += piece.len() as f64;
        } else {
            std::thread::sleep(Duration::from_micros(500));
        }
    }
    drop(sender);
    stop.store(true, Ordering::Relaxed);
    for thread in [Some(reads), feeds, tells_cell].into_iter().flatten() {
        thread.join().expect("it does not panic");
    }
    Ok(())
}

/// Nanoseconds per ACK in `cong_control`, per call in `min_tso_segs`, and in all programs per ACK; for PBE-CC's option,
/// nanoseconds per call and calls per ACK. Both endpoints run here, so the last three include both.
fn measure(
    part: &KernelScheme,
    group: &Group,
    far: Option<&Far>,
    mbps: f64,
) -> Result<[f64; 5], Box<dyn std::error::Error>> {
    let mut kernel = Kernel::load(part)?;
    if matches!(part, KernelScheme::Pbe(_)) {
        kernel.exchange(File::open(&group.path)?.as_fd())?;
        kernel.cell()?.tell(&Cell::idle(Rate::from_mbps(4.0 * mbps), now()));
    }
    send(part, &kernel, far, mbps)?;
    let costs = kernel.costs()?;
    if kernel.totals().is_ok_and(|totals| totals.fallbacks > 0) {
        println!("{} was in FALLBACK, and BBR took its time besides", part.name());
    }
    let of = |name: &str| {
        costs
            .iter()
            .find(|cost| cost.name.ends_with(name))
            .map_or((0.0, 1.0), |cost| (cost.nanos as f64, cost.calls.max(1) as f64))
    };
    let ((ack_nanos, acks), (send_nanos, sends)) = (of("cong_control"), of("min_tso_segs"));
    let all: f64 = costs.iter().map(|cost| cost.nanos as f64).sum();
    let (option_nanos, options) = of("_options");
    Ok([ack_nanos / acks, send_nanos / sends, all / acks, option_nanos / options, options / acks])
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // The feed is above the sent rate, so that BISCAY leaves its start at once. With a smaller margin, a queue on a busy
    // machine would look like that of a wired bottleneck, and BBR's time would be added.
    let biscay = tuning("biscay:switch_margin_percent=100000")?;
    let morc = MorcTuning::new(&morc::profile(&Options::defaults(&morc::SCHEME))?)?;
    let pbe = PbeTuning::new(&pbe::Tuning::read(&Options::defaults(&pbe::SCHEME))?)?;
    let parts = [
        KernelScheme::KernelBbr,
        KernelScheme::Biscay(biscay),
        KernelScheme::Morc(morc),
        KernelScheme::Pbe(pbe),
        KernelScheme::KernelBbr,
    ];
    let asked: Vec<String> = std::env::args().skip(1).filter(|asked| !asked.starts_with('-')).collect();
    let is_asked = |what: &str| asked.is_empty() || asked.iter().any(|asked| asked == what);
    let group = Group::enter().ok_or("no control groups")?;
    let before = fs::read_to_string(STATS)?;
    fs::write(STATS, "1")?;
    let mut measured = Ok(());
    if is_asked("acks") {
        measured = PLACES.iter().try_for_each(|&(over, mbps)| compare(&parts, &group, over, mbps));
    }
    drop(group);
    if is_asked("flows") {
        measured = measured.and_then(|()| ["equal", "app", "proportional"].into_iter().try_for_each(count));
    }
    if is_asked("downloads") {
        measured = measured.and_then(|()| bound());
    }
    fs::write(STATS, before)?;
    measured
}

/// Counts packets of one flow, and of a thousand flows in turn.
fn count(policy: &str) -> Result<(), Box<dyn std::error::Error>> {
    println!("{policy:12} ns per packet counted");
    let biscay = KernelScheme::Biscay(tuning(&format!("biscay:split={policy}"))?);
    for flows in [1_u16, 1_000] {
        let mut costs: Vec<f64> = (0..ROUNDS).filter_map(|_| counted(&biscay, flows)).collect();
        costs.sort_by(f64::total_cmp);
        println!("{flows:5} flows  {:13.0}", costs.get(costs.len() / 2).ok_or("no wire")?);
    }
    Ok(())
}

fn tuning(scheme: &str) -> Result<KernelTuning, Box<dyn std::error::Error>> {
    Ok(KernelTuning::new(&Tuning::read(SchemeSpec::parse(scheme)?.options())?)?)
}

/// The cost of the relay.
fn bound() -> Result<(), Box<dyn std::error::Error>> {
    let part = KernelScheme::Relay(tuning("biscay@window:startup=first")?);
    let mut costs: Vec<[f64; 2]> = (0..ROUNDS).filter_map(|_| bounded(&part)).collect();
    costs.sort_by(|one, other| one[0].total_cmp(&other[0]));
    let [relay, counter] = *costs.get(costs.len() / 2).ok_or("no wire")?;
    println!("a download    {relay:13.0} ns per packet of its receiver, {counter:.0} per packet counted");
    Ok(())
}

/// Nanoseconds in the program that bounds a download, and in the counting program.
fn bounded(relay: &KernelScheme) -> Option<[f64; 2]> {
    let mut kernel = Kernel::load(relay).ok()?;
    let ends = machine::wire("192.0.2.1", "192.0.2.2")?;
    let group = machine::Group::enter()?;
    kernel.count_flows(File::open(&group.path).ok()?.as_fd()).ok()?;
    kernel.bound_downloads(File::open(&group.path).ok()?.as_fd()).ok()?;
    let feeding = machine::Feeding::start(&kernel, machine::mbps(400.0));
    let listener = ends[1].inside(|| TcpListener::bind("192.0.2.2:0")).ok()?;
    let address = listener.local_addr().ok()?;
    let receiver = ends[0].inside(|| TcpStream::connect(address)).ok()?;
    let flow = machine::Flow::of(listener.accept().ok()?.0, receiver);
    std::thread::sleep(SPAN);
    drop((flow, feeding));
    let costs = kernel.costs().ok()?;
    let of = |name: &str| {
        let found = costs.iter().find(|cost| cost.name == name && cost.calls > 100)?;
        Some(found.nanos as f64 / found.calls as f64)
    };
    Some([of("window_relay")?, of("count_ingress")?])
}

/// Nanoseconds in the counting program, per packet of 1000 bytes.
fn counted(biscay: &KernelScheme, flows: u16) -> Option<f64> {
    let mut kernel = Kernel::load(biscay).ok()?;
    let ends = machine::wire("192.0.2.1", "192.0.2.2")?;
    let group = machine::Group::enter()?;
    kernel.count_flows(File::open(&group.path).ok()?.as_fd()).ok()?;
    let socket = ends[0].inside(|| UdpSocket::bind("192.0.2.1:0")).ok()?;
    let began = Instant::now();
    // About 80 Mbit/s: ten packets per millisecond.
    for packet in 0..5_000_u16 {
        let _ = socket.send_to(&[0; 1000], ("192.0.2.2", 2_000 + packet % flows));
        if packet % 10 == 9 {
            let due = Duration::from_millis(u64::from(packet) / 10);
            std::thread::sleep(due.saturating_sub(began.elapsed()));
        }
    }
    let costs = kernel.costs().ok()?;
    let counter = costs.iter().find(|cost| cost.name == "count_egress")?;
    (counter.calls >= 5_000).then(|| counter.nanos as f64 / counter.calls as f64)
}

/// Measures the schemes in alternation, and prints their medians.
fn compare(
    parts: &[KernelScheme],
    group: &Group,
    over: Over,
    mbps: f64,
) -> Result<(), Box<dyn std::error::Error>> {
    let (far, place) = match over {
        Over::Path => (Some(Far::new(ENDS, DELAY).ok_or("no path")?), "a round trip of 20 ms"),
        Over::Loopback => (None, "the loopback"),
    };
    let mut seen = vec![vec![]; parts.len()];
    for _ in 0..ROUNDS {
        for (part, seen) in parts.iter().zip(&mut seen) {
            seen.push(measure(part, group, far.as_ref(), mbps)?);
        }
    }
    println!("{mbps} Mbit/s over {place}");
    println!("                 ns per ACK   x BBR  (half of them)  ns per send   x BBR, all");
    for (part, costs) in parts.iter().zip(&seen) {
        let over_bbr = |which: usize| {
            costs.iter().zip(&seen[0]).map(move |(cost, bbr)| cost[which] / bbr[which]).collect()
        };
        let [low, ratio, high] = quartiles(over_bbr(ACK));
        let [_, all, _] = quartiles(over_bbr(ALL));
        let [ack, send, option, options] = [ACK, SEND, OPTION, OPTIONS]
            .map(|which| quartiles(costs.iter().map(|cost| cost[which]).collect())[1]);
        println!("{:12} {ack:14.0} {ratio:7.2}   {low:.2} to {high:.2} {send:13.0} {all:13.2}", part.name());
        if option > 0.0 {
            println!("{:12} {option:14.0} ns per call for its option, {options:.1} calls per ACK", "");
        }
    }
    Ok(())
}

/// Indices of a run's figures.
const ACK: usize = 0;
const SEND: usize = 1;
const ALL: usize = 2;
const OPTION: usize = 3;
const OPTIONS: usize = 4;

/// The quartiles and the median: lower quartile, median, upper quartile.
fn quartiles(mut values: Vec<f64>) -> [f64; 3] {
    values.sort_by(f64::total_cmp);
    [1, 2, 3].map(|quarter| values[values.len() * quarter / 4])
}
