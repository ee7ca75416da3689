//! Packets in Parquet files: one folder with a file for each code.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::{Path, PathBuf};

use airpace_diag::{LogCode, LogPacket, log};
use airpace_tables::log::CodeFile;

use super::{Kind, Writer};
use crate::cmd::NothingFound;
use crate::cmd::outputs::{self, Named};
use crate::cmd::parquet_file::refused;

/// Packets by code: one folder with a file for each code, a row per innermost record.
pub struct Codes {
    folder: PathBuf,
    /// The input files. None of them is overwritten.
    inputs: Vec<Named>,
    codes: BTreeMap<LogCode, CodeFile>,
    packets: u64,
}

impl Codes {
    /// Writes the contents of these logs into a folder.
    ///
    /// # Errors
    /// The folder cannot be created.
    pub fn create(folder: &Path, inputs: Vec<Named>) -> anyhow::Result<Codes> {
        outputs::folder("--parquet", folder)?;
        Ok(Codes { folder: folder.to_owned(), inputs, codes: BTreeMap::new(), packets: 0 })
    }
}

impl Writer for Codes {
    fn packet(&mut self, packet: &LogPacket<'_>) -> anyhow::Result<Option<Kind>> {
        let number = self.packets;
        self.packets += 1;
        let reading = log::read(packet);
        if let (Some(code), Ok(decoded)) = (log::code(packet.code), &reading) {
            let file = match self.codes.entry(packet.code) {
                Entry::Occupied(file) => file.into_mut(),
                Entry::Vacant(place) => {
                    let path = self.folder.join(format!("{}.parquet", packet.code));
                    outputs::check(&self.inputs, &[Named::by("--parquet", &path)])?;
                    let file = outputs::whole("--parquet", &path)?;
                    place.insert(CodeFile::new(file, code).map_err(refused)?)
                }
            };
            file.add(packet, number, decoded).map_err(refused)?;
        }
        Ok(Kind::of(packet.code, &reading))
    }

    fn finish(&mut self) -> anyhow::Result<Option<NothingFound>> {
        let codes = std::mem::take(&mut self.codes);
        let nothing = || NothingFound("no packet could be read: nothing is written".to_owned());
        let nothing = codes.is_empty().then(nothing);
        codes.into_values().try_for_each(CodeFile::finish).map_err(refused)?;
        Ok(nothing)
    }
}
