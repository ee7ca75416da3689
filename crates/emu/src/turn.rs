//! The wall clock of an emulator: one thread that reads packets from interfaces, turns the network, and writes what comes
//! out to the interfaces at the other end.

mod handshake;

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::SyncSender;
use std::time::Duration;

use airpace_core::{Bytes, DeviceId, Direction, Ecn, Time};
use airpace_event::{Fate, Source};
use airpace_path::Network;
use airpace_radio::RadioReport;
use airpace_rt::clock::{Clock, thread_cpu};
use airpace_rt::priority;
use airpace_rt::sleeper::{Needs, Sleeper};
use rustix::event::{PollFd, PollFlags};

use crate::address::Space;
use crate::attention::{Attention, MAX_SLEEP};
use crate::audit::{Audit, Meter};
use crate::connections::Connections;
use crate::crossing::{Arrival, Crossing, End, Watcher, World};
use crate::ip::{self, Foreign, Parsed};
use crate::record::{Entry, Spool};

/// Priority of the emulator's thread among real-time threads.
///
/// Chosen: low among them, so that the kernel's own threads run first.
pub(crate) const PRIORITY: i32 = 10;

/// Bytes that may be under way before packets are refused.
///
/// Chosen: two seconds at 1 Gbit/s; queues of scenarios are far shorter.
const MOST_BYTES_UNDER_WAY: u64 = 256 << 20;

/// Packets that are read from an interface before the next one has its turn, and what is due is carried out.
const READ_AT_ONCE: usize = 64;

/// After spinning, the thread does not spin for this many times as long.
///
/// Chosen: it spins for at most a quarter of the time, which leaves room for the work at 300 Mbit/s.
const REST: u32 = 3;

/// Bytes of memory that the process must be able to lock.
///
/// Chosen: all packets that may be under way, and as much again.
pub(crate) const MEMORY_TO_LOCK: usize = 2 * MOST_BYTES_UNDER_WAY as usize;

/// The largest packet that an interface can hand over.
const MOST_PACKET_BYTES: usize = 65_535;

/// Bytes of a packet that an interface here may send.
///
/// Chosen: Ethernet's.
pub const MTU: u32 = 1500;

/// The interfaces of an emulator.
#[derive(Debug)]
pub struct Interfaces {
    /// The interface of each device: its number in the address block, and the open device.
    pub devices: Vec<(u8, File)>,
    /// The interface of the far side.
    pub far: File,
    /// The block of addresses in which the devices are.
    pub space: Space,
}

/// A radio report for a device.
pub type Told = (DeviceId, Source, RadioReport);

/// Where radio reports go.
#[derive(Debug)]
pub struct Listeners {
    /// Takes all reports of an instant at once.
    pub send: SyncSender<Vec<Told>>,
    /// The devices and sources whose reports are wanted.
    pub wanted: Vec<(DeviceId, Source)>,
}

/// When a network begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Begins {
    /// At once, with the run's clock.
    #[default]
    AtOnce,
    /// When the first packet of data comes from the far side; its clock begins anew then. Handshakes cross before.
    WithData,
}

/// What a run needs beside its world.
pub struct Turn {
    /// Where packets come from and go to.
    pub interfaces: Interfaces,
    /// Where packets are recorded.
    pub spool: Spool,
    /// Where radio reports go; nothing if nobody asks.
    pub reports: Option<Listeners>,
    /// The clock.
    pub clock: Clock,
    /// When the network begins.
    pub begins: Begins,
    /// Set to end the run.
    pub stop: Arc<AtomicBool>,
}

/// What a run leaves behind.
pub struct Turned {
    /// The record, to be finished.
    pub spool: Spool,
    /// The connections of the record.
    pub connections: Connections,
    /// How it went; not judged yet.
    pub audit: Audit,
}

/// A packet's bytes, on its way.
type Frame = Box<[u8]>;

