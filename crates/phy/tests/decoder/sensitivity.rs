//! Sensitivity to noise: estimating the channel costs about half a decibel compared with a known channel.

use crate::air;
use crate::recordings;

use std::collections::BTreeMap;

use air::{AMPLITUDE, cell, is_found, listen, messages};
use airpace_core::Streams;
use airpace_phy::channel::{Channel, Estimator};
use airpace_phy::dci::Payload;
use airpace_phy::encode::{Subframe, Transmitter};
use airpace_phy::grid::Grid;
use airpace_phy::impair::{Conditions, DelayProfile, Impair, noise_power};
use airpace_phy::listen::Options;
use airpace_phy::ofdm::Demodulator;
use airpace_phy::pdcch::{CceRange, LEVELS, TransmittedMessage};
use airpace_phy::{Cell, Complex32, Numerology, Observation, Observer, Ports};
use airpace_radio::Rnti;

const CFI: u8 = 3;

/// For each aggregation level: messages decoded with the estimated channel, with the known channel, and all messages.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    learnt: u32,
    known: u32,
    sent: u32,
}

/// A cell with full control regions, received through a channel.
struct Link {
    cell: Cell,
    profile: DelayProfile,
    doppler_hz: f64,
}

impl Link {
    fn tally(&self, snr_db: f64, subframes: usize) -> [Tally; 4] {
        let numerology = Numerology::nominal(self.cell.bandwidth, self.cell.cp);
        let size = numerology.fft_size();
        let clean = Conditions {
            profile: self.profile,
            doppler_hz: self.doppler_hz,
            ..Conditions::perfect(f64::from(numerology.sample_rate_hz()))
        };
        let noise = noise_power(snr_db, size, AMPLITUDE);
        let ports = self.cell.ports.count();
        let streams = Streams::new(11);
        let mut rng = streams.stream("phy.sensitivity");
        let mut paths = [clean, Conditions { noise_power: noise, ..clean }]
            .map(|conditions| Impair::new(conditions, ports, &streams));
        let mut estimators = [Estimator::new(&self.cell), Estimator::new(&self.cell)];
        let mut transmitter = Transmitter::new(self.cell, size, AMPLITUDE).expect("an FFT size");
        let mut demodulator = Demodulator::new(numerology);
        let observer = Observer::new(self.cell);
        let mut samples = [Vec::new(), Vec::new()];
        let mut tallies = [Tally::default(); 4];
        let mut all_sent = Vec::new();
        for index in 0..subframes {
            let number = index % 10;
            let sent = messages(&mut rng, transmitter.encoder().cces(CFI));
            let subframe = Subframe { sfn: 0, number, cfi: CFI, messages: &sent, answers: &[], data: &[] };
            let mut of_ports = vec![Vec::new(); ports];
            transmitter.send(&subframe, &mut of_ports).expect("a subframe that can be sent");
            for (path, samples) in paths.iter_mut().zip(&mut samples) {
                path.push(&of_ports, samples);
            }
            all_sent.push(sent);
        }
        let symbols: Vec<usize> = if ports == 4 { vec![11, 8, 7, 4, 1, 0] } else { vec![11, 7, 4, 0] };
        for (index, sent) in all_sent.iter().enumerate() {
            let number = index % 10;
            let start = index * numerology.subframe_samples();
            let mut grids = [Grid::new(&self.cell), Grid::new(&self.cell)];
            for (samples, grid) in samples.iter().zip(&mut grids) {
                if samples.len() < start + numerology.subframe_samples() {
                    return tallies;
                }
                demodulator.demodulate(&samples[start..], usize::MAX, grid).expect("a whole subframe");
            }
            let channels: [Channel; 2] = [0, 1].map(|which: usize| {
                let estimator = &mut estimators[which];
                estimator.begin();
                for &symbol in &symbols {
                    estimator.add(number, symbol, &grids[which]);
                }
                estimator.finish(number).clone()
            });
            // Exclude the subframes in which the estimator settles.
            if index < 20 {
                continue;
            }
            let [truth, learnt] = channels;
            // A tone of 1 is a resource element of 1: noise is spread over the FFT.
            let truth = Channel::known(truth.gains().to_vec(), (noise / size as f64) as f32);
            for (channel, is_learnt) in [(&learnt, true), (&truth, false)] {
                let mut observation = Observation { number, cfi: CFI, ..Observation::default() };
                observer.bits([(&grids[1], channel)], &mut observation);
                for message in sent {
                    let tally = &mut tallies[message.place.cces.trailing_zeros() as usize];
                    let found = u32::from(is_found(&observation, message));
                    if is_learnt {
                        tally.learnt += found;
                    } else {
                        tally.known += found;
                        tally.sent += 1;
                    }
                }
            }
        }
        tallies
    }
}

fn link(ports: Ports, profile: DelayProfile, doppler_hz: f64) -> Link {
    Link { cell: cell(214, 25, ports), profile, doppler_hz }
}

/// Share of messages decoded with the estimated channel, and with the known channel at an SNR that is lower by `less_db`.
fn compare(link: &Link, snr_db: f64, less_db: f64) -> (f64, f64) {
    let share = |count: fn(&Tally) -> u32, tallies: [Tally; 4]| {
        let sent: u32 = tallies.iter().map(|tally| tally.sent).sum();
        f64::from(tallies.iter().map(count).sum::<u32>()) / f64::from(sent)
    };
    let learnt = share(|tally| tally.learnt, link.tally(snr_db, SUBFRAMES));
    let known = share(|tally| tally.known, link.tally(snr_db - less_db, SUBFRAMES));
    (learnt, known)
}

const SUBFRAMES: usize = 120;

/// Three standard deviations of a share of about 800 messages.
const LUCK: f64 = 0.02;

