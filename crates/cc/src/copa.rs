//! Copa: it keeps 1/δ packets of its own in the queue, and lets the queue run empty often. From this, each flow can
//! detect whether all other flows do the same.
//!
//! ```text
//!                         queue nearly empty within 5 RTTs
//!  slow start ──λ > λt──▶ default, δ = 0.5 ◀──────────────▶ competitive, AIMD on 1/δ
//!                                          never
//! ```
//!
//! | module | content | section of the paper |
//! | --- | --- | --- |
//! | [`queue`] | RTTmin, RTTstanding; whether the queue is nearly empty | §2.1, §2.2 |
//! | [`velocity`] | steps per round | §2.1 |
//! | [`mode`] | default or competitive, and δ | §2.2 |
//! | [`heavy_loss`] | cuts the window if the loss rate is too high to be random | genericCC |
//! | [`sliding`] | exact minimum and maximum of a window | |
//!
//! `copa` is the paper's Copa. `copa@pantheon` is the program that Pantheon runs under this name: genericCC with
//! `markovian do_ss:auto:0.1` (Pantheon used δ = 0.5 in its first years: `copa@pantheon:delta=0.5`). The options of
//! [`SCHEME`] name the differences between the paper and the program.
//!
//! Source: Arun and Balakrishnan, Copa: Practical Delay-Based Congestion Control for the Internet, NSDI 2018

pub mod heavy_loss;
pub mod mode;
pub mod queue;
pub mod sliding;
pub mod velocity;

use std::time::Duration;

use airpace_core::{Bytes, Rate, Time};

use crate::controller::{Ack, Control, Controller, Inspect, Loss, LossCause, Sent};
use crate::scheme::{Ends, OptionSpec, Options, Preset, Scheme, SchemeError, Setup, Style};
use crate::window::Recovery;

use heavy_loss::HeavyLoss;
use mode::{Aggressiveness, Competition, Mode};
use queue::{EmptyTest, Filters, Queue};
use velocity::{Rule, Velocity};

/// The scheme `copa`.
pub static SCHEME: Scheme = Scheme {
    name: "copa",
    summary: "keeps 1/delta packets in the queue; competes with flows that fill it",
    source: "Arun and Balakrishnan, Copa: Practical Delay-Based Congestion Control for the Internet, NSDI 2018",
    style: Style { colour: "#332288", marker: "rect" },
    presets: &[Preset {
        name: "pantheon",
        summary: "genericCC as Pantheon runs it (do_ss:auto:0.1); Pantheon's older results had :delta=0.5",
        set: &[
            ("delta", "0.1"),
            ("rtt_min_rtts", "20"),
            ("srtt_gain", "0.0625"),
            ("empty_test", "least"),
            ("velocity", "majority"),
            ("competition", "acks"),
            ("losses", "gaps"),
            ("heavy_loss_percent", "30"),
            ("probe_acks", "19"),
            ("window_slack", "on"),
            ("restart_s", "2"),
        ],
    }],
    options: OPTIONS,
    takes_ran: true,
    build,
};

const OPTIONS: &[OptionSpec] = &[
    OptionSpec {
        name: "delta",
        default: "0.5",
        summary: "δ of the default mode: aims at 1/δ packets in the queue",
    },
    OptionSpec {
        name: "mode_switch",
        default: "on",
        summary: "compete where the queue never empties; off: δ is constant",
    },
    OptionSpec { name: "rtt_min_s", default: "10", summary: "RTTmin is the least RTT of this time" },
    OptionSpec { name: "rtt_min_rtts", default: "0", summary: "and of at least this many RTTmin" },
    OptionSpec {
        name: "srtt_gain",
        default: "0.125",
        summary: "gain of the smoothed RTT; τ is half the smoothed RTT",
    },
    OptionSpec {
        name: "empty_test",
        default: "standing",
        summary: "the queue was empty if low: standing (RTTstanding, once in 5 RTTs), least (an RTT of the last 4)",
    },
    OptionSpec {
        name: "velocity",
        default: "windows",
        summary: "velocity doubles: windows (after three in one direction), majority (by the ACKs of an RTT)",
    },
    OptionSpec {
        name: "velocity_limit",
        default: "on",
        summary: "keep the velocity below δ · cwnd: no round more than doubles the window",
    },
    OptionSpec {
        name: "competition",
        default: "windows",
        summary: "1/δ halves, when competing, per: windows (of data with a loss), acks (that show a loss)",
    },
    OptionSpec {
        name: "losses",
        default: "declared",
        summary: "what counts as a loss: declared (by the transport), gaps (in what is acknowledged)",
    },
    OptionSpec {
        name: "heavy_loss_percent",
        default: "100",
        summary: "above this loss over two RTTs, the window is multiplied by 0.7; 100: never",
    },
    OptionSpec {
        name: "probe_acks",
        default: "0",
        summary: "keep the window constant, without pacing, for this many ACKs at the start",
    },
    OptionSpec {
        name: "window_slack",
        default: "off",
        summary: "send while less than cwnd + 1 packets are in flight, not only what fits into cwnd",
    },
    OptionSpec {
        name: "restart_s",
        default: "0",
        summary: "begin anew after a silence of this many seconds; 0: when the transport gives up what is in flight",
    },
];

