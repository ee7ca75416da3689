//! Tests of blockage and beam changes: share of time, course of an event, independence of calls, refusals.

use super::super::path_loss::PathLossModel;
use super::super::{Channel, ChannelConfig, Grid, StreamNames};
use super::*;
use airpace_radio::Numerology;
use proptest::prelude::*;

fn blockage(config: BlockageConfig, seed: u64) -> Events {
    config.events(Streams::new(seed).draws("blockage"))
}

/// Share of the time with a loss, over `events` events on average.
fn share_of_time(mut of: Events, events: f64, step_ms: f64) -> f64 {
    let samples = (events * of.mean_gap_ms / step_ms) as u64;
    let lossy = (0..samples).filter(|&n| of.at_db(n as f64 * step_ms) > 0.0).count();
    lossy as f64 / samples as f64
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// The number of simultaneous events has a Poisson distribution whose mean is the rate times the mean duration. If events
    /// are rare, the share of time with an event is nearly this mean.
    #[test]
    fn the_share_of_blocked_time_is_rate_times_duration(
        per_minute in 1.0..60.0, mean_s in 0.05..1.0, rise_ms in 0.0..200.0, decay_ms in 0.0..200.0, seed in 0_u64..1_000,
    ) {
        let config = BlockageConfig { per_minute, mean_s, depth_db: 20.0, rise_ms, decay_ms };
        prop_assert!(config.validate().is_ok());
        let mean = per_minute / 60.0 * (mean_s + (rise_ms + decay_ms) / 1000.0);
        let expected = 1.0 - libm::exp(-mean);
        let events = 6_000.0;
        let share = share_of_time(blockage(config, seed), events, config.event_s() * 200.0);
        prop_assert!(
            (share - expected).abs() < 0.08 * expected,
            "the link is blocked for {share} of the time, expected {expected} (rate times duration: {mean})"
        );
    }

    #[test]
    fn the_share_of_outages_of_beams_is_their_duration_over_their_interval(
        switch_every_s in 0.1..10.0, outage_ms in 5.0..50.0, seed in 0_u64..1_000,
    ) {
        let config = BeamConfig { switch_every_s, outage_ms, depth_db: 10.0 };
        prop_assert!(config.validate().is_ok());
        let expected = 1.0 - libm::exp(-outage_ms / 1000.0 / switch_every_s);
        let events = config.events(Streams::new(seed).draws("beam"));
        let share = share_of_time(events, 6_000.0, outage_ms / 5.0);
        prop_assert!((share - expected).abs() < 0.08 * expected, "{share} of the time, expected {expected}");
    }
}

#[test]
fn the_default_blocks_the_share_of_time_of_its_rate_and_duration() {
    let config = BlockageConfig::default();
    // 10 per minute of 0.4 s + 0.06 s + 0.1 s: 9.3 % of the time, minus overlaps 8.9 %.
    let share = share_of_time(blockage(config, 1), 10_000.0, 50.0);
    println!("blocked for {share} of the time");
    assert!((share - 0.0891).abs() < 0.004, "{share}");
}

/// Loss over the first event, in steps of 1 ms from its start.
fn first_event(events: &Events) -> (f64, Vec<f64>) {
    let (mut events, start_ms) = (events.clone(), events.next_start_ms);
    let mut losses_db = Vec::new();
    for ms in 0.. {
        let loss_db = events.at_db(start_ms + f64::from(ms));
        if ms > 0 && loss_db == 0.0 {
            break;
        }
        losses_db.push(loss_db);
    }
    (start_ms, losses_db)
}

#[test]
fn a_blockage_falls_stays_and_rises_in_straight_lines() {
    let config =
        BlockageConfig { per_minute: 0.01, mean_s: 2.0, depth_db: 20.0, rise_ms: 60.0, decay_ms: 100.0 };
    let events = blockage(config, 3);
    assert_eq!(events.clone().at_db(events.next_start_ms - 1e-6), 0.0);
    let (start_ms, losses_db) = first_event(&events);
    let hold_ms = events.draws.at(0, HOLD).exponential(2_000.0);
    assert!((losses_db.len() as f64 - (160.0 + hold_ms)).abs() <= 1.0, "{} ms", losses_db.len());
    assert!((losses_db[25] - 5.0).abs() < 1e-6, "a quarter of the decay: {} dB", losses_db[25]);
    assert_eq!(losses_db[100], 20.0);
    assert_eq!(losses_db[100 + hold_ms as usize], 20.0);
    let mut later = events.clone();
    let half_way_up = later.at_db(start_ms + 100.0 + hold_ms + 30.0);
    assert!((half_way_up - 10.0).abs() < 1e-6, "half of the rise: {half_way_up} dB");
}

