//! Send schedules of packets: which packet is sent when.

use std::fmt;
use std::time::Duration;

use airpace_core::{Bytes, DeviceId, Direction, Rate, Rng, Streams, Time};

use crate::turn::MTU;

/// A packet of a schedule. Its number is its index in the schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Planned {
    /// Send time, relative to the start of the schedule.
    pub at: Time,
    /// The device that sends or receives the packet.
    pub device: DeviceId,
    /// Direction of the packet.
    pub direction: Direction,
    /// Size of the whole IP packet.
    pub bytes: Bytes,
}

/// Packets in order of send time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schedule {
    packets: Vec<Planned>,
    /// Number of packets that were requested with fewer than [`Schedule::MIN_BYTES`] and were padded to that size.
    pub padded: u64,
}

/// One direction of one device, for which a schedule is drawn, and the network's rate in this direction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Loaded {
    /// The device.
    pub device: DeviceId,
    /// The direction.
    pub direction: Direction,
    /// The rate that the network can carry.
    pub rate: Rate,
}

/// An error in a schedule file, with its line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotASchedule {
    /// Line number, counted from 1.
    pub line: usize,
    /// The error and its remedy.
    pub why: String,
}

/// Offset of the send time of a drawn packet within its millisecond.
///
/// Chosen: near the start. Traces and cells work in whole milliseconds, and a packet that is sent slightly late still
/// falls into its own millisecond.
const PLACE_IN_MS: Duration = Duration::from_micros(50);

/// Shares of time spent in a burst and in a pause; in the rest of the time, the rate is steady.
///
/// Chosen: queues fill and drain several times a second.
const BURST: f64 = 0.2;
const PAUSE: f64 = 0.2;

/// Minimum and maximum duration of a pause or of a steady rate, in ms.
///
/// Chosen: from a few subframes to longer than a round trip.
const STAY_MS: (f64, f64) = (40.0, 500.0);

/// Minimum and maximum of the steady rates, as shares of the network's rate.
///
/// Chosen: a third of the rates exceeds the network's rate and fills queues.
const SHARE: (f64, f64) = (0.4, 1.4);

/// Maximum size of a burst: as the time that the network needs to carry the burst, and as the number of packets.
///
/// Chosen: a program sends 20 packets in a fifth of a millisecond.
const BURST_LASTS: Duration = Duration::from_millis(150);
const BURST_PACKETS: u64 = 20;

/// Share of packets with the full size.
const FULL: f64 = 0.75;

/// Rate of an even schedule, as a share of the network's rate.
///
/// Chosen: a half, so that packets rarely queue behind others.
const EVEN_SHARE: f64 = 0.5;

/// Traffic pattern of a drawn schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Bursts, pauses, and rates below and above the network's rate. Packets are sent at the start of their milliseconds.
    Mixed,
    /// Evenly spaced packets of the full size, at half the network's rate. Packets are sent at any offset within a
    /// millisecond.
    Even,
}

impl Schedule {
    /// Minimum packet size of a schedule, in bytes: IP and UDP headers, and 8 bytes for the packet's number.
    pub const MIN_BYTES: u64 = 20 + 8 + 8;

    /// Maximum number of packets of a schedule: packet numbers have four bytes, and notes on all packets are kept in
    /// memory.
    pub const MAX_PACKETS: usize = 20_000_000;

    /// Draws a schedule of this kind for the given directions of devices.
    pub fn draw(kind: Kind, loads: &[Loaded], length: Duration, streams: &Streams) -> Schedule {
        let mut packets = vec![];
        for load in loads {
            let way = if load.direction == Direction::Downlink { "down" } else { "up" };
            let mut draws = streams.stream(&format!("schedule.device.{}.{way}", load.device.0));
            match kind {
                Kind::Mixed => draw_mixed(load, length, &mut draws, &mut packets),
                Kind::Even => draw_even(load, length, &mut draws, &mut packets),
            }
        }
        Schedule::of(packets, 0)
    }

