//! A cell that is not alone on its band: another cell, or a tone.

mod blind;
mod crowd;

use airpace_phy::dci::Extras;
use airpace_phy::decoder::Output;
use airpace_phy::impair::DelayProfile;
use airpace_phy::{Bandwidth, Cell, Complex32, CyclicPrefix, PhichDuration, PhichResource, Ports};
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
fn recall(rate_hz: u64, samples: &[Complex32], sent: &[(u64, airpace_phy::pdcch::Sent)]) -> f64 {
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
