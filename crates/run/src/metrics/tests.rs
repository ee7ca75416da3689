use std::time::Duration;

use airpace_core::{Bytes, DeviceId, Direction, Ecn, FlowId, Packet, Time};
use airpace_event::{Arrived, Capacity, Fate, Inspected, Subframe, Transfer, TransferStep};
use airpace_radio::{BitLayer, CarrierId, Dci, Numerology, PrbSet, RadioReport, Scope, Slot};
use airpace_tables::facts::{FlowFacts, Span};
use proptest::prelude::*;

use super::*;

pub(crate) fn facts(flows: &[&[(u64, u64)]]) -> RunFacts {
    let flows = (0..).zip(flows).map(|(index, active)| FlowFacts {
        flow: FlowId(index),
        name: format!("flow {index}"),
        device: DeviceId(index),
        direction: Direction::Downlink,
        primary: None,
        scheme: "pbe".to_owned(),
        greedy: true,
        active: active
            .iter()
            .map(|(start, end)| Span { start: Time::from_millis(*start), end: Time::from_millis(*end) })
            .collect(),
        size: None,
        transfers_due: 0,
    });
    RunFacts {
        scenario: "story".to_owned(),
        scheme: "pbe".to_owned(),
        seed: 1,
        duration: Time::from_secs(10),
        flows: flows.collect(),
    }
}

/// A packet of `flow` with the delay `one_way` on a path with an empty delay of 20 ms.
pub(crate) fn arrival(flow: u16, at: Time, one_way: Duration, fate: Fate) -> Arrived {
    let packet = Packet {
        flow: FlowId(flow),
        device: DeviceId(flow),
        number: 0,
        bytes: Bytes(1500),
        sent: at - one_way,
        ecn: Ecn::NotEct,
    };
    Arrived { time: at, packet, fate, duplicate: false, propagation_delay: Duration::from_millis(20) }
}

fn capacity(device: u16, at_ms: u64, bytes: u64) -> Capacity {
    Capacity {
        time: Time::from_millis(at_ms),
        span: Duration::from_millis(1),
        device: DeviceId(device),
        direction: Direction::Downlink,
        bytes: Bytes(bytes),
    }
}

/// One packet of 1500 bytes per ms (12 Mbit/s) while `flow` is active. The capacity is twice this rate.
fn steady(meter: &mut Meter, flow: u16, from_ms: u64, to_ms: u64) {
    for ms in from_ms..to_ms {
        meter.record(&Event::Capacity(capacity(flow, ms, 3000)));
        let at = Time::from_micros(ms * 1000 + 500);
        meter.record(&Event::Arrived(arrival(flow, at, Duration::from_millis(25), Fate::Delivered)));
    }
}

#[test]
fn a_flow_that_pauses_is_judged_by_its_active_time() {
    let mut meter = Meter::new(&facts(&[&[(1000, 3000), (6000, 8000)]]));
    steady(&mut meter, 0, 1000, 3000);
    for ms in 3000..6000 {
        meter.record(&Event::Capacity(capacity(0, ms, 3000)));
    }
    steady(&mut meter, 0, 6000, 8000);
    let flow = meter.finish().flows.remove(0);
    assert_eq!(flow.throughput_mbps, 12.0, "4 s of 12 Mbit/s in 4 s of activity");
    assert_eq!(flow.utilization, Some(0.5), "the capacity of the pause does not count");
    assert_eq!(flow.throughput_100ms.p10, Some(12.0), "the empty intervals of the pause do not count");
    assert_eq!(flow.one_way_delay_ms.p95, Some(25.007), "within 0.1 % of 25 ms");
    assert_eq!(flow.one_way_delay_ms.mean, Some(25.0));
    assert_eq!(flow.queueing_delay_ms.mean, Some(5.0));
    assert_eq!(flow.power, Some(rounded(12.0 / 25.007)));
    assert_eq!(flow.jain, None, "a flow that is alone has no fairness index");
}

