//! What runs take from a recording: which part of it, and how its numbers were read.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use airpace_path::trace::chances::CHANCE;
use airpace_path::trace::{RateTable, Start, Trace};

use crate::document::TraceSource;

/// How runs use a trace that was read from a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Replay {
    /// The table of the scenario that names the file: `trace`, `trace.back`, `cellular.down.heavy`.
    pub table: String,
    /// The file; `-` is standard input.
    pub file: PathBuf,
    /// What was read, if the file is a table of rates.
    pub rates: Option<RateTable>,
    /// Where in the trace a run starts.
    pub start: Start,
    /// How long a run lasts, in seconds; `None` if only its programs end it.
    pub run_s: Option<f64>,
    /// The length of the trace, in seconds; after that, it repeats.
    pub trace_s: f64,
    /// Mean rate of the whole trace, in Mbit/s.
    pub mean_mbps: f64,
    /// Mean rate of the part that every run uses, in Mbit/s; `None` if the part differs from seed to seed or has no end.
    pub used_mbps: Option<f64>,
}

impl Replay {
    pub(crate) fn of(
        source: &TraceSource<'_>,
        file: &Path,
        trace: &Trace,
        rates: Option<RateTable>,
        run: Option<Duration>,
    ) -> Replay {
        // A start that is no time was refused when the scenario was checked.
        let from_ms = source.start_s.fixed_ms().ok().flatten();
        let used = from_ms
            .zip(run)
            .map(|(from_ms, run)| trace.mean_rate_in(from_ms, run.as_millis() as u64, CHANCE).as_mbps());
        Replay {
            table: source.table.to_owned(),
            file: file.to_owned(),
            rates,
            start: source.start_s,
            run_s: run.map(|run| run.as_secs_f64()),
            trace_s: trace.period_ms() as f64 * 1e-3,
            mean_mbps: trace.mean_rate(CHANCE).as_mbps(),
            used_mbps: used,
        }
    }
}

/// A sentence: "trace: uses 0-60 s of 105 s of FILE, 13.43 Mbit/s there and 9.57 Mbit/s in all".
impl fmt::Display for Replay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Replay { table, file, rates, start, run_s, trace_s, mean_mbps, used_mbps } = self;
        let name = match file.file_name() {
            Some(name) if file != Path::new("-") => name.to_string_lossy(),
            _ => "standard input".into(),
        };
        let (whole, mean) = (seconds(*trace_s), format!("{mean_mbps:.2} Mbit/s"));
        write!(f, "{table}: ")?;
        match (start, run_s) {
            (_, None) => write!(f, "{whole} s of {name}, again and again, {mean}")?,
            (Start::Random, Some(run_s)) => {
                let run = seconds(*run_s);
                write!(
                    f,
                    "each seed uses {run} s of {whole} s of {name} from an instant of its own, {mean} in all"
                )?;
            }
            (Start::AtS(start_s), Some(run_s)) => {
                let start_s = start_s % trace_s;
                let (from, to) = (seconds(start_s), seconds(start_s + run_s));
                write!(f, "uses {from}-{to} s of {whole} s of {name}")?;
                if start_s + run_s > *trace_s {
                    write!(f, ", which repeats")?;
                }
                match used_mbps {
                    Some(used) if format!("{used:.2}") != format!("{mean_mbps:.2}") => {
                        write!(f, ", {used:.2} Mbit/s there and {mean} in all")?;
                    }
                    _ => write!(f, ", {mean}")?,
                }
            }
        }
        rates.as_ref().map_or(Ok(()), |rates| write!(f, " ({rates})"))
    }
}

/// Seconds for people: at most one decimal.
fn seconds(value: f64) -> String {
    let tenths = (value * 10.0).round() / 10.0;
    format!("{tenths}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replay(start: Start, run_s: Option<f64>, used_mbps: Option<f64>) -> String {
        let file = PathBuf::from("traces/a.down");
        let table = "trace".to_owned();
        Replay { table, file, rates: None, start, run_s, trace_s: 105.0, mean_mbps: 9.57, used_mbps }
            .to_string()
    }

    #[test]
    fn a_sentence_says_which_part_is_used() {
        assert_eq!(
            replay(Start::AtS(0.0), Some(60.0), Some(13.43)),
            "trace: uses 0-60 s of 105 s of a.down, 13.43 Mbit/s there and 9.57 Mbit/s in all"
        );
        assert_eq!(
            replay(Start::AtS(80.0), Some(60.0), Some(9.57)),
            "trace: uses 80-140 s of 105 s of a.down, which repeats, 9.57 Mbit/s"
        );
        assert_eq!(
            replay(Start::Random, Some(60.0), None),
            "trace: each seed uses 60 s of 105 s of a.down from an instant of its own, 9.57 Mbit/s in all"
        );
        assert_eq!(
            replay(Start::AtS(0.0), None, None),
            "trace: 105 s of a.down, again and again, 9.57 Mbit/s"
        );
    }
}
