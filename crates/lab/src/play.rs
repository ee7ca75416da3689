//! Sends and receives the packets of a schedule on one host.

use std::io::Write;
use std::net::Ipv4Addr;

use airpace_emu::play::player::{Part, Side, play};
use airpace_emu::play::schedule::Schedule;

use crate::error::LabError;

/// Sends the packets of the schedule, and writes records of sent and received packets to `out`. `device` is the index of
/// the device on which this program runs, and `None` at the far end. `peers` has the address of the far end, or the
/// addresses of the devices in order. `span_ns` is the start of the schedule and the end of reception, in nanoseconds of
/// the machine's monotonic clock.
///
/// # Errors
/// A socket fails, there is no peer, or `out` cannot be written.
pub fn run(
    schedule: &Schedule,
    device: Option<u16>,
    peers: &[Ipv4Addr],
    (start_ns, until_ns): (u64, u64),
    out: &mut dyn Write,
) -> Result<(), LabError> {
    let side = match (device, peers) {
        (Some(device), [far, ..]) => Side::Device(device, *far),
        (Some(_), []) => return Err(LabError::Refused("a device has no peer".into())),
        (None, devices) => Side::Far(devices.to_vec()),
    };
    let part = Part { side, start_ns, until_ns };
    let notes = play(schedule, &part).map_err(LabError::step("cannot send or receive packets"))?;
    out.write_all(notes.to_text().as_bytes()).map_err(LabError::step("cannot write the records"))
}
