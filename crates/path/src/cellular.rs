//! Cellular link emulation as in CellReplay: a few packets at a time are served as in a recording under light load,
//! more packets as in a recording under heavy load.
//!
//! Two recordings describe a link. *Trains* contain the service of few packets: the delay of the first packet (the base
//! delay), and the delivery opportunities of the packets after it. A *trace* contains the service of a full queue. A
//! packet that arrives when all earlier packets have been served starts a train and takes the base delay of that time.
//! The packets after this packet take the opportunities of the train. When the train has no more opportunities, packets
//! wait for the opportunities of the trace, until the link has been idle.
//!
//! ```text
//!           ┌─────── base delay, opportunities of a train ───────┐
//! push ─────┤                                                    ├───▶ pop
//!           └─ base delay ─▶ queue ─▶ opportunities of the trace ┘
//! ```
//!
//! Source: CellReplay `cellular_queue.cc` (williamsentosa95/cellreplay, 23de1af); Sentosa et al., NSDI 2025

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use airpace_core::{Bytes, FlowId, Packet, Streams, Time};
use airpace_event::Fate;
use serde::Deserialize;

use crate::config_error::ConfigError;
use crate::link::{Exit, Link};
use crate::queue::BufferConfig;
use crate::trace::trains::TRAIN_PACKET;
use crate::trace::{SizeOffsets, Start, Trace, TraceConfig, TraceLink, Trains};

#[cfg(test)]
mod tests;

/// Configuration of a cellular link: how packets use its recordings.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CellularConfig {
    /// Number of bytes that one delivery opportunity of a train or of the trace carries.
    ///
    /// Chosen: the packet size of CellReplay's recordings. CellReplay refuses larger packets; here, a larger packet
    /// takes several opportunities.
    pub opportunity_bytes: u64,
    /// Bytes that each packet takes in addition to its own size: CellReplay counts the header of its TUN device.
    pub header_bytes: u64,
    /// Idle time of the link after which a packet starts a new train, in ms.
    pub light_after_ms: u32,
    /// Start of the run within the recordings: in seconds, or `random`.
    pub start_s: Start,
    /// Limits of the queue for the opportunities of the trace, and its discipline.
    pub buffer: BufferConfig,
}

impl Default for CellularConfig {
    fn default() -> CellularConfig {
        CellularConfig {
            opportunity_bytes: TRAIN_PACKET.0,
            header_bytes: 4,
            // Source: CellReplay `cellularshell.cc` (long_to_short_timer)
            light_after_ms: 0,
            start_s: Start::default(),
            buffer: BufferConfig::default(),
        }
    }
}

/// One direction of a cellular link.
///
/// Time is in whole milliseconds, as for [`TraceLink`]: packets that arrive within one millisecond count as arriving
/// together.
///
/// Differs: both recordings start with the run, not with the first packet. A packet is held for its whole delay;
/// CellReplay counts the delay from the start of the millisecond. If the queue drops a packet, later packets can start
/// trains again; CellReplay waits for the dropped packet and never serves a train again.
#[derive(Clone, Debug)]
pub struct CellularLink {
    light: Light,
    /// The link that serves the packets that no train serves.
    heavy: TraceLink,
    /// Number of packets in `heavy`.
    in_heavy: u64,
    /// Packets that are held for their delay, in the order of their release.
    held: VecDeque<Held>,
    exits: VecDeque<Exit>,
}

#[derive(Clone, Copy, Debug)]
struct Held {
    release: Time,
    /// Whether an opportunity of a train serves the packet.
    is_light: bool,
    packet: Packet,
}

/// The trains, and the progress of packets in them.
#[derive(Clone, Debug)]
struct Light {
    trains: Arc<Trains>,
    offsets: Arc<SizeOffsets>,
    start_ms: u64,
    opportunity: u64,
    header: u64,
    light_after_ms: u64,
    /// The current train; `None` before the first packet.
    train: Option<Ongoing>,
    /// Release time of the latest packet according to its train, in ms.
    last_ms: u64,
    /// Actual release time of the latest packet, in ms.
    released_ms: u64,
    released: Time,
}

