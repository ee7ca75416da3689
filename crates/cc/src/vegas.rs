//! Vegas compares the measured rate with the rate that its window would yield on an empty path. From the difference,
//! Vegas computes the number of its own packets in the queue, and keeps this number between α and β.
//!
//! ```text
//!  slow start, doubling every other round ──queue > γ──▶ congestion avoidance: ±1 packet a round
//! ```
//!
//! `vegas` is the paper's Vegas. `vegas@linux` is the Vegas of the Linux kernel: it uses the minimum RTT of a round,
//! doubles in every round of slow start, and rounds to whole packets.
//!
//! Source: Brakmo and Peterson, TCP Vegas: End to End Congestion Avoidance on a Global Internet, IEEE JSAC 13(8), 1995
//!
//! Differs: the transport detects losses (RFC 9002), with timers as fine as those of the paper's §III.A. The initial
//! window is that of RFC 6928, not one packet. A round is not evaluated if the window did not limit the sender.

use std::time::Duration;

use airpace_core::Bytes;

use crate::controller::{Ack, Control, Controller, Inspect, Loss, LossCause, Sent};
use crate::scheme::{Ends, OptionSpec, Options, Preset, Scheme, SchemeError, Setup, Style};
use crate::window::{Idle, Recovery, initial_window};

/// The scheme `vegas`.
pub static SCHEME: Scheme = Scheme {
    name: "vegas",
    summary: "keeps two to four packets in the queue, which it finds from expected and actual rate",
    source: "Brakmo and Peterson, TCP Vegas: End to End Congestion Avoidance on a Global Internet, IEEE JSAC 1995",
    style: Style { colour: "#CC6677", marker: "circle" },
    presets: &[Preset {
        name: "linux",
        summary: "as Linux's tcp_vegas by its source; not compared with a kernel",
        set: &[("slow_start", "each"), ("measure", "least"), ("loss_leaves", "0.5")],
    }],
    options: &[
        OptionSpec {
            name: "alpha_packets",
            default: "2",
            summary: "with less in the queue, the window grows by a packet per round",
        },
        OptionSpec {
            name: "beta_packets",
            default: "4",
            summary: "with more in the queue, the window shrinks by a packet per round",
        },
        OptionSpec {
            name: "gamma_packets",
            default: "1",
            summary: "with more in the queue, slow start ends",
        },
        OptionSpec {
            name: "slow_start",
            default: "alternate",
            summary: "rounds in which slow start doubles the window: alternate, each",
        },
        OptionSpec {
            name: "measure",
            default: "segment",
            summary: "actual rate of a round: segment (sent until one packet is acknowledged), least (cwnd / least RTT)",
        },
        OptionSpec { name: "loss_leaves", default: "0.75", summary: "a loss multiplies the window by this" },
    ],
    takes_ran: false,
    build,
};

/// Minimum window, in packets.
///
/// Source: Linux tcp_vegas
const MIN_WINDOW: u64 = 2;

/// Minimum number of RTT samples in a round that is evaluated by its minimum RTT. With two samples, both could be from
/// delayed ACKs.
///
/// Source: Linux tcp_vegas
const MIN_SAMPLES: u32 = 3;

fn build(setup: &Setup, options: &Options) -> Result<Ends, SchemeError> {
    Ok(Ends { controller: Box::new(Vegas::new(setup.mss, Tuning::read(options)?)), receiver: None })
}

/// The values of all options.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tuning {
    /// α: if fewer packets are in the queue, the window grows by a packet.
    ///
    /// Source: Vegas §III.B (α and β of two and four buffers)
    pub alpha_packets: f64,
    /// β: if more packets are in the queue, the window shrinks by a packet.
    pub beta_packets: f64,
    /// γ: if more packets are in the queue, slow start ends.
    ///
    /// Source: Vegas §III.C (γ of one buffer)
    pub gamma_packets: f64,
    /// The rounds in which slow start doubles the window.
    pub slow_start: SlowStart,
    /// How the queue is measured in a round.
    pub measure: Measure,
    /// Factor of the window that remains after a loss.
    ///
    /// Source: Hengartner, Bolliger, Gross, TCP Vegas Revisited, INFOCOM 2000 (a quarter less, in the authors'
    /// program; the paper does not say); Linux tcp_reno_ssthresh (half)
    pub loss_leaves: f64,
}

