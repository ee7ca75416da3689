//! Tests of a network as used by drivers: every pushed packet leaves the network, with its load.

use std::collections::BTreeMap;
use std::sync::Arc;

use airpace_core::{Bytes, DeviceId, Direction, Ecn, FlowId, Packet, Rate, Streams, Time};
use airpace_event::{Fate, Source};
use airpace_path::cell::{CellConfig, DeviceRadioConfig};
use airpace_path::network::{
    ACK_BYTES, DATA_BYTES, FlowConfig, LastHopPlan, Load, Network, NetworkConfig, NetworkPlan, Output,
    SharedLink, TracePlan,
};
use airpace_path::queue::QueueConfig;
use airpace_path::trace::{Trace, TraceConfig};
use airpace_path::wire::WireConfig;
use proptest::prelude::*;

const FLOW: FlowConfig = FlowConfig {
    device: DeviceId(0),
    direction: Direction::Downlink,
    acks_cross_cell: false,
    crosses_internet: true,
    crosses_last_hop: true,
    has_plain_wires: false,
    rtt_ms: 60.0,
    data_bytes: Bytes(1500),
};

fn cell(devices: usize) -> LastHopPlan {
    LastHopPlan::cell(&CellConfig::default(), &vec![DeviceRadioConfig::default(); devices]).expect("a cell")
}

fn trace(direction: Direction) -> LastHopPlan {
    let trace = Arc::new(Trace::from_times_ms((1..=100).collect()).expect("a trace"));
    let plan = TracePlan::new(trace, None, direction, true, &TraceConfig::default()).expect("a plan");
    LastHopPlan::Trace(Box::new(plan))
}

/// A trace with one opportunity per millisecond in this direction, and a trace with one opportunity per 3 ms in the
/// opposite direction.
fn both_traces(direction: Direction) -> LastHopPlan {
    let LastHopPlan::Trace(plan) = trace(direction) else { unreachable!("it is a trace") };
    let back = Arc::new(Trace::from_times_ms((1..=30).map(|chance| 3 * chance).collect()).expect("a trace"));
    LastHopPlan::Trace(Box::new(plan.with_back(back, &TraceConfig::default()).expect("a plan")))
}

struct Parts {
    forward: WireConfig,
    reverse: WireConfig,
    internet: Option<QueueConfig>,
    last_hop: LastHopPlan,
    flows: Vec<FlowConfig>,
}

impl Default for Parts {
    fn default() -> Parts {
        let wire = WireConfig::default;
        Parts { forward: wire(), reverse: wire(), internet: None, last_hop: cell(1), flows: vec![FLOW] }
    }
}

impl Parts {
    fn plan(&self) -> Result<NetworkPlan, String> {
        let devices = self.flows.iter().map(|flow| usize::from(flow.device.0) + 1).max().unwrap_or(1);
        let config = NetworkConfig {
            forward: &self.forward,
            reverse: &self.reverse,
            internet: self.internet.as_ref(),
            last_hop: self.last_hop.clone(),
            devices,
            flows: self.flows.clone(),
        };
        NetworkPlan::new(config).map_err(|error| error.to_string())
    }

    fn build(&self, seed: u64) -> Network<String, u64> {
        let order: Vec<usize> = (0..self.flows.len()).rev().collect();
        Network::new(&self.plan().expect("it can be built"), &order, &Streams::new(seed))
    }
}

fn packet(flow: &FlowConfig, index: u16, number: u64, bytes: Bytes, sent: Time) -> Packet {
    Packet { flow: FlowId(index), device: flow.device, number, bytes, sent, ecn: Ecn::NotEct }
}

/// A packet that left the network: time, flow, number, load, and fate.
type Out = (Time, u16, u64, Load<String, u64>, Fate);

/// Pushes `count` data packets and as many ACKs of each flow, one per millisecond, and collects the exiting packets
/// until `end`.
fn run(parts: &Parts, network: &mut Network<String, u64>, count: u64, end: Time) -> Vec<Out> {
    let mut out = vec![];
    let mut numbers = 0..count;
    let mut now = Time::ZERO;
    loop {
        let sends_at = Time::from_nanos(numbers.start * 1_000_000 + 7);
        let due =
            if numbers.is_empty() { network.poll_timeout() } else { network.poll_timeout().min(sends_at) };
        if due >= end {
            return out;
        }
        assert!(due >= now, "time runs backwards: {due:?} after {now:?}");
        now = due;
        while let Some(output) = network.pop(now) {
            if let Output::Ended(journey) = output {
                let load = match journey.load {
                    Load::Data(text) => Load::Data(text.clone()),
                    Load::Ack(number) => Load::Ack(*number),
                };
                out.push((now, journey.packet.flow.0, journey.packet.number, load, journey.fate));
            }
        }
        if !numbers.is_empty() && sends_at == now {
            let number = numbers.next().expect("it is not empty");
            for (index, flow) in (0..).zip(&parts.flows) {
                let data = packet(flow, index, number, DATA_BYTES, now);
                network.push(now, data, Load::Data(format!("{index}/{number}")));
                network.push(now, packet(flow, index, number, ACK_BYTES, now), Load::Ack(number));
            }
        }
    }
}

