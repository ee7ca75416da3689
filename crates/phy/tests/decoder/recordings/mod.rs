//! Recordings in `$AIRPACE_DATA/radio` with a known reference.
#![allow(dead_code)] // each test uses its part

use std::collections::BTreeMap;
use std::path::Path;
use std::str::FromStr;

use airpace_phy::dci::Format;
use airpace_phy::{Bandwidth, Cell, Complex32, CyclicPrefix, PhichDuration, PhichResource, Ports};
use airpace_radio::PrbSet;

/// Folder of the recordings.
pub use airpace_testing::recordings as data;

/// All recordings with a reference.
pub const NAMES: [&str; 6] =
    ["pub_g06_1p", "pub_g100_2p", "pub_g25_2p_clean", "pub_g50_2p", "pub_n25", "pub_p15_tm1"];

/// Metadata of a recording.
pub struct Description {
    pub cell: Cell,
    pub fft_size: usize,
    pub data_type: String,
    pub cfo_hz: f64,
    /// First sample of subframe index 0.
    pub start: i64,
    pub sfn: u16,
    pub subframe: usize,
    /// Amplitude of a resource element of unit power, if the metadata contains it.
    pub amplitude: Option<f64>,
}

impl Description {
    pub fn load(folder: &Path, name: &str) -> Description {
        let text = std::fs::read_to_string(folder.join(format!("{name}.sigmf-meta"))).expect("metadata");
        let meta: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        let global = &meta["global"];
        let integer = |key: &str| global[key].as_i64().unwrap_or_else(|| panic!("{name} has no {key}"));
        let text = |key: &str| global[key].as_str().unwrap_or_else(|| panic!("{name} has no {key}"));
        Description {
            cell: Cell {
                pci: integer("lte:pci") as u16,
                bandwidth: Bandwidth::from_prbs(integer("lte:n_prb") as u16).expect("a bandwidth of LTE"),
                ports: Ports::from_count(integer("lte:tx_ports") as usize).expect("1, 2 or 4 ports"),
                cp: if text("lte:cp") == "normal" { CyclicPrefix::Normal } else { CyclicPrefix::Extended },
                phich_duration: match text("lte:phich_duration") {
                    "normal" => PhichDuration::Normal,
                    _ => PhichDuration::Extended,
                },
                phich_resource: match text("lte:phich_ng") {
                    "1/6" => PhichResource::Sixth,
                    "1/2" => PhichResource::Half,
                    "1" => PhichResource::One,
                    _ => PhichResource::Two,
                },
            },
            fft_size: integer("lte:fft_size") as usize,
            data_type: text("core:datatype").to_owned(),
            cfo_hz: global["lte:cfo_hz"].as_f64().expect("a CFO"),
            start: integer("lte:sf0_offset_samples"),
            sfn: integer("lte:sf0_sfn") as u16,
            subframe: integer("lte:sf0_subframe") as usize,
            amplitude: global["lte:unit_re_amplitude"].as_f64(),
        }
    }

    /// Sample rate (samples per second).
    pub fn rate_hz(&self) -> u64 {
        self.fft_size as u64 * 15_000
    }

    /// All samples, corrected by the CFO in the metadata.
    pub fn samples(&self, folder: &Path, name: &str) -> Vec<Complex32> {
        let turn = -std::f64::consts::TAU * self.cfo_hz / self.rate_hz() as f64;
        let back = |(at, sample): (usize, Complex32)| {
            let angle = turn * at as f64;
            sample * Complex32::new(angle.cos() as f32, angle.sin() as f32)
        };
        self.raw_samples(folder, name).into_iter().enumerate().map(back).collect()
    }

    /// All samples, as recorded.
    pub fn raw_samples(&self, folder: &Path, name: &str) -> Vec<Complex32> {
        let packed = std::fs::read(folder.join(format!("{name}.sigmf-data.zst"))).expect("samples");
        let bytes = zstd::decode_all(&packed[..]).expect("zstd");
        let numbers: Vec<f32> = match self.data_type.as_str() {
            "ci8" => bytes.iter().map(|&byte| f32::from(byte as i8) / 127.0).collect(),
            "ci16_le" => bytes
                .chunks_exact(2)
                .map(|pair| f32::from(i16::from_le_bytes([pair[0], pair[1]])) / 32767.0)
                .collect(),
            other => panic!("{name} has samples of type {other}"),
        };
        numbers.chunks_exact(2).map(|pair| Complex32::new(pair[0], pair[1])).collect()
    }
}

/// One row of a reference table.
#[derive(Debug)]
pub struct Row(BTreeMap<String, String>);

impl Row {
    pub fn text(&self, column: &str) -> &str {
        self.0.get(column).unwrap_or_else(|| panic!("no column {column}"))
    }

    pub fn number<T: FromStr>(&self, column: &str) -> T {
        self.text(column).parse().unwrap_or_else(|_| panic!("{column} is no number in {self:?}"))
    }

    /// Number in a column that may be empty; an empty column gives zero.
    pub fn number_or_zero<T: FromStr + Default>(&self, column: &str) -> T {
        if self.text(column).is_empty() { T::default() } else { self.number(column) }
    }

    pub fn flag(&self, column: &str) -> bool {
        self.number_or_zero::<u8>(column) == 1
    }

    /// Parses a set such as `0-3 8`.
    pub fn prbs(&self, column: &str) -> PrbSet {
        let run = |text: &str| {
            let (first, last) = text.split_once('-').unwrap_or((text, text));
            let (first, last): (u16, u16) = (first.parse().expect("a PRB"), last.parse().expect("a PRB"));
            PrbSet::run(first, last - first + 1)
        };
        self.text(column).split_whitespace().fold(PrbSet::EMPTY, |set, text| set.union(run(text)))
    }
}

/// Messages of a recording.
pub fn truth(folder: &Path, name: &str) -> Vec<Row> {
    table(folder, &format!("{name}.truth.csv"))
}

/// Rows of a table.
pub fn table(folder: &Path, file: &str) -> Vec<Row> {
    let text = std::fs::read_to_string(folder.join(file)).expect("a table");
    let mut lines = text.lines();
    let columns: Vec<&str> = lines.next().expect("a header").split(',').collect();
    let row = |line: &str| {
        let cells = line.split(',').map(str::to_owned);
        Row(columns.iter().map(|&column| column.to_owned()).zip(cells).collect())
    };
    lines.map(row).collect()
}

/// A format by its name in the tables.
pub fn format(name: &str) -> Format {
    let name = name.trim_end_matches("-order");
    Format::ALL.into_iter().find(|format| format.name() == name).unwrap_or_else(|| panic!("no format {name}"))
}