#[test]
fn what_is_dropped_is_a_loss_and_no_delay() {
    let mut meter = Meter::new(&facts(&[&[(0, 10_000)]]));
    let long = Duration::from_secs(1);
    meter.record(&Event::Arrived(arrival(0, Time::from_secs(2), Duration::from_millis(30), Fate::Delivered)));
    meter.record(&Event::Arrived(arrival(0, Time::from_secs(3), long, Fate::QueueFull)));
    meter.record(&Event::Arrived(arrival(0, Time::from_secs(3), long, Fate::Aqm)));
    meter.record(&Event::Arrived(arrival(0, Time::from_secs(4), Duration::from_millis(30), Fate::Delivered)));
    let flow = meter.finish().flows.remove(0);
    assert_eq!(flow.loss_rate, Some(0.5));
    assert_eq!(flow.one_way_delay_ms.mean, Some(30.0), "a drop has no delay");
}

#[test]
fn a_duplicate_counts_for_nothing() {
    let mut meter = Meter::new(&facts(&[&[(0, 10_000)]]));
    let first = arrival(0, Time::from_secs(2), Duration::from_millis(30), Fate::Delivered);
    meter.record(&Event::Arrived(first));
    meter.record(&Event::Arrived(Arrived { duplicate: true, time: Time::from_secs(9), ..first }));
    let flow = meter.finish().flows.remove(0);
    assert_eq!(flow.packets, 1);
    assert_eq!(flow.one_way_delay_ms.mean, Some(30.0));
    assert_eq!(flow.throughput_mbps, rounded(1500.0 * 8e-6 / 10.0));
}

#[test]
fn what_was_carried_could_be_carried() {
    let mut meter = Meter::new(&facts(&[&[(0, 2000)]]));
    for ms in 0..1000 {
        // A queue at the last hop drains at twice the reported capacity of the path.
        meter.record(&Event::Capacity(capacity(0, ms, 750)));
        let at = Time::from_micros(ms * 1000 + 500);
        meter.record(&Event::Arrived(arrival(0, at, Duration::from_millis(25), Fate::Delivered)));
    }
    assert_eq!(meter.finish().flows.remove(0).utilization, Some(1.0), "and no more");
}

#[test]
fn a_flow_of_transfers_is_judged_while_one_is_under_way() {
    let mut meter = Meter::new(&facts(&[&[]]));
    let step = |ms, number, step| {
        Event::Transfer(Transfer { time: Time::from_millis(ms), flow: FlowId(0), number, step })
    };
    for (number, from_ms, to_ms) in [(0, 1000, 2000), (1, 3000, 4000)] {
        meter.record(&step(from_ms, number, TransferStep::Began));
        steady(&mut meter, 0, from_ms, to_ms);
        meter.record(&step(to_ms, number, TransferStep::Complete));
        for ms in to_ms..to_ms + 1000 {
            meter.record(&Event::Capacity(capacity(0, ms, 3000)));
        }
    }
    let flow = meter.finish().flows.remove(0);
    assert_eq!((flow.active_s, flow.throughput_mbps, flow.utilization), (2.0, 12.0, Some(0.5)));
    let transfers = flow.transfers.expect("it has transfers");
    assert_eq!((transfers.complete, transfers.completion_s.p50), (2, Some(1.0)));
}

#[test]
fn a_limited_flow_ends_when_all_has_arrived() {
    let mut facts = facts(&[&[(0, 10_000)]]);
    facts.flows[0].size = Some(Bytes(1500 * 1000));
    let mut meter = Meter::new(&facts);
    steady(&mut meter, 0, 0, 1000);
    for ms in 1000..10_000 {
        meter.record(&Event::Capacity(capacity(0, ms, 3000)));
    }
    let flow = meter.finish().flows.remove(0);
    assert_eq!(flow.active_s, 0.9995);
    assert!((flow.throughput_mbps - 12.006).abs() < 1e-3, "1.5 MB in a second: {}", flow.throughput_mbps);
    assert!((flow.utilization.unwrap() - 0.5).abs() < 0.001, "capacity after its end does not count");
}

#[test]
fn a_flow_that_never_speaks_has_no_delays_and_nothing_is_nan() {
    let metrics = Meter::new(&facts(&[&[(0, 10_000)]])).finish().flows.remove(0);
    assert_eq!(
        metrics,
        FlowMetrics { active_s: 10.0, throughput_100ms: metrics.throughput_100ms, ..FlowMetrics::default() }
    );
    assert_eq!(metrics.throughput_100ms.p90, Some(0.0), "its intervals count, and are empty");
}

