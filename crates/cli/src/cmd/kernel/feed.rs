//! `airpace kernel feed`: what a radio says, into the kernel.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use airpace_bpf::feed::{Feed, Feedbacks, Told};
use airpace_bpf::feeder::{Feeder, PbeFeeder};
use airpace_bpf::kernel::{BISCAY, PBE, Pinned, RELAY};
use airpace_cc::ack_trace::{self, Reader};
use airpace_cc::biscay::Tuning;
use airpace_cc::pbe;
use airpace_cc::pbe::feedback::Feedback;
use airpace_cc::scheme::Options;
use airpace_core::{Direction, Rate, Time};
use airpace_radio::RadioReport;
use airpace_radio::line::from_line;
use anyhow::{Context, anyhow, bail, ensure};

use crate::cmd::{Verdict, on_interrupt};

/// How often the feed is written if nothing new comes.
///
/// Chosen: as often as a radio reports.
const PERIOD: Duration = Duration::from_millis(1);

/// The longest line that is read: a report of a carrier takes some hundred bytes.
const LONGEST_LINE: u64 = 1 << 20;

/// After this time without a report, senders hear that PBE-CC's telemetry is not fresh.
///
/// Chosen: as PBE-CC's receiver on a short path.
const PBE_STALE: Duration = Duration::from_millis(50);

fn pinned(name: &'static str) -> anyhow::Result<Pinned> {
    let pinned = Pinned::open(name)?;
    pinned.with_context(|| format!("{name} is not loaded; `airpace kernel load {name}` does it"))
}

const NO_ARRAY: &str = "what is loaded has no array for a feeder; unload it and load it again";
const NOT_MAPPED: &str = "the kernel does not map its array; feed as root";

/// The array of BISCAY, or of its relay.
fn open_biscay(name: &'static str) -> anyhow::Result<Feed> {
    pinned(name)?.feed().context(NOT_MAPPED)?.context(NO_ARRAY)
}

fn open_pbe() -> anyhow::Result<Feedbacks> {
    pinned(PBE)?.feedbacks().context(NOT_MAPPED)?.context(NO_ARRAY)
}

/// Tells BISCAY, or its relay, this bandwidth.
pub fn biscay_constant(name: &'static str, mbps: f64, out: &mut dyn Write) -> anyhow::Result<Verdict> {
    let mut feed = open_biscay(name)?;
    let told = Told { bandwidth: Some(Rate::from_mbps(mbps)), burst: Rate::ZERO, share: None };
    constant(name, mbps, out, || feed.tell(&told))
}

/// Tells PBE-CC's senders this capacity.
pub fn pbe_constant(mbps: f64, out: &mut dyn Write) -> anyhow::Result<Verdict> {
    let mut feed = open_pbe()?;
    let rate = Some(Rate::from_mbps(mbps));
    let told = Feedback { fresh: true, carriers: 1, capacity: rate, fair_share: rate, ..Feedback::default() };
    constant(PBE, mbps, out, || feed.tell(&told))
}

fn constant(name: &str, mbps: f64, out: &mut dyn Write, mut tell: impl FnMut()) -> anyhow::Result<Verdict> {
    let stop = on_interrupt()?;
    writeln!(out, "Telling {name} {mbps} Mbit/s; Ctrl-C ends it.")?;
    out.flush()?;
    while !stop.load(Ordering::Relaxed) {
        tell();
        std::thread::sleep(PERIOD);
    }
    Ok(Verdict::Fine)
}

/// Tells BISCAY what the reports of `from`, or the radio of a trace, say of the uplink.
pub fn biscay(from: &Path, out: &mut dyn Write) -> anyhow::Result<Verdict> {
    say(biscay_from(open_biscay(BISCAY)?, Direction::Uplink, from, &on_interrupt()?)?, out)
}

/// Tells its relay what the reports of `from` say of the downlink.
pub fn relay(from: &Path, out: &mut dyn Write) -> anyhow::Result<Verdict> {
    say(biscay_from(open_biscay(RELAY)?, Direction::Downlink, from, &on_interrupt()?)?, out)
}

/// Tells PBE-CC's senders what the reports of `from` say.
pub fn pbe(from: &Path, out: &mut dyn Write) -> anyhow::Result<Verdict> {
    say(pbe_from(open_pbe()?, from, &on_interrupt()?)?, out)
}

fn say(told: u64, out: &mut dyn Write) -> anyhow::Result<Verdict> {
    writeln!(out, "{told} reports were told.")?;
    Ok(Verdict::Fine)
}

/// Tells BISCAY, or its relay, of a direction through its array, until the input ends or `stop` is set. Returns the number of
/// reports.
///
/// # Errors
/// An input that cannot be read, or that says nothing that BISCAY uses.
pub fn biscay_from(
    mut feed: Feed,
    direction: Direction,
    from: &Path,
    stop: &Arc<AtomicBool>,
) -> anyhow::Result<u64> {
    // The radio of a trace is that of a sender.
    let trace = (direction == Direction::Uplink).then_some(trace as PlayTrace<Told>);
    let tuning = Tuning::read(&Options::defaults(&airpace_cc::biscay::SCHEME))?;
    let mut feeder = Feeder::new(direction, &tuning);
    let tell = |told: &Told, age| {
        let bandwidth = told.bandwidth.filter(|_| age <= tuning.stale_after);
        feed.tell(&Told { bandwidth, ..*told });
    };
    run(from, move |report| feeder.report(report), trace, tell, stop)
}

