//! `airpace agree`: compares schemes in the simulator with the same schemes over real transports.

pub mod flow;
mod inside;
mod kernel;
mod over;
mod table;
mod wire;

use std::io::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use airpace_cc::{SchemeSpec, Sees, Setup};
use airpace_core::{Bytes, Streams};
use airpace_emu::session::Far;
use airpace_eval::wire::{Beside, Verdict as Compared, beside, label, parts};
use airpace_eval::{Choice, Matrix, Summary};
use airpace_event::Recorder;
use airpace_sim::{Progress as Clock, Scenario};
use airpace_transfer::bulk::tcp;
use anyhow::{bail, ensure};

use over::Over;

use super::emu::stage::Stage;
use super::runs::{Claim, point_latest_to};
use super::{Verdict, complete, matrix, on_interrupt, scenario};
use crate::called;
use crate::terminal::{self, Paint};

/// Delay of all flows compared with the scenario (s). Real flows open their connections within this time.
///
/// Chosen: even a busy machine has started all programs by then.
const LEAD_S: f64 = 1.5;

/// Range of additional random start times in the further runs of the simulator (s).
///
/// Chosen: one subframe, because a packet of a real program may by chance miss a subframe.
const SPREAD_S: f64 = 0.001;

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
    transport: Vec<Over>,
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
    let choice = shifted(args, None, &mut || 0.0)?;
    can_be_played(&choice.scenario)?;
    let schemes = schemes(args, &choice.scenario)?;
    if args.transport.contains(&Over::Kernel) {
        for scheme in &schemes {
            kernel::needed(&choice.scenario, scheme)?;
        }
    }
    // Check the machine's capabilities before the simulator runs.
    drop(Stage::make(choice.scenario.device.len(), Far::Own)?);
    let folder = match &args.out {
        Some(folder) => {
            super::outputs::folder("--out", folder)?;
            folder.clone()
        }
        None => matrix::next_folder(Path::new("runs"), &format!("{}-agree", choice.scenario.name))?,
    };
    let labelled = schemes.iter().flat_map(|scheme| {
        let over =
            args.transport.iter().map(|transport| scheme.labelled(label(scheme.text(), transport.name())));
        std::iter::once(scheme.clone()).chain(over)
    });
    let matrix = Matrix {
        scenarios: vec![choice],
        schemes: labelled.collect(),
        seeds: vec![args.seed],
        // Real-time runs need the whole machine.
        jobs: 1,
        out: Some(folder.clone()),
        program: called::lasting_name().to_owned(),
        command: matrix::command_as_typed(),
        qlog: false,
        again: Some(matrix::command_as_typed()),
        page: true,
        further: if args.transport.contains(&Over::Kernel) { tcp::INSPECTED.to_vec() } else { vec![] },
    };
    let is_interrupted = on_interrupt()?;
    let claim = Claim::of(&folder)?;
    let prepared = matrix.prepare()?;
    let more = spread(args, schemes, &is_interrupted)?;
    // Per label: reasons why the results of a run must not be used.
    let unfit: Mutex<Vec<(String, Vec<String>)>> = Mutex::new(vec![]);
    let bar = terminal::progress(is_silent);
    bar.set_length(1_000 * matrix.schemes.len() as u64);
    let tell = |said: &str| {
        if !is_silent {
            bar.suspend(|| terminal::say(said));
        }
    };
    let simulate = |scenario: &Scenario,
                    scheme: &SchemeSpec,
                    seed: u64,
                    recorder: &mut dyn Recorder,
                    progress: &mut Clock<'_>| {
        let Some(over) = parts(scheme.text()).and_then(|(_, name)| Over::of(name)) else {
            return airpace_sim::run_prepared(&prepared[0], scheme, seed, recorder, progress)
                .map(drop)
                .map_err(|error| error.to_string());
        };
        let play =
            wire::Play { scenario, prepared: &prepared[0], scheme, over, seed, folder: &folder, tell: &tell };
        let unfit_because = play
            .run(args.again, &is_interrupted, recorder, progress)
            .map_err(|error| format!("{error:#}"))?;
        let mut unfit = unfit.lock().expect("no thread panics while it holds them");
        unfit.push((scheme.text().to_owned(), unfit_because));
        Ok(())
    };
    let outcome = matrix.run_with(&simulate, &|at| {
        bar.set_message(at.scheme.to_owned());
        bar.set_position((1_000.0 * (at.job as f64 + at.fraction)) as u64);
        match is_interrupted.load(Ordering::Relaxed) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    });
    bar.finish_and_clear();
    let outcome = outcome?;
    let unfit = unfit.into_inner().expect("all threads have ended");
    let rows = beside(&outcome.summary, &unfit, &more);
    super::outputs::write("--out", &folder.join("agree.json"), serde_json::to_string_pretty(&rows)? + "\n")?;
    let page = outcome.finish()?;
    drop(claim);
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
    Ok(match (any(Compared::Unfit), any(Compared::Differs)) {
        (true, _) => Verdict::Status(super::emu::UNFIT),
        (false, true) => Verdict::Failed,
        (false, false) => Verdict::Fine,
    })
}