#[test]
fn a_beam_change_takes_its_loss_for_its_outage() {
    let config = BeamConfig { switch_every_s: 100.0, outage_ms: 20.0, depth_db: 10.0 };
    let (_, losses_db) = first_event(&config.events(Streams::new(1).draws("beam")));
    assert_eq!(losses_db, [10.0; 20]);
}

#[test]
fn losses_of_overlapping_events_do_not_add() {
    let config = BlockageConfig { per_minute: 150.0, mean_s: 1.0, ..BlockageConfig::default() };
    let mut events = blockage(config, 5);
    let mut overlaps = 0;
    for ms in 0..100_000 {
        let loss_db = events.at_db(f64::from(ms));
        overlaps += usize::from(events.active.len() > 1);
        let deepest =
            events.active.iter().map(|event| events.shape.loss_db(event, ms.into())).fold(0.0, f64::max);
        assert_eq!(loss_db, deepest);
        assert!(loss_db <= 20.0, "{loss_db} dB");
    }
    assert!(overlaps > 50_000, "{overlaps} ms with more than one event");
}

const MHZ: f64 = 28_000.0;

fn channel(streams: &Streams, device: usize, grid: Grid, name: &str) -> Channel {
    let config = ChannelConfig { sinr_db: Some(22.0), ..ChannelConfig::default() };
    let plan = config.plan().expect("a channel").with_losses(
        device,
        Some(BlockageConfig { per_minute: 60.0, ..BlockageConfig::default() }),
        Some(BeamConfig { switch_every_s: 0.5, ..BeamConfig::default() }),
    );
    Channel::new(&plan, grid, MHZ, streams, name)
}

fn sinrs_db(channel: &mut Channel, slots_per_ms: u64) -> Vec<f64> {
    (0..20_000).map(|ms| channel.at(ms * slots_per_ms).sinr_db).collect()
}

#[test]
fn all_links_of_a_device_lose_the_same_at_the_same_time() {
    let streams = Streams::new(1);
    let nr = Grid::nr(264, Numerology::KHZ_120);
    let of_nr = sinrs_db(&mut channel(&streams, 0, nr, "cell.device.0.carrier.1"), 8);
    let of_lte = sinrs_db(&mut channel(&streams, 0, Grid::lte(100), "cell.device.0.carrier.0"), 1);
    assert_eq!(of_nr, of_lte);
    assert!(of_nr.iter().any(|&sinr_db| sinr_db < 22.0 - 19.9) && of_nr.contains(&22.0));
    let other = sinrs_db(&mut channel(&streams, 1, nr, "cell.device.1.carrier.1"), 8);
    assert_ne!(of_nr, other, "each device has its own events");

    let plan = ChannelConfig { sinr_db: Some(22.0), ..ChannelConfig::default() }.plan().expect("a channel");
    let plan = plan.with_losses(0, Some(BlockageConfig::default()), None);
    let names = StreamNames { shadowing: "cell.device.0.carrier.1", fading: "cell.device.0.uplink.1" };
    let mut up = Channel::opposite(&plan, nr, MHZ, &streams, names, -3.0);
    let mut down = Channel::new(&plan, nr, MHZ, &streams, "cell.device.0.carrier.1");
    assert!(!down.is_static() && !up.is_static());
    for slot in 0..400_000 {
        assert!((down.at(slot).sinr_db - up.at(slot).sinr_db - 3.0).abs() < 1e-9, "slot {slot}");
    }
}

#[test]
fn the_received_power_falls_with_the_sinr() {
    let mut channel = channel(&Streams::new(1), 0, Grid::lte(100), "cell.device.0.carrier.0");
    let noise_dbm = channel.at(0).rsrp_dbm - channel.at(0).mean_sinr_db;
    for ms in 0..20_000 {
        let snapshot = channel.at(ms);
        assert!((snapshot.rsrp_dbm - snapshot.mean_sinr_db - noise_dbm).abs() < 1e-9, "{ms} ms");
    }
}

