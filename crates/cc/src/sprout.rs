//! Sprout: the receiver estimates the possible rates of the link and makes a cautious forecast of its deliveries. The
//! sender keeps no more in the queue than the forecast delivers within 100 ms.
//!
//! ```text
//!  packets ─▶ count per 20 ms ─▶ probability per rate ──▶ 5th percentile of what 1 … 8 ticks deliver ─┐ feedback
//!                observe            evolve each tick                                                   ▼
//!                    window = forecast(now … now + 100 ms) − estimated bytes in the queue ◀── sender
//! ```
//!
//! | file | content |
//! | --- | --- |
//! | `model` | the probability of each rate of the link: evolve, observe |
//! | `forecast` | forecast of the link's deliveries in the next ticks, cautious or by a moving average |
//! | `receiver` | ticks, counts, and the received or lost bytes |
//! | `sender` | estimate of the queue, and the window |
//! | `wire` | the bytes that sender and receiver exchange |
//!
//! Rates above 1,000 packets per second (12 Mbit/s) are beyond the model. On faster links the window stays at the
//! amount that this rate almost certainly delivers within 100 ms, about 80 packets.
//!
//! Source: Sprout §3 (Winstein, Sivaraman and Balakrishnan, NSDI 2013); keithw/sprout `sproutbt2` (the program)
//!
//! Differs: in some ticks, the sender has no data left that it may send. Such a tick shows that the link carries at
//! least the packets that arrived. In the paper, it shows that the link carries exactly those packets
//! (`dry_ticks=exact`), and the estimate then follows the sender instead of the link. Sprout then never sends more than
//! its heartbeats, unless the link delivers in bursts. This happens in two cases: the data of 100 ms of the forecast
//! does not fill the round trip, or the forecast is one packet, so that one packet is sent and counted, and the
//! forecast stays at one packet. `sprout@pantheon` treats such ticks like the paper and its program.
//!
//! `sprout@pantheon` is the program that Pantheon runs under this name: `sproutbt2` as a bulk sender, whose receiver
//! reports by a timer of its own. The options of [`SCHEME`] name the differences from the paper's Sprout.
//!
//! Differs: the program ends a flight (the packets sent at once) with a packet that is not full, and its heartbeats are
//! empty. The endpoint sends whole packets of data. `sprout@pantheon` rounds a window of half a packet or more to whole
//! packets. A packet that would not be full, or a heartbeat, occupies the link like a whole packet, but sender and
//! receiver count the bytes that the program would have sent. The program's model has one more bin, at 1,002 packets
//! per second. Here the highest bin also represents that bin.

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

/// The scheme `sprout`.
pub static SCHEME: Scheme = Scheme {
    name: "sprout",
    summary: "sends what the link will deliver in 100 ms by a cautious forecast; for up to 12 Mbit/s",
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
            set: &[
                ("units", "program"),
                ("outage", "discounted"),
                ("dry_ticks", "exact"),
                ("feedback", "timer"),
                ("drain", "sums"),
                ("packets", "small"),
            ],
        },
    ],
    options: &[
        OptionSpec {
            name: "forecast",
            default: "cautious",
            summary: "cautious: a low percentile of the estimated rates; ewma: a moving average of the rate",
        },
        OptionSpec {
            name: "confidence_percent",
            default: "95",
            summary: "probability with which the link delivers at least the forecast; 50 to 99.9",
        },
        OptionSpec {
            name: "sigma_packets",
            default: "200",
            summary: "standard deviation of the rate's change in one second, packets per second; 1 to 1400",
        },
        OptionSpec {
            name: "units",
            default: "mtu",
            summary: "mtu: bytes on the wire, by packets of one MTU; program: payload, by 1400 and 1440 bytes",
        },
        OptionSpec {
            name: "outage",
            default: "kept",
            summary: "kept: an outage lasts 1 s on average; discounted: halves each tick, and delivers nothing at all",
        },
        OptionSpec {
            name: "dry_ticks",
            default: "at_least",
            summary: "ticks in which the sender ran dry: at_least (the link carries that or more), exact (the paper)",
        },
        OptionSpec {
            name: "feedback",
            default: "tick",
            summary: "the receiver reports: tick (at the end of each tick), timer (each 22 ms, as the program did)",
        },
        OptionSpec {
            name: "drain",
            default: "steps",
            summary: "a late report: steps (the queue drains as forecast), sums (faster, as in the program)",
        },
        OptionSpec {
            name: "packets",
            default: "whole",
            summary: "with room for less than half a packet: whole (none leaves), small (one that counts as what fits)",
        },
    ],
    takes_ran: false,
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
        timed: one_of(options, "feedback", ("tick", "timer"), "`tick` or `timer`")?,
        sums: one_of(options, "drain", ("steps", "sums"), "`steps` or `sums`")?,
        small_packets: one_of(options, "packets", ("whole", "small"), "`whole` or `small`")?,
    };
    Ok(Ends {
        controller: Box::new(Sprout::new(&tuning, setup.mss)),
        receiver: Some(Box::new(SproutReceiver::new(&tuning))),
    })
}

/// Whether the value of the option is the second of `names`. The first of `names` is the only other valid value.
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

/// The values of the options.
#[derive(Clone, Copy, Debug)]
pub struct Tuning {
    /// Whether the forecast is a moving average instead of a percentile of the estimated rates.
    pub ewma: bool,
    /// The percentile of the forecast as a fraction, usually 0.05.
    pub quantile: f64,
    /// Motion of the link's rate.
    pub motion: Motion,
    /// Sizes of a packet, for the conversion between packets and bytes.
    pub units: Units,
    /// Whether a tick in which the sender had nothing left to send counts like any other tick.
    pub exact: bool,
    /// Whether the receiver reports by a timer instead of at the end of each tick.
    pub timed: bool,
    /// Whether, per tick, the estimate of the queue falls by the forecast's cumulative sum instead of by the increment
    /// of this tick.
    pub sums: bool,
    /// Whether a packet counts as smaller if the window has space for less than a whole packet.
    pub small_packets: bool,
}

/// Sizes of the model's "packet" for the conversion of bytes to packets and back.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Units {
    /// Part of a packet's bytes on the wire that counts as delivered, or as queued until the receiver reports.
    pub payload: f64,
    /// Bytes delivered that make one packet of an observation.
    pub observed_bytes: f64,
    /// Bytes that one packet of a forecast allows.
    pub forecast_bytes: f64,
}

impl Units {
    /// The sizes with which a packet of the model is a full-sized packet.
    ///
    /// Source: Sprout §3.1
    pub fn of_mtu(mss: Bytes) -> Units {
        Units { payload: 1.0, observed_bytes: mss.0 as f64, forecast_bytes: mss.0 as f64 }
    }

    /// For a full packet, the program counts 1,492 bytes in sequence numbers and 1,442 as payload. It observes payload
    /// in packets of 1,400 bytes and forecasts in packets of 1,440. This function returns sizes with the same
    /// proportions for a packet of `mss` bytes.
    ///
    /// Source: keithw/sprout src/sprout/receiver.cc, src/network/sproutconn.cc
    pub fn of_program(mss: Bytes) -> Units {
        let share = |bytes: f64| mss.0 as f64 * bytes / 1492.0;
        Units { payload: 1442.0 / 1492.0, observed_bytes: share(1400.0), forecast_bytes: share(1440.0) }
    }
}
