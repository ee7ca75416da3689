//! Tests of the fading: Rayleigh power, J0 correlation in time, frequency selectivity, and independence of the set of
//! computed subframes.

use super::super::measured::rows;
use super::*;
use airpace_core::Streams;

const SUBFRAMES: u64 = 400_000;

fn fading(profile: DelayProfile, doppler_hz: f64, seed: u64) -> Fading {
    let mut rng = Streams::new(seed).stream("fading");
    Fading::new(&draw_taps(profile, doppler_hz, 16, &mut rng), Grid::lte(50))
}

#[test]
fn mean_power_is_one_on_every_prb() {
    for profile in [DelayProfile::Epa, DelayProfile::Eva, DelayProfile::Etu] {
        let mut fading = fading(profile, 70.0, 1);
        let mut sums = [0.0; 50];
        for subframe in 0..SUBFRAMES {
            fading.at(subframe).iter().zip(&mut sums).for_each(|(gain, sum)| *sum += gain);
        }
        for sum in sums {
            let mean = sum / SUBFRAMES as f64;
            assert!((mean - 1.0).abs() < 0.05, "{profile:?}: mean gain {mean}");
        }
    }
}

#[test]
fn power_is_exponential_as_rayleigh_fading_has_it() {
    let mut fading = fading(DelayProfile::Eva, 70.0, 2);
    let gains: Vec<f64> = (0..SUBFRAMES).map(|subframe| fading.at(subframe)[25]).collect();
    for limit in [0.01, 0.1, 0.5, 1.0, 2.0, 4.0] {
        let below = gains.iter().filter(|&&gain| gain < limit).count() as f64 / gains.len() as f64;
        let rayleigh = 1.0 - (-limit).exp();
        assert!(
            (below - rayleigh).abs() < 0.1 * rayleigh.min(1.0 - rayleigh) + 0.01,
            "the gain is below {limit} for {below} of the time; Rayleigh fading gives {rayleigh}"
        );
    }
}

/// Transfer function H at one PRB over time, as (real part, imaginary part).
fn transfer(fading: &mut Fading, prb: usize) -> Vec<(f64, f64)> {
    (0..SUBFRAMES)
        .map(|subframe| {
            fading.at(subframe);
            (fading.transfer_re[prb], fading.transfer_im[prb])
        })
        .collect()
}

/// The real part of the mean of a(t + lag) · conj(b(t)).
fn correlation(a: &[(f64, f64)], b: &[(f64, f64)], lag: usize) -> f64 {
    let count = a.len() - lag;
    (0..count).map(|t| a[t + lag].0 * b[t].0 + a[t + lag].1 * b[t].1).sum::<f64>() / count as f64
}

#[test]
fn autocorrelation_is_the_bessel_function_of_jakes() {
    let doppler_hz = 50.0;
    let gains = transfer(&mut fading(DelayProfile::Epa, doppler_hz, 3), 0);
    let power = correlation(&gains, &gains, 0);
    for lag in [1, 2, 5, 8, 10, 15, 20, 30] {
        let seen = correlation(&gains, &gains, lag) / power;
        let jakes = libm::j0(TURN * doppler_hz * lag as f64 * 1e-3);
        assert!((seen - jakes).abs() < 0.08, "after {lag} ms: {seen}, J0 is {jakes}");
    }
}

/// The theoretical correlation of the gains at two frequencies with the difference Δf: Σ P_l exp(-j 2π Δf τ_l).
fn likeness_in_theory(profile: DelayProfile, apart_hz: f64) -> f64 {
    let power = |power_db: f64| libm::pow(10.0, power_db / 10.0);
    let total: f64 = profile.taps().iter().map(|tap| power(tap.1)).sum();
    let part = |of: fn(f64) -> f64| {
        profile
            .taps()
            .iter()
            .map(|tap| power(tap.1) / total * of(TURN * apart_hz * tap.0 * 1e-9))
            .sum::<f64>()
    };
    libm::hypot(part(libm::cos), part(libm::sin))
}

