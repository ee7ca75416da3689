//! `airpace diag decode`: prints the contents of log packets.

mod capture;
mod csv;
mod kpis;
mod packets;
mod parquet;
mod unread;

use std::io::Write;
use std::path::{Path, PathBuf};

use airpace_diag::export::capture::Capture;
use airpace_diag::kpi::Subscription;
use airpace_diag::source::{Item, Place};
use airpace_diag::{LogCode, LogPacket, Message, Radio};
use anyhow::bail;

use super::input::{self, Sink};
use crate::cmd::outputs::{self, Named};
use crate::cmd::{NothingFound, Verdict, complete};
use crate::terminal::count;
use capture::CaptureFile;
use csv::Csv;
use kpis::Kpis;
use packets::{Form, Packets};
use parquet::Codes;
use unread::{Kind, Unread};

/// Reads log packets and prints what they say.
///
/// Files are given as for `airpace diag info`; several are read as one log, in the order given. Without a form, packets
/// are printed as text for people.
///
/// What nobody has laid out is counted and reported once at the end, on standard error; `--unknown` keeps it.
#[derive(clap::Args)]
#[command(before_help = "Example: airpace diag decode phone.qmdl --code 0xB173\n         \
                   airpace diag decode --json phone.qmdl.gz | jq 'select(.code == \"0xB0C0\").fields.channel'\n         \
                   airpace diag decode phone.qmdl --kpi lte.rsrp,lte.snr --csv\n         \
                   airpace diag decode phone.qmdl --pcap phone.pcapng")]
pub struct Args {
    /// Logs; `-` is standard input.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// One JSON object per packet: time_utc, code, name, version, radio, fields.
    #[arg(long, group = "form")]
    json: bool,
    /// Comma-separated values. Of one `--code`: a line per innermost record, a column per field; of several codes: a line
    /// per value.
    #[arg(long, group = "form")]
    csv: bool,
    /// Parquet files, in a folder with one per code: a row per innermost record, a column per field. With `--kpi`: one
    /// file.
    #[arg(long, group = "form", value_name = "OUT")]
    parquet: Option<PathBuf>,
    /// A capture file for Wireshark with the RRC and NAS messages, in pcapng: those of LTE as GSMTAP, those of NR as
    /// exported PDUs; `-` is standard output.
    #[arg(long, group = "form", value_name = "OUT")]
    pcap: Option<PathBuf>,
    /// In the capture, messages of NR as GSMTAP too: its version 3, which Wireshark 4.0 does not read.
    #[arg(long, requires = "pcap")]
    gsmtap: bool,
    /// The samples of these KPIs instead of packets, parted by commas: NAME, NAME@RADIO, a field like
    /// 0xB173:records.num_rbs, or `all`.
    #[arg(long, value_name = "LIST", value_delimiter = ',', add = complete::kpi(), conflicts_with_all = ["pcap", "payload", "unknown"])]
    kpi: Vec<String>,
    /// Only packets of these codes, parted by commas.
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = parse_code)]
    code: Vec<LogCode>,
    /// Only packets of this radio: 1 is the first SIM's, 2 the second's. A KPI whose name says no radio is of this one, or
    /// of the first.
    #[arg(long, value_name = "N")]
    radio: Option<u8>,
    /// Keeps packets that cannot be read in this folder, a .qmdl file per code and version.
    #[arg(long, value_name = "DIR")]
    unknown: Option<PathBuf>,
    /// Adds the bytes of every packet to its JSON object, in hexadecimal.
    #[arg(long, requires = "json")]
    payload: bool,
}

/// Reads and prints.
pub fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<Verdict> {
    let inputs = Named::inputs(&args.files);
    check_files(args, &inputs)?;
    input::check_there(&args.files)?;
    let writer = writer(args, &inputs, out)?;
    let mut decode = Decode {
        writer,
        codes: args.code.clone(),
        radio: args.radio.map(Radio),
        unread: Unread::new(args.unknown.clone(), inputs.clone(), is_piped(&args.files))?,
        packets: 0,
        decoded: 0,
    };
    let sources = input::read(&args.files, &mut decode)?;
    // A file that is written only when complete requires a whole log as input.
    input::check_ends(&sources)?;
    let nothing = decode.writer.finish()?;
    decode.unread.report(&sources)?;
    input::check(&sources)?;
    if decode.decoded == 0 {
        let of = if decode.packets > 0 { " of --code and --radio" } else { "" };
        bail!(NothingFound(format!(
            "no log packet{of} among {}; `airpace diag info` says what the log holds",
            count(decode.packets, "packet")
        )));
    }
    nothing.map_or(Ok(Verdict::Fine), |nothing| bail!(nothing))
}

