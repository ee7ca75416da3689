//! BISCAY: the device reads its grants from its modem, divides the granted bandwidth among its flows, and sends at
//! exactly that rate. If the bottleneck is in the wired part of the path, BISCAY sends as BBR.
//!
//! ```text
//!  uplink    own grants ──────────────▶ Biscay                      the radio is the sender's
//!  downlink  own grants ─▶ BiscayReceiver ──feedback on ACKs──▶ Biscay
//!                                         ──advertised window──▶ any sender (`biscay@window`)
//! ```
//!
//! | module | content | section of the paper |
//! | --- | --- | --- |
//! | [`sender`] | the controller with STARTUP, BISCAY, FALLBACK | §A.5 |
//! | [`grants`] | granted bits; Eq. 1 | §3.2.2 |
//! | [`bandwidth`] | windows, carriers, sampling | §3.2.2, §5.2 |
//! | [`split`] | division of a device's bandwidth among its flows; [`crate::registry`] counts the flows | §A.5.2 |
//! | [`bottleneck`] | whether the bottleneck is in the cell or in the wired part | §3.2.4 |
//! | [`signals`] | ECN marks, losses, delay gradient | §A.5.3 |
//! | [`rounds`] | rounds, the minimum RTT | §A.5 |
//! | [`receiver`], [`feedback`] | the receiver of the downlink and its feedback bytes | §3.2.4, §5.4 |
//! | [`echo`], [`unmodified`] | RTT at a receiver; a sender without BISCAY, limited by the receive window | §3.2.4 |
//!
//! `biscay@paper` follows the pseudo-code of §A.5. `biscay` departs from it by the named options of [`SCHEME`]. A
//! `Differs:` line next to the code states each reason; `docs/papers/biscay-departures.md` has the measurements.
//!
//! Chosen: both presets compare a flow's share of the cell's bandwidth with its end-to-end bandwidth, and treat two
//! bandwidths that differ by less than a twentieth as equal. The pseudo-code compares the bandwidth of the whole
//! device, which would keep each of several flows in FALLBACK for good (contrary to §5.3.5). It also compares two
//! measured numbers by `==`, which never holds.

pub mod bandwidth;
pub mod bottleneck;
pub mod echo;
pub mod feedback;
pub mod grants;
pub mod receiver;
pub mod rounds;
pub mod sender;
pub mod signals;
pub mod split;
pub mod startup;
pub mod unmodified;

use std::time::Duration;

use airpace_core::tables::{lte, nr};

use crate::scheme::{Ends, OptionSpec, Options, Preset, Scheme, SchemeError, Setup, Style};
use crate::{bbr, cubic, reno};

use bandwidth::{Determination, Method, Sampling};
use bottleneck::Return;
use grants::BlockTable;
use receiver::BiscayReceiver;
use rounds::RttMemory;
use sender::Biscay;
use signals::Heeded;
use split::Split;
use unmodified::Unmodified;

/// The scheme `biscay`.
pub static SCHEME: Scheme = Scheme {
    name: "biscay",
    summary: "BISCAY: its window follows the grants of the device's own modem, shared among flows; else BBR",
    source: "Larrea, Shreedhar, Marina, BISCAY: Practical Radio KPI Driven Congestion Control for Mobile Networks",
    style: Style { colour: "#CC79A7", marker: "roundRect" },
    presets: &[
        Preset { name: "paper", summary: "the pseudo-code of the paper's appendix A.5", set: PAPER },
        Preset {
            name: "window",
            summary: "download from an unmodified sender: the receiver advertises bandwidth × RTT as its window",
            // Chosen: the delay that a radio adds without any queue, as in PBE-CC (§4.2.2): three retransmissions of
            // eight subframes and 3 ms. Below it, a receiver cannot distinguish a queue from the radio's delay. A
            // receiver also does not see the aggregation of its ACKs.
            set: &[("relay", "window"), ("cwnd_slack_ms", "27")],
        },
    ],
    options: OPTIONS,
    takes_ran: false,
    build,
};

const PAPER: &[(&str, &str)] = &[
    ("overhead_percent", "0"),
    ("cwnd_slack_ms", "0"),
    ("cwnd_packets", "0"),
    ("cwnd_bunching", "off"),
    ("pacing", "off"),
    ("hold", "off"),
    ("startup", "first"),
    ("rtt_window_s", "0"),
    ("return_test", "equal"),
    ("patience", "off"),
    ("queue_test", "off"),
];

