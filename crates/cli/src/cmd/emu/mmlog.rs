//! Logs of an emulated link in mahimahi's format (`--mm-log`, `--mm-back-log`).

use std::io::Write;
use std::path::{Path, PathBuf};

use airpace_core::Direction;
use airpace_files::Whole;
use airpace_path::trace::mmlink::{Line, LogHeader, LogWriter};
use airpace_run::Choice;
use anyhow::bail;

use super::LastHopOptions;
use crate::cmd::matrix;
use crate::cmd::outputs::{self, Named};

/// The requested logs.
#[derive(Default)]
pub struct Logs {
    logs: Vec<Log>,
}

struct Log {
    option: &'static str,
    path: PathBuf,
    direction: Direction,
    writer: LogWriter,
    file: Whole,
    failure: Option<std::io::Error>,
}

impl Logs {
    /// Creates the logs that the options name.
    ///
    /// # Errors
    /// The scenario has no trace of this kind, its queue does not exist in mahimahi, or a file cannot be created.
    pub fn begin(options: &LastHopOptions, choice: &Choice) -> anyhow::Result<Logs> {
        let trace = choice.scenario.trace.as_ref();
        let main = choice.scenario.flow[0].direction;
        let asked =
            [("--mm-log", &options.mm_log, main), ("--mm-back-log", &options.mm_back_log, main.opposite())];
        let inputs =
            [trace.and_then(|it| it.file.as_ref()), trace.and_then(|it| it.back.as_ref()?.file.as_ref())];
        let scenario = PathBuf::from(&choice.argument);
        let inputs = inputs.into_iter().flatten().chain([&scenario]);
        let inputs: Vec<Named> = inputs.map(|file| Named::new(file.display().to_string(), file)).collect();
        let outputs = asked.iter().filter_map(|(option, path, _)| Some(Named::by(option, path.as_ref()?)));
        outputs::check(&inputs, &outputs.collect::<Vec<_>>())?;
        let mut logs = vec![];
        for (option, path, direction) in asked {
            let Some(path) = path else { continue };
            let Some(trace) = trace else {
                bail!(
                    "{option}: the scenario has no `[trace]`, and only links that follow a trace have such a log"
                );
            };
            let (file, link) = match (direction == main, &trace.back) {
                (true, _) => (&trace.file, &trace.link),
                (false, Some(back)) => (&back.file, &back.link),
                (false, None) => bail!("{option}: the scenario has no `[trace.back]`"),
            };
            let name = |path: &Path| path.display().to_string();
            let header = LogHeader {
                direction,
                trace: &file.as_deref().map_or("made".to_owned(), name),
                log: &name(path),
                command_line: &matrix::command_as_typed(),
                config: "",
                link,
                init_ms: 0,
                base_ms: 0,
            };
            let writer = LogWriter::new(&header).map_err(|error| anyhow::anyhow!("{option}: {error}"))?;
            let file = outputs::whole(option, path)?;
            logs.push(Log { option, path: path.clone(), direction, writer, file, failure: None });
        }
        Ok(Logs { logs })
    }

    /// Whether no log is requested.
    pub fn is_empty(&self) -> bool {
        self.logs.is_empty()
    }

    /// Adds an event of a link.
    pub fn add(&mut self, direction: Direction, line: Line) {
        for log in self.logs.iter_mut().filter(|log| log.direction == direction && log.failure.is_none()) {
            log.writer.write(line);
            log.failure = log.file.write_all(log.writer.take().as_bytes()).err();
        }
    }

    /// Completes the logs. Each file gets its name only now.
    ///
    /// # Errors
    /// A log cannot be written; the message contains the option and the file.
    pub fn finish(self) -> anyhow::Result<()> {
        for Log { option, path, mut writer, mut file, failure, .. } in self.logs {
            let written = match failure {
                Some(failure) => Err(failure),
                // The log of a link without events consists of the header.
                None => file.write_all(writer.take().as_bytes()).and_then(|()| file.finish()),
            };
            written.map_err(outputs::refused(option, &path))?;
        }
        Ok(())
    }
}
