//! `airpace reproduce`: repeats the experiments of the papers, and shows each of their numbers beside ours.

use std::io::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use airpace_core::Refused;
use airpace_lab::machine;
use airpace_reproduce::{
    EXPERIMENTS, Experiment, Findings, Size, Store, Verdict as OfNumber, Work, gallery, markdown, named,
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
/// experiments share runs. After Ctrl-C, the same command continues. The folder gets index.html with all figures and numbers, figures/*.svg, results.json
/// and reproduction.md. The exit code is 0 even if numbers differ, because this is a result.
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
    let experiments = named(&args.what)?;
    let size = if args.quick { Size::Quick } else { Size::Whole };
    refuse_other_folder(&args.out)?;
    let store = Store::new(&args.out.join("runs"), BUILD);
    let work = Work::of(&experiments, size, &store)?;
    let jobs = args.jobs.map_or_else(machine::cores, usize::from);
    let host = Host { program: called::lasting_name().to_owned(), ..Host::here(&command_as_typed(), jobs) };
    write(&args.out, "manifest.json", manifest(args, &experiments, &host, false).as_bytes())?;
    let ran = run_with_progress(&work, &store, jobs, args.quiet);
    if let Err(RunError::Stopped { ended, .. }) = ran {
        let kept = work.runs() - work.missing() + ended;
        bail!(
            "stopped; {} of {} are done and kept in `{}`. The same command goes on",
            thousands(kept as u64),
            count(work.runs() as u64, "run"),
            args.out.display()
        );
    }
    ran?;
    let findings: Vec<(&Experiment, Findings)> = experiments
        .iter()
        .map(|experiment| Ok((*experiment, (experiment.findings)(&work.results(experiment, &store)?))))
        .collect::<Result<_, RunError>>()?;
    write_all(args, &findings, &host)?;
    if args.json {
        for (experiment, number) in all_numbers(&findings) {
            writeln!(out, "{}", object(experiment, number))?;
        }
        return Ok(Verdict::Fine);
    }
    for (experiment, findings) in &findings {
        show(experiment, findings, out)?;
    }
    if !args.quiet {
        writeln!(out, "\n{}", fit(&counted(&findings, &work)))?;
        writeln!(out, "Page:    {}", args.out.join("index.html").display())?;
        writeln!(out, "Figures: {}", args.out.join("figures").display())?;
    }
    Ok(Verdict::Fine)
}

fn list(is_json: bool, out: &mut dyn Write) -> anyhow::Result<Verdict> {
    let (paint, columns) = (Paint::stdout(), columns());
    for experiment in EXPERIMENTS {
        let Experiment { id, title, source, .. } = experiment;
        if is_json {
            writeln!(
                out,
                "{}",
                json!({ "id": id, "title": title, "source": source, "world": experiment.world })
            )?;
        } else {
            let line = hang(&format!("{id:<13} "), &format!("{title} ({source})"), 14, columns);
            writeln!(out, "{}", line.replacen(id, &paint.bold(id), 1))?;
        }
    }
    Ok(Verdict::Fine)
}

/// Maximum size of a manifest (bytes).
///
/// Chosen: a thousand times the size of one.
const MAX_MANIFEST_BYTES: u64 = 1 << 20;

/// Refuses a folder with other contents.
fn refuse_other_folder(folder: &Path) -> anyhow::Result<()> {
    let Ok(mut entries) = std::fs::read_dir(folder) else { return Ok(()) };
    // The folders of runs and sweeps have a manifest too.
    let manifest = airpace_files::read_to_string(&folder.join("manifest.json"), MAX_MANIFEST_BYTES).ok();
    let manifest = manifest.and_then(|text| serde_json::from_str::<serde_json::Value>(&text).ok());
    if entries.next().is_some() && manifest.is_none_or(|manifest| manifest.get("experiments").is_none()) {
        bail!("`{}` is not empty and holds no reproduction; give --out another folder", folder.display());
    }
    Ok(())
}

fn run_with_progress(work: &Work, store: &Store, jobs: usize, is_quiet: bool) -> Result<(), RunError> {
    let interrupted = super::on_interrupt().map_err(|error| RunError::Sweep(Refused::of(error.as_ref())))?;
    let bar = terminal::progress(is_quiet);
    bar.set_length(work.missing() as u64);
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

fn all_numbers<'a>(
    findings: &'a [(&'a Experiment, Findings)],
) -> impl Iterator<Item = (&'a Experiment, &'a airpace_reproduce::Number)> {
    findings
        .iter()
        .flat_map(|(experiment, findings)| findings.numbers.iter().map(|number| (*experiment, number)))
}

