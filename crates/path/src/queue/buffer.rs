//! Queue disciplines: packets queued at a bottleneck, and the choice of dropped packets. The service of the queue is
//! separate.

use std::time::Duration;

use airpace_core::{Bytes, Packet, Rate, Rng, Time};
use airpace_event::Fate;
use serde::Deserialize;

use super::codel::CoDel;
use super::fifo::{Fifo, Queued};
use super::fq_codel::FqCoDel;
use super::pie::Pie;
use crate::config_error::{ConfigError, duration_ms};

/// Limits of a queue, and its discipline. By default packets wait without limit, in order.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BufferConfig {
    /// Discipline: selects the dropped packet and the packet to serve next.
    pub discipline: Discipline,
    /// Maximum number of queued packets; `None` is no limit (10,240 for FQ-CoDel).
    pub packets: Option<u64>,
    /// Maximum number of queued bytes; `None` is no limit.
    pub bytes: Option<u64>,
    /// Maximum length of the queue, in milliseconds at the present rate; `None` is no limit.
    pub ms: Option<f64>,
    /// CoDel: the queueing delay that may persist, in milliseconds.
    pub target_ms: f64,
    /// CoDel: time for which `target_ms` may be exceeded before packets are dropped, in milliseconds; about a round-trip
    /// time.
    pub interval_ms: f64,
    /// PIE: the queueing delay that may persist, in milliseconds.
    pub qdelay_ref_ms: f64,
    /// PIE: maximum duration of a burst before packets are dropped, in milliseconds.
    pub max_burst_ms: f64,
    /// FQ-CoDel: number of bytes that a flow may send each time it is served.
    pub quantum_bytes: u64,
    /// FQ-CoDel: number of queues among which flows are distributed by a hash.
    pub flow_queues: u16,
    /// For every discipline: ECN-capable packets that waited longer than this, in milliseconds, are marked; `None`:
    /// never.
    pub ecn_threshold_ms: Option<f64>,
}

impl Default for BufferConfig {
    fn default() -> BufferConfig {
        BufferConfig {
            discipline: Discipline::DropTail,
            packets: None,
            bytes: None,
            ms: None,
            // Source: RFC 8289 §4.2 and §4.3
            target_ms: 5.0,
            interval_ms: 100.0,
            // Source: RFC 8033 §4.2 and §4.4
            qdelay_ref_ms: 15.0,
            max_burst_ms: 150.0,
            // Source: RFC 8290 §5.2
            quantum_bytes: 1514,
            flow_queues: 1024,
            ecn_threshold_ms: None,
        }
    }
}

/// Discipline of a queue: selects the dropped packet and the packet to serve next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Discipline {
    /// First in, first out. A packet that does not fit is refused.
    #[default]
    DropTail,
    /// First in, first out. If an arriving packet does not fit, the oldest packets are dropped.
    DropHead,
    /// First in, first out. If queueing delay persists, packets are dropped (RFC 8289), or marked if they are
    /// ECN-capable. A packet that does not fit is refused.
    #[serde(rename = "codel")]
    CoDel,
    /// First in, first out. Arriving packets are dropped at random, or marked if they are ECN-capable (RFC 8033). The
    /// probability rises with the queueing delay. A packet that does not fit is refused.
    Pie,
    /// Flows are served in turn, and each flow has its own CoDel (RFC 8290). If an arriving packet does not fit,
    /// packets of the longest queue are dropped.
    #[serde(rename = "fq_codel")]
    FqCoDel,
}

/// Packets queued under a discipline. The server calls [`Buffer::dequeue`]; dropped packets are added to the given list.
#[derive(Clone, Debug)]
pub struct Buffer {
    limits: Limits,
    /// Queueing delay above which ECN-capable packets are marked; `None`: never.
    ecn_threshold: Option<Duration>,
    waiting: Waiting,
}

#[derive(Clone, Debug)]
enum Waiting {
    DropTail(Fifo),
    DropHead(Fifo),
    CoDel(Fifo, CoDel),
    Pie(Fifo, Box<Pie>),
    FqCoDel(FqCoDel),
}

/// A dropped packet, with the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dropped {
    /// The packet.
    pub packet: Packet,
    /// The reason: [`Fate::QueueFull`] or [`Fate::Aqm`].
    pub fate: Fate,
}

impl Buffer {
    /// An empty buffer. The size of a packet counts as its own size plus `header` bytes.
    ///
    /// # Errors
    /// A value is out of range; the error names the key.
    pub fn new(config: &BufferConfig, header: Bytes) -> Result<Buffer, ConfigError> {
        let at_least_one = |key: &str, value: Option<u64>| match value {
            Some(0) => {
                Err(ConfigError::new(key, "is 0: nothing could wait; give at least 1, or leave it out"))
            }
            value => Ok(value),
        };
        let fq_codel = config.discipline == Discipline::FqCoDel;
        let time = config.ms.map(|ms| duration_ms("ms", ms)).transpose()?;
        let limits = Limits {
            // Source: RFC 8290 §5.2
            packets: at_least_one("packets", config.packets)?.or(fq_codel.then_some(10_240)),
            bytes: at_least_one("bytes", config.bytes)?.map(Bytes),
            time,
        };
        if time == Some(Duration::ZERO) {
            return Err(ConfigError::new(
                "ms",
                "is 0: nothing could wait; give more than 0, or leave it out",
            ));
        }
        let ecn_threshold =
            config.ecn_threshold_ms.map(|ms| duration_ms("ecn_threshold_ms", ms)).transpose()?;
        let codel = CoDel::new(
            duration_ms("target_ms", config.target_ms)?,
            duration_ms("interval_ms", config.interval_ms)?,
        )?;
        let pie = Pie::new(
            duration_ms("qdelay_ref_ms", config.qdelay_ref_ms)?,
            duration_ms("max_burst_ms", config.max_burst_ms)?,
        )?;
        let waiting = match config.discipline {
            Discipline::DropTail => Waiting::DropTail(Fifo::new(header)),
            Discipline::DropHead => Waiting::DropHead(Fifo::new(header)),
            Discipline::CoDel => Waiting::CoDel(Fifo::new(header), codel),
            Discipline::Pie => Waiting::Pie(Fifo::new(header), Box::new(pie)),
            Discipline::FqCoDel => {
                at_least_one("quantum_bytes", Some(config.quantum_bytes))?;
                at_least_one("flow_queues", Some(u64::from(config.flow_queues)))?;
                let quantum = Bytes(config.quantum_bytes);
                Waiting::FqCoDel(FqCoDel::new(config.flow_queues, quantum, codel, header))
            }
        };
        Ok(Buffer { limits, ecn_threshold, waiting })
    }

