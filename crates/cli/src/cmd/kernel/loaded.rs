//! `airpace kernel` in a build that can load programs.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use airpace_bpf::feed::{Feed, MAX_AGE, Told};
use airpace_bpf::feeder::Feeder;
use airpace_bpf::kernel::{BISCAY, Kernel, MORC, Part, Pinned, SCHEMES, unload as remove};
use airpace_bpf::twin::KernelTuning;
use airpace_bpf::twin::morc::MorcTuning;
use airpace_cc::SchemeSpec;
use airpace_cc::ack_trace::{self, Reader};
use airpace_cc::biscay::Tuning;
use airpace_cc::scheme::Options;
use airpace_core::{Rate, Time};
use airpace_radio::line::from_line;
use anyhow::{Context, anyhow, bail, ensure};
use serde_json::json;

use super::Standard;
use super::run::Groups;
use crate::cmd::{Verdict, on_interrupt};

/// How often the feed is written if nothing new comes.
///
/// Chosen: as often as a radio reports.
const PERIOD: Duration = Duration::from_millis(1);

/// The longest line that is read: a report of a carrier takes some hundred bytes.
const LONGEST_LINE: u64 = 1 << 20;

pub fn load(
    scheme: &SchemeSpec,
    standard: Option<Standard<'_>>,
    out: &mut dyn Write,
) -> anyhow::Result<Verdict> {
    let part = part(scheme)?;
    let name = part.name();
    if Pinned::open(name)?.is_some() {
        bail!("`{name}` is loaded already; `airpace kernel unload {name}` removes it");
    }
    let namespace = standard.map(find).transpose()?.flatten();
    let mut kernel = Kernel::load(&part)?;
    let counts = (name == BISCAY).then(|| count(&mut kernel));
    kernel.pin()?;
    writeln!(out, "{name} is loaded: sockets choose it by TCP_CONGESTION, as in `iperf3 -C {name}`.")?;
    match counts {
        Some(Ok(())) => writeln!(out, "It shares with all flows that this machine sends, TCP and UDP.")?,
        Some(Err(error)) => {
            writeln!(out, "It shares with its own flows only; others are not counted: {error:#}")?;
        }
        None => {}
    }
    if name == BISCAY {
        writeln!(out, "Feed it with `airpace kernel feed`; until then its flows are BBR's.")?;
    }
    if standard.is_some() {
        if let Some(namespace) = &namespace {
            let network = Some(rustix::thread::LinkNameSpaceType::Network);
            rustix::thread::move_into_link_name_space(namespace.as_fd(), network)
                .context("cannot enter the network namespace; do it as root")?;
        }
        set_default(name)?;
        writeln!(
            out,
            "It is the default of new TCP sockets there; `airpace kernel unload {name}` does not undo that:"
        )?;
        writeln!(out, "sysctl net.ipv4.tcp_congestion_control=NAME does.")?;
    }
    Ok(Verdict::Fine)
}

/// Counts the flows of the whole machine, or of the container that this runs in.
fn count(kernel: &mut Kernel) -> anyhow::Result<()> {
    let groups = Groups::see()?;
    let root = File::open(groups.root()).with_context(|| groups.root().display().to_string())?;
    Ok(kernel.count_flows(root.as_fd())?)
}

/// The default of a network namespace.
const DEFAULT: &str = "net/ipv4/tcp_congestion_control";

/// The network namespace whose default is meant; `None` for that of this program.
fn find(place: Standard<'_>) -> anyhow::Result<Option<File>> {
    let Standard::Namespace(name) = place else { return Ok(None) };
    ensure!(!name.contains('/') && !name.is_empty(), "`{name}` is no name of a network namespace");
    let path = Path::new("/run/netns").join(name);
    let opened = File::open(&path).map(Some);
    opened.map_err(|error| {
        anyhow!("no network namespace `{name}` ({}: {error}); `ip netns` lists them", path.display())
    })
}

/// Whether new sockets of this program's network namespace get this scheme.
fn is_default(name: &str) -> bool {
    std::fs::read_to_string(Path::new("/proc/sys").join(DEFAULT)).is_ok_and(|text| text.trim() == name)
}