impl Turn {
    /// Runs until it is stopped.
    pub fn run(self, world: &World) -> Turned {
        let needs = Needs { priority: Some(PRIORITY), rest: REST, max_sleep: MAX_SLEEP };
        let mut sleeper = Sleeper::new(needs);
        let not_real_time_because = sleeper.refused.as_ref().map(|error| error.to_string());
        let not_locked_because = priority::lock_memory(MEMORY_TO_LOCK).err().map(|error| error.to_string());
        let mut room: Box<[u8]> = vec![0; MOST_PACKET_BYTES].into();
        let (clock, first) = match self.begins {
            Begins::AtOnce => (self.clock, None),
            Begins::WithData => {
                let first = handshake::until_data(&self.interfaces, world, &mut room, &self.stop);
                (Clock::start(), first)
            }
        };
        let mut crossing: Crossing<Frame> = world.begin();
        for &(device, source) in self.reports.iter().flat_map(|listeners| &listeners.wanted) {
            crossing.network_mut().set_reported(device, source, true);
        }
        let mut device_of_slot = [None; Space::MOST_DEVICES as usize + 1];
        for (index, (slot, _)) in self.interfaces.devices.iter().enumerate() {
            device_of_slot[usize::from(*slot)] = Some(DeviceId(index as u16));
        }
        let ports = self.interfaces;
        let (space, count) = (ports.space, ports.devices.len() + 1);
        let mut ends = Ends {
            clock,
            ports,
            spool: self.spool,
            meter: Meter::new(),
            reports: self.reports.map(|listeners| listeners.send),
            attention: Attention::new(count, clock.now()),
        };
        let mut entrance =
            Entrance { space, device_of_slot, connections: Connections::default(), readable: vec![], room };
        let (began, cpu_before) = (clock.now(), thread_cpu());
        if let Some(length) = first {
            entrance.take(length, None, Duration::ZERO, &mut crossing, &mut ends);
        }
        while !self.stop.load(Ordering::Relaxed) {
            // While nothing is under way, nobody sees whether a deadline is met to the microsecond.
            let spins = ends.meter.bytes_under_way() > 0;
            ends.wait_until(crossing.next(), spins, &mut sleeper, &mut entrance.readable);
            crossing.turn(clock.now(), &mut ends);
            entrance.read_readable(&mut crossing, &mut ends);
        }
        let over = clock.now();
        crossing.turn(over, &mut ends);
        ends.spool.push(Entry::Over { at: over });
        let mut audit = ends.meter.audit(over - began, thread_cpu() - cpu_before);
        audit.not_real_time_because = not_real_time_because;
        audit.not_locked_because = not_locked_because;
        Turned { spool: ends.spool, connections: entrance.connections, audit }
    }
}

/// Where packets come in.
struct Entrance {
    space: Space,
    device_of_slot: [Option<DeviceId>; Space::MOST_DEVICES as usize + 1],
    connections: Connections,
    /// Which interfaces have a packet: the devices', then the far side's.
    readable: Vec<bool>,
    room: Box<[u8]>,
}

impl Entrance {
    /// Reads what waits at the interfaces that have something, up to a bound.
    fn read_readable(&mut self, crossing: &mut Crossing<Frame>, ends: &mut Ends) {
        for place in 0..self.readable.len() {
            if !self.readable[place] {
                continue;
            }
            let device = (place < ends.ports.devices.len()).then_some(DeviceId(place as u16));
            let mut is_behind = true;
            for _ in 0..READ_AT_ONCE {
                let port = ends.ports.devices.get(place).map_or(&ends.ports.far, |(_, port)| port);
                let Some(length) = read(port, &mut self.room) else {
                    is_behind = false;
                    break;
                };
                let waited = ends.attention.waited(place, ends.clock.now());
                self.take(length, device, waited, crossing, ends);
            }
            ends.attention.was_read(place, is_behind);
        }
    }

