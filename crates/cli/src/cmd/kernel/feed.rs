//! `airpace kernel feed`: writes radio reports to the kernel's congestion controls.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

use airpace_bpf::feed::{GrantRecord, now};
use airpace_bpf::feeder::{Feeder, PbeFeeder};
use airpace_bpf::feeding::{Device, FeedError, PERIOD, Phone, tell_all};
use airpace_bpf::kernel::{BISCAY, PBE, RELAY};
use airpace_bpf::recorded::{PlayTrace, trace};
use airpace_bpf::twin::pbe_receiver::Cell;
use airpace_cc::biscay::Tuning;
use airpace_cc::pbe;
use airpace_cc::scheme::Options;
use airpace_core::{Direction, Rate};
use airpace_feed::Need;
use airpace_radio::RadioReport;
use anyhow::anyhow;

use super::loaded::not_loaded;
use super::source::read;
use crate::called;
use crate::cmd::{Verdict, on_interrupt, thread};
use crate::terminal::{count, say};

/// Number of unusable reports, counted from the first report, after which the user is warned.
const USELESS: u64 = 100;

/// Opens a feeder.
///
/// # Errors
/// The scheme is not loaded, or cannot be fed.
fn opened<T>(feeder: Result<T, FeedError>) -> anyhow::Result<T> {
    feeder.map_err(|error| match error {
        FeedError::NotLoaded(name) => anyhow!(not_loaded(name)),
        FeedError::Taken(name) => {
            anyhow!("another {} already feeds {name}; stop it first", called::command("kernel feed"))
        }
        other => other.into(),
    })
}

/// Writes the state of the cell, and names devices without space for feedback.
fn tell_phone(phone: &mut Phone, cell: &Cell) -> anyhow::Result<()> {
    for (name, error) in phone.tell(cell)? {
        say(format_args!(
            "airpace: no space for feedback next to three SACK blocks at {name}: {error}; feed as root"
        ));
    }
    Ok(())
}

/// Feeds BISCAY, or its relay, with a constant bandwidth.
pub fn biscay_constant(name: &'static str, mbps: f64, out: &mut dyn Write) -> anyhow::Result<Verdict> {
    let mut device = opened(Device::open(name))?;
    let told = GrantRecord { bandwidth: Some(Rate::from_mbps(mbps)), burst: Rate::ZERO, share: None };
    constant(name, mbps, out, || Ok(device.tell(&told)?))
}

/// Feeds PBE-CC's senders with a constant capacity.
pub fn pbe_constant(mbps: f64, out: &mut dyn Write) -> anyhow::Result<Verdict> {
    let mut phone = opened(Phone::open())?;
    constant(PBE, mbps, out, || tell_phone(&mut phone, &Cell::constant(Rate::from_mbps(mbps), now())))
}

fn constant(
    name: &str,
    mbps: f64,
    out: &mut dyn Write,
    mut tell: impl FnMut() -> anyhow::Result<()>,
) -> anyhow::Result<Verdict> {
    let stop = on_interrupt()?;
    writeln!(out, "Feeding {name} with {mbps} Mbit/s; Ctrl-C stops it.")?;
    out.flush()?;
    while !stop.load(Ordering::Relaxed) {
        tell()?;
        std::thread::sleep(PERIOD);
    }
    Ok(Verdict::Fine)
}

/// Feeds BISCAY with the uplink data of reports from `from`, or of an ACK trace.
pub fn biscay(from: &str, out: &mut dyn Write) -> anyhow::Result<Verdict> {
    tell_biscay(BISCAY, Direction::Uplink, Some(trace), from, out)
}

/// Feeds BISCAY's relay with the downlink data of reports from `from`.
pub fn relay(from: &str, out: &mut dyn Write) -> anyhow::Result<Verdict> {
    tell_biscay(RELAY, Direction::Downlink, None, from, out)
}

fn tell_biscay(
    name: &'static str,
    direction: Direction,
    trace: Option<PlayTrace<GrantRecord>>,
    from: &str,
    out: &mut dyn Write,
) -> anyhow::Result<Verdict> {
    let mut device = opened(Device::open(name))?;
    let tuning = Tuning::read(&Options::defaults(&airpace_cc::biscay::SCHEME))?;
    let mut feeder = Feeder::new(direction, &tuning);
    let tell = |told: &GrantRecord, age| {
        let bandwidth = told.bandwidth.filter(|_| age <= tuning.stale_after);
        Ok(device.tell(&GrantRecord { bandwidth, ..*told })?)
    };
    run(from, Need::Own, move |report| feeder.report(report), trace, tell, out)
}

/// Feeds PBE-CC's senders with reports from `from`.
pub fn pbe(from: &str, out: &mut dyn Write) -> anyhow::Result<Verdict> {
    let mut phone = opened(Phone::open())?;
    let mut feeder = PbeFeeder::new(&pbe::Tuning::read(&Options::defaults(&pbe::SCHEME))?);
    // Averages are over the round-trip time that senders report to the kernel.
    let rtprop = Arc::new(AtomicU64::new(0));
    let told = Arc::clone(&rtprop);
    let mut all = 0;
    let meaning = move |report: &RadioReport| {
        let nanos = told.load(Ordering::Relaxed);
        if nanos != 0 {
            feeder.set_rtprop(Duration::from_nanos(nanos));
        }
        let cell = feeder.report(report, now());
        all += 1;
        // Single reports at the start may be incomplete; therefore warn only if all of them are unusable.
        if all == USELESS && feeder.refused() == all {
            say(format_args!(
                "airpace: the first {USELESS} reports do not contain the grants of the cell's other users, \
                 as a decoder's do; PBE-CC needs them, so its flows use BBR. BISCAY needs only this phone's \
                 grants."
            ));
        }
        Some(cell)
    };
    let tell = |cell: &Cell, _| {
        let nanos = phone.rtprop().map_or(0, |rtprop| rtprop.as_nanos() as u64);
        rtprop.store(nanos, Ordering::Relaxed);
        tell_phone(&mut phone, cell)
    };
    run(from, Need::Everyone, meaning, None, tell, out)
}

/// Reads reports, converts each with `meaning`, and passes the result and its age to `tell`, which feeds the scheme.
fn run<N: Send + 'static>(
    from: &str,
    need: Need,
    meaning: impl FnMut(&RadioReport) -> Option<N> + Send + 'static,
    trace: Option<PlayTrace<N>>,
    tell: impl FnMut(&N, Duration) -> anyhow::Result<()>,
    out: &mut dyn Write,
) -> anyhow::Result<Verdict> {
    let stop = on_interrupt()?;
    let (from, over) = (from.to_owned(), Arc::clone(&stop));
    let (send, receive) = channel();
    // A separate thread reads: reports may pause for a while, but the kernel needs regular updates as a sign of life.
    let reader = thread("reports", move || read(&from, need, meaning, trace, &over, &send))?;
    let told = tell_all(&receive, tell);
    stop.store(told.is_err() || stop.load(Ordering::Relaxed), Ordering::Relaxed);
    let read = reader.join().map_err(|_| anyhow!("the reader of reports failed"))?;
    let told = told?;
    read?;
    let were = if told == 1 { "was" } else { "were" };
    writeln!(out, "{} {were} sent to the kernel.", count(told, "report"))?;
    Ok(Verdict::Fine)
}
