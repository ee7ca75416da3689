//! The round-trip propagation time, and the times at which it is measured with less data in flight.
//!
//! Source: draft-ietf-ccwg-bbr-06 §5.3.4

use std::time::Duration;

use airpace_core::{Bytes, Time};

use crate::controller::SentPacket;

/// Window of the minimum round-trip time: `BBR.MinRTTFilterLen`.
const FILTER: Duration = Duration::from_secs(10);
/// Time without a lower round-trip time after which ProbeRTT measures the propagation time again:
/// `BBR.ProbeRTTInterval`.
const INTERVAL: Duration = Duration::from_secs(5);
/// Time for which ProbeRTT keeps little data in flight: `BBR.ProbeRTTDuration`.
const DURATION: Duration = Duration::from_millis(200);

/// The estimated propagation time, and the schedule of ProbeRTT.
#[derive(Clone, Copy, Debug, Default)]
pub struct MinRtt {
    rtprop: Option<(Duration, Time)>,
    /// The minimum round-trip time of the current [`INTERVAL`], and its time.
    lately: Option<(Duration, Time)>,
    expired: bool,
    probe: Option<Probe>,
    idle_span: Option<IdleSpan>,
}

/// A ProbeRTT in progress.
#[derive(Clone, Copy, Debug, Default)]
struct Probe {
    /// Earliest end of ProbeRTT; `None` until the amount in flight is low enough.
    done: Option<Time>,
    round_done: bool,
}

/// A span of sent packets that give no information about the path's bandwidth.
#[derive(Clone, Copy, Debug)]
struct IdleSpan {
    since: Time,
    until: Time,
    /// Number of delivered bytes (over the connection's life) above which the span ends.
    delivered: Bytes,
}

/// The next action of ProbeRTT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Wait.
    Wait,
    /// The amount in flight is low enough: the hold time and a round start.
    Hold,
    /// ProbeRTT is over.
    Done,
}

impl MinRtt {
    /// Processes the round-trip time of an ACK.
    pub fn on_ack(&mut self, now: Time, rtt: Option<Duration>) {
        self.expired = self.lately.is_some_and(|(_, seen)| now > seen + INTERVAL);
        if let Some(rtt) = rtt
            && (self.expired || self.lately.is_none_or(|(least, _)| rtt < least))
        {
            self.lately = Some((rtt, now));
        }
        let Some((least, seen)) = self.lately else { return };
        if self.rtprop.is_none_or(|(rtprop, since)| least < rtprop || now > since + FILTER) {
            self.rtprop = Some((least, seen));
        }
    }

    /// Round-trip propagation time; `None` before the first sample.
    pub fn get(&self) -> Option<Duration> {
        self.rtprop.map(|(rtprop, _)| rtprop)
    }

    /// Whether ProbeRTT is due as of the last ACK.
    pub fn is_due(&self) -> bool {
        self.expired
    }

    /// Starts ProbeRTT.
    pub fn begin(&mut self, now: Time) {
        self.probe = Some(Probe::default());
        self.idle_span = Some(IdleSpan { since: now, until: Time::NEVER, delivered: Bytes(u64::MAX) });
    }

    /// Processes an ACK in ProbeRTT. `drained`: whether the amount in flight is low enough.
    pub fn step(&mut self, now: Time, round_start: bool, drained: bool, pipe: Bytes) -> Step {
        let Some(probe) = &mut self.probe else { return Step::Wait };
        if let Some(span) = &mut self.idle_span {
            span.delivered = pipe;
        }
        match probe.done {
            None if drained => {
                *probe = Probe { done: Some(now + DURATION), round_done: false };
                Step::Hold
            }
            None => Step::Wait,
            Some(_) => {
                probe.round_done |= round_start;
                if probe.round_done && self.finish(now) { Step::Done } else { Step::Wait }
            }
        }
    }

    /// Ends ProbeRTT if it has lasted long enough. Returns whether it ended.
    pub fn finish(&mut self, now: Time) -> bool {
        let over = self.probe.and_then(|probe| probe.done).is_some_and(|done| now > done);
        if over {
            self.probe = None;
            if let Some((_, seen)) = &mut self.lately {
                *seen = now; // the next interval begins here
            }
        }
        over
    }

    /// Processes the number of delivered bytes. ProbeRTT's low rate counts as an application limit until everything
    /// that was in flight at the end of ProbeRTT has been delivered.
    ///
    /// Source: draft-ietf-ccwg-bbr-06 §5.3.4.3 (`MarkConnectionAppLimited`)
    pub fn on_delivered(&mut self, now: Time, delivered: Bytes) {
        if let Some(span) = &mut self.idle_span
            && span.until == Time::NEVER
            && self.probe.is_none()
            && delivered > span.delivered
        {
            span.until = now;
        }
    }

    /// Whether `packet` was sent while ProbeRTT kept little data in flight.
    pub fn held(&self, packet: &SentPacket) -> bool {
        self.idle_span.is_some_and(|span| packet.sent >= span.since && packet.sent < span.until)
    }
}
