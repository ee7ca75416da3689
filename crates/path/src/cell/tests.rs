//! Tests of a whole cell.

use airpace_core::{Bytes, DeviceId, Ecn, FlowId, Packet, Rate, Streams, Time};
use airpace_event::{Fate, Owner};

use super::channel::ChannelConfig;
use super::config::Policy;
use super::{Cell, CellConfig, DeviceRadioConfig};
use crate::link::{Exit, Link};

mod background;
mod blockage;
mod carriers;
mod dual_connectivity;
mod lena;
mod listening;
mod luck;
mod nr;
mod properties;
mod radio;
mod uplink;

/// A cell with constant-rate sources, and the packets that left the cell.
struct Bench {
    cell: Cell,
    sources: Vec<Source>,
    /// Packets that left the cell, with their fate.
    exits: Vec<Exit>,
}

/// A source of packets of one size at a constant rate for one device.
struct Source {
    flow: u16,
    device: u16,
    bytes: u64,
    rate: Rate,
    from: Time,
    until: Time,
    number: u64,
}

impl Source {
    fn saturating(device: u16, bytes: u64) -> Source {
        Source::new(device, bytes, Rate::from_mbps(200.0), Time::ZERO, Time::NEVER)
    }

    fn new(device: u16, bytes: u64, rate: Rate, from: Time, until: Time) -> Source {
        Source { flow: 0, device, bytes, rate, from, until, number: 0 }
    }

    fn poll_timeout(&self) -> Time {
        let at = self.from + self.rate.time_for(Bytes(self.bytes * self.number));
        if at < self.until { at } else { Time::NEVER }
    }

    fn packet(&mut self, now: Time) -> Packet {
        self.number += 1;
        Packet {
            flow: FlowId(self.flow),
            device: DeviceId(self.device),
            number: self.number - 1,
            bytes: Bytes(self.bytes),
            sent: now,
            ecn: Ecn::NotEct,
        }
    }
}

impl Bench {
    fn new(config: &CellConfig, devices: &[DeviceRadioConfig], sources: Vec<Source>) -> Bench {
        Bench::with_seed(config, devices, sources, 1)
    }

    fn with_seed(
        config: &CellConfig,
        devices: &[DeviceRadioConfig],
        mut sources: Vec<Source>,
        seed: u64,
    ) -> Bench {
        let cell =
            super::CellPlan::new(config, devices).expect("a valid configuration").build(&Streams::new(seed));
        for (flow, source) in (0..).zip(&mut sources) {
            source.flow = flow;
        }
        Bench { cell, sources, exits: Vec::new() }
    }

    /// Runs the cell until `end`, and calls `look` after every subframe.
    fn run(&mut self, end: Time, mut look: impl FnMut(&mut Cell)) {
        let mut subframes = self.cell.subframes_run();
        loop {
            let source = self.sources.iter_mut().min_by_key(|source| source.poll_timeout());
            let arrival = source.as_ref().map_or(Time::NEVER, |source| source.poll_timeout());
            let deadline = self.cell.poll_timeout().expect("a cell always has a next subframe");
            let now = deadline.min(arrival);
            if now >= end {
                return;
            }
            while let Some(exit) = self.cell.pop(now) {
                self.exits.push(exit);
            }
            if self.cell.subframes_run() != subframes {
                subframes = self.cell.subframes_run();
                look(&mut self.cell);
            }
            if let Some(source) = source.filter(|_| arrival == now) {
                let packet = source.packet(now);
                self.cell.push(now, packet);
            }
        }
    }

    /// Total size of the pushed packets, and of the packets that have left the cell or are still in it.
    fn bytes_in_and_out(&self) -> (u64, u64) {
        let pushed = self.sources.iter().map(|source| source.number * source.bytes).sum();
        let ended: u64 = self.exits.iter().map(|exit| exit.packet.bytes.0).sum();
        let about_to_end =
            self.cell.over.exits.iter().chain(&self.cell.refused).map(|exit| exit.packet.bytes.0);
        let held = (0..self.cell.devices).map(|device| self.cell.device(DeviceId(device as u16)).held().0);
        (pushed, ended + about_to_end.sum::<u64>() + held.sum::<u64>())
    }

    /// Delivered packets of a device, with their one-way delay in ms.
    fn delays_ms(&self, device: u16) -> Vec<(Packet, f64)> {
        let own = self.exits.iter().filter(|exit| exit.packet.device == DeviceId(device));
        let delivered = own.filter(|exit| exit.fate == Fate::Delivered);
        delivered.map(|exit| (exit.packet, (exit.time - exit.packet.sent).as_secs_f64() * 1e3)).collect()
    }

    /// Goodput of a device between two times in Mbit/s, with `payload` bytes per packet.
    fn goodput_mbps(&self, device: u16, payload: u64, from: Time, until: Time) -> f64 {
        let arrived = self.exits.iter().filter(|exit| {
            exit.fate == Fate::Delivered
                && exit.packet.device == DeviceId(device)
                && (from..until).contains(&exit.time)
        });
        arrived.count() as f64 * payload as f64 * 8.0 / (until - from).as_secs_f64() / 1e6
    }
}

fn device(sinr_db: f64) -> DeviceRadioConfig {
    let channel = ChannelConfig { sinr_db: Some(sinr_db), ..ChannelConfig::default() };
    DeviceRadioConfig { channel, ..DeviceRadioConfig::default() }
}
