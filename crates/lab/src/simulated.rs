//! Log packets of a simulated device's modem: in virtual time, and for the emulated modem, ahead of the wall clock.

mod file;
mod log;

use std::ops::ControlFlow;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use airpace_core::Time;
use airpace_diag::Radio;
use airpace_diag::compose::Composed;
use airpace_modem::modem::{Next, Stamped, TimedPacket};

use crate::error::LabError;

pub use file::{LogWriter, Written};
pub use log::{Simulated, SimulatedError};

/// Parameters of the simulation of a scenario.
#[derive(Clone, Copy)]
pub struct Drive {
    /// Seed of the first round; the seed of each further round is larger by one.
    pub seed: u64,
    /// Speed factor relative to the scenario's clock.
    pub speed: f64,
    /// Whether to restart the scenario when it has ended.
    pub is_looped: bool,
}

/// A running simulation.
pub struct Driven {
    about: String,
    packets: Option<Receiver<TimedPacket>>,
    thread: JoinHandle<Result<(), LabError>>,
}

/// Maximum number of packets that the simulation produces ahead of their transmission.
///
/// Chosen: the packets of a few seconds. The simulation is much faster than the wall clock and waits.
const AHEAD: usize = 4_096;

impl Driven {
    /// Starts the simulation.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn start(simulated: Simulated, drive: Drive) -> std::io::Result<Driven> {
        let about = format!("{}, {} s", simulated.about(), simulated.duration().as_secs_f64());
        let (say, packets) = sync_channel(AHEAD);
        let thread = thread::Builder::new()
            .name("simulation".to_owned())
            .spawn(move || simulate(&simulated, drive, &say))?;
        Ok(Driven { about, packets: Some(packets), thread })
    }

    /// Describes the scenario for the user.
    pub fn about(&self) -> String {
        self.about.clone()
    }

    /// Returns the modem's next packet.
    pub fn say(&mut self) -> Next {
        match self.packets.as_ref().map(Receiver::try_recv) {
            Some(Ok(packet)) => Next::Packet(packet),
            Some(Err(TryRecvError::Empty)) => Next::Later,
            Some(Err(TryRecvError::Disconnected)) | None => Next::End,
        }
    }

    /// Stops the simulation.
    ///
    /// # Errors
    /// The error with which the simulation had already stopped.
    pub fn stop(mut self) -> Result<(), LabError> {
        // Dropping the receiver stops a simulation that waits for space in the channel.
        self.packets = None;
        self.thread.join().map_err(|_| LabError::Refused("the simulation broke down".to_owned()))?
    }
}

fn simulate(simulated: &Simulated, drive: Drive, say: &SyncSender<TimedPacket>) -> Result<(), LabError> {
    let mut begin = Duration::ZERO;
    let mut is_heard = true;
    for seed in drive.seed.. {
        simulated.run(seed, begin, &mut |composed| {
            is_heard = say.send(timed_packet(composed, drive.speed)).is_ok();
            if is_heard { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        if !is_heard || !drive.is_looped {
            break;
        }
        begin += simulated.duration();
    }
    Ok(())
}

/// Converts a log packet, with time accelerated by the factor `speed` relative to the scenario's clock.
fn timed_packet(composed: Composed, speed: f64) -> TimedPacket {
    let at = Time::from_secs_f64(composed.at.as_secs_f64() / speed);
    TimedPacket {
        at,
        radio: Radio::FIRST,
        code: composed.code,
        stamped: Stamped::At(at),
        payload: composed.payload,
    }
}
