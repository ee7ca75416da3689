//! Recorded radio values for a feeder: lines of reports, and ACK traces.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use airpace_cc::ack_trace::{self, Reader};
use airpace_core::Time;
use airpace_radio::RadioReport;
use airpace_radio::line::{Unreadable, from_line};

use crate::feed::GrantRecord;

/// Maximum length of a line (bytes). A report of one carrier takes some hundred bytes.
const MAX_LINE: u64 = 1 << 20;

/// Error of recorded radio values.
#[derive(Debug, thiserror::Error)]
pub enum RecordedError {
    /// The source cannot be read.
    #[error(transparent)]
    Read(#[from] io::Error),
    /// A line is no report.
    #[error("line {number}: {error}")]
    Line {
        /// Number of the line, from 1.
        number: u64,
        /// The defect.
        error: Unreadable,
    },
    /// The file is no ACK trace.
    #[error(transparent)]
    Trace(#[from] ack_trace::ParseError),
    /// The trace contains no radio values.
    #[error("the flow of this trace has no radio at its sender; record one that uploads")]
    NoRadio,
}

/// Function that replays an ACK trace and sends the radio values that it contains.
pub type PlayTrace<N> = fn(BufReader<File>, &AtomicBool, &Sender<N>) -> Result<(), RecordedError>;

/// Replays recorded reports at their original pace.
#[derive(Debug, Default)]
pub struct Pace {
    began: Option<(Instant, Time)>,
}

impl Pace {
    /// Waits until the replay reaches `time`, or `stop` is set.
    fn wait(&mut self, time: Time, stop: &AtomicBool) {
        let (began, first) = *self.began.get_or_insert((Instant::now(), time));
        while let Some(left) = (time - first).checked_sub(began.elapsed()).filter(|left| !left.is_zero()) {
            if stop.load(Ordering::Relaxed) {
                return;
            }
            std::thread::sleep(left.min(Duration::from_millis(200)));
        }
    }
}

/// Converts reports of a stream of lines with `meaning`, and sends the results, at the given pace, until the lines end or
/// `stop` is set. A read that times out is tried again.
///
/// # Errors
/// [`RecordedError::Read`] or [`RecordedError::Line`].
pub fn reports<N>(
    mut lines: impl BufRead,
    mut pace: Option<Pace>,
    mut meaning: impl FnMut(&RadioReport) -> Option<N>,
    stop: &AtomicBool,
    news: &Sender<N>,
) -> Result<(), RecordedError> {
    let (mut line, mut number) = (Vec::new(), 0);
    while !stop.load(Ordering::Relaxed) {
        match lines.by_ref().take(MAX_LINE).read_until(b'\n', &mut line) {
            Ok(0) => break,
            Ok(_) => {}
            // The received part of the line stays in `line`.
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => continue,
            Err(error) => return Err(error.into()),
        }
        number += 1;
        let text = String::from_utf8_lossy(&line);
        let read = from_line(text.trim_end()).map_err(|error| RecordedError::Line { number, error })?;
        for report in &read {
            if let Some(pace) = &mut pace {
                pace.wait(report.time, stop);
            }
            if let Some(told) = meaning(report) {
                // The receiver is gone only when the program ends.
                let _ = news.send(told);
            }
        }
        line.clear();
    }
    Ok(())
}

/// Maximum length of an ACK trace in bytes.
///
/// Chosen: enough for an hour of a fast flow.
const MAX_TRACE_BYTES: u64 = 256 << 20;

/// Sends the radio values of an ACK trace, at the trace's pace.
///
/// # Errors
/// The file cannot be read, is no ACK trace, or its flow has no radio.
pub fn trace(
    file: BufReader<File>,
    stop: &AtomicBool,
    news: &Sender<GrantRecord>,
) -> Result<(), RecordedError> {
    let text = airpace_files::text_at_most(file, MAX_TRACE_BYTES)?;
    let (_, entries) = Reader::new(&text)?;
    let (mut pace, mut is_known) = (Pace::default(), false);
    for entry in entries {
        let entry = entry?;
        let ack_trace::Told::Radio { bandwidth, burst, .. } = entry.told else { continue };
        pace.wait(entry.time, stop);
        if stop.load(Ordering::Relaxed) {
            return Ok(());
        }
        let _ = news.send(GrantRecord { bandwidth, burst, share: None });
        is_known = true;
    }
    if is_known { Ok(()) } else { Err(RecordedError::NoRadio) }
}
