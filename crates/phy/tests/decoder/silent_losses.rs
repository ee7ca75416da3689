//! Unreported losses of samples: a subframe that was not received is never reported as idle.

use crate::blind;
use crate::crowd;

use std::collections::{BTreeMap, BTreeSet};

use airpace_core::Streams;
use airpace_phy::dci::Extras;
use airpace_phy::decoder::Output;
use airpace_phy::impair::DelayProfile;
use airpace_phy::{Bandwidth, Cell, Complex32, CyclicPrefix, PhichDuration, PhichResource, Ports};
use crowd::Scene;

const SUBFRAMES: u64 = 100;

/// A cell with grants in nearly every subframe.
fn scene(prbs: u16, fft_size: usize) -> Scene {
    let cell = Cell {
        pci: 305,
        bandwidth: Bandwidth::from_prbs(prbs).expect("a bandwidth of LTE"),
        ports: Ports::Two,
        cp: CyclicPrefix::Normal,
        phich_duration: PhichDuration::Normal,
        phich_resource: PhichResource::One,
    };
    let (extras, fading, snr_db) = (Extras::NONE, None, 20.0);
    Scene { cell, fft_size, users: 12, tries: 4, extras, snr_db, fading, subframes: SUBFRAMES, seed: 9 }
}

/// Reports of a decoder about a cell.
struct Decoded {
    /// Reported subframes, with or without messages.
    subframes: BTreeSet<u64>,
    /// Messages by subframe.
    messages: BTreeMap<u64, usize>,
    faint: u64,
}

fn decode(rate_hz: u64, samples: &[Complex32]) -> Decoded {
    let (outputs, decoder) = blind::decode(rate_hz, samples);
    let mut decoded =
        Decoded { subframes: BTreeSet::new(), messages: BTreeMap::new(), faint: decoder.ladder().faint };
    for output in outputs {
        if let Output::Subframe(reading) = &output {
            decoded.subframes.insert(reading.index);
        }
        for found in blind::messages(output) {
            *decoded.messages.entry(found.index).or_default() += 1;
        }
    }
    decoded
}

/// Subframes with transmissions, and their numbers of messages.
fn busy(sent: &[(u64, airpace_phy::pdcch::TransmittedMessage)]) -> BTreeMap<u64, usize> {
    let mut busy = BTreeMap::new();
    sent.iter().for_each(|(index, _)| *busy.entry(*index).or_default() += 1);
    busy
}

#[test]
fn a_missed_subframe_is_never_reported_as_idle() {
    for (prbs, fft_size) in [(6, 128), (25, 384), (50, 768)] {
        let (samples, sent) = scene(prbs, fft_size).play();
        let (rate_hz, subframe) = (fft_size as u64 * 15_000, fft_size * 15);
        let busy = busy(&sent);
        // Parts of a cyclic prefix, of the period of reference signals, of a symbol; symbols; subframes.
        let lengths = [fft_size / 18, fft_size / 8, fft_size / 4, 2 * fft_size / 5, 2 * fft_size / 3];
        let longer = [4 * fft_size / 3, 4 * fft_size, 13 * fft_size, 20 * fft_size, 53 * fft_size];
        for lost in lengths.into_iter().chain(longer) {
            // Times of the losses (ms): during the search, within a control region, and after a control region.
            for at_ms in [4.3, 42.05, 60.7] {
                let at = (at_ms * subframe as f64) as usize;
                let rest = [&samples[..at], &samples[at + lost..]].concat();
                let decoded = decode(rate_hz, &rest);
                let what = format!("{prbs} PRBs, {lost} of {subframe} samples lost after {at_ms} ms");
                let deaf: Vec<u64> = decoded
                    .subframes
                    .iter()
                    .filter(|index| busy.contains_key(index) && !decoded.messages.contains_key(index))
                    .copied()
                    .collect();
                assert!(deaf.is_empty(), "{what}: subframes {deaf:?} were not idle");
                let gone = (lost / subframe) as u64;
                let heard = decoded.subframes.len() as u64;
                assert!(heard + gone + MAX_MISSED >= SUBFRAMES, "{what}: only {heard} subframes are told");
                // Before the first complete subframe, no report is expected.
                let first = decoded.subframes.first().copied().unwrap_or_default();
                let missing = SUBFRAMES - first - heard;
                assert!(missing <= decoded.faint + gone + 1, "{what}: {missing} are missing without a word");
            }
        }
    }
}

/// Maximum number of subframes that are not reported because of one loss, in addition to the lost subframes. During the
/// search, these are subframes before the loss.
const MAX_MISSED: u64 = 7;

#[test]
fn losses_that_go_on_cost_a_subframe_or_two_each() {
    let (prbs, fft_size) = (25, 384);
    let (samples, sent) = scene(prbs, fft_size).play();
    let (subframe, busy) = (fft_size * 15, busy(&sent));
    for lost in [100, 300, 700] {
        let mut rest = samples[..10 * subframe].to_vec();
        let pieces = samples[10 * subframe..].chunks(20 * subframe + subframe / 5);
        let losses = pieces.len() as u64;
        pieces.for_each(|piece| rest.extend_from_slice(piece.get(lost..).unwrap_or_default()));
        let decoded = decode(fft_size as u64 * 15_000, &rest);
        let deaf = decoded
            .subframes
            .iter()
            .find(|index| busy.contains_key(index) && !decoded.messages.contains_key(index));
        assert_eq!(deaf, None, "{lost} samples lost every 20 ms: a subframe was not idle");
        let heard = decoded.subframes.len() as u64;
        assert!(
            heard + 2 * losses >= SUBFRAMES,
            "{lost} samples lost every 20 ms: {heard} subframes are told"
        );
    }
}

