//! The tables and keys of a scenario's file.

use std::path::{Path, PathBuf};
use std::time::Duration;

use airpace_cc::endpoint::AckPolicy;
use airpace_cc::registry::Protocol;
use airpace_core::tables::delay::DelayProfile;
use airpace_core::{Bytes, Direction, Time};
use airpace_path::cell::{CellConfig, DeviceRadioConfig};
use airpace_path::network::DATA_BYTES;
use airpace_path::queue::QueueConfig;
use airpace_path::wire::WireConfig;
use airpace_video::{PlayerConfig, Viewing};
use serde::Deserialize;

use crate::words;

mod cellular;
mod last_hop;
mod misreport;
mod proxy;
mod rate_change;

pub use cellular::{CellularHop, CellularWay, Heavy, Light, SynthTrains};
pub use last_hop::{BackTrace, RecordedTrace, SynthTrace, TraceHop};
pub(crate) use last_hop::{SynthRate, TraceSource};
pub use misreport::Misreport;
pub use proxy::{Leg, Part, Proxy};
pub use rate_change::RateChange;

/// Content of a scenario file: one experiment.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Document {
    /// The scenario's name in lists, tables and run folders; at most 100 characters.
    pub name: String,
    /// One line for lists and reports. Like every text for readers, it has at most 10,000 characters.
    #[serde(default)]
    pub about: String,
    /// Publication of the experiment, such as a section of a paper.
    #[serde(default)]
    pub source: String,
    /// Duration of a run, in seconds of the run's clock.
    pub duration_s: f64,
    /// The schemes that are compared if the user names no scheme.
    #[serde(default = "default_schemes")]
    pub schemes: Vec<String>,
    /// The shared bottleneck on the server side of the last hop. Every flow with `internet = true` crosses this
    /// bottleneck. It has a queue for each direction.
    pub internet: Option<QueueConfig>,
    /// The last hop, if it is a cell.
    pub cell: Option<CellConfig>,
    /// The last hop, if it is a recorded trace, or one trace for each direction.
    pub trace: Option<TraceHop>,
    /// The last hop, if it is a cellular link with recordings under light and heavy load.
    pub cellular: Option<CellularHop>,
    /// The configuration of each flow's wire for data; the wire's delay is computed from the flow's `rtt_ms`.
    #[serde(default)]
    pub forward: WireConfig,
    /// The configuration of each flow's wire for ACKs; the wire's delay is computed from the flow's `rtt_ms`.
    #[serde(default)]
    pub reverse: WireConfig,
    /// Time spans in which every ACK is lost.
    #[serde(default)]
    pub ack_outage: Vec<Outage>,
    /// The mobile devices. If the list is absent, the scenario has one device.
    #[serde(default = "one_device")]
    pub device: Vec<Device>,
    /// The flows.
    #[serde(default)]
    pub flow: Vec<Flow>,
    /// Results that every run must have.
    #[serde(default)]
    pub expect: Vec<Expect>,
}

/// A span of time.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Outage {
    /// Start of the span, in seconds of the run's clock.
    pub at_s: f64,
    /// Length of the span, in seconds.
    pub for_s: f64,
}

/// A mobile device: one radio user of the last hop and one clock.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Device {
    /// Name of the device in reports, at most 200 characters; `device N` if empty.
    pub label: String,
    /// The device's radio, used if the last hop is a cell.
    pub radio: DeviceRadioConfig,
    /// Difference of the device's clock from true time.
    pub clock: ClockConfig,
    /// Decoder of radio samples by which the device receives a cell's control channel. If absent, the device receives
    /// the base station's own data, with the imperfections of `cell.telemetry`.
    pub decoder: Option<DecoderConfig>,
    /// A file for the radio reports that the device's flows use: one line of JSON for each subframe, with the run's
    /// times. The reports are the modem's reports if only senders on the device use reports, otherwise the reports from
    /// the control channel. This key can be set only from outside the scenario's file (`--set device.0.reports=FILE`).
    /// A scenario may come from a stranger, who must not choose the file to be written.
    pub reports: Option<PathBuf>,
}

/// A device's control channel decoder, with the radio channel between the cell and the decoder's samples. Each device
/// and carrier has its own antenna, channel and decoder.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DecoderConfig {
    /// Mean signal-to-noise ratio on a resource element, in dB. This ratio affects only the decoder; the device
    /// receives its own data as configured by `radio`.
    pub snr_db: f64,
    /// Multipath profile: distribution of power over delay.
    ///
    /// Source: TS 36.101 Annex B.2
    pub fading: DelayProfile,
    /// Maximum Doppler shift of a path, in Hz; at 0, the channel never changes.
    pub doppler_hz: f64,
}

