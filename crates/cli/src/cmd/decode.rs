//! `airpace decode`: radio samples in, everyone's grants out.

mod cell;
mod columns;
mod fused;
pub mod message;
mod pseudonym;
mod sink;
mod stats;
mod subframes;

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use airpace_core::Rnti;
use airpace_live::iq::{Format, Reader, Until};
use airpace_phy::Cell;
use anyhow::{Context, anyhow, bail};

use self::cell::{Event, Told};
use self::sink::Sink;
use super::Verdict;
use super::diag::parse_duration;

/// Reads the control channel of LTE cells: what every user is granted, from radio samples alone.
///
/// Recordings are SigMF (ci8, cu8, ci16_le, cf32_le, also compressed by zstd), or raw samples with --rate and --format;
/// `-` is standard input. The cell, its bandwidth, ports and timing are found by themselves. With several recordings each
/// cell has a thread, and all are brought together by time; one that stalls does not hold up the others.
///
/// Messages are printed when they are believed: those of users never heard of may come up to 100 subframes late, each with
/// its own time. If no cell can be read, the ladder says how far the samples led. Listening to others may be against the
/// law where you are: see the guide.
#[derive(clap::Args)]
#[command(before_help = "Example: airpace decode cell.sigmf-meta --json | jq .rnti\n         \
                         airpace decode cell.raw --rate 11.52e6 --format ci8 --stats > messages.txt\n         \
                         airpace decode low.sigmf-meta high.sigmf-meta --reports fused.jsonl --rnti 4660")]
pub struct Args {
    /// Recordings; `-` is standard input.
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// One JSON object per message.
    #[arg(long)]
    json: bool,
    /// Writes the messages as a table, one row each, with the names of the JSON.
    #[arg(long, value_name = "OUT")]
    parquet: Option<PathBuf>,
    /// Which cell: `auto` takes the strongest, a number only the cell of that identity.
    #[arg(long, value_name = "auto|PCI", default_value = "auto", value_parser = which_cell)]
    cell: Which,
    /// In the end, what was counted, how far the samples led, and what it cost, on standard error.
    #[arg(long)]
    stats: bool,
    /// One line or object per subframe instead of messages: how full it is, and by which formats. Comes 100 subframes late.
    #[arg(long)]
    subframes: bool,
    /// Only this user's grants, with what is new in each, what is sent again, and its throughput.
    #[arg(long, value_name = "R", value_parser = rnti)]
    rnti: Option<Rnti>,
    /// Replaces RNTIs of users by numbers in the order in which they are heard of, and leaves out first CCEs, from which
    /// RNTIs could be guessed.
    #[arg(long)]
    anonymize: bool,
    /// Writes what controllers read: the radio reports of all cells, one JSON object per subframe.
    #[arg(long, value_name = "OUT")]
    reports: Option<PathBuf>,
    /// Samples per second, of raw samples.
    #[arg(long, value_name = "HZ", value_parser = rate)]
    rate: Option<f64>,
    /// How raw samples are written: ci8, cu8, ci16_le or cf32_le.
    #[arg(long)]
    format: Option<Format>,
    /// End after so much of each recording, such as 10s.
    #[arg(long = "for", value_name = "TIME", value_parser = parse_duration)]
    span: Option<Duration>,
    /// With several recordings: one that says nothing for so many seconds is not waited for.
    #[arg(long, value_name = "S", default_value_t = 2.0, value_parser = rate)]
    stall: f64,
}

/// Which cell to listen to.
#[derive(Clone, Copy, Debug)]
enum Which {
    Strongest,
    Only(u16),
}

fn which_cell(text: &str) -> Result<Which, String> {
    match text.parse() {
        Ok(pci) if pci < Cell::IDENTITIES => Ok(Which::Only(pci)),
        _ if text == "auto" => Ok(Which::Strongest),
        _ => Err(format!("give auto, or a physical cell identity from 0 to {}", Cell::IDENTITIES - 1)),
    }
}

fn rnti(text: &str) -> Result<Rnti, String> {
    let number = match text.strip_prefix("0x") {
        Some(digits) => u16::from_str_radix(digits, 16),
        None => text.parse(),
    };
    number.map(Rnti).map_err(|_| "give an RNTI, such as 4660 or 0x1234".to_owned())
}

