//! The tables and keys of a scenario's file.

use std::path::PathBuf;
use std::time::Duration;

use airpace_cc::endpoint::AckPolicy;
use airpace_cc::registry::Protocol;
use airpace_core::tables::delay::DelayProfile;
use airpace_core::{Bytes, Direction, Rate, Time};
use airpace_path::cell::{CellConfig, DeviceRadioConfig};
use airpace_path::queue::QueueConfig;
use airpace_path::trace::TraceConfig;
use airpace_path::trace::synth::Model;
use airpace_path::wire::WireConfig;
use serde::Deserialize;

use crate::words;

/// One experiment as its file says it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Document {
    /// Its name in lists, tables and run folders; at most 100 characters.
    pub name: String,
    /// One line for lists and reports; as every text for readers, at most 10,000 characters.
    #[serde(default)]
    pub about: String,
    /// Where the experiment is published: a section of a paper.
    #[serde(default)]
    pub source: String,
    /// How long a run lasts, in seconds of the run's clock.
    pub duration_s: f64,
    /// The schemes that are compared where the user names none.
    #[serde(default = "default_schemes")]
    pub schemes: Vec<String>,
    /// The shared bottleneck on the server's side of the last hop, crossed by every flow with `internet = true`. It has
    /// a queue for each direction.
    pub internet: Option<QueueConfig>,
    /// The last hop: a cell.
    pub cell: Option<CellConfig>,
    /// The last hop: a recorded trace.
    pub trace: Option<TraceHop>,
    /// What each flow's wire for data is like; its delay comes from the flow's `rtt_ms`.
    #[serde(default)]
    pub forward: WireConfig,
    /// What each flow's wire for ACKs is like; its delay comes from the flow's `rtt_ms`.
    #[serde(default)]
    pub reverse: WireConfig,
    /// Spans in which every ACK that is sent is lost.
    #[serde(default)]
    pub ack_outage: Vec<Outage>,
    /// The mobile devices; one where none is listed.
    #[serde(default = "one_device")]
    pub device: Vec<Device>,
    /// The flows.
    #[serde(default)]
    pub flow: Vec<Flow>,
    /// What must come out.
    #[serde(default)]
    pub expect: Vec<Expect>,
}

/// A last hop that replays a recorded trace.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TraceHop {
    /// The file: `.csv` holds a rate per second, anything else mahimahi's chances to deliver. A relative path is
    /// seen from the scenario's file, on the command line from the working directory.
    pub file: Option<PathBuf>,
    /// The column of rates in a `.csv` file with several.
    pub column: Option<String>,
    /// What is replayed where no `file` is given: a made trace, the one that `airpace trace synth` makes.
    pub synth: Option<SynthTrace>,
    /// A table of the bandwidths that the modem told meanwhile, `time_ms,bandwidth_mbps`, as `airpace trace kpi` makes
    /// it; relative paths as for `file`. Radio reports then hold these bandwidths as grants of the device's own, from
    /// each value's time in the trace until the next one's.
    ///
    /// Source: BISCAY §4 (the trace-based version)
    pub kpi: Option<PathBuf>,
    /// Where no `kpi` is given: derives such a table from the trace itself, with a bandwidth every so many milliseconds.
    pub kpi_every_ms: Option<u32>,
    /// Whether devices get a radio report per millisecond, made from the trace's chances or from `kpi`.
    #[serde(default = "yes")]
    pub telemetry: bool,
    /// Whether a hole of five seconds or more without a chance is meant to be there.
    #[serde(default)]
    pub allow_holes: bool,
    /// The link that replays it.
    #[serde(default)]
    pub link: TraceConfig,
}

/// A made trace.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SynthTrace {
    /// How its rate moves: `cellular`, `poisson` or `constant`.
    #[serde(default)]
    pub model: Model,
    /// What it carries in the mean, to the packet, in Mbit/s. Either this or `rate_mbps` is given.
    pub mean_mbps: Option<f64>,
    /// The rate that the model is given, in Mbit/s: `constant` and `poisson` hold it, `cellular` starts there and may carry
    /// half of it in the mean, or twice.
    pub rate_mbps: Option<f64>,
    /// Its length in seconds; then it starts anew.
    #[serde(default = "a_minute")]
    pub seconds: u32,
    /// Seed of its random numbers: it is the same in all runs, as a recording is.
    #[serde(default = "first_seed")]
    pub seed: u64,
}

