//! The Oracle: it knows what the narrowest link will do when a packet sent now gets there, and carries what a sender that
//! always has data waiting there carries, with the least queue that this takes.
//!
//! A sender without a queue is no bound where a scheduler chooses among users: it is given less than one that has data
//! waiting in every subframe. So there are two quantities, both of which the truth holds: what the link will serve
//! (`capacity`), and how much must wait so that it does (`enough`). Where the scheduler's decisions depend on what waits, the
//! simulator takes both from a run before the run: the same world with the same seed, in which the Oracle stands at the link
//! and always has more waiting than a subframe could take. Where what a wire does to a packet does not depend on when it leaves, the simulator computes from
//! that run when each packet must leave ([`Controller::on_due`]). All packets then reach the link at the instants at which they
//! left there in the run before, and nothing in the world can be different.
//!
//! Elsewhere the Oracle simulates the queue every millisecond until a packet sent now arrives, from what is on the wire and
//! what the link will serve until then, and sends so that enough will be waiting. A sender at the link need not foresee anything: it
//! fills up what is missing. HARQ, losses and other flows on the way show in the backlog, and are corrected over a few
//! milliseconds.
//!
//! What is no bound: links that several flows fill first come, first served. There the Oracle takes an equal share, and a
//! rival that fills the queue takes more from any sender that does not do the same.
//!
//! Rivals and schedulers have a memory, and answer each sender in another way. The Oracle carries what a sender with data without end
//! carries, while the world answers to that sender: another scheme may find a world that leaves it more.
//! `docs/guide/schemes.md` has the figures.
//!
//! Chosen: this scheme is ours. The others are compared with it.

use std::collections::VecDeque;
use std::time::Duration;

use airpace_core::{Bytes, Rate, Time};

use crate::controller::{Ack, Control, Controller, Inspect, Loss, Sees, Sent, Truth};
use crate::scheme::{Ends, OptionSpec, Options, Scheme, SchemeError, Setup, Style};

/// Time over which the queue is brought to its target.
///
/// Chosen: four subframes. This is long enough not to react to the arrival of single packets.
const HORIZON: Duration = Duration::from_millis(4);

/// From one truth to the next.
const MILLISECOND: Duration = Duration::from_millis(1);

/// The rate while there is no capacity, so that the flow stays alive.
///
/// Chosen: a full packet in 1.2 seconds.
const FLOOR: Rate = Rate::from_bps(10_000);

/// The scheme as users choose it.
pub static SCHEME: Scheme = Scheme {
    name: "oracle",
    summary: "knows what its packets will find, and keeps just enough waiting; the bound for all others, in simulation only",
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
    /// The queue when a packet sent now arrives there.
    expected: Bytes,
    /// What is on the wire, by the millisecond in which it left.
    wire: VecDeque<Slot>,
    /// How many packets must have left, where that is known; how many have left; and bytes in flight.
    due: Option<u64>,
    sent: u64,
    inflight: Bytes,
}

/// A millisecond, from one truth to the next.
#[derive(Clone, Copy, Debug)]
struct Slot {
    from: Time,
    /// What the link carries when this millisecond's packets arrive.
    capacity: Rate,
    sent: Bytes,
}

impl Oracle {
    /// Keeps `slack` of data waiting at the link.
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
        // One packet more: the packet in transmission counts as backlog until its end.
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
            // What is due leaves at once, and nothing else does.
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
