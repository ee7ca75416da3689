//! Both forms of a trace file: mahimahi's list of milliseconds, and a table of rates per second.

use std::fmt;
use std::fmt::Write as _;

use super::chances::{CHANCE, Trace};
use super::synth::Credit;

/// What is wrong with a trace, where, and the remedy. The code that reads the file adds its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceError {
    /// The line, counted from 1; `None` if the whole file is wrong.
    pub line: Option<u64>,
    /// What is wrong.
    pub what: String,
    /// The remedy.
    pub remedy: String,
}

impl TraceError {
    pub(super) fn at(line: u64, what: impl Into<String>, remedy: impl Into<String>) -> TraceError {
        TraceError { line: Some(line), what: what.into(), remedy: remedy.into() }
    }

    pub(super) fn whole(what: impl Into<String>, remedy: impl Into<String>) -> TraceError {
        TraceError { line: None, what: what.into(), remedy: remedy.into() }
    }
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        write!(f, "{}; {}", self.what, self.remedy)
    }
}

impl std::error::Error for TraceError {}

impl Trace {
    /// Reads a trace in either form. If the first line has a comma or a letter, it is the header of a table of rates.
    /// `column` names the column of rates; without it the table must have only one.
    ///
    /// # Errors
    /// Names the line, what is wrong with it, and the remedy.
    pub fn parse(file: &[u8], column: Option<&str>) -> Result<Trace, TraceError> {
        let first = file.split(|&byte| byte == b'\n').next().unwrap_or_default();
        if first.iter().any(|byte| *byte == b',' || byte.is_ascii_alphabetic()) {
            Trace::parse_rates(file, column)
        } else {
            Trace::parse_mahimahi(file)
        }
    }

    /// Reads mahimahi's form: each line is the millisecond of one chance to deliver 1500 bytes. Empty lines are
    /// ignored.
    ///
    /// # Errors
    /// Names the line, what is wrong with it, and the remedy.
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

    /// Reads a table of rates, one row per second: comma-separated, with a header. The rates are in a column whose name
    /// contains `mbps` (10⁶ bit/s); a column `time_s` counts the seconds.
    ///
    /// Each millisecond adds its share of the rate to a credit. Whenever the credit reaches 1500 bytes, there is a
    /// chance at the end of the millisecond.
    ///
    /// # Errors
    /// Names the line, what is wrong with it, and the remedy; a table of several rates needs `column`.
    pub fn parse_rates(file: &[u8], column: Option<&str>) -> Result<Trace, TraceError> {
        let mut rows = lines(file);
        let Some((header_line, header)) = rows.next() else { return Trace::from_times_ms(Vec::new()) };
        let names: Vec<String> = fields(header).map(|name| shown(name).to_lowercase()).collect();
        let rate_at = rate_column(&names, column)
            .map_err(|(what, remedy)| TraceError::at(header_line, what, remedy))?;
        let time_at = names.iter().position(|name| name == "time_s");
        let mut credit = Credit::default();
        let mut first_second = None;
        for (second, (line, row)) in rows.enumerate() {
            let number = |at: usize| {
                let field = fields(row).nth(at).unwrap_or_default();
                let value = std::str::from_utf8(field).ok().and_then(|text| text.trim().parse::<f64>().ok());
                value.filter(|value| value.is_finite()).ok_or_else(|| {
                    let what = format!("column `{}` holds `{}`, which is no number", names[at], shown(field));
                    TraceError::at(line, what, "give a decimal number")
                })
            };
            if let Some(time_at) = time_at {
                let time_s = number(time_at)?;
                let expected = *first_second.get_or_insert(time_s) + second as f64;
                if (time_s - expected).abs() > 1e-6 {
                    let what = format!("time_s is {time_s}, {expected} was expected");
                    return Err(TraceError::at(line, what, "give one row per second, without gaps"));
                }
            }
            let mbps = number(rate_at)?;
            if !(0.0..=1e6).contains(&mbps) {
                let what = format!("{} is {mbps}", names[rate_at]);
                return Err(TraceError::at(line, what, "give Mbit/s from 0 to a million"));
            }
            if credit.chances_in(mbps * 1e6, 1000) > Trace::MOST as f64 {
                let what = format!("the rates make more than {} chances", Trace::MOST);
                return Err(TraceError::at(line, what, "cut the table, or give smaller rates"));
            }
            credit.run(mbps * 1e6, 1000);
        }
        let times_ms = credit.into_times_ms();
        if times_ms.is_empty() {
            return Err(TraceError::whole(
                format!("column `{}` adds up to less than one packet", names[rate_at]),
                "a trace needs at least one chance to deliver; choose another column or file",
            ));
        }
        Trace::from_times_ms(times_ms)
    }

    /// The trace in mahimahi's form.
    pub fn to_mahimahi(&self) -> String {
        let mut text = String::with_capacity(self.times_ms().len() * 7);
        for time in self.times_ms() {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{time}");
        }
        text
    }

    /// The trace as a table of rates, one row per second; an incomplete second at the end counts as a whole one.
    pub fn to_rates_csv(&self) -> String {
        let mut text = String::from("time_s,mbps\n");
        let mut done = 0;
        for second in 0..self.period_ms().div_ceil(1000) {
            // A chance at the end of a millisecond belongs to the second that contains this millisecond.
            let end = self.times_ms().partition_point(|&time| time <= (second + 1) * 1000);
            let mbps = (end - done) as f64 * CHANCE.bits().0 as f64 * 1e-6;
            let _ = writeln!(text, "{second},{mbps:.3}");
            done = end;
        }
        text
    }
}

/// The lines that are not empty, trimmed, with their numbers. A byte-order mark is removed from the first.
pub(super) fn lines(file: &[u8]) -> impl Iterator<Item = (u64, &[u8])> {
    let file = file.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(file);
    let trimmed = file.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
    (1..).zip(trimmed).filter(|(_, text)| !text.is_empty())
}

pub(super) fn fields(row: &[u8]) -> impl Iterator<Item = &[u8]> {
    row.split(|&byte| byte == b',').map(<[u8]>::trim_ascii)
}

/// A piece of a file as an error message shows it.
pub(super) fn shown(text: &[u8]) -> String {
    String::from_utf8_lossy(text).chars().take(40).collect()
}

/// Reads a whole number of milliseconds; the error is the remedy.
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

/// The index of the column of rates; the error is what is wrong and the remedy.
fn rate_column(names: &[String], wanted: Option<&str>) -> Result<usize, (String, String)> {
    let rates: Vec<&str> = names.iter().map(String::as_str).filter(|name| name.contains("mbps")).collect();
    let (name, candidates) = match wanted {
        Some(wanted) => (wanted.to_lowercase(), names.join(", ")),
        None => match rates[..] {
            [only] => (only.to_owned(), String::new()),
            [] => {
                let remedy = "name the column of rates in Mbit/s with `mbps`, as in `time_s,mbps`".to_owned();
                return Err(("the header names no rate".to_owned(), remedy));
            }
            _ => {
                let remedy = format!("choose one of them by name: {}", rates.join(", "));
                return Err((format!("the header names {} rates", rates.len()), remedy));
            }
        },
    };
    names
        .iter()
        .position(|column| *column == name)
        .ok_or_else(|| (format!("there is no column `{name}`"), format!("choose one of: {candidates}")))
}