/// What a made trace was told of its rate.
pub(crate) enum SynthRate {
    /// What it carries in the mean.
    Mean(Rate),
    /// What its model is given.
    OfModel(Rate),
}

impl SynthTrace {
    /// What it was told of its rate; of a scenario that was checked.
    pub(crate) fn rate(&self) -> SynthRate {
        let of_model = SynthRate::OfModel(Rate::from_mbps(self.rate_mbps.unwrap_or_default()));
        self.mean_mbps.map_or(of_model, |mean| SynthRate::Mean(Rate::from_mbps(mean)))
    }
}

/// A span of time.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Outage {
    /// When it begins, in seconds.
    pub at_s: f64,
    /// How long it lasts, in seconds.
    pub for_s: f64,
}

/// A mobile device: one radio user of the last hop and one clock.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Device {
    /// What it is called in reports; `device N` where empty, at most 200 characters.
    pub label: String,
    /// Its radio, used if the last hop is a cell.
    pub radio: DeviceRadioConfig,
    /// How its clock differs from the senders'.
    pub clock: ClockConfig,
    /// How it listens to the control channel of a cell: with a decoder of radio samples. Absent: it is told what the
    /// cell's base station knows, as `cell.telemetry` says.
    pub decoder: Option<DecoderConfig>,
    /// A file into which a run writes the radio reports that the device is told, a line of JSON for each subframe. It can be
    /// set from outside only (`--set device.0.reports=FILE`): who wrote the scenario may be a stranger, and chooses no file
    /// to be written.
    pub reports: Option<PathBuf>,
}

/// A device's decoder of the control channel, with what lies between the cell and its samples. Each device and carrier has
/// an antenna, a channel and a decoder of its own.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DecoderConfig {
    /// Mean ratio of signal to noise on a resource element, in dB. It is that of the decoder alone: the device's own data
    /// is received as `radio` says.
    pub snr_db: f64,
    /// How power is spread over time: `flat`, `epa`, `eva` or `etu`.
    ///
    /// Source: TS 36.101 Annex B.2
    #[serde(deserialize_with = "words::profile")]
    pub fading: DelayProfile,
    /// The largest Doppler shift of a path, in Hz; 0 leaves the channel as it was drawn.
    pub doppler_hz: f64,
}

impl Default for DecoderConfig {
    fn default() -> DecoderConfig {
        DecoderConfig { snr_db: 20.0, fading: DelayProfile::Flat, doppler_hz: 0.0 }
    }
}

/// How a device's clock differs from true time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ClockConfig {
    /// How far it is ahead at the start, in ms; negative: behind.
    pub offset_ms: f64,
    /// How much too fast it runs, in parts per million; negative: too slow.
    pub drift_ppm: f64,
    /// How far it jumps ahead at `step_at_s`, in ms; negative: back.
    pub step_ms: f64,
    /// When it jumps, in s.
    pub step_at_s: f64,
}

