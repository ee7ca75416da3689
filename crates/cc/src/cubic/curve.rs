//! The curve of one epoch of congestion avoidance.

use std::time::Duration;

use crate::controller::Rtt;

/// Steepness of the curve, in packets per cubic second.
pub const C: f64 = 0.4; // RFC 9438 §5.1

/// Factor of the window that remains after a loss.
pub const BETA: f64 = 0.7; // RFC 9438 §4.6

/// Growth per round, in packets, of the Reno window with which CUBIC is compared. It is lower than Reno's 1 packet,
/// because CUBIC's window only falls to 0.7 of its value at a loss.
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA); // RFC 9438 §4.3

/// Minimum relative growth of the window per round before the first loss.
const MIN_BEFORE_LOSS: f64 = 1.0 / 20.0; // Linux tcp_cubic.c

/// Rules for the window's growth along the curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Growth {
    /// The target is the curve's value one smoothed RTT ahead. While the curve is below the window that Reno would
    /// have, Reno's window is used.
    ///
    /// Source: RFC 9438 §4.2 to §4.5
    Rfc,
    /// The target is the curve's value one minimum RTT ahead; with a long queue, the window does not reach this target.
    /// The window that Reno would have is a second target. That window grows by no more than 8/15 of a packet per
    /// round. Before the first loss, the window grows by at least 5 % a round.
    ///
    /// Source: Linux tcp_cubic.c
    Linux,
}

/// The period from the end of a recovery (or of slow start) to the next loss. Windows are in packets.
#[derive(Clone, Debug)]
pub struct Epoch {
    growth: Growth,
    /// Whether there was no loss yet, so that the maximum window of the path is unknown.
    is_first: bool,
    /// Time on the curve, in seconds. It does not advance while the window does not limit the sender.
    t_s: f64,
    /// The time at which the curve reaches `w_max` again, in seconds.
    pub k_s: f64,
    w_max: f64,
    /// The window that Reno would have.
    pub w_est: f64,
    cwnd_prior: f64,
}

impl Epoch {
    /// Starts an epoch at window `cwnd`. `w_max` is the window before the last reduction, if there was one.
    pub fn new(growth: Growth, cwnd: f64, w_max: Option<f64>, cwnd_prior: f64) -> Epoch {
        let is_first = w_max.is_none();
        let w_max = w_max.map_or(cwnd, |w_max| w_max.max(cwnd));
        let k_s = libm::cbrt((w_max - cwnd) / C); // RFC 9438 §4.2 Figure 2
        Epoch { growth, is_first, t_s: 0.0, k_s, w_max, w_est: cwnd, cwnd_prior }
    }

    /// Advances the time on the curve.
    pub fn advance(&mut self, span: Duration) {
        self.t_s += span.as_secs_f64();
    }

    /// Processes `acked` acknowledged packets: Reno's window grows.
    pub fn on_acked(&mut self, acked: f64, cwnd: f64) {
        let is_past_loss = self.growth == Growth::Rfc && self.w_est >= self.cwnd_prior;
        let alpha = if is_past_loss { 1.0 } else { ALPHA }; // RFC 9438 §4.3
        self.w_est += alpha * acked / cwnd; // RFC 9438 §4.3 Figure 4
    }

    /// The window after `acked` packets were acknowledged.
    pub fn next_window(&self, acked: f64, cwnd: f64, rtt: &Rtt) -> f64 {
        let ahead = |span: Duration| self.window_at(self.t_s + span.as_secs_f64());
        let target = match self.growth {
            Growth::Rfc if self.window_at(self.t_s) < self.w_est => {
                return self.w_est.max(cwnd); // RFC 9438 §4.3: Reno-friendly region
            }
            Growth::Rfc => ahead(rtt.smoothed),
            Growth::Linux => {
                let least = if self.is_first { cwnd * (1.0 + MIN_BEFORE_LOSS) } else { cwnd };
                ahead(rtt.min).max(self.w_est).max(least)
            }
        };
        let target = target.clamp(cwnd, 1.5 * cwnd); // RFC 9438 §4.2
        cwnd + (target - cwnd) / cwnd * acked // RFC 9438 §4.4, §4.5
    }

