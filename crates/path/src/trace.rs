//! Trace-driven link: carries packets at the recorded delivery opportunities of a trace, according to the rules of
//! mahimahi.
//!
//! | module | content |
//! | --- | --- |
//! | here | [`TraceLink`], the link |
//! | [`chances`] | [`Trace`]: the times of delivery opportunities, and their statistics |
//! | [`mod@format`] | reading and writing both formats of a trace file |
//! | [`rates`] | tables of rates: columns, units, times |
//! | [`kpi`] | the bandwidth that a modem reported during the recording of a trace |
//! | [`start`] | start of a run within a recording |
//! | [`synth`] | synthetic traces |
//! | [`trains`] | service of a cellular link for a few packets at a time |
//! | [`mmlink`] | logs of mm-link: reading, comparison with the link of this module, and writing |

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use airpace_core::{Bytes, Packet, Rate, Streams, Time};
use airpace_event::Fate;
use serde::Deserialize;

use crate::config_error::ConfigError;
use crate::link::{Exit, Link};
use crate::queue::{Buffer, BufferConfig, Dropped, Queued};

pub mod chances;
mod error;
pub mod format;
pub mod kpi;
pub mod mmlink;
pub mod rates;
pub mod start;
pub mod synth;
mod text;
pub mod trains;

pub use chances::{Hole, Trace, TraceInfo};
pub use error::TraceError;
pub use kpi::KpiTrace;
pub use rates::RateTable;
pub use start::Start;
pub use trains::{SizeOffsets, TrainModel, Trains};

use mmlink::Line;

/// Configuration of a trace link: how packets use the trace.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TraceConfig {
    /// Number of bytes that one delivery opportunity carries.
    pub opportunity_bytes: u64,
    /// Bytes that each packet takes in addition to its own size: mahimahi counts the header of its TUN device.
    pub header_bytes: u64,
    /// Start of the run within the trace: in seconds, or `random`.
    pub start_s: Start,
    /// Limits of the queue, and its discipline. The packet in transit does not count as queued. A limit in milliseconds
    /// is converted at the mean rate of the trace.
    pub buffer: BufferConfig,
}

impl Default for TraceConfig {
    fn default() -> TraceConfig {
        TraceConfig {
            opportunity_bytes: 1504,
            header_bytes: 4,
            start_s: Start::default(),
            buffer: BufferConfig::default(),
        }
    }
}

/// A link that carries packets at the delivery opportunities of a trace.
///
/// Time is in whole milliseconds. Each opportunity carries `opportunity_bytes` bytes of one or several packets. A
/// packet may need several opportunities, and leaves at the last of them. The unused bytes of an opportunity are lost.
/// A packet that arrives within a millisecond can only use the opportunities of later milliseconds. After its last
/// opportunity the trace repeats.
///
/// Source: mahimahi `link_queue.cc` (ae477d4)
#[derive(Clone, Debug)]
pub struct TraceLink {
    chances: Chances,
    opportunity: Bytes,
    header: Bytes,
    buffer: Buffer,
    start: Start,
    in_transit: Option<InTransit>,
    exits: VecDeque<Exit>,
    used: u64,
    /// Mean rate of the trace.
    rate: Rate,
    /// Packets dropped in the current call. The vector is stored to avoid an allocation per call.
    drops: Vec<Dropped>,
    /// Events of the link since the last fetch; `None` if they are not recorded.
    lines: Option<Vec<Line>>,
}

#[derive(Clone, Debug)]
struct InTransit {
    packet: Packet,
    arrived: Time,
    /// Number of the packet's bytes that remain to be carried, including the header.
    left: Bytes,
}

impl TraceLink {
    /// An empty link. At time zero, the trace is at `config.start_s`; [`TraceLink::begin`] draws a random start.
    ///
    /// # Errors
    /// A value is out of range; the error names the key.
    pub fn new(trace: Arc<Trace>, config: &TraceConfig) -> Result<TraceLink, ConfigError> {
        let start_ms = config.start_s.fixed_ms()?.unwrap_or_default();
        TraceLink::with_chances(Chances::new(trace, 0, start_ms), config)
    }

    /// An empty link; the trace starts `base_ms` after time zero.
    fn beginning_at(trace: Arc<Trace>, base_ms: u64, config: &TraceConfig) -> Result<TraceLink, ConfigError> {
        TraceLink::with_chances(Chances::new(trace, base_ms, 0), config)
    }

