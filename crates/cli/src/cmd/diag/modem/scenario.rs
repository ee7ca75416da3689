//! What a simulated device's modem says: a simulation that runs ahead of the wall clock.

use std::cell::Cell;
use std::ops::ControlFlow;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use airpace_cc::SchemeSpec;
use airpace_core::{DeviceId, Event, RadioReport, Recorder, Time};
use airpace_diag::Radio;
use airpace_diag::compose::{ComposeOptions, Composed, Composer};
use airpace_live::modem::{Next, Said, Stamped};
use airpace_sim::Prepared;
use anyhow::{anyhow, bail};

use crate::cmd::scenario;

/// How a scenario is driven.
#[derive(Clone)]
pub struct Drive {
    /// Whose modem speaks.
    pub device: u16,
    /// The seed; of each further round the next.
    pub seed: u64,
    /// How many times as fast as the scenario's clock.
    pub speed: f64,
    /// Whether it runs again when it is over.
    pub is_looped: bool,
    /// The scheme under test; `None` is the scenario's first.
    pub scheme: Option<SchemeSpec>,
}

/// A simulation that runs.
pub struct Driven {
    about: String,
    said: Option<Receiver<Said>>,
    thread: JoinHandle<anyhow::Result<()>>,
}

/// Packets that a simulation may be ahead.
///
/// Chosen: some seconds of them: a simulation is much faster than the wall clock, and waits.
const AHEAD: usize = 4_096;

impl Driven {
    /// Begins to simulate.
    ///
    /// # Errors
    /// A scenario that cannot be loaded, has no cell or no such device.
    pub fn start(name: &str, sets: &[(String, String)], drive: Drive) -> anyhow::Result<Driven> {
        let loaded = scenario::load(name, sets)?;
        let (title, devices) = (loaded.name.clone(), loaded.device.len());
        if loaded.cell.is_none() {
            bail!("`{title}` has no cell that could grant anything; `airpace list scenarios` tells which do");
        }
        if usize::from(drive.device) >= devices {
            bail!("`{title}` has {devices} devices: --device goes from 0 to {}", devices.saturating_sub(1));
        }
        let scheme = match &drive.scheme {
            Some(scheme) => scheme.clone(),
            None => match loaded.schemes.first() {
                Some(scheme) => SchemeSpec::parse(scheme)?,
                None => SchemeSpec::parse("cubic")?,
            },
        };
        let seconds = loaded.duration().as_secs_f64();
        let about = format!("device {} of `{title}` with {}, {seconds} s", drive.device, scheme.text());
        let prepared = loaded.prepare()?;
        let (say, said) = sync_channel(AHEAD);
        let thread = thread::Builder::new()
            .name("simulation".to_owned())
            .spawn(move || simulate(&prepared, &scheme, &drive, &say))?;
        Ok(Driven { about, said: Some(said), thread })
    }

    /// What it is, for people.
    pub fn about(&self) -> String {
        self.about.clone()
    }

    /// What the modem says next.
    pub fn next(&mut self) -> Next {
        match self.said.as_ref().map(Receiver::try_recv) {
            Some(Ok(said)) => Next::Said(said),
            Some(Err(TryRecvError::Empty)) => Next::Later,
            Some(Err(TryRecvError::Disconnected)) | None => Next::End,
        }
    }

    /// Ends the simulation.
    ///
    /// # Errors
    /// Why it had ended by itself before its time.
    pub fn stop(mut self) -> anyhow::Result<()> {
        // A simulation that waits for room finds that nobody listens any more.
        self.said = None;
        self.thread.join().map_err(|_| anyhow!("the simulation broke down"))?
    }
}

fn simulate(
    prepared: &Prepared,
    scheme: &SchemeSpec,
    drive: &Drive,
    say: &SyncSender<Said>,
) -> anyhow::Result<()> {
    let round = prepared.scenario().duration();
    let is_heard = Cell::new(true);
    let mut begin = Duration::ZERO;
    for seed in drive.seed.. {
        let composer = Composer::new(ComposeOptions::default());
        let device = DeviceId(drive.device);
        let mut modem = Log { device, composer, begin, speed: drive.speed, say, is_heard: &is_heard };
        prepared.run(scheme, seed, &mut modem, &mut |_| {
            if is_heard.get() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        modem.finish();
        if !is_heard.get() || !drive.is_looped {
            break;
        }
        begin += round;
    }
    Ok(())
}

/// A device's modem in a run.
struct Log<'a> {
    device: DeviceId,
    composer: Composer,
    /// When the run began, by the clock of the speech at its own speed.
    begin: Duration,
    speed: f64,
    say: &'a SyncSender<Said>,
    /// Whether somebody still listens.
    is_heard: &'a Cell<bool>,
}

impl Log<'_> {
    fn finish(&mut self) {
        let Log { composer, speed, say, is_heard, .. } = self;
        composer.finish(|composed| send(composed, *speed, say, is_heard));
    }
}

impl Recorder for Log<'_> {
    fn record(&mut self, _: Event<'_>) {}

    fn wants_subframes(&self) -> bool {
        false
    }

    fn wants_modem_log(&self, device: DeviceId) -> bool {
        device == self.device
    }

    fn modem_log(&mut self, device: DeviceId, report: &RadioReport) {
        // Devices whose controllers read their own modems log as well.
        if device != self.device || !self.is_heard.get() {
            return;
        }
        let Log { composer, begin, speed, say, is_heard, .. } = self;
        let report = RadioReport {
            time: report.time + *begin,
            subframe_index: report.subframe_index + begin.as_millis() as u64,
            ..report.clone()
        };
        composer.push(&report, |composed| send(composed, *speed, say, is_heard));
    }
}

fn send(composed: Composed, speed: f64, say: &SyncSender<Said>, is_heard: &Cell<bool>) {
    let was_heard = say.send(said(composed, speed)).is_ok();
    is_heard.set(is_heard.get() && was_heard);
}

/// At so many times the pace of the scenario's clock.
fn said(composed: Composed, speed: f64) -> Said {
    let at = Time::from_secs_f64(composed.at.as_secs_f64() / speed);
    Said { at, radio: Radio::FIRST, code: composed.code, stamped: Stamped::At(at), payload: composed.payload }
}
