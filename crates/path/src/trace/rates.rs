//! Tables of rates: columns, units, times, and their conversion to a trace.

use std::fmt;

use airpace_core::Remedy;
use airpace_core::count::count;

use super::chances::Trace;
use super::error::TraceError;
use super::synth::Credit;
use super::text::{lines, shown};

mod clock;
mod unit;

use clock::Clock;
use unit::Unit;

/// Properties of a table of rates.
#[derive(Clone, Debug, PartialEq)]
pub struct RateTable {
    /// Number of rows.
    pub rows: u64,
    /// Median interval between rows, in seconds.
    pub interval_s: f64,
    /// Duration of all rows, in seconds.
    pub seconds: f64,
    /// Name of the column of rates.
    pub column: String,
    /// Unit of the rates.
    pub unit: &'static str,
    /// Name of the column of times; `None` if there is no such column, in which case each row lasts one second.
    pub clock: Option<String>,
}

impl fmt::Display for RateTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RateTable { rows, interval_s, seconds, column, unit, clock } = self;
        // Time stamps of a logger vary by some milliseconds around the interval.
        let interval_s = libm::round(interval_s * 100.0) / 100.0;
        let interval_s = if interval_s > 0.0 { interval_s } else { self.interval_s };
        write!(f, "{} of {interval_s} s: {seconds:.1} s; `{column}` in {unit}, ", count(*rows, "row"))?;
        match clock {
            Some(clock) => write!(f, "times from `{clock}`"),
            None => write!(f, "no column of times"),
        }
    }
}

/// Maximum relative deviation of an interval between rows from the median; a larger deviation counts as a gap or an
/// error.
///
/// Chosen: less than one missing row, more than the jitter of a logger.
const MAX_JITTER: f64 = 0.5;

/// Whether a file (without a byte-order mark) is a table of rates and not a list of milliseconds.
pub(super) fn is_table(file: &[u8]) -> bool {
    let table = |row: &[u8]| row.iter().any(|&byte| b",;\t".contains(&byte) || byte.is_ascii_alphabetic());
    let mut rows = lines(file).map(|(_, row)| row);
    match rows.next() {
        Some(first) if first.starts_with(b"#") => rows.find(|row| !row.starts_with(b"#")).is_some_and(table),
        Some(first) => table(first),
        None => false,
    }
}

/// Reads a table of rates.
pub(super) fn read(file: &[u8], column: Option<&str>) -> Result<(Trace, RateTable), TraceError> {
    let (comments, rows): (Vec<_>, Vec<_>) = lines(file).partition(|(_, row)| row.starts_with(b"#"));
    let Some((&(first_line, first), _)) = rows.split_first() else {
        return Err(TraceError::whole("the table has no rows", "give a header, and a row for each interval"));
    };
    let separator = *b";,".iter().find(|byte| first.contains(byte)).unwrap_or(&b'\t');
    // A header that starts with `#`, as written by numpy, is directly before the first row.
    let hidden = comments.iter().rfind(|&&(line, _)| line < first_line);
    let (header_line, header, rows) = match hidden {
        Some(&(line, text)) if !first.iter().any(u8::is_ascii_alphabetic) => (line, text, &rows[..]),
        _ => (first_line, first, &rows[1..]),
    };
    let header = header.strip_prefix(b"#").unwrap_or(header);
    let names: Vec<String> = cells(header, separator).map(shown).collect();
    let (rate_at, unit) =
        rate_column(&names, column).map_err(|(what, remedy)| TraceError::at(header_line, what, remedy))?;
    let clock = Clock::find(&names, rate_at);
    if rows.is_empty() {
        return Err(TraceError::whole("the table has no rows", "give a row for each interval"));
    }
    let mut starts_s = Vec::with_capacity(rows.len());
    let mut rates_bps = Vec::with_capacity(rows.len());
    for &(line, row) in rows {
        let cell = |at: usize| cells(row, separator).nth(at).unwrap_or_default();
        if let Some(clock) = &clock {
            let text = String::from_utf8_lossy(cell(clock.at));
            starts_s.push(clock.seconds(&text).ok_or_else(|| {
                let what = format!(
                    "column `{}` holds `{}`, which is no time",
                    names[clock.at],
                    shown(cell(clock.at))
                );
                TraceError::at(line, what, "give a number, a date and time as in ISO 8601, or HH:MM:SS")
            })?);
        }
        let value = number(cell(rate_at)).ok_or_else(|| {
            let what =
                format!("column `{}` holds `{}`, which is no number", names[rate_at], shown(cell(rate_at)));
            TraceError::at(line, what, "give a decimal number")
        })?;
        let rate_bps = value * unit.bits;
        if !(0.0..=1e12).contains(&rate_bps) {
            let what = format!("{} is {value}", names[rate_at]);
            return Err(TraceError::at(line, what, "give a rate from 0 to a million Mbit/s"));
        }
        rates_bps.push(rate_bps);
    }
    let interval_s = match &clock {
        Some(clock) => interval(&starts_s, rows, &names[clock.at])?,
        None => {
            starts_s = (0..rows.len()).map(|second| second as f64).collect();
            1.0
        }
    };
    let origin = starts_s[0];
    let ends_s = starts_s.iter().skip(1).map(|start| start - origin);
    let all_s = starts_s[starts_s.len() - 1] - origin + interval_s;
    let mut credit = Credit::default();
    let mut now_ms = 0;
    for ((&(line, _), &rate_bps), end_s) in rows.iter().zip(&rates_bps).zip(ends_s.chain([all_s])) {
        if end_s * 1e3 > Trace::MAX_MS as f64 {
            let what = "the table is longer than eleven days";
            return Err(TraceError::at(line, what, "cut the table, or check the unit of its times"));
        }
        let end_ms = libm::round(end_s * 1e3) as u64;
        let span_ms = end_ms.saturating_sub(now_ms);
        if credit.chances_in(rate_bps, span_ms) > Trace::MAX_CHANCES as f64 {
            let what = format!("the rates, in {}, make more than {} chances", unit.name, Trace::MAX_CHANCES);
            return Err(TraceError::at(line, what, "check the unit, or cut the table"));
        }
        credit.run(rate_bps, span_ms);
        now_ms = now_ms.max(end_ms);
    }
    let times_ms = credit.into_times_ms();
    if times_ms.is_empty() {
        return Err(TraceError::whole(
            format!("column `{}` adds up to less than one packet", names[rate_at]),
            "a trace needs at least one delivery opportunity; choose another column or file",
        ));
    }
    let table = RateTable {
        rows: rows.len() as u64,
        interval_s,
        seconds: now_ms as f64 * 1e-3,
        column: names[rate_at].clone(),
        unit: unit.name,
        clock: clock.map(|clock| names[clock.at].clone()),
    };
    Ok((Trace::from_times_ms(times_ms)?.lasting(now_ms), table))
}

