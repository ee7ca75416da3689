//! The transfers of a flow of limited size, or of the segments of a video: start times, requests and progress.
//!
//! A sender only counts bytes, so a transfer is complete when the number of arrived bytes reaches the transfer's size.
//! A retransmission does not count if the original packet has arrived.

use std::collections::BTreeMap;
use std::time::Duration;

use airpace_core::{Bytes, Time};
use airpace_event::TransferStep;
use airpace_scenario::{Connection, Flow};

use crate::playing::Playing;

/// Time after which a client first repeats its request; the time doubles for each further repetition.
///
/// Source: RFC 6298 §2 (one second before the first round-trip time sample)
const FIRST_PATIENCE: Duration = Duration::from_secs(1);

/// The transfers of one flow.
#[derive(Clone, Debug)]
pub(crate) struct Transfers {
    /// The player that requests the transfers, if they are the segments of a video.
    playing: Option<Playing>,
    /// Size of each transfer that no player requests.
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
    bytes: u64,
    /// Whether the client cancelled the transfer before.
    replaces: bool,
    /// Number of the first packet that may contain the transfer's data; `None` until the sender has the data.
    served_from: Option<u64>,
    arrived: u64,
    /// Time at which the client repeats its request, and (in `patience`) the time from this repetition to the next.
    repeat: Time,
    patience: Duration,
}

/// Data that a server passes to its sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Served {
    pub(crate) bytes: Bytes,
    /// Whether the server discards the unsent rest of the transfer before, which the client cancelled.
    pub(crate) replaces: bool,
}

