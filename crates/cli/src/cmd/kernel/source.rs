//! Sources of reports for `airpace kernel feed --from`.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use airpace_bpf::feed::GrantRecord;
use airpace_cc::ack_trace::{self, Reader};
use airpace_core::Time;
use airpace_feed::{Need, Radio};
use airpace_radio::RadioReport;
use airpace_radio::line::from_line;
use airpace_rt::clock;
use anyhow::{Context, anyhow, bail, ensure};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::cmd::wire::radio::{self, Changes};
use crate::terminal::say;

/// Maximum length of a line (bytes). A report of one carrier takes some hundred bytes.
const MAX_LINE: u64 = 1 << 20;

/// Maximum wait for a radio between checks of `stop`.
const LOOK: Duration = Duration::from_millis(20);

/// Function that replays an ACK trace and sends the radio values that it contains.
pub type PlayTrace<N> = fn(BufReader<File>, &AtomicBool, &Sender<N>) -> anyhow::Result<()>;

/// Reads reports, converts each with `meaning` and sends the results, until the reports end or `stop` is set.
pub fn read<N>(
    from: &str,
    need: Need,
    meaning: impl FnMut(&RadioReport) -> Option<N>,
    trace: Option<PlayTrace<N>>,
    stop: &AtomicBool,
    news: &Sender<N>,
) -> anyhow::Result<()> {
    ensure!(!from.is_empty(), "--from names nothing: give a socket, a modem's port, a radio, a file or `-`");
    if from == "-" {
        return reports(std::io::stdin().lock(), None, meaning, stop, news).context("standard input");
    }
    if radio::is_no_file(from) {
        // The error texts are those of `airpace send --radio`, which takes the same sources.
        let opened =
            radio::open(from).map_err(|error| anyhow!(format!("{error:#}").replace("--radio", "--from")))?;
        return listen(opened, need, meaning, stop, news);
    }
    let path = Path::new(from);
    if std::fs::metadata(path).is_ok_and(|found| found.file_type().is_socket()) {
        let stream = UnixStream::connect(path).with_context(|| format!("nobody tells at {from}"))?;
        // With a timeout, Ctrl-C takes effect while no report arrives.
        stream.set_read_timeout(Some(Duration::from_millis(200)))?;
        return reports(BufReader::new(stream), None, meaning, stop, news).with_context(|| from.to_owned());
    }
    let file = File::open(path).with_context(|| format!("cannot read {from}{}", hint(from)))?;
    let mut file = BufReader::new(file);
    let begins = file.fill_buf().with_context(|| format!("cannot read {from}"))?;
    if begins.starts_with(b"airpace-ack-trace") {
        let Some(trace) = trace else {
            bail!("{from}: an ACK trace has no reports of a phone's cell");
        };
        return trace(file, stop, news).with_context(|| from.to_owned());
    }
    reports(file, Some(Pace::default()), meaning, stop, news).with_context(|| from.to_owned())
}

/// Hint for a user who gave the kind of source instead of its path.
fn hint(from: &str) -> &'static str {
    match from {
        "diag" => {
            " (of a modem: its port, as /dev/ttyUSB0 or modem:tcp:HOST:PORT, or `od` for what `airpace diag serve` publishes)"
        }
        "emu" => " (of an emulator: $AIRPACE_MODEM_REPORTS or $AIRPACE_REPORTS, in a program that it runs)",
        "decode" => {
            " (of a recording or a radio that is decoded: cell.sigmf-meta,rnti=R or driver=rtlsdr,freq=806M,rnti=R)"
        }
        "trace" => " (of a trace: the file that `airpace sim --ack-trace` wrote)",
        _ => "",
    }
}

/// Converts reports of a modem, libOD, a decoder or another machine with `meaning`, and sends the results. Waits for a
/// lost source to return.
fn listen<N>(
    mut radio: Box<dyn Radio>,
    need: Need,
    mut meaning: impl FnMut(&RadioReport) -> Option<N>,
    stop: &AtomicBool,
    news: &Sender<N>,
) -> anyhow::Result<()> {
    let (heard, mut changes) = (radio.heard(), Changes::default());
    while !stop.load(Ordering::Relaxed) {
        let now = clock::now();
        radio.take(now, &mut |report| {
            if let Some(told) = meaning(&report) {
                let _ = news.send(told);
            }
        });
        if let Some(said) = changes.look(&heard, now, need) {
            say(format_args!("airpace: {said}"));
        }
        let account = heard.account(now, need);
        if account.is_over {
            let why = account.problem.unwrap_or_else(|| "it has ended".to_owned());
            ensure!(account.reports > 0, "{}: {why}", account.name);
            say(format_args!("airpace: {}", radio::summary(&heard, now, need)));
            return Ok(());
        }
        let span = radio.next().map_or(LOOK, |next| next - now).min(LOOK);
        let span = Timespec { tv_sec: 0, tv_nsec: span.as_nanos() as i64 };
        let waited = match radio.fd() {
            Some(fd) => poll(&mut [PollFd::from_borrowed_fd(fd, PollFlags::IN)], Some(&span)),
            None => poll(&mut [], Some(&span)),
        };
        // A signal interrupts the wait; the loop condition then checks `stop`.
        waited
            .map(drop)
            .or_else(|error| if error == rustix::io::Errno::INTR { Ok(()) } else { Err(error) })?;
    }
    Ok(())
}

/// Replays recorded reports at their original pace.
#[derive(Default)]
struct Pace {
    began: Option<(Instant, Time)>,
}

impl Pace {
    /// Waits until the replay reaches `time`, or `stop` is set.
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

/// Converts reports of a stream of lines with `meaning`, and sends the results.
fn reports<N>(
    mut lines: impl BufRead,
    mut pace: Option<Pace>,
    mut meaning: impl FnMut(&RadioReport) -> Option<N>,
    stop: &AtomicBool,
    news: &Sender<N>,
) -> anyhow::Result<()> {
    let (mut line, mut number) = (Vec::new(), 0);
    while !stop.load(Ordering::Relaxed) {
        match lines.by_ref().take(MAX_LINE).read_until(b'\n', &mut line) {
            Ok(0) => break,
            Ok(_) => {}
            // The received part of the line stays in `line`.
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
                // The receiver is gone only when the program ends.
                let _ = news.send(told);
            }
        }
        line.clear();
    }
    Ok(())
}

/// Maximum length of an ACK trace in bytes.
///
/// Chosen: enough for an hour of a fast flow.
const MAX_TRACE_BYTES: u64 = 256 << 20;

/// Sends the radio values of an ACK trace, at the trace's pace.
pub fn trace(file: BufReader<File>, stop: &AtomicBool, news: &Sender<GrantRecord>) -> anyhow::Result<()> {
    let text = airpace_files::text_at_most(file, MAX_TRACE_BYTES)?;
    let (_, entries) = Reader::new(&text)?;
    let (mut pace, mut is_known) = (Pace::default(), false);
    for entry in entries {
        let entry = entry?;
        let ack_trace::Told::Radio { bandwidth, burst, .. } = entry.told else { continue };
        pace.wait(entry.time, stop);
        if stop.load(Ordering::Relaxed) {
            return Ok(());
        }
        let _ = news.send(GrantRecord { bandwidth, burst, share: None });
        is_known = true;
    }
    ensure!(is_known, "the flow of this trace has no radio at its sender; record one that uploads");
    Ok(())
}
