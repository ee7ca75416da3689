//! Events for controllers in Python. Times are in milliseconds of the sender's clock, rates in Mbit/s.

use std::time::Duration;

use airpace_cc::controller;
use airpace_core::Time;
use pyo3::prelude::*;

/// Parameters of one flow, from which its controller is made.
#[pyclass(frozen, get_all, module = "airpace")]
pub struct Setup {
    /// Size of a full-sized packet on the wire, in bytes.
    pub mss_bytes: u64,
    /// Seed of this flow: the same in every run with the same seed of the run.
    pub seed: u64,
}

/// A data packet left.
#[pyclass(frozen, get_all, module = "airpace")]
pub struct Sent {
    /// Time of the departure by the sender's clock, in ms.
    now_ms: f64,
    /// The packet number.
    number: u64,
    /// The packet's size on the wire, in bytes.
    bytes: u64,
    /// Bytes outstanding, this packet included.
    inflight_bytes: u64,
    /// Whether the application had no more data to send after this packet.
    app_limited: bool,
}

/// An acknowledgement that acknowledged something new.
#[pyclass(frozen, get_all, module = "airpace")]
pub struct Ack {
    /// Time at which the sender processed the ACK, by the sender's clock, in ms.
    now_ms: f64,
    /// Packets newly acknowledged; at least 1.
    packets: usize,
    /// The highest number of the packets newly acknowledged.
    largest: u64,
    /// Bytes newly acknowledged.
    acked_bytes: u64,
    /// Bytes outstanding before this ACK and before the losses that were detected with it.
    prior_inflight_bytes: u64,
    /// Bytes outstanding after this ACK.
    inflight_bytes: u64,
    /// Bytes delivered over the connection's life, this ACK included.
    delivered_bytes: u64,
    /// `delivered_bytes` when the packet of the delivery-rate sample was sent.
    prior_delivered_bytes: u64,
    /// Next packet number to be sent: a round trip ends when a packet of at least this number is acknowledged.
    next_number: u64,
    /// Round-trip time of this ACK, in ms; `None` if a packet with a higher number was acknowledged before.
    rtt_ms: Option<f64>,
    /// Smoothed round-trip time, gain 1/8, in ms.
    smoothed_rtt_ms: f64,
    /// Mean deviation of the round-trip time, gain 1/4, in ms.
    rtt_variation_ms: f64,
    /// Minimum round-trip time of the connection, in ms.
    min_rtt_ms: f64,
    /// Delivery-rate sample of this ACK, in Mbit/s; `None` if the ACK has no valid sample.
    delivery_rate_mbps: Option<f64>,
    /// Whether the application had no more data to send when the sample's packet was sent.
    app_limited: bool,
    /// Whether the congestion window last stopped the sender, and not pacing, application or receiver.
    cwnd_limited: bool,
    /// Packets that this ACK newly reports as marked by a queue (ECN).
    marked: u64,
}

/// Packets were declared lost.
#[pyclass(frozen, get_all, module = "airpace")]
pub struct Loss {
    /// Time of the detection by the sender's clock, in ms.
    now_ms: f64,
    /// Number of lost packets; at least 1.
    packets: usize,
    /// The highest number of the lost packets.
    largest: u64,
    /// Bytes newly declared lost.
    lost_bytes: u64,
    /// Bytes outstanding before the loss was detected.
    prior_inflight_bytes: u64,
    /// Bytes outstanding after the loss.
    inflight_bytes: u64,
    /// Next packet number to be sent: all packets with lower numbers left before this loss was detected.
    next_number: u64,
    /// Whether all outstanding packets count as lost because no packet was acknowledged for a long period.
    persistent: bool,
}

/// Converts a time to milliseconds.
pub fn millis(time: Time) -> f64 {
    time.as_nanos() as f64 / 1e6
}

fn span(of: Duration) -> f64 {
    of.as_secs_f64() * 1e3
}

impl Sent {
    /// Converts the event of `cc` to milliseconds and Mbit/s.
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
    /// Converts the event of `cc` to milliseconds and Mbit/s.
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
    /// Converts the event of `cc` to milliseconds and Mbit/s.
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
