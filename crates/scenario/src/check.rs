//! Validation of a scenario beyond the types of its values: rejects invalid amounts, references to missing entries, and
//! links that cannot be built.

use std::ops::RangeInclusive;

use airpace_cc::SchemeSpec;
use airpace_core::count::count;
use airpace_core::nearest::instead;
use airpace_core::{DeviceId, Direction, Rate};
use airpace_path::cell::config::TelemetryConfig;
use airpace_path::config_error::{not_negative, positive};
use airpace_path::network::{FlowConfig, LastHopPlan, NetworkConfig};
use airpace_path::{ConfigError, NetworkPlan};

mod last_hop;
mod transfers;

use crate::Origin;
use crate::document::{AckPath, DecoderConfig, Device, Document, Expect, Flow, Outage, Part};

/// Maximum duration of a run, in seconds: eleven days.
const MAX_RUN_S: f64 = 1e6;

/// Maximum product of a run's duration in seconds and its number of flows: results are kept for each tenth of a second
/// of each flow.
///
/// Chosen: one flow for eleven days, or a thousand flows for some hours.
const MAX_FLOW_SECONDS: f64 = 1e7;

/// Maximum number of entries of a list, such as flows or devices.
///
/// Chosen: more devices than a cell can serve.
const MAX_ENTRIES: usize = 1_000;

/// Maximum number of characters of a name, which appears in every table and is part of file names.
///
/// Chosen: fewer characters than file systems allow, with room for suffixes.
const MAX_NAME: usize = 100;
/// Maximum number of characters of a label, which appears in every row of a table.
///
/// Chosen: the length of two lines of a wide terminal.
const MAX_LABEL: usize = 200;
/// Maximum number of characters of a text for readers, which usually has one sentence or a few sentences.
///
/// Chosen: the length of a few pages.
const MAX_TEXT: usize = 10_000;

/// Minimum time for which an application may send or pause, in seconds.
///
/// Chosen: the duration of a subframe.
const MIN_TURN_S: f64 = 1e-3;

/// Maximum number of on-off cycles of all applications of a run together.
///
/// Chosen: so that the cycles take a few megabytes of memory.
const MAX_TURNS: f64 = 1e6;

/// Valid sizes of full packets in bytes.
///
/// Chosen: from a little more than the size of this transport's ACKs to the size of jumbo frames in wired networks.
const PACKET_BYTES: RangeInclusive<u64> = 100..=9_000;

/// Maximum delay of an ACK, in ms.
///
/// Source: RFC 9000 §18.2 (`max_ack_delay` is less than 2^14 ms)
const MAX_ACK_DELAY_MS: f64 = 16_383.0;

/// A validated document, converted to the types that a run needs.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// The schemes that are compared if the user names no scheme.
    pub(crate) schemes: Vec<SchemeSpec>,
    /// For each flow: its own scheme, if the scenario sets one for it.
    pub(crate) own_schemes: Vec<Option<SchemeSpec>>,
    /// The network between the endpoints of flows. If the last hop is a trace, the trace is still missing.
    pub(crate) network: NetworkPlan,
}

impl Document {
    /// Validates the document and plans its run.
    ///
    /// # Errors
    /// A value with which the scenario cannot be run. The keys of errors are dotted paths from the scenario's root.
    pub(crate) fn plan(&self, origin: &Origin) -> Result<Plan, ConfigError> {
        if self.name.is_empty() || !self.name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
        {
            let reason = "must be letters, digits, `-`, `_` and `.`: it names folders and tables";
            return Err(ConfigError::new("name", reason));
        }
        positive("duration_s", self.duration_s)?;
        if self.duration_s > MAX_RUN_S {
            return Err(ConfigError::new("duration_s", format!("is above {MAX_RUN_S} s")));
        }
        self.check_amounts()?;
        if self.schemes.is_empty() {
            return Err(ConfigError::new(
                "schemes",
                "is empty; name at least one scheme, as in [\"pbe\", \"bbr\"]",
            ));
        }
        let schemes = self.schemes.iter().enumerate();
        let schemes = schemes.map(|(index, scheme)| known_scheme(&format!("schemes.{index}"), scheme));
        let schemes = schemes.collect::<Result<_, _>>()?;
        self.check_path(origin)?;
        each("ack_outage", &self.ack_outage, Outage::check)?;
        self.check_devices(origin)?;
        if self.flow.is_empty() {
            return Err(ConfigError::new(
                "flow",
                "is missing; add at least one `[[flow]]` with its `rtt_ms`",
            ));
        }
        each("flow", &self.flow, |flow| flow.check(self))?;
        let own_schemes = self.flow.iter().enumerate().map(|(index, flow)| {
            let own = flow.scheme.as_ref();
            own.map(|scheme| known_scheme(&self.key_of(index, "scheme"), scheme)).transpose()
        });
        let own_schemes = own_schemes.collect::<Result<_, _>>()?;
        self.check_directions()?;
        let network = self.network()?;
        self.check_labels()?;
        each("expect", &self.expect, |expect| expect.check(self))?;
        Ok(Plan { schemes, own_schemes, network })
    }

