//! The receiver of Sprout: it counts the arrivals per tick, learns from them, and reports a forecast of the link's
//! deliveries.
//!
//! Each tick ends with a forecast for the sender, even if nothing arrived in the tick.
//!
//! Source: Sprout §3.2, §3.4

use std::collections::VecDeque;
use std::time::Duration;

use airpace_core::{Rider, Time};

use crate::controller::{Arrival, Inspect, Receiver};

use super::forecast::{Cautious, Ewma, Forecast};
use super::model::{BINS, Model, TICK};
use super::wire::{Feedback, Header, Next};
use super::{Tuning, Units};

/// Number of ticks after the last packet for which forecasts are still sent. It is also the maximum number of empty
/// ticks that are processed at once.
///
/// Chosen: after five seconds without packets, the estimate is an outage, or no longer depends on earlier rates.
const MAX_EMPTY_TICKS: u32 = 250;

/// Maximum number of packets within the throwaway window that are stored. Older packets count as received or lost.
const MAX_RECENT: usize = 1024;

/// The time between two reports by the timer.
///
/// Source: keithw/sprout src/examples/sproutbt2.cc (its receiver's loop waits for 20 ms, in whole milliseconds)
///
/// Chosen: the mean interval of the program's loop in recorded runs, including the time for the computation. A timer of
/// exactly one tick would always report at the same instant of the tick. The program's instant drifts through the tick.
const REPORTS: Duration = Duration::from_millis(22);

/// The receiver of Sprout.
#[derive(Clone, Debug)]
pub struct SproutReceiver {
    units: Units,
    /// Whether the receiver reports by a timer instead of at the end of each tick.
    timed: bool,
    /// The newest report sent by the timer, and the time of the next report.
    report: Option<(Rider, Time)>,
    forecaster: Forecaster,
    /// Start of the current tick. The first tick starts with the first packet.
    tick_start: Option<Time>,
    tick: u32,
    /// Ticks since the last packet.
    empty_ticks: u32,
    /// Bytes that arrived in the current tick.
    arrived_bytes: f64,
    /// Before this time, a tick without packets gives no information.
    silent_until: Time,
    /// The departure time that the sender announced for the packet after the newest packet.
    next: Next,
    /// Whether ticks in which the sender had nothing left to send count like other ticks.
    exact: bool,
    newest: u64,
    off_path: OffPath,
    /// The forecast at the start of the current tick.
    forecast: Option<Forecast>,
}

/// The information of a tick about the link, in packets.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Seen {
    /// The tick gives no information, because the sender had announced that it would not send.
    Nothing,
    /// This many packets arrived. More packets would have arrived if the link had been faster.
    Exactly(f64),
    /// This many packets arrived, and then the sender had no more data to send.
    AtLeast(f64),
}

/// The estimator and its forecasts.
#[derive(Clone, Debug)]
enum Forecaster {
    Cautious { model: Box<Model>, tables: Tables },
    Ewma(Ewma),
}

/// The tables of the cautious forecast. They need half a megabyte and are built when a forecast is first needed.
#[derive(Clone, Debug)]
struct Tables {
    tuning: Tuning,
    made: Option<Box<Cautious>>,
}

impl Tables {
    fn forecast(&mut self, probabilities: &[f64; BINS]) -> Forecast {
        let Tables { tuning, made } = self;
        let cautious = made.get_or_insert_with(|| Box::new(Cautious::new(tuning.motion, tuning.quantile)));
        cautious.forecast(probabilities)
    }
}

impl Forecaster {
    /// Processes the end of a tick. `seen` is the information of the tick about the link.
    fn on_tick(&mut self, seen: Seen) {
        match self {
            Forecaster::Cautious { model, .. } => {
                model.evolve();
                match seen {
                    Seen::Nothing => {}
                    Seen::Exactly(packets) => model.observe(whole(packets)),
                    Seen::AtLeast(packets) => model.observe_at_least(whole(packets)),
                }
            }
            Forecaster::Ewma(ewma) => match seen {
                Seen::Nothing => {}
                Seen::Exactly(packets) => ewma.observe(packets),
                Seen::AtLeast(packets) => ewma.observe(packets.max(ewma.rate())),
            },
        }
    }

