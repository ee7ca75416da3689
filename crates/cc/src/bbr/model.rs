//! BBR's model of its path: the bottleneck's bandwidth, the round-trip propagation time, and rounds.
//!
//! PBE-CC updates the same model in every state, so that it can switch to BBR at any ACK.

use std::time::Duration;

use airpace_core::{Bytes, Rate, Time};

use crate::controller::{Ack, SentPacket};
use crate::filter::{WindowedMax, WindowedMin};

/// Window of BtlBw, the maximum delivery rate, in rounds.
///
/// Source: Linux tcp_bbr.c; PBE-CC §4.2.3
pub const BTLBW_ROUNDS: u64 = 10;

/// Window of RTprop, the minimum round-trip time.
///
/// Source: Linux tcp_bbr.c; PBE-CC §4.2.2
pub const RTPROP_WINDOW: Duration = Duration::from_secs(10);

/// Expiry rule of RTprop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ageing {
    /// RTprop is the minimum of the last [`RTPROP_WINDOW`]. This is for a controller that has no ProbeRTT.
    ///
    /// Source: PBE-CC §4.2.2
    Sliding,
    /// RTprop is the minimum since its last renewal. After [`RTPROP_WINDOW`], the next sample replaces it, even if that
    /// sample is larger, until ProbeRTT has found a lower one.
    ///
    /// Source: Linux tcp_bbr.c
    ///
    /// Differs: in Linux, the ACK of a single packet that the receiver delayed does not replace it.
    Renewed,
}

#[derive(Clone, Copy, Debug)]
enum Rtprop {
    Sliding(WindowedMin<Duration, Time>),
    /// The time of the last renewal of RTprop, and the value of RTprop.
    Renewed(Option<(Time, Duration)>),
}

impl Rtprop {
    fn get(&self) -> Option<Duration> {
        match self {
            Rtprop::Sliding(window) => window.get(),
            Rtprop::Renewed(seen) => seen.map(|(_, rtt)| rtt),
        }
    }

    /// Whether RTprop was not renewed for the whole window.
    fn has_expired(&self, now: Time) -> bool {
        let since = match self {
            Rtprop::Sliding(window) => window.position(),
            Rtprop::Renewed(seen) => seen.map(|(since, _)| since),
        };
        since.is_some_and(|since| now - since > RTPROP_WINDOW)
    }

    fn update(&mut self, now: Time, rtt: Duration) {
        let has_expired = self.has_expired(now);
        match self {
            Rtprop::Sliding(window) => {
                window.update(now, rtt);
            }
            Rtprop::Renewed(seen) => {
                if has_expired || seen.is_none_or(|(_, least)| rtt < least) {
                    *seen = Some((now, rtt));
                }
            }
        }
    }
}

/// BtlBw, RTprop and the count of rounds.
#[derive(Clone, Debug)]
pub struct Model {
    btlbw: WindowedMax<Rate, u64>,
    rtprop: Rtprop,
    rounds: u64,
    /// The next round starts with the ACK of a packet that was sent when at least this many bytes had been delivered.
    next_round_delivered: Bytes,
    /// Start and end of a span in which the controller, not the path, limited the sending rate.
    held_back: Option<(Time, Time)>,
}

/// The results of one ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Observed {
    /// Whether the ACK starts a round.
    pub round_start: bool,
    /// Whether the sample is below the path's bandwidth, because the application or ProbeRTT limited the sender.
    pub app_limited: bool,
    /// Whether RTprop had not been renewed for [`RTPROP_WINDOW`].
    pub rtprop_expired: bool,
}

impl Model {
    /// A model without any samples.
    pub fn new(ageing: Ageing) -> Model {
        let rtprop = match ageing {
            Ageing::Sliding => Rtprop::Sliding(WindowedMin::new(RTPROP_WINDOW)),
            Ageing::Renewed => Rtprop::Renewed(None),
        };
        Model {
            btlbw: WindowedMax::new(BTLBW_ROUNDS),
            rtprop,
            rounds: 0,
            next_round_delivered: Bytes::ZERO,
            held_back: None,
        }
    }

    /// Processes one ACK.
    pub fn on_ack(&mut self, ack: &Ack<'_>) -> Observed {
        let round_start = ack.rate.prior_delivered >= self.next_round_delivered;
        if round_start {
            self.rounds += 1;
            self.next_round_delivered = ack.rate.delivered;
        }
        let app_limited =
            ack.rate.app_limited || ack.packets.last().is_some_and(|packet| self.was_held(packet));
        if let Some(rate) = ack.rate.rate {
            // Source: Linux tcp_bbr.c
            // A sample taken while the sender was limited counts only if it is not below BtlBw.
            if !app_limited || rate >= self.btlbw() {
                self.btlbw.update(self.rounds, rate);
            }
        }
        let rtprop_expired = self.rtprop.has_expired(ack.now);
        if let Some(rtt) = ack.rtt.latest {
            self.rtprop.update(ack.now, rtt);
        }
        Observed { round_start, app_limited, rtprop_expired }
    }

    /// Bandwidth of the bottleneck; zero before the first sample.
    pub fn btlbw(&self) -> Rate {
        self.btlbw.get().unwrap_or(Rate::ZERO)
    }

    /// Round-trip propagation time; `None` before the first sample.
    pub fn rtprop(&self) -> Option<Duration> {
        self.rtprop.get()
    }

    /// Bytes delivered at `rate` in RTprop + `slack`, times `gain`; `None` before RTprop is known.
    pub fn bdp(&self, rate: Rate, gain: f64, slack: Duration) -> Option<Bytes> {
        Some(rate.bytes_in(self.rtprop()? + slack).scaled(gain))
    }

    /// Starts a round at the next packet to be sent.
    pub fn restart_round(&mut self, delivered: Bytes) {
        self.next_round_delivered = delivered;
    }

    /// Discards every delivery rate except `recent`, because the path's bottleneck has changed.
    pub fn reset_btlbw(&mut self, recent: Rate) {
        self.btlbw.reset();
        self.btlbw.update(self.rounds, recent);
    }

    /// Marks the packets sent from `since` until [`Model::release`] as not showing the path's bandwidth.
    pub fn hold_back(&mut self, since: Time) {
        self.held_back = Some((since, Time::NEVER));
    }

    /// Ends the span that [`Model::hold_back`] started. The round-trip time was measured in this span, so RTprop counts
    /// as renewed.
    pub fn release(&mut self, now: Time) {
        if let Rtprop::Renewed(Some((since, _))) = &mut self.rtprop {
            *since = now;
        }
        if let Some((_, until)) = &mut self.held_back {
            *until = now;
        }
    }

    fn was_held(&self, packet: &SentPacket) -> bool {
        self.held_back.is_some_and(|(since, until)| packet.sent >= since && packet.sent < until)
    }
}
