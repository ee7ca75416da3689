//! PDCP of a bearer with two legs, LTE and NR: a split bearer, or a bearer that changes between NR and LTE. Packets wait at the
//! sender until a leg needs them, and the receiver restores the order of the packets.
//!
//! Source: TS 38.323 §5.2, TS 37.340 §7.1.3. Chosen: the standard leaves the choice of the leg to the network.

use std::collections::VecDeque;
use std::time::Duration;

use airpace_core::{Bytes, Packet, Time};
use airpace_event::Fate;

use super::config::{DualConnectivityConfig, SplitBy};

/// Number of the leg of LTE, the master node. The number of the leg of NR, the secondary node, is [`NR`].
pub(super) const LTE: usize = 0;
pub(super) const NR: usize = 1;

/// Share of the last millisecond in the average capacity of a leg.
///
/// Chosen: 1/20, which averages over the periods of TDD patterns.
const GAIN: f64 = 1.0 / 20.0;

/// Margin of a leg's queue: the leg may have the bytes that it can send in this time (ms) in addition to those that it can
/// send until its next report.
///
/// Source: TS 38.425 §5.4.2 (a node reports the amount of data that it wants). Chosen: 5 ms, two periods of usual TDD
/// patterns.
const MARGIN_MS: f64 = 5.0;

/// Minimum queue limit of a leg, in bytes.
///
/// Chosen: a few packets, so that a leg whose PRBs are taken by others can get a share of them.
const MIN_QUEUE: Bytes = Bytes(10_000);

/// PDCP of one device's split bearer.
#[derive(Debug)]
pub(super) struct SplitBearer {
    config: DualConnectivityConfig,
    /// Time that packets need from PDCP to each leg.
    delays: [Duration; 2],
    /// Recent capacity of each leg in bytes per ms; `None` before the first ms.
    capacities: Option<[f64; 2]>,
    /// Bytes by which NR is behind its share (`SplitBy::Share`).
    nr_credit: f64,
    /// The number (COUNT) of the next packet.
    next_count: u64,
    /// Packets that were not sent to a leg yet, in the order of their numbers, and their total size.
    waiting: VecDeque<Waiting>,
    waiting_bytes: Bytes,
    /// Packets with numbers below this value that are still waiting were taken back from a leg.
    recovered_below: u64,
    /// Whether packets may be sent on each leg.
    in_use: [bool; 2],
    /// Numbers of the packets on each leg, which delivers packets in order.
    on_legs: [VecDeque<u64>; 2],
    t_reordering: Duration,
    /// The number of the first packet that was not delivered (RX_DELIV).
    first: u64,
    /// Received packets from number `first` on; `None` if the packet is missing.
    received: VecDeque<Option<(Time, Packet)>>,
    reordering: Option<Reordering>,
}

/// A packet that was not sent to a leg yet.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    /// Time from which on it may be sent.
    ready: Time,
    number: u64,
    packet: Packet,
}

/// The timer that starts when a packet is missing before a received packet.
#[derive(Clone, Copy, Debug)]
struct Reordering {
    expires_at: Time,
    /// Missing packets with numbers below this value are skipped when the timer expires (RX_REORD).
    limit: u64,
}

impl SplitBearer {
    /// PDCP that sends packets on the legs that are `in_use`.
    pub(super) fn new(config: &DualConnectivityConfig, in_use: [bool; 2]) -> SplitBearer {
        let milliseconds = |ms: f64| Duration::from_nanos(libm::round(ms * 1e6) as u64);
        SplitBearer {
            delays: [milliseconds(config.x2_delay_ms), Duration::ZERO],
            capacities: None,
            nr_credit: 0.0,
            next_count: 0,
            waiting: VecDeque::new(),
            waiting_bytes: Bytes::ZERO,
            recovered_below: 0,
            in_use,
            on_legs: Default::default(),
            t_reordering: milliseconds(config.reordering_ms),
            first: 0,
            received: VecDeque::new(),
            reordering: None,
            config: config.clone(),
        }
    }

    /// Records the capacity of each leg in the last millisecond, in bytes.
    pub(super) fn observe(&mut self, bytes: [Bytes; 2]) {
        let new = bytes.map(|bytes| bytes.0 as f64);
        self.capacities = Some(match self.capacities {
            None => new,
            Some(old) => [LTE, NR].map(|leg| match old[leg] {
                0.0 => new[leg],
                old => old + GAIN * (new[leg] - old),
            }),
        });
    }