    /// Rejects values that would take unlimited memory or time.
    fn check_amounts(&self) -> Result<(), ConfigError> {
        for (key, entries) in [
            ("flow", self.flow.len()),
            ("device", self.device.len()),
            ("ack_outage", self.ack_outage.len()),
            ("expect", self.expect.len()),
            ("schemes", self.schemes.len()),
        ] {
            if entries > MAX_ENTRIES {
                let reason = format!("has {entries} entries; the most are {MAX_ENTRIES}");
                return Err(ConfigError::new(key, reason));
            }
        }
        if self.duration_s * self.flow.len() as f64 > MAX_FLOW_SECONDS {
            let reason = format!(
                "is {} with {}; the most is {MAX_FLOW_SECONDS} s of all flows together",
                self.duration_s,
                count(self.flow.len() as u64, "flow")
            );
            return Err(ConfigError::new("duration_s", reason));
        }
        self.check_texts()?;
        self.check_transfers()?;
        let mut turns = 0.0;
        for (index, flow) in self.flow.iter().enumerate() {
            let (Some(on), Some(off)) = (flow.on_s, flow.off_s) else { continue };
            for (key, seconds) in [("on_s", on), ("off_s", off)] {
                if positive(key, seconds).map_err(|error| error.within(&format!("flow.{index}")))?
                    < MIN_TURN_S
                {
                    let reason = format!("is {seconds}; the least is {MIN_TURN_S}");
                    return Err(ConfigError::new(format!("flow.{index}.{key}"), reason));
                }
            }
            turns += self.duration_s / (on + off);
            if turns > MAX_TURNS {
                let reason = format!(
                    "is {on}, with pauses of {off} s: flows turn on more than {MAX_TURNS} times; give longer times"
                );
                return Err(ConfigError::new(format!("flow.{index}.on_s"), reason));
            }
        }
        Ok(())
    }

    /// Rejects texts that are too long for their purpose.
    fn check_texts(&self) -> Result<(), ConfigError> {
        let check = |key: String, text: &str, most: usize| match text.chars().count() {
            length if length > most => {
                Err(ConfigError::new(key, format!("has {length} characters; the most are {most}")))
            }
            _ => Ok(()),
        };
        check("name".to_owned(), &self.name, MAX_NAME)?;
        check("about".to_owned(), &self.about, MAX_TEXT)?;
        check("source".to_owned(), &self.source, MAX_TEXT)?;
        for (index, flow) in self.flow.iter().enumerate() {
            check(format!("flow.{index}.label"), &flow.label, MAX_LABEL)?;
        }
        for (index, device) in self.device.iter().enumerate() {
            check(format!("device.{index}.label"), &device.label, MAX_LABEL)?;
        }
        for (index, expect) in self.expect.iter().enumerate() {
            check(format!("expect.{index}.say"), &expect.say, MAX_TEXT)?;
        }
        Ok(())
    }

