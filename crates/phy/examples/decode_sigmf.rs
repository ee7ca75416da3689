//! Decodes a SigMF recording of an LTE carrier: one line per message of the control channel.
//!
//! `cargo run --release -p airpace-phy --example decode_sigmf -- RECORDING.sigmf-meta`
//!
//! The example reads one antenna in the formats ci8, ci16_le and cf32_le, without gaps. `airpace decode` reads more
//! formats.

use std::error::Error;
use std::fs::{self, File};
use std::io::{self, BufReader, Read, Write};
use std::path::Path;

use airpace_phy::{Complex32, Decoder, Found, Options, Output};

/// Number of samples that are decoded at a time.
const PIECE: usize = 1 << 16;

/// Converts the bytes of a sample.
type Convert = fn(&[u8]) -> Complex32;

/// The format of this name: bytes per sample, and the function that converts them.
fn format(name: &str) -> Option<(usize, Convert)> {
    match name {
        "ci8" | "ci8_le" => Some((2, |bytes| {
            let part = |byte: u8| f32::from(byte as i8) / 127.0;
            Complex32::new(part(bytes[0]), part(bytes[1]))
        })),
        "ci16_le" => Some((4, |bytes| {
            let part = |at: usize| f32::from(i16::from_le_bytes([bytes[at], bytes[at + 1]])) / 32_767.0;
            Complex32::new(part(0), part(2))
        })),
        "cf32_le" => Some((8, |bytes| {
            let part =
                |at: usize| f32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
            Complex32::new(part(0), part(4))
        })),
        _ => None,
    }
}

fn write(found: &Found, out: &mut dyn Write) -> io::Result<()> {
    let (sfn, subframe, confidence) = (found.sfn, found.subframe, found.confidence);
    write!(out, "{sfn}.{subframe} RNTI {} format {}", found.rnti.0, found.format())?;
    if let Some(dci) = &found.dci {
        let prbs: Vec<String> = dci.prbs.runs().map(|(first, count)| format!("{first}+{count}")).collect();
        write!(out, " {:?} PRBs {} bits {}", dci.direction, prbs.join(","), dci.bits().0)?;
    }
    writeln!(out, " confidence {confidence:.3}")
}

/// Decodes a recording and writes its messages. Returns their number.
///
/// # Errors
/// The recording cannot be read, its format or rate is not supported, or it contains no message.
pub fn decode(meta: &Path, out: &mut dyn Write) -> Result<u64, Box<dyn Error>> {
    let at = |error: &dyn std::fmt::Display| format!("{}: {error}", meta.display());
    let text = fs::read(meta).map_err(|error| at(&error))?;
    let description: serde_json::Value = serde_json::from_slice(&text).map_err(|error| at(&error))?;
    let global = &description["global"];
    let name = global["core:datatype"].as_str().unwrap_or_default();
    let (size, convert) =
        format(name).ok_or_else(|| at(&format!("core:datatype is `{name}`, not ci8, ci16_le or cf32_le")))?;
    let rate_hz = global["core:sample_rate"].as_f64().ok_or_else(|| at(&"core:sample_rate is missing"))?;
    if global["core:num_channels"].as_u64().unwrap_or(1) != 1 {
        return Err(at(&"the recording has several antennas; this example reads one").into());
    }
    let data = meta.with_extension("sigmf-data");
    let file = File::open(&data).map_err(|error| format!("{}: {error}", data.display()))?;

    let mut decoder = Decoder::new(Options::new(rate_hz as u64))?;
    let mut count = 0;
    let mut write_all = |output: Output, out: &mut dyn Write| {
        let (found, late) = match output {
            Output::Subframe(reading) => (reading.found, reading.late),
            Output::Late(late) => (Vec::new(), late),
            Output::Locked(lock) => {
                return writeln!(out, "cell {} of {} PRBs", lock.cell.pci, lock.cell.bandwidth.prbs());
            }
            Output::Lost | Output::Moved(_) => return writeln!(out, "cell lost"),
        };
        count += (found.len() + late.len()) as u64;
        found.iter().chain(&late).try_for_each(|found| write(found, out))
    };
    let mut file = BufReader::new(file);
    let (mut bytes, mut samples) = (Vec::new(), Vec::new());
    loop {
        bytes.clear();
        let length = file.by_ref().take((PIECE * size) as u64).read_to_end(&mut bytes)?;
        samples.clear();
        samples.extend(bytes.chunks_exact(size).map(convert));
        decoder.push(&samples);
        if length == 0 {
            decoder.finish();
        }
        while let Some(output) = decoder.pop() {
            write_all(output, out)?;
        }
        if length == 0 {
            break;
        }
    }
    match decoder.ladder().broken() {
        Some((stage, hint)) if count == 0 => {
            Err(at(&format!("no message: stopped at {stage:?}: {hint}")).into())
        }
        _ => Ok(count),
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args_os().nth(1).ok_or("usage: decode_sigmf RECORDING.sigmf-meta")?;
    let count = decode(Path::new(&path), &mut io::stdout().lock())?;
    eprintln!("{count} messages");
    Ok(())
}
