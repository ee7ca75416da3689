//! `--parquet`: tables of the printed data. Columns have the names of the JSON fields.

use std::path::{Path, PathBuf};

use airpace_phy::answers::Answered;
use airpace_phy::decoder::Reading;
use airpace_phy::found::Found;
use airpace_phy::pseudonym::Name;
use airpace_radio::{CarrierId, Rnti};
use airpace_tables::FileError;
use airpace_tables::decoded::{Answer, Decoded, Gain, Message, Row, Subframe, answers_beside};

use super::Args;
use crate::cmd::outputs;
use crate::cmd::parquet_file::refused;

/// Recording and time of an event.
#[derive(Clone, Copy, Debug)]
pub struct At {
    /// The index of the recording.
    pub carrier: CarrierId,
    /// Start of the event's subframe, in milliseconds from the recording's first sample.
    pub time_ms: f64,
}

/// The tables that `--parquet` writes.
pub struct Tables(Decoded);

impl Tables {
    /// Creates the tables that `args` request. Answers have other columns than messages, and a separate file.
    ///
    /// # Errors
    /// A file cannot be created.
    pub fn create(path: &Path, args: &Args) -> anyhow::Result<Tables> {
        let row = match (args.subframes, args.rnti) {
            (true, _) => Row::Subframe,
            (false, Some(_)) => Row::Own,
            (false, None) => Row::Message,
        };
        let main = outputs::whole("--parquet", path)?;
        let answers = args.phich.then(|| outputs::whole("--parquet", &answers_beside(path))).transpose()?;
        said(Decoded::new(main, row, answers)).map(Tables)
    }

    /// Adds a message. `gain` is the data that the followed user obtains by the grant.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn message(&mut self, at: At, found: &Found, name: Name, gain: Option<&Gain>) -> anyhow::Result<()> {
        let pseudonym = name.is_pseudonym.then_some(name.rnti);
        said(self.0.message(|| Message::of(found, at.carrier, at.time_ms, pseudonym), gain))
    }

    /// Adds an answer. `rnti` is the user's RNTI or its pseudonym.
    pub fn answer(
        &mut self,
        at: At,
        reading: &Reading,
        answered: &Answered,
        rnti: Rnti,
    ) -> anyhow::Result<()> {
        said(self.0.answer(|| Answer::of(reading, answered, at.carrier, at.time_ms, rnti)))
    }

    /// Adds a completed subframe.
    pub fn subframe(&mut self, at: At, reading: &Reading) -> anyhow::Result<()> {
        said(self.0.subframe(|| Subframe::of(reading, at.carrier, at.time_ms)))
    }

    /// Completes the files.
    pub fn finish(self) -> anyhow::Result<()> {
        said(self.0.finish())
    }
}

fn said<T>(done: Result<T, FileError>) -> anyhow::Result<T> {
    done.map_err(refused)
}

/// The files that `--parquet` writes.
pub fn files(path: &Path, args: &Args) -> Vec<PathBuf> {
    let answers = args.phich.then(|| answers_beside(path));
    [Some(path.to_owned()), answers].into_iter().flatten().collect()
}
