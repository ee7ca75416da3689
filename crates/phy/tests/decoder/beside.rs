//! Cells with interference from another cell or from a tone.

use crate::air;
use crate::blind;
use crate::crowd;

use airpace_core::Streams;
use airpace_phy::channel::{Channel, Estimator};
use airpace_phy::dci::Extras;
use airpace_phy::decoder::{Decoder, Options, Output, Reading};
use airpace_phy::grid::Grid;
use airpace_phy::impair::DelayProfile;
use airpace_phy::listen::CellChange;
use airpace_phy::ofdm::Demodulator;
use airpace_phy::pdcch::TransmittedMessage;
use airpace_phy::{
    Bandwidth, Cell, Complex32, CyclicPrefix, Numerology, Observation, Observer, PhichDuration,
    PhichResource, Ports,
};
use crowd::Scene;

fn scene(pci: u16, prbs: u16, fft_size: usize, profile: DelayProfile, seed: u64) -> Scene {
    let cell = Cell {
        pci,
        bandwidth: Bandwidth::from_prbs(prbs).expect("a bandwidth of LTE"),
        ports: Ports::One,
        cp: CyclicPrefix::Normal,
        phich_duration: PhichDuration::Normal,
        phich_resource: PhichResource::One,
    };
    let (extras, fading) = (Extras::NONE, Some((profile, 5.0)));
    Scene { cell, fft_size, users: 12, tries: 8, extras, snr_db: 25.0, fading, subframes: 600, seed }
}

/// Share of the transmitted messages that are accepted.
fn recall(rate_hz: u64, samples: &[Complex32], sent: &[(u64, TransmittedMessage)]) -> f64 {
    let believed = blind::believed(rate_hz, samples);
    let found = sent.iter().filter(|(index, sent)| {
        let is_it = |found: &&airpace_phy::found::Found| {
            (found.index, found.rnti, found.payload, found.place)
                == (*index, sent.rnti, sent.payload, sent.place)
        };
        believed.iter().any(|found| is_it(&found))
    });
    found.count() as f64 / sent.len() as f64
}

/// A cell fades, and is then weaker than another cell whose mean power is 8 dB lower.
#[test]
fn a_cell_that_fades_is_not_left_for_another() {
    let mut losses = 0;
    for seed in [11, 12, 13] {
        let (mut samples, _) = scene(214, 6, 128, DelayProfile::Epa, seed).play();
        let other = Scene { snr_db: 60.0, ..scene(56, 6, 128, DelayProfile::Epa, seed + 1000) };
        let (others, _) = other.play();
        let share = 10f32.powf(-8.0 / 20.0);
        for (sample, other) in samples.iter_mut().skip(7313).zip(&others) {
            *sample += other * share;
        }
        let (outputs, _) = blind::decode(1_920_000, &samples);
        let locked = outputs.iter().filter_map(|output| match output {
            Output::Locked(lock) => Some(lock.cell.pci),
            _ => None,
        });
        let locked: Vec<u16> = locked.collect();
        println!("seed {seed}: {locked:?}");
        assert!(locked.iter().all(|pci| *pci == 214), "seed {seed}: {locked:?}");
        losses += locked.len() - 1;
    }
    assert!(losses > 0, "no fade was deep enough to lose the cell");
}

