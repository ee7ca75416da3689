//! A cell that is not alone on its band: another cell, or a tone.

mod air;
mod blind;
mod crowd;

use airpace_core::Streams;
use airpace_phy::channel::{Channel, Estimator};
use airpace_phy::dci::Extras;
use airpace_phy::decoder::Output;
use airpace_phy::grid::Grid;
use airpace_phy::impair::DelayProfile;
use airpace_phy::ofdm::Demodulator;
use airpace_phy::pdcch::Sent;
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

/// The share of the sent messages that are believed.
fn recall(rate_hz: u64, samples: &[Complex32], sent: &[(u64, Sent)]) -> f64 {
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

/// In its fades the cell is fainter than another that is 8 dB weaker in the mean.
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

/// A tone 10 dB below all that is received is as loud as dozens of subcarriers together.
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

/// The share of the messages that a decoder reads which is told timing, channel, CFI, users, places and the mean power of
/// all that disturbs: the noise and, of this power over a resource element, whatever is there beside the cell.
fn recall_if_told(scene: &Scene, samples: &[Complex32], disturbance: f64, sent: &[(u64, Sent)]) -> f64 {
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

/// What a weaker cell costs in fades is what its power costs: a decoder that is told everything loses as much. The worst case
/// are cells whose frames begin together, so that control regions meet. `AIRPACE_RUNS` takes more seeds.
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
                // What of the other cell meets control regions.
                let met: Vec<Complex32> = (0..390)
                    .flat_map(|index| {
                        let at = (index * fft_size * 15 + 10 * fft_size * 15 - later) % others.len();
                        others[at..(at + 3 * fft_size).min(others.len())].to_vec()
                    })
                    .collect();
                // Over a resource element: beside the band, white noise has power and the other cell has none.
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
        }
    }
}
