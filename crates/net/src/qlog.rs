//! Logs of QUIC connections, one file each, that qvis opens.
//!
//! noq writes the newest draft of qlog, which no viewer draws yet. What it writes is put here into qlog 0.3 with its QUIC
//! events, as `airpace sim` writes it: qvis reads and draws that.
//!
//! | noq writes | the file has |
//! | --- | --- |
//! | `quic:connection_started` | `connectivity:connection_started` |
//! | `quic:parameters_set` | `transport:parameters_set` |
//! | `quic:packet_sent`, `quic:packet_received` | `transport:packet_sent`, `transport:packet_received` |
//! | `quic:packet_lost` | `recovery:packet_lost` |
//! | `quic:recovery_metrics_updated` | `recovery:metrics_updated` |
//! | other events | nothing: 0.3 has no place for them |
//!
//! Source: draft-ietf-quic-qlog-main-schema-02 §4, draft-ietf-quic-qlog-quic-events-01 §5; RFC 7464 §2.2 (the byte before
//! each text)

use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use airpace_files::Growing;
use noq_proto::{ConnectionId, QlogConfig, QlogFactory, Side};
use serde_json::{Map, Value, json};

/// The byte before each text of a sequence.
///
/// Source: RFC 7464 §2.2
const RECORD_SEPARATOR: u8 = 0x1e;

/// Makes a log in one folder for every connection: `0001-client-5c0f….sqlog`.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    made: AtomicU64,
    failed: AtomicU64,
}

impl Folder {
    /// Logs go into the folder, which is made if there is none.
    ///
    /// # Errors
    /// What the system refuses.
    pub fn new(path: &Path) -> io::Result<Arc<Folder>> {
        std::fs::create_dir_all(path)?;
        Ok(Arc::new(Folder { path: path.to_owned(), made: AtomicU64::new(0), failed: AtomicU64::new(0) }))
    }

    /// Connections whose file could not be made.
    pub fn failed(&self) -> u64 {
        self.failed.load(Ordering::Relaxed)
    }
}

impl QlogFactory for Folder {
    fn for_connection(
        &self,
        side: Side,
        remote: SocketAddr,
        initial_dst_cid: ConnectionId,
        _now: Instant,
    ) -> Option<QlogConfig> {
        let number = self.made.fetch_add(1, Ordering::Relaxed) + 1;
        let side = if side.is_client() { "client" } else { "server" };
        let path = self.path.join(format!("{number:04}-{side}-{initial_dst_cid}.sqlog"));
        let Ok(file) = Growing::open(&path).and_then(|mut file| file.begin().map(|()| file)) else {
            self.failed.fetch_add(1, Ordering::Relaxed);
            return None;
        };
        let mut config = QlogConfig::new(Box::new(Translator::new(file)));
        config.title(Some(format!("{side} of {remote}")));
        Some(config)
    }
}

/// Puts each text of noq's into qlog 0.3.
#[derive(Debug)]
pub struct Translator<W: Write> {
    out: W,
    /// The text that is not whole yet.
    text: Vec<u8>,
    /// When the newest event was, in ms.
    time: f64,
}

impl<W: Write> Translator<W> {
    /// Writes what it makes to `out`.
    pub fn new(out: W) -> Translator<W> {
        Translator { out, text: Vec::new(), time: 0.0 }
    }

    fn end_text(&mut self) -> io::Result<()> {
        let text = std::mem::take(&mut self.text);
        let text = text.strip_prefix(&[RECORD_SEPARATOR]).unwrap_or(&text);
        if text.is_empty() {
            return Ok(());
        }
        let value: Value = serde_json::from_slice(text)?;
        let Some(mut value) = translated(value) else { return Ok(()) };
        // noq dates some events back to what caused them; viewers want them in order.
        if let Some(time) = value.get("time").and_then(Value::as_f64) {
            self.time = self.time.max(time);
            value["time"] = json!(self.time);
        }
        self.out.write_all(&[RECORD_SEPARATOR])?;
        serde_json::to_writer(&mut self.out, &value)?;
        self.out.write_all(b"\n")
    }
}

