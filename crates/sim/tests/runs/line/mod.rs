//! A shared drop-tail bottleneck in the Internet; each flow has separate wires.
#![allow(dead_code)] // each test file uses only some items

use airpace_sim::Scenario;

use crate::watched::{Watched, watch};

/// Size of a full packet, in bytes.
const MSS_BYTES: u64 = 1_500;

/// A path and the flows on it.
#[derive(Clone, Debug)]
pub struct Line {
    /// Rate of the bottleneck in Mbit/s.
    pub mbps: f64,
    /// Later rates of the bottleneck: time in s, and rate in Mbit/s.
    pub later: Vec<(f64, f64)>,
    /// Round-trip time of the idle path in ms, without the transmission time of a packet at the bottleneck.
    pub rtt_ms: f64,
    /// Maximum number of bytes in the bottleneck, including the packet in transmission.
    pub buffer_bytes: u64,
    /// Share of packets lost at random before the bottleneck.
    pub loss: f64,
    /// Mean of the exponential jitter before the bottleneck, in ms.
    pub jitter_ms: f64,
    /// Start time of each flow, in s.
    pub starts_s: Vec<f64>,
    pub seed: u64,
}

impl Line {
    /// Creates a line with one flow, a buffer of `buffer_ms` milliseconds at the rate of the bottleneck, and no loss.
    pub fn new(mbps: f64, rtt_ms: f64, buffer_ms: f64) -> Line {
        let buffer_bytes = (mbps * buffer_ms * 125.0) as u64;
        Line {
            mbps,
            later: vec![],
            rtt_ms,
            buffer_bytes,
            loss: 0.0,
            jitter_ms: 0.0,
            starts_s: vec![0.0],
            seed: 1,
        }
    }

    /// Runs the flows for `duration_s` seconds, all under one scheme.
    pub fn run(&self, scheme: &str, duration_s: f64) -> Vec<Watched> {
        let Line { mbps, later, loss, jitter_ms, .. } = self;
        let rtt_ms = self.rtt_ms + MSS_BYTES as f64 * 8e-3 / mbps;
        let buffer_bytes = self.buffer_bytes - MSS_BYTES;
        let steps = later.iter().map(|(at_s, mbps)| format!("{{ at_s = {at_s:?}, rate_mbps = {mbps:?} }},"));
        let flows =
            self.starts_s.iter().map(|at_s| format!("[[flow]]\nrtt_ms = {rtt_ms:?}\nstart_s = {at_s:?}\n"));
        let text = format!(
            "name = \"line\"\nschemes = [\"reno\"]\nduration_s = {duration_s:?}\n\
             [internet]\nrate_mbps = {mbps:?}\nbuffer.bytes = {buffer_bytes}\nschedule = [{}]\n\
             [forward]\nloss = {loss:?}\njitter_mean_ms = {jitter_ms:?}\n{}",
            steps.collect::<String>(),
            flows.collect::<String>(),
        );
        let scenario = Scenario::load(&text, "line.toml", &[]).unwrap_or_else(|error| panic!("{error}"));
        watch(&scenario, scheme, self.seed)
    }

    /// Runs the only flow for `duration_s` seconds.
    pub fn alone(&self, scheme: &str, duration_s: f64) -> Watched {
        self.run(scheme, duration_s).swap_remove(0)
    }
}

/// Jain's fairness index.
///
/// Source: RFC 5166 §2.3
pub fn jain(shares: &[f64]) -> f64 {
    let sum: f64 = shares.iter().sum();
    sum * sum / (shares.len() as f64 * shares.iter().map(|share| share * share).sum::<f64>())
}
