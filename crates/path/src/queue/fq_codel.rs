//! FQ-CoDel: flows are served in turn, each with its own queue under CoDel. A flow whose queue was empty is served first.

use std::collections::VecDeque;

use airpace_core::{Bytes, FlowId, Packet, Time};

use super::codel::CoDel;
use super::fifo::{Fifo, Queued};

/// Maximum number of packets dropped from the longest queue at once.
///
/// Source: RFC 8290 §4.1
const DROP_BATCH: u64 = 64;

/// A set of queues among which flows are distributed by a hash. The queues are served by deficit round robin.
///
/// Source: RFC 8290 §4
#[derive(Clone, Debug)]
pub(super) struct FqCoDel {
    flows: Vec<Flow>,
    /// Queues that just became active; they are served first.
    new_flows: VecDeque<usize>,
    /// Queues that have already been served since they became active.
    old_flows: VecDeque<usize>,
    quantum: i64,
    packets: u64,
    bytes: Bytes,
}

#[derive(Clone, Debug)]
struct Flow {
    fifo: Fifo,
    codel: CoDel,
    /// Number of bytes that the queue may still send in the current round.
    credits: i64,
    /// Whether the queue is in one of the two lists.
    listed: bool,
}

impl FqCoDel {
    /// A set of `queues` empty queues.
    pub fn new(queues: u16, quantum: Bytes, codel: CoDel, header: Bytes) -> FqCoDel {
        let flow = || Flow { fifo: Fifo::new(header), codel: codel.clone(), credits: 0, listed: false };
        FqCoDel {
            flows: std::iter::repeat_with(flow).take(usize::from(queues)).collect(),
            new_flows: VecDeque::new(),
            old_flows: VecDeque::new(),
            quantum: quantum.0.min(i64::MAX as u64) as i64,
            packets: 0,
            bytes: Bytes::ZERO,
        }
    }

    /// Puts a packet at the end of its flow's queue.
    ///
    /// Source: RFC 8290 §4.1
    pub fn push(&mut self, now: Time, packet: Packet) {
        let index = self.queue_of(packet.flow);
        let flow = &mut self.flows[index];
        self.packets += 1;
        self.bytes += flow.fifo.size(&packet);
        flow.fifo.push(now, packet);
        if !flow.listed {
            flow.listed = true;
            flow.credits = self.quantum;
            self.new_flows.push_back(index);
        }
    }

    /// Drops half of the bytes of the longest queue from its head, at most [`DROP_BATCH`] packets.
    ///
    /// Source: RFC 8290 §4.1
    pub fn drop_from_longest(&mut self, mut drop: impl FnMut(Packet)) {
        // If several queues have the same length, the first queue is taken, so that the choice does not depend on the
        // machine.
        let Some(longest) = self.flows.iter_mut().rev().max_by_key(|flow| flow.fifo.bytes()) else { return };
        let before = longest.fifo.bytes();
        for _ in 0..DROP_BATCH {
            let Some(head) = longest.fifo.pop() else { break };
            self.packets -= 1;
            drop(head.packet);
            if longest.fifo.bytes().0 <= before.0 / 2 {
                break;
            }
        }
        self.bytes -= before - longest.fifo.bytes();
    }

    /// The next packet to be served.
    ///
    /// Source: RFC 8290 §4.2
    pub fn dequeue(&mut self, now: Time, drop: &mut impl FnMut(Packet)) -> Option<Queued> {
        loop {
            let from_new = !self.new_flows.is_empty();
            let index = *self.new_flows.front().or(self.old_flows.front())?;
            let flow = &mut self.flows[index];
            if flow.credits <= 0 {
                flow.credits += self.quantum;
                self.take_front(from_new);
                self.old_flows.push_back(index);
                continue;
            }
            let (bytes, packets) = (flow.fifo.bytes(), flow.fifo.len());
            let served = flow.codel.dequeue(now, &mut flow.fifo, drop);
            self.bytes -= bytes - flow.fifo.bytes();
            self.packets -= packets - flow.fifo.len();
            if let Some(served) = served {
                flow.credits -= flow.fifo.size(&served.packet).0 as i64;
                return Some(served);
            }
            // A new queue that became empty moves to the end of the old queues. Otherwise a flow could stay new
            // forever.
            self.take_front(from_new);
            if from_new && !self.old_flows.is_empty() {
                self.old_flows.push_back(index);
            } else {
                self.flows[index].listed = false;
            }
        }
    }

    /// Queued bytes.
    pub fn bytes(&self) -> Bytes {
        self.bytes
    }

    /// Number of queued packets.
    pub fn len(&self) -> u64 {
        self.packets
    }

    fn take_front(&mut self, from_new: bool) {
        if from_new {
            self.new_flows.pop_front()
        } else {
            self.old_flows.pop_front()
        };
    }

    /// Flow numbers are consecutive. Multiplication by the golden ratio distributes these numbers over the queues.
    fn queue_of(&self, flow: FlowId) -> usize {
        let hash = u32::from(flow.0).wrapping_mul(0x9e37_79b9);
        ((u64::from(hash) * self.flows.len() as u64) >> 32) as usize
    }
}
