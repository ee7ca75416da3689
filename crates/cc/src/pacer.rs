//! Paces packets at the controller's rate.
//!
//! The pacer keeps a credit account in billionths of a bit. Per nanosecond, the account earns as many billionths as the
//! rate in bit/s. A packet costs eight thousand million billionths per byte. Packets leave while the account is not
//! negative. All values are integers, so the long-run rate is exactly the requested rate for every packet size. A new
//! rate applies from the time at which it is set.

use std::time::Duration;

use airpace_core::{Bytes, Rate, Time};

/// Price of a byte, in billionths of a bit.
const PER_BYTE: i128 = 8_000_000_000;

/// Permitted deviations of a pacer from evenly spaced packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacerConfig {
    /// Minimum burst: after a pause, packets wait until this number of bytes may leave together. This saves wake-ups of
    /// a real driver. A value of up to one packet paces every packet.
    pub quantum: Bytes,
    /// If a batch of packets leaves within this time at the current rate, packets wait until the data of this time may
    /// leave together. A real driver can then send them in one call, and the mean rate stays exact. Zero paces every
    /// packet at every rate.
    pub batch: Duration,
    /// Maximum time for which unused credit is kept. A driver may be late by this time without losing rate. The data
    /// sent in this time is also the maximum burst.
    pub credit: Duration,
}

/// Minimum amount of data per [`PacerConfig::batch`] at which packets leave together.
///
/// Chosen: two full packets. Waking up costs a driver more than sending the packet.
const BATCH: Bytes = Bytes(3_000);

/// By default, packets leave one at a time, and the maximum credit is 1 ms.
///
/// Chosen: 1 ms, one subframe; real transports on a busy host need about 4 ms.
impl Default for PacerConfig {
    fn default() -> PacerConfig {
        PacerConfig { quantum: Bytes::ZERO, batch: Duration::ZERO, credit: Duration::from_millis(1) }
    }
}

/// Decides when the next packet may leave.
#[derive(Clone, Debug)]
pub struct Pacer {
    config: PacerConfig,
    rate: Option<Rate>,
    /// Credit required after a pause, at the current rate.
    quantum: i128,
    /// Maximum credit at the current rate.
    most: i128,
    /// Credit earned minus credit spent, as of `settled`; negative is debt.
    account: i128,
    settled: Time,
    /// Whether a packet was refused, so that the credit must first grow to a whole quantum.
    gathering: bool,
    /// Whether a burst has ended. The credit must then also grow to a whole quantum, although no packet was refused
    /// yet.
    spent: bool,
    forfeited: i128,
}

impl Pacer {
    /// A pacer without a rate.
    pub fn new(config: PacerConfig) -> Pacer {
        Pacer {
            config,
            rate: None,
            quantum: 0,
            most: 0,
            account: 0,
            settled: Time::ZERO,
            gathering: false,
            spent: false,
            forfeited: 0,
        }
    }

    /// Sets the rate from `now` on; with `None`, packets leave at once.
    pub fn set_rate(&mut self, now: Time, rate: Option<Rate>) {
        if rate == self.rate {
            return;
        }
        if self.rate.is_none() {
            self.account = 0;
            self.settled = now;
        } else {
            self.settle(now);
        }
        self.rate = rate;
        let credit = self.config.credit.as_nanos() as i128;
        self.most = rate.map_or(0, |rate| i128::from(rate.as_bps()) * credit);
        let batch = rate.map_or(0, |rate| i128::from(rate.as_bps()) * self.config.batch.as_nanos() as i128);
        let price = |bytes: Bytes| i128::from(bytes.0) * PER_BYTE;
        self.quantum = if batch >= price(BATCH) { batch } else { 0 }.max(price(self.config.quantum));
    }

    /// The current rate.
    pub fn rate(&self) -> Option<Rate> {
        self.rate
    }

