//! Cells with carriers of NR.

use std::collections::{BTreeMap, BTreeSet};

use airpace_core::Direction;
use airpace_core::tables::nr::{Allocation, Band, Duplex, McsTable};
use airpace_radio::{DciFormat, PrbSet};
use proptest::prelude::*;

use super::super::config::{
    BackgroundConfig, Bearer, CarrierConfig, ConfiguredGrantConfig, DualConnectivityConfig, Hour, Rat,
    RlcMode, SplitBy, UplinkPath,
};
use super::super::pattern::Pattern;
use super::uplink::Upload;
use super::*;

/// A cell of 100 MHz in n78 with the pattern DDDSU.
fn n78() -> CellConfig {
    CellConfig { rat: Rat::Nr, band: Some("n78".into()), ..CellConfig::default() }
}

/// A device with this SINR on each of `layers` layers.
pub(super) fn device_with_layers(sinr_db: f64, layers: u8) -> DeviceRadioConfig {
    let channel =
        ChannelConfig { sinr_db: Some(sinr_db), layers, layer_penalty_db: 0.0, ..ChannelConfig::default() };
    DeviceRadioConfig { channel, queue_bytes: 20_000_000, ..DeviceRadioConfig::default() }
}

/// Bits per second on the air if each slot of DDDSU carries a block over 273 PRBs at MCS 27 of table 2.
fn air_mbps(layers: u8) -> f64 {
    let block = |symbols| {
        let allocation = Allocation { n_prb: 273, symbols, dmrs_res_per_prb: 12, overhead_res_per_prb: 0 };
        McsTable::Qam256.tbs(27, &allocation, layers).expect("a row of the table").0 as f64
    };
    (3.0 * block(13) + block(9)) / 2.5e-3 / 1e6
}

#[test]
fn a_saturated_cell_of_100_mhz_carries_the_rate_of_its_blocks() {
    assert!((air_mbps(4) - 1724.1).abs() < 0.1, "the study computed 1,724.1 by hand");
    let source = Source::new(0, 1500, Rate::from_mbps(2_000.0), Time::ZERO, Time::NEVER);
    let mut bench = Bench::new(&n78(), &[device_with_layers(40.0, 4)], vec![source]);
    let end = Time::from_secs(1);
    bench.run(end, |_| {});
    let got = bench.goodput_mbps(0, 1500, Time::from_millis(200), end);
    assert!((0.97..1.0).contains(&(got / air_mbps(4))), "{got:.1} of {:.1} Mbit/s", air_mbps(4));
}

/// The whole path of a lost block: the first transmission of a packet is lost, and the packet arrives with the
/// retransmission.
#[test]
fn a_lost_block_is_sent_again_three_and_a_half_three_two_and_a_half_or_four_and_a_half_ms_later() {
    let mut config = n78();
    config.bler.model = super::super::bler::BlerModel::Pbe;
    config.bler.pbe_bit_error_rate = 5e-4;
    config.bler.pbe_retransmission_factor = 0.0;
    // One packet every 10.5 ms, which visits the slots of the pattern in turn.
    let source = Source::new(0, 130, Rate::from_bps(99_048), Time::ZERO, Time::from_secs(40));
    let mut bench = Bench::new(&config, &[device_with_layers(20.0, 1)], vec![source]);
    bench.cell.set_recording(true);
    let mut sent: BTreeMap<Option<u8>, u64> = BTreeMap::new();
    let mut delays: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
    bench.run(Time::from_secs(40), |cell| {
        for slot in cell.subframes() {
            let index = slot.report.slot.index;
            for (dci, _) in slot
                .report
                .dcis
                .iter()
                .zip(slot.owners)
                .filter(|(_, owner)| **owner == Owner::Device(DeviceId(0)))
            {
                if dci.retransmission[0] {
                    let first = sent[&dci.harq];
                    delays.entry(first % 5).or_default().insert(index - first);
                }
                sent.insert(dci.harq, index);
            }
        }
    });
    let slots: Vec<(u64, Vec<u64>)> =
        delays.into_iter().map(|(slot, delays)| (slot, delays.into_iter().collect())).collect();
    assert_eq!(slots, [(0, vec![7]), (1, vec![6]), (2, vec![5]), (3, vec![9])], "slots of 0.5 ms");
}

