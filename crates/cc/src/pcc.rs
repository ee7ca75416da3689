//! The common base of the Performance-oriented Congestion Control schemes: send at a rate for an interval, observe the
//! result, learn from it.
//!
//! ```text
//!            Trial { rate, span }                        Report { utility's ingredients }
//!  Learner ───────────────────────▶ monitor interval ──────── one RTT later ───────▶ Learner
//! ```
//!
//! Time is divided into monitor intervals. The outcome of a packet counts for the interval in which the packet was
//! *sent*, by its number. A report is therefore exact, regardless of its delay, and the sender continues while it waits
//! for the report. Intervals start and end with packets: a sender without data has no intervals, and nothing here needs
//! a timer.
//!
//! | module | content |
//! | --- | --- |
//! | [`interval`] | one interval: its sent, acknowledged and lost packets and its round-trip times; its report |
//! | [`trend`] | the slope of round-trip times over an interval |
//! | [`start`] | doubling until the utility no longer rises |
//! | [`pairs`] | trials of a higher and a lower rate in random order |
//! | [`climb`] | Allegro's learner; MORC uses it and leaves out some trials |
//!
//! Schemes based on it: [`allegro`](crate::allegro), [`vivace`](crate::vivace), [`morc`](crate::morc).
//!
//! Source: Dong et al., PCC: Re-architecting Congestion Control for Consistent High Performance, NSDI 2015

pub mod climb;
pub mod interval;
pub mod pairs;
pub mod start;
#[cfg(test)]
mod tests;
pub mod trend;

use std::collections::VecDeque;
use std::time::Duration;

use airpace_core::{Bytes, Rate, Time};

use crate::controller::{Ack, Control, Controller, Inspect, Loss, Sent};
use crate::window::initial_window;

use interval::{Interval, Report};

/// Maximum number of intervals that wait for ACKs at the same time. While this many intervals wait, the newest interval
/// does not end.
///
/// Chosen: a round trip is one or two intervals, and the window stops a sender after two round trips without ACKs.
const MAX_INTERVALS: usize = 32;

/// Round-trip time assumed before the first sample.
///
/// Chosen: a long path, so that the first packets are not a burst. The first ACK corrects it.
const UNKNOWN_RTT: Duration = Duration::from_millis(100);

/// Maximum time between two packets that does not count as a pause of the application. A driver, or a burst of the
/// pacer, may be late by this time.
///
/// Chosen: twice the pacer's credit.
const NO_PAUSE: Duration = Duration::from_millis(2);

/// Maximum rate that a learner may request (Mbit/s).
///
/// Chosen: higher than any sender of this transport can reach.
const MAX_MBPS: f64 = 100_000.0;

/// The part of a PCC scheme that chooses the next rate and evaluates the reports.
pub trait Learner: Send {
    /// The trial of the next interval. Called when the first packet of that interval has left.
    fn next(&mut self, path: &PathView) -> Trial;

    /// Processes an interval's report; reports arrive in the order in which the intervals were sent. Returns whether
    /// the current interval must end now, because a better rate is known.
    fn learn(&mut self, report: &Report, path: &PathView) -> bool;

    /// Processes an ACK, before the reports that it completes. Returns whether the current interval must end now.
    fn hear(&mut self, _ack: &Ack<'_>, _path: &PathView) -> bool {
        false
    }

    /// Maximum number of outstanding bytes, if the learner's limit is lower than that of PCC.
    fn window(&self, _path: &PathView) -> Option<Bytes> {
        None
    }

    /// Reports the state and the internal values.
    fn inspect(&self, out: &mut Inspect);
}

/// Properties of the path that a learner uses besides its reports.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathView {
    /// Smoothed round-trip time.
    pub rtt: Duration,
    /// The minimum round-trip time of the connection.
    pub rtt_min: Duration,
    /// Whether `rtt` was measured.
    pub is_known: bool,
    /// Bytes of a full packet.
    pub mss: Bytes,
}

impl PathView {
    /// Converts a rate of `packets` full packets per `rtt` to Mbit/s.
    pub fn mbps_of(&self, packets: f64, rtt: Duration) -> f64 {
        self.mss.0 as f64 * 8e-6 * packets / rtt.as_secs_f64().max(1e-4)
    }

