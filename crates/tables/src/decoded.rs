//! Tables of messages that were decoded from radio samples: a row per message, subframe, or PHICH answer.
//!
//! Every file is one table, and is not part of a run folder. The caller fills in the rows ([`Message`], [`Answer`],
//! [`Subframe`], [`Gain`]). The columns are named after the fields.
//!
//! ```text
//! decoder's output ─caller─▶ Message, Gain ─▶ Decoded ─▶ cell.parquet
//!                            Answer        ─▶         ─▶ cell.phich.parquet
//! ```

mod heard;
pub mod json;
mod rows;

use std::path::{Path, PathBuf};

use airpace_files::Whole;

use super::columns::Columns;
use super::file::Table;
use crate::error::FileError;
pub use heard::messages;
pub use rows::{Answer, Gain, Message, Subframe};
use rows::{AnswerRows, GainRows, MessageRows, SubframeRows};

/// Contents of a row of the main table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Row {
    /// A message of the control channel.
    Message,
    /// A message to the tracked user, with the data that the user obtains by it: the columns of [`Message`], then the
    /// columns of [`Gain`].
    Own,
    /// A whole subframe.
    Subframe,
}

/// The tables of decoded rows, open for writing.
pub struct Decoded {
    main: Main,
    answers: Option<Box<Table<AnswerRows>>>,
}

enum Main {
    Messages(Box<Table<MessageRows>>),
    Own(Box<Table<(MessageRows, GainRows)>>),
    Subframes(Box<Table<SubframeRows>>),
}

impl Decoded {
    /// Writes rows of one kind into `main`. PHICH answers have other columns and are written into the file `answers`, if
    /// given. [`answers_beside`] returns the default name of this file.
    ///
    /// # Errors
    /// [`FileError::Table`] if a file cannot be written.
    pub fn new(main: Whole, row: Row, answers: Option<Whole>) -> Result<Decoded, FileError> {
        let main = match row {
            Row::Message => Main::Messages(table(main)?),
            Row::Own => Main::Own(table(main)?),
            Row::Subframe => Main::Subframes(table(main)?),
        };
        Ok(Decoded { main, answers: answers.map(table).transpose()? })
    }

    /// Adds a message, and the tracked user's gain from it (`None` if the message is not a grant). `row` is called only
    /// if the main table contains messages.
    ///
    /// # Errors
    /// [`FileError::Table`] if rows cannot be written.
    pub fn message(&mut self, row: impl FnOnce() -> Message, gain: Option<&Gain>) -> Result<(), FileError> {
        match &mut self.main {
            Main::Messages(table) => {
                table.columns.push(row());
                table.added(1)
            }
            Main::Own(table) => {
                table.columns.0.push(row());
                table.columns.1.push_gain(gain);
                table.added(1)
            }
            Main::Subframes(_) => Ok(()),
        }
    }

    /// Adds a PHICH answer. `row` is called only if there is a table of answers.
    ///
    /// # Errors
    /// Errors of [`Decoded::message`].
    pub fn answer(&mut self, row: impl FnOnce() -> Answer) -> Result<(), FileError> {
        let Some(table) = &mut self.answers else { return Ok(()) };
        table.columns.push(row());
        table.added(1)
    }

    /// Adds a whole subframe. `row` is called only if the main table contains subframes.
    ///
    /// # Errors
    /// Errors of [`Decoded::message`].
    pub fn subframe(&mut self, row: impl FnOnce() -> Subframe) -> Result<(), FileError> {
        let Main::Subframes(table) = &mut self.main else { return Ok(()) };
        table.columns.push(row());
        table.added(1)
    }

    /// Writes the remaining rows and moves the files to their final names.
    ///
    /// # Errors
    /// [`FileError::Table`] or [`FileError::Write`] if a file cannot be written.
    pub fn finish(self) -> Result<(), FileError> {
        match self.main {
            Main::Messages(table) => table.finish(),
            Main::Own(table) => table.finish(),
            Main::Subframes(table) => table.finish(),
        }?;
        self.answers.map_or(Ok(()), |table| table.finish())
    }
}

fn table<C: Columns + Default>(file: Whole) -> Result<Box<Table<C>>, FileError> {
    Table::on(file, C::default()).map(Box::new)
}

/// Default file of the PHICH answers: `cell.phich.parquet` for `cell.parquet`.
pub fn answers_beside(main: &Path) -> PathBuf {
    match main.extension() {
        Some(ending) => main.with_extension(format!("phich.{}", ending.display())),
        None => main.with_extension("phich"),
    }
}

#[cfg(test)]
mod tests;
