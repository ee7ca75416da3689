//! What typing cannot see: amounts that make no sense, references to nothing, links that cannot be built.

use airpace_cc::SchemeSpec;
use airpace_core::Streams;
use airpace_path::ConfigError;
use airpace_path::config_error::{not_negative, positive};
use airpace_path::queue::Queue;
use airpace_path::wire::Wire;

use super::{Device, Expect, Flow, Outage, Scenario, TraceHop};

/// The longest run, in seconds: eleven days.
const LONGEST_RUN_S: f64 = 1e6;

impl Scenario {
    /// Refuses what cannot be run; keys are dotted paths from the scenario's root.
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        if self.name.is_empty() || !self.name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
        {
            let reason = "must be letters, digits, `-`, `_` and `.`: it names folders and tables";
            return Err(ConfigError::new("name", reason));
        }
        positive("duration_s", self.duration_s)?;
        if self.duration_s > LONGEST_RUN_S {
            return Err(ConfigError::new("duration_s", format!("is above {LONGEST_RUN_S} s")));
        }
        if self.schemes.is_empty() {
            return Err(ConfigError::new(
                "schemes",
                "is empty; name at least one scheme, as in [\"pbe\", \"bbr\"]",
            ));
        }
        for (index, scheme) in self.schemes.iter().enumerate() {
            known_scheme(&format!("schemes.{index}"), scheme)?;
        }
        self.check_path()?;
        each("ack_outage", &self.ack_outage, Outage::check)?;
        self.check_devices()?;
        if self.flow.is_empty() {
            return Err(ConfigError::new(
                "flow",
                "is missing; add at least one `[[flow]]` with its `rtt_ms`",
            ));
        }
        each("flow", &self.flow, |flow| flow.check(self))?;
        self.check_labels()?;
        each("expect", &self.expect, |expect| expect.check(self))
    }

    fn check_path(&self) -> Result<(), ConfigError> {
        if self.cell.is_some() && self.trace.is_some() {
            return Err(ConfigError::new(
                "trace",
                "stands beside `[cell]`; a path has one last hop: remove either",
            ));
        }
        if let Some(queue) = &self.internet {
            Queue::new(queue).map(|_| ()).map_err(|error| error.within("internet"))?;
        }
        if let Some(cell) = &self.cell {
            cell.validate().map_err(|error| error.within("cell"))?;
        }
        if let Some(trace) = &self.trace {
            trace.check().map_err(|error| error.within("trace"))?;
        }
        for (name, wire) in [("forward", &self.forward), ("reverse", &self.reverse)] {
            if wire.delay_ms != 0.0 {
                let reason = "is made from each flow's `rtt_ms`; set that instead";
                return Err(ConfigError::new(format!("{name}.delay_ms"), reason));
            }
            let any_stream = Streams::new(0).stream(name);
            Wire::new(wire, any_stream).map_err(|error| error.within(name))?;
        }
        Ok(())
    }

    fn check_devices(&self) -> Result<(), ConfigError> {
        if self.device.is_empty() {
            return Err(ConfigError::new("device", "is an empty list; leave it out to get one device"));
        }
        each("device", &self.device, |device| {
            if let Some(cell) = &self.cell {
                let _ = cell;
                device.radio.validate().map_err(|error| error.within("radio"))?;
            }
            device.check_clock().map_err(|error| error.within("clock"))
        })
    }

    fn check_labels(&self) -> Result<(), ConfigError> {
        for (index, flow) in self.flow.iter().enumerate() {
            if let Some(earlier) = self.flow[..index].iter().position(|other| other.label == flow.label) {
                let reason =
                    format!("is `{}`, as is that of flow {earlier}; tables need them apart", flow.label);
                return Err(ConfigError::new(format!("flow.{index}.label"), reason));
            }
        }
        Ok(())
    }
}

impl TraceHop {
    fn check(&self) -> Result<(), ConfigError> {
        not_negative("offset_s", self.offset_s)?;
        self.link.validate().map_err(|error| error.within("link"))
    }
}

impl Outage {
    fn check(&self) -> Result<(), ConfigError> {
        not_negative("at_s", self.at_s)?;
        positive("for_s", self.for_s)?;
        Ok(())
    }
}