    fn with_chances(chances: Chances, config: &TraceConfig) -> Result<TraceLink, ConfigError> {
        if config.opportunity_bytes <= config.header_bytes {
            let reason = format!(
                "is {}, which the {} header bytes of one packet use up; 1504 carries one of 1500",
                config.opportunity_bytes, config.header_bytes
            );
            return Err(ConfigError::new("opportunity_bytes", reason));
        }
        let header = Bytes(config.header_bytes);
        let buffer = Buffer::new(&config.buffer, header).map_err(|error| error.within("buffer"))?;
        let payload = Bytes(config.opportunity_bytes) - header;
        Ok(TraceLink {
            rate: chances.trace.mean_rate(payload),
            chances,
            opportunity: Bytes(config.opportunity_bytes),
            header,
            buffer,
            start: config.start_s,
            in_transit: None,
            exits: VecDeque::new(),
            used: 0,
            drops: Vec::new(),
            lines: None,
        })
    }

    /// The link at the start of a run. If the queue uses random numbers, they come from the stream `name.pie`.
    /// [`Start::ms`] draws a random start.
    pub fn begin(mut self, streams: &Streams, name: &str) -> TraceLink {
        self.buffer.begin(|| streams.stream(&format!("{name}.pie")));
        if self.start == Start::Random {
            let start_ms = self.start.ms(self.trace().period_ms(), streams);
            self.chances = Chances::new(self.trace().clone(), 0, start_ms);
        }
        self
    }

    /// The millisecond of the trace at which the run starts.
    pub fn start_ms(&self) -> u64 {
        self.chances.skip_ms
    }

    /// Starts to record events of the link, for [`TraceLink::lines`].
    pub fn watch(&mut self) {
        self.lines.get_or_insert_default();
    }

    /// Events of a watched link since the last call up to `now`, in order of time. Each line needs memory until it is
    /// fetched; there is at least one line for each delivery opportunity.
    pub fn lines(&mut self, now: Time) -> impl Iterator<Item = Line> {
        if self.lines.is_some() {
            self.advance(now.as_millis());
        }
        self.lines.iter_mut().flat_map(|lines| lines.drain(..))
    }

    /// The trace.
    pub fn trace(&self) -> &Arc<Trace> {
        &self.chances.trace
    }

    /// Number of delivery opportunities at or after `from` and before `to`, The period may be in the past or in the
    /// future.
    pub fn opportunities_in(&self, from: Time, to: Time) -> u64 {
        self.chances.before(to).saturating_sub(self.chances.before(from))
    }

    /// Number of IP bytes that the opportunities at or after `from` and before `to` can carry in packets that fill the
    /// opportunities.
    pub fn capacity_between(&self, from: Time, to: Time) -> Bytes {
        Bytes(self.opportunities_in(from, to).saturating_mul(self.opportunity_bytes().0))
    }

    /// Number of IP bytes that one opportunity carries if a single packet fills it.
    pub fn opportunity_bytes(&self) -> Bytes {
        self.opportunity - self.header
    }

    /// Number of delivery opportunities used so far. The number of opportunities in an interval minus the increase of
    /// this value over the interval is the number of idle opportunities.
    pub fn used(&self) -> u64 {
        self.used
    }

    /// Processes all opportunities up to and including millisecond `ms`.
    fn advance(&mut self, ms: u64) {
        while self.chances.next_ms() <= ms {
            let is_idle = self.in_transit.is_none() && self.buffer.is_empty();
            if is_idle && self.lines.is_none() {
                self.chances.skip_to(ms + 1);
                return;
            }
            let at = self.chances.next_ms();
            self.chances.step();
            let bytes = self.opportunity.0;
            self.note(|| Line::Chance(mmlink::Chance { ms: at, bytes }));
            self.carry(at);
        }
    }

    #[inline]
    fn note(&mut self, line: impl FnOnce() -> Line) {
        if let Some(lines) = &mut self.lines {
            lines.push(line());
        }
    }

    /// Processes one opportunity at millisecond `ms`.
    fn carry(&mut self, ms: u64) {
        let now = instant(ms);
        let mut room = self.opportunity;
        while room > Bytes::ZERO {
            let Some(mut packet) = self.in_transit.take().or_else(|| self.dequeue(now)) else { return };
            if room == self.opportunity {
                self.used += 1;
            }
            let carried = packet.left.min(room);
            room -= carried;
            packet.left -= carried;
            if packet.left > Bytes::ZERO {
                self.in_transit = Some(packet);
                return;
            }
            let InTransit { packet, arrived, .. } = packet;
            self.exits.push_back(Exit { time: now, packet, fate: Fate::Delivered });
            let (arrived_ms, bytes) = (arrived.as_millis(), (packet.bytes + self.header).0);
            self.note(|| Line::Departure(mmlink::Departure { ms, arrived_ms, bytes, line: 0 }));
        }
    }

    fn dequeue(&mut self, now: Time) -> Option<InTransit> {
        let next = self.buffer.dequeue(now, &mut self.drops);
        // mm-link's log does not contain packets that are dropped at this point.
        self.report_drops(now);
        next.map(|Queued { packet, arrived }| InTransit { packet, arrived, left: packet.bytes + self.header })
    }

