//! `airpace emu agree`: sends one schedule of packets through one network, in real time and in virtual time.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use airpace_core::DeviceId;
use airpace_emu::play::schedule::Schedule;
use airpace_lab::Executable;
use airpace_lab::emu_agree::{Agreed, Comparison, Step};
use airpace_lab::schedule::{Origin, Wanted};
use airpace_run::agreement::{Agreement, Percentiles};
use airpace_run::emulation::Setup;
use airpace_run::shelf::point_latest_to;
use airpace_run::{Choice, Host};
use indicatif::ProgressBar;

use super::super::{Verdict, complete, matrix, on_interrupt, scenario};
use super::run::Folder;
use crate::called;
use crate::terminal::{self, Paint, Table};

/// Compares the emulator with the simulator, packet by packet.
///
/// Sends the packets of a schedule through a scenario's network in real time and in virtual time. Emulator and simulator
/// agree if the same packets are dropped and if 99 of 100 departures differ by at most 1 ms. This must hold for two
/// simulations: the first sends packets at their actual send times in the emulator, the second at their scheduled send
/// times. The run folder contains the comparison: agreement.json, agreement.parquet, and report.html with figures.
///
/// Exits with 1 if they do not agree. Exits with 3 if the machine did not keep up with real time; the comparison then has
/// no result.
#[derive(clap::Args)]
#[command(before_help = "Example: airpace emu agree stationary-idle\n         \
                   airpace emu agree four-phones --schedule even --for 20 --device 2\n         \
                   airpace emu agree trace --set trace.file=PHONE.down --set trace.link.buffer.packets=100")]
pub struct Args {
    /// A name from `airpace list scenarios`, or a TOML file.
    #[arg(add = complete::scenario())]
    scenario: String,
    /// Sets a key of the scenario by its dotted path; may be given several times.
    #[arg(long, value_name = "KEY=VALUE", value_parser = scenario::key_and_value, add = complete::key())]
    set: Vec<(String, String)>,
    /// The schedule of packets: `mixed`, `even`, a table, or the folder of an emulated run.
    ///
    /// `mixed` draws bursts, pauses, and rates around the network's rate. `even` spaces packets evenly, at half of the
    /// network's rate. A table has the header `ms,bytes,direction` (`down` or `up`) and optionally the column `device`
    /// (counted from 1). The packets of an emulated run are sent at their arrival times in that run.
    #[arg(long, value_name = "KIND|FILE", default_value = "mixed")]
    schedule: String,
    /// Seed of the random numbers of the network and of a drawn schedule.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Duration of the schedule in seconds. [default: 10, or all packets of a file or run]
    #[arg(long = "for", value_name = "SECONDS", value_parser = super::super::positive)]
    seconds: Option<f64>,
    /// Sends only packets of this device; devices are counted from 1. [default: all devices]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    device: Option<u16>,
    /// The run folder; an earlier run in it is replaced. [default: runs/NAME-NNN, to which the link runs/latest then points]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Prints one JSON object.
    #[arg(long)]
    json: bool,
    /// Prints only errors and the reasons for an unfit run.
    #[arg(long)]
    quiet: bool,
}

/// Runs the command.
///
/// # Errors
/// The errors of an emulated run; a schedule that cannot be read, or a player that failed.
pub fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<Verdict> {
    let is_silent = args.quiet || args.json;
    let scenario = scenario::load(&args.scenario, &args.set)?;
    airpace_lab::agree::asks_for_no_reports(&scenario)?;
    let choice = Choice { argument: args.scenario.clone(), scenario, set: args.set.clone() };
    let wanted = Wanted {
        origin: Origin::named(&args.schedule),
        length: args.seconds.map(|seconds| Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)),
        only: args.device.map(|number| DeviceId(number - 1)),
    };
    let is_interrupted = on_interrupt()?;
    let bars = (terminal::activity(is_silent), terminal::progress(is_silent));
    let show = |step: Step| show(&bars, step);
    let comparison = Comparison::prepare(&Executable::this()?, &choice, args.seed, &wanted, &show)?;
    let folder = Folder::make(args.out.as_deref(), &choice.scenario.name)?;
    let command = matrix::command_as_typed();
    let host = Host { program: called::lasting_name().to_owned(), ..Host::here(&command, 1) };
    let setup = Setup { out: folder.path.clone(), choice, seed: args.seed, command, host };
    let agreed = comparison.run(&setup, &is_interrupted, &show)?;
    let finished = &agreed.judged.finished;
    let page = airpace_page::complete(&finished.folder, &finished.manifest)?;
    bars.0.finish_and_clear();
    if folder.is_numbered {
        point_latest_to(&folder.path);
    }
    tell(args, &agreed, &page, out)?;
    let agreement = &agreed.agreement;
    Ok(match (agreement.is_fit(), agreement.agrees()) {
        (false, _) => Verdict::Status(super::run::UNFIT),
        (true, false) => Verdict::Failed,
        (true, true) => Verdict::Fine,
    })
}

