//! The event loop of an emulator: one thread reads packets from interfaces, runs the network, and writes the packets that
//! leave the network to the interfaces at the other end.

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

/// Real-time priority of the emulator's thread.
///
/// Chosen: low among real-time priorities, so that the kernel's own threads run first.
pub(crate) const PRIORITY: i32 = 10;

/// Maximum number of bytes under way; further packets are refused.
///
/// Chosen: two seconds at 1 Gbit/s; queues of scenarios are far shorter.
const MAX_BYTES_UNDER_WAY: u64 = 256 << 20;

/// Maximum number of packets read from one interface before the next interface is read and due events are processed.
const READ_AT_ONCE: usize = 64;

/// After spinning, the thread does not spin for this many times the duration of the spin.
///
/// Chosen: the thread spins for at most a quarter of the time, which leaves enough time for the work at 300 Mbit/s.
const REST: u32 = 3;

/// Memory that the process must be able to lock, in bytes.
///
/// Chosen: twice the maximum number of bytes under way.
pub(crate) const MEMORY_TO_LOCK: usize = 2 * MAX_BYTES_UNDER_WAY as usize;

/// Maximum size of a packet that an interface can deliver, in bytes.
const MAX_PACKET_BYTES: usize = 65_535;

/// MTU of the emulator's interfaces, in bytes.
///
/// Chosen: Ethernet's MTU.
pub const MTU: u32 = 1500;

/// The interfaces of an emulator.
#[derive(Debug)]
pub struct Interfaces {
    /// Interface of each device: the device's number in the address block, and the open TUN device.
    pub devices: Vec<(u8, File)>,
    /// Interface of the far side.
    pub far: File,
    /// The address block that contains the devices.
    pub space: Space,
}

/// A radio report for a device, with its source.
pub type Told = (DeviceId, Source, RadioReport);

/// Destination of the radio reports.
#[derive(Debug)]
pub struct Listeners {
    /// Channel that receives all reports of one instant in one batch.
    pub send: SyncSender<Vec<Told>>,
    /// Devices and sources whose reports are requested.
    pub wanted: Vec<(DeviceId, Source)>,
}

/// Start of the network's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Begins {
    /// The network's clock starts at once, together with the run's clock.
    #[default]
    AtOnce,
    /// The clocks of network and run restart with the first data packet from the far side. Handshakes are carried
    /// before.
    WithData,
}

/// Everything that a run needs in addition to its world.
pub struct Turn {
    /// Interfaces of the devices and of the far side.
    pub interfaces: Interfaces,
    /// The record that is being written.
    pub spool: Spool,
    /// Destination of the radio reports; `None` if no reports are requested.
    pub reports: Option<Listeners>,
    /// The run's clock.
    pub clock: Clock,
    /// Start of the network's clock.
    pub begins: Begins,
    /// Flag that stops the run.
    pub stop: Arc<AtomicBool>,
}

/// Results of a run.
pub struct Turned {
    /// The record; the caller must finish it.
    pub spool: Spool,
    /// The connections of the record.
    pub connections: Connections,
    /// The audit of the run, not judged yet.
    pub audit: Audit,
}

/// The bytes of a packet under way.
type Frame = Box<[u8]>;

impl Turn {
    /// Runs until `stop` is set.
    pub fn run(self, world: &World) -> Turned {
        let needs = Needs { priority: Some(PRIORITY), rest: REST, max_sleep: MAX_SLEEP };
        let mut sleeper = Sleeper::new(needs);
        let not_real_time_because = sleeper.refused.as_ref().map(|error| error.to_string());
        let not_locked_because = priority::lock_memory(MEMORY_TO_LOCK).err().map(|error| error.to_string());
        let mut room: Box<[u8]> = vec![0; MAX_PACKET_BYTES].into();
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
        let mut device_of_slot = [None; Space::MAX_DEVICES as usize + 1];
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
            // While no packet is under way, microsecond precision has no effect that a program could observe.
            let spins = ends.meter.bytes_under_way() > 0;
            ends.wait_until(crossing.poll_timeout(), spins, &mut sleeper, &mut entrance.readable);
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

/// State for packets that enter the emulator.
struct Entrance {
    space: Space,
    device_of_slot: [Option<DeviceId>; Space::MAX_DEVICES as usize + 1],
    connections: Connections,
    /// Interfaces with a waiting packet: those of the devices, then that of the far side.
    readable: Vec<bool>,
    room: Box<[u8]>,
}

impl Entrance {
    /// Reads the waiting packets, at most [`READ_AT_ONCE`] per interface.
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

    /// Puts a packet on the network that a device sent, or the far side if `from` is `None`. `waited` is the maximum time
    /// for which the packet may have waited at its interface.
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
        if ends.meter.bytes_under_way() + length as u64 > MAX_BYTES_UNDER_WAY {
            ends.meter.counts.refused += 1;
            return;
        }
        let connection = self.connections.number(five_tuple);
        let size = Bytes(length as u64);
        ends.meter.arrived(size.0, waited);
        // Events that were due before this packet arrived are processed and recorded first.
        crossing.push(now, Arrival { device, direction, bytes: size, ecn }, bytes.into(), ends);
        ends.spool.push(Entry::Arrived { at: now, device, direction, bytes: size, ecn, connection });
    }
}

/// Reads a packet; `None` if no packet is waiting, or the interface is gone.
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

/// State for packets that leave the emulator, and for records and reports about them.
struct Ends {
    clock: Clock,
    ports: Interfaces,
    spool: Spool,
    meter: Meter,
    reports: Option<SyncSender<Vec<Told>>>,
    attention: Attention,
}

impl Ends {
    /// Waits until a packet can be read or until `due`. Sets `readable` to the interfaces with a waiting packet: those of
    /// the devices, then that of the far side.
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
    /// Writes a packet to the interface at the other end. Returns the time afterwards; `None` if the interface did not
    /// accept it.
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
