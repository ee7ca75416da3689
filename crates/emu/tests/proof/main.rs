//! Tests that real time and virtual time are the same network.

mod handshake;
mod identity;
mod scheduled;
mod turning;
mod worlds;

use airpace_emu::World;
use airpace_emu::record::Record;
use airpace_emu::replay::{Departure, Reader, Replayed, replay};
use airpace_event::Event;

/// The departures of a replay.
#[derive(Default)]
struct Departures(Vec<Departure>);

impl Reader for Departures {
    fn departed(&mut self, departure: &Departure) {
        self.0.push(*departure);
    }

    fn told(&mut self, _: &Event<'_>) {}
}

/// Replays the record in virtual time.
fn replayed(world: &World, record: &mut Record) -> (Replayed, Vec<Departure>) {
    let mut departures = Departures::default();
    let replayed = replay(world, record, &mut departures).expect("a record");
    (replayed, departures.0)
}
