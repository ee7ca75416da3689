//! Shared part of `sim` and `demo`: runs a matrix, shows the progress, prints the table and the name of the run folder.

use std::io::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use airpace_cc::SchemeSpec;
use airpace_lab::machine;
use airpace_run::seeds::Seeds;
use airpace_run::shelf::{self, point_latest_to};
use airpace_run::{Choice, Matrix, Outcome, Progress, RunError, shell};
use airpace_sim::Prepared;
use anyhow::{Context, bail};

use super::outputs::{self, Named};
use super::runs::claim;
use super::scenario::Sets;
use super::{Verdict, complete, scenario};
use crate::called;
use crate::results;
use crate::terminal::{self, Paint};

/// Options of the commands that simulate a matrix of scenarios, schemes and seeds.
#[derive(clap::Args)]
pub struct RunArgs {
    /// Seeds of the random numbers: `1`, `1..5` (both included) or `1,3,7`.
    #[arg(long, value_name = "SEEDS", default_value = "1")]
    seeds: Seeds,
    /// Sets a key of the scenario by its dotted path; may be given several times.
    #[arg(long, value_name = "KEY=VALUE", value_parser = scenario::key_and_value, add = complete::key())]
    set: Vec<(String, String)>,
    /// Number of parallel runs; results do not depend on it. [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,
    /// The run folder; an earlier run in it is replaced. [default: runs/NAME-NNN, to which the link runs/latest then points]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Prints one JSON object per flow instead of a table.
    #[arg(long)]
    json: bool,
    /// Prints results only: no progress and no names of written files.
    #[arg(long)]
    quiet: bool,
    /// Also writes a qlog of every flow (opens in qvis): text, about twenty times as large as the tables.
    #[arg(long)]
    qlog: bool,
}

impl RunArgs {
    /// The scenario that `argument` names, with every --set applied.
    pub fn choice(&self, argument: &str) -> anyhow::Result<Choice> {
        let scenario = scenario::load(argument, &self.set)?;
        Ok(Choice { argument: argument.to_owned(), scenario, set: self.set.clone() })
    }

    /// The variants of the scenario that `argument` names, with every --set applied; the scenario itself if it has no
    /// variants.
    pub fn choices(&self, argument: &str) -> anyhow::Result<Vec<Choice>> {
        let choice = |scenario| Choice { argument: argument.to_owned(), scenario, set: self.set.clone() };
        Ok(scenario::load_variants(argument, &self.set)?.into_iter().map(choice).collect())
    }

    /// The seeds.
    pub fn seeds(&self) -> &[u64] {
        self.seeds.as_slice()
    }

    /// The keys and values of all --set.
    pub fn set(&self) -> &Sets {
        &self.set
    }

    /// Prints a line of text for people, except with --quiet.
    pub fn say(&self, out: &mut dyn Write, words: &str) -> std::io::Result<()> {
        if self.quiet { Ok(()) } else { writeln!(self.words(out), "{words}") }
    }

    /// The stream for text for people: standard error if JSON is printed.
    fn words<'a>(&self, out: &'a mut dyn Write) -> Box<dyn Write + 'a> {
        if self.json { Box::new(std::io::stderr()) } else { Box::new(out) }
    }
}

/// Runs `choices` and prints the results. `name` names the run folder if the user does not.
pub fn run(
    name: &str,
    choices: Vec<Choice>,
    schemes: Vec<SchemeSpec>,
    args: &RunArgs,
    out: &mut dyn Write,
) -> anyhow::Result<Verdict> {
    choices.iter().try_for_each(|choice| check_files(choice, args.out.as_deref()))?;
    let folder = match &args.out {
        Some(folder) => folder.clone(),
        None => next_folder(Path::new("runs"), name)?,
    };
    let matrix = Matrix {
        scenarios: choices,
        schemes,
        seeds: args.seeds.as_slice().to_vec(),
        jobs: args.jobs.map_or_else(machine::cores, usize::from),
        out: Some(folder.clone()),
        program: called::lasting_name().to_owned(),
        command: command_as_typed(),
        qlog: args.qlog,
        again: None,
        page: true,
        further: vec![],
    };
    // The folder that the user gave may not exist yet.
    let is_new = args.out.is_none() || std::fs::create_dir(&folder).is_ok();
    let claimed = claim(&folder)?;
    let is_numbered = args.out.is_none();
    let outcome = match matrix.prepare() {
        // Handle Ctrl-C only from here on. Until now, it stops the program at once, even if reading a file never ends.
        Ok(prepared) => run_with_progress(&matrix, &prepared, args.quiet, &*super::on_interrupt()?),
        Err(error) => Err(error),
    };
    let outcome = match outcome {
        Ok(outcome) => outcome,
        Err(RunError::Stopped { ended, runs }) => return Err(stopped(&folder, is_numbered, ended, runs)),
        Err(error) => {
            // A run that was refused before it wrote anything leaves no folder. This call removes only an empty folder.
            let is_gone = is_new && std::fs::remove_dir(&folder).is_ok();
            if !is_gone && matches!(error, RunError::Run { .. }) {
                terminal::say(format_args!("Run folder: {} (incomplete)", folder.display()));
            }
            return Err(error.into());
        }
    };
    if is_numbered {
        point_latest_to(&folder);
    }
    // The page is written before anything is printed: the reader of the output may have closed the pipe.
    let page = airpace_page::complete_matrix(&outcome);
    drop(claimed);
    let summary = &outcome.summary;
    if args.json {
        for replay in outcome.manifest.scenarios.iter().flat_map(|scenario| &scenario.replays) {
            args.say(out, replay)?;
        }
        for line in summary.runs.iter().flat_map(|run| run.lines()) {
            writeln!(out, "{}", serde_json::to_string(&line)?)?;
        }
    } else {
        results::write_tables(&matrix.scenarios, &outcome, out, Paint::stdout())?;
    }
    results::write_verdicts(summary, args.quiet, &mut args.words(out), Paint::stdout())?;
    args.say(out, &format!("Run folder: {}", folder.display()))?;
    // The results are printed even if there is no room for the page.
    if let Some(page) = page? {
        args.say(out, &format!("Report:     {}", page.display()))?;
    }
    Ok(if summary.all_expectations_met() { Verdict::Fine } else { Verdict::Failed })
}

