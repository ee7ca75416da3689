//! The packets of a schedule in the record of an emulated run.

use std::collections::{BTreeMap, VecDeque};
use std::io;

use airpace_core::{Direction, Time};

use super::player::PORT;
use super::schedule::Schedule;
use super::virtually::Outcome;
use crate::connections::Connections;
use crate::record::{Entry, Record};

/// A packet's passage through the emulator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Passage {
    /// Time at which the packet was read from the interface; `None` if it was never read.
    pub entered: Option<Time>,
    /// Outcome of the packet in the network.
    pub outcome: Outcome,
    /// Time at which the packet's first copy had been written to the interface at the other end.
    pub out: Option<Time>,
}

/// Finds the packets of a schedule in the record of its run. `sent` contains the schedule numbers of the packets that
/// were sent, in send order per device and direction.
///
/// # Errors
/// A record that cannot be read. A record whose packets differ from those sent: packets were lost on their way to the
/// emulator, and it is unknown which.
pub fn passages(
    schedule: &Schedule,
    sent: &[u32],
    record: &mut Record,
    connections: &Connections,
) -> io::Result<Vec<Passage>> {
    let packets = schedule.packets();
    let mut waiting: BTreeMap<(u16, Direction), VecDeque<u32>> = BTreeMap::new();
    for &number in sent {
        let Some(packet) = packets.get(number as usize) else { continue };
        waiting.entry((packet.device.0, packet.direction)).or_default().push_back(number);
    }
    let is_own: Vec<bool> = connections
        .ends()
        .iter()
        .map(|ends| ends.protocol == 17 && ends.source_port == PORT && ends.destination_port == PORT)
        .collect();
    let mut passages = vec![Passage::default(); packets.len()];
    // Schedule number by device, direction, and the emulator's packet number.
    let mut under_way: BTreeMap<(u16, Direction, u64), u32> = BTreeMap::new();
    let mut arrived: BTreeMap<(u16, Direction), u64> = BTreeMap::new();
    for entry in record.entries()? {
        match entry? {
            Entry::Arrived { at, device, direction, bytes, connection, .. } => {
                let count = arrived.entry((device.0, direction)).or_default();
                let its_number = *count;
                *count += 1;
                if !is_own.get(connection as usize).is_some_and(|&own| own) {
                    continue;
                }
                let number = waiting.get_mut(&(device.0, direction)).and_then(VecDeque::pop_front);
                let Some(number) = number.filter(|&it| packets[it as usize].bytes == bytes) else {
                    return Err(io::Error::new(
                        io::ErrorKind::InvalidData,
                        "the emulator received other packets than were sent; run it again",
                    ));
                };
                passages[number as usize].entered = Some(at);
                under_way.insert((device.0, direction, its_number), number);
            }
            Entry::Ended { due, out, device, direction, number, fate } => {
                let Some(&place) = under_way.get(&(device.0, direction, number)) else { continue };
                let passage = &mut passages[place as usize];
                passage.outcome.end(due, fate);
                passage.out = passage.out.or(out);
            }
            Entry::Over { .. } => {}
        }
    }
    Ok(passages)
}
