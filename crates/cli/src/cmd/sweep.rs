//! `airpace sweep`: runs a scenario for all combinations of keys' values, schemes and seeds, and writes one dataset of
//! all results.

use std::fmt::Write as _;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Duration;

use airpace_core::Refused;
use airpace_lab::machine;
use airpace_page::sweep::SweepPage;
use airpace_run::comparison::Tally;
use airpace_run::flows::{FlowRow, metric_names};
use airpace_run::numbers::shown;
use airpace_run::seeds::Seeds;
use airpace_run::sweep::{self, Axis, Cell, Estimate, Plan, Spec, Sweep, SweepOutcome};
use airpace_run::{Host, RunError, shell};
use airpace_sim::Variants;
use anyhow::bail;
use indicatif::{DecimalBytes, HumanDuration};
use serde_json::{Map, Value, json};

use super::matrix::command_as_typed;
use super::{Verdict, complete};
use crate::called;
use crate::explain::explained;
use crate::terminal::{self, Paint, Table, columns, count, fit, hang, thousands};

/// Runs a scenario for every combination of keys' values, schemes and seeds.
///
/// The sweep folder contains one Parquet dataset with a row per flow of each run, failures.json, and report.html with heat
/// maps. After an interruption, the same command continues the sweep: completed runs are identified by a hash of version,
/// scenario, scheme and seed. The same matrix gives the same bytes for any --jobs. A failed run is listed in failures.json
/// and does not stop the other runs; the exit code is then 1.
#[derive(clap::Args)]
#[command(
    before_help = "Example: airpace sweep stationary-idle --set cell.prbs=25,50,100 --set flow.0.rtt_ms=10..300/8 \
                   --scheme pbe,bbr --seeds 1..20\n         airpace sweep FILE.toml --dry-run"
)]
pub struct Args {
    /// A name from `airpace list scenarios`, the TOML file of a scenario, or the TOML file of a sweep.
    #[arg(add = complete::scenario())]
    what: String,
    /// Values of a key, such as `25,50,100` or `1..4`; may be given several times.
    ///
    /// `1..4` stands for the integers from 1 to 4, `10..300/8` for 8 evenly spaced values from 10 to 300, and `1..100/5log`
    /// for 5 logarithmically spaced values from 1 to 100.
    #[arg(long, value_name = "KEY=VALUES", value_parser = axis, add = complete::key())]
    set: Vec<Axis>,
    /// Schemes, separated by commas, as for `airpace sim`; `all` is every scheme [default: those of the scenario]
    #[arg(long = "scheme", value_name = "SCHEMES", value_delimiter = ',', add = complete::schemes())]
    schemes: Vec<String>,
    /// Seeds of the random numbers: `1`, `1..20` (both included) or `1,3,7`. [default: 1]
    #[arg(long, value_name = "SEEDS")]
    seeds: Option<Seeds>,
    /// Number of parallel runs; results do not depend on it. [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,
    /// The sweep folder; completed runs of an earlier sweep in it are reused. [default: sweeps/NAME-HASH, with a hash of the
    /// matrix]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Prints the number of runs and an estimate of their time and size, and writes no files.
    ///
    /// The estimate is based on a few runs that are executed for it.
    #[arg(long)]
    dry_run: bool,
    /// Prints one JSON object per flow of each run instead of a table.
    #[arg(long)]
    json: bool,
    /// Prints results only: no progress and no names of written files.
    #[arg(long)]
    quiet: bool,
}

/// Runs the command.
pub fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<Verdict> {
    let spec = Spec::read(&args.what, args.set.clone(), &args.schemes, args.seeds.clone())?;
    let folder = match &args.out {
        Some(folder) => folder.clone(),
        None => sweep::usual_folder(&spec)?,
    };
    check_inputs(args, &spec, &folder)?;
    let jobs = args.jobs.map_or_else(machine::cores, usize::from);
    let plan = Plan::new(spec)?;
    if args.dry_run {
        return estimate(args, &plan, &folder, jobs, out);
    }
    let host = Host { program: called::lasting_name().to_owned(), ..Host::here(&command_as_typed(), jobs) };
    let sweep = Sweep::open(plan, &folder, host)?;
    warn_of_impossible(&sweep);
    let ran = run_with_progress(&sweep, args.quiet);
    if let Err(RunError::Stopped { .. }) = ran {
        bail!(stopped(&sweep, args));
    }
    ran?;
    finish(sweep, args, &folder, out)
}

