//! The JSON representation of packets and connections in qlog 0.3.
//!
//! Source: draft-ietf-quic-qlog-main-schema-02 §4, draft-ietf-quic-qlog-quic-events-01 §5, §A
//!
//! Differs: a number that exceeds the range of its field is written as the maximum of that range. Tokens are omitted,
//! because a token allows its holder to close a connection or to impersonate another client.

use std::fmt::Write;
use std::net::{IpAddr, SocketAddr};

use serde_json::{Map, Value, json};

use super::frames::{Frame, FrameError, Frames};
use super::wire::{Header, Kind, Parameters, Space};

/// Returns the first record of a file.
pub(super) fn header(title: &str, side: &str, original: &str) -> Value {
    json!({
        "qlog_version": "0.3",
        "qlog_format": "JSON-SEQ",
        "title": title,
        "trace": {
            "vantage_point": { "type": side },
            "title": title,
            "common_fields": {
                "ODCID": original,
                "group_id": original,
                "protocol_type": ["QUIC"],
                "time_format": "relative",
                "reference_time": 0.0,
            },
        },
    })
}

/// Formats bytes in hexadecimal.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

/// Returns the event of a started connection: the addresses and connection IDs of the local endpoint and of the peer.
/// A client does not know its source address yet.
pub(super) fn started(local: Option<IpAddr>, local_id: &[u8], peer: SocketAddr, peers_id: &[u8]) -> Value {
    json!({
        "ip_version": if peer.is_ipv4() { "v4" } else { "v6" },
        "src_ip": local.map_or_else(String::new, |ip| ip.to_string()),
        "dst_ip": peer.ip().to_string(),
        "dst_port": peer.port(),
        "src_cid": hex(local_id),
        "dst_cid": hex(peers_id),
        "protocol": "QUIC",
    })
}

/// Numeric transport parameters: ID, name, default, and the maximum that the log's field can hold.
///
/// Source: RFC 9000 §18.2
const NUMBERS: [(u64, &str, u64, u64); 11] = [
    (0x01, "max_idle_timeout", 0, u64::MAX),
    (0x03, "max_udp_payload_size", 65_527, u32::MAX as u64),
    (0x04, "initial_max_data", 0, u64::MAX),
    (0x05, "initial_max_stream_data_bidi_local", 0, u64::MAX),
    (0x06, "initial_max_stream_data_bidi_remote", 0, u64::MAX),
    (0x07, "initial_max_stream_data_uni", 0, u64::MAX),
    (0x08, "initial_max_streams_bidi", 0, u64::MAX),
    (0x09, "initial_max_streams_uni", 0, u64::MAX),
    (0x0a, "ack_delay_exponent", 3, u16::MAX as u64),
    (0x0b, "max_ack_delay", 25, u16::MAX as u64),
    (0x0e, "active_connection_id_limit", 2, u32::MAX as u64),
];

/// Transport parameters that contain a connection ID: ID and name.
///
/// Source: RFC 9000 §18.2
const IDS: [(u64, &str); 3] = [
    (Parameters::ORIGINAL_DESTINATION, "original_destination_connection_id"),
    (Parameters::INITIAL_SOURCE, "initial_source_connection_id"),
    (0x10, "retry_source_connection_id"),
];

/// Returns the event of the transport parameters of this endpoint (`local`) or of the peer (`remote`).
pub(super) fn parameters(owner: &str, parameters: Parameters<'_>) -> Value {
    let mut data = Map::new();
    data.insert("owner".to_owned(), json!(owner));
    for (id, name) in IDS {
        if let Some(bytes) = parameters.bytes(id) {
            data.insert(name.to_owned(), json!(hex(bytes)));
        }
    }
    data.insert("disable_active_migration".to_owned(), json!(parameters.bytes(0x0c).is_some()));
    for (id, name, default, most) in NUMBERS {
        data.insert(name.to_owned(), json!(parameters.number(id).unwrap_or(default).min(most)));
    }
    Value::Object(data)
}

/// Returns the data of a packet, without its frames.
pub(super) fn packet(header: Option<Header<'_>>, number: Option<u64>, length: u64) -> Value {
    let mut said = Map::new();
    said.insert("packet_type".to_owned(), json!(header.map_or("unknown", |header| kind(header.kind))));
    said.extend(number.map(|number| ("packet_number".to_owned(), json!(number))));
    if let Some(header) = header {
        said.extend(header.source.map(|source| ("scid".to_owned(), json!(hex(source)))));
        said.insert("dcid".to_owned(), json!(hex(header.destination)));
    }
    json!({ "header": said, "raw": { "length": length } })
}

fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Initial => "initial",
        Kind::ZeroRtt => "0RTT",
        Kind::Handshake => "handshake",
        Kind::Retry => "retry",
        Kind::OneRtt => "1RTT",
    }
}

