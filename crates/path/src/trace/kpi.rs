//! KPI trace: the bandwidth that a phone's modem reported, or could have reported, during the recording of a trace.
//!
//! Source: BISCAY §4 (a bandwidth trace generated from KPIs is replayed beside the trace of the link)

use std::fmt::Write as _;
use std::time::Duration;

use airpace_core::{Bytes, Rate};

use super::chances::{CHANCE, Trace};
use super::error::TraceError;
use super::text::{fields, lines, shown};

/// The columns of a KPI trace: the start time of a bandwidth, and the bandwidth.
const COLUMNS: [&str; 2] = ["time_ms", "bandwidth_mbps"];

/// Bandwidths granted to a modem. Each bandwidth holds from its start until the start of the next bandwidth.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KpiTrace {
    /// Start times (ms of the trace), rising from 0, and the bandwidth from each start time on.
    values: Vec<(u64, Rate)>,
}

impl KpiTrace {
    /// The bandwidth that would have been granted in each interval `every` of a trace, if the phone that recorded the
    /// trace always had data to send: the bytes delivered in that interval. The last interval ends with the trace.
    ///
    /// Source: BISCAY §3.2.2 (granted bytes, summed up every 100 ms)
    ///
    /// # Panics
    /// If `every` is less than a millisecond.
    pub fn of(trace: &Trace, every: Duration) -> KpiTrace {
        let every_ms = every.as_millis() as u64;
        assert!(every_ms > 0, "an interval is at least one millisecond");
        let period = trace.period_ms();
        let mut done = 0;
        let value = |start: u64| {
            let end = (start + every_ms).min(period);
            // An opportunity at the end of a millisecond belongs to the interval that contains this millisecond.
            let chances = trace.times_ms().partition_point(|&time| time <= end);
            let bytes = Bytes((chances - std::mem::replace(&mut done, chances)) as u64 * CHANCE.0);
            (start, Rate::from_bytes_per(bytes, Duration::from_millis(end - start)))
        };
        KpiTrace { values: (0..period).step_by(every_ms as usize).map(value).collect() }
    }

    /// A KPI trace from given values: the start millisecond of each bandwidth, and the bandwidth.
    ///
    /// # Panics
    /// If there are no values, or the start times do not rise from 0.
    pub fn new(values: Vec<(u64, Rate)>) -> KpiTrace {
        assert!(values.first().is_some_and(|(from, _)| *from == 0), "the first value holds from 0 on");
        assert!(values.windows(2).all(|pair| pair[0].0 < pair[1].0), "times rise");
        KpiTrace { values }
    }

    /// Reads a table with the header `time_ms,bandwidth_mbps`; other columns are ignored. Times are whole milliseconds
    /// that rise from 0; bandwidths are in 10⁶ bit/s.
    ///
    /// # Errors
    /// The file is invalid; the error names the line, the problem, and the remedy.
    pub fn parse(file: &[u8]) -> Result<KpiTrace, TraceError> {
        let header_like = "give a table that begins with the line `time_ms,bandwidth_mbps`";
        let mut rows = lines(file);
        let Some((header_line, header)) = rows.next() else {
            return Err(TraceError::whole("the KPI trace is empty", header_like));
        };
        let names: Vec<String> = fields(header).map(|name| shown(name).to_lowercase()).collect();
        let place = |column: &str| {
            let missing =
                || TraceError::at(header_line, format!("there is no column `{column}`"), header_like);
            let mut named = (0..names.len()).filter(|&at| names[at] == column);
            let at = named.next().ok_or_else(missing)?;
            match named.next() {
                Some(_) => {
                    let what = format!("there are two columns `{column}`");
                    Err(TraceError::at(header_line, what, "remove or rename one of them"))
                }
                None => Ok(at),
            }
        };
        let [time_at, bandwidth_at] = [place(COLUMNS[0])?, place(COLUMNS[1])?];
        let mut values: Vec<(u64, Rate)> = Vec::new();
        for (line, row) in rows {
            let field = |at: usize| shown(fields(row).nth(at).unwrap_or_default());
            let refuse = |at: usize, remedy: &str| {
                let what = format!("column `{}` holds `{}`", names[at], field(at));
                TraceError::at(line, what, remedy)
            };
            let time_ms = field(time_at).parse::<u64>();
            let time_ms = time_ms.map_err(|_| refuse(time_at, "times are whole milliseconds, 0 or more"))?;
            match values.last() {
                None if time_ms != 0 => {
                    return Err(refuse(time_at, "the first value holds from 0 on; subtract the first time"));
                }
                Some(&(before, _)) if time_ms <= before => {
                    let remedy = format!("times rise, and the one before is {before}; sort the rows");
                    return Err(refuse(time_at, &remedy));
                }
                _ => {}
            }
            let mbps = field(bandwidth_at).parse::<f64>().ok().filter(|mbps| (0.0..=1e6).contains(mbps));
            let mbps = mbps.ok_or_else(|| refuse(bandwidth_at, "give Mbit/s from 0 to a million"))?;
            values.push((time_ms, Rate::from_mbps(mbps)));
        }
        if values.is_empty() {
            let remedy = "give at least one row, as in `0,12.5`";
            return Err(TraceError::whole("the KPI trace has a header and nothing else", remedy));
        }
        Ok(KpiTrace { values })
    }