/// The rounds in which slow start doubles the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlowStart {
    /// Slow start doubles the window in every other round. In the other rounds, the window is constant, so that rates
    /// can be compared.
    ///
    /// Source: Vegas §III.C
    Alternate,
    /// Slow start doubles the window in every round.
    ///
    /// Source: Linux tcp_vegas
    Each,
}

/// How the queue is measured in a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// The rate is the bytes sent between the departure of a distinguished packet and its ACK, divided by the RTT of
    /// this packet.
    ///
    /// Source: Vegas §III.B
    Segment,
    /// The rate is the window divided by the minimum RTT of the round. The result is rounded to whole packets.
    ///
    /// Source: Linux tcp_vegas
    Least,
}

impl Tuning {
    /// Parses the options.
    ///
    /// # Errors
    /// The value of an option cannot be read.
    pub fn read(options: &Options) -> Result<Tuning, SchemeError> {
        let loss_leaves = options.number("loss_leaves", 0.0)?;
        if loss_leaves > 1.0 {
            return Err(options.refuse("loss_leaves", "a number of at most 1"));
        }
        let alpha_packets = options.number("alpha_packets", 0.0)?;
        let beta_packets = options.number("beta_packets", 0.0)?;
        if alpha_packets > beta_packets {
            return Err(options.refuse("alpha_packets", "at most beta_packets"));
        }
        Ok(Tuning {
            alpha_packets,
            beta_packets,
            gamma_packets: options.number("gamma_packets", 0.0)?,
            slow_start: match options.text("slow_start") {
                "alternate" => SlowStart::Alternate,
                "each" => SlowStart::Each,
                _ => return Err(options.refuse("slow_start", "`alternate` or `each`")),
            },
            measure: match options.text("measure") {
                "segment" => Measure::Segment,
                "least" => Measure::Least,
                _ => return Err(options.refuse("measure", "`segment` or `least`")),
            },
            loss_leaves,
        })
    }
}

/// The controller. Windows are in packets, as in the paper.
#[derive(Clone, Debug)]
pub struct Vegas {
    mss: Bytes,
    tuning: Tuning,
    cwnd: u64,
    ssthresh: u64,
    /// The minimum RTT, which is that of an empty path.
    base_rtt: Option<Duration>,
    round: Round,
    /// Packets in the queue at the last evaluation.
    queue_packets: Option<f64>,
    /// Bytes sent since the start of the flow.
    sent: Bytes,
    /// Number of packets acknowledged since the window last grew as in Reno.
    counted: u64,
    recovery: Recovery,
    idle: Idle,
}

/// One round: from the departure of a packet to its ACK.
#[derive(Clone, Copy, Debug)]
struct Round {
    /// The round ends when a packet of at least this number, the distinguished one, is acknowledged.
    end: u64,
    /// Bytes sent before the distinguished packet; `None` until that packet has been sent.
    sent_before: Option<Bytes>,
    least_rtt: Option<Duration>,
    samples: u32,
    /// Whether the window limited the sender during the whole round.
    limited: bool,
    /// Whether slow start grows in this round.
    grows: bool,
}

impl Round {
    fn new(end: u64, grows: bool) -> Round {
        Round { end, sent_before: None, least_rtt: None, samples: 0, limited: true, grows }
    }
}

impl Vegas {
    /// A new flow.
    pub fn new(mss: Bytes, tuning: Tuning) -> Vegas {
        Vegas {
            mss,
            tuning,
            cwnd: initial_window(mss).0 / mss.0,
            ssthresh: u64::MAX,
            base_rtt: None,
            round: Round::new(0, false),
            queue_packets: None,
            sent: Bytes::ZERO,
            counted: 0,
            recovery: Recovery::default(),
            idle: Idle::default(),
        }
    }

    fn is_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// Starts a round with the next packet. In slow start the window grows in this round, unless the round only
    /// compares rates.
    fn begin_round(&mut self, next_number: u64) {
        let grows = self.tuning.slow_start == SlowStart::Each || !self.round.grows;
        self.round = Round::new(next_number, grows);
    }

