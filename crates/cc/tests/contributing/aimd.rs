//! A complete controller of a user: it adds a packet per acknowledged window, and halves the window at a loss.

use airpace_cc::controller::{Ack, Control, Controller, Inspect, Loss};
use airpace_cc::scheme::{Ends, OptionSpec, Options, Scheme, SchemeError, Setup, Style};
use airpace_cc::window::Recovery;
use airpace_core::Bytes;

/// The entry for the list of schemes.
pub static SCHEME: Scheme = Scheme {
    name: "aimd",
    summary: "adds a packet per round trip, halves at a loss",
    source: "Chiu and Jain 1989",
    style: Style { colour: "#AA3377", marker: "pin" },
    presets: &[],
    options: &[OptionSpec { name: "start_packets", default: "10", summary: "window at the start" }],
    takes_ran: false,
    build,
};

fn build(setup: &Setup, options: &Options) -> Result<Ends, SchemeError> {
    let cwnd = Bytes(setup.mss.0 * options.number("start_packets", 1.0)? as u64);
    let controller = Aimd { mss: setup.mss, cwnd, counted: Bytes::ZERO, recovery: Recovery::default() };
    Ok(Ends { controller: Box::new(controller), receiver: None })
}

struct Aimd {
    mss: Bytes,
    cwnd: Bytes,
    counted: Bytes,
    recovery: Recovery,
}

impl Controller for Aimd {
    fn on_ack(&mut self, ack: &Ack<'_>) {
        self.counted += ack.acked;
        if !self.recovery.rests(ack) && self.counted >= self.cwnd && ack.cwnd_limited {
            self.counted = Bytes::ZERO;
            self.cwnd += self.mss;
        }
    }

    fn on_loss(&mut self, loss: &Loss<'_>) {
        if self.recovery.begins(loss) {
            self.cwnd = Bytes(self.cwnd.0 / 2).max(self.mss);
        }
    }

    fn control(&self) -> Control {
        Control { cwnd: self.cwnd, pacing_rate: None }
    }

    fn inspect(&self, out: &mut Inspect) {
        out.state = "Additive";
        out.value("counted_bytes", self.counted.0 as f64);
    }
}