/// Two cells: the stronger one is attenuated during the search, so that the weaker one is found first. Later the
/// stronger cell is attenuated again to a lower level than the other cell.
#[test]
fn a_louder_cell_is_moved_to_once() {
    let steady = |pci, seed, snr_db| Scene {
        subframes: 3000,
        fading: None,
        snr_db,
        ..scene(pci, 15, 256, DelayProfile::Epa, seed)
    };
    let (mut samples, sent) = steady(214, 21, 25.0).play();
    let share = 10f32.powf(-6.0 / 20.0);
    samples[..40 * 3840].iter_mut().for_each(|sample| *sample *= 0.1);
    samples[2000 * 3840..].iter_mut().for_each(|sample| *sample *= share * share);
    let (others, of_other) = steady(56, 22, 200.0).play();
    samples.iter_mut().skip(1000).zip(&others).for_each(|(sample, other)| *sample += other * share);
    let (outputs, _) = blind::decode(3_840_000, &samples);
    let told: Vec<String> = outputs
        .iter()
        .filter_map(|output| match output {
            Output::Locked(lock) => Some(format!("{}", lock.cell.pci)),
            Output::Moved(CellChange { from, to, louder_db }) => {
                Some(format!("{from} to {to}: {louder_db:.0} dB"))
            }
            Output::Lost => Some("lost".to_owned()),
            _ => None,
        })
        .collect();
    assert_eq!(told, ["56", "56 to 214: 6 dB", "214"]);
    let moved = outputs.iter().position(|output| matches!(output, Output::Moved(_))).expect("it is told");
    let readings = |outputs: &[Output]| -> Vec<Reading> {
        let reading = |output: &Output| match output {
            Output::Subframe(reading) => Some(reading.clone()),
            _ => None,
        };
        outputs.iter().filter_map(reading).collect()
    };
    let (before, after) = (readings(&outputs[..moved]), readings(&outputs[moved..]));
    assert!(before.iter().all(|reading| reading.pci == 56) && after.iter().all(|reading| reading.pci == 214));
    let all = [before, after].concat();
    assert!(all.is_sorted_by(|a, b| a.sample < b.sample && a.index < b.index), "none comes twice");
    // The frames of both cells have the same numbers.
    let (first, last) = (all.partition_point(|reading| reading.pci == 56), 2000);
    let first = all[first].index;
    println!("moved after {first} ms");
    assert!((500..1500).contains(&first), "moved after {first} ms");
    let found: Vec<_> = outputs.into_iter().flat_map(blind::messages).collect();
    let within = |from: u64, to: u64, sent: &[(u64, TransmittedMessage)]| {
        let sent: Vec<_> = sent.iter().filter(|(index, _)| (from..to).contains(index)).collect();
        let is_found = |(index, sent): &&&(u64, TransmittedMessage)| {
            let its = |found: &&airpace_phy::found::Found| {
                (found.index, found.rnti, found.payload) == (*index, sent.rnti, sent.payload)
            };
            found.iter().any(|found| its(&found))
        };
        sent.iter().filter(is_found).count() as f64 / sent.len() as f64
    };
    let (of_left, of_louder) = (within(0, 40, &of_other), within(first, last, &sent));
    println!("{of_left:.4} of the cell that is left before, {of_louder:.4} of the louder one afterwards");
    assert!(of_left > 0.9 && of_louder > 0.95, "{of_left:.4} and {of_louder:.4}");
    // A cell requested by the user is kept.
    let mut options = Options::new(3_840_000);
    options.listen.pci = Some(56);
    let mut decoder = Decoder::new(options).expect("a rate");
    decoder.push(&samples);
    decoder.finish();
    let outputs: Vec<Output> = std::iter::from_fn(|| decoder.pop()).collect();
    assert!(outputs.iter().all(|output| !matches!(output, Output::Moved(_))));
    assert!(readings(&outputs).iter().all(|reading| reading.pci == 56));
}

/// Cells of one site with aligned symbols: the signal of one cell does not count as noise for the other. No message is
/// accepted that was not transmitted.
#[test]
fn cells_of_one_site_are_distinguished() {
    let (one, two) = (Ports::One, Ports::Two);
    let (normal, extended) = (CyclicPrefix::Normal, CyclicPrefix::Extended);
    for (own, other, cp, least) in [
        (one, one, normal, 0.975),
        (one, two, normal, 0.96),
        (two, one, normal, 0.98),
        (two, two, normal, 0.98),
        (two, two, extended, 0.97),
    ] {
        let (mut sum, mut strange) = (0.0, 0);
        for seed in [31, 32] {
            let with = |pci, ports, seed, snr_db| {
                let of = scene(pci, 25, 384, DelayProfile::Epa, seed);
                Scene { cell: Cell { ports, cp, ..of.cell }, snr_db, subframes: 400, ..of }
            };
            let (mut samples, sent) = with(214, own, seed, 25.0).play();
            let (others, _) = with(56, other, seed + 1000, 200.0).play();
            let share = 10f32.powf(-8.0 / 20.0);
            // Delay of the other cell: three samples, within the cyclic prefix.
            samples.iter_mut().skip(3).zip(&others).for_each(|(sample, other)| *sample += other * share);
            sum += recall(5_760_000, &samples, &sent) / 2.0;
            let is_sent = |found: &airpace_phy::found::Found| {
                sent.iter().any(|(index, sent)| {
                    (found.index, found.rnti, found.payload) == (*index, sent.rnti, sent.payload)
                })
            };
            strange += blind::believed(5_760_000, &samples).iter().filter(|found| !is_sent(found)).count();
        }
        println!("{own:?} beside {other:?}, {cp:?}: {sum:.4}, {strange} that were not sent");
        assert!(sum >= least && strange <= 1, "{own:?} beside {other:?}, {cp:?}: {sum:.4}, {strange}");
    }
}

