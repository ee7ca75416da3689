//! A sender that does not use BISCAY and is limited by the receiver's advertised window.

use airpace_core::{Rider, Time};

use crate::controller::{Ack, Control, Controller, Inspect, Loss, Sent};

use super::feedback::{read_timestamp, write_echo};

/// Any controller, on a transport that echoes timestamps as TCP does. The congestion control of the controller is
/// unchanged; the transport obeys the receiver's window.
///
/// Source: BISCAY §3.2.4; RFC 7323 §3
pub struct Unmodified {
    inner: Box<dyn Controller>,
    /// The timestamp of the newest ACK.
    timestamp: Option<u32>,
}

impl Unmodified {
    /// Wraps `inner` in such a transport.
    pub fn new(inner: Box<dyn Controller>) -> Unmodified {
        Unmodified { inner, timestamp: None }
    }
}

impl Controller for Unmodified {
    fn on_sent(&mut self, sent: &Sent) {
        self.inner.on_sent(sent);
    }

    fn on_ack(&mut self, ack: &Ack<'_>) {
        self.timestamp = read_timestamp(ack.feedback).or(self.timestamp);
        self.inner.on_ack(&Ack { feedback: &[], ..*ack });
    }

    fn on_loss(&mut self, loss: &Loss<'_>) {
        self.inner.on_loss(loss);
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
        self.timestamp.map_or(Rider::EMPTY, write_echo)
    }

    fn is_ecn_capable(&self) -> bool {
        self.inner.is_ecn_capable()
    }

    fn inspect(&self, out: &mut Inspect) {
        self.inner.inspect(out);
    }
}