/// Any cell with carriers of NR, some with carriers of LTE as well.
fn cells() -> impl Strategy<Value = CellConfig> {
    let carrier = (any::<prop::sample::Index>(), any::<prop::sample::Index>(), any::<prop::sample::Index>());
    let radio = (
        prop::collection::vec(carrier, 1..4),
        prop::sample::select(vec!["DDDSU", "DDDSUUDDDD", "DSUUU", "DDDDDDDSUU", "DDDSUU DDDD", "DU"]),
        prop::sample::select(vec![[10_u8, 2, 2], [6, 4, 4], [2, 10, 2], [12, 1, 1]]),
        prop::sample::select(vec![Policy::RoundRobin, Policy::ProportionalFair, Policy::MaxCi]),
        any::<bool>(),
    );
    let rest = (
        1_u8..=3,
        1_u8..=3,
        1_u8..=4,
        prop::sample::select(vec![0_u8, 6, 18]),
        (
            prop::sample::select(vec![2_u8, 8, 16, 32]),
            prop::sample::select(vec![0_u8, 4, 8]),
            prop::option::of((prop::sample::select(vec![1_u32, 10, 40]), 1_u16..8)),
        ),
        prop::sample::select(vec![RlcMode::Acknowledged, RlcMode::Unacknowledged]),
        prop::sample::select(vec![None, Some(Hour::Busy)]),
        0_u16..3,
        (
            prop::sample::select(vec![SplitBy::Delay, SplitBy::NrFirst, SplitBy::Share]),
            prop::sample::select(vec![Bearer::Split, Bearer::Split, Bearer::Scg]),
            prop::sample::select(vec![UplinkPath::Nr, UplinkPath::Lte]),
        ),
    );
    (radio, rest).prop_map(
        |(
            (carriers, tdd, special, scheduler, has_lte),
            (
                table,
                coreset,
                dmrs,
                overhead,
                (processes, groups, configured),
                mode,
                hour,
                full,
                (split_by, bearer, uplink),
            ),
        )| {
            let mut config = CellConfig {
                rat: Rat::Nr,
                scheduler,
                background: BackgroundConfig { hour, full_buffer: full, ..BackgroundConfig::default() },
                ..CellConfig::default()
            };
            for (band, spacing, bandwidth) in carriers {
                let band = band.get(Band::all());
                let (spacing, bandwidths) = spacing.get(band.channels);
                let mut own = CarrierConfig {
                    band: Some(band.name.into()),
                    scs_khz: Some(spacing.khz()),
                    bandwidth_mhz: Some(*bandwidth.get(bandwidths)),
                    ..CarrierConfig::default()
                };
                let slot_us = 1_000 >> spacing.mu();
                if band.duplex == Duplex::Tdd && Pattern::parse(tdd, special, slot_us).is_ok() {
                    own.tdd = Some(tdd.into());
                    own.special_symbols = Some(special);
                }
                config.carrier.push(own);
            }
            if has_lte {
                let lte = CarrierConfig { rat: Some(Rat::Lte), prbs: Some(50), ..CarrierConfig::default() };
                config.carrier.insert(0, lte);
                let split = DualConnectivityConfig { split_by, bearer, uplink, ..Default::default() };
                config.dual_connectivity = Some(split);
            }
            config.carriers = config.carrier.len() as u8;
            config.nr.mcs_table = table;
            config.nr.coreset_symbols = coreset;
            config.nr.dmrs_positions = dmrs;
            config.nr.xoverhead = overhead;
            config.nr.harq_processes = processes;
            config.nr.code_block_groups = groups;
            if !has_lte || uplink == UplinkPath::Nr {
                config.nr.configured_grant =
                    configured.map(|(period_ms, prbs)| ConfiguredGrantConfig { period_ms, prbs });
            }
            config.rlc.mode = mode;
            config.bler.model = super::super::bler::BlerModel::Pbe;
            config.bler.pbe_bit_error_rate = 1e-5;
            config.bler.pbe_retransmission_factor = 0.5;
            config
        },
    )
}

