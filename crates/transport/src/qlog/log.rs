//! The log file of one QUIC connection.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use airpace_cc::controller::Rtt;
use airpace_core::{Bytes, Rate, Time};
use airpace_files::Growing;
use serde_json::{Map, Value, json};

use super::Folder;
use super::form;
use super::frames::Frame;
use super::wire::{Header, Kind, Parameters, Space};

/// Byte before each record of a JSON text sequence.
///
/// Source: RFC 7464 §2.2
const RECORD_SEPARATOR: u8 = 0x1e;

/// A congestion window of at least this size (bytes) means that the controller sets no window.
///
/// Chosen: a petabyte, more than any flow has in flight.
const NO_WINDOW: u64 = 1 << 50;

/// A packet before encryption or after decryption.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet<'a> {
    /// The header without header protection, up to and including the packet number.
    pub(crate) header: &'a [u8],
    /// The full packet number.
    pub(crate) number: u64,
    /// The frames.
    pub(crate) payload: &'a [u8],
    /// Length of the packet on the wire (bytes).
    pub(crate) length: u64,
}

/// Current metrics of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Metrics {
    pub(crate) rtt: Option<Rtt>,
    pub(crate) window: Bytes,
    pub(crate) rate: Option<Rate>,
    pub(crate) inflight: Bytes,
}

/// The log of one connection. All parts of the connection that report events share it.
#[derive(Clone, Debug)]
pub(crate) struct Log(Arc<Mutex<Page>>);

#[derive(Debug)]
struct Page {
    folder: Arc<Folder>,
    peer: SocketAddr,
    local: Option<IpAddr>,
    origin: Time,
    now: Time,
    /// The log file; `None` before the connection has an ID, and after a write error.
    file: Option<Growing>,
    /// Ack-eliciting packets that are not acknowledged yet, with their lengths (bytes).
    outstanding: BTreeMap<(Space, u64), u64>,
    /// ACK delay exponents of this endpoint and of the peer.
    exponents: [Option<u64>; 2],
    /// Metrics as last written.
    metrics: Map<String, Value>,
}

impl Log {
    /// Creates the log of a connection with `peer` that starts now, from a local address if that is known.
    pub(crate) fn new(folder: Arc<Folder>, now: Time, peer: SocketAddr, local: Option<IpAddr>) -> Log {
        Log(Arc::new(Mutex::new(Page {
            folder,
            peer,
            local,
            origin: now,
            now,
            file: None,
            outstanding: BTreeMap::new(),
            exponents: [None; 2],
            metrics: Map::new(),
        })))
    }