    /// Sets the random numbers of a run, if the discipline uses random numbers. Until this call, it uses the random
    /// numbers of seed 0.
    pub fn begin(&mut self, rng: impl FnOnce() -> Rng) {
        if let Waiting::Pie(_, pie) = &mut self.waiting {
            pie.begin(rng());
        }
    }

    /// Takes a packet at `now`. If the packet does not fit, drops this packet or queued packets, according to the
    /// discipline. `rate` is the current service rate of the buffer.
    pub fn enqueue(&mut self, now: Time, mut packet: Packet, rate: Option<Rate>, drops: &mut Vec<Dropped>) {
        let refused = |packet| Dropped { packet, fate: Fate::QueueFull };
        match &mut self.waiting {
            Waiting::DropTail(fifo) | Waiting::CoDel(fifo, _) => {
                if self.limits.admit(fifo.len() + 1, fifo.bytes() + fifo.size(&packet), rate) {
                    fifo.push(now, packet);
                } else {
                    drops.push(refused(packet));
                }
            }
            Waiting::DropHead(fifo) => {
                fifo.push(now, packet);
                while !self.limits.admit(fifo.len(), fifo.bytes(), rate) {
                    let Some(oldest) = fifo.pop() else { break };
                    drops.push(refused(oldest.packet));
                }
            }
            Waiting::Pie(fifo, pie) => {
                pie.update(now, fifo);
                if !self.limits.admit(fifo.len() + 1, fifo.bytes() + fifo.size(&packet), rate) {
                    drops.push(refused(packet));
                } else if pie.admits(&mut packet, fifo) {
                    fifo.push(now, packet);
                } else {
                    drops.push(Dropped { packet, fate: Fate::Aqm });
                }
            }
            Waiting::FqCoDel(flows) => {
                flows.push(now, packet);
                while !self.limits.admit(flows.len(), flows.bytes(), rate) {
                    flows.drop_from_longest(|packet| drops.push(refused(packet)));
                }
            }
        }
    }

    /// The packet to be served next at `now`; `None` if the queue is empty.
    ///
    /// Source: RFC 8290 §5.2.7 (the threshold of marks)
    pub fn dequeue(&mut self, now: Time, drops: &mut Vec<Dropped>) -> Option<Queued> {
        let mut drop = |packet| drops.push(Dropped { packet, fate: Fate::Aqm });
        let mut next = match &mut self.waiting {
            Waiting::DropTail(fifo) | Waiting::DropHead(fifo) => fifo.pop()?,
            Waiting::CoDel(fifo, codel) => codel.dequeue(now, fifo, &mut drop)?,
            Waiting::Pie(fifo, pie) => {
                pie.update(now, fifo);
                fifo.pop()?
            }
            Waiting::FqCoDel(flows) => flows.dequeue(now, &mut drop)?,
        };
        if self.ecn_threshold.is_some_and(|threshold| now - next.arrived > threshold) {
            next.packet.mark();
        }
        Some(next)
    }

    /// Queued bytes, including headers.
    pub fn bytes(&self) -> Bytes {
        match &self.waiting {
            Waiting::DropTail(fifo)
            | Waiting::DropHead(fifo)
            | Waiting::CoDel(fifo, _)
            | Waiting::Pie(fifo, _) => fifo.bytes(),
            Waiting::FqCoDel(flows) => flows.bytes(),
        }
    }

    /// Number of queued packets.
    pub fn len(&self) -> u64 {
        match &self.waiting {
            Waiting::DropTail(fifo)
            | Waiting::DropHead(fifo)
            | Waiting::CoDel(fifo, _)
            | Waiting::Pie(fifo, _) => fifo.len(),
            Waiting::FqCoDel(flows) => flows.len(),
        }
    }

    /// Whether no packet is queued.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[derive(Clone, Debug)]
struct Limits {
    packets: Option<u64>,
    bytes: Option<Bytes>,
    time: Option<Duration>,
}

impl Limits {
    /// Whether the limits permit this many packets and bytes in the buffer.
    fn admit(&self, packets: u64, bytes: Bytes, rate: Option<Rate>) -> bool {
        let time = self.time.zip(rate).map(|(time, rate)| rate.bytes_in(time));
        self.packets.is_none_or(|limit| packets <= limit)
            && self.bytes.is_none_or(|limit| bytes <= limit)
            && time.is_none_or(|limit| bytes <= limit)
    }
}