/// A cell that has disappeared is not kept because of another cell with aligned symbols.
#[test]
fn a_cell_that_ends_beside_another_is_lost() {
    let with =
        |pci, seed, snr_db| Scene { subframes: 2000, snr_db, ..scene(pci, 25, 384, DelayProfile::Epa, seed) };
    let (mut samples, _) = with(214, 41, 25.0).play();
    let end = 500 * 5760;
    samples[end..].fill(Complex32::default());
    let share = 10f32.powf(-5.0 / 20.0);
    let (others, _) = with(56, 42, 30.0).play();
    samples.iter_mut().zip(&others).for_each(|(sample, other)| *sample += other * share);
    let (outputs, _) = blind::decode(5_760_000, &samples);
    let lost = outputs.iter().position(|output| matches!(output, Output::Lost)).expect("it is lost");
    let last = outputs[..lost].iter().rev().find_map(|output| match output {
        Output::Subframe(reading) => Some((reading.pci, reading.sample / 5760)),
        _ => None,
    });
    println!("{last:?} was the last subframe");
    assert!(last.is_some_and(|(pci, ms)| pci == 214 && (490..520).contains(&ms)), "{last:?}");
    let mut locked = outputs.iter().filter_map(|output| match output {
        Output::Locked(lock) => Some(lock.cell.pci),
        _ => None,
    });
    assert_eq!(locked.next_back(), Some(56), "the other one is found");
}

/// A tone 10 dB below the total received power has the power of dozens of subcarriers.
#[test]
fn a_tone_hardly_costs_a_message() {
    for (profile, tone_hz) in [(DelayProfile::Epa, -512_345.0), (DelayProfile::Eva, 812_345.0)] {
        let (mut samples, sent) = scene(214, 15, 256, profile, 5).play();
        let without = recall(3_840_000, &samples, &sent);
        let power = samples.iter().map(Complex32::norm_sqr).sum::<f32>() / samples.len() as f32;
        let amplitude = (0.1 * power).sqrt();
        for (n, sample) in samples.iter_mut().enumerate() {
            let angle = std::f64::consts::TAU * (tone_hz * n as f64 / 3.84e6).fract();
            *sample += Complex32::new(angle.cos() as f32, angle.sin() as f32) * amplitude;
        }
        let with = recall(3_840_000, &samples, &sent);
        println!("{profile:?}: {with:.4}, without the tone {without:.4}");
        assert!(with >= without - 0.015, "{profile:?}: {with:.4}, without the tone {without:.4}");
    }
}

