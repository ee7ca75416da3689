//! `airpace decode`: decodes the LTE control channel from radio samples and prints the grants of all users.

mod align;
mod answer;
mod message;
mod open;
mod pcap;
mod probe;
mod radio;
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

/// Decodes the control channel of LTE cells from radio samples: the grants of all users.
///
/// Recordings are SigMF (ci8, cu8, ci16_le, cf32_le, also compressed by zstd) or raw samples with --rate and --format. A
/// SigMF recording is named by either of its files, by their common name without the extension, or by its archive; `-` is
/// standard input. Live radios are read through SoapySDR, if the program was built with it. The cell and its bandwidth,
/// ports and timing are detected automatically. Several recordings or radios are decoded in one thread per cell, and the
/// results are merged by subframe; a stalled pipe or radio does not delay the others. All antennas of a recording with
/// several channels, or of several recordings with --join, are combined.
///
/// A message is printed when it is accepted. Messages of unknown users may be delayed, by at most --patience; each message
/// is printed with its own time. If no cell can be decoded, the list of decoding stages shows the last stage that was
/// reached. Decoding messages to other users may be illegal in your country: see the guide.
#[derive(clap::Args)]
#[command(before_help = "Example: airpace decode cell.sigmf-meta --json | jq .rnti\n         \
                         airpace decode cell.raw --rate 11.52e6 --format ci8 --stats > messages.txt\n         \
                         airpace decode low.sigmf-meta high.sigmf-meta --reports fused.jsonl --rnti 4660\n         \
                         airpace decode --device driver=rtlsdr --freq 806M --gain 40 --for 10s")]
pub struct Args {
    /// Recordings; `-` is standard input.
    #[arg(value_name = "FILE", required_unless_present = "device")]
    files: Vec<PathBuf>,
    /// Prints one JSON object per message.
    #[arg(long)]
    json: bool,
    /// Prints comma-separated values: a row per message, per subframe (--subframes) or per user (--users).
    #[arg(long, conflicts_with_all = ["json", "phich"])]
    csv: bool,
    /// Also writes the output to a Parquet table.
    ///
    /// The table has a row per message, or per subframe, and the column names of the JSON output. PHICH answers (--phich) are
    /// written to a second table, OUT.phich.
    #[arg(long, value_name = "OUT")]
    parquet: Option<PathBuf>,
    /// Writes a capture file for Wireshark with a frame for each granted transport block.
    ///
    /// A frame has the length of the block and contains user, frame number, format, MCS, HARQ process and PRBs. The data of
    /// the block is not included, because it is not decoded.
    #[arg(long, value_name = "OUT")]
    pcap: Option<PathBuf>,
    /// The cell to decode: `auto` for the strongest, or the physical identity of a cell.
    #[arg(long, value_name = "auto|PCI", default_value = "auto", value_parser = which_cell)]
    cell: Which,
    /// Prints a summary to standard error at the end: counters, the last decoding stage, CPU time.
    #[arg(long)]
    stats: bool,
    /// Prints one line or object per subframe instead of messages: its load, by formats.
    ///
    /// The output is delayed by --patience.
    #[arg(long)]
    subframes: bool,
    /// Prints a table of users at the end instead of messages.
    ///
    /// The table has the messages, grants, new bits per second and PRB pairs of each user, sorted by bits in descending
    /// order. Each user has an object with --json, and a row with --csv.
    #[arg(long, conflicts_with_all = ["subframes", "phich"])]
    users: bool,
    /// Prints only messages to this RNTI, with new bits, retransmissions and throughput.
    ///
    /// RNTI 65535 is system information, 65534 is paging. R is the RNTI that the cell uses, also with --anonymize.
    #[arg(long, value_name = "R", value_parser = rnti)]
    rnti: Option<Rnti>,
    /// Also prints the cell's PHICH answers (ACK or NACK) to uplink blocks with decoded grants.
    #[arg(long)]
    phich: bool,
    /// Replaces users' RNTIs by numbers in the order of detection.
    ///
    /// The first CCEs of messages are omitted as well, because RNTIs could be guessed from them.
    #[arg(long)]
    anonymize: bool,
    /// Writes the radio reports of all cells in the input format of PBE-CC's receiver.
    ///
    /// The file has one JSON object per subframe.
    #[arg(long, value_name = "OUT")]
    reports: Option<PathBuf>,
    /// Sample rate of raw samples and of radios; overrides the rate in a SigMF recording.
    #[arg(long, value_name = "HZ", allow_negative_numbers = true, value_parser = hertz)]
    rate: Option<f64>,
    /// Format of raw samples: ci8, cu8, ci16_le or cf32_le; overrides the format in a SigMF recording.
    #[arg(long)]
    format: Option<Format>,
    /// Stops after this duration of each recording or radio, such as 10s.
    #[arg(long = "for", value_name = "TIME", value_parser = parse_duration)]
    span: Option<Duration>,
    /// Maximum wait for confirmation of an uncertain message of an unknown user, in ms, up to 10000.
    ///
    /// The message is accepted if further messages to the same user support it. If this option is 0, no message waits, and
    /// fewer messages are accepted.
    #[arg(long, value_name = "MS", default_value_t = 100, allow_negative_numbers = true,
        value_parser = patience)]
    patience: u64,
    /// Reads recordings no faster than they were received, like a live radio.
    ///
    /// At the end, the delay of this machine relative to real time is printed.
    #[arg(long)]
    pace: bool,
    /// For several recordings: criterion by which their subframes are matched.
    #[arg(long, value_enum, default_value_t = Align::Auto)]
    align: Align,
    /// For several recordings: maximum wait for a pipe or radio without samples, in seconds.
    #[arg(long, value_name = "S", default_value_t = 2.0, allow_negative_numbers = true, value_parser = positive)]
    stall: f64,
    /// Combines the recordings and radios as antennas of one receiver.
    ///
    /// The recordings and radios must have started at the same instant and share a clock. Their signals are summed with
    /// weights according to their noise.
    #[arg(long)]
    join: bool,
    #[command(flatten)]
    radio: RadioArgs,
}

/// Selection of the cell to decode.
#[derive(Clone, Copy, Debug)]
pub enum Which {
    /// The strongest cell.
    Strongest,
    /// The cell with this physical identity.
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
        None => Err("no user has this RNTI: 0 and 65524 to 65532 are reserved".to_owned()),
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
