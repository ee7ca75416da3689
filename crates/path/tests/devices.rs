//! Tests of the network of whole devices, as used by an emulator: one flow per device, with data in both directions.

use std::sync::Arc;

use airpace_core::{Bytes, DeviceId, Direction, Ecn, FlowId, Packet, Rate, Streams, Time};
use airpace_event::Fate;
use airpace_path::cell::{CellConfig, DeviceRadioConfig};
use airpace_path::cellular::{CellularConfig, CellularLink};
use airpace_path::network::{
    ACK_BYTES, CellularPlan, DATA_BYTES, FlowConfig, LastHopPlan, Load, Network, NetworkConfig, NetworkPlan,
    Output, TracePlan,
};
use airpace_path::queue::QueueConfig;
use airpace_path::trace::{Trace, TraceConfig, Trains};
use airpace_path::wire::WireConfig;
use proptest::prelude::*;

const DOWN: FlowConfig = FlowConfig {
    device: DeviceId(0),
    direction: Direction::Downlink,
    acks_cross_cell: false,
    crosses_internet: true,
    crosses_last_hop: true,
    has_plain_wires: false,
    rtt_ms: 60.0,
    data_bytes: DATA_BYTES,
};
const UP: FlowConfig = FlowConfig { direction: Direction::Uplink, ..DOWN };

fn cell(devices: usize) -> LastHopPlan {
    LastHopPlan::cell(&CellConfig::default(), &vec![DeviceRadioConfig::default(); devices]).expect("a cell")
}

fn every_ms(gap: u64) -> Arc<Trace> {
    Arc::new(Trace::from_times_ms((1..=20).map(|chance| gap * chance).collect()).expect("a trace"))
}

/// A cellular link with a base delay of 12 ms downlink and 15 ms uplink, trains of two packets, and the opportunities
/// of [`trace`].
fn cellular() -> LastHopPlan {
    let link = |delay_ms: u64, gap| {
        let text = format!("0 {delay_ms} 0 5\n1000 {delay_ms} 0 5\n");
        let trains = Arc::new(Trains::parse(text.as_bytes()).expect("trains"));
        let config = CellularConfig { opportunity_bytes: 1504, ..CellularConfig::default() };
        CellularLink::new(trains, every_ms(gap), Arc::default(), &config).expect("a link")
    };
    LastHopPlan::Cellular(Box::new(CellularPlan::new(link(12, 1), link(15, 2))))
}

/// A trace with one opportunity per millisecond downlink and, with `back`, one per 2 ms uplink.
fn trace(back: bool) -> LastHopPlan {
    let config = TraceConfig::default();
    let plan = TracePlan::new(every_ms(1), None, Direction::Downlink, true, &config).expect("a plan");
    let plan = if back { plan.with_back(every_ms(2), &config).expect("a plan") } else { plan };
    LastHopPlan::Trace(Box::new(plan))
}

fn internet(rate_mbps: f64) -> Option<QueueConfig> {
    Some(QueueConfig { rate_mbps, ..QueueConfig::default() })
}

struct World {
    internet: Option<QueueConfig>,
    last_hop: LastHopPlan,
    devices: usize,
    flows: Vec<FlowConfig>,
    forward: WireConfig,
    reverse: WireConfig,
}

impl World {
    fn new(last_hop: LastHopPlan, flows: &[FlowConfig]) -> World {
        let (forward, reverse) = Default::default();
        World { internet: None, last_hop, devices: 1, flows: flows.to_vec(), forward, reverse }
    }

    fn plan(&self) -> NetworkPlan {
        NetworkPlan::new(NetworkConfig {
            forward: &self.forward,
            reverse: &self.reverse,
            internet: self.internet.as_ref(),
            last_hop: self.last_hop.clone(),
            devices: self.devices,
            flows: self.flows.clone(),
        })
        .expect("a plan")
    }

    /// The network of the devices.
    fn build(&self, seed: u64) -> Network<u64, u64> {
        let plan = self.plan().for_devices().expect("a plan");
        Network::new(&plan, &(0..self.devices).collect::<Vec<_>>(), &Streams::new(seed))
    }
}

/// A packet of a device in this direction.
struct Sent {
    at: Time,
    device: u16,
    direction: Direction,
    bytes: Bytes,
}