/// The results, as text and as files.
fn finish(sweep: Sweep, args: &Args, folder: &Path, out: &mut dyn Write) -> anyhow::Result<Verdict> {
    let mut spans: Vec<Span> = sweep.plan().spec().schemes.iter().map(|scheme| Span::of(scheme)).collect();
    let mut tally = Tally::of(&sweep.plan().spec().schemes);
    let own = sweep.own_flows();
    // The reader of the output may have closed the pipe; the folder is completed nevertheless.
    let mut unread: Option<std::io::Error> = None;
    let outcome = {
        let out = &mut *out;
        let mut told = |plan: &Plan, cell: Cell, flows: &[FlowRow]| {
            spans[cell.scheme].add(flows.iter().find(|flow| !own.contains(&flow.index)));
            tally.add_run(cell.point, cell.scheme, flows, &own);
            if args.json && unread.is_none() {
                let written = flows.iter().try_for_each(|flow| writeln!(out, "{}", object(plan, cell, flow)));
                unread = written.err();
            }
            Ok(())
        };
        sweep.finish::<SweepPage>(&mut told)?
    };
    unread.map_or(Ok(()), Err)?;
    if !args.json {
        table(&spans).write(out, Paint::stdout())?;
        writeln!(
            out,
            "{}",
            fit("Least … most of all points and seeds; of the first flow that ran the scheme.")
        )?;
        for sentence in tally.sentences() {
            writeln!(out, "{}", fit(&sentence))?;
        }
    }
    let words: &mut dyn Write = if args.json { &mut std::io::stderr() } else { out };
    if outcome.failed > 0 {
        let list = folder.join("failures.json");
        let line = format!("{} failed; they are in {}", count(outcome.failed, "run"), list.display());
        writeln!(words, "{}", Paint::stdout().bad(&fit(&line)))?;
    }
    if !args.quiet {
        writeln!(words, "\n{}", fit(&counted(outcome)))?;
        writeln!(words, "Sweep folder: {}", folder.display())?;
        writeln!(words, "Dataset:      {}", folder.join("results").display())?;
        writeln!(words, "Report:       {}", folder.join("report.html").display())?;
    }
    Ok(if outcome.failed == 0 { Verdict::Fine } else { Verdict::Failed })
}

fn counted(outcome: SweepOutcome) -> String {
    let SweepOutcome { cells, failed, earlier } = outcome;
    let now = cells - failed - earlier;
    let earlier =
        if earlier > 0 { format!(", {} found from before", thousands(earlier)) } else { String::new() };
    format!("{}: {} made now{earlier}.", count(cells, "run"), thousands(now))
}

/// Minimum and maximum of a scheme's values.
struct Span {
    scheme: String,
    runs: u64,
    ends: Vec<Option<(f64, f64)>>,
}

/// The columns of the table: heading and metric.
const COLUMNS: [(&str, &str); 3] =
    [("Mbit/s", "throughput_mbps"), ("queueing p95", "queueing_delay_ms.p95"), ("loss %", "loss_rate")];

impl Span {
    fn of(scheme: &str) -> Span {
        Span { scheme: scheme.to_owned(), runs: 0, ends: vec![None; COLUMNS.len()] }
    }

    /// Adds a run, by its first flow under the scheme.
    fn add(&mut self, flow: Option<&FlowRow>) {
        self.runs += 1;
        let Some(flow) = flow else { return };
        for (ends, (_, metric)) in self.ends.iter_mut().zip(COLUMNS) {
            if let Some(value) = flow.value(metric) {
                let (least, most) = ends.unwrap_or((value, value));
                *ends = Some((least.min(value), most.max(value)));
            }
        }
    }

