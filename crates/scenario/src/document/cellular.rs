//! Tables and keys of a last hop that is a cellular link, emulated as in CellReplay.

use std::path::{Path, PathBuf};

use airpace_core::Direction;
use airpace_path::cellular::CellularConfig;
use airpace_path::trace::{Start, TrainModel};
use serde::Deserialize;

use super::last_hop::{SynthTrace, TraceSource, a_minute, first_seed};

/// A last hop that serves a few packets as the recorded link did under light load, and more packets as it did under
/// heavy load. All packets of the device cross the last hop, including ACKs.
///
/// Source: CellReplay `cellularshell.cc` (the arguments of `mm-cellular`)
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CellularHop {
    /// The link's direction to the device.
    pub down: CellularWay,
    /// The link's direction from the device.
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
    /// A file with delay offsets by packet size, `bytes milliseconds` in steps of 100 bytes. If absent, no delay
    /// offsets are added.
    pub offsets: Option<PathBuf>,
    /// Use of the two recordings by packets.
    pub link: CellularConfig,
}

/// Source of the trains.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Light {
    /// The file of the trains: a line for each train, `time delay chance …` in whole ms. Relative paths work as for
    /// `trace.file`.
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
    /// Maximum base delay, in whole ms: the base delay of each train is drawn between `delay_ms` and this value. If
    /// absent, all trains have the base delay `delay_ms`.
    pub delay_to_ms: Option<u64>,
    /// Number of packets of 1400 bytes in a train.
    #[serde(default = "ten")]
    pub packets: u32,
    /// Rate at which the packets of a train are served, in Mbit/s.
    pub mbps: f64,
    /// Interval between trains, in ms.
    #[serde(default = "a_tenth")]
    pub every_ms: u32,
    /// The length of the recording in seconds; after this time, the recording repeats.
    #[serde(default = "a_minute")]
    pub seconds: u32,
    /// Seed of the random numbers of the trains. The trains are the same in all runs, like a recording.
    #[serde(default = "first_seed")]
    pub seed: u64,
}

/// Source of the trace of a full queue. The keys of this table have the same meaning as in `[trace]`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Heavy {
    /// The trace file.
    pub file: Option<PathBuf>,
    /// The column to use, if the trace file is a table with several columns of rates.
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
    /// Returns the files that a run reads.
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
    /// Returns the trace, from which a simulation takes the part that starts at `start_s`. `table` is the dotted path of the `heavy` table.
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