impl Device {
    fn check_clock(&self) -> Result<(), ConfigError> {
        let clock = &self.clock;
        // An hour is the head start of every device's clock, so that it never shows a time before zero.
        for (key, value, most) in [
            ("offset_ms", clock.offset_ms, 1e6),
            ("drift_ppm", clock.drift_ppm, 1e5),
            ("step_ms", clock.step_ms, 1e6),
        ] {
            if !value.is_finite() || value.abs() > most {
                return Err(ConfigError::new(
                    key,
                    format!("is {value}; give a number between -{most} and {most}"),
                ));
            }
        }
        not_negative("step_at_s", clock.step_at_s)?;
        Ok(())
    }
}

impl Flow {
    fn check(&self, scenario: &Scenario) -> Result<(), ConfigError> {
        let devices = scenario.device.len();
        if usize::from(self.device) >= devices {
            let reason = format!(
                "is {}, but there are {devices} devices, counted from 0; add a `[[device]]`",
                self.device
            );
            return Err(ConfigError::new("device", reason));
        }
        if let Some(scheme) = &self.scheme {
            known_scheme("scheme", scheme)?;
        }
        positive("rtt_ms", self.rtt_ms)?;
        not_negative("start_s", self.start_s)?;
        if self.start_s >= scenario.duration_s {
            let reason = format!("is {}, after the end of the run ({} s)", self.start_s, scenario.duration_s);
            return Err(ConfigError::new(
                "start_s",
                format!("{reason}; start earlier or raise `duration_s`"),
            ));
        }
        if let Some(stop) = self.stop_s
            && !(stop.is_finite() && stop > self.start_s)
        {
            return Err(ConfigError::new(
                "stop_s",
                format!("is {stop}; it must be after `start_s` ({})", self.start_s),
            ));
        }
        match (self.on_s, self.off_s) {
            (Some(on), Some(off)) => {
                positive("on_s", on)?;
                positive("off_s", off)?;
            }
            (None, None) => {}
            (Some(_), None) => return Err(ConfigError::new("off_s", "is missing; `on_s` needs it")),
            (None, Some(_)) => return Err(ConfigError::new("on_s", "is missing; `off_s` needs it")),
        }
        if let Some(rate) = self.rate_mbps {
            positive("rate_mbps", rate)?;
        }
        if self.bytes == Some(0) {
            return Err(ConfigError::new("bytes", "is 0; leave it out for data without end"));
        }
        Ok(())
    }
}

impl Expect {
    fn check(&self, scenario: &Scenario) -> Result<(), ConfigError> {
        known_scheme("scheme", &self.scheme)?;
        if let Some(of) = &self.of {
            known_scheme("of", of)?;
        }
        if let Some(label) = &self.flow
            && !scenario.flow.iter().any(|flow| flow.label == *label)
        {
            let labels: Vec<&str> = scenario.flow.iter().map(|flow| flow.label.as_str()).collect();
            let reason = format!("is `{label}`; the flows are called {}", labels.join(", "));
            return Err(ConfigError::new("flow", reason));
        }
        if self.at_least.is_none() && self.at_most.is_none() {
            return Err(ConfigError::new("at_least", "is missing; give `at_least`, `at_most` or both"));
        }
        if [self.at_least, self.at_most].into_iter().flatten().any(|bound| !bound.is_finite()) {
            return Err(ConfigError::new("at_least", "and `at_most` must be finite numbers"));
        }
        Ok(())
    }
}

/// Checks every entry of a list; an error's key gets the list's name and the entry's place.
fn each<T>(
    list: &str,
    entries: &[T],
    check: impl Fn(&T) -> Result<(), ConfigError>,
) -> Result<(), ConfigError> {
    for (index, entry) in entries.iter().enumerate() {
        check(entry).map_err(|error| error.within(&format!("{list}.{index}")))?;
    }
    Ok(())
}

fn known_scheme(key: &str, text: &str) -> Result<(), ConfigError> {
    SchemeSpec::parse(text)
        .map(|_| ())
        .map_err(|error| ConfigError::new(key, format!("is `{text}`: {error}")))
}
