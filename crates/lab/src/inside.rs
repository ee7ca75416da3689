//! What this program does when an experiment starts it again inside of an emulated network.

use std::io::Write;
use std::time::Duration;

use airpace_emu::bulk::{self, Bulk};

use crate::agree::flow;
use crate::error::LabError;
use crate::part::Part;
use crate::{play, schedule};

/// Runs a part, given as JSON, to its end. Its results are written to `out`.
///
/// # Errors
/// The JSON is not a part, or the part failed.
pub fn run(json: &str, out: &mut dyn Write) -> Result<(), LabError> {
    let part = serde_json::from_str(json);
    match part
        .map_err(|error| LabError::Refused(format!("`{json}` is no part of an experiment: {error}").into()))?
    {
        Part::Play { schedule, device, peers, start_ns, until_ns } => {
            let schedule = schedule::read(&schedule)?;
            play::run(&schedule, device, &peers, (start_ns, until_ns), out)
        }
        Part::Bulk { listens, address, sends, seconds, control, is_wide } => {
            let long = Duration::try_from_secs_f64(seconds);
            let bulk = Bulk {
                part: if listens { bulk::Part::Listen } else { bulk::Part::Connect },
                address,
                task: if sends { bulk::Task::Send } else { bulk::Task::Receive },
                long: long.map_err(|_| LabError::Refused("the time is too long".into()))?,
                congestion_control: control,
                is_wide,
            };
            bulk_flow(&bulk, out)
        }
        Part::Flow { over, at, order } => flow::run(over, at, order, out),
    }
}

/// Runs one endpoint of a bulk flow until the transfer ends. An endpoint that listens prints a line as soon as it
/// listens, and a receiver prints its goodput in Mbit/s.
///
/// # Errors
/// The connection cannot be opened, or a system call failed.
pub fn bulk_flow(bulk: &Bulk, out: &mut dyn Write) -> Result<(), LabError> {
    let goodput_mbps = bulk.run(|| {
        // A caller that does not read this line does not wait for it.
        let _ = writeln!(out, "listening").and_then(|()| out.flush());
    });
    let goodput_mbps = goodput_mbps.map_err(LabError::step("the flow failed"))?;
    if bulk.task == bulk::Task::Receive {
        writeln!(out, "{goodput_mbps}").map_err(LabError::step("cannot write the goodput"))?;
    }
    Ok(())
}

/// Holds the namespaces of an emulated run until the emulator closes the socket with this number. Returns the exit status.
pub fn hold(socket: i32) -> i32 {
    airpace_emu::session::inside(socket)
}