/// Near the end too few samples are left for a new search. The reference signals show where symbols start.
#[test]
fn a_loss_near_the_end_of_a_wide_recording_costs_a_subframe() {
    let (prbs, fft_size) = (100, 1536);
    let (samples, sent) = scene(prbs, fft_size).play();
    let subframe = fft_size * 15;
    let mut costs = Vec::new();
    for lost in [9_000, 15_000, 20_000, subframe, 30_000, 60_000] {
        for at_ms in [94.05, 94.6, 95.3, 95.9, 96.5, 97.02] {
            let at = (at_ms * subframe as f64) as usize;
            let decoded = decode(fft_size as u64 * 15_000, &[&samples[..at], &samples[at + lost..]].concat());
            // Subframes with a complete control region of maximum length.
            let is_whole = |index: u64| {
                let control = index as usize * subframe..index as usize * subframe + 4 * subframe / 14;
                index >= 80
                    && (control.end <= at || control.start >= at + lost && control.end <= samples.len())
            };
            let missed: Vec<u64> = busy(&sent)
                .into_iter()
                .filter(|(index, count)| is_whole(*index) && decoded.messages.get(index) != Some(count))
                .map(|(index, _)| index)
                .collect();
            println!("{lost} samples lost after {at_ms} ms: {missed:?} are not read");
            assert!(missed.len() <= 1, "{lost} samples lost after {at_ms} ms: {missed:?} are not read");
            costs.push(missed.len());
        }
    }
    println!("{} losses cost {} subframes that came", costs.len(), costs.iter().sum::<usize>());
}

/// Fading is not a loss: every decodable subframe is reported.
#[test]
fn a_fading_cell_is_received_all_the_time() {
    for (profile, doppler_hz, snr_db) in [
        (DelayProfile::Epa, 5.0, 15.0),
        (DelayProfile::Eva, 70.0, 12.0),
        (DelayProfile::Etu, 300.0, 20.0),
        (DelayProfile::Flat, 0.0, 0.0),
    ] {
        let scene = Scene { snr_db, fading: Some((profile, doppler_hz)), subframes: 200, ..scene(25, 384) };
        let (samples, sent) = scene.play();
        let decoded = decode(384 * 15_000, &samples);
        let busy = busy(&sent);
        let missing: Vec<_> = busy.keys().filter(|index| !decoded.subframes.contains(index)).collect();
        println!(
            "{profile:?} {doppler_hz} Hz {snr_db} dB: {} told, missing {missing:?}",
            decoded.subframes.len()
        );
        assert!(
            100 * missing.len() <= 2 * busy.len(),
            "{profile:?}, {doppler_hz} Hz: not told of {missing:?}"
        );
    }
}

/// Permanent noise is not a loss either: idle subframes are reported again as soon as the noise is known to be permanent.
#[test]
fn a_cell_that_becomes_weaker_is_still_reported() {
    let quiet = Scene { tries: 0, subframes: 300, ..scene(25, 384) };
    let (mut samples, _) = Scene { snr_db: 28.0, ..quiet }.play();
    let (noisy, _) = Scene { snr_db: 8.0, ..quiet }.play();
    let at = samples.len() / 3;
    samples[at..].copy_from_slice(&noisy[at..]);
    let decoded = decode(384 * 15_000, &samples);
    let missing: Vec<_> = (0..300).filter(|index| !decoded.subframes.contains(index)).collect();
    assert!(missing.len() <= 20, "an idle cell is not told of in {missing:?}");
}

/// Cells, noise and silence follow one another, and cells are lost and found again: every cell is found after the
/// previous one, and not before its samples arrived.
#[test]
fn no_cell_is_found_earlier_than_the_one_before() {
    let [one, other] = [305, 107].map(|pci| {
        let scene = scene(6, 128);
        Scene { cell: Cell { pci, ..scene.cell }, snr_db: 12.0, subframes: 200, ..scene }.play().0
    });
    let subframe = 128 * 15;
    let mut rng = Streams::new(2).stream("phy.pieces");
    let mut locks = 0;
    for _ in 0..60 {
        let mut samples: Vec<Complex32> = vec![];
        while samples.len() < 150 * subframe {
            let count = (3 + rng.below(30) as usize) * subframe + rng.below(subframe as u64) as usize;
            let from = rng.below((one.len() - count) as u64) as usize;
            let loud = rng.range(0.3, 3.0) as f32;
            match rng.below(4) {
                0 => samples.resize(samples.len() + count, Complex32::default()),
                1 => samples.extend(one[from..from + count].iter().map(|sample| sample * loud)),
                2 => samples.extend(other[from..from + count].iter().map(|sample| sample * loud)),
                _ => samples
                    .extend(one[from..].iter().zip(&other[count / 2..]).take(count).map(|(a, b)| a + b)),
            }
        }
        let mut after = 0;
        for output in blind::decode(128 * 15_000, &samples).0 {
            if let Output::Locked(lock) = output {
                assert!(lock.after >= after, "found after {} samples, and then after {}", after, lock.after);
                assert!(lock.after <= samples.len() as u64);
                after = lock.after;
                locks += 1;
            }
        }
    }
    assert!(locks > 60, "only {locks} cells were found");
}