impl Transfers {
    /// Creates the transfers of a flow. The first transfer is due at `start`. `playing` requests them if they are the
    /// segments of a video. `None` if the flow has no transfers.
    pub(crate) fn new(flow: &Flow, start: Time, playing: Option<Playing>) -> Option<Transfers> {
        if !flow.has_transfers() {
            return None;
        }
        let is_on_one_connection = playing.is_some() || flow.connection == Some(Connection::Same);
        Some(Transfers {
            playing,
            bytes: flow.transfer_size().unwrap_or_default().0,
            start_up_bytes: flow.start_up_bytes,
            every: flow.transfers_every(),
            stop: flow.stop(),
            has_new_connections: !is_on_one_connection,
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

    /// Returns the next deadline: the start of a transfer, the repetition of a request, or a deadline of the player.
    pub(crate) fn poll_timeout(&self) -> Option<Time> {
        let of_transfer = match (self.current, &self.playing) {
            (None, None) => (self.due < self.stop).then_some(self.due),
            (None, Some(playing)) => playing.requested(),
            (Some(current), _) => current.served_from.is_none().then_some(current.repeat),
        };
        let of_player = self.playing.as_ref().and_then(Playing::poll_timeout);
        [of_transfer, of_player].into_iter().flatten().min().filter(|due| *due < Time::NEVER)
    }

    /// Lets the player process its deadline, if it has one at `now`.
    pub(crate) fn handle_timeout(&mut self, now: Time) {
        if let Some(playing) = &mut self.playing {
            playing.handle_timeout(now);
        }
    }

    /// Returns the player, if the transfers are the segments of a video.
    pub(crate) fn playing(&self) -> Option<&Playing> {
        self.playing.as_ref()
    }

    /// Starts the transfer that is due at `now`, if any. Returns the transfer's number.
    pub(crate) fn begin(&mut self, now: Time) -> Option<u64> {
        if self.current.is_some() {
            return None;
        }
        let (bytes, replaces) = match &mut self.playing {
            Some(playing) => playing.take_request(now)?,
            None if self.due > now || self.due >= self.stop => return None,
            None => {
                self.due = self.every.map_or(Time::NEVER, |every| self.due + every);
                (self.bytes, false)
            }
        };
        let number = self.begun;
        self.begun += 1;
        let (repeat, patience) = (now, FIRST_PATIENCE);
        self.current =
            Some(Current { number, bytes, replaces, served_from: None, arrived: 0, repeat, patience });
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

    /// Marks the data of transfer `number` as passed to the sender, whose next packet is `next_packet`. Returns the data; `None` if the sender already has the data.
    pub(crate) fn serve(&mut self, number: u64, next_packet: u64) -> Option<Served> {
        let current = self.current.as_mut()?;
        if current.number != number || current.served_from.is_some() {
            return None;
        }
        current.served_from = Some(next_packet);
        Some(Served { bytes: Bytes(current.bytes), replaces: current.replaces })
    }

    /// Notes that packet `number` retransmits `original`.
    pub(crate) fn note_copy(&mut self, number: u64, original: u64) {
        let original = self.copies.get(&original).copied().unwrap_or(original);
        self.copies.insert(number, original);
    }

    /// Counts the bytes of a packet that arrived at `now`. Returns the number of the current transfer, and the steps that
    /// the packet completed.
    pub(crate) fn on_arrival(
        &mut self,
        now: Time,
        number: u64,
        bytes: Bytes,
    ) -> Option<(u64, Vec<TransferStep>)> {
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
            (TransferStep::StartedUp, self.start_up_bytes.min(current.bytes)),
            (TransferStep::Complete, current.bytes),
        ];
        let passed = steps.into_iter().filter(|(_, at)| before < *at && *at <= current.arrived);
        let (number, passed) = (current.number, passed.map(|(step, _)| step).collect());
        let is_complete = current.arrived >= current.bytes;
        let is_cancelled =
            self.playing.as_mut().is_some_and(|playing| playing.on_bytes(now, bytes, is_complete));
        if is_complete || is_cancelled {
            self.current = None;
        }
        Some((number, passed))
    }

    /// Returns whether no transfer is under way.
    pub(crate) fn is_idle(&self) -> bool {
        self.current.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transfers(keys: &str) -> Transfers {
        let text = format!("name = \"t\"\nduration_s = 10\n[[flow]]\nrtt_ms = 20\nbytes = 3000\n{keys}");
        let scenario = airpace_scenario::Scenario::load(&text, "test.toml", &[]).expect("a legal scenario");
        Transfers::new(&scenario.flow[0], Time::from_millis(5), None).expect("it has transfers")
    }

    const PACKET: Bytes = Bytes(1500);

    /// The data of each transfer.
    const DATA: Served = Served { bytes: Bytes(3000), replaces: false };

    #[test]
    fn a_transfer_has_arrived_when_all_its_bytes_have() {
        let mut transfers = transfers("start_up_bytes = 1501");
        let now = Time::from_millis(5);
        assert_eq!(
            (transfers.begin(Time::ZERO), transfers.begin(now), transfers.ask(now)),
            (None, Some(0), None)
        );
        assert_eq!((transfers.serve(0, 7), transfers.serve(0, 9)), (Some(DATA), None));
        assert_eq!(transfers.on_arrival(Time::from_millis(50), 6, PACKET), None, "a packet from before");
        assert_eq!(
            transfers.on_arrival(Time::from_millis(50), 8, PACKET),
            Some((0, vec![TransferStep::FirstByte]))
        );
        assert_eq!(
            transfers.on_arrival(Time::from_millis(50), 8, PACKET),
            None,
            "a duplicate brings nothing"
        );
        transfers.note_copy(9, 8);
        transfers.note_copy(10, 7);
        transfers.note_copy(11, 10);
        assert_eq!(
            transfers.on_arrival(Time::from_millis(50), 9, PACKET),
            None,
            "a copy of what has arrived"
        );
        let last = vec![TransferStep::StartedUp, TransferStep::Complete];
        assert_eq!(
            transfers.on_arrival(Time::from_millis(50), 11, PACKET),
            Some((0, last)),
            "a copy of a copy of what has not"
        );
        assert_eq!(
            (transfers.on_arrival(Time::from_millis(50), 7, PACKET), transfers.poll_timeout()),
            (None, None)
        );
    }

    #[test]
    fn the_next_transfer_waits_for_the_one_before() {
        let mut transfers = transfers("every_ms = 100");
        assert_eq!(transfers.begin(Time::from_millis(5)), Some(0));
        assert_eq!(transfers.serve(0, 0), Some(DATA));
        assert_eq!((transfers.poll_timeout(), transfers.begin(Time::from_millis(200))), (None, None));
        transfers.on_arrival(Time::from_millis(50), 0, PACKET);
        transfers.on_arrival(Time::from_millis(50), 1, PACKET);
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
        assert_eq!(transfers.serve(0, 0), Some(DATA));
        assert_eq!((transfers.serve(0, 0), transfers.ask(at(3005))), (None, None), "both requests arrive");
    }
}