/// Runs the further runs of the simulator. Each run has its own seed, and its flows start later by random fractions of
/// [`SPREAD_S`]: in a scenario without random numbers, the seed has no effect.
fn spread(args: &Args, schemes: Vec<SchemeSpec>, is_interrupted: &AtomicBool) -> anyhow::Result<Summary> {
    let mut chance = Streams::new(args.seed).stream("agree: when flows begin");
    let mut all = Summary { runs: vec![], expectations: vec![], not_judged: vec![] };
    let bar = terminal::progress(args.quiet || args.json);
    bar.set_message("the simulator's own spread");
    bar.set_length(u64::from(args.spread) * schemes.len() as u64);
    for index in 1..=u64::from(args.spread) {
        let matrix = Matrix {
            scenarios: vec![shifted(args, Some(format!("again-{index}")), &mut || {
                chance.range(0.0, SPREAD_S)
            })?],
            schemes: schemes.clone(),
            seeds: vec![args.seed.wrapping_add(index)],
            jobs: super::doctor::cores(),
            out: None,
            program: called::lasting_name().to_owned(),
            command: matrix::command_as_typed(),
            qlog: false,
            again: None,
            page: false,
            further: vec![],
        };
        let begun = all.runs.len();
        let outcome = matrix.run(&|at| {
            bar.set_position((begun + at.job) as u64);
            match is_interrupted.load(Ordering::Relaxed) {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        })?;
        all.runs.extend(outcome.summary.runs);
    }
    bar.finish_and_clear();
    Ok(all)
}

/// Loads the scenario for simulator and real transports: each flow starts later by [`LEAD_S`] plus the result of
/// `more_s`, and ACKs cross the cell, as the packets of real programs do. `name` may replace the scenario's name.
fn shifted(args: &Args, name: Option<String>, more_s: &mut dyn FnMut() -> f64) -> anyhow::Result<Choice> {
    let scenario = scenario::load(&args.scenario, &args.set)?;
    let mut set = args.set.clone();
    let mut add = |key: String, value: String| set.push((key, value));
    if let Some(name) = name {
        add("name".to_owned(), format!("{name:?}"));
    }
    // The scenario's expectations refer to the original times.
    add("expect".to_owned(), "[]".to_owned());
    add("duration_s".to_owned(), (scenario.duration_s + LEAD_S).to_string());
    for (index, flow) in scenario.flow.iter().enumerate() {
        add(format!("flow.{index}.start_s"), (flow.start_s + LEAD_S + more_s()).to_string());
        if let Some(stop_s) = flow.stop_s {
            add(format!("flow.{index}.stop_s"), (stop_s + LEAD_S).to_string());
        }
        if scenario.cell.is_some() {
            add(format!("flow.{index}.acks"), "\"cell\"".to_owned());
        }
    }
    let scenario = scenario::load(&args.scenario, &set)?;
    Ok(Choice { argument: args.scenario.clone(), scenario, set })
}

/// Rejects scenarios with features that the real programs do not support.
fn can_be_played(scenario: &Scenario) -> anyhow::Result<()> {
    scenario::asks_for_no_reports(scenario)?;
    ensure!(!scenario.flow.is_empty(), "the scenario has no flow; add a `[[flow]]`");
    ensure!(scenario.ack_outage.is_empty(), "`ack_outage` is not played over real transports; leave it out");
    if let Some(index) = scenario.device.iter().position(|device| device.clock != Default::default()) {
        bail!("device.{index}.clock: real programs have this machine's clock; leave it out");
    }
    for (index, flow) in scenario.flow.iter().enumerate() {
        let refused = [
            (
                flow.every_ms.is_some() || flow.bytes.is_some(),
                "bytes",
                "flows of agree have no end of their own",
            ),
            (flow.misreport.is_some(), "misreport", "real receivers tell what they measure"),
            (flow.mss() != Bytes(1_500), "mss_bytes", "real transports send packets of 1500 bytes"),
        ];
        if let Some((_, key, why)) = refused.into_iter().find(|(is_set, ..)| *is_set) {
            bail!("flow.{index}.{key}: {why}; leave it out");
        }
        let first = scenario.flow.iter().find(|other| other.device == flow.device).unwrap_or(flow);
        ensure!(
            first.rtt_ms == flow.rtt_ms,
            "flow.{index}.rtt_ms: all flows of a device have the same round trip over real transports"
        );
    }
    Ok(())
}

/// The schemes to compare.
fn schemes(args: &Args, scenario: &Scenario) -> anyhow::Result<Vec<SchemeSpec>> {
    let sees_truth = |scheme: &SchemeSpec| -> anyhow::Result<bool> {
        let ends = scheme.build(&Setup::new(Bytes(1_500), Streams::new(0).stream("agree")))?;
        Ok(ends.controller.sees() == Sees::Truth)
    };
    if args.schemes.is_empty() {
        let mut kept = vec![];
        for scheme in scenario.schemes() {
            if !sees_truth(scheme)? {
                kept.push(scheme.clone());
            }
        }
        kept.retain(|scheme| args.transport.iter().all(|over| over.carries(scheme).is_ok()));
        ensure!(!kept.is_empty(), "the kernel has none of the scenario's schemes; name some by --scheme");
        return Ok(kept);
    }
    for (index, scheme) in args.schemes.iter().enumerate() {
        let is_first = args.schemes[..index].iter().all(|other| other.text() != scheme.text());
        ensure!(is_first, "scheme `{}` is named twice; name it once", scheme.text());
        ensure!(
            !sees_truth(scheme)?,
            "`{}` knows what only a simulator can know; no real transport can carry it",
            scheme.text()
        );
        for over in &args.transport {
            over.carries(scheme)?;
        }
    }
    Ok(args.schemes.clone())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Program {
        #[command(flatten)]
        args: Args,
    }

    #[test]
    fn further_runs_have_their_own_chance() {
        let line = "agree stationary-idle --scheme reno --spread 4 --set duration_s=4 --set forward.loss=0.01 --quiet";
        let args = Program::try_parse_from(line.split(' ')).unwrap().args;
        let schemes = args.schemes.clone();
        let runs = spread(&args, schemes, &AtomicBool::new(false)).unwrap().runs;
        assert_eq!(runs.iter().map(|run| run.seed).collect::<Vec<_>>(), [2, 3, 4, 5]);
        let mbps = runs.iter().map(|run| run.flows[0].metrics.throughput_mbps);
        let least = mbps.clone().fold(f64::MAX, f64::min);
        assert!(mbps.fold(0.0, f64::max) > 1.02 * least, "other packets are lost with each seed");
    }
}
