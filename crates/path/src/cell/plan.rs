//! Plan of a cell: validated configurations that can be instantiated for any seed.

use airpace_core::tables::nr::McsTable;
use airpace_core::{Bytes, DeviceId, Direction};

use super::adaptation::{AdaptationConfig, AdaptationPlan};
use super::bler::Bler;
use super::channel::ChannelPlan;
use super::config::{CellConfig, DeviceRadioConfig};
use crate::config_error::ConfigError;

/// A cell and its devices that can be instantiated any number of times.
#[derive(Clone, Debug)]
pub struct CellPlan {
    pub(super) config: CellConfig,
    pub(super) bler: Bler,
    /// Link adaptation of the background users.
    pub(super) adaptation: AdaptationPlans,
    pub(super) devices: Vec<DevicePlan>,
}

/// The radio side of a device.
#[derive(Clone, Debug)]
pub(super) struct DevicePlan {
    pub(super) config: DeviceRadioConfig,
    pub(super) channel: ChannelPlan,
    pub(super) adaptation: AdaptationPlans,
}

/// Link adaptation on carriers of each radio access technology.
#[derive(Clone, Debug)]
pub(super) struct AdaptationPlans {
    pub(super) lte: AdaptationPlan,
    pub(super) nr: AdaptationPlan,
}

impl AdaptationPlans {
    fn new(config: &AdaptationConfig, table: McsTable) -> Result<AdaptationPlans, ConfigError> {
        Ok(AdaptationPlans { lte: config.plan()?, nr: config.plan_nr(table)? })
    }
}

impl CellPlan {
    /// The plan of a cell with these devices.
    /// # Errors
    /// The configuration is invalid; the error names the key (such as `prbs` or `device.0.channel.layers`) and the
    /// remedy.
    pub fn new(config: &CellConfig, devices: &[DeviceRadioConfig]) -> Result<CellPlan, ConfigError> {
        config.validate()?;
        let config = config.resolved();
        let bler = Bler::new(&config.bler).map_err(|error| error.within("bler"))?;
        let adaptation = AdaptationPlans::new(&config.adaptation, config.nr.table())
            .map_err(|error| error.within("adaptation"))?;
        let plan_of = |(index, device): (usize, &DeviceRadioConfig)| {
            device_plan(&config, index, device).map_err(|error| error.within(&format!("device.{index}")))
        };
        let devices = devices.iter().enumerate().map(plan_of).collect::<Result<_, _>>()?;
        Ok(CellPlan { config, bler, adaptation, devices })
    }

    /// Number of devices in the cell.
    pub fn devices(&self) -> usize {
        self.devices.len()
    }

    /// Size of the queue of a device's data in this direction.
    ///
    /// # Panics
    /// If the cell has no such device.
    pub fn queue_of(&self, device: DeviceId, direction: Direction) -> Bytes {
        Bytes(match direction {
            Direction::Downlink => self.devices[usize::from(device.0)].config.queue_bytes,
            Direction::Uplink => self.config.uplink.queue_bytes,
        })
    }
}

fn device_plan(
    cell: &CellConfig,
    index: usize,
    device: &DeviceRadioConfig,
) -> Result<DevicePlan, ConfigError> {
    device.validate(cell)?;
    let channel = device.channel.plan().map_err(|error| error.within("channel"))?;
    let channel = channel.with_losses(index, device.blockage, device.beam);
    let adaptation =
        AdaptationConfig { qam256: cell.adaptation.qam256 || device.qam256, ..cell.adaptation.clone() };
    let adaptation = AdaptationPlans::new(&adaptation, cell.nr.table())?;
    Ok(DevicePlan { config: device.clone(), channel, adaptation })
}