/// Shows a step of the comparison: a spinner while the duration is unknown, and a bar during real time.
fn show((spinner, bar): &(ProgressBar, ProgressBar), step: Step) {
    let message = match step {
        Step::AsScheduled => "virtual time, packets as scheduled",
        Step::RealTime(now, until) => {
            spinner.finish_and_clear();
            bar.set_length(until.as_millis());
            bar.set_message("real time");
            bar.set_position(now.as_millis());
            return;
        }
        Step::Tables => "tables and page",
        Step::AsSent => "virtual time, packets as sent",
    };
    bar.finish_and_clear();
    spinner.reset();
    spinner.set_message(message);
    spinner.enable_steady_tick(Duration::from_millis(200));
}

/// Prints the results.
fn tell(args: &Args, agreed: &Agreed, page: &Path, out: &mut dyn Write) -> anyhow::Result<()> {
    let Agreed { agreement, judged, is_first, padded } = agreed;
    if args.json {
        writeln!(out, "{}", in_short(agreement)?)?;
    } else if !args.quiet {
        let paint = Paint::stdout();
        differences(agreement).write(out, paint)?;
        writeln!(out)?;
        fates(agreement).write(out, paint)?;
        writeln!(out)?;
        match (agreement.agrees(), agreement.is_fit()) {
            (true, _) => writeln!(out, "{}", paint.good("Real time and virtual time agree."))?,
            (false, true) => writeln!(out, "{}", paint.bad("Real time and virtual time do not agree."))?,
            (false, false) => writeln!(
                out,
                "{}",
                paint.bad("Unfit: the machine was too slow, so this is no result about the emulator.")
            )?,
        }
        for said in agreement.unfit_because.iter().chain(&agreement.objections()) {
            writeln!(out, "{}", terminal::fit(&format!("- {said}")))?;
        }
    }
    if args.quiet {
        for reason in &agreement.unfit_because {
            terminal::say(terminal::noted("Unfit:", reason));
        }
        return Ok(());
    }
    if *padded > 0 {
        let packets = terminal::count(*padded, "packet");
        let least = Schedule::MIN_BYTES;
        terminal::say(format!(
            "{packets} of the schedule had fewer than {least} bytes and were sent with {least}."
        ));
    }
    if !is_first {
        terminal::say("The players had no real-time priority: on a busy machine they send late.");
    }
    terminal::say(format_args!("Run folder: {}", judged.finished.folder.root().display()));
    terminal::say(format_args!("Figures:    {}", page.display()));
    Ok(())
}

/// The object for `--json`: `agreement.json` without the data of figures, plus the verdict.
fn in_short(agreement: &Agreement) -> anyhow::Result<serde_json::Value> {
    let mut value = serde_json::to_value(agreement)?;
    if let Some(object) = value.as_object_mut() {
        object.remove("courses");
        for of in ["as_sent", "as_scheduled"] {
            object.get_mut(of).and_then(|it| it.as_object_mut()?.remove("departures_cdf"));
        }
        object.insert("agrees".to_owned(), agreement.agrees().into());
        object.insert("fit".to_owned(), agreement.is_fit().into());
        object.insert("objections".to_owned(), agreement.objections().into());
    }
    Ok(value)
}

/// Table of departure time differences and of the machine's lateness.
fn differences(agreement: &Agreement) -> Table {
    let mut table = Table::new(&["ms", "p50", "p99", "max"], 1);
    let mut row = |what: &str, of: &Percentiles| {
        let text = |value: Option<f64>| value.map_or("–".to_owned(), |value| format!("{value:.3}"));
        table.row(vec![what.to_owned(), text(of.p50), text(of.p99), text(of.max)]);
    };
    row("departures apart, packets as sent", &agreement.as_sent.departures_ms);
    row("departures apart, packets as scheduled", &agreement.as_scheduled.departures_ms);
    row("sent late by the sender", &agreement.sent_late_ms);
    row("waited until the emulator read it", &agreement.read_late_ms);
    row("handed over late by the emulator", &agreement.handed_late_ms);
    table
}

/// Table of the packets' fates.
fn fates(agreement: &Agreement) -> Table {
    let mut table = Table::new(&["packets", "compared", "dropped by both", "real only", "virtual only"], 1);
    for (what, of) in [("as sent", &agreement.as_sent), ("as scheduled", &agreement.as_scheduled)] {
        let counts = [of.compared, of.dropped_by_both, of.only_real, of.only_virtual];
        table.row([what.to_owned()].into_iter().chain(counts.map(terminal::thousands)).collect());
    }
    table
}
