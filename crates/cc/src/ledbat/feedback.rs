//! The receiver of LEDBAT: it returns the one-way delay of each packet on the ACK.
//!
//! All integers are big-endian and count microseconds modulo 2³², about 71 minutes. Only their differences are used, so
//! neither the clocks' offset nor a wrap matters. A reader ignores additional bytes at the end.
//!
//! ```text
//!  0      version, 1
//!  1…4    the receiver's clock when the ACK leaves
//!  5…     one-way delays of the packets since the last ACK, oldest first, 4 bytes each, the newest eight at most
//! ```
//!
//! Source: RFC 6817 §2.4.1

use airpace_core::{Rider, Time};

use crate::controller::{Arrival, Inspect, Receiver};

const VERSION: u8 = 1;

/// Maximum number of delays on an ACK.
const MAX_DELAYS: usize = 8;

/// Number of bytes before the delays.
const HEAD: usize = 5;

/// The delays of an ACK.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Feedback {
    /// Departure time of the ACK by the receiver's clock, in microseconds modulo 2³².
    pub clock_us: u32,
    delays_us: [u32; MAX_DELAYS],
    count: usize,
}

impl Feedback {
    /// One-way delays, oldest first, in microseconds modulo 2³². They contain the clocks' offset.
    pub fn delays_us(&self) -> &[u32] {
        &self.delays_us[..self.count]
    }

    /// Adds a delay. If there is no space, the oldest delay is removed.
    fn push(&mut self, delay_us: u32) {
        if self.count == MAX_DELAYS {
            self.delays_us.rotate_left(1);
            self.count -= 1;
        }
        self.delays_us[self.count] = delay_us;
        self.count += 1;
    }

    /// Encodes the feedback.
    pub fn write(&self) -> Rider {
        let mut bytes = [0; HEAD + 4 * MAX_DELAYS];
        bytes[0] = VERSION;
        bytes[1..HEAD].copy_from_slice(&self.clock_us.to_be_bytes());
        for (slot, delay_us) in bytes[HEAD..].chunks_exact_mut(4).zip(self.delays_us()) {
            slot.copy_from_slice(&delay_us.to_be_bytes());
        }
        Rider::new(&bytes[..HEAD + 4 * self.count]).unwrap_or_default()
    }

    /// Decodes feedback; `None` if the bytes are not feedback of this version.
    pub fn read(bytes: &[u8]) -> Option<Feedback> {
        if *bytes.first()? != VERSION {
            return None;
        }
        let clock_us = word(bytes.get(1..HEAD)?)?;
        let mut feedback = Feedback { clock_us, ..Feedback::default() };
        for delay_us in bytes[HEAD..].chunks_exact(4).take(MAX_DELAYS).filter_map(word) {
            feedback.push(delay_us);
        }
        Some(feedback)
    }
}

fn word(bytes: &[u8]) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.try_into().ok()?))
}

/// The receiver of LEDBAT.
#[derive(Clone, Debug, Default)]
pub struct DelayMeter {
    since_ack: Feedback,
    latest_us: Option<i64>,
}

impl Receiver for DelayMeter {
    fn on_packet(&mut self, arrival: &Arrival<'_>) {
        let delay_us = arrival.now.signed_nanos_since(arrival.sent).div_euclid(1_000);
        self.latest_us = Some(delay_us);
        self.since_ack.push(delay_us as u32);
    }

    fn feedback(&mut self, now: Time) -> Rider {
        let feedback = Feedback { clock_us: micros(now), ..self.since_ack };
        self.since_ack = Feedback::default();
        feedback.write()
    }

    fn inspect(&self, out: &mut Inspect) {
        out.value("one_way_delay_ms", self.latest_us.map_or(f64::NAN, |delay_us| delay_us as f64 * 1e-3));
    }
}

/// Converts `now` to microseconds modulo 2³².
pub fn micros(now: Time) -> u32 {
    (now.as_nanos() / 1_000) as u32
}

#[cfg(test)]
mod tests {
    use airpace_core::{Bytes, Ecn};
    use proptest::prelude::*;

    use super::*;
    use crate::registry::DeviceFlows;

    fn arrive(meter: &mut DelayMeter, sent_us: u64, now_us: u64) {
        let (now, sent) = (Time::from_micros(now_us), Time::from_micros(sent_us));
        meter.on_packet(&Arrival {
            now,
            sent,
            number: 0,
            bytes: Bytes(1500),
            header: &[],
            device: DeviceFlows::default(),
            ecn: Ecn::NotEct,
        });
    }

    #[test]
    fn the_layout_never_changes() {
        let mut meter = DelayMeter::default();
        arrive(&mut meter, 1_000, 21_000);
        arrive(&mut meter, 9_000, 8_999);
        let bytes = meter.feedback(Time::from_micros(0x1_0000_0102));
        assert_eq!(bytes.as_bytes(), [1, 0, 0, 1, 2, 0, 0, 0x4E, 0x20, 255, 255, 255, 255]);
        assert_eq!(meter.feedback(Time::ZERO).as_bytes(), [1, 0, 0, 0, 0], "each delay is reported once");
    }

    #[test]
    fn the_newest_eight_delays_are_told() {
        let mut meter = DelayMeter::default();
        for delay_us in 1..=11 {
            arrive(&mut meter, 0, delay_us);
        }
        let feedback = Feedback::read(meter.feedback(Time::ZERO).as_bytes()).unwrap();
        assert_eq!(feedback.delays_us(), [4, 5, 6, 7, 8, 9, 10, 11]);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_and_reading_never_panics(
            clock_us: u32, delays in prop::collection::vec(any::<u32>(), 0..8),
            noise in prop::collection::vec(any::<u8>(), 0..47),
        ) {
            let mut written = Feedback { clock_us, ..Feedback::default() };
            delays.iter().for_each(|delay_us| written.push(*delay_us));
            prop_assert_eq!(Feedback::read(written.write().as_bytes()), Some(written));
            let _ = Feedback::read(&noise);
        }
    }
}