    fn check_path(&self, origin: &Origin) -> Result<(), ConfigError> {
        let last_hops = [
            ("cell", self.cell.is_some()),
            ("trace", self.trace.is_some()),
            ("cellular", self.cellular.is_some()),
        ];
        let last_hops: Vec<&str> =
            last_hops.iter().filter(|(_, is_there)| *is_there).map(|it| it.0).collect();
        if let [first, .., last] = last_hops[..] {
            // The error names the table that was set from outside the file.
            let blamed = *last_hops.iter().find(|table| origin.was_set(table)).unwrap_or(&last);
            let other = if blamed == first { last } else { first };
            let reason = format!("stands beside `[{other}]`; a path has one last hop: remove either");
            return Err(ConfigError::new(blamed, reason));
        }
        if let Some(cellular) = &self.cellular {
            cellular.check()?;
        }
        if let Some(trace) = &self.trace {
            trace.check().map_err(|error| error.within("trace"))?;
        }
        if let [table @ ("trace" | "cellular")] = last_hops[..]
            && self.device.len() != 1
        {
            let reason = format!(
                "must have one entry beside `[{table}]`, which is the link of one device; it may have several flows"
            );
            return Err(ConfigError::new("device", reason));
        }
        Ok(())
    }

    /// Plans the network between the endpoints of flows. If the last hop is a trace, the trace is still missing.
    fn network(&self) -> Result<NetworkPlan, ConfigError> {
        let last_hop = match &self.cell {
            Some(cell) => {
                let radios: Vec<_> = self.device.iter().map(|device| device.radio.clone()).collect();
                LastHopPlan::cell(cell, &radios)?
            }
            None => LastHopPlan::Nothing(self.forward.rate_mbps.map(Rate::from_mbps)),
        };
        let flows = self.flow.iter().map(|flow| FlowConfig {
            device: DeviceId(flow.device),
            direction: flow.direction,
            acks_cross_cell: flow.acks == AckPath::Cell || self.records_both_ways(),
            crosses_internet: flow.internet,
            crosses_last_hop: !flow.ends_at_proxy(),
            has_plain_wires: flow.has_plain_wires(),
            rtt_ms: flow.rtt_ms,
            data_bytes: flow.mss(),
        });
        NetworkPlan::new(NetworkConfig {
            forward: &self.forward,
            reverse: &self.reverse,
            internet: self.internet.as_ref(),
            last_hop,
            devices: self.device.len(),
            flows: flows.collect(),
        })
        .map_err(|error| self.at_proxy(error))
    }

    /// The path of a key of a flow in the scenario's file. A server leg has its keys in the table `proxy` of its flow.
    fn key_of(&self, flow: usize, key: &str) -> String {
        match self.flow[flow].part {
            Part::ToProxy { device_leg, .. } => format!("flow.{device_leg}.proxy.{key}"),
            Part::Whole | Part::FromProxy { .. } => format!("flow.{flow}.{key}"),
        }
    }

    /// An error of the network about the round trip of a leg as an error about its proxy.
    fn at_proxy(&self, error: ConfigError) -> ConfigError {
        let leg =
            self.flow.iter().enumerate().find(|(index, flow)| {
                flow.part != Part::Whole && error.key == format!("flow.{index}.rtt_ms")
            });
        let Some((index, flow)) = leg else { return error };
        let (name, flow) = match flow.part {
            Part::ToProxy { device_leg, .. } => ("server", usize::from(device_leg)),
            _ => ("device", index),
        };
        let reason = format!("makes a leg to the {name} whose round trip {}", error.reason);
        ConfigError::new(format!("flow.{flow}.proxy.rtt_ms"), reason)
    }

    /// Whether the last hop replays recordings of both directions. ACKs then cross the last hop too.
    fn records_both_ways(&self) -> bool {
        self.cellular.is_some() || self.trace.as_ref().is_some_and(|trace| trace.back.is_some())
    }

    /// Rejects flows in both directions over a single trace, which records one direction of a link.
    fn check_directions(&self) -> Result<(), ConfigError> {
        let is_one_way = self.trace.is_some() && !self.records_both_ways();
        for (index, flow) in self.flow.iter().enumerate() {
            if is_one_way && flow.direction != self.flow[0].direction {
                let reason = "differs from that of flow 0, but a trace is one direction of a link; let all flows of \
                              `[trace]` go the same way, or add `[trace.back]`, the trace of the other direction";
                return Err(ConfigError::new(format!("flow.{index}.direction"), reason));
            }
            if self.cell.is_none() && flow.acks == AckPath::Cell {
                let reason = "is `cell`, but there is no `[cell]`; add one, or leave the ACKs on the wire (they cross \
                              `[trace.back]` and `[cellular]` by themselves)";
                return Err(ConfigError::new(format!("flow.{index}.acks"), reason));
            }
        }
        Ok(())
    }