    /// Whether a packet of `bytes` may leave at `now`. If not, [`Pacer::next`] returns the time at which it may.
    pub fn ready(&mut self, now: Time, bytes: Bytes) -> bool {
        if self.rate.is_none() {
            return true;
        }
        self.settle(now);
        self.gathering = self.account < self.least(bytes);
        self.spent &= self.gathering;
        !self.gathering
    }

    /// The number of packets of `bytes` that may leave together at `now`; `u64::MAX` without a rate. The state is
    /// unchanged.
    pub fn burst(&self, now: Time, bytes: Bytes) -> u64 {
        let Some(rate) = self.rate else { return u64::MAX };
        let elapsed = now.as_nanos().saturating_sub(self.settled.as_nanos());
        let earned = i128::from(elapsed) * i128::from(rate.as_bps());
        let account = (self.account + earned).min(self.most);
        if account < self.least(bytes) {
            return 0;
        }
        let price = i128::from(bytes.0.max(1)) * PER_BYTE;
        u64::try_from(account / price + 1).unwrap_or(u64::MAX)
    }

    /// The time at which a packet of `bytes` may leave; `None` if the pacer has no rate.
    pub fn next(&self, bytes: Bytes) -> Option<Time> {
        let rate = self.rate?;
        let missing = self.least(bytes) - self.account;
        if missing <= 0 {
            return Some(self.settled);
        }
        if rate == Rate::ZERO {
            return Some(Time::NEVER);
        }
        // Usual debts fit into 64 bits, for which the division is several times faster than for 128 bits.
        let nanos = match u64::try_from(missing) {
            Ok(missing) => missing.div_ceil(rate.as_bps()),
            Err(_) => {
                u64::try_from(missing.unsigned_abs().div_ceil(rate.as_bps().into())).unwrap_or(u64::MAX)
            }
        };
        Some(self.settled + Duration::from_nanos(nanos))
    }

    /// Records that a packet of `bytes` left at `now`.
    pub fn on_sent(&mut self, now: Time, bytes: Bytes) {
        if self.rate.is_some() {
            self.settle(now);
            self.account -= i128::from(bytes.0) * PER_BYTE;
            // After a burst, the credit must first grow to a whole quantum. Otherwise a driver that is busy for the
            // time of one packet would send single packets forever.
            self.spent = self.quantum > 0 && self.account < 0;
        }
    }

    /// The sending credit lost by a late driver, in bytes: credit beyond [`PacerConfig::credit`] that was earned while
    /// a packet waited for the pacer. Pauses of the application or of the window do not count.
    pub fn forfeited(&self) -> Bytes {
        Bytes((self.forfeited / PER_BYTE) as u64)
    }

    /// Minimum credit with which a packet may leave now.
    fn least(&self, bytes: Bytes) -> i128 {
        if self.gathering || self.spent { self.enough(bytes) } else { 0 }
    }

    /// Minimum credit with which a packet may leave after a pause.
    fn enough(&self, bytes: Bytes) -> i128 {
        (self.quantum - i128::from(bytes.0) * PER_BYTE).clamp(0, self.most)
    }

