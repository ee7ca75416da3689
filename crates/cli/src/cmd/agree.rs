//! `airpace agree`: compares schemes in the simulator with the same schemes over real transports.

mod kernel;
mod table;

use std::io::Write;
use std::path::{Path, PathBuf};

use airpace_cc::SchemeSpec;
use airpace_lab::Executable;
use airpace_lab::agree::{Compared, Comparison, Progress, Request};
use airpace_lab::machine;
use airpace_lab::over::Over;
use airpace_run::Choice;
use airpace_run::shelf::point_latest_to;
use airpace_run::wire::{Beside, Verdict as Judgement};
use clap::ValueEnum;
use clap::builder::PossibleValue;

use super::runs::claim;
use super::{Verdict, complete, matrix, on_interrupt, scenario};
use crate::called;
use crate::terminal::{self, Paint};

/// Runs schemes in the simulator and over real transports, and compares the results.
///
/// A flow over a real transport consists of two programs with sockets, the kernel, and QUIC or UDP; their packets cross the
/// scenario's network in real time (see `airpace emu`). Simulator and transport run the same scenario with the same seed. In
/// both, flows start 1.5 s later than in the scenario, and ACKs cross the cell if the last hop is a cell. The results agree
/// if the throughput is within 3 % and the mean one-way delay within 5 ms or 10 %. The report overlays both.
///
/// Transport `kernel` is the kernel's TCP with congestion controls in the kernel: Linux's bbr, cubic, reno and vegas, and
/// BISCAY, MORC and PBE-CC. The last three are loaded for the run and fed from the phone's radio, which requires root (see
/// `airpace kernel`). The throughputs must then agree within 5 %.
///
/// Results also depend on chance: on which packets a path drops or reorders. Some schemes amplify such differences. The
/// simulator therefore runs each scheme several more times, with the next seeds and with flows that start up to 1 ms
/// later. A flow is `in spread` if it differs from the main run, but agrees with one of these runs or lies between them.
///
/// Exits with 1 if a flow differs. Exits with 3 if the machine did not keep up with real time; the comparison then has no
/// result.
#[derive(clap::Args)]
#[command(before_help = "Example: airpace agree competitor --scheme pbe,bbr\n         \
                         airpace agree biscay-uplink --scheme biscay --transport udp\n         \
                         airpace agree stationary-busy --transport kernel --scheme pbe,bbr,cubic\n         \
                         airpace agree trace --set trace.file=PHONE.down --scheme cubic")]
pub struct Args {
    /// A name from `airpace list scenarios`, or a TOML file.
    #[arg(add = complete::scenario())]
    scenario: String,
    /// Schemes to compare, separated by commas. [default: those of the scenario that all chosen transports can carry]
    #[arg(
        long = "scheme",
        value_name = "SCHEMES",
        value_delimiter = ',',
        value_parser = |text: &str| SchemeSpec::parse(text),
        add = complete::schemes(),
    )]
    schemes: Vec<SchemeSpec>,
    /// Transports of the flows, separated by commas.
    #[arg(long, value_name = "NAMES", value_enum, value_delimiter = ',', default_value = "udp,quic")]
    transport: Vec<Transport>,
    /// Sets a key of the scenario by its dotted path; may be given several times.
    #[arg(long, value_name = "KEY=VALUE", value_parser = scenario::key_and_value, add = complete::key())]
    set: Vec<(String, String)>,
    /// Seed of the network's random numbers.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Number of further simulator runs, which show the differences caused by chance; may be 0.
    #[arg(long, value_name = "N", default_value_t = 9, value_parser = clap::value_parser!(u16).range(0..=1_000))]
    spread: u16,
    /// Maximum number of repetitions of a run in which the machine did not keep up with real time.
    #[arg(long, value_name = "N", default_value_t = 2)]
    again: u32,
    /// The run folder; an earlier run in it is replaced. [default: runs/NAME-NNN, to which the link runs/latest then points]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Prints one JSON object per flow and transport.
    #[arg(long)]
    json: bool,
    /// Prints only errors.
    #[arg(long)]
    quiet: bool,
}

