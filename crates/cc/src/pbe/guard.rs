//! Whether the path delivers what the receiver reports. A receiver that reports more than the truth makes its sender
//! fill queues, and takes what others could have.
//!
//! ```text
//!          four rounds of a full queue,
//!          less delivered than reported                  the queue was the flow's own
//! Trust ──────────────────────────────▶ Check ────────────────────────────────────────▶ Flagged
//!   ▲                                     │
//!   └──────── any other explanation ──────┘
//! ```
//!
//! A round trip is evidence if every packet of it waited in a queue and the path still delivered clearly less than was
//! reported at the same time. An honest report says what the cell gave to this device and what it left idle; a cell in
//! which the device's packets wait leaves nothing idle, so the report is then what was delivered. But a queue may also
//! be somebody else's, or on the way of the ACKs. The check tells: for some round trips, the sender sends a little less
//! than was delivered. A queue of its own is gone then. Any other queue stays.
//!
//! Source: PBE-CC §7 (a server-side throughput estimator, like BBR's, that compares reported with actual throughput)
//! Chosen: all of its rules and numbers, since the paper gives none.

use std::time::Duration;

use airpace_core::{Bytes, Rate, Time};

use crate::filter::WindowedMax;

/// A packet waited in a queue if its round-trip time exceeds RTprop by more than this.
///
/// Chosen: one retransmission and the jitter. The least of a round must exceed it, not a single packet.
///
/// Source: PBE-CC §4.2.2 (a retransmission after 8 ms; jitter is at most 3 ms in 94.1 % of the time)
const NO_QUEUE: Duration = Duration::from_millis(8 + 3);

/// The part of the reported capacity that a round must deliver in order not to be evidence.
///
/// Chosen: estimates are right within some percent in the mean, and a receiver that claims 1.3 times the truth leaves
/// 0.77.
const DELIVERED: f64 = 0.85;

/// Rounds of evidence after which the sender checks.
///
/// Chosen: with the check, less than ten round trips. Those that notice a bottleneck in the Internet need three.
const ROUNDS: f64 = 4.0;

/// What a round without evidence takes from the count.
///
/// Chosen: a receiver that lies in bursts is found if its bursts are more than some percent of the time.
const FORGIVEN: f64 = 1.0 / 16.0;

/// The same of the most that the path delivered lately.
///
/// Chosen: nearer to one, since the most of some noisy rates is above their mean.
const PEAK_DELIVERED: f64 = 0.92;

/// The sender sends this part of what was delivered while it checks.
///
/// Chosen: enough to keep a queue empty. The window empties it.
pub const CHECK_GAIN: f64 = 0.9;

/// The window of a check, as part of what was delivered in RTprop.
///
/// Chosen: as BBR's drain. Others may take what the flow leaves; the queue is gone then nevertheless.
pub const CHECK_WINDOW: f64 = 0.75;

/// Rounds after which a check ends without a result.
const CHECK_ROUNDS: u32 = 4;

/// How long the most that the path delivered is remembered. A report of no more than that is no lie, though the path
/// delivers less just now.
///
/// Chosen: schedulers that are fair in the long run may pass over a device for 0.7 s, and fading is slower than a round
/// trip.
const PEAK_WINDOW: Duration = Duration::from_secs(1);

/// The shortest time over which what was delivered counts as a rate.
///
/// Chosen: a retransmission delays eight subframes of data, and releases them at once.
const PEAK_SPAN: Duration = Duration::from_millis(100);

/// Rounds until the next check, after one that found another explanation; doubled every time.
///
/// Chosen: beside a flow that fills the same queue, a check every 32 rounds costs less than a percent.
const PAUSE_ROUNDS: u32 = 32;

/// What an ACK shows to the guard.
#[derive(Clone, Copy, Debug)]
pub struct Witness {
    /// When it came.
    pub now: Time,
    /// Whether it began a round.
    pub round_start: bool,
    /// Bytes that it acknowledged.
    pub acked: Bytes,
    /// Its round-trip time.
    pub rtt: Option<Duration>,
    /// The least round-trip time.
    pub rtprop: Duration,
    /// The rate at which the flow may send because of what the receiver reports.
    pub reported: Rate,
    /// Whether the application, not the path, limited what was delivered.
    pub app_limited: bool,
}

/// What the sender must do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Verdict {
    /// Go on.
    Nothing,
    /// Send [`CHECK_GAIN`] times this rate until the next verdict: it is what the path delivered.
    Check(Rate),
    /// Believe the receiver again.
    Release,
    /// Believe the receiver no more.
    Flag,
}

/// One round.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    /// When it began; `None` for the first, which is not whole.
    began: Option<Time>,
    last: Time,
    delivered: Bytes,
    /// What the reports of the round promise, in bytes.
    reported: f64,
    least_rtt: Option<Duration>,
    /// The sum of its round-trip times, and how many there are.
    rtts: (Duration, u32),
    app_limited: bool,
}

