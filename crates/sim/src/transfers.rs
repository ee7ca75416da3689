//! The transfers of a flow of limited size: start times, requests and progress.
//!
//! A sender only counts bytes, so a transfer is complete when the number of arrived bytes reaches the transfer's size.
//! A retransmission does not count if the original packet has arrived.

use std::collections::BTreeMap;
use std::time::Duration;

use airpace_core::{Bytes, Time};
use airpace_event::TransferStep;
use airpace_scenario::{Connection, Flow};

/// Time after which a client first repeats its request; the time doubles for each further repetition.
///
/// Source: RFC 6298 §2 (one second before the first round-trip time sample)
const FIRST_PATIENCE: Duration = Duration::from_secs(1);

/// The transfers of one flow.
#[derive(Clone, Debug)]
pub(crate) struct Transfers {
    bytes: u64,
    start_up_bytes: u64,
    /// Interval between the starts of transfers; `None` if there is only one transfer.
    every: Option<Duration>,
    stop: Time,
    has_new_connections: bool,
    /// Size of the request that starts each transfer; `None` if transfers have no request.
    request: Option<Bytes>,
    begun: u64,
    /// Start time of the next transfer.
    due: Time,
    current: Option<Current>,
    /// Retransmissions: packet number, and number of the original packet.
    copies: BTreeMap<u64, u64>,
    /// For each packet, from the first packet of the current transfer on: whether the packet's bytes have arrived.
    brought: Vec<bool>,
}

/// The transfer that is under way.
#[derive(Clone, Copy, Debug)]
struct Current {
    number: u64,
    /// Number of the first packet that may contain the transfer's data; `None` until the sender has the data.
    served_from: Option<u64>,
    arrived: u64,
    /// Time at which the client repeats its request, and (in `patience`) the time from this repetition to the next.
    repeat: Time,
    patience: Duration,
}

impl Transfers {
    /// Creates the transfers of a flow. The first transfer is due at `start`. `None` if the flow has no transfers.
    pub(crate) fn new(flow: &Flow, start: Time) -> Option<Transfers> {
        let bytes = flow.transfer_size()?.0;
        Some(Transfers {
            bytes,
            start_up_bytes: flow.start_up_bytes.min(bytes),
            every: flow.transfers_every(),
            stop: flow.stop(),
            has_new_connections: flow.connection.unwrap_or_default() == Connection::New,
            request: (flow.request_bytes > 0).then_some(Bytes(flow.request_bytes)),
            begun: 0,
            due: start,
            current: None,
            copies: BTreeMap::new(),
            brought: Vec::new(),
        })
    }

    /// Returns whether there are several transfers with separate connections.
    pub(crate) fn need_connections(&self) -> bool {
        self.every.is_some() && self.has_new_connections
    }

    /// Returns the next deadline: the start of a transfer, or the repetition of a request.
    pub(crate) fn poll_timeout(&self) -> Option<Time> {
        match self.current {
            None => (self.due < self.stop).then_some(self.due),
            Some(current) => current.served_from.is_none().then_some(current.repeat),
        }
        .filter(|due| *due < Time::NEVER)
    }

    /// Starts the transfer that is due at `now`, if any. Returns the transfer's number.
    pub(crate) fn begin(&mut self, now: Time) -> Option<u64> {
        if self.current.is_some() || self.due > now || self.due >= self.stop {
            return None;
        }
        let number = self.begun;
        self.begun += 1;
        self.due = self.every.map_or(Time::NEVER, |every| self.due + every);
        let repeat = now;
        self.current =
            Some(Current { number, served_from: None, arrived: 0, repeat, patience: FIRST_PATIENCE });
        self.copies.clear();
        self.brought.clear();
        Some(number)
    }

    /// Returns the request that the client sends at `now`: the number of its transfer, and the size of the request.
    /// `None` if no request is due.
    pub(crate) fn ask(&mut self, now: Time) -> Option<(u64, Bytes)> {
        let (request, current) = (self.request?, self.current.as_mut()?);
        if current.served_from.is_some() || current.repeat > now {
            return None;
        }
        current.repeat = now + current.patience;
        current.patience *= 2;
        Some((current.number, request))
    }

    /// Returns whether an unused connection waits for its first request. The connection's sender must not be polled
    /// then: the sender has no packets, but this does not mean that the application writes too slowly.
    pub(crate) fn awaits_first_request(&self) -> bool {
        let is_first = |current: &Current| self.has_new_connections || current.number == 0;
        self.current.as_ref().is_some_and(|current| current.served_from.is_none() && is_first(current))
    }

    /// Returns whether transfers start with a request.
    pub(crate) fn has_requests(&self) -> bool {
        self.request.is_some()
    }

