//! Decoding without prior knowledge.
#![allow(dead_code)] // each test uses its part

use airpace_phy::Complex32;
use airpace_phy::decoder::{Decoder, Options, Output};
use airpace_phy::found::Found;

/// All outputs for samples in blocks of a millisecond, and the decoder at their end.
pub fn decode(rate_hz: u64, samples: &[Complex32]) -> (Vec<Output>, Decoder) {
    let mut decoder = Decoder::new(Options::new(rate_hz)).expect("a rate for a cell");
    let mut outputs = Vec::new();
    for piece in samples.chunks(rate_hz as usize / 1000) {
        decoder.push(piece);
        outputs.extend(std::iter::from_fn(|| decoder.pop()));
    }
    decoder.finish();
    outputs.extend(std::iter::from_fn(|| decoder.pop()));
    (outputs, decoder)
}

/// Messages of one output: messages of its subframe and of earlier subframes.
pub fn messages(output: Output) -> Vec<Found> {
    match output {
        Output::Subframe(reading) => [reading.found, reading.late].concat(),
        Output::Late(late) => late,
        Output::Locked(_) | Output::Lost | Output::Moved(_) => Vec::new(),
    }
}

/// All accepted messages.
pub fn believed(rate_hz: u64, samples: &[Complex32]) -> Vec<Found> {
    decode(rate_hz, samples).0.into_iter().flat_map(messages).collect()
}
