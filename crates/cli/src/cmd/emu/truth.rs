//! `airpace emu truth`: measures this machine's kernel over recorded links, and compares it with Linux 6.18 and with
//! Airpace's schemes.

use std::cell::Cell;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use airpace_lab::Executable;
use airpace_lab::finish::kernel;
use airpace_lab::kernel_truth::campaign::{
    AVAILABLE, Campaign, CampaignError, Selection, Step, TRIES, available, beside,
};
use airpace_lab::kernel_truth::compare::{Comparison, name_of};
use airpace_lab::kernel_truth::measure;
use airpace_lab::kernel_truth::ours::{BY_THE_RFC, HELD, compare};
use airpace_lab::kernel_truth::page::page;
use airpace_lab::kernel_truth::{Condition, Machine, Measured, paths};
use airpace_lab::machine;
use airpace_run::Host;
use anyhow::{Context, anyhow, bail};
use indicatif::ProgressBar;
use serde_json::json;

use super::super::{Verdict, matrix, on_interrupt, outputs};
use crate::called;
use crate::explain::failed;
use crate::terminal::{self, Paint, Table};

/// Maximum size of a table of a kernel's runs (bytes).
const MAX_BYTES: u64 = 16 << 20;

/// Measures the congestion controls of this machine's kernel over emulated links and paths.
///
/// Each run is a bulk flow with the kernel's Reno, CUBIC or BBR. It takes 60 s over a recorded link, and 20 s over a path
/// with random loss, reordering, few ACKs, a narrow ACK path or a short buffer. On these paths MORC is measured as well, if
/// it is loaded (`airpace kernel load morc`). The results are compared with those of Linux 6.18, and Airpace's schemes are
/// compared with this kernel. Runs in which the emulator was late are repeated. All conditions take two and a half hours;
/// the same --out continues an interrupted measurement.
///
/// Exits with 1 if this kernel is not within the bounds of Linux 6.18.
#[derive(clap::Args)]
#[command(
    before_help = "Example: airpace emu truth --runs 1 --trace TMobile-LTE-short --cc cubic\n         \
                   airpace emu truth --page docs/evaluation/kernel-truth.md\n         \
                   airpace emu truth --from runs/kernel-truth-001/kernel.csv --page kernel-truth.md"
)]
pub struct Args {
    /// Measures only recorded links and paths whose names contain this text.
    #[arg(long, value_name = "TEXT")]
    trace: Option<String>,
    /// Measures only queues of this many packets: 300 or 1000 for recorded links.
    #[arg(long, value_name = "PACKETS")]
    queue: Option<u64>,
    /// Measures only these congestion controls of the kernel: reno, cubic, bbr, morc.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    cc: Vec<String>,
    /// Number of runs per condition. [default: the number of runs with Linux 6.18]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    runs: Option<u64>,
    /// The folder of the recorded links. [default: the subfolder traces of the folder that AIRPACE_DATA names]
    #[arg(long, value_name = "DIR")]
    traces: Option<PathBuf>,
    /// Uses the runs of this table instead of a measurement.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["runs", "out"])]
    from: Option<PathBuf>,
    /// The folder for kernel.csv; runs that it already contains are kept. [default: runs/kernel-truth-NNN]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Writes the comparison as a page in Markdown to this file.
    #[arg(long, value_name = "FILE")]
    page: Option<PathBuf>,
    /// Prints one JSON object per comparison.
    #[arg(long)]
    json: bool,
    /// Prints only errors and refused runs.
    #[arg(long)]
    quiet: bool,
}

impl Args {
    fn selection(&self) -> Selection {
        Selection { trace: self.trace.clone(), queue_packets: self.queue, schemes: self.cc.clone() }
    }
}

