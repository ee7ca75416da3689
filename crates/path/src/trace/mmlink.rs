//! Logs of mm-link. [`Log`] reads a log and compares it with [`TraceLink`]: the same arrivals must lead to the same
//! departures and drops. [`LogWriter`] writes a log of a [`TraceLink`].

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use airpace_core::count::count;
use airpace_core::{Bytes, DeviceId, Ecn, FlowId, Packet};
use airpace_event::Fate;

use super::{Trace, TraceConfig, TraceError, TraceLink, instant};
use crate::config_error::ConfigError;
use crate::link::Link;
use crate::queue::{BufferConfig, Discipline};

mod writer;

pub use writer::{LogHeader, LogWriter};

/// The contents of a log. Its packet sizes include the header of the TUN device.
#[derive(Clone, Debug, PartialEq)]
pub struct Log {
    /// The millisecond at which the trace started.
    pub base_ms: u64,
    /// The configuration of the queue according to the log's header.
    pub buffer: BufferConfig,
    /// Packets that arrived, in order.
    pub arrivals: Vec<Arrival>,
    /// Packets that left, in order.
    pub departures: Vec<Departure>,
    /// Packets that were refused, in order.
    pub drops: Vec<Drop>,
    /// Number of bytes per delivery opportunity.
    pub opportunity_bytes: u64,
    /// The last millisecond in the log.
    pub end_ms: u64,
    /// Indices of the arrivals at which packets were refused.
    refused: Vec<usize>,
}

/// A line of a log after its header. Its `Display` text is the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line {
    /// A delivery opportunity, used or not.
    Chance(Chance),
    /// Arrival of a packet.
    Arrival(Arrival),
    /// Departure of a packet.
    Departure(Departure),
    /// Refusal of packets.
    Drop(Drop),
}

/// A `#` line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chance {
    /// The millisecond of the opportunity.
    pub ms: u64,
    /// Number of bytes that the opportunity carries.
    pub bytes: u64,
}

/// A `+` line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The millisecond of the arrival.
    pub ms: u64,
    /// Size of the packet.
    pub bytes: u64,
}

/// A `-` line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Departure {
    /// The millisecond of the departure.
    pub ms: u64,
    /// Arrival time of the packet.
    pub arrived_ms: u64,
    /// Size of the packet.
    pub bytes: u64,
    /// Line number in the log; 0 for an event of the [`TraceLink`].
    pub line: u64,
}

/// A `d` line: the packets that were dropped at one arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Drop {
    /// The millisecond of the drop.
    pub ms: u64,
    /// Number of packets.
    pub packets: u64,
    /// Bytes of these packets.
    pub bytes: u64,
    /// Line number in the log; 0 for an event of the [`TraceLink`].
    pub line: u64,
}

/// A departure or drop that only the log or only the [`TraceLink`] has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Difference {
    /// Only the log contains the event.
    Expected {
        /// Line in the log.
        line: u64,
        /// Text of the log's event.
        what: String,
    },
    /// Only the [`TraceLink`] has the event.
    Unexpected {
        /// Text of the link's event.
        what: String,
    },
}

/// The outcome of a comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comparison {
    /// Number of departures in the log.
    pub departures: u64,
    /// Number of lines with drops in the log.
    pub drops: u64,
    /// Differences between log and link; empty if they agree.
    pub differences: Vec<Difference>,
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Line::Chance(Chance { ms, bytes }) => write!(f, "{ms} # {bytes}"),
            Line::Arrival(Arrival { ms, bytes }) => write!(f, "{ms} + {bytes}"),
            Line::Departure(Departure { ms, arrived_ms, bytes, .. }) => {
                write!(f, "{ms} - {bytes} {}", ms.saturating_sub(arrived_ms))
            }
            Line::Drop(Drop { ms, packets, bytes, .. }) => write!(f, "{ms} d {packets} {bytes}"),
        }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Difference::Expected { line, what } => write!(f, "line {line}: only the log has {what}"),
            Difference::Unexpected { what } => write!(f, "only our link has {what}"),
        }
    }
}

impl fmt::Display for Departure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let delay = self.ms.saturating_sub(self.arrived_ms);
        write!(f, "a departure at {} ms of {} after {delay} ms", self.ms, count(self.bytes, "byte"))
    }
}

impl fmt::Display for Drop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "a drop at {} ms of {}, {}",
            self.ms,
            count(self.packets, "packet"),
            count(self.bytes, "byte")
        )
    }
}