#[test]
fn neighbouring_frequencies_are_as_alike_as_the_delays_make_them() {
    for profile in [DelayProfile::Epa, DelayProfile::Eva, DelayProfile::Etu] {
        let mut fading = fading(profile, 70.0, 4);
        let low = transfer(&mut fading, 0);
        for prbs_apart in [3, 9, 24] {
            let high = transfer(&mut fading, prbs_apart);
            let turned: Vec<(f64, f64)> = high.iter().map(|&(re, im)| (-im, re)).collect();
            let seen = libm::hypot(correlation(&low, &high, 0), correlation(&low, &turned, 0));
            let theory = likeness_in_theory(profile, prbs_apart as f64 * 180e3);
            assert!(
                (seen - theory).abs() < 0.06,
                "{profile:?}, {prbs_apart} PRBs apart: {seen}, theory {theory}"
            );
        }
    }
    let alike = |profile| likeness_in_theory(profile, 540e3);
    assert!(alike(DelayProfile::Epa) > alike(DelayProfile::Eva));
    assert!(alike(DelayProfile::Eva) > alike(DelayProfile::Etu));
}

#[test]
fn asking_rarely_gives_the_same_bits() {
    let (mut often, mut rarely) = (fading(DelayProfile::Epa, 5.4, 5), fading(DelayProfile::Epa, 5.4, 5));
    let each: Vec<Vec<f64>> = (0..3_000).map(|subframe| often.at(subframe).to_vec()).collect();
    for subframe in [0, 1, 7, 31, 32, 33, 95, 500, 501, 511, 512, 2_999] {
        assert_eq!(rarely.at(subframe), each[subframe as usize], "subframe {subframe}");
    }
}

#[test]
fn turning_phasors_stays_with_the_exact_phases() {
    let mut rng = Streams::new(6).stream("fading");
    let taps = draw_taps(DelayProfile::Eva, 108.0, 16, &mut rng);
    let mut fading = Fading::new(&taps, Grid::lte(50));
    for subframe in [BLOCK - 1, 1_000_000 * BLOCK + BLOCK - 1] {
        fading.at(subframe);
        let mut exact = fading.clone();
        exact.set_exactly(subframe);
        for (turned, exact) in fading.re.iter().zip(&exact.re) {
            assert!((turned - exact).abs() < 1e-9, "{turned} against {exact} in subframe {subframe}");
        }
    }
}

/// The taps of a fading realisation that ns-3 uses; `None` if the file is missing.
fn recorded(name: &str) -> Option<Vec<Tap>> {
    let mut taps: Vec<Tap> = Vec::new();
    for row in rows(name)? {
        let [_, delay_ns, _, n, doppler_hz, phase_rad, amplitude] = row[..] else {
            panic!("{name}: {row:?}")
        };
        if n == 0.0 {
            taps.push(Tap { delay_ns, sinusoids: Vec::new() });
        }
        taps.last_mut().expect("a tap").sinusoids.push(Sinusoid { doppler_hz, phase_rad, amplitude });
    }
    Some(taps)
}

#[test]
fn sinusoids_of_another_simulator_give_unit_power_and_its_doppler() {
    for (name, doppler_hz) in
        [("fading_EPA3_s1_sinusoids.csv", 5.39), ("fading_EVA60_s1_sinusoids.csv", 107.8)]
    {
        let Some(taps) = recorded(name) else { continue };
        let mut fading = Fading::new(&taps, Grid::lte(50));
        let gains = transfer(&mut fading, 25);
        let power = correlation(&gains, &gains, 0);
        assert!((power - 1.0).abs() < 0.1, "{name}: power {power}");
        let lag = (100.0 / doppler_hz) as usize;
        let seen = correlation(&gains, &gains, lag) / power;
        let jakes = libm::j0(TURN * doppler_hz * lag as f64 * 1e-3);
        assert!((seen - jakes).abs() < 0.1, "{name} after {lag} ms: {seen}, J0 is {jakes}");
    }
}