    /// Takes a packet that may be sent from `ready` on.
    pub(super) fn push(&mut self, ready: Time, packet: Packet) {
        self.waiting.push_back(Waiting { ready, number: self.next_count, packet });
        self.waiting_bytes += packet.bytes;
        self.next_count += 1;
    }

    /// Total size of the packets that were not sent to a leg yet.
    pub(super) fn waiting(&self) -> Bytes {
        self.waiting_bytes
    }

    /// The next packet that is sent to a leg at `now`, given the bytes queued on each leg; `None` while the leg has enough.
    /// Returns the leg, and the time at which the packet arrives there.
    pub(super) fn send(&mut self, now: Time, queued: [Bytes; 2]) -> Option<(usize, Time, Packet)> {
        let &Waiting { number, packet, .. } = self.waiting.front().filter(|first| first.ready <= now)?;
        let (leg, delay) = match self.in_use {
            [true, false] => (LTE, Duration::ZERO),
            [false, true] => (NR, Duration::ZERO),
            _ => {
                let leg = self.choose(queued, packet.bytes);
                (leg, self.delays[leg])
            }
        };
        if queued[leg] >= self.queue_limit(leg) {
            return None;
        }
        if self.config.split_by == SplitBy::Share && self.in_use == [true, true] {
            self.nr_credit += self.config.nr_share * packet.bytes.0 as f64;
            self.nr_credit -= if leg == NR { packet.bytes.0 as f64 } else { 0.0 };
        }
        self.waiting.pop_front();
        self.waiting_bytes -= packet.bytes;
        self.on_legs[leg].push_back(number);
        Some((leg, now + delay, packet))
    }

    /// Queue limit of a leg in bytes: what the leg can send in the time of a packet to LTE and a report back, and in
    /// [`MARGIN_MS`].
    fn queue_limit(&self, leg: usize) -> Bytes {
        let round_trip_ms = 2e3 * self.delays[LTE].as_secs_f64();
        let bytes = self.capacities.map_or(0.0, |bytes| bytes[leg] * (round_trip_ms + MARGIN_MS));
        let of_rule = match self.config.split_by {
            SplitBy::NrFirst if leg == NR => self.config.threshold_kb * 1e3 + 1.0,
            _ => 0.0,
        };
        Bytes(bytes.max(of_rule) as u64).max(MIN_QUEUE)
    }

    fn choose(&self, queued: [Bytes; 2], packet: Bytes) -> usize {
        match self.config.split_by {
            SplitBy::Delay => self.faster(queued, packet),
            SplitBy::NrFirst if queued[NR].0 as f64 <= self.config.threshold_kb * 1e3 => NR,
            SplitBy::NrFirst => self.faster(queued, packet),
            SplitBy::Share => {
                let credit = self.nr_credit + self.config.nr_share * packet.0 as f64;
                if credit >= packet.0 as f64 / 2.0 { NR } else { LTE }
            }
        }
    }

    /// Sends packets only on the legs that are `in_use` from now on.
    pub(super) fn set_in_use(&mut self, in_use: [bool; 2]) {
        self.in_use = in_use;
        for (bytes, _) in self.capacities.iter_mut().flatten().zip(in_use).filter(|(_, is_used)| !is_used) {
            *bytes = 0.0;
        }
    }

    /// Takes back all packets of a leg, which did not deliver them, at `now`. They are sent before all others. The receiver
    /// waits for them until all of them have been sent to the other leg.
    ///
    /// Source: TS 38.323 §5.5 (data recovery: unacknowledged packets are sent again in the order of their numbers). Chosen:
    /// t-Reordering does not run before the last of them was sent.
    pub(super) fn take_back(&mut self, leg: usize, now: Time, packets: Vec<Packet>) {
        self.recovered_below = self.on_legs[leg].back().map_or(self.recovered_below, |last| last + 1);
        let numbers = self.on_legs[leg].drain(..);
        for (number, packet) in numbers.zip(packets).rev() {
            self.waiting.push_front(Waiting { ready: now, number, packet });
            self.waiting_bytes += packet.bytes;
        }
    }

    /// Bytes that must be queued for NR before packets are sent to LTE; none if only one leg is in use.
    pub(super) fn queue_before_lte(&self) -> Bytes {
        if self.in_use != [true, true] {
            return Bytes::ZERO;
        }
        let bytes = match self.config.split_by {
            SplitBy::Delay => {
                let nr_per_ms = self.capacities.map_or(0.0, |capacities| capacities[NR]);
                nr_per_ms * self.delays[LTE].as_secs_f64() * 1e3
            }
            SplitBy::NrFirst => self.config.threshold_kb * 1e3,
            SplitBy::Share => 0.0,
        };
        Bytes(bytes as u64)
    }