/// Minimum window, in packets.
///
/// Source: genericCC markoviancc
const MIN_WINDOW: f64 = 2.0;

/// The window at the start of a flow, in packets.
///
/// Source: genericCC markoviancc (`num_probe_pkts`); Copa §2.1 (a larger one than before, as TCPs have)
const FIRST_WINDOW: f64 = 10.0;

/// Factor of the window that remains after a heavy loss.
///
/// Source: genericCC markoviancc
const HEAVY_LOSS_LEAVES: f64 = 0.7;

/// Pacing rate, in windows per RTTstanding, so that packets do not leave in bursts.
///
/// Source: Copa §2.1
const PACING_GAIN: f64 = 2.0;

fn build(setup: &Setup, options: &Options) -> Result<Ends, SchemeError> {
    Ok(Ends { controller: Box::new(Copa::new(setup.mss, Tuning::read(options)?)), receiver: None })
}

/// The values of all options.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tuning {
    /// δ of the default mode.
    pub delta: f64,
    /// Whether the flow switches to competitive mode if the queue never empties.
    pub mode_switch: bool,
    /// Settings of the RTT filters.
    pub filters: Filters,
    /// Rule for doubling the velocity.
    pub velocity: Rule,
    /// Whether the velocity stays below δ · cwnd.
    pub velocity_limit: bool,
    /// Effect of losses on δ.
    pub competition: Competition,
    /// Whether a gap in the acknowledged numbers counts as a loss at once.
    pub gaps: bool,
    /// Loss rate (0…1) above which the window is cut.
    pub heavy_loss: f64,
    /// Number of ACKs at the start of a flow during which the window is constant.
    pub probe_acks: u64,
    /// Whether one packet more than the window may be in flight.
    pub window_slack: bool,
    /// The time without ACKs after which the flow restarts.
    pub restart: Duration,
}

impl Tuning {
    /// Parses the options.
    ///
    /// # Errors
    /// The value of an option cannot be read.
    pub fn read(options: &Options) -> Result<Tuning, SchemeError> {
        let share = |name, most: f64, may_be| match options.number(name, 0.0)? {
            number if number <= most => Ok(number),
            _ => Err(options.refuse(name, may_be)),
        };
        let delta = options.number("delta", 0.001)?;
        let srtt_gain = share("srtt_gain", 1.0, "a number of at most 1")?;
        let rtt_min_s = share("rtt_min_s", 1e6, "seconds")?;
        if rtt_min_s == 0.0 {
            return Err(options.refuse("rtt_min_s", "a time above 0: RTTmin needs a memory"));
        }
        Ok(Tuning {
            delta,
            mode_switch: options.switch("mode_switch")?,
            filters: Filters {
                rtt_min: Duration::from_secs_f64(rtt_min_s),
                rtt_min_rtts: share("rtt_min_rtts", 1e3, "a number of RTTs")? as u32,
                srtt_gain,
                empty_test: match options.text("empty_test") {
                    "standing" => EmptyTest::Standing,
                    "least" => EmptyTest::Least,
                    _ => return Err(options.refuse("empty_test", "`standing` or `least`")),
                },
            },
            velocity: match options.text("velocity") {
                "windows" => Rule::Windows,
                "majority" => Rule::Majority,
                _ => return Err(options.refuse("velocity", "`windows` or `majority`")),
            },
            velocity_limit: options.switch("velocity_limit")?,
            competition: match options.text("competition") {
                "windows" => Competition::Windows,
                "acks" => Competition::Acks,
                _ => return Err(options.refuse("competition", "`windows` or `acks`")),
            },
            gaps: match options.text("losses") {
                "declared" => false,
                "gaps" => true,
                _ => return Err(options.refuse("losses", "`declared` or `gaps`")),
            },
            heavy_loss: share("heavy_loss_percent", 100.0, "a percentage")? / 100.0,
            probe_acks: options.number("probe_acks", 0.0)? as u64,
            window_slack: options.switch("window_slack")?,
            restart: Duration::from_secs_f64(share("restart_s", 1e3, "seconds")?),
        })
    }
}

