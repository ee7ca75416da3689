//! Impairments in recordings of real receivers: silence, bursts, gain changes, missing samples.

use crate::air;

use air::{AMPLITUDE, Air, Outcome, cell, listen};
use airpace_core::Streams;
use airpace_phy::impair::{Conditions, noise_power};
use airpace_phy::listen::{Listener, Options};
use airpace_phy::{Complex32, Ports};

const FFT_SIZE: usize = 512;
const RATE_HZ: u64 = 7_680_000;
const SUBFRAME: usize = RATE_HZ as usize / 1000;

/// SNR high enough that the receiver evaluates only a part of the reference signals.
fn clear() -> Conditions {
    Conditions { noise_power: noise_power(25.0, FFT_SIZE, AMPLITUDE), ..Conditions::perfect(RATE_HZ as f64) }
}

/// A cell with 25 PRB pairs, and its transmitted messages in `subframes` subframes.
fn record(ports: Ports, subframes: usize) -> (Air, Vec<Complex32>) {
    let mut air = Air::new(cell(214, 25, ports), FFT_SIZE, clear(), 5);
    let mut samples = Vec::new();
    air.send(subframes, &mut samples);
    (air, samples)
}

/// Number of subframes with nearly all of their messages decoded.
fn read(outcome: &Outcome, air: &Air) -> usize {
    let is_read = |(at, sent): (&(u16, usize), &(u8, Vec<_>))| {
        let heard = outcome.observations.iter().filter(|heard| (heard.sfn, heard.number) == *at);
        heard.into_iter().any(|heard| {
            let found = sent.1.iter().filter(|message| air::is_found(heard, message)).count();
            10 * found >= 9 * sent.1.len()
        })
    };
    air.sent.iter().filter(|&(at, sent)| is_read((at, sent))).count()
}

/// Reference signals are periodic with a sixth of a symbol: 85 samples. For larger offsets, cyclic prefixes determine
/// the offset within a symbol, and the PCFICH determines the symbol number.
#[test]
fn a_few_samples_lost_without_a_word_cost_a_few_subframes() {
    for ports in [Ports::One, Ports::Two] {
        let (air, samples) = record(ports, 120);
        for lost in [3, 14, 40, 85, 133, 171, 256, 300, 512, 700, 5000] {
            let at = 52 * SUBFRAME + SUBFRAME / 3;
            let rest: Vec<_> = [&samples[..at], &samples[at + lost..]].concat();
            let outcome = listen(Options::new(RATE_HZ), &rest);
            let read = read(&outcome, &air);
            println!("{ports:?}, {lost} samples: {read} subframes");
            assert!(read >= 120 - 2, "{ports:?}, {lost} samples: only {read} of 120 subframes are read");
        }
    }
}

/// A reported loss must not cost more subframes than an unreported loss: a control region that was complete before the
/// loss is decoded.
#[test]
fn reported_sample_losses_cost_no_subframe_with_a_whole_control_region() {
    for ports in [Ports::One, Ports::Four] {
        let (air, samples) = record(ports, 120);
        for (share, lost, cost) in [
            // After three of fourteen symbols, and within the second slot.
            (0.23, 300, 0),
            (0.23, 5000, 0),
            (0.6, 300, 0),
            (0.6, 5000, 1),
            (0.6, 2 * SUBFRAME, 2),
            // Within the control region.
            (0.1, 300, 1),
        ] {
            let at = 52 * SUBFRAME + (share * SUBFRAME as f64) as usize;
            let outcome = listen_around(&samples, at, lost);
            let read = read(&outcome, &air);
            println!("{ports:?}, {lost} samples after {share}: {read} subframes");
            assert!(read >= 120 - cost, "{ports:?}, {lost} samples after {share}: {read} of 120 subframes");
        }
    }
}