    /// The leg that is expected to deliver a packet earlier; NR before the capacities are known.
    fn faster(&self, queued: [Bytes; 2], packet: Bytes) -> usize {
        let Some(capacities) = self.capacities else { return NR };
        let expected_ms = |leg: usize| {
            let queue_ms = (queued[leg] + packet).0 as f64 / capacities[leg].max(1e-3);
            queue_ms + self.delays[leg].as_secs_f64() * 1e3
        };
        if expected_ms(LTE) < expected_ms(NR) { LTE } else { NR }
    }

    /// Total size of the packets at the sender, and of the received packets that wait for a missing packet.
    #[cfg(test)]
    pub(super) fn held(&self) -> Bytes {
        self.waiting_bytes + self.received.iter().flatten().map(|(_, packet)| packet.bytes).sum()
    }

    /// Processes a packet that a leg delivered, or lost, at `at`.
    pub(super) fn receive(
        &mut self,
        leg: usize,
        at: Time,
        packet: Packet,
        fate: Fate,
        release: &mut dyn FnMut(Time, Packet, Fate),
    ) {
        let Some(count) = self.on_legs[leg].pop_front() else {
            unreachable!("a leg delivers each packet once")
        };
        if fate != Fate::Delivered {
            release(at, packet, fate);
            return;
        }
        let Some(place) = count.checked_sub(self.first) else {
            release(at, packet, Fate::PdcpDiscard);
            return;
        };
        let place = place as usize;
        if self.received.len() <= place {
            self.received.resize(place + 1, None);
        }
        self.received[place] = Some((at, packet));
        self.deliver(at, release);
        self.watch_gap(at);
    }

    /// Delivers packets after a gap whose waiting time has expired at `now`; the device passes packets on at `at`.
    pub(super) fn expire(&mut self, now: Time, at: Time, release: &mut dyn FnMut(Time, Packet, Fate)) {
        if self.waiting.front().is_some_and(|first| first.number < self.recovered_below)
            && let Some(timer) = &mut self.reordering
        {
            timer.expires_at = timer.expires_at.max(now + self.t_reordering);
        }
        let Some(timer) = self.reordering.filter(|timer| timer.expires_at <= now) else { return };
        while self.first < timer.limit {
            if let Some(Some((_, packet))) = self.received.pop_front() {
                release(at, packet, Fate::Delivered);
            }
            self.first += 1;
        }
        self.reordering = None;
        self.deliver(at, release);
        self.watch_gap(now);
    }

    /// Delivers the packets before the first missing packet, at `at` or when they were received, if that is later.
    fn deliver(&mut self, at: Time, release: &mut dyn FnMut(Time, Packet, Fate)) {
        while let Some(&Some((received_at, packet))) = self.received.front() {
            self.received.pop_front();
            self.first += 1;
            release(at.max(received_at), packet, Fate::Delivered);
        }
    }

    fn watch_gap(&mut self, now: Time) {
        let is_missing = !self.received.is_empty();
        self.reordering = match self.reordering {
            Some(timer) if timer.limit > self.first => Some(timer),
            _ if is_missing => Some(Reordering {
                expires_at: now + self.t_reordering,
                limit: self.first + self.received.len() as u64,
            }),
            _ => None,
        };
    }
}

#[cfg(test)]
mod tests {
    use airpace_core::{DeviceId, Ecn, FlowId};

    use super::*;

    fn packet(number: u64) -> Packet {
        Packet {
            flow: FlowId(0),
            device: DeviceId(0),
            number,
            bytes: Bytes(1500),
            sent: Time::ZERO,
            ecn: Ecn::NotEct,
        }
    }

    fn at(ms: u64) -> Time {
        Time::from_millis(ms)
    }

    /// A bearer whose packet `n` was sent on leg `legs[n]`.
    fn bearer(legs: &[usize]) -> SplitBearer {
        let mut bearer = SplitBearer::new(&DualConnectivityConfig::default(), [true, true]);
        for (count, &leg) in (0..).zip(legs) {
            bearer.on_legs[leg].push_back(count);
        }
        bearer
    }

