//! `airpace reproduce`: repeats the experiments of the papers, and shows each of their numbers beside ours.

use std::cell::Cell;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use airpace_lab::machine;
use airpace_reproduce::against::{Earlier, Entry, moved};
use airpace_reproduce::measure::Step;
use airpace_reproduce::{
    EXPERIMENTS, Experiment, Folder, Number, Origin, Reproduced, Size, Store, Verdict as OfNumber, Work,
    named,
};
use airpace_run::{Host, RunError, shell};
use anyhow::{Context, bail};
use serde_json::json;

use super::Verdict;
use super::matrix::command_as_typed;
use crate::called;
use crate::terminal::{self, Paint, Table, columns, count, fit, hang, thousands};

/// Repeats experiments of the papers: each number beside ours with a verdict, each figure in the paper's form.
///
/// The command makes only the runs that are missing. The version, the scenario, the scheme and the seed identify a run, and
/// experiments share runs. After Ctrl-C, the same command continues. The folder gets index.html with all figures and numbers,
/// figures/*.svg, results.json and reproduction.md. The exit code is 0 even if numbers differ from the papers, because this is
/// a result.
///
/// Some experiments measure this machine in real time, after all runs; leave the machine alone then. With --quick, `all` and a
/// paper leave them out.
#[derive(clap::Args)]
#[command(
    before_help = "Example: airpace reproduce list\n         airpace reproduce pbe/fig14\n         airpace reproduce all --quick"
)]
pub struct Args {
    /// Experiments (`pbe/fig14`), papers (`pbe`), or `all`; `list` lists them.
    #[arg(required = true, value_name = "EXPERIMENT")]
    what: Vec<String>,
    /// Makes a few runs of each experiment, which show that everything works, but not the papers' numbers.
    #[arg(long)]
    quick: bool,
    /// Number of parallel runs; results do not depend on it. [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,
    /// The folder of the results, and of finished runs.
    #[arg(long, value_name = "DIR", default_value = "reproduction")]
    out: PathBuf,
    /// Compares the numbers with those in FILE, the results.json of an earlier version. The exit code is 1 if one has moved.
    #[arg(long, value_name = "FILE")]
    against: Option<PathBuf>,
    /// Largest change of a number that `--against` accepts, as a share of the earlier number.
    #[arg(long, value_name = "SHARE", default_value = "0.05", requires = "against", value_parser = share)]
    tolerance: f64,
    /// Prints one JSON object per number instead of tables.
    #[arg(long)]
    json: bool,
    /// Prints results only: no progress and no names of written files.
    #[arg(long)]
    quiet: bool,
}

/// Version and commit of the program, by which finished runs are known.
const BUILD: &str = concat!(env!("CARGO_PKG_VERSION"), "-", env!("AIRPACE_COMMIT"));

/// Runs the command.
pub fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<Verdict> {
    if args.what == ["list"] {
        return list(args.json, out);
    }
    let size = if args.quick { Size::Quick } else { Size::Whole };
    let experiments = named(&args.what, size)?;
    let earlier = args.against.as_deref().map(read_earlier).transpose()?;
    let jobs = args.jobs.map_or_else(machine::cores, usize::from);
    let host = Host { program: called::lasting_name().to_owned(), ..Host::here(&command_as_typed(), jobs) };
    let (command, version) = (canonical(args), env!("CARGO_PKG_VERSION"));
    let folder =
        Folder::open(&args.out, Origin { command, version, build: BUILD, size, host }, &experiments)?;
    let store = Store::new(&Folder::runs(&args.out), BUILD);
    let mut work = Work::of(&experiments, size, &store)?;
    let interrupted = super::on_interrupt()?;
    let ran = run_with_progress(&work, &store, jobs, &interrupted, args.quiet);
    if let Err(RunError::Stopped { ended, .. }) = ran {
        let kept = work.runs() - work.missing().len() + ended;
        bail!(
            "stopped; {} of {} are done and kept in `{}`. The same command goes on",
            thousands(kept as u64),
            count(work.runs() as u64, "run"),
            args.out.display()
        );
    }
    ran?;
    // After the runs, which would take the processors from them.
    measure_with_progress(&mut work, &store, &interrupted, args.quiet)?;
    let all: Vec<Reproduced> = experiments
        .iter()
        .map(|experiment| Ok(Reproduced::of(experiment, &work.results(experiment, &store)?)))
        .collect::<Result<_, RunError>>()?;
    folder.finish(&all)?;
    if args.json {
        for entry in Entry::all(&all) {
            writeln!(out, "{}", serde_json::to_string(&entry)?)?;
        }
    } else {
        for one in &all {
            show(one, out)?;
        }
    }
    if !args.json && !args.quiet {
        writeln!(out, "\n{}", fit(&counted(&all, &work)))?;
        if args.quick && args.what.iter().any(|word| !word.contains('/')) {
            let word = "With --quick, papers and `all` leave out the experiments that measure this machine.";
            writeln!(out, "{}", fit(word))?;
        }
        writeln!(out, "Page:    {}", folder.page().display())?;
        writeln!(out, "Figures: {}", folder.figures().display())?;
    }
    let Some(earlier) = earlier else { return Ok(Verdict::Fine) };
    let moved = moved(&earlier, &all, args.tolerance);
    for moved in &moved {
        terminal::say(fit(&moved.to_string()));
    }
    if moved.is_empty() { Ok(Verdict::Fine) } else { Ok(Verdict::Failed) }
}

