//! Emulated paths, in addition to the recorded links: conditions that no recorded link has, such as random loss.

use super::Condition;

/// Duration of a run over a path, in s.
///
/// Chosen: two hundred round trips of the longest path, in a third of the duration of a run over a recorded link.
pub const SECONDS: f64 = 20.0;

/// An emulated path.
#[derive(Clone, Copy, Debug)]
pub struct Path {
    /// Name of the path, in place of the name of a recorded link.
    pub name: &'static str,
    /// Capacity of the bottleneck's buffer, in packets.
    pub queue_packets: u64,
    /// Rate of the bottleneck, in Mbit/s.
    pub rate_mbps: f64,
    /// Round-trip time without queueing, in ms.
    pub rtt_ms: u64,
    /// Packets per ACK of Airpace's receiver. Linux acknowledges every packet while the receive sequence has a gap, which
    /// is frequent with random loss.
    pub ack_every: u32,
    /// Impairment of the path, in words.
    pub about: &'static str,
    /// Impairment of the path, as lines of a scenario.
    pub lines: &'static str,
}

const fn lossy(name: &'static str, about: &'static str, lines: &'static str) -> Path {
    Path { name, queue_packets: 110, rate_mbps: 6.6, rtt_ms: 100, ack_every: 1, about, lines }
}

const fn buffered(name: &'static str, queue_packets: u64, about: &'static str, lines: &'static str) -> Path {
    Path { name, queue_packets, rate_mbps: 20.0, rtt_ms: 40, ack_every: 2, about, lines }
}

/// All emulated paths.
///
/// Chosen: conditions of public bug reports (random loss as in lsquic #233), and conditions of links that are not radio
/// links.
pub const PATHS: [Path; 10] = [
    lossy("loss-1", "loses 1 % of data packets at random", "[forward]\nloss = 0.01\n"),
    lossy("loss-3", "loses 3 % of data packets at random", "[forward]\nloss = 0.03\n"),
    lossy("loss-5", "loses 5 % of data packets at random", "[forward]\nloss = 0.05\n"),
    lossy("loss-10", "loses 10 % of data packets at random", "[forward]\nloss = 0.1\n"),
    lossy("loss-15", "loses 15 % of data packets at random", "[forward]\nloss = 0.15\n"),
    Path {
        name: "reordering",
        queue_packets: 417,
        rate_mbps: 50.0,
        rtt_ms: 20,
        ack_every: 2,
        about: "delays 1 % of data packets by 5 ms more",
        lines: "[forward]\nreorder = { probability = 0.01, extra_ms = 5 }\n",
    },
    buffered("ack-thinning", 167, "loses every other ACK at random", "[reverse]\nloss = 0.5\n"),
    buffered("narrow-ack-path", 167, "carries ACKs at 0.4 Mbit/s", "[reverse]\nrate_mbps = 0.4\n"),
    buffered("short-buffer", 30, "nothing; the buffer is 0.45 of what the wire holds", ""),
    buffered("shortest-buffer", 8, "nothing; the buffer is 0.12 of what the wire holds", ""),
];

/// The kernel's congestion controls that are run over paths.
pub const SCHEMES: [&str; 4] = ["reno", "cubic", "bbr", "morc"];

/// The path of a condition; `None` for a recorded link.
pub fn path(condition: &Condition) -> Option<&'static Path> {
    PATHS.iter().find(|path| path.name == condition.trace)
}

/// All conditions over paths.
pub fn conditions() -> impl Iterator<Item = Condition> {
    PATHS.iter().flat_map(|path| {
        SCHEMES.iter().map(|scheme| Condition {
            trace: path.name.to_owned(),
            queue_packets: path.queue_packets,
            scheme: (*scheme).to_owned(),
        })
    })
}

impl Path {
    /// The scenario of a bulk flow over the path, as text.
    pub fn scenario(&self) -> String {
        let Path { queue_packets, rate_mbps, rtt_ms, ack_every, lines, .. } = self;
        format!(
            "name = \"kernel-truth\"\nduration_s = {SECONDS}\n[internet]\nrate_mbps = {rate_mbps}\n\
             buffer.packets = {queue_packets}\n{lines}[[flow]]\nrtt_ms = {rtt_ms}\nack_every = {ack_every}\nack_delay_ms = 40\n"
        )
    }
}
