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
use super::port::refused_kpi;
use crate::called;
use crate::cmd::outputs::{self, Named};
use crate::cmd::{NothingFound, Verdict, complete};
use crate::terminal::count;
use capture::CaptureFile;
use csv::Csv;
use kpis::Kpis;
use packets::{Form, Packets};
use parquet::Codes;
use unread::{Kind, Unread};

/// Decodes log packets and prints their contents.
///
/// Files are given as for `airpace diag info`; several files are read as one log, in the given order. Without an output
/// format, packets are printed as text for people.
///
/// Packets whose layout is unknown are counted, and reported once at the end on standard error; `--unknown` saves them.
#[derive(clap::Args)]
#[command(before_help = "Example: airpace diag decode phone.qmdl --code 0xB173\n         \
                   airpace diag decode --json phone.qmdl.gz | jq 'select(.code == \"0xB0C0\").fields.channel'\n         \
                   airpace diag decode phone.qmdl --kpi lte.rsrp,lte.snr --csv\n         \
                   airpace diag decode phone.qmdl --pcap phone.pcapng")]
pub struct Args {
    /// Logs; `-` is standard input.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Prints one JSON object per packet: time_utc, code, name, version, radio, fields.
    #[arg(long, group = "form")]
    json: bool,
    /// Prints comma-separated values.
    ///
    /// The output for one `--code` has a line per innermost record and a column per field. The output for several codes has
    /// a line per value.
    #[arg(long, group = "form")]
    csv: bool,
    /// Writes Parquet files to a folder, one file per code; with `--kpi` one file.
    ///
    /// The file of a code has a row per innermost record and a column per field.
    #[arg(long, group = "form", value_name = "OUT")]
    parquet: Option<PathBuf>,
    /// Writes the RRC and NAS messages to a capture file for Wireshark (pcapng).
    ///
    /// LTE messages are written as GSMTAP, NR messages as exported PDUs. `-` is standard output.
    #[arg(long, group = "form", value_name = "OUT")]
    pcap: Option<PathBuf>,
    /// Writes NR messages in the capture as GSMTAP version 3, which Wireshark 4.0 cannot read.
    #[arg(long, requires = "pcap")]
    gsmtap: bool,
    /// Prints samples of these KPIs instead of packets, separated by commas.
    ///
    /// A KPI is NAME, NAME@RADIO, a field such as 0xB173:records.num_rbs, or `all`.
    #[arg(long, value_name = "LIST", value_delimiter = ',', add = complete::kpi(), conflicts_with_all = ["pcap", "payload", "unknown"])]
    kpi: Vec<String>,
    /// Selects packets of these codes, separated by commas.
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = parse_code)]
    code: Vec<LogCode>,
    /// Selects packets of this radio: 1 is that of the first SIM, 2 that of the second.
    ///
    /// A KPI without a radio in its name refers to this radio, or else to the first radio.
    #[arg(long, value_name = "N")]
    radio: Option<u8>,
    /// Saves packets that cannot be decoded in this folder, a .qmdl file per code and version.
    #[arg(long, value_name = "DIR")]
    unknown: Option<PathBuf>,
    /// Adds the bytes of every packet to its JSON object, in hexadecimal.
    #[arg(long, requires = "json")]
    payload: bool,
}

/// Reads log packets and writes the output.
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
        let of = match (decode.packets, args.code.is_empty(), args.radio) {
            (0, ..) | (_, true, None) => "",
            (_, false, None) => " of --code",
            (_, true, Some(_)) => " of --radio",
            (_, false, Some(_)) => " of --code and --radio",
        };
        bail!(NothingFound(format!(
            "no log packet{of} among {}; {} lists what the log contains",
            count(decode.packets, "packet"),
            called::command("diag info")
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
        let subscription =
            Subscription::listed(args.kpi.iter().map(String::as_str), args.radio.map_or(Radio::FIRST, Radio))
                .map_err(refused_kpi)?;
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

/// Parses a code: four hexadecimal digits, with or without `0x`.
fn parse_code(text: &str) -> anyhow::Result<LogCode> {
    let digits = text.trim().trim_start_matches("0x").trim_start_matches("0X");
    match u16::from_str_radix(digits, 16) {
        Ok(code) if code >= 0x1000 => Ok(LogCode(code)),
        _ => bail!("`{text}` is no log code; write four hexadecimal digits: 0xB173"),
    }
}

/// Converts packets to output.
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
    /// The selected codes; all codes if the list is empty.
    codes: Vec<LogCode>,
    radio: Option<Radio>,
    unread: Unread,
    /// Number of log packets.
    packets: u64,
    /// Number of selected log packets.
    decoded: u64,
}

impl Decode<'_> {
    fn wants(&self, packet: &LogPacket<'_>) -> bool {
        (self.codes.is_empty() || self.codes.contains(&packet.code))
            && self.radio.is_none_or(|radio| radio == packet.radio)
    }
}

impl Sink for Decode<'_> {
    type Error = anyhow::Error;

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
