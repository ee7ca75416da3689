//! One run of the kernel's TCP: a bulk flow over a trace-driven link, emulated in real time and replayed in virtual
//! time.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use airpace_core::count::count;
use airpace_core::{Direction, Refused, Time};
use airpace_emu::World;
use airpace_emu::bulk::PORT;
use airpace_emu::replay::{Departure, Reader, replay};
use airpace_emu::session::{Far, Spot};
use airpace_emu::turn::Begins;
use airpace_event::{Event, Fate};
use airpace_sim::Scenario;

use super::{Condition, KernelRun, figures};
use crate::error::LabError;
use crate::part::{Executable, Part};
use crate::stage::{Played, Player, Stage};

/// Wall-clock duration of a run.
pub fn wall(condition: &Condition) -> Duration {
    Duration::from_secs(condition.seconds() as u64 + 1)
}

/// Maximum time for the programs in addition to the run.
const SPARE: Duration = Duration::from_secs(30);

/// Limits of the lateness of a valid run in ms: 99.9th percentile and maximum.
///
/// Chosen: one scheduler tick, and the round-trip time of the empty path, within which a congestion window cannot
/// react.
const LATE_MS: (f64, f64) = (1.0, 40.0);

/// Downlink packets of a run, until the end of its duration.
struct Data {
    seconds: f64,
    bytes: u64,
    delays_ms: Vec<f64>,
    dropped: u64,
}

impl Reader for Data {
    fn departed(&mut self, departure: &Departure) {
        let in_time = (departure.due - Time::ZERO).as_secs_f64() <= self.seconds;
        if departure.direction != Direction::Downlink || !in_time {
            return;
        }
        if departure.fate == Fate::Delivered {
            let one_way = departure.due - departure.arrived;
            let queueing = one_way.saturating_sub(departure.propagation_delay);
            self.bytes += departure.bytes.0;
            self.delays_ms.push(queueing.as_secs_f64() * 1e3);
        } else {
            self.dropped += 1;
        }
    }

    fn told(&mut self, _: &Event<'_>) {}
}

/// A run of the kernel's TCP that is to be measured.
pub struct Bulk<'a> {
    /// This program.
    pub executable: &'a Executable,
    /// Folder of the recorded links.
    pub traces: &'a Path,
    /// Condition of the run.
    pub condition: &'a Condition,
    /// Seed of the path's random numbers.
    pub seed: u64,
    /// Folder for temporary files.
    pub folder: &'a Path,
}

/// Performs a run, and reports its progress to `tell`. Returns the reason if the run is invalid.
///
/// # Errors
/// The machine cannot emulate, the kernel lacks the congestion control, or the run was interrupted.
pub fn run(
    bulk: &Bulk<'_>,
    is_interrupted: &AtomicBool,
    tell: impl Fn(Duration),
) -> Result<Result<KernelRun, Refused>, LabError> {
    let &Bulk { executable, traces, condition, seed, folder } = bulk;
    let seconds = condition.seconds();
    let traces = std::path::absolute(traces).map_err(LabError::step("there is no such folder of traces"))?;
    let plan = Scenario::load(&condition.scenario(&traces), "kernel-truth", &[])?;
    let world = World { plan: plan.prepare_endless()?.devices_network()?, devices: 1, seed };
    let mut staged = Stage::make(executable, 1, Far::Own)?.turn(&world, Begins::WithData, None, folder)?;
    let address = SocketAddr::new(staged.session.space().address_v4().into(), PORT);
    let part = |listens: bool, seconds: f64, control: Option<String>| Part::Bulk {
        listens,
        address,
        sends: listens,
        seconds,
        control,
        is_wide: true,
    };
    let sender = part(true, seconds + SPARE.as_secs_f64(), Some(condition.scheme.clone()));
    let sender = Player::part(executable, &sender, Spot::Far, folder)?;
    // The reader receives its first byte after the sender's first packet, which starts the run.
    let reader = Player::part(executable, &part(false, seconds, None), Spot::Device(0), folder)?;
    let failed = |said: String| LabError::Program {
        said: format!("a flow under `{}` failed: {}", condition.scheme, said.trim()),
    };
    if !sender.serve(&mut staged.session)?.1 {
        staged.end()?;
        return Err(failed(sender.said()?));
    }
    let read = reader.start(&mut staged.session)?;
    let ends = staged.wait(&[read], wall(condition) + SPARE, is_interrupted, |at| tell(at - Time::ZERO))?;
    let Played { mut record, audit, .. } = staged.end()?;
    if ends[read].is_none_or(|end| end.code != Some(0)) {
        return Err(failed(format!("{} {}", sender.said()?, reader.said()?)));
    }
    let mut data = Data { seconds, bytes: 0, delays_ms: vec![], dropped: 0 };
    let replayed = replay(&world, &mut record, &mut data)
        .map_err(LabError::step("the record of packets cannot be read again"))?;
    let late = [
        (audit.lateness_p999_ms, LATE_MS.0, "at the 99.9th percentile"),
        (audit.lateness_max_ms, LATE_MS.1, "at most"),
    ];
    if let Some((ms, bound_ms, when)) = late.into_iter().find(|(ms, bound_ms, _)| ms > bound_ms) {
        return Ok(Err(
            format!("the emulator was late by {ms:.1} ms {when}; {bound_ms} ms are allowed").into()
        ));
    }
    let lost = record.lost + audit.counts.unread + audit.counts.refused + audit.counts.not_taken;
    if lost + replayed.differing > 0 {
        return Ok(Err(format!(
            "the emulator itself lost {}, and in virtual time {} went another way",
            count(lost, "packet"),
            count(replayed.differing, "packet")
        )
        .into()));
    }
    Ok(Ok(KernelRun {
        figures: figures(data.bytes, data.delays_ms, seconds),
        dropped: data.dropped,
        lateness_p999_us: (audit.lateness_p999_ms * 1e3).round() as u64,
    }))
}
