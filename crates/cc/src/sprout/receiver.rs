//! The receiver's half: counts what arrives per tick, learns from it, and tells what the link will deliver.
//!
//! Ticks are caught up with at arrivals and ACKs: no one sees the belief in between.
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

/// Empty ticks that are caught up with at most.
///
/// Chosen: after five seconds of silence the belief is an outage, or has forgotten what it was.
const MOST_EMPTY_TICKS: u64 = 250;

/// Packets within the throwaway window that are remembered; before the oldest of them all counts as gone.
const MOST_RECENT: usize = 1024;

/// The receiver's half of Sprout.
#[derive(Clone, Debug)]
pub struct SproutReceiver {
    units: Units,
    forecaster: Forecaster,
    /// When the present tick began; the first begins with the first packet.
    tick_start: Option<Time>,
    tick: u32,
    /// Bytes that arrived in the present tick.
    arrived_bytes: f64,
    /// Before this, a tick without packets says nothing.
    silent_until: Time,
    /// Whether the application paused after the newest packet.
    paused: bool,
    newest: u64,
    gone: Gone,
    /// The forecast as of the begin of the present tick.
    present: Option<Forecast>,
    /// The forecast as of its end if nothing more arrives in it.
    next: Option<Forecast>,
}

/// What is learned, and how it is told.
#[derive(Clone, Debug)]
enum Forecaster {
    Cautious { model: Box<Model>, tables: Tables },
    Ewma(Ewma),
}

/// The cautious forecast's tables: half a megabyte, made when a forecast is first asked for.
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
    /// A tick passed, in which `packets` arrived; `None` if that says nothing.
    fn on_tick(&mut self, packets: Option<f64>) {
        match self {
            Forecaster::Cautious { model, .. } => {
                model.evolve();
                if let Some(packets) = packets {
                    model.observe(whole(packets));
                }
            }
            Forecaster::Ewma(ewma) => {
                if let Some(packets) = packets {
                    ewma.observe(packets);
                }
            }
        }
    }

    /// What the link delivers from now on.
    fn forecast(&mut self) -> Forecast {
        match self {
            Forecaster::Cautious { model, tables } => tables.forecast(model.probabilities()),
            Forecaster::Ewma(ewma) => ewma.forecast(),
        }
    }

    /// What it delivers from the end of this tick on, if no more is seen of it than `packets`.
    fn forecast_after(&mut self, packets: Option<f64>) -> Forecast {
        match self {
            Forecaster::Cautious { model, tables } => tables.forecast(&model.after(packets.map(whole))),
            Forecaster::Ewma(ewma) => {
                let mut later = *ewma;
                if let Some(packets) = packets {
                    later.observe(packets);
                }
                later.forecast()
            }
        }
    }
}

/// The nearest count, but something is not nothing.
///
/// Source: keithw/sprout src/sprout/receiver.cc
fn whole(packets: f64) -> u32 {
    let least = if packets > 0.0 { 1.0 } else { 0.0 };
    libm::floor(packets + 0.5).max(least) as u32
}

impl SproutReceiver {
    /// The half of a new flow.
    pub fn new(tuning: &Tuning) -> SproutReceiver {
        let forecaster = if tuning.ewma {
            Forecaster::Ewma(Ewma::default())
        } else {
            let model = Box::new(Model::new(tuning.motion));
            Forecaster::Cautious { model, tables: Tables { tuning: *tuning, made: None } }
        };
        SproutReceiver {
            units: tuning.units,
            forecaster,
            tick_start: None,
            tick: 0,
            arrived_bytes: 0.0,
            silent_until: Time::ZERO,
            paused: false,
            newest: 0,
            gone: Gone::default(),
            present: None,
            next: None,
        }
    }

    /// Ends all ticks that ended before `now`; when the present one began.
    ///
    /// Source: Sprout §3.2
    fn catch_up(&mut self, now: Time) -> Time {
        let mut start = *self.tick_start.get_or_insert(now);
        if start + TICK >= now {
            return start;
        }
        (self.present, self.next) = (None, None);
        start = self.end_tick(start);
        let empty = (now - start).as_nanos().saturating_sub(1) as u64 / TICK.as_nanos() as u64;
        let skipped = empty.saturating_sub(MOST_EMPTY_TICKS);
        start += TICK.saturating_mul(skipped.min(u64::from(u32::MAX)) as u32);
        self.tick = self.tick.wrapping_add(skipped as u32);
        while start + TICK < now {
            start = self.end_tick(start);
        }
        self.tick_start = Some(start);
        start
    }