    fn text(&self, column: usize) -> String {
        let shown = shown(COLUMNS[column].1);
        match self.ends[column] {
            None => "–".to_owned(),
            Some((least, most)) => format!("{} … {}", shown.text(Some(least)), shown.text(Some(most))),
        }
    }
}

fn table(spans: &[Span]) -> Table {
    let heads: Vec<&str> =
        ["scheme", "runs"].into_iter().chain(COLUMNS.iter().map(|(head, _)| *head)).collect();
    let mut table = Table::new(&heads, 1);
    for span in spans {
        let numbers = (0..COLUMNS.len()).map(|column| span.text(column));
        table.row([span.scheme.clone(), thousands(span.runs)].into_iter().chain(numbers).collect());
    }
    table
}

/// A flow of a run for `--json`: the swept values, run and flow, and every metric by its name.
fn object(plan: &Plan, cell: Cell, flow: &FlowRow) -> Value {
    let set = plan.sets(cell.point).into_iter().map(|(key, value)| (key, value_of(&value)));
    let mut object = json!({
        "cell": cell.index,
        "set": Value::Object(set.collect()),
        "scheme": plan.spec().schemes[cell.scheme],
        "seed": cell.seed,
        "flow": flow.index,
        "flow_label": flow.flow,
        "flow_scheme": flow.scheme,
    });
    let metrics = metric_names().iter().zip(&flow.values).map(|(name, value)| (name.clone(), json!(value)));
    object.as_object_mut().expect("it is one").extend(metrics.collect::<Map<_, _>>());
    object
}

/// A value of a key in JSON.
fn value_of(text: &str) -> Value {
    match text.parse::<toml::Value>() {
        Ok(value) => json!(value),
        Err(_) => json!(text),
    }
}

/// Runs the sweep until its end or Ctrl-C. Shows a progress bar on a terminal.
fn run_with_progress(sweep: &Sweep, is_quiet: bool) -> Result<(), RunError> {
    let interrupted = super::on_interrupt().map_err(|error| RunError::Sweep(Refused::of(error.as_ref())))?;
    let bar = terminal::progress(is_quiet);
    let before = sweep.progress().done;
    bar.set_length(sweep.todo().missing.len() as u64);
    let ran = sweep.run(&|at| {
        bar.set_position(at.done - before);
        let failed = if at.failed > 0 { format!(", {} failed", thousands(at.failed)) } else { String::new() };
        bar.set_message(format!("{} of {}{failed}", thousands(at.done), count(at.cells, "run")));
        match interrupted.load(Ordering::Relaxed) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    });
    bar.finish_and_clear();
    ran
}

fn warn_of_impossible(sweep: &Sweep) {
    if let Some((point, reason)) = sweep.todo().first_impossible() {
        let (of, set) = (sweep.plan().cells(), set_text(&sweep.plan().sets(point)));
        let runs = thousands(sweep.todo().impossible);
        terminal::say(format_args!(
            "{runs} of {} cannot be made, the first with {set}: {}",
            thousands(of),
            explained(reason)
        ));
    }
}

fn set_text(sets: &[(String, String)]) -> String {
    sets.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(" ")
}

fn stopped(sweep: &Sweep, args: &Args) -> String {
    let at = sweep.progress();
    let mut text = format!(
        "stopped; {} of {} are done and kept in `{}`. The same command goes on",
        thousands(at.done),
        count(at.cells, "run"),
        sweep.root().display()
    );
    if at.failed > 0 && args.out.is_some() {
        let _ = write!(text, "; {} failed so far", count(at.failed, "run"));
    }
    text
}

