//! Tests of the fading: Rayleigh power, J0 correlation in time, frequency selectivity, and independence of the set of
//! computed subframes.

use super::super::measured::rows;
use super::*;
use airpace_core::Streams;

const SUBFRAMES: u64 = 400_000;

fn fading(profile: FadingProfile, doppler_hz: f64, seed: u64) -> Fading {
    let mut rng = Streams::new(seed).stream("fading");
    Fading::new(&draw_taps(profile, NOMINAL_DELAY_SPREAD_NS, doppler_hz, 16, &mut rng), Grid::lte(50))
}

#[test]
fn mean_power_is_one_on_every_prb() {
    for profile in [FadingProfile::Epa, FadingProfile::Eva, FadingProfile::Etu] {
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
    let mut fading = fading(FadingProfile::Eva, 70.0, 2);
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
    let gains = transfer(&mut fading(FadingProfile::Epa, doppler_hz, 3), 0);
    let power = correlation(&gains, &gains, 0);
    for lag in [1, 2, 5, 8, 10, 15, 20, 30] {
        let seen = correlation(&gains, &gains, lag) / power;
        let jakes = libm::j0(TURN * doppler_hz * lag as f64 * 1e-3);
        assert!((seen - jakes).abs() < 0.08, "after {lag} ms: {seen}, J0 is {jakes}");
    }
}

/// The theoretical correlation of the gains at two frequencies with the difference Δf: Σ P_l exp(-j 2π Δf τ_l).
fn likeness_in_theory(profile: FadingProfile, apart_hz: f64) -> f64 {
    let power = |power_db: f64| libm::pow(10.0, power_db / 10.0);
    let taps = profile.paths(NOMINAL_DELAY_SPREAD_NS);
    let total: f64 = taps.iter().map(|tap| power(tap.1)).sum();
    let part = |of: fn(f64) -> f64| {
        taps.iter().map(|tap| power(tap.1) / total * of(TURN * apart_hz * tap.0 * 1e-9)).sum::<f64>()
    };
    libm::hypot(part(libm::cos), part(libm::sin))
}

#[test]
fn neighbouring_frequencies_are_as_alike_as_the_delays_make_them() {
    for profile in [FadingProfile::Epa, FadingProfile::Eva, FadingProfile::Etu, FadingProfile::TdlC] {
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
    assert!(alike(FadingProfile::Epa) > alike(FadingProfile::Eva));
    assert!(alike(FadingProfile::Eva) > alike(FadingProfile::Etu));
}

#[test]
fn asking_rarely_gives_the_same_bits() {
    let (mut often, mut rarely) = (fading(FadingProfile::Epa, 5.4, 5), fading(FadingProfile::Epa, 5.4, 5));
    let each: Vec<Vec<f64>> = (0..3_000).map(|subframe| often.at(subframe).to_vec()).collect();
    for subframe in [0, 1, 7, 31, 32, 33, 95, 500, 501, 511, 512, 2_999] {
        assert_eq!(rarely.at(subframe), each[subframe as usize], "subframe {subframe}");
    }
}

#[test]
fn turning_phasors_stays_with_the_exact_phases() {
    let mut rng = Streams::new(6).stream("fading");
    let taps = draw_taps(FadingProfile::Eva, 100.0, 108.0, 16, &mut rng);
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

/// Gain of a tap over time as (real part, imaginary part), in steps of `step` slots.
fn tap_gains(taps: &[Tap], tap: usize, step: u64) -> Vec<(f64, f64)> {
    let mut fading = Fading::new(&taps[tap..=tap], Grid::lte(6));
    // The transfer function of a single tap is its gain, rotated by the delay.
    (0..SUBFRAMES / 10)
        .map(|n| {
            fading.at(n * step);
            (fading.transfer_re[0], fading.transfer_im[0])
        })
        .collect()
}

fn tdl_taps(profile: FadingProfile, spread_ns: f64, doppler_hz: f64, seed: u64) -> Vec<Tap> {
    draw_taps(profile, spread_ns, doppler_hz, 16, &mut Streams::new(seed).stream("fading"))
}

/// Power of the component of a gain that has this Doppler shift, for gains at intervals of `step_s`.
fn power_at(gains: &[(f64, f64)], doppler_hz: f64, step_s: f64) -> f64 {
    let mean = |part: &dyn Fn(f64, f64, f64, f64) -> f64| {
        let sum: f64 = (0..)
            .zip(gains)
            .map(|(n, &(re, im))| {
                let turns = doppler_hz * (f64::from(n) * step_s);
                let phase = TURN * (turns - libm::floor(turns));
                part(re, im, libm::cos(phase), libm::sin(phase))
            })
            .sum();
        sum / gains.len() as f64
    };
    let (re, im) =
        (mean(&|re, im, cos, sin| re * cos + im * sin), mean(&|re, im, cos, sin| im * cos - re * sin));
    re * re + im * im
}

// Source: TR 38.901 §7.7.2 Table 7.7.2-1 … 7.7.2-5
#[test]
fn tdl_taps_have_the_powers_of_the_table_and_the_delay_spread_that_was_asked_for() {
    use airpace_core::tables::delay::TdlProfile;
    let profiles = [
        FadingProfile::TdlA,
        FadingProfile::TdlB,
        FadingProfile::TdlC,
        FadingProfile::TdlD,
        FadingProfile::TdlE,
    ];
    let linear = |power_db: f64| libm::pow(10.0, power_db / 10.0);
    for (profile, table) in profiles.into_iter().zip(TdlProfile::ALL) {
        let spread_ns = 300.0;
        let taps = tdl_taps(profile, spread_ns, 200.0, 7);
        let mut powers: Vec<f64> = table.taps().iter().map(|tap| linear(tap.1)).collect();
        powers[0] += table.los_power_db().map_or(0.0, linear);
        let total: f64 = powers.iter().sum();
        assert_eq!(taps.len(), powers.len());
        let mut seen = Vec::new();
        for (tap, power) in powers.iter().enumerate() {
            let gains = tap_gains(&taps, tap, 7);
            let mean = correlation(&gains, &gains, 0);
            let expected = power / total;
            assert!(
                (mean - expected).abs() < 0.1 * expected,
                "{profile:?}: tap {tap} has a mean power of {mean}, in the table {expected}"
            );
            seen.push((taps[tap].delay_ns, mean));
        }
        let total: f64 = seen.iter().map(|tap| tap.1).sum();
        let moment = |n: i32| seen.iter().map(|tap| tap.0.powi(n) * tap.1).sum::<f64>() / total;
        let rms_ns = libm::sqrt(moment(2) - moment(1) * moment(1));
        println!("{profile:?}: RMS delay spread {rms_ns:.1} ns, power {total:.3}");
        assert!((rms_ns - spread_ns).abs() < 0.03 * spread_ns, "{profile:?}: {rms_ns} ns");
        assert!((total - 1.0).abs() < 0.05, "{profile:?}: power {total}");
    }
}

// Source: TR 38.901 §7.7.2 (a peak of the Doppler spectrum at 0.7 times the maximum; K-factors of 13.3 dB and 22 dB)
#[test]
fn the_first_tap_with_line_of_sight_has_the_k_factor_of_the_table() {
    let doppler_hz = 100.0;
    for (profile, k_db) in [(FadingProfile::TdlD, 13.3), (FadingProfile::TdlE, 22.0)] {
        let gains = tap_gains(&tdl_taps(profile, 100.0, doppler_hz, 8), 0, 7);
        let los = power_at(&gains, 0.7 * doppler_hz, 7e-3);
        let scattered = correlation(&gains, &gains, 0) - los;
        let seen_db = 10.0 * libm::log10(los / scattered);
        println!("{profile:?}: K-factor {seen_db:.2} dB");
        assert!((seen_db - k_db).abs() < 0.5, "{profile:?}: K-factor {seen_db} dB");
    }
    let gains = tap_gains(&tdl_taps(FadingProfile::TdlA, 100.0, doppler_hz, 8), 1, 7);
    let share = power_at(&gains, 0.7 * doppler_hz, 7e-3) / correlation(&gains, &gains, 0);
    assert!(share < 0.01, "a tap without line of sight has a share of {share} at the Doppler shift of LOS");
}

#[test]
fn delays_of_tdl_profiles_are_multiples_of_the_delay_spread() {
    for (spread_ns, last_ns) in [(30.0, 259.569), (100.0, 865.23)] {
        let taps = tdl_taps(FadingProfile::TdlC, spread_ns, 5.0, 9);
        assert!((taps[23].delay_ns - last_ns).abs() < 1e-9, "{} ns", taps[23].delay_ns);
    }
    let of =
        |spread_ns| draw_taps(FadingProfile::Eva, spread_ns, 5.0, 16, &mut Streams::new(9).stream("fading"));
    assert_eq!(of(30.0), of(300.0), "the profiles of LTE have fixed delays");
}
