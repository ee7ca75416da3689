//! Reconstruction of the resource grid that a cell transmitted in a subframe: known signals, and decoded control channels.

use crate::cell::Cell;
use crate::dci::Carrier;
use crate::diversity::precode;
use crate::encode::{Encoder, Subframe};
use crate::evidence::{Caution, Evidence};
use crate::grid::{BITS_PER_CCE, ControlRegion, Grid};
use crate::observation::Observation;
use crate::pdcch::{self, TransmittedMessage};
use crate::phich::{self, Answer};
use crate::search::{Candidate, Search};

/// Decodes the subframes of one cell and encodes them again.
pub(super) struct Resender {
    encoder: Encoder,
    /// Control regions for CFI 1, 2 and 3.
    regions: Vec<ControlRegion>,
    search: Search,
    evidence: Evidence,
    /// Index of the subframe.
    index: u64,
}

/// Minimum score (log2 of the odds) for which a message counts as transmitted although its user is not accepted yet.
///
/// Chosen: even odds. Evaluation (test `weaker`, seed 5151, PHICH in both cells): 15,958 messages on all numbers of CCEs,
/// in weaker cells next to nine stronger cells of 6 to 100 PRBs. Share decoded and number of false outputs: 0.9952 and two
/// with even odds, 0.9955 and one with odds of 1 : 256, 0.9944 and three with 256 : 1. The result depends little on this
/// threshold.
const LIKELY_BITS: f32 = 0.0;

/// Minimum power of a CCE without a decoded message, relative to the power predicted from reference signals, for which the
/// CCE counts as transmitted.
///
/// Chosen: 4 dB below. A cell that is 8 dB weaker rarely reaches this power.
const LOUD_SHARE: f32 = 0.4;

/// Maximum amplitude of a message relative to reference signals.
///
/// Chosen: 12 dB, beyond any power control. The limit only bounds the effect of noise where the channel is unknown. In the
/// evaluation of [`LIKELY_BITS`], the share decoded is 0.9952; it is 0.9955 with half of the limit and 0.9952 with twice
/// the limit.
const MAX_AMPLITUDE: f32 = 4.0;

/// Minimum amplitude of a PHICH answer, relative to reference signals, for which the answer counts as transmitted.
///
/// Chosen: 10 dB below. In the evaluation of [`LIKELY_BITS`], the share decoded is 0.9952; it is 0.9951 with half of the
/// threshold and 0.9952 with twice the threshold.
const MIN_ANSWER: f32 = 0.3;

/// Minimum ratio of a PHICH answer's squared amplitude to the noise variance for which the answer counts as
/// transmitted, in addition to [`MIN_ANSWER`].
///
/// Chosen: three standard deviations, which noise reaches once in 370. In the evaluation of [`LIKELY_BITS`], the share
/// decoded is 0.9952 with half, with once and with twice the threshold: at 25 dB, all answers are far above it.
const SURE_ANSWER: f32 = 9.0;

impl Resender {
    /// Creates a resender for a cell.
    pub(super) fn new(cell: Cell) -> Resender {
        let carrier = Carrier::symmetric(cell.bandwidth.prbs(), cell.ports);
        Resender {
            encoder: Encoder::new(cell),
            regions: (1..=3).filter_map(|cfi| ControlRegion::new(&cell, cfi)).collect(),
            search: Search::new(&carrier),
            evidence: Evidence::new(cell.pci, carrier, Caution::default()),
            index: 0,
        }
    }

    /// Advances to the next subframe, whether or not it was received.
    pub(super) fn advance(&mut self) {
        self.index += 1;
    }

    /// Returns the transmitted grid of each port, relative to the port's reference signals. The grid contains no control
    /// channel except the PCFICH unless the subframe was received clearly (`is_clear`). Returns `None` if no cell can
    /// transmit such a subframe.
    pub(super) fn grids(&mut self, heard: &Observation, is_clear: bool) -> Option<Vec<Grid>> {
        let subframe = Subframe {
            sfn: heard.sfn,
            number: heard.number,
            cfi: heard.cfi,
            messages: &[],
            answers: &[],
            data: &[],
        };
        let mut grids = self.encoder.grids(&subframe).ok()?.to_vec();
        let at = self.regions.iter().position(|region| region.cfi == heard.cfi)?;
        if is_clear {
            self.messages(heard, at, &mut grids);
            self.answers(heard, at, &mut grids);
        }
        Some(grids)
    }

