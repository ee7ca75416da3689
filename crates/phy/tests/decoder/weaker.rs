//! Decoding of a requested cell under a stronger one: the stronger signal is subtracted from the samples.
//!
//! Identities, ports, bandwidths, channels and times are random. `AIRPACE_SEED` and `AIRPACE_RUNS` select other pairs
//! of cells and a larger number of pairs.

use crate::blind;
use crate::crowd;

use airpace_core::{Rng, Streams};
use airpace_phy::dci::Carrier;
use airpace_phy::decoder::{Decoder, Options, Output};
use airpace_phy::encode::{Data, Encoder, Subframe};
use airpace_phy::found::Found;
use airpace_phy::grid::Grid;
use airpace_phy::impair::{Conditions, DelayProfile, Impair, noise_power};
use airpace_phy::ofdm::Modulator;
use airpace_phy::pdcch::TransmittedMessage;
use airpace_phy::phich::{self, Answer};
use airpace_phy::resample::Resampler;
use airpace_phy::{
    Bandwidth, Cell, Complex32, CyclicPrefix, Numerology, PhichDuration, PhichResource, Ports,
};
use airpace_radio::{PrbSet, Rnti};
use crowd::Crowd;

/// Power of the stronger cell over the weaker cell, and of the weaker cell over the noise (dB).
const WEAKER_DB: f64 = -8.0;
const SNR_DB: f64 = 25.0;

const SUBFRAMES: u64 = 400;

/// Content of the stronger cell's PRBs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Load {
    Nothing,
    /// QPSK, with transmit diversity if there are several ports.
    Robust,
    /// 64QAM, with another layer on each port.
    Fast,
}

/// A transmitting cell.
#[derive(Clone, Copy, Debug)]
struct OnAir {
    cell: Cell,
    profile: DelayProfile,
    doppler_hz: f64,
    cfo_hz: f64,
    seed: u64,
    /// Seed of the channel, if it differs from `seed`.
    path_seed: Option<u64>,
}

/// Two cells on one carrier.
#[derive(Clone, Copy, Debug)]
struct Pair {
    stronger: OnAir,
    weaker: OnAir,
    /// Delay of the weaker cell's frames (samples).
    later: usize,
}

impl Pair {
    fn draw(prbs: u16, rng: &mut Rng) -> Pair {
        let mut on_air = |pci: u16| {
            let profiles = [
                (DelayProfile::Flat, 0.0),
                (DelayProfile::Epa, 5.0),
                (DelayProfile::Eva, 5.0),
                (DelayProfile::Eva, 70.0),
                (DelayProfile::Etu, 5.0),
            ];
            let (profile, doppler_hz) = profiles[rng.below(5) as usize];
            let cell = Cell {
                pci,
                bandwidth: Bandwidth::from_prbs(prbs).expect("a bandwidth of LTE"),
                ports: Ports::ALL[rng.below(3) as usize],
                cp: CyclicPrefix::Normal,
                phich_duration: PhichDuration::Normal,
                phich_resource: PhichResource::ALL[rng.below(4) as usize],
            };
            OnAir {
                cell,
                profile,
                doppler_hz,
                cfo_hz: 400.0 * (rng.uniform() - 0.5),
                seed: rng.next_u64(),
                path_seed: None,
            }
        };
        let (stronger, weaker) = (on_air(0), on_air(0));
        let pci = rng.below(504) as u16;
        // Cells of one site have different N_ID^(2).
        let other = (0..).map(|_| rng.below(504) as u16).find(|other| other % 3 != pci % 3).unwrap_or(0);
        let frame = 150 * stronger.cell.bandwidth.nominal_fft_size() as u64;
        Pair {
            stronger: OnAir { cell: Cell { pci, ..stronger.cell }, ..stronger },
            weaker: OnAir { cell: Cell { pci: other, ..weaker.cell }, ..weaker },
            // Cells of one site often have aligned frames.
            later: if rng.chance(0.3) { 0 } else { rng.below(frame) as usize },
        }
    }

    fn rate_hz(&self) -> u64 {
        15_000 * self.stronger.cell.bandwidth.nominal_fft_size() as u64
    }

    /// Received samples of both cells, and the transmitted messages of the weaker cell.
    fn play(&self, load: Load) -> (Vec<Complex32>, Vec<(u64, TransmittedMessage)>) {
        let (mut samples, _) = self.stronger.play(SUBFRAMES + 10, SNR_DB, load);
        let (weaker, sent) = self.weaker.play(SUBFRAMES, 200.0, Load::Nothing);
        let share = 10f64.powf(WEAKER_DB / 20.0) as f32;
        for (sample, weaker) in samples.iter_mut().skip(self.later).zip(&weaker) {
            *sample += weaker * share;
        }
        (samples, sent)
    }
}

