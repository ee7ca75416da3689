//! Random worlds of all kinds, and packets for them.

use std::sync::Arc;
use std::time::Duration;

use airpace_core::{Bytes, DeviceId, Direction, Ecn, Rate, Streams, Time};
use airpace_emu::World;
use airpace_emu::crossing::Arrival;
use airpace_path::NetworkPlan;
use airpace_path::cell::channel::ChannelConfig;
use airpace_path::cell::channel::fading::FadingProfile;
use airpace_path::cell::config::BackgroundConfig;
use airpace_path::cell::config::uplink::UplinkConfig;
use airpace_path::cell::{CellConfig, DeviceRadioConfig};
use airpace_path::network::{DATA_BYTES, FlowConfig, LastHopPlan, NetworkConfig, TracePlan};
use airpace_path::queue::{BufferConfig, Discipline, QueueConfig};
use airpace_path::trace::{Start, TraceConfig, synth};
use airpace_path::wire::{BurstConfig, ReorderConfig, SwayConfig, WireConfig};
use proptest::prelude::*;
use proptest::{option, sample};

/// A wire with any kind of impairment.
fn wire() -> impl Strategy<Value = WireConfig> {
    let sway = (0.0..20.0, 1.0..50.0, any::<bool>())
        .prop_map(|(up_to_ms, every_ms, may_reorder)| SwayConfig { up_to_ms, every_ms, may_reorder });
    let burst = (0.0..0.1, 0.1..1.0).prop_map(|(to_bad, to_good)| BurstConfig {
        to_bad,
        to_good,
        loss_in_bad: 0.8,
        loss_in_good: 0.01,
    });
    let reorder =
        (0.0..0.3, 0.1..20.0).prop_map(|(probability, extra_ms)| ReorderConfig { probability, extra_ms });
    let rate = prop_oneof![Just(None), (3.0..50.0).prop_map(Some)];
    let batch = prop_oneof![Just(0.0), 0.5..10.0];
    let chances = (0.0..5.0, 0.0..0.2, 0.0..0.2);
    (chances, option::of(sway), option::of(burst), option::of(reorder), rate, batch).prop_map(
        |((jitter_mean_ms, loss, duplicate), sway, burst, reorder, rate_mbps, batch_ms)| WireConfig {
            delay_ms: 0.0,
            jitter_mean_ms,
            sway,
            loss,
            burst,
            reorder,
            duplicate,
            rate_mbps,
            batch_ms,
            on_off: None,
        },
    )
}

fn buffer() -> impl Strategy<Value = BufferConfig> {
    let disciplines = [Discipline::DropTail, Discipline::DropHead, Discipline::CoDel, Discipline::FqCoDel];
    let bounds = (option::of(1u64..40), option::of(3_000u64..60_000), option::of(5.0..200.0));
    (sample::select(disciplines.to_vec()), bounds, option::of(0.0..20.0)).prop_map(
        |(discipline, (packets, bytes, ms), ecn_threshold_ms)| BufferConfig {
            discipline,
            packets,
            bytes,
            ms,
            ecn_threshold_ms,
            ..BufferConfig::default()
        },
    )
}

fn internet() -> impl Strategy<Value = QueueConfig> {
    (1.0..100.0, buffer()).prop_map(|(rate_mbps, buffer)| QueueConfig {
        rate_mbps,
        buffer,
        ..QueueConfig::default()
    })
}

/// The trace of a link, with a queue; the opposite direction has a trace too, or none.
fn trace(direction: Direction) -> impl Strategy<Value = LastHopPlan> {
    let one = || (0.5f64..30.0, 0u64..4, buffer());
    (one(), option::of(one()), 0.0..2.0).prop_map(move |(there, back, start_s)| {
        let recorded = |rate_mbps: f64, seed: u64| {
            let (rate, mut draws) = (Rate::from_mbps(rate_mbps), Streams::new(seed).stream("trace"));
            Arc::new(synth::poisson(rate, Duration::from_secs(3), &mut draws).expect("a trace"))
        };
        let config = |buffer: BufferConfig| TraceConfig {
            start_s: Start::AtS(start_s),
            buffer,
            ..TraceConfig::default()
        };
        let (rate, seed, buffer) = there;
        let plan = TracePlan::new(recorded(rate, seed), None, direction, true, &config(buffer));
        let plan = plan.expect("a plan");
        let plan = match back {
            Some((rate, seed, buffer)) => {
                plan.with_back(recorded(rate, seed), &config(buffer)).expect("a plan")
            }
            None => plan,
        };
        LastHopPlan::Trace(Box::new(plan))
    })
}

/// A cell with fading, lost transport blocks and other users.
fn cell(devices: usize) -> impl Strategy<Value = LastHopPlan> {
    let fading = sample::select(vec![FadingProfile::Flat, FadingProfile::Epa, FadingProfile::Eva]);
    let background = (0.0..200.0, 0.0..0.9);
    (sample::select(vec![6u16, 15, 25]), 1u8..=2, 0.0..20.0, fading, background).prop_map(
        move |(prbs, carriers, sinr_db, fading, (control_per_second, load))| {
            let background = BackgroundConfig {
                control_per_second: Some(control_per_second),
                load: Some(load),
                ..BackgroundConfig::default()
            };
            let config = CellConfig { prbs: Some(prbs), carriers, background, ..CellConfig::default() };
            let channel = ChannelConfig { sinr_db: Some(sinr_db), fading, ..ChannelConfig::default() };
            let radio = DeviceRadioConfig { channel, ..DeviceRadioConfig::default() };
            LastHopPlan::cell(&config, &vec![radio; devices]).expect("a cell")
        },
    )
}

