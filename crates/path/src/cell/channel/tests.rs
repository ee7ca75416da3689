//! Tests of level, fading and shadowing together.

use super::fading::Tap;
use super::path_loss::PathLossModel;
use super::*;
use proptest::prelude::*;

const MHZ: f64 = 1_940.0;

fn channel(config: &ChannelConfig) -> Channel {
    Channel::new(&config.plan().expect("a channel"), Grid::lte(100), MHZ, &Streams::new(1), "cell.0.device.0")
}

#[test]
fn a_static_channel_is_what_was_asked_for() {
    let mut channel = channel(&ChannelConfig { sinr_db: Some(12.0), ..ChannelConfig::default() });
    assert!(channel.is_static());
    let snapshot = channel.at(7);
    assert_eq!((snapshot.sinr_db, snapshot.rbg_sinr_db.len()), (12.0, 0));
    assert_eq!(snapshot.effective_sinr_db(PrbSet::run(0, 4), Modulation::Qam64), 12.0);
}

#[test]
fn the_walk_of_the_paper_goes_from_good_to_bad_and_back() {
    // The power is -85 dBm for 13 s, falls to -105 dBm in 13 s, and rises to -85 dBm in 4 s.
    let points = [(0.0, -85.0), (13.0, -85.0), (26.0, -105.0), (30.0, -85.0)];
    let mut channel = channel(&ChannelConfig {
        rssi_points_dbm: points.to_vec(),
        sinr_cap_db: 99.0,
        ..ChannelConfig::default()
    });
    let seen: Vec<(f64, f64)> = [0, 13_000, 19_500, 26_000, 28_000, 30_000, 40_000]
        .iter()
        .map(|&subframe| {
            (channel.at(subframe).rsrp_dbm, (channel.at(subframe).sinr_db * 10.0).round() / 10.0)
        })
        .collect();
    assert_eq!(
        seen,
        [
            (-85.0, 38.2),
            (-85.0, 38.2),
            (-95.0, 28.2),
            (-105.0, 18.2),
            (-95.0, 28.2),
            (-85.0, 38.2),
            (-85.0, 38.2)
        ]
    );
}

#[test]
fn sinr_points_override_what_the_power_says() {
    let config = ChannelConfig {
        rssi_points_dbm: vec![(0.0, -85.0), (10.0, -105.0)],
        sinr_points_db: vec![(0.0, 26.0), (10.0, 6.0)],
        ..ChannelConfig::default()
    };
    let mut channel = channel(&config);
    let middle = channel.at(5_000);
    assert_eq!((middle.sinr_db, middle.rsrp_dbm), (16.0, -95.0));
}

#[test]
fn distance_gives_path_loss_over_noise_and_interference() {
    let config = ChannelConfig { distance_m: Some(1000.0), sinr_cap_db: 99.0, ..ChannelConfig::default() };
    let alone = channel(&config).at(0).sinr_db;
    // 46 dBm over 1200 subcarriers are 15.21 dBm per subcarrier. With 15 dBi of antenna gain, 128.1 dB of path loss and
    // noise of -123.24 dBm, this gives the SINR.
    assert!((alone - (15.21 + 15.0 - 128.1 + 123.24)).abs() < 0.01, "{alone} dB");
    let crowded = channel(&ChannelConfig { interference_margin_db: 6.0, ..config }).at(0).sinr_db;
    assert!((alone - crowded - 6.0).abs() < 1e-9);
}

#[test]
fn path_loss_models_depend_on_the_carrier_frequency() {
    let config = ChannelConfig {
        distance_m: Some(100.0),
        path_loss: PathLossModel::UmiLos,
        sinr_cap_db: 99.0,
        ..ChannelConfig::default()
    };
    let rsrp_dbm = |frequency_mhz| {
        let plan = config.plan().expect("a channel");
        Channel::new(&plan, Grid::lte(100), frequency_mhz, &Streams::new(1), "phone").at(0).rsrp_dbm
    };
    // 46 dBm over 1200 subcarriers are 15.21 dBm per subcarrier; the antenna gain is 15 dBi. Source of the path loss:
    // TR 38.901 §7.4.1 Table 7.4.1-1, 85.31 dB at 3.5 GHz.
    assert!((rsrp_dbm(3_500.0) - (15.21 + 15.0 - 85.31)).abs() < 0.01, "{} dBm", rsrp_dbm(3_500.0));
    // With line of sight, the frequency counts as 20 log10 f.
    let difference_db = rsrp_dbm(3_500.0) - rsrp_dbm(28_000.0);
    assert!((difference_db - 20.0 * libm::log10(8.0)).abs() < 1e-9, "{difference_db} dB");
}

#[test]
fn a_path_loss_that_cannot_be_computed_is_refused() {
    let refusal = |config: ChannelConfig| config.plan().expect_err("must be refused").to_string();
    let model = ChannelConfig { path_loss: PathLossModel::UmaNlos, ..ChannelConfig::default() };
    assert_eq!(
        refusal(model.clone()),
        "`path_loss` has no effect without a distance; give `distance_m`, or remove `path_loss`"
    );
    let far = refusal(ChannelConfig { distance_m: Some(5_001.0), ..model.clone() });
    assert!(far.contains("`path_loss` holds up to 5000 m, and `distance_m` is 5001"), "{far}");
    assert!(ChannelConfig { distance_m: Some(5_000.0), ..model }.plan().is_ok());
}

