//! `airpace diag watch`: shows KPIs live.

mod view;

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use airpace_diag::Stamp;
use airpace_modem::watch::{Feed, Seen, WatchError};
use anyhow::{Context, anyhow, bail};
use od::clock::now_ns;
use serde_json::json;

use super::port::{ListenArgs, PORTS, PortArgs, parse_duration, subscription};
use crate::called;
use crate::cmd::{NothingFound, Verdict, complete};
use crate::terminal::say;
use view::View;

/// Default KPIs.
const USUAL: &[&str] = &[
    "lte.rsrp",
    "lte.rsrq",
    "lte.snr",
    "lte.cqi",
    "lte.ri",
    "lte.dl.prb",
    "lte.dl.mcs",
    "lte.dl.tb_bytes",
    "lte.dl.bler",
    "lte.dl.bytes",
    "lte.ul.prb",
    "lte.ul.tb_bytes",
    "lte.ul.bytes",
    "lte.ul.tx_power",
    "lte.pci",
    "lte.earfcn",
    "nr.rsrp",
];

/// Interval between updates of the terminal.
///
/// Chosen: the fastest changes that eyes can follow.
const DRAW_EVERY: Duration = Duration::from_millis(100);

/// Shows KPIs live: as an updated table on a terminal, otherwise as a line per sample.
///
/// If a port is given, the command opens its own session and requests only these KPIs from the modem. The modem's settings
/// are restored at the end, also after a crash. If --od is given, samples are read from a running daemon; of several samples
/// that arrive at the same time, only the last is shown.
#[derive(clap::Args)]
#[command(
    before_help = "Example: airpace diag watch --port /dev/ttyUSB2\n         airpace diag watch --od --kpi lte.rsrp,lte.dl.tb_bytes --json",
    group = clap::ArgGroup::new("source").args(PORTS).arg("od").required(true)
)]
pub struct Args {
    #[command(flatten)]
    port: PortArgs,
    /// Reads from the daemon with this folder [default: $OD_DIR, else /run/airpace for root, else $XDG_RUNTIME_DIR/airpace].
    #[arg(long, value_name = "DIR", num_args = 0..=1)]
    od: Option<Option<PathBuf>>,
    /// KPIs, such as lte.rsrp, lte.dl.bytes@2 or 0xB173:records.num_rbs [default: a selection of common KPIs].
    #[arg(long, value_name = "LIST", value_delimiter = ',', add = complete::kpi())]
    kpi: Vec<String>,
    /// Waits for a port that does not exist yet.
    ///
    /// Without this option, a missing port is an error. A port that disappears later is waited for in any case.
    #[arg(long, conflicts_with = "od")]
    wait: bool,
    /// Stops after this time, such as 10s; exits with 1 if no sample was received.
    #[arg(long = "for", value_name = "TIME", value_parser = parse_duration)]
    span: Option<Duration>,
    #[command(flatten)]
    listen: ListenArgs,
    /// Prints one JSON object per sample.
    #[arg(long)]
    json: bool,
}

/// Shows KPIs until it is stopped.
pub fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<Verdict> {
    let kpis = if args.kpi.is_empty() {
        USUAL.iter().map(|name| (*name).to_owned()).collect()
    } else {
        args.kpi.clone()
    };
    let shows_table = !args.json && std::io::stdout().is_terminal();
    let mut feed = match args.port.source() {
        Some(source) => Feed::open_session(args.listen.options(source, &kpis, None)?, args.wait)?,
        None => {
            subscription(&kpis)?;
            Feed::open_daemon(args.od.clone().flatten().as_deref(), &kpis)?
        }
    };
    let is_over = Arc::new(AtomicBool::new(false));
    let over = Arc::clone(&is_over);
    ctrlc::set_handler(move || {
        if over.swap(true, Ordering::Relaxed) {
            // The guard restores the modem.
            std::process::exit(2);
        }
    })
    .context("cannot listen to signals")?;
    let end = args.span.map(|span| Instant::now() + span);
    let goes_on = || !is_over.load(Ordering::Relaxed) && end.is_none_or(|end| Instant::now() < end);
    let outcome = if shows_table {
        show_table(&mut feed, out, goes_on)
    } else {
        print_lines(&mut feed, out, args.json, goes_on)
    };
    // The modem is restored in every case, also after an error.
    let closed = feed.close();
    let samples = outcome.and_then(|samples| Ok(closed.map(|()| samples)?))?;
    if samples == 0 && args.span.is_some() {
        bail!(NothingFound("no sample arrived within the time of --for".to_owned()));
    }
    Ok(Verdict::Fine)
}