/// Tells PBE-CC's senders through their array, as [`biscay_from`] does.
///
/// # Errors
/// An input that cannot be read.
pub fn pbe_from(mut feed: Feedbacks, from: &Path, stop: &Arc<AtomicBool>) -> anyhow::Result<u64> {
    let mut feeder = PbeFeeder::new(&pbe::Tuning::read(&Options::defaults(&pbe::SCHEME))?);
    let tell = |told: &Feedback, age| feed.tell(&Feedback { fresh: told.fresh && age <= PBE_STALE, ..*told });
    run(from, move |report| feeder.report(report), None, tell, stop)
}

/// Plays an ACK trace and sends what its radio told.
type PlayTrace<N> = fn(BufReader<File>, &AtomicBool, &Sender<N>) -> anyhow::Result<()>;

/// Reads reports, and tells what each means; `tell` also takes how old that is. Returns the number of reports.
fn run<N: Send + 'static>(
    from: &Path,
    meaning: impl FnMut(&RadioReport) -> Option<N> + Send + 'static,
    trace: Option<PlayTrace<N>>,
    tell: impl FnMut(&N, Duration),
    stop: &Arc<AtomicBool>,
) -> anyhow::Result<u64> {
    let (from, over) = (from.to_owned(), Arc::clone(stop));
    let (send, receive) = channel();
    // A thread of its own: what it reads may not come for a while, and the kernel wants to hear that somebody is there.
    let reader = std::thread::spawn(move || read(&from, meaning, trace, &over, &send));
    let told = tell_all(&receive, tell);
    reader.join().map_err(|_| anyhow!("the reader of reports failed"))??;
    Ok(told)
}

/// Tells what comes, and the last news again every millisecond. Returns the number of reports.
fn tell_all<N>(news: &Receiver<N>, mut tell: impl FnMut(&N, Duration)) -> u64 {
    let (mut last, mut told): (Option<(N, Instant)>, _) = (None, 0);
    loop {
        match news.recv_timeout(PERIOD) {
            Ok(news) => {
                last = Some((news, Instant::now()));
                told += 1;
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return told,
        }
        if let Some((told, at)) = &last {
            tell(told, at.elapsed());
        }
    }
}

/// Reads reports and sends what they mean, until they end or `stop` is set.
fn read<N>(
    from: &Path,
    meaning: impl FnMut(&RadioReport) -> Option<N>,
    trace: Option<PlayTrace<N>>,
    stop: &AtomicBool,
    news: &Sender<N>,
) -> anyhow::Result<()> {
    if from.as_os_str() == "-" {
        return reports(std::io::stdin().lock(), None, meaning, stop, news);
    }
    if std::fs::metadata(from).is_ok_and(|found| found.file_type().is_socket()) {
        let stream =
            UnixStream::connect(from).with_context(|| format!("nobody tells at {}", from.display()))?;
        // So that Ctrl-C is seen while nothing comes.
        stream.set_read_timeout(Some(Duration::from_millis(200)))?;
        return reports(BufReader::new(stream), None, meaning, stop, news);
    }
    let file = File::open(from).with_context(|| format!("cannot read {}", from.display()))?;
    let mut file = BufReader::new(file);
    if file.fill_buf()?.starts_with(b"airpace-ack-trace") {
        let Some(trace) = trace else {
            bail!("{}: an ACK trace has no reports of a phone's cell", from.display());
        };
        return trace(file, stop, news).with_context(|| from.display().to_string());
    }
    reports(file, Some(Pace::default()), meaning, stop, news)
}

/// Plays what was recorded at its own pace.
#[derive(Default)]
struct Pace {
    began: Option<(Instant, Time)>,
}

impl Pace {
    /// Waits until `time` has come, or `stop` is set.
    fn wait(&mut self, time: Time, stop: &AtomicBool) {
        let (began, first) = *self.began.get_or_insert((Instant::now(), time));
        while let Some(left) = (time - first).checked_sub(began.elapsed()).filter(|left| !left.is_zero()) {
            if stop.load(Ordering::Relaxed) {
                return;
            }
            std::thread::sleep(left.min(Duration::from_millis(200)));
        }
    }
}

/// Sends what the reports of a stream mean.
fn reports<N>(
    mut lines: impl BufRead,
    mut pace: Option<Pace>,
    mut meaning: impl FnMut(&RadioReport) -> Option<N>,
    stop: &AtomicBool,
    news: &Sender<N>,
) -> anyhow::Result<()> {
    let (mut line, mut number) = (Vec::new(), 0);
    while !stop.load(Ordering::Relaxed) {
        match lines.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line) {
            Ok(0) => break,
            Ok(_) => {}
            // What has come of a line stays in `line`.
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => continue,
            Err(error) => return Err(error.into()),
        }
        number += 1;
        let text = String::from_utf8_lossy(&line);
        let read = from_line(text.trim_end()).map_err(|error| anyhow!("line {number}: {error}"))?;
        for report in &read {
            if let Some(pace) = &mut pace {
                pace.wait(report.time, stop);
            }
            if let Some(told) = meaning(report) {
                // Nobody listens any more only when the program ends.
                let _ = news.send(told);
            }
        }
        line.clear();
    }
    Ok(())
}

/// Sends what the radio of an ACK trace told.
fn trace(mut file: BufReader<File>, stop: &AtomicBool, news: &Sender<Told>) -> anyhow::Result<()> {
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    let (_, entries) = Reader::new(&text)?;
    let (mut pace, mut is_known) = (Pace::default(), false);
    for entry in entries {
        let entry = entry?;
        let ack_trace::Told::Radio { bandwidth, burst, .. } = entry.told else { continue };
        pace.wait(entry.time, stop);
        if stop.load(Ordering::Relaxed) {
            return Ok(());
        }
        let _ = news.send(Told { bandwidth, burst, share: None });
        is_known = true;
    }
    ensure!(is_known, "the flow of this trace has no radio at its sender; record one that uploads");
    Ok(())
}