#[test]
fn a_delay_spread_without_effect_or_meaning_is_refused() {
    let refusal = |fading, spread_ns| {
        let config = ChannelConfig { fading, delay_spread_ns: Some(spread_ns), ..ChannelConfig::default() };
        config.plan().err().map(|error| error.to_string())
    };
    let without_effect = refusal(FadingProfile::Eva, 100.0).expect("must be refused");
    assert!(without_effect.starts_with("`delay_spread_ns` has no effect with this profile; give `fading`"));
    for spread_ns in [-1.0, 0.0, 10_001.0, f64::NAN] {
        let reason = refusal(FadingProfile::TdlA, spread_ns).expect("must be refused");
        assert!(reason.contains("give 0.1 to 10000 ns"), "{reason}");
    }
    assert_eq!(refusal(FadingProfile::TdlE, 1_000.0), None);
}

#[test]
fn a_second_layer_costs_each_its_share() {
    let config = ChannelConfig { sinr_db: Some(20.0), layers: 2, ..ChannelConfig::default() };
    assert_eq!(channel(&config).at(0).sinr_db, 17.0);
}

#[test]
fn sinr_stays_between_floor_and_cap() {
    let config = ChannelConfig {
        sinr_db: Some(28.0),
        fading: FadingProfile::Etu,
        speed_kmh: 60.0,
        ..ChannelConfig::default()
    };
    let mut channel = channel(&config);
    for subframe in 0..5_000 {
        let snapshot = channel.at(subframe);
        assert!(snapshot.rbg_sinr_db.iter().all(|sinr_db| (SINR_FLOOR_DB..=30.0).contains(sinr_db)));
    }
    let nothing = Tap { delay_ns: 0.0, sinusoids: Vec::new() };
    channel.set_fading(Fading::new(&[nothing], Grid::lte(100)));
    assert_eq!(channel.at(5_000).sinr_db, SINR_FLOOR_DB, "a channel that is gone is a finite number");
}

/// Compares the SINR of a whole RBG with that of its centre, over random fading: the SINR of the RBG must depend on all
/// its PRBs.
#[test]
fn the_sinr_of_an_rbg_is_that_of_a_block_over_its_prbs() {
    for (fading, seed) in [(FadingProfile::Epa, 1), (FadingProfile::Eva, 2), (FadingProfile::Etu, 3)] {
        let config = ChannelConfig {
            sinr_db: Some(12.0),
            fading,
            doppler_hz: Some(100.0),
            ..ChannelConfig::default()
        };
        let make = |grid: Grid| {
            Channel::new(
                &config.plan().expect("a channel"),
                grid,
                MHZ,
                &Streams::new(seed),
                "cell.0.device.0",
            )
        };
        let grid = Grid::lte(100);
        let (mut channel, mut prbs) = (make(grid), make(Grid { rbg_prbs: 1, ..grid }));
        let (mut count, mut worst, mut sum, mut centre_sum) = (0.0, 0.0_f64, 0.0, 0.0);
        for subframe in (0..20_000).step_by(20) {
            let (of_rbgs, of_prbs) = (channel.at(subframe), prbs.at(subframe));
            assert_eq!(of_rbgs.sinr_db.to_bits(), of_prbs.sinr_db.to_bits());
            for rbg in 0..grid.rbgs() {
                let block = of_prbs.effective_sinr_db(grid.rbg(rbg), Modulation::Qam16);
                let off_by = (of_rbgs.rbg(rbg) - block).abs();
                let centre = usize::from(rbg * grid.rbg_prbs + grid.rbg_prbs / 2);
                (count, sum, worst) = (count + 1.0, sum + off_by, worst.max(off_by));
                centre_sum += (of_prbs.rbg_sinr_db[centre] - block).abs();
            }
        }
        let (mean, centre) = (sum / count, centre_sum / count);
        println!("{fading:?}: off by {mean:.3} dB on average, {worst:.2} at worst; the centre {centre:.3}");
        assert!(mean < 0.25 * centre, "{fading:?}: {mean} dB, the centre {centre} dB");
    }
}

