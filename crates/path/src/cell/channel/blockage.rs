//! Blockage and beam changes: events in which the level of a device falls for a short time.
//!
//! ```text
//! loss   |    ______________
//!        |   /              \        blockage: decay, hold (random), rise
//!        |__/                \____
//!        |    start                  beam change: the loss starts and ends at once
//! ```
//!
//! Event `k` starts an exponentially distributed time after event `k - 1`, and lasts for an exponentially distributed or a
//! fixed time. Both random times are draws with the address `k`. The loss at a time therefore does not depend on the times
//! for which it was computed before.
//!
//! Source: MacCartney, Rappaport, Rangan 2017 (arXiv 1709.05883: four states with straight lines between them, and decays
//! and rises of different lengths); TR 38.901 §7.6.4 (blockage as a loss on top of path loss and shadowing)

use airpace_core::{Draws, Streams};
use serde::{Deserialize, Serialize};

use crate::config_error::{ConfigError, not_negative, positive};

/// Blockage of a device's path by hands, bodies and vehicles. Events start at random times (a Poisson process). If events
/// overlap, the highest loss counts.
///
/// Source: Raghavan et al. 2018, "Statistical Blockage Modeling and Robustness of Beamforming in Millimeter Wave Systems"
/// (time scales of a few 100 ms or more); MacCartney, Rappaport, Rangan 2017 (mean fades of 11.5 to 15.8 dB, for 260 to
/// 299 ms, in a crowd at 73 GHz)
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BlockageConfig {
    /// Mean number of events per minute.
    ///
    /// Chosen: 10, a device in a hand on a busy street.
    pub per_minute: f64,
    /// Mean time in s for which the full loss lasts, exponentially distributed.
    ///
    /// Chosen: 0.4 s, for a few 100 ms or more.
    pub mean_s: f64,
    /// Loss at full blockage, in dB.
    ///
    /// Chosen: 20 dB, a body in a narrow beam; above the mean fades in a crowd.
    pub depth_db: f64,
    /// Time in ms in which the level rises again, linearly in dB.
    ///
    /// Chosen: 60 ms.
    pub rise_ms: f64,
    /// Time in ms in which the level falls, linearly in dB.
    ///
    /// Chosen: 100 ms.
    pub decay_ms: f64,
}

impl Default for BlockageConfig {
    fn default() -> BlockageConfig {
        BlockageConfig { per_minute: 10.0, mean_s: 0.4, depth_db: 20.0, rise_ms: 60.0, decay_ms: 100.0 }
    }
}

/// Changes of the beam between cell and device. From the time when the old beam misses the device until the new beam serves
/// the device, the level is lower.
///
/// Source: Bernadas i Busquets et al. 2025 (arXiv 2504.11565: misalignments of beams form Poisson processes)
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BeamConfig {
    /// Mean time in s from one change to the next, exponentially distributed.
    ///
    /// Chosen: 2 s.
    pub switch_every_s: f64,
    /// Time in ms for which the beam misses the device.
    ///
    /// Source: TS 38.213 §4.1. Chosen: 20 ms, one period of the SS blocks, by which beams are compared.
    pub outage_ms: f64,
    /// Loss while the beam misses the device, in dB.
    ///
    /// Chosen: 10 dB, between the edge of a beam (3 dB) and the first side lobe of a uniform array (13 dB).
    pub depth_db: f64,
}

impl Default for BeamConfig {
    fn default() -> BeamConfig {
        BeamConfig { switch_every_s: 2.0, outage_ms: 20.0, depth_db: 10.0 }
    }
}

impl BlockageConfig {
    /// Rejects an invalid configuration; the error names the key and the remedy.
    pub fn validate(&self) -> Result<(), ConfigError> {
        positive("per_minute", self.per_minute)?;
        not_negative("mean_s", self.mean_s)?;
        positive("depth_db", self.depth_db)?;
        not_negative("rise_ms", self.rise_ms)?;
        not_negative("decay_ms", self.decay_ms)?;
        let event_s = self.event_s();
        if event_s <= 0.0 {
            let reason = "is 0, and so are the ramps, so that no event has a duration; give a number above 0";
            return Err(ConfigError::new("mean_s", reason));
        }
        let most = libm::floor((MAX_OVERLAP * 60.0 / event_s).min(MAX_PER_MINUTE) * 10.0) / 10.0;
        if self.per_minute > most {
            let reason = format!(
                "is {}; events of {event_s} s on average would nearly always overlap; give at most {most}, or lower the \
                 level of the channel",
                self.per_minute
            );
            return Err(ConfigError::new("per_minute", reason));
        }
        Ok(())
    }

    /// Mean duration of an event from the start of the decay to the end of the rise, in s.
    fn event_s(&self) -> f64 {
        self.mean_s + (self.decay_ms + self.rise_ms) / 1000.0
    }

    fn events(&self, draws: Draws) -> Events {
        let shape = Shape { decay_ms: self.decay_ms, rise_ms: self.rise_ms, depth_db: self.depth_db };
        Events::new(
            60_000.0 / self.per_minute,
            Hold::Exponential { mean_ms: self.mean_s * 1000.0 },
            shape,
            draws,
        )
    }
}

