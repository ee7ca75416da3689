//! `airpace emu agree`: sends one schedule of packets through one network, in real time and in virtual time.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use airpace_core::{Bytes, DeviceId, Ecn, Streams, Time};
use airpace_emu::World;
use airpace_emu::crossing::Arrival;
use airpace_emu::play::player::Notes;
use airpace_emu::play::recorded::{Passage, passages};
use airpace_emu::play::schedule::{Kind, Planned, Schedule};
use airpace_emu::play::virtually::{Outcome, capacities, cross};
use airpace_emu::session::{Far, Spot};
use airpace_emu::turn::Begins;
use airpace_eval::agreement::{Agreement, Compared, Percentiles, Real, Virtual};
use airpace_eval::emulation::{EmulatedRun, Exit, Program, Setup};
use airpace_eval::{Choice, Host, RunFolder, report, tables};
use anyhow::{Context, bail};

use super::super::runs::point_latest_to;
use super::super::{Verdict, complete, matrix, on_interrupt, scenario};
use super::finish::{self, Judged, Ran};
use super::mmlog::Logs;
use super::play;
use super::run::Folder;
use super::stage::{Played, Player, Stage};
use crate::called;
use crate::terminal::{self, Paint, Table};

/// Start of the schedule, by the run's clock. All players are ready by then.
///
/// Chosen: even a busy machine starts all players within this time.
const START: Time = Time::from_millis(1_500);

/// Time for which players still receive after the last packet's due time.
///
/// Chosen: several times the maximum lateness of a packet in a valid run.
const LISTEN_ON: Duration = Duration::from_millis(500);

/// Maximum time for the players to end after that.
///
/// Chosen: enough for a busy machine to write the records of many packets.
const ENDS_WITHIN: Duration = Duration::from_secs(30);

/// Default duration of a random schedule.
///
/// Chosen: some thousands of packets, in a time for which a user is willing to wait.
const DRAWN: Duration = Duration::from_secs(10);

/// Maximum duration of a schedule (s): one day, as for schedules in tables.
const MAX_S: f64 = 86_400.0;

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
    scenario::asks_for_no_reports(&scenario)?;
    let choice = Choice { argument: args.scenario.clone(), scenario, set: args.set.clone() };
    let plan = choice.scenario.prepare_endless()?.devices_network()?;
    let world = World { plan, devices: choice.scenario.device.len(), seed: args.seed };
    let schedule = schedule(args, &world)?;
    let as_scheduled = busy(is_silent, "virtual time, packets as scheduled", || {
        virtually(&world, schedule.packets(), |_, packet| Some(START + (packet.at - Time::ZERO)))
    });

    let is_interrupted = on_interrupt()?;
    let stage = Stage::make(world.devices, Far::Own)?;
    let folder = Folder::make(args.out.as_deref(), &choice.scenario.name)?;
    let command = matrix::command_as_typed();
    let host = Host { program: called::lasting_name().to_owned(), ..Host::here(&command, 1) };
    let run =
        EmulatedRun::create(&Setup { out: folder.path.clone(), choice, seed: args.seed, command, host })?;
    let files = RunFolder::open(&folder.path)?;
    let csv = files.write("schedule.csv", schedule.to_csv().as_bytes())?;

    let last = as_scheduled.iter().filter_map(|it| it.released).fold(START + schedule.length(), Time::max);
    let until = last + LISTEN_ON;
    let mut staged = stage.turn(&world, Begins::AtOnce, None, &folder.path)?;
    let clock = staged.clock;
    let part = (
        clock.start_instant().as_nanos() + START.as_nanos(),
        clock.start_instant().as_nanos() + until.as_nanos(),
    );
    let players = players(&world, &staged.session, &csv, part, &folder.path)?;
    let mut numbers = vec![];
    for player in &players {
        numbers.push(player.start(&mut staged.session)?);
    }
    let bar = terminal::progress(is_silent);
    bar.set_length(until.as_millis());
    bar.set_message("real time");
    let longest = (until - Time::ZERO) + ENDS_WITHIN;
    let ends = staged.wait(&numbers, longest, &is_interrupted, |now| bar.set_position(now.as_millis()))?;
    bar.finish_and_clear();
    let Played { mut record, connections, audit, controls } = staged.end()?;

    let (mut programs, mut notes) = (vec![], vec![]);
    for (player, number) in players.into_iter().zip(numbers) {
        let exit = ends[number].and_then(|end| end.code).map_or(Exit::Stopped, Exit::Status);
        let device = match player.program.spot {
            Spot::Device(index) => Some(index.into()),
            Spot::Far => None,
        };
        programs.push(Program { device, command: player.line(), exit });
        notes.push(heard(&player.said()?)?);
    }
    let sent: Vec<u32> = notes.iter().flat_map(|it| it.sent.iter().map(|&(number, _)| number)).collect();
    let passages = passages(&schedule, &sent, &mut record, &connections);
    let ran = Ran { world: world.clone(), record, connections, audit, controls, programs };
    let judged = finish::finish(run, ran, Logs::default(), is_silent)?;
    let passages = passages.with_context(|| judged.audit.unfit_because.join("; "))?;
    let packets = busy(is_silent, "virtual time, packets as sent", || {
        compare(&world, &schedule, &as_scheduled, &passages, &notes, clock.start_instant().as_nanos())
    });
    let mut unfit_because = judged.audit.unfit_because.clone();
    if notes.iter().any(|it| it.ready_ns > part.0) {
        unfit_because.push("a player of the schedule was not ready when it began; try it again".to_owned());
    }
    let agreement = Agreement::of(&packets, START, unfit_because);
    agreement.write(&files, &packets)?;
    report::write(files.root())?;
    if folder.is_numbered {
        point_latest_to(&folder.path);
    }
    let is_first = notes.iter().all(|it| it.is_first);
    tell(args, &agreement, &judged, is_first, schedule.padded, out)?;
    Ok(match (agreement.is_fit(), agreement.agrees()) {
        (false, _) => Verdict::Status(super::run::UNFIT),
        (true, false) => Verdict::Failed,
        (true, true) => Verdict::Fine,
    })
}

