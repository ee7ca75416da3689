//! Converts a radio's reports into records of the kernel's feed. The computation is the same as in BISCAY's device or
//! PBE-CC's receiver in the simulator.

use std::time::Duration;

use airpace_cc::biscay::Tuning;
use airpace_cc::biscay::bandwidth::CellularBandwidth;
use airpace_cc::controller::Receiver;
use airpace_cc::pbe;
use airpace_cc::pbe::receiver::PbeReceiver;
use airpace_core::{Bytes, Direction};
use airpace_radio::RadioReport;

use crate::feed::GrantRecord;
use crate::twin::pbe_receiver::Cell;

/// Computes a device's bandwidth from the grants to it.
pub struct Feeder {
    bandwidth: CellularBandwidth,
}

impl Feeder {
    /// A feeder before the first report. `direction` is the downlink for the relay (`biscay@window`), otherwise the
    /// uplink.
    pub fn new(direction: Direction, tuning: &Tuning) -> Feeder {
        Feeder { bandwidth: CellularBandwidth::new(direction, tuning.determination) }
    }

    /// Processes one report. Returns the record for the kernel; `None` if the report contained no grants of the device.
    pub fn report(&mut self, report: &RadioReport) -> Option<GrantRecord> {
        self.bandwidth.on_report(report).then(|| GrantRecord {
            bandwidth: self.bandwidth.get(),
            burst: self.bandwidth.burst(),
            share: None,
        })
    }
}

/// Computes the capacity of a phone's cell, as PBE-CC's receiver does. The packets are processed by programs in the
/// kernel (`bpf/pbe_receiver.h`).
pub struct PbeFeeder {
    receiver: PbeReceiver,
    heard: u64,
}

impl PbeFeeder {
    /// A feeder before the first report.
    pub fn new(tuning: &pbe::Tuning) -> PbeFeeder {
        PbeFeeder { receiver: PbeReceiver::new(*tuning, Bytes(1500)), heard: 0 }
    }

    /// Number of unusable reports: such reports lack the grants of other devices, or contain no information about this
    /// phone.
    pub fn refused(&self) -> u64 {
        self.receiver.refused()
    }

    /// Sets the averaging time to the senders' round-trip time.
    pub fn set_rtprop(&mut self, rtprop: Duration) {
        self.receiver.set_rtprop(rtprop);
    }

    /// Processes one report, received at `now` by the clock that the programs read. Returns the state of the cell.
    pub fn report(&mut self, report: &RadioReport, now: u64) -> Cell {
        let before = self.receiver.refused();
        self.receiver.on_radio(report);
        let measured = self.receiver.measured(report.time);
        if self.receiver.refused() == before {
            self.heard = now;
        }
        Cell::new(&measured, self.receiver.explained(), self.heard)
    }
}