    /// `W(t) = C (t − K)³ + W_max`.
    fn window_at(&self, t_s: f64) -> f64 {
        let from_plateau = t_s - self.k_s;
        C * from_plateau * from_plateau * from_plateau + self.w_max // RFC 9438 §4.2 Figure 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rtt(millis: u64) -> Rtt {
        let rtt = Duration::from_millis(millis);
        Rtt { latest: Some(rtt), smoothed: rtt, variation: Duration::ZERO, min: rtt }
    }

    #[test]
    fn the_curve_starts_at_the_reduced_window_and_is_back_after_k_seconds() {
        let epoch = Epoch::new(Growth::Rfc, 70.0, Some(100.0), 100.0);
        assert!((epoch.k_s - 4.217).abs() < 1e-3, "K is the cube root of 30 / 0.4");
        assert!((epoch.window_at(0.0) - 70.0).abs() < 1e-9);
        assert!((epoch.window_at(epoch.k_s) - 100.0).abs() < 1e-9);
        let before = epoch.window_at(epoch.k_s) - epoch.window_at(epoch.k_s - 1.0);
        let after = epoch.window_at(epoch.k_s + 1.0) - epoch.window_at(epoch.k_s);
        assert!(
            (before - 0.4).abs() < 1e-9 && (after - 0.4).abs() < 1e-9,
            "the curve is flat around the old maximum"
        );
    }

    #[test]
    fn a_window_above_the_last_maximum_starts_convex() {
        let epoch = Epoch::new(Growth::Rfc, 120.0, Some(100.0), 100.0);
        assert_eq!((epoch.k_s, epoch.w_max), (0.0, 120.0));
    }

    #[test]
    fn one_round_never_adds_more_than_half() {
        let mut epoch = Epoch::new(Growth::Rfc, 10.0, None, 10.0);
        epoch.advance(Duration::from_secs(60));
        let cwnd = epoch.next_window(10.0, 10.0, &rtt(100));
        assert!((cwnd - 15.0).abs() < 1e-9);
    }

    #[test]
    fn a_long_queue_holds_linux_back_and_the_time_before_any_loss_does_not() {
        let bloated = Rtt { smoothed: Duration::from_secs(1), ..rtt(40) };
        let [rfc, linux] = [Growth::Rfc, Growth::Linux].map(|growth| {
            let mut epoch = Epoch::new(growth, 70.0, Some(100.0), 100.0);
            epoch.advance(Duration::from_secs(1));
            epoch.next_window(70.0, 70.0, &bloated) - 70.0
        });
        assert!((rfc - 25.6).abs() < 0.1, "the target is the curve at two seconds, not {rfc}");
        assert!((linux - 17.2).abs() < 0.1, "the target is the curve at one second and 40 ms, not {linux}");
        let first = Epoch::new(Growth::Linux, 70.0, None, 70.0);
        assert_eq!(
            first.next_window(70.0, 70.0, &bloated),
            73.5,
            "the window grows by a twentieth a round where the curve is flat"
        );
    }

    #[test]
    fn short_paths_grow_as_reno_does() {
        let mut epoch = Epoch::new(Growth::Rfc, 7.0, Some(10.0), 10.0);
        let mut cwnd = 7.0;
        let mut rounds = 0;
        while cwnd < 10.0 {
            for _ in 0..7 {
                epoch.advance(Duration::from_micros(1_000 / 7));
                epoch.on_acked(cwnd / 7.0, cwnd);
                cwnd = epoch.next_window(cwnd / 7.0, cwnd, &rtt(1));
            }
            rounds += 1;
        }
        // The window must grow by three packets, at 0.529 packets per round.
        assert_eq!(rounds, 6, "at 1 ms the curve would take two seconds, Reno takes six rounds");
    }
}