#[derive(Clone, Copy, Debug)]
struct Ongoing {
    /// Index of the train in the recording.
    index: usize,
    /// Arrival time of the train's first packet, in ms.
    began_ms: u64,
    delay_ms: u64,
    /// Index of the train's next opportunity. `left` is the number of remaining bytes of this opportunity.
    chance: usize,
    left: u64,
}

impl CellularLink {
    /// An empty link. At time zero, both recordings are at `config.start_s`.
    ///
    /// # Errors
    /// A value is out of range; the error names the key.
    pub fn new(
        trains: Arc<Trains>,
        trace: Arc<Trace>,
        offsets: Arc<SizeOffsets>,
        config: &CellularConfig,
    ) -> Result<CellularLink, ConfigError> {
        let heavy = TraceLink::new(
            trace,
            &TraceConfig {
                opportunity_bytes: config.opportunity_bytes,
                header_bytes: config.header_bytes,
                start_s: config.start_s,
                buffer: config.buffer.clone(),
            },
        )?;
        let light = Light {
            trains,
            offsets,
            start_ms: heavy.start_ms(),
            opportunity: config.opportunity_bytes,
            header: config.header_bytes,
            light_after_ms: config.light_after_ms.into(),
            train: None,
            last_ms: 0,
            released_ms: 0,
            released: Time::ZERO,
        };
        Ok(CellularLink { light, heavy, in_heavy: 0, held: VecDeque::new(), exits: VecDeque::new() })
    }

    /// The link at the start of a run. If the queue uses random numbers, they come from the stream `name.pie`. A random
    /// start is drawn in the trace, and the trains start at the same time.
    pub fn begin(self, streams: &Streams, name: &str) -> CellularLink {
        let heavy = self.heavy.begin(streams, name);
        let light = Light { start_ms: heavy.start_ms(), ..self.light };
        CellularLink { heavy, light, ..self }
    }

    /// Number of IP bytes that the trace's opportunities at or after `from` and before `to` can carry in packets that
    /// fill the opportunities. The period may be in the past or in the future. The capacity of trains is not included.
    pub fn capacity_between(&self, from: Time, to: Time) -> Bytes {
        self.heavy.capacity_between(from, to)
    }

    /// Bytes of a flow that are held for their delay, before they are queued for the trace.
    pub fn held_of(&self, flow: FlowId) -> Bytes {
        let its = self.held.iter().filter(|held| held.packet.flow == flow);
        its.map(|held| held.packet.bytes).sum()
    }

    /// The current delay of packets before they are queued for the trace; this applies to packets that the train does
    /// not serve because it has no more opportunities.
    pub fn held_for(&self) -> Duration {
        let light = &self.light;
        let first_ms = || light.trains.at(light.start_ms).1;
        Duration::from_millis(light.train.map_or_else(first_ms, |train| {
            let chances_ms = &light.trains.all()[train.index].chances_ms;
            let has_chances = train.chance < chances_ms.len();
            let over_ms = chances_ms.last().copied().filter(|_| !has_chances);
            train.delay_ms.max(over_ms.unwrap_or_default())
        }))
    }

    /// Releases held packets and serves queued packets, up to `now`. If both happen at the same time, the release is
    /// first.
    ///
    /// Source: CellReplay `cellular_queue.cc` (write_packets)
    fn advance(&mut self, now: Time) {
        loop {
            let next = self.held.front().map(|held| held.release).filter(|&release| release <= now);
            while let Some(at) =
                self.heavy.poll_timeout().filter(|&at| next.map_or(at <= now, |next| at < next))
            {
                while let Some(exit) = self.heavy.pop(at) {
                    self.in_heavy -= 1;
                    self.exits.push_back(exit);
                }
            }
            let Some(Held { release, is_light, packet }) = next.and_then(|_| self.held.pop_front()) else {
                return;
            };
            // A packet may not overtake packets queued for the trace.
            if is_light && self.in_heavy == 0 {
                self.exits.push_back(Exit { time: release, packet, fate: Fate::Delivered });
            } else {
                self.in_heavy += 1;
                self.heavy.push(release, packet);
            }
        }
    }
}

