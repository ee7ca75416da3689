//! The receiver of BISCAY, for a radio at the receiving device. It sends the device's downlink bandwidth as feedback,
//! or advertises a window computed from it.
//!
//! Source: BISCAY §3.2.4; BISCAY §5.4

use std::time::Duration;

use airpace_core::{Bytes, Direction, Rate, Rider, Time};
use airpace_radio::RadioReport;

use crate::controller::{Arrival, Inspect, Receiver, Sees};
use crate::registry::DeviceFlows;

use super::bandwidth::CellularBandwidth;
use super::echo::EchoRtt;
use super::feedback::{Feedback, read_timestamp};
use super::rounds::MAX_DRAIN;
use super::sender::{DRAIN_GAIN, MIN_PACKETS, queue_threshold};
use super::{Startup, Tuning};

/// Duration of a drain, in round trips. In the first round trip, the advertised window falls; in the second, the path
/// is observed without a queue.
const DRAIN_ROUNDS: u32 = 2;

/// The receiver of BISCAY.
#[derive(Clone, Debug)]
pub struct BiscayReceiver {
    tuning: Tuning,
    mss: Bytes,
    downlink: CellularBandwidth,
    /// Whether a radio report has arrived since the last call of `see_clock`.
    heard: bool,
    last_heard: Option<Time>,
    device: DeviceFlows,
    advertising: Option<Advertising>,
}

/// State for advertising a window to a sender that does not use BISCAY.
#[derive(Clone, Debug)]
struct Advertising {
    rtt: EchoRtt,
    /// The downlink bandwidth from which the window is computed.
    held: Rate,
    /// Whether a queue has been observed on the path. Until then, the receiver does not limit the sender's slow start.
    has_begun: bool,
    /// End of the current or of the last drain.
    drain: Time,
    window: Option<Bytes>,
}

impl BiscayReceiver {
    /// The receiver of a new flow. With `advertises` it advertises a window, otherwise it only sends the bandwidth as
    /// feedback.
    pub fn new(tuning: Tuning, mss: Bytes, advertises: bool) -> BiscayReceiver {
        BiscayReceiver {
            tuning,
            mss,
            downlink: CellularBandwidth::new(Direction::Downlink, tuning.determination),
            heard: false,
            last_heard: None,
            device: DeviceFlows::ALONE,
            advertising: advertises.then(|| Advertising::new(&tuning)),
        }
    }

    fn bandwidth(&self, now: Time) -> Option<Rate> {
        let is_fresh = self.last_heard.is_some_and(|heard| now - heard <= self.tuning.stale_after);
        self.downlink.get().filter(|_| is_fresh)
    }

    fn see_clock(&mut self, now: Time) {
        if std::mem::take(&mut self.heard) {
            self.last_heard = Some(now);
        }
    }
}

impl Advertising {
    fn new(tuning: &Tuning) -> Advertising {
        let rtt = EchoRtt::new(tuning.rtt_memory);
        Advertising { rtt, held: Rate::ZERO, has_begun: false, drain: Time::ZERO, window: None }
    }

    /// Returns the window with which the sender gets `share` of the sampled bandwidth; `None` if the bandwidth is
    /// unknown.
    ///
    /// Source: BISCAY §3.2.4 (flow control that throttles the sender)
    fn update(
        &mut self,
        now: Time,
        tuning: &Tuning,
        mss: Bytes,
        known: (Option<Rate>, f64),
    ) -> Option<Bytes> {
        let (sampled, share) = known;
        let (least, standing) = (self.rtt.least()?, self.rtt.standing()?);
        let has_queue = standing > least + queue_threshold(least);
        self.has_begun |= has_queue;
        let sampled = sampled?;
        // Differs: as in the controller, the bandwidth can be held: as long as no data is queued, the grants only
        // reflect the requests.
        let is_settled = now > self.drain + tuning.lag();
        let may_fall = has_queue && sampled > Rate::ZERO && is_settled || !tuning.hold;
        self.held = if may_fall { sampled } else { self.held.max(sampled) };
        if tuning.startup != Startup::First && !self.has_begun {
            return None;
        }
        let carried = self.held.scaled(share);
        if tuning.rtt_memory.is_old(self.rtt.seen().unwrap_or(now).max(self.drain), now) {
            self.drain = now + (standing * DRAIN_ROUNDS).min(MAX_DRAIN);
        }
        if now < self.drain {
            return Some(carried.bytes_in(least).scaled(DRAIN_GAIN).max(Bytes(MIN_PACKETS * mss.0)));
        }
        let packets = Bytes(tuning.packets * mss.0);
        Some((carried.bytes_in(least + tuning.slack) + packets).max(mss))
    }
}

impl Receiver for BiscayReceiver {
    fn on_packet(&mut self, arrival: &Arrival<'_>) {
        self.see_clock(arrival.now);
        self.device = arrival.device;
        if let (Some(advertising), Some(echoed)) = (&mut self.advertising, read_timestamp(arrival.header)) {
            advertising.rtt.on_echo(arrival.now, echoed);
        }
    }

    fn on_radio(&mut self, report: &RadioReport) {
        self.heard |= self.downlink.on_report(report);
    }

    fn feedback(&mut self, now: Time) -> Rider {
        self.see_clock(now);
        let feedback = Feedback {
            timestamp: EchoRtt::timestamp(now),
            bandwidth: self.bandwidth(now),
            share: self.tuning.split.share(&self.device),
            burst: self.downlink.burst(),
        };
        feedback.write()
    }

    fn window(&mut self, now: Time) -> Option<Bytes> {
        self.see_clock(now);
        let bandwidth = self.bandwidth(now);
        let share = self.tuning.split.share(&self.device);
        let advertising = self.advertising.as_mut()?;
        advertising.window = advertising.update(now, &self.tuning, self.mss, (bandwidth, share));
        advertising.window
    }

    fn sees(&self) -> Sees {
        // A server has no radio. It would advertise a window without knowing the bandwidth of the device's link.
        if self.advertising.is_some() { Sees::DeviceOnly } else { Sees::Device }
    }

    fn inspect(&self, out: &mut Inspect) {
        out.value("downlink_mbps", self.downlink.get().map_or(f64::NAN, Rate::as_mbps));
        let Some(advertising) = &self.advertising else { return };
        let millis = |rtt: Option<Duration>| rtt.map_or(f64::NAN, |rtt| rtt.as_secs_f64() * 1e3);
        out.value("receiver_rtprop_ms", millis(advertising.rtt.least()));
        out.value("advertised_bytes", advertising.window.map_or(f64::NAN, |window| window.0 as f64));
    }
}