    /// The forecast of the link's deliveries from now on.
    fn forecast(&mut self) -> Forecast {
        match self {
            Forecaster::Cautious { model, tables } => tables.forecast(model.probabilities()),
            Forecaster::Ewma(ewma) => ewma.forecast(),
        }
    }
}

/// Rounds `packets` to the nearest integer, but to at least one if anything arrived.
///
/// Source: keithw/sprout src/sprout/receiver.cc
fn whole(packets: f64) -> u32 {
    let least = if packets > 0.0 { 1.0 } else { 0.0 };
    libm::floor(packets + 0.5).max(least) as u32
}

impl SproutReceiver {
    /// The receiver of a new flow.
    pub fn new(tuning: &Tuning) -> SproutReceiver {
        let forecaster = if tuning.ewma {
            Forecaster::Ewma(Ewma::default())
        } else {
            let model = Box::new(Model::new(tuning.motion));
            Forecaster::Cautious { model, tables: Tables { tuning: *tuning, made: None } }
        };
        SproutReceiver {
            units: tuning.units,
            timed: tuning.timed,
            report: None,
            forecaster,
            tick_start: None,
            tick: 0,
            empty_ticks: 0,
            arrived_bytes: 0.0,
            silent_until: Time::ZERO,
            next: Next::Now,
            exact: tuning.exact,
            newest: 0,
            off_path: OffPath::default(),
            forecast: None,
        }
    }

    /// Processes the end of all ticks that have ended by `now`. If the timer is not late, this is one tick. Returns the
    /// start of the current tick. If the clock was set back, the current tick restarts.
    ///
    /// Source: Sprout §3.2
    fn catch_up(&mut self, now: Time) -> Time {
        let start = self.tick_start.map_or(now, |start| start.min(now));
        self.tick_start = Some(start);
        if now < start + TICK {
            return start;
        }
        let mut start = self.end_tick(start);
        let empty = (now - start).as_nanos() / TICK.as_nanos();
        let empty = u32::try_from(empty).unwrap_or(u32::MAX);
        let skipped = empty.saturating_sub(MAX_EMPTY_TICKS);
        start += TICK.saturating_mul(skipped);
        self.tick = self.tick.wrapping_add(skipped);
        for _ in skipped..empty {
            start = self.end_tick(start);
        }
        self.tick_start = Some(start);
        start
    }

    /// Ends the tick that started at `start`. Returns the start of the next tick.
    fn end_tick(&mut self, start: Time) -> Time {
        self.forecaster.on_tick(self.seen(start));
        self.forecast = None;
        self.arrived_bytes = 0.0;
        self.tick = self.tick.wrapping_add(1);
        self.empty_ticks = self.empty_ticks.saturating_add(1);
        start + TICK
    }

    /// The feedback at `now`.
    fn current(&mut self) -> Rider {
        let forecast = *self.forecast.get_or_insert_with(|| self.forecaster.forecast());
        Feedback { tick: self.tick, received_or_lost: self.off_path.bytes(), forecast }.write()
    }

    /// The information of the tick that started at `start`.
    ///
    /// Source: Sprout §3.2
    ///
    /// Differs: in the paper, the packets of a tick are all that the link could carry, and only a tick without packets
    /// may give no information. But if the newest packet was the last of its flight, the link could have carried more.
    /// [The module](super) describes the effect on Sprout otherwise.
    fn seen(&self, start: Time) -> Seen {
        let packets = self.arrived_bytes / self.units.observed_bytes;
        let ran_dry = self.next != Next::Now;
        let is_announced = self.next == Next::Open || start < self.silent_until;
        match packets > 0.0 {
            true if ran_dry && !self.exact => Seen::AtLeast(packets),
            false if is_announced => Seen::Nothing,
            _ => Seen::Exactly(packets),
        }
    }
}