    /// Diff times BaseRTT: the number of the flow's packets in the queue, if the round has enough samples.
    ///
    /// Source: Vegas §III.B
    fn measure(&mut self, ack: &Ack<'_>) -> Option<f64> {
        match self.tuning.measure {
            Measure::Segment => {
                let distinguished = ack.packets.iter().find(|packet| packet.number == self.round.end)?;
                let rtt = ack.now - distinguished.sent;
                let sent = (self.sent - self.round.sent_before?).0 as f64 / self.mss.0 as f64;
                let base_s = self.base_rtt?.as_secs_f64();
                let queue = self.cwnd as f64 - sent * base_s / rtt.as_secs_f64().max(1e-9);
                if queue < 0.0 {
                    // §III.B: the measured rate can exceed the expected rate only if BaseRTT is no longer the minimum
                    // RTT of the path.
                    self.base_rtt = Some(rtt);
                    return Some(0.0);
                }
                Some(queue)
            }
            Measure::Least => {
                let (base, rtt) = (micros(self.base_rtt?), micros(self.round.least_rtt?));
                let is_enough = self.round.samples >= MIN_SAMPLES;
                is_enough.then(|| (self.cwnd.saturating_mul(rtt.saturating_sub(base)) / base) as f64)
            }
        }
    }

    /// Evaluates a round at its end: the window moves by a packet, or slow start ends.
    fn judge(&mut self, queue: f64) {
        let Tuning { alpha_packets, beta_packets, gamma_packets, .. } = self.tuning;
        self.queue_packets = Some(queue);
        if self.is_slow_start() {
            if queue > gamma_packets && (!self.round.grows || self.tuning.measure == Measure::Least) {
                self.end_slow_start();
            }
        } else if queue > beta_packets {
            self.cwnd = (self.cwnd - 1).max(MIN_WINDOW);
            self.ssthresh = self.ssthresh.min(self.cwnd);
        } else if queue < alpha_packets {
            self.cwnd += 1;
        }
        if self.tuning.measure == Measure::Least {
            self.cwnd = self.cwnd.max(MIN_WINDOW);
            self.ssthresh = self.ssthresh.max(self.cwnd / 2 + self.cwnd / 4); // Linux tcp_current_ssthresh
        }
    }

    fn end_slow_start(&mut self) {
        if let (Measure::Least, Some(base), Some(rtt)) =
            (self.tuning.measure, self.base_rtt, self.round.least_rtt)
        {
            // Linux tcp_vegas: the window falls to the amount that fills the path, plus a packet.
            let target = self.cwnd.saturating_mul(micros(base)) / micros(rtt);
            self.cwnd = self.cwnd.min(target + 1);
        }
        self.ssthresh = self.ssthresh.min(self.cwnd);
    }

    /// Growth of a round with too few RTT samples.
    ///
    /// Source: Linux tcp_reno_cong_avoid
    fn grow_as_reno(&mut self, ack: &Ack<'_>) {
        if self.is_slow_start() {
            return; // Reno's growth applies in any case
        }
        self.counted += ack.packets.len() as u64;
        if self.counted >= self.cwnd {
            self.counted = 0;
            self.cwnd += 1;
        }
    }
}

impl Controller for Vegas {
    fn on_sent(&mut self, sent: &Sent) {
        if self.idle.on_sent(sent).is_some() {
            self.cwnd = self.cwnd.min(initial_window(self.mss).0 / self.mss.0); // RFC 5681 §4.1
            if self.tuning.measure == Measure::Least {
                self.base_rtt = None; // Linux tcp_vegas_cwnd_event
            }
            self.begin_round(sent.number);
        }
        if sent.number == self.round.end {
            self.round.sent_before = Some(self.sent);
        }
        self.sent += sent.bytes;
    }

    fn on_ack(&mut self, ack: &Ack<'_>) {
        self.idle.on_ack(ack);
        if let Some(rtt) = ack.rtt.latest {
            self.base_rtt = Some(self.base_rtt.map_or(rtt, |base| base.min(rtt)));
            self.round.least_rtt = Some(self.round.least_rtt.map_or(rtt, |least| least.min(rtt)));
            self.round.samples += 1;
        }
        self.round.limited &= ack.cwnd_limited;
        let was_recovering = self.recovery.is_active();
        if self.recovery.rests(ack) {
            return;
        }
        if was_recovering {
            self.begin_round(ack.next_number);
        } else if ack.packets.last().is_some_and(|packet| packet.number >= self.round.end) {
            if self.round.limited {
                match self.measure(ack) {
                    Some(queue) => self.judge(queue),
                    None if self.tuning.measure == Measure::Least => self.grow_as_reno(ack),
                    None => {}
                }
            }
            self.begin_round(ack.next_number);
        }
        if self.is_slow_start() && self.round.grows && ack.cwnd_limited {
            // The window grows only up to the threshold, at which slow start ends.
            self.cwnd = self.cwnd.saturating_add(ack.packets.len() as u64).min(self.ssthresh);
        }
    }