const OPTIONS: &[OptionSpec] = &[
    OptionSpec {
        name: "bandwidth",
        default: "granted_bytes",
        summary: "source of the bandwidth: granted_bytes (the MAC's sum per 100 ms), tbs (each TTI's blocks)",
    },
    OptionSpec {
        name: "tbs_ttis",
        default: "20",
        summary: "with bandwidth=tbs: how many TTIs of 1 ms are added up; on 5G rounded up to whole TDD periods",
    },
    OptionSpec {
        name: "block_table",
        default: "lte",
        summary: "table for block sizes that a DCI does not carry: lte, lte256, nr, nr256",
    },
    OptionSpec {
        name: "sample_ms",
        default: "100",
        summary: "time between two samples of the bandwidth, up to 1500; once: a single sample. Below 100 with bandwidth=tbs",
    },
    OptionSpec {
        name: "overhead_percent",
        default: "1.5",
        summary: "share of the granted bits that PDCP, RLC and MAC headers and padding take",
    },
    OptionSpec {
        name: "split",
        default: "equal",
        summary: "how a device's flows share: equal, app (equal per application), proportional (by recent use)",
    },
    OptionSpec {
        name: "cwnd_slack_ms",
        default: "8",
        summary: "the window covers the least RTT and this time: the wait for grants, which the least RTT lacks",
    },
    OptionSpec { name: "cwnd_packets", default: "3", summary: "this many packets more in the window" },
    OptionSpec {
        name: "cwnd_bunching",
        default: "on",
        summary: "add to the window the bytes that one burst of ACKs covers, as after a HARQ retransmission",
    },
    OptionSpec {
        name: "pacing",
        default: "on",
        summary: "pace at 200 % (STARTUP) or 120 % of cwnd/RTT; off: send on each ACK, as kernels do",
    },
    OptionSpec {
        name: "hold",
        default: "on",
        summary: "lower the bandwidth only while a queue stands; without a queue, grants follow demand",
    },
    OptionSpec {
        name: "startup",
        default: "bursts",
        summary: "how STARTUP grows and ends: first (at the first bandwidth measured), full (path full, or \
                  grants above demand), bursts (as full, but faster after bursts were delivered)",
    },
    OptionSpec {
        name: "rtt_window_s",
        default: "20",
        summary: "window of the least RTT; if it is not seen again, the queue is drained; 0: no window",
    },
    OptionSpec {
        name: "fallback",
        default: "bbr",
        summary: "scheme while the bottleneck is in the wired part: bbr, cubic, reno",
    },
    OptionSpec {
        name: "switch_margin_percent",
        default: "5",
        summary: "FALLBACK when the cell's bandwidth exceeds the end-to-end bandwidth by this much",
    },
    OptionSpec {
        name: "return_test",
        default: "at_most",
        summary: "end of FALLBACK: the cell's bandwidth is equal to, or at_most, the end-to-end bandwidth",
    },
    OptionSpec {
        name: "return_tolerance_percent",
        default: "5",
        summary: "bandwidths that differ by at most this count as equal",
    },
    OptionSpec {
        name: "patience",
        default: "on",
        summary: "both tests must hold for as long as a sample of the bandwidth may be old",
    },
    OptionSpec {
        name: "queue_test",
        default: "on",
        summary: "FALLBACK only while a queue stands on the path",
    },
    OptionSpec {
        name: "stale_ms",
        default: "80",
        summary: "after this time without a radio report the bandwidth is unknown: with the next ACK, before 100 ms",
    },
    OptionSpec {
        name: "ecn",
        default: "off",
        summary: "ask for ECN marks; a mark limits the bandwidth to the delivery rate",
    },
    OptionSpec {
        name: "loss",
        default: "off",
        summary: "more than 2 % lost in a round also limits the bandwidth to the delivery rate",
    },
    OptionSpec {
        name: "delay_gradient",
        default: "off",
        summary: "delay that rises and stays, with the cell's bandwidth unchanged, limits it too",
    },
    OptionSpec {
        name: "queue",
        default: "off",
        summary: "take from the window what waits in the device for longer than a grant takes",
    },
    OptionSpec {
        name: "relay",
        default: "feedback",
        summary: "how a download's sender is controlled: feedback (it runs BISCAY), window (any sender)",
    },
    OptionSpec {
        name: "sender",
        default: "cubic",
        summary: "with relay=window: the scheme of the unmodified sender: cubic, bbr, reno",
    },
];