/// Returns the event of a lost packet. The trigger is always the time threshold, because these connections use no other
/// threshold.
pub(super) fn lost(space: Space, number: u64, bytes: u64) -> Value {
    let kind = match space {
        Space::Initial => "initial",
        Space::Handshake => "handshake",
        Space::Application => "1RTT",
    };
    json!({
        "header": { "packet_type": kind, "packet_number": number },
        "raw": { "length": bytes },
        "trigger": "time_threshold",
    })
}

/// Returns the frames of a packet. The delay of an ACK is included only if its `exponent` is known.
pub(super) fn frames(payload: &[u8], exponent: Option<u64>, mut each: impl FnMut(&Frame)) -> Vec<Value> {
    let frames = Frames::new(payload).map(|read| match read {
        Ok(read) => {
            each(&read);
            frame(&read, exponent)
        }
        Err(FrameError::Unknown { kind, .. }) => unknown(kind),
        Err(FrameError::Damaged { offset }) => {
            let length = payload.len() - offset;
            json!({ "frame_type": "unknown", "raw_frame_type": payload[offset], "raw": { "length": length } })
        }
    });
    frames.collect()
}

fn unknown(kind: u64) -> Value {
    json!({ "frame_type": "unknown", "raw_frame_type": kind })
}

fn direction(is_bidirectional: bool) -> &'static str {
    if is_bidirectional { "bidirectional" } else { "unidirectional" }
}