fn devices() -> impl Strategy<Value = Vec<DeviceRadioConfig>> {
    let one = (-3.0..32.0, 1_u8..=4, prop::collection::vec(0.05..0.3, 0..2));
    let one = one.prop_map(|(sinr_db, layers, handover_s)| DeviceRadioConfig {
        handover_s,
        queue_bytes: 300_000,
        ..device_with_layers(sinr_db, layers)
    });
    prop::collection::vec(one, 1..4)
}

/// The devices, with these times in s at which NR stops and starts to cover the first of them, if the cell has LTE as well.
fn with_coverage(
    config: &CellConfig,
    mut devices: Vec<DeviceRadioConfig>,
    times: &[f64],
) -> Vec<DeviceRadioConfig> {
    let mut times = times.to_vec();
    times.sort_unstable_by(f64::total_cmp);
    if config.dual_connectivity.is_some() {
        devices[0].without_nr_s = times.chunks_exact(2).map(|span| [span[0], span[1]]).collect();
    }
    devices
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn bytes_are_conserved_packets_keep_their_order_and_prbs_are_granted_once_in_downlink_slots(
        config in cells(),
        devices in devices(),
        sources in prop::collection::vec((0_usize..4, 40_u64..2000, 0.1..300.0), 1..4),
        coverage in prop::collection::vec(0.0..0.4, 0..5),
        seed in any::<u64>(),
    ) {
        let devices = with_coverage(&config, devices, &coverage);
        let until = Time::from_millis(300);
        let sources = sources.into_iter().map(|(device, bytes, mbps)| {
            Source::new((device % devices.len()) as u16, bytes, Rate::from_mbps(mbps), Time::ZERO, until)
        });
        let mut bench = Bench::with_seed(&config, &devices, sources.collect(), seed);
        bench.cell.set_recording(true);
        let (mut given_twice, mut in_uplink) = (0, 0);
        bench.run(Time::from_millis(400), |cell| {
            for slot in cell.subframes() {
                let report = slot.report;
                let mut free = PrbSet::run(0, report.carrier_prbs.unwrap());
                for dci in report.dcis.iter().filter(|dci| dci.direction == Direction::Downlink) {
                    given_twice += dci.prbs.without(free).len();
                    free = free.without(dci.prbs);
                    in_uplink += u32::from(report.symbols == Some(0));
                }
            }
        });
        prop_assert_eq!(given_twice, 0, "a PRB was granted twice, or lies beyond the carrier");
        prop_assert_eq!(in_uplink, 0, "an uplink slot has downlink data");
        bench.run(Time::from_secs(2), |_| {});

        let (pushed, left_or_held) = bench.bytes_in_and_out();
        prop_assert_eq!(pushed, left_or_held, "bytes in and bytes out differ");

        let mut next = BTreeMap::new();
        for exit in bench.exits.iter().filter(|exit| exit.fate == Fate::Delivered) {
            let least = next.entry(exit.packet.flow).or_insert(0);
            prop_assert!(exit.packet.number >= *least, "a packet overtook another of its flow");
            *least = exit.packet.number + 1;
        }
        prop_assert!(bench.exits.windows(2).all(|pair| pair[0].time <= pair[1].time));
    }

    #[test]
    fn uploads_end_and_grants_of_a_slot_do_not_overlap(
        config in cells(),
        devices in devices(),
        sources in prop::collection::vec((0_usize..4, 40_u64..2000, 0.1..60.0), 1..4),
        coverage in prop::collection::vec(0.0..0.4, 0..5),
        seed in any::<u64>(),
    ) {
        let devices = with_coverage(&config, devices, &coverage);
        let until = Time::from_millis(200);
        let sources = sources.into_iter().map(|(device, bytes, mbps)| {
            Source::new((device % devices.len()) as u16, bytes, Rate::from_mbps(mbps), Time::ZERO, until)
        });
        let mut upload = Upload::new(&config, &devices, sources.collect(), seed);
        upload.cell.set_recording(true);
        let mut granted: BTreeMap<(u8, u64), PrbSet> = BTreeMap::new();
        let mut overlaps = 0;
        upload.run(Time::from_secs(1), |cell| {
            for slot in cell.subframes() {
                for dci in slot.report.dcis.iter().filter(|dci| dci.direction == Direction::Uplink) {
                    let Some(delay) = dci.offset_slots else { continue };
                    let data_slot = slot.report.slot.index + u64::from(delay);
                    let taken = granted.entry((slot.report.carrier.0, data_slot)).or_default();
                    overlaps += taken.intersection(dci.prbs).len();
                    *taken = taken.union(dci.prbs);
                }
            }
        });
        prop_assert_eq!(overlaps, 0);
        prop_assert!(upload.exits.windows(2).all(|pair| pair[0].time <= pair[1].time));
        let held: u64 = (0..devices.len()).map(|device| upload.cell.uplink.held(device).0).sum();
        let pushed: u64 = upload.sources_bytes();
        let ended: u64 = upload.exits.iter().map(|exit| exit.packet.bytes.0).sum();
        prop_assert_eq!(pushed, ended + held, "bytes in and bytes out differ");
    }
}

