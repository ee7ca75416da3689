//! Tables and keys of a last hop that is a cellular link, emulated as in CellReplay.

use std::path::{Path, PathBuf};

use airpace_core::Direction;
use airpace_path::cellular::CellularConfig;
use airpace_path::trace::{Start, TrainModel};
use serde::Deserialize;

use super::last_hop::{SynthTrace, TraceSource, a_minute, first_seed};

/// A last hop that serves a few packets as under light load, and more as under heavy load. All packets of the device
/// cross it, including ACKs.
///
/// Source: CellReplay `cellularshell.cc` (the arguments of `mm-cellular`)
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CellularHop {
    /// The direction to the device.
    pub down: CellularWay,
    /// The direction from the device.
    pub up: CellularWay,
}

/// One direction of a cellular link.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CellularWay {
    /// Service of a few packets: the base delay, and the opportunities of a train of packets.
    pub light: Light,
    /// Service of a full queue: a trace.
    pub heavy: Heavy,
    /// A file with delay offsets by packet size, `bytes milliseconds` in steps of 100 bytes. If absent, there are none.
    pub offsets: Option<PathBuf>,
    /// Use of the two recordings by packets.
    pub link: CellularConfig,
}

/// Source of the trains.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Light {
    /// The file: a line for each train, `time delay chance …` in whole ms. Relative paths work as for `trace.file`.
    pub file: Option<PathBuf>,
    /// The trains if no `file` is given.
    pub synth: Option<SynthTrains>,
}

/// Synthetic trains.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SynthTrains {
    /// The base delay, in whole ms.
    pub delay_ms: u64,
    /// Maximum base delay, in whole ms: each train's is drawn between the two. If absent, all have `delay_ms`.
    pub delay_to_ms: Option<u64>,
    /// Number of packets of 1400 bytes in a train.
    #[serde(default = "ten")]
    pub packets: u32,
    /// Rate of these packets, in Mbit/s.
    pub mbps: f64,
    /// Interval between trains, in ms.
    #[serde(default = "a_tenth")]
    pub every_ms: u32,
    /// The length of the recording in seconds; after that, it repeats.
    #[serde(default = "a_minute")]
    pub seconds: u32,
    /// Seed of its random numbers. The trains are the same in all runs, like a recording.
    #[serde(default = "first_seed")]
    pub seed: u64,
}

/// Source of the trace of a full queue. Its keys are as those of `[trace]`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Heavy {
    /// The trace file.
    pub file: Option<PathBuf>,
    /// The column to use, if a table has several columns of rates.
    pub column: Option<String>,
    /// The trace to replay if no `file` is given.
    pub synth: Option<SynthTrace>,
    /// Whether the trace may have holes: five seconds or more without a delivery opportunity.
    pub allow_holes: bool,
}

impl CellularHop {
    /// The table of a direction, as a dotted path, and its content.
    pub(crate) fn way(&self, direction: Direction) -> (&'static str, &CellularWay) {
        match direction {
            Direction::Downlink => ("cellular.down", &self.down),
            Direction::Uplink => ("cellular.up", &self.up),
        }
    }
}

impl CellularWay {
    /// The files that a run reads.
    pub(crate) fn files(&self) -> impl Iterator<Item = &Path> {
        [&self.light.file, &self.heavy.file, &self.offsets].into_iter().flatten().map(PathBuf::as_path)
    }
}

impl SynthTrains {
    /// The model of the trains.
    pub(crate) fn model(&self) -> TrainModel {
        TrainModel {
            delay_ms: self.delay_ms,
            delay_to_ms: self.delay_to_ms,
            packets: self.packets,
            mbps: self.mbps,
            every_ms: self.every_ms,
        }
    }
}

impl Heavy {
    /// The trace, with a run that starts at `start_s`. `table` is that of `heavy`, as a dotted path.
    pub(crate) fn source<'a>(&'a self, table: &'a str, start_s: Start) -> TraceSource<'a> {
        TraceSource {
            table,
            file: self.file.as_deref(),
            column: self.column.as_deref(),
            synth: self.synth.as_ref(),
            allow_holes: self.allow_holes,
            start_s,
        }
    }
}

/// Number of packets in a synthetic train.
///
/// Chosen: TCP's initial window.
fn ten() -> u32 {
    10
}

fn a_tenth() -> u32 {
    100
}
