//! Transmitting cells for tests, with a record of their messages.
#![allow(dead_code)] // each test uses its part

use std::collections::BTreeMap;

use airpace_core::{Rng, Streams};
use airpace_phy::coding::{RateMatcher, Viterbi, crc};
use airpace_phy::dci::Payload;
use airpace_phy::encode::{Subframe, Transmitter};
use airpace_phy::impair::{Conditions, Impair};
use airpace_phy::listen::{Listener, ListenerEvent, Lock, Options};
use airpace_phy::modulation::soft_bits;
use airpace_phy::pdcch::{CceRange, LEVELS, TransmittedMessage};
use airpace_phy::{
    Bandwidth, Cell, Complex32, CyclicPrefix, Observation, PhichDuration, PhichResource, Ports,
};
use airpace_radio::Rnti;

/// Amplitude of a resource element of unit power.
pub const AMPLITUDE: f32 = 0.01;

pub fn cell(pci: u16, prbs: u16, ports: Ports) -> Cell {
    Cell {
        pci,
        bandwidth: Bandwidth::from_prbs(prbs).expect("a bandwidth of LTE"),
        ports,
        cp: CyclicPrefix::Normal,
        phich_duration: PhichDuration::Normal,
        phich_resource: PhichResource::Sixth,
    }
}

/// Transmitted content of a subframe: CFI and messages.
pub type Subframes = BTreeMap<(u16, usize), (u8, Vec<TransmittedMessage>)>;

/// A cell that transmits one subframe after the other, each with messages at random CCEs.
pub struct Air {
    transmitter: Transmitter,
    path: Impair,
    rng: Rng,
    pub sfn: u16,
    pub number: usize,
    pub sent: Subframes,
}

impl Air {
    /// Creates a cell with an FFT of `fft_size` points; the samples pass through `conditions`.
    pub fn new(cell: Cell, fft_size: usize, conditions: Conditions, seed: u64) -> Air {
        let streams = Streams::new(seed);
        Air {
            transmitter: Transmitter::new(cell, fft_size, AMPLITUDE).expect("an FFT size"),
            path: Impair::new(conditions, cell.ports.count(), &streams),
            rng: streams.stream("phy.air"),
            sfn: 100,
            number: 0,
            sent: Subframes::new(),
        }
    }

    pub fn cell(&self) -> &Cell {
        self.transmitter.encoder().cell()
    }

    /// Transmits some subframes, and appends the received samples.
    pub fn send(&mut self, subframes: usize, out: &mut Vec<Complex32>) {
        let cell = *self.cell();
        for _ in 0..subframes {
            let least = cell.least_cfi();
            let cfi = least + self.rng.below(u64::from(4 - least)) as u8;
            let sent = messages(&mut self.rng, self.transmitter.encoder().cces(cfi));
            let mut ports = vec![Vec::new(); cell.ports.count()];
            let subframe = Subframe {
                sfn: self.sfn,
                number: self.number,
                cfi,
                messages: &sent,
                answers: &[],
                data: &[],
            };
            self.transmitter.send(&subframe, &mut ports).expect("a subframe that can be sent");
            self.path.push(&ports, out);
            self.sent.insert((self.sfn, self.number), (cfi, sent));
            self.number += 1;
            if self.number == 10 {
                (self.number, self.sfn) = (0, (self.sfn + 1) % 1024);
            }
        }
    }
}

/// Messages of all aggregation levels at random CCEs; the longest messages do not use a single CCE.
pub fn messages(rng: &mut Rng, cces: usize) -> Vec<TransmittedMessage> {
    let mut sent: Vec<TransmittedMessage> = Vec::new();
    for _ in 0..12 {
        let level = LEVELS[rng.below(4) as usize];
        let len = if level > 1 && rng.chance(0.3) { 39 } else { 25 + 2 * rng.below(2) as u8 };
        let places: Vec<CceRange> = CceRange::all(cces)
            .filter(|place| place.cces == level && !sent.iter().any(|other| other.place.overlaps(*place)))
            .collect();
        if places.is_empty() {
            continue;
        }
        let place = places[rng.below(places.len() as u64) as usize];
        let payload = Payload::new(rng.next_u64() & ((1 << len) - 1), len).expect("as many bits");
        sent.push(TransmittedMessage { rnti: Rnti(0x100 + rng.below(0xF000) as u16), payload, place });
    }
    sent
}

/// Whether a message is decoded from the soft bits of its CCEs.
pub fn is_found(observation: &Observation, message: &TransmittedMessage) -> bool {
    let Some(llrs) = observation.llrs.get(message.place.bits()) else { return false };
    let mut soft = Vec::new();
    soft_bits(llrs, &mut soft);
    let len = usize::from(message.payload.len());
    let mut steps = Vec::new();
    RateMatcher::new(len + 16).combine(&soft, &mut steps);
    let word = Viterbi::default().decode(&steps).word;
    crc::mask16(word, len) == message.rnti.0 && (word >> 16) as u64 == message.payload.bits()
}

/// Result of a listener run.
pub struct Outcome {
    pub listener: Listener,
    pub locks: Vec<Lock>,
    pub observations: Vec<Observation>,
    pub losses: usize,
}

/// Runs the listener on samples in blocks.
pub fn listen(options: Options, samples: &[Complex32]) -> Outcome {
    let listener = Listener::new(options).expect("a rate that is enough");
    let mut outcome = Outcome { listener, locks: Vec::new(), observations: Vec::new(), losses: 0 };
    for piece in samples.chunks(options.rate_hz as usize / 700) {
        outcome.listener.push(piece);
        outcome.drain();
    }
    outcome.listener.finish();
    outcome.drain();
    outcome
}

impl Outcome {
    pub fn drain(&mut self) {
        while let Some(heard) = self.listener.pop() {
            match heard {
                ListenerEvent::Locked(lock) => self.locks.push(lock),
                ListenerEvent::Subframe(observation) => self.observations.push(observation),
                ListenerEvent::Lost | ListenerEvent::Moved(_) => self.losses += 1,
            }
        }
    }

    /// Number of transmitted subframes received with the correct CFI, and share of their messages that were decoded.
    pub fn score(&self, sent: &Subframes) -> Score {
        let mut score = Score { sent: sent.len(), ..Score::default() };
        let (mut messages, mut found) = (0, 0);
        for observation in &self.observations {
            let Some((cfi, of_subframe)) = sent.get(&(observation.sfn, observation.number)) else {
                score.invented += 1;
                continue;
            };
            score.heard += 1;
            score.wrong_cfi += usize::from(observation.cfi != *cfi);
            messages += of_subframe.len();
            found += of_subframe.iter().filter(|message| is_found(observation, message)).count();
        }
        score.recall = found as f64 / f64::max(messages as f64, 1.0);
        score
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Score {
    /// Number of transmitted subframes.
    pub sent: usize,
    /// Number of transmitted subframes that were received.
    pub heard: usize,
    /// Number of observations of subframes that were not transmitted.
    pub invented: usize,
    pub wrong_cfi: usize,
    /// Share of decoded messages in received subframes.
    pub recall: f64,
}
