//! PBE-CC: the mobile decodes the cell's control channel and computes the capacity that the cell can give it, and the
//! server sends at exactly that rate. If the bottleneck is in the Internet, the server sends like a cautious BBR.
//!
//! ```text
//!        RadioReport                 data + header
//! cell ─────────────▶ PbeReceiver ◀───────────────── Pbe
//!                         │      feedback on ACKs     ▲
//!                         └───────────────────────────┘
//! ```
//!
//! | module | content | section of the paper |
//! | --- | --- | --- |
//! | [`receiver`] | the scheme's receiver on the mobile | §4, §5 |
//! | [`capacity`] | averages of one carrier; Eq. 1–4 | §4.1, §4.2.1 |
//! | [`resources`] | the value of a PRB by the data symbols of its slot | |
//! | [`users`] | counts the users for N | §4.2.1 |
//! | [`carriers`] | carriers, aligned and summed | §5 |
//! | [`legs`] | whether the network uses both LTE and NR | |
//! | [`new_data`] | which blocks are retransmissions | §4.2.1 |
//! | [`unread`] | estimates for the grants that incomplete reports lack | |
//! | [`translation`] | physical capacity to goodput; Eq. 5 | §4.2.1 |
//! | [`delay`] | Dprop and Dth | §4.2.2 |
//! | [`harq`] | the delay that retransmissions add | §4.2.2 |
//! | [`bottleneck`] | wireless or Internet; Eq. 6 | §4.2.2 |
//! | [`growth`] | detects a linear start that stalls | §4.1 |
//! | [`feedback`] | the bytes exchanged between sender and receiver | §5 |
//! | [`sender`] | the controller on the server; Eq. 7 is the probe cap of `bbr` | §4 |
//! | [`start`] | the linear start | §4.1 |
//! | [`buffer`] | target length of the flow's queue in the base station | §7 |
//! | [`guard`] | whether the path delivers the capacity that the receiver reports | §7 |
//!
//! `pbe@paper` follows the paper's text exactly. `pbe` departs from it by the named options of [`SCHEME`]. A `Differs:`
//! line next to the code states each reason.

pub mod bottleneck;
pub mod buffer;
pub mod capacity;
pub mod carriers;
pub mod delay;
pub mod doubt;
pub mod explained;
pub mod feedback;
pub mod growth;
pub mod guard;
pub mod harq;
pub mod legs;
pub mod new_data;
pub mod receiver;
pub mod resources;
pub mod sender;
pub mod start;
pub mod translation;
pub mod unread;
pub mod users;

use std::time::Duration;

use crate::bbr;
use crate::scheme::{Ends, OptionSpec, Options, Preset, Scheme, SchemeError, Setup, Style};

use bottleneck::Rules;
use buffer::Goal;
use carriers::Measure;
use receiver::PbeReceiver;
use sender::Pbe;
use translation::BlockSize;
use users::{UserFilter, Weights};

/// The scheme `pbe`.
pub static SCHEME: Scheme = Scheme {
    name: "pbe",
    summary: "PBE-CC: sends at the rate that the phone measures from its cell's control channel",
    source: "Xie, Yi, Jamieson, PBE-CC: Congestion Control via Endpoint-Centric, Physical-Layer Bandwidth \
             Measurements, SIGCOMM 2020",
    style: Style { colour: "#0072B2", marker: "circle" },
    presets: &[Preset {
        name: "paper",
        summary: "as in the paper's text",
        set: &[
            ("cwnd_slack_ms", "0"),
            ("cwnd_packets", "0"),
            ("cwnd_bunching", "off"),
            ("floor", "off"),
            ("cell_test", "off"),
            ("explained_test", "off"),
            ("unread_test", "off"),
            ("unread", "refused"),
            ("delay_drain", "on"),
            ("npkt_least_ms", "0"),
            ("npkt_span_ms", "0"),
            ("btlbw_reset", "off"),
            ("internet_cwnd_gain", "2"),
            ("internet_margin_percent", "0"),
            ("probe_gain", "1.25"),
            ("n_window_ms", "0"),
            ("l_per_carrier", "off"),
            ("retransmissions", "sinr"),
            ("overhead_percent", "6.8"),
            ("restart_from", "zero"),
            ("device_split", "off"),
            ("request_start", "off"),
            ("guard", "off"),
            ("buffer_ms", "0"),
        ],
    }],
    options: OPTIONS,
    takes_ran: false,
    build,
};