    #[test]
    fn packets_of_the_faster_leg_wait_for_those_of_the_slower() {
        let mut bearer = bearer(&[LTE, NR, NR]);
        let mut out = Vec::new();
        let mut release = |time: Time, packet: Packet, _| out.push((time.as_millis(), packet.number));
        bearer.receive(NR, at(1), packet(1), Fate::Delivered, &mut release);
        bearer.receive(NR, at(2), packet(2), Fate::Delivered, &mut release);
        bearer.receive(LTE, at(9), packet(0), Fate::Delivered, &mut release);
        assert_eq!(out, [(9, 0), (9, 1), (9, 2)]);
        assert!(bearer.reordering.is_none());
    }

    #[test]
    fn a_missing_packet_is_skipped_when_the_timer_expires_and_discarded_afterwards() {
        let mut bearer = bearer(&[LTE, NR, NR]);
        let mut out = Vec::new();
        let mut release =
            |time: Time, packet: Packet, fate| out.push((time.as_millis(), packet.number, fate));
        bearer.receive(NR, at(1), packet(1), Fate::Delivered, &mut release);
        bearer.expire(at(100), at(101), &mut release);
        bearer.expire(at(101), at(102), &mut release);
        bearer.receive(NR, at(103), packet(2), Fate::Delivered, &mut release);
        bearer.receive(LTE, at(104), packet(0), Fate::Delivered, &mut release);
        assert_eq!(out, [(102, 1, Fate::Delivered), (103, 2, Fate::Delivered), (104, 0, Fate::PdcpDiscard)]);
    }

    #[test]
    fn a_packet_takes_the_leg_that_delivers_it_earlier() {
        let mut bearer = bearer(&[]);
        assert_eq!(bearer.choose([Bytes::ZERO; 2], Bytes(1500)), NR, "nothing is known yet");
        bearer.observe([Bytes(15_000), Bytes(30_000)]);
        let leg = |queued: [u64; 2], bearer: &SplitBearer| bearer.choose(queued.map(Bytes), Bytes(1500));
        assert_eq!(leg([0, 0], &bearer), NR);
        assert_eq!(leg([0, 60_000], &bearer), NR, "2.05 ms, against 0.1 ms and 2 ms to the LTE node");
        assert_eq!(leg([0, 66_000], &bearer), LTE);
        assert_eq!(leg([15_000, 66_000], &bearer), NR);
    }

    #[test]
    fn shares_are_kept_in_bytes() {
        let config = DualConnectivityConfig { split_by: SplitBy::Share, nr_share: 0.7, ..Default::default() };
        let mut bearer = SplitBearer::new(&config, [true, true]);
        let mut bytes = [0; 2];
        for number in 0..1_000 {
            let size = 100 + number % 7 * 200;
            bearer.push(Time::ZERO, Packet { bytes: Bytes(size), ..packet(number) });
            let (leg, ..) =
                bearer.send(Time::ZERO, [Bytes::ZERO; 2]).expect("a leg without a queue gets a packet");
            bytes[leg] += size;
        }
        let share = bytes[NR] as f64 / (bytes[LTE] + bytes[NR]) as f64;
        assert!((share - 0.7).abs() < 0.01, "{share}");
    }

    #[test]
    fn a_leg_with_enough_bytes_gets_no_more_and_packets_are_taken_back_in_order() {
        let mut bearer = bearer(&[]);
        bearer.observe([Bytes(15_000), Bytes(30_000)]);
        (0..3).for_each(|number| bearer.push(at(1), packet(number)));
        assert!(bearer.send(Time::ZERO, [Bytes::ZERO; 2]).is_none(), "not ready yet");
        let sent = |bearer: &mut SplitBearer, queued: [u64; 2]| {
            bearer
                .send(at(1), queued.map(Bytes))
                .map(|(leg, ready, packet)| (leg, ready.as_millis(), packet.number))
        };
        assert_eq!(sent(&mut bearer, [0, 0]), Some((NR, 1, 0)));
        assert_eq!(sent(&mut bearer, [0, 66_000]), Some((LTE, 3, 1)));
        // The capacity of 4 ms to LTE and back, and of 5 ms more.
        assert_eq!(sent(&mut bearer, [135_000, 270_000]), None);
        assert_eq!(bearer.waiting(), Bytes(1500));
        bearer.set_in_use([true, false]);
        bearer.take_back(NR, at(1), vec![packet(0)]);
        assert_eq!(sent(&mut bearer, [0, 0]), Some((LTE, 1, 0)));
        assert_eq!(sent(&mut bearer, [0, 0]), Some((LTE, 1, 2)));
        assert_eq!((sent(&mut bearer, [0, 0]), bearer.waiting()), (None, Bytes::ZERO));
    }
}
