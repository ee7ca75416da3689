//! Reproducibility: the same samples give the same messages, for all block sizes, transforms and sample rates.

use crate::crowd;
use crate::recordings;

use std::collections::BTreeSet;

use airpace_core::Streams;
use airpace_phy::dci::Extras;
use airpace_phy::decoder::{Decoder, Options, Output};
use airpace_phy::ladder::least_rate_hz;
use airpace_phy::ofdm::Transform;
use airpace_phy::resample::Resampler;
use airpace_phy::{Bandwidth, Cell, Complex32, CyclicPrefix, PhichDuration, PhichResource, Ports};
use crowd::Scene;
use recordings::{Description, NAMES, data};

/// Input to the decoder: samples, or a report of lost samples.
enum Input<'a> {
    Samples(&'a [Complex32]),
    Lost(u64),
}

/// All outputs for samples in blocks of `piece`.
fn decode(options: Options, inputs: &[Input<'_>], piece: usize) -> Vec<Output> {
    let mut decoder = Decoder::new(options).expect("a rate for a cell");
    let mut out = Vec::new();
    for input in inputs {
        match input {
            Input::Samples(samples) => {
                for samples in samples.chunks(piece) {
                    decoder.push(samples);
                    out.extend(std::iter::from_fn(|| decoder.pop()));
                }
            }
            Input::Lost(count) => decoder.skip(*count),
        }
    }
    decoder.finish();
    out.extend(std::iter::from_fn(|| decoder.pop()));
    out
}

/// Subframe number, RNTI, first CCE, number of CCEs, and bits.
type Message = (u64, u16, u16, u8, String);

fn messages(out: &[Output]) -> BTreeSet<Message> {
    let found = out.iter().flat_map(|output| match output {
        Output::Subframe(reading) => reading.found.iter().chain(&reading.late).collect(),
        Output::Late(late) => late.iter().collect(),
        Output::Locked(_) | Output::Lost | Output::Moved(_) => Vec::new(),
    });
    found
        .map(|found| {
            let place = found.place;
            (found.index, found.rnti.0, place.cce, place.cces, found.payload.to_string())
        })
        .collect()
}

/// A busy cell with 25 PRBs at 5.76 Msps.
fn samples() -> (u64, Vec<Complex32>) {
    let cell = Cell {
        pci: 301,
        bandwidth: Bandwidth::from_prbs(25).expect("a bandwidth of LTE"),
        ports: Ports::Two,
        cp: CyclicPrefix::Normal,
        phich_duration: PhichDuration::Normal,
        phich_resource: PhichResource::One,
    };
    let (extras, snr_db) = (Extras::NONE, 15.0);
    let scene = Scene {
        cell,
        fft_size: 384,
        users: 20,
        tries: 20,
        extras,
        snr_db,
        fading: None,
        subframes: 70,
        seed: 9,
    };
    (5_760_000, scene.play().0)
}

#[test]
fn pieces_of_any_size_give_the_same_to_the_last_bit() {
    let (own_hz, own) = samples();
    for rate_hz in [own_hz, 6_500_000] {
        let mut samples = own.clone();
        if rate_hz != own_hz {
            samples.clear();
            Resampler::new(own_hz, rate_hz, 2_265_000).expect("rates that fit").push(&own, &mut samples);
        }
        let ms = rate_hz as usize / 1000;
        // Some samples are lost during the search, and some are lost later. Then the samples start again, as in a
        // looped recording.
        let inputs = [
            Input::Samples(&samples[..2 * ms]),
            Input::Lost(3 * ms as u64 + 77),
            Input::Samples(&samples[5 * ms + 77..40 * ms]),
            Input::Lost(10 * ms as u64),
            Input::Samples(&samples[50 * ms..63 * ms + 1000]),
            Input::Samples(&samples),
        ];
        let options = Options::new(rate_hz);
        let whole = decode(options, &inputs, usize::MAX);
        assert!(messages(&whole).len() > 300, "only {} messages were found", messages(&whole).len());
        assert_eq!(
            whole.iter().filter(|output| matches!(output, Output::Lost)).count(),
            1,
            "one new beginning"
        );
        for piece in [ms / 4, ms, 777, 40 * ms] {
            let pieces = decode(options, &inputs, piece);
            let differs = whole.iter().zip(&pieces).find(|(a, b)| a != b);
            assert!(differs.is_none(), "{rate_hz} Hz, pieces of {piece}: {differs:?}");
            assert_eq!(whole.len(), pieces.len(), "{rate_hz} Hz, pieces of {piece}");
        }
    }
}

#[test]
fn every_transform_leads_to_the_same_messages() {
    let Some(folder) = data("radio") else { return };
    for name in NAMES {
        let about = Description::load(&folder, name);
        let clean = about.raw_samples(&folder, name);
        let power = clean.iter().map(|sample| f64::from(sample.norm_sqr())).sum::<f64>() / clean.len() as f64;
        for below_db in [60.0, 0.0] {
            let mut rng = Streams::new(5).stream("phy.noise");
            let deviation = (power / 2.0 * libm::pow(10.0, -below_db / 10.0)).sqrt();
            let noise =
                |_| Complex32::new((deviation * rng.normal()) as f32, (deviation * rng.normal()) as f32);
            let noise: Vec<Complex32> = (0..clean.len()).map(noise).collect();
            let samples: Vec<Complex32> = clean.iter().zip(&noise).map(|(a, b)| a + b).collect();
            let of = |transform| {
                let mut options = Options::new(about.rate_hz());
                options.listen.transform = transform;
                messages(&decode(options, &[Input::Samples(&samples)], about.rate_hz() as usize / 1000))
            };
            let (fastest, plain) = (of(Transform::Fastest), of(Transform::Reproducible));
            println!("{name}, noise {below_db} dB below: {} messages", plain.len());
            assert!(!plain.is_empty(), "{name}: nothing is found");
            let differ: Vec<_> = fastest.symmetric_difference(&plain).collect();
            assert!(differ.is_empty(), "{name}, noise {below_db} dB below: {differ:?}");
        }
    }
}

/// Sample rates without a matching FFT size: the decoder resamples if necessary.
#[test]
fn recordings_at_odd_rates_hold_the_same_messages() {
    let Some(folder) = data("radio") else { return };
    for name in NAMES {
        let about = Description::load(&folder, name);
        let samples = about.raw_samples(&folder, name);
        let own_hz = about.rate_hz();
        let own = messages(&decode(Options::new(own_hz), &[Input::Samples(&samples)], 10_000));
        let half_band_hz = u64::from(about.cell.bandwidth.prbs()) * 90_000 + 15_000;
        // Sample rates just above the minimum, with and without a common divisor, and a much higher rate.
        let narrow = (least_rate_hz(about.cell.bandwidth) + 1).next_multiple_of(500_000);
        for rate_hz in [narrow, own_hz * 5 / 4 + 4_321, own_hz * 2 + 1_000_000] {
            let mut turned = Vec::new();
            Resampler::new(own_hz, rate_hz, half_band_hz)
                .expect("rates that fit")
                .push(&samples, &mut turned);
            let found = messages(&decode(Options::new(rate_hz), &[Input::Samples(&turned)], 10_000));
            // At the start and the end of the recording, filters lack samples.
            let ends = [own.first(), own.last()].map(|message| message.expect("messages").0);
            let differ: Vec<_> =
                own.symmetric_difference(&found).filter(|message| !ends.contains(&message.0)).collect();
            println!("{name} at {rate_hz} Hz: {} of {} messages", found.len(), own.len());
            assert!(
                differ.is_empty(),
                "{name} at {rate_hz} Hz: {} differ: {:?}",
                differ.len(),
                &differ[..differ.len().min(3)]
            );
        }
    }
}