fn set_default(name: &str) -> anyhow::Result<()> {
    airpace_files::set_kernel(DEFAULT, name)
        .with_context(|| format!("/proc/sys/{DEFAULT} does not take `{name}`; do it as root"))
}

/// The kernel's part of a scheme.
fn part(scheme: &SchemeSpec) -> anyhow::Result<Part> {
    let (name, options) = (scheme.scheme().name, scheme.options());
    let part = match name {
        BISCAY => KernelTuning::new(&Tuning::read(options)?).map(Part::Biscay),
        MORC if options.text("learner") == "ahead" => {
            MorcTuning::new(&airpace_cc::morc::profile(options)?).map(Part::Morc)
        }
        MORC => bail!("{}: the kernel's part has the learner `ahead` only", scheme.text()),
        _ => bail!("the kernel's part of `{name}` is not written: load `{}`", SCHEMES.join("` or `")),
    };
    part.map_err(|error| anyhow!("{}: {error}", scheme.text()))
}

pub fn unload(scheme: Option<&str>, out: &mut dyn Write) -> anyhow::Result<Verdict> {
    let mut is_any = false;
    for name in SCHEMES.into_iter().filter(|name| scheme.is_none_or(|scheme| scheme == *name)) {
        if remove(name)? {
            writeln!(out, "{name} is removed. Flows that use it keep it until they end.")?;
            if is_default(name) {
                writeln!(
                    out,
                    "It is still the default of new TCP sockets here, and lives until that is changed:"
                )?;
                writeln!(out, "sysctl net.ipv4.tcp_congestion_control=NAME")?;
            }
            is_any = true;
        }
    }
    if !is_any {
        writeln!(out, "Nothing is loaded.")?;
    }
    Ok(Verdict::Fine)
}

pub fn status(as_json: bool, out: &mut dyn Write) -> anyhow::Result<Verdict> {
    let mut schemes = vec![];
    for name in SCHEMES {
        let Some(pinned) = Pinned::open(name)? else { continue };
        let (totals, feed) = (pinned.totals()?, pinned.feed()?);
        let active = pinned.active_flows()?;
        let told = feed.as_ref().and_then(Feed::read);
        let mbps = told.and_then(|(told, _)| told.bandwidth).map(Rate::as_mbps);
        let age_ms = told.map(|(_, age)| age.as_secs_f64() * 1e3);
        if as_json {
            let totals = json!({
                "flows": totals.flows,
                "acks": totals.acks,
                "sends": totals.sends,
                "fallbacks": totals.fallbacks,
                "silences": totals.silences,
                "returns": totals.returns,
            });
            let told = feed.map(|_| json!({ "mbps": mbps, "age_ms": age_ms }));
            schemes.push(
                json!({ "scheme": name, "totals": totals, "feed": told, "active_flows_of_machine": active }),
            );
            continue;
        }
        writeln!(out, "Loaded:    {name}")?;
        writeln!(out, "Flows:     {} so far, {} ACKs", totals.flows, totals.acks)?;
        schemes.push(json!(name));
        if feed.is_none() {
            continue;
        }
        let feed = match (mbps, age_ms) {
            (_, None) => "nothing was told yet".to_owned(),
            (None, Some(age)) => format!("bandwidth unknown, told {age:.0} ms ago"),
            (Some(mbps), Some(age)) => format!("{mbps:.2} Mbit/s, told {age:.0} ms ago"),
        };
        match active {
            Some(active) => writeln!(out, "Sharing:   {active} flows of this machine send now")?,
            None => writeln!(out, "Sharing:   only its own flows are counted")?,
        }
        let is_old = age_ms.is_none_or(|age| age > MAX_AGE.as_secs_f64() * 1e3);
        writeln!(out, "Feed:      {feed}{}", if is_old { "; flows are BBR's" } else { "" })?;
        let (fallbacks, silences, returns) = (totals.fallbacks, totals.silences, totals.returns);
        writeln!(
            out,
            "FALLBACK:  {fallbacks} times, {silences} of them for want of a feed; {returns} returns"
        )?;
    }
    if as_json {
        writeln!(out, "{}", json!({ "loaded": schemes }))?;
    } else if schemes.is_empty() {
        writeln!(out, "Nothing is loaded; `airpace kernel load` does it.")?;
    }
    Ok(Verdict::Fine)
}

