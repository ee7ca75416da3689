//! From a radio's reports to what the kernel is fed: the same bandwidth that BISCAY's device computes in the simulator.

use airpace_cc::biscay::Tuning;
use airpace_cc::biscay::bandwidth::CellularBandwidth;
use airpace_core::Direction;
use airpace_radio::RadioReport;

use crate::feed::Told;

/// Adds up the grants of one device's uplink.
pub struct Feeder {
    bandwidth: CellularBandwidth,
}

impl Feeder {
    /// No report has come yet.
    pub fn new(tuning: &Tuning) -> Feeder {
        Feeder { bandwidth: CellularBandwidth::new(Direction::Uplink, tuning.determination) }
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