    /// The table in the format of [`KpiTrace::parse`].
    pub fn to_csv(&self) -> String {
        let mut text = COLUMNS.join(",");
        text.push('\n');
        for (time_ms, bandwidth) in &self.values {
            // Writing to a string cannot fail. The rate is divided by a million, not multiplied by a millionth, so that
            // 5,400,000 becomes 5.4 exactly.
            let _ = writeln!(text, "{time_ms},{}", bandwidth.as_bps() as f64 / 1e6);
        }
        text
    }

    /// The bandwidths, each with its start millisecond. The start times rise from 0, and the list is never empty.
    pub fn values(&self) -> &[(u64, Rate)] {
        &self.values
    }

    /// The bandwidth in millisecond `ms` of the trace.
    pub fn bandwidth_at(&self, ms: u64) -> Rate {
        let after = self.values.partition_point(|&(from, _)| from <= ms);
        self.values[after - 1].1
    }
}

#[cfg(test)]
mod tests {
    use airpace_core::remedy::explain_plainly;

    use super::*;

    fn refusal(text: &str) -> String {
        explain_plainly(&KpiTrace::parse(text.as_bytes()).expect_err("must be refused"))
    }

    #[test]
    fn each_value_holds_until_the_next() {
        let kpi = KpiTrace::parse(b"time_ms,bandwidth_mbps\n0,12.5\n100,0\n250,30\n").unwrap();
        let mbps: Vec<f64> = [0, 99, 100, 249, 250, 9999].map(|ms| kpi.bandwidth_at(ms).as_mbps()).to_vec();
        assert_eq!(mbps, [12.5, 12.5, 0.0, 0.0, 30.0, 30.0]);
    }

    #[test]
    fn columns_are_found_by_name_among_others() {
        let kpi =
            KpiTrace::parse(b"\xEF\xBB\xBFcell, Bandwidth_Mbps ,time_ms\r\n7,3,0\r\n\r\n7,4,20\r\n").unwrap();
        assert_eq!(kpi.values().len(), 2);
        assert_eq!(kpi.bandwidth_at(20).as_mbps(), 4.0);
    }

    #[test]
    fn granted_bytes_of_a_trace_add_up_to_the_trace() {
        // The trace has one opportunity per ms for 100 ms (12 Mbit/s), then one every other ms for 50 ms (6 Mbit/s).
        let times: Vec<u64> = (1..=100).chain((102..=150).step_by(2)).collect();
        let trace = Trace::from_times_ms(times).unwrap();
        let kpi = KpiTrace::of(&trace, Duration::from_millis(100));
        assert_eq!(kpi.to_csv(), "time_ms,bandwidth_mbps\n0,12\n100,6\n", "the last 50 ms count as 50 ms");
        assert_eq!(KpiTrace::parse(kpi.to_csv().as_bytes()), Ok(kpi));
        let fine = KpiTrace::of(&trace, Duration::from_millis(1));
        assert_eq!(fine.values().len(), 150);
        assert_eq!(fine.bandwidth_at(100).as_mbps(), 0.0, "no chance at 101 ms");
        assert_eq!(fine.bandwidth_at(101).as_mbps(), 12.0);
    }

    #[test]
    fn every_refusal_names_line_and_remedy() {
        let refusals = [
            refusal(""),
            refusal("0,12\n100,3\n"),
            refusal("time_ms,mbps\n0,12\n"),
            refusal("time_ms,bandwidth_mbps\n"),
            refusal("time_ms,bandwidth_mbps\n5,12\n"),
            refusal("time_ms,bandwidth_mbps\n0,12\n100,13\n100,14\n"),
            refusal("time_ms,bandwidth_mbps\n0,12\n0.5,13\n"),
            refusal("time_ms,bandwidth_mbps\n0,-1\n"),
            refusal("time_ms,bandwidth_mbps\n0,NaN\n"),
            refusal("time_ms,bandwidth_mbps\n0\n"),
        ];
        insta::assert_snapshot!(refusals.join("\n"));
    }
}