/// Prints the estimated cost of the sweep, and writes no files.
fn estimate(
    args: &Args,
    plan: &Plan,
    folder: &Path,
    jobs: usize,
    out: &mut dyn Write,
) -> anyhow::Result<Verdict> {
    let Estimate { todo, samples, seconds, bytes } =
        Estimate::of(plan, folder.is_dir().then_some(folder), jobs)?;
    let (cells, missing) = (plan.cells(), todo.missing.len());
    if args.json {
        let axes: Map<String, Value> = (plan.spec().set.iter())
            .map(|axis| (axis.key.clone(), axis.values.iter().map(|value| value_of(value)).collect()))
            .collect();
        let first_impossible = todo.first_impossible().map(|(point, reason)| {
            let set = plan.sets(point).into_iter().map(|(key, value)| (key, value_of(&value)));
            json!({ "set": Value::Object(set.collect()), "reason": explained(reason) })
        });
        let told = json!({
            "cells": cells, "points": plan.points(), "schemes": plan.spec().schemes, "seeds": plan.spec().seeds,
            "set": axes, "missing": missing, "impossible": todo.impossible,
            "first_impossible": first_impossible, "jobs": jobs,
            "sampled_runs": samples, "estimated_s": seconds, "estimated_bytes": bytes, "folder": folder,
        });
        writeln!(out, "{told}")?;
        return Ok(Verdict::Fine);
    }
    let (spec, width) = (plan.spec(), columns());
    writeln!(out, "{}", hang("scenario  ", &spec.scenario, 10, width))?;
    for axis in &spec.set {
        writeln!(out, "{}", hang(&format!("{}  ", axis.key), &axis.values.join(", "), 4, width))?;
    }
    writeln!(out, "{}", hang("schemes   ", &spec.schemes.join(", "), 10, width))?;
    writeln!(out, "{}", hang("seeds     ", &shell::seeds_text(&spec.seeds), 10, width))?;
    let impossible = match todo.impossible {
        0 => String::new(),
        some => format!(", {} cannot be made", thousands(some)),
    };
    let done = cells - missing as u64 - todo.impossible;
    let runs = format!(
        "{} = {} × {} × {}; {} found from before{impossible}, {} to do",
        count(cells, "run"),
        count(plan.points(), "point"),
        count(spec.schemes.len() as u64, "scheme"),
        count(spec.seeds.len() as u64, "seed"),
        thousands(done),
        thousands(missing as u64)
    );
    writeln!(out, "{}", fit(&runs))?;
    if let Some((point, reason)) = todo.first_impossible() {
        writeln!(
            out,
            "{}",
            fit(&format!(
                "cannot be made, the first with {}: {}",
                set_text(&plan.sets(point)),
                explained(reason)
            ))
        )?;
    }
    if missing > 0 {
        let about = format!(
            "about {} with {}, and {} on disk; estimated from {} made for it",
            HumanDuration(Duration::from_secs_f64(seconds)),
            count(jobs as u64, "job"),
            DecimalBytes(bytes),
            count(samples as u64, "run")
        );
        writeln!(out, "{}", fit(&about))?;
    }
    writeln!(out, "{}", fit(&format!("folder: {}", folder.display())))?;
    Ok(Verdict::Fine)
}

/// Returns an error if the sweep would write to a file that it reads.
fn check_inputs(args: &Args, spec: &Spec, folder: &Path) -> anyhow::Result<()> {
    let Ok(folder) = folder.canonicalize() else { return Ok(()) };
    let base = Variants::read(&spec.text, &spec.scenario)?.load(0, &[])?;
    let named = [Path::new(&args.what), Path::new(&spec.scenario)];
    let values = spec.set.iter().flat_map(|axis| &axis.values).map(Path::new);
    for input in named.into_iter().chain(base.files()).chain(values) {
        if input.is_file() && input.canonicalize().is_ok_and(|input| input.starts_with(&folder)) {
            bail!(
                "`{}` is read, and lies in the folder into which the sweep writes: move it, or give --out another folder",
                input.display()
            );
        }
    }
    Ok(())
}

/// Parses the argument of one `--set`: a key's dotted path and its values.
fn axis(text: &str) -> Result<Axis, Refused> {
    match text.split_once('=') {
        Some((key, values)) if !key.trim().is_empty() => Axis::parse(key.trim(), values),
        _ => Err("give KEY=VALUES, for example cell.prbs=25,50,100 or flow.0.rtt_ms=10..300/8".into()),
    }
}
