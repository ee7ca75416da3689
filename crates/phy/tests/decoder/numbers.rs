//! Subframe numbers follow elapsed time, even if a cell is lost and found many times.

use crate::blind;
use crate::crowd;

use airpace_core::Streams;
use airpace_phy::dci::Extras;
use airpace_phy::decoder::{Output, Reading};
use airpace_phy::impair::DelayProfile;
use airpace_phy::{Bandwidth, Cell, CyclicPrefix, PhichDuration, PhichResource, Ports};
use crowd::Scene;

const RATE_HZ: u64 = 1_920_000;

/// A narrow cell below 0 dB in fast fading: it is lost about thirteen times a second.
#[test]
fn a_cell_that_is_lost_again_and_again_keeps_its_numbers() {
    let mut rng = Streams::new(7).stream("phy.numbers");
    let mut losses = 0;
    for _ in 0..12 {
        let cell = Cell {
            pci: rng.below(504) as u16,
            bandwidth: Bandwidth::from_prbs(6).expect("a bandwidth of LTE"),
            ports: Ports::One,
            cp: CyclicPrefix::Normal,
            phich_duration: PhichDuration::Normal,
            phich_resource: PhichResource::One,
        };
        let snr_db = -5.0 + 4.0 * rng.uniform();
        let doppler_hz = [300.0, 70.0, 5.0][rng.below(3) as usize];
        let (extras, fading) = (Extras::NONE, Some((DelayProfile::Etu, doppler_hz)));
        let seed = rng.next_u64();
        let scene =
            Scene { cell, fft_size: 128, users: 12, tries: 8, extras, snr_db, fading, subframes: 1500, seed };
        let outputs = blind::decode(RATE_HZ, &scene.play().0).0;
        losses += outputs.iter().filter(|output| **output == Output::Lost).count();
        let readings: Vec<&Reading> = outputs
            .iter()
            .filter_map(|output| match output {
                Output::Subframe(reading) => Some(reading),
                _ => None,
            })
            .collect();
        let by_time = |reading: &Reading| libm::round(reading.sample as f64 * 1000.0 / RATE_HZ as f64) as u64;
        let wrong = readings.iter().find(|reading| reading.index != by_time(reading));
        assert!(
            wrong.is_none(),
            "{scene:?}: {} in place of {}",
            wrong.unwrap().index,
            by_time(wrong.unwrap())
        );
        assert!(readings.is_sorted_by(|a, b| a.sample < b.sample), "{scene:?}: a subframe came twice");
    }
    println!("{losses} losses");
    assert!(losses > 100, "the cell was lost {losses} times");
}