/// A share of at least 0.
fn share(text: &str) -> Result<f64, String> {
    let share = text.parse::<f64>().ok().filter(|share| share.is_finite() && *share >= 0.0);
    share.ok_or_else(|| format!("`{text}` is no share; give a number such as 0.05"))
}

/// Maximum size of a `results.json` (bytes).
///
/// Chosen: a hundred times the size of one with all experiments.
const MAX_RESULTS_BYTES: u64 = 10 << 20;

fn read_earlier(path: &Path) -> anyhow::Result<Vec<Earlier>> {
    let text = airpace_files::read_to_string(path, MAX_RESULTS_BYTES)
        .with_context(|| format!("cannot read `{}`", path.display()))?;
    serde_json::from_str(&text)
        .with_context(|| format!("`{}` is no results.json of `airpace reproduce`", path.display()))
}

fn list(is_json: bool, out: &mut dyn Write) -> anyhow::Result<Verdict> {
    let (paint, columns) = (Paint::stdout(), columns());
    for experiment in EXPERIMENTS {
        let Experiment { id, title, source, world, .. } = experiment;
        if is_json {
            let is_measured = experiment.is_measured();
            let line = json!({ "id": id, "title": title, "source": source, "world": world, "measured": is_measured });
            writeln!(out, "{line}")?;
        } else {
            let measured = if experiment.is_measured() { ", measured in real time" } else { "" };
            let line = hang(&format!("{id:<13} "), &format!("{title} ({source}{measured})"), 14, columns);
            writeln!(out, "{}", line.replacen(id, &paint.bold(id), 1))?;
        }
    }
    Ok(Verdict::Fine)
}

fn run_with_progress(
    work: &Work,
    store: &Store,
    jobs: usize,
    interrupted: &AtomicBool,
    is_quiet: bool,
) -> Result<(), RunError> {
    let bar = terminal::progress(is_quiet);
    bar.set_length(work.missing().len() as u64);
    let ran = work.run(store, jobs, &|at| {
        bar.set_position(at.done as u64);
        bar.set_message(format!("{} of {}", thousands(at.done as u64), count(at.missing as u64, "run")));
        match interrupted.load(Ordering::Relaxed) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    });
    bar.finish_and_clear();
    ran
}

fn measure_with_progress(
    work: &mut Work,
    store: &Store,
    interrupted: &AtomicBool,
    is_quiet: bool,
) -> anyhow::Result<()> {
    let program = std::env::current_exe().context("the program does not find itself")?;
    let bar = terminal::progress(is_quiet);
    bar.set_length(work.unmeasured().map(|one| u64::from(one.takes_s)).sum());
    let next = Cell::new(0);
    let measured = work.measure(store, &program, &|step| {
        if let Step::Starts(measurement) = step {
            bar.set_position(next.get());
            bar.set_message(format!("measuring: {}", measurement.name));
            next.set(next.get() + u64::from(measurement.takes_s));
        }
        match interrupted.load(Ordering::Relaxed) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    });
    bar.finish_and_clear();
    if let Err(RunError::Stopped { ended, runs }) = measured {
        bail!(
            "stopped; {ended} of {} are done and kept. The same command goes on",
            count(runs as u64, "measurement")
        );
    }
    Ok(measured?)
}

fn all_numbers(all: &[Reproduced]) -> impl Iterator<Item = &Number> {
    all.iter().flat_map(|one| &one.findings.numbers)
}

fn show(one: &Reproduced, out: &mut dyn Write) -> anyhow::Result<()> {
    let (paint, about) = (Paint::stdout(), one.about());
    let Reproduced { experiment, findings, .. } = one;
    writeln!(out, "\n{}", paint.bold(&fit(&format!("{}: {}", experiment.id, experiment.title))))?;
    if !about.is_empty() {
        writeln!(out, "{}", fit(&about))?;
    }
    let mut table = Table::new(&["number", "paper", "ours", "verdict"], 1);
    for each in &findings.numbers {
        let unit = if each.unit.is_empty() { String::new() } else { format!(", {}", each.unit) };
        let ours = each.ours.map_or_else(|| "–".to_owned(), |ours| ours.to_string());
        table.row(vec![format!("{}{unit}", each.what), each.paper_text(), ours, each.verdict().to_string()]);
    }
    table.write(out, paint)?;
    for cause in one.causes() {
        writeln!(out, "{}", hang("- ", &cause, 2, columns()))?;
    }
    Ok(())
}

/// How many numbers have which verdict, and how many runs were made.
fn counted(all: &[Reproduced], work: &Work) -> String {
    let of = |verdict| all_numbers(all).filter(|number| number.verdict() == verdict).count() as u64;
    let numbers = count(all_numbers(all).count() as u64, "number");
    format!(
        "{numbers}: {} reproduced, {} in kind, {} differ, {} fitted, {} without a value. {}; {} made now.",
        of(OfNumber::Reproduced),
        of(OfNumber::InKind),
        of(OfNumber::Differs),
        of(OfNumber::Fitted),
        of(OfNumber::Missing),
        count(work.runs() as u64, "run"),
        thousands(work.missing().len() as u64)
    )
}

/// The command that gives the same results.
fn canonical(args: &Args) -> String {
    let mut words = vec!["airpace".to_owned(), "reproduce".to_owned()];
    words.extend(args.what.iter().cloned());
    words.extend(args.quick.then(|| "--quick".to_owned()));
    shell::join(&words)
}
