//! A cell that is asked for beside a stronger one: the stronger one is taken off the samples.
//!
//! Identities, ports, widths, channels and times are drawn at random. `AIRPACE_SEED` and `AIRPACE_RUNS` draw others, and
//! more of them.

mod blind;
mod crowd;

use airpace_core::{Rng, Streams};
use airpace_phy::dci::Carrier;
use airpace_phy::decoder::{Decoder, Options, Output};
use airpace_phy::encode::{Data, Subframe, Transmitter};
use airpace_phy::found::Found;
use airpace_phy::impair::{Conditions, DelayProfile, Impair, noise_power};
use airpace_phy::pdcch::Sent;
use airpace_phy::{Bandwidth, Cell, Complex32, CyclicPrefix, PhichDuration, PhichResource, Ports};
use airpace_radio::{PrbSet, Rnti};
use crowd::Crowd;

/// How far the weaker cell is below the stronger, and that one above the noise, in dB.
const WEAKER_DB: f64 = -8.0;
const SNR_DB: f64 = 25.0;

const SUBFRAMES: u64 = 400;

/// A cell on the air.
#[derive(Clone, Copy, Debug)]
struct OnAir {
    cell: Cell,
    profile: DelayProfile,
    doppler_hz: f64,
    cfo_hz: f64,
    seed: u64,
}

/// Two cells on one carrier.
#[derive(Clone, Copy, Debug)]
struct Pair {
    stronger: OnAir,
    weaker: OnAir,
    /// Samples by which the weaker cell's frames begin later.
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
            ];
            let (profile, doppler_hz) = profiles[rng.below(4) as usize];
            let cell = Cell {
                pci,
                bandwidth: Bandwidth::from_prbs(prbs).expect("a bandwidth of LTE"),
                ports: Ports::ALL[rng.below(3) as usize],
                cp: CyclicPrefix::Normal,
                phich_duration: PhichDuration::Normal,
                phich_resource: PhichResource::ALL[rng.below(4) as usize],
            };
            OnAir { cell, profile, doppler_hz, cfo_hz: 400.0 * (rng.uniform() - 0.5), seed: rng.next_u64() }
        };
        let (stronger, weaker) = (on_air(0), on_air(0));
        let pci = rng.below(504) as u16;
        // Cells of one place have different thirds of the identities.
        let other = (0..).map(|_| rng.below(504) as u16).find(|other| other % 3 != pci % 3).unwrap_or(0);
        let frame = 150 * stronger.cell.bandwidth.nominal_fft_size() as u64;
        Pair {
            stronger: OnAir { cell: Cell { pci, ..stronger.cell }, ..stronger },
            weaker: OnAir { cell: Cell { pci: other, ..weaker.cell }, ..weaker },
            later: rng.below(frame) as usize,
        }
    }

    fn rate_hz(&self) -> u64 {
        15_000 * self.stronger.cell.bandwidth.nominal_fft_size() as u64
    }

    /// What is received of both, and what the weaker one sent.
    fn play(&self, is_full: bool) -> (Vec<Complex32>, Vec<(u64, Sent)>) {
        let (mut samples, _) = self.stronger.play(SUBFRAMES + 10, SNR_DB, is_full);
        let (weaker, sent) = self.weaker.play(SUBFRAMES, 200.0, false);
        let share = 10f64.powf(WEAKER_DB / 20.0) as f32;
        for (sample, weaker) in samples.iter_mut().skip(self.later).zip(&weaker) {
            *sample += weaker * share;
        }
        (samples, sent)
    }
}