impl Log {
    /// Reads a log that mm-link wrote with `--uplink-log` or `--downlink-log`.
    ///
    /// # Errors
    /// The log is invalid; the error names the line, the problem, and the remedy.
    pub fn parse(text: &str) -> Result<Log, TraceError> {
        let (mut base_ms, mut buffer) = (None, None);
        let (mut arrivals, mut departures, mut drops) = (Vec::new(), Vec::new(), Vec::new());
        let (mut end_ms, mut opportunity_bytes, mut refused) = (0, None, Vec::new());
        for (line, text) in (1..).zip(text.lines()) {
            if let Some(header) = text.strip_prefix('#') {
                let (key, value) = header.split_once(':').unwrap_or((header, ""));
                match key.trim() {
                    "base timestamp" => base_ms = value.trim().parse().ok(),
                    "queue" => buffer = Some(queue(line, value.trim())?),
                    _ => {}
                }
                continue;
            }
            let mut words = text.split_whitespace();
            let (time, kind) = (words.next(), words.next());
            let mut numbers = [0; 2];
            let mut count = 0;
            for (slot, word) in numbers.iter_mut().zip(words) {
                *slot = word.parse().map_err(|_| not_a_line(line, text))?;
                count += 1;
            }
            let ms: u64 = time.and_then(|time| time.parse().ok()).ok_or_else(|| not_a_line(line, text))?;
            match (kind, count) {
                (Some("#"), 1) => opportunity_bytes = opportunity_bytes.or(Some(numbers[0])),
                (Some("+"), 1) => arrivals.push(Arrival { ms, bytes: numbers[0] }),
                (Some("-"), 2) => {
                    let arrived_ms = ms.checked_sub(numbers[1]).ok_or_else(|| not_a_line(line, text))?;
                    departures.push(Departure { ms, arrived_ms, bytes: numbers[0], line });
                }
                (Some("d"), 2) => {
                    drops.push(Drop { ms, packets: numbers[0], bytes: numbers[1], line });
                    let place = arrivals.len().checked_sub(1);
                    refused.extend(place.filter(|place| refused.last() != Some(place)));
                }
                _ => return Err(not_a_line(line, text)),
            }
            if ms < end_ms {
                let what = format!("time {ms} after {end_ms}");
                return Err(TraceError::at(
                    line,
                    what,
                    "a log's times never decrease; give it as mm-link wrote it",
                ));
            }
            end_ms = ms;
        }
        let header = |what: &str| {
            TraceError::whole(
                format!("the log's header has no `# {what}:`"),
                "give the whole log, with its first lines, as mm-link wrote it",
            )
        };
        Ok(Log {
            base_ms: base_ms.ok_or_else(|| header("base timestamp"))?,
            buffer: buffer.ok_or_else(|| header("queue"))?,
            arrivals,
            departures,
            drops,
            opportunity_bytes: opportunity_bytes.unwrap_or(TraceConfig::default().opportunity_bytes),
            end_ms,
            refused,
        })
    }

    /// Pushes the log's arrivals into a [`TraceLink`] over `trace` and compares the departures and drops.
    ///
    /// A log does not contain the drops by CoDel at dequeue, so these drops are not compared. PIE drops packets at
    /// random. Its drops are taken from the log, so only departures can differ.
    ///
    /// # Errors
    /// The queue in the log's header is invalid, or an opportunity carries no bytes.
    pub fn compare(&self, trace: Arc<Trace>) -> Result<Comparison, ConfigError> {
        let is_random = self.buffer.discipline == Discipline::Pie;
        let opportunity_bytes = self.opportunity_bytes;
        let buffer = if is_random { BufferConfig::default() } else { self.buffer.clone() };
        let config = TraceConfig { opportunity_bytes, header_bytes: 0, buffer, ..TraceConfig::default() };
        let mut link = TraceLink::beginning_at(trace, self.base_ms, &config)?;
        let mut seen = Seen::default();
        if is_random {
            seen.drops = self.drops.clone();
        }
        let mut dropped = self.refused.iter().filter(|_| is_random).peekable();
        for (number, arrival) in (0..).zip(&self.arrivals) {
            if dropped.next_if(|&&place| place as u64 == number).is_some() {
                continue;
            }
            let now = instant(arrival.ms);
            seen.drain(&mut link, arrival.ms);
            let (flow, device) = (FlowId(0), DeviceId(0));
            link.push(
                now,
                Packet { flow, device, number, bytes: Bytes(arrival.bytes), sent: now, ecn: Ecn::NotEct },
            );
            seen.drain(&mut link, arrival.ms);
        }
        seen.drain(&mut link, self.end_ms);
        let mut differences = merge(&self.departures, &seen.departures, |it| Departure { line: 0, ..*it });
        differences.extend(merge(&self.drops, &seen.drops, |it| Drop { line: 0, ..*it }));
        differences.sort_by_key(|&(ms, _)| ms);
        Ok(Comparison {
            departures: self.departures.len() as u64,
            drops: self.drops.len() as u64,
            differences: differences.into_iter().map(|(_, difference)| difference).collect(),
        })
    }
}

