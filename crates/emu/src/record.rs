//! The record of a run: when each packet arrived, and when and how it left. A separate thread writes the record during
//! the run, so that a slow disk delays no packet.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, Write};
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

use airpace_core::{Bytes, DeviceId, Direction, Ecn, Time};
use airpace_event::Fate;

/// One entry of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A packet was read from the interface of a device or of the far side, and put on the network. The packets of each
    /// device and direction are numbered in this order.
    Arrived {
        /// Time of arrival.
        at: Time,
        /// The device that sends or receives the packet.
        device: DeviceId,
        /// Direction of the packet.
        direction: Direction,
        /// Size of the packet.
        bytes: Bytes,
        /// ECN field of the packet.
        ecn: Ecn,
        /// Number of the packet's connection.
        connection: u32,
    },
    /// A packet was delivered or dropped.
    Ended {
        /// Time at which the network released or dropped the packet.
        due: Time,
        /// Time at which the packet had been written to the interface at the other end; `None` if it was dropped.
        out: Option<Time>,
        /// The device that sent or receives the packet.
        device: DeviceId,
        /// Direction of the packet.
        direction: Direction,
        /// Number of the packet among those of its device and direction.
        number: u64,
        /// Whether and why the packet was delivered or dropped.
        fate: Fate,
    },
    /// The run is over. This is the last entry of a complete record.
    Over {
        /// Time of the end.
        at: Time,
    },
}

/// Size of an entry in bytes.
const ENTRY_BYTES: usize = 32;

/// Number of entries in a chunk, the unit that is passed to the writing thread.
const ENTRIES_PER_CHUNK: usize = 2048;

/// Maximum number of chunks that wait for the disk.
///
/// Chosen: 32 MB, which is ten seconds of 100,000 entries a second.
const MAX_CHUNKS: usize = 512;

const ECNS: [Ecn; 3] = [Ecn::NotEct, Ecn::Ect, Ecn::Ce];

impl Entry {
    fn to_bytes(self) -> [u8; ENTRY_BYTES] {
        let (kinds, numbers): ([u8; 4], [u64; 3]) = match self {
            Entry::Arrived { at, device, direction, bytes, ecn, connection } => {
                let place = ECNS.iter().position(|&it| it == ecn).expect("all are listed") as u8;
                ([0, device.0 as u8, direction as u8, place], [at.as_nanos(), bytes.0, connection.into()])
            }
            Entry::Ended { due, out, device, direction, number, fate } => {
                let place = Fate::ALL.iter().position(|&it| it == fate).expect("all are listed") as u8;
                let out = out.map_or(u64::MAX, Time::as_nanos);
                ([1, device.0 as u8, direction as u8, place], [due.as_nanos(), out, number])
            }
            Entry::Over { at } => ([2, 0, 0, 0], [at.as_nanos(), 0, 0]),
        };
        let mut bytes = [0; ENTRY_BYTES];
        bytes[..4].copy_from_slice(&kinds);
        for (to, number) in bytes[8..].chunks_exact_mut(8).zip(numbers) {
            to.copy_from_slice(&number.to_le_bytes());
        }
        bytes
    }

    fn from_bytes(bytes: &[u8; ENTRY_BYTES]) -> Option<Entry> {
        let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        let device = DeviceId(bytes[1].into());
        let direction = *Direction::BOTH.get(usize::from(bytes[2]))?;
        let place = usize::from(bytes[3]);
        let at = Time::from_nanos(number(8));
        Some(match bytes[0] {
            0 => Entry::Arrived {
                at,
                device,
                direction,
                bytes: Bytes(number(16)),
                ecn: *ECNS.get(place)?,
                connection: u32::try_from(number(24)).ok()?,
            },
            1 => Entry::Ended {
                due: at,
                out: Some(number(16)).filter(|&out| out != u64::MAX).map(Time::from_nanos),
                device,
                direction,
                number: number(24),
                fate: *Fate::ALL.get(place)?,
            },
            2 => Entry::Over { at },
            _ => return None,
        })
    }
}

/// A record that is being written.
#[derive(Debug)]
pub struct Spool {
    chunk: Vec<u8>,
    full: SyncSender<Vec<u8>>,
    empty: Receiver<Vec<u8>>,
    writer: JoinHandle<io::Result<File>>,
    lost: u64,
}

/// A complete record.
#[derive(Debug)]
pub struct Record {
    file: File,
    /// Number of entries that were lost because the disk did not keep up. If this number is not 0, the record ends
    /// before the run.
    pub lost: u64,
}

impl Spool {
    /// Starts a record in an unnamed file in this folder.
    ///
    /// # Errors
    /// The file cannot be created in the folder.
    pub fn begin(folder: &Path) -> io::Result<Spool> {
        let mut file = airpace_files::unnamed(folder)?;
        let (full, to_write) = sync_channel::<Vec<u8>>(MAX_CHUNKS);
        let (written, empty) = sync_channel::<Vec<u8>>(MAX_CHUNKS);
        let write = move || {
            for mut chunk in to_write {
                file.write_all(&chunk)?;
                chunk.clear();
                // If the queue of empty chunks is full, the chunk is freed.
                let _ = written.try_send(chunk);
            }
            Ok(file)
        };
        let writer = std::thread::Builder::new().name("record".to_owned()).spawn(write)?;
        Ok(Spool { chunk: Spool::room(), full, empty, writer, lost: 0 })
    }