    fn report_drops(&mut self, now: Time) {
        let exit = |dropped: Dropped| Exit { time: now, packet: dropped.packet, fate: dropped.fate };
        self.exits.extend(self.drops.drain(..).map(exit));
    }
}

impl Link for TraceLink {
    fn push(&mut self, now: Time, packet: Packet) {
        let ms = now.as_millis();
        self.advance(ms);
        let bytes = (packet.bytes + self.header).0;
        self.note(|| Line::Arrival(mmlink::Arrival { ms, bytes }));
        // The disciplines use whole milliseconds, like the rest of this link.
        self.buffer.enqueue(instant(ms), packet, Some(self.rate), &mut self.drops);
        if !self.drops.is_empty() {
            let packets = self.drops.len() as u64;
            let own: Bytes = self.drops.iter().map(|dropped| dropped.packet.bytes).sum();
            let bytes = own.0 + packets * self.header.0;
            self.note(|| Line::Drop(mmlink::Drop { ms, packets, bytes, line: 0 }));
        }
        self.report_drops(now);
    }

    fn pop(&mut self, now: Time) -> Option<Exit> {
        self.advance(now.as_millis());
        self.exits.pop_front()
    }

    fn poll_timeout(&self) -> Option<Time> {
        if let Some(exit) = self.exits.front() {
            return Some(exit.time);
        }
        let waiting = self.in_transit.is_some() || !self.buffer.is_empty();
        waiting.then(|| instant(self.chances.next_ms()))
    }

    /// The base delay is zero.
    ///
    /// Chosen: waiting for the next opportunity counts as queueing, because a trace contains no reason for missing
    /// opportunities.
    fn base_delay(&self, _: Bytes) -> Duration {
        Duration::ZERO
    }

    fn backlog(&self) -> Bytes {
        let in_transit = self.in_transit.as_ref().map_or(Bytes::ZERO, |it| it.left.min(it.packet.bytes));
        self.buffer.bytes() - Bytes(self.header.0 * self.buffer.len()) + in_transit
    }
}

fn instant(ms: u64) -> Time {
    Time::from_nanos(ms.saturating_mul(1_000_000))
}

/// A position in the infinitely repeated trace. Times are milliseconds of the link's clock.
#[derive(Clone, Debug)]
struct Chances {
    trace: Arc<Trace>,
    /// The link's millisecond at which the trace starts.
    base_ms: u64,
    /// Milliseconds skipped at the start of the trace.
    skip_ms: u64,
    /// Start of the current repetition, in milliseconds of the trace.
    lap_ms: u64,
    /// Index of the next opportunity in the current repetition.
    index: usize,
}

impl Chances {
    fn new(trace: Arc<Trace>, base_ms: u64, skip_ms: u64) -> Chances {
        let mut chances = Chances { trace, base_ms, skip_ms, lap_ms: 0, index: 0 };
        chances.seek(skip_ms);
        chances
    }

    /// The millisecond of the next opportunity.
    fn next_ms(&self) -> u64 {
        let in_trace = self.lap_ms.saturating_add(self.trace.times_ms()[self.index]);
        (self.base_ms + in_trace).saturating_sub(self.skip_ms)
    }

    fn step(&mut self) {
        self.index += 1;
        if self.index == self.trace.times_ms().len() {
            self.index = 0;
            self.lap_ms = self.lap_ms.saturating_add(self.trace.period_ms());
        }
    }

    /// Sets the position to the first opportunity at or after the link's millisecond `ms`.
    fn skip_to(&mut self, ms: u64) {
        self.seek(self.in_trace(ms));
    }

    /// Sets the position to the first opportunity at or after millisecond `ms` of the repeated trace.
    fn seek(&mut self, ms: u64) {
        let (period, times) = (self.trace.period_ms(), self.trace.times_ms());
        let (mut lap, mut within) = (ms / period, ms % period);
        if within == 0 && lap > 0 {
            // The last opportunities of a repetition are at the same time as the start of the next repetition.
            (lap, within) = (lap - 1, period);
        }
        self.lap_ms = lap * period;
        self.index = times.partition_point(|&time| time < within);
        if self.index == times.len() {
            // If the trace ends with an outage, the next opportunity is in the next repetition.
            (self.lap_ms, self.index) = (self.lap_ms.saturating_add(period), 0);
        }
    }

    /// Number of opportunities before a time of the link.
    fn before(&self, time: Time) -> u64 {
        self.trace.opportunities_before(self.in_trace(time.as_nanos().div_ceil(1_000_000)))
    }

    fn in_trace(&self, ms: u64) -> u64 {
        ms.saturating_add(self.skip_ms).saturating_sub(self.base_ms)
    }
}

#[cfg(test)]
mod tests;