const OPTIONS: &[OptionSpec] = &[
    OptionSpec {
        name: "cwnd_slack_ms",
        default: "measured",
        summary: "the window covers RTprop and this time; measured: mean excess delay while PRBs are idle",
    },
    OptionSpec { name: "cwnd_packets", default: "3", summary: "this many packets more in the window" },
    OptionSpec {
        name: "cwnd_bunching",
        default: "on",
        summary: "add to the window the bytes that one burst of ACKs covers, as after a HARQ retransmission",
    },
    OptionSpec {
        name: "floor",
        default: "on",
        summary: "feed back at least the fair share, also where Eq. 3 gives less",
    },
    OptionSpec {
        name: "cell_test",
        default: "on",
        summary: "Internet state only if the cell's queue cannot explain the delay",
    },
    OptionSpec {
        name: "cell_idle_percent",
        default: "10",
        summary: "with this share of idle PRBs, the cell has no queue for this device",
    },
    OptionSpec {
        name: "explained_test",
        default: "on",
        summary: "a packet is late only if the subframes without idle PRBs do not explain its delay",
    },
    OptionSpec {
        name: "unread_test",
        default: "on",
        summary: "ignore a carrier if most of its reports, or most grants of this device, are not read whole",
    },
    OptionSpec {
        name: "unread",
        default: "estimated",
        summary: "incomplete reports with the amount that is missing: estimated (the missing part), or refused",
    },
    OptionSpec {
        name: "delay_drain",
        default: "off",
        summary: "wireless state: empty the path for 200 ms when the least delay is 10 s old, as BBR does",
    },
    OptionSpec {
        name: "npkt_least_ms",
        default: "24",
        summary: "late packets in a row must span this time: a burst after reordering is no queue",
    },
    OptionSpec {
        name: "npkt_span_ms",
        default: "100",
        summary: "packets in a row over this time also suffice if they are fewer than Npkt; 0: Npkt only",
    },
    OptionSpec {
        name: "btlbw_reset",
        default: "on",
        summary: "start the Internet state with the recent delivery rate as BtlBw",
    },
    OptionSpec {
        name: "internet_cwnd_gain",
        default: "1.3",
        summary: "window of the Internet state, as multiple of BtlBw × (RTprop + a slack that is not measured)",
    },
    OptionSpec {
        name: "internet_margin_percent",
        default: "1",
        summary: "the Internet state sends this share less than BtlBw, as Linux's BBR does",
    },
    OptionSpec {
        name: "probe_gain",
        default: "2.885",
        summary: "pacing gain of the Internet state's probe after Npkt packets without a queue",
    },
    OptionSpec {
        name: "n_window_ms",
        default: "40",
        summary: "time over which users are counted; 0: RTprop",
    },
    OptionSpec {
        name: "user_filter",
        default: "both",
        summary: "thresholds by which a user counts in N: both, either, prbs, subframes, off",
    },
    OptionSpec {
        name: "l_per_carrier",
        default: "on",
        summary: "with retransmissions=sinr: L of Eq. 5 is each carrier's block size; off: the sum of Ct",
    },
    OptionSpec {
        name: "retransmissions",
        default: "counted",
        summary: "error rate of Eq. 5: counted (from the device's grants) or sinr (expected from the SINR)",
    },
    OptionSpec {
        name: "overhead_percent",
        default: "1.5",
        summary: "gamma of Eq. 5: PDCP, RLC and MAC headers and padding; the paper's 6.8 includes IP and UDP",
    },
    OptionSpec {
        name: "restart_from",
        default: "previous",
        summary: "rate from which the start on a new carrier rises: previous, zero",
    },
    OptionSpec {
        name: "device_split",
        default: "on",
        summary: "divide the device's capacity by its active flows",
    },
    OptionSpec {
        name: "request_start",
        default: "on",
        summary: "start with the measurements in a download's request; off: without any until the first ACK",
    },
    OptionSpec {
        name: "guard",
        default: "on",
        summary: "if a receiver reports clearly more than the path delivers, BBR controls the rate instead",
    },
    OptionSpec {
        name: "buffer_ms",
        default: "adaptive",
        summary: "target queue in the base station, to use a rise at once; adaptive: as much as Ct varies; 0: none",
    },
    OptionSpec {
        name: "user_weights",
        default: "equal",
        summary: "how users share the cell: equal (PRBs), rate (more PRBs to users with fewer bits per PRB)",
    },
    OptionSpec {
        name: "return_test",
        default: "rate",
        summary: "end of the Internet state: delay (Npkt packets without a queue), rate (and they arrive at Cf)",
    },
];