/// Checks that no output file is an input file, as far as the outputs' names are known before packets are read.
fn check_files(args: &Args, inputs: &[Named]) -> anyhow::Result<()> {
    let mut outputs = vec![Named::new("standard output", Path::new("/dev/stdout"))];
    outputs.extend(
        args.parquet.iter().filter(|_| !args.kpi.is_empty()).map(|path| Named::by("--parquet", path)),
    );
    let pcap = args.pcap.iter().filter(|path| path.as_os_str() != "-");
    outputs.extend(pcap.map(|path| Named::by("--pcap", path)));
    outputs::check(inputs, &outputs)
}

/// The writer for the output that the user asked for.
fn writer<'o>(args: &Args, inputs: &[Named], out: &'o mut dyn Write) -> anyhow::Result<Box<dyn Writer + 'o>> {
    if !args.kpi.is_empty() {
        let subscription = Subscription::listed(
            args.kpi.iter().map(String::as_str),
            args.radio.map_or(Radio::FIRST, Radio),
        )?;
        return Ok(Box::new(match &args.parquet {
            Some(path) => Kpis::parquet(subscription, path)?,
            None if args.json => Kpis::json(subscription, out),
            None if args.csv => Kpis::csv(subscription, out),
            None => Kpis::text(subscription, out),
        }));
    }
    let capture = if args.gsmtap { Capture::gsmtap_only() } else { Capture::default() };
    Ok(match (&args.pcap, &args.parquet) {
        (Some(path), _) if path.as_os_str() == "-" => Box::new(CaptureFile::new(capture, out)),
        (Some(path), _) => Box::new(CaptureFile::create(capture, path, is_piped(&args.files))?),
        (_, Some(folder)) => Box::new(Codes::create(folder, inputs.to_vec())?),
        _ if args.csv => Box::new(Csv::new(&args.code, out)),
        _ if args.json => Box::new(Packets::new(Form::Json { with_payload: args.payload }, out)),
        _ => Box::new(Packets::new(Form::Text, out)),
    })
}

/// Whether packets may keep coming, because an input is a pipe or similar.
fn is_piped(files: &[PathBuf]) -> bool {
    files.iter().any(|path| path.as_os_str() == "-" || path.metadata().is_ok_and(|about| !about.is_file()))
}

/// A code as users write it: four hexadecimal digits.
fn parse_code(text: &str) -> anyhow::Result<LogCode> {
    let digits = text.trim().trim_start_matches("0x").trim_start_matches("0X");
    match u16::from_str_radix(digits, 16) {
        Ok(code) if code >= 0x1000 => Ok(LogCode(code)),
        _ => bail!("`{text}` is no log code; write four hexadecimal digits: 0xB173"),
    }
}

/// Turns packets into output.
trait Writer {
    /// Processes a packet. Returns the part of the packet that could not be parsed, if any.
    fn packet(&mut self, packet: &LogPacket<'_>) -> anyhow::Result<Option<Kind>>;

    /// Flushes the output written so far, so that readers receive it.
    fn pause(&mut self) -> anyhow::Result<()> {
        Ok(())
    }

    /// Completes the output after the last packet. Returns the message for a log that contains packets but gives no
    /// output.
    fn finish(&mut self) -> anyhow::Result<Option<NothingFound>>;
}

/// Selects packets, writes them, and counts those that could not be read.
struct Decode<'o> {
    writer: Box<dyn Writer + 'o>,
    /// The codes that are wanted; all if the list is empty.
    codes: Vec<LogCode>,
    radio: Option<Radio>,
    unread: Unread,
    /// Log packets so far.
    packets: u64,
    /// Those that were wanted.
    decoded: u64,
}

impl Decode<'_> {
    fn wants(&self, packet: &LogPacket<'_>) -> bool {
        (self.codes.is_empty() || self.codes.contains(&packet.code))
            && self.radio.is_none_or(|radio| radio == packet.radio)
    }
}

impl Sink for Decode<'_> {
    fn item(&mut self, place: Place, item: Item<'_>) -> anyhow::Result<()> {
        self.packets += u64::from(matches!(item, Item::Message(Message::Log(_))));
        match item {
            Item::Message(Message::Log(packet)) if self.wants(&packet) => {
                self.decoded += 1;
                if let Some(kind) = self.writer.packet(&packet)? {
                    self.unread.packet(&packet, kind)?;
                }
            }
            Item::Message(Message::Log(_) | Message::Other { .. }) => {}
            Item::Message(Message::Cut { .. }) | Item::Fault(_) | Item::Skipped(_) | Item::Unfinished(_) => {
                self.unread.fault(place)
            }
        }
        Ok(())
    }

    fn pause(&mut self) -> anyhow::Result<()> {
        self.writer.pause()
    }
}