    fn settle(&mut self, now: Time) {
        let Some(rate) = self.rate else { return };
        let elapsed = now.as_nanos().saturating_sub(self.settled.as_nanos());
        if elapsed == 0 && self.account <= self.most {
            return;
        }
        let earned = i128::from(elapsed) * i128::from(rate.as_bps());
        self.settled = self.settled.max(now);
        self.account += earned;
        let excess = self.account - self.most;
        if excess > 0 {
            self.account -= excess;
            // A driver that waits for the pacer and is late by more than the credit loses that rate.
            if self.gathering {
                self.forfeited += excess.min(earned);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Sends packets of `bytes` as early as allowed, from `from` on. Returns the time at which the last one left.
    fn send(pacer: &mut Pacer, from: Time, bytes: Bytes, packets: u32) -> Time {
        let mut now = from;
        for _ in 0..packets {
            if !pacer.ready(now, bytes) {
                now = now.max(pacer.next(bytes).unwrap());
                assert!(pacer.ready(now, bytes), "a packet may leave when the pacer says so");
            }
            pacer.on_sent(now, bytes);
        }
        now
    }

    fn paced(rate: Rate) -> Pacer {
        batched(rate, Duration::ZERO)
    }

    fn batched(rate: Rate, batch: Duration) -> Pacer {
        let mut pacer = Pacer::new(PacerConfig { batch, ..PacerConfig::default() });
        pacer.set_rate(Time::ZERO, Some(rate));
        pacer
    }

    #[test]
    fn packets_leave_evenly() {
        let mut pacer = paced(Rate::from_mbps(12.0));
        let mut departures = vec![];
        let mut now = Time::ZERO;
        for _ in 0..4 {
            now = send(&mut pacer, now, Bytes(1500), 1);
            departures.push(now.as_millis());
        }
        assert_eq!(departures, [0, 1, 2, 3]);
    }

    #[test]
    fn a_change_of_rate_holds_at_once_even_for_the_packet_already_waiting() {
        let mut pacer = paced(Rate::from_mbps(1.2));
        assert_eq!(send(&mut pacer, Time::ZERO, Bytes(1500), 1), Time::ZERO);
        assert_eq!(pacer.next(Bytes(1500)), Some(Time::from_millis(10)));
        pacer.set_rate(Time::from_millis(5), Some(Rate::from_mbps(12.0)));
        let next = pacer.next(Bytes(1500));
        assert_eq!(next, Some(Time::from_micros(5_500)), "half of the debt is left, at ten times the rate");
    }

    #[test]
    fn a_pause_earns_no_more_than_the_credit() {
        let mut pacer = paced(Rate::from_mbps(12.0));
        let late = Time::from_secs(1);
        let mut burst = 0;
        while pacer.ready(late, Bytes(1500)) {
            pacer.on_sent(late, Bytes(1500));
            burst += 1;
        }
        assert_eq!(burst, 2, "1 ms of credit is one packet, and one more leaves on debt");
        assert_eq!(pacer.forfeited(), Bytes::ZERO, "no packet waited for the pacer in the pause");
    }

    #[test]
    fn a_late_driver_learns_what_it_lost() {
        let mut pacer = paced(Rate::from_mbps(12.0));
        send(&mut pacer, Time::ZERO, Bytes(1500), 1);
        assert!(!pacer.ready(Time::ZERO, Bytes(1500)));
        assert!(pacer.ready(Time::from_millis(12), Bytes(1500)));
        assert_eq!(pacer.forfeited(), Bytes(10 * 1500), "12 ms minus 1 ms of debt and 1 ms of credit");
    }

    #[test]
    fn a_quantum_gathers_packets_into_bursts() {
        let mut pacer = Pacer::new(PacerConfig {
            quantum: Bytes(6_000),
            credit: Duration::from_millis(5),
            ..PacerConfig::default()
        });
        pacer.set_rate(Time::ZERO, Some(Rate::from_mbps(12.0)));
        let mut departures = vec![];
        let mut now = Time::ZERO;
        for _ in 0..9 {
            now = send(&mut pacer, now, Bytes(1500), 1);
            departures.push(now.as_millis());
        }
        assert_eq!(departures, [0, 4, 4, 4, 4, 8, 8, 8, 8]);
    }

    #[test]
    fn only_fast_packets_leave_in_batches() {
        let config = PacerConfig { batch: Duration::from_micros(250), ..PacerConfig::default() };
        for (mbps, together) in
            [(12.0, 1), (95.0, 1), (96.0, 2), (200.0, 4), (240.0, 5), (960.0, 20), (4_800.0, 100)]
        {
            let mut pacer = Pacer::new(config);
            pacer.set_rate(Time::ZERO, Some(Rate::from_mbps(mbps)));
            let begin = send(&mut pacer, Time::ZERO, Bytes(1500), 1);
            let next = send(&mut pacer, begin, Bytes(1500), 1);
            let batch = (1..).find(|_| {
                let is_over = !pacer.ready(next, Bytes(1500));
                pacer.on_sent(next, if is_over { Bytes::ZERO } else { Bytes(1500) });
                is_over
            });
            assert_eq!(batch, Some(together), "{mbps} Mbit/s");
            let expected = Rate::from_mbps(mbps).time_for(Bytes(1500 * together));
            let error = pacer.next(Bytes(1500)).unwrap() - next;
            assert!(
                error.abs_diff(expected) <= Duration::from_nanos(2),
                "{mbps}: {error:?} and {expected:?}"
            );
        }
    }

    #[test]
    fn a_driver_that_is_slow_still_sends_batches() {
        let mut pacer = batched(Rate::from_mbps(2_400.0), Duration::from_micros(250));
        let (mut now, mut calls, mut packets) = (Time::ZERO, 0, 0);
        while packets < 20_000 {
            let burst = pacer.burst(now, Bytes(1500));
            if burst == 0 {
                assert!(!pacer.ready(now, Bytes(1500)));
                now = pacer.next(Bytes(1500)).unwrap();
                continue;
            }
            for _ in 0..burst {
                pacer.on_sent(now, Bytes(1500));
            }
            (calls, packets) = (calls + 1, packets + burst);
            now += Duration::from_micros(6);
        }
        assert!(packets > 40 * calls, "{packets} packets in {calls} calls, each longer than a packet takes");
    }

    #[test]
    fn unpaced_packets_leave_at_once() {
        let mut pacer = Pacer::new(PacerConfig::default());
        assert_eq!(send(&mut pacer, Time::ZERO, Bytes(1500), 1000), Time::ZERO);
        assert_eq!(pacer.next(Bytes(1500)), None);
    }

    proptest! {
        #[test]
        fn the_long_run_rate_is_exact(bps in 100_000u64..5_000_000_000, bytes in 40u64..9_000) {
            let rate = Rate::from_bps(bps);
            let packets = 20_000;
            let last = send(&mut paced(rate), Time::ZERO, Bytes(bytes), packets + 1);
            let sent_bits = (u64::from(packets) * bytes * 8) as f64;
            let error = sent_bits / (last.as_nanos() as f64 * 1e-9) / bps as f64 - 1.0;
            // The only error allowed is one nanosecond of rounding over the whole run.
            prop_assert!(error.abs() < 1e-6 || last.as_nanos().abs_diff((sent_bits * 1e9 / bps as f64) as u64) <= 1,
                "error {error}");
        }

        #[test]
        fn batches_keep_the_long_run_rate(bps in 100_000u64..5_000_000_000, micros in 0u64..500) {
            let (rate, packets) = (Rate::from_bps(bps), 50_000);
            let batch = Duration::from_micros(micros);
            let last = send(&mut batched(rate, batch), Time::ZERO, Bytes(1500), packets);
            // The deviation is at most one batch.
            let ideal = rate.time_for(Bytes(1500 * u64::from(packets)));
            let most = batch + rate.time_for(Bytes(3_000));
            prop_assert!((last - Time::ZERO).abs_diff(ideal) <= most, "{last} and {ideal:?}");
        }

        #[test]
        fn never_more_than_the_rate_plus_the_credit(
            bps in 1_000_000u64..1_000_000_000,
            steps in prop::collection::vec((0u64..3_000_000, 40u64..1500), 1..300),
        ) {
            let mut pacer = paced(Rate::from_bps(bps));
            let (mut now, mut sent, mut largest) = (0u64, 0u128, 0);
            for (step, bytes) in steps {
                now += step;
                if pacer.ready(Time::from_nanos(now), Bytes(bytes)) {
                    pacer.on_sent(Time::from_nanos(now), Bytes(bytes));
                    sent += u128::from(bytes);
                    largest = largest.max(bytes);
                }
            }
            let allowed = u128::from(bps) * u128::from(now + 1_000_000) / 8_000_000_000 + u128::from(largest) + 1;
            prop_assert!(sent <= allowed, "{sent} of {allowed} bytes");
        }
    }
}
