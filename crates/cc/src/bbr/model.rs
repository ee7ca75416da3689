//! BBR's model of its path: the bottleneck's bandwidth, the round-trip propagation time, and rounds.
//!
//! PBE-CC updates the same model in every state, so that it can switch to BBR at any ACK.

use std::time::Duration;

use airpace_core::{Bytes, Rate, Time};

use crate::controller::{Ack, SentPacket};
use crate::filter::{WindowedMax, WindowedMin};

/// BtlBw is the greatest delivery rate over this many rounds.
///
/// Source: Linux tcp_bbr.c; PBE-CC §4.2.3
pub const BTLBW_ROUNDS: u64 = 10;

/// RTprop is the least round-trip time over this span.
///
/// Source: Linux tcp_bbr.c; PBE-CC §4.2.2
pub const RTPROP_WINDOW: Duration = Duration::from_secs(10);

/// How RTprop expires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ageing {
    /// It is the least of the last [`RTPROP_WINDOW`]. This is for a control that has no ProbeRTT.
    ///
    /// Source: PBE-CC §4.2.2
    Sliding,
    /// It is the least since it was renewed. After [`RTPROP_WINDOW`], the next sample replaces it, however long that
    /// sample is, until ProbeRTT has found a lesser one.
    ///
    /// Source: Linux tcp_bbr.c
    ///
    /// Differs: in Linux, the ACK of a lone packet that the receiver held back does not replace it.
    Renewed,
}

#[derive(Clone, Copy, Debug)]
enum Rtprop {
    Sliding(WindowedMin<Duration, Time>),
    /// The value, and when it was renewed.
    Renewed(Option<(Time, Duration)>),
}

impl Rtprop {
    fn get(&self) -> Option<Duration> {
        match self {
            Rtprop::Sliding(window) => window.get(),
            Rtprop::Renewed(seen) => seen.map(|(_, rtt)| rtt),
        }
    }

    /// Whether it was not renewed for the whole window.
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
    /// The next round begins with the ACK of a packet that was sent when at least this much had been delivered.
    next_round_delivered: Bytes,
    /// The controller, not the path, held back the packets that left in this span.
    held_back: Option<(Time, Time)>,
}

/// What one ACK showed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Observed {
    /// Whether the ACK began a round.
    pub round_start: bool,
    /// Whether the sample shows less than the path's bandwidth, because the application or ProbeRTT held the sender
    /// back.
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

    /// Takes in one ACK.
    pub fn on_ack(&mut self, ack: &Ack<'_>) -> Observed {
        let round_start = ack.rate.prior_delivered >= self.next_round_delivered;
        if round_start {
            self.rounds += 1;
            self.next_round_delivered = ack.rate.delivered;
        }
        let app_limited =
            ack.rate.app_limited || ack.packets.last().is_some_and(|packet| self.was_held(packet));
        if let Some(rate) = ack.rate.rate {
            // Source: Linux tcp_bbr.c — a sample of a sender that was held back counts only if it says more.
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

    /// Rounds begun so far.
    pub fn rounds(&self) -> u64 {
        self.rounds
    }

    /// The bytes that `rate` gives over RTprop + `slack`, times `gain`; `None` before RTprop is known.
    pub fn bdp(&self, rate: Rate, gain: f64, slack: Duration) -> Option<Bytes> {
        Some(rate.bytes_in(self.rtprop()? + slack).scaled(gain))
    }

    /// Begins a round at the next packet to be sent.
    pub fn restart_round(&mut self, delivered: Bytes) {
        self.next_round_delivered = delivered;
    }

    /// Forgets every delivery rate except `recent`, because the path's bottleneck has changed.
    pub fn reset_btlbw(&mut self, recent: Rate) {
        self.btlbw.reset();
        self.btlbw.update(self.rounds, recent);
    }

    /// Packets that leave from `since` until [`Model::release`] do not show the path's bandwidth.
    pub fn hold_back(&mut self, since: Time) {
        self.held_back = Some((since, Time::NEVER));
    }

    /// Ends the span that [`Model::hold_back`] began. The path was measured in it, so RTprop counts as renewed.
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