#[test]
fn the_round_trip_over_an_empty_path_is_what_the_flow_says() {
    let up = FlowConfig { direction: Direction::Uplink, ..FLOW };
    let over_cell = |flow| FlowConfig { acks_cross_cell: true, ..flow };
    let internet = || Some(QueueConfig { rate_mbps: 50.0, ..QueueConfig::default() });
    for (name, parts, rounds_up_ms) in [
        ("nothing", Parts { last_hop: LastHopPlan::Nothing(None), ..Parts::default() }, 0.0),
        (
            "up over nothing",
            Parts { last_hop: LastHopPlan::Nothing(None), flows: vec![up], ..Parts::default() },
            0.0,
        ),
        (
            "queue",
            Parts { internet: internet(), last_hop: LastHopPlan::Nothing(None), ..Parts::default() },
            0.0,
        ),
        // Waiting for a subframe or an opportunity counts as queueing.
        ("trace", Parts { last_hop: trace(Direction::Downlink), ..Parts::default() }, 1.0),
        (
            "both traces",
            Parts {
                last_hop: both_traces(Direction::Downlink),
                flows: vec![over_cell(FLOW)],
                ..Parts::default()
            },
            4.0,
        ),
        (
            "up, both traces",
            Parts {
                last_hop: both_traces(Direction::Downlink),
                flows: vec![over_cell(up)],
                ..Parts::default()
            },
            4.0,
        ),
        ("cell and queue", Parts { internet: internet(), ..Parts::default() }, 1.0),
        // Waiting for a grant counts as queueing, too.
        ("up", Parts { internet: internet(), flows: vec![up], ..Parts::default() }, 25.0),
        ("ACKs over the cell", Parts { flows: vec![over_cell(FLOW)], ..Parts::default() }, 25.0),
        ("up, ACKs over the cell", Parts { flows: vec![over_cell(up)], ..Parts::default() }, 26.0),
    ] {
        let mut network = parts.build(1);
        let out = run(&parts, &mut network, 1, Time::from_millis(500));
        let took = |is_data: bool| {
            let mine = out.iter().find(|out| matches!(out.3, Load::Data(_)) == is_data);
            let (at, .., fate) = mine.unwrap_or_else(|| panic!("{name}: nothing came out"));
            assert_eq!(*fate, Fate::Delivered, "{name}");
            (*at - Time::from_nanos(7)).as_secs_f64() * 1e3
        };
        let round_trip = took(true) + took(false);
        assert!(
            (60.0 - 1e-3..=60.0 + rounds_up_ms).contains(&round_trip),
            "{name}: {round_trip} ms, {out:?}"
        );
        let data_ms =
            network.propagation_delay(FlowId(0), parts.flows[0].direction, DATA_BYTES).as_secs_f64() * 1e3;
        assert!(took(true) >= data_ms - 1e-3 && took(true) <= data_ms + rounds_up_ms, "{name}: {data_ms} ms");
    }
}