impl OnAir {
    /// Received samples of the cell, and its transmitted messages.
    fn play(
        &self,
        subframes: u64,
        snr_db: f64,
        load: Load,
    ) -> (Vec<Complex32>, Vec<(u64, TransmittedMessage)>) {
        let cell = self.cell;
        let fft_size = cell.bandwidth.nominal_fft_size();
        let mut crowd = Crowd::new(Carrier::symmetric(cell.bandwidth.prbs(), cell.ports), 12, self.seed);
        let streams = Streams::new(self.seed);
        let mut rng = streams.stream("phy.weaker");
        let mut answers = streams.stream("phy.weaker.answers");
        let amplitude = 1.0 / (fft_size as f32).sqrt();
        let mut encoder = Encoder::new(cell);
        let mut modulator =
            Modulator::new(Numerology::new(cell.bandwidth, cell.cp, fft_size).expect("an FFT size"));
        let mut path = Impair::new(
            Conditions {
                profile: self.profile,
                doppler_hz: self.doppler_hz,
                noise_power: noise_power(snr_db, fft_size, amplitude),
                cfo_hz: self.cfo_hz,
                ..Conditions::perfect(fft_size as f64 * 15_000.0)
            },
            cell.ports.count(),
            &Streams::new(self.path_seed.unwrap_or(self.seed)),
        );
        let everything = PrbSet::run(0, cell.bandwidth.prbs());
        let data = [Data { rnti: Rnti(1000), prbs: [everything; 2] }];
        let (mut samples, mut all) = (Vec::new(), Vec::new());
        for index in 0..subframes {
            let number = (index % 10) as usize;
            let least = cell.least_cfi();
            let cfi = least + rng.below(u64::from(4 - least)) as u8;
            let sent = crowd.subframe(number, encoder.cces(cfi), 8);
            let (sfn, messages) = ((index / 10) as u16, &sent[..]);
            // Some uplink blocks get HARQ feedback.
            let mut answer = || Answer {
                group: answers.below(cell.phich_groups() as u64) as usize,
                sequence: answers.below(phich::sequences(cell.cp) as u64) as usize,
                ack: answers.chance(0.8),
            };
            let mut answered: Vec<Answer> = (0..3).map(|_| answer()).collect();
            answered.sort_by_key(|answer| (answer.group, answer.sequence));
            answered.dedup_by_key(|answer| (answer.group, answer.sequence));
            let idle = Subframe { sfn, number, cfi, messages, answers: &answered, data: &[] };
            let of_idle = encoder.grids(&idle).expect("a subframe that can be sent").to_vec();
            let grids = match load {
                Load::Nothing => of_idle,
                Load::Robust | Load::Fast => {
                    let full = Subframe { data: &data, ..idle };
                    let mut grids = encoder.grids(&full).expect("a subframe that can be sent").to_vec();
                    if load == Load::Fast {
                        make_fast(&mut grids, &of_idle, &mut rng);
                    }
                    grids
                }
            };
            let mut ports = vec![Vec::new(); cell.ports.count()];
            for (grid, out) in grids.iter().zip(&mut ports) {
                modulator.modulate(grid, amplitude, out);
            }
            path.push(&ports, &mut samples);
            all.extend(sent.into_iter().map(|sent| (index, sent)));
        }
        (samples, all)
    }
}

/// Writes 64QAM symbols, different ones on each port, to the data elements of a subframe.
fn make_fast(grids: &mut [Grid], of_idle: &[Grid], rng: &mut Rng) {
    let scale = 1.0 / (42.0 * grids.len() as f32).sqrt();
    let mut part = || (2.0 * rng.below(8) as f32 - 7.0) * scale;
    for symbol in 0..grids[0].symbols() {
        for k in 0..grids[0].symbol(symbol).len() {
            if grids.iter().zip(of_idle).any(|(full, idle)| full.symbol(symbol)[k] != idle.symbol(symbol)[k])
            {
                grids.iter_mut().for_each(|grid| grid.symbol_mut(symbol)[k] = Complex32::new(part(), part()));
            }
        }
    }
}

/// Decoded messages of a requested cell.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    /// Number of transmitted messages on four or eight CCEs, and the number of decoded messages among them.
    sent: usize,
    read: usize,
    /// Number of decoded messages that were not transmitted, and expected number of wrong ones according to their
    /// confidences.
    wrong: usize,
    doubt: f64,
}