/// The lower median of the intervals between rows, in seconds. All other intervals must be near the median.
fn interval(starts_s: &[f64], rows: &[(u64, &[u8])], name: &str) -> Result<f64, TraceError> {
    let steps_s = || starts_s.windows(2).map(|two| two[1] - two[0]);
    for (step_s, &(line, _)) in steps_s().zip(&rows[1..]) {
        if step_s <= 0.0 {
            let what = match step_s {
                0.0 => format!("{name} repeats the time of the row before it"),
                _ => format!("{name} goes back by {:.3} s", -step_s),
            };
            return Err(TraceError::at(line, what, "sort the rows by time, and give one row for each time"));
        }
    }
    let mut sorted: Vec<f64> = steps_s().collect();
    sorted.sort_by(f64::total_cmp);
    // A single row has no interval.
    let Some(last) = sorted.len().checked_sub(1) else { return Ok(1.0) };
    let median_s = sorted[last / 2];
    for (step_s, &(line, _)) in steps_s().zip(&rows[1..]) {
        if (step_s - median_s).abs() > MAX_JITTER * median_s {
            let what = format!("{name} advances by {step_s:.3} s, and by {median_s:.3} s in other rows");
            return Err(TraceError::at(line, what, "give rows at equal intervals, without gaps"));
        }
    }
    if median_s < 1e-3 {
        let what = format!("{name} advances by less than a millisecond per row");
        return Err(TraceError::whole(what, "check the unit of the times, or average the rows"));
    }
    Ok(median_s)
}

/// Parses a finite number. A decimal comma is accepted as well as a decimal point.
fn number(cell: &[u8]) -> Option<f64> {
    let text = std::str::from_utf8(cell).ok()?;
    text.replacen(',', ".", 1).parse().ok().filter(|value: &f64| value.is_finite())
}

/// The cells of a row, without surrounding spaces and quotes.
fn cells(row: &[u8], separator: u8) -> impl Iterator<Item = &[u8]> {
    row.split(move |&byte| byte == separator).map(|cell| {
        let cell = cell.trim_ascii();
        let inner = cell.strip_prefix(b"\"").and_then(|cell| cell.strip_suffix(b"\""));
        inner.unwrap_or(cell).trim_ascii()
    })
}

/// The index of the column of rates, and its unit. `wanted` may be `NAME` or `NAME:UNIT`. The error is a pair of problem
/// and remedy.
fn rate_column(names: &[String], wanted: Option<&str>) -> Result<(usize, Unit), (String, Remedy)> {
    let find = |name: &str| {
        let exact = names.iter().position(|column| column == name);
        exact.or_else(|| names.iter().position(|column| column.eq_ignore_ascii_case(name)))
    };
    let Some(wanted) = wanted else {
        let rates: Vec<usize> = (0..names.len()).filter(|&at| Unit::named(&names[at]).is_some()).collect();
        return match rates[..] {
            [only] => unit_of(&names[only]).map(|unit| (only, unit)),
            [] => {
                let remedy = "name the unit in the header, as in `time_s,mbps`, or choose a column and its unit, as \
                              in `DL_bitrate:kbps`";
                Err(("the header names no rate".to_owned(), remedy.into()))
            }
            _ => {
                let choices: Vec<&str> = rates.iter().map(|&at| &*names[at]).collect();
                let remedy = Remedy::new("choose one of them by name (").parameter("column").text("):");
                let remedy = remedy.text(choices.join(", "));
                Err((format!("the header names {} rates", rates.len()), remedy))
            }
        };
    };
    if let Some(at) = find(wanted) {
        return unit_of(&names[at]).map(|unit| (at, unit));
    }
    let (name, unit) = wanted.rsplit_once(':').unwrap_or((wanted, ""));
    let at = find(name).ok_or_else(|| {
        (format!("there is no column `{name}`"), format!("choose one of: {}", names.join(", ")).into())
    })?;
    unit_of(unit).map(|unit| (at, unit))
}

/// The unit at the end of a name; the error is a pair of problem and remedy.
fn unit_of(name: &str) -> Result<Unit, (String, Remedy)> {
    match Unit::named(name) {
        Some(Some(unit)) => Ok(unit),
        Some(None) => Err((
            format!("`{name}` may mean bits or bytes"),
            "write Mbps (or kbps) for bits and MB/s (or kB/s) for bytes".into(),
        )),
        None => Err((
            format!("`{name}` names no unit of a rate"),
            "choose a column and its unit, as in `DL_bitrate:kbps`, or write the unit into the header".into(),
        )),
    }
}

#[cfg(test)]
mod tests;
