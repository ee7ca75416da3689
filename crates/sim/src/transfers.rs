//! The transfers of a flow of limited size: when each begins, and how far it has come.
//!
//! A sender counts bytes and does not know which they are, so a transfer has arrived when as many of its bytes have
//! arrived as it has. A packet that repeats an older one brings nothing if that one has arrived.

use std::collections::BTreeMap;
use std::time::Duration;

use airpace_core::{Bytes, Time};
use airpace_event::TransferStep;
use airpace_scenario::{Connection, Flow};

/// How long a client waits for an answer before it repeats its request; twice as long each further time.
///
/// Source: RFC 6298 §2 (one second before the first sample)
const FIRST_PATIENCE: Duration = Duration::from_secs(1);

/// The transfers of one flow.
#[derive(Clone, Debug)]
pub(crate) struct Transfers {
    bytes: u64,
    start_up_bytes: u64,
    /// `None`: there is one.
    every: Option<Duration>,
    stop: Time,
    has_new_connections: bool,
    /// The size of the request with which each begins.
    request: Option<Bytes>,
    begun: u64,
    /// When the next one is due.
    due: Time,
    current: Option<Current>,
    /// Packets that repeat an older one, with the number of that one.
    copies: BTreeMap<u64, u64>,
    /// By packet, from the first of the present transfer on: whether its bytes have arrived.
    brought: Vec<bool>,
}

/// The transfer that is under way.
#[derive(Clone, Copy, Debug)]
struct Current {
    number: u64,
    /// Whether the sender has its data, and so the number of the first packet that may carry it.
    served_from: Option<u64>,
    arrived: u64,
    /// When the client repeats its request, and how long it waits after that.
    repeat: Time,
    patience: Duration,
}

impl Transfers {
    /// The transfers of a flow whose first one is due at `start`; `None` if it has none.
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

    /// Whether each of several transfers has a connection of its own.
    pub(crate) fn need_connections(&self) -> bool {
        self.every.is_some() && self.has_new_connections
    }

    /// When something is due: a transfer, or the repetition of a request.
    pub(crate) fn next(&self) -> Option<Time> {
        match self.current {
            None => (self.due < self.stop).then_some(self.due),
            Some(current) => current.served_from.is_none().then_some(current.repeat),
        }
        .filter(|due| *due < Time::NEVER)
    }

    /// Begins the transfer that is due at `now`, if one is; its number.
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

    /// The request that the client sends at `now`: the number of its transfer, and its size. `None` if none is due.
    pub(crate) fn ask(&mut self, now: Time) -> Option<(u64, Bytes)> {
        let (request, current) = (self.request?, self.current.as_mut()?);
        if current.served_from.is_some() || current.repeat > now {
            return None;
        }
        current.repeat = now + current.patience;
        current.patience *= 2;
        Some((current.number, request))
    }

    /// Whether a connection that has carried nothing yet waits for its first request. Its sender is not asked for packets
    /// then: that it has none does not mean that its application cannot keep up.
    pub(crate) fn awaits_first_request(&self) -> bool {
        let is_first = |current: &Current| self.has_new_connections || current.number == 0;
        self.current.as_ref().is_some_and(|current| current.served_from.is_none() && is_first(current))
    }

    /// Whether the sender has to wait for a request.
    pub(crate) fn has_requests(&self) -> bool {
        self.request.is_some()
    }

    /// The data of transfer `number` becomes the sender's, whose next packet is `next_packet`. How much it is; `None` if
    /// the sender has it already.
    pub(crate) fn serve(&mut self, number: u64, next_packet: u64) -> Option<Bytes> {
        let current = self.current.as_mut()?;
        if current.number != number || current.served_from.is_some() {
            return None;
        }
        current.served_from = Some(next_packet);
        Some(Bytes(self.bytes))
    }

    /// Packet `number` repeats `original`.
    pub(crate) fn note_copy(&mut self, number: u64, original: u64) {
        let original = self.copies.get(&original).copied().unwrap_or(original);
        self.copies.insert(number, original);
    }

    /// A packet has arrived. The number of the transfer, and the steps to which it has come now.
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
        assert_eq!((transfers.on_arrival(7, PACKET), transfers.next()), (None, None));
    }

    #[test]
    fn the_next_transfer_waits_for_the_one_before() {
        let mut transfers = transfers("every_ms = 100");
        assert_eq!(transfers.begin(Time::from_millis(5)), Some(0));
        assert_eq!(transfers.serve(0, 0), Some(Bytes(3000)));
        assert_eq!((transfers.next(), transfers.begin(Time::from_millis(200))), (None, None));
        transfers.on_arrival(0, PACKET);
        transfers.on_arrival(1, PACKET);
        assert_eq!(transfers.next(), Some(Time::from_millis(105)), "which is past: it begins at once");
        assert_eq!(transfers.begin(Time::from_millis(300)), Some(1));
    }

    #[test]
    fn a_request_is_repeated_until_it_is_answered() {
        let mut transfers = transfers("request_bytes = 400");
        let at = Time::from_millis;
        transfers.begin(at(5));
        assert_eq!(transfers.ask(at(5)), Some((0, Bytes(400))));
        assert_eq!((transfers.ask(at(900)), transfers.next()), (None, Some(at(1005))));
        assert_eq!(transfers.ask(at(1005)), Some((0, Bytes(400))));
        assert_eq!(transfers.next(), Some(at(3005)), "twice as long");
        assert_eq!(transfers.serve(0, 0), Some(Bytes(3000)));
        assert_eq!((transfers.serve(0, 0), transfers.ask(at(3005))), (None, None), "both requests arrive");
    }
}
