//! Airpace's qlog files, read by the parsers of other projects.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use airpace_net::qlog::Folder;
use qlog::events::quic::{AckedRanges, QuicFrame};
use qlog::events::{Event, EventData};

use super::by_quinn::Quinn;
use super::ours::Ours;
use super::relay::{Does, Relay};
use super::stack::{Extras, Identity, Setting, Stack, files};

#[test]
fn other_peoples_parsers_read_every_line_of_our_logs() {
    let folder = tempfile::tempdir().unwrap();
    for (server, client) in [(&Quinn as &dyn Stack, &Ours("cubic") as &dyn Stack), (&Ours("cubic"), &Quinn)] {
        let qlog = Folder::new(folder.path()).unwrap();
        let extras = Extras::default();
        let setting = Setting {
            identity: Identity::new(),
            files: files(),
            extras,
            told: Arc::default(),
            qlog: Some(qlog),
        };
        let serving = server.serve(&setting);
        let relay = Relay::new(serving.address(), Does { loss: 0.02, seed: 5, ..Does::default() });
        assert!(client.fetch(&setting, relay.address(), &["/ten-megabytes"])[0].is_some());
    }
    let mut logs: Vec<_> =
        std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    logs.sort();
    assert_eq!(logs.len(), 2, "{logs:?}");
    for log in &logs {
        if let Ok(keep) = std::env::var("KEEP_QLOG") {
            std::fs::copy(log, Path::new(&keep).join(log.file_name().unwrap())).unwrap();
        }
        read_by_quiche(log);
    }
}

/// Parses a log as qlog 0.3 with quiche's types, and checks that it contains the transfer.
fn read_by_quiche(log: &Path) {
    let bytes = std::fs::read(log).unwrap();
    let mut texts = bytes.split(|byte| *byte == 0x1e).filter(|text| !text.is_empty());
    let header: qlog::QlogSeq = serde_json::from_slice(texts.next().expect("a header")).unwrap();
    assert_eq!((header.qlog_version.as_str(), header.qlog_format.as_str()), (qlog::QLOG_VERSION, "JSON-SEQ"));
    let is_server = header.trace.vantage_point.ty == qlog::VantagePointType::Server;
    let (mut stream_bytes, mut lost, mut windows, mut time) = (0, 0, 0, 0.0);
    // Last packet number per packet type, because each packet number space counts on its own.
    let mut sent: BTreeMap<String, u64> = BTreeMap::new();
    for text in texts {
        let event: Event = serde_json::from_slice(text)
            .unwrap_or_else(|error| panic!("{}: {error}", String::from_utf8_lossy(text)));
        assert!(event.time >= time, "times rise");
        time = event.time;
        match event.data {
            EventData::PacketSent(packet) => {
                let number = packet.header.packet_number.expect("a number");
                sent.insert(format!("{:?}", packet.header.packet_type), number);
                if is_server {
                    stream_bytes += packet.frames.iter().flatten().map(stream_length).sum::<u64>();
                }
            }
            EventData::PacketReceived(packet) => {
                let kind = format!("{:?}", packet.header.packet_type);
                for frame in packet.frames.iter().flatten() {
                    let acked = acked(frame);
                    assert!(
                        acked <= sent.get(&kind).copied(),
                        "{kind} {acked:?} is acknowledged, and was not sent"
                    );
                    if !is_server {
                        stream_bytes += stream_length(frame);
                    }
                }
            }
            EventData::PacketLost(_) => lost += 1,
            EventData::MetricsUpdated(metrics) => windows += u64::from(metrics.congestion_window.is_some()),
            _ => {}
        }
    }
    assert!(stream_bytes >= 10_000_000, "the log has the file's bytes: {stream_bytes}");
    if is_server {
        assert!(lost > 50 && windows > 50, "a fiftieth was lost: {lost} losses, {windows} windows");
    }
}

fn stream_length(frame: &QuicFrame) -> u64 {
    match frame {
        QuicFrame::Stream { length, .. } => *length,
        _ => 0,
    }
}

/// Highest packet number that an ACK frame acknowledges.
fn acked(frame: &QuicFrame) -> Option<u64> {
    match frame {
        QuicFrame::Ack { acked_ranges: Some(AckedRanges::Double(ranges)), .. } => {
            ranges.iter().map(|(_, last)| *last).max()
        }
        QuicFrame::Ack { acked_ranges: Some(AckedRanges::Single(ranges)), .. } => {
            ranges.iter().flatten().copied().max()
        }
        _ => None,
    }
}
