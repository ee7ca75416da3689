//! Packets that leave a cell.

use std::collections::VecDeque;

use airpace_core::{Packet, Time};
use airpace_event::Fate;

use crate::link::Exit;

/// Packets that leave the cell, in order of time.
#[derive(Debug, Default)]
pub(super) struct Exits {
    pub(super) exits: VecDeque<Exit>,
}

impl Exits {
    /// Adds a packet that leaves at `time`. On carriers with different slots, blocks that start together end at different
    /// times. A packet does not leave before earlier packets of its device.
    pub(super) fn push(&mut self, time: Time, packet: Packet, fate: Fate) {
        let is_later = |exit: &&Exit| exit.time > time;
        let later = self.exits.iter().rev().take_while(is_later);
        let time = later
            .filter(|exit| exit.packet.device == packet.device)
            .map(|exit| exit.time)
            .max()
            .unwrap_or(time);
        let place = self.exits.partition_point(|exit| exit.time <= time);
        self.exits.insert(place, Exit { time, packet, fate });
    }
}
