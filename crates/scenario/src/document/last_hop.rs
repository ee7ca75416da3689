//! Tables and keys of a last hop that replays traces.

use std::path::{Path, PathBuf};

use airpace_core::Rate;
use airpace_path::cell::{CellConfig, DeviceRadioConfig};
use airpace_path::trace::synth::Model;
use airpace_path::trace::{Start, TraceConfig};
use serde::Deserialize;

use super::yes;

/// A last hop that replays a recorded trace.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TraceHop {
    /// The trace file: a list of delivery opportunities in mahimahi's format, or a table of rates with a header. Gzip
    /// is expanded, and `-` is standard input. A relative path starts at the folder of the scenario's file; on the
    /// command line, at the working directory.
    pub file: Option<PathBuf>,
    /// The column to use, if the trace file is a table with several columns of rates.
    pub column: Option<String>,
    /// The trace to replay if no `file` is given: a synthetic trace, as made by `airpace trace synth`.
    pub synth: Option<SynthTrace>,
    /// A trace that is recorded in a simulated cell before the runs, in place of `file` and `synth`, together with the KPIs of
    /// the modem, in place of `kpi`.
    pub recorded: Option<Box<RecordedTrace>>,
    /// A table of the bandwidths that the modem reported while the trace was recorded, `time_ms,bandwidth_mbps`, as
    /// made by `airpace trace kpi`. Relative paths work as for `file`. Radio reports then contain these bandwidths as
    /// the device's own grants, from each value's time in the trace until the next value's time.
    ///
    /// Source: BISCAY §4 (the trace-based version)
    pub kpi: Option<PathBuf>,
    /// If no `kpi` is given: make such a table from the trace itself, with one bandwidth per interval of this many
    /// milliseconds. For a `recorded` trace: the interval over which the modem's granted bytes are summed up; 100 if absent.
    pub kpi_every_ms: Option<u32>,
    /// Whether devices receive a radio report per millisecond, made from the trace's delivery opportunities or from
    /// `kpi`.
    #[serde(default = "yes")]
    pub telemetry: bool,
    /// Whether the trace may have holes: five seconds or more without a delivery opportunity.
    #[serde(default)]
    pub allow_holes: bool,
    /// The link that replays the trace.
    #[serde(default)]
    pub link: TraceConfig,
    /// The trace of the opposite direction. If this trace is given, every packet of the device crosses the trace of its
    /// direction, including ACKs, and flows may have both directions. Otherwise, packets of the opposite direction
    /// cross only the wire.
    pub back: Option<BackTrace>,
}

/// The trace of the direction opposite to the direction of the first flow's data. The keys of this table have the same
/// meaning as in `[trace]`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BackTrace {
    /// The trace file.
    pub file: Option<PathBuf>,
    /// The column to use, if the trace file is a table with several columns of rates.
    pub column: Option<String>,
    /// The trace to replay if no `file` is given. This trace equals the trace of the other direction if rate and seed
    /// are equal.
    pub synth: Option<SynthTrace>,
    /// Whether the trace may have holes: five seconds or more without a delivery opportunity.
    #[serde(default)]
    pub allow_holes: bool,
    /// The link that replays the trace.
    #[serde(default)]
    pub link: TraceConfig,
}

/// A synthetic trace.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SynthTrace {
    /// Variation of the trace's rate: `cellular`, `poisson` or `constant`.
    #[serde(default)]
    pub model: Model,
    /// The mean rate of the trace, exact to the packet, in Mbit/s. Give either this key or `rate_mbps`.
    pub mean_mbps: Option<f64>,
    /// The rate given to the model, in Mbit/s. `constant` and `poisson` keep this rate. `cellular` starts at this rate,
    /// and its mean rate may be half of this rate or twice this rate.
    pub rate_mbps: Option<f64>,
    /// The length of the trace in seconds; after this time, the trace repeats.
    #[serde(default = "a_minute")]
    pub seconds: u32,
    /// Seed of the random numbers of the trace. The trace is the same in all runs, like a recording.
    #[serde(default = "first_seed")]
    pub seed: u64,
}

/// A trace that is recorded in a simulated cell: a device whose queue is always full sends packets of 1500 bytes through the
/// cell, in the direction of the first flow. Each packet that leaves the cell is a delivery opportunity. The KPIs are the
/// bytes that the cell granted to the device.
///
/// Source: BISCAY §5.3.1
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RecordedTrace {
    /// The cell, with the keys of a scenario's `[cell]`.
    pub cell: CellConfig,
    /// The radio of the recorded device, with the keys of `device.0.radio`.
    pub radio: DeviceRadioConfig,
    /// Length of the recording in seconds, at most 600; after this time, the trace repeats.
    pub seconds: u32,
    /// Seed of the random numbers of the recording. The recording is the same in all runs and for all schemes.
    pub seed: u64,
}

impl Default for RecordedTrace {
    fn default() -> RecordedTrace {
        RecordedTrace {
            cell: CellConfig::default(),
            radio: DeviceRadioConfig::default(),
            seconds: a_minute(),
            seed: first_seed(),
        }
    }
}

/// The rate that a scenario sets for a synthetic trace.
pub(crate) enum SynthRate {
    /// The mean rate of the whole trace.
    Mean(Rate),
    /// The rate given to the model.
    OfModel(Rate),
}

impl SynthTrace {
    /// Returns the rate that the scenario sets. The scenario must have been validated.
    pub(crate) fn rate(&self) -> SynthRate {
        let of_model = SynthRate::OfModel(Rate::from_mbps(self.rate_mbps.unwrap_or_default()));
        self.mean_mbps.map_or(of_model, |mean| SynthRate::Mean(Rate::from_mbps(mean)))
    }
}

/// A trace from a file or from a model.
pub(crate) struct TraceSource<'a> {
    /// The scenario's table with the trace, as a dotted path.
    pub(crate) table: &'a str,
    pub(crate) file: Option<&'a Path>,
    pub(crate) column: Option<&'a str>,
    pub(crate) synth: Option<&'a SynthTrace>,
    pub(crate) allow_holes: bool,
    /// Start of a run within the trace.
    pub(crate) start_s: Start,
}

impl TraceHop {
    /// Returns the source of the trace for the first flow's data.
    pub(crate) fn source(&self) -> TraceSource<'_> {
        TraceSource {
            table: "trace",
            file: self.file.as_deref(),
            column: self.column.as_deref(),
            synth: self.synth.as_ref(),
            allow_holes: self.allow_holes,
            start_s: self.link.start_s,
        }
    }
}

impl BackTrace {
    /// Returns the source of the trace for the opposite direction.
    pub(crate) fn source(&self) -> TraceSource<'_> {
        TraceSource {
            table: "trace.back",
            file: self.file.as_deref(),
            column: self.column.as_deref(),
            synth: self.synth.as_ref(),
            allow_holes: self.allow_holes,
            start_s: self.link.start_s,
        }
    }
}

pub(super) fn a_minute() -> u32 {
    60
}

pub(super) fn first_seed() -> u64 {
    1
}