    /// Keeps only the packets of one device, or of all, that are sent before `end`.
    pub fn cut(mut self, device: Option<DeviceId>, end: Time) -> Schedule {
        self.packets.retain(|packet| packet.at < end && device.is_none_or(|device| device == packet.device));
        self
    }

    /// Creates a schedule from packets in any order.
    pub fn of(mut packets: Vec<Planned>, padded: u64) -> Schedule {
        packets.sort_by_key(|packet| packet.at);
        Schedule { packets, padded }
    }

    /// Returns the packets, in order of send time.
    pub fn packets(&self) -> &[Planned] {
        &self.packets
    }

    /// Returns the send time of the last packet.
    pub fn length(&self) -> Duration {
        self.packets.last().map_or(Duration::ZERO, |packet| packet.at - Time::ZERO)
    }

    /// Parses a table of `ms,bytes,direction` with a header line, and optionally a column `device` (counted from 1).
    ///
    /// # Errors
    /// The first invalid line.
    pub fn parse(text: &str) -> Result<Schedule, NotASchedule> {
        let wrong = |line: usize, why: &str| NotASchedule { line: line + 1, why: why.to_owned() };
        let mut lines = text.lines().enumerate();
        let head = lines.next().map_or("", |(_, head)| head);
        let names: Vec<&str> = head.split(',').map(str::trim).collect();
        let place = |name: &str| names.iter().position(|known| *known == name);
        let (Some(ms), Some(bytes), Some(direction)) = (place("ms"), place("bytes"), place("direction"))
        else {
            return Err(wrong(0, "begin with a header that names `ms`, `bytes` and `direction`"));
        };
        let device = place("device");
        let (mut packets, mut padded) = (vec![], 0);
        for (number, line) in lines.filter(|(_, line)| !line.trim().is_empty()) {
            let cells: Vec<&str> = line.split(',').map(str::trim).collect();
            let cell = |place: usize| cells.get(place).copied().unwrap_or_default();
            let at_ms: f64 = cell(ms).parse().unwrap_or(f64::NAN);
            if !(0.0..=86_400_000.0).contains(&at_ms) {
                return Err(wrong(number, "`ms` is no time: give milliseconds from 0 to a day"));
            }
            let size = cell(bytes).parse::<u64>().ok().filter(|&size| size <= u64::from(MTU));
            let Some(size) = size else {
                return Err(wrong(number, "`bytes` is no size of a packet: give up to 1500"));
            };
            padded += u64::from(size < Schedule::MIN_BYTES);
            let direction = match cell(direction) {
                "down" => Direction::Downlink,
                "up" => Direction::Uplink,
                _ => return Err(wrong(number, "`direction` is neither `down` nor `up`")),
            };
            let index = match device {
                None => Some(0),
                Some(place) => cell(place).parse::<u16>().ok().and_then(|number| number.checked_sub(1)),
            };
            let Some(index) = index else {
                return Err(wrong(number, "`device` is no number of a device: they are counted from 1"));
            };
            if packets.len() == Schedule::MAX_PACKETS {
                return Err(wrong(number, "the schedule is too long: give a part of it"));
            }
            packets.push(Planned {
                at: Time::from_nanos((at_ms * 1e6).round() as u64),
                device: DeviceId(index),
                direction,
                bytes: Bytes(size.max(Schedule::MIN_BYTES)),
            });
        }
        match packets.is_empty() {
            true => Err(wrong(0, "there is no packet in it: give one line per packet after the header")),
            false => Ok(Schedule::of(packets, padded)),
        }
    }

    /// Returns the table that [`Schedule::parse`] reads.
    pub fn to_csv(&self) -> String {
        let mut text = "ms,bytes,direction,device\n".to_owned();
        for packet in &self.packets {
            let way = if packet.direction == Direction::Downlink { "down" } else { "up" };
            let (ms, bytes, device) = (packet.at.as_millis_f64(), packet.bytes.0, packet.device.0 + 1);
            text.push_str(&format!("{ms:.6},{bytes},{way},{device}\n"));
        }
        text
    }
}

