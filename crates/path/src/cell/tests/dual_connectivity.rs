//! Cells with carriers of LTE and of NR, and devices that NR does not always cover.

use std::collections::BTreeMap;
use std::ops::Range;

use airpace_core::Direction;

use super::super::channel::blockage::BlockageConfig;
use super::super::config::{Bearer, CarrierConfig, ConfiguredGrantConfig, DualConnectivityConfig, Rat};
use super::nr::device_with_layers;
use super::uplink::Upload;
use super::*;

/// A cell with a carrier of LTE and one of NR.
fn lte_and_nr(bearer: Bearer) -> CellConfig {
    let nr = CarrierConfig { rat: Some(Rat::Nr), band: Some("n78".into()), ..CarrierConfig::default() };
    CellConfig {
        carriers: 2,
        carrier: vec![CarrierConfig::default(), nr],
        dual_connectivity: Some(DualConnectivityConfig { bearer, ..DualConnectivityConfig::default() }),
        ..CellConfig::default()
    }
}

#[test]
fn a_device_without_nr_is_on_lte_and_loses_no_packet_at_its_handovers() {
    for bearer in [Bearer::Split, Bearer::Scg] {
        let phone = DeviceRadioConfig {
            without_nr_s: vec![[1.0, 2.0], [2.5, 3.0]],
            queue_bytes: 2_000_000,
            ..device_with_layers(20.0, 2)
        };
        let source = Source::new(0, 1500, Rate::from_mbps(150.0), Time::ZERO, Time::from_secs(4));
        let mut bench = Bench::new(&lte_and_nr(bearer), &[phone], vec![source]);
        bench.cell.set_recording(true);
        let mut kilobytes: BTreeMap<(u8, u64), u64> = BTreeMap::new();
        bench.run(Time::from_secs(6), |cell| {
            for slot in cell.subframes() {
                let dcis = slot.report.dcis.iter().zip(slot.owners);
                let own = dcis.filter(|(_, owner)| **owner == Owner::Device(DeviceId(0)));
                let bytes: u64 = own.map(|(dci, _)| dci.bits().0 / 8).sum();
                let place = (slot.report.carrier.0, slot.report.time.as_millis() / 100);
                *kilobytes.entry(place).or_default() += bytes / 1000;
            }
        });
        let sent = |carrier: u8, tenths: Range<u64>| -> u64 {
            tenths.filter_map(|tenth| kilobytes.get(&(carrier, tenth))).sum()
        };
        assert_eq!((sent(1, 10..20), sent(1, 25..30)), (0, 0), "{bearer:?}: NR without coverage");
        assert!(sent(0, 11..20) > 5_000 && sent(0, 26..30) > 2_000, "{bearer:?}: LTE in its place");
        assert!(sent(1, 0..10) > 15_000 && sent(1, 21..25) > 6_000, "{bearer:?}: NR with coverage");
        if bearer == Bearer::Scg {
            assert_eq!((sent(0, 0..10), sent(0, 20..25), sent(0, 30..60)), (0, 0, 0), "LTE with coverage");
        }
        let lost = bench.exits.iter().filter(|exit| !matches!(exit.fate, Fate::Delivered | Fate::QueueFull));
        assert_eq!(lost.count(), 0, "{bearer:?}");
        let numbers: Vec<u64> = bench.delays_ms(0).into_iter().map(|(packet, _)| packet.number).collect();
        assert!(numbers.is_sorted(), "{bearer:?}: packets overtook each other");
        let (pushed, left_or_held) = bench.bytes_in_and_out();
        assert_eq!(pushed, left_or_held, "{bearer:?}");
        let gaps = bench.exits.windows(2).map(|pair| pair[1].time - pair[0].time);
        let longest = gaps.max().unwrap();
        let is_interrupted = longest.as_millis() >= 30;
        assert_eq!(is_interrupted, bearer == Bearer::Scg, "{bearer:?}: {longest:?} without a packet");
    }
}

#[test]
fn packets_that_wait_for_nr_reach_the_device_over_a_narrow_carrier_of_lte() {
    let mut config = lte_and_nr(Bearer::Split);
    config.carrier[0].prbs = Some(25);
    let phone = DeviceRadioConfig {
        without_nr_s: vec![[1.0, 4.0]],
        queue_bytes: 4_000_000,
        ..device_with_layers(26.0, 4)
    };
    // The queue is always full.
    let source = Source::new(0, 1500, Rate::from_mbps(1_500.0), Time::ZERO, Time::from_secs(2));
    let mut bench = Bench::new(&config, &[phone], vec![source]);
    bench.run(Time::from_secs(6), |_| {});
    let count = |fate: Fate| bench.exits.iter().filter(|exit| exit.fate == fate).count();
    assert!(count(Fate::QueueFull) > 10_000 && count(Fate::Delivered) > 50_000);
    assert_eq!(count(Fate::PdcpDiscard), 0, "discarded by PDCP");
}

