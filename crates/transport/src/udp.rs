//! The prototype protocol of the papers: a UDP transport that carries the scheme's feedback in every ACK, with
//! authentication and encryption added.
//!
//! Both endpoints send and receive. Each direction has a [`Sender`] with an [`Outbox`] at one endpoint and an
//! [`Acker`] at the other, the same code as in the simulator. All packets after the handshake are encrypted with keys
//! that both endpoints derive from their shared key. Nobody else on the path can influence a sender, read a stream or
//! close a connection.
//!
//! | packet | bytes, in this order |
//! | --- | --- |
//! | Hello | first byte, client's name (8), nonce (16), cookie (32), proof (32), zeros up to 1200 bytes |
//! | Cookie | first byte, client's name (8), cookie (32), proof (32) |
//! | Accept | first byte, client's name (8), server's name (8), nonce (16), proof (32) |
//! | Sealed | first byte, receiver's name (8), counter (8), sealed frames, tag (16) |
//! | Gone | first byte, name and counter of a sealed packet (8, 8), prefix of a proof (16) |
//!
//! The first byte is 8 · version + 0, 1, 2, 3 or 4 in the order of this table. The version is 1. The upper two bits
//! are 0, because QUIC sets at least one of them. Integers are big-endian. A sealed packet contains a sequence of
//! frames:
//!
//! | frame | bytes after the first, `v` of variable length as in QUIC |
//! | --- | --- |
//! | 0 padding | none |
//! | 1 Ack | `v` number, `v` largest, count of ranges (1), for each `v` gap and `v` length, `v` marks, `v` delay in ns, `v` window + 1, length of the feedback (1), feedback |
//! | 2 Limit | `v` offset up to which the stream may be sent |
//! | 3 Ping, 4 Pong | token that the Pong returns (8) |
//! | 5 Request | length (1), message of the scheme's receiver before any data arrived |
//! | 6 Close | code (4), length (2), text |
//! | 7 Data, 8 last Data | number (8), time in ns (8), offset (8), length of controller header (1), header, rest of the packet |
//!
//! The feedback of PBE-CC, on every ACK, is a 32-bit interval between packets and one bit that identifies the
//! bottleneck, plus the additional fields that `airpace_cc::pbe` needs. Every data packet is as long as its sender
//! counts it: 1500 bytes in a controller are 1500 bytes of IP on the wire. An ACK never waits for the pacer.
//!
//! A Gone answers a sealed packet for a connection that its receiver does not know. The sender of that packet closes
//! the connection at once, so that the restart of an endpoint is noticed within a round trip. The proof is computed
//! from the shared key, and not from a secret of the endpoint as in QUIC. The proof is therefore valid after a restart
//! of the program. An attacker off the path knows neither names nor key. An attacker who sees packets could make
//! another endpoint with the same key send a Gone; each listener must therefore have its own key. An attacker on the
//! path who has the key can derive the packet keys as well. If the key was changed too, or if the whole machine is
//! gone, no endpoint can answer; then the timeout [`UdpConfig::answer`] closes the connection.
//!
//! Source: PBE-CC §5; RFC 9000 §10.3 (what a Gone is for)
//!
//! Differs: the papers' prototype has no handshake and no encryption.
//!
//! [`Sender`]: airpace_cc::endpoint::Sender
//! [`Outbox`]: airpace_cc::endpoint::Outbox
//! [`Acker`]: airpace_cc::endpoint::Acker

mod connection;
mod endpoint;
mod handshake;
mod packet;
mod path;
mod seal;
mod stream;
#[cfg(test)]
mod tests;

use std::time::Duration;

use airpace_cc::endpoint::AckPolicy;
use airpace_cc::pacer::PacerConfig;
use airpace_core::Bytes;

pub use endpoint::UdpEndpoint;

use crate::endpoint::PACER;

/// Whether all readable frames of `text` are unchanged after writing and reading them again. Packets carry frames
/// encrypted, so that bytes of strangers are never parsed as frames. This function serves tests of the parser.
pub fn reads_as_written(text: &[u8]) -> bool {
    packet::Frames::of(text).map_while(Result::ok).all(|frame| {
        let mut out = vec![];
        frame.write(&mut out);
        packet::Frames::of(&out).eq([Ok(frame)])
    })
}

/// Configuration and limits of an endpoint.
#[derive(Clone, Copy, Debug)]
pub struct UdpConfig {
    /// Whether the endpoint accepts incoming connections.
    pub accepts: bool,
    /// Configuration of the pacer.
    pub pacer: PacerConfig,
    /// Policy of acknowledgements. Both endpoints must use the same policy.
    pub ack: AckPolicy,
    /// Idle timeout: a connection is closed if no packet arrives for this long.
    pub idle: Duration,
    /// Answer timeout: a connection is closed if it sent a packet that requires an answer, and no packet arrives for
    /// this long.
    pub answer: Duration,
    /// Maximum duration of a handshake.
    pub patience: Duration,
    /// Size of the send buffer (bytes), which holds data until the peer acknowledges them. The buffer grows with the
    /// congestion window.
    pub send_buffer: Bytes,
    /// Size of the receive buffer (bytes), which holds data until the application reads them; at least 1 MiB.
    pub receive_buffer: Bytes,
    /// Maximum number of half-open connections, whose client has not sent an authentic packet after the handshake
    /// yet.
    pub most_half_open: usize,
    /// Maximum number of connections, including half-open ones.
    pub most_connections: usize,
    /// Maximum number of packets per transmission, if the pacer permits them.
    pub most_segments: usize,
}

/// Chosen: an idle timeout that survives a tunnel; an answer timeout of three times the outage that a transfer must
/// survive; buffers for 1 Gbit/s over 100 ms; as many packets per system call as the kernel accepts
/// (`UDP_MAX_SEGMENTS` is 64).
impl Default for UdpConfig {
    fn default() -> UdpConfig {
        UdpConfig {
            accepts: false,
            pacer: PACER,
            ack: AckPolicy::default(),
            idle: Duration::from_secs(60),
            answer: Duration::from_secs(30),
            patience: Duration::from_secs(10),
            send_buffer: Bytes(4 << 20),
            receive_buffer: Bytes(16 << 20),
            most_half_open: 1024,
            most_connections: 4096,
            most_segments: 44,
        }
    }
}
