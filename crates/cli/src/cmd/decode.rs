//! `airpace decode`: reads radio samples and prints all users' grants.

mod align;
mod answer;
mod csv;
pub mod message;
mod open;
mod pcap;
mod probe;
mod pseudonym;
mod radio;
mod recording;
mod reports;
mod sink;
mod stats;
mod subframes;
mod tables;
mod users;

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use airpace_phy::Cell;
use airpace_phy::dci::Audience;
use airpace_phy::evidence::Caution;
use airpace_radio::Rnti;
use airpace_sdr::decode::{Decoding, Options};
use airpace_sdr::iq::Format;
use airpace_sdr::radio::hertz;
use anyhow::bail;

use self::align::Align;
use self::open::Opened;
use self::radio::RadioArgs;
use self::sink::Sink;
use super::diag::parse_duration;
use super::{Verdict, on_interrupt, positive};

/// Reads the control channel of LTE cells: what every user is granted, from radio samples alone.
///
/// Recordings are SigMF (ci8, cu8, ci16_le, cf32_le, also compressed by zstd), called by either file, by the name that
/// both begin with or by their archive; or raw samples with --rate and --format; `-` is standard input. Radios are listened
/// to through SoapySDR, where this was built with it. The cell, its bandwidth, ports and timing are found by themselves.
/// With several recordings or radios each cell has a thread, and all are brought together by subframe; a pipe or radio that
/// stalls does not hold up the others. Of a recording with several channels, or of several with --join, all antennas are
/// combined.
///
/// Messages are printed when they are believed: those of users never heard of may come late, by --patience at most, each
/// with its own time. If no cell can be read, the ladder says how far the samples led. Listening to others may be against the
/// law where you are: see the guide.
#[derive(clap::Args)]
#[command(before_help = "Example: airpace decode cell.sigmf-meta --json | jq .rnti\n         \
                         airpace decode cell.raw --rate 11.52e6 --format ci8 --stats > messages.txt\n         \
                         airpace decode low.sigmf-meta high.sigmf-meta --reports fused.jsonl --rnti 4660\n         \
                         airpace decode --device driver=rtlsdr --freq 806M --gain 40 --for 10s")]
pub struct Args {
    /// Recordings; `-` is standard input.
    #[arg(value_name = "FILE", required_unless_present = "device")]
    files: Vec<PathBuf>,
    /// One JSON object per message.
    #[arg(long)]
    json: bool,
    /// The same as a table: a row per message, with --subframes per subframe, or with --users per user.
    #[arg(long, conflicts_with_all = ["json", "phich"])]
    csv: bool,
    /// Writes what is printed as a table too: a row per message, or per subframe, with the names of the JSON; with --phich,
    /// answers go to a table beside it, OUT.phich.
    #[arg(long, value_name = "OUT")]
    parquet: Option<PathBuf>,
    /// A capture file for Wireshark: a frame for each transport block that is granted, with user, frame number, format, MCS,
    /// HARQ process and PRBs, as long as the block. The blocks' data is not in it, because it is not decoded.
    #[arg(long, value_name = "OUT")]
    pcap: Option<PathBuf>,
    /// Which cell: `auto` takes the strongest, a number only the cell of that identity.
    #[arg(long, value_name = "auto|PCI", default_value = "auto", value_parser = which_cell)]
    cell: Which,
    /// In the end, what was counted, how far the samples led, and what it cost, on standard error.
    #[arg(long)]
    stats: bool,
    /// One line or object per subframe instead of messages: how full it is, and by which formats. Comes --patience late.
    #[arg(long)]
    subframes: bool,
    /// Instead of messages a table of users at the end: messages, grants, new bits per second and PRB pairs of each, those
    /// with most bits first; with --json an object for each, with --csv a row.
    #[arg(long, conflicts_with_all = ["subframes", "phich"])]
    users: bool,
    /// Only messages to this RNTI, with what is new in each, what is sent again, and its throughput; 65535 is system
    /// information, 65534 paging. With --anonymize too it is the number that the cell uses.
    #[arg(long, value_name = "R", value_parser = rnti)]
    rnti: Option<Rnti>,
    /// Also what the cell answers on the PHICH to uplink blocks whose grants were heard: ACK or NACK.
    #[arg(long)]
    phich: bool,
    /// Replaces RNTIs of users by numbers in the order in which they are heard of, and leaves out first CCEs, from which
    /// RNTIs could be guessed.
    #[arg(long)]
    anonymize: bool,
    /// Writes the radio reports of all cells, in the form in which PBE-CC's receiver takes them: one JSON object per subframe.
    #[arg(long, value_name = "OUT")]
    reports: Option<PathBuf>,
    /// Samples per second, of raw samples and of radios. A SigMF recording has its own, which this overrules.
    #[arg(long, value_name = "HZ", allow_negative_numbers = true, value_parser = hertz)]
    rate: Option<f64>,
    /// How raw samples are written: ci8, cu8, ci16_le or cf32_le. A SigMF recording says it, which this overrules.
    #[arg(long)]
    format: Option<Format>,
    /// End after so much of each recording or radio, such as 10s.
    #[arg(long = "for", value_name = "TIME", value_parser = parse_duration)]
    span: Option<Duration>,
    /// A message of a user never heard of that is not sure by itself waits so many milliseconds, 10000 at most, for more of its
    /// kind. With 0 nothing waits, and less is believed.
    #[arg(long, value_name = "MS", default_value_t = 100, allow_negative_numbers = true,
        value_parser = patience)]
    patience: u64,
    /// Read recordings no faster than they were received, as a radio would give them; in the end, how far this machine fell
    /// behind.
    #[arg(long)]
    pace: bool,
    /// With several recordings: what tells that two subframes are the same.
    #[arg(long, value_enum, default_value_t = Align::Auto)]
    align: Align,
    /// With several recordings: a pipe or radio that says nothing for so many seconds is not waited for.
    #[arg(long, value_name = "S", default_value_t = 2.0, allow_negative_numbers = true, value_parser = positive)]
    stall: f64,
    /// The recordings and radios are the antennas of one receiver: they began at the same instant and share a clock. What they
    /// hear is added up, each with the weight that its noise leaves it.
    #[arg(long)]
    join: bool,
    #[command(flatten)]
    radio: RadioArgs,
}