/// Runs the command.
///
/// # Errors
/// The scenario cannot be run with real programs, the machine lacks a capability, or a program failed.
pub fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<Verdict> {
    let is_silent = args.quiet || args.json;
    let scenario = scenario::load(&args.scenario, &args.set)?;
    let choice = Choice { argument: args.scenario.clone(), scenario, set: args.set.clone() };
    let request = Request {
        choice,
        schemes: args.schemes.clone(),
        over: args.transport.iter().map(|over| over.0).collect(),
        seed: args.seed,
        spread: args.spread,
        again: args.again,
        jobs: machine::cores(),
        program: called::lasting_name().to_owned(),
        command: matrix::command_as_typed(),
    };
    let executable = Executable::this()?;
    let comparison = Comparison::prepare(&executable, request)?;
    let folder = match &args.out {
        Some(folder) => {
            super::outputs::folder("--out", folder)?;
            folder.clone()
        }
        None => matrix::next_folder(Path::new("runs"), &format!("{}-agree", comparison.name()))?,
    };
    let is_interrupted = on_interrupt()?;
    let claimed = claim(&folder)?;
    let bar = terminal::progress(is_silent);
    let tell = |progress: Progress<'_>| match progress {
        Progress::Spread(done, all) => {
            bar.set_message("the simulator's own spread");
            bar.set_length(all);
            bar.set_position(done);
        }
        Progress::Run(scheme, index, runs, fraction) => {
            bar.set_message(scheme.to_owned());
            bar.set_length(1_000 * runs as u64);
            bar.set_position(1_000 * index as u64 + (1e3 * fraction) as u64);
        }
        Progress::Message(text) => {
            if !is_silent {
                bar.suspend(|| terminal::say(text));
            }
        }
    };
    let compared = comparison.run(&executable, folder.clone(), &kernel::load, &is_interrupted, &tell)?;
    bar.finish_and_clear();
    let Compared { outcome, rows } = compared;
    super::outputs::write("--out", &folder.join("agree.json"), serde_json::to_string_pretty(&rows)? + "\n")?;
    let page = airpace_page::complete_matrix(&outcome)?;
    drop(claimed);
    if args.out.is_none() {
        point_latest_to(&folder);
    }
    if args.json {
        for row in &rows {
            writeln!(out, "{}", serde_json::to_string(row)?)?;
        }
    } else if !args.quiet {
        table::write(&rows, out, Paint::stdout())?;
    }
    if !args.quiet {
        terminal::say(format_args!("Run folder: {}", folder.display()));
        if let Some(page) = page {
            terminal::say(format_args!("Report:     {}", page.display()));
        }
    }
    let any = |verdict| rows.iter().any(|row: &Beside| row.verdict == verdict);
    Ok(match (any(Judgement::Unfit), any(Judgement::Differs)) {
        (true, _) => Verdict::Status(super::emu::UNFIT),
        (false, true) => Verdict::Failed,
        (false, false) => Verdict::Fine,
    })
}

/// A transport as an argument of the command.
#[derive(Clone, Copy, Debug)]
struct Transport(Over);

impl ValueEnum for Transport {
    fn value_variants<'a>() -> &'a [Transport] {
        const ALL: [Transport; 3] = [Transport(Over::Udp), Transport(Over::Quic), Transport(Over::Kernel)];
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let help = match self.0 {
            Over::Udp => "Airpace's UDP transport, the prototype of the papers",
            Over::Quic => "Airpace's QUIC",
            Over::Kernel => {
                "The kernel's TCP, with Linux's congestion controls and Airpace's (see `airpace kernel`)"
            }
        };
        Some(PossibleValue::new(self.0.name()).help(help))
    }
}