/// A check.
#[derive(Clone, Copy, Debug)]
struct Check {
    /// The least and the mean round-trip time below which the queue is gone.
    emptied: (Duration, Duration),
    rounds: u32,
}

/// The state of the guard of one flow.
#[derive(Clone, Debug)]
pub struct Guard {
    round: Round,
    /// The most that the path delivered lately.
    peak: WindowedMax<Rate, Time>,
    /// Since when how much was delivered that does not yet count as a rate.
    counted: Option<(Time, Bytes)>,
    evidence: f64,
    check: Option<Check>,
    /// Rounds until evidence counts again, and the next such pause.
    pause: u32,
    next_pause: u32,
    flagged: bool,
}

impl Default for Guard {
    fn default() -> Guard {
        Guard {
            round: Round::default(),
            peak: WindowedMax::new(PEAK_WINDOW),
            counted: None,
            evidence: 0.0,
            check: None,
            pause: 0,
            next_pause: 0,
            flagged: false,
        }
    }
}

impl Guard {
    /// Whether the receiver was found to report more than the path delivers. It stays so for the connection.
    ///
    /// Chosen: for ever. A receiver that is believed again fills the queue again.
    pub fn is_flagged(&self) -> bool {
        self.flagged
    }

    /// Takes in one ACK of a flow that obeys its receiver, or that checks it.
    pub fn on_ack(&mut self, seen: &Witness) -> Verdict {
        self.measure(seen);
        let verdict = if seen.round_start { self.on_round(seen) } else { Verdict::Nothing };
        let round = &mut self.round;
        round.reported += (seen.now - round.last).as_secs_f64() * seen.reported.as_bps() as f64 / 8.0;
        round.last = seen.now;
        round.delivered += seen.acked;
        round.least_rtt = [round.least_rtt, seen.rtt].into_iter().flatten().min();
        if let Some(rtt) = seen.rtt {
            round.rtts = (round.rtts.0 + rtt, round.rtts.1 + 1);
        }
        round.app_limited |= seen.app_limited;
        verdict
    }

    /// The flow has ceased to obey its receiver, for another reason: what the present round shows is void.
    pub fn interrupt(&mut self) {
        self.round = Round::default();
        self.counted = None;
        self.check = None;
    }

    /// Measures what the path delivers.
    fn measure(&mut self, seen: &Witness) {
        match &mut self.counted {
            None => self.counted = Some((seen.now, Bytes::ZERO)),
            Some((since, bytes)) => {
                *bytes += seen.acked;
                if seen.now - *since >= PEAK_SPAN {
                    self.peak.update(seen.now, Rate::from_bytes_per(*bytes, seen.now - *since));
                    self.counted = Some((seen.now, Bytes::ZERO));
                }
            }
        }
    }

    /// A round is over.
    fn on_round(&mut self, seen: &Witness) -> Verdict {
        let next = Round { began: Some(seen.now), last: seen.now, ..Round::default() };
        let over = std::mem::replace(&mut self.round, next);
        let (Some(began), Some(least_rtt)) = (over.began, over.least_rtt) else { return Verdict::Nothing };
        if let Some(check) = &mut self.check {
            check.rounds += 1;
            let mean_rtt = over.rtts.0 / over.rtts.1.max(1);
            let is_emptied = least_rtt <= check.emptied.0 && mean_rtt <= check.emptied.1;
            if !is_emptied && check.rounds < CHECK_ROUNDS {
                return Verdict::Nothing;
            }
            return self.end_check(is_emptied);
        }
        if self.pause > 0 {
            self.pause -= 1;
            return Verdict::Nothing;
        }
        let span = seen.now - began;
        let is_queued = least_rtt > seen.rtprop + NO_QUEUE;
        if over.app_limited || !is_queued || !self.is_too_much(&over, span) {
            self.evidence = (self.evidence - FORGIVEN).max(0.0);
            return Verdict::Nothing;
        }
        self.evidence += 1.0;
        if self.evidence < ROUNDS {
            return Verdict::Nothing;
        }
        let least = seen.rtprop + (least_rtt - seen.rtprop) / 4;
        self.check = Some(Check { emptied: (least, least + NO_QUEUE), rounds: 0 });
        Verdict::Check(Rate::from_bytes_per(over.delivered, span))
    }

    /// Whether more was reported than a round delivered, and than the path delivered at any time lately.
    fn is_too_much(&self, round: &Round, span: Duration) -> bool {
        let most = self.peak.get().map_or(0.0, |peak| peak.as_bps() as f64 / 8.0 * span.as_secs_f64());
        (round.delivered.0 as f64) < round.reported * DELIVERED && most < round.reported * PEAK_DELIVERED
    }

    fn end_check(&mut self, is_emptied: bool) -> Verdict {
        self.check = None;
        self.evidence = 0.0;
        if is_emptied {
            self.flagged = true;
            return Verdict::Flag;
        }
        self.next_pause = (self.next_pause * 2).max(PAUSE_ROUNDS);
        self.pause = self.next_pause;
        Verdict::Release
    }
}
