//! Conversion of decoder events to radio reports in the order of time, for programs that need only the reports.

use airpace_phy::decoder::{Output, Reading};
use airpace_radio::fusion::Fused;
use airpace_radio::{CarrierId, Rnti};

use super::{CarrierEvent, DecodeEvent, PendingSubframes, Reports};

/// Creates reports from the events of a [`Decoding`](super::Decoding).
#[derive(Debug)]
pub struct ReportStream {
    /// Sample rate, and subframes that may still receive messages, by carrier.
    carriers: Vec<(f64, PendingSubframes)>,
    reports: Reports,
}

impl ReportStream {
    /// Creates a stream for carriers with these sample rates in Hz, at most 256. `own` is the followed user. Messages
    /// wait for evidence for at most `patience` subframes ([`Caution::patience`](airpace_phy::evidence::Caution)),
    /// which is the delay of the reports. Recordings wait for each other without a limit, live cells do not wait
    /// without a limit.
    pub fn new(rates_hz: &[f64], own: Option<Rnti>, patience: u64, are_live: bool) -> ReportStream {
        let carrier = |&rate_hz: &f64| (rate_hz, PendingSubframes::new(patience));
        ReportStream {
            carriers: rates_hz.iter().map(carrier).collect(),
            reports: Reports::new(rates_hz.len(), own, are_live),
        }
    }

    /// Processes an event, and calls `each` for the resulting reports.
    pub fn take(&mut self, event: CarrierEvent, mut each: impl FnMut(Fused)) {
        let CarrierEvent { carrier, event } = event;
        let (_, pending) = &mut self.carriers[usize::from(carrier.0)];
        let mut whole = vec![];
        let mut has_ended = false;
        match event {
            DecodeEvent::Shift { from, shift } => self.reports.shift(carrier, from, shift.subframes),
            DecodeEvent::Leap { leap, shift: Some(shift) } => {
                self.reports.shift(carrier, leap.index, shift.subframes);
            }
            DecodeEvent::Heard(output) => match *output {
                Output::Subframe(reading) => {
                    for found in reading.found.iter().chain(&reading.late) {
                        self.reports.hear(carrier, found);
                    }
                    pending.push(reading, &mut whole);
                }
                Output::Late(late) => {
                    late.iter().for_each(|found| self.reports.hear(carrier, found));
                    pending.add(late);
                }
                Output::Locked(_) | Output::Lost | Output::Moved(_) => {}
            },
            DecodeEvent::Stalled => self.reports.stall(carrier),
            DecodeEvent::End(_) => {
                self.reports.leave(carrier);
                whole.extend(pending.finish());
                has_ended = true;
            }
            DecodeEvent::Leap { shift: None, .. }
            | DecodeEvent::Gap
            | DecodeEvent::Flaw(_)
            | DecodeEvent::Cost(_)
            | DecodeEvent::Back => {}
        }
        for reading in whole {
            self.push(carrier, &reading);
        }
        if has_ended {
            self.reports.end(carrier);
        }
        std::iter::from_fn(|| self.reports.pop()).for_each(&mut each);
    }

    /// Ends the input, and calls `each` for the remaining reports, complete or not.
    pub fn finish(mut self, each: impl FnMut(Fused)) {
        std::iter::from_fn(|| self.reports.flush()).for_each(each);
    }

    fn push(&mut self, carrier: CarrierId, reading: &Reading) {
        let (rate_hz, _) = self.carriers[usize::from(carrier.0)];
        let at_ms = reading.sample as f64 * 1e3 / rate_hz;
        self.reports.push(carrier, reading, at_ms, |rnti| rnti);
    }
}
