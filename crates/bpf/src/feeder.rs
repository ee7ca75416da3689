//! From a radio's reports to what the kernel is fed: the same that BISCAY's device, or PBE-CC's receiver, computes in the
//! simulator.

use std::time::Duration;

use airpace_cc::biscay::Tuning;
use airpace_cc::biscay::bandwidth::CellularBandwidth;
use airpace_cc::controller::Receiver;
use airpace_cc::pbe;
use airpace_cc::pbe::receiver::PbeReceiver;
use airpace_core::{Bytes, Direction};
use airpace_radio::RadioReport;

use crate::feed::Told;
use crate::twin::pbe_receiver::Cell;

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

/// Computes what a phone's radio could get, as PBE-CC's receiver does. What that sees in packets, programs in the kernel
/// see: `bpf/pbe_receiver.h`.
pub struct PbeFeeder {
    receiver: PbeReceiver,
    heard: u64,
}

impl PbeFeeder {
    /// No report has come yet.
    pub fn new(tuning: &pbe::Tuning) -> PbeFeeder {
        PbeFeeder { receiver: PbeReceiver::new(*tuning, Bytes(1500)), heard: 0 }
    }

    /// Reports that were of no use: they do not tell what everyone else got, or nothing of this phone's own.
    pub fn refused(&self) -> u64 {
        self.receiver.refused()
    }

    /// Averages over the round trip of the senders.
    pub fn set_rtprop(&mut self, rtprop: Duration) {
        self.receiver.set_rtprop(rtprop);
    }

    /// Takes in one report, which comes at `now` by the clock that the programs read. Returns how the cell is.
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
