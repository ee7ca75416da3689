//! From a radio's reports to what the kernel is fed: the same that BISCAY's device, or PBE-CC's receiver, computes in the
//! simulator.

use airpace_cc::biscay::Tuning;
use airpace_cc::biscay::bandwidth::CellularBandwidth;
use airpace_cc::controller::Receiver;
use airpace_cc::pbe;
use airpace_cc::pbe::feedback::Feedback;
use airpace_cc::pbe::receiver::PbeReceiver;
use airpace_core::{Bytes, Direction};
use airpace_radio::RadioReport;

use crate::feed::Told;

/// Adds up the grants of one device.
pub struct Feeder {
    bandwidth: CellularBandwidth,
}

impl Feeder {
    /// No report has come yet. The relay needs the downlink, and else the uplink counts.
    pub fn new(direction: Direction, tuning: &Tuning) -> Feeder {
        Feeder { bandwidth: CellularBandwidth::new(direction, tuning.determination) }
    }

    /// Takes in one report. Returns what to tell the kernel, if the report was about the device's own grants.
    pub fn report(&mut self, report: &RadioReport) -> Option<Told> {
        self.bandwidth.on_report(report).then(|| Told {
            bandwidth: self.bandwidth.get(),
            burst: self.bandwidth.burst(),
            share: None,
        })
    }
}

/// Computes what a phone's radio could get, as PBE-CC's receiver does.
///
/// Differs: that also sees packets, and finds by their delays whether the bottleneck is elsewhere. No report shows that, so
/// the bit is never set here. A sender that is told too much finds that itself: it compares what is delivered.
pub struct PbeFeeder {
    receiver: PbeReceiver,
}

impl PbeFeeder {
    /// No report has come yet.
    pub fn new(tuning: &pbe::Tuning) -> PbeFeeder {
        PbeFeeder { receiver: PbeReceiver::new(*tuning, Bytes(1500)) }
    }

    /// Takes in one report. Returns what to tell the senders.
    pub fn report(&mut self, report: &RadioReport) -> Option<Feedback> {
        self.receiver.on_radio(report);
        Feedback::read(self.receiver.feedback(report.time).as_bytes())
    }
}
