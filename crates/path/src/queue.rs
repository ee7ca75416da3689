//! Bottleneck queue: packets wait in a buffer and leave in sequence at a rate, which may change in steps.

use std::collections::VecDeque;
use std::time::Duration;

use airpace_core::{Bytes, Packet, Rate, Streams, Time};
use airpace_event::Fate;
use serde::Deserialize;

use crate::config_error::ConfigError;
use crate::link::{Exit, Link};

pub mod buffer;
mod codel;
mod fifo;
mod fq_codel;
mod pie;
mod redraw;

pub use buffer::{Buffer, BufferConfig, Discipline, Dropped};
pub use fifo::Queued;
pub use redraw::{Distribution, RedrawConfig};

use redraw::Redraw;

/// A rate-served queue.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct QueueConfig {
    /// Rate of service in Mbit/s from the start; infinite (the default) forwards packets immediately.
    pub rate_mbps: f64,
    /// Later changes of the rate.
    pub schedule: Vec<RateStep>,
    /// A rate that is redrawn at intervals, in place of `rate_mbps` and `schedule`.
    pub redraw: Option<RedrawConfig>,
    /// Limits of the queue, and its discipline. The packet in service does not count as queued.
    pub buffer: BufferConfig,
}

/// A change of rate.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RateStep {
    /// Time of the change, in seconds since the start of the run.
    pub at_s: f64,
    /// The rate from this time on in Mbit/s; infinite forwards packets immediately, 0 stops packets until the next
    /// step.
    pub rate_mbps: f64,
}

impl Default for QueueConfig {
    fn default() -> QueueConfig {
        let (rate_mbps, buffer) = (f64::INFINITY, BufferConfig::default());
        QueueConfig { rate_mbps, schedule: Vec::new(), redraw: None, buffer }
    }
}

/// A rate-served queue.
#[derive(Clone, Debug)]
pub struct Queue {
    buffer: Buffer,
    in_service: Option<InService>,
    /// Current rate of service; with `None`, packets are forwarded immediately.
    rate: Option<Rate>,
    /// Later changes of the rate, the next change first.
    steps: VecDeque<(Time, Option<Rate>)>,
    /// Source of later rates if rates are drawn. The next rate is already in `steps`.
    redraw: Option<Redraw>,
    exits: VecDeque<Exit>,
    /// Packets dropped in the current call. The vector is stored to avoid an allocation per call.
    drops: Vec<Dropped>,
}

#[derive(Clone, Debug)]
struct InService {
    packet: Packet,
    /// The time from which `left` is served at the current rate.
    since: Time,
    /// The remaining part of the packet, in units of 10⁻⁹ bit. A rate of R bit/s serves R of these units per
    /// nanosecond.
    left: u64,
    /// Departure of the packet if the rate does not change.
    done: Time,
}

impl InService {
    fn new(packet: Packet, now: Time, rate: Option<Rate>) -> InService {
        let left = packet.bytes.bits().0.saturating_mul(1_000_000_000);
        let mut service = InService { packet, since: now, left, done: now };
        service.set_rate(rate);
        service
    }

    /// Serves the packet at `rate` until `now`, and at `next` from `now` on.
    fn change_rate(&mut self, now: Time, rate: Option<Rate>, next: Option<Rate>) {
        let rate = rate.map_or(0, Rate::as_bps);
        let served = u128::from(rate) * (now - self.since).as_nanos();
        self.left = self.left.saturating_sub(u64::try_from(served).unwrap_or(u64::MAX));
        self.since = now;
        self.set_rate(next);
    }

    fn set_rate(&mut self, rate: Option<Rate>) {
        self.done = match rate {
            None => self.since,
            Some(Rate::ZERO) => Time::NEVER,
            Some(rate) => self.since + Duration::from_nanos(self.left.div_ceil(rate.as_bps())),
        };
    }
}

impl Queue {
    /// An empty queue with this configuration.
    ///
    /// # Errors
    /// A value is out of range; the error names the key.
    pub fn new(config: &QueueConfig) -> Result<Queue, ConfigError> {
        let rate = |key: &str, mbps: f64| match mbps {
            f64::INFINITY => Ok(None),
            mbps if mbps >= 0.0 => Ok(Some(Rate::from_mbps(mbps))),
            _ => Err(ConfigError::new(key, format!("is {mbps}; give Mbit/s of at least 0, or inf"))),
        };
        if config.redraw.is_some() {
            return Queue::redrawn(config);
        }
        let first = rate("rate_mbps", config.rate_mbps)?;
        let mut steps = VecDeque::with_capacity(config.schedule.len());
        for (index, step) in config.schedule.iter().enumerate() {
            let at_s = format!("schedule[{index}].at_s");
            let at = Time::from_secs_f64(crate::config_error::not_negative(&at_s, step.at_s)?);
            if steps.back().is_some_and(|&(before, _)| at <= before) {
                let reason =
                    format!("is {}, not after the step before; put the steps in order of time", step.at_s);
                return Err(ConfigError::new(at_s, reason));
            }
            steps.push_back((at, rate(&format!("schedule[{index}].rate_mbps"), step.rate_mbps)?));
        }
        if steps.back().map_or(first, |&(_, last)| last) == Some(Rate::ZERO) {
            let key = match config.schedule.len() {
                0 => "rate_mbps".to_owned(),
                steps => format!("schedule[{}].rate_mbps", steps - 1),
            };
            return Err(ConfigError::new(
                key,
                "is 0 for ever; give a rate above 0, or a later step that ends it",
            ));
        }
        Ok(Queue {
            buffer: Buffer::new(&config.buffer, Bytes::ZERO).map_err(|error| error.within("buffer"))?,
            in_service: None,
            rate: first,
            steps,
            redraw: None,
            exits: VecDeque::new(),
            drops: Vec::new(),
        })
    }