fn draw_mixed(load: &Loaded, length: Duration, draws: &mut Rng, packets: &mut Vec<Planned>) {
    let end_ms = length.as_millis() as u64;
    let bytes_per_ms = load.rate.bytes_in(Duration::from_millis(1)).0 as f64;
    let longest_burst = (load.rate.bytes_in(BURST_LASTS).0 / 1500).clamp(2, BURST_PACKETS);
    let mut send = |draws: &mut Rng, ms: u64| {
        let least = Schedule::MIN_BYTES;
        let bytes =
            if draws.chance(FULL) { u64::from(MTU) } else { least + draws.below(u64::from(MTU) - least) };
        let at = Time::from_millis(ms) + PLACE_IN_MS;
        if packets.len() < Schedule::MAX_PACKETS {
            packets.push(Planned { at, device: load.device, direction: load.direction, bytes: Bytes(bytes) });
        }
        bytes as f64
    };
    // The schedule starts above the network's rate, so that queues fill.
    let (mut ms, mut share, mut stay_ms) = (0, SHARE.1, 100);
    loop {
        let mut credit = 0.0;
        for _ in 0..stay_ms {
            if ms >= end_ms {
                return;
            }
            credit += share * bytes_per_ms;
            while credit > 0.0 {
                credit -= send(draws, ms);
            }
            ms += 1;
        }
        let kind = draws.uniform();
        if kind < BURST {
            for _ in 0..1 + draws.below(longest_burst) {
                send(draws, ms);
            }
        }
        share = if kind < BURST + PAUSE { 0.0 } else { draws.range(SHARE.0, SHARE.1) };
        stay_ms = draws.range(STAY_MS.0, STAY_MS.1) as u64;
    }
}

fn draw_even(load: &Loaded, length: Duration, draws: &mut Rng, packets: &mut Vec<Planned>) {
    if load.rate.as_mbps() <= 0.0 {
        return;
    }
    let bytes = Bytes(MTU.into());
    let gap = load.rate.scaled(EVEN_SHARE).time_for(bytes).max(Duration::from_nanos(1));
    let mut at = Time::ZERO + gap.mul_f64(draws.uniform());
    while at < Time::ZERO + length && packets.len() < Schedule::MAX_PACKETS {
        packets.push(Planned { at, device: load.device, direction: load.direction, bytes });
        at += gap;
    }
}

impl fmt::Display for NotASchedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.why)
    }
}