#[test]
fn what_cannot_be_built_is_refused_by_key() {
    let refusal = |parts: Parts| parts.plan().expect_err("it cannot be built");
    let errors = [
        refusal(Parts { forward: WireConfig { loss: 2.0, ..WireConfig::default() }, ..Parts::default() }),
        refusal(Parts { reverse: WireConfig { delay_ms: 5.0, ..WireConfig::default() }, ..Parts::default() }),
        refusal(Parts {
            internet: Some(QueueConfig { rate_mbps: -1.0, ..QueueConfig::default() }),
            ..Parts::default()
        }),
        refusal(Parts { flows: vec![FLOW, FlowConfig { rtt_ms: 2.0, ..FLOW }], ..Parts::default() }),
        LastHopPlan::cell(&CellConfig { prbs: Some(7), ..CellConfig::default() }, &[])
            .unwrap_err()
            .to_string(),
    ];
    insta::assert_snapshot!(errors.join("\n"), @r"
    `forward.loss` is 2; a probability is 0 to 1 (0.01 is one in a hundred)
    `reverse.delay_ms` is made from each flow's `rtt_ms`; set that instead
    `internet.rate_mbps` is -1; give Mbit/s of at least 0, or inf
    `flow.1.rtt_ms` is 2, but the empty links alone take 3.000 ms; give at least that
    `cell.prbs` is 7; must be one of 6, 15, 25, 50, 75, 100
    ");
}

#[test]
fn flows_meet_where_their_ways_do() {
    let flows = vec![
        FLOW,
        FLOW,
        FlowConfig { device: DeviceId(1), ..FLOW },
        FlowConfig { crosses_internet: false, ..FLOW },
        FlowConfig { direction: Direction::Uplink, ..FLOW },
    ];
    let internet = Some(QueueConfig { rate_mbps: 30.0, ..QueueConfig::default() });
    let network = Parts { flows, internet, last_hop: cell(2), ..Parts::default() }.build(1);
    let met = |link| (0..5).filter(|&other| network.meet(link, FlowId(0), FlowId(other))).collect::<Vec<_>>();
    assert_eq!(met(SharedLink::LastHop), [0, 1, 3], "flows of the same device and direction");
    assert_eq!(met(SharedLink::Internet), [0, 1, 2], "flows that cross it in the same direction");
    let rate =
        |flow| network.shared_link(FlowId(flow), SharedLink::Internet, Time::ZERO).map(|link| link.rate);
    assert_eq!((rate(0), rate(3)), (Some(Some(Rate::from_mbps(30.0))), None));
}

#[test]
fn a_device_is_told_by_the_sources_that_are_asked_for() {
    for last_hop in [cell(1), trace(Direction::Downlink)] {
        let parts = Parts { last_hop, ..Parts::default() };
        for asked in [vec![], vec![Source::Modem], vec![Source::ControlChannel, Source::Modem]] {
            let mut network = parts.build(1);
            for &source in &asked {
                network.set_reported(DeviceId(0), source, true);
            }
            let mut told: BTreeMap<Source, u64> = BTreeMap::new();
            while network.poll_timeout() < Time::from_millis(10) {
                let now = network.poll_timeout();
                while let Some(output) = network.pop(now) {
                    if output == Output::Radio || output == Output::Millisecond {
                        while let Some((_, source, report)) = network.pop_report() {
                            assert!(report.time < now, "a report is about the past");
                            *told.entry(source).or_default() += 1;
                        }
                    }
                }
            }
            let mut sources: Vec<Source> = told.keys().copied().collect();
            sources.reverse();
            assert_eq!(sources, asked);
            assert!(told.values().all(|&reports| reports == 9), "one report for each millisecond: {told:?}");
        }
    }
}

#[test]
fn a_driver_that_is_late_gets_every_millisecond_once() {
    let parts = Parts { last_hop: trace(Direction::Downlink), ..Parts::default() };
    let mut network = parts.build(1);
    network.set_reported(DeviceId(0), Source::Modem, true);
    let mut slots = vec![];
    let mut milliseconds = 0;
    for late in 1..=4 {
        let now = Time::from_micros(late * 5_300);
        while network.poll_timeout() <= now {
            while let Some(output) = network.pop(now) {
                if output == Output::Millisecond {
                    milliseconds += 1;
                    while let Some((_, _, report)) = network.pop_report() {
                        slots.push(report.slot.index);
                    }
                }
            }
        }
    }
    assert_eq!(milliseconds, 22, "0 to 21 ms");
    assert_eq!(slots, (0..21).collect::<Vec<u64>>());
}

#[test]
fn each_direction_of_a_link_has_its_own_capacity_and_backlog() {
    let up = FlowConfig { direction: Direction::Uplink, acks_cross_cell: true, ..FLOW };
    let last_hop = both_traces(Direction::Downlink);
    let down = FlowConfig { acks_cross_cell: true, ..FLOW };
    let parts = Parts { last_hop, flows: vec![down, up], ..Parts::default() };
    let mut network = parts.build(1);
    // The device sends five data packets, then the ACK of a received packet.
    for number in 0..5 {
        network.push(Time::ZERO, packet(&up, 1, number, DATA_BYTES, Time::ZERO), Load::Data(String::new()));
    }
    network.push(Time::ZERO, packet(&down, 0, 0, ACK_BYTES, Time::ZERO), Load::Ack(0));
    let state = |network: &Network<String, u64>, flow, ms| {
        let link = network.shared_link(FlowId(flow), SharedLink::LastHop, Time::from_millis(ms));
        link.map(|link| (link.backlog.0, link.rate.map(Rate::as_mbps)))
    };
    assert_eq!(state(&network, 0, 1), Some((0, Some(12.0))), "nothing waits for the phone");
    assert_eq!(state(&network, 1, 3), Some((5 * 1500 + 60, Some(12.0))), "a chance in this millisecond");
    assert_eq!(state(&network, 1, 4), Some((5 * 1500 + 60, Some(0.0))), "none in this one");
    let (mut carried, mut capacities) = (vec![], BTreeMap::<Direction, u64>::new());
    while network.poll_timeout() < Time::from_millis(90) {
        let now = network.poll_timeout();
        let mut is_new = false;
        while let Some(output) = network.pop(now) {
            match output {
                Output::Ended(journey) => carried.push((journey.packet.flow.0, now)),
                Output::Radio => {}
                Output::Millisecond => is_new = true,
            }
        }
        for capacity in network.capacities().iter().filter(|_| is_new) {
            *capacities.entry(capacity.direction).or_default() += capacity.bytes.0;
        }
    }
    assert_eq!(capacities[&Direction::Downlink], 89 * 1500);
    assert_eq!(capacities[&Direction::Uplink], 29 * 1500);
    // Each opportunity carries one packet; the wire adds a delay of 30 ms.
    let at = |chance: u64| Time::from_millis(3 * chance + 30);
    assert_eq!(carried, [(1, at(1)), (1, at(2)), (1, at(3)), (1, at(4)), (1, at(5)), (0, at(6))]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn every_copy_comes_out_once_with_what_it_carried(
        seed in 0_u64..1_000,
        kind in 0_usize..4,
        loss in 0.0..0.3,
        duplicate in 0.0..0.3,
        reorder in 0.0..0.3,
        rate_mbps in prop::option::of(1.0_f64..50.0),
        packets in 1_u64..40,
        ways in prop::collection::vec((any::<bool>(), any::<bool>(), any::<bool>(), 55.0_f64..90.0), 1..5),
    ) {
        let both = both_traces(Direction::Uplink);
        let last_hop = [cell(1), trace(Direction::Downlink), LastHopPlan::Nothing(None), both][kind].clone();
        let flows = ways.iter().map(|&(is_up, over_cell, crosses_internet, rtt_ms)| FlowConfig {
            // A single trace has only one direction.
            direction: if is_up && kind != 1 { Direction::Uplink } else { Direction::Downlink },
            acks_cross_cell: over_cell && (kind == 0 || kind == 3),
            crosses_internet,
            rtt_ms,
            ..FLOW
        });
        let reorder = Some(airpace_path::wire::ReorderConfig { probability: reorder, extra_ms: 4.0 });
        let wire = WireConfig { loss, duplicate, reorder, ..WireConfig::default() };
        let buffer = airpace_path::queue::BufferConfig { packets: Some(10), ..Default::default() };
        let parts = Parts {
            forward: wire.clone(),
            reverse: wire,
            internet: rate_mbps.map(|rate_mbps| QueueConfig { rate_mbps, buffer, ..QueueConfig::default() }),
            last_hop,
            flows: flows.collect(),
        };
        let mut network = parts.build(seed);
        let out = run(&parts, &mut network, packets, Time::from_millis(5_000));
        let mut again = parts.build(seed);
        prop_assert_eq!(&out, &run(&parts, &mut again, packets, Time::from_millis(5_000)));
        let mut copies: BTreeMap<(u16, bool, u64), u64> = BTreeMap::new();
        for (_, flow, number, load, _) in &out {
            match load {
                Load::Data(text) => prop_assert_eq!(text, &format!("{flow}/{number}")),
                Load::Ack(carried) => prop_assert_eq!(carried, number),
            }
            *copies.entry((*flow, matches!(load, Load::Data(_)), *number)).or_default() += 1;
        }
        prop_assert_eq!(copies.len() as u64, 2 * packets * parts.flows.len() as u64, "every packet should come out");
        prop_assert!(copies.values().all(|&count| count <= 2));
        for flow in (0..parts.flows.len() as u16).map(FlowId) {
            let of_data = copies.iter().filter(|((of, is_data, _), _)| *of == flow.0 && *is_data);
            let all: u64 = of_data.map(|(_, count)| count).sum();
            prop_assert_eq!(all, packets + network.duplicated(flow));
            prop_assert_eq!(network.under_way(flow), 0);
            prop_assert_eq!((network.on_wire(flow), network.in_links(flow)), (Bytes::ZERO, Bytes::ZERO));
        }
    }
}