/// Runs the command.
///
/// # Errors
/// The recorded links are missing, or the machine cannot emulate or is always late.
pub fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<Verdict> {
    let traces = traces(args)?;
    let reference = Measured::reference();
    let measured = match &args.from {
        Some(file) => {
            let inputs = outputs::Named::inputs(std::slice::from_ref(file));
            let page = args.page.iter().map(|page| outputs::Named::by("--page", page));
            outputs::check(&inputs, &page.collect::<Vec<_>>())?;
            let mut measured = read(file)?;
            measured.runs.retain(|(condition, _)| args.selection().wants(condition));
            if measured.runs.is_empty() {
                bail!("{} has no such condition", file.display());
            }
            measured
        }
        None => measure_all(args, &traces, &reference)?,
    };
    let beside = beside(&measured, &reference);
    let bar = terminal::progress(args.quiet || args.json);
    let tell = |done: usize, all: usize| {
        bar.set_length(all as u64);
        bar.set_position(done as u64);
        bar.set_message("our schemes");
    };
    let of = |twins| compare(&traces, &measured, twins, &tell).map_err(|error| anyhow!(error));
    let (held, mut by_the_rfc) = (of(&HELD)?, of(&BY_THE_RFC)?);
    by_the_rfc.retain(|it| !it.is_path());
    bar.finish_and_clear();
    if let Some(path) = &args.page {
        let text = page(&measured, &held, &by_the_rfc);
        outputs::write("--page", path, text)?;
    }
    let is_within = beside.iter().all(Comparison::is_within);
    if args.json {
        for (truth, comparisons) in [("Linux 6.18", &beside), (&measured.machine.kernel[..], &held)] {
            for comparison in comparisons {
                writeln!(out, "{}", as_json(truth, comparison))?;
            }
        }
    } else if !args.quiet {
        tell_tables(&measured, &beside, &held, out)?;
    }
    Ok(if is_within { Verdict::Fine } else { Verdict::Failed })
}

/// The folder of the recorded links.
fn traces(args: &Args) -> anyhow::Result<PathBuf> {
    let folder = args.traces.clone().or_else(|| machine::data_folder().map(|data| data.join("traces")));
    folder.context(
        "there are no recorded links here; fetch them as described in docs/recordings.md, and name their \
         folder with --traces",
    )
}

fn read(file: &Path) -> anyhow::Result<Measured> {
    let name = file.display();
    let text = airpace_files::read_to_string(file, MAX_BYTES).map_err(|error| {
        failed(format_args!("cannot read `{name}`"), &error, "give the kernel.csv of a measurement")
    })?;
    Ok(Measured::parse(&text).map_err(|error| error.at(name))?)
}

/// Measures the requested conditions that the folder does not contain yet.
fn measure_all(args: &Args, traces: &Path, reference: &Measured) -> anyhow::Result<Measured> {
    let mut all = args.selection().conditions(reference);
    if !all.is_empty()
        && !available().with_context(|| format!("cannot read {AVAILABLE}"))?.iter().any(|name| name == "morc")
    {
        all.retain(|it| it.scheme != "morc");
        let load = called::command("kernel load morc");
        terminal::say(format_args!("MORC is not measured: load it first with {load}"));
    }
    let conditions: Vec<&Condition> = all.iter().collect();
    if conditions.is_empty() {
        bail!(
            "there is no such condition; the links are {}, the queues 300 and 1000, the congestion controls reno, cubic, \
             bbr and, if it is loaded and over a path, morc",
            names(reference)
        );
    }
    if let Some(missing) =
        conditions.iter().find(|it| paths::path(it).is_none() && !traces.join(&it.trace).is_file())
    {
        bail!(
            "`{}` is not in {}; fetch it as described in docs/recordings.md, or choose other links with --trace",
            missing.trace,
            traces.display()
        );
    }
    let folder = match &args.out {
        Some(folder) => {
            outputs::folder("--out", folder)?;
            folder.clone()
        }
        None => matrix::next_folder(Path::new("runs"), "kernel-truth")?,
    };
    let csv = folder.join("kernel.csv");
    let machine = Machine {
        program: format!("`airpace emu truth` {}", env!("CARGO_PKG_VERSION")),
        kernel: kernel(),
        processors: machine::cores(),
        refused: 0,
    };
    let mut measured = match csv.exists() {
        false => Measured::on(machine),
        true => {
            let earlier = read(&csv)?;
            if (&earlier.machine.kernel, earlier.machine.processors) != (&machine.kernel, machine.processors)
            {
                bail!(
                    "{} has runs of Linux {} on {} processors, and this is {} on {}; choose another folder with --out",
                    csv.display(),
                    earlier.machine.kernel,
                    earlier.machine.processors,
                    machine.kernel,
                    machine.processors
                );
            }
            earlier
        }
    };
    let command = matrix::command_as_typed();
    let host = Host { program: called::lasting_name().to_owned(), ..Host::here(&command, 1) };
    let manifest = json!({ "version": env!("CARGO_PKG_VERSION"), "kernel": kernel(), "host": host });
    let manifest = serde_json::to_string_pretty(&manifest)? + "\n";
    outputs::write("--out", &folder.join("kernel-truth.json"), manifest)?;

    let wanted = |condition: &Condition| {
        let runs = args.runs.map_or(reference.of(condition).len().max(1), |runs| runs as usize);
        runs.saturating_sub(measured.of(condition).len())
    };
    let todo = conditions.iter().map(|&it| (it.clone(), wanted(it))).collect();
    let executable = Executable::this()?;
    let campaign = Campaign { executable: &executable, traces, folder: &folder, todo };
    let is_interrupted = on_interrupt()?;
    let bar = terminal::progress(args.quiet || args.json);
    bar.set_length(campaign.span().as_secs());
    bar.enable_steady_tick(Duration::from_millis(200));
    let begun = Cell::new(0);
    let tell = |condition: &Condition, step: Step<'_>| {
        let (begun_at, wall) = (begun.get(), measure::wall(condition).as_secs());
        match step {
            Step::Begins => {
                bar.set_message(format!("{}, {}", condition.scheme, name_of(&condition.trace)));
                begun.set(bar.position());
            }
            Step::At(at) => bar.set_position(begun_at + at.as_secs().min(wall)),
            Step::Measured(measured) => {
                outputs::write("--out", &csv, measured.to_csv())?;
                bar.set_position(begun_at + wall);
            }
            Step::Refused(measured, why) => {
                outputs::write("--out", &csv, measured.to_csv())?;
                say(&bar, &format!("{}, {}: refused: {why}", condition.scheme, condition.trace));
                bar.set_position(begun_at);
            }
        }
        Ok::<_, anyhow::Error>(())
    };
    campaign.run(&mut measured, &is_interrupted, &tell).map_err(|error| match error {
        CampaignError::Run(error) => {
            anyhow!(error).context(format!("the runs so far are in {}", csv.display()))
        }
        CampaignError::Refused => anyhow!(
            "{TRIES} runs one after the other were refused; let nothing else run on this machine, and look \
             at {}. The runs so far are in {}; the same --out continues them",
            called::command("doctor --emu"),
            csv.display()
        ),
        CampaignError::Listener(error) => error,
    })?;
    bar.finish_and_clear();
    if !args.quiet {
        terminal::say(format_args!("Runs:       {}", csv.display()));
    }
    measured.runs.retain(|(condition, _)| args.selection().wants(condition));
    Ok(measured)
}

