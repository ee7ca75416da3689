//! Files of the radio reports that devices receive: one file per device, one text line per report.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use airpace_core::DeviceId;
use airpace_event::{Detail, Reported};
use airpace_files::Whole;
use airpace_radio::{RadioReport, line};

use crate::error::RunError;

/// Maximum time that a subframe's reports wait for reports of further carriers, in subframes.
///
/// Chosen: twice the maximum delay. A decoder that has just found its cell reports up to a second of subframes at once.
const WAIT_SUBFRAMES: u64 = 2_000;

/// File of one device. It is moved to its final name at the end of the run.
pub(crate) struct ReportFile {
    device: DeviceId,
    path: PathBuf,
    file: Option<Whole>,
    /// Reports that are not yet written, by subframe.
    waiting: BTreeMap<u64, Vec<RadioReport>>,
    /// The first write error.
    failure: Option<RunError>,
}

impl ReportFile {
    /// # Errors
    /// The file cannot be created.
    pub(crate) fn create(device: DeviceId, path: &Path) -> Result<ReportFile, RunError> {
        let path = path.to_owned();
        let file = Whole::create(&path).map_err(|error| RunError::report_file(&path, error))?;
        Ok(ReportFile { device, path, file: Some(file), waiting: BTreeMap::new(), failure: None })
    }

    /// Whether the file needs events of this detail.
    pub(crate) fn wants(&self, detail: Detail) -> bool {
        detail == Detail::UsedReports(self.device)
    }

    pub(crate) fn record(&mut self, told: &Reported<'_>) {
        if told.device != self.device || self.file.is_none() {
            return;
        }
        let subframe = told.report.slot.subframe();
        self.waiting.entry(subframe).or_default().push(told.report.clone());
        while let Some((&oldest, _)) = self.waiting.first_key_value()
            && oldest + WAIT_SUBFRAMES < subframe
        {
            self.write_oldest();
        }
    }

    /// Writes the remaining reports, and moves the file to its final name.
    ///
    /// # Errors
    /// The first write error of the run.
    pub(crate) fn finish(mut self) -> Result<(), RunError> {
        while !self.waiting.is_empty() && self.file.is_some() {
            self.write_oldest();
        }
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        let file = self.file.take().map_or(Ok(()), Whole::finish);
        file.map_err(|error| RunError::report_file(&self.path, error))
    }

    fn write_oldest(&mut self) {
        let (Some((index, mut reports)), Some(file)) = (self.waiting.pop_first(), &mut self.file) else {
            return;
        };
        reports.sort_by_key(|report| (report.carrier, report.slot.index));
        if let Err(error) = writeln!(file, "{}", line::to_line(index, &reports)) {
            self.failure = Some(RunError::report_file(&self.path, error));
            self.file = None;
        }
    }
}
