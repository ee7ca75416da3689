//! One qlog per flow from the sender's perspective, for qvis.
//!
//! The files are JSON text sequences (`.sqlog`) in qlog's main schema 0.3 with its QUIC events, which qvis supports.
//! `time` is in milliseconds since the start of the run, and the vantage point is the sender.
//!
//! | event of the run | qlog event |
//! | --- | --- |
//! | [`Event::Sent`] | `transport:packet_sent` |
//! | [`Event::Acked`] | `transport:packet_received` with an ACK frame, `recovery:metrics_updated` |
//! | [`Event::Lost`] | `recovery:packet_lost` |
//! | [`Event::Inspected`] | `recovery:metrics_updated`, `recovery:congestion_state_updated` where the state changed |
//!
//! Source: draft-ietf-quic-qlog-main-schema-02 §4, draft-ietf-quic-qlog-quic-events-01 §5

use std::collections::VecDeque;
use std::fs;
use std::io::{self, Write};
use std::path::Path;

use airpace_core::{Packet, Time};
use airpace_event::{Acked, Event, Inspected, Lost};
use airpace_files::Whole;
use serde_json::{Value, json};

use airpace_tables::FileError;
use airpace_tables::facts::{FlowFacts, RunFacts};
use airpace_tables::partition;

/// Byte before each JSON text of a sequence.
///
/// Source: RFC 7464 §2.2
const RECORD_SEPARATOR: u8 = 0x1E;

/// The qlogs of one run, open for writing.
pub struct Qlogs {
    flows: Vec<Qlog>,
    failure: Option<FileError>,
}

impl Qlogs {
    /// Opens one file per flow below `root`: `qlog/scenario=…/scheme=…/seed=…/flow-0.sqlog`.
    ///
    /// # Errors
    /// A folder or file cannot be created.
    pub fn create(root: &Path, facts: &RunFacts) -> Result<Qlogs, FileError> {
        let folder = partition(root, "qlog", facts.key());
        fs::create_dir_all(&folder).map_err(FileError::write("make the folder", &folder))?;
        let flows =
            facts.flows.iter().map(|flow| Qlog::create(&folder, facts, flow)).collect::<Result<_, _>>()?;
        Ok(Qlogs { flows, failure: None })
    }

    /// Records one event. The first write error is stored for [`Qlogs::finish`].
    pub fn record(&mut self, event: &Event<'_>) {
        if self.failure.is_some() {
            return;
        }
        let flow = match event {
            Event::Sent(packet) => packet.flow,
            Event::Acked(acked) => acked.flow,
            Event::Lost(lost) => lost.flow,
            Event::Inspected(inspected) => inspected.flow,
            Event::Arrived(_)
            | Event::Subframe(_)
            | Event::Capacity(_)
            | Event::Reported(_)
            | Event::Transfer(_)
            | Event::Viewed(_) => return,
        };
        let Some(log) = self.flows.get_mut(usize::from(flow.0)) else { return };
        let written = match event {
            Event::Sent(packet) => log.on_sent(packet),
            Event::Acked(acked) => log.on_acked(acked),
            Event::Lost(lost) => log.on_lost(lost),
            Event::Inspected(inspected) => log.on_inspected(inspected),
            Event::Arrived(_)
            | Event::Subframe(_)
            | Event::Capacity(_)
            | Event::Reported(_)
            | Event::Transfer(_)
            | Event::Viewed(_) => Ok(()),
        };
        self.failure = written.map_err(FileError::write("write", log.file.path())).err();
    }

    /// Completes the files and moves them to their final names.
    ///
    /// # Errors
    /// The first write error since [`Qlogs::create`].
    pub fn finish(self) -> Result<(), FileError> {
        self.failure.map_or(Ok(()), Err)?;
        self.flows.into_iter().try_for_each(Qlog::finish)
    }
}

/// Log of one flow.
struct Qlog {
    file: Whole,
    /// Packets that are neither acknowledged nor lost, as (number, bytes), in ascending order of numbers.
    outstanding: VecDeque<(u64, u64)>,
    state: String,
}