    /// Processes a loss. It reduces the window only if the lost packet was sent after the last reduction.
    ///
    /// Source: Vegas §III.A
    fn on_loss(&mut self, loss: &Loss<'_>) {
        let left = ((self.cwnd as f64 * self.tuning.loss_leaves) as u64).max(MIN_WINDOW);
        match loss.cause {
            LossCause::Threshold if self.recovery.begins(loss) => {
                self.ssthresh = left;
                self.cwnd = left;
            }
            LossCause::Threshold => {}
            LossCause::Persistent => {
                if self.recovery.collapse(loss) {
                    self.ssthresh = (self.cwnd / 2).max(MIN_WINDOW); // RFC 5681 §3.1 Eq. 4
                }
                self.cwnd = 1; // RFC 5681 §3.1
                self.round = Round::new(loss.next_number, false);
            }
        }
    }

    fn control(&self) -> Control {
        Control { cwnd: Bytes(self.cwnd.saturating_mul(self.mss.0)), pacing_rate: None }
    }

    fn inspect(&self, out: &mut Inspect) {
        out.state = if self.recovery.is_active() {
            "Recovery"
        } else if self.is_slow_start() {
            "SlowStart"
        } else {
            "CongestionAvoidance"
        };
        out.value("base_rtt_ms", self.base_rtt.map_or(f64::NAN, |base| base.as_secs_f64() * 1e3));
        out.value("queue_packets", self.queue_packets.unwrap_or(f64::NAN));
        out.value(
            "ssthresh_packets",
            if self.ssthresh == u64::MAX { f64::NAN } else { self.ssthresh as f64 },
        );
    }
}

/// The RTT in whole microseconds plus one, so that it is never zero.
///
/// Source: Linux tcp_vegas_pkts_acked
fn micros(rtt: Duration) -> u64 {
    rtt.as_micros() as u64 + 1
}

#[cfg(test)]
mod tests {
    use airpace_core::Time;

    use super::*;
    use crate::controller::{RateSample, Rtt, SentPacket};

    const MSS: Bytes = Bytes(1500);

    /// Acknowledges packet `number`, sent at `sent_ms`, at `now_ms`.
    fn acknowledge(vegas: &mut Vegas, number: u64, sent_ms: u64, now_ms: u64, next_number: u64) {
        let (sent, now) = (Time::from_millis(sent_ms), Time::from_millis(now_ms));
        let rtt = now - sent;
        vegas.on_ack(&Ack {
            now,
            packets: &[SentPacket { number, bytes: MSS, sent, ..SentPacket::default() }],
            acked: MSS,
            prior_inflight: MSS,
            inflight: Bytes::ZERO,
            next_number,
            rtt: Rtt { latest: Some(rtt), smoothed: rtt, variation: rtt, min: rtt },
            rate: RateSample::default(),
            cwnd_limited: true,
            ce: 0,
            feedback: &[],
        });
    }

    fn send(vegas: &mut Vegas, number: u64, ms: u64) {
        let now = Time::from_millis(ms);
        vegas.on_sent(&Sent { now, number, bytes: MSS, inflight: Bytes(3 * MSS.0), app_limited: false });
    }

    #[test]
    fn a_rate_beyond_the_expected_one_means_that_the_base_rtt_is_wrong() {
        let tuning = Tuning {
            alpha_packets: 2.0,
            beta_packets: 4.0,
            gamma_packets: 1.0,
            slow_start: SlowStart::Alternate,
            measure: Measure::Segment,
            loss_leaves: 0.75,
        };
        let mut vegas = Vegas { cwnd: 4, ssthresh: 4, ..Vegas::new(MSS, tuning) };
        send(&mut vegas, 0, 0);
        acknowledge(&mut vegas, 0, 0, 40, 1);
        assert_eq!(vegas.base_rtt, Some(Duration::from_millis(40)));
        let cwnd = vegas.cwnd;
        for number in 1..=20 {
            send(&mut vegas, number, 40);
        }
        acknowledge(&mut vegas, 1, 40, 100, 21);
        assert_eq!(
            vegas.base_rtt,
            Some(Duration::from_millis(60)),
            "a window of {cwnd} packets cannot send 20 packets in 60 ms"
        );
    }
}