/// The controller. Windows are in packets, as in the paper.
#[derive(Clone, Debug)]
pub struct Copa {
    mss: Bytes,
    tuning: Tuning,
    cwnd: f64,
    slow_start: bool,
    queue: Queue,
    velocity: Velocity,
    aggressiveness: Aggressiveness,
    heavy_loss: HeavyLoss,
    recovery: Recovery,
    /// Packets acknowledged since the start.
    acked: u64,
    /// Packets declared lost since the last ACK was processed.
    declared_lost: u64,
    /// The packet number after the highest acknowledged packet. A higher acknowledged number shows a gap.
    next_in_order: u64,
    /// The round ends when a packet of at least this number is acknowledged.
    round_end: u64,
    pacing_rate: Option<Rate>,
    inflight: Bytes,
    /// The number of the next packet to be sent.
    next_number: u64,
    /// Arrival time of the last ACK.
    heard: Time,
    /// The packet number after the highest acknowledged packet.
    highest: u64,
    /// Packets below this number were declared lost by the transport after a time without ACKs, but still count as in
    /// flight here.
    held: u64,
}

impl Copa {
    /// A new flow.
    pub fn new(mss: Bytes, tuning: Tuning) -> Copa {
        Copa {
            mss,
            tuning,
            cwnd: FIRST_WINDOW,
            slow_start: true,
            queue: Queue::new(tuning.filters),
            velocity: Velocity::new(tuning.velocity, FIRST_WINDOW),
            aggressiveness: Aggressiveness::new(tuning.competition, tuning.delta),
            heavy_loss: HeavyLoss::new(tuning.heavy_loss),
            recovery: Recovery::default(),
            acked: 0,
            declared_lost: 0,
            next_in_order: 0,
            round_end: 0,
            pacing_rate: None,
            inflight: Bytes::ZERO,
            next_number: 0,
            heard: Time::ZERO,
            highest: 0,
            held: 0,
        }
    }

    /// Source: Copa §2.1
    fn move_window(&mut self, ack: &Ack<'_>) {
        let target = self.target_window();
        // Chosen: an application that sends little leaves the queue empty. This does not prove that the queue would
        // also be empty with a larger window.
        let may_grow = !ack.rate.app_limited;
        for _ in ack.packets {
            if self.slow_start {
                self.cwnd += f64::from(u8::from(may_grow)); // Copa §2.1: doubles once per RTT
                self.slow_start = self.cwnd <= target; // Copa §2.1: until λ exceeds λt
                continue;
            }
            self.velocity.before_step(ack.now, self.queue.latest());
            if self.tuning.velocity_limit {
                self.velocity.limit(self.aggressiveness.delta() * self.cwnd);
            }
            let up = self.cwnd <= target;
            self.velocity.on_step(up);
            let step = self.velocity.get() / (self.aggressiveness.delta() * self.cwnd);
            if !up {
                self.cwnd -= step;
            } else if may_grow {
                self.cwnd += step;
            }
            // Chosen: the upper bound keeps the arithmetic finite. The transport runs out of memory long before the
            // window reaches this bound.
            self.cwnd = self.cwnd.clamp(MIN_WINDOW, 1e9);
        }
    }

    /// The window at which the rate is `λt = 1 / (δ · dq)`; infinite while the queue is empty.
    ///
    /// Source: Copa §2.1 Eq. 1
    fn target_window(&self) -> f64 {
        let delay_s = self.queue.delay().as_secs_f64();
        let standing_s = self.queue.rtt_standing().unwrap_or_default().as_secs_f64();
        if delay_s == 0.0 { f64::INFINITY } else { standing_s / (self.aggressiveness.delta() * delay_s) }
    }

    /// Number of packets that this ACK shows to be lost.
    fn count_losses(&mut self, ack: &Ack<'_>) -> u64 {
        let declared = std::mem::take(&mut self.declared_lost);
        if !self.tuning.gaps {
            return declared;
        }
        // Source: genericCC markoviancc (what was sent before the newest and not acknowledged by then is lost)
        let mut skipped = 0;
        for packet in ack.packets {
            if packet.number >= self.next_in_order {
                skipped += packet.number - self.next_in_order;
                self.next_in_order = packet.number + 1;
            }
        }
        skipped
    }