/// All outputs of a decoder that was configured for cell `pci`.
fn decode(
    options: Options,
    pci: Option<u16>,
    samples: &[Complex32],
    piece: usize,
    lost: &[(usize, u64)],
) -> Vec<Output> {
    let mut options = options;
    options.listen.pci = pci;
    let mut decoder = Decoder::new(options).expect("a rate for a cell");
    let (mut out, mut from) = (Vec::new(), 0);
    // At some positions, some samples are lost.
    for &(place, count) in lost.iter().chain([&(samples.len(), 0)]) {
        for samples in samples[from..place].chunks(piece) {
            decoder.push(samples);
            out.extend(std::iter::from_fn(|| decoder.pop()));
        }
        if count > 0 {
            decoder.skip(count);
            from = place + count as usize;
        }
    }
    decoder.finish();
    out.extend(std::iter::from_fn(|| decoder.pop()));
    out
}

fn tally(pair: &Pair, load: Load) -> Tally {
    let (samples, sent) = pair.play(load);
    let rate_hz = pair.rate_hz();
    let pci = Some(pair.weaker.cell.pci);
    count(decode(Options::new(rate_hz), pci, &samples, rate_hz as usize / 1000, &[]), &sent)
}

fn count(out: Vec<Output>, sent: &[(u64, TransmittedMessage)]) -> Tally {
    let found: Vec<Found> = out.into_iter().flat_map(blind::messages).collect();
    let is_it = |found: &Found, (index, sent): &(u64, TransmittedMessage)| {
        let of_frames = u64::from(found.sfn) * 10 + u64::from(found.subframe);
        (of_frames, found.rnti, found.payload, found.place) == (*index, sent.rnti, sent.payload, sent.place)
    };
    let large = sent.iter().filter(|(_, sent)| sent.place.cces >= 4);
    Tally {
        sent: large.clone().count(),
        read: large.filter(|sent| found.iter().any(|found| is_it(found, sent))).count(),
        wrong: found.iter().filter(|found| !sent.iter().any(|sent| is_it(found, sent))).count(),
        doubt: found.iter().map(|found| 1.0 - f64::from(found.confidence)).sum(),
    }
}

