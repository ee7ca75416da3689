//! Handshakes before a run: as in a simulation, the network starts with the first data packet.
//!
//! Until then, each packet crosses a separate network that starts when the packet arrives. A handshake therefore takes as
//! long as the first data packet will, and the connections have measured the path's RTT before the run starts.

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use airpace_core::{Bytes, DeviceId, Direction, Ecn, Time};
use airpace_event::Fate;
use airpace_path::Network;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::{Interfaces, read};
use crate::crossing::{Arrival, End, Watcher, World};
use crate::ip;
use airpace_rt::clock::Clock;

/// Maximum size of a handshake packet, in bytes: IPv6 header, and TCP header with the maximum length of options.
///
/// Source: RFC 8200 §3, RFC 9293 §3.1
const MAX_HANDSHAKE_BYTES: usize = 40 + 60;

/// The outcome of a packet in a network that carries only this packet; of the first copy if there are several.
#[derive(Default)]
struct Ended(Option<End>);

impl Watcher<()> for Ended {
    fn ended(&mut self, end: End, (): &()) {
        self.0 = self.0.or(Some(end));
    }

    fn radio(&mut self, _: Time, _: &mut Network<(), ()>) {}
}

/// Carries handshakes of the first device until a data packet arrives from the far side. Returns the length of this
/// packet in `room`; `None` if the run is stopped before.
pub(super) fn until_data(
    ports: &Interfaces,
    world: &World,
    room: &mut [u8],
    stop: &AtomicBool,
) -> Option<usize> {
    let device = &ports.devices.first()?.1;
    let mut lost = 0;
    while !stop.load(Ordering::Relaxed) {
        let mut waiting = [PollFd::new(device, PollFlags::IN), PollFd::new(&ports.far, PollFlags::IN)];
        let timeout = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
        let _ = poll(&mut waiting, Some(&timeout));
        for (direction, from, mut to) in
            [(Direction::Uplink, device, &ports.far), (Direction::Downlink, &ports.far, device)]
        {
            let Some(length) = read(from, room) else { continue };
            if ip::parse(&room[..length]).is_err() {
                continue;
            }
            if direction == Direction::Downlink && length > MAX_HANDSHAKE_BYTES {
                return Some(length);
            }
            let came = Clock::start();
            let Some(takes) = takes(world, lost, direction, length) else {
                lost += 1;
                continue;
            };
            std::thread::sleep(takes.saturating_sub(came.now() - Time::ZERO));
            // The sender retransmits a packet that the interface does not accept.
            let _ = to.write(&room[..length]);
        }
    }
    None
}

/// Returns the one-way delay of a packet that starts a network, after `lost` earlier packets were lost; `None` if this
/// packet is lost too. Each loss changes the seed of the random numbers: with an unchanged seed, every retransmission
/// would be lost again.
fn takes(world: &World, lost: u64, direction: Direction, length: usize) -> Option<Duration> {
    let world = World { seed: world.seed.wrapping_add(lost), ..world.clone() };
    let mut crossing = world.begin::<()>();
    let arrival = Arrival { device: DeviceId(0), direction, bytes: Bytes(length as u64), ecn: Ecn::NotEct };
    let mut ended = Ended::default();
    crossing.push(Time::ZERO, arrival, (), &mut ended);
    while ended.0.is_none() && crossing.poll_timeout() < Time::NEVER {
        crossing.turn(crossing.poll_timeout(), &mut ended);
    }
    ended.0.filter(|end| end.fate == Fate::Delivered).map(|end| end.at - Time::ZERO)
}