#[test]
fn jain_compares_flows_in_the_seconds_they_share() {
    let mut meter = Meter::new(&facts(&[&[(0, 10_000)], &[(3000, 6000)]]));
    steady(&mut meter, 0, 0, 3000);
    for ms in 3000..6000 {
        let at = Time::from_millis(ms);
        meter.record(&Event::Arrived(arrival(0, at, Duration::from_millis(25), Fate::Delivered)));
        for _ in 0..3 {
            meter.record(&Event::Arrived(arrival(1, at, Duration::from_millis(25), Fate::Delivered)));
        }
    }
    let measured = meter.finish();
    let windows: Vec<f64> = measured.jain.iter().map(|window| window.time_s).collect();
    assert_eq!(windows, [3.0, 4.0, 5.0]);
    assert_eq!(measured.flows[0].jain, Some(0.8), "(1 + 3)² / (2 · (1 + 9))");
    assert_eq!(measured.flows[1].jain, Some(0.8));
}

#[test]
fn jain_of_prbs_compares_devices() {
    let mut meter = Meter::new(&facts(&[&[(0, 10_000)], &[(0, 10_000)]]));
    let grant = |start, len| Dci { prbs: PrbSet::run(start, len), ..Dci::default() };
    let mut report = RadioReport {
        carrier: CarrierId(0),
        slot: Slot::subframe_of_lte(0),
        time: Time::ZERO,
        scope: Scope::Everyone,
        carrier_prbs: Some(50),
        cfi: Some(1),
        symbols: None,
        dcis: vec![grant(0, 10), grant(10, 30), grant(40, 10)],
        own: None,
        layer: BitLayer::Physical,
    };
    let owners = [Owner::Device(DeviceId(0)), Owner::Device(DeviceId(1)), Owner::Control];
    for ms in 0..10_000 {
        report.time = Time::from_millis(ms);
        meter.record(&Event::Subframe(&Subframe { report: &report, owners: &owners }));
    }
    let measured = meter.finish();
    assert_eq!(measured.jain_prbs.len(), 10);
    assert!(measured.jain_prbs.iter().all(|window| window.jain == 0.8 && window.sharers == 2));
    assert_eq!(measured.carriers, [Carrier { carrier: 0, prbs: 50, nr: None }]);
    assert!(measured.jain.is_empty(), "nothing was delivered, so there is no index");
}

/// Slots of a carrier of NR with the TDD pattern DDDSU, whose uplink slot has no downlink symbols.
#[test]
fn slots_of_nr_are_counted_by_direction() {
    let measured = |symbols: &[u8]| {
        let mut meter = Meter::new(&facts(&[]));
        for (index, symbols) in (0..1_000).zip(symbols.iter().cycle()) {
            let slot = Slot { numerology: Numerology::KHZ_30, index };
            let mut report = RadioReport::new(CarrierId(2), slot, Time::from_micros(500 * index));
            report.carrier_prbs = Some(273);
            report.symbols = Some(*symbols);
            meter.record(&Event::Subframe(&Subframe { report: &report, owners: &[] }));
        }
        meter.finish().carriers
    };
    let slots_per_ms = |carrier: &Carrier| {
        [Direction::Downlink, Direction::Uplink].map(|direction| carrier.slots_per_ms(direction))
    };
    let tdd = measured(&[13, 13, 13, 9, 0]);
    let nr = Some(NrSlots { numerology: 1, slots: 1_000, downlink: 800 });
    assert_eq!(tdd, [Carrier { carrier: 2, prbs: 273, nr }]);
    assert_eq!(slots_per_ms(&tdd[0]), [1.6, 0.4]);
    let fdd = measured(&[13]);
    assert_eq!(slots_per_ms(&fdd[0]), [2.0, 2.0]);
    assert_eq!(slots_per_ms(&Carrier { nr: None, ..fdd[0] }), [1.0, 1.0], "a carrier of LTE");
}