    fn lock(&self) -> MutexGuard<'_, Page> {
        // If another thread panicked, the log lacks events but can still be used.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the state of the log if its file is open. Without a file, events need not be composed.
    fn page(&self) -> Option<MutexGuard<'_, Page>> {
        Some(self.lock()).filter(|page| page.file.is_some())
    }

    /// Sets the time of the following events. Viewers require events in order. A time before the current one therefore
    /// has no effect.
    pub(crate) fn at(&self, now: Time) {
        let mut page = self.lock();
        page.now = page.now.max(now);
    }

    /// Creates the file of a connection whose first destination connection ID is `original`, and writes the local
    /// parameters.
    pub(crate) fn begin(
        &self,
        is_server: bool,
        original: &[u8],
        peers_id: &[u8],
        parameters: Parameters<'_>,
    ) {
        let mut page = self.lock();
        let (side, original) = (if is_server { "server" } else { "client" }, form::hex(original));
        page.file = page.folder.open(side, &original);
        let title = format!("{side} of {}", page.peer);
        page.text(&form::header(&title, side, &original));
        let local_id = parameters.bytes(Parameters::INITIAL_SOURCE).unwrap_or_default();
        let started = form::started(page.local, local_id, page.peer, peers_id);
        page.event("connectivity:connection_started", started);
        page.exponents[0] = Some(parameters.ack_delay_exponent());
        page.event("transport:parameters_set", form::parameters("local", parameters));
    }

    /// Writes the peer's transport parameters.
    pub(crate) fn peers_parameters(&self, parameters: Parameters<'_>) {
        let Some(mut page) = self.page() else { return };
        page.exponents[1] = Some(parameters.ack_delay_exponent());
        page.event("transport:parameters_set", form::parameters("remote", parameters));
    }

    /// Writes a transmitted packet.
    pub(crate) fn sent(&self, packet: Packet<'_>) {
        let Some(mut page) = self.page() else { return };
        let header = Header::read(packet.header);
        let mut asks_for_ack = false;
        let data = page.packet(header, packet, 0, |frame| {
            asks_for_ack |= !matches!(frame, Frame::Padding { .. } | Frame::Ack { .. } | Frame::Close { .. });
        });
        if let Some(header) = header.filter(|_| asks_for_ack) {
            page.outstanding.insert((header.kind.space(), packet.number), packet.length);
        }
        page.event("transport:packet_sent", data);
    }

    /// Writes a received packet after its decryption.
    pub(crate) fn received(&self, packet: Packet<'_>) {
        let Some(mut page) = self.page() else { return };
        let header = Header::read(packet.header);
        let mut acked = Vec::new();
        let data = page.packet(header, packet, 1, |frame| {
            if let Frame::Ack { ranges, .. } = frame {
                acked.extend_from_slice(ranges);
            }
        });
        for (lowest, highest) in acked {
            page.acknowledge(
                header.map_or(Space::Application, |header| header.kind.space()),
                lowest,
                highest,
            );
        }
        page.event("transport:packet_received", data);
    }

    /// Writes a received Retry, with which the server asks the client to prove its address; `packet` is the whole
    /// packet.
    pub(crate) fn retried(&self, packet: &[u8]) {
        let Some(mut page) = self.page() else { return };
        let length = packet.len() as u64;
        page.event("transport:packet_received", form::packet(Header::read(packet), None, length));
    }

    /// Writes a lost packet; `bytes` is the length of the QUIC packet.
    pub(crate) fn lost(&self, number: u64, bytes: u64) {
        let Some(mut page) = self.page() else { return };
        // Each packet number space starts at 0. The handshake has few packets, and the length identifies the space.
        let spaces = [Space::Initial, Space::Handshake, Space::Application];
        let mut spaces = spaces.into_iter();
        let space = spaces.find(|space| page.outstanding.get(&(*space, number)) == Some(&bytes));
        let space = space.unwrap_or(Space::Application);
        page.outstanding.remove(&(space, number));
        page.event("recovery:packet_lost", form::lost(space, number, bytes));
    }

    /// Writes the metrics that have changed.
    pub(crate) fn metrics(&self, metrics: &Metrics) {
        let Some(mut page) = self.page() else { return };
        let mut now = Map::new();
        if let Some(rtt) = metrics.rtt {
            now.insert("min_rtt".to_owned(), ms(rtt.min));
            now.insert("smoothed_rtt".to_owned(), ms(rtt.smoothed));
            now.extend(rtt.latest.map(|latest| ("latest_rtt".to_owned(), ms(latest))));
            now.insert("rtt_variance".to_owned(), ms(rtt.variation));
        }
        if metrics.window.0 < NO_WINDOW {
            now.insert("congestion_window".to_owned(), json!(metrics.window.0));
        }
        now.extend(metrics.rate.map(|rate| ("pacing_rate".to_owned(), json!(rate.as_bps()))));
        now.insert("bytes_in_flight".to_owned(), json!(metrics.inflight.0));
        now.retain(|name, value| page.metrics.get(name) != Some(value));
        if !now.is_empty() {
            page.metrics.extend(now.clone());
            page.event("recovery:metrics_updated", Value::Object(now));
        }
    }
}

impl Page {
    /// Returns the data of a packet for an event. `side` is 0 for packets of this endpoint, 1 for the peer's.
    fn packet(
        &self,
        header: Option<Header<'_>>,
        packet: Packet<'_>,
        side: usize,
        each: impl FnMut(&Frame),
    ) -> Value {
        let mut data = form::packet(header, Some(packet.number), packet.length);
        // ACKs of the handshake may arrive before the peer's exponent is known.
        let is_known = header.is_some_and(|header| header.kind == Kind::OneRtt);
        let exponent = self.exponents[side].filter(|_| is_known);
        data["frames"] = json!(form::frames(packet.payload, exponent, each));
        data
    }

