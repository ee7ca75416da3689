//! The Oracle: a simulator provides it with the future capacity of the narrowest link, at the time when a packet sent
//! now arrives there. It reaches the throughput of a sender with unlimited data queued at that link, with the minimum
//! queue for this.
//!
//! If a scheduler chooses among users, a sender without a queue is no upper bound: it gets less than a sender with data
//! queued in every subframe. Therefore the ground truth contains two quantities: the link's future capacity
//! (`capacity`), and the minimum backlog with which the flow gets this capacity (`enough`). If the scheduler's
//! decisions depend on the backlog, the simulator obtains both from a preliminary run. That run has the same world and
//! seed, but the Oracle is at the link and always has more data queued than a subframe can carry. If the delay of the
//! wired path does not depend on the departure time, the simulator computes from the preliminary run when each packet
//! must leave ([`Controller::on_due`]). All packets then reach the link at the times at which they were sent there in
//! the preliminary run, so the world behaves identically.
//!
//! In other cases, the Oracle simulates the queue in steps of one millisecond until a packet sent now arrives, from the
//! data on the wire and the link's future capacity. It sends so that `enough` data will be queued. A sender that is
//! itself at the link needs no prediction: it sends the data that is missing from the queue. HARQ, losses and other
//! flows on the path change the backlog, and the sender corrects such changes within a few milliseconds.
//!
//! The Oracle is no upper bound on links that serve several flows first come, first served. There it takes an equal
//! share, and a rival that fills the queue takes more from any sender that does not do the same.
//!
//! Rivals and schedulers have a memory and react differently to each sender. The Oracle's throughput is that of a
//! sender with unlimited data in a world that reacts to that sender. For another scheme, the world may react so that
//! more capacity is left. `docs/evaluation/schemes.md` has the figures.
//!
//! Chosen: this scheme is defined by this project. The other schemes are compared with this scheme.

use std::collections::VecDeque;
use std::time::Duration;

use airpace_core::{Bytes, Rate, Time};

use crate::controller::{Ack, Control, Controller, Inspect, Loss, Sees, Sent, Truth};
use crate::scheme::{Ends, OptionSpec, Options, Scheme, SchemeError, Setup, Style};

/// Time within which the sender brings the queue to its target length.
///
/// Chosen: four subframes. This is long enough not to react to the arrival of single packets.
const HORIZON: Duration = Duration::from_millis(4);

/// Interval between two reports of the ground truth.
const MILLISECOND: Duration = Duration::from_millis(1);

/// Minimum rate while there is no capacity, so that the flow stays alive.
///
/// Chosen: a full packet in 1.2 seconds.
const FLOOR: Rate = Rate::from_bps(10_000);

/// The scheme `oracle`.
pub static SCHEME: Scheme = Scheme {
    name: "oracle",
    summary: "has the path's future capacity, and keeps just enough data queued; the upper bound for others, \
              in simulation only",
    source: "",
    style: Style { colour: "#000000", marker: "pin" },
    presets: &[],
    options: &[OptionSpec {
        name: "slack_ms",
        default: "2",
        summary: "how much it keeps waiting at the link at least, in milliseconds of the capacity",
    }],
    takes_ran: false,
    build,
};

fn build(setup: &Setup, options: &Options) -> Result<Ends, SchemeError> {
    let slack = Duration::from_secs_f64(options.number("slack_ms", 0.0)?.min(1e6) * 1e-3);
    Ok(Ends { controller: Box::new(Oracle::new(setup.mss, slack)), receiver: None })
}

/// The controller.
#[derive(Clone, Debug)]
pub struct Oracle {
    mss: Bytes,
    slack: Duration,
    rate: Rate,
    capacity: Option<Rate>,
    /// Predicted queue at the arrival of a packet sent now.
    expected: Bytes,
    /// Bytes on the wire, by the millisecond of departure.
    wire: VecDeque<Slot>,
    /// Number of packets that must have left by now; `None` if the simulator did not compute it. `sent` is the number
    /// of packets sent.
    due: Option<u64>,
    sent: u64,
    inflight: Bytes,
}