/// The error of a feed, with the options that help.
fn told(error: WatchError) -> anyhow::Error {
    match error {
        WatchError::NotOpened { .. } => anyhow!(
            "{error}; {} lists the serial ports of modems, and --wait waits for a port that does not exist yet",
            called::command("doctor")
        ),
        other => other.into(),
    }
}

/// Prints samples live. Returns their number.
fn print_lines(
    feed: &mut Feed,
    out: &mut dyn Write,
    json: bool,
    goes_on: impl Fn() -> bool,
) -> anyhow::Result<u64> {
    let began = now_ns();
    let mut seen = vec![];
    let mut samples = 0;
    while goes_on() {
        feed.wait(DRAW_EVERY, &mut seen)?;
        for notice in feed.notices().map_err(told)? {
            say(notice);
        }
        samples += seen.len() as u64;
        for seen in seen.drain(..) {
            let (name, unit) = feed.name(seen.kpi);
            if json {
                writeln!(out, "{}", as_json(name, unit, &seen))?;
            } else {
                let seconds = seen.arrival_ns.saturating_sub(began) as f64 * 1e-9;
                let carrier =
                    if seen.carrier > 0 { format!("  carrier {}", seen.carrier) } else { String::new() };
                writeln!(
                    out,
                    "{}",
                    format!("{seconds:10.4} s  {name} {} {unit}{carrier}", seen.value).trim_end()
                )?;
            }
        }
        out.flush()?;
    }
    Ok(samples)
}

fn as_json(name: &str, unit: &str, seen: &Seen) -> serde_json::Value {
    let stamp = (seen.modem_ns > 0).then(|| Stamp::from_nanos(seen.modem_ns).to_string());
    json!({
        "kpi": name,
        "value": seen.value,
        "unit": unit,
        "time_utc": stamp,
        "radio": seen.radio,
        "carrier": seen.carrier,
        "subframe": seen.subframe,
        // Readings of secondary carriers are not in the shared-memory region, and have no sequence number.
        "sequence": (seen.sequence > 0).then_some(seen.sequence),
        "arrival_ns": seen.arrival_ns,
    })
}

/// Shows samples live in a table. Returns their number.
fn show_table(feed: &mut Feed, out: &mut dyn Write, goes_on: impl Fn() -> bool) -> anyhow::Result<u64> {
    let mut view = View::new(feed.title(), feed.names());
    // The screen opens at the first drawing, so that the terminal stays unchanged if the port is refused at once.
    let mut screen = Screen::closed(out);
    let (mut seen, mut draw_at) = (vec![], Instant::now() + DRAW_EVERY);
    let mut samples = 0;
    while goes_on() {
        feed.wait(draw_at.saturating_duration_since(Instant::now()), &mut seen)?;
        for notice in feed.notices().map_err(told)? {
            view.note(notice);
        }
        samples += seen.len() as u64;
        seen.drain(..).for_each(|seen| view.push(&seen));
        if Instant::now() >= draw_at {
            draw_at = Instant::now() + DRAW_EVERY;
            screen.draw(&view.render(now_ns(), screen.size()))?;
        }
    }
    Ok(samples)
}

/// The terminal's alternate screen. The first drawing opens it. Dropping the value restores the normal screen.
struct Screen<'a> {
    out: &'a mut dyn Write,
    is_open: bool,
}

impl<'a> Screen<'a> {
    fn closed(out: &'a mut dyn Write) -> Screen<'a> {
        Screen { out, is_open: false }
    }

    /// Columns and rows of the terminal; 80 × 24 if the terminal does not report them.
    fn size(&self) -> (usize, usize) {
        let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok();
        let size = size.map(|size| (usize::from(size.ws_col), usize::from(size.ws_row)));
        size.filter(|(columns, rows)| *columns > 0 && *rows > 0).unwrap_or((80, 24))
    }

    /// Draws the lines over the previous ones.
    fn draw(&mut self, lines: &[String]) -> anyhow::Result<()> {
        if !self.is_open {
            self.is_open = true;
            write!(self.out, "\x1b[?1049h\x1b[?25l")?;
        }
        write!(self.out, "\x1b[H")?;
        for (at, line) in lines.iter().enumerate() {
            write!(self.out, "{}{line}\x1b[K", if at > 0 { "\r\n" } else { "" })?;
        }
        write!(self.out, "\x1b[J")?;
        Ok(self.out.flush()?)
    }
}

impl Drop for Screen<'_> {
    fn drop(&mut self) {
        if self.is_open {
            let _ = write!(self.out, "\x1b[?25h\x1b[?1049l").and_then(|()| self.out.flush());
        }
    }
}