fn say(bar: &ProgressBar, line: &str) {
    bar.suspend(|| terminal::say(line));
}

fn names(reference: &Measured) -> String {
    let mut names: Vec<&str> = reference.runs.iter().map(|(it, _)| name_of(&it.trace)).collect();
    names.sort_unstable();
    names.dedup();
    names.join(", ")
}

fn as_json(truth: &str, comparison: &Comparison) -> serde_json::Value {
    let Comparison { condition, other, throughput, mean, p95 } = comparison;
    json!({
        "truth": truth, "other": other, "trace": condition.trace, "queue_packets": condition.queue_packets,
        "throughput_mbps": { "truth": throughput.truth.mean, "other": throughput.other.mean },
        "queueing_mean_ms": { "truth": mean.truth.mean, "other": mean.other.mean },
        "queueing_p95_ms": { "truth": p95.truth.mean, "other": p95.other.mean },
        "within": comparison.is_within(),
    })
}

fn tell_tables(
    measured: &Measured,
    beside: &[Comparison],
    held: &[Comparison],
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    let paint = Paint::stdout();
    let kernel = format!("Linux {}", measured.machine.kernel);
    for (truth, comparisons, other) in
        [("Linux 6.18", beside, kernel.as_str()), (&kernel[..], held, "our schemes")]
    {
        let within = comparisons.iter().filter(|it| it.is_within()).count();
        let all = comparisons.len();
        writeln!(
            out,
            "{}",
            paint.bold(&format!("{other} beside {truth}: {within} of {all} within the bounds"))
        )?;
        let head =
            &["trace", "queue", "scheme", "Mbit/s", "off %", "mean ms", "off %", "p95 ms", "off %", "within"];
        let mut table = Table::new(head, 1);
        for comparison in comparisons {
            let mut cells = vec![
                name_of(&comparison.condition.trace).to_owned(),
                comparison.condition.queue_packets.to_string(),
                comparison.other.clone(),
            ];
            for (pair, digits) in [(&comparison.throughput, 2), (&comparison.mean, 0), (&comparison.p95, 0)] {
                cells.push(format!("{:.digits$}", pair.other.mean));
                cells.push(format!("{:+.1}", pair.off() * 100.0));
            }
            cells.push(if comparison.is_within() { "yes" } else { "NO" }.to_owned());
            table.row(cells);
        }
        table.write(out, paint)?;
        writeln!(out)?;
    }
    Ok(())
}