fn open() -> anyhow::Result<Feed> {
    let pinned = Pinned::open(BISCAY)?;
    let pinned = pinned.with_context(|| format!("{BISCAY} is not loaded; `airpace kernel load` does it"))?;
    let feed = pinned.feed().context("the kernel does not map its array; feed as root")?;
    feed.context("what is loaded has no array for a feeder; unload it and load it again")
}

pub fn feed_constant(mbps: f64, out: &mut dyn Write) -> anyhow::Result<Verdict> {
    let mut feed = open()?;
    let stop = on_interrupt()?;
    writeln!(out, "Telling {BISCAY} {mbps} Mbit/s; Ctrl-C ends it.")?;
    out.flush()?;
    let told = Told { bandwidth: Some(Rate::from_mbps(mbps)), burst: Rate::ZERO, share: None };
    while !stop.load(Ordering::Relaxed) {
        feed.tell(&told);
        std::thread::sleep(PERIOD);
    }
    Ok(Verdict::Fine)
}

pub fn feed(from: &Path, out: &mut dyn Write) -> anyhow::Result<Verdict> {
    let mut feed = open()?;
    let stop = on_interrupt()?;
    let tuning = Tuning::read(&Options::defaults(&airpace_cc::biscay::SCHEME))?;
    let (from, over) = (from.to_owned(), Arc::clone(&stop));
    let (send, receive) = channel();
    // A thread of its own: what it reads may not come for a while, and the kernel wants to hear that somebody is there.
    let reader = std::thread::spawn(move || read(&from, &tuning, &over, &send));
    let told = tell(&mut feed, &receive, tuning.stale_after);
    reader.join().map_err(|_| anyhow!("the reader of reports failed"))??;
    writeln!(out, "{told} reports were told.")?;
    Ok(Verdict::Fine)
}

/// Tells what comes, and the last news again every millisecond, until `stale_after` has passed without news: then the
/// bandwidth is unknown. Returns the number of reports.
fn tell(feed: &mut Feed, news: &Receiver<Told>, stale_after: Duration) -> u64 {
    let (mut last, mut told): (Option<(Told, Instant)>, _) = (None, 0);
    loop {
        match news.recv_timeout(PERIOD) {
            Ok(news) => {
                last = Some((news, Instant::now()));
                told += 1;
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return told,
        }
        if let Some((told, at)) = last {
            let bandwidth = told.bandwidth.filter(|_| at.elapsed() <= stale_after);
            feed.tell(&Told { bandwidth, ..told });
        }
    }
}

/// Reads reports and sends what they mean, until they end or `stop` is set.
fn read(from: &Path, tuning: &Tuning, stop: &AtomicBool, news: &Sender<Told>) -> anyhow::Result<()> {
    if from.as_os_str() == "-" {
        return reports(std::io::stdin().lock(), None, tuning, stop, news);
    }
    if std::fs::metadata(from).is_ok_and(|found| found.file_type().is_socket()) {
        let stream =
            UnixStream::connect(from).with_context(|| format!("nobody tells at {}", from.display()))?;
        // So that Ctrl-C is seen while nothing comes.
        stream.set_read_timeout(Some(Duration::from_millis(200)))?;
        return reports(BufReader::new(stream), None, tuning, stop, news);
    }
    let file = File::open(from).with_context(|| format!("cannot read {}", from.display()))?;
    let mut file = BufReader::new(file);
    if file.fill_buf()?.starts_with(b"airpace-ack-trace") {
        return trace(file, stop, news).with_context(|| from.display().to_string());
    }
    reports(file, Some(Pace::default()), tuning, stop, news)
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
fn reports(
    mut lines: impl BufRead,
    mut pace: Option<Pace>,
    tuning: &Tuning,
    stop: &AtomicBool,
    news: &Sender<Told>,
) -> anyhow::Result<()> {
    let mut feeder = Feeder::new(tuning);
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
            if let Some(told) = feeder.report(report) {
                // Nobody listens any more only when the program ends.
                let _ = news.send(told);
            }
        }
        line.clear();
    }
    Ok(())
}

/// Sends what the radio of an ACK trace told.
fn trace(mut file: impl BufRead, stop: &AtomicBool, news: &Sender<Told>) -> anyhow::Result<()> {
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
