//! Options that select a simulated device, whose modem is logged.

use airpace_cc::SchemeSpec;
use airpace_lab::simulated::{Simulated, SimulatedError};
use anyhow::anyhow;

use crate::called;
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

/// Loads a scenario, by name or file.
///
/// # Errors
/// A scenario that cannot be loaded, has no cell or no such device.
pub fn load(name: &str, args: &DeviceArgs) -> anyhow::Result<Simulated> {
    let loaded = scenario::load(name, &args.sets)?;
    Simulated::new(&loaded, args.device, args.scheme.clone()).map_err(|error| match error {
        SimulatedError::NoCell { .. } => {
            anyhow!("{error}; {} lists the scenarios that do", called::command("list scenarios"))
        }
        SimulatedError::NoDevice { scenario, devices } => anyhow!(
            "`{scenario}` has {}: --device goes from 0 to {}",
            count(devices as u64, "device"),
            devices.saturating_sub(1)
        ),
        SimulatedError::Lab(error) => error.into(),
    })
}
