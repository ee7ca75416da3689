//! Log packets of a simulated device's modem about its cell.

use std::cell::Cell;
use std::ops::ControlFlow;
use std::time::Duration;

use airpace_cc::SchemeSpec;
use airpace_core::DeviceId;
use airpace_diag::compose::{ComposeOptions, Composed, Composer};
use airpace_event::{Detail, Event, Recorder, Reported, Source};
use airpace_radio::RadioReport;
use airpace_sim::Prepared;
use anyhow::bail;

use crate::cmd::complete;
use crate::cmd::scenario::{self, key_and_value};
use crate::terminal::count;

/// The device of a scenario, and the settings of the scenario's run.
#[derive(clap::Args, Clone)]
pub struct DeviceArgs {
    /// For a scenario: index of the device with the modem, from 0.
    #[arg(long, value_name = "INDEX", default_value_t = 0)]
    device: u16,
    /// For a scenario: the scheme under test [default: the scenario's first].
    #[arg(long, value_name = "SCHEME", value_parser = SchemeSpec::parse, add = complete::scheme())]
    scheme: Option<SchemeSpec>,
    /// For a scenario: the seed of the random numbers.
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    pub seed: u64,
    /// For a scenario: sets a key, such as cell.prbs=50; may be given several times.
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = key_and_value, add = complete::key())]
    sets: Vec<(String, String)>,
}

/// A scenario, with the device whose modem is logged.
pub struct Simulated {
    about: String,
    prepared: Prepared,
    scheme: SchemeSpec,
    device: DeviceId,
}

impl Simulated {
    /// Loads a scenario, by name or file.
    ///
    /// # Errors
    /// A scenario that cannot be loaded, has no cell or no such device.
    pub fn load(name: &str, args: &DeviceArgs) -> anyhow::Result<Simulated> {
        let loaded = scenario::load(name, &args.sets)?;
        airpace_lab::agree::asks_for_no_reports(&loaded)?;
        let (title, devices) = (loaded.name.clone(), loaded.device.len());
        if loaded.cell.is_none() {
            bail!("`{title}` has no cell that could grant anything; `airpace list scenarios` tells which do");
        }
        if usize::from(args.device) >= devices {
            bail!(
                "`{title}` has {}: --device goes from 0 to {}",
                count(devices as u64, "device"),
                devices.saturating_sub(1)
            );
        }
        let scheme = args.scheme.as_ref().unwrap_or(&loaded.schemes()[0]).clone();
        let about = format!("device {} of `{title}` with {}", args.device, scheme.text());
        Ok(Simulated { about, prepared: loaded.prepare()?, scheme, device: DeviceId(args.device) })
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
    ) -> anyhow::Result<()> {
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
