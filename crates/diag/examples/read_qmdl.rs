//! Reads log files of a modem, and prints a line per packet, or the values of KPIs.
//!
//! `cargo run --release -p airpace-diag --example read_qmdl -- LOG.qmdl [KPI…]`, for example with `lte.rsrp`.

use std::error::Error;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use airpace_diag::{Extractor, Item, LogPacket, Message, Reader, Subscription, log};

/// Number of bytes that are read at a time.
const PIECE: usize = 1 << 16;

/// Numbers of items in a log.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Log packets.
    pub packets: u64,
    /// Packets whose fields were all read.
    pub read: u64,
    /// Values of the KPIs.
    pub samples: u64,
    /// Items that are not a message: bytes that are damaged or missing.
    pub faults: u64,
}

/// Writes the values of the KPIs in a packet. Without KPIs, writes the packet and the number of its fields.
fn write(
    packet: &LogPacket<'_>,
    kpis: &Subscription,
    extractor: &mut Extractor,
    counts: &mut Counts,
    out: &mut dyn Write,
) -> io::Result<()> {
    counts.packets += 1;
    if !kpis.is_empty() {
        let mut result = Ok(());
        extractor.push(packet, |sample| {
            counts.samples += 1;
            let wanted = kpis.wanted(sample.wanted);
            let line = writeln!(out, "{} {wanted} {} {}", packet.stamp, sample.value, wanted.unit());
            result = std::mem::replace(&mut result, Ok(())).and(line);
        });
        return result;
    }
    let name = log::code(packet.code).map_or("unknown", |code| code.name);
    match log::read(packet) {
        Ok(decoded) => {
            counts.read += 1;
            let fields = decoded.fields.0.len();
            writeln!(
                out,
                "{} {} {name}, version {}: {fields} fields",
                packet.stamp, packet.code, decoded.version
            )
        }
        Err(reason) => writeln!(out, "{} {} {name}: {reason}", packet.stamp, packet.code),
    }
}

/// Reads a log and writes its packets, or the values of these KPIs.
///
/// # Errors
/// The log cannot be read or contains no packet, or there is no such KPI.
pub fn read(path: &Path, kpis: &[String], out: &mut dyn Write) -> Result<Counts, Box<dyn Error>> {
    let kpis = Subscription::new(kpis.iter().map(String::as_str))?;
    let at = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let mut file = File::open(path).map_err(|error| at(&error))?;
    let (mut reader, mut extractor, mut counts) =
        (Reader::default(), Extractor::new(&kpis), Counts::default());
    let mut result = Ok(());
    let mut visit = |item: Item<'_>| match item {
        Item::Message(Message::Log(packet)) => {
            if result.is_ok() {
                result = write(&packet, &kpis, &mut extractor, &mut counts, out);
            }
        }
        Item::Message(_) => {}
        Item::Fault(_) | Item::Skipped(_) | Item::Unfinished(_) => counts.faults += 1,
    };
    let mut piece = vec![0; PIECE];
    loop {
        let length = file.read(&mut piece).map_err(|error| at(&error))?;
        if length == 0 {
            break;
        }
        reader.push(&piece[..length], |_, item| visit(item));
    }
    reader.finish(|_, item| visit(item));
    result?;
    if counts.packets == 0 {
        return Err(at(&format!(
            "no log packet, {} damaged parts: is it a log of a Qualcomm modem?",
            counts.faults
        ))
        .into());
    }
    Ok(counts)
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args_os().skip(1);
    let path = args.next().ok_or("usage: read_qmdl LOG.qmdl [KPI…]")?;
    let kpis = args.map(|kpi| kpi.into_string().map_err(|kpi| format!("{}: not a KPI", kpi.display())));
    let kpis: Vec<String> = kpis.collect::<Result<_, _>>()?;
    let counts = read(Path::new(&path), &kpis, &mut io::stdout().lock())?;
    eprintln!("{counts:?}");
    Ok(())
}