    fn set_pace(&mut self) {
        let window = self.mss.scaled(PACING_GAIN * self.cwnd);
        let standing = self.queue.rtt_standing().filter(|standing| !standing.is_zero());
        self.pacing_rate =
            standing.map(|standing| Rate::from_bytes_per(window, standing).max(Rate::from_bps(1)));
    }
}

impl Controller for Copa {
    fn on_sent(&mut self, sent: &Sent) {
        if self.inflight == Bytes::ZERO && self.held == 0 {
            // A time without ACKs while nothing was in flight does not count.
            self.heard = sent.now;
        }
        self.inflight = sent.inflight;
        self.next_number = sent.number + 1;
    }

    fn on_ack(&mut self, ack: &Ack<'_>) {
        self.inflight = ack.inflight;
        self.heard = ack.now;
        let Some(newest) = ack.packets.last() else { return };
        self.highest = self.highest.max(newest.number + 1);
        if self.highest >= self.held {
            self.held = 0;
        }
        self.queue.on_sample(ack.now, ack.rtt.latest.unwrap_or(ack.now - newest.sent));
        let latest = self.queue.latest();
        let is_round_over = newest.number >= self.round_end;
        if is_round_over {
            self.round_end = ack.next_number;
            self.aggressiveness.on_round();
        }
        if self.tuning.mode_switch {
            self.aggressiveness.on_ack(ack.now, self.queue.empties(ack.now), latest);
        }
        let packets = ack.packets.len() as u64;
        let was_slow_start = self.slow_start;
        if self.acked >= self.tuning.probe_acks {
            self.move_window(ack);
            self.set_pace();
        }
        if is_round_over {
            self.velocity.on_round(self.cwnd, was_slow_start);
        }
        self.acked += packets;
        let lost = self.count_losses(ack);
        if lost > 0 {
            self.aggressiveness.on_lossy_ack(ack.now);
        }
        if self.heavy_loss.on_packets(ack.now, packets, lost, latest) {
            self.cwnd = (self.cwnd * HEAVY_LOSS_LEAVES).max(MIN_WINDOW);
            self.set_pace();
        }
    }

    /// By default, a loss does not change the window.
    ///
    /// Source: Copa §2.2
    fn on_loss(&mut self, loss: &Loss<'_>) {
        self.inflight = loss.inflight;
        if loss.cause == LossCause::Persistent {
            if loss.now < self.heard + self.tuning.restart {
                // Source: genericCC ctcp (2018; nothing is given up before two seconds of silence have passed)
                self.held = loss.next_number;
                return;
            }
            // Source: genericCC ctcp (2018; begins anew after the silence)
            // Chosen: by default, the flow restarts when the transport declares persistent congestion. The paper leaves
            // this open.
            let fresh = Copa::new(self.mss, self.tuning);
            let (inflight, next_number) = (self.inflight, self.next_number);
            let highest = loss.next_number;
            *self = Copa { next_in_order: highest, highest, inflight, next_number, heard: loss.now, ..fresh };
            self.recovery.collapse(loss);
            return;
        }
        self.declared_lost += loss.packets.len() as u64;
        if self.recovery.begins(loss) {
            self.aggressiveness.on_lost_window();
        }
    }

    fn control(&self) -> Control {
        let cwnd =
            if self.tuning.window_slack && self.acked > 0 { libm::ceil(self.cwnd) + 1.0 } else { self.cwnd };
        if self.held > 0 {
            // As in the program, all packets with numbers above the highest acknowledged number count as in flight.
            let outstanding = self.next_number.saturating_sub(self.highest) as f64;
            let cwnd = self.inflight + self.mss.scaled((cwnd - outstanding).max(0.0));
            return Control { cwnd: cwnd.max(self.mss), pacing_rate: self.pacing_rate };
        }
        Control { cwnd: self.mss.scaled(cwnd), pacing_rate: self.pacing_rate }
    }

    fn inspect(&self, out: &mut Inspect) {
        out.state = match self.aggressiveness.mode() {
            _ if self.slow_start => "SlowStart",
            Mode::Default => "Default",
            Mode::Competitive => "Competitive",
        };
        let millis = |span: Option<Duration>| span.map_or(f64::NAN, |span| span.as_secs_f64() * 1e3);
        let target = self.target_window();
        out.value("inverse_delta_packets", 1.0 / self.aggressiveness.delta());
        out.value("velocity_steps", self.velocity.get());
        out.value("target_packets", if target.is_finite() { target } else { f64::NAN });
        out.value("rtt_min_ms", millis(self.queue.rtt_min()));
        out.value("rtt_standing_ms", millis(self.queue.rtt_standing()));
    }
}
