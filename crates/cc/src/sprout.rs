//! Sprout: the receiver infers how fast the link may be and forecasts, with caution, what it will surely deliver; the
//! sender keeps no more in the queue than that forecast empties within 100 ms.
//!
//! ```text
//!  packets ─▶ count per 20 ms ─▶ belief over 256 rates ─▶ 5th percentile of what 1 … 8 ticks deliver ─┐ feedback
//!                observe            evolve each tick                                                   ▼
//!                    window = forecast(now … now + 100 ms) − what is believed to be queued ◀── sender
//! ```
//!
//! | file | what it is |
//! | --- | --- |
//! | `model` | the belief about the link's rate: evolve, observe |
//! | `forecast` | what the belief says of the ticks to come, cautiously or by a moving average |
//! | `receiver` | ticks, counts, and what was received or lost |
//! | `sender` | the queue's estimate and the window |
//! | `wire` | the bytes that both exchange |
//!
//! Rates above 1,000 packets per second (12 Mbit/s) are beyond the model: there the window stays at what that rate is
//! sure to deliver within 100 ms, some 80 packets.
//!
//! Source: Sprout §3 (Winstein, Sivaraman and Balakrishnan, NSDI 2013); keithw/sprout `sproutbt2` (the program)
//!
//! Differs: a tick in which the sender ran out of what it may send says that the link carries at least what came in it.
//! To the paper it says exactly that much (`dry_ticks=exact`), and the belief then follows the sender instead of the
//! link: wherever 100 ms of the forecast do not fill the way there and back, or where a lone packet makes a count of
//! one, of which the forecast is one again, Sprout never leaves its heartbeats, unless the link delivers in bursts. The
//! presets do as the default does.
//!
//! Differs: the program lets the queue's estimate drain by sums of the forecast where the paper has its steps; with a
//! feedback in each tick, which it assumes, the two are the same.

mod forecast;
mod model;
mod receiver;
mod sender;
mod wire;

pub use forecast::{Cautious, Forecast, HORIZONS};
pub use model::{Model, Motion, Outage};
pub use receiver::SproutReceiver;
pub use sender::Sprout;

use airpace_core::Bytes;

use crate::scheme::{Ends, OptionSpec, Options, Preset, Scheme, SchemeError, Setup, Style};

/// Sprout as users know it.
pub static SCHEME: Scheme = Scheme {
    name: "sprout",
    summary: "sends what a cautious forecast of the link delivers within 100 ms; for links of up to 12 Mbit/s",
    source: "Winstein et al., NSDI 2013",
    style: Style { colour: "#117733", marker: "diamond" },
    presets: &[
        Preset {
            name: "ewma",
            summary: "Sprout-EWMA: forecasts a moving average of the rate, without caution",
            set: &[("forecast", "ewma")],
        },
        Preset {
            name: "pantheon",
            summary: "as the authors' program sproutbt2 computes",
            set: &[("units", "program"), ("outage", "discounted")],
        },
    ],
    options: &[
        OptionSpec {
            name: "forecast",
            default: "cautious",
            summary: "cautious: a low percentile of the belief; ewma: a moving average of the rate",
        },
        OptionSpec {
            name: "confidence_percent",
            default: "95",
            summary: "probability with which the link delivers at least the forecast; 50 to 99.9",
        },
        OptionSpec {
            name: "sigma_packets",
            default: "200",
            summary: "how far the link's rate wanders in a second, packets per second; 1 to 1400",
        },
        OptionSpec {
            name: "units",
            default: "mtu",
            summary: "mtu counts bytes of the wire in packets of MTU; program counts payload by 1400 and 1440",
        },
        OptionSpec {
            name: "outage",
            default: "kept",
            summary: "kept: an outage lasts a second on average; discounted: its probability also halves each tick",
        },
        OptionSpec {
            name: "dry_ticks",
            default: "at_least",
            summary: "what came when the sender had no more to send: at_least what the link carries; exact as the paper",
        },
    ],
    build,
};

fn build(setup: &Setup, options: &Options) -> Result<Ends, SchemeError> {
    let tuning = Tuning {
        ewma: one_of(options, "forecast", ("cautious", "ewma"), "`cautious` or `ewma`")?,
        quantile: 1.0 - within(options, "confidence_percent", 50.0, 99.9, "50 to 99.9")? / 100.0,
        motion: Motion {
            sigma: within(options, "sigma_packets", 1.0, 1400.0, "1 to 1400")?,
            outage: match one_of(options, "outage", ("kept", "discounted"), "`kept` or `discounted`")? {
                false => Outage::Kept,
                true => Outage::Discounted,
            },
        },
        units: match one_of(options, "units", ("mtu", "program"), "`mtu` or `program`")? {
            false => Units::of_mtu(setup.mss),
            true => Units::of_program(setup.mss),
        },
        exact: one_of(options, "dry_ticks", ("at_least", "exact"), "`at_least` or `exact`")?,
    };
    Ok(Ends {
        controller: Box::new(Sprout::new(&tuning, setup.mss)),
        receiver: Some(Box::new(SproutReceiver::new(&tuning))),
    })
}

/// Whether the option says the second of `names`.
fn one_of(
    options: &Options,
    option: &str,
    names: (&str, &str),
    may_be: &'static str,
) -> Result<bool, SchemeError> {
    let text = options.text(option);
    if text == names.0 || text == names.1 { Ok(text == names.1) } else { Err(options.refuse(option, may_be)) }
}

fn within(
    options: &Options,
    option: &str,
    least: f64,
    most: f64,
    may_be: &'static str,
) -> Result<f64, SchemeError> {
    match options.number(option, least)? {
        number if number <= most => Ok(number),
        _ => Err(options.refuse(option, may_be)),
    }
}

/// What the options say.
#[derive(Clone, Copy, Debug)]
pub struct Tuning {
    /// Whether the forecast is a moving average instead of a percentile of the belief.
    pub ewma: bool,
    /// The percentile, as a share: 0.05.
    pub quantile: f64,
    /// How the link's rate moves.
    pub motion: Motion,
    /// What a packet is, in bytes.
    pub units: Units,
    /// Whether a tick in which the sender ran out of what it may send counts as any other.
    pub exact: bool,
}

/// What the model's "packet" is at the places where bytes become packets and back.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Units {
    /// Share of a packet's bytes on the wire that counts as delivered or queued until the receiver tells.
    pub payload: f64,
    /// Bytes delivered that make one packet of an observation.
    pub observed_bytes: f64,
    /// Bytes that one packet of a forecast allows.
    pub forecast_bytes: f64,
}

impl Units {
    /// A packet is a packet.
    ///
    /// Source: Sprout §3.1
    pub fn of_mtu(mss: Bytes) -> Units {
        Units { payload: 1.0, observed_bytes: mss.0 as f64, forecast_bytes: mss.0 as f64 }
    }

    /// Of a full packet the program counts 1,492 bytes in sequence numbers and 1,442 as payload; it observes payload in
    /// packets of 1,400 bytes and forecasts in packets of 1,440. The same proportions for a packet of `mss`.
    ///
    /// Source: keithw/sprout src/sprout/receiver.cc, src/network/sproutconn.cc
    pub fn of_program(mss: Bytes) -> Units {
        let share = |bytes: f64| mss.0 as f64 * bytes / 1492.0;
        Units { payload: 1442.0 / 1492.0, observed_bytes: share(1400.0), forecast_bytes: share(1440.0) }
    }
}
