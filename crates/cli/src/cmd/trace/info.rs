//! `airpace trace info`: prints the length, the rates and the longest outage of a trace.

use std::io::Write;
use std::path::PathBuf;

use super::Verdict;

/// Prints the length, the rates and the longest outage of a trace.
#[derive(clap::Args)]
#[command(
    before_help = "Example: airpace trace info TMobile-LTE-short.down\n         airpace trace info rates.csv --json"
)]
pub struct Args {
    /// The trace; `-` is standard input.
    trace: PathBuf,
    /// The column of rates, with its unit if the name contains none: `DL_bitrate:kbps`.
    #[arg(long, value_name = "NAME[:UNIT]")]
    column: Option<String>,
    /// Prints one JSON object.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<Verdict> {
    let info = super::read_trace(&args.trace, args.column.as_deref())?.info();
    if args.json {
        writeln!(out, "{}", serde_json::to_string(&info)?)?;
        return Ok(Verdict::Fine);
    }
    writeln!(out, "length                {:.3} s", info.seconds)?;
    writeln!(out, "opportunities         {} of 1500 bytes", info.opportunities)?;
    writeln!(out, "mean rate             {:.3} Mbit/s", info.mean_mbps)?;
    writeln!(out, "deviation over 1 s    {:.3} Mbit/s", info.sd_1s_mbps)?;
    writeln!(out, "seconds < 0.1 Mbit/s  {}", info.seconds_below_100_kbps)?;
    writeln!(out, "longest hole          {:.3} s", info.longest_hole_s)?;
    Ok(Verdict::Fine)
}
