//! Properties of any cell under any arrivals.

use std::collections::BTreeMap;

use airpace_radio::PrbSet;
use proptest::prelude::*;

use super::super::bler::BlerModel;
use super::super::config::{BackgroundConfig, Hour, RlcMode};
use super::*;

fn cells() -> impl Strategy<Value = CellConfig> {
    let radio = (
        prop::sample::select(vec![6_u16, 15, 25, 50, 75, 100]),
        1_u8..=5,
        prop::sample::select(vec![Policy::RoundRobin, Policy::ProportionalFair, Policy::MaxCi]),
        prop::sample::select(vec![BlerModel::Sinr, BlerModel::Pbe]),
        any::<bool>(),
    );
    let rest = (
        prop::option::of(1_u8..=3),
        prop::sample::select(vec![RlcMode::Acknowledged, RlcMode::Unacknowledged]),
        prop::sample::select(vec![None, Some(Hour::Idle), Some(Hour::Busy)]),
        0_u16..5,
        1_u8..10,
    );
    (radio, rest).prop_map(
        |((prbs, carriers, scheduler, model, lena_compat), (cfi, mode, hour, full_buffer, most))| {
            let mut config = CellConfig {
                prbs: Some(prbs),
                carriers,
                scheduler,
                cfi,
                lena_compat,
                max_users_per_subframe: most,
                background: BackgroundConfig { hour, full_buffer, ..BackgroundConfig::default() },
                ..CellConfig::default()
            };
            config.bler.model = model;
            config.bler.pbe_bit_error_rate = 2e-5;
            config.bler.pbe_retransmission_factor = 0.5;
            config.rlc.mode = mode;
            config
        },
    )
}

fn devices() -> impl Strategy<Value = Vec<DeviceRadioConfig>> {
    let one = (-3.0..28.0, 1_u8..=2, any::<bool>(), prop::collection::vec(0.05..0.3, 0..2));
    let one = one.prop_map(|(sinr_db, layers, qam256, handover_s)| {
        let channel = ChannelConfig { sinr_db: Some(sinr_db), layers, ..ChannelConfig::default() };
        DeviceRadioConfig {
            channel,
            qam256,
            handover_s,
            queue_bytes: 200_000,
            ..DeviceRadioConfig::default()
        }
    });
    prop::collection::vec(one, 1..4)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn bytes_are_conserved_packets_keep_their_order_and_prbs_are_given_once(
        config in cells(),
        mut devices in devices(),
        sources in prop::collection::vec((0_usize..4, 40_u64..2000, 0.1..60.0), 1..4),
        seed in any::<u64>(),
    ) {
        if config.lena_compat {
            devices.iter_mut().for_each(|device| device.qam256 = false);
        }
        let until = Time::from_millis(300);
        let sources = sources.into_iter().map(|(device, bytes, mbps)| {
            Source::new((device % devices.len()) as u16, bytes, Rate::from_mbps(mbps), Time::ZERO, until)
        });
        let mut bench = Bench::with_seed(&config, &devices, sources.collect(), seed);
        bench.cell.set_recording(true);
        bench.cell.set_listening(DeviceId(0), true);
        let round_trip = if config.lena_compat { 7 } else { 8 };
        let (mut given_twice, mut early) = (0, 0);
        let mut last_sent = BTreeMap::new();
        bench.run(Time::from_millis(400), |cell| {
            for subframe in cell.subframes() {
                let report = subframe.report;
                let mut free = PrbSet::run(0, report.carrier_prbs.unwrap());
                for dci in &report.dcis {
                    given_twice += dci.prbs.without(free).len();
                    free = free.without(dci.prbs);
                    let sent = last_sent.insert((report.carrier, dci.rnti, dci.harq), report.slot.index);
                    let is_early = sent.is_some_and(|sent| report.slot.index < sent + round_trip);
                    early += u32::from(dci.is_retransmission() && is_early);
                }
            }
            while cell.pop_report(Time::from_millis(cell.subframes_run())).is_some() {}
        });
        prop_assert_eq!(given_twice, 0, "a PRB was granted twice, or lies beyond the carrier");
        prop_assert_eq!(early, 0, "a block was sent again before its feedback");
        bench.run(Time::from_secs(2), |_| {});

        let (pushed, left_or_held) = bench.bytes_in_and_out();
        prop_assert_eq!(pushed, left_or_held, "bytes in and bytes out differ");

        let mut next = BTreeMap::new();
        for exit in bench.exits.iter().filter(|exit| exit.fate != Fate::QueueFull) {
            let least = next.entry(exit.packet.flow).or_insert(0);
            prop_assert!(exit.packet.number >= *least, "a packet overtook another of its flow");
            *least = exit.packet.number + 1;
        }
        prop_assert!(bench.exits.windows(2).all(|pair| pair[0].time <= pair[1].time));
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let run = |seed| {
        let background = BackgroundConfig { hour: Some(Hour::Busy), ..BackgroundConfig::default() };
        let config = CellConfig { background, ..CellConfig::default() };
        let mut bench = Bench::with_seed(&config, &[device(14.0)], vec![Source::saturating(0, 1500)], seed);
        bench.run(Time::from_secs(2), |_| {});
        bench.exits
    };
    assert!(run(1) == run(1));
    assert!(run(1) != run(2));
}

#[test]
fn what_cannot_be_built_is_refused_by_key_and_remedy() {
    let refusal = |change: fn(&mut CellConfig)| {
        let mut config = CellConfig::default();
        change(&mut config);
        crate::cell::CellPlan::new(&config, &[device(20.0)]).expect_err("must be refused").to_string()
    };
    let errors = [
        refusal(|cell| cell.prbs = Some(99)),
        refusal(|cell| cell.carriers = 6),
        refusal(|cell| cell.max_users_per_subframe = 0),
        refusal(|cell| cell.cfi = Some(4)),
        refusal(|cell| cell.telemetry.missed_dci = 2.0),
        {
            let phone = DeviceRadioConfig { carriers: vec![0, 3], ..device(20.0) };
            crate::cell::CellPlan::new(&CellConfig::default(), &[phone])
                .expect_err("must be refused")
                .to_string()
        },
    ];
    insta::assert_snapshot!(errors.join("\n"), @r"
    `prbs` is 99; must be one of 6, 15, 25, 50, 75, 100
    `carriers` is 6; a cell has 1 to 5
    `max_users_per_subframe` is 0: no capacity; give 1 or more
    `cfi` must be 1, 2 or 3; leave it out to let it follow the load
    `telemetry.missed_dci` is 2; a probability is 0 to 1 (0.01 is one in a hundred)
    `device.0.carriers` names carrier 3; the cell has 0 to 0
    ");
}
