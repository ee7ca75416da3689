//! Several antennas of one receiver: their signals are combined, and no antenna degrades the result.

use crate::crowd;

use std::collections::BTreeSet;

use airpace_core::Streams;
use airpace_phy::dci::Carrier;
use airpace_phy::decoder::{Decoder, Options, Output};
use airpace_phy::encode::{Subframe, Transmitter};
use airpace_phy::impair::{Conditions, DelayProfile, Impair, noise_power};
use airpace_phy::station::interleave;
use airpace_phy::{Bandwidth, Cell, Complex32, CyclicPrefix, PhichDuration, PhichResource, Ports};
use crowd::Crowd;

const PRBS: u16 = 25;
const FFT_SIZE: usize = 384;
const RATE_HZ: u64 = FFT_SIZE as u64 * 15_000;
const SUBFRAME: usize = FFT_SIZE * 15;
const AMPLITUDE: f32 = 0.01;

fn cell() -> Cell {
    Cell {
        pci: 305,
        bandwidth: Bandwidth::from_prbs(PRBS).expect("a bandwidth of LTE"),
        ports: Ports::Two,
        cp: CyclicPrefix::Normal,
        phich_duration: PhichDuration::Normal,
        phich_resource: PhichResource::One,
    }
}

/// A message: its subframe, RNTI and payload.
type Key = (u64, u16, u64);

/// Received signal of several antennas for a busy cell, each with its own SNR, and the transmitted messages.
fn play(
    fading: (DelayProfile, f64),
    snr_db: &[f64],
    subframes: u64,
    seed: u64,
) -> (Vec<Vec<Complex32>>, BTreeSet<Key>) {
    let (cell, streams) = (cell(), Streams::new(seed));
    let mut crowd = Crowd::new(Carrier::symmetric(PRBS, cell.ports), 12, seed);
    let mut transmitter = Transmitter::new(cell, FFT_SIZE, AMPLITUDE).expect("an FFT size");
    let antenna = |(at, snr_db): (usize, &f64)| {
        let conditions = Conditions {
            profile: fading.0,
            doppler_hz: fading.1,
            noise_power: noise_power(*snr_db, FFT_SIZE, AMPLITUDE),
            ..Conditions::perfect(RATE_HZ as f64)
        };
        Impair::of_antenna(at, conditions, cell.ports.count(), &streams)
    };
    let mut antennas: Vec<_> = snr_db.iter().enumerate().map(antenna).collect();
    let (mut heard, mut all) = (vec![Vec::new(); snr_db.len()], BTreeSet::new());
    for index in 0..subframes {
        let number = (index % 10) as usize;
        let sent = crowd.subframe(number, transmitter.encoder().cces(3), 6);
        let sfn = (index / 10) as u16;
        let subframe = Subframe { sfn, number, cfi: 3, messages: &sent, answers: &[], data: &[] };
        let mut ports = vec![Vec::new(); cell.ports.count()];
        transmitter.send(&subframe, &mut ports).expect("a subframe that can be sent");
        for (antenna, heard) in antennas.iter_mut().zip(&mut heard) {
            antenna.push(&ports, heard);
        }
        all.extend(sent.iter().map(|sent| (index, sent.rnti.0, sent.payload.bits())));
    }
    (heard, all)
}

/// Number of decoded messages that were transmitted, and number of other decoded messages.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Score {
    recall: f64,
    invented: usize,
}

/// Decodes the signals of several antennas together, in blocks of a quarter of a millisecond.
fn decode(antennas: &[&[Complex32]], sent: &BTreeSet<Key>) -> Score {
    let mut heard: Vec<Vec<Complex32>> = antennas.iter().map(|samples| samples.to_vec()).collect();
    let mut samples = Vec::new();
    interleave(&mut heard, &mut samples);
    let mut options = Options::new(RATE_HZ);
    options.listen.antennas = antennas.len();
    let mut decoder = Decoder::new(options).expect("a rate for a cell");
    let mut found = BTreeSet::new();
    let mut take = |decoder: &mut Decoder| {
        while let Some(output) = decoder.pop() {
            let messages = match output {
                Output::Subframe(reading) => [reading.found, reading.late].concat(),
                Output::Late(late) => late,
                Output::Locked(_) | Output::Lost | Output::Moved(_) => vec![],
            };
            found.extend(messages.iter().map(|found| (found.index, found.rnti.0, found.payload.bits())));
        }
    };
    for piece in samples.chunks(antennas.len() * SUBFRAME / 4) {
        decoder.push(piece);
        take(&mut decoder);
    }
    decoder.finish();
    take(&mut decoder);
    let right = found.intersection(sent).count();
    Score { recall: right as f64 / sent.len() as f64, invented: found.len() - right }
}