proptest! {
    #[test]
    fn a_slot_is_the_same_whichever_others_were_computed(
        steps in prop::collection::vec(1_u64..3_000, 1..40), seed in 0_u64..50, device in 0_usize..4,
    ) {
        let make = || channel(&Streams::new(seed), device, Grid::nr(66, Numerology::KHZ_120), "link");
        let (mut often, mut rarely) = (make(), make());
        let mut slot = 0;
        for step in steps {
            for between in slot..slot + step {
                often.at(between);
            }
            slot += step;
            let (a, b) = (often.at(slot), rarely.at(slot));
            prop_assert_eq!(a.sinr_db.to_bits(), b.sinr_db.to_bits());
            prop_assert_eq!(a.rsrp_dbm.to_bits(), b.rsrp_dbm.to_bits());
        }
    }

    /// Without the keys, a channel has the same bits as a channel that never had a device's losses.
    #[test]
    fn absent_keys_change_nothing(seed in 0_u64..50, distance_m in 10.0..2_000.0) {
        let config = ChannelConfig {
            distance_m: Some(distance_m),
            path_loss: PathLossModel::UmiNlos,
            shadowing_sigma_db: 8.0,
            ..ChannelConfig::default()
        };
        let plan = config.plan().expect("a channel");
        let make = |plan| Channel::new(plan, Grid::lte(25), MHZ, &Streams::new(seed), "c");
        let (mut plain, mut without) = (make(&plan), make(&plan.clone().with_losses(0, None, None)));
        for subframe in 0..2_000 {
            prop_assert_eq!(plain.at(subframe).sinr_db.to_bits(), without.at(subframe).sinr_db.to_bits());
        }
    }
}

#[test]
fn what_cannot_be_is_refused_by_its_key_with_a_remedy() {
    let refusal = |config: BlockageConfig| config.validate().expect_err("must be refused");
    let of = BlockageConfig::default;
    assert_eq!(refusal(BlockageConfig { per_minute: 0.0, ..of() }).key, "per_minute");
    assert_eq!(refusal(BlockageConfig { mean_s: -0.1, ..of() }).key, "mean_s");
    assert_eq!(refusal(BlockageConfig { depth_db: -20.0, ..of() }).key, "depth_db");
    assert_eq!(refusal(BlockageConfig { rise_ms: f64::NAN, ..of() }).key, "rise_ms");
    assert_eq!(refusal(BlockageConfig { decay_ms: -1.0, ..of() }).key, "decay_ms");
    let nothing = BlockageConfig { mean_s: 0.0, rise_ms: 0.0, decay_ms: 0.0, ..of() };
    assert_eq!(refusal(nothing).key, "mean_s");
    let too_often = refusal(BlockageConfig { per_minute: 400.0, ..of() }).to_string();
    assert!(
        too_often.starts_with("`per_minute` is 400; events of 0.56 s on average")
            && too_often.contains("give at most 321.4"),
        "{too_often}"
    );
    let beam = |config: BeamConfig| config.validate().expect_err("must be refused");
    let of = BeamConfig::default;
    assert_eq!(beam(BeamConfig { switch_every_s: 0.0, ..of() }).key, "switch_every_s");
    assert_eq!(beam(BeamConfig { outage_ms: -1.0, ..of() }).key, "outage_ms");
    assert_eq!(beam(BeamConfig { depth_db: f64::INFINITY, ..of() }).key, "depth_db");
    let always = beam(BeamConfig { switch_every_s: 0.05, outage_ms: 300.0, ..of() }).to_string();
    assert!(always.contains("outages of 300 ms would nearly always overlap; give at least 0.1"), "{always}");
    assert!(BlockageConfig::default().validate().is_ok() && BeamConfig::default().validate().is_ok());
}

#[test]
fn the_keys_of_a_device_have_defaults_and_refuse_others() {
    use crate::cell::DeviceRadioConfig;
    let text = "blockage = { per_minute = 6 }\nbeam = {}";
    let device: DeviceRadioConfig = toml::from_str(text).expect("a device");
    assert_eq!(device.blockage, Some(BlockageConfig { per_minute: 6.0, ..BlockageConfig::default() }));
    assert_eq!(device.beam, Some(BeamConfig::default()));
    assert!(toml::from_str::<DeviceRadioConfig>("beam = { outage_s = 1 }").is_err());
    assert_eq!(DeviceRadioConfig::default().blockage, None);
    assert_eq!(DeviceRadioConfig::default().beam, None);
    let plan = |device: &DeviceRadioConfig| {
        crate::cell::CellPlan::new(&crate::cell::CellConfig::default(), std::slice::from_ref(device))
    };
    assert!(plan(&device).is_ok());
    let negative = BlockageConfig { depth_db: -1.0, ..BlockageConfig::default() };
    let device = DeviceRadioConfig { blockage: Some(negative), ..DeviceRadioConfig::default() };
    assert_eq!(plan(&device).expect_err("must be refused").key, "device.0.blockage.depth_db");
}
