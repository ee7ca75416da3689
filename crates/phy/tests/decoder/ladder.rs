//! If decoding fails, the last stage reached and the hint are correct.

use crate::air;

use air::{Air, cell, listen};
use airpace_core::Streams;
use airpace_phy::impair::{Conditions, Impair};
use airpace_phy::ladder::Rung;
use airpace_phy::listen::Options;
use airpace_phy::resample::Resampler;
use airpace_phy::{Complex32, Ports};

const RATE_HZ: u64 = 7_680_000;

/// Forty milliseconds of a cell with 25 PRB pairs.
fn cell_of(pci: u16, gain: f32) -> Vec<Complex32> {
    let mut samples = Vec::new();
    let mut air = Air::new(cell(pci, 25, Ports::Two), 512, Conditions::perfect(RATE_HZ as f64), 4);
    air.send(40, &mut samples);
    samples.iter_mut().for_each(|sample| *sample *= gain);
    samples
}

fn noise() -> Vec<Complex32> {
    let mut samples = Vec::new();
    let conditions = Conditions { noise_power: 0.01, ..Conditions::perfect(RATE_HZ as f64) };
    Impair::new(conditions, 1, &Streams::new(2)).push(&[vec![Complex32::default(); 300_000]], &mut samples);
    samples
}

/// Samples in another format: `write` encodes each part as bytes, and `read` decodes pairs of bytes as samples.
fn mistaken<const N: usize>(
    samples: &[Complex32],
    write: impl Fn(f32) -> [u8; N],
    read: impl Fn(u8) -> f32,
) -> Vec<Complex32> {
    let parts = samples.iter().flat_map(|sample| [sample.re, sample.im]);
    let bytes: Vec<u8> = parts.flat_map(write).collect();
    bytes.chunks_exact(2).map(|pair| Complex32::new(read(pair[0]), read(pair[1]))).collect()
}

fn signed(byte: u8) -> f32 {
    f32::from(byte as i8) / 127.0
}

/// The first stage that was not reached, and its hint, in one line.
fn told(name: &str, options: Options, samples: &[Complex32]) -> String {
    let outcome = listen(options, samples);
    let (rung, hint) = outcome.listener.ladder().broken().unwrap_or((Rung::Rntis, "nothing".to_owned()));
    format!("{name}: {}: {hint}\n", rung.name())
}

#[test]
fn what_leads_nowhere_is_told_with_what_may_help() {
    let options = Options::new(RATE_HZ);
    let own = cell_of(42, 1.0);
    let loud = (0.2 / (own.iter().map(Complex32::norm_sqr).sum::<f32>() / own.len() as f32).sqrt()).max(1.0);
    let loud = cell_of(42, loud);
    let both: Vec<_> =
        cell_of(7, 1.0).iter().zip(&cell_of(200, 0.8)).map(|(one, other)| one + other).collect();
    let clipped: Vec<_> = noise()
        .iter()
        .map(|sample| sample * 12.0)
        .map(|sample| Complex32::new(sample.re.clamp(-1.0, 1.0), sample.im.clamp(-1.0, 1.0)))
        .collect();
    let mut narrow = Vec::new();
    Resampler::new(RATE_HZ, 1_920_000, 600_000).expect("a lower rate").push(&own, &mut narrow);
    let unsigned_as_signed = mistaken(&loud, |part| [(part * 127.5 + 127.5).round() as u8], signed);
    let words_as_bytes = mistaken(&loud, |part| ((part * 32_767.0).round() as i16).to_le_bytes(), signed);
    let asks_for = |pci| {
        let mut options = options;
        options.pci = Some(pci);
        options
    };
    let text = [
        told("an empty file", options, &[]),
        told("a blink", options, &own[10_000..20_000]),
        told("silence", options, &vec![Complex32::default(); 300_000]),
        told("noise", options, &noise()),
        told("clipped noise", options, &clipped),
        told("cu8 read as ci8", options, &unsigned_as_signed),
        told("ci16_le read as ci8", options, &words_as_bytes),
        told("twice the rate", Options::new(2 * RATE_HZ), &own),
        told("a third of the rate", Options::new(RATE_HZ / 3), &own),
        told("too low a rate", Options::new(1_920_000), &narrow),
        told("another cell than asked for", asks_for(300), &own),
        told("two others than asked for", asks_for(300), &both),
    ];
    insta::assert_snapshot!(text.concat());
}