/// Any world. A trace is the link of a single device.
pub fn world() -> impl Strategy<Value = World> {
    (1usize..=3, any::<bool>()).prop_flat_map(|(devices, is_down)| {
        let direction = if is_down { Direction::Downlink } else { Direction::Uplink };
        let last_hop = prop_oneof![
            1 => Just((devices, LastHopPlan::Nothing(None))).boxed(),
            2 => trace(direction).prop_map(|plan| (1, plan)).boxed(),
            2 => cell(devices).prop_map(move |plan| (devices, plan)).boxed(),
        ];
        (last_hop, wire(), wire(), option::of(internet()), 150.0..300.0, any::<u64>()).prop_map(
            move |((devices, last_hop), forward, reverse, internet, rtt_ms, seed)| {
                let plan =
                    plan(last_hop, devices, direction, (&forward, &reverse), internet.as_ref(), rtt_ms);
                World { plan, devices, seed }
            },
        )
    })
}

fn plan(
    last_hop: LastHopPlan,
    devices: usize,
    direction: Direction,
    (forward, reverse): (&WireConfig, &WireConfig),
    internet: Option<&QueueConfig>,
    rtt_ms: f64,
) -> NetworkPlan {
    let flow = |device: usize| FlowConfig {
        device: DeviceId(device as u16),
        direction,
        acks_cross_cell: true,
        crosses_internet: true,
        crosses_last_hop: true,
        has_plain_wires: false,
        rtt_ms,
        data_bytes: DATA_BYTES,
    };
    let flows = (0..devices).map(flow).collect();
    let config = NetworkConfig { forward, reverse, internet, last_hop, devices, flows };
    NetworkPlan::new(config).and_then(|plan| plan.for_devices()).expect("a plan")
}

/// A cell with one device, whose modem has a small uplink buffer.
pub fn narrow_cell() -> World {
    let uplink = UplinkConfig { queue_bytes: 6_000, ..UplinkConfig::default() };
    let config = CellConfig { prbs: Some(25), uplink, ..CellConfig::default() };
    let last_hop = LastHopPlan::cell(&config, &[DeviceRadioConfig::default()]).expect("a cell");
    let wire = WireConfig::default();
    let plan = plan(last_hop, 1, Direction::Downlink, (&wire, &wire), None, 60.0);
    World { plan, devices: 1, seed: 1 }
}

/// A packet, and the time at which it can be read from an interface.
#[derive(Clone, Copy, Debug)]
pub struct Coming {
    pub at: Time,
    pub arrival: Arrival,
}

/// Packets of these devices: isolated packets, closely spaced packets, and packets after pauses.
pub fn packets(devices: usize) -> impl Strategy<Value = Vec<Coming>> {
    let gap_us = prop_oneof![2 => Just(0u64), 4 => 1u64..2_000, 1 => 2_000u64..60_000];
    let bytes = prop_oneof![2 => Just(1_500u64), 1 => 36u64..1_500];
    let ecn = sample::select(vec![Ecn::NotEct, Ecn::Ect, Ecn::Ce]);
    let one = (gap_us, 0..devices as u16, any::<bool>(), bytes, ecn);
    proptest::collection::vec(one, 1..400).prop_map(|list| {
        let mut at = Time::ZERO;
        let coming = |(gap_us, device, is_down, bytes, ecn)| {
            at += Duration::from_micros(gap_us);
            let direction = if is_down { Direction::Downlink } else { Direction::Uplink };
            Coming { at, arrival: Arrival { device: DeviceId(device), direction, bytes: Bytes(bytes), ecn } }
        };
        list.into_iter().map(coming).collect()
    })
}

/// A link of 1200 packets a second in each direction, which marks packets that waited for 5 ms.
pub fn marking_link() -> World {
    let buffer = BufferConfig { ecn_threshold_ms: Some(5.0), ..BufferConfig::default() };
    let config = TraceConfig { buffer, ..TraceConfig::default() };
    let trace = || {
        let mut draws = Streams::new(4).stream("trace");
        let rate = Rate::from_mbps(14.4);
        Arc::new(synth::poisson(rate, Duration::from_secs(3), &mut draws).expect("a trace"))
    };
    let link = TracePlan::new(trace(), None, Direction::Downlink, true, &config).expect("a plan");
    let link = link.with_back(trace(), &config).expect("a plan");
    let wire = WireConfig::default();
    let last_hop = LastHopPlan::Trace(Box::new(link));
    World { plan: plan(last_hop, 1, Direction::Downlink, (&wire, &wire), None, 20.0), devices: 1, seed: 1 }
}

/// A world that consists of a wire with this one-way delay.
pub fn long_wire(delay: Duration) -> World {
    lossy_wire(delay, 0.0, 1)
}

/// A world like [`long_wire`], with a loss rate for packets to the device.
pub fn lossy_wire(delay: Duration, loss: f64, seed: u64) -> World {
    let wires = (&WireConfig { loss, ..WireConfig::default() }, &WireConfig::default());
    let rtt_ms = 2e3 * delay.as_secs_f64();
    let plan = plan(LastHopPlan::Nothing(None), 1, Direction::Downlink, wires, None, rtt_ms);
    World { plan, devices: 1, seed }
}

/// Bursts of packets in both directions. Half of them are ECN-capable.
pub fn bursts() -> Vec<Coming> {
    let one = |number: u64| {
        let direction = if (number / 40).is_multiple_of(2) { Direction::Downlink } else { Direction::Uplink };
        let ecn = if (number / 2).is_multiple_of(2) { Ecn::Ect } else { Ecn::NotEct };
        let arrival = Arrival { device: DeviceId(0), direction, bytes: Bytes(100 + 3 * number), ecn };
        Coming { at: Time::from_millis(number / 40 * 20), arrival }
    };
    (0..400).map(one).collect()
}
