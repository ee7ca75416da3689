//! What a controller in Python is told. Times are in milliseconds of the sender's clock, rates in Mbit/s.

use std::time::Duration;

use airpace_cc::controller;
use airpace_core::Time;
use pyo3::prelude::*;

/// What a flow's controller is made from.
#[pyclass(frozen, get_all, module = "airpace")]
pub struct Setup {
    /// Bytes of a full-sized packet on the wire.
    pub mss_bytes: u64,
    /// A seed of the flow's own: the same in every run with the run's seed.
    pub seed: u64,
}

/// A data packet left.
#[pyclass(frozen, get_all, module = "airpace")]
pub struct Sent {
    /// When, by the sender's clock, in ms.
    now_ms: f64,
    /// The packet's number.
    number: u64,
    /// The packet's size.
    bytes: u64,
    /// Bytes outstanding, this packet included.
    inflight_bytes: u64,
    /// Whether the application had no more to send after it.
    app_limited: bool,
}

/// An acknowledgement that acknowledged something new.
#[pyclass(frozen, get_all, module = "airpace")]
pub struct Ack {
    /// When it was processed, by the sender's clock, in ms.
    now_ms: f64,
    /// Packets newly acknowledged; at least 1.
    packets: usize,
    /// The highest of their numbers.
    largest: u64,
    /// Their bytes.
    acked_bytes: u64,
    /// Bytes outstanding before this ACK, and before the losses that it showed.
    prior_inflight_bytes: u64,
    /// Bytes outstanding afterwards.
    inflight_bytes: u64,
    /// Bytes delivered over the connection's life, this ACK included.
    delivered_bytes: u64,
    /// `delivered_bytes` when the packet was sent that gave the delivery rate.
    prior_delivered_bytes: u64,
    /// The next packet's number: a round trip is over when a packet of at least this number is acknowledged.
    next_number: u64,
    /// The round-trip time of this ACK, in ms; `None` if its highest packet is not the highest so far.
    rtt_ms: Option<f64>,
    /// Smoothed round-trip time, gain 1/8, in ms.
    smoothed_rtt_ms: f64,
    /// Its mean deviation, gain 1/4, in ms.
    rtt_variation_ms: f64,
    /// The least of the connection, in ms.
    min_rtt_ms: f64,
    /// The delivery rate's sample, in Mbit/s; `None` if there is no valid one.
    delivery_rate_mbps: Option<f64>,
    /// Whether the application had no more to send when the sample's packet was sent.
    app_limited: bool,
    /// Whether the window was what last kept the sender from sending.
    cwnd_limited: bool,
    /// Packets that this ACK is the first to report as marked by a queue (ECN).
    marked: u64,
}

/// Packets were declared lost.
#[pyclass(frozen, get_all, module = "airpace")]
pub struct Loss {
    /// When, by the sender's clock, in ms.
    now_ms: f64,
    /// How many; at least 1.
    packets: usize,
    /// The highest of their numbers.
    largest: u64,
    /// Their bytes.
    lost_bytes: u64,
    /// Bytes outstanding before the loss was seen.
    prior_inflight_bytes: u64,
    /// Bytes outstanding afterwards.
    inflight_bytes: u64,
    /// The next packet's number: packets below it left before this loss was seen.
    next_number: u64,
    /// Whether nothing was acknowledged for so long that all outstanding packets count as lost.
    persistent: bool,
}

/// A time in milliseconds.
pub fn millis(time: Time) -> f64 {
    time.as_nanos() as f64 / 1e6
}

fn span(of: Duration) -> f64 {
    of.as_secs_f64() * 1e3
}

impl Sent {
    /// As Python sees it.
    pub fn new(sent: &controller::Sent) -> Sent {
        Sent {
            now_ms: millis(sent.now),
            number: sent.number,
            bytes: sent.bytes.0,
            inflight_bytes: sent.inflight.0,
            app_limited: sent.app_limited,
        }
    }
}

impl Ack {
    /// As Python sees it.
    pub fn new(ack: &controller::Ack<'_>) -> Ack {
        Ack {
            now_ms: millis(ack.now),
            packets: ack.packets.len(),
            largest: ack.packets.last().map_or(0, |packet| packet.number),
            acked_bytes: ack.acked.0,
            prior_inflight_bytes: ack.prior_inflight.0,
            inflight_bytes: ack.inflight.0,
            delivered_bytes: ack.rate.delivered.0,
            prior_delivered_bytes: ack.rate.prior_delivered.0,
            next_number: ack.next_number,
            rtt_ms: ack.rtt.latest.map(span),
            smoothed_rtt_ms: span(ack.rtt.smoothed),
            rtt_variation_ms: span(ack.rtt.variation),
            min_rtt_ms: span(ack.rtt.min),
            delivery_rate_mbps: ack.rate.rate.map(|rate| rate.as_mbps()),
            app_limited: ack.rate.app_limited,
            cwnd_limited: ack.cwnd_limited,
            marked: ack.ce,
        }
    }
}

impl Loss {
    /// As Python sees it.
    pub fn new(loss: &controller::Loss<'_>) -> Loss {
        Loss {
            now_ms: millis(loss.now),
            packets: loss.packets.len(),
            largest: loss.packets.last().map_or(0, |packet| packet.number),
            lost_bytes: loss.lost.0,
            prior_inflight_bytes: loss.prior_inflight.0,
            inflight_bytes: loss.inflight.0,
            next_number: loss.next_number,
            persistent: loss.cause == controller::LossCause::Persistent,
        }
    }
}
