//! Recorder of one run, which computes metrics and optionally writes tables and qlogs.

use airpace_event::{Detail, Event, Recorder};
use airpace_tables::facts::RunFacts;
use airpace_tables::{FurtherColumns, Memory, Tables};

use crate::error::RunError;
use crate::folder::RunFolder;
use crate::metrics::{Measured, Meter};
use crate::qlog::Qlogs;
use crate::reports::ReportFile;

/// Storage of a run's tables.
#[derive(Clone, Copy)]
pub enum Room<'a> {
    /// Tables are files in a run folder.
    Folder(&'a RunFolder),
    /// Tables are kept in memory.
    Memory(&'a Memory),
}

/// Data of a run that are kept in addition to its metrics.
#[derive(Clone, Copy)]
pub struct Keep<'a> {
    /// Storage of the tables.
    pub room: Room<'a>,
    /// Columns of the tables that depend on the scenarios.
    pub further: FurtherColumns<'a>,
    /// Whether to write a qlog per flow. In memory, there are no qlogs.
    pub qlog: bool,
}

/// Receives the events of one run.
pub struct Judge {
    meter: Meter,
    tables: Option<Tables>,
    qlogs: Option<Qlogs>,
    reports: Vec<ReportFile>,
}

impl Judge {
    /// A judge of the run with these facts.
    ///
    /// # Errors
    /// A file cannot be created.
    pub fn new(facts: &RunFacts, keep: Option<Keep<'_>>) -> Result<Judge, RunError> {
        let tables = keep.map(|keep| match keep.room {
            Room::Folder(folder) => Tables::create(folder.root(), facts, keep.further),
            Room::Memory(memory) => Ok(Tables::in_memory(memory, facts, keep.further)),
        });
        let tables = tables.transpose()?;
        let qlogs = match keep {
            Some(Keep { room: Room::Folder(folder), qlog: true, .. }) => {
                Some(Qlogs::create(folder.root(), facts)?)
            }
            _ => None,
        };
        Ok(Judge { meter: Meter::new(facts), tables, qlogs, reports: vec![] })
    }

    /// Also writes the radio reports that the devices receive.
    pub(crate) fn keep_reports(&mut self, files: Vec<ReportFile>) {
        self.reports = files;
    }

    /// Completes the files and returns the metrics.
    ///
    /// # Errors
    /// The first file that could not be written.
    pub fn finish(self) -> Result<Measured, RunError> {
        self.tables.map_or(Ok(()), Tables::finish)?;
        self.qlogs.map_or(Ok(()), Qlogs::finish)?;
        self.reports.into_iter().try_for_each(ReportFile::finish)?;
        Ok(self.meter.finish())
    }
}

impl Recorder for Judge {
    fn record(&mut self, event: Event<'_>) {
        self.meter.record(&event);
        if let Some(tables) = &mut self.tables {
            tables.record(&event);
        }
        if let Some(qlogs) = &mut self.qlogs {
            qlogs.record(&event);
        }
        if let Event::Reported(told) = event {
            self.reports.iter_mut().for_each(|file| file.record(told));
        }
    }

    fn wants(&self, detail: Detail) -> bool {
        detail == Detail::Subframes || self.reports.iter().any(|file| file.wants(detail))
    }
}