/// A tone with a tenth of a wide cell's power exceeds the total power in the centre of the band, where the cell search
/// takes place.
#[test]
fn a_tone_in_the_middle_of_a_wide_cell_does_not_hide_it() {
    let mut rng = Streams::new(4).stream("phy.tones");
    for (prbs, fft_size) in [(50, 1024), (100, 2048)] {
        for profile in [DelayProfile::Epa, DelayProfile::Etu] {
            let tone_hz = rng.range(-560e3, 560e3);
            let wide = Scene { subframes: 150, ..scene(214, prbs, fft_size, profile, rng.next_u64()) };
            let (mut samples, sent) = wide.play();
            let rate_hz = 15_000 * fft_size as u64;
            let without = recall(rate_hz, &samples, &sent);
            // Every resource element of a fully loaded cell has unit power.
            let amplitude = libm::sqrtf(0.1 * f32::from(prbs) * 12.0 / fft_size as f32);
            for (n, sample) in samples.iter_mut().enumerate() {
                let angle = std::f64::consts::TAU * (tone_hz * n as f64 / rate_hz as f64).fract();
                *sample += Complex32::new(angle.cos() as f32, angle.sin() as f32) * amplitude;
            }
            let with = recall(rate_hz, &samples, &sent);
            println!("{prbs} PRB, {profile:?}, {tone_hz:.0} Hz: {with:.4}, without the tone {without:.4}");
            assert!(
                with >= without - 0.02,
                "{prbs} PRB, {profile:?}, {tone_hz:.0} Hz: {with:.4} of {without:.4}"
            );
        }
    }
}

/// Share of messages that a decoder with perfect knowledge decodes: timing, channel, CFI, users, places and mean
/// interference power are known. The interference is the noise plus the signal of another transmitter with power
/// `disturbance` per resource element.
fn recall_if_told(
    scene: &Scene,
    samples: &[Complex32],
    disturbance: f64,
    sent: &[(u64, TransmittedMessage)],
) -> f64 {
    let numerology = Numerology::new(scene.cell.bandwidth, scene.cell.cp, scene.fft_size).expect("a size");
    let (mut demodulator, observer) = (Demodulator::new(numerology), Observer::new(scene.cell));
    let mut estimator = Estimator::new(&scene.cell);
    let (clean, _) = Scene { snr_db: 200.0, ..*scene }.play();
    let subframe = numerology.subframe_samples();
    let mut read = 0;
    for index in 0..clean.len() / subframe {
        let number = index % 10;
        let [ideal, heard] = [&clean[..], samples].map(|samples| {
            let mut grid = Grid::new(&scene.cell);
            demodulator.demodulate(&samples[index * subframe..], usize::MAX, &mut grid).expect("whole");
            grid
        });
        estimator.begin();
        [11, 7, 4, 0].into_iter().for_each(|symbol| estimator.add(number, symbol, &ideal));
        let noise = (10f64.powf(-scene.snr_db / 10.0) + disturbance) / scene.fft_size as f64;
        let channel = Channel::known(estimator.finish(number).gains().to_vec(), noise as f32);
        let mut observation = Observation { number, ..Observation::default() };
        observer.cfi([(&ideal, &channel)], &mut observation);
        observer.bits([(&heard, &channel)], &mut observation);
        let its = sent.iter().filter(|(at, _)| *at == index as u64);
        read += its.filter(|(_, sent)| air::is_found(&observation, sent)).count();
    }
    read as f64 / sent.len() as f64
}

fn with_noise(samples: &[Complex32], power: f64, seed: u64) -> Vec<Complex32> {
    let mut rng = Streams::new(seed).stream("phy.beside.noise");
    let deviation = (power / 2.0).sqrt();
    let mut part = || (rng.normal() * deviation) as f32;
    samples.iter().map(|sample| sample + Complex32::new(part(), part())).collect()
}

fn power(samples: &[Complex32]) -> f64 {
    samples.iter().map(|sample| f64::from(sample.norm_sqr())).sum::<f64>() / samples.len() as f64
}

