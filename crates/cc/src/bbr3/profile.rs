//! Differences between the draft and Google's program, as one table.

use std::time::Duration;

/// Constants that differ between the sources.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DelayProfile {
    /// Pacing gain of Drain.
    pub drain_gain: f64,
    /// Number of rounds after which Drain ends even if more than the estimated BDP is in flight. `None`: no limit.
    pub drain_rounds: Option<u64>,
    /// Pacing gain of ProbeBW_DOWN.
    pub down_gain: f64,
    /// Minimum window, in send quanta.
    pub offload_quanta: u64,
    /// Maximum allowance for ACK aggregation, as a time at the current bandwidth.
    pub extra_acked_cap: Option<Duration>,
    /// Whether a delivery-rate sample with too much loss ends a probe. If not, only a lost packet ends a probe, because
    /// a lost packet shows more precisely how much data was in flight.
    pub samples_end_probes: bool,
}

impl DelayProfile {
    /// Source: draft-ietf-ccwg-bbr-06 §5.3.2, §5.3.3.1, §5.5.8.2, §5.5.9, §5.5.10.2
    pub const DRAFT: DelayProfile = DelayProfile {
        drain_gain: 0.5,
        drain_rounds: Some(3),
        down_gain: 0.90,
        offload_quanta: 1,
        extra_acked_cap: None,
        samples_end_probes: false,
    };

    /// Source: google/bbr v3 net/ipv4/tcp_bbr.c
    pub const GOOGLE: DelayProfile = DelayProfile {
        drain_gain: 1.0 / 2.885,
        drain_rounds: None,
        down_gain: 0.91,
        offload_quanta: 3,
        extra_acked_cap: Some(Duration::from_millis(100)),
        samples_end_probes: true,
    };
}