/// Two phones that send and two that receive. Bytes, PRBs and capacity are separate for each direction.
#[test]
fn what_goes_different_ways_is_not_compared() {
    let whole: &[_] = &[(0, 10_000)];
    let mut facts = facts(&[whole; 4]);
    for flow in [1, 3] {
        facts.flows[flow].device = facts.flows[flow - 1].device;
        facts.flows[flow].direction = Direction::Uplink;
    }
    let mut meter = Meter::new(&facts);
    let grant = |direction, start, len| Dci { direction, prbs: PrbSet::run(start, len), ..Dci::default() };
    let mut report = RadioReport {
        carrier: CarrierId(0),
        slot: Slot::subframe_of_lte(0),
        time: Time::ZERO,
        scope: Scope::Everyone,
        carrier_prbs: Some(50),
        cfi: Some(1),
        symbols: None,
        dcis: vec![
            grant(Direction::Downlink, 0, 20),
            grant(Direction::Uplink, 0, 10),
            grant(Direction::Downlink, 20, 20),
            grant(Direction::Uplink, 10, 30),
        ],
        own: None,
        layer: BitLayer::Physical,
    };
    let owners = [0, 0, 2, 2].map(|device| Owner::Device(DeviceId(device)));
    for ms in 0..10_000 {
        report.time = Time::from_millis(ms);
        meter.record(&Event::Subframe(&Subframe { report: &report, owners: &owners }));
        for (device, packets) in [(0, 1), (2, 3)] {
            meter.record(&Event::Capacity(capacity(device, ms, 6000)));
            let up = Capacity { direction: Direction::Uplink, ..capacity(device, ms, 4500) };
            meter.record(&Event::Capacity(up));
            let at = Time::from_micros(ms * 1000 + 500);
            let arrived = |flow| arrival(flow, at, Duration::from_millis(25), Fate::Delivered);
            meter.record(&Event::Arrived(arrived(device)));
            (0..packets).for_each(|_| meter.record(&Event::Arrived(arrived(device + 1))));
        }
    }
    let measured = meter.finish();
    let utilization: Vec<_> = measured.flows.iter().map(|flow| flow.utilization.unwrap()).collect();
    assert_eq!(utilization, [0.25, rounded(1.0 / 3.0), 0.25, 1.0], "each of its own direction's capacity");
    let index = |windows: &[JainWindow], direction| {
        let those: Vec<_> = windows.iter().filter(|window| window.direction == direction).collect();
        assert_eq!(those.len(), 10);
        assert!(those.iter().all(|window| window.jain == those[0].jain && window.sharers == 2));
        those[0].jain
    };
    for windows in [&measured.jain, &measured.jain_prbs] {
        assert_eq!(index(windows, Direction::Downlink), 1.0);
        assert_eq!(index(windows, Direction::Uplink), 0.8, "(1 + 3)² / (2 · (1 + 9))");
    }
    let jain: Vec<_> = measured.flows.iter().map(|flow| flow.jain.unwrap()).collect();
    assert_eq!(jain, [1.0, 0.8, 1.0, 0.8]);
}

#[test]
fn states_share_the_active_time() {
    let mut meter = Meter::new(&facts(&[&[(1000, 5000)]]));
    let look = |time, state| Inspected {
        time: Time::from_millis(time),
        flow: FlowId(0),
        state,
        state_changed: false,
        cwnd: Bytes(3000),
        pacing_rate: None,
        inflight: Bytes(0),
        values: &[],
    };
    for (time, state) in
        [(1000, "Startup"), (2000, "Wireless"), (2500, "Wireless"), (4000, "Startup"), (4500, "Wireless")]
    {
        meter.record(&Event::Inspected(&look(time, state)));
    }
    let flow = meter.finish().flows.remove(0);
    assert_eq!(flow.state_share["Startup"], 0.375);
    assert_eq!(flow.state_share["Wireless"], 0.625, "it counts until the flow stops, not until the run ends");
    assert_eq!(flow.state_entries["Wireless"], 2);
}

