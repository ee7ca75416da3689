//! Log packets of a simulated device's modem about its cell.

use std::cell::Cell;
use std::ops::ControlFlow;
use std::time::Duration;

use airpace_cc::SchemeSpec;
use airpace_core::DeviceId;
use airpace_diag::compose::{ComposeOptions, Composed, Composer};
use airpace_event::{Detail, Event, Recorder, Reported, Source};
use airpace_radio::RadioReport;
use airpace_sim::{Prepared, Scenario};

use crate::agree::asks_for_no_reports;
use crate::error::LabError;

/// Error of a scenario whose modem cannot be simulated.
#[derive(Debug, thiserror::Error)]
pub enum SimulatedError {
    /// The scenario has no cell.
    #[error("`{scenario}` has no cell that could grant anything")]
    NoCell {
        /// Name of the scenario.
        scenario: String,
    },
    /// The scenario has no device of this index.
    #[error("`{scenario}` has {devices} devices only")]
    NoDevice {
        /// Name of the scenario.
        scenario: String,
        /// Number of its devices.
        devices: usize,
    },
    /// The scenario cannot be run.
    #[error(transparent)]
    Lab(#[from] LabError),
}

/// A scenario, with the device whose modem is logged.
pub struct Simulated {
    about: String,
    prepared: Prepared,
    scheme: SchemeSpec,
    device: DeviceId,
}

impl Simulated {
    /// Prepares a scenario. `device` is the index of the device with the modem. Without `scheme`, the scenario's first
    /// scheme is under test.
    ///
    /// # Errors
    /// The scenario asks for files of reports, has no cell or no such device, or names files that cannot be read.
    pub fn new(
        scenario: &Scenario,
        device: u16,
        scheme: Option<SchemeSpec>,
    ) -> Result<Simulated, SimulatedError> {
        asks_for_no_reports(scenario)?;
        if scenario.cell.is_none() {
            return Err(SimulatedError::NoCell { scenario: scenario.name.clone() });
        }
        let devices = scenario.device.len();
        if usize::from(device) >= devices {
            return Err(SimulatedError::NoDevice { scenario: scenario.name.clone(), devices });
        }
        let scheme = scheme.unwrap_or_else(|| scenario.schemes()[0].clone());
        let about = format!("device {device} of `{}` with {}", scenario.name, scheme.text());
        let prepared = scenario.prepare().map_err(LabError::from)?;
        Ok(Simulated { about, prepared, scheme, device: DeviceId(device) })
    }

    /// The device and scenario, as text for people.
    pub fn about(&self) -> &str {
        &self.about
    }

    /// The duration of the scenario.
    pub fn duration(&self) -> Duration {
        self.prepared.scenario().duration()
    }

    /// Runs the scenario and calls the callback with each packet. The times of packets are those of a run that starts at
    /// `begin`. Stops when the callback returns `Break`.
    ///
    /// # Errors
    /// The scenario cannot be run.
    pub fn run(
        &self,
        seed: u64,
        begin: Duration,
        hear: &mut dyn FnMut(Composed) -> ControlFlow<()>,
    ) -> Result<(), LabError> {
        let is_heard = Cell::new(true);
        let composer = Composer::new(ComposeOptions::default());
        let mut modem = Modem { device: self.device, composer, begin, hear, is_heard: &is_heard };
        airpace_sim::run_prepared(&self.prepared, &self.scheme, seed, &mut modem, &mut |_| {
            if is_heard.get() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        modem.finish();
        Ok(())
    }
}

/// A device's modem in a run.
struct Modem<'a> {
    device: DeviceId,
    composer: Composer,
    /// Start time of the run.
    begin: Duration,
    hear: &'a mut dyn FnMut(Composed) -> ControlFlow<()>,
    /// Whether the callback still accepts packets.
    is_heard: &'a Cell<bool>,
}

impl Modem<'_> {
    fn finish(&mut self) {
        let Modem { composer, hear, is_heard, .. } = self;
        composer.finish(|composed| say(composed, hear, is_heard));
    }
}

impl Recorder for Modem<'_> {
    fn wants(&self, detail: Detail) -> bool {
        detail == Detail::Reports(self.device, Source::Modem)
    }

    fn record(&mut self, event: Event<'_>) {
        let Event::Reported(Reported { report, .. }) = event else { return };
        if !self.is_heard.get() {
            return;
        }
        let Modem { composer, begin, hear, is_heard, .. } = self;
        let report = RadioReport {
            time: report.time + *begin,
            slot: report.slot.later_by(begin.as_millis() as i64),
            ..(*report).clone()
        };
        composer.push(&report, |composed| say(composed, hear, is_heard));
    }
}

fn say(composed: Composed, hear: &mut dyn FnMut(Composed) -> ControlFlow<()>, is_heard: &Cell<bool>) {
    if is_heard.get() && hear(composed).is_break() {
        is_heard.set(false);
    }
}