/// Returns an error if the run would overwrite a file that it reads, or write a file to a place where it cannot stay.
/// `out` is the run folder that the user names.
fn check_files(choice: &Choice, out: Option<&Path>) -> anyhow::Result<()> {
    let named = |file: &Path| Named::new(file.display().to_string(), file);
    let inputs: Vec<_> = choice.scenario.files().chain([Path::new(&choice.argument)]).map(named).collect();
    let out = out.and_then(|out| out.canonicalize().ok());
    let mut reports = vec![];
    for (device, config) in choice.scenario.device.iter().enumerate() {
        let Some(path) = &config.reports else { continue };
        let key = format!("--set device.{device}.reports");
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let Ok(real) = folder.canonicalize() else {
            bail!("{key}={}: there is no folder `{}`; make it first", path.display(), folder.display());
        };
        if out.as_ref().is_some_and(|out| real.starts_with(out)) {
            let reason =
                "it would lie in the run folder, where the run writes its own files; give another place";
            bail!("{key}={}: {reason}", path.display());
        }
        reports.push(Named::by(&key, path));
    }
    outputs::check(&inputs, &reports)
}

/// The message about an interrupted matrix: the folder with the completed runs, and the command that shows them.
fn stopped(folder: &Path, is_numbered: bool, ended: usize, runs: usize) -> anyhow::Error {
    let mut named = folder.to_owned();
    if is_numbered && point_latest_to(folder) {
        named.set_file_name("latest");
    }
    let page = match ended {
        0 => "it contains nothing to show".to_owned(),
        _ => {
            let report = format!("report {}", shell::quote(&named.to_string_lossy()));
            format!("{} makes its page", called::command(&report))
        }
    };
    // `airpace runs prune` checks only folders in `runs`.
    let prune = match is_numbered {
        true => format!("; {} removes such folders", called::command("runs prune --incomplete")),
        false => String::new(),
    };
    anyhow::anyhow!(
        "stopped; {ended} of {} had ended. Run folder: {} (incomplete): {page}{prune}",
        terminal::count(runs as u64, "run"),
        folder.display()
    )
}

/// Runs the matrix until its end or Ctrl-C. On a terminal, one bar shows the progress of all its runs.
fn run_with_progress(
    matrix: &Matrix,
    prepared: &[Prepared],
    is_quiet: bool,
    is_interrupted: &AtomicBool,
) -> Result<Outcome, RunError> {
    const STEPS: f64 = 1000.0;
    let bar = terminal::progress(is_quiet);
    let fractions: Mutex<Vec<f64>> = Mutex::new(Vec::new());
    let outcome = matrix.run_prepared(prepared, &|at: Progress<'_>| {
        let mut fractions = fractions.lock().expect("no thread panics while it holds the fractions");
        fractions.resize(at.jobs, 0.0);
        fractions[at.job] = at.fraction;
        let ended = fractions.iter().filter(|fraction| **fraction >= 1.0).count();
        bar.set_length(at.jobs as u64 * STEPS as u64);
        bar.set_position((fractions.iter().sum::<f64>() * STEPS) as u64);
        bar.set_message(format!("{ended} of {}", terminal::count(at.jobs as u64, "run")));
        if is_interrupted.load(Ordering::Relaxed) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    });
    bar.finish_and_clear();
    outcome
}

/// Makes the first of `runs/NAME-001`, `runs/NAME-002`, … that does not exist yet.
pub fn next_folder(runs: &Path, name: &str) -> anyhow::Result<PathBuf> {
    shelf::next_folder(runs, name).with_context(|| {
        format!(
            "cannot make a run folder in `{}`; choose a folder you may write to with --out DIR",
            runs.display()
        )
    })
}

/// The command line, quoted for a shell.
pub fn command_as_typed() -> String {
    let words = std::env::args_os().skip(1).map(|word| shell::quote(&word.to_string_lossy()));
    std::iter::once(called::name().to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}
