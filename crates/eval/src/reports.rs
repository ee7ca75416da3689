//! Radio reports that devices receive, as lines of text in one file per device.

use std::io::Write;
use std::path::{Path, PathBuf};

use airpace_core::DeviceId;
use airpace_event::{Detail, Reported, Source};
use airpace_files::Whole;
use airpace_radio::{RadioReport, line};

use crate::error::EvalError;

/// The file of one device. It gets its name when the run has ended.
pub(crate) struct ReportFile {
    device: DeviceId,
    path: PathBuf,
    file: Option<Whole>,
    /// Reports of the current subframe, of all carriers.
    subframe: Vec<RadioReport>,
    /// The first failure to write.
    failure: Option<EvalError>,
}

impl ReportFile {
    /// # Errors
    /// The file cannot be made.
    pub(crate) fn create(device: DeviceId, path: &Path) -> Result<ReportFile, EvalError> {
        let path = path.to_owned();
        let file = match Whole::create(&path) {
            Ok(file) => Some(file),
            Err(source) => return Err(EvalError::ReportFile { path, source }),
        };
        Ok(ReportFile { device, path, file, subframe: vec![], failure: None })
    }

    /// Whether it needs events of this detail.
    pub(crate) fn wants(&self, detail: Detail) -> bool {
        detail == Detail::Reports(self.device, Source::ControlChannel)
    }

    pub(crate) fn record(&mut self, told: &Reported<'_>) {
        if told.device != self.device || told.source != Source::ControlChannel {
            return;
        }
        let now = told.report.slot.subframe();
        if self.subframe.last().is_some_and(|last| last.slot.subframe() != now) {
            self.write_subframe();
        }
        self.subframe.push(told.report.clone());
    }

    /// Writes the remaining reports, and gives the file its name.
    ///
    /// # Errors
    /// What the system refused, now or earlier.
    pub(crate) fn finish(mut self) -> Result<(), EvalError> {
        self.write_subframe();
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        let file = self.file.take().map_or(Ok(()), Whole::finish);
        file.map_err(|source| EvalError::ReportFile { path: self.path, source })
    }

    fn write_subframe(&mut self) {
        let (Some(first), Some(file)) = (self.subframe.first(), &mut self.file) else { return };
        let written = writeln!(file, "{}", line::to_line(first.slot.subframe(), &self.subframe));
        self.subframe.clear();
        if let Err(source) = written {
            self.failure = Some(EvalError::ReportFile { path: self.path.clone(), source });
            self.file = None;
        }
    }
}
