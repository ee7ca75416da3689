//! `airpace trace check`: compares Airpace's trace link with a log of mahimahi's mm-link.

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use airpace_path::trace::mmlink::Log;
use anyhow::Context;
use serde_json::json;

use super::Verdict;
use crate::terminal::count;

/// Replays the arrivals of a mahimahi log over Airpace's trace link and lists differing departures and drops.
///
/// Exits with 1 if there is a difference. The queue is configured as in the log's header.
#[derive(clap::Args)]
#[command(before_help = "Example: airpace trace check uplink.log.gz --trace TMobile-LTE-short.down")]
pub struct Args {
    /// The log of mm-link (--uplink-log, --downlink-log), possibly compressed by gzip; `-` is standard input.
    log: PathBuf,
    /// The trace that mm-link replayed.
    #[arg(long, value_name = "FILE")]
    trace: PathBuf,
    /// Prints one JSON object.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<Verdict> {
    let name = args.log.display();
    let text = String::from_utf8(super::read_bytes(&args.log)?)
        .ok()
        .with_context(|| format!("`{name}` is not text; give a log that mm-link wrote"))?;
    let log = Log::parse(&text).with_context(|| name.to_string())?;
    let trace = super::read_trace(&args.trace, None)?;
    let comparison =
        log.compare(Arc::new(trace)).with_context(|| format!("{name}: the queue in its head"))?;

    let differences = &comparison.differences;
    if args.json {
        let object = json!({
            "departures": comparison.departures,
            "drops": comparison.drops,
            "differences": differences.iter().map(ToString::to_string).collect::<Vec<_>>(),
        });
        writeln!(out, "{object}")?;
    } else {
        for difference in differences {
            writeln!(out, "{difference}")?;
        }
        let verdict = match differences.len() {
            0 => "our link did the same".to_owned(),
            many => count(many as u64, "difference"),
        };
        writeln!(
            out,
            "{} and {} in the log: {verdict}",
            count(comparison.departures, "departure"),
            count(comparison.drops, "drop"),
        )?;
    }
    Ok(if differences.is_empty() { Verdict::Fine } else { Verdict::Failed })
}
