//! `airpace emu`: unmodified programs behind a scenario's network, in real time.

mod agree;
pub mod bulk;
pub mod compose;
mod finish;
mod mmlog;
pub mod play;
mod programs;
mod run;
mod short;
pub mod stage;
pub mod telemetry;
mod truth;

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;

use airpace_eval::Choice;
use anyhow::{Context, bail};

use super::{Verdict, complete, scenario};

pub use run::UNFIT;

/// Runs unmodified programs behind the network of a scenario, in real time and without root.
///
/// Each device is a namespace of its own whose only way out is the network. Without `--` a shell opens there. On the
/// device, $AIRPACE_BASE is the address of the far side. Servers of the far side start first, and are waited for until
/// they listen. Every packet is recorded in a run folder; a run in which the emulator came too late is marked as unfit.
///
/// Ends with the command's status, or with that of another program that failed; with 3 if all ended well but the run is
/// unfit.
#[derive(clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    before_help = "Example: airpace emu stationary-busy --server 'iperf3 -s' -- sh -c 'iperf3 -Rc $AIRPACE_BASE'\n         \
                   airpace emu link UP.trace DOWN.trace -- curl -O http://example.org/\n         \
                   airpace emu delay 20 loss up 0.01 -- ping -c 3 100.64.0.1"
)]
pub struct Args {
    #[command(subcommand)]
    form: Option<Form>,
    /// A name from `airpace list scenarios`, or a TOML file.
    #[arg(add = complete::scenario(), required = true)]
    scenario: Option<String>,
    /// Sets a key of the scenario by its dotted path; may be given several times.
    #[arg(long, value_name = "KEY=VALUE", value_parser = scenario::key_and_value, add = complete::key())]
    set: Vec<(String, String)>,
    #[command(flatten)]
    options: Options,
    #[command(flatten)]
    last_hop: LastHopOptions,
    /// The program and its arguments, behind `--`. [default: a shell]
    #[arg(last = true, value_name = "CMD")]
    command: Vec<OsString>,
}

/// What else than a scenario may be named.
#[derive(clap::Subcommand)]
enum Form {
    #[command(flatten)]
    Short(Box<short::Form>),
    Agree(agree::Args),
    Truth(truth::Args),
}

/// Options of every emulated run.
#[derive(Clone, clap::Args)]
pub struct Options {
    /// Seed of the network's random numbers.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The run folder; an earlier run in it is replaced. [default: runs/NAME-NNN, and runs/latest leads there]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// A command line that runs on the far side and is ended at the end; may be given several times.
    #[arg(long, value_name = "LINE")]
    server: Vec<String>,
    /// Where servers are, and what programs reach.
    #[arg(long, value_enum, default_value_t)]
    far: Place,
    /// A command line that runs on another device, which are counted from 1; the run lasts until it has ended, too. May be
    /// given several times.
    #[arg(long, value_name = "N=LINE", value_parser = programs::on_device)]
    on: Vec<(usize, String)>,
    /// The device on which the program runs.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    device: u64,
    /// Ends the run after so many seconds, even if the program has not ended.
    #[arg(long = "for", value_name = "SECONDS", value_parser = super::positive)]
    seconds: Option<f64>,
    /// Prints one JSON object per connection at the end.
    #[arg(long)]
    json: bool,
    /// Prints nothing of its own but errors, and why the run is unfit.
    #[arg(long)]
    quiet: bool,
}

/// What the last hop tells beside its packets.
#[derive(Clone, Default, clap::Args)]
pub struct LastHopOptions {
    /// Tells radio reports of each device live, on the Unix sockets `device-N.control` and `device-N.modem` in this
    /// folder: a line of JSON for each subframe. Programs find them as $AIRPACE_REPORTS and $AIRPACE_MODEM_REPORTS.
    #[arg(long, value_name = "DIR")]
    reports: Option<PathBuf>,
    /// Publishes KPIs of each device's modem through libOD, in `device-N` below this folder; programs find it as $OD_DIR.
    #[arg(long, value_name = "DIR")]
    od: Option<PathBuf>,
    /// Of a trace: writes what its link did as mahimahi's mm-link does.
    #[arg(long, value_name = "FILE")]
    mm_log: Option<PathBuf>,
    /// The same of the trace of the other direction, `[trace.back]`.
    #[arg(long, value_name = "FILE")]
    mm_back_log: Option<PathBuf>,
}

/// Where the far side is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
enum Place {
    /// `own` with --server, `host` without one.
    #[default]
    Auto,
    /// A network of its own, isolated from all others.
    Own,
    /// This machine, and what it reaches. On a device of another emulator: that one.
    Host,
}

/// Runs the command.
pub fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<Verdict> {
    match (&args.form, &args.scenario) {
        (Some(Form::Short(form)), _) => form.run(out),
        (Some(Form::Agree(args)), _) => agree::run(args, out),
        (Some(Form::Truth(args)), _) => truth::run(args, out),
        (None, Some(name)) => {
            let scenario = scenario::load(name, &args.set)?;
            scenario::asks_for_no_reports(&scenario)?;
            let choice = Choice { argument: name.clone(), scenario, set: args.set.clone() };
            run::run(choice, &args.options, &args.last_hop, &words(&args.command)?, out)
        }
        (None, None) => bail!("name a scenario; `airpace list scenarios` lists them"),
    }
}

/// The words of a command.
///
/// # Errors
/// A word that is not text.
fn words(command: &[OsString]) -> anyhow::Result<Vec<String>> {
    let word = |word: &OsString| {
        let text = word.to_str().with_context(|| format!("`{}` is not text in UTF-8", word.display()))?;
        Ok(text.to_owned())
    };
    command.iter().map(word).collect()
}

/// The process that holds the namespaces of an emulated run. The emulator starts it.
#[derive(clap::Args)]
#[command(before_help = "Example: airpace emu-inside 3", hide = true)]
pub struct InsideArgs {
    /// The number of the inherited socket to the emulator.
    socket: i32,
}

/// Runs that process to its end.
pub fn inside(args: &InsideArgs) -> Verdict {
    Verdict::Status(airpace_emu::session::inside(args.socket) as u8)
}