impl Receiver for SproutReceiver {
    fn on_packet(&mut self, arrival: &Arrival<'_>) {
        let start = self.catch_up(arrival.now);
        let header = Header::read(arrival.header);
        let payload = match header.and_then(|header| header.counts) {
            Some(bytes) => f64::from(bytes),
            None => arrival.bytes.0 as f64 * self.units.payload,
        };
        self.arrived_bytes += payload;
        self.empty_ticks = 0;
        let Some(header) = header else { return };
        self.off_path.on_packet(&header, payload);
        if header.sequence >= self.newest {
            self.newest = header.sequence;
            self.next = header.next;
        }
        if let Next::Within(millis) = header.next {
            self.silent_until = self.silent_until.max(start + Duration::from_millis(u64::from(millis)));
        }
    }

    fn handle_timeout(&mut self, now: Time) -> bool {
        self.catch_up(now);
        !self.timed || self.report.is_some_and(|(_, due)| due <= now)
    }

    fn poll_timeout(&self) -> Option<Time> {
        let is_heard = self.empty_ticks <= MAX_EMPTY_TICKS;
        let ends = self.tick_start.filter(|_| is_heard)? + TICK;
        if !self.timed { Some(ends) } else { self.report.map(|(_, due)| due) }
    }

    fn feedback(&mut self, now: Time) -> Rider {
        if self.tick_start.is_none() {
            return Rider::EMPTY;
        }
        self.catch_up(now);
        if !self.timed {
            return self.current();
        }
        // An ACK between two reports repeats the last report, which contains no new information for the sender.
        match self.report {
            Some((report, due)) if now < due => report,
            _ => {
                let report = if self.report.is_some() { self.current() } else { Rider::EMPTY };
                self.report = Some((report, now + REPORTS));
                report
            }
        }
    }

    fn inspect(&self, out: &mut Inspect) {
        let (rate, outage) = match &self.forecaster {
            Forecaster::Cautious { model, .. } => (model.mean_rate(), model.outage_probability()),
            Forecaster::Ewma(ewma) => (ewma.mean_rate(), f64::NAN),
        };
        out.value("rate_packets_per_s", rate);
        out.value("outage_probability", outage);
    }
}

/// Counts the bytes that are no longer on the path: all bytes before the throwaway window, and the received bytes
/// within it.
///
/// Source: Sprout §3.4
#[derive(Clone, Debug, Default)]
struct OffPath {
    /// Sequence number below which all bytes were received or lost.
    before: u64,
    /// Sequence numbers and sizes of the received packets from `before` on, oldest first.
    recent: VecDeque<(u64, f64)>,
    recent_bytes: f64,
}

impl OffPath {
    fn on_packet(&mut self, header: &Header, bytes: f64) {
        let at = self.recent.partition_point(|(sequence, _)| *sequence < header.sequence);
        self.recent.insert(at, (header.sequence, bytes));
        self.recent_bytes += bytes;
        self.before = self.before.max(header.sequence.saturating_sub(u64::from(header.throwaway)));
        while let Some(&(sequence, bytes)) = self.recent.front() {
            if self.recent.len() > MAX_RECENT {
                self.before = self.before.max(sequence.saturating_add(1));
            }
            if sequence >= self.before {
                break;
            }
            self.recent.pop_front();
            self.recent_bytes -= bytes;
        }
    }

    fn bytes(&self) -> u64 {
        self.before.saturating_add(libm::floor(self.recent_bytes + 0.5).max(0.0) as u64)
    }
}

#[cfg(test)]
mod tests {
    use airpace_core::{Bytes, Ecn};

    use super::super::model::{Motion, Outage};
    use super::*;
    use crate::registry::DeviceFlows;

    const MSS: Bytes = Bytes(1500);

    fn receiver(exact: bool) -> SproutReceiver {
        let motion = Motion { sigma: 200.0, outage: Outage::Kept };
        let units = Units::of_mtu(MSS);
        SproutReceiver::new(&Tuning {
            ewma: false,
            quantile: 0.05,
            motion,
            units,
            exact,
            timed: false,
            sums: false,
            small_packets: false,
        })
    }

    fn arrive(receiver: &mut SproutReceiver, now: Time, number: u64, next: Next) {
        let header = Header { sequence: number * MSS.0, throwaway: 0, next, counts: None }.write();
        receiver.on_packet(&Arrival {
            now,
            sent: now,
            number,
            bytes: MSS,
            ecn: Ecn::NotEct,
            header: header.as_bytes(),
            device: DeviceFlows::ALONE,
        });
    }