    fn acknowledge(&mut self, space: Space, lowest: u64, highest: u64) {
        let all = self.outstanding.range((space, lowest)..=(space, highest));
        let numbers: Vec<(Space, u64)> = all.map(|(name, _)| *name).collect();
        for name in &numbers {
            self.outstanding.remove(name);
        }
    }

    fn event(&mut self, name: &str, data: Value) {
        // The time is in ms, with microsecond resolution.
        let time = ((self.now - self.origin).as_nanos() / 1000) as f64 / 1000.0;
        self.text(&json!({ "time": time, "name": name, "data": data }));
    }

    fn text(&mut self, value: &Value) {
        let Some(file) = &mut self.file else { return };
        if write(file, value).is_err() {
            self.file = None;
            self.folder.fail();
        }
    }
}

/// Writes the buffered rest of the log. This fails on a full disk.
impl Drop for Page {
    fn drop(&mut self) {
        if self.file.as_mut().is_some_and(|file| file.flush().is_err()) {
            self.folder.fail();
        }
    }
}

fn write(out: &mut impl Write, value: &Value) -> io::Result<()> {
    out.write_all(&[RECORD_SEPARATOR])?;
    serde_json::to_writer(&mut *out, value)?;
    out.write_all(b"\n")
}

fn ms(span: Duration) -> Value {
    json!(span.as_nanos() as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the events that are written to a log, as read back from its file.
    fn told(tell: impl FnOnce(&Log)) -> Vec<Value> {
        let folder = tempfile::tempdir().unwrap();
        let logs = Folder::new(folder.path()).unwrap();
        let peer = "192.0.2.1:443".parse().unwrap();
        let log = Log::new(logs.clone(), Time::from_secs(7), peer, None);
        tell(&log);
        drop(log);
        let mut files = std::fs::read_dir(folder.path()).unwrap();
        let Some(file) = files.next() else { return vec![] };
        let path = file.unwrap().path();
        assert_eq!((path.file_name().unwrap(), logs.failed()), ("0001-client-0a0b.sqlog".as_ref(), 0));
        let text = std::fs::read_to_string(path).unwrap();
        text.split('\x1e').skip(1).map(|text| serde_json::from_str(text).unwrap()).collect()
    }

    fn begin(log: &Log) {
        // The local parameters: an ACK delay exponent of 4, and the connection ID.
        log.begin(false, &[10, 11], &[10, 11], Parameters::new(&[0x0a, 1, 4, 0x0f, 2, 1, 2]));
    }

    fn packet(first: u8, number: u64, payload: &[u8], send: impl FnOnce(Packet<'_>)) {
        let short = [first, 0];
        let long = [first, 0, 0, 0, 1, 1, 5, 1, 6, 0];
        let header: &[u8] = if first & 0x80 == 0 { &short } else { &long };
        send(Packet { header, number, payload, length: 50 + number });
    }

    #[test]
    fn a_log_begins_with_what_viewers_look_for() {
        let told = told(begin);
        let [header, started, parameters] = &told[..] else { panic!("{told:?}") };
        assert_eq!((&header["qlog_version"], &header["qlog_format"]), (&json!("0.3"), &json!("JSON-SEQ")));
        assert_eq!(header["trace"]["vantage_point"]["type"], "client");
        assert_eq!(header["trace"]["common_fields"]["ODCID"], "0a0b");
        assert_eq!(
            (&started["data"]["src_cid"], &started["data"]["dst_ip"]),
            (&json!("0102"), &json!("192.0.2.1"))
        );
        assert_eq!(parameters["data"]["ack_delay_exponent"], 4);
    }

    #[test]
    fn nothing_is_written_before_the_connection_has_a_name() {
        let told = told(|log| packet(0x40, 0, &[1], |packet| log.sent(packet)));
        assert!(told.is_empty(), "{told:?}");
    }

    #[test]
    fn times_rise_even_if_datagrams_were_stamped_before_the_last_event() {
        let told = told(|log| {
            begin(log);
            for micros in [7_001_500, 7_000_900, 7_002_000] {
                log.at(Time::from_nanos(micros * 1000 + 1));
                packet(0x40, 0, &[1], |packet| log.received(packet));
            }
        });
        let times: Vec<&Value> = told[3..].iter().map(|event| &event["time"]).collect();
        assert_eq!(times, [&json!(1.5), &json!(1.5), &json!(2.0)]);
    }

    #[test]
    fn a_lost_packet_is_told_with_its_kind() {
        let told = told(|log| {
            begin(log);
            packet(0xc0, 0, &[6, 0, 1, 1], |packet| log.sent(packet));
            packet(0xe0, 0, &[1, 1], |packet| log.sent(packet));
            for number in 0..5 {
                packet(0x40, number, &[1], |packet| log.sent(packet));
            }
            packet(0x40, 0, &[2, 4, 9, 0, 0], |packet| log.received(packet));
            log.lost(1, 51);
            log.lost(2, 52);
            packet(0xc0, 0, &[2, 0, 9, 0, 0], |packet| log.received(packet));
            log.lost(0, 50);
        });
        let lost = told.iter().filter(|event| event["name"] == "recovery:packet_lost");
        let lost: Vec<_> = lost.map(|event| &event["data"]["header"]["packet_type"]).collect();
        assert_eq!(lost, ["1RTT", "1RTT", "handshake"], "the Initial was acknowledged");
    }

    #[test]
    fn delays_of_the_peers_acks_wait_for_its_parameters() {
        let ack = [2, 4, 9, 0, 0];
        let told = told(|log| {
            begin(log);
            packet(0x40, 0, &ack, |packet| log.sent(packet));
            packet(0x40, 0, &ack, |packet| log.received(packet));
            log.peers_parameters(Parameters::new(&[]));
            packet(0x40, 1, &ack, |packet| log.received(packet));
        });
        let delays: Vec<_> =
            told.iter().filter_map(|event| event["data"].pointer("/frames/0/ack_delay")).collect();
        assert_eq!(delays, [&json!(0.144), &json!(0.072)]);
    }

    #[test]
    fn only_numbers_that_changed_are_told() {
        let told = told(|log| {
            begin(log);
            let mut metrics = Metrics { rtt: None, window: Bytes(u64::MAX), rate: None, inflight: Bytes(9) };
            log.metrics(&metrics);
            log.metrics(&metrics);
            (metrics.window, metrics.rate) = (Bytes(14_000), Some(Rate::from_bps(1_000_000)));
            log.metrics(&metrics);
        });
        let metrics: Vec<&Value> = told[3..].iter().map(|event| &event["data"]).collect();
        assert_eq!(
            metrics,
            [
                &json!({ "bytes_in_flight": 9 }),
                &json!({ "congestion_window": 14_000, "pacing_rate": 1_000_000 })
            ]
        );
    }

    #[test]
    fn a_file_that_cannot_be_made_is_counted_once() {
        let folder = tempfile::tempdir().unwrap();
        let logs = Folder::new(folder.path()).unwrap();
        drop(folder);
        let log = Log::new(logs.clone(), Time::ZERO, "192.0.2.1:443".parse().unwrap(), None);
        begin(&log);
        packet(0x40, 0, &[1], |packet| log.sent(packet));
        assert_eq!(logs.failed(), 1);
    }
    #[test]
    fn a_log_that_a_full_disk_ends_is_counted_once() {
        let folder = tempfile::tempdir().unwrap();
        for packets in [0, 1000] {
            let logs = Folder::new(folder.path()).unwrap();
            let log = Log::new(logs.clone(), Time::ZERO, "192.0.2.1:443".parse().unwrap(), None);
            begin(&log);
            log.lock().file = Some(Growing::open("/dev/full".as_ref()).unwrap());
            for number in 0..=packets {
                packet(0x40, number, &[1], |packet| log.sent(packet));
            }
            assert_eq!(log.lock().file.is_some(), packets == 0, "a few bytes wait for the end");
            drop(log);
            assert_eq!(logs.failed(), 1, "{packets} packets");
        }
    }
}