    /// Adds the PDCCH: decoded messages, and the most likely symbols of CCEs with power but without a decoded message.
    fn messages(&mut self, heard: &Observation, at: usize, grids: &mut [Grid]) {
        let sent = self.read(heard);
        let region = &self.regions[at];
        // Amplitude-scaled levels: +1 for a 0 bit, −1 for a 1 bit, 0 for an element that is not transmitted.
        let mut levels = vec![0.0f32; 8 * region.pdcch.len()];
        let mut is_read = vec![false; heard.cces()];
        for message in &sent {
            let signs: Vec<f32> = message.coded().into_iter().map(|bit| 1.0 - 2.0 * f32::from(bit)).collect();
            let bits = message.place.bits();
            let amplitude = amplitude(heard, bits.start, &signs);
            for (level, sign) in levels[bits].iter_mut().zip(&signs) {
                *level = sign * amplitude;
            }
            is_read[message.place.range()].fill(true);
        }
        for cce in (0..heard.cces()).filter(|cce| !is_read[*cce]) {
            let ratio = heard.expected[cce] / 2.0;
            if heard.powers[cce] - 1.0 < LOUD_SHARE * ratio || ratio <= 0.0 {
                continue;
            }
            // Expected value of a bit in {+1, −1} given its log-likelihood ratio.
            let means: Vec<f32> = heard.cce(cce).iter().map(|llr| libm::tanhf(0.5 * llr)).collect();
            let first = cce * BITS_PER_CCE;
            let amplitude = amplitude(heard, first, &means);
            for (level, mean) in levels[first..].iter_mut().zip(&means) {
                *level = mean * amplitude;
            }
        }
        let cell = self.encoder.cell();
        let quads = pdcch::modulate(cell, heard.number, &mut levels);
        for (reg, quad) in region.pdcch.iter().zip(&quads) {
            for (grid, quad) in grids.iter_mut().zip(&precode(cell.ports, quad)) {
                grid.add_quad(reg, quad);
            }
        }
    }

    /// Returns the messages of a subframe whose score is at least [`LIKELY_BITS`]. No two of them overlap.
    fn read(&mut self, heard: &Observation) -> Vec<TransmittedMessage> {
        let Resender { search, evidence, index, .. } = self;
        evidence.advance(*index);
        let candidates = search.candidates(heard, |rnti| evidence.history().prior(rnti, 0.0)).to_vec();
        let history = evidence.history();
        let score = |one: &Candidate| one.surplus() + history.prior(one.message.rnti, 0.0).max(UNKNOWN_BITS);
        let mut likely: Vec<(f32, TransmittedMessage)> = candidates
            .iter()
            .map(|one| (score(one), one.message))
            .filter(|(score, message)| *score >= LIKELY_BITS && message.place.range().end <= heard.cces())
            .collect();
        likely.sort_by(|a, b| b.0.total_cmp(&a.0));
        let mut sent: Vec<TransmittedMessage> = Vec::new();
        for (_, message) in likely {
            if sent.iter().all(|other| !other.place.overlaps(message.place)) {
                sent.push(message);
            }
        }
        let mut believed = Vec::new();
        evidence.judge(*index, heard, &candidates, &mut believed);
        for found in &believed {
            search.believe(found.rnti, found.payload.len(), found.place.cces);
        }
        sent
    }

    /// Adds the PHICH.
    fn answers(&self, heard: &Observation, at: usize, grids: &mut [Grid]) {
        let (cell, region) = (self.encoder.cell(), &self.regions[at]);
        let sequences = phich::sequences(cell.cp);
        for (place, answer) in heard.answers.iter().enumerate() {
            let sureness = 0.5 * answer.amplitude * answer.llr;
            if !(answer.amplitude.abs() > MIN_ANSWER && sureness > SURE_ANSWER) {
                continue;
            }
            let group = place / sequences;
            let sent = Answer { group, sequence: place % sequences, ack: answer.amplitude > 0.0 };
            let amplitude = answer.amplitude.abs().min(MAX_AMPLITUDE);
            let unit = &region.phich[phich::unit(cell.cp, group)];
            for (reg, quads) in unit.iter().zip(&phich::encode(cell, heard.number, &sent)) {
                for (grid, quad) in grids.iter_mut().zip(quads) {
                    grid.add_quad(reg, &quad.map(|value| value * amplitude));
                }
            }
        }
    }
}

/// Minimum prior of a user (log2).
const UNKNOWN_BITS: f32 = -16.0;

/// Least-squares amplitude of the bits from number `first` on, clamped to 0..=[`MAX_AMPLITUDE`]. `signs` contains the
/// signs or expected values of these bits.
fn amplitude(heard: &Observation, first: usize, signs: &[f32]) -> f32 {
    let (mut sum, mut most) = (0.0, 0.0);
    for (at, sign) in signs.iter().enumerate() {
        sum += sign * heard.llrs[first + at];
        most += sign * sign * heard.expected[(first + at) / BITS_PER_CCE];
    }
    let amplitude = sum / most.max(f32::MIN_POSITIVE);
    if amplitude.is_finite() { amplitude.clamp(0.0, MAX_AMPLITUDE) } else { 0.0 }
}