/// One flow of data between a device and a server on the Internet.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Flow {
    /// What it is called in tables; `flow N` where absent, at most 200 characters.
    #[serde(default)]
    pub label: String,
    /// Its device, by its place in the list.
    #[serde(default)]
    pub device: u16,
    /// Which way its data goes: `down` to the device, or `up` from it. The sender lives by the clock of its side.
    #[serde(default, deserialize_with = "words::direction")]
    pub direction: Direction,
    /// What its ACKs cross.
    #[serde(default)]
    pub acks: AckPath,
    /// The application on the device that it belongs to; absent: one of its own.
    pub app: Option<u16>,
    /// Its transport protocol, as the device counts its flows.
    #[serde(default, deserialize_with = "words::protocol")]
    pub protocol: Protocol,
    /// Its scheme; absent: the scheme under test.
    pub scheme: Option<String>,
    /// When it starts, in s.
    #[serde(default)]
    pub start_s: f64,
    /// When its application stops sending, in s; absent: at the end.
    pub stop_s: Option<f64>,
    /// The smallest round-trip time of the whole empty path, in ms.
    pub rtt_ms: f64,
    /// With `off_s`: how long the application sends before each pause, in s.
    pub on_s: Option<f64>,
    /// With `on_s`: how long each pause is, in s.
    pub off_s: Option<f64>,
    /// How fast the application produces data, in Mbit/s; absent: it always has more.
    pub rate_mbps: Option<f64>,
    /// How much there is to send, in bytes; absent: no end.
    pub bytes: Option<u64>,
    /// Whether it crosses the `[internet]` queue.
    #[serde(default = "yes")]
    pub internet: bool,
    /// Data packets per ACK; TCP's receivers acknowledge every second.
    #[serde(default = "every_packet")]
    pub ack_every: u32,
    /// How long the receiver holds back an ACK at most while it waits for `ack_every` packets, in ms.
    #[serde(default = "ack_delay_ms")]
    pub ack_delay_ms: f64,
}

/// What the ACKs of a flow cross.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AckPath {
    /// The reverse wire alone: they cost the last hop nothing and wait for nothing there.
    #[default]
    Wire,
    /// The reverse wire and the cell: ACKs of data that a device receives wait for grants on the cell's uplink, those
    /// of data that it sends wait in the cell's queue.
    Cell,
}

/// Something that must come out of a run.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expect {
    /// The expectation as a sentence.
    pub say: String,
    /// The scheme under test that it is about; it is skipped where that scheme is not run.
    pub scheme: String,
    /// The label of the flow; absent: the first flow.
    pub flow: Option<String>,
    /// The metric, as the summary names it: `throughput_mbps`, `queueing_delay_ms.p95`.
    pub metric: String,
    /// The least that it may be.
    pub at_least: Option<f64>,
    /// The most that it may be.
    pub at_most: Option<f64>,
    /// Take the ratio to the same flow under this scheme.
    pub of: Option<String>,
}

impl Document {
    /// How long a run lasts.
    pub fn duration(&self) -> Duration {
        Duration::from_secs_f64(self.duration_s)
    }

    /// Gives names to flows and devices that have none.
    pub(crate) fn label(&mut self) {
        for (index, flow) in self.flow.iter_mut().enumerate() {
            if flow.label.is_empty() {
                flow.label = format!("flow {index}");
            }
        }
        for (index, device) in self.device.iter_mut().enumerate() {
            if device.label.is_empty() {
                device.label = format!("device {index}");
            }
        }
    }
}

impl Flow {
    /// When it starts, by the scenario.
    pub fn start(&self) -> Time {
        Time::from_secs_f64(self.start_s)
    }

    /// When its application stops; [`Time::NEVER`] if it does not.
    pub fn stop(&self) -> Time {
        self.stop_s.map_or(Time::NEVER, Time::from_secs_f64)
    }

    /// When its receiver acknowledges.
    pub fn ack_policy(&self) -> AckPolicy {
        AckPolicy { every: self.ack_every, max_delay: Duration::from_secs_f64(self.ack_delay_ms * 1e-3) }
    }

    /// How much there is to send in all, if that is limited.
    pub fn size(&self) -> Option<Bytes> {
        self.bytes.map(Bytes)
    }
}

impl Outage {
    /// Whether `time` lies in the span.
    pub fn covers(&self, time: Time) -> bool {
        let start = Time::from_secs_f64(self.at_s);
        time >= start && time < start + Duration::from_secs_f64(self.for_s)
    }
}

fn default_schemes() -> Vec<String> {
    ["pbe", "bbr", "cubic", "oracle"].map(str::to_owned).to_vec()
}

fn one_device() -> Vec<Device> {
    vec![Device::default()]
}

fn a_minute() -> u32 {
    60
}

fn first_seed() -> u64 {
    1
}

fn yes() -> bool {
    true
}

fn every_packet() -> u32 {
    AckPolicy::default().every
}

fn ack_delay_ms() -> f64 {
    AckPolicy::default().max_delay.as_secs_f64() * 1e3
}
