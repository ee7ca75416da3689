//! The controller of `+ran`: it corrects the delays of ACKs before it passes them to the controller of the scheme.

use std::time::Duration;

use airpace_core::{Rider, Time};
use airpace_radio::RadioReport;

use crate::controller::{Ack, Control, Controller, Inspect, Loss, Rtt, Sees, Sent, Truth};
use crate::registry::DeviceFlows;

use super::read;

/// Inverse of the gain of the smoothed wait. The gain equals that of the smoothed RTT, so that the difference of both
/// is the smoothed corrected RTT.
///
/// Source: RFC 9002 §5.3
const SMOOTHING: u32 = 8;

/// Wraps a controller, which then sees round-trip times without the radio's waits.
pub struct RanController {
    inner: Box<dyn Controller>,
    smoothed_wait: Duration,
}

impl RanController {
    /// Wraps the controller `inner`.
    pub fn new(inner: Box<dyn Controller>) -> RanController {
        RanController { inner, smoothed_wait: Duration::ZERO }
    }

    /// The round-trip times minus the `wait` of the newest packet. No corrected time is below the minimum measured RTT.
    /// The variation is not corrected: timeouts must exceed the real delays of packets.
    fn corrected(&mut self, rtt: Rtt, wait: Duration) -> Rtt {
        let shorter = |span: Duration, by: Duration| span.saturating_sub(by).max(rtt.min.min(span));
        if rtt.latest.is_some() {
            self.smoothed_wait = (self.smoothed_wait * (SMOOTHING - 1) + wait) / SMOOTHING;
        }
        Rtt {
            latest: rtt.latest.map(|latest| shorter(latest, wait)),
            smoothed: shorter(rtt.smoothed, self.smoothed_wait),
            ..rtt
        }
    }
}

impl Controller for RanController {
    fn sees(&self) -> Sees {
        self.inner.sees()
    }

    fn on_sent(&mut self, sent: &Sent) {
        self.inner.on_sent(sent);
    }

    fn on_ack(&mut self, ack: &Ack<'_>) {
        let (wait, feedback) = read(ack.feedback).unwrap_or_default();
        let rtt = self.corrected(ack.rtt, wait);
        self.inner.on_ack(&Ack { rtt, feedback, ..*ack });
    }

    fn on_feedback(&mut self, now: Time, feedback: &[u8]) {
        if let Some((_, feedback)) = read(feedback) {
            self.inner.on_feedback(now, feedback);
        }
    }

    fn on_loss(&mut self, loss: &Loss<'_>) {
        self.inner.on_loss(loss);
    }

    fn on_radio(&mut self, report: &RadioReport) {
        self.inner.on_radio(report);
    }

    fn on_device(&mut self, now: Time, flows: &DeviceFlows) {
        self.inner.on_device(now, flows);
    }

    fn on_truth(&mut self, truth: &Truth) {
        self.inner.on_truth(truth);
    }

    fn on_due(&mut self, packets: u64) {
        self.inner.on_due(packets);
    }

    fn handle_timeout(&mut self, now: Time) {
        self.inner.handle_timeout(now);
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.inner.poll_timeout()
    }

    fn control(&self) -> Control {
        self.inner.control()
    }

    fn header(&self) -> Rider {
        self.inner.header()
    }

    fn is_ecn_capable(&self) -> bool {
        self.inner.is_ecn_capable()
    }

    fn inspect(&self, out: &mut Inspect) {
        self.inner.inspect(out);
        out.value("smoothed_wait_ms", self.smoothed_wait.as_secs_f64() * 1e3);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cbr;
    use crate::scheme::{Options, Setup};
    use airpace_core::{Bytes, Streams};

    fn controller() -> RanController {
        let setup = Setup::new(Bytes(1500), Streams::new(1).stream("ran"));
        RanController::new((cbr::SCHEME.build)(&setup, &Options::defaults(&cbr::SCHEME)).unwrap().controller)
    }

    #[test]
    fn a_wait_shortens_round_trips_but_never_below_the_least() {
        let ms = Duration::from_millis;
        let rtt = Rtt { latest: Some(ms(58)), smoothed: ms(50), variation: ms(3), min: ms(48) };
        let mut controller = controller();
        assert_eq!(controller.corrected(rtt, Duration::ZERO), rtt, "without a wait nothing changes");
        let shorter = controller.corrected(rtt, ms(8));
        assert_eq!((shorter.latest, shorter.smoothed), (Some(ms(50)), ms(49)), "an eighth of the wait");
        assert_eq!(controller.corrected(rtt, ms(900)).latest, Some(ms(48)));
        let unknown = Rtt { latest: None, ..rtt };
        assert_eq!(controller.corrected(unknown, ms(8)).latest, None);
    }
}