impl Default for DecoderConfig {
    fn default() -> DecoderConfig {
        DecoderConfig { snr_db: 20.0, fading: DelayProfile::Flat, doppler_hz: 0.0 }
    }
}

/// Difference of a device's clock from true time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ClockConfig {
    /// Offset of the clock at the start of the run, in ms; positive: ahead of true time, negative: behind.
    pub offset_ms: f64,
    /// Drift of the clock, in parts per million; positive: too fast, negative: too slow.
    pub drift_ppm: f64,
    /// Jump of the clock at `step_at_s`, in ms; positive: ahead, negative: back.
    pub step_ms: f64,
    /// Time of the clock's jump, in s of the run's clock.
    pub step_at_s: f64,
}

/// One flow of data between a device and a server on the Internet.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Flow {
    /// Name of the flow in tables, at most 200 characters; `flow N` if absent.
    #[serde(default)]
    pub label: String,
    /// The flow's device, by its index in the list of devices, counted from 0.
    #[serde(default)]
    pub device: u16,
    /// The direction of the flow's data: `down` to the device, or `up` from the device. The sender uses the clock of
    /// its endpoint.
    #[serde(default, deserialize_with = "words::direction")]
    pub direction: Direction,
    /// Path of the flow's ACKs.
    #[serde(default)]
    pub acks: AckPath,
    /// Number of the flow's application on the device. If absent, the flow has its own application.
    pub app: Option<u16>,
    /// Transport protocol of the flow for the device's counters: `tcp` or `udp`.
    #[serde(default, deserialize_with = "words::protocol")]
    pub protocol: Protocol,
    /// The flow's scheme. If absent, the flow uses the scheme under test.
    pub scheme: Option<String>,
    /// Start of the flow, in s of the run's clock.
    #[serde(default)]
    pub start_s: f64,
    /// Time at which the flow's application stops sending, in s of the run's clock. If absent, the application stops at
    /// the end of the run.
    pub stop_s: Option<f64>,
    /// Minimum round-trip time over the whole empty path, in ms.
    pub rtt_ms: f64,
    /// Size of full packets on the wire, IP and transport headers included, in bytes: 100 to 9000. A trace's delivery
    /// opportunities remain 1504 bytes: several packets share an opportunity, or a packet uses several opportunities,
    /// as in mahimahi.
    #[serde(default = "usual_packet")]
    pub mss_bytes: u64,
    /// Sending time of the application before each pause, in s; requires `off_s`.
    pub on_s: Option<f64>,
    /// Duration of each pause, in s; requires `on_s`.
    pub off_s: Option<f64>,
    /// Rate at which the application produces data, in Mbit/s. If absent, the application always has more data.
    pub rate_mbps: Option<f64>,
    /// Later changes of `rate_mbps`. The scheme must be able to carry each rate: `cbr` sends no faster than its own
    /// `rate_mbps`.
    #[serde(default)]
    pub schedule: Vec<RateChange>,
    /// Amount of data to send, in bytes. If absent, the amount is unlimited.
    pub bytes: Option<u64>,
    /// Interval of transfers of `bytes` each, in ms. A transfer that is due while the previous transfer is in progress
    /// starts when the previous transfer has arrived. If absent, the flow has one transfer.
    pub every_ms: Option<f64>,
    /// Connection of the transfers after the first; requires `every_ms`.
    pub connection: Option<Connection>,
    /// Size, in bytes, of the client's request, which starts each transfer of a download with `bytes`, and each segment
    /// of a video. The request carries the receiver's feedback, as ACKs do. At 0, the client sends no request: the server
    /// starts each transfer itself.
    #[serde(default)]
    pub request_bytes: u64,
    /// Number of bytes of a transfer that must have arrived before the client can show something; all bytes if the
    /// transfer is shorter.
    #[serde(default = "start_up_bytes")]
    pub start_up_bytes: u64,
    /// Adaptive video: a player at the device requests one segment of the video after the other, on one connection, with
    /// requests of `request_bytes`.
    pub video: Option<PlayerConfig>,
    /// The viewing of the video, for the score of its quality; requires `video`.
    pub viewing: Option<Viewing>,
    /// Whether the flow crosses the `[internet]` queue.
    #[serde(default = "yes")]
    pub internet: bool,
    /// Number of data packets per ACK; TCP's receivers acknowledge every second packet.
    #[serde(default = "every_packet")]
    pub ack_every: u32,
    /// Maximum time for which the receiver delays an ACK while it waits for `ack_every` packets, in ms.
    #[serde(default = "ack_delay_ms")]
    pub ack_delay_ms: f64,
    /// Misreporting of the measured capacity by the receiver. Only flows under `pbe` are affected.
    pub misreport: Option<Misreport>,
    /// A proxy that splits the connection of the download.
    pub proxy: Option<Proxy>,
    /// The part of its connection that the flow is.
    #[serde(skip)]
    pub part: Part,
}

