//! Sources of reports for `airpace kernel feed --from`.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::time::Duration;

use airpace_bpf::recorded::{Pace, PlayTrace, reports};
use airpace_feed::{Need, Radio};
use airpace_radio::RadioReport;
use airpace_rt::clock;
use anyhow::{Context, anyhow, bail, ensure};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::called;
use crate::cmd::wire::radio::{self, Changes};
use crate::explain::explained;
use crate::terminal::say;

/// Maximum wait for a radio between checks of `stop`.
const LOOK: Duration = Duration::from_millis(20);

/// Reads reports, converts each with `meaning` and sends the results, until the reports end or `stop` is set.
pub fn read<N>(
    from: &str,
    need: Need,
    meaning: impl FnMut(&RadioReport) -> Option<N>,
    trace: Option<PlayTrace<N>>,
    stop: &AtomicBool,
    news: &Sender<N>,
) -> anyhow::Result<()> {
    ensure!(!from.is_empty(), "--from is empty: give a socket, a modem's port, a radio, a file or `-`");
    if from == "-" {
        return reports(std::io::stdin().lock(), None, meaning, stop, news).context("standard input");
    }
    if radio::is_no_file(from) {
        // The error texts are those of `airpace send --radio`, which takes the same sources.
        let opened = radio::open(from)
            .map_err(|error| anyhow!(explained(error.as_ref()).replace("--radio", "--from")))?;
        return listen(opened, need, meaning, stop, news);
    }
    let path = Path::new(from);
    if std::fs::metadata(path).is_ok_and(|found| found.file_type().is_socket()) {
        let stream =
            UnixStream::connect(path).with_context(|| format!("no program sends reports at {from}"))?;
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
fn hint(from: &str) -> String {
    match from {
        "diag" => {
            let serve = called::command("diag serve");
            format!(
                " (of a modem: its port, as /dev/ttyUSB0 or modem:tcp:HOST:PORT, or `od` for what {serve} publishes)"
            )
        }
        "emu" => " (of an emulator: $AIRPACE_MODEM_REPORTS or $AIRPACE_REPORTS, in a program that it runs)".to_owned(),
        "decode" => {
            " (of a recording or a radio that is decoded: cell.sigmf-meta,rnti=R or driver=rtlsdr,freq=806M,rnti=R)".to_owned()
        }
        "trace" => format!(" (of a trace: the file that {} wrote)", called::command("sim --ack-trace")),
        _ => String::new(),
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
        let span = radio.poll_timeout().map_or(LOOK, |next| next - now).min(LOOK);
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
