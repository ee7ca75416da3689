//! The papers' prototype: a transport of its own on UDP that carries the scheme's feedback in every ACK, made safe.
//!
//! Both ends are senders and receivers: each direction has a [`Sender`] with an [`Outbox`] at one end and an [`Acker`] at
//! the other, the same as in the simulator. All but the handshake is sealed with keys that both ends compute from the
//! key that they share, so that nobody on the path can steer a sender, read a stream or end a connection.
//!
//! | packet | bytes, in this order |
//! | --- | --- |
//! | Hello | first byte, client's name (8), nonce (16), cookie (32), proof (32), zeros up to 1200 bytes |
//! | Cookie | first byte, client's name (8), cookie (32), proof (32) |
//! | Accept | first byte, client's name (8), server's name (8), nonce (16), proof (32) |
//! | Sealed | first byte, receiver's name (8), counter (8), sealed frames, tag (16) |
//! | Gone | first byte, name and counter of a sealed packet (8, 8), beginning of a proof (16) |
//!
//! The first byte is 8 · version + 0, 1, 2, 3 or 4 in this order; the version is 1, and the upper two bits stay 0, since
//! QUIC sets one of them. Integers are big-endian. Frames of a sealed packet, one after the other:
//!
//! | frame | bytes after the first, `v` of variable length as in QUIC |
//! | --- | --- |
//! | 0 padding | none |
//! | 1 Ack | `v` number, `v` largest, count of ranges (1), for each `v` gap and `v` length, `v` marks, `v` delay in ns, `v` window + 1, length of the feedback (1), feedback |
//! | 2 Limit | `v` offset up to which the stream may be sent |
//! | 3 Ping, 4 Pong | what is to be answered (8) |
//! | 5 Request | length (1), what the receiver half says before anything arrived |
//! | 6 Close | code (4), length (2), text |
//! | 7 Data, 8 its end too | number (8), time in ns (8), offset (8), length of the controller's header (1), header, the rest of the packet |
//!
//! The feedback of PBE-CC, on every ACK, is a 32-bit interval between packets and a bit that says where the bottleneck
//! is, besides what `airpace_cc::pbe` needs more. Every data packet is as long as its sender counts it, so that 1500 bytes
//! in a controller are 1500 bytes of IP on the wire. An ACK never waits for the pacer.
//!
//! A Gone answers a sealed packet for a connection that its receiver does not know. Its sender ends the connection at
//! once, so that the restart of one side is noticed within a round trip. The proof is by the key that both ends share, and
//! not by a secret of the endpoint as in QUIC: it is good even if the program was started anew. Who is not on the path
//! knows neither names nor key. Who sees packets could have another endpoint with the same key say it, so each listener
//! has a key of its own. Who is on the path and has the key can compute the keys of packets as well. If the key
//! was changed too, or the whole machine is gone, nothing can answer: then [`UdpConfig::answer`] is the measure.
//!
//! Source: PBE-CC §5; RFC 9000 §10.3 (what a Gone is for)
//!
//! Differs: the prototype has no handshake, and sends in the clear.
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

/// Whether all frames of `text` that can be read say the same when they are written again. Packets carry them sealed, so
/// that no stranger's bytes are ever read as frames: this is for tests of the reading.
pub fn reads_as_written(text: &[u8]) -> bool {
    packet::Frames::of(text).map_while(Result::ok).all(|frame| {
        let mut out = vec![];
        frame.write(&mut out);
        packet::Frames::of(&out).eq([Ok(frame)])
    })
}

/// What an endpoint does, and how much of everything it allows.
#[derive(Clone, Copy, Debug)]
pub struct UdpConfig {
    /// Whether it takes connections of others.
    pub accepts: bool,
    /// How packets are paced.
    pub pacer: PacerConfig,
    /// When arrivals are acknowledged. Both ends must have the same.
    pub ack: AckPolicy,
    /// A connection of which nothing was heard for so long is over.
    pub idle: Duration,
    /// A connection that sent something to be answered, and heard nothing for so long, is over.
    pub answer: Duration,
    /// How long a handshake may take.
    pub patience: Duration,
    /// Bytes that are held for the peer until they have arrived; more if the congestion window is larger.
    pub send_buffer: Bytes,
    /// Bytes that wait for the application to read them; at least 1 MiB.
    pub receive_buffer: Bytes,
    /// Connections whose client has not shown itself after the handshake.
    pub most_half_open: usize,
    /// Connections, in all.
    pub most_connections: usize,
    /// Packets that leave in one call, if the pacer lets them.
    pub most_segments: usize,
}

/// Chosen: an idle time that survives a tunnel, a wait for answers of three times the outage that a transfer must survive, buffers for 1 Gbit/s over 100 ms, and as many packets in one call as the
/// kernel takes (`UDP_MAX_SEGMENTS` is 64).
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