#[test]
fn a_channel_that_does_not_fade_costs_less_than_half_a_decibel() {
    for snr_db in [-3.0, 0.0] {
        let (learnt, known) = compare(&link(Ports::One, DelayProfile::Flat, 0.0), snr_db, 0.5);
        assert!(
            learnt >= known - LUCK,
            "{learnt:.3} of the messages at {snr_db} dB, {known:.3} at half a decibel less"
        );
    }
}

#[test]
fn fading_channels_cost_hardly_more() {
    for (link, snr_db, less_db) in [
        (link(Ports::Two, DelayProfile::Epa, 5.0), 4.0, 0.5),
        (link(Ports::Two, DelayProfile::Eva, 70.0), 6.0, 0.5),
        // Four channels, each with echoes beyond the cyclic prefix. Two symbols per millisecond are available for their
        // estimation.
        (link(Ports::Four, DelayProfile::Etu, 70.0), 6.0, 1.5),
    ] {
        let (learnt, known) = compare(&link, snr_db, less_db);
        let profile = link.profile;
        assert!(
            learnt >= known - LUCK,
            "{profile:?}: {learnt:.3} at {snr_db} dB, {known:.3} at {less_db} dB less"
        );
    }
}

/// Recall of other receivers with perfect synchronisation, for 25 PRBs and one port without fading. Each row contains
/// an SNR (dB) and the recall of messages of 1, 2, 4 and 8 CCEs.
const OTHERS: [(f64, [f64; 4]); 7] = [
    (-6.0, [0.0; 4]),
    (-4.0, [0.0, 0.02, 0.31, 0.90]),
    (-2.0, [0.0, 0.23, 0.87, 0.97]),
    (0.0, [0.06, 0.78, 1.0, 1.0]),
    (2.0, [0.47, 0.98, 1.0, 1.0]),
    (4.0, [0.88, 1.0, 1.0, 1.0]),
    (6.0, [0.96, 1.0, 1.0, 1.0]),
];

/// [`OTHERS`], interpolated over SNR.
fn others(snr_db: f64) -> [f64; 4] {
    let snr_db = snr_db.clamp(OTHERS[0].0, OTHERS[OTHERS.len() - 1].0);
    let pair = OTHERS.windows(2).find(|pair| snr_db <= pair[1].0).expect("within the table");
    let share = (snr_db - pair[0].0) / (pair[1].0 - pair[0].0);
    std::array::from_fn(|level| pair[0].1[level] + share * (pair[1].1[level] - pair[0].1[level]))
}

#[test]
fn messages_bear_as_much_noise_as_with_other_receivers() {
    let link = link(Ports::One, DelayProfile::Flat, 0.0);
    for snr_db in [-4.0, 0.0] {
        for (tally, expected) in link.tally(snr_db, SUBFRAMES).iter().zip(others(snr_db)) {
            let share = f64::from(tally.learnt) / f64::from(tally.sent);
            assert!(share >= expected - 0.01, "{share:.3} at {snr_db} dB instead of {expected}");
        }
    }
}

/// A noiseless recording of another transmitter. The test adds noise, and the decoder gets only the samples.
#[test]
fn recorded_messages_bear_as_much_noise_as_with_other_receivers() {
    let Some(folder) = recordings::data("radio") else { return };
    let name = "pub_g25_2p_clean";
    let about = recordings::Description::load(&folder, name);
    let amplitude = about.amplitude.expect("an amplitude") as f32;
    let clean = about.raw_samples(&folder, name);
    let rows = recordings::truth(&folder, name);
    // Reduction of the recording's signal by its fading, relative to the mean power.
    let mut faded_db = 0.0;
    for snr_db in [20.0, 8.0, 4.0, 0.0] {
        let mut rng = Streams::new(5).stream("phy.noise");
        let deviation = (noise_power(snr_db, about.fft_size, amplitude) / 2.0).sqrt();
        let mut noise =
            || Complex32::new((deviation * rng.normal()) as f32, (deviation * rng.normal()) as f32);
        let samples: Vec<Complex32> = clean.iter().map(|sample| sample + noise()).collect();
        let outcome = listen(Options::new(about.rate_hz()), &samples);
        let heard: BTreeMap<_, _> =
            outcome.observations.iter().map(|heard| ((heard.sfn, heard.number), heard)).collect();
        assert_eq!(heard.len(), 120, "every subframe is heard at {snr_db} dB");
        if snr_db == 20.0 {
            let sum: f32 = outcome.observations.iter().map(|heard| heard.snr_db).sum();
            faded_db = 20.0 - f64::from(sum) / heard.len() as f64;
        }
        let mut tallies = [(0u32, 0u32); 4];
        for row in &rows {
            let bits = u64::from_str_radix(row.text("bits"), 2).expect("bits");
            let message = TransmittedMessage {
                rnti: Rnti(row.number("rnti")),
                payload: Payload::new(bits, row.number("nof_bits")).expect("as many bits"),
                place: CceRange { cce: row.number("ncce"), cces: row.number("L") },
            };
            let tally = &mut tallies[message.place.cces.trailing_zeros() as usize];
            tally.0 += u32::from(is_found(heard[&(row.number("sfn"), row.number("subframe"))], &message));
            tally.1 += 1;
        }
        let shares = tallies.map(|(found, sent)| f64::from(found) / f64::from(sent));
        let expected = others(snr_db - faded_db - 0.5);
        println!("{snr_db} dB, {faded_db:.1} dB faded: {shares:.3?}, others {expected:.3?}");
        for (level, (share, expected)) in shares.into_iter().zip(expected).enumerate() {
            let level = LEVELS[level];
            assert!(
                share >= expected - 0.05,
                "{share:.3} on {level} CCEs at {snr_db} dB, others {expected:.3}"
            );
        }
    }
}
