//! Tests of two runs with the same packets, except that a few packets arrive a millisecond later in the second run, as
//! can happen in the emulator. The tests check the effects on the other packets, and on the blocks of the other
//! subframes.
//!
//! Random draws are not the only effect of the past. The outer loop of link adaptation learns from every block, so a
//! difference between two runs lasts for a long time. In tests that are sensitive to such differences, the outer loop
//! is off.

use std::collections::BTreeMap;

use airpace_core::Direction;
use airpace_radio::Dci;

use super::super::channel::fading::FadingProfile;
use super::super::config::{BackgroundConfig, Hour};
use super::*;

const DEVICES: u16 = 3;
const SECONDS: u64 = 40;

/// Flow and number of a packet.
type Name = (u16, u64);

/// Conditions of radio and cell.
#[derive(Clone, Copy, Debug)]
struct Conditions {
    fading: FadingProfile,
    policy: Policy,
    /// Whether there are background users.
    is_busy: bool,
    /// Whether link adaptation learns from lost blocks.
    learns: bool,
}

impl Conditions {
    fn cell(self) -> CellConfig {
        let hour = self.is_busy.then_some(Hour::Busy);
        let mut config = CellConfig {
            scheduler: self.policy,
            background: BackgroundConfig { hour, ..BackgroundConfig::default() },
            ..CellConfig::default()
        };
        config.adaptation.outer_loop = self.learns;
        if self.is_busy {
            config.uplink.background.load = 0.1;
        }
        config
    }

    fn phones(self) -> Vec<DeviceRadioConfig> {
        let phone = |sinr_db| {
            let channel = ChannelConfig {
                sinr_db: Some(sinr_db),
                fading: self.fading,
                speed_kmh: 3.0,
                ..ChannelConfig::default()
            };
            DeviceRadioConfig { channel, ..DeviceRadioConfig::default() }
        };
        [12.0, 16.0, 22.0].map(phone).to_vec()
    }
}

/// A direction of the cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Down,
    Up,
}

/// Packets of all phones, with random intervals between the packets of a phone.
fn arrivals(mean_interval_ms: f64) -> Vec<(Time, Packet)> {
    let mut rng = Streams::new(5).stream("arrivals");
    let mut packets = Vec::new();
    for device in 0..DEVICES {
        let mut at = Time::from_millis(1);
        for number in 0.. {
            at += std::time::Duration::from_nanos((rng.exponential(mean_interval_ms) * 1e6) as u64);
            if at > Time::from_secs(SECONDS) {
                break;
            }
            let packet = Packet {
                flow: FlowId(device),
                device: DeviceId(device),
                number,
                bytes: Bytes(1500),
                sent: at,
                ecn: Ecn::NotEct,
            };
            packets.push((at, packet));
        }
    }
    packets.sort_by_key(|&(at, packet)| (at, packet.flow));
    packets
}

/// The same packets, but the packets selected by `is_late` arrive a millisecond later.
fn delayed(packets: &[(Time, Packet)], is_late: impl Fn(Name) -> bool) -> Vec<(Time, Packet)> {
    let late = std::time::Duration::from_millis(1);
    let mut packets: Vec<(Time, Packet)> = packets
        .iter()
        .map(|&(at, packet)| (if is_late(name(&packet)) { at + late } else { at }, packet))
        .collect();
    packets.sort_by_key(|&(at, packet)| (at, packet.flow));
    packets
}

fn name(packet: &Packet) -> Name {
    (packet.flow.0, packet.number)
}

/// Runs a cell with these packets, and calls `look` after every subframe. Returns the exit time of each packet.
fn run(
    conditions: Conditions,
    way: Way,
    packets: &[(Time, Packet)],
    mut look: impl FnMut(&mut Cell),
) -> BTreeMap<Name, Time> {
    let mut cell = super::super::CellPlan::new(&conditions.cell(), &conditions.phones())
        .expect("a valid configuration")
        .build(&Streams::new(1));
    cell.set_recording(true);
    (0..DEVICES).for_each(|device| cell.set_listening(DeviceId(device), true));
    let mut packets = packets.iter().copied().peekable();
    let mut left = BTreeMap::new();
    let end = Time::from_secs(SECONDS + 2);
    let mut subframes = 0;
    loop {
        let arrival = packets.peek().map_or(Time::NEVER, |&(at, _)| at);
        let now = cell.poll_timeout().expect("a cell always has a next subframe").min(arrival);
        if now >= end {
            return left;
        }
        while let Some(exit) = cell.pop(now) {
            left.insert(name(&exit.packet), exit.time);
        }
        while let Some(exit) = cell.pop_uplink(now) {
            left.insert(name(&exit.packet), exit.time);
        }
        if cell.subframes_run() != subframes {
            subframes = cell.subframes_run();
            look(&mut cell);
        }
        while let Some((at, packet)) = packets.next_if(|&(at, _)| at <= now) {
            match way {
                Way::Down => cell.push(at, packet),
                Way::Up => cell.push_uplink(at, packet),
            }
        }
    }
}