#[test]
fn a_special_slot_without_room_for_data_carries_none_and_delays_retransmissions_to_the_next_slot() {
    let mut config = n78();
    config.special_symbols = Some([2, 10, 2]);
    config.bler.model = super::super::bler::BlerModel::Pbe;
    let source = Source::new(0, 1500, Rate::from_mbps(800.0), Time::ZERO, Time::NEVER);
    let mut bench = Bench::new(&config, &[device_with_layers(20.0, 4)], vec![source]);
    bench.cell.set_recording(true);
    let (mut blocks, mut retransmissions) = ([0_u32; 5], [0_u32; 5]);
    bench.run(Time::from_secs(2), |cell| {
        for slot in cell.subframes() {
            let place = (slot.report.slot.index % 5) as usize;
            let downlink = slot.report.dcis.iter().filter(|dci| dci.direction == Direction::Downlink);
            for dci in downlink {
                blocks[place] += 1;
                retransmissions[place] += u32::from(dci.retransmission[0]);
            }
        }
    });
    assert_eq!((blocks[3], blocks[4]), (0, 0), "{blocks:?}");
    for place in 0..3 {
        assert!(blocks[place] > 700 && retransmissions[place] > 50, "{blocks:?}, {retransmissions:?}");
    }
}

#[test]
fn false_dcis_of_nr_have_its_formats_and_blocks_and_occur_in_slots_with_control_symbols() {
    let mut config = n78();
    config.telemetry.false_dci_per_subframe = 0.5;
    let mut bench = Bench::new(&config, &[device_with_layers(20.0, 4)], vec![]);
    bench.cell.set_listening(DeviceId(0), true);
    let (mut reports, mut false_dcis) = (0, 0);
    bench.run(Time::from_secs(4), |cell| {
        while let Some((_, report)) = cell.pop_report(Time::NEVER) {
            reports += 1;
            for dci in &report.dcis {
                // System information has the RNTI 65,535.
                if dci.rnti.0 == 65_535 {
                    continue;
                }
                false_dcis += 1;
                let symbols = dci.symbols.expect("DCIs of NR name their symbols");
                let allocation = Allocation {
                    n_prb: dci.prbs.len(),
                    symbols,
                    dmrs_res_per_prb: 12,
                    overhead_res_per_prb: 0,
                };
                assert_eq!(dci.format, DciFormat::Nr11);
                assert_eq!(Some(dci.bits()), McsTable::Qam64.tbs(dci.mcs[0].unwrap(), &allocation, 1));
                assert!(report.symbols == Some(symbols) && symbols > 0);
            }
        }
    });
    // A subframe has two slots, and one slot in five is an uplink slot.
    let per_report = f64::from(false_dcis) / f64::from(reports);
    assert!((per_report - 0.2).abs() < 0.02, "{per_report} false DCIs per slot of {reports}");
}