/// Runs a task of unknown duration, with a progress indicator.
fn busy<T>(is_silent: bool, what: &'static str, work: impl FnOnce() -> T) -> T {
    let bar = terminal::activity(is_silent);
    bar.set_message(what);
    bar.enable_steady_tick(Duration::from_millis(200));
    let done = work();
    bar.finish_and_clear();
    done
}

/// The requested schedule.
fn schedule(args: &Args, world: &World) -> anyhow::Result<Schedule> {
    let only = args.device.map(|number| DeviceId(number - 1));
    let devices = terminal::count(world.devices as u64, "device");
    if only.is_some_and(|only| usize::from(only.0) >= world.devices) {
        bail!("--device {}: the scenario has {devices}", args.device.unwrap_or_default());
    }
    if args.seconds.is_some_and(|seconds| seconds > MAX_S) {
        bail!("--for: give at most a day, {MAX_S} seconds");
    }
    let length = args.seconds.map(Duration::from_secs_f64);
    let drawn = |kind| {
        let length = length.unwrap_or(DRAWN);
        Schedule::draw(kind, &capacities(world, length, only), length, &Streams::new(args.seed))
    };
    let (schedule, path) = match (args.schedule.as_str(), Path::new(&args.schedule)) {
        ("mixed", _) => (drawn(Kind::Mixed), None),
        ("even", _) => (drawn(Kind::Even), None),
        (_, path) if path.is_dir() => (of_run(path)?, Some(path)),
        (name, path) => {
            let read = airpace_files::read_recording(path, play::MAX_BYTES);
            let text = read.and_then(|bytes| String::from_utf8(bytes).map_err(std::io::Error::other)).with_context(|| {
                format!(
                    "--schedule {name}: cannot be read; give `mixed`, `even`, a table of `ms,bytes,direction`, or the \
                     folder of an emulated run"
                )
            })?;
            (Schedule::parse(&text).with_context(|| name.to_owned())?, Some(path))
        }
    };
    let end = length.map_or(Time::NEVER, |length| Time::ZERO + length);
    let schedule = schedule.cut(only, end);
    let most = schedule.packets().iter().map(|packet| usize::from(packet.device.0)).max();
    match (most, path) {
        (None, None) => bail!("the schedule has no packets; give it more time by --for"),
        (None, Some(path)) => {
            bail!("{}: no packet is left; give it more time by --for, or another --device", path.display())
        }
        (Some(most), _) if most >= world.devices => {
            bail!("the schedule has packets of device {}, and the scenario has {devices}", most + 1)
        }
        (Some(_), _) => Ok(schedule),
    }
}

/// Schedule of the packets of an emulated run, with their arrival times.
fn of_run(folder: &Path) -> anyhow::Result<Schedule> {
    let arrivals = tables::departures::arrivals(&RunFolder::open(folder)?)?;
    // Packets keep the offsets of their times within their milliseconds.
    let first_ms = arrivals.iter().map(|arrival| arrival.at.as_millis()).min().unwrap_or_default();
    let mut padded = 0;
    let planned = arrivals.iter().map(|arrival| {
        padded += u64::from(arrival.bytes.0 < Schedule::MIN_BYTES);
        Planned {
            at: Time::ZERO + (arrival.at - Time::from_millis(first_ms)),
            device: arrival.device,
            direction: arrival.direction,
            bytes: Bytes(arrival.bytes.0.clamp(Schedule::MIN_BYTES, 1_500)),
        }
    });
    let planned = planned.collect();
    Ok(Schedule::of(planned, padded))
}

