//! The recorder of one run: metrics always, tables and qlog where a folder is kept.

use airpace_core::{Event, Recorder, Time};

use crate::error::EvalError;
use crate::facts::RunFacts;
use crate::folder::RunFolder;
use crate::metrics::{Measured, Meter};
use crate::qlog::Qlogs;
use crate::tables::Tables;

/// What of a run is kept on disk.
#[derive(Clone, Copy)]
pub struct Keep<'a> {
    /// Where.
    pub folder: &'a RunFolder,
    /// The names of all values that schemes may show, each a column of `controller`.
    pub inspected: &'a [String],
    /// Whether to write a qlog per flow.
    pub qlog: bool,
}

/// Listens to one run.
pub struct Judge<'a> {
    meter: Meter,
    tables: Option<Tables>,
    qlogs: Option<Qlogs>,
    duration: Time,
    progress: &'a dyn Fn(f64),
    /// When to speak of progress next.
    next_progress: Time,
}

impl<'a> Judge<'a> {
    /// A judge of the run with these facts; `progress` hears the part of the run's time that has passed, about
    /// a hundred times.
    ///
    /// # Errors
    /// A file that cannot be made.
    pub fn new(
        facts: &RunFacts,
        keep: Option<Keep<'_>>,
        progress: &'a dyn Fn(f64),
    ) -> Result<Judge<'a>, EvalError> {
        let tables =
            keep.map(|keep| Tables::create(keep.folder.root(), facts, keep.inspected)).transpose()?;
        let qlogs =
            keep.filter(|keep| keep.qlog).map(|keep| Qlogs::create(keep.folder.root(), facts)).transpose()?;
        Ok(Judge {
            meter: Meter::new(facts),
            tables,
            qlogs,
            duration: facts.duration,
            progress,
            next_progress: Time::ZERO,
        })
    }

    /// Ends the files and gives the numbers.
    ///
    /// # Errors
    /// The first file that could not be written.
    pub fn finish(self) -> Result<Measured, EvalError> {
        self.tables.map_or(Ok(()), Tables::finish)?;
        self.qlogs.map_or(Ok(()), Qlogs::finish)?;
        Ok(self.meter.finish())
    }

    fn tell_progress(&mut self, now: Time) {
        if now < self.next_progress {
            return;
        }
        self.next_progress = now + (self.duration - Time::ZERO) / 100;
        (self.progress)((now.as_secs_f64() / self.duration.as_secs_f64()).min(0.999));
    }
}

impl Recorder for Judge<'_> {
    fn record(&mut self, event: Event<'_>) {
        self.meter.record(&event);
        if let Some(tables) = &mut self.tables {
            tables.record(&event);
        }
        if let Some(qlogs) = &mut self.qlogs {
            qlogs.record(&event);
        }
        if let Event::Arrived(airpace_core::event::Arrived { time, .. })
        | Event::Capacity(airpace_core::event::Capacity { time, .. }) = event
        {
            self.tell_progress(time);
        }
    }
}
