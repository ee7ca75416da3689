//! `airpace emu`: runs unmodified programs over the emulated network of a scenario, in real time.

mod agree;
pub mod bulk;
pub mod compose;
mod mmlog;
mod outcome;
mod run;
mod short;
mod truth;

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;

use airpace_run::Choice;
use anyhow::{Context, bail};

use super::{Verdict, complete, scenario};
use crate::called;

pub use run::UNFIT;

/// Runs unmodified programs over the emulated network of a scenario, in real time and without root.
///
/// Each device is a network namespace whose only connection is the emulated network. The far end of this network is where
/// servers run; on the device, $AIRPACE_BASE is its address. Without a command after `--`, a shell opens on the device.
/// Programs of --server start first, and the command starts when they listen. Every packet is recorded in a run folder. A
/// run in which the emulator was late is marked as unfit: its results must not be used.
///
/// Exits with the status of the command, or of another program that failed. Exits with 3 if all programs succeeded but the
/// run is unfit.
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
    /// The program and its arguments, after `--`. [default: a shell]
    #[arg(last = true, value_name = "CMD")]
    command: Vec<OsString>,
}

/// Subcommands, which are given instead of a scenario.
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
    /// The run folder; an earlier run in it is replaced. [default: runs/NAME-NNN, to which the link runs/latest then points]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// A command line that runs at the far end until the run ends; may be given several times.
    #[arg(long, value_name = "LINE")]
    server: Vec<String>,
    /// The network at the far end, where servers run.
    #[arg(long, value_enum, default_value_t)]
    far: Place,
    /// A command line LINE that runs on device N, counted from 1; may be given several times.
    ///
    /// The run ends when all these programs and the command have ended.
    #[arg(long, value_name = "N=LINE", value_parser = on_device)]
    on: Vec<(usize, String)>,
    /// The device on which the command runs, counted from 1.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    device: u64,
    /// Maximum duration of the run in seconds; programs that still run are then ended.
    #[arg(long = "for", value_name = "SECONDS", value_parser = super::positive)]
    seconds: Option<f64>,
    /// Prints one JSON object per connection at the end.
    #[arg(long)]
    json: bool,
    /// Prints only errors and the reasons for an unfit run, besides the programs' own output.
    #[arg(long)]
    quiet: bool,
}

/// Data that the last hop outputs besides packets.
#[derive(Clone, Default, clap::Args)]
pub struct LastHopOptions {
    /// Sends radio reports of each device live to Unix sockets in this folder.
    ///
    /// The sockets are `device-N.control` and `device-N.modem`; they carry a line of JSON for each subframe. Programs on the
    /// device find their paths in $AIRPACE_REPORTS and $AIRPACE_MODEM_REPORTS.
    #[arg(long, value_name = "DIR")]
    reports: Option<PathBuf>,
    /// Publishes KPIs of each device's modem through libOD, in `device-N` below this folder.
    ///
    /// Programs on the device find the path in $OD_DIR.
    #[arg(long, value_name = "DIR")]
    od: Option<PathBuf>,
    /// For a trace: writes the log of its link in the format of mahimahi's mm-link.
    #[arg(long, value_name = "FILE")]
    mm_log: Option<PathBuf>,
    /// For a trace: writes the log of the link in the other direction, `[trace.back]`.
    #[arg(long, value_name = "FILE")]
    mm_back_log: Option<PathBuf>,
}

/// The network at the far end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
enum Place {
    /// `own` with --server, `host` without one.
    #[default]
    Auto,
    /// A separate network, isolated from all others.
    Own,
    /// This machine and the networks that it reaches; in a nested emulator, the outer emulator's device.
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
            airpace_lab::agree::asks_for_no_reports(&scenario)?;
            let choice = Choice { argument: name.clone(), scenario, set: args.set.clone() };
            run::run(choice, &args.options, &args.last_hop, &words(&args.command)?, out)
        }
        (None, None) => bail!("name a scenario; {} lists them", called::command("list scenarios")),
    }
}

/// Converts the words of a command to text.
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

/// Parses `N=LINE`: a command line on device N.
///
/// # Errors
/// The text has another form.
fn on_device(text: &str) -> Result<(usize, String), String> {
    let read =
        text.split_once('=').and_then(|(number, line)| Some((number.trim().parse().ok()?, line.trim())));
    match read {
        Some((number, line)) if number > 0 && !line.is_empty() => Ok((number, line.to_owned())),
        _ => Err("give N=LINE, for example 2='iperf3 -c 100.64.0.1'".to_owned()),
    }
}

/// Holds the namespaces of an emulated run; the emulator starts this process.
#[derive(clap::Args)]
#[command(before_help = "Example: airpace emu-inside 3", hide = true)]
pub struct InsideArgs {
    /// File descriptor of the inherited socket to the emulator.
    socket: i32,
}

/// Runs the process that holds an emulator's namespaces until it ends.
pub fn inside(args: &InsideArgs) -> Verdict {
    Verdict::Status(airpace_lab::inside::hold(args.socket) as u8)
}

/// Runs a part of an experiment inside of an emulated network; the experiment starts it.
#[derive(clap::Args)]
#[command(before_help = "Example: airpace emu-part JSON", hide = true)]
pub struct PartArgs {
    /// The part, as the experiment describes it.
    part: String,
}

/// Runs a part of an experiment until the part ends.
pub fn part(args: &PartArgs, out: &mut dyn Write) -> anyhow::Result<Verdict> {
    airpace_lab::inside::run(&args.part, out)?;
    Ok(Verdict::Fine)
}
