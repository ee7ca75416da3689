//! The sender of Sprout: it keeps no more in the queue than the forecast delivers within 100 ms.
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

/// Maximum number of ticks in which every packet must leave the queue: 100 ms.
///
/// Source: Sprout §3.5
const TARGET_TICKS: usize = 5;

/// A packet counts as lost if a packet that was sent this much later has arrived.
///
/// Source: Sprout §3.4
const REORDERING: Duration = Duration::from_millis(10);

/// Maximum time between two packets of a sender that waits for its window. When it has passed, the sender sends a
/// heartbeat. Without this heartbeat, the receiver would mistake the wait for an outage.
///
/// Source: Sprout §3.2; keithw/sprout src/examples/sproutbt2.cc
///
/// Differs: the program's heartbeats are empty; here they are packets of data (`packets=small` counts them as empty).
/// Therefore the number of heartbeats in flight is limited to the number that can be sent on an empty path before the
/// feedback of the first heartbeat returns. No heartbeats are sent while the application has nothing to send; the
/// header of the last packet has announced this pause to the receiver.
const HEARTBEAT: Duration = Duration::from_millis(50);

/// Size, in bytes, with which an empty packet is counted.
///
/// Source: keithw/sprout src/network/sproutconn.h (2013; the length of an absent forecast)
const EMPTY_BYTES: f64 = 2.0;

/// Minimum length of a flight (the packets sent at once), in packets, at which the header of the second-last packet
/// also announces the end of the flight.
///
/// Chosen: otherwise, if the last packet were lost, a tick in which the sender had no data left would count as a tick
/// that shows the full capacity of the link. In shorter flights, this rule would leave almost no ticks that show the
/// full capacity.
const LONG_FLIGHT: u32 = 4;

/// The controller of Sprout.
#[derive(Clone, Debug)]
pub struct Sprout {
    mss: Bytes,
    units: Units,
    /// Whether, per tick, the estimate of the queue falls by the forecast's cumulative sum.
    sums: bool,
    /// Whether ticks in which nothing was left to send count like other ticks.
    exact: bool,
    /// Whether a packet counts as smaller if the window has space for less than a whole packet.
    small_packets: bool,
    /// Bytes sent since the start of the flow.
    sent_bytes: u64,
    /// Estimated bytes in the queue.
    queue_bytes: f64,
    inflight: Bytes,
    report: Option<Report>,
    /// Number of ticks since the forecast arrived.
    elapsed: usize,
    /// For each of the last milliseconds with a departure: the millisecond, and the first sequence number sent in it.
    recent: VecDeque<(u64, u64)>,
    /// Number of packets of the current flight that were sent.
    flight: u32,
    /// Time of the last departure.
    last_sent: Time,
    /// Whether a packet may leave regardless of the forecast.
    heartbeat_due: bool,
    min_rtt: Duration,
    header: Header,
}

/// The receiver's report per tick.
#[derive(Clone, Copy, Debug)]
struct Report {
    /// Arrival time of the report.
    at: Time,
    /// The number of the receiver's tick.
    tick: u32,
    forecast: Forecast,
}

impl Sprout {
    /// A new flow.
    pub fn new(tuning: &Tuning, mss: Bytes) -> Sprout {
        Sprout {
            mss,
            units: tuning.units,
            sums: tuning.sums,
            exact: tuning.exact,
            small_packets: tuning.small_packets,
            sent_bytes: 0,
            queue_bytes: 0.0,
            inflight: Bytes::ZERO,
            report: None,
            elapsed: 0,
            recent: VecDeque::new(),
            flight: 0,
            last_sent: Time::ZERO,
            heartbeat_due: false,
            min_rtt: Duration::ZERO,
            header: Header::default(),
        }
    }

    fn forecast(&self) -> Forecast {
        self.report.map_or(Forecast::default(), |report| report.forecast)
    }

    /// Starts to use the receiver's report, once per tick. Later reports of the same tick contain nothing new.
    ///
    /// Source: Sprout §3.4, §3.5
    fn hear(&mut self, now: Time, feedback: &[u8]) {
        let Some(feedback) = Feedback::read(feedback) else { return };
        if self.report.is_some_and(|report| report.tick == feedback.tick) {
            return;
        }
        self.report = Some(Report { at: now, tick: feedback.tick, forecast: feedback.forecast });
        self.elapsed = 0;
        self.queue_bytes = self.sent_bytes.saturating_sub(feedback.received_or_lost) as f64;
    }

    /// Advances the time: the queue drains according to the forecast.
    ///
    /// Source: Sprout §3.5; keithw/sprout src/network/sproutconn.cc (for each tick that passes, what the forecast
    /// delivers in all ticks up to it, and not in this one: `drain=sums`)
    fn catch_up(&mut self, now: Time) {
        let Some(report) = self.report else { return };
        let passed = (now - report.at).as_nanos() / TICK.as_nanos();
        let passed = passed.min(HORIZONS as u128 - 1) as usize;
        let delivered = |ticks: usize| if ticks == 0 { 0.0 } else { f64::from(report.forecast[ticks - 1]) };
        let drained = if self.sums {
            (self.elapsed..passed).map(|tick| delivered(tick + 1)).sum()
        } else {
            delivered(passed) - delivered(self.elapsed)
        };
        self.queue_bytes = (self.queue_bytes - drained * self.units.forecast_bytes).max(0.0);
        self.elapsed = passed;
    }