/// Connection of a flow's transfers after the first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Connection {
    /// A new connection for each transfer: both endpoints of the scheme start in their initial state. A receiver that
    /// decodes the control channel was already decoding before the connection started, as a phone's decoder does.
    #[default]
    New,
    /// The connection of the first transfer, with the state of its endpoints.
    Same,
}

/// Path of a flow's ACKs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AckPath {
    /// Only the reverse wire: ACKs use no capacity of the last hop and do not wait in the last hop. If the scenario has
    /// a trace of their own direction (`[trace.back]`), ACKs cross this trace nevertheless.
    #[default]
    Wire,
    /// The reverse wire and the cell. ACKs of data that a device receives wait for grants on the cell's uplink; ACKs of
    /// data that a device sends wait in the cell's queue.
    Cell,
}

/// A result that a run must have.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expect {
    /// The expectation as a sentence.
    pub say: String,
    /// The scheme under test to which the expectation applies. The expectation is skipped if this scheme is not run.
    pub scheme: String,
    /// The label of the flow to which the expectation applies. If absent, the expectation applies to the first flow.
    pub flow: Option<String>,
    /// The metric, by its name in the summary, for example `throughput_mbps` or `queueing_delay_ms.p95`.
    pub metric: String,
    /// The lowest allowed value of the metric.
    pub at_least: Option<f64>,
    /// The highest allowed value of the metric.
    pub at_most: Option<f64>,
    /// If given, the metric's value is divided by the value of the same flow under this scheme.
    pub of: Option<String>,
}

impl Document {
    /// Returns the duration of a run.
    pub fn duration(&self) -> Duration {
        Duration::from_secs_f64(self.duration_s)
    }

    /// Returns the files that a run reads.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        let trace = self.trace.as_ref();
        let back = trace.and_then(|trace| trace.back.as_ref()).and_then(|back| back.file.as_ref());
        let own = trace.into_iter().flat_map(|trace| [&trace.file, &trace.kpi]).flatten();
        let ways = self.cellular.iter().flat_map(|hop| [&hop.down, &hop.up]);
        own.chain(back).map(PathBuf::as_path).chain(ways.flat_map(CellularWay::files))
    }

    /// Assigns labels to flows and devices that have no label.
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
    /// Returns the start of the flow that the scenario sets.
    pub fn start(&self) -> Time {
        Time::from_secs_f64(self.start_s)
    }

    /// Returns the time at which the flow's application stops; [`Time::NEVER`] if the scenario sets no such time.
    pub fn stop(&self) -> Time {
        self.stop_s.map_or(Time::NEVER, Time::from_secs_f64)
    }

    /// ACK policy of the flow's receiver.
    pub fn ack_policy(&self) -> AckPolicy {
        AckPolicy { every: self.ack_every, max_delay: Duration::from_secs_f64(self.ack_delay_ms * 1e-3) }
    }

    /// Size of the flow's full packets on the wire.
    pub fn mss(&self) -> Bytes {
        Bytes(self.mss_bytes)
    }

    /// Returns the total amount of data to send, if this amount is limited.
    pub fn size(&self) -> Option<Bytes> {
        self.bytes.map(Bytes).filter(|_| self.every_ms.is_none())
    }

    /// Returns the size of each of the flow's transfers, if the flow has transfers: a flow of limited size that sends
    /// as fast as possible.
    pub fn transfer_size(&self) -> Option<Bytes> {
        self.bytes.map(Bytes).filter(|_| self.on_s.is_none() && self.rate_mbps.is_none())
    }

    /// Returns whether the flow has transfers: of a given size, or the segments of a video.
    pub fn has_transfers(&self) -> bool {
        self.video.is_some() || self.transfer_size().is_some()
    }

    /// Returns the interval of transfers; `None` if the flow has at most one transfer.
    pub fn transfers_every(&self) -> Option<Duration> {
        self.every_ms.map(|ms| Duration::from_secs_f64(ms * 1e-3))
    }
}

impl Outage {
    /// Whether `time` is within the span.
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

/// Default number of bytes that a client needs before it can show something.
///
/// Chosen: 100 kB, the first second of a video of 0.8 Mbit/s, or the top of a web page.
fn start_up_bytes() -> u64 {
    100_000
}

fn yes() -> bool {
    true
}

fn every_packet() -> u32 {
    AckPolicy::default().every
}

fn usual_packet() -> u64 {
    DATA_BYTES.0
}

fn ack_delay_ms() -> f64 {
    AckPolicy::default().max_delay.as_secs_f64() * 1e3
}