impl<W: Write> Write for Translator<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            match piece.strip_suffix(b"\n") {
                Some(end) => {
                    self.text.extend_from_slice(end);
                    self.end_text()?;
                }
                None => self.text.extend_from_slice(piece),
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// A text of qlog 0.3 from one of noq's; `None` if 0.3 has no place for it.
fn translated(mut value: Value) -> Option<Value> {
    if value.get("file_schema").is_some() {
        return Some(header(&mut value));
    }
    let data = value.get_mut("data").map(Value::take)?;
    let (name, data) = match value.get("name")?.as_str()? {
        "quic:connection_started" => ("connectivity:connection_started", started(&data)),
        "quic:parameters_set" => ("transport:parameters_set", parameters(data)),
        "quic:packet_sent" => ("transport:packet_sent", packet(data)),
        "quic:packet_received" => ("transport:packet_received", packet(data)),
        "quic:packet_lost" => ("recovery:packet_lost", packet(data)),
        "quic:recovery_metrics_updated" => ("recovery:metrics_updated", metrics(data)?),
        _ => return None,
    };
    Some(json!({ "time": value.get("time")?, "name": name, "data": data }))
}

fn header(value: &mut Value) -> Value {
    let trace = value.get_mut("trace").map(Value::take).unwrap_or_default();
    let group = trace.pointer("/common_fields/group_id").cloned().unwrap_or_default();
    let title = value.get("title").cloned().unwrap_or_default();
    json!({
        "qlog_version": "0.3",
        "qlog_format": "JSON-SEQ",
        "title": title,
        "trace": {
            "vantage_point": { "type": trace.pointer("/vantage_point/type").cloned().unwrap_or_default() },
            "title": title,
            "common_fields": {
                "ODCID": group,
                "group_id": group,
                "protocol_type": ["QUIC"],
                "time_format": "relative",
                "reference_time": 0.0,
            },
        },
    })
}

/// The first address of an end.
fn ip(end: &Value) -> Value {
    end.get("ip_v4").or_else(|| end.get("ip_v6")).cloned().unwrap_or_else(|| json!(""))
}

fn started(data: &Value) -> Value {
    let mut start = Map::new();
    for (end, prefix) in [("local", "src"), ("remote", "dst")] {
        let Some(end) = data.get(end) else { continue };
        start.insert(format!("{prefix}_ip"), ip(end));
        if let Some(port) = end.get("port_v4").or_else(|| end.get("port_v6")) {
            start.insert(format!("{prefix}_port"), port.clone());
        }
        if let Some(cid) = end.pointer("/connection_ids/0") {
            start.insert(format!("{prefix}_cid"), cid.clone());
        }
    }
    start.insert("protocol".to_owned(), json!("QUIC"));
    Value::Object(start)
}

fn parameters(mut data: Value) -> Value {
    if let Some(data) = data.as_object_mut()
        && let Some(owner) = data.remove("initiator")
    {
        data.insert("owner".to_owned(), owner);
    }
    data
}

/// noq is told windows and rates at which it never holds anything back (`quic/adapter.rs`); they are left out. `None` if
/// nothing is left.
fn metrics(mut data: Value) -> Option<Value> {
    let metrics = data.as_object_mut()?;
    metrics.remove("path_id");
    metrics.remove("pacing_rate");
    if metrics.get("congestion_window").and_then(Value::as_u64).is_some_and(|window| window <= 1) {
        metrics.remove("congestion_window");
    }
    (!metrics.is_empty()).then_some(data)
}

fn packet(mut data: Value) -> Value {
    // 0.3 has the packet's length outside its header, and those of frames directly in them.
    if let Some(length) =
        data.pointer_mut("/header").and_then(Value::as_object_mut).and_then(|it| it.remove("length"))
    {
        data["raw"] = json!({ "length": length });
    }
    for frame in data.get_mut("frames").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(fields) = frame.as_object_mut() {
            *frame = Value::Object(self::frame(std::mem::take(fields)));
        }
    }
    data
}

/// Frames that 0.3 knows by name. The others are of extensions.
const FRAMES: [&str; 22] = [
    "padding",
    "ping",
    "ack",
    "reset_stream",
    "stop_sending",
    "crypto",
    "new_token",
    "stream",
    "max_data",
    "max_stream_data",
    "max_streams",
    "data_blocked",
    "stream_data_blocked",
    "streams_blocked",
    "new_connection_id",
    "retire_connection_id",
    "path_challenge",
    "path_response",
    "connection_close",
    "handshake_done",
    "datagram",
    "unknown",
];

