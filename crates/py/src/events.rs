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
    /// A seed of the flow's own, for random numbers that are the same in every run with the run's seed.
    pub seed: u64,
}

/// A data packet left.
#[pyclass(frozen, get_all, module = "airpace")]
pub struct Sent {
    now_ms: f64,
    number: u64,
    bytes: u64,
    inflight_bytes: u64,
    app_limited: bool,
}

/// An acknowledgement that acknowledged something new.
#[pyclass(frozen, get_all, module = "airpace")]
pub struct Ack {
    now_ms: f64,
    packets: usize,
    largest: u64,
    acked_bytes: u64,
    prior_inflight_bytes: u64,
    inflight_bytes: u64,
    delivered_bytes: u64,
    prior_delivered_bytes: u64,
    next_number: u64,
    rtt_ms: Option<f64>,
    smoothed_rtt_ms: f64,
    rtt_variation_ms: f64,
    min_rtt_ms: f64,
    delivery_rate_mbps: Option<f64>,
    app_limited: bool,
    cwnd_limited: bool,
    marked: u64,
}

/// Packets were declared lost.
#[pyclass(frozen, get_all, module = "airpace")]
pub struct Loss {
    now_ms: f64,
    packets: usize,
    largest: u64,
    lost_bytes: u64,
    prior_inflight_bytes: u64,
    inflight_bytes: u64,
    next_number: u64,
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
