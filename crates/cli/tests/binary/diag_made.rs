//! Synthetic logs for tests, and recorded logs with their expected contents.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use airpace_diag::{Framing, LogCode, LogPacket, Radio, Stamp, frame};

use super::{Shell, recordings};

/// Start of the logs: 2021-03-07, in ns by the modem's clock.
pub const BEGIN_NANOS: u64 = 1_299_133_682_000_000_000;

/// Packets in the framing of a port's byte stream.
#[derive(Default)]
pub struct Log(pub Vec<u8>);

impl Log {
    /// Adds a packet with this time in milliseconds since the start.
    pub fn packet(mut self, radio: u8, millis: u64, code: u16, payload: &[u8]) -> Log {
        let mut body = vec![];
        let stamp = Stamp::from_nanos(BEGIN_NANOS + millis * 1_000_000);
        LogPacket { radio: Radio(radio), code: LogCode(code), stamp, payload }.write(radio != 1, &mut body);
        frame::encode(Framing::Hdlc, &body, &mut self.0);
        self
    }

    /// Adds a message that is not a log packet.
    pub fn message(mut self, body: &[u8]) -> Log {
        frame::encode(Framing::Hdlc, body, &mut self.0);
        self
    }
}

/// Log packet 0xB0C0, version 26: a message on a channel, given by its number.
pub fn rrc(channel: u8, earfcn: u32, message: &[u8]) -> Vec<u8> {
    let mut payload = vec![26, 15, 0x30, 0, 0, 1, 67, 0];
    payload.extend(earfcn.to_le_bytes());
    payload.extend([0x65, 0x13, channel, 0, 0, 0, 0]);
    payload.extend((message.len() as u16).to_le_bytes());
    payload.extend_from_slice(message);
    payload
}

/// Log packet 0xB0EC, version 1: a plain NAS message.
pub fn nas(message: &[u8]) -> Vec<u8> {
    [&[1, 9, 5, 0], message].concat()
}

impl Shell {
    /// Writes a file of bytes.
    pub fn write_bytes(&self, name: &str, bytes: &[u8]) {
        std::fs::write(self.path(name), bytes).expect("a file");
    }
}

/// The recorded logs; empty if they are not installed.
pub fn recorded() -> Vec<PathBuf> {
    let Some(folder) = recordings() else { return vec![] };
    let mut logs: Vec<_> =
        std::fs::read_dir(folder.join("diag")).unwrap().map(|entry| entry.unwrap().path()).collect();
    logs.retain(|path| path.extension().is_some_and(|ending| ending == "qmdl" || ending == "mi2log"));
    logs.sort();
    assert_eq!(logs.len(), 13, "all recordings are there");
    logs
}

/// The reference file of a recorded log with this extension, decompressed.
pub fn reference(log: &Path, ending: &str) -> Vec<u8> {
    let name = format!("ref/{}.{ending}.gz", log.file_name().unwrap().to_str().unwrap());
    let mut bytes = vec![];
    let file = std::fs::File::open(log.with_file_name(name)).unwrap();
    flate2::read::GzDecoder::new(file).read_to_end(&mut bytes).unwrap();
    bytes
}

/// A row of the index of a log.
pub struct Row {
    pub kind: String,
    pub code: String,
    pub utc: String,
    pub bytes: usize,
    pub version: String,
    pub radio: u64,
}

/// The index of a recorded log, with all its frames.
pub fn index(log: &Path) -> Vec<Row> {
    let text = String::from_utf8(reference(log, "index.csv")).unwrap();
    let row = |line: &str| {
        let cells: Vec<_> = line.split(',').map(str::to_owned).collect();
        Row {
            kind: cells[1].clone(),
            code: cells[2].clone(),
            utc: cells[4].clone(),
            bytes: cells[5].parse().unwrap_or(0),
            version: cells[6].clone(),
            // Frames without a wrapper, or with 0 or -1 in the wrapper, belong to the first radio.
            radio: if cells[7] == "2" { 2 } else { 1 },
        }
    };
    text.lines().skip(1).map(row).collect()
}

/// Number of occurrences of each item.
pub fn counts<T: Ord>(all: impl IntoIterator<Item = T>) -> BTreeMap<T, u64> {
    let mut counts = BTreeMap::new();
    for one in all {
        *counts.entry(one).or_default() += 1;
    }
    counts
}