    fn check_devices(&self, origin: &Origin) -> Result<(), ConfigError> {
        if self.device.is_empty() {
            return Err(ConfigError::new("device", "is an empty list; leave it out to get one device"));
        }
        for (index, _) in self.device.iter().enumerate().filter(|(_, device)| device.reports.is_some()) {
            let key = format!("device.{index}.reports");
            if !origin.was_set(&key) {
                let reason = "names a file to be written; set the key for one run, not in a scenario's file";
                return Err(ConfigError::new(key, reason));
            }
            if self.cell.is_none() && self.trace.as_ref().is_none_or(|trace| !trace.telemetry) {
                let reason = "asks for reports of a radio, but there is neither a `[cell]` nor a `[trace]` with telemetry";
                return Err(ConfigError::new(key, reason));
            }
        }
        each("device", &self.device, |device| {
            device.check_clock().map_err(|error| error.within("clock"))?;
            device.decoder.map_or(Ok(()), |decoder| self.check_decoder(&decoder))
        })
    }

    fn check_decoder(&self, decoder: &DecoderConfig) -> Result<(), ConfigError> {
        let Some(cell) = &self.cell else {
            let reason = "decodes the control channel of a cell, but there is no `[cell]`; add one, or remove the decoder";
            return Err(ConfigError::new("decoder", reason));
        };
        if cell.nr_carriers() > 0 {
            let reason = "decodes carriers of LTE, and the cell has carriers of NR; remove it: the phone then receives the \
                          grants without a decoder";
            return Err(ConfigError::new("decoder", reason));
        }
        if cell.telemetry != TelemetryConfig::default() {
            let reason =
                "makes its own errors and delays, and `[cell.telemetry]` makes others; remove either";
            return Err(ConfigError::new("decoder", reason));
        }
        if !(-30.0..=60.0).contains(&decoder.snr_db) {
            let reason = format!("is {}; give decibels between -30 and 60", decoder.snr_db);
            return Err(ConfigError::new("decoder.snr_db", reason));
        }
        if !(0.0..=1000.0).contains(&decoder.doppler_hz) {
            let reason = format!("is {}; give hertz between 0 and 1000", decoder.doppler_hz);
            return Err(ConfigError::new("decoder.doppler_hz", reason));
        }
        Ok(())
    }

    fn check_labels(&self) -> Result<(), ConfigError> {
        for (index, flow) in self.flow.iter().enumerate() {
            if let Some(earlier) = self.flow[..index].iter().position(|other| other.label == flow.label) {
                let reason =
                    format!("is `{}`, as is that of flow {earlier}; tables need them apart", flow.label);
                return Err(ConfigError::new(format!("flow.{index}.label"), reason));
            }
        }
        Ok(())
    }
}

impl Outage {
    fn check(&self) -> Result<(), ConfigError> {
        not_negative("at_s", self.at_s)?;
        positive("for_s", self.for_s)?;
        Ok(())
    }
}

impl Device {
    fn check_clock(&self) -> Result<(), ConfigError> {
        let clock = &self.clock;
        // Every device's clock starts an hour ahead, so that the clock never shows a negative time.
        for (key, value, most) in [
            ("offset_ms", clock.offset_ms, 1e6),
            ("drift_ppm", clock.drift_ppm, 1e5),
            ("step_ms", clock.step_ms, 1e6),
        ] {
            if !value.is_finite() || value.abs() > most {
                return Err(ConfigError::new(
                    key,
                    format!("is {value}; give a number between -{most} and {most}"),
                ));
            }
        }
        not_negative("step_at_s", clock.step_at_s)?;
        Ok(())
    }
}

