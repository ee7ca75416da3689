//! `airpace diag granularity`: measures the interval between KPIs, their latency, and the CPU cost.

use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use airpace_lab::Executable;
use airpace_lab::granularity::{self, Goal, Granularity, Load, Outcome, Percentiles, Request};
use airpace_run::Host;
use serde_json::json;

use super::port::{DRAIN, parse_drain, parse_duration};
use crate::cmd::{Verdict, outputs};
use crate::terminal::{Paint, Table, count, progress};

/// Measures the interval between values of a KPI, their latency, and the daemon's CPU use.
///
/// The measurement uses an emulated modem that keeps packets for a second, with draining and without. The modem reports
/// RSRP every ten milliseconds, and the grants of a busy phone. The daemon runs as a separate process, and a program reads
/// RSRP through libOD.
///
/// Exits with 1 if a goal is not met. The goals with draining are: 90 % and 99 % of the intervals between RSRP values are at
/// most 11 ms; the latency from arrival to the reader is at most 50 µs in the median, and at most 1 ms for 99 % of the
/// values; the daemon takes at most 2 % of a core. The goal without draining is: the median interval equals the time for
/// which the modem keeps packets, within 10 %. Other programs on the machine affect the results: check its load.
#[derive(clap::Args)]
#[command(before_help = "Example: airpace diag granularity --out granularity")]
pub struct Args {
    /// Writes the results to a folder: manifest.json, summary.json, readings.csv, report.html.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Duration of each of the two measurements.
    #[arg(long = "for", value_name = "TIME", default_value = "10s", value_parser = parse_duration)]
    span: Duration,
    /// Packets per second, RSRP included.
    #[arg(long, value_name = "COUNT", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(100..=20_000))]
    load: u32,
    /// Number of kinds of packets that the daemon reads, one KPI from each: RSRP, grants, then others.
    #[arg(long, value_name = "COUNT", default_value_t = 2, value_parser = kinds)]
    kinds: usize,
    /// Time for which the modem keeps packets.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse_duration)]
    buffer: Duration,
    /// Interval between drains in the first measurement.
    #[arg(long, value_name = "EVERY", default_value = DRAIN, value_parser = drain_text)]
    drain: String,
    /// Seed of the modem's values.
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
    /// Runs the daemon with real-time priority and locked memory.
    #[arg(long)]
    realtime: bool,
    /// Prints the results as JSON.
    #[arg(long)]
    json: bool,
}

/// Parses the interval between drains, in the syntax of `airpace diag serve`. The value `off` is rejected, because the
/// first measurement uses draining.
fn drain_text(text: &str) -> Result<String, String> {
    match parse_drain(text)?.0 {
        Some(_) => Ok(text.to_owned()),
        None => Err("the first measurement drains; the second does not".to_owned()),
    }
}

/// Parses the number of kinds of packets.
fn kinds(text: &str) -> Result<usize, String> {
    let most = granularity::number_of_kinds();
    let kinds = text.parse::<usize>().ok().filter(|kinds| (1..=most).contains(kinds));
    kinds.ok_or_else(|| {
        format!("give a number from 1 to {most}, which is the number of kinds that the modem can send")
    })
}

/// Runs the measurements.
pub fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<Verdict> {
    let began = Instant::now();
    let command = std::env::args().skip(1).fold("airpace".to_owned(), |line, word| format!("{line} {word}"));
    let mut host = Host::here(&command, 2);
    let request = Request {
        load: Load { packets_per_s: args.load, hold: args.buffer, seed: args.seed, kinds: args.kinds },
        drain: args.drain.clone(),
        span: args.span,
        wants_realtime: args.realtime,
    };
    let bar = progress(args.json);
    bar.set_length(2 * args.span.as_millis() as u64);
    let tick = |drains: bool, done: Duration| {
        bar.set_message(if drains { "with draining" } else { "without draining" });
        let before = if drains { Duration::ZERO } else { args.span };
        bar.set_position((before + done).as_millis() as u64);
    };
    let measured = granularity::measure(&Executable::this()?, &request, &tick)?;
    let Granularity { outcomes, goals } = measured;
    bar.finish_and_clear();
    host.wall_ms = began.elapsed().as_millis() as u64;
    let summary = granularity::summary(&outcomes, &goals);
    if let Some(folder) = &args.out {
        outputs::folder("--out", folder)?;
        let manifest = json!({
            "version": env!("CARGO_PKG_VERSION"),
            "complete": true,
            "command": command,
            "seed": args.seed,
            "packets_per_s": args.load,
            "kinds": args.kinds,
            "buffer_s": args.buffer.as_secs_f64(),
            "span_s": args.span.as_secs_f64(),
            "host": host,
        });
        let write = |name: &str, text: String| outputs::write("--out", &folder.join(name), text);
        write("readings.csv", granularity::as_csv(&outcomes))?;
        write("summary.json", format!("{summary:#}\n"))?;
        write("report.html", granularity::page(&outcomes, &goals, &manifest))?;
        write("manifest.json", format!("{manifest:#}\n"))?;
    }
    if args.json {
        writeln!(out, "{summary:#}")?;
    } else {
        print(&outcomes, &goals, &host, out)?;
        if let Some(folder) = &args.out {
            writeln!(out, "\nThe report: {}", folder.join("report.html").display())?;
        }
    }
    Ok(if goals.iter().all(Goal::is_met) { Verdict::Fine } else { Verdict::Failed })
}

fn print(outcomes: &[Outcome], goals: &[Goal], host: &Host, out: &mut dyn Write) -> anyhow::Result<()> {
    let paint = Paint::stdout();
    let mut table = Table::new(&["", "median", "90 %", "99 %", "max"], 1);
    for outcome in outcomes {
        let how = if outcome.drains { "with draining" } else { "without" };
        let mut row = |what: &str, of: Percentiles, digits: usize| {
            let cells = [of.p50, of.p90, of.p99, of.max].map(|cell| format!("{cell:.digits$}"));
            table.row([vec![format!("{what}, {how}")], cells.to_vec()].concat());
        };
        row("ms between RSRPs", outcome.gaps_ms(), 2);
        row("µs from arrival to reader", outcome.latencies_us(), 1);
        row("ms from modem to reader", outcome.ages_ms(), 2);
    }
    table.write(out, paint)?;
    for outcome in outcomes {
        writeln!(
            out,
            "\n{}: {:.0} packets/s, {:.0} drains/s, {:.0} wake-ups/s, the daemon takes {:.2} % of a core{}",
            if outcome.drains { "With draining" } else { "Without" },
            outcome.packets_per_s,
            outcome.drains_per_s,
            outcome.wakes_per_s,
            outcome.cpu_percent,
            if outcome.is_realtime { " (real-time priority)" } else { "" },
        )?;
    }
    let load = host.load_milli as f64 / 1_000.0;
    writeln!(out, "\n{}, load {load:.1} before it began\n", count(host.processors as u64, "processor"))?;
    for goal in goals {
        let verdict = if goal.is_met() { paint.good("met") } else { paint.bad("not met") };
        writeln!(out, "{verdict}: {} {:.2}, goal {}", goal.what, goal.found, goal.bounds())?;
    }
    Ok(())
}
