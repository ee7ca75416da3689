//! Tables of what is printed, as Parquet files.

use std::path::{Path, PathBuf};

use airpace_phy::answers::Answered;
use airpace_phy::decoder::Reading;
use airpace_phy::found::Found;
use airpace_radio::Rnti;

use super::Args;
use super::columns::{AnswerRows, At, MessageRows, OwnRows, SubframeRows};
use super::message::Name;
use super::recording::Gain;
use crate::parquet_file::ParquetRows;

/// What `--parquet` writes.
pub struct Tables {
    main: Main,
    answers: Option<Box<ParquetRows<AnswerRows>>>,
}

enum Main {
    Messages(Box<ParquetRows<MessageRows>>),
    Own(Box<ParquetRows<OwnRows>>),
    Subframes(Box<ParquetRows<SubframeRows>>),
}

impl Tables {
    /// Of what is asked for: answers have rows of another shape than messages, and a file of their own.
    ///
    /// # Errors
    /// If a file cannot be made.
    pub fn create(path: &Path, args: &Args) -> anyhow::Result<Tables> {
        let main = if args.subframes {
            Main::Subframes(Box::new(ParquetRows::create(path)?))
        } else if args.rnti.is_some() {
            Main::Own(Box::new(ParquetRows::create(path)?))
        } else {
            Main::Messages(Box::new(ParquetRows::create(path)?))
        };
        let answers = args.phich.then(|| ParquetRows::create(&of_answers(path)).map(Box::new));
        Ok(Tables { main, answers: answers.transpose()? })
    }

    /// Adds a message, and what it means to who is followed.
    ///
    /// # Errors
    /// If a file cannot be written, as of all that follow.
    pub fn message(&mut self, at: At, found: &Found, name: Name, gain: Option<&Gain>) -> anyhow::Result<()> {
        match &mut self.main {
            Main::Messages(table) => table.add(|rows| rows.add(at, found, name)),
            Main::Own(table) => table.add(|rows| rows.add(at, found, name, gain)),
            Main::Subframes(_) => Ok(()),
        }
    }

    /// Adds an answer; `rnti` is how the user is named.
    pub fn answer(&mut self, at: At, reading: &Reading, answer: &Answered, rnti: Rnti) -> anyhow::Result<()> {
        let Some(table) = &mut self.answers else { return Ok(()) };
        table.add(|rows| rows.add(at, reading, answer, rnti))
    }

    /// Adds a whole subframe.
    pub fn subframe(&mut self, at: At, reading: &Reading) -> anyhow::Result<()> {
        let Main::Subframes(table) = &mut self.main else { return Ok(()) };
        table.add(|rows| rows.add(at, reading))
    }

    /// Ends the files.
    pub fn finish(self) -> anyhow::Result<()> {
        match self.main {
            Main::Messages(table) => table.finish(),
            Main::Own(table) => table.finish(),
            Main::Subframes(table) => table.finish(),
        }?;
        self.answers.map_or(Ok(()), |table| table.finish())
    }
}

/// The files that `--parquet` writes.
pub fn files(path: &Path, args: &Args) -> Vec<PathBuf> {
    let answers = args.phich.then(|| of_answers(path));
    [Some(path.to_owned()), answers].into_iter().flatten().collect()
}

/// Beside `cell.parquet`, answers are in `cell.phich.parquet`.
fn of_answers(path: &Path) -> PathBuf {
    match path.extension() {
        Some(ending) => path.with_extension(format!("phich.{}", ending.display())),
        None => path.with_extension("phich"),
    }
}
