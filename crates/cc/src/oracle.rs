//! The causal Oracle: it knows what the narrowest link will carry when a packet sent now gets there.
//!
//! Every millisecond it simulates the queue until a packet sent now arrives, from what is on the wire and what the
//! link will carry until then. It sends so that `slack_ms` worth of data will be waiting. It is causal: it knows the
//! capacity one forward delay ahead, which no real sender can know. It does not know what the link or other flows do
//! with that capacity. The backlog shows the effect of the rest (HARQ, scheduling), which the Oracle corrects over a
//! few milliseconds. Except for those few milliseconds, no scheme can have less delay at the same throughput.
//!
//! Chosen: this scheme is ours. It is the bound to which the others are compared.

use std::collections::VecDeque;
use std::time::Duration;

use airpace_core::{Bytes, Rate, Time};

use crate::controller::{Ack, Control, Controller, Inspect, Loss, Sees, Sent, Truth};
use crate::scheme::{Ends, OptionSpec, Options, Scheme, SchemeError, Setup, Style};

/// Time over which the queue is brought to its target.
///
/// Chosen: four subframes. This is long enough not to react to the arrival of single packets.
const HORIZON: Duration = Duration::from_millis(4);

/// The rate while there is no capacity, so that the flow stays alive.
///
/// Chosen: a full packet in 1.2 seconds.
const FLOOR: Rate = Rate::from_bps(10_000);

/// The scheme as users choose it.
pub static SCHEME: Scheme = Scheme {
    name: "oracle",
    summary: "knows the capacity that its packets will find; the bound for all others, in simulation only",
    source: "",
    style: Style { colour: "#000000", marker: "pin" },
    presets: &[],
    options: &[OptionSpec {
        name: "slack_ms",
        default: "2",
        summary: "how much it keeps waiting at the link, in milliseconds of the capacity",
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
        Oracle { mss, slack, rate: FLOOR, capacity: None, expected: Bytes::ZERO, wire: VecDeque::new() }
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
        if let Some(slot) = self.wire.back_mut() {
            slot.sent += sent.bytes;
        }
    }

    fn on_ack(&mut self, _: &Ack<'_>) {}

    fn on_loss(&mut self, _: &Loss<'_>) {}

    fn on_truth(&mut self, truth: &Truth) {
        let arrived = truth.now - truth.forward_delay;
        while self.wire.get(1).is_some_and(|next| next.from <= arrived) {
            self.wire.pop_front();
        }
        self.expected = self.expect(truth);
        // One packet more: the packet in transmission counts as backlog until its end.
        let wanted = truth.capacity.bytes_in(self.slack) + self.mss;
        let correction = |surplus: Bytes| Rate::from_bytes_per(surplus, HORIZON);
        let rate = truth.capacity + correction(wanted - self.expected) - correction(self.expected - wanted);
        self.rate = rate.max(FLOOR);
        self.capacity = Some(truth.capacity);
        self.wire.push_back(Slot { from: truth.now, capacity: truth.capacity, sent: Bytes::ZERO });
    }

    fn control(&self) -> Control {
        Control { cwnd: Bytes(u64::MAX), pacing_rate: Some(self.rate) }
    }

    fn inspect(&self, out: &mut Inspect) {
        out.state = if self.capacity.is_some() { "Tracking" } else { "Blind" };
        out.value("capacity_mbps", self.capacity.map_or(f64::NAN, Rate::as_mbps));
        out.value("expected_backlog_bytes", self.expected.0 as f64);
    }
}