    /// A queue whose rate is drawn. Until [`Queue::begin`], it has the maximum rate that can be drawn.
    fn redrawn(config: &QueueConfig) -> Result<Queue, ConfigError> {
        let stands_beside = |key: &str| {
            Err(ConfigError::new(key, "stands beside `redraw`, which draws the rate; remove either"))
        };
        if config.rate_mbps != f64::INFINITY {
            return stands_beside("rate_mbps");
        }
        if !config.schedule.is_empty() {
            return stands_beside("schedule");
        }
        let redraw = config.redraw.as_ref().map(Redraw::new).transpose();
        let redraw = redraw.map_err(|error| error.within("redraw"))?;
        let fixed = Queue::new(&QueueConfig { redraw: None, ..config.clone() })?;
        Ok(Queue { rate: redraw.as_ref().map(Redraw::highest), redraw, ..fixed })
    }

    /// The queue at the start of a run. Random numbers come from the streams `name.rate` and `name.pie`.
    pub fn begin(mut self, streams: &Streams, name: &str) -> Queue {
        let stream = |part: &str| streams.stream(&format!("{name}.{part}"));
        self.buffer.begin(|| stream("pie"));
        if let Some(redraw) = &mut self.redraw {
            self.rate = Some(redraw.begin(stream("rate")));
            self.steps.extend(redraw.next());
        }
        self
    }

    /// Updates the rate, even if no packet has arrived for some time.
    pub fn update_rate(&mut self, now: Time) {
        self.advance(now);
    }

    /// The rate of service as of the last call; `None` forwards packets immediately.
    pub fn rate(&self) -> Option<Rate> {
        self.rate
    }

    /// Serves packets that are complete by `now`, and applies changes of the rate.
    fn advance(&mut self, now: Time) {
        loop {
            let done = self.in_service.as_ref().map_or(Time::NEVER, |served| served.done);
            let step = self.steps.front().map_or(Time::NEVER, |&(at, _)| at);
            if done.min(step) > now || done.min(step) == Time::NEVER {
                return;
            }
            if done <= step {
                if let Some(served) = self.in_service.take() {
                    self.exits.push_back(Exit { time: done, packet: served.packet, fate: Fate::Delivered });
                }
                self.serve_next(done);
            } else if let Some((at, rate)) = self.steps.pop_front() {
                if let Some(served) = &mut self.in_service {
                    served.change_rate(at, self.rate, rate);
                }
                self.rate = rate;
                self.steps.extend(self.redraw.as_mut().and_then(Redraw::next));
            }
        }
    }

    fn serve_next(&mut self, now: Time) {
        let next = self.buffer.dequeue(now, &mut self.drops);
        self.report_drops(now);
        self.in_service = next.map(|next| InService::new(next.packet, now, self.rate));
    }

    fn report_drops(&mut self, now: Time) {
        let exit = |dropped: Dropped| Exit { time: now, packet: dropped.packet, fate: dropped.fate };
        self.exits.extend(self.drops.drain(..).map(exit));
    }
}

impl Link for Queue {
    fn push(&mut self, now: Time, packet: Packet) {
        self.advance(now);
        if self.in_service.is_none() {
            self.in_service = Some(InService::new(packet, now, self.rate));
            if self.rate.is_none() {
                self.advance(now);
            }
            return;
        }
        self.buffer.enqueue(now, packet, self.rate, &mut self.drops);
        self.report_drops(now);
    }

    fn pop(&mut self, now: Time) -> Option<Exit> {
        self.advance(now);
        self.exits.pop_front()
    }

    fn poll_timeout(&self) -> Option<Time> {
        let first = self.exits.front().map(|exit| exit.time);
        first.or_else(|| {
            let done = self.in_service.as_ref()?.done;
            let step = self.steps.front().map_or(Time::NEVER, |&(at, _)| at);
            Some(done.min(step))
        })
    }

    fn base_delay(&self, bytes: Bytes) -> Duration {
        match self.rate {
            None | Some(Rate::ZERO) => Duration::ZERO,
            Some(rate) => rate.time_for(bytes),
        }
    }

    fn backlog(&self) -> Bytes {
        let in_service = self.in_service.as_ref().map_or(Bytes::ZERO, |served| served.packet.bytes);
        self.buffer.bytes() + in_service
    }
}

#[cfg(test)]
mod tests;
