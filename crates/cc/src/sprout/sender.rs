//! The sender's half: keeps in the queue what the forecast empties within 100 ms.
//!
//! Source: Sprout §3.4, §3.5

use std::collections::VecDeque;
use std::time::Duration;

use airpace_core::{Bytes, Rider, Time};

use crate::controller::{Ack, Control, Controller, Inspect, Loss, Sent};

use super::forecast::{Forecast, HORIZONS};
use super::model::TICK;
use super::wire::{Feedback, Header, Next};
use super::{Tuning, Units};

/// Every packet shall be out of the queue within so many ticks: 100 ms.
///
/// Source: Sprout §3.5
const TARGET_TICKS: usize = 5;

/// A packet is lost if one sent this much later has arrived.
///
/// Source: Sprout §3.4
const REORDERING: Duration = Duration::from_millis(10);

/// A sender that waits for room sends again after this at the latest.
///
/// Source: Sprout §3.2; keithw/sprout src/examples/sproutbt2.cc
///
/// Differs: or after a round trip, if that is longer: room comes with an ACK, for there are no heartbeats.
const HEARTBEAT: Duration = Duration::from_millis(50);

/// Packets that leave when nothing is outstanding, whatever the forecast.
///
/// Chosen: they are the paper's heartbeats. A lone packet makes a count of one, of which the forecast is one again: on
/// a link without any jitter Sprout would never leave that. Of two in one tick the forecast is four.
const LEAST_PACKETS: u64 = 2;

/// The sender's half of Sprout.
#[derive(Clone, Debug)]
pub struct Sprout {
    mss: Bytes,
    units: Units,
    /// Bytes sent so far.
    sent_bytes: u64,
    /// Bytes believed to be in the queue.
    queue_bytes: f64,
    inflight: Bytes,
    /// The window whatever the forecast.
    least: Bytes,
    told: Option<Told>,
    /// What will be true when the receiver's next tick begins.
    next: Option<Told>,
    /// Ticks that have passed since the forecast came.
    elapsed: usize,
    /// The first sequence number sent in each of the last milliseconds.
    recent: VecDeque<(u64, u64)>,
    srtt: Duration,
    header: Header,
}

/// What the receiver tells each tick.
#[derive(Clone, Copy, Debug)]
struct Told {
    /// When it comes.
    at: Time,
    forecast: Forecast,
    received_or_lost: u64,
}

impl Sprout {
    /// A flow that begins.
    pub fn new(tuning: &Tuning, mss: Bytes) -> Sprout {
        Sprout {
            mss,
            units: tuning.units,
            sent_bytes: 0,
            queue_bytes: 0.0,
            inflight: Bytes::ZERO,
            least: Bytes(LEAST_PACKETS * mss.0),
            told: None,
            next: None,
            elapsed: 0,
            recent: VecDeque::new(),
            srtt: Duration::ZERO,
            header: Header::default(),
        }
    }

    fn forecast(&self) -> Forecast {
        self.told.map_or(Forecast::default(), |told| told.forecast)
    }

    /// Two packets leave together, once nothing is outstanding.
    fn set_inflight(&mut self, inflight: Bytes) {
        self.inflight = inflight;
        let packets = if inflight == Bytes::ZERO { LEAST_PACKETS } else { 1 };
        self.least = Bytes(packets * self.mss.0);
    }

    /// Begins to use what the receiver told.
    ///
    /// Source: Sprout §3.4, §3.5
    fn adopt(&mut self, told: Told) {
        self.told = Some(told);
        self.elapsed = 0;
        self.queue_bytes = self.sent_bytes.saturating_sub(told.received_or_lost) as f64;
    }

    /// Lets time pass: takes what is due, and lets the queue drain as forecast.
    ///
    /// Source: Sprout §3.5
    ///
    /// Differs: for one tick only. The paper's sender hears of every tick; where ours hears nothing of a second one,
    /// nothing has arrived in it.
    fn catch_up(&mut self, now: Time) {
        if let Some(next) = self.next.take_if(|next| next.at <= now) {
            self.adopt(next);
        }
        let Some(told) = self.told else { return };
        let passed = (now - told.at).as_nanos() / TICK.as_nanos();
        let passed = passed.min(HORIZONS as u128 - 1) as usize;
        if self.elapsed == 0 && passed > 0 {
            let drained = f64::from(told.forecast[0]) * self.units.forecast_bytes;
            self.queue_bytes = (self.queue_bytes - drained).max(0.0);
        }
        self.elapsed = passed;
    }