fn number(name: &str, usual: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// Decodes random pairs, and returns the counters by bandwidth.
fn measure(load: Load, usual_runs: u64) -> Vec<(u16, Tally)> {
    let mut rng = Streams::new(number("AIRPACE_SEED", 1)).stream("phy.weaker.pairs");
    let mut sums = [6, 15, 25, 50, 75, 100].map(|prbs| (prbs, Tally::default()));
    for run in 0..number("AIRPACE_RUNS", usual_runs) as usize {
        let (prbs, sum) = &mut sums[run % 6];
        let pair = Pair::draw(*prbs, &mut rng);
        let tally = tally(&pair, load);
        println!("{pair:?}: {tally:?} {:.3}", tally.read as f64 / tally.sent as f64);
        sum.sent += tally.sent;
        sum.read += tally.read;
        sum.wrong += tally.wrong;
        sum.doubt += tally.doubt;
    }
    for (prbs, tally) in sums.iter().filter(|(_, tally)| tally.sent > 0) {
        let Tally { sent, wrong, doubt, .. } = tally;
        println!("{load:?}, {prbs} PRB: {:.3} of {sent}, {wrong} wrong, {doubt:.1} expected", tally.recall());
    }
    sums.to_vec()
}

impl Tally {
    fn recall(&self) -> f64 {
        self.read as f64 / self.sent as f64
    }
}

#[test]
fn a_weaker_cell_is_read_beside_a_stronger_one() {
    for (prbs, tally) in measure(Load::Nothing, 3).into_iter().filter(|(_, tally)| tally.sent > 0) {
        assert!(tally.recall() >= 0.8, "{prbs} PRB: {:.3} of {}", tally.recall(), tally.sent);
        assert!(tally.wrong <= 2, "{prbs} PRB: {} were never sent", tally.wrong);
    }
}

#[test]
fn robust_data_of_the_stronger_cell_is_taken_off_too() {
    for (prbs, tally) in measure(Load::Robust, 3).into_iter().filter(|(_, tally)| tally.sent > 0) {
        assert!(tally.recall() >= 0.8, "{prbs} PRB: {:.3} of {}", tally.recall(), tally.sent);
    }
}

/// If subtraction is impossible, the number of wrong messages is close to the expected number according to the
/// confidences.
#[test]
fn fast_data_of_the_stronger_cell_invents_nothing() {
    let tallies = measure(Load::Fast, 2);
    assert!(
        tallies.iter().any(|(_, tally)| tally.read > 0),
        "a decoder that reads nothing invents nothing: {tallies:?}"
    );
    for (prbs, tally) in tallies {
        let most = 2.0 + tally.doubt + tally.sent as f64 / 50.0;
        assert!(tally.wrong as f64 <= most, "{prbs} PRB: {} were never sent", tally.wrong);
    }
}

/// A pair of cells with 15 PRBs.
fn usual_pair(profile: DelayProfile) -> Pair {
    let on_air = |pci, ports, cfo_hz, seed| {
        let cell = Cell {
            pci,
            bandwidth: Bandwidth::from_prbs(15).expect("a bandwidth of LTE"),
            ports,
            cp: CyclicPrefix::Normal,
            phich_duration: PhichDuration::Normal,
            phich_resource: PhichResource::One,
        };
        OnAir { cell, profile, doppler_hz: 5.0, cfo_hz, seed, path_seed: None }
    };
    let (stronger, weaker) = (on_air(301, Ports::Two, 120.0, 3), on_air(56, Ports::One, -80.0, 4));
    Pair { stronger, weaker, later: 21_234 }
}

#[test]
fn pieces_of_any_size_give_the_same_to_the_last_bit() {
    let pair = usual_pair(DelayProfile::Epa);
    let (samples, sent) = pair.play(Load::Nothing);
    let ms = pair.rate_hz() as usize / 1000;
    let options = Options::new(pair.rate_hz());
    let lost = [(100 * ms + 77, 3 * ms as u64 + 9), (200 * ms, 40)];
    let whole = decode(options, Some(56), &samples, usize::MAX, &lost);
    let read = count(whole.clone(), &sent);
    assert!(read.recall() >= 0.9, "{read:?}");
    for piece in [ms / 3, 7 * ms] {
        let pieces = decode(options, Some(56), &samples, piece, &lost);
        let differs = whole.iter().zip(&pieces).position(|(a, b)| a != b);
        assert_eq!((differs, whole.len()), (None, pieces.len()), "pieces of {piece}");
    }
}

#[test]
fn losses_and_other_rates_cost_hardly_more() {
    let pair = usual_pair(DelayProfile::Epa);
    let (samples, sent) = pair.play(Load::Nothing);
    let (rate_hz, ms) = (pair.rate_hz(), pair.rate_hz() as usize / 1000);
    let lost = [(100 * ms + 77, 3 * ms as u64 + 9), (200 * ms, 40)];
    let with_losses = count(decode(Options::new(rate_hz), Some(56), &samples, ms, &lost), &sent);
    let other_hz = 4_123_456;
    let mut resampled = Vec::new();
    Resampler::new(rate_hz, other_hz, 1_365_000).expect("rates that fit").push(&samples, &mut resampled);
    let at_other_rate = count(decode(Options::new(other_hz), Some(56), &resampled, ms, &[]), &sent);
    for tally in [with_losses, at_other_rate] {
        println!("{tally:?} {:.3}", tally.recall());
        assert!(tally.recall() >= 0.9 && tally.wrong <= 1, "{tally:?}");
    }
}

#[test]
fn two_antennas_are_each_freed_of_the_stronger_cell() {
    let pair = usual_pair(DelayProfile::Eva);
    let mut other = pair;
    // The same messages through other channels.
    other.stronger.path_seed = Some(1001);
    other.weaker.path_seed = Some(1002);
    let ((first, sent), (second, _)) = (pair.play(Load::Nothing), other.play(Load::Nothing));
    let both: Vec<Complex32> = first.iter().zip(&second).flat_map(|(a, b)| [*a, *b]).collect();
    let mut options = Options::new(pair.rate_hz());
    options.listen.antennas = 2;
    let tally = count(decode(options, Some(56), &both, 2 * pair.rate_hz() as usize / 1000, &[]), &sent);
    println!("{tally:?} {:.3}", tally.recall());
    assert!(tally.recall() >= 0.95 && tally.wrong <= 1, "{tally:?}");
}

/// If the strongest cell is requested, the decoder gets the same results at the same cost as without a request: nothing
/// is subtracted.
#[test]
fn the_strongest_cell_is_read_as_if_it_were_not_asked_for() {
    let pair = usual_pair(DelayProfile::Flat);
    let (samples, _) = pair.play(Load::Nothing);
    let ms = pair.rate_hz() as usize / 1000;
    let options = Options::new(pair.rate_hz());
    let without = decode(options, None, &samples, ms, &[]);
    let read = without.iter().cloned().flat_map(blind::messages).count() as u64;
    assert!(read >= SUBFRAMES / 2, "only {read} messages in {SUBFRAMES} subframes");
    assert_eq!(decode(options, Some(301), &samples, ms, &[]), without);
}