impl Light {
    /// Release time of a packet that arrives at `now`, and whether an opportunity of a train serves the packet. If not,
    /// the packet is queued for the trace after its release.
    ///
    /// Source: CellReplay `cellular_queue.cc` (read_packet, get_pkt_release_time_from_trace)
    fn release(&mut self, now: Time, packet: &Packet) -> (Time, bool) {
        let (now_ms, size) = (now.as_millis(), packet.bytes.0.saturating_add(self.header));
        let (train_ms, mut is_light) = self.by_train(now_ms, size);
        self.last_ms = train_ms;
        let offset_ms = self.offsets.of(Bytes(size));
        let shifted_ms = train_ms.saturating_add_signed(offset_ms).max(now_ms);
        // Packets stay in order. A size offset that would change the order is not applied.
        let mut release_ms = if shifted_ms >= self.released_ms { shifted_ms } else { train_ms };
        if release_ms < self.released_ms {
            release_ms = self.released_ms;
            is_light = false;
        }
        self.released_ms = release_ms;
        let release = now + Duration::from_millis(release_ms - now_ms);
        self.released = self.released.max(release);
        (self.released, is_light)
    }

    /// Release time (ms) according to the trains, without a size offset, and whether an opportunity of a train serves
    /// the packet.
    fn by_train(&mut self, now_ms: u64, size: u64) -> (u64, bool) {
        let idle_from_ms = self.last_ms + self.light_after_ms;
        let ongoing = self.train.filter(|train| now_ms + train.delay_ms <= idle_from_ms);
        let mut train = ongoing.unwrap_or_else(|| {
            let (index, delay_ms) = self.trains.at(now_ms.saturating_add(self.start_ms));
            Ongoing { index, began_ms: now_ms, delay_ms, chance: 0, left: self.opportunity }
        });
        let chances_ms = &self.trains.all()[train.index].chances_ms;
        let since_ms = now_ms - train.began_ms;
        let has_gone = |chance: usize| chances_ms.get(chance).is_some_and(|&at| at < since_ms);
        while has_gone(train.chance) {
            train.chance += 1;
            train.left = self.opportunity;
        }
        if train.left < size && train.left < self.opportunity {
            train.chance += 1;
            train.left = self.opportunity;
        }
        // Chosen: a packet larger than an opportunity takes as many opportunities as it needs.
        let more = size.saturating_sub(train.left).div_ceil(self.opportunity);
        train.chance = train.chance.saturating_add(more as usize);
        train.left = train.left + more * self.opportunity - size;
        self.train = Some(train);
        let first_ms = now_ms + train.delay_ms;
        match chances_ms.get(train.chance) {
            // The first packet does not wait for the train's first opportunity, which represents that packet.
            Some(_) if ongoing.is_none() && train.chance == 0 => (first_ms, true),
            Some(&at) => (first_ms + (at - since_ms), true),
            None => (first_ms.max(now_ms + chances_ms.last().copied().unwrap_or_default()), false),
        }
    }
}

impl Link for CellularLink {
    fn push(&mut self, now: Time, packet: Packet) {
        let (release, is_light) = self.light.release(now, &packet);
        self.held.push_back(Held { release, is_light, packet });
    }

    fn pop(&mut self, now: Time) -> Option<Exit> {
        self.advance(now);
        self.exits.pop_front()
    }

    fn poll_timeout(&self) -> Option<Time> {
        let exit = self.exits.front().map(|exit| exit.time);
        let release = self.held.front().map(|held| held.release);
        [exit, release, self.heavy.poll_timeout()].into_iter().flatten().min()
    }

    /// The minimum base delay of the recording, with the offset for the packet's size.
    ///
    /// Chosen: the excess of the base delay at other times counts as queueing, as for a wire's sway.
    fn base_delay(&self, bytes: Bytes) -> Duration {
        let size = Bytes(bytes.0.saturating_add(self.light.header));
        let offset_ms = self.light.offsets.of(size).min(0);
        Duration::from_millis(self.light.trains.least_delay_ms().saturating_add_signed(offset_ms))
    }

    fn backlog(&self) -> Bytes {
        self.heavy.backlog()
    }
}