    /// Packets that may be sent now.
    ///
    /// Chosen: to the nearest, where the program would send a part of one: the endpoint does not.
    ///
    /// Source: Sprout §3.5
    fn window_packets(&self) -> u64 {
        let forecast = self.forecast();
        let delivered_from = |tick: usize| {
            let target = (tick + TARGET_TICKS).min(HORIZONS - 1);
            forecast[target].saturating_sub(forecast[tick])
        };
        // Silence is no reason to expect more than when the forecast came.
        let delivered = delivered_from(self.elapsed).min(delivered_from(0));
        let packets = f64::from(delivered) - self.queue_bytes / self.units.forecast_bytes;
        libm::round(packets.max(0.0)) as u64
    }

    /// Bytes sent since 10 ms before `now`, the packet at `sequence` not counted.
    ///
    /// Source: Sprout §3.4; in whole milliseconds as keithw/sprout src/network/network.cc
    fn throwaway(&mut self, now: Time, sequence: u64) -> u32 {
        let millis = now.as_millis();
        if self.recent.back().is_none_or(|(last, _)| *last != millis) {
            self.recent.push_back((millis, sequence));
        }
        while self.recent.front().is_some_and(|(first, _)| first + (REORDERING.as_millis() as u64) < millis) {
            self.recent.pop_front();
        }
        let first = self.recent.front().map_or(sequence, |(_, first)| *first);
        u32::try_from(sequence - first).unwrap_or(u32::MAX)
    }
}

impl Controller for Sprout {
    fn on_sent(&mut self, sent: &Sent) {
        self.catch_up(sent.now);
        let sequence = self.sent_bytes;
        self.sent_bytes += sent.bytes.0;
        self.queue_bytes += sent.bytes.0 as f64 * self.units.payload;
        self.inflight = sent.inflight;
        let next = if sent.app_limited {
            Next::Open
        } else if self.window_packets() == 0 {
            // One millisecond less than what is written as open.
            Next::Within(self.srtt.max(HEARTBEAT).as_millis().min(u128::from(u16::MAX - 1)) as u16)
        } else {
            Next::Now
        };
        self.header = Header { sequence, throwaway: self.throwaway(sent.now, sequence), next };
    }

    fn on_ack(&mut self, ack: &Ack<'_>) {
        self.catch_up(ack.now);
        self.set_inflight(ack.inflight);
        self.srtt = ack.rtt.smoothed;
        let Some(feedback) = Feedback::read(ack.feedback) else { return };
        let received_or_lost = feedback.received_or_lost;
        if self.told.is_none() {
            self.adopt(Told { at: ack.now, forecast: feedback.present, received_or_lost });
        }
        let at = ack.now + Duration::from_micros(100) * u32::from(feedback.rest);
        let next = Told { at, forecast: feedback.next, received_or_lost };
        if ack.inflight > Bytes::ZERO {
            self.next = Some(next);
        } else {
            // All has arrived: the rest of the receiver's tick brings no news.
            self.next = None;
            self.adopt(next);
        }
    }

    fn on_loss(&mut self, loss: &Loss<'_>) {
        self.catch_up(loss.now);
        self.set_inflight(loss.inflight);
    }

    fn on_timer(&mut self, now: Time) {
        self.catch_up(now);
    }

    fn next_timer(&self) -> Option<Time> {
        let drains = self.told.filter(|_| self.elapsed < HORIZONS - 1);
        let drains = drains.map(|told| told.at + TICK * (self.elapsed as u32 + 1));
        [drains, self.next.map(|next| next.at)].into_iter().flatten().reduce(Time::min)
    }

    fn control(&self) -> Control {
        let window = Bytes(self.window_packets() * self.mss.0);
        Control { cwnd: (self.inflight + window).max(self.least), pacing_rate: None }
    }

    fn header(&self) -> Rider {
        self.header.write()
    }

    fn inspect(&self, out: &mut Inspect) {
        out.state = match (self.told, self.window_packets()) {
            (None, _) => "Unknown",
            (_, 0) => "Waiting",
            _ => "Sending",
        };
        out.value("queue_packets", self.queue_bytes / self.units.forecast_bytes);
        out.value("window_packets", self.window_packets() as f64);
        out.value("forecast_100_ms_packets", f64::from(self.forecast()[TARGET_TICKS - 1]));
        out.value("forecast_age_ticks", self.elapsed as f64);
    }
}