const FLAT: (DelayProfile, f64) = (DelayProfile::Flat, 0.0);
const EVA: (DelayProfile, f64) = (DelayProfile::Eva, 70.0);

/// Two antennas give a gain of three decibels, and a larger gain if they fade independently.
#[test]
fn two_antennas_receive_like_one_with_three_decibels_more() {
    for (name, fading) in [("flat", FLAT), ("eva", EVA)] {
        for snr_db in [-3.0, 0.0, 3.0] {
            let (two, sent) = play(fading, &[snr_db; 2], 300, 7);
            let both = decode(&[&two[0], &two[1]], &sent);
            let alone = [decode(&[&two[0]], &sent), decode(&[&two[1]], &sent)];
            let (louder, sent_louder) = play(fading, &[snr_db + 3.0], 300, 7);
            let louder = decode(&[&louder[0]], &sent_louder);
            println!("{name} {snr_db} dB: one {alone:?}, two {both:?}, one 3 dB louder {louder:?}");
            assert!(both.recall + 0.02 >= louder.recall, "{name} {snr_db} dB");
            assert!(both.invented <= 1, "{name} {snr_db} dB: {} were never sent", both.invented);
        }
    }
}

/// One antenna has a worse signal than the other, no signal, or a signal only part of the time. The counts are summed
/// over several recordings, because the number of lost messages varies slightly between recordings.
#[test]
fn no_antenna_makes_it_worse_than_the_better_one_alone() {
    const NAMES: [&str; 8] =
        ["silent", "stuck", "absent", "clipped", "deaf", "deaf and loud", "6 dB weaker", "not finite"];
    const SEEDS: std::ops::Range<u64> = 5..8;
    let mut sums = [(0.0, 0.0, 0); NAMES.len()];
    for seed in SEEDS {
        let (heard, sent) = play(EVA, &[6.0, 6.0, -20.0, 0.0], 100, seed);
        let good = &heard[0][..];
        let alone = decode(&[good], &sent);
        let mut absent = heard[1].clone();
        for gap in (10..90).step_by(20) {
            absent[gap * SUBFRAME..][..7 * SUBFRAME + 1000].fill(Complex32::default());
        }
        let clip = |part: f32| part.clamp(-0.01, 0.01);
        let others: [Vec<Complex32>; NAMES.len()] = [
            vec![Complex32::default(); good.len()],
            vec![Complex32::new(-1.0 / 127.0, 1.0 / 127.0); good.len()],
            absent,
            heard[1].iter().map(|sample| Complex32::new(clip(sample.re), clip(sample.im))).collect(),
            heard[2].clone(),
            heard[2].iter().map(|sample| sample * 100.0).collect(),
            heard[3].clone(),
            vec![Complex32::new(f32::NAN, f32::INFINITY); good.len()],
        ];
        for ((name, other), sum) in NAMES.iter().zip(&others).zip(&mut sums) {
            let best = alone.recall.max(decode(&[other], &sent).recall);
            for pair in [[good, other], [other, good]] {
                let both = decode(&pair, &sent);
                println!("{name}, seed {seed}: {both:?}, the better one alone {best:.4}");
                *sum = (sum.0 + both.recall, sum.1 + best, sum.2 + both.invented);
            }
        }
    }
    let pairs = 2.0 * (SEEDS.end - SEEDS.start) as f64;
    for (name, (both, best, invented)) in NAMES.iter().zip(sums) {
        assert!(both / pairs + 0.005 >= best / pairs, "{name}: {both} with, {best} without, of {pairs}");
        assert!(invented <= 2, "{name}: {invented} were never sent");
    }
}

/// Four antennas, with blocks that end within a sampling instant.
#[test]
fn four_antennas_receive_more_than_two() {
    let (heard, sent) = play(EVA, &[-3.0; 4], 60, 3);
    let of = |count: usize| decode(&heard[..count].iter().map(Vec::as_slice).collect::<Vec<_>>(), &sent);
    let (one, two, four) = (of(1), of(2), of(4));
    println!("{one:?}, {two:?}, {four:?}");
    assert!(four.recall > two.recall && two.recall > one.recall);
}