#[test]
fn spans_without_nr_that_touch_are_one_span() {
    let times = |spans: Vec<[f64; 2]>| {
        let phone = DeviceRadioConfig { without_nr_s: spans, ..device_with_layers(20.0, 2) };
        let source = Source::new(0, 1500, Rate::from_mbps(20.0), Time::ZERO, Time::from_secs(4));
        let mut bench = Bench::new(&lte_and_nr(Bearer::Scg), &[phone], vec![source]);
        bench.run(Time::from_secs(4), |_| {});
        bench.exits.iter().map(|exit| exit.time).collect::<Vec<_>>()
    };
    assert_eq!(times(vec![[1.0, 2.0], [2.0, 3.0]]), times(vec![[1.0, 3.0]]));
}

#[test]
fn the_uplink_of_a_device_without_nr_is_on_lte() {
    let phone = DeviceRadioConfig { without_nr_s: vec![[1.0, 2.0]], ..device_with_layers(20.0, 2) };
    let source = Source::new(0, 1500, Rate::from_mbps(10.0), Time::ZERO, Time::from_secs(3));
    let mut upload = Upload::new(&lte_and_nr(Bearer::Scg), &[phone], vec![source], 1);
    upload.cell.set_recording(true);
    let mut grants: BTreeMap<(u64, u8), u32> = BTreeMap::new();
    upload.run(Time::from_secs(4), |cell| {
        for slot in cell.subframes() {
            let count = slot.report.dcis.iter().filter(|dci| dci.direction == Direction::Uplink).count();
            *grants.entry((slot.report.time.as_millis() / 1000, slot.report.carrier.0)).or_default() +=
                count as u32;
        }
    });
    let of = |second, carrier| grants.get(&(second, carrier)).copied().unwrap_or(0);
    assert!(of(0, 1) > 300 && of(2, 1) > 300, "{grants:?}");
    assert!(of(1, 0) > 250, "{grants:?}");
    assert_eq!((of(0, 0), of(1, 1), of(2, 0)), (0, 0, 0), "{grants:?}");
    assert_eq!(upload.exits.len(), 2_500);
    assert!(upload.exits.iter().all(|exit| exit.fate == Fate::Delivered));
}

#[test]
fn keys_without_effect_on_a_device_of_a_mixed_cell_are_refused() {
    let refusal = |config: &CellConfig, phone: DeviceRadioConfig| {
        crate::cell::CellPlan::new(config, &[phone]).expect_err("must be refused").to_string()
    };
    let plain = device_with_layers(20.0, 2);
    let mut configured = lte_and_nr(Bearer::Mcg);
    configured.nr.configured_grant = Some(ConfiguredGrantConfig::default());
    let mut fr2 = lte_and_nr(Bearer::Split);
    let nr = &mut fr2.carrier[1];
    (nr.band, nr.scs_khz, nr.bandwidth_mhz) = (Some("n257".into()), Some(120), Some(100));
    let blocked = DeviceRadioConfig { blockage: Some(BlockageConfig::default()), ..plain.clone() };
    assert!(crate::cell::CellPlan::new(&fr2, std::slice::from_ref(&blocked)).is_ok());
    let errors = [
        refusal(&configured, plain.clone()),
        refusal(&lte_and_nr(Bearer::Scg), DeviceRadioConfig { qam256: true, ..plain.clone() }),
        refusal(&lte_and_nr(Bearer::Mcg), DeviceRadioConfig { without_nr_s: vec![[1.0, 2.0]], ..plain }),
        refusal(&fr2, DeviceRadioConfig { carriers: vec![0], ..blocked }),
    ];
    insta::assert_snapshot!(errors.join("\n"), @r#"
    `nr.configured_grant` belongs to uplinks over NR; remove it, or let devices send over NR by dual_connectivity
    `device.0.qam256` belongs to carriers of LTE; remove it, and give cell.nr.mcs_table = 2 for 256QAM on NR
    `device.0.without_nr_s` needs a device that is on carriers of NR and can use carriers of LTE; add such carriers to the cell, or remove the key
    `device.0.blockage` lowers the level of carriers of FR2, and the device has none; remove it, or let the device use such a carrier
    "#);
}