/// Sends the packets, which are in order of time. Returns, for each packet, the time at which it left the network and
/// its fate.
fn cross(network: &mut Network<u64, u64>, sent: &[Sent], end: Time) -> Vec<Option<(Time, Fate)>> {
    let mut out = vec![None; sent.len()];
    let mut numbers = vec![[0; 2]; sent.iter().map(|it| usize::from(it.device) + 1).max().unwrap_or(0)];
    let mut next = 0;
    loop {
        let sends_at = sent.get(next).map_or(Time::NEVER, |sent| sent.at);
        let now = network.poll_timeout().min(sends_at);
        if now >= end {
            return out;
        }
        while let Some(output) = network.pop(now) {
            let Output::Ended(journey) = output else { continue };
            let (Load::Data(&index) | Load::Ack(&index)) = journey.load;
            assert_eq!(journey.packet.bytes, sent[index as usize].bytes, "packet {index}");
            assert_eq!(out[index as usize].replace((now, journey.fate)), None, "packet {index} came twice");
        }
        while let Some(packet) = sent.get(next).filter(|packet| packet.at == now) {
            let flow = FlowId(packet.device);
            let is_data = network.direction_of_data(flow) == packet.direction;
            let number = &mut numbers[usize::from(packet.device)][usize::from(is_data)];
            let (device, bytes, ecn) = (DeviceId(packet.device), packet.bytes, Ecn::NotEct);
            let load = if is_data { Load::Data(next as u64) } else { Load::Ack(next as u64) };
            network.push(now, Packet { flow, device, number: *number, bytes, sent: now, ecn }, load);
            *number += 1;
            next += 1;
        }
    }
}

#[test]
fn each_device_has_the_way_of_its_first_flow() {
    let other = |device| FlowConfig { device: DeviceId(device), rtt_ms: 90.0, ..UP };
    let flows = [FlowConfig { rtt_ms: 70.0, ..DOWN }, other(2), FlowConfig { rtt_ms: 50.0, ..UP }];
    let world = World { devices: 3, ..World::new(cell(3), &flows) };
    let network = world.build(1);
    let round_trip = |device| {
        let (flow, data) = (FlowId(device), network.direction_of_data(FlowId(device)));
        let there = network.propagation_delay(flow, data, DATA_BYTES);
        let back = network.propagation_delay(flow, data.opposite(), ACK_BYTES);
        (data, ((there + back).as_secs_f64() * 1e6).round() * 1e-3)
    };
    assert_eq!(round_trip(0), (Direction::Downlink, 70.0));
    assert_eq!(round_trip(1), (Direction::Downlink, 70.0), "a device without flows has that of the first");
    assert_eq!(round_trip(2), (Direction::Uplink, 90.0));
}

#[test]
fn both_ways_take_what_the_propagation_delay_says_whatever_the_size() {
    let reverse_rate = WireConfig { rate_mbps: Some(5.0), ..WireConfig::default() };
    for (name, world, waits_ms) in [
        (
            "nothing",
            World { reverse: reverse_rate, ..World::new(LastHopPlan::Nothing(None), &[DOWN]) },
            [0.0; 2],
        ),
        (
            "queue",
            World { internet: internet(20.0), ..World::new(LastHopPlan::Nothing(None), &[UP]) },
            [0.0; 2],
        ),
        ("one trace", World::new(trace(false), &[DOWN]), [1.0, 0.0]),
        ("two traces", World { internet: internet(20.0), ..World::new(trace(true), &[DOWN]) }, [1.0, 2.0]),
        ("cellular", World { internet: internet(20.0), ..World::new(cellular(), &[UP]) }, [0.0; 2]),
        // Waiting for a subframe or a grant counts as queueing.
        ("cell", World::new(cell(1), &[DOWN]), [1.0, 25.0]),
        ("cell and queue", World { internet: internet(50.0), ..World::new(cell(1), &[UP]) }, [1.0, 25.0]),
    ] {
        for direction in Direction::BOTH {
            for bytes in [ACK_BYTES, Bytes(700), DATA_BYTES] {
                let mut network = world.build(1);
                let at = Time::from_nanos(7);
                let sent = [Sent { at, device: 0, direction, bytes }];
                let (arrived, fate) =
                    cross(&mut network, &sent, Time::from_millis(500))[0].expect("it arrives");
                assert_eq!(fate, Fate::Delivered, "{name}");
                let empty = network.propagation_delay(FlowId(0), direction, bytes);
                let waited_ms = ((arrived - at).as_secs_f64() - empty.as_secs_f64()) * 1e3;
                let most_ms = waits_ms[direction as usize];
                assert!(
                    (-1e-6..=most_ms + 1e-6).contains(&waited_ms),
                    "{name}, {direction:?}, {bytes:?}: {waited_ms} ms beyond {empty:?}"
                );
            }
        }
    }
}

#[test]
fn a_single_trace_leaves_the_other_way_to_the_wire() {
    let mut network = World::new(trace(false), &[DOWN]).build(1);
    let sent: Vec<Sent> = (0..50)
        .map(|_| Sent { at: Time::ZERO, device: 0, direction: Direction::Uplink, bytes: DATA_BYTES })
        .collect();
    let out = cross(&mut network, &sent, Time::from_secs(1));
    assert!(out.iter().all(|out| *out == Some((Time::from_millis(30), Fate::Delivered))), "{out:?}");
}