/// The worst RBG of ns-3's EVA60 realisation: its mean power is 9.7 dB below that of the band, while the power at the
/// centre of the worst RBG is 13.9 dB lower. At SINRs near 0 dB, the capacity of the PRBs is nearly the capacity at
/// their mean power.
#[test]
fn the_worst_rbg_is_as_bad_as_in_another_simulator() {
    let Some(rows) = measured::rows("fading_EVA60_s1_sinusoids.csv") else { return };
    let sinusoids = rows.iter().map(|row| (row[1], row[4], row[5], row[6])).collect();
    let config =
        ChannelConfig { sinr_db: Some(0.0), sinr_cap_db: 60.0, sinusoids, ..ChannelConfig::default() };
    let plan = config.plan().expect("a channel");
    let mut channel = Channel::new(&plan, Grid::lte(50), MHZ, &Streams::new(1), "phone");
    let worst = |subframe| channel.at(subframe).rbg_sinr_db.iter().fold(f64::INFINITY, |a, &b| a.min(b));
    let worst: Vec<f64> = (0..20_000).map(worst).collect();
    let mean_db = worst.iter().sum::<f64>() / worst.len() as f64;
    println!("the worst RBG has {mean_db:.2} dB");
    assert!((mean_db + 9.7).abs() < 0.7, "{mean_db} dB");
}

#[test]
fn doppler_is_that_of_speed_and_frequency() {
    assert!((doppler_hz(3.0, 1_940.0) - 5.39).abs() < 0.01);
    assert!((doppler_hz(60.0, 1_940.0) - 107.9).abs() < 0.1);
}

#[test]
fn what_cannot_be_is_refused_by_its_key() {
    let key = |config: ChannelConfig| config.plan().unwrap_err().key;
    let none = ChannelConfig::default;
    assert_eq!(key(ChannelConfig { sinr_db: Some(1.0), distance_m: Some(1.0), ..none() }), "sinr_db");
    assert_eq!(key(ChannelConfig { sinr_db: Some(f64::NAN), ..none() }), "sinr_db");
    assert_eq!(key(ChannelConfig { speed_kmh: -1.0, ..none() }), "speed_kmh");
    assert_eq!(key(ChannelConfig { layers: 5, ..none() }), "layers");
    let backwards = ChannelConfig { rssi_points_dbm: vec![(1.0, -85.0), (0.0, -85.0)], ..none() };
    assert_eq!(key(backwards), "rssi_points_dbm");
}

proptest! {
    #[test]
    fn a_subframe_is_the_same_whichever_others_were_asked_for(
        steps in prop::collection::vec(1_u64..200, 1..40), seed in 0_u64..50, speed_kmh in 0.0..120.0,
    ) {
        let config = ChannelConfig {
            distance_m: Some(700.0),
            shadowing_sigma_db: 8.0,
            fading: FadingProfile::Epa,
            speed_kmh,
            ..ChannelConfig::default()
        };
        let make = || Channel::new(&config.plan().unwrap(), Grid::lte(25), MHZ, &Streams::new(seed), "c");
        let (mut often, mut rarely) = (make(), make());
        let mut subframe = 0;
        for step in steps {
            for between in subframe..subframe + step {
                often.at(between);
            }
            subframe += step;
            let (a, b) = (often.at(subframe), rarely.at(subframe));
            prop_assert_eq!(a.sinr_db.to_bits(), b.sinr_db.to_bits());
            prop_assert_eq!(a.rsrp_dbm.to_bits(), b.rsrp_dbm.to_bits());
            prop_assert_eq!(a.rbg_sinr_db, b.rbg_sinr_db);
        }
    }
}

#[test]
fn fading_may_be_given_wave_by_wave() {
    let given = |sinusoids: &[(f64, f64, f64, f64)]| ChannelConfig {
        sinr_db: Some(10.0),
        sinusoids: sinusoids.to_vec(),
        ..ChannelConfig::default()
    };
    let refusal = |config: ChannelConfig| config.plan().expect_err("must be refused").to_string();
    let half = (0.0, 0.0, 1.0, 0.5);
    let plan = given(&[half]).plan().expect("a channel");
    for seed in [1, 2] {
        let mut channel = Channel::new(&plan, Grid::lte(50), 1940.0, &Streams::new(seed), "phone");
        let sinr_db = channel.at(77).rbg(3);
        assert!((sinr_db - (10.0 - 6.0206)).abs() < 1e-3, "half the amplitude is 6 dB less, not {sinr_db}");
    }
    // There are two waves of equal amplitude. After 5 ms, their phases differ by 180°.
    let plan = given(&[(0.0, 100.0, 0.0, 0.5), half]).plan().expect("a channel");
    let mut channel = Channel::new(&plan, Grid::lte(50), 1940.0, &Streams::new(1), "phone");
    let gain_db = |channel: &mut Channel, ms: u64| channel.at(ms).rbg(0) - 10.0;
    let (first, later) = (gain_db(&mut channel, 0), gain_db(&mut channel, 5));
    let expected = |apart: f64| 20.0 * libm::log10(libm::fabs(libm::cos(apart / 2.0)));
    assert!((first - expected(1.0)).abs() < 1e-6, "{first}");
    assert!((later - expected(std::f64::consts::PI - 1.0)).abs() < 1e-6, "{later}");
    assert!(refusal(given(&[(-1.0, 0.0, 0.0, 1.0)])).contains("`sinusoids` has [-1, 0, 0, 1] at place 0"));
    let both = ChannelConfig { fading: FadingProfile::Epa, ..given(&[half]) };
    assert!(refusal(both).contains("stand beside `fading`"));
}