/// The controller used while the bottleneck is in the wired part.
///
/// Source: BISCAY §A.5.3
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wired {
    /// BBR, as in the paper's implementation.
    Bbr,
    /// CUBIC.
    Cubic,
    /// Reno.
    Reno,
}

/// How the window grows in STARTUP, and the condition that ends STARTUP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Startup {
    /// The window doubles until a first bandwidth is known.
    ///
    /// Source: BISCAY §A.5.1 (`SlowStart`)
    First,
    /// The window doubles until the path is full, or the cell grants more than the flow requests.
    Full,
    /// As [`Startup::Full`], but the window grows faster as long as the grants for the flow's bursts show that the path
    /// can carry more.
    Bursts,
}

/// The values of all options, for controller and receiver.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tuning {
    /// Settings for determining the cellular bandwidth.
    pub determination: Determination,
    /// Division of the bandwidth among flows.
    pub split: Split,
    /// Time by which the window exceeds the minimum RTT.
    pub slack: Duration,
    /// Number of packets added to the window, in addition to `slack`.
    pub packets: u64,
    /// Whether the window also includes the bytes that the path acknowledges in one burst.
    pub bunching: bool,
    /// Whether packets are paced.
    pub pacing: bool,
    /// Whether lower grants reduce the bandwidth only while there is a queue.
    pub hold: bool,
    /// How the window grows in STARTUP, and the condition that ends STARTUP.
    pub startup: Startup,
    /// Span of time over which the minimum RTT is taken.
    pub rtt_memory: RttMemory,
    /// The controller used in FALLBACK.
    pub wired: Wired,
    /// Rules that locate the bottleneck.
    pub bottleneck: bottleneck::Rules,
    /// Time without a report after which the bandwidth is unknown.
    pub stale_after: Duration,
    /// The additional signals that are used.
    pub signals: Heeded,
    /// Whether the window is reduced by the bytes queued in the device.
    pub queue: bool,
}

impl Tuning {
    /// Parses the options.
    ///
    /// # Errors
    /// The value of an option cannot be read.
    pub fn read(options: &Options) -> Result<Tuning, SchemeError> {
        let millis = |name| Ok::<_, SchemeError>(Duration::from_secs_f64(below(options, name, 1e6)? * 1e-3));
        let percent = |name| Ok::<_, SchemeError>(options.number(name, 0.0)? * 0.01);
        let determination = read_determination(options)?;
        let lag = Duration::from_millis(determination.lag_ms());
        let window = Duration::from_secs_f64(below(options, "rtt_window_s", 1e6)?);
        Ok(Tuning {
            determination,
            split: match options.text("split") {
                "equal" => Split::Equal,
                "app" => Split::App,
                "proportional" => Split::Proportional,
                _ => return Err(options.refuse("split", "`equal`, `app` or `proportional`")),
            },
            slack: millis("cwnd_slack_ms")?,
            packets: below(options, "cwnd_packets", 1e6)? as u64,
            bunching: options.switch("cwnd_bunching")?,
            pacing: options.switch("pacing")?,
            hold: options.switch("hold")?,
            startup: match options.text("startup") {
                "first" => Startup::First,
                "full" => Startup::Full,
                "bursts" => Startup::Bursts,
                _ => return Err(options.refuse("startup", "`first`, `full` or `bursts`")),
            },
            rtt_memory: if window.is_zero() { RttMemory::Life } else { RttMemory::Window(window) },
            wired: match options.text("fallback") {
                "bbr" => Wired::Bbr,
                "cubic" => Wired::Cubic,
                "reno" => Wired::Reno,
                _ => return Err(options.refuse("fallback", "`bbr`, `cubic` or `reno`")),
            },
            bottleneck: bottleneck::Rules {
                margin: percent("switch_margin_percent")?,
                tolerance: percent("return_tolerance_percent")?,
                back: match options.text("return_test") {
                    "equal" => Return::Equal,
                    "at_most" => Return::AtMost,
                    _ => return Err(options.refuse("return_test", "`equal` or `at_most`")),
                },
                patience: if options.switch("patience")? { lag } else { Duration::ZERO },
                needs_queue: options.switch("queue_test")?,
            },
            // Reports arrive in every subframe, even if the bandwidth is sampled rarely.
            stale_after: millis("stale_ms")?,
            signals: Heeded {
                ecn: options.switch("ecn")?,
                loss: options.switch("loss")?,
                delay_gradient: options.switch("delay_gradient")?,
            },
            queue: options.switch("queue")?,
        })
    }

