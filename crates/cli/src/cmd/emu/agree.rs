//! `airpace emu agree`: one schedule of packets through one network, in real time and in virtual time.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use airpace_core::{Bytes, Ecn, Streams, Time};
use airpace_emu::World;
use airpace_emu::crossing::Arrival;
use airpace_emu::play::player::Notes;
use airpace_emu::play::recorded::{Passage, passages};
use airpace_emu::play::schedule::{Planned, Schedule};
use airpace_emu::play::virtually::{Outcome, capacities, cross};
use airpace_emu::session::Spot;
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

/// When the schedule begins, by the run's clock: the players are ready by then.
///
/// Chosen: a busy machine starts them within it.
const START: Time = Time::from_millis(1_500);

/// How long players listen after the last packet should have come.
///
/// Chosen: as late as a packet of a run that may be used can be, several times.
const LISTEN_ON: Duration = Duration::from_millis(500);

/// Compares the emulator with the simulator: sends the packets of a schedule through a scenario's network in real time and
/// in virtual time, and compares them one by one.
///
/// The schedule is drawn, or taken from a file, or from an earlier emulated run. Real time agrees if the same packets are
/// dropped, and if 99 of 100 departures and delays are at most 1 ms apart: both if virtual time sends packets when they
/// were sent, and if it sends them when they were to be sent. The comparison is in the run folder: agreement.json,
/// agreement.parquet, and report.html with figures. Ends with 1 if they do not agree, and with 3 if they do and the run is
/// unfit.
#[derive(clap::Args)]
#[command(
    before_help = "Example: airpace emu agree trace --set trace.file=TMobile-LTE-short.down --set trace.link.buffer.packets=100\n         \
                   airpace emu agree stationary-busy --seconds 20"
)]
pub struct Args {
    /// A name from `airpace list scenarios`, or a TOML file.
    #[arg(add = complete::scenario())]
    scenario: String,
    /// Sets a key of the scenario by its dotted path; may be given several times.
    #[arg(long, value_name = "KEY=VALUE", value_parser = scenario::key_and_value, add = complete::key())]
    set: Vec<(String, String)>,
    /// Seed of the network's random numbers, and of the drawn schedule's.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How long a drawn schedule is.
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0, value_parser = super::super::positive)]
    seconds: f64,
    /// A schedule instead of a drawn one: a table with the header `ms,bytes,direction` (`down` or `up`) and perhaps
    /// `device` (counted from 1), or the folder of an emulated run, whose packets are sent as they came.
    #[arg(long, value_name = "FILE", conflicts_with = "seconds")]
    schedule: Option<PathBuf>,
    /// The run folder; an earlier run in it is replaced. [default: runs/NAME-NNN, and runs/latest leads there]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Prints one JSON object.
    #[arg(long)]
    json: bool,
    /// Prints nothing of its own but errors.
    #[arg(long)]
    quiet: bool,
}