impl Flow {
    fn check(&self, scenario: &Document) -> Result<(), ConfigError> {
        let devices = scenario.device.len();
        if usize::from(self.device) >= devices {
            let reason = format!(
                "is {}, but the scenario has {}, counted from 0; add a `[[device]]`",
                self.device,
                count(devices as u64, "device")
            );
            return Err(ConfigError::new("device", reason));
        }
        positive("rtt_ms", self.rtt_ms)?;
        if !PACKET_BYTES.contains(&self.mss_bytes) {
            let (least, most) = (PACKET_BYTES.start(), PACKET_BYTES.end());
            let reason = format!("is {}; give {least} to {most} (1500 is usual)", self.mss_bytes);
            return Err(ConfigError::new("mss_bytes", reason));
        }
        let queue = scenario.cell.as_ref().map(|cell| match self.direction {
            Direction::Downlink => scenario.device[usize::from(self.device)].radio.queue_bytes,
            Direction::Uplink => cell.uplink.queue_bytes,
        });
        if let Some(queue) = queue.filter(|&queue| queue < self.mss_bytes) {
            let reason = format!(
                "is {}, but the cell's queue holds {queue} bytes (`queue_bytes`), not even one packet; raise it",
                self.mss_bytes
            );
            return Err(ConfigError::new("mss_bytes", reason));
        }
        not_negative("start_s", self.start_s)?;
        if self.start_s >= scenario.duration_s {
            let reason = format!("is {}, after the end of the run ({} s)", self.start_s, scenario.duration_s);
            return Err(ConfigError::new(
                "start_s",
                format!("{reason}; start earlier or raise `duration_s`"),
            ));
        }
        if let Some(stop) = self.stop_s
            && !(stop.is_finite() && stop > self.start_s)
        {
            return Err(ConfigError::new(
                "stop_s",
                format!("is {stop}; it must be after `start_s` ({})", self.start_s),
            ));
        }
        match (self.on_s, self.off_s) {
            (Some(_), Some(_)) | (None, None) => {}
            (Some(_), None) => return Err(ConfigError::new("off_s", "is missing; `on_s` needs it")),
            (None, Some(_)) => return Err(ConfigError::new("on_s", "is missing; `off_s` needs it")),
        }
        self.check_rates()?;
        if self.ack_every == 0 {
            return Err(ConfigError::new("ack_every", "is 0; give 1 to acknowledge every packet"));
        }
        if not_negative("ack_delay_ms", self.ack_delay_ms)? > MAX_ACK_DELAY_MS {
            let reason = format!("is {}; an ACK may wait for {MAX_ACK_DELAY_MS} ms", self.ack_delay_ms);
            return Err(ConfigError::new("ack_delay_ms", reason));
        }
        if let Some(lie) = &self.misreport {
            lie.check().map_err(|error| error.within("misreport"))?;
        }
        if self.bytes == Some(0) {
            return Err(ConfigError::new("bytes", "is 0; leave it out for data without end"));
        }
        Ok(())
    }
}

impl Expect {
    fn check(&self, scenario: &Document) -> Result<(), ConfigError> {
        known_scheme("scheme", &self.scheme)?;
        if let Some(of) = &self.of {
            known_scheme("of", of)?;
        }
        if let Some(label) = &self.flow
            && !scenario.flow.iter().any(|flow| flow.label == *label)
        {
            let labels: Vec<&str> = scenario.flow.iter().map(|flow| flow.label.as_str()).collect();
            let reason = format!("is `{label}`{}", instead(label, &labels, "the flows are called"));
            return Err(ConfigError::new("flow", reason));
        }
        if self.at_least.is_none() && self.at_most.is_none() {
            return Err(ConfigError::new("at_least", "is missing; give `at_least`, `at_most` or both"));
        }
        if [self.at_least, self.at_most].into_iter().flatten().any(|bound| !bound.is_finite()) {
            return Err(ConfigError::new("at_least", "and `at_most` must be finite numbers"));
        }
        Ok(())
    }
}

/// Checks every entry of a list. The key of an error is prefixed with the list's name and the entry's index.
fn each<T>(
    list: &str,
    entries: &[T],
    check: impl Fn(&T) -> Result<(), ConfigError>,
) -> Result<(), ConfigError> {
    for (index, entry) in entries.iter().enumerate() {
        check(entry).map_err(|error| error.within(&format!("{list}.{index}")))?;
    }
    Ok(())
}

fn known_scheme(key: &str, text: &str) -> Result<SchemeSpec, ConfigError> {
    SchemeSpec::parse(text).map_err(|error| ConfigError::new(key, format!("is `{text}`: {error}")))
}