fn object(experiment: &Experiment, number: &airpace_reproduce::Number) -> serde_json::Value {
    let mut object = json!(number);
    let map = object.as_object_mut().expect("a number is one");
    map.insert("experiment".to_owned(), json!(experiment.id));
    map.insert("verdict".to_owned(), json!(number.verdict()));
    object
}

fn show(experiment: &Experiment, findings: &Findings, out: &mut dyn Write) -> anyhow::Result<()> {
    let paint = Paint::stdout();
    writeln!(out, "\n{}", paint.bold(&fit(&format!("{}: {}", experiment.id, experiment.title))))?;
    if !experiment.world.is_empty() {
        writeln!(out, "{}", fit(experiment.world))?;
    }
    let mut table = Table::new(&["number", "paper", "ours", "verdict"], 1);
    for each in &findings.numbers {
        let unit = if each.unit.is_empty() { String::new() } else { format!(", {}", each.unit) };
        let ours = each.ours.map_or_else(|| "–".to_owned(), |ours| ours.to_string());
        table.row(vec![format!("{}{unit}", each.what), each.paper_text(), ours, each.verdict().to_string()]);
    }
    table.write(out, paint)?;
    Ok(())
}

/// How many numbers have which verdict, and how many runs were made.
fn counted(findings: &[(&Experiment, Findings)], work: &Work) -> String {
    let of = |verdict| all_numbers(findings).filter(|(_, number)| number.verdict() == verdict).count() as u64;
    let numbers = count(all_numbers(findings).count() as u64, "number");
    format!(
        "{numbers}: {} reproduced, {} in kind, {} differ, {} fitted. {}, of which {} made now.",
        of(OfNumber::Reproduced),
        of(OfNumber::InKind),
        of(OfNumber::Differs) + of(OfNumber::Missing),
        of(OfNumber::Fitted),
        count(work.runs() as u64, "run"),
        thousands(work.missing() as u64)
    )
}

/// Writes the page, the figures, the table and the numbers.
fn write_all(args: &Args, findings: &[(&Experiment, Findings)], host: &Host) -> anyhow::Result<()> {
    let (out, command) = (&args.out, canonical(args));
    let figures = out.join("figures");
    std::fs::create_dir_all(&figures)
        .with_context(|| format!("cannot make the folder `{}`", figures.display()))?;
    for picture in findings.iter().flat_map(|(_, findings)| &findings.pictures) {
        write(out, &format!("figures/{}.svg", picture.name), picture.figure.svg().as_bytes())?;
    }
    let numbers: Vec<_> =
        all_numbers(findings).map(|(experiment, number)| object(experiment, number)).collect();
    let mut results = serde_json::to_string_pretty(&numbers)?;
    results.push('\n');
    write(out, "results.json", results.as_bytes())?;
    write(out, "reproduction.md", markdown::page(findings, &command, env!("CARGO_PKG_VERSION")).as_bytes())?;
    write(out, "index.html", gallery::page(findings, &command, BUILD).as_bytes())?;
    let experiments: Vec<&Experiment> = findings.iter().map(|(experiment, _)| *experiment).collect();
    write(out, "manifest.json", manifest(args, &experiments, host, true).as_bytes())
}

/// The command that gives the same results.
fn canonical(args: &Args) -> String {
    let mut words = vec!["airpace".to_owned(), "reproduce".to_owned()];
    words.extend(args.what.iter().cloned());
    words.extend(args.quick.then(|| "--quick".to_owned()));
    shell::join(&words)
}

fn manifest(args: &Args, experiments: &[&Experiment], host: &Host, is_complete: bool) -> String {
    let ids: Vec<&str> = experiments.iter().map(|experiment| experiment.id).collect();
    let manifest = json!({
        "version": env!("CARGO_PKG_VERSION"), "commit": env!("AIRPACE_COMMIT"), "complete": is_complete,
        "command": canonical(args), "experiments": ids, "quick": args.quick, "host": host,
    });
    format!("{manifest:#}\n")
}

fn write(folder: &Path, name: &str, contents: &[u8]) -> anyhow::Result<()> {
    std::fs::create_dir_all(folder)
        .with_context(|| format!("cannot make the folder `{}`", folder.display()))?;
    let path = folder.join(name);
    airpace_files::replace(&path, contents).with_context(|| format!("cannot write `{}`", path.display()))
}
