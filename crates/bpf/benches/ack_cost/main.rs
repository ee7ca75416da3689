//! CPU cost of an ACK in each scheme of the kernel, compared with the kernel's own BBR called in the same way.
//!
//! ```text
//! cargo bench -p airpace-bpf --features load --bench ack_cost      (as root)
//! ```
//!
//! Two further costs are measured. The first is the cost of BISCAY's count of all flows of the host, per packet sent
//! over a link between two network namespaces, for each split policy. The second is the cost of limiting the rate of a
//! download, per packet that the receiver sends.
//!
//! Each scheme sends at the same rates, over a path with a round trip of 20 ms and over the loopback. The kernel counts
//! the time in each program (`kernel.bpf_stats_enabled`). The measured time includes the same clock calls for all
//! programs.
//!
//! Rounds alternate: in each round, every scheme sends once, and BBR sends twice, first and last. The result for a
//! scheme is the median, with quartiles, of the ratio of its cost to the cost of BBR in the same round. The ratio of
//! BBR's second run to its first shows the random variation.
//!
//! The arguments `-- acks`, `-- flows` and `-- downloads` each select one of the three measurements.

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
/// Duration of a flow over the path. It is many round trips, so that the start of the flow has little effect.
const LONG_SPAN: Duration = Duration::from_millis(1_500);

/// The path of a flow.
#[derive(Clone, Copy)]
enum Over {
    /// The round trip takes 20 ms, as over a mobile network: many ACKs arrive per round trip.
    Path,
    /// The round trip is shorter than the time between two ACKs, so each ACK ends a round trip.
    Loopback,
}

/// Measured paths and rates (Mbit/s). At 200 Mbit/s, the processor executes other code between two ACKs; at 2000 Mbit/s
/// it does not.
const PLACES: [(Over, f64); 3] = [(Over::Path, 200.0), (Over::Loopback, 200.0), (Over::Loopback, 2_000.0)];

/// One-way delay of a packet on the path.
const DELAY: Duration = Duration::from_millis(10);
const ENDS: [&str; 2] = ["192.0.2.1", "192.0.2.2"];
const MSS: u32 = 1448;
/// Ratio of the socket's pacing limit to the sending rate.
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

/// Sends data for the duration of a run. The kernel counts the costs.
fn send(part: &KernelScheme, kernel: &Kernel, far: Option<&Far>, mbps: f64) -> std::io::Result<()> {
    let scheme = part.name();
    let (listener, socket) = ends(far)?;
    set_tcp_congestion(&socket, scheme)?;
    // With this MSS, there is one ACK for two packets of 1500 bytes, as over a network.
    socket2::SockRef::from(&socket).set_tcp_mss(MSS)?;
    // The pacing limit is the same for all schemes, so that their ACKs arrive at the same rate.
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
        // The bandwidth is far above the sent rate. BISCAY then leaves its state STARTUP at once; STARTUP is not
        // measured.
        let bandwidth = Some(Rate::from_mbps(4.0 * mbps));
        let told = GrantRecord { bandwidth, burst: Rate::ZERO, share: None };
        // The feed is written first, because a flow that starts without a bandwidth in the feed would not leave STARTUP
        // at once.
        feed.tell(&told);
        std::thread::spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                feed.tell(&told);
                std::thread::sleep(Duration::from_millis(1));
            }
        })
    });
    // Sends the data of one millisecond at the given rate every millisecond. All schemes therefore send the same
    // amount, independent of their decisions.
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

/// Returns five values: nanoseconds per ACK in `cong_control`, nanoseconds per call in `min_tso_segs`, nanoseconds per
/// ACK in all programs, and, for the programs of PBE-CC's option, nanoseconds per call and calls per ACK. Both
/// endpoints run on this machine, so the last three values include both.
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
    // The bandwidth in the feed is above the sent rate, so that BISCAY leaves STARTUP at once. With a smaller margin, a
    // queue on a busy machine would look like the queue of a wired bottleneck. BISCAY would then run BBR, whose time
    // would be added.
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

/// Measures the cost of counting packets of one flow, and of a thousand flows that send in turn.
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

/// Measures the cost of the programs that limit a download (`KernelScheme::Relay`).
fn bound() -> Result<(), Box<dyn std::error::Error>> {
    let part = KernelScheme::Relay(tuning("biscay@window:startup=first")?);
    let mut costs: Vec<[f64; 2]> = (0..ROUNDS).filter_map(|_| bounded(&part)).collect();
    costs.sort_by(|one, other| one[0].total_cmp(&other[0]));
    let [relay, counter] = *costs.get(costs.len() / 2).ok_or("no wire")?;
    println!("a download    {relay:13.0} ns per packet of its receiver, {counter:.0} per packet counted");
    Ok(())
}

/// Nanoseconds per call of the program that limits a download, and of the counting program.
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
    // The rate is ten packets per millisecond, about 80 Mbit/s.
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

/// Measures the schemes one after the other in each round, and prints their medians.
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

/// Index, in the values of `measure`, of the time per ACK in `cong_control`. The next constants are the indices of the
/// other values.
const ACK: usize = 0;
const SEND: usize = 1;
const ALL: usize = 2;
const OPTION: usize = 3;
const OPTIONS: usize = 4;

/// Lower quartile, median and upper quartile of `values`.
fn quartiles(mut values: Vec<f64>) -> [f64; 3] {
    values.sort_by(f64::total_cmp);
    [1, 2, 3].map(|quarter| values[values.len() * quarter / 4])
}
