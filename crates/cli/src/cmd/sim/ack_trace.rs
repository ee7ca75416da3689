//! `airpace sim --ack-trace`: writes the inputs and outputs of one flow's controller to a file.

use std::io::{BufWriter, Write};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use airpace_cc::SchemeSpec;
use airpace_cc::ack_trace::{Entry, Header};
use airpace_files::Whole;
use airpace_run::Choice;
use anyhow::ensure;

use crate::cmd::outputs::{self, Named};
use crate::terminal;

/// The output file, and the first error when writing it.
struct Lines {
    file: BufWriter<Whole>,
    error: Option<std::io::Error>,
}

impl Lines {
    fn write(&mut self, line: &dyn std::fmt::Display) {
        if self.error.is_none() {
            self.error = writeln!(self.file, "{line}").err();
        }
    }
}

/// Runs `scheme` in a scenario with `seed`, and writes the ACK trace of `flow`.
///
/// # Errors
/// The flow does not exist, the run fails, or the file cannot be written.
pub fn write(
    path: &Path,
    choice: &Choice,
    scheme: &SchemeSpec,
    seed: u64,
    flow: usize,
) -> anyhow::Result<()> {
    const OPTION: &str = "--ack-trace";
    let scenario = &choice.scenario;
    ensure!(
        flow < scenario.flow.len(),
        "--ack-trace-flow {flow}: the scenario has {}, counted from 0",
        terminal::count(scenario.flow.len() as u64, "flow")
    );
    let prepared = scenario.prepare()?;
    let inputs = [choice.argument.clone().into()].into_iter().chain(scenario.files().map(Path::to_path_buf));
    outputs::check(&Named::inputs(&inputs.collect::<Vec<_>>()), &[Named::by(OPTION, path)])?;
    let file = BufWriter::new(outputs::whole(OPTION, path)?);
    let lines = Arc::new(Mutex::new(Lines { file, error: None }));
    let spec = scenario.scheme_of(flow, scheme);
    let header = Header { scheme: spec.text().to_owned(), mss: scenario.flow[flow].mss() };
    let locked = |lines: &Mutex<Lines>, line: &dyn std::fmt::Display| {
        lines.lock().unwrap_or_else(PoisonError::into_inner).write(line);
    };
    locked(&lines, &header);
    let writer = Arc::clone(&lines);
    let tape = Box::new(move |entry: &Entry| locked(&writer, entry));
    airpace_sim::run_traced(&prepared, scheme, seed, flow, tape, &mut |_| ControlFlow::Continue(()))?;
    // The controller, which held the other handle, was dropped at the end of its run.
    let Some(lines) = Arc::into_inner(lines) else { unreachable!("the run has ended") };
    let lines = lines.into_inner().unwrap_or_else(PoisonError::into_inner);
    let refused = outputs::refused(OPTION, path);
    match lines.error {
        Some(error) => Err(refused(error)),
        None => {
            let file = lines.file.into_inner().map_err(|error| refused(error.into_error()))?;
            file.finish().map_err(refused)
        }
    }
}
