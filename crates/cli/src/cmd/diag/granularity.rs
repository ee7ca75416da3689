//! `airpace diag granularity`: measures the interval between KPIs, their latency, and the CPU cost.

mod emulator;
mod measure;
mod page;

use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use airpace_eval::folder::Host;
use serde_json::{Value, json};

use super::port::{DRAIN, parse_drain, parse_duration};
use crate::cmd::{Verdict, outputs};
use crate::terminal::{Paint, Table, count, progress};
use emulator::Load;
use measure::{Outcome, Percentiles};

/// Maximum interval between KPIs with draining that meets the goal (ms).
///
/// Source: BISCAY §5.1 Fig. 4a (one millisecond for the drain, ten for the modem's own report)
const GAP_GOAL_MS: f64 = 11.0;
/// Bounds of the interval between KPIs without draining, relative to the time for which the modem keeps packets.
///
/// Source: BISCAY §5.1 Fig. 4a (about a second, for a modem that keeps them so long)
const BUFFERED_GOAL: [f64; 2] = [0.9, 1.1];
/// Maximum latency from arrival to reader that meets the goal (µs): median and 99 %.
const LATENCY_GOALS_US: [f64; 2] = [50.0, 1_000.0];
/// Maximum share of a core for the daemon at 1,000 packets per second, in percent.
const CPU_GOAL_PERCENT: f64 = 2.0;

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

/// A goal, and the value that was measured.
struct Goal {
    what: &'static str,
    found: f64,
    at_least: Option<f64>,
    at_most: f64,
}

impl Goal {
    fn is_met(&self) -> bool {
        self.at_least.is_none_or(|bound| bound <= self.found) && self.found <= self.at_most
    }

    /// The bounds of the value, as text.
    fn bounds(&self) -> String {
        match self.at_least {
            Some(least) => format!("{least} to {}", self.at_most),
            None => format!("at most {}", self.at_most),
        }
    }
}

/// Runs the measurements.
pub fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<Verdict> {
    let began = Instant::now();
    let command = std::env::args().skip(1).fold("airpace".to_owned(), |line, word| format!("{line} {word}"));
    let mut host = Host::here(&command, 2);
    let load = Load { packets_per_s: args.load, hold: args.buffer, seed: args.seed };
    let bar = progress(args.json);
    bar.set_length(2 * args.span.as_millis() as u64);
    let mut outcomes = vec![];
    for (at, drains) in [true, false].into_iter().enumerate() {
        bar.set_message(if drains { "with draining" } else { "without draining" });
        let tick = |done: Duration| bar.set_position((args.span * at as u32 + done).as_millis() as u64);
        outcomes.push(measure::measure(
            &load,
            drains.then_some(&*args.drain),
            args.span,
            args.realtime,
            tick,
        )?);
    }
    bar.finish_and_clear();
    let goals = goals(&outcomes, args.buffer);
    host.wall_ms = began.elapsed().as_millis() as u64;
    let summary = summary(&outcomes, &goals);
    if let Some(folder) = &args.out {
        outputs::folder("--out", folder)?;
        let manifest = json!({
            "version": env!("CARGO_PKG_VERSION"),
            "complete": true,
            "command": command,
            "seed": args.seed,
            "packets_per_s": args.load,
            "buffer_s": args.buffer.as_secs_f64(),
            "span_s": args.span.as_secs_f64(),
            "host": host,
        });
        let write = |name: &str, text: String| outputs::write("--out", &folder.join(name), text);
        write("readings.csv", measure::as_csv(&outcomes))?;
        write("summary.json", format!("{summary:#}\n"))?;
        write("report.html", page::page(&outcomes, &goals, &manifest))?;
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

fn goals(outcomes: &[Outcome], buffer: Duration) -> Vec<Goal> {
    let [drained, buffered] = outcomes else { unreachable!("two measurements") };
    let at_most = |what, found, at_most| Goal { what, found, at_least: None, at_most };
    let (gap, latency) = (drained.gaps_ms(), drained.latencies_us());
    let [least, most] = BUFFERED_GOAL.map(|share| (share * buffer.as_secs_f64() * 1e3).round());
    vec![
        at_most("ms between RSRPs with draining, 90 %", gap.p90, GAP_GOAL_MS),
        at_most("ms between RSRPs with draining, 99 %", gap.p99, GAP_GOAL_MS),
        Goal {
            what: "ms between RSRPs without, median",
            found: buffered.gaps_ms().p50,
            at_least: Some(least),
            at_most: most,
        },
        at_most("µs from arrival to reader, median", latency.p50, LATENCY_GOALS_US[0]),
        at_most("µs from arrival to reader, 99 %", latency.p99, LATENCY_GOALS_US[1]),
        at_most("% of a core for the daemon", drained.cpu_percent, CPU_GOAL_PERCENT),
    ]
}

fn summary(outcomes: &[Outcome], goals: &[Goal]) -> Value {
    let percentiles = |of: &Percentiles| json!({"p50": of.p50, "p90": of.p90, "p99": of.p99, "max": of.max, "count": of.count});
    let outcome = |outcome: &Outcome| {
        json!({
            "drains": outcome.drains,
            "gap_ms": percentiles(&outcome.gaps_ms()),
            "arrival_to_reader_us": percentiles(&outcome.latencies_us()),
            "modem_to_reader_ms": percentiles(&outcome.ages_ms()),
            "cpu_percent": outcome.cpu_percent,
            "wakes_per_s": outcome.wakes_per_s,
            "packets_per_s": outcome.packets_per_s,
            "drains_per_s": outcome.drains_per_s,
            "is_realtime": outcome.is_realtime,
        })
    };
    let goals: Vec<_> = goals
        .iter()
        .map(|goal| {
            json!({
                "what": goal.what, "found": goal.found, "at_least": goal.at_least, "at_most": goal.at_most,
                "met": goal.is_met(),
            })
        })
        .collect();
    json!({"measurements": outcomes.iter().map(outcome).collect::<Vec<_>>(), "goals": goals})
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