/// Time by which the window exceeds RTprop (its slack), before the slack has been measured and in the Internet state.
/// In the Internet state the bottleneck is elsewhere, and the delay of the radio is no reason to fill that bottleneck's
/// queue.
///
/// Chosen: 3 ms of jitter and a wait of one subframe.
///
/// Source: PBE-CC §4.2.2 (the jitter)
const UNMEASURED_SLACK: Duration = Duration::from_millis(3 + 1);

/// The values of all options.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tuning {
    /// Time by which the window exceeds RTprop; `None` if this time is measured.
    pub cwnd_slack: Option<Duration>,
    /// Number of packets added to the window, in addition to `cwnd_slack`.
    pub cwnd_packets: u64,
    /// Whether the window also includes the bytes that the path acknowledges in one burst.
    pub cwnd_bunching: bool,
    /// Whether the fair share is a lower bound of the capacity that is fed back.
    pub floor: bool,
    /// Whether the Internet state starts with the recent delivery rate as BtlBw.
    pub btlbw_reset: bool,
    /// Whether a delay that subframes without idle PRBs can explain is not attributed to the Internet.
    pub explained_test: bool,
    /// Whether the wireless state drains the path when the minimum delay is ten seconds old.
    pub delay_drain: bool,
    /// Pacing gain of a probe after Npkt packets without a queue.
    pub probe_gain: f64,
    /// Whether the start on a new carrier rises from zero.
    pub restart_from_zero: bool,
    /// Whether the device's capacity is divided by its number of active flows.
    pub device_split: bool,
    /// Whether the feedback on a request is used.
    pub request_start: bool,
    /// Whether the receiver's reports are compared with the delivery rate of the path.
    pub guard: bool,
    /// Target of the queue in the base station.
    pub buffer: Goal,
    /// Rules that locate the bottleneck.
    pub rules: Rules,
    /// Settings of the carrier measurement.
    pub measure: Measure,
    /// Parameters of the BBR that is used in the Internet and fallback states.
    pub bbr: bbr::Tuning,
}