    /// Maximum age of a bandwidth sample.
    pub fn lag(&self) -> Duration {
        Duration::from_millis(self.determination.lag_ms())
    }
}

fn read_determination(options: &Options) -> Result<Determination, SchemeError> {
    let method = match options.text("bandwidth") {
        "granted_bytes" => Method::GrantedBytes,
        "tbs" => Method::Blocks { ttis: 0 },
        _ => return Err(options.refuse("bandwidth", "`granted_bytes` or `tbs`")),
    };
    let ttis = options.number("tbs_ttis", 1.0)?.min(1e4) as u64;
    let sampling = match options.text("sample_ms") {
        "once" => Sampling::Once,
        _ => match options.number("sample_ms", 1.0) {
            // Source: BISCAY §5.2 Fig. 6
            // The modem updates the granted bytes once per window. Reading them more often gives no new values.
            Ok(ms) if ms < method.window() as f64 && method == Method::GrantedBytes => {
                return Err(options.refuse(
                    "sample_ms",
                    "100 or more, as the modem updates its granted bytes every 100 ms; \
                     `bandwidth=tbs:tbs_ttis=10:sample_ms=10` samples every 10 ms",
                ));
            }
            Ok(ms) if ms <= 1500.0 => Sampling::Every(ms as u64),
            _ => return Err(options.refuse("sample_ms", "`once` or milliseconds from 1 to 1500")),
        },
    };
    let overhead = options.number("overhead_percent", 0.0)? * 0.01;
    if overhead >= 1.0 {
        return Err(options.refuse("overhead_percent", "a number from 0 to below 100"));
    }
    Ok(Determination {
        method: if method == Method::GrantedBytes { method } else { Method::Blocks { ttis } },
        sampling,
        table: match options.text("block_table") {
            "lte" => BlockTable::Lte(lte::McsTable::Qam64),
            "lte256" => BlockTable::Lte(lte::McsTable::Qam256),
            "nr" => BlockTable::Nr(nr::McsTable::Qam64),
            "nr256" => BlockTable::Nr(nr::McsTable::Qam256),
            _ => return Err(options.refuse("block_table", "`lte`, `lte256`, `nr` or `nr256`")),
        },
        overhead,
    })
}

/// Reads the number of option `name`, limited to `most`. The limit prevents overflow when a time or a window is added
/// to the number.
fn below(options: &Options, name: &str, most: f64) -> Result<f64, SchemeError> {
    Ok(options.number(name, 0.0)?.min(most))
}

fn build(setup: &Setup, options: &Options) -> Result<Ends, SchemeError> {
    let tuning = Tuning::read(options)?;
    let unmodified = match options.text("sender") {
        "cubic" => &cubic::SCHEME,
        "bbr" => &bbr::SCHEME,
        "reno" => &reno::SCHEME,
        _ => return Err(options.refuse("sender", "`cubic`, `bbr` or `reno`")),
    };
    let advertises = match options.text("relay") {
        "feedback" => false,
        "window" => true,
        _ => return Err(options.refuse("relay", "`feedback` or `window`")),
    };
    let receiver = Some(Box::new(BiscayReceiver::new(tuning, setup.mss, advertises)) as _);
    if advertises {
        let inner = (unmodified.build)(setup, &Options::defaults(unmodified))?.controller;
        return Ok(Ends { controller: Box::new(Unmodified::new(inner)), receiver });
    }
    Ok(Ends { controller: Box::new(Biscay::new(tuning, setup.mss, setup.rng.clone())), receiver })
}
