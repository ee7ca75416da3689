//! Validation of a last hop that replays recordings.

use std::sync::Arc;

use airpace_core::Direction;
use airpace_path::ConfigError;
use airpace_path::cell::CellPlan;
use airpace_path::cellular::CellularLink;
use airpace_path::config_error::positive;
use airpace_path::trace::{Trace, TraceConfig, TraceLink, Trains};

use crate::document::{CellularHop, RecordedTrace, SynthTrace, TraceHop};

impl TraceHop {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        check_link(&self.link)?;
        self.synth.as_ref().map_or(Ok(()), SynthTrace::check)?;
        if let Some(recorded) = &self.recorded {
            let others =
                [("file", self.file.is_some()), ("synth", self.synth.is_some()), ("kpi", self.kpi.is_some())];
            if let Some((other, _)) = others.into_iter().find(|(_, is_there)| *is_there) {
                let reason = format!(
                    "stands beside `{other}`, but a recording makes both the trace and its KPIs; remove one of them"
                );
                return Err(ConfigError::new("recorded", reason));
            }
            recorded.plan().map_err(|error| error.within("recorded"))?;
        }
        if let Some(back) = &self.back {
            let checked = check_link(&back.link);
            checked
                .and_then(|()| back.synth.as_ref().map_or(Ok(()), SynthTrace::check))
                .map_err(|error| error.within("back"))?;
        }
        if let Some(every_ms) = self.kpi_every_ms {
            positive("kpi_every_ms", f64::from(every_ms))?;
        }
        for (key, is_there) in [("kpi", self.kpi.is_some()), ("kpi_every_ms", self.kpi_every_ms.is_some())] {
            if is_there && !self.telemetry {
                let reason = "stands beside `telemetry = false`, but a device without telemetry never gets it; remove one of them";
                return Err(ConfigError::new(key, reason));
            }
        }
        Ok(())
    }
}

/// Maximum length of a recording, in seconds.
///
/// Chosen: ten minutes. A recording takes about as long as a run of a cell, and is made before each command's runs.
const MAX_RECORDED_S: u32 = 600;

impl RecordedTrace {
    /// The plan of the recorded cell, which has a single device.
    pub(crate) fn plan(&self) -> Result<CellPlan, ConfigError> {
        if !(1..=MAX_RECORDED_S).contains(&self.seconds) {
            let reason = format!("is {}; give 1 to {MAX_RECORDED_S}", self.seconds);
            return Err(ConfigError::new("seconds", reason));
        }
        CellPlan::new(&self.cell, std::slice::from_ref(&self.radio)).map_err(|error| {
            match error.key.strip_prefix("device.0.") {
                Some(key) => ConfigError::new(format!("radio.{key}"), error.reason),
                None => error.within("cell"),
            }
        })
    }
}

impl CellularHop {
    /// Validates both directions of the link. The keys of errors are dotted paths from the scenario's root.
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        for (table, way) in Direction::BOTH.map(|direction| self.way(direction)) {
            let synth = way.heavy.synth.as_ref().map_or(Ok(()), SynthTrace::check);
            synth.map_err(|error| error.within("heavy").within(table))?;
            // The checks of the link's configuration do not depend on its recordings.
            let trains = Trains::parse(b"0 1 0\n1 1 0\n").expect("two trains");
            let link = CellularLink::new(Arc::new(trains), any_trace(), Arc::default(), &way.link);
            link.map_err(|error| error.within("link").within(table))?;
        }
        Ok(())
    }
}

impl SynthTrace {
    fn check(&self) -> Result<(), ConfigError> {
        match (self.mean_mbps, self.rate_mbps) {
            (Some(mean), None) => positive("synth.mean_mbps", mean)?,
            (None, Some(rate)) => positive("synth.rate_mbps", rate)?,
            (Some(_), Some(_)) => {
                let reason = "stands beside `rate_mbps`, but each of them alone determines the trace; remove one of them";
                return Err(ConfigError::new("synth.mean_mbps", reason));
            }
            (None, None) => {
                let reason = "is missing; give the mean rate of the synthetic trace, in Mbit/s";
                return Err(ConfigError::new("synth.mean_mbps", reason));
            }
        };
        positive("synth.seconds", f64::from(self.seconds))?;
        Ok(())
    }
}

/// Validates the configuration of a trace's link. The result does not depend on the trace's delivery opportunities.
fn check_link(link: &TraceConfig) -> Result<(), ConfigError> {
    TraceLink::new(any_trace(), link).map_err(|error| error.within("link"))?;
    Ok(())
}

fn any_trace() -> Arc<Trace> {
    Arc::new(Trace::from_times_ms(vec![1]).expect("one chance is a trace"))
}