    /// The initial and minimum rate of a connection (Mbit/s): two packets per round trip.
    ///
    /// Source: Dong et al., NSDI 2015, §3.2
    ///
    /// Chosen: the minimum rate uses the minimum round-trip time, so that a full queue does not lower the minimum rate.
    pub fn least_mbps(&self) -> f64 {
        self.mbps_of(2.0, if self.is_known { self.rtt_min } else { self.rtt }).min(MAX_MBPS)
    }

    /// `mbps`, limited to the permitted rates.
    pub fn bounded(&self, mbps: f64) -> f64 {
        mbps.clamp(self.least_mbps(), MAX_MBPS)
    }

    /// Length of an interval of `round_trips` that is long enough for `packets` at `mbps`.
    pub fn span(&self, round_trips: f64, packets: f64, mbps: f64) -> Duration {
        let packets_s = packets * self.mss.0 as f64 * 8e-6 / mbps.max(1e-3);
        Duration::from_secs_f64(packets_s.max(self.rtt.as_secs_f64() * round_trips).clamp(1e-4, 60.0))
    }
}

/// A rate to try, and the length of the trial.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trial {
    /// The sending rate of the trial (Mbit/s).
    pub rate_mbps: f64,
    /// Length of the trial.
    pub span: Duration,
    /// The purpose of the trial.
    pub tag: Tag,
}

/// The purpose of an interval. The interval's report contains the same tag.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tag {
    /// Number of the learner's decision to which the interval belongs. Reports of trials for an earlier decision are
    /// ignored.
    pub decision: u32,
    /// The role of the interval in the decision.
    pub role: Role,
}

/// The role of an interval in a decision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// The interval is sent while the learner waits for reports of other intervals.
    #[default]
    Waiting,
    /// The interval is one trial of a series; the number is the index of the trial.
    Probe(u8),
    /// The interval is a step in one direction. Its utility decides whether another step follows.
    Step,
}

/// A controller with the learner of one scheme.
pub struct Pcc<L> {
    learner: L,
    path: PathView,
    variation: Duration,
    /// Intervals that have packets without an outcome, oldest first. The packets of the last interval are being sent.
    intervals: VecDeque<Interval>,
    /// The mean round-trip time of the last report.
    previous_rtt_s: Option<f64>,
    last_report: Report,
    /// Whether the next packet starts a new interval in any case.
    realign: bool,
    last_sent: Option<Sent>,
    control: Control,
}

impl<L: Learner> Pcc<L> {
    /// A new flow.
    pub fn new(mss: Bytes, mut learner: L) -> Pcc<L> {
        let path = PathView { rtt: UNKNOWN_RTT, rtt_min: UNKNOWN_RTT, is_known: false, mss };
        // Before the first packet, the learner provides only the rate. The interval starts with the packet.
        let rate = Rate::from_mbps(path.bounded(learner.next(&path).rate_mbps));
        Pcc {
            learner,
            path,
            variation: Duration::ZERO,
            intervals: VecDeque::with_capacity(MAX_INTERVALS),
            previous_rtt_s: None,
            last_report: Report::default(),
            realign: false,
            last_sent: None,
            control: Control { cwnd: initial_window(mss), pacing_rate: Some(rate) },
        }
    }

    fn rate(&self) -> Rate {
        self.control.pacing_rate.unwrap_or(Rate::ZERO)
    }

    /// Starts an interval with the packet `sent`.
    fn open(&mut self, sent: &Sent) {
        let trial = self.learner.next(&self.path);
        let trial = Trial { rate_mbps: self.path.bounded(trial.rate_mbps), ..trial };
        self.realign = false;
        self.intervals.push_back(Interval::new(trial, sent));
        self.control = Control {
            cwnd: self.window(),
            pacing_rate: Some(Rate::from_mbps(trial.rate_mbps).max(Rate::from_bps(1))),
        };
    }

    /// PCC itself has no window. This window only stops a sender that gets no ACKs. The window is the data that the
    /// open interval with the highest rate sends in two round trips and their variation.
    ///
    /// Chosen: two round trips never limit the sender while ACKs arrive. The variation is multiplied by four, as in a
    /// retransmission timeout.
    fn window(&self) -> Bytes {
        let fastest = self.intervals.iter().map(|it| it.trial().rate_mbps).fold(0.0, f64::max);
        let span = self.path.rtt * 2 + self.variation * 4;
        let most = Rate::from_mbps(fastest).bytes_in(span) + initial_window(self.path.mss);
        self.learner.window(&self.path).map_or(most, |wanted| wanted.clamp(self.path.mss, most))
    }

