//! Formats of trace files: mahimahi's list of milliseconds, and a table of rates.

use std::fmt::Write as _;

use super::chances::{CHANCE, Trace};
use super::error::TraceError;
use super::rates::{self, RateTable};
use super::text::{lines, shown};

impl Trace {
    /// Reads a trace in either format. If the first line contains a separator or a letter, the line is the header of a
    /// table of rates, and the file is read as by [`Trace::parse_rates`].
    ///
    /// # Errors
    /// The file is invalid; the error names the line, the problem, and the remedy.
    pub fn parse(file: &[u8], column: Option<&str>) -> Result<Trace, TraceError> {
        Trace::read(file, column).map(|(trace, _)| trace)
    }

    /// As [`Trace::parse`]; also returns the data of a table of rates.
    ///
    /// # Errors
    /// As [`Trace::parse`].
    pub fn read(file: &[u8], column: Option<&str>) -> Result<(Trace, Option<RateTable>), TraceError> {
        if rates::is_table(file) {
            rates::read(file, column).map(|(trace, table)| (trace, Some(table)))
        } else {
            Ok((Trace::parse_mahimahi(file)?, None))
        }
    }

    /// Reads mahimahi's format: each line contains the millisecond of one opportunity to deliver 1500 bytes. Empty
    /// lines are ignored.
    ///
    /// # Errors
    /// The file is invalid; the error names the line, the problem, and the remedy.
    pub fn parse_mahimahi(file: &[u8]) -> Result<Trace, TraceError> {
        let mut times_ms = Vec::with_capacity(file.len() / 6);
        let mut before = 0;
        for (line, text) in lines(file) {
            let time = milliseconds(text)
                .map_err(|remedy| TraceError::at(line, format!("`{}` is no time", shown(text)), remedy))?;
            if time < before {
                let what = format!("time {time} after {before}");
                return Err(TraceError::at(line, what, "times never decrease; sort the lines by number"));
            }
            before = time;
            times_ms.push(time);
        }
        Trace::from_times_ms(times_ms)
    }

    /// Reads a table of rates with a header, separated by commas, semicolons or tabs; lines that start with `#` are
    /// comments. The name of the column of rates ends with the unit (`mbps`, `kB/s`); `column` selects one of several
    /// columns, and may contain the unit: `DL_bitrate:kbps`. A row lasts from its time to the time of the next row, or
    /// one second if there is no time column. The trace is as long as the rows, even if the last rows contain no
    /// opportunity.
    ///
    /// Each millisecond adds its share of the rate to a credit. Each time the credit reaches 1500 bytes, there is an
    /// opportunity at the end of the millisecond.
    ///
    /// # Errors
    /// The table has gaps, times that repeat or go back, a missing unit, a unit that may mean bits or bytes, or several
    /// columns of rates without `column`. The error names the line, the problem, and the remedy.
    pub fn parse_rates(file: &[u8], column: Option<&str>) -> Result<Trace, TraceError> {
        rates::read(file, column).map(|(trace, _)| trace)
    }

    /// The trace in mahimahi's format.
    pub fn to_mahimahi(&self) -> String {
        let mut text = String::with_capacity(self.times_ms().len() * 7);
        for time in self.times_ms() {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{time}");
        }
        text
    }

    /// The trace as a table of rates, one row per second; an incomplete second at the end counts as a whole second.
    pub fn to_rates_csv(&self) -> String {
        let mut text = String::from("time_s,mbps\n");
        let mut done = 0;
        for second in 0..self.period_ms().div_ceil(1000) {
            // An opportunity at the end of a millisecond belongs to the second that contains this millisecond.
            let end = self.times_ms().partition_point(|&time| time <= (second + 1) * 1000);
            let mbps = (end - done) as f64 * CHANCE.bits().0 as f64 * 1e-6;
            let _ = writeln!(text, "{second},{mbps:.3}");
            done = end;
        }
        text
    }
}

/// Reads a whole number of milliseconds. The error is the text of the remedy.
fn milliseconds(text: &[u8]) -> Result<u64, &'static str> {
    let digits = |text: &[u8]| !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    if text.starts_with(b"-") {
        return Err("times are milliseconds from the start of the trace, 0 or more");
    }
    if !digits(text) {
        return Err("each line is one whole number of milliseconds (a table of rates starts with a header)");
    }
    let value = text
        .iter()
        .try_fold(0u64, |value, digit| value.checked_mul(10)?.checked_add(u64::from(digit - b'0')));
    value.ok_or("times are milliseconds from the start of the trace; subtract the first one")
}