impl std::error::Error for NotASchedule {}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn loaded(mbps: f64, direction: Direction) -> Loaded {
        Loaded { device: DeviceId(0), direction, rate: Rate::from_mbps(mbps) }
    }

    #[test]
    fn a_drawn_schedule_loads_both_ways_with_bursts_and_pauses_and_depends_on_the_seed_alone() {
        let loads = [loaded(20.0, Direction::Downlink), loaded(5.0, Direction::Uplink)];
        let draw = |seed| Schedule::draw(Kind::Mixed, &loads, Duration::from_secs(20), &Streams::new(seed));
        let schedule = draw(3);
        assert_eq!(schedule, draw(3));
        assert_ne!(schedule, draw(4));
        for load in loads {
            let own: Vec<_> =
                schedule.packets().iter().filter(|packet| packet.direction == load.direction).collect();
            let mbps = own.iter().map(|packet| packet.bytes.0 as f64).sum::<f64>() * 8e-6 / 20.0;
            let share = mbps / load.rate.as_mbps();
            assert!((0.4..1.3).contains(&share), "{share} of what the network carries");
            let gaps = own.windows(2).map(|pair| pair[1].at - pair[0].at);
            assert!(gaps.clone().max().unwrap() >= Duration::from_millis(40), "there are pauses");
            assert!(gaps.filter(Duration::is_zero).count() > 10, "there are bursts");
        }
        assert!(schedule.length() < Duration::from_secs(20));
    }

    #[test]
    fn an_even_schedule_sends_half_of_what_the_network_carries_at_any_place_in_the_millisecond() {
        let loads = [loaded(7.3, Direction::Downlink)];
        let schedule = Schedule::draw(Kind::Even, &loads, Duration::from_secs(20), &Streams::new(8));
        let packets = schedule.packets();
        let mbps = packets.iter().map(|packet| packet.bytes.0 as f64).sum::<f64>() * 8e-6 / 20.0;
        assert!((mbps / 3.65 - 1.0).abs() < 0.01, "{mbps} Mbit/s");
        let gaps: Vec<_> = packets.windows(2).map(|pair| pair[1].at - pair[0].at).collect();
        assert!(gaps.iter().all(|gap| *gap == gaps[0]));
        let late = packets.iter().filter(|packet| packet.at.as_nanos() % 1_000_000 >= 500_000).count();
        assert!((0.4..0.6).contains(&(late as f64 / packets.len() as f64)), "{late} of {}", packets.len());
    }

    #[test]
    fn a_schedule_is_cut_by_device_and_time() {
        let text = "ms,bytes,direction,device\n1,100,up,1\n2,100,up,2\n3,100,down,2\n4,100,up,2\n";
        let cut = |device, end_ms| Schedule::parse(text).unwrap().cut(device, Time::from_millis(end_ms));
        let second = Some(DeviceId(1));
        assert_eq!(cut(second, 4).packets().iter().map(|it| it.at.as_millis()).collect::<Vec<_>>(), [2, 3]);
        assert_eq!(cut(None, 3).packets().len(), 2);
        assert_eq!(cut(None, 5).packets().len(), 4);
    }

    #[test]
    fn what_is_no_schedule_is_told_with_its_line() {
        for (text, line, words) in [
            ("", 1, "header"),
            ("ms,bytes\n1,2\n", 1, "direction"),
            ("ms,bytes,direction\n", 1, "no packet"),
            ("ms,bytes,direction\n1,100,down\nx,100,up\n", 3, "no time"),
            ("ms,bytes,direction\n-1,100,up\n", 2, "no time"),
            ("ms,bytes,direction\n1,1501,up\n", 2, "up to 1500"),
            ("ms,bytes,direction\n1,100,left\n", 2, "neither"),
            ("ms,bytes,direction,device\n1,100,up,0\n", 2, "counted from 1"),
            ("ms,bytes,direction,device\n1,100,up\n", 2, "counted from 1"),
        ] {
            let error = Schedule::parse(text).unwrap_err();
            assert_eq!((error.line, error.why.contains(words)), (line, true), "{text:?}: {error}");
        }
    }

    #[test]
    fn columns_may_come_in_any_order_and_small_packets_grow() {
        let schedule = Schedule::parse("direction, ms ,bytes\nup,2.5,20\n\ndown,1,1500\n").unwrap();
        let [first, second] = schedule.packets() else { panic!("{schedule:?}") };
        assert_eq!((first.at, first.direction), (Time::from_millis(1), Direction::Downlink));
        assert_eq!((second.at, second.bytes), (Time::from_micros(2_500), Bytes(36)));
        assert_eq!(schedule.padded, 1);
    }

    proptest! {
        #[test]
        fn a_schedule_is_read_back(
            packets in proptest::collection::vec((0u64..60_000_000_000, 0u16..5, any::<bool>(), 36u64..=1500), 1..50),
        ) {
            let packets = packets.into_iter().map(|(at, device, is_up, bytes)| Planned {
                at: Time::from_nanos(at),
                device: DeviceId(device),
                direction: if is_up { Direction::Uplink } else { Direction::Downlink },
                bytes: Bytes(bytes),
            });
            let schedule = Schedule::of(packets.collect(), 0);
            prop_assert_eq!(Schedule::parse(&schedule.to_csv()), Ok(schedule));
        }

        #[test]
        fn no_text_makes_it_panic(text in "[msbytedircon,0-9.\n-]{0,200}") {
            let _ = Schedule::parse(&text);
        }
    }
}