    fn room() -> Vec<u8> {
        Vec::with_capacity(ENTRY_BYTES * ENTRIES_PER_CHUNK)
    }

    /// Appends an entry. This never blocks.
    pub fn push(&mut self, entry: Entry) {
        self.chunk.extend_from_slice(&entry.to_bytes());
        if self.chunk.len() == ENTRY_BYTES * ENTRIES_PER_CHUNK {
            let empty = self.empty.try_recv().unwrap_or_else(|_| Spool::room());
            let full = std::mem::replace(&mut self.chunk, empty);
            // Once a chunk is lost, later entries would leave a gap in the record; they are discarded too.
            let sent = if self.lost > 0 { Err(full) } else { self.full.try_send(full).map_err(not_sent) };
            if let Err(chunk) = sent {
                self.lost += (chunk.len() / ENTRY_BYTES) as u64;
            }
        }
    }

    /// Completes the record.
    ///
    /// # Errors
    /// The disk is full, or the file could not be written for another reason.
    pub fn finish(self) -> io::Result<Record> {
        let mut lost = self.lost;
        if lost > 0 || self.full.send(self.chunk).is_err() {
            lost += 1;
        }
        drop(self.full);
        let file = self
            .writer
            .join()
            .map_err(|_| io::Error::other("the thread that writes the record failed"))??;
        Ok(Record { file, lost })
    }
}

fn not_sent(error: TrySendError<Vec<u8>>) -> Vec<u8> {
    match error {
        TrySendError::Full(chunk) | TrySendError::Disconnected(chunk) => chunk,
    }
}

impl Record {
    /// Iterates over the entries in the order in which they were written.
    ///
    /// # Errors
    /// Each entry may be an error: the file cannot be read, or its contents are damaged.
    pub fn entries(&mut self) -> io::Result<impl Iterator<Item = io::Result<Entry>> + '_> {
        self.file.rewind()?;
        let mut file = BufReader::with_capacity(1 << 16, &self.file);
        Ok(std::iter::from_fn(move || {
            let mut bytes = [0; ENTRY_BYTES];
            match file.read_exact(&mut bytes) {
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => None,
                Err(error) => Some(Err(error)),
                Ok(()) => {
                    let entry = Entry::from_bytes(&bytes);
                    Some(
                        entry.ok_or_else(|| {
                            io::Error::new(io::ErrorKind::InvalidData, "the record is damaged")
                        }),
                    )
                }
            }
        }))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn entry() -> impl Strategy<Value = Entry> {
        let ends = (0u16..31, prop_oneof![Just(Direction::Downlink), Just(Direction::Uplink)]);
        let arrived = (any::<u64>(), ends.clone(), 0u64..70_000, 0usize..3, any::<u32>()).prop_map(
            |(at, (device, direction), bytes, ecn, connection)| Entry::Arrived {
                at: Time::from_nanos(at),
                device: DeviceId(device),
                direction,
                bytes: Bytes(bytes),
                ecn: ECNS[ecn],
                connection,
            },
        );
        let ended = (0..u64::MAX, proptest::option::of(0..u64::MAX), ends, any::<u64>(), 0..Fate::ALL.len())
            .prop_map(|(due, out, (device, direction), number, fate)| Entry::Ended {
                due: Time::from_nanos(due),
                out: out.map(Time::from_nanos),
                device: DeviceId(device),
                direction,
                number,
                fate: Fate::ALL[fate],
            });
        prop_oneof![arrived, ended, any::<u64>().prop_map(|at| Entry::Over { at: Time::from_nanos(at) })]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]
        #[test]
        fn a_record_gives_back_what_was_put_in(entries in proptest::collection::vec(entry(), 0..6000)) {
            let folder = tempfile::tempdir().unwrap();
            let mut spool = Spool::begin(folder.path()).unwrap();
            entries.iter().for_each(|&entry| spool.push(entry));
            let mut record = spool.finish().unwrap();
            prop_assert_eq!(record.lost, 0);
            let read: Vec<Entry> = record.entries().unwrap().map(Result::unwrap).collect();
            prop_assert!(read == entries);
            prop_assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "the file has no name");
        }

        #[test]
        fn damaged_entries_are_told(bytes in any::<[u8; ENTRY_BYTES]>()) {
            if let Some(entry) = Entry::from_bytes(&bytes) {
                prop_assert_eq!(Entry::from_bytes(&entry.to_bytes()), Some(entry));
            }
        }
    }

    #[test]
    fn a_folder_that_is_not_there_is_refused() {
        assert!(Spool::begin(Path::new("/no/such/folder")).is_err());
    }
}