    /// The time of the next heartbeat, if one may leave.
    fn heartbeat_at(&self) -> Option<Time> {
        let under_way = (self.min_rtt + TICK).as_nanos().div_ceil(HEARTBEAT.as_nanos()) as u64;
        // With small packets, heartbeats add almost nothing to the estimate of the queue. The bytes in flight minus
        // this estimate are therefore the heartbeats in flight.
        let data = if self.small_packets { self.queue_bytes / self.units.payload } else { 0.0 };
        let may_leave = self.inflight.0.saturating_sub(data as u64) <= under_way * self.mss.0;
        (may_leave && !self.heartbeat_due && self.window_packets() == 0).then(|| self.last_sent + HEARTBEAT)
    }

    /// Number of packets that may be sent now.
    ///
    /// Chosen: the number is rounded to the nearest integer. The program would send a part of a packet; the endpoint
    /// does not.
    ///
    /// Source: Sprout §3.5
    fn window_packets(&self) -> u64 {
        let packets = self.delivered() - self.queue_bytes / self.units.forecast_bytes;
        libm::round(packets.max(0.0)) as u64
    }

    /// Number of bytes that may be sent now.
    fn window_bytes(&self) -> f64 {
        (self.delivered() * self.units.forecast_bytes - self.queue_bytes).max(0.0)
    }

    /// Number of packets that, according to the forecast, the link delivers within the target delay.
    fn delivered(&self) -> f64 {
        let forecast = self.forecast();
        let target = (self.elapsed + TARGET_TICKS).min(HORIZONS - 1);
        f64::from(forecast[target].saturating_sub(forecast[self.elapsed]))
    }

    /// Whether the next packet counts as a smaller packet, because the window has no space for a whole packet or the
    /// packet is a heartbeat.
    fn is_small(&self) -> bool {
        self.small_packets && self.window_packets() == 0
    }

    /// Whether a flight may leave that consists of one packet that is not full.
    ///
    /// Source: keithw/sprout src/examples/sproutbt2.cc (2013; it sends whatever fits, and any packet counts as one or
    /// more in its tick)
    fn may_send_part(&self) -> bool {
        self.is_small() && self.flight == 0 && self.window_bytes() >= 1.0
    }

    /// Number of bytes sent in the last 10 ms before `now`, without the packet at `sequence`.
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
        let counts = self.is_small().then(|| self.window_bytes().max(EMPTY_BYTES) as u16);
        let (sent_bytes, payload) = match counts {
            Some(bytes) => {
                let header = sent.bytes.0 as f64 * (1.0 - self.units.payload);
                (u64::from(bytes) + libm::round(header) as u64, f64::from(bytes))
            }
            None => (sent.bytes.0, sent.bytes.0 as f64 * self.units.payload),
        };
        self.sent_bytes += sent_bytes;
        self.queue_bytes += payload;
        self.inflight = sent.inflight;
        self.last_sent = sent.now;
        self.heartbeat_due = false;
        self.flight = self.flight.saturating_add(1);
        let window = self.window_packets();
        let next = if sent.app_limited {
            Next::Open
        } else if window == 0 || (window == 1 && !self.exact && self.flight + 1 >= LONG_FLIGHT) {
            Next::Within(HEARTBEAT.as_millis() as u16)
        } else {
            Next::Now
        };
        if window == 0 {
            self.flight = 0;
        }
        self.header = Header { sequence, throwaway: self.throwaway(sent.now, sequence), next, counts };
    }

    fn on_ack(&mut self, ack: &Ack<'_>) {
        self.catch_up(ack.now);
        self.inflight = ack.inflight;
        self.min_rtt = ack.rtt.min;
        self.hear(ack.now, ack.feedback);
    }

    fn on_feedback(&mut self, now: Time, feedback: &[u8]) {
        self.catch_up(now);
        self.hear(now, feedback);
    }

    fn on_loss(&mut self, loss: &Loss<'_>) {
        self.catch_up(loss.now);
        self.inflight = loss.inflight;
    }

    fn handle_timeout(&mut self, now: Time) {
        self.catch_up(now);
        self.heartbeat_due |= self.heartbeat_at().is_some_and(|due| due <= now);
    }

    fn poll_timeout(&self) -> Option<Time> {
        let drains = self.report.filter(|_| self.elapsed < HORIZONS - 1);
        let drains = drains.map(|report| report.at + TICK * (self.elapsed as u32 + 1));
        [drains, self.heartbeat_at()].into_iter().flatten().min()
    }

    fn control(&self) -> Control {
        let least = u64::from(self.heartbeat_due || self.may_send_part());
        let window = self.window_packets().max(least) * self.mss.0;
        Control { cwnd: (self.inflight + Bytes(window)).max(self.mss), pacing_rate: None }
    }

    fn header(&self) -> Rider {
        self.header.write()
    }

    fn inspect(&self, out: &mut Inspect) {
        out.state = match (self.report, self.window_packets()) {
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
