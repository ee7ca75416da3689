//! `airpace trace convert`: converts a trace from one format to the other.

use std::io::Write;
use std::path::PathBuf;

use super::Verdict;
use crate::terminal::say;

/// Converts a trace between mahimahi's format and a CSV table of rates per second.
///
/// A table of rates has a resolution of one second: a conversion from mahimahi's format to a table and back does not
/// restore the original trace.
#[derive(clap::Args)]
#[command(before_help = "Example: airpace trace convert rates.csv --to mahimahi --out rates.down\n         \
                         airpace trace convert TMobile-LTE-short.down --to csv > rates.csv")]
pub struct Args {
    /// The trace, in either format; `-` is standard input.
    trace: PathBuf,
    /// The format to write.
    #[arg(long, value_enum)]
    to: Form,
    /// The column of rates, with its unit if the name contains none: `DL_bitrate:kbps`.
    #[arg(long, value_name = "NAME[:UNIT]")]
    column: Option<String>,
    /// The file to write; `-` is standard output.
    #[arg(long, value_name = "FILE", default_value = "-")]
    out: PathBuf,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Form {
    /// One line per delivery opportunity of 1500 bytes: its time in ms.
    Mahimahi,
    /// Columns `time_s,mbps`, one row per second.
    Csv,
}

/// Runs the command.
pub fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<Verdict> {
    super::check_out(&args.out, std::slice::from_ref(&args.trace))?;
    let trace = super::read_trace(&args.trace, args.column.as_deref())?;
    let text = match args.to {
        Form::Mahimahi => {
            if let lost_ms @ 1.. = trace.final_outage_ms() {
                say(format_args!(
                    "the last {:.3} s have no delivery opportunity and are left out: a trace in mahimahi's form ends with an opportunity",
                    lost_ms as f64 * 1e-3
                ));
            }
            trace.to_mahimahi()
        }
        Form::Csv => trace.to_rates_csv(),
    };
    super::write_text(&args.out, out, &text)?;
    Ok(Verdict::Fine)
}