proptest! {
    #[test]
    fn jain_lies_between_one_nth_and_one(shares in prop::collection::vec(0.0..1e9_f64, 1..20)) {
        match jain(&shares) {
            Some(index) => prop_assert!(index <= 1.0 && index >= 1.0 / shares.len() as f64 - 1e-12),
            None => prop_assert!(shares.iter().all(|share| *share == 0.0)),
        }
    }

    #[test]
    fn percentiles_are_ordered_and_close_to_the_exact_ones(delays_us in prop::collection::vec(1_u64..60_000_000, 1..300)) {
        let mut meter = Meter::new(&facts(&[&[(0, 10_000)]]));
        for delay in &delays_us {
            let one_way = Duration::from_micros(*delay);
            meter.record(&Event::Arrived(arrival(0, Time::from_secs(100), one_way, Fate::Delivered)));
        }
        let delays = meter.finish().flows.remove(0).one_way_delay_ms;
        let mut sorted = delays_us.clone();
        sorted.sort_unstable();
        for (q, found) in [(0.50, delays.p50), (0.95, delays.p95), (0.99, delays.p99)] {
            let exact = *nearest_rank(&sorted, q).unwrap() as f64 * 1e-3;
            let found = found.unwrap();
            prop_assert!(found >= exact && found <= exact * 1.001 + 0.001, "p{q}: {found} for {exact}");
        }
        prop_assert!(delays.p50 <= delays.p95 && delays.p95 <= delays.p99);
    }

    #[test]
    fn a_flow_that_delivers_all_there_is_has_utilization_one(
        chances in prop::collection::vec(0_u64..5, 1..400),
        start in 0_u64..300,
        length in 1_u64..500,
    ) {
        let mut meter = Meter::new(&facts(&[&[(start, start + length)]]));
        let mut carried = 0;
        for (ms, chances) in (0..).zip(&chances) {
            meter.record(&Event::Capacity(capacity(0, ms, chances * 1500)));
            for _ in 0..*chances {
                let at = Time::from_millis(ms);
                meter.record(&Event::Arrived(arrival(0, at, Duration::from_millis(21), Fate::Delivered)));
            }
            if (start..start + length).contains(&ms) {
                carried += chances;
            }
        }
        let flow = meter.finish().flows.remove(0);
        prop_assert_eq!(flow.utilization, (carried > 0).then_some(1.0));
    }

    #[test]
    fn no_stream_of_events_gives_a_number_that_cannot_be(
        events in prop::collection::vec((0_u64..10_000, 0_u16..3, 0_u64..2_000, prop::bool::ANY, 0_u64..20_000), 0..300),
    ) {
        let mut events = events;
        events.sort_unstable();
        let mut meter = Meter::new(&facts(&[&[(0, 10_000)], &[(500, 4_000), (4_001, 9_000)], &[(2_000, 2_000)]]));
        for (ms, flow, one_way_ms, delivered, bytes) in events {
            let fate = if delivered { Fate::Delivered } else { Fate::WireLoss };
            let (at, one_way) = (Time::from_millis(ms), Duration::from_millis(one_way_ms));
            meter.record(&Event::Capacity(capacity(flow, ms, bytes)));
            meter.record(&Event::Arrived(arrival(flow, at, one_way, fate)));
        }
        for flow in meter.finish().flows {
            prop_assert!(flow.throughput_mbps >= 0.0 && flow.throughput_mbps.is_finite());
            prop_assert!(flow.utilization.is_none_or(|utilization| (0.0..=1.0).contains(&utilization)));
            prop_assert!(flow.loss_rate.is_none_or(|rate| (0.0..=1.0).contains(&rate)));
            prop_assert!(flow.jain.is_none_or(|index| index > 0.0 && index <= 1.0));
            prop_assert!(flow.power.is_none_or(|power| power >= 0.0 && power.is_finite()));
            let rates = flow.throughput_100ms;
            prop_assert!(rates.p10 <= rates.p25 && rates.p25 <= rates.p50);
            prop_assert!(rates.p50 <= rates.p75 && rates.p75 <= rates.p90);
        }
    }

    #[test]
    fn the_order_of_flows_changes_nothing(
        arrivals in prop::collection::vec((0_u64..10_000, 0_u16..3), 0..300),
        order in Just([0_u16, 1, 2]).prop_shuffle(),
    ) {
        let mut arrivals = arrivals;
        arrivals.sort_unstable();
        let active: [&[(u64, u64)]; 3] = [&[(0, 10_000)], &[(1_000, 7_000)], &[(0, 2_500), (3_000, 9_000)]];
        let run = |place: &dyn Fn(u16) -> u16| {
            let mut slots = active;
            for flow in 0..3 {
                slots[usize::from(place(flow))] = active[usize::from(flow)];
            }
            let mut meter = Meter::new(&facts(&slots));
            for (ms, flow) in &arrivals {
                let at = Time::from_millis(*ms);
                meter.record(&Event::Arrived(arrival(place(*flow), at, Duration::from_millis(21), Fate::Delivered)));
            }
            meter.finish().flows
        };
        let straight = run(&|flow| flow);
        let shuffled = run(&|flow| order[usize::from(flow)]);
        for flow in 0..3_usize {
            prop_assert_eq!(&straight[flow], &shuffled[usize::from(order[flow])]);
        }
    }
}
