//! A constant rate, independent of the path: the competitor in controlled experiments.
//!
//! Source: PBE-CC §6.2.3 (a competitor of fixed offered load)

use airpace_core::{Bytes, Rate};

use crate::controller::{Ack, Control, Controller, Inspect, Loss};
use crate::scheme::{Ends, OptionSpec, Options, Scheme, SchemeError, Setup, Style};

/// The scheme `cbr`.
pub static SCHEME: Scheme = Scheme {
    name: "cbr",
    summary: "sends at a constant rate and ignores all feedback",
    source: "PBE-CC §6.2.3",
    style: Style { colour: "#999999", marker: "arrow" },
    presets: &[],
    options: &[OptionSpec {
        name: "rate_mbps",
        default: "60",
        summary: "bits sent per second, headers included",
    }],
    takes_ran: false,
    build,
};

/// Maximum rate, in Mbit/s.
///
/// Chosen: the rate of the fastest link of a scenario.
const MAX_MBPS: f64 = 1e5;

fn build(_: &Setup, options: &Options) -> Result<Ends, SchemeError> {
    let rate = options.number("rate_mbps", 0.001)?;
    if rate > MAX_MBPS {
        return Err(options.refuse("rate_mbps", format!("a number of at most {MAX_MBPS}")));
    }
    let rate = Rate::from_mbps(rate);
    Ok(Ends { controller: Box::new(Cbr { rate }), receiver: None })
}

/// The controller.
#[derive(Clone, Copy, Debug)]
pub struct Cbr {
    rate: Rate,
}

impl Controller for Cbr {
    fn on_ack(&mut self, _: &Ack<'_>) {}

    fn on_loss(&mut self, _: &Loss<'_>) {}

    fn control(&self) -> Control {
        Control { cwnd: Bytes(u64::MAX), pacing_rate: Some(self.rate) }
    }

    fn inspect(&self, out: &mut Inspect) {
        out.state = "Constant";
    }
}
