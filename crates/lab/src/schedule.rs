//! The schedule of a comparison: drawn, read from a table, or taken from an emulated run.

use std::path::{Path, PathBuf};
use std::time::Duration;

use airpace_core::count::count;
use airpace_core::{Bytes, DeviceId, Streams, Time};
use airpace_emu::World;
use airpace_emu::play::schedule::{Kind, Planned, Schedule};
use airpace_emu::play::virtually::capacities;
use airpace_run::RunFolder;
use airpace_run::emulation::departures;

use crate::error::LabError;

/// Maximum size of a schedule file (bytes).
///
/// Chosen: as many packets as a schedule may have, in lines of 40 bytes.
const MAX_BYTES: u64 = 800 << 20;

/// Default duration of a drawn schedule.
///
/// Chosen: some thousands of packets, in a time for which a user is willing to wait.
const DRAWN: Duration = Duration::from_secs(10);

/// Maximum duration of a schedule: one day, as for schedules in tables.
pub const MAX_LENGTH: Duration = Duration::from_secs(86_400);

/// Which packets a comparison sends.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// Origin of the packets.
    pub origin: Origin,
    /// Duration of the schedule. `None`: 10 s if the packets are drawn, otherwise the duration of all packets.
    pub length: Option<Duration>,
    /// The device whose packets are sent; `None` for all devices.
    pub only: Option<DeviceId>,
}

/// Origin of the packets of a schedule.
#[derive(Clone, Debug)]
pub enum Origin {
    /// Drawn with the seed of the comparison.
    Drawn(Kind),
    /// A table with the header `ms,bytes,direction` and optionally the column `device`, or the folder of an emulated run,
    /// whose packets are sent at their arrival times in that run.
    Path(PathBuf),
}

impl Origin {
    /// The origin with this name: `mixed`, `even`, or a path.
    pub fn named(name: &str) -> Origin {
        match name {
            "mixed" => Origin::Drawn(Kind::Mixed),
            "even" => Origin::Drawn(Kind::Even),
            path => Origin::Path(PathBuf::from(path)),
        }
    }
}

/// The schedule for the network of `world`.
///
/// # Errors
/// The table or the run cannot be read, the scenario lacks a device, or no packet is left.
pub fn schedule(world: &World, wanted: &Wanted) -> Result<Schedule, LabError> {
    let Wanted { origin, length, only } = wanted;
    let devices = count(world.devices as u64, "device");
    let refused = |reason: String| Err(LabError::Refused(reason.into()));
    if let Some(only) = only.filter(|only| usize::from(only.0) >= world.devices) {
        return refused(format!("device {}: the scenario has {devices}", only.0 + 1));
    }
    if length.is_some_and(|length| length > MAX_LENGTH) {
        return refused(format!("a schedule lasts at most a day, {} seconds", MAX_LENGTH.as_secs()));
    }
    let schedule = match origin {
        Origin::Drawn(kind) => {
            let length = length.unwrap_or(DRAWN);
            Schedule::draw(*kind, &capacities(world, length, *only), length, &Streams::new(world.seed))
        }
        Origin::Path(path) if path.is_dir() => of_run(path)?,
        Origin::Path(path) => read(path)?,
    };
    let end = length.map_or(Time::NEVER, |length| Time::ZERO + length);
    let schedule = schedule.cut(*only, end);
    match (schedule.packets().iter().map(|packet| usize::from(packet.device.0)).max(), origin) {
        (None, Origin::Drawn(_)) => refused("the schedule has no packets; give it more time".to_owned()),
        (None, Origin::Path(path)) => {
            refused(format!("{}: no packet is left; give it more time, or another device", path.display()))
        }
        (Some(most), _) if most >= world.devices => refused(format!(
            "the schedule has packets of device {}, and the scenario has {devices}",
            most + 1
        )),
        (Some(_), _) => Ok(schedule),
    }
}

/// Reads a schedule from a table.
///
/// # Errors
/// The file cannot be read, or is not a schedule.
pub fn read(path: &Path) -> Result<Schedule, LabError> {
    let name = path.display();
    let read = airpace_files::read_recording(path, MAX_BYTES);
    let text = read.and_then(|bytes| String::from_utf8(bytes).map_err(std::io::Error::other));
    let text = text.map_err(LabError::step(format!(
        "schedule {name}: cannot be read; give `mixed`, `even`, a table of `ms,bytes,direction`, or the folder of an \
         emulated run"
    )))?;
    Schedule::parse(&text).map_err(|error| LabError::Refused(format!("{name}: {error}").into()))
}

/// Schedule of the packets of an emulated run, with their arrival times.
fn of_run(folder: &Path) -> Result<Schedule, LabError> {
    let arrivals = departures::arrivals(&RunFolder::open(folder)?)?;
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
