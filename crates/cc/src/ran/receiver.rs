//! The receiver of `+ran`: it computes the time for which the radio held each packet back.

use std::time::Duration;

use airpace_core::{Bytes, Rider, Time};
use airpace_radio::RadioReport;

use crate::controller::{Arrival, Inspect, Receiver, Sees};
use crate::pbe::delay::OneWayDelay;

use super::blocks::Blocks;
use super::write;

/// The receiver of `+ran`. It wraps the receiver of the scheme, if the scheme has one.
pub struct RanReceiver {
    inner: Option<Box<dyn Receiver>>,
    blocks: Blocks,
    delay: OneWayDelay,
    /// The wait of the last packet.
    wait: Duration,
}

impl RanReceiver {
    /// Wraps the receiver `inner`.
    pub fn new(inner: Option<Box<dyn Receiver>>) -> RanReceiver {
        RanReceiver { inner, blocks: Blocks::default(), delay: OneWayDelay::default(), wait: Duration::ZERO }
    }
}

impl Receiver for RanReceiver {
    fn sees(&self) -> Sees {
        Sees::Device
    }

    fn on_packet(&mut self, arrival: &Arrival<'_>) {
        self.delay.on_packet(arrival.now, arrival.sent);
        // Blocks carry the packets of all flows of the device.
        let share = arrival.device.used_share.clamp(0.01, 1.0);
        let bytes = Bytes((arrival.bytes.0 as f64 / share) as u64);
        // The wait is limited to the packet's delay beyond the minimum delay. Otherwise a wrong wait could make the
        // path look shorter than it is. Every delay-based scheme would then see a queue in all later delays.
        self.wait = self.blocks.wait(arrival.now, bytes).min(self.delay.excess());
        if let Some(inner) = &mut self.inner {
            inner.on_packet(&Arrival { sent: arrival.sent + self.wait, ..*arrival });
        }
    }

    fn on_radio(&mut self, report: &RadioReport) {
        self.blocks.on_report(report);
        if let Some(inner) = &mut self.inner {
            inner.on_radio(report);
        }
    }

    fn handle_timeout(&mut self, now: Time) -> bool {
        self.inner.as_mut().is_some_and(|inner| inner.handle_timeout(now))
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.inner.as_ref().and_then(|inner| inner.poll_timeout())
    }

    fn feedback(&mut self, now: Time) -> Rider {
        let inner = self.inner.as_mut().map_or(Rider::EMPTY, |inner| inner.feedback(now));
        write(self.wait, &inner)
    }

    fn window(&mut self, now: Time) -> Option<Bytes> {
        self.inner.as_mut().and_then(|inner| inner.window(now))
    }

    fn inspect(&self, out: &mut Inspect) {
        if let Some(inner) = &self.inner {
            inner.inspect(out);
        }
        let millis = |span: Option<Duration>| span.map_or(f64::NAN, |span| span.as_secs_f64() * 1e3);
        // Before the lag is known, the wait is unknown, not zero.
        let lag = self.blocks.lag();
        out.value("radio_wait_ms", millis(lag.map(|_| self.wait)));
        out.value("radio_lag_ms", millis(lag));
        out.value("repeated_blocks_n", self.blocks.repeated() as f64);
    }
}
