//! Packets that could not be parsed: counts, copies if requested, and one report at the end.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io::Write;
use std::path::PathBuf;

pub use airpace_diag::log::Unread as Kind;
use airpace_diag::source::Place;
use airpace_diag::{Framing, LogPacket, Radio, frame};

use super::super::input::Source;
use crate::cmd::outputs::{self, Named, OutFile};
use crate::terminal::{count, thousands};

/// Counters of packets that could not be parsed and of bytes that are not messages.
pub struct Unread {
    /// Folder for copies of unparsed packets, if requested.
    folder: Option<PathBuf>,
    /// Input logs. None of them is overwritten.
    inputs: Vec<Named>,
    is_followed: bool,
    files: BTreeMap<Kind, OutFile>,
    counts: BTreeMap<Kind, u64>,
    /// Per file: number of byte ranges that are not messages, and start of the first one.
    faults: BTreeMap<usize, (u64, u64)>,
    /// A buffer for a frame while it is written.
    frame: Vec<u8>,
}

impl Unread {
    /// Stores unparsed packets of these logs in a folder, if one is given. The files either grow while other programs
    /// read them, or appear when they are complete.
    ///
    /// # Errors
    /// The folder cannot be created.
    pub fn new(folder: Option<PathBuf>, inputs: Vec<Named>, is_followed: bool) -> anyhow::Result<Unread> {
        if let Some(folder) = &folder {
            outputs::folder("--unknown", folder)?;
        }
        Ok(Unread {
            folder,
            inputs,
            is_followed,
            files: BTreeMap::new(),
            counts: BTreeMap::new(),
            faults: BTreeMap::new(),
            frame: vec![],
        })
    }

    /// Counts a packet that could not be parsed, and stores it if a folder was given.
    ///
    /// # Errors
    /// The packet cannot be stored.
    pub fn packet(&mut self, packet: &LogPacket<'_>, kind: Kind) -> anyhow::Result<()> {
        *self.counts.entry(kind).or_default() += 1;
        let Some(folder) = &self.folder else { return Ok(()) };
        let path = folder.join(kind.file_name());
        let file = match self.files.entry(kind) {
            Entry::Occupied(file) => file.into_mut(),
            Entry::Vacant(place) => {
                outputs::check(&self.inputs, &[Named::by("--unknown", &path)])?;
                place.insert(OutFile::create("--unknown", &path, self.is_followed)?)
            }
        };
        self.frame.clear();
        let mut body = vec![];
        packet.write(packet.radio != Radio::FIRST, &mut body);
        frame::encode(Framing::Hdlc, &body, &mut self.frame);
        file.write_all(&self.frame).map_err(outputs::refused("--unknown", &path))
    }

    /// Counts a byte range that is not a message.
    pub fn fault(&mut self, place: Place) {
        self.faults.entry(place.file).or_insert((0, place.offset)).0 += 1;
    }

    /// Completes the files of stored packets, and prints all counters on standard error.
    ///
    /// # Errors
    /// The stored packets cannot be written.
    pub fn report(self, sources: &[Source]) -> anyhow::Result<()> {
        const MANY: usize = 12;
        for file in self.files.into_values() {
            let path = file.path().to_owned();
            file.finish().map_err(outputs::refused("--unknown", &path))?;
        }
        for (file, (stretches, offset)) in &self.faults {
            crate::terminal::say(format_args!(
                "airpace: {}: bytes that are no message in {}, the first at byte {offset}",
                sources[*file].name,
                count(*stretches, "place")
            ));
        }
        if self.counts.is_empty() {
            return Ok(());
        }
        let packets: u64 = self.counts.values().sum();
        let kinds = |(kind, count): (&Kind, &u64)| format!("{kind} ({})", thousands(*count));
        let mut list: Vec<_> = self.counts.iter().map(kinds).take(MANY).collect();
        if self.counts.len() > MANY {
            list.push(format!("{} more", self.counts.len() - MANY));
        }
        let kept = match &self.folder {
            Some(folder) => format!("kept in {}", folder.display()),
            None => "--unknown DIR keeps them".to_owned(),
        };
        crate::terminal::say(format_args!(
            "airpace: {} could not be read, or not all of {}: {}; {kept}",
            count(packets, "packet"),
            if packets == 1 { "it" } else { "them" },
            list.join(", ")
        ));
        Ok(())
    }
}