/// Runs the command.
///
/// # Errors
/// As an emulated run; a schedule that cannot be read, or that the players could not begin in time.
pub fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<Verdict> {
    let scenario = scenario::load(&args.scenario, &args.set)?;
    scenario::asks_for_no_reports(&scenario)?;
    let choice = Choice { argument: args.scenario.clone(), scenario, set: args.set.clone() };
    let plan = choice.scenario.prepare()?.devices_network()?;
    let world = World { plan, devices: choice.scenario.device.len(), seed: args.seed };
    let schedule = schedule(args, &world)?;
    let bar = terminal::activity(args.quiet || args.json);
    bar.set_message("virtual time, packets as scheduled");
    bar.enable_steady_tick(Duration::from_millis(200));
    let as_scheduled =
        virtually(&world, schedule.packets(), |_, packet| Some(START + (packet.at - Time::ZERO)));

    let is_interrupted = on_interrupt()?;
    let stage = Stage::make(world.devices)?;
    let folder = Folder::make(args.out.as_deref(), &choice.scenario.name)?;
    let command = matrix::command_as_typed();
    let host =
        Host { program: called::lasting_name().to_owned(), ..Host::here(&matrix::command_as_typed(), 1) };
    let run =
        EmulatedRun::create(&Setup { out: folder.path.clone(), choice, seed: args.seed, command, host })?;
    let files = RunFolder::open(&folder.path)?;
    let csv = files.write("schedule.csv", schedule.to_csv().as_bytes())?;

    bar.set_message("real time");
    let last = as_scheduled.iter().filter_map(|it| it.released).fold(START + schedule.length(), Time::max);
    let until = last + LISTEN_ON;
    let mut staged = stage.turn(&world, &folder.path)?;
    let start_ns = staged.clock.start_ns() + START.as_nanos();
    let until_ns = staged.clock.start_ns() + until.as_nanos();
    let players = players(&world, &staged.session, &csv, (start_ns, until_ns), &folder.path)?;
    let mut numbers = vec![];
    for player in &players {
        numbers.push(player.start(&mut staged.session)?);
    }
    let longest = (until - Time::ZERO) + Duration::from_secs(30);
    let ends = staged.wait(&numbers, longest, &is_interrupted)?;
    let clock_start_ns = staged.clock.start_ns();
    let Played { mut record, connections, audit } = staged.end()?;

    bar.set_message("virtual time, packets as sent");
    let (mut programs, mut notes) = (vec![], vec![]);
    for (player, number) in players.into_iter().zip(numbers) {
        let exit = ends[number].and_then(|end| end.code).map_or(Exit::Stopped, Exit::Status);
        let device = match player.program.spot {
            Spot::Device(index) => Some(index.into()),
            Spot::Far => None,
        };
        programs.push(Program { device, command: player.line(), exit });
        notes.push(heard(&player.said()?, start_ns)?);
    }
    let sent: Vec<u32> = notes.iter().flat_map(|it| it.sent.iter().map(|&(number, _)| number)).collect();
    let passages = passages(&schedule, &sent, &mut record, &connections);
    let compared =
        passages.map(|passages| compare(&world, &schedule, &as_scheduled, &passages, &notes, clock_start_ns));
    bar.finish_and_clear();
    let is_first = notes.iter().all(|it| it.is_first);
    let ran = Ran { world, record, connections, audit, programs };
    let judged = finish::finish(run, ran, Logs::default(), args.quiet || args.json)?;
    let packets = compared.with_context(|| judged.audit.unfit_because.join("; "))?;
    let agreement = Agreement::of(&packets, START);
    agreement.write(&files, &packets)?;
    report::write(files.root())?;
    if folder.is_numbered {
        point_latest_to(&folder.path);
    }
    tell(args, &agreement, &judged, is_first, schedule.padded, out)?;
    Ok(match (agreement.agrees(), judged.is_fit) {
        (false, _) => Verdict::Failed,
        (true, false) => Verdict::Status(super::run::UNFIT),
        (true, true) => Verdict::Fine,
    })
}

/// The schedule that is asked for.
fn schedule(args: &Args, world: &World) -> anyhow::Result<Schedule> {
    let schedule = match &args.schedule {
        None => {
            let length = Duration::from_secs_f64(args.seconds);
            Schedule::draw(&capacities(world, length), length, &Streams::new(args.seed))
        }
        Some(path) if path.is_dir() => of_run(path)?,
        Some(path) => {
            let name = path.display();
            let text = airpace_files::read_to_string(path, play::MOST_BYTES).with_context(|| {
                format!("cannot read `{name}`; give a table of `ms,bytes,direction`, or the folder of an emulated run")
            })?;
            Schedule::parse(&text).with_context(|| name.to_string())?
        }
    };
    let most = schedule.packets().iter().map(|packet| usize::from(packet.device.0)).max();
    match most {
        None => bail!("the schedule has no packets; give it more --seconds"),
        Some(most) if most >= world.devices => bail!(
            "the schedule has packets of device {}, and the scenario has {}",
            most + 1,
            terminal::count(world.devices as u64, "device")
        ),
        Some(_) => Ok(schedule),
    }
}

/// The packets of an emulated run, as they came to it.
fn of_run(folder: &Path) -> anyhow::Result<Schedule> {
    let arrivals = tables::departures::arrivals(&RunFolder::open(folder)?)?;
    // Packets keep their places in their milliseconds.
    let first_ms = arrivals.iter().map(|arrival| arrival.at.as_millis()).min().unwrap_or_default();
    let mut padded = 0;
    let planned = arrivals.iter().map(|arrival| {
        padded += u64::from(arrival.bytes.0 < Schedule::LEAST_BYTES);
        Planned {
            at: Time::ZERO + (arrival.at - Time::from_millis(first_ms)),
            device: arrival.device,
            direction: arrival.direction,
            bytes: Bytes(arrival.bytes.0.clamp(Schedule::LEAST_BYTES, 1_500)),
        }
    });
    let planned = planned.collect();
    Ok(Schedule::of(planned, padded))
}