fn frame(mut frame: Map<String, Value>) -> Map<String, Value> {
    let raw = frame.remove("raw");
    let length = raw.as_ref().and_then(|raw| raw.get("payload_length").or_else(|| raw.get("length")));
    let name = frame.get("frame_type").and_then(Value::as_str).unwrap_or_default().to_owned();
    if !FRAMES.contains(&name.as_str()) {
        frame.clear();
        frame.insert("frame_type".to_owned(), json!("unknown"));
        frame.insert("raw_frame_type".to_owned(), json!(number_of(&name)));
        return frame;
    }
    if let Some(length) = length {
        let key = if name == "padding" { "payload_length" } else { "length" };
        frame.insert(key.to_owned(), length.clone());
    }
    match name.as_str() {
        "ack" => {
            // noq gives it in the peer's own unit, not in milliseconds.
            frame.remove("ack_delay");
            // noq gives the number after the last one; in qlog the last one belongs to the range.
            let ranges = frame.get_mut("acked_ranges").and_then(Value::as_array_mut);
            for range in ranges.into_iter().flatten().filter_map(Value::as_array_mut) {
                if let [first, last] = range.as_mut_slice()
                    && let (Some(from), Some(end)) = (first.as_u64(), last.as_u64())
                {
                    *last = json!(end.saturating_sub(1).max(from));
                }
            }
        }
        "new_token" => {
            // Its form is another, and the token is nobody's business.
            frame.insert("token".to_owned(), json!({}));
        }
        "connection_close" => {
            frame.remove("error");
            if let Some(space) = frame.get_mut("error_space") {
                *space = json!(format!("{}_error", space.as_str().unwrap_or_default()));
            }
        }
        _ => {}
    }
    frame
}

/// Numbers of the extensions' frames that noq writes between stacks of other people.
///
/// Source: draft-ietf-quic-ack-frequency-11 §4, §5
fn number_of(name: &str) -> u64 {
    match name {
        "ack_frequency" => 0xaf,
        "immediate_ack" => 0x1f,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<Value> {
        let mut out = Vec::new();
        let mut translator = Translator::new(&mut out);
        // In pieces, as noq writes it.
        for piece in text.as_bytes().chunks(7) {
            translator.write_all(piece).unwrap();
        }
        let texts = out.split(|byte| *byte == RECORD_SEPARATOR).filter(|text| !text.is_empty());
        texts.map(|text| serde_json::from_slice(text).unwrap()).collect()
    }

    #[test]
    fn a_log_begins_with_the_header_that_viewers_look_for() {
        let text = "\u{1e}{\"file_schema\":\"urn:x\",\"title\":\"t\",\"trace\":{\"vantage_point\":{\"type\":\"client\"}}}\n";
        let header = &read(text)[0];
        assert_eq!((&header["qlog_version"], &header["qlog_format"]), (&json!("0.3"), &json!("JSON-SEQ")));
        assert_eq!(header["trace"]["vantage_point"]["type"], "client");
    }

    #[test]
    fn a_packet_keeps_what_it_says_in_the_older_form() {
        let text = "\u{1e}{\"time\":1.5,\"name\":\"quic:packet_sent\",\"data\":{\"header\":{\"packet_type\":\"1RTT\",\
                    \"packet_number\":3,\"length\":99},\"frames\":[{\"frame_type\":\"ack\",\"ack_delay\":7.0,\
                    \"acked_ranges\":[[0,2],[5,9]]},{\"frame_type\":\"stream\",\"stream_id\":0,\"offset\":4,\
                    \"raw\":{\"length\":50}},{\"frame_type\":\"ack_frequency\",\"sequence_number\":0}]}}\n";
        let event = &read(text)[0];
        assert_eq!(event["name"], "transport:packet_sent");
        assert_eq!(event["data"]["raw"]["length"], 99);
        assert_eq!(
            event["data"]["frames"][0],
            json!({ "frame_type": "ack", "acked_ranges": [[0, 1], [5, 8]] })
        );
        assert_eq!(event["data"]["frames"][1]["length"], 50);
        assert_eq!(event["data"]["frames"][2], json!({ "frame_type": "unknown", "raw_frame_type": 0xaf }));
    }

    #[test]
    fn what_the_older_form_has_no_place_for_is_left_out() {
        assert_eq!(
            read("\u{1e}{\"time\":0,\"name\":\"quic:timer_updated\",\"data\":{}}\n"),
            [] as [Value; 0]
        );
    }
}
