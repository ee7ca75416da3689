//! Use of a recording by runs: the part that runs use, and the interpretation of the recording's numbers.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use airpace_path::trace::chances::CHANCE;
use airpace_path::trace::{KpiTrace, RateTable, Start, Trace};

use crate::document::TraceSource;

/// Use of a recording from a file by runs. Its `Display` text is a human-readable sentence.
#[derive(Clone, Debug, PartialEq)]
pub enum Replay {
    /// A trace of a link.
    Trace(TraceReplay),
    /// A KPI trace that ends before the trace of its link.
    Kpi(KpiReplay),
}

impl fmt::Display for Replay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Replay::Trace(replay) => replay.fmt(f),
            Replay::Kpi(replay) => replay.fmt(f),
        }
    }
}

/// Use of a KPI trace that ends before the trace of its link.
#[derive(Clone, Debug, PartialEq)]
pub struct KpiReplay {
    /// The KPI trace's file.
    pub file: PathBuf,
    /// End of the KPI trace's last value in seconds, if this value holds for as long as the previous values.
    pub kpi_s: f64,
    /// The length of the link's trace, in seconds: the KPI trace's last value holds until the end of the link's trace.
    pub trace_s: f64,
    /// The KPI trace's last value, in Mbit/s.
    pub last_mbps: f64,
}

impl KpiReplay {
    /// Returns `None` if the KPI trace's last value holds for no longer than some value before it: then the KPI trace
    /// is as long as the link's trace.
    pub(crate) fn of(file: &Path, kpi: &KpiTrace, trace: &Trace) -> Option<KpiReplay> {
        let &(last_ms, last) = kpi.values().last()?;
        let spans = kpi.values().windows(2).map(|pair| pair[1].0 - pair[0].0);
        let span_ms = spans.max()?;
        (last_ms + span_ms < trace.period_ms()).then(|| KpiReplay {
            file: file.to_owned(),
            kpi_s: (last_ms + span_ms) as f64 * 1e-3,
            trace_s: trace.period_ms() as f64 * 1e-3,
            last_mbps: last.as_mbps(),
        })
    }
}

impl fmt::Display for KpiReplay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let KpiReplay { file, kpi_s, trace_s, last_mbps } = self;
        write!(
            f,
            "trace.kpi: {} has values for 0-{} s of the {} s of the trace; after that its last, {last_mbps:.2} Mbit/s, \
             holds until the trace repeats",
            name_of(file),
            seconds(*kpi_s),
            seconds(*trace_s)
        )
    }
}

/// A file's name for messages.
fn name_of(file: &Path) -> std::borrow::Cow<'_, str> {
    match file.file_name() {
        Some(name) if file != Path::new("-") => name.to_string_lossy(),
        _ => "standard input".into(),
    }
}

/// Use of a trace from a file by runs.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceReplay {
    /// The scenario's table with the file: `trace`, `trace.back`, `cellular.down.heavy`.
    pub table: String,
    /// The trace's file; `-` is standard input.
    pub file: PathBuf,
    /// Properties of the table, if the file is a table of rates.
    pub rates: Option<RateTable>,
    /// Start of a run within the trace.
    pub start: Start,
    /// Duration of a run, in seconds; `None` if only the run's programs end it.
    pub run_s: Option<f64>,
    /// The length of the trace, in seconds; after this time, the trace repeats.
    pub trace_s: f64,
    /// Mean rate of the whole trace, in Mbit/s.
    pub mean_mbps: f64,
    /// Mean rate of the part of the trace that every run uses, in Mbit/s; `None` if this part depends on the seed or
    /// has no end.
    pub used_mbps: Option<f64>,
}

impl TraceReplay {
    pub(crate) fn of(
        source: &TraceSource<'_>,
        file: &Path,
        trace: &Trace,
        rates: Option<RateTable>,
        run: Option<Duration>,
    ) -> TraceReplay {
        // An invalid start was rejected when the scenario was validated.
        let from_ms = source.start_s.fixed_ms().ok().flatten();
        let used = from_ms
            .zip(run)
            .map(|(from_ms, run)| trace.mean_rate_in(from_ms, run.as_millis() as u64, CHANCE).as_mbps());
        TraceReplay {
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

/// Writes a sentence: "trace: uses 0-60 s of 105 s of FILE, 13.43 Mbit/s there and 9.57 Mbit/s in all".
impl fmt::Display for TraceReplay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TraceReplay { table, file, rates, start, run_s, trace_s, mean_mbps, used_mbps } = self;
        let name = name_of(file);
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

/// Formats seconds for messages, with at most one decimal.
fn seconds(value: f64) -> String {
    let tenths = (value * 10.0).round() / 10.0;
    format!("{tenths}")
}

#[cfg(test)]
mod tests {
    use airpace_core::Rate;

    use super::*;

    fn replay(start: Start, run_s: Option<f64>, used_mbps: Option<f64>) -> String {
        let file = PathBuf::from("traces/a.down");
        let table = "trace".to_owned();
        TraceReplay { table, file, rates: None, start, run_s, trace_s: 105.0, mean_mbps: 9.57, used_mbps }
            .to_string()
    }

    #[test]
    fn a_kpi_trace_that_ends_before_its_trace_is_reported() {
        let trace = Trace::from_times_ms((1..=60_000).collect()).unwrap();
        let kpi = |values: &[u64]| {
            let rate = |&ms: &u64| (ms, Rate::from_mbps(ms as f64 * 1e-3));
            KpiTrace::new(values.iter().map(rate).collect())
        };
        let replay = |values: &[u64]| KpiReplay::of(Path::new("a/phone.csv"), &kpi(values), &trace);
        assert_eq!(
            replay(&[0, 1000, 2000, 3000, 4000]).unwrap().to_string(),
            "trace.kpi: phone.csv has values for 0-5 s of the 60 s of the trace; after that its last, 4.00 Mbit/s, holds \
             until the trace repeats"
        );
        assert_eq!(replay(&[0, 30_000]), None, "the second value holds as long as the first");
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