/// Messages lost to a weaker cell during fades: a decoder with perfect knowledge ([`recall_if_told`]) loses as many.
/// The worst case is two cells with aligned frames, whose control regions overlap. `AIRPACE_RUNS` adds more seeds.
#[test]
fn a_weaker_cell_costs_no_more_than_its_power() {
    let runs = std::env::var("AIRPACE_RUNS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(2);
    for (prbs, fft_size) in [(15, 256), (25, 384)] {
        for later_ms in [0.0, 3.81] {
            let mut sums = [0.0; 5];
            for seed in 11..11 + runs {
                let own = Scene { subframes: 400, ..scene(214, prbs, fft_size, DelayProfile::Epa, seed) };
                let (alone, sent) = own.play();
                let other = Scene {
                    snr_db: 200.0,
                    subframes: 400,
                    ..scene(56, prbs, fft_size, DelayProfile::Epa, seed + 1000)
                };
                let share = 10f32.powf(-8.0 / 20.0);
                let others: Vec<Complex32> = other.play().0.iter().map(|sample| sample * share).collect();
                let later = (later_ms * (fft_size * 15) as f64) as usize;
                let mut both = alone.clone();
                both.iter_mut().skip(later).zip(&others).for_each(|(sample, other)| *sample += other);
                // Part of the other cell's signal that overlaps the control regions.
                let met: Vec<Complex32> = (0..390)
                    .flat_map(|index| {
                        let at = (index * fft_size * 15 + 10 * fft_size * 15 - later) % others.len();
                        others[at..(at + 3 * fft_size).min(others.len())].to_vec()
                    })
                    .collect();
                // Per resource element: outside the band, white noise has power, but the other cell has none.
                let met = power(&met) * fft_size as f64 / (12 * prbs) as f64;
                let white = with_noise(&alone, met, seed);
                let rate_hz = fft_size as u64 * 15_000;
                let shares = [
                    recall(rate_hz, &both, &sent),
                    recall_if_told(&own, &both, met, &sent),
                    recall(rate_hz, &white, &sent),
                    recall_if_told(&own, &white, met, &sent),
                    recall(rate_hz, &alone, &sent),
                ];
                sums.iter_mut().zip(shares).for_each(|(sum, share)| *sum += share / runs as f64);
            }
            println!(
                "{prbs} PRB, {later_ms} ms later: {:.4} are read, {:.4} if all is told; beside white noise {:.4} and {:.4}; alone {:.4}",
                sums[0], sums[1], sums[2], sums[3], sums[4]
            );
            assert!(sums[0] >= sums[1].min(sums[3]) - 0.01, "{prbs} PRB: {sums:?}");
            if later_ms == 0.0 {
                // Overlapping control regions: joint detection separates both.
                assert!(sums[0] > sums[2], "{prbs} PRB: {sums:?}");
            }
        }
    }
}

/// Two cells have equal power, so either may be found first; then one cell becomes 8 dB stronger. The listener switches
/// to the stronger cell in the next fade of the weaker cell.
#[test]
fn a_weaker_cell_that_is_lost_is_not_held_against_a_louder_one() {
    let mut taken = 0;
    for seed in [31, 32, 33, 34, 35, 36] {
        let moving = |pci, seed, snr_db| Scene {
            subframes: 900,
            snr_db,
            fading: Some((DelayProfile::Epa, 30.0)),
            ..scene(pci, 15, 256, DelayProfile::Epa, seed)
        };
        let (mut samples, _) = moving(214, seed, 28.0).play();
        let share = 10f32.powf(-8.0 / 20.0);
        samples[..500 * 3840].iter_mut().for_each(|sample| *sample *= share);
        let (others, _) = moving(56, seed + 100, 60.0).play();
        samples
            .iter_mut()
            .skip(4 * 3840 + 1777)
            .zip(&others)
            .for_each(|(sample, other)| *sample += other * share);
        let (outputs, _) = blind::decode(3_840_000, &samples);
        let readings = outputs.iter().filter_map(|output| match output {
            Output::Subframe(reading) => Some((reading.sample / 3840, reading.pci)),
            _ => None,
        });
        let readings: Vec<(i64, u16)> = readings.collect();
        let of_weaker =
            |from, to| readings.iter().filter(|(at, pci)| (from..to).contains(at) && *pci == 56).count();
        println!(
            "seed {seed}: of the weaker cell {} subframes, then {}",
            of_weaker(0, 500),
            of_weaker(700, 900)
        );
        taken += usize::from(of_weaker(450, 500) > 25);
        assert!(
            of_weaker(700, 900) <= 10,
            "seed {seed}: {} of 200 are the weaker cell's",
            of_weaker(700, 900)
        );
    }
    assert!(taken > 0, "the weaker cell was never followed");
}
