//! Plan of the last hop: a validated configuration that can be instantiated for any seed.

use std::sync::Arc;

use airpace_core::{Direction, Rate};

use crate::cell::{CellConfig, CellPlan, DeviceRadioConfig};
use crate::cellular::CellularLink;
use crate::config_error::ConfigError;
use crate::trace::{KpiTrace, Trace, TraceConfig, TraceLink};

/// The validated last hop.
#[derive(Clone, Debug)]
pub enum LastHopPlan {
    /// A cell.
    Cell(Box<CellPlan>),
    /// A trace of one device's link, for one direction or for both.
    Trace(Box<TracePlan>),
    /// Both directions of one device's cellular link, emulated as in CellReplay.
    Cellular(Box<CellularPlan>),
    /// No last hop: the devices are at the end of the wires, which may have a rate.
    Nothing(Option<Rate>),
}

impl LastHopPlan {
    /// The plan of a cell with these devices.
    ///
    /// # Errors
    /// As [`CellPlan::new`]; keys are those of a scenario (`cell.prbs`, `device.0.radio.carriers`).
    pub fn cell(config: &CellConfig, radios: &[DeviceRadioConfig]) -> Result<LastHopPlan, ConfigError> {
        let plan = CellPlan::new(config, radios).map_err(|error| {
            let of_device = error.key.strip_prefix("device.").and_then(|rest| rest.split_once('.'));
            match of_device {
                Some((index, key)) => ConfigError::new(format!("device.{index}.radio.{key}"), error.reason),
                None => error.within("cell"),
            }
        })?;
        Ok(LastHopPlan::Cell(Box::new(plan)))
    }

    /// Whether packets in this direction cross the last hop.
    pub(in super::super) fn carries(&self, direction: Direction) -> bool {
        match self {
            LastHopPlan::Cell(_) | LastHopPlan::Cellular(_) => true,
            LastHopPlan::Trace(plan) => plan.direction == direction || plan.back.is_some(),
            LastHopPlan::Nothing(_) => false,
        }
    }
}

/// A trace as the last hop.
#[derive(Clone, Debug)]
pub struct TracePlan {
    pub(super) link: TraceLink,
    /// The link of the opposite direction.
    pub(super) back: Option<TraceLink>,
    /// The bandwidths that the modem reported while the trace was recorded.
    pub(super) kpi: Option<Arc<KpiTrace>>,
    pub(super) direction: Direction,
    pub(super) has_telemetry: bool,
}

impl TracePlan {
    /// A link that replays `trace` in this direction. With telemetry, the device can receive reports of the bandwidths
    /// in `kpi`, or of the trace's opportunities if there is no `kpi`.
    ///
    /// # Errors
    /// As [`TraceLink::new`].
    pub fn new(
        trace: Arc<Trace>,
        kpi: Option<Arc<KpiTrace>>,
        direction: Direction,
        has_telemetry: bool,
        config: &TraceConfig,
    ) -> Result<TracePlan, ConfigError> {
        let link = TraceLink::new(trace, config)?;
        Ok(TracePlan { link, back: None, kpi, direction, has_telemetry })
    }

    /// Adds a link of the opposite direction, which replays `trace`. The radio reports remain those of the first link.
    ///
    /// # Errors
    /// As [`TraceLink::new`].
    pub fn with_back(self, trace: Arc<Trace>, config: &TraceConfig) -> Result<TracePlan, ConfigError> {
        Ok(TracePlan { back: Some(TraceLink::new(trace, config)?), ..self })
    }
}

/// A cellular link as the last hop.
#[derive(Clone, Debug)]
pub struct CellularPlan {
    /// One link per direction.
    pub(super) links: [CellularLink; 2],
}

impl CellularPlan {
    /// A cellular link with these links for the two directions.
    pub fn new(down: CellularLink, up: CellularLink) -> CellularPlan {
        CellularPlan { links: [down, up] }
    }
}