#[test]
fn the_capacity_of_both_ways_is_told() {
    let wires = [10.0, 2.0].map(|mbps| WireConfig { rate_mbps: Some(mbps), ..WireConfig::default() });
    let [forward, reverse] = wires;
    let no_hop = || LastHopPlan::Nothing(Some(Rate::from_mbps(10.0)));
    let wired = World { forward, reverse, ..World::new(no_hop(), &[UP]) };
    for (name, world, bytes) in [
        ("wires", wired, [250, 1250]),
        ("two traces", World::new(trace(true), &[UP]), [1500, 750]),
        ("cellular", World::new(cellular(), &[UP]), [1500, 750]),
        ("a queue", World { internet: internet(4.0), ..World::new(trace(true), &[DOWN]) }, [500, 250]),
    ] {
        let mut network = world.build(1);
        let mut seen = [0; 2];
        while network.poll_timeout() < Time::from_millis(20) {
            let now = network.poll_timeout();
            while let Some(output) = network.pop(now) {
                if output == Output::Millisecond {
                    for capacity in network.capacities() {
                        seen[capacity.direction as usize] += capacity.bytes.0;
                    }
                    break;
                }
            }
        }
        // The trace has no opportunity at 0 ms.
        let expected = bytes.map(|bytes| if name == "wires" { 20 * bytes } else { 19 * bytes });
        let off = [0, 1].map(|way| seen[way].abs_diff(expected[way]));
        assert!(off.iter().all(|&off| off <= 750), "{name}: {seen:?}, not {expected:?}");
    }
}

#[test]
fn a_round_trip_that_is_too_short_both_ways_is_refused_by_the_flow_it_is_from() {
    let near = FlowConfig { device: DeviceId(1), rtt_ms: 4.0, ..DOWN };
    let world = World { devices: 2, ..World::new(cell(2), &[DOWN, near]) };
    let error = world.plan().for_devices().expect_err("4 ms is too short for the uplink");
    assert_eq!(error.key, "flow.1.rtt_ms");
    let least = error.reason.strip_prefix("is 4, but the empty links alone take ").expect("what it takes");
    let least: f64 = least.strip_suffix(" ms; give at least that").expect("the remedy").parse().unwrap();
    assert!((5.0..15.0).contains(&least), "{least} ms");
    let enough = World { flows: vec![DOWN, FlowConfig { rtt_ms: least, ..near }], ..world };
    assert!(enough.plan().for_devices().is_ok(), "the value that the error names should be accepted");
    let none = World::new(cell(1), &[]).plan().for_devices().expect_err("there is no flow");
    assert_eq!(none.to_string(), "`flow` is missing; add a `[[flow]]`, whose `rtt_ms` the devices have");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    #[test]
    fn every_packet_of_both_ways_comes_out_once(
        kind in 0_usize..5,
        seed in 0_u64..1000,
        rate_mbps in prop::option::of(2.0_f64..40.0),
        is_up in any::<bool>(),
        loss in 0.0..0.2,
        packets in prop::collection::vec((0_u64..200_000, 0_u16..2, any::<bool>(), 40_u64..1500), 1..80),
    ) {
        let last_hops = [cell(2), LastHopPlan::Nothing(None), trace(false), trace(true), cellular()];
        let last_hop = last_hops[kind].clone();
        // A recording describes the link of a single device.
        let devices = if kind < 2 { 2 } else { 1 };
        let wire = WireConfig { loss, ..WireConfig::default() };
        let world = World {
            internet: rate_mbps.and_then(internet),
            devices,
            forward: wire.clone(),
            reverse: wire,
            ..World::new(last_hop, &[if is_up && kind != 2 { UP } else { DOWN }])
        };
        let mut sent: Vec<Sent> = packets
            .iter()
            .map(|&(us, device, is_up, bytes)| Sent {
                at: Time::from_micros(us),
                device: device % devices as u16,
                direction: if is_up { Direction::Uplink } else { Direction::Downlink },
                bytes: Bytes(bytes),
            })
            .collect();
        sent.sort_by_key(|sent| sent.at);
        let mut network = world.build(seed);
        let out = cross(&mut network, &sent, Time::from_secs(5));
        for (sent, out) in sent.iter().zip(&out) {
            let (arrived, fate) = out.expect("every packet should come out");
            let empty = network.propagation_delay(FlowId(sent.device), sent.direction, sent.bytes);
            if fate == Fate::Delivered {
                prop_assert!(arrived >= sent.at + empty, "{:?} early", sent.at + empty - arrived);
            }
        }
        prop_assert_eq!(&out, &cross(&mut world.build(seed), &sent, Time::from_secs(5)), "it is repeatable");
    }
}
