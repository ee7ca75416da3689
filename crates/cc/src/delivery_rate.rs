//! The delivery rate of the path: one sample per ACK, correct even if several ACKs arrive at once.
//!
//! A sample takes the bytes that were delivered between the sending of a packet and its ACK. It divides them by the
//! longer of two times: the time in which these bytes were sent and the time in which they were acknowledged. Data
//! cannot be delivered faster than it was sent.
//!
//! Source: draft-ietf-ccwg-delivery-rate §3

use std::time::Duration;

use airpace_core::{Bytes, Rate, Time};

use crate::controller::RateSample;

/// The estimator's record of a sent packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SendState {
    /// Bytes delivered over the connection's life when the packet left.
    pub delivered: Bytes,
    /// The time at which that number of bytes had been delivered.
    pub delivered_time: Time,
    /// Departure time of the packet whose ACK started the current sending interval.
    pub first_sent: Time,
    /// Whether the application limited the sender when the packet left.
    pub app_limited: bool,
    /// Bytes outstanding just after the packet left, this packet included.
    pub tx_in_flight: Bytes,
    /// Bytes declared lost up to the packet's departure.
    pub lost: Bytes,
    /// Packets reported as marked up to the packet's departure.
    pub ce: u64,
}

/// The estimator's connection-wide state.
#[derive(Clone, Debug, Default)]
pub struct DeliveryRate {
    delivered: Bytes,
    delivered_time: Time,
    first_sent: Time,
    lost: Bytes,
    ce: u64,
    /// Number of delivered bytes (over the connection's life) until which the flow counts as application limited;
    /// `None` if it does not.
    app_limited_until: Option<Bytes>,
    /// The state and the departure time of the newest packet of the current ACK.
    newest: Option<(SendState, Time)>,
}

impl DeliveryRate {
    /// State before the first delivery.
    pub fn new() -> DeliveryRate {
        DeliveryRate::default()
    }

    /// Records a packet that leaves at `now`; `inflight` includes it.
    ///
    /// Source: draft-ietf-ccwg-delivery-rate §3.2
    pub fn on_sent(&mut self, now: Time, bytes: Bytes, inflight: Bytes) -> SendState {
        if inflight <= bytes {
            // No other packet is in flight. The measuring interval starts with this packet, so that it contains no idle
            // time.
            self.first_sent = now;
            self.delivered_time = now;
        }
        SendState {
            delivered: self.delivered,
            delivered_time: self.delivered_time,
            first_sent: self.first_sent,
            app_limited: self.app_limited_until.is_some(),
            tx_in_flight: inflight,
            lost: self.lost,
            ce: self.ce,
        }
    }

    /// Records that a packet sent at `sent` was newly acknowledged at `now`. Call this for every packet of an ACK, in
    /// the order of their numbers, and then [`DeliveryRate::sample`].
    ///
    /// Source: draft-ietf-ccwg-delivery-rate §3.3
    pub fn on_delivered(&mut self, now: Time, bytes: Bytes, sent: Time, state: &SendState) {
        self.delivered += bytes;
        self.delivered_time = now;
        if self.newest.is_none() || sent >= self.first_sent {
            self.newest = Some((*state, sent));
            self.first_sent = sent;
        }
    }

    /// Records that `bytes` were declared lost.
    pub fn on_lost(&mut self, bytes: Bytes) {
        self.lost += bytes;
    }

    /// Records that `packets` more packets were reported as marked.
    pub fn on_marked(&mut self, packets: u64) {
        self.ce += packets;
    }

    /// Records that the application has nothing to send, although window and pacer permit it.
    ///
    /// Source: draft-ietf-ccwg-delivery-rate §3.4
    pub fn on_app_limited(&mut self, inflight: Bytes) {
        self.app_limited_until = Some((self.delivered + inflight).max(Bytes(1)));
    }

    /// Bytes delivered over the connection's life.
    pub fn delivered(&self) -> Bytes {
        self.delivered
    }