/// The absolute differences in ms between two runs' departures of the packets that were not late, in order of size.
fn differences_ms(
    one: &BTreeMap<Name, Time>,
    other: &BTreeMap<Name, Time>,
    is_late: impl Fn(Name) -> bool,
) -> Vec<f64> {
    assert_eq!(one.len(), other.len(), "all packets arrive in both runs");
    let mut differences: Vec<f64> = one
        .iter()
        .filter(|(name, _)| !is_late(**name))
        .map(|(name, at)| (at.as_secs_f64() - other[name].as_secs_f64()).abs() * 1e3)
        .collect();
    differences.sort_by(f64::total_cmp);
    differences
}

#[test]
fn if_a_packet_in_a_thousand_comes_a_millisecond_later_the_others_leave_when_they_did() {
    let draws = Streams::new(6).draws("late");
    let is_late = |(flow, number): Name| draws.at(flow.into(), number).chance(0.001);
    // A device that sends rarely requests each grant separately. A device that sends continuously gets its grants from
    // the reports in its blocks, so a difference between two runs lasts for a long time, as in the outer loop.
    for (way, mean_interval_ms) in [(Way::Down, 8.0), (Way::Up, 32.0)] {
        let packets = arrivals(mean_interval_ms);
        let late = packets.iter().filter(|(_, packet)| is_late(name(packet))).count();
        assert!(late > 2, "only {late} packets are late");
        let with_delays = delayed(&packets, is_late);
        for fading in [FadingProfile::Flat, FadingProfile::Epa, FadingProfile::Eva] {
            for policy in [Policy::ProportionalFair, Policy::RoundRobin] {
                for is_busy in [false, true] {
                    let conditions = Conditions { fading, policy, is_busy, learns: false };
                    let one = run(conditions, way, &packets, |_| {});
                    let other = run(conditions, way, &with_delays, |_| {});
                    let differences = differences_ms(&one, &other, is_late);
                    let share = |rank: f64| differences[((differences.len() - 1) as f64 * rank) as usize];
                    let (p99, p999) = (share(0.99), share(0.999));
                    println!("{conditions:?} {way:?}, {late} late: p99 {p99:.1} ms, p99.9 {p999:.1} ms");
                    assert!(p99 <= 1.0 + 1e-6, "{conditions:?} {way:?}: {p99} ms at the 99th percentile");
                }
            }
        }
    }
}

/// Whether each first transmission of a block was received, by subframe and description: owner, PRBs, MCS.
type Outcomes = BTreeMap<(u64, String), bool>;

fn downlink_outcomes(conditions: Conditions, packets: &[(Time, Packet)]) -> Outcomes {
    let mut outcomes = Outcomes::new();
    run(conditions, Way::Down, packets, |cell| {
        while let Some((device, report)) = cell.pop_report(Time::from_millis(cell.subframes_run())) {
            let own = report.own.expect("a device's own side");
            let is_own = |dci: &&Dci| dci.rnti == own.rnti && dci.direction == Direction::Downlink;
            let first = report.dcis.iter().find(|dci| is_own(dci) && !dci.is_retransmission());
            if let (Some(dci), Some(decoded)) = (first, own.decoded) {
                let what = format!("{device:?} {:?} {:?}", dci.prbs, dci.mcs);
                outcomes.insert((report.slot.index, what), decoded);
            }
        }
    });
    outcomes
}

fn uplink_outcomes(conditions: Conditions, packets: &[(Time, Packet)]) -> Outcomes {
    let mut outcomes = Outcomes::new();
    run(conditions, Way::Up, packets, |cell| {
        let next = cell.subframes_run();
        for block in cell.uplink.due_in(next) {
            // A lost block is retransmitted eight subframes later on the same PRBs.
            let what = format!("{:?} {:?} {}", block.owner, block.prbs, block.mcs);
            match block.transmissions {
                0 => _ = outcomes.insert((next, what), true),
                1 => _ = outcomes.insert((next - 8, what), false),
                _ => {}
            }
        }
    });
    outcomes
}

#[test]
fn the_luck_of_a_subframe_does_not_depend_on_what_was_sent_before() {
    let packets = arrivals(3.0);
    let is_late = |(_, number): Name| number < 3;
    let with_delays = delayed(&packets, is_late);
    for fading in [FadingProfile::Flat, FadingProfile::Epa] {
        for outcomes in [downlink_outcomes, uplink_outcomes] {
            let conditions =
                Conditions { fading, policy: Policy::ProportionalFair, is_busy: true, learns: true };
            let (one, other) = (outcomes(conditions, &packets), outcomes(conditions, &with_delays));
            let is_later = |((subframe, _), _): &(&(u64, String), &bool)| *subframe > 1_000;
            let common: Vec<(bool, bool)> = one
                .iter()
                .filter(is_later)
                .filter_map(|(block, received)| Some((*received, *other.get(block)?)))
                .collect();
            let lost = common.iter().filter(|(received, _)| !received).count();
            let differ = common.iter().filter(|(one, other)| one != other).count();
            println!(
                "{fading:?}: {} of {} blocks in common, {lost} lost, {differ} differ",
                common.len(),
                one.len()
            );
            assert!(common.len() > 5_000 && lost > 50, "{} blocks in common, {lost} lost", common.len());
            assert_eq!(differ, 0, "{fading:?}: so many of {} equal blocks had other luck", common.len());
        }
    }
}