    /// Ends the tick that began at `start`; when the next begins.
    fn end_tick(&mut self, start: Time) -> Time {
        self.forecaster.on_tick(self.observed(start));
        self.arrived_bytes = 0.0;
        self.tick = self.tick.wrapping_add(1);
        start + TICK
    }

    /// Packets in the tick that began at `start`; `None` if there were none and the sender had said so.
    ///
    /// Source: Sprout §3.2
    fn observed(&self, start: Time) -> Option<f64> {
        let silence_counts = !self.paused && start >= self.silent_until;
        let packets = self.arrived_bytes / self.units.observed_bytes;
        (packets > 0.0 || silence_counts).then_some(packets)
    }
}

impl Receiver for SproutReceiver {
    fn on_packet(&mut self, arrival: &Arrival<'_>) {
        let start = self.catch_up(arrival.now);
        let payload = arrival.bytes.0 as f64 * self.units.payload;
        self.arrived_bytes += payload;
        self.next = None;
        let Some(header) = Header::read(arrival.header) else { return };
        self.gone.on_packet(&header, payload);
        if header.sequence >= self.newest {
            self.newest = header.sequence;
            self.paused = header.next == Next::Open;
        }
        if let Next::Within(millis) = header.next {
            self.silent_until = self.silent_until.max(start + Duration::from_millis(u64::from(millis)));
        }
    }

    fn feedback(&mut self, now: Time) -> Rider {
        if self.tick_start.is_none() {
            return Rider::EMPTY;
        }
        let start = self.catch_up(now);
        let observed = self.observed(start);
        let present = *self.present.get_or_insert_with(|| self.forecaster.forecast());
        let next = *self.next.get_or_insert_with(|| self.forecaster.forecast_after(observed));
        let rest = start + TICK - now;
        Feedback {
            tick: self.tick,
            received_or_lost: self.gone.bytes(),
            rest: (rest.as_micros() / 100) as u8,
            present,
            next,
        }
        .write()
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

/// Counts the bytes that are on the path no more: all before the throwaway window, and what was received since.
///
/// Source: Sprout §3.4
#[derive(Clone, Debug, Default)]
struct Gone {
    /// Whatever was sent before this is received or lost.
    before: u64,
    /// Sequence numbers of what was received since and its bytes, oldest first.
    recent: VecDeque<(u64, f64)>,
    recent_bytes: f64,
}

impl Gone {
    fn on_packet(&mut self, header: &Header, bytes: f64) {
        let at = self.recent.partition_point(|(sequence, _)| *sequence < header.sequence);
        self.recent.insert(at, (header.sequence, bytes));
        self.recent_bytes += bytes;
        self.before = self.before.max(header.sequence.saturating_sub(u64::from(header.throwaway)));
        while let Some(&(sequence, bytes)) = self.recent.front() {
            if self.recent.len() > MOST_RECENT {
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
    use super::*;

    fn header(sequence: u64, throwaway: u32) -> Header {
        Header { sequence, throwaway, next: Next::Now }
    }

    #[test]
    fn a_hole_counts_as_lost_once_it_is_behind_the_throwaway_window() {
        let mut gone = Gone::default();
        gone.on_packet(&header(0, 0), 1500.0);
        assert_eq!(gone.bytes(), 1500);
        gone.on_packet(&header(3000, 3000), 1500.0);
        assert_eq!(gone.bytes(), 3000, "the one at 1500 may still come");
        gone.on_packet(&header(1500, 1500), 1500.0);
        assert_eq!(gone.bytes(), 4500, "it came");
        gone.on_packet(&header(7500, 3000), 1500.0);
        assert_eq!(gone.bytes(), 6000, "what was sent before 4500 is gone, the one at 4500 may come");
        gone.on_packet(&header(9000, 1500), 1500.0);
        assert_eq!(gone.bytes(), 10_500, "now it is lost");
    }

    #[test]
    fn memory_is_bounded_whatever_the_window() {
        let mut gone = Gone::default();
        for number in 0..5_000 {
            gone.on_packet(&header(number * 1500, u32::MAX), 1500.0);
        }
        assert_eq!(gone.recent.len(), MOST_RECENT);
        assert!(gone.bytes() <= 5_000 * 1500 && gone.bytes() > 4_999 * 1500 - 3_000);
    }
}