/// Selection of the cell to decode.
#[derive(Clone, Copy, Debug)]
pub enum Which {
    /// The strongest.
    Strongest,
    /// The one of this identity.
    Only(u16),
}

impl Which {
    /// Physical cell identity, if only one cell is wanted.
    pub fn pci(self) -> Option<u16> {
        match self {
            Which::Strongest => None,
            Which::Only(pci) => Some(pci),
        }
    }
}

/// Parses the selection of a cell.
///
/// # Errors
/// No cell has this identity.
pub fn which_cell(text: &str) -> Result<Which, String> {
    match text.parse() {
        Ok(pci) if pci < Cell::IDENTITIES => Ok(Which::Only(pci)),
        _ if text == "auto" => Ok(Which::Strongest),
        _ => Err(format!("give auto, or a physical cell identity from 0 to {}", Cell::IDENTITIES - 1)),
    }
}

/// Parses the maximum number of subframes for which a message waits for confirmation.
///
/// # Errors
/// The text is not a valid number.
pub fn patience(text: &str) -> Result<u64, String> {
    let number = text.parse().ok().filter(|ms| *ms <= 10_000);
    number.ok_or_else(|| "give a whole number of milliseconds from 0 to 10000".to_owned())
}

/// Parses an RNTI.
///
/// # Errors
/// The text is not an RNTI, or the RNTI is reserved.
pub fn rnti(text: &str) -> Result<Rnti, String> {
    let number = match text.strip_prefix("0x") {
        Some(digits) => u16::from_str_radix(digits, 16),
        None => text.parse(),
    };
    let rnti = number.map(Rnti).map_err(|_| "give an RNTI, such as 4660 or 0x1234".to_owned())?;
    match Audience::of(rnti) {
        Some(_) => Ok(rnti),
        None => Err("nobody has this RNTI: 0 and 65524 to 65532 are reserved".to_owned()),
    }
}

/// Decodes and prints.
pub fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<Verdict> {
    let pci = args.cell.pci();
    if args.subframes && (args.rnti.is_some() || args.phich) {
        let other =
            if args.phich { "--phich prints single answers" } else { "--rnti prints one user's messages" };
        bail!("--subframes counts all messages of a subframe, {other}: run twice, with one of them each");
    }
    let stop = on_interrupt()?;
    let Opened { sources, lags } = open::all(args, &stop)?;
    let caution = Caution { patience: args.patience, ..Caution::default() };
    let stall = Duration::from_secs_f64(args.stall);
    let mut sink = Sink::new(args, &sources, (caution.patience, stall), out)?;
    let mut decoding = Decoding::start(sources, Options { pci, caution, align: args.align.into(), stall })?;
    loop {
        // Flush all output before waiting for more samples.
        let ready = decoding.ready();
        if ready.is_none() {
            sink.flush()?;
        }
        let Some(event) = ready.or_else(|| decoding.next()) else { break };
        sink.take(event?)?;
        sink.progress(decoding.share(), decoding.at_ms());
    }
    let verdict = sink.finish();
    for (name, lag) in lags {
        let [mean, most] = [lag.mean(), lag.most()].map(|lag| lag.as_secs_f64() * 1e3);
        crate::terminal::say(format_args!(
            "{name}: read as it was received, {mean:.2} ms behind on average, {most:.1} ms at most"
        ));
    }
    verdict
}