/// The samples after a loss contain a PSS but no PBCH: identity, bandwidth, ports and numbers of the cell are known from
/// before.
#[test]
fn a_cell_that_was_known_is_found_again_in_the_last_milliseconds() {
    let (air, samples) = record(Ports::Two, 120);
    for (lost, silent) in [(5000, 0), (4000, 0), (0, 5 * SUBFRAME), (0, 20 * SUBFRAME)] {
        // Seven subframes are left, starting with the third of a frame.
        let at = 113 * SUBFRAME - lost;
        let silence = vec![Complex32::default(); silent];
        let rest = [&samples[..at - silent], &silence, &samples[at + lost..]].concat();
        let outcome = listen(Options::new(RATE_HZ), &rest);
        let (read, hit) = (read(&outcome, &air), silent.div_ceil(SUBFRAME) + usize::from(lost > 0));
        println!("{lost} samples lost, {silent} silent: {read} subframes, {} losses", outcome.losses);
        assert!(read + hit + 1 >= 120, "{lost} samples lost, {silent} silent: {read} of 120 subframes");
    }
}

/// Processes samples without the `lost` samples from `at` on. The loss is reported to the listener.
fn listen_around(samples: &[Complex32], at: usize, lost: usize) -> Outcome {
    let listener = Listener::new(Options::new(RATE_HZ)).expect("a rate that is enough");
    let mut outcome = Outcome { listener, locks: Vec::new(), observations: Vec::new(), losses: 0 };
    outcome.listener.push(&samples[..at]);
    outcome.listener.skip(lost as u64);
    outcome.listener.push(&samples[at + lost..]);
    outcome.listener.finish();
    outcome.drain();
    outcome
}

/// The samples start with silence: the antenna was connected, or the cell was switched on, after the receiver started.
#[test]
fn a_cell_after_silence_is_read_from_its_first_subframe() {
    let (air, samples) = record(Ports::One, 60);
    let mut rng = Streams::new(2).stream("phy.hiss");
    let quiet = AMPLITUDE * (FFT_SIZE as f32).sqrt() * 1e-3;
    for (ms, level) in [(13, 0.0), (250, 0.0), (13, quiet), (250, quiet)] {
        let hiss = (0..ms * SUBFRAME + 777)
            .map(|_| Complex32::new(rng.normal() as f32, rng.normal() as f32) * level)
            .collect::<Vec<_>>();
        let outcome = listen(Options::new(RATE_HZ), &[hiss, samples.clone()].concat());
        assert_eq!(outcome.locks.first().map(|lock| lock.cell), Some(*air.cell()), "{ms} ms of {level}");
        let read = read(&outcome, &air);
        println!("{ms} ms of {level}: {read} subframes");
        assert!(read >= 58, "{ms} ms of {level}: only {read} of 60 subframes are read");
    }
}

#[test]
fn steps_of_gain_and_bursts_cost_what_they_hit() {
    let (air, mut samples) = record(Ports::One, 120);
    let mut rng = Streams::new(3).stream("phy.bursts");
    for (step, piece) in samples.chunks_mut(15 * SUBFRAME + 300).enumerate() {
        let gain = [1.0, 0.1, 0.5, 0.03][step % 4];
        piece.iter_mut().for_each(|sample| *sample *= gain);
    }
    for _ in 0..40 {
        let at = rng.below(samples.len() as u64 - 20) as usize;
        let burst = samples[at..at + 20].iter_mut();
        burst.for_each(|sample| *sample += Complex32::new(rng.normal() as f32, rng.normal() as f32));
    }
    let read = read(&listen(Options::new(RATE_HZ), &samples), &air);
    println!("bursts: {read} subframes");
    // A burst in a control symbol, or in both symbols with reference signals, destroys a subframe.
    assert!(read >= 108, "only {read} of 120 subframes are read");
}

/// A file that is played twice, in small blocks: as soon as the PBCH reports the frame number, frames are numbered again.
#[test]
fn frames_that_restart_get_new_numbers() {
    let (air, samples) = record(Ports::Two, 120);
    let outcome = listen(Options::new(RATE_HZ), &samples.repeat(2));
    let numbers: Vec<_> = outcome.observations.iter().map(|heard| (heard.sfn, heard.number)).collect();
    let once: Vec<_> = air.sent.keys().copied().collect();
    assert_eq!(numbers, once.repeat(2));
}