impl BeamConfig {
    /// Rejects an invalid configuration; the error names the key and the remedy.
    pub fn validate(&self) -> Result<(), ConfigError> {
        positive("switch_every_s", self.switch_every_s)?;
        positive("outage_ms", self.outage_ms)?;
        positive("depth_db", self.depth_db)?;
        let least_ms = (self.outage_ms / MAX_OVERLAP).max(60_000.0 / MAX_PER_MINUTE);
        let least_s = libm::ceil(least_ms) / 1000.0;
        if self.switch_every_s < least_s {
            let reason = format!(
                "is {}; outages of {} ms would nearly always overlap; give at least {least_s}, or shorten `outage_ms`",
                self.switch_every_s, self.outage_ms
            );
            return Err(ConfigError::new("switch_every_s", reason));
        }
        Ok(())
    }

    fn events(&self, draws: Draws) -> Events {
        let shape = Shape { decay_ms: 0.0, rise_ms: 0.0, depth_db: self.depth_db };
        Events::new(self.switch_every_s * 1000.0, Hold::Fixed { ms: self.outage_ms }, shape, draws)
    }
}

/// Maximum mean number of simultaneous events. With 3 events, the level is lower for 95 % of the time.
const MAX_OVERLAP: f64 = 3.0;

/// Maximum number of events per minute, whatever their durations.
///
/// Chosen: one event in 10 ms.
const MAX_PER_MINUTE: f64 = 6_000.0;

/// Plan of the losses of one device, on all its links and in both directions.
#[derive(Clone, Debug)]
pub(super) struct LossPlan {
    /// Number of the device, by which its random numbers are named.
    pub device: usize,
    pub blockage: Option<BlockageConfig>,
    pub beam: Option<BeamConfig>,
}

impl LossPlan {
    /// The losses of the device; `None` if its level never falls.
    pub fn build(&self, streams: &Streams) -> Option<Losses> {
        let draws = |what: &str| streams.draws(&format!("cell.device.{}.{what}", self.device));
        let blockage = self.blockage.map(|blockage| blockage.events(draws("blockage")));
        let beam = self.beam.map(|beam| beam.events(draws("beam")));
        (blockage.is_some() || beam.is_some()).then_some(Losses { blockage, beam })
    }
}

/// Losses of one device over time.
#[derive(Clone, Debug)]
pub(super) struct Losses {
    blockage: Option<Events>,
    beam: Option<Events>,
}

impl Losses {
    /// Loss in dB at a time, in milliseconds from the start of the run. The time must not decrease from call to call.
    ///
    /// Chosen: the losses of blockage and beam add, because the first is a loss of the path and the second of the antennas.
    pub fn at_db(&mut self, time_ms: f64) -> f64 {
        let at_db = |events: &mut Option<Events>| events.as_mut().map_or(0.0, |events| events.at_db(time_ms));
        at_db(&mut self.blockage) + at_db(&mut self.beam)
    }
}

/// Events of one kind.
#[derive(Clone, Debug)]
struct Events {
    /// Mean time from the start of one event to the start of the next, in ms.
    mean_gap_ms: f64,
    hold: Hold,
    shape: Shape,
    draws: Draws,
    /// Index and start (ms) of the next event.
    next: u64,
    next_start_ms: f64,
    /// Events that have started and not ended.
    active: Vec<Event>,
}

/// Time for which the full loss lasts.
#[derive(Clone, Copy, Debug)]
enum Hold {
    Exponential { mean_ms: f64 },
    Fixed { ms: f64 },
}

/// Course of the loss of an event.
#[derive(Clone, Copy, Debug)]
struct Shape {
    decay_ms: f64,
    rise_ms: f64,
    depth_db: f64,
}

#[derive(Clone, Copy, Debug)]
struct Event {
    start_ms: f64,
    end_ms: f64,
}

/// Second part of the address of an event's draws: time since the previous event, and time of full loss.
const GAP: u64 = 0;
const HOLD: u64 = 1;

impl Events {
    fn new(mean_gap_ms: f64, hold: Hold, shape: Shape, draws: Draws) -> Events {
        let next_start_ms = draws.at(0, GAP).exponential(mean_gap_ms);
        Events { mean_gap_ms, hold, shape, draws, next: 0, next_start_ms, active: Vec::new() }
    }

    fn at_db(&mut self, time_ms: f64) -> f64 {
        while self.next_start_ms <= time_ms {
            let start_ms = self.next_start_ms;
            let hold_ms = match self.hold {
                Hold::Exponential { mean_ms } => self.draws.at(self.next, HOLD).exponential(mean_ms),
                Hold::Fixed { ms } => ms,
            };
            let end_ms = start_ms + self.shape.decay_ms + hold_ms + self.shape.rise_ms;
            if end_ms > time_ms {
                self.active.push(Event { start_ms, end_ms });
            }
            self.next += 1;
            self.next_start_ms = start_ms + self.draws.at(self.next, GAP).exponential(self.mean_gap_ms);
        }
        self.active.retain(|event| event.end_ms > time_ms);
        let shape = self.shape;
        self.active.iter().map(|event| shape.loss_db(event, time_ms)).fold(0.0, f64::max)
    }
}

impl Shape {
    /// Loss in dB at a time between start and end of an event.
    fn loss_db(&self, event: &Event, time_ms: f64) -> f64 {
        let ramp = |elapsed_ms: f64, length_ms: f64| {
            if elapsed_ms < length_ms { elapsed_ms / length_ms } else { 1.0 }
        };
        let share =
            ramp(time_ms - event.start_ms, self.decay_ms).min(ramp(event.end_ms - time_ms, self.rise_ms));
        self.depth_db * share
    }
}

#[cfg(test)]
mod tests;