impl Tuning {
    /// Parses the options.
    ///
    /// # Errors
    /// The value of an option cannot be read.
    pub fn read(options: &Options) -> Result<Tuning, SchemeError> {
        let millis = |name| Ok::<_, SchemeError>(Duration::from_secs_f64(options.number(name, 0.0)? * 1e-3));
        let positive = |span: Duration| (!span.is_zero()).then_some(span);
        let cwnd_slack = match options.text("cwnd_slack_ms") {
            "measured" => None,
            _ => Some(millis("cwnd_slack_ms")?),
        };
        Ok(Tuning {
            cwnd_slack,
            cwnd_packets: options.number("cwnd_packets", 0.0)? as u64,
            cwnd_bunching: options.switch("cwnd_bunching")?,
            floor: options.switch("floor")?,
            btlbw_reset: options.switch("btlbw_reset")?,
            explained_test: options.switch("explained_test")?,
            delay_drain: options.switch("delay_drain")?,
            probe_gain: options.number("probe_gain", bbr::cycle::PROBE_GAIN)?,
            restart_from_zero: match options.text("restart_from") {
                "previous" => false,
                "zero" => true,
                _ => return Err(options.refuse("restart_from", "`previous` or `zero`")),
            },
            device_split: options.switch("device_split")?,
            request_start: options.switch("request_start")?,
            guard: options.switch("guard")?,
            buffer: match options.text("buffer_ms") {
                "adaptive" => Goal::Adaptive,
                _ => positive(millis("buffer_ms")?).map_or(Goal::None, Goal::Fixed),
            },
            rules: Rules {
                cell_test: options.switch("cell_test")?,
                idle_share: options.number("cell_idle_percent", 0.0)? * 0.01,
                least_span: millis("npkt_least_ms")?,
                span: positive(millis("npkt_span_ms")?),
                return_needs_rate: match options.text("return_test") {
                    "rate" => true,
                    "delay" => false,
                    _ => return Err(options.refuse("return_test", "`rate` or `delay`")),
                },
            },
            measure: Measure {
                filter: match options.text("user_filter") {
                    "both" => UserFilter::Both,
                    "either" => UserFilter::Either,
                    "prbs" => UserFilter::Prbs,
                    "subframes" => UserFilter::Subframes,
                    "off" => UserFilter::Off,
                    _ => {
                        let may_be = "`both`, `either`, `prbs`, `subframes` or `off`";
                        return Err(options.refuse("user_filter", may_be));
                    }
                },
                weights: match options.text("user_weights") {
                    "equal" => Weights::Equal,
                    "rate" => Weights::Rate,
                    _ => return Err(options.refuse("user_weights", "`equal` or `rate`")),
                },
                unread_test: options.switch("unread_test")?,
                estimates: match options.text("unread") {
                    "estimated" => true,
                    "refused" => false,
                    _ => return Err(options.refuse("unread", "`estimated` or `refused`")),
                },
                users_window: positive(millis("n_window_ms")?).map(|span| span.as_millis() as u64),
                count_retransmissions: match options.text("retransmissions") {
                    "counted" => true,
                    "sinr" => false,
                    _ => return Err(options.refuse("retransmissions", "`counted` or `sinr`")),
                },
                overhead: overhead(options)?,
                full_idle_share: options.number("cell_idle_percent", 0.0)? * 0.01,
                block: if options.switch("l_per_carrier")? { BlockSize::OnAir } else { BlockSize::Capacity },
            },
            bbr: bbr::Tuning {
                cwnd_gain: options.number("internet_cwnd_gain", 1.0)?,
                cwnd_slack: cwnd_slack.unwrap_or(UNMEASURED_SLACK),
                pacing_margin: options.number("internet_margin_percent", 0.0)? * 0.01,
                // The states of PBE-CC do not measure RTprop by draining the path, as ProbeRTT does. RTprop must not be
                // replaced by a round-trip time that contains a queue.
                rtprop: bbr::model::Ageing::Sliding,
                // The Internet state in the paper has no detector of policers. The detector would attribute the losses
                // after a switch of states to a policer, and BBR would then not probe for 48 round trips.
                finds_policers: false,
            },
        })
    }
}

/// γ, which must be less than one.
fn overhead(options: &Options) -> Result<f64, SchemeError> {
    let overhead = options.number("overhead_percent", 0.0)? * 0.01;
    if overhead < 1.0 {
        Ok(overhead)
    } else {
        Err(options.refuse("overhead_percent", "a number from 0 to below 100"))
    }
}

fn build(setup: &Setup, options: &Options) -> Result<Ends, SchemeError> {
    let tuning = Tuning::read(options)?;
    Ok(Ends {
        controller: Box::new(Pbe::new(tuning, setup.mss, setup.rng.clone())),
        receiver: Some(Box::new(PbeReceiver::new(tuning, setup.mss))),
    })
}

#[cfg(test)]
mod tests;