    /// Time since when the application had nothing to send, if the packet `sent` ends such a pause.
    ///
    /// Source: MORC §3.1 Burstiness
    ///
    /// Chosen: pauses are handled for every scheme based on PCC. The papers of Allegro and Vivace assume a sender that
    /// always has data.
    fn pause_before(&self, sent: &Sent) -> Option<Time> {
        let last = self.last_sent.filter(|last| last.app_limited)?;
        let due = last.now + self.rate().time_for(last.bytes);
        (sent.now > due + NO_PAUSE).then_some(due)
    }

    /// Passes the reports of complete intervals to the learner.
    fn report(&mut self) {
        while self.intervals.front().is_some_and(Interval::is_complete) {
            let Some(interval) = self.intervals.pop_front() else { return };
            let report = interval.report(self.path.rtt, self.previous_rtt_s);
            self.previous_rtt_s = Some(report.rtt_s);
            self.realign |= self.learner.learn(&report, &self.path);
            self.last_report = report;
        }
    }

    fn interval_of(&mut self, number: u64) -> Option<&mut Interval> {
        self.intervals.iter_mut().find(|interval| number < interval.end()).filter(|it| it.has(number))
    }
}

impl<L: Learner> Controller for Pcc<L> {
    fn on_sent(&mut self, sent: &Sent) {
        let pause = self.pause_before(sent);
        let has_room = self.intervals.len() < MAX_INTERVALS;
        let is_open = match self.intervals.back_mut() {
            None => false,
            // Too few packets were sent before the pause to evaluate the trial, so the trial restarts.
            Some(open) if pause.is_some_and(|since| since < open.due()) => {
                open.restart(sent);
                true
            }
            Some(open) if has_room && (self.realign || open.due() <= sent.now) => {
                open.close(pause.unwrap_or(sent.now), sent.number);
                false
            }
            Some(_) => true,
        };
        if !is_open {
            self.open(sent);
        }
        if let Some(open) = self.intervals.back_mut() {
            open.on_sent(sent);
        }
        self.last_sent = Some(*sent);
        self.report();
    }

    fn on_ack(&mut self, ack: &Ack<'_>) {
        self.realign |= !self.path.is_known;
        self.path.is_known = true;
        self.path.rtt = ack.rtt.smoothed;
        self.path.rtt_min = ack.rtt.min;
        self.variation = ack.rtt.variation;
        self.realign |= self.learner.hear(ack, &self.path);
        for packet in ack.packets {
            if let Some(interval) = self.interval_of(packet.number) {
                interval.on_acked(ack.now, packet);
            }
        }
        if let (Some(rtt), Some(newest)) = (ack.rtt.latest, ack.packets.last())
            && let Some(interval) = self.interval_of(newest.number)
        {
            interval.on_rtt(newest.sent, rtt);
        }
        self.report();
    }

    fn on_loss(&mut self, loss: &Loss<'_>) {
        for packet in loss.packets {
            if let Some(interval) = self.interval_of(packet.number) {
                interval.on_lost();
            }
        }
        self.report();
    }

    fn control(&self) -> Control {
        self.control
    }

    fn inspect(&self, out: &mut Inspect) {
        self.learner.inspect(out);
        let span = self.intervals.back().map_or(f64::NAN, |open| open.trial().span.as_secs_f64() * 1e3);
        out.value("interval_ms", span);
        let known = |value: f64| if self.last_report.packets > 0 { value } else { f64::NAN };
        out.value("sent_mbps", known(self.last_report.sent_mbps));
        out.value("received_mbps", self.last_report.received_mbps.unwrap_or(f64::NAN));
        out.value("loss_percent", known(self.last_report.loss * 100.0));
        out.value("mean_rtt_ms", known(self.last_report.rtt_s * 1e3));
        out.value("rtt_slope_ms_per_s", known(self.last_report.trend.slope * 1e3));
    }
}