#[test]
fn code_block_groups_send_only_the_lost_part_of_a_block_again() {
    let run = |groups: u8| {
        let mut config = n78();
        config.nr.code_block_groups = groups;
        // 0.3 of the full blocks are lost, and half of the second transmissions.
        config.bler.model = super::super::bler::BlerModel::Pbe;
        config.bler.pbe_bit_error_rate = 6e-7;
        config.bler.pbe_retransmission_factor = 0.5;
        let source = Source::new(0, 1500, Rate::from_mbps(1_500.0), Time::ZERO, Time::NEVER);
        let mut bench = Bench::new(&config, &[device_with_layers(32.0, 4)], vec![source]);
        bench.cell.set_recording(true);
        let (mut first, mut again) = (0_u64, 0_u64);
        let mut blocks = [0_u64; 2];
        bench.run(Time::from_secs(2), |cell| {
            for slot in cell.subframes() {
                for dci in slot.report.dcis.iter().filter(|dci| dci.harq.is_some()) {
                    let place = usize::from(dci.retransmission[0]);
                    *[&mut first, &mut again][place] += u64::from(dci.prbs.len());
                    blocks[place] += 1;
                }
            }
        });
        let goodput = bench.goodput_mbps(0, 1500, Time::from_millis(500), Time::from_secs(2));
        (goodput, again as f64 / first as f64, blocks[1] as f64 / blocks[0] as f64)
    };
    let (whole_mbps, whole_prbs, whole_blocks) = run(0);
    let (groups_mbps, groups_prbs, groups_blocks) = run(8);
    assert!(
        whole_prbs > 0.3 && (whole_prbs / whole_blocks - 1.0).abs() < 0.1,
        "{whole_prbs}, {whole_blocks}"
    );
    assert!(groups_blocks > 0.2, "{groups_blocks}");
    // With 8 groups, a lost block has 1.3 lost groups on average, for which 3 or 4 of 18 RBGs are needed.
    let share = groups_prbs / groups_blocks;
    assert!(
        (0.15..0.26).contains(&share),
        "{groups_prbs}, {groups_blocks}, {groups_mbps} and {whole_mbps} Mbit/s"
    );
    assert!(groups_mbps > 1.2 * whole_mbps, "{groups_mbps} and {whole_mbps} Mbit/s");
}

#[test]
fn a_configured_grant_carries_sparse_packets_without_a_request() {
    let delay_ms = |configured_grant: Option<ConfiguredGrantConfig>| {
        let mut config = n78();
        config.nr.configured_grant = configured_grant;
        // A packet of 200 bytes every 16 ms.
        let source = Source::new(0, 200, Rate::from_bps(100_000), Time::ZERO, Time::from_secs(10));
        let mut upload = Upload::new(&config, &[device_with_layers(20.0, 2)], vec![source], 1);
        upload.cell.set_recording(true);
        let mut grants = 0;
        upload.run(Time::from_secs(11), |cell| {
            let slots = cell.subframes().flat_map(|slot| &slot.report.dcis);
            grants += slots.filter(|dci| dci.direction == Direction::Uplink).count();
        });
        let delays: Vec<f64> =
            upload.exits.iter().map(|exit| (exit.time - exit.packet.sent).as_secs_f64() * 1e3).collect();
        assert_eq!(delays.len(), 625);
        (delays.iter().sum::<f64>() / delays.len() as f64, grants)
    };
    let (requested_ms, grants) = delay_ms(None);
    assert!(grants >= 625);
    let (configured_ms, grants) = delay_ms(Some(ConfiguredGrantConfig { period_ms: 5, prbs: 20 }));
    assert!(grants < 200, "retransmissions, and requests that were earlier: {grants}");
    assert!(configured_ms + 3.0 < requested_ms, "{configured_ms} ms, with requests {requested_ms} ms");
}