impl OnAir {
    /// What is received of the cell, and what it sent. With `is_full`, all of its PRBs carry data.
    fn play(&self, subframes: u64, snr_db: f64, is_full: bool) -> (Vec<Complex32>, Vec<(u64, Sent)>) {
        let cell = self.cell;
        let fft_size = cell.bandwidth.nominal_fft_size();
        let mut crowd = Crowd::new(Carrier::symmetric(cell.bandwidth.prbs(), cell.ports), 12, self.seed);
        let streams = Streams::new(self.seed);
        let mut rng = streams.stream("phy.weaker");
        let amplitude = 1.0 / (fft_size as f32).sqrt();
        let mut transmitter = Transmitter::new(cell, fft_size, amplitude).expect("an FFT size");
        let mut path = Impair::new(
            Conditions {
                profile: self.profile,
                doppler_hz: self.doppler_hz,
                noise_power: noise_power(snr_db, fft_size, amplitude),
                cfo_hz: self.cfo_hz,
                ..Conditions::perfect(fft_size as f64 * 15_000.0)
            },
            cell.ports.count(),
            &streams,
        );
        let everything = PrbSet::run(0, cell.bandwidth.prbs());
        let data = [Data { rnti: Rnti(1000), prbs: [everything; 2] }];
        let (mut samples, mut all) = (Vec::new(), Vec::new());
        for index in 0..subframes {
            let number = (index % 10) as usize;
            let least = cell.least_cfi();
            let cfi = least + rng.below(u64::from(4 - least)) as u8;
            let sent = crowd.subframe(number, transmitter.encoder().cces(cfi), 8);
            let subframe = Subframe {
                sfn: (index / 10) as u16,
                number,
                cfi,
                messages: &sent,
                answers: &[],
                data: if is_full { &data } else { &[] },
            };
            let mut ports = vec![Vec::new(); cell.ports.count()];
            transmitter.send(&subframe, &mut ports).expect("a subframe that can be sent");
            path.push(&ports, &mut samples);
            all.extend(sent.into_iter().map(|sent| (index, sent)));
        }
        (samples, all)
    }
}

/// What was read of a cell that was asked for.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    /// Messages on four or eight CCEs, and how many of them were read.
    sent: usize,
    read: usize,
    /// Messages that were never sent.
    wrong: usize,
}

fn tally(pair: &Pair, is_full: bool) -> Tally {
    let (samples, sent) = pair.play(is_full);
    let rate_hz = pair.rate_hz();
    let mut options = Options::new(rate_hz);
    options.listen.pci = Some(pair.weaker.cell.pci);
    let mut decoder = Decoder::new(options).expect("a rate for a cell");
    let mut found: Vec<Found> = Vec::new();
    for piece in samples.chunks(rate_hz as usize / 1000) {
        decoder.push(piece);
        found.extend(std::iter::from_fn(|| decoder.pop()).flat_map(messages));
    }
    decoder.finish();
    found.extend(std::iter::from_fn(|| decoder.pop()).flat_map(messages));
    let is_it = |found: &Found, (index, sent): &(u64, Sent)| {
        let of_frames = u64::from(found.sfn) * 10 + u64::from(found.subframe);
        (of_frames, found.rnti, found.payload, found.place) == (*index, sent.rnti, sent.payload, sent.place)
    };
    let large = sent.iter().filter(|(_, sent)| sent.place.cces >= 4);
    Tally {
        sent: large.clone().count(),
        read: large.filter(|sent| found.iter().any(|found| is_it(found, sent))).count(),
        wrong: found.iter().filter(|found| !sent.iter().any(|sent| is_it(found, sent))).count(),
    }
}

fn messages(output: Output) -> Vec<Found> {
    blind::messages(output)
}

fn number(name: &str, usual: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

#[test]
fn a_weaker_cell_is_read_beside_a_stronger_one() {
    let mut rng = Streams::new(number("AIRPACE_SEED", 1)).stream("phy.weaker.pairs");
    let all = [6, 15, 25, 50, 75, 100];
    let mut sums = [Tally::default(); 6];
    for run in 0..number("AIRPACE_RUNS", 3) as usize {
        let of_width = run % all.len();
        let pair = Pair::draw(all[of_width], &mut rng);
        let tally = tally(&pair, number("AIRPACE_FULL", 0) == 1);
        println!("{pair:?}: {tally:?} {:.3}", tally.read as f64 / tally.sent as f64);
        sums[of_width].sent += tally.sent;
        sums[of_width].read += tally.read;
        sums[of_width].wrong += tally.wrong;
    }
    for (prbs, tally) in all.iter().zip(sums).filter(|(_, tally)| tally.sent > 0) {
        let recall = tally.read as f64 / tally.sent as f64;
        println!("{prbs} PRB: {recall:.3} of {}, {} wrong", tally.sent, tally.wrong);
        assert!(recall >= 0.8, "{prbs} PRB: {recall:.3} of {}", tally.sent);
    }
}