/// Events of the [`TraceLink`].
#[derive(Default)]
struct Seen {
    departures: Vec<Departure>,
    drops: Vec<Drop>,
}

impl Seen {
    /// Takes all packets that leave the link up to millisecond `until`. All drops of one call belong to one arrival.
    fn drain(&mut self, link: &mut TraceLink, until: u64) {
        let mut refused: Option<Drop> = None;
        while let Some(exit) = link.pop(instant(until)) {
            let (ms, bytes) = (exit.time.as_millis(), exit.packet.bytes.0);
            match exit.fate {
                Fate::Delivered => {
                    let arrived_ms = exit.packet.sent.as_millis();
                    self.departures.push(Departure { ms, arrived_ms, bytes, line: 0 });
                }
                Fate::QueueFull => {
                    let drop = refused.get_or_insert(Drop { ms, packets: 0, bytes: 0, line: 0 });
                    drop.packets += 1;
                    drop.bytes += bytes;
                }
                _ => {}
            }
        }
        self.drops.extend(refused);
    }
}

/// The differences between two lists in order of time, as (millisecond, difference); `bare` sets the line number of an
/// event to 0.
fn merge<T>(log: &[T], ours: &[T], bare: impl Fn(&T) -> T) -> Vec<(u64, Difference)>
where
    T: Ord + fmt::Display + Timed,
{
    let sorted = |list: &[T]| {
        let mut order: Vec<usize> = (0..list.len()).collect();
        order.sort_by(|&a, &b| bare(&list[a]).cmp(&bare(&list[b])));
        order
    };
    let (log_order, our_order) = (sorted(log), sorted(ours));
    let (mut expected, mut got) = (log_order.iter().peekable(), our_order.iter().peekable());
    let mut differences = Vec::new();
    loop {
        let order = match (expected.peek(), got.peek()) {
            (None, None) => return differences,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(&&log_at), Some(&&our_at)) => bare(&log[log_at]).cmp(&bare(&ours[our_at])),
        };
        if order != Ordering::Greater
            && let Some(&at) = expected.next()
            && order == Ordering::Less
        {
            let (line, what) = (log[at].line(), log[at].to_string());
            differences.push((log[at].ms(), Difference::Expected { line, what }));
        }
        if order != Ordering::Less
            && let Some(&at) = got.next()
            && order == Ordering::Greater
        {
            differences.push((ours[at].ms(), Difference::Unexpected { what: ours[at].to_string() }));
        }
    }
}

trait Timed {
    fn ms(&self) -> u64;
    fn line(&self) -> u64;
}

impl Timed for Departure {
    fn ms(&self) -> u64 {
        self.ms
    }

    fn line(&self) -> u64 {
        self.line
    }
}

impl Timed for Drop {
    fn ms(&self) -> u64 {
        self.ms
    }

    fn line(&self) -> u64 {
        self.line
    }
}

fn not_a_line(line: u64, text: &str) -> TraceError {
    let shown: String = text.chars().take(40).collect();
    TraceError::at(
        line,
        format!("`{shown}` is no line of an mm-link log"),
        "lines are `t # bytes`, `t + bytes`, `t - bytes delay` or `t d packets bytes`",
    )
}

/// Reads the configuration of the queue in the header, for example `droptail [packets=250]`.
fn queue(line: u64, text: &str) -> Result<BufferConfig, TraceError> {
    let (name, rest) = text.split_once('[').unwrap_or((text, ""));
    let discipline = match name.trim() {
        "infinite" | "droptail" => Discipline::DropTail,
        "drophead" => Discipline::DropHead,
        "codel" => Discipline::CoDel,
        "pie" => Discipline::Pie,
        other => {
            let what = format!("queue `{other}` is none that our link has");
            return Err(TraceError::at(line, what, "use infinite, droptail, drophead, codel or pie"));
        }
    };
    let mut config = BufferConfig { discipline, ..BufferConfig::default() };
    let arguments = rest.trim_end_matches(']').split(',').map(str::trim).filter(|word| !word.is_empty());
    for argument in arguments {
        let wrong = || {
            let what = format!("queue argument `{argument}` is unknown");
            let known =
                "arguments are packets=N, bytes=N, target=MS, interval=MS, qdelay_ref=MS, max_burst=MS";
            TraceError::at(line, what, known)
        };
        let (key, value) = argument.split_once('=').ok_or_else(wrong)?;
        let value: u64 = value.trim().parse().map_err(|_| wrong())?;
        match key.trim() {
            "packets" => config.packets = Some(value),
            "bytes" => config.bytes = Some(value),
            "target" => config.target_ms = value as f64,
            "interval" => config.interval_ms = value as f64,
            "qdelay_ref" => config.qdelay_ref_ms = value as f64,
            "max_burst" => config.max_burst_ms = value as f64,
            _ => return Err(wrong()),
        }
    }
    Ok(config)
}