#[test]
fn a_device_without_data_leaves_its_configured_grant_unused() {
    let mut config = n78();
    config.nr.configured_grant = Some(ConfiguredGrantConfig { period_ms: 1, prbs: 20 });
    // One packet at the start.
    let source = Source::new(0, 200, Rate::from_bps(100_000), Time::ZERO, Time::from_millis(10));
    let mut upload = Upload::new(&config, &[device_with_layers(20.0, 2)], vec![source], 1);
    upload.run(Time::from_millis(200), |_| {});
    let busy = |upload: &mut Upload, ms: u64| {
        let mut blocks = 0;
        upload.run(Time::from_millis(ms), |cell| blocks += cell.uplink.used_prbs());
        blocks
    };
    assert_eq!((upload.exits.len(), busy(&mut upload, 400)), (1, 0));
}

#[test]
fn what_nr_does_not_have_is_refused_by_key_reason_and_remedy() {
    let refusal = |change: &dyn Fn(&mut CellConfig)| {
        let mut config = n78();
        change(&mut config);
        let phone = device_with_layers(20.0, 4);
        crate::cell::CellPlan::new(&config, &[phone]).expect_err("must be refused").to_string()
    };
    let of_device =
        |phone| crate::cell::CellPlan::new(&n78(), &[phone]).expect_err("must be refused").to_string();
    let second = |own: CarrierConfig| {
        move |cell: &mut CellConfig| {
            (cell.carriers, cell.carrier) = (2, vec![CarrierConfig::default(), own.clone()])
        }
    };
    let errors = [
        refusal(&|cell| cell.band = None),
        refusal(&|cell| cell.band = Some("n999".into())),
        refusal(&|cell| cell.scs_khz = Some(120)),
        refusal(&|cell| cell.scs_khz = Some(45)),
        refusal(&|cell| cell.bandwidth_mhz = Some(35)),
        refusal(&|cell| cell.prbs = Some(100)),
        refusal(&|cell| cell.cfi = Some(2)),
        refusal(&|cell| cell.crs_ports = Some(2)),
        refusal(&|cell| cell.uplink.prbs = Some(50)),
        refusal(&|cell| cell.adaptation.qam256 = true),
        refusal(&|cell| cell.rlc.mac_header_bytes += 1),
        refusal(&|cell| cell.adaptation.antenna_ports = 4),
        refusal(&|cell| cell.bler.by_code_block = true),
        refusal(&|cell| cell.rlc.status_alone = true),
        refusal(&|cell| cell.lena_compat = true),
        refusal(&|cell| cell.adaptation.lena_compat = true),
        refusal(&|cell| cell.tdd = Some("DDDDD".into())),
        refusal(&|cell| cell.tdd = Some("DDDXU".into())),
        refusal(&|cell| cell.tdd = Some("DDDDDDDDDDDDDDDDDSUU".into())),
        refusal(&|cell| cell.nr.k1_min_slots = Some(12)),
        refusal(&|cell| cell.special_symbols = Some([10, 2, 3])),
        refusal(&|cell| cell.frequency_ghz = Some(2.1)),
        refusal(&|cell| (cell.band, cell.tdd) = (Some("n1".into()), Some("DDDSU".into()))),
        refusal(&|cell| cell.nr.mcs_table = 4),
        refusal(&|cell| cell.nr.harq_processes = 5),
        refusal(&|cell| cell.nr.xoverhead = 7),
        refusal(&|cell| cell.nr.code_block_groups = 3),
        refusal(&|cell| cell.nr.configured_grant = Some(ConfiguredGrantConfig { period_ms: 3, prbs: 1 })),
        refusal(&|cell| cell.nr.configured_grant = Some(ConfiguredGrantConfig { period_ms: 1, prbs: 0 })),
        refusal(&|cell| cell.nr.configured_grant = Some(ConfiguredGrantConfig { period_ms: 1, prbs: 274 })),
        refusal(&|cell| cell.nr.ssb.beams = Some(9)),
        refusal(&|cell| cell.dual_connectivity = Some(DualConnectivityConfig::default())),
        refusal(&|cell| (cell.rat, cell.band) = (Rat::Lte, None)),
        refusal(&|cell| cell.rat = Rat::Lte),
        {
            let mut config = CellConfig::default();
            config.nr.harq_processes = 8;
            crate::cell::CellPlan::new(&config, &[device_with_layers(20.0, 1)])
                .expect_err("must be refused")
                .to_string()
        },
        refusal(&|cell| cell.background.layers = 5),
        refusal(&second(CarrierConfig { prbs: Some(50), ..CarrierConfig::default() })),
        refusal(&second(CarrierConfig {
            rat: Some(Rat::Lte),
            tdd: Some("DDDSU".into()),
            ..CarrierConfig::default()
        })),
        of_device(device_with_layers(20.0, 5)),
        of_device(DeviceRadioConfig { qam256: true, ..device_with_layers(20.0, 4) }),
        of_device(DeviceRadioConfig { without_nr_s: vec![[1.0, 2.0]], ..device_with_layers(20.0, 4) }),
        of_device(DeviceRadioConfig {
            without_nr_s: vec![[1.0, 3.0], [2.0, 4.0]],
            ..device_with_layers(20.0, 4)
        }),
    ];
    insta::assert_snapshot!(errors.join("\n"), @r#"
    `band` is missing; a carrier of NR needs a band, such as "n78"
    `band` is "n999"; use one of n1, n2, n3, n5, n7, n8, n12, n20, n25, n28, n38, n40, n41, n66, n71, n77, n78, n79, n257, n258, n260, n261
    `scs_khz` is 120; the band n78 has 15, 30, 60 kHz
    `scs_khz` is 45; the band n78 has 15, 30, 60 kHz
    `bandwidth_mhz` is 35; the band n78 with 30 kHz has 10, 15, 20, 25, 30, 40, 50, 60, 70, 80, 90, 100 MHz
    `prbs` belongs to carriers of LTE; give `bandwidth_mhz`, from which the number of PRBs of NR follows
    `cfi` belongs to carriers of LTE; remove it, or remove rat = "nr"
    `crs_ports` belongs to carriers of LTE; remove it, or remove rat = "nr"
    `uplink.prbs` belongs to carriers of LTE; remove it, or remove rat = "nr"
    `adaptation.qam256` belongs to carriers of LTE; remove it, or remove rat = "nr"
    `rlc.mac_header_bytes` belongs to carriers of LTE; remove it, or remove rat = "nr"
    `adaptation.antenna_ports` belongs to carriers of LTE; remove it, or remove rat = "nr"
    `bler.by_code_block` belongs to carriers of LTE; remove it, or remove rat = "nr"
    `rlc.status_alone` belongs to carriers of LTE; remove it, or remove rat = "nr"
    `lena_compat` emulates a simulator of LTE; remove it, or use carriers of LTE
    `adaptation.lena_compat` emulates a simulator of LTE; remove it, or use carriers of LTE
    `tdd` has no uplink slot, so acknowledgements could not be sent; add a U slot
    `tdd` contains `X`; use D (downlink), S (special) and U (uplink), such as DDDSU
    `tdd` acknowledges data of slot 0 only 18 slots later, and at most 15 are possible; give a pattern with more uplink slots, or a smaller `nr.k1_min_slots`
    `tdd` acknowledges data of slot 3 only 16 slots later, and at most 15 are possible; give a pattern with more uplink slots, or a smaller `nr.k1_min_slots`
    `special_symbols` is [10, 2, 3], which are 15 symbols; downlink, guard and uplink symbols must be 14 in total, such as [10, 2, 2]
    `frequency_ghz` is 2.1; the band n78 has 3.3 to 3.8 GHz in the downlink
    `tdd` belongs to TDD bands, and n1 is an FDD band; remove it
    `nr.mcs_table` is 4; give 1, 2 (256QAM) or 3
    `nr.harq_processes` is 5; give 2, 4, 6, 8, 10, 12, 16 or 32
    `nr.xoverhead` is 7; give 0, 6, 12 or 18
    `nr.code_block_groups` is 3; give 2, 4, 6 or 8, or 0 for none
    `nr.configured_grant.period_ms` is 3; give one of 1, 2, 4, 5, 8, 10, 16, 20, 32, 40, 64, 80, 128, 160, 320, 640
    `nr.configured_grant.prbs` is 0; give at least 1
    `nr.configured_grant.prbs` is 274; the widest uplink over NR has 261 PRBs for data
    `nr.ssb.beams` is 9; a carrier of n78 has at most 8 SS blocks
    `dual_connectivity` belongs to cells with carriers of LTE and of NR; add a carrier of the other kind, or remove the table
    `device.0.channel.layers` is 4; carriers of LTE have 1 or 2 layers, and carriers of NR (rat = "nr") 1 to 4
    `band` belongs to carriers of NR; add rat = "nr", or remove the key
    `nr` belongs to carriers of NR; add rat = "nr", or remove the key
    `background.layers` is 5; must be 1 to 4
    `carrier.1.prbs` belongs to carriers of LTE; give `bandwidth_mhz`, from which the number of PRBs of NR follows
    `carrier.1.tdd` belongs to carriers of NR; add rat = "nr", or remove the key
    `device.0.channel.layers` is 5; give 1 to 4 with NR, and 1 or 2 with LTE
    `device.0.qam256` belongs to carriers of LTE; remove it, and give cell.nr.mcs_table = 2 for 256QAM on NR
    `device.0.without_nr_s` needs a device that is on carriers of NR and can use carriers of LTE; add such carriers to the cell, or remove the key
    `device.0.without_nr_s` has the span 2 to 4; give spans one after the other, each with a start before its end
    "#);
}

#[test]
fn an_idle_device_waits_for_paging_and_setup_before_its_first_packet() {
    let mut config = n78();
    config.rrc.idle_after_s = Some(2.0);
    // Two packets within a second, then ten seconds of silence.
    let burst = |from_s: u64| {
        Source::new(0, 1500, Rate::from_bps(24_000), Time::from_secs(from_s), Time::from_secs(from_s + 1))
    };
    let mut bench = Bench::new(&config, &[device_with_layers(20.0, 2)], vec![burst(1), burst(12)]);
    bench.run(Time::from_secs(20), |_| {});
    let delays: Vec<f64> = bench.delays_ms(0).into_iter().map(|(_, delay_ms)| delay_ms).collect();
    assert_eq!(delays.len(), 4, "{delays:?}");
    assert!(delays[0] < 5.0 && delays[1] < 5.0 && delays[3] < 5.0, "{delays:?}");
    assert!((50.0..430.0).contains(&delays[2]), "the first packet after the silence: {delays:?}");
}

#[test]
fn a_device_with_discontinuous_reception_delays_sparse_packets_and_carries_bulk_data_at_the_same_rate() {
    let mut config = n78();
    let run = |config: &CellConfig, mbps: f64| {
        let source = Source::new(0, 1500, Rate::from_mbps(mbps), Time::ZERO, Time::from_secs(10));
        let mut bench = Bench::new(config, &[device_with_layers(20.0, 2)], vec![source]);
        bench.run(Time::from_secs(12), |_| {});
        let delays: Vec<f64> = bench.delays_ms(0).into_iter().map(|(_, delay_ms)| delay_ms).collect();
        (delays.len(), delays.iter().sum::<f64>() / delays.len() as f64)
    };
    let (sparse, always_ms) = run(&config, 0.02);
    config.drx.cycle_ms = Some(160);
    let (sparse_with_drx, mean_ms) = run(&config, 0.02);
    assert_eq!(sparse, sparse_with_drx);
    // A packet every 600 ms waits for the rest of the cycle, (160 - 10)² / 2 / 160 = 70 ms on average.
    assert!((40.0..100.0).contains(&(mean_ms - always_ms)), "{mean_ms} ms, without: {always_ms} ms");
    let (bulk, bulk_ms) = run(&config, 200.0);
    assert!(bulk > 166_000 && bulk_ms < 5.0, "{bulk} packets, {bulk_ms} ms");
}