    /// Marks the data of transfer `number` as passed to the sender, whose next packet is `next_packet`. Returns the
    /// size of the data; `None` if the sender already has the data.
    pub(crate) fn serve(&mut self, number: u64, next_packet: u64) -> Option<Bytes> {
        let current = self.current.as_mut()?;
        if current.number != number || current.served_from.is_some() {
            return None;
        }
        current.served_from = Some(next_packet);
        Some(Bytes(self.bytes))
    }

    /// Notes that packet `number` retransmits `original`.
    pub(crate) fn note_copy(&mut self, number: u64, original: u64) {
        let original = self.copies.get(&original).copied().unwrap_or(original);
        self.copies.insert(number, original);
    }

    /// Counts the bytes of an arrived packet. Returns the number of the current transfer, and the steps that the packet
    /// completed.
    pub(crate) fn on_arrival(&mut self, number: u64, bytes: Bytes) -> Option<(u64, Vec<TransferStep>)> {
        let current = self.current.as_mut()?;
        let original = self.copies.get(&number).copied().unwrap_or(number);
        let place = original.checked_sub(current.served_from?)? as usize;
        if self.brought.len() <= place {
            self.brought.resize(place + 1, false);
        }
        if std::mem::replace(&mut self.brought[place], true) {
            return None;
        }
        let before = current.arrived;
        current.arrived += bytes.0;
        let steps = [
            (TransferStep::FirstByte, 1),
            (TransferStep::StartedUp, self.start_up_bytes),
            (TransferStep::Complete, self.bytes),
        ];
        let passed = steps.into_iter().filter(|(_, at)| before < *at && *at <= current.arrived);
        let (number, passed) = (current.number, passed.map(|(step, _)| step).collect());
        if current.arrived >= self.bytes {
            self.current = None;
        }
        Some((number, passed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transfers(keys: &str) -> Transfers {
        let text = format!("name = \"t\"\nduration_s = 10\n[[flow]]\nrtt_ms = 20\nbytes = 3000\n{keys}");
        let scenario = airpace_scenario::Scenario::load(&text, "test.toml", &[]).expect("a legal scenario");
        Transfers::new(&scenario.flow[0], Time::from_millis(5)).expect("it has transfers")
    }

    const PACKET: Bytes = Bytes(1500);

    #[test]
    fn a_transfer_has_arrived_when_all_its_bytes_have() {
        let mut transfers = transfers("start_up_bytes = 1501");
        let now = Time::from_millis(5);
        assert_eq!(
            (transfers.begin(Time::ZERO), transfers.begin(now), transfers.ask(now)),
            (None, Some(0), None)
        );
        assert_eq!((transfers.serve(0, 7), transfers.serve(0, 9)), (Some(Bytes(3000)), None));
        assert_eq!(transfers.on_arrival(6, PACKET), None, "a packet from before");
        assert_eq!(transfers.on_arrival(8, PACKET), Some((0, vec![TransferStep::FirstByte])));
        assert_eq!(transfers.on_arrival(8, PACKET), None, "a duplicate brings nothing");
        transfers.note_copy(9, 8);
        transfers.note_copy(10, 7);
        transfers.note_copy(11, 10);
        assert_eq!(transfers.on_arrival(9, PACKET), None, "a copy of what has arrived");
        let last = vec![TransferStep::StartedUp, TransferStep::Complete];
        assert_eq!(transfers.on_arrival(11, PACKET), Some((0, last)), "a copy of a copy of what has not");
        assert_eq!((transfers.on_arrival(7, PACKET), transfers.poll_timeout()), (None, None));
    }

    #[test]
    fn the_next_transfer_waits_for_the_one_before() {
        let mut transfers = transfers("every_ms = 100");
        assert_eq!(transfers.begin(Time::from_millis(5)), Some(0));
        assert_eq!(transfers.serve(0, 0), Some(Bytes(3000)));
        assert_eq!((transfers.poll_timeout(), transfers.begin(Time::from_millis(200))), (None, None));
        transfers.on_arrival(0, PACKET);
        transfers.on_arrival(1, PACKET);
        assert_eq!(
            transfers.poll_timeout(),
            Some(Time::from_millis(105)),
            "which is past: it begins at once"
        );
        assert_eq!(transfers.begin(Time::from_millis(300)), Some(1));
    }

    #[test]
    fn a_request_is_repeated_until_it_is_answered() {
        let mut transfers = transfers("request_bytes = 400");
        let at = Time::from_millis;
        transfers.begin(at(5));
        assert_eq!(transfers.ask(at(5)), Some((0, Bytes(400))));
        assert_eq!((transfers.ask(at(900)), transfers.poll_timeout()), (None, Some(at(1005))));
        assert_eq!(transfers.ask(at(1005)), Some((0, Bytes(400))));
        assert_eq!(transfers.poll_timeout(), Some(at(3005)), "twice as long");
        assert_eq!(transfers.serve(0, 0), Some(Bytes(3000)));
        assert_eq!((transfers.serve(0, 0), transfers.ask(at(3005))), (None, None), "both requests arrive");
    }
}