impl Qlog {
    fn create(folder: &Path, facts: &RunFacts, flow: &FlowFacts) -> Result<Qlog, FileError> {
        let path = folder.join(format!("flow-{}.sqlog", flow.flow.0));
        let file = Whole::replace(&path).map_err(FileError::write("make the file", &path))?;
        let mut log = Qlog { file, outstanding: VecDeque::new(), state: String::new() };
        let title = format!(
            "{}, {}, seed {}: {} ({})",
            facts.scenario, facts.scheme, facts.seed, flow.name, flow.scheme
        );
        let header = json!({
            "qlog_version": "0.3",
            "qlog_format": "JSON-SEQ",
            "title": title,
            "trace": {
                "vantage_point": { "name": "sender", "type": "server" },
                "title": title,
                "common_fields": {
                    "ODCID": format!("{:08x}", flow.flow.0),
                    "group_id": format!("{:08x}", flow.flow.0),
                    "protocol_type": ["QUIC"],
                    "time_format": "relative",
                    "reference_time": 0,
                },
            },
        });
        log.text(&header).map_err(FileError::write("write", log.file.path()))?;
        Ok(log)
    }

    fn on_sent(&mut self, packet: &Packet) -> io::Result<()> {
        self.outstanding.push_back((packet.number, packet.bytes.0));
        self.event(
            packet.sent,
            "transport:packet_sent",
            json!({
                "header": { "packet_type": "1RTT", "packet_number": packet.number },
                "raw": { "length": packet.bytes.0 },
            }),
        )
    }

    fn on_acked(&mut self, acked: &Acked) -> io::Result<()> {
        let ranges = self.take_acked(acked.largest, acked.acked.0);
        self.event(
            acked.time,
            "transport:packet_received",
            json!({
                "header": { "packet_type": "1RTT" },
                "frames": [{ "frame_type": "ack", "acked_ranges": ranges }],
            }),
        )?;
        let mut metrics = json!({ "bytes_in_flight": acked.inflight.0 });
        if let Some(rtt) = acked.rtt {
            metrics["latest_rtt"] = json!(rtt.as_nanos() as f64 / 1e6);
        }
        self.event(acked.time, "recovery:metrics_updated", metrics)
    }

    fn on_lost(&mut self, lost: &Lost) -> io::Result<()> {
        // Senders declare the oldest outstanding packets lost.
        for _ in 0..lost.packets {
            let Some((number, _)) = self.outstanding.pop_front() else { break };
            self.event(
                lost.time,
                "recovery:packet_lost",
                json!({ "header": { "packet_type": "1RTT", "packet_number": number } }),
            )?;
        }
        Ok(())
    }

    fn on_inspected(&mut self, inspected: &Inspected<'_>) -> io::Result<()> {
        let mut metrics = json!({
            "congestion_window": inspected.cwnd.0,
            "bytes_in_flight": inspected.inflight.0,
        });
        if let Some(rate) = inspected.pacing_rate {
            metrics["pacing_rate"] = json!(rate.as_bps());
        }
        self.event(inspected.time, "recovery:metrics_updated", metrics)?;
        if inspected.state == self.state {
            return Ok(());
        }
        let old = std::mem::replace(&mut self.state, inspected.state.to_owned());
        let mut change = json!({ "new": inspected.state });
        if !old.is_empty() {
            change["old"] = json!(old);
        }
        self.event(inspected.time, "recovery:congestion_state_updated", change)
    }

    fn finish(self) -> Result<(), FileError> {
        let path = self.file.path().to_owned();
        self.file.finish().map_err(FileError::write("write", &path))
    }

    /// The newly acknowledged packet numbers as inclusive ranges, in descending order.
    ///
    /// Chosen: an ACK event contains the highest number and the number of bytes. The highest outstanding packets up to
    /// this number are taken as acknowledged. This is exact unless packets were reordered.
    fn take_acked(&mut self, largest: u64, bytes: u64) -> Vec<(u64, u64)> {
        let mut ranges: Vec<(u64, u64)> = Vec::new();
        let mut left = bytes;
        let mut place = self.outstanding.partition_point(|(number, _)| *number <= largest);
        while left > 0 && place > 0 {
            place -= 1;
            let Some((number, bytes)) = self.outstanding.remove(place) else { break };
            left = left.saturating_sub(bytes);
            match ranges.last_mut() {
                Some((low, _)) if *low == number + 1 => *low = number,
                _ => ranges.push((number, number)),
            }
        }
        ranges
    }

    fn event(&mut self, time: Time, name: &str, data: Value) -> io::Result<()> {
        self.text(&json!({ "time": time.as_nanos() as f64 / 1e6, "name": name, "data": data }))
    }

    fn text(&mut self, value: &Value) -> io::Result<()> {
        self.file.write_all(&[RECORD_SEPARATOR])?;
        serde_json::to_writer(&mut self.file, value)?;
        self.file.write_all(b"\n")
    }
}