    #[test]
    fn a_tick_says_what_the_sender_let_it_say() {
        let start = Time::from_secs(1);
        let mut half = receiver(false);
        arrive(&mut half, start, 0, Next::Now);
        assert_eq!(half.seen(start), Seen::Exactly(1.0), "more was to come");
        arrive(&mut half, start, 1, Next::Within(50));
        assert_eq!(half.seen(start), Seen::AtLeast(2.0), "no more was to come");
        let seen: Vec<Seen> = (1..=3)
            .map(|tick| {
                half.handle_timeout(start + TICK * tick);
                half.seen(start + TICK * tick)
            })
            .collect();
        assert_eq!(
            seen,
            [Seen::Nothing, Seen::Nothing, Seen::Exactly(0.0)],
            "a silence of 50 ms was announced"
        );
        arrive(&mut half, start + TICK * 3, 2, Next::Open);
        half.handle_timeout(start + TICK * 4);
        assert_eq!(half.seen(start + TICK * 4), Seen::Nothing, "the application pauses");
        let mut paper = receiver(true);
        arrive(&mut paper, start, 0, Next::Within(50));
        assert_eq!(paper.seen(start), Seen::Exactly(1.0));
    }

    #[test]
    fn every_tick_has_its_feedback_until_five_seconds_after_the_last_packet() {
        let mut half = receiver(false);
        assert_eq!(half.poll_timeout(), None, "the first tick begins with the first packet");
        arrive(&mut half, Time::from_secs(1), 0, Next::Now);
        let mut ticks = vec![];
        while let Some(timer) = half.poll_timeout() {
            assert!(half.handle_timeout(timer));
            let feedback = half.feedback(timer);
            ticks.push(Feedback::read(feedback.as_bytes()).expect("a forecast").tick);
        }
        assert_eq!(ticks, (1..=MAX_EMPTY_TICKS + 1).collect::<Vec<_>>());
        arrive(&mut half, Time::from_secs(60), 1, Next::Now);
        assert!(half.poll_timeout().is_some_and(|timer| timer <= Time::from_secs(60) + TICK));
    }

    #[test]
    fn a_clock_that_is_set_back_does_not_stop_the_ticks() {
        let mut half = receiver(false);
        arrive(&mut half, Time::from_secs(10), 0, Next::Now);
        arrive(&mut half, Time::from_secs(9), 1, Next::Now);
        assert_eq!(half.poll_timeout(), Some(Time::from_secs(9) + TICK));
    }

    fn header(sequence: u64, throwaway: u32) -> Header {
        Header { sequence, throwaway, next: Next::Now, counts: None }
    }

    #[test]
    fn a_hole_counts_as_lost_once_it_is_behind_the_throwaway_window() {
        let mut off_path = OffPath::default();
        off_path.on_packet(&header(0, 0), 1500.0);
        assert_eq!(off_path.bytes(), 1500);
        off_path.on_packet(&header(3000, 3000), 1500.0);
        assert_eq!(off_path.bytes(), 3000, "the packet at 1500 may still come");
        off_path.on_packet(&header(1500, 1500), 1500.0);
        assert_eq!(off_path.bytes(), 4500, "it came");
        off_path.on_packet(&header(7500, 3000), 1500.0);
        assert_eq!(
            off_path.bytes(),
            6000,
            "packets sent before 4500 are gone; the one at 4500 may still come"
        );
        off_path.on_packet(&header(9000, 1500), 1500.0);
        assert_eq!(off_path.bytes(), 10_500, "now the packet at 4500 is lost");
    }

    #[test]
    fn memory_is_bounded_whatever_the_window() {
        let mut off_path = OffPath::default();
        for number in 0..5_000 {
            off_path.on_packet(&header(number * 1500, u32::MAX), 1500.0);
        }
        assert_eq!(off_path.recent.len(), MAX_RECENT);
        assert!(off_path.bytes() <= 5_000 * 1500 && off_path.bytes() > 4_999 * 1500 - 3_000);
    }
}