/// The packets of one millisecond, which lies between two reports of the ground truth.
#[derive(Clone, Copy, Debug)]
struct Slot {
    from: Time,
    /// The capacity of the link when this millisecond's packets arrive.
    capacity: Rate,
    sent: Bytes,
}

impl Oracle {
    /// An Oracle that keeps `slack` of data queued at the link.
    pub fn new(mss: Bytes, slack: Duration) -> Oracle {
        Oracle {
            mss,
            slack,
            rate: FLOOR,
            capacity: None,
            expected: Bytes::ZERO,
            wire: VecDeque::new(),
            due: None,
            sent: 0,
            inflight: Bytes::ZERO,
        }
    }

    /// Computes the queue at the arrival of a packet that leaves at `truth.now`.
    fn expect(&self, truth: &Truth) -> Bytes {
        let arrived = truth.now - truth.forward_delay;
        // Packets that were lost, or whose slot has arrived in part, are no longer on the wire.
        let sent = self.wire.iter().map(|slot| slot.sent).sum();
        let queue = (truth.backlog + truth.on_wire) - sent;
        let ends = self.wire.iter().skip(1).map(|slot| slot.from).chain([truth.now]);
        self.wire.iter().zip(ends).fold(queue, |queue, (slot, end)| {
            (queue + slot.sent) - slot.capacity.bytes_in(end - slot.from.max(arrived))
        })
    }
}

impl Controller for Oracle {
    fn sees(&self) -> Sees {
        Sees::Truth
    }

    fn on_sent(&mut self, sent: &Sent) {
        self.sent += 1;
        self.inflight = sent.inflight;
        if let Some(slot) = self.wire.back_mut() {
            slot.sent += sent.bytes;
        }
    }

    fn on_ack(&mut self, ack: &Ack<'_>) {
        self.inflight = ack.inflight;
    }

    fn on_loss(&mut self, loss: &Loss<'_>) {
        self.inflight = loss.inflight;
    }

    fn on_due(&mut self, packets: u64) {
        self.due = Some(packets);
    }

    fn on_truth(&mut self, truth: &Truth) {
        let arrived = truth.now - truth.forward_delay;
        while self.wire.get(1).is_some_and(|next| next.from <= arrived) {
            self.wire.pop_front();
        }
        self.expected = self.expect(truth);
        // One packet is added, because the packet in transmission counts as backlog until its transmission ends.
        let wanted = truth.capacity.bytes_in(self.slack).max(truth.enough) + self.mss;
        self.capacity = Some(truth.capacity);
        if truth.forward_delay == Duration::ZERO && truth.enough > Bytes::ZERO {
            self.wire.clear();
            self.expected = truth.backlog;
            self.rate = Rate::from_bytes_per(wanted - truth.backlog, MILLISECOND).max(FLOOR);
            return;
        }
        let correction = |surplus: Bytes| Rate::from_bytes_per(surplus, HORIZON);
        let rate = truth.capacity + correction(wanted - self.expected) - correction(self.expected - wanted);
        self.rate = rate.max(FLOOR);
        self.wire.push_back(Slot { from: truth.now, capacity: truth.capacity, sent: Bytes::ZERO });
    }

    fn control(&self) -> Control {
        if let Some(due) = self.due {
            // The packets that are due leave at once; no other packets leave.
            let cwnd = self.inflight + Bytes(self.mss.0 * due.saturating_sub(self.sent));
            return Control { cwnd: cwnd.max(self.mss), pacing_rate: None };
        }
        Control { cwnd: Bytes(u64::MAX), pacing_rate: Some(self.rate) }
    }

    fn inspect(&self, out: &mut Inspect) {
        out.state = if self.capacity.is_some() { "Tracking" } else { "Blind" };
        out.value("capacity_mbps", self.capacity.map_or(f64::NAN, Rate::as_mbps));
        out.value("expected_backlog_bytes", self.expected.0 as f64);
    }
}
