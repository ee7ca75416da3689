//! Detects a loss rate that is too high for random loss: in this case the window is cut, in every mode.

use std::time::Duration;

use airpace_core::Time;

/// Minimum number of packets from which a loss rate is computed.
///
/// Source: genericCC estimators (`ReduceOnLoss`)
const MIN_PACKETS: u64 = 20;

/// Period over which losses are counted, in RTTs.
///
/// Source: genericCC estimators (`ReduceOnLoss`)
const SPAN_RTTS: u32 = 2;

/// Counts losses over two RTTs.
#[derive(Clone, Debug)]
pub struct HeavyLoss {
    /// Share of lost packets above which the window is cut.
    bearable: f64,
    lost: u64,
    packets: u64,
    since: Time,
}

impl HeavyLoss {
    /// A counter that cuts the window if more than a share of `bearable` packets is lost.
    pub fn new(bearable: f64) -> HeavyLoss {
        HeavyLoss { bearable, lost: 0, packets: 0, since: Time::ZERO }
    }

    /// Processes `acked` acknowledged and `lost` lost packets. Returns whether the loss rate was too high.
    pub fn on_packets(&mut self, now: Time, acked: u64, lost: u64, latest_rtt: Duration) -> bool {
        self.lost += lost;
        self.packets += acked + lost;
        if now <= self.since + latest_rtt * SPAN_RTTS || self.packets <= MIN_PACKETS {
            return false;
        }
        let share = self.lost as f64 / self.packets as f64;
        *self = HeavyLoss { since: now, ..HeavyLoss::new(self.bearable) };
        share > self.bearable
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_third_is_too_much_but_not_of_a_handful() {
        let rtt = Duration::from_millis(40);
        let mut losses = HeavyLoss::new(0.3);
        assert!(!losses.on_packets(Time::from_millis(100), 10, 9, rtt), "19 packets are too few");
        assert!(losses.on_packets(Time::from_millis(101), 2, 0, rtt), "21 packets are enough");
        assert!(
            !losses.on_packets(Time::from_millis(150), 10, 30, rtt),
            "the next decision comes after two RTTs"
        );
        assert!(losses.on_packets(Time::from_millis(182), 1, 0, rtt));
        assert!(!losses.on_packets(Time::from_millis(300), 70, 30, rtt), "30 % is not too much");
    }
}