    /// The sample of the ACK whose packets were just recorded. `min_rtt` is the minimum RTT, that of this ACK included.
    ///
    /// Source: draft-ietf-ccwg-delivery-rate §3.3
    pub fn sample(&mut self, min_rtt: Duration) -> RateSample {
        if self.app_limited_until.is_some_and(|until| self.delivered > until) {
            self.app_limited_until = None;
        }
        let Some((state, sent)) = self.newest.take() else {
            return RateSample { delivered: self.delivered, ..RateSample::default() };
        };
        let send_elapsed = sent - state.first_sent;
        let ack_elapsed = self.delivered_time - state.delivered_time;
        let interval = send_elapsed.max(ack_elapsed);
        let delivered = self.delivered - state.delivered;
        // An interval shorter than the minimum RTT is caused by reordering, or by a packet wrongly declared lost.
        let valid = interval >= min_rtt && !interval.is_zero() && delivered > Bytes::ZERO;
        RateSample {
            rate: valid.then(|| Rate::from_bytes_per(delivered, interval)),
            delivered: self.delivered,
            prior_delivered: state.delivered,
            interval,
            app_limited: state.app_limited,
            tx_in_flight: state.tx_in_flight,
            lost: self.lost - state.lost,
            ce: self.ce - state.ce,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: Bytes = Bytes(1500);
    const RTT: Duration = Duration::from_millis(40);

    fn ms(millis: u64) -> Time {
        Time::from_millis(millis)
    }

    /// Sends a packet every `spacing` ms from `from` on. Returns the departure time and the state of each packet.
    fn flight(rate: &mut DeliveryRate, from: u64, spacing: u64, packets: u64) -> Vec<(Time, SendState)> {
        (0..packets)
            .map(|i| {
                let now = ms(from + i * spacing);
                (now, rate.on_sent(now, MSS, Bytes(MSS.0 * (i + 1))))
            })
            .collect()
    }

    #[test]
    fn evenly_delivered_packets_give_their_rate() {
        let mut rate = DeliveryRate::new();
        let packets = flight(&mut rate, 0, 1, 80);
        let mut last = RateSample::default();
        for (sent, state) in packets {
            let now = sent + RTT;
            rate.on_delivered(now, MSS, sent, &state);
            last = rate.sample(RTT);
        }
        // All packets were sent before the first ACK, so 80 packets were delivered in the 79 + 40 ms after the first
        // left.
        assert_eq!(last.delivered, Bytes(80 * 1500));
        assert_eq!(last.rate, Some(Rate::from_bytes_per(Bytes(80 * 1500), Duration::from_millis(119))));
    }

    #[test]
    fn acks_in_a_bunch_do_not_exceed_the_sending_rate() {
        let mut rate = DeliveryRate::new();
        let first = flight(&mut rate, 0, 1, 1);
        rate.on_delivered(ms(40), MSS, first[0].0, &first[0].1);
        rate.sample(RTT);
        // 60 packets are sent, one per millisecond from 50 ms on. All packets are acknowledged at 150 ms.
        for (sent, state) in flight(&mut rate, 50, 1, 60) {
            rate.on_delivered(ms(150), MSS, sent, &state);
        }
        let sample = rate.sample(RTT);
        assert_eq!(sample.interval, Duration::from_millis(100), "from the first sending to the ACK");
        assert_eq!(sample.rate, Some(Rate::from_mbps(7.2)), "60 packets in 100 ms");
    }

    #[test]
    fn an_interval_below_the_least_rtt_gives_no_rate() {
        let mut rate = DeliveryRate::new();
        let packets = flight(&mut rate, 0, 0, 2);
        rate.on_delivered(ms(39), MSS, packets[0].0, &packets[0].1);
        assert_eq!(rate.sample(RTT).rate, None);
        rate.on_delivered(ms(40), MSS, packets[1].0, &packets[1].1);
        assert!(rate.sample(RTT).rate.is_some());
    }

    #[test]
    fn application_limit_marks_what_is_sent_until_it_is_delivered() {
        let mut rate = DeliveryRate::new();
        let packets = flight(&mut rate, 0, 1, 2);
        rate.on_app_limited(Bytes(3000));
        let marked = flight(&mut rate, 10, 1, 1);
        assert!(!packets[1].1.app_limited && marked[0].1.app_limited);
        for (sent, state) in packets.into_iter().chain(marked) {
            assert!(rate.app_limited_until.is_some());
            rate.on_delivered(sent + RTT, MSS, sent, &state);
            rate.sample(RTT);
        }
        assert!(
            rate.app_limited_until.is_none(),
            "everything in flight at the limit was delivered, and one packet more"
        );
    }

    #[test]
    fn losses_and_marks_since_the_packet_left_are_part_of_its_sample() {
        let mut rate = DeliveryRate::new();
        rate.on_lost(Bytes(9));
        rate.on_marked(5);
        let packets = flight(&mut rate, 0, 1, 1);
        rate.on_lost(Bytes(3000));
        rate.on_marked(2);
        rate.on_delivered(ms(40), MSS, packets[0].0, &packets[0].1);
        let sample = rate.sample(RTT);
        assert_eq!((sample.lost, sample.ce, sample.tx_in_flight), (Bytes(3000), 2, MSS));
    }
}
