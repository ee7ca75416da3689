//! Transfers of a flow: the start, the request if the scenario has requests, and the arrival of the data.

use airpace_cc::endpoint::{AckFrame, Backlog};
use airpace_core::{Direction, Packet, Rider};
use airpace_event::{Event, Transfer, TransferStep, Viewed};
use airpace_scenario::Part;

use super::Driver;
use crate::agenda::FlowPart;
use crate::flow::FlowState;
use crate::transfers::Served;

/// A packet from the receiver to the sender.
#[derive(Clone, Copy, Debug)]
pub(super) enum ReturnPacket {
    /// An ACK, and the number of its connection.
    Ack { connection: u64, frame: AckFrame },
    /// The client's request for a transfer, with the receiver's feedback.
    Request { transfer: u64, feedback: Rider },
}

impl Driver<'_> {
    /// Processes a deadline: a transfer is due, the client must repeat its request, or its player has a deadline.
    pub(super) fn wake_transfers(&mut self, index: usize) {
        let now = self.now;
        if let Some(transfers) = &mut self.flows[index].transfers {
            transfers.handle_timeout(now);
        }
        self.begin_transfer(index);
        self.ask(index);
        self.transmit(index);
    }

    /// Starts a transfer if one is due.
    pub(super) fn begin_transfer(&mut self, index: usize) {
        let flow = &mut self.flows[index];
        let Some(transfers) = &mut flow.transfers else { return };
        let Some(number) = transfers.begin(self.now) else { return };
        let has_requests = transfers.has_requests();
        if number > 0 && flow.renew() {
            if flow.direction == Direction::Uplink && flow.hears_radio {
                self.tell_of_flows(index);
            }
            self.acknowledge(index);
        }
        self.record_step(index, number, TransferStep::Began);
        if has_requests {
            self.ask(index);
        } else {
            self.serve(index, number);
        }
        self.wait_for_transfer(index);
    }

    /// Sends the client's request if a request is due.
    fn ask(&mut self, index: usize) {
        let (now, flow) = (self.now, &mut self.flows[index]);
        if let Some((transfer, bytes)) = flow.transfers.as_mut().and_then(|transfers| transfers.ask(now)) {
            let clock = flow.receiver_time(now);
            let feedback = flow.acker.request(clock);
            let feedback = flow.told(now, feedback);
            self.send_back(index, bytes, ReturnPacket::Request { transfer, feedback });
        }
        self.wait_for_transfer(index);
    }

    /// Processes a request that has arrived at the server.
    pub(super) fn answer(&mut self, index: usize, transfer: u64, feedback: &[u8]) {
        if self.serve(index, transfer) {
            let flow = &mut self.flows[index];
            let clock = flow.sender_time(self.now);
            flow.sender.on_request(clock, feedback);
            self.transmit(index);
            self.wait_for_transfer(index);
        }
    }

    /// Gives the data of a transfer to the sender, unless the sender already has the data. Returns whether it did; the
    /// caller must then let the sender transmit.
    fn serve(&mut self, index: usize, transfer: u64) -> bool {
        let flow = &mut self.flows[index];
        let next_packet = flow.stats.sent;
        let served = flow.transfers.as_mut().and_then(|transfers| transfers.serve(transfer, next_packet));
        let Some(Served { bytes, replaces }) = served else { return false };
        match (flow.part, replaces) {
            (Part::Whole, true) => flow.sender.set_backlog(Backlog::Limited(bytes)),
            (Part::Whole, false) => flow.sender.offer(bytes),
            // The bytes of a leg to a device come from the server leg.
            _ => {}
        }
        true
    }

    /// Counts the bytes of an arrived packet for the flow's current transfer.
    pub(super) fn count_arrival(&mut self, index: usize, packet: &Packet) {
        let Some(transfers) = &mut self.flows[index].transfers else { return };
        let Some((number, steps)) = transfers.on_arrival(self.now, packet.number, packet.bytes) else {
            return;
        };
        let is_idle = transfers.is_idle();
        for step in steps {
            self.record_step(index, number, step);
        }
        if is_idle {
            self.wait_for_transfer(index);
        }
    }

    fn wait_for_transfer(&mut self, index: usize) {
        let due = self.flows[index].transfers.as_ref().and_then(|transfers| transfers.poll_timeout());
        self.agenda.set(FlowPart::Transfer(index), due);
    }

    /// Records the reports on all videos at the end of the run.
    pub(super) fn record_videos(&mut self) {
        let time = self.now;
        for index in 0..self.flows.len() {
            let FlowState { id: flow, transfers, .. } = &self.flows[index];
            let playing = transfers.as_ref().and_then(|transfers| transfers.playing());
            if let (flow, Some(video)) = (*flow, playing.map(|playing| playing.report(time))) {
                self.record(Event::Viewed(&Viewed { time, flow, video: &video }));
            }
        }
    }

    fn record_step(&mut self, index: usize, number: u64, step: TransferStep) {
        let (time, flow) = (self.now, self.flows[index].id);
        self.record(Event::Transfer(Transfer { time, flow, number, step }));
    }
}
