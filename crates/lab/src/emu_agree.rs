//! Agreement of the emulator with the simulator: sends one schedule of packets through one network, in real time and in
//! virtual time.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use airpace_core::{Ecn, Time};
use airpace_emu::World;
use airpace_emu::crossing::Arrival;
use airpace_emu::play::player::Notes;
use airpace_emu::play::recorded::{Passage, passages};
use airpace_emu::play::schedule::{Planned, Schedule};
use airpace_emu::play::virtually::{Outcome, cross};
use airpace_emu::session::{Far, Spot};
use airpace_emu::turn::Begins;
use airpace_run::emulation::{EmulatedRun, Setup};
use airpace_run::manifest::{Exit, Program};
use airpace_run::{Agreement, Choice, RunFolder};
use airpace_tables::agreement::{Compared, Real, Virtual};

use crate::error::LabError;
use crate::finish::{Judged, Ran, finish};
use crate::part::{Executable, Part};
use crate::schedule::{Wanted, schedule};
use crate::stage::{Played, Player, Stage};

/// Start of the schedule, by the run's clock. All players are ready by then.
///
/// Chosen: even a busy machine starts all players within this time.
const START: Time = Time::from_millis(1_500);

/// Time for which players still receive after the last packet's due time.
///
/// Chosen: several times the maximum lateness of a packet in a valid run.
const LISTEN_ON: Duration = Duration::from_millis(500);

/// Maximum time from the end of reception until the players have ended.
///
/// Chosen: enough for a busy machine to write the records of many packets.
const ENDS_WITHIN: Duration = Duration::from_secs(30);

/// A step of a comparison, for the display of its progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The packets cross the network in virtual time, at their scheduled transmission times.
    AsScheduled,
    /// The packets cross the network in real time. The values are the current time on the clock of the run, and the end
    /// of the run.
    RealTime(Time, Time),
    /// Tables and metrics of the run are computed.
    Tables,
    /// The packets cross the network in virtual time, at their actual transmission times.
    AsSent,
}

/// A comparison whose schedule is known and whose namespaces exist.
pub struct Comparison {
    executable: Executable,
    world: World,
    schedule: Schedule,
    as_scheduled: Vec<Outcome>,
    stage: Stage,
}

/// Results of a comparison. `agreement.json` and its table are in the run folder.
pub struct Agreed {
    /// The comparison.
    pub agreement: Agreement,
    /// The emulated run.
    pub judged: Judged,
    /// Whether all players had real-time priority.
    pub is_first: bool,
    /// Number of packets that were enlarged to the minimum size.
    pub padded: u64,
}

impl Comparison {
    /// Makes the schedule, sends it in virtual time, and creates the namespaces.
    ///
    /// # Errors
    /// The scenario or the schedule is invalid, or the machine cannot emulate.
    pub fn prepare(
        executable: &Executable,
        choice: &Choice,
        seed: u64,
        wanted: &Wanted,
        tell: &dyn Fn(Step),
    ) -> Result<Comparison, LabError> {
        let plan = choice.scenario.prepare_endless()?.devices_network()?;
        let world = World { plan, devices: choice.scenario.device.len(), seed };
        let schedule = schedule(&world, wanted)?;
        tell(Step::AsScheduled);
        let at = |_: usize, packet: &Planned| Some(START + (packet.at - Time::ZERO));
        let as_scheduled = virtually(&world, schedule.packets(), at);
        let stage = Stage::make(executable, world.devices, Far::Own)?;
        Ok(Comparison { executable: executable.clone(), world, schedule, as_scheduled, stage })
    }

    /// Sends the schedule in real time and compares. Writes the run folder, except for the page and the final manifest.
    ///
    /// # Errors
    /// A file cannot be written, or a player failed.
    pub fn run(
        self,
        setup: &Setup,
        is_interrupted: &AtomicBool,
        tell: &dyn Fn(Step),
    ) -> Result<Agreed, LabError> {
        let Comparison { executable, world, schedule, as_scheduled, stage } = self;
        let folder = &setup.out;
        let run = EmulatedRun::create(setup)?;
        let files = RunFolder::open(folder)?;
        let csv = files.write("schedule.csv", schedule.to_csv().as_bytes())?;

        let released = as_scheduled.iter().filter_map(|it| it.released);
        let until = released.fold(START + schedule.length(), Time::max) + LISTEN_ON;
        let mut staged = stage.turn(&world, Begins::AtOnce, None, folder)?;
        let clock_start_ns = staged.clock.start_instant().as_nanos();
        let span_ns = (clock_start_ns + START.as_nanos(), clock_start_ns + until.as_nanos());
        let players = players(&executable, &world, &staged.session, &csv, span_ns, folder)?;
        let mut numbers = vec![];
        for player in &players {
            numbers.push(player.start(&mut staged.session)?);
        }
        let longest = (until - Time::ZERO) + ENDS_WITHIN;
        let ends = staged.wait(&numbers, longest, is_interrupted, |now| tell(Step::RealTime(now, until)))?;
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
        tell(Step::Tables);
        let ran = Ran { world: world.clone(), record, connections, audit, controls, programs };
        let judged = finish(run, ran, None)?;
        let passages = passages.map_err(LabError::step(judged.audit.unfit_because.join("; ")))?;
        tell(Step::AsSent);
        let packets = compare(&world, &schedule, &as_scheduled, &passages, &notes, clock_start_ns);
        let mut unfit_because = judged.audit.unfit_because.clone();
        if notes.iter().any(|it| it.ready_ns > span_ns.0) {
            unfit_because
                .push("a player of the schedule was not ready when it began; try it again".to_owned());
        }
        let agreement = Agreement::of(&packets, START, unfit_because);
        files.write_agreement(&agreement, &packets)?;
        let is_first = notes.iter().all(|it| it.is_first);
        Ok(Agreed { agreement, judged, is_first, padded: schedule.padded })
    }
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
    executable: &Executable,
    world: &World,
    session: &airpace_emu::Session,
    schedule: &Path,
    (start_ns, until_ns): (u64, u64),
    folder: &Path,
) -> Result<Vec<Player>, LabError> {
    let path = std::path::absolute(schedule);
    let schedule = path.map_err(LabError::step(format!("there is no `{}`", schedule.display())))?;
    let part = |device: Option<u16>, peers| {
        let schedule = schedule.clone();
        Part::Play { schedule, device, peers, start_ns, until_ns }
    };
    let devices: Option<Vec<_>> =
        (0..world.devices).map(|index| Some(session.device(index)?.address_v4())).collect();
    let devices = devices.ok_or(LabError::Refused("a device has no address; please report this".into()))?;
    let mut players = vec![Player::part(executable, &part(None, devices), Spot::Far, folder)?];
    for index in 0..world.devices {
        let part = part(Some(index as u16), vec![session.space().address_v4()]);
        players.push(Player::part(executable, &part, Spot::Device(index as u8), folder)?);
    }
    Ok(players)
}

/// Parses the records that a player has printed.
fn heard(said: &str) -> Result<Notes, LabError> {
    Notes::parse(said).ok_or_else(|| {
        let last = said.lines().last().unwrap_or("nothing");
        LabError::Program { said: format!("a player of the schedule failed; it said: {last}") }
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
                    // Duplicates arrive later, so the first time is kept.
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
