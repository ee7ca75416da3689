//! Cells whose devices have blockage and beam changes.

use super::super::channel::blockage::{BeamConfig, BlockageConfig};
use super::super::channel::fading::FadingProfile;
use super::super::config::{CarrierConfig, Rat};
use super::*;

/// A cell of 400 MHz in n257 with the pattern DDDSU.
fn n257() -> CellConfig {
    CellConfig {
        rat: Rat::Nr,
        band: Some("n257".into()),
        scs_khz: Some(120),
        bandwidth_mhz: Some(400),
        ..CellConfig::default()
    }
}

/// Goodput in Mbit/s in each 20 ms of 4 s of a saturated device at 22 dB.
fn goodputs_mbps(device: DeviceRadioConfig) -> Vec<f64> {
    let source = Source::new(0, 1500, Rate::from_mbps(2_500.0), Time::ZERO, Time::NEVER);
    let mut bench = Bench::new(&n257(), &[device], vec![source]);
    bench.run(Time::from_secs(4), |_| {});
    let mut bins = vec![0.0; 200];
    for exit in bench.exits.iter().filter(|exit| exit.fate == Fate::Delivered) {
        bins[(exit.time - Time::ZERO).as_millis() as usize / 20] += 1500.0 * 8.0 / 20e-3 / 1e6;
    }
    bins.split_off(10)
}

fn phone() -> DeviceRadioConfig {
    let mut phone = device(22.0);
    phone.channel.layers = 2;
    phone.queue_bytes = 20_000_000;
    phone
}

#[test]
fn blockage_takes_most_of_the_rate_while_it_lasts() {
    let open = goodputs_mbps(phone());
    let mean = open.iter().sum::<f64>() / open.len() as f64;
    assert!(open.iter().all(|&mbps| mbps > 0.8 * mean), "without blockage, the rate is constant: {open:?}");
    let blockage = BlockageConfig { per_minute: 60.0, ..BlockageConfig::default() };
    let blocked = goodputs_mbps(DeviceRadioConfig { blockage: Some(blockage), ..phone() });
    let count = |is: &dyn Fn(f64) -> bool| blocked.iter().filter(|&&mbps| is(mbps)).count();
    let (low, full) = (count(&|mbps| mbps < 0.2 * mean), count(&|mbps| mbps > 0.8 * mean));
    println!("{mean:.0} Mbit/s without blockage; with it, {low} of 190 intervals low and {full} full");
    assert!(low >= 20, "20 dB less leave under a fifth of the rate: {blocked:.0?}");
    assert!(full >= 60, "between the events, the rate is that without blockage: {blocked:.0?}");
}

#[test]
fn blockage_of_a_carrier_at_28_ghz_leaves_the_anchor_of_lte() {
    let nr = CarrierConfig {
        rat: Some(Rat::Nr),
        band: Some("n257".into()),
        scs_khz: Some(120),
        bandwidth_mhz: Some(100),
        ..CarrierConfig::default()
    };
    let config =
        CellConfig { carriers: 2, carrier: vec![CarrierConfig::default(), nr], ..CellConfig::default() };
    // The path is blocked for nearly all the time, and nothing passes.
    let blockage =
        BlockageConfig { per_minute: 17.0, mean_s: 10.0, depth_db: 80.0, ..BlockageConfig::default() };
    let blocked = DeviceRadioConfig { blockage: Some(blockage), ..phone() };
    let mbps = |device: DeviceRadioConfig| {
        let source = Source::new(0, 1500, Rate::from_mbps(400.0), Time::ZERO, Time::NEVER);
        let mut bench = Bench::new(&config, &[device], vec![source]);
        bench.run(Time::from_secs(8), |_| {});
        bench.goodput_mbps(0, 1500, Time::from_secs(4), Time::from_secs(8))
    };
    let (both, lte) = (mbps(phone()), mbps(blocked));
    assert!(both > 350.0, "{both} Mbit/s");
    assert!((100.0..220.0).contains(&lte), "{lte} Mbit/s, nearly all over 20 MHz of LTE");
}

#[test]
fn beam_changes_take_rate_for_their_outages_only() {
    let open: f64 = goodputs_mbps(phone()).iter().sum();
    let beam = BeamConfig { switch_every_s: 0.2, ..BeamConfig::default() };
    let switching: f64 = goodputs_mbps(DeviceRadioConfig { beam: Some(beam), ..phone() }).iter().sum();
    let share = switching / open;
    println!("{share:.3} of the rate with a beam change in 200 ms on average");
    assert!((0.7..0.99).contains(&share), "{share} of the rate");
}

#[test]
fn a_device_with_all_channel_models_of_nr_gets_data() {
    let mut phone = phone();
    phone.channel.fading = FadingProfile::TdlD;
    phone.channel.delay_spread_ns = Some(30.0);
    phone.blockage = Some(BlockageConfig::default());
    phone.beam = Some(BeamConfig::default());
    let mean = goodputs_mbps(phone).iter().sum::<f64>() / 190.0;
    assert!(mean > 300.0, "{mean} Mbit/s");
}