/// What virtual time does with the packets that `when` gives a time; the others are never sent.
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

/// A player for the far side, and one for each device.
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

/// The notes that a player has printed.
fn heard(said: &str, start_ns: u64) -> anyhow::Result<Notes> {
    let Some(notes) = Notes::parse(said) else {
        let last = said.lines().last().unwrap_or("nothing");
        bail!("a player of the schedule failed; it said: {last}");
    };
    if notes.ready_ns > start_ns {
        bail!("a player of the schedule was not ready in time: the machine is too busy; try it again");
    }
    Ok(notes)
}

/// Every packet of the schedule, in real and in virtual time.
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
                    // Copies come later.
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

/// Prints what was found.
fn tell(
    args: &Args,
    agreement: &Agreement,
    judged: &Judged,
    is_first: bool,
    padded: u64,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    if args.json {
        let mut value = serde_json::to_value(agreement)?;
        if let Some(object) = value.as_object_mut() {
            object.remove("courses");
            for of in ["as_sent", "as_scheduled"] {
                object.get_mut(of).and_then(|it| it.as_object_mut()?.remove("departures_cdf"));
            }
            object.insert("agrees".to_owned(), agreement.agrees().into());
            object.insert("fit".to_owned(), judged.is_fit.into());
            object.insert("objections".to_owned(), agreement.objections().into());
        }
        writeln!(out, "{value}")?;
    } else if !args.quiet {
        let paint = Paint::stdout();
        table(agreement).write(out, paint)?;
        let Agreement { packets, delivered, dropped, as_sent, as_scheduled, .. } = agreement;
        let counts = format!(
            "{}: {} came, {} were dropped; virtual time drops {} as sent, {} as scheduled",
            terminal::count(*packets, "packet"),
            terminal::thousands(*delivered),
            terminal::thousands(*dropped),
            terminal::thousands(as_sent.dropped),
            terminal::thousands(as_scheduled.dropped),
        );
        writeln!(out, "{}", terminal::fit(&counts))?;
        match agreement.agrees() {
            true => writeln!(out, "{}", paint.good("Real time and virtual time agree."))?,
            false => {
                for said in agreement.objections() {
                    writeln!(out, "{}", terminal::fit(&format!("{} {said}", paint.bad("They differ:"))))?;
                }
            }
        }
    }
    if args.quiet {
        return Ok(());
    }
    if padded > 0 {
        let packets = terminal::count(padded, "packet");
        let least = Schedule::LEAST_BYTES;
        terminal::say(format!(
            "{packets} of the schedule had fewer than {least} bytes and were sent with {least}."
        ));
    }
    if !is_first {
        terminal::say("The players had no real-time priority: on a busy machine they send late.");
    }
    for reason in &judged.audit.unfit_because {
        terminal::say_painted(format_args!("{} {reason}", Paint::stderr().bad("Unfit:     ")));
    }
    terminal::say(format_args!("Run folder: {}", judged.finished.folder.root().display()));
    terminal::say(format_args!("Report:     {}", judged.finished.page.display()));
    Ok(())
}

fn table(agreement: &Agreement) -> Table {
    let Agreement { as_sent, as_scheduled, .. } = agreement;
    let mut table = Table::new(&["ms", "p50", "p99", "max"], 1);
    let mut row = |what: &str, of: &Percentiles| {
        let text = |value: Option<f64>| value.map_or("–".to_owned(), |value| format!("{value:.3}"));
        table.row(vec![what.to_owned(), text(of.p50), text(of.p99), text(of.max)]);
    };
    row("departures apart, packets as sent", &as_sent.departures_ms);
    row("departures apart, packets as scheduled", &as_scheduled.departures_ms);
    row("delays apart, packets as scheduled", &as_scheduled.delays_ms);
    row("sent late by the sender", &agreement.sent_late_ms);
    row("waited until the emulator read it", &agreement.read_late_ms);
    row("handed over late by the emulator", &agreement.handed_late_ms);
    table
}