/// Limits a number to the range of a 32-bit field.
fn narrow(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

fn frame(frame: &Frame, exponent: Option<u64>) -> Value {
    match frame {
        Frame::Padding { bytes } => json!({ "frame_type": "padding", "payload_length": bytes }),
        Frame::Ping => json!({ "frame_type": "ping" }),
        Frame::Ack { delay, ranges, ecn } => {
            let mut ack = json!({ "frame_type": "ack", "acked_ranges": ranges });
            if let Some(exponent) = exponent {
                // Convert to ms. Source: RFC 9000 §19.3 (in µs, divided by a power of two)
                ack["ack_delay"] = json!(*delay as f64 * (exponent.min(20) as f64).exp2() / 1000.0);
            }
            if let Some([ect0, ect1, ce]) = ecn {
                (ack["ect0"], ack["ect1"], ack["ce"]) = (json!(ect0), json!(ect1), json!(ce));
            }
            ack
        }
        Frame::ResetStream { stream, error, final_size } => json!({
            "frame_type": "reset_stream", "stream_id": stream, "error_code": error, "final_size": final_size,
        }),
        Frame::StopSending { stream, error } => {
            json!({ "frame_type": "stop_sending", "stream_id": stream, "error_code": error })
        }
        Frame::Crypto { offset, bytes } => {
            json!({ "frame_type": "crypto", "offset": offset, "length": bytes })
        }
        Frame::NewToken => json!({ "frame_type": "new_token", "token": {} }),
        Frame::Stream { stream, offset, bytes, is_last } => json!({
            "frame_type": "stream", "stream_id": stream, "offset": offset, "length": bytes, "fin": is_last,
        }),
        Frame::MaxData { most } => json!({ "frame_type": "max_data", "maximum": most }),
        Frame::MaxStreamData { stream, most } => {
            json!({ "frame_type": "max_stream_data", "stream_id": stream, "maximum": most })
        }
        Frame::MaxStreams { is_bidirectional, most } => json!({
            "frame_type": "max_streams", "stream_type": direction(*is_bidirectional), "maximum": most,
        }),
        Frame::DataBlocked { limit } => json!({ "frame_type": "data_blocked", "limit": limit }),
        Frame::StreamDataBlocked { stream, limit } => {
            json!({ "frame_type": "stream_data_blocked", "stream_id": stream, "limit": limit })
        }
        Frame::StreamsBlocked { is_bidirectional, limit } => json!({
            "frame_type": "streams_blocked", "stream_type": direction(*is_bidirectional), "limit": limit,
        }),
        Frame::NewConnectionId { sequence, retires_before, id } => json!({
            "frame_type": "new_connection_id",
            "sequence_number": narrow(*sequence),
            "retire_prior_to": narrow(*retires_before),
            "connection_id_length": id.len(),
            "connection_id": hex(id),
        }),
        Frame::RetireConnectionId { sequence } => {
            json!({ "frame_type": "retire_connection_id", "sequence_number": narrow(*sequence) })
        }
        Frame::PathChallenge(data) => json!({ "frame_type": "path_challenge", "data": hex(data) }),
        Frame::PathResponse(data) => json!({ "frame_type": "path_response", "data": hex(data) }),
        Frame::Close { is_by_application, error, frame, reason } => {
            let space = if *is_by_application { "application_error" } else { "transport_error" };
            let mut close = json!({
                "frame_type": "connection_close", "error_space": space, "error_code": error, "reason": reason,
            });
            // Zero: no frame type is given. Source: RFC 9000 §19.19
            if let Some(frame) = frame.filter(|frame| *frame != 0) {
                close["trigger_frame_type"] = json!(frame);
            }
            close
        }
        Frame::HandshakeDone => json!({ "frame_type": "handshake_done" }),
        Frame::Datagram { bytes } => json!({ "frame_type": "datagram", "length": bytes }),
        Frame::Other { kind } => unknown(*kind),
    }
}

#[cfg(test)]
mod tests {
    use ::qlog::events::quic::{PacketHeader, PacketLost, QuicFrame, TransportParametersSet};
    use ::qlog::events::{Event, connectivity::ConnectionStarted};
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_only_one_other_person_may_know_is_not_told() {
        // NEW_CONNECTION_ID with a reset token, NEW_TOKEN.
        let payload = [&[0x18, 1, 0, 1, 9][..], &[0xee; 16], &[0x07, 3, 0xee, 0xee, 0xee]].concat();
        let told = json!(frames(&payload, None, |_| {}));
        assert_eq!(told[0]["connection_id"], "09");
        assert!(!told.to_string().contains("ee"), "{told}");
        let parameters = parameters("remote", Parameters::new(&[&[0x02, 16][..], &[0xee; 16]].concat()));
        assert!(!parameters.to_string().contains("eeee"), "{parameters}");
    }

    #[test]
    fn delays_are_told_in_milliseconds_once_their_unit_is_known() {
        let payload = [0x02, 5, 0x43, 0xe8, 0, 0];
        assert_eq!(frames(&payload, Some(3), |_| {})[0]["ack_delay"], json!(8.0));
        assert_eq!(frames(&payload, None, |_| {})[0].get("ack_delay"), None);
    }

    #[test]
    fn a_damaged_frame_is_told_as_one_that_nobody_knows() {
        let told = frames(&[0x01, 0x06, 0, 9, 1], None, |_| {});
        assert_eq!(told[0], json!({ "frame_type": "ping" }));
        assert_eq!(told[1], json!({ "frame_type": "unknown", "raw_frame_type": 6, "raw": { "length": 4 } }));
    }

    /// Sequences of frames of every type, with numbers of any size.
    fn payloads() -> impl Strategy<Value = Vec<u8>> {
        let number = prop_oneof![
            (0_u8..0x40).prop_map(|byte| vec![byte]),
            any::<[u8; 8]>().prop_map(|mut bytes| {
                bytes[0] |= 0xc0;
                bytes.to_vec()
            }),
        ];
        let kind = prop_oneof![0_u8..0x20, 0x30_u8..0x32];
        let frame = (kind, prop::collection::vec(number, 0..6), prop::collection::vec(0_u8..3, 0..20));
        prop::collection::vec(frame, 1..5).prop_map(|frames| {
            let frames = frames.into_iter();
            frames.flat_map(|(kind, numbers, rest)| [vec![kind], numbers.concat(), rest].concat()).collect()
        })
    }

    proptest! {
        #[test]
        fn other_people_read_any_frames(payload in payloads(), exponent in prop::option::of(0_u64..1 << 62)) {
            for told in frames(&payload, exponent, |_| {}) {
                let read: Result<QuicFrame, _> = serde_json::from_value(told.clone());
                prop_assert!(read.is_ok(), "{told}: {read:?}");
                let is_unknown = matches!(read, Ok(QuicFrame::Unknown { .. }));
                prop_assert_eq!(is_unknown, told["frame_type"] == "unknown");
            }
        }

        #[test]
        fn other_people_read_any_packet(bytes in prop::collection::vec(any::<u8>(), 0..60), number in 0_u64..1 << 62) {
            let header = Header::read(&bytes);
            let told = packet(header, Some(number), 9);
            let read: PacketHeader = serde_json::from_value(told["header"].clone()).unwrap();
            prop_assert_eq!(read.packet_number, Some(number));
            prop_assert_eq!(read.dcid, header.map(|header| hex(header.destination)));
            let set = parameters("local", Parameters::new(&bytes));
            prop_assert!(serde_json::from_value::<TransportParametersSet>(set).is_ok());
            for space in [Space::Initial, Space::Handshake, Space::Application] {
                let told = lost(space, number, 9);
                prop_assert!(serde_json::from_value::<PacketLost>(told).is_ok());
            }
        }

        #[test]
        fn other_people_read_the_ends(peer: SocketAddr, local: Option<IpAddr>, id: [u8; 4]) {
            let data = started(local, &id, peer, &[]);
            let event = json!({ "time": 0.0, "name": "connectivity:connection_started", "data": data });
            prop_assert!(serde_json::from_value::<Event>(event).is_ok());
            let read: ConnectionStarted = serde_json::from_value(data).unwrap();
            prop_assert_eq!((read.dst_ip.parse().ok(), read.dst_port), (Some(peer.ip()), Some(peer.port())));
            prop_assert_eq!((read.src_ip.parse().ok(), read.src_cid), (local, Some(hex(&id))));
        }
    }
}