    /// Takes a packet that a device sent, or the far side if there is no device. It may have `waited` at its interface.
    fn take(
        &mut self,
        length: usize,
        from: Option<DeviceId>,
        waited: Duration,
        crossing: &mut Crossing<Frame>,
        ends: &mut Ends,
    ) {
        let now = ends.clock.now();
        let bytes = &self.room[..length];
        let counts = &mut ends.meter.counts;
        let Parsed { ends: five_tuple, ecn, is_fragment } = match ip::parse(bytes) {
            Ok(parsed) => parsed,
            Err(Foreign::Garbage) => return counts.garbage += 1,
            Err(Foreign::ToMany) => return counts.to_many += 1,
        };
        let (device, direction) = match from {
            Some(device) => (device, Direction::Uplink),
            None => {
                let slot = self.space.slot_of(five_tuple.destination);
                let device = slot.and_then(|slot| self.device_of_slot[usize::from(slot)]);
                let Some(device) = device else { return counts.to_nobody += 1 };
                (device, Direction::Downlink)
            }
        };
        counts.fragments += u64::from(is_fragment);
        counts.jumbo += u64::from(length > MTU as usize);
        if ends.meter.bytes_under_way() + length as u64 > MOST_BYTES_UNDER_WAY {
            ends.meter.counts.refused += 1;
            return;
        }
        let connection = self.connections.number(five_tuple);
        let size = Bytes(length as u64);
        ends.meter.arrived(size.0, waited);
        // What was due before this packet came goes first, on the network and in the record.
        crossing.push(now, Arrival { device, direction, bytes: size, ecn }, bytes.into(), ends);
        ends.spool.push(Entry::Arrived { at: now, device, direction, bytes: size, ecn, connection });
    }
}

/// Reads a packet; `None` if none waits, or the interface is gone.
fn read(mut interface: &File, room: &mut [u8]) -> Option<usize> {
    loop {
        match interface.read(room) {
            Ok(0) => return None,
            Ok(length) => return Some(length),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    }
}

/// Where packets go out, and what is told of them.
struct Ends {
    clock: Clock,
    ports: Interfaces,
    spool: Spool,
    meter: Meter,
    reports: Option<SyncSender<Vec<Told>>>,
    attention: Attention,
}

impl Ends {
    /// Waits until a packet can be read or until `due`. Sets which interfaces have a packet: those of the devices, then that of the
    /// far side.
    fn wait_until(&mut self, due: Time, spins: bool, sleeper: &mut Sleeper, readable: &mut Vec<bool>) {
        let (clock, meter, attention) = (self.clock, &mut self.meter, &mut self.attention);
        let ports = self.ports.devices.iter().map(|(_, port)| port).chain([&self.ports.far]);
        let mut waiting: Vec<PollFd<'_>> = ports.map(|port| PollFd::new(port, PollFlags::IN)).collect();
        let is_readable = sleeper.wait(clock.instant_of(due), spins, &mut waiting, |sleep| {
            let [from, until] = [sleep.from, sleep.until].map(|instant| clock.reading_at(instant));
            meter.absent(attention.checked(from, sleep.planned, until));
        });
        readable.clear();
        readable.extend(waiting.iter().map(|port| is_readable && !port.revents().is_empty()));
    }
}

impl Watcher<Frame> for Ends {
    fn ended(&mut self, end: End, frame: &Frame) {
        self.meter.ended(end.packet.bytes.0);
        let out = (end.fate == Fate::Delivered).then(|| self.write(&end, frame)).flatten();
        if let Some(out) = out {
            let late = out - end.at;
            self.meter.counts.missed_ticks += u64::from(late > Duration::from_millis(1));
            self.meter.handed_over(late);
        } else if end.fate != Fate::Delivered {
            self.meter.counts.dropped += 1;
        }
        let (device, number) = (end.packet.device, end.packet.number);
        let (due, direction, fate) = (end.at, end.direction, end.fate);
        self.spool.push(Entry::Ended { due, out, device, direction, number, fate });
    }

    fn radio(&mut self, _: Time, network: &mut Network<Frame, Frame>) {
        let Some(reports) = &self.reports else { return };
        let mut batch = vec![];
        while let Some((device, source, report)) = network.pop_report() {
            batch.push((device, source, report.clone()));
        }
        let count = batch.len() as u64;
        if count > 0 && reports.try_send(batch).is_err() {
            self.meter.counts.reports_lost += count;
        }
    }
}

impl Ends {
    /// Hands a packet over to the other end. Returns when; `None` if the interface did not take it.
    fn write(&mut self, end: &End, frame: &Frame) -> Option<Time> {
        let mut port = match end.direction {
            Direction::Downlink => &self.ports.devices[usize::from(end.packet.device.0)].1,
            Direction::Uplink => &self.ports.far,
        };
        let written = if end.packet.ecn == Ecn::Ce {
            let mut marked = frame.clone();
            ip::mark(&mut marked);
            port.write(&marked)
        } else {
            port.write(frame)
        };
        match written {
            Ok(_) => Some(self.clock.now()),
            Err(_) => {
                self.meter.counts.not_taken += 1;
                None
            }
        }
    }
}