fn rate(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(rate) if rate > 0.0 && f64::is_finite(rate) => Ok(rate),
        _ => Err("give a number above 0".to_owned()),
    }
}

/// Decodes and prints.
pub fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<Verdict> {
    if args.files.len() > 256 {
        bail!("{} recordings at once: 256 carriers can be told apart", args.files.len());
    }
    if args.files.iter().filter(|file| file.as_os_str() == "-").count() > 1 {
        bail!("standard input can be read once");
    }
    let pci = match args.cell {
        Which::Strongest => None,
        Which::Only(pci) => Some(pci),
    };
    // The reader's errors have their cause in their text.
    let open = |file| Reader::open(file, (args.rate, args.format)).map_err(|error| anyhow!("{error}"));
    let readers = args.files.iter().map(|file| open(file)).collect::<Result<Vec<_>, _>>()?;
    let named = args.files.iter().zip(&readers);
    let named: Vec<_> =
        named.map(|(file, reader)| (file.display().to_string(), reader.meta().sample_rate_hz)).collect();
    let mut sink = Sink::new(args, &named, out)?;
    let mut sources = vec![];
    let stop = on_interrupt()?;
    for (reader, (name, _)) in readers.into_iter().zip(named) {
        let source =
            Until::new(Box::new(reader), args.span.map(|span| span.as_secs_f64()), Arc::clone(&stop));
        let told = cell::start(&name, Box::new(source), pci)?;
        sources.push(Source { name, told, at_ms: 0.0, share: None, state: State::Heard });
    }
    take_all(&mut sources, Duration::from_secs_f64(args.stall), &mut sink)?;
    sink.finish()
}

/// What Ctrl-C sets, so that all ends in good order: counts are told and tables are whole. Twice, it ends at once.
fn on_interrupt() -> anyhow::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    ctrlc::set_handler(move || {
        if flag.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
    })
    .context("cannot listen to Ctrl-C")?;
    Ok(stop)
}

/// A recording that is decoded.
struct Source {
    name: String,
    told: Receiver<Told>,
    at_ms: f64,
    share: Option<f64>,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It is waited for.
    Heard,
    /// It says nothing: it is not waited for.
    Stalled,
    /// It is over.
    Ended,
}

impl Source {
    fn advance(&mut self, told: &Told) {
        self.at_ms = told.at_ms;
        match told.event {
            Event::Progress { share, .. } => self.share = share,
            Event::End(_) | Event::Failed(_) => (self.state, self.share) = (State::Ended, Some(1.0)),
            Event::Heard(_) | Event::Gap => {}
        }
    }
}

/// Takes what all recordings say in the order of their time, so that the same recordings give the same output.
fn take_all(sources: &mut [Source], patience: Duration, sink: &mut Sink<'_>) -> anyhow::Result<()> {
    loop {
        for (carrier, source) in sources.iter_mut().enumerate() {
            while source.state == State::Stalled
                && let Ok(told) = source.told.try_recv()
            {
                sink.say(&format!("{} goes on", source.name));
                source.state = State::Heard;
                source.advance(&told);
                sink.take(carrier, told)?;
            }
        }
        let of = |state| {
            let of_state = sources.iter().enumerate().filter(move |(_, source)| source.state == state);
            of_state.min_by(|(_, one), (_, other)| one.at_ms.total_cmp(&other.at_ms)).map(|(at, _)| at)
        };
        let Some(carrier) = of(State::Heard).or_else(|| of(State::Stalled)) else { return Ok(()) };
        // Where nobody else waits, silence is no stall.
        let is_alone = sources.iter().filter(|source| source.state != State::Ended).count() == 1;
        let source = &mut sources[carrier];
        let told = if is_alone {
            source.told.recv().map_err(|_| RecvTimeoutError::Disconnected)
        } else {
            source.told.recv_timeout(patience)
        };
        match told {
            Ok(told) => {
                source.advance(&told);
                sink.take(carrier, told)?;
            }
            Err(RecvTimeoutError::Timeout) if source.state == State::Heard => {
                source.state = State::Stalled;
                let seconds = patience.as_secs_f64();
                sink.say(&format!("{} says nothing for {seconds:.0} s and is not waited for", source.name));
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => bail!("{}: its decoder crashed", source.name),
        }
        let shares = sources.iter().map(|source| source.share.unwrap_or(0.0));
        sink.progress(shares.sum::<f64>() / sources.len() as f64);
    }
}
