//! `airpace trace kpi`: derives the KPIs that a phone's modem would have reported about a recorded link.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use airpace_path::trace::KpiTrace;
use serde_json::json;

use super::Verdict;

/// Derives a KPI trace from a trace: the granted bandwidth in each interval, as a modem reports it.
///
/// The result is a CSV table with the columns `time_ms,bandwidth_mbps`. A scheme that reads the modem (biscay) can run over
/// the trace with this table: `airpace sim trace --set trace=FILE --set trace.kpi=KPI`.
#[derive(clap::Args)]
#[command(
    before_help = "Example: airpace trace kpi TMobile-LTE-short.up --out TMobile-LTE-short.kpi.csv\n         \
                         airpace trace kpi made.up --every-ms 10 > made.kpi.csv"
)]
pub struct Args {
    /// The trace, in either format; `-` is standard input.
    trace: PathBuf,
    /// Interval between the modem's reports, in milliseconds.
    #[arg(long, value_name = "MS", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=3_600_000))]
    every_ms: u32,
    /// The column of rates, with its unit if the name contains none: `DL_bitrate:kbps`.
    #[arg(long, value_name = "NAME[:UNIT]")]
    column: Option<String>,
    /// The file to write; `-` is standard output.
    #[arg(long, value_name = "FILE", default_value = "-")]
    out: PathBuf,
    /// Prints one JSON object that summarises the KPI trace; requires a file as --out.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<Verdict> {
    if args.json && args.out == Path::new("-") {
        anyhow::bail!(
            "standard output cannot hold both the table and --json; give --out a file for the table"
        );
    }
    super::check_out(&args.out, std::slice::from_ref(&args.trace))?;
    let trace = super::read_trace(&args.trace, args.column.as_deref())?;
    let kpi = KpiTrace::of(&trace, Duration::from_millis(args.every_ms.into()));
    super::write_text(&args.out, out, &kpi.to_csv())?;
    if args.json {
        let mbps = || kpi.values().iter().map(|(_, bandwidth)| bandwidth.as_mbps());
        let object = json!({
            "every_ms": args.every_ms,
            "values": kpi.values().len(),
            "seconds": trace.period_ms() as f64 * 1e-3,
            "mean_mbps": trace.info().mean_mbps,
            "least_mbps": mbps().fold(f64::INFINITY, f64::min),
            "most_mbps": mbps().fold(0.0, f64::max),
            "out": args.out,
        });
        writeln!(out, "{object}")?;
    }
    Ok(Verdict::Fine)
}