/// Simulates, in virtual time, the packets for which `when` returns a time; other packets are not sent.
fn virtually(
    world: &World,
    packets: &[Planned],
    when: impl Fn(usize, &Planned) -> Option<Time>,
) -> Vec<Outcome> {
    let of = |(number, packet): (usize, &Planned)| {
        let &Planned { device, direction, bytes, .. } = packet;
        Some((number, (when(number, packet)?, Arrival { device, direction, bytes, ecn: Ecn::NotEct })))
    };
    let (numbers, arrivals): (Vec<usize>, Vec<_>) = packets.iter().enumerate().filter_map(of).unzip();
    let mut outcomes = vec![Outcome::default(); packets.len()];
    for (number, outcome) in numbers.into_iter().zip(cross(world, &arrivals)) {
        outcomes[number] = outcome;
    }
    outcomes
}

/// Creates a player for the far end and one for each device.
fn players(
    world: &World,
    session: &airpace_emu::Session,
    schedule: &Path,
    (start_ns, until_ns): (u64, u64),
    folder: &Path,
) -> anyhow::Result<Vec<Player>> {
    let schedule = std::path::absolute(schedule)?;
    let schedule = schedule.to_str().context("the run folder's path is not text in UTF-8")?.to_owned();
    let words = |device: Option<usize>, peers: &[String]| {
        let mut words = vec!["emu-play".to_owned(), "--schedule".to_owned(), schedule.clone()];
        for (option, value) in [("--start", start_ns), ("--until", until_ns)] {
            words.extend([option.to_owned(), value.to_string()]);
        }
        words.extend(device.into_iter().flat_map(|index| ["--device".to_owned(), index.to_string()]));
        words.extend(peers.iter().flat_map(|peer| ["--peer".to_owned(), peer.clone()]));
        words
    };
    let far = session.space().address_v4().to_string();
    let devices: Option<Vec<String>> =
        (0..world.devices).map(|index| Some(session.device(index)?.address_v4().to_string())).collect();
    let devices = devices.context("a device has no address; please report this")?;
    let mut players = vec![Player::new(&words(None, &devices), Spot::Far, folder)?];
    for index in 0..world.devices {
        let words = words(Some(index), std::slice::from_ref(&far));
        players.push(Player::new(&words, Spot::Device(index as u8), folder)?);
    }
    Ok(players)
}

/// Parses the records that a player has printed.
fn heard(said: &str) -> anyhow::Result<Notes> {
    Notes::parse(said).with_context(|| {
        let last = said.lines().last().unwrap_or("nothing");
        format!("a player of the schedule failed; it said: {last}")
    })
}

/// Compares every packet of the schedule in real and in virtual time.
fn compare(
    world: &World,
    schedule: &Schedule,
    as_scheduled: &[Outcome],
    passages: &[Passage],
    notes: &[Notes],
    clock_start_ns: u64,
) -> Vec<Compared> {
    let time = |at_ns: u64| Time::from_nanos(at_ns.saturating_sub(clock_start_ns));
    let mut sent: Vec<Option<Time>> = vec![None; schedule.packets().len()];
    let mut received = sent.clone();
    for notes in notes {
        for (list, of) in [(&notes.sent, &mut sent), (&notes.received, &mut received)] {
            for &(number, at_ns) in list {
                if let Some(place) = of.get_mut(number as usize) {
                    // Duplicates arrive later.
                    *place = place.or(Some(time(at_ns)));
                }
            }
        }
    }
    let as_sent = virtually(world, schedule.packets(), |number, _| sent[number]);
    let virtual_of = |outcome: &Outcome| Virtual { released: outcome.released, fate: outcome.fate };
    let of = |(number, packet): (usize, &Planned)| {
        let passage = &passages[number];
        Compared {
            device: packet.device,
            direction: packet.direction,
            bytes: packet.bytes,
            scheduled: START + (packet.at - Time::ZERO),
            sent: sent[number],
            real: Real {
                entered: passage.entered,
                released: passage.outcome.released,
                handed: passage.out,
                received: received[number],
                fate: passage.outcome.fate,
            },
            as_sent: sent[number].map(|_| virtual_of(&as_sent[number])),
            as_scheduled: virtual_of(&as_scheduled[number]),
        }
    };
    schedule.packets().iter().enumerate().map(of).collect()
}

/// Prints the results.
fn tell(
    args: &Args,
    agreement: &Agreement,
    judged: &Judged,
    is_first: bool,
    padded: u64,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
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
                paint.bad("Unfit: the machine did not keep up, so this says nothing of the emulator.")
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
    if padded > 0 {
        let packets = terminal::count(padded, "packet");
        let least = Schedule::MIN_BYTES;
        terminal::say(format!(
            "{packets} of the schedule had fewer than {least} bytes and were sent with {least}."
        ));
    }
    if !is_first {
        terminal::say("The players had no real-time priority: on a busy machine they send late.");
    }
    terminal::say(format_args!("Run folder: {}", judged.finished.folder.root().display()));
    terminal::say(format_args!("Figures:    {}", judged.finished.page.display()));
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
