//! Reference search: decodes all messages of a known cell from its grid, at every place and in every size.
//!
//! The reference search takes no shortcut and uses no history. A faster search must find the same messages.
#![allow(dead_code)] // each test uses its part

use airpace_phy::coding::{RateMatcher, Viterbi, crc};
use airpace_phy::dci::{Audience, Carrier, Extras, Format, Payload, parse};
use airpace_phy::diversity::Quad;
use airpace_phy::grid::{BITS_PER_CCE, ControlRegion, Grid};
use airpace_phy::modulation::{Soft, soft_bits};
use airpace_phy::pdcch::{self, CceRange, TransmittedMessage};
use airpace_phy::sequence::crs;
use airpace_phy::{Cell, Channel, Complex32, pbch, pcfich};
use airpace_radio::Rnti;

/// A decoded message.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Found {
    /// The transmitted message, if the candidate is correct.
    pub message: TransmittedMessage,
    /// Agreement of the worst CCE with the re-encoded message: 1 without noise.
    pub agreement: f32,
}

/// Control channels of one subframe.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// Control format indicator.
    pub cfi: u8,
    /// Number of CCEs.
    pub cces: usize,
    /// Messages by their first CCE, without overlaps.
    pub found: Vec<Found>,
}

/// Decodes the control channels of one cell.
pub struct Receiver {
    cell: Cell,
    carrier: Carrier,
    regions: Vec<ControlRegion>,
    /// Each distinct payload size, with the order of its coded bits.
    sizes: Vec<(u8, RateMatcher)>,
    viterbi: Viterbi,
    least_agreement: f32,
}

impl Receiver {
    /// Creates a reference search for a cell with equal bandwidth in uplink and downlink. Candidates with an agreement
    /// below `least_agreement` (0…1) are dropped.
    pub fn new(cell: Cell, least_agreement: f32) -> Receiver {
        let carrier = Carrier::symmetric(cell.bandwidth.prbs(), cell.ports);
        let sizes: std::collections::BTreeSet<u8> =
            Format::ALL.into_iter().map(|format| carrier.size(format, Extras::NONE)).collect();
        Receiver {
            cell,
            carrier,
            regions: (1..=3).filter_map(|cfi| ControlRegion::new(&cell, cfi)).collect(),
            sizes: sizes.into_iter().map(|size| (size, RateMatcher::new(usize::from(size) + 16))).collect(),
            viterbi: Viterbi::default(),
            least_agreement,
        }
    }

    /// Content of the PBCH of the frame, from its subframe 0.
    pub fn broadcast(&mut self, grid: &Grid) -> Option<pbch::Broadcast> {
        let channel = estimate(&self.cell, 0, self.cell.cp.symbols_per_slot(), grid);
        let symbols = channel.symbols(&self.cell, grid, &pbch::elements(&self.cell));
        let mut soft = Vec::new();
        soft_bits(&levels(&symbols), &mut soft);
        pbch::decode(self.cell.pci, &soft, &mut self.viterbi)
    }

    /// All messages of subframe `subframe` (0…9).
    pub fn read(&mut self, subframe: usize, grid: &Grid) -> Reading {
        let channel = estimate(&self.cell, subframe, 0, grid);
        let format = channel.symbols(&self.cell, grid, &self.regions[0].pcfich);
        let (cfi, _) = pcfich::decode(&self.cell, subframe, &[format[0], format[1], format[2], format[3]]);
        let region = &self.regions[usize::from(cfi) - 1];
        let cces = region.cces();
        let symbols = channel.symbols(&self.cell, grid, &region.pdcch);
        let mut levels = levels(&symbols);
        pdcch::descramble(self.cell.pci, subframe, &mut levels);
        Reading { cfi, cces, found: self.search(subframe, cces, &levels) }
    }

    /// All messages of subframe `subframe` in the descrambled soft bits of all CCEs (positive for 0).
    pub fn search(&mut self, subframe: usize, cces: usize, levels: &[f32]) -> Vec<Found> {
        let mut soft = Vec::new();
        soft_bits(levels, &mut soft);
        without_shadows(self.candidates(subframe, cces, &soft))
    }

    /// All combinations of place and size with a possible message for some user.
    fn candidates(&mut self, subframe: usize, cces: usize, soft: &[Soft]) -> Vec<Found> {
        let mut found = Vec::new();
        let mut steps = Vec::new();
        for place in CceRange::all(cces) {
            let soft = &soft[place.bits()];
            for (size, matcher) in &self.sizes {
                let len = usize::from(*size);
                matcher.combine(soft, &mut steps);
                let word = self.viterbi.decode(&steps).word;
                let rnti = Rnti(crc::mask16(word, len));
                let Some(payload) = Payload::new((word >> 16) as u64, *size) else { continue };
                let message = TransmittedMessage { rnti, payload, place };
                if !pdcch::in_search_space(rnti, subframe, cces, place) || !self.is_legal(&message) {
                    continue;
                }
                let agreement = agreement(soft, &message.coded());
                if agreement >= self.least_agreement {
                    found.push(Found { message, agreement });
                }
            }
        }
        found
    }

    /// Whether any format of this size is valid with this payload and RNTI.
    fn is_legal(&self, message: &TransmittedMessage) -> bool {
        let Some(audience) = Audience::of(message.rnti) else { return false };
        let says = |format| parse(&self.carrier, Extras::NONE, audience, format, message.payload).is_ok();
        match audience {
            Audience::User => Format::ALL.into_iter().filter(|format| *format != Format::F1C).any(says),
            Audience::Everyone => says(Format::F1A) || says(Format::F1C),
        }
    }
}

/// Channel from the reference signals in a port's first symbol from `from` on: divided by the known symbols, with linear
/// interpolation between neighbours. Noise is estimated from their curvature.
pub fn estimate(cell: &Cell, subframe: usize, from: usize, grid: &Grid) -> Channel {
    let mut bends = (0.0, 0);
    let mut of_port = |port| {
        let symbol = crs::pilot_symbols(cell.cp, port).find(|&symbol| symbol >= from)?;
        let pilots = crs::pilots(cell, port, subframe, symbol)?;
        let row = grid.symbol(symbol).iter().skip(pilots.first).step_by(crs::Pilots::SPACING);
        let gains: Vec<_> = row.zip(&pilots.values).map(|(got, sent)| got * sent.conj()).collect();
        bends.0 += gains.windows(3).map(|at| (at[0] + at[2] - at[1] * 2.0).norm_sqr()).sum::<f32>();
        bends.1 += gains.len() - 2;
        Some((0..grid.symbol(symbol).len()).map(|k| line(&gains, pilots.first, k)).collect())
    };
    let ports = (0..cell.ports.count()).map(|port| of_port(port).unwrap_or_default()).collect();
    // The curvature is n₋₁ + n₁ − 2·n₀, with six times the noise power.
    Channel::known(ports, bends.0 / (6 * bends.1.max(1)) as f32)
}

/// Value at subcarrier `k` of a line through the two nearest of `gains`; the first gain is at `first`.
fn line(gains: &[Complex32], first: usize, k: usize) -> Complex32 {
    let spacing = crs::Pilots::SPACING;
    let left = (k.saturating_sub(first) / spacing).min(gains.len().saturating_sub(2));
    let (a, b) = (gains[left], gains[left + 1]);
    let share = (k as f32 - (first + left * spacing) as f32) / spacing as f32;
    a + (b - a).scale(share)
}

/// Soft bits of symbols: real and imaginary parts alternately.
fn levels(symbols: &[Quad]) -> Vec<f32> {
    symbols.iter().flatten().flat_map(|symbol| [symbol.re, symbol.im]).collect()
}

/// Agreement of soft bits with bits, in the worst CCE: the sum of the agreeing magnitudes minus the sum of the other
/// magnitudes, over the sum of all magnitudes.
pub fn agreement(soft: &[Soft], bits: &[u8]) -> f32 {
    let cces = soft.chunks(BITS_PER_CCE).zip(bits.chunks(BITS_PER_CCE));
    let of_cce = cces.map(|(soft, bits)| {
        let (mut agree, mut all) = (0i32, 0i32);
        for (&value, &bit) in soft.iter().zip(bits) {
            let value = i32::from(value);
            agree += if bit == 0 { value } else { -value };
            all += value.abs();
        }
        if all == 0 { 0.0 } else { agree as f32 / all as f32 }
    });
    of_cce.fold(1.0, f32::min)
}

/// Resolves overlaps of candidates. A copy of a message on a part of its CCEs is a shadow of the whole message, and is
/// dropped. Otherwise the candidate with the best agreement is kept; among equal candidates the shorter one is kept,
/// because noise is less likely to cause it.
fn without_shadows(mut candidates: Vec<Found>) -> Vec<Found> {
    let whole = candidates.clone();
    candidates.retain(|part| {
        !whole.iter().any(|other| {
            other.message.place.cces > part.message.place.cces
                && other.message.place.overlaps(part.message.place)
                && (other.message.rnti, other.message.payload) == (part.message.rnti, part.message.payload)
        })
    });
    candidates.sort_by(|a, b| {
        let by_size = a.message.payload.len().cmp(&b.message.payload.len());
        b.agreement.total_cmp(&a.agreement).then(by_size)
    });
    let mut found: Vec<Found> = Vec::new();
    for candidate in candidates {
        if !found.iter().any(|other| other.message.place.overlaps(candidate.message.place)) {
            found.push(candidate);
        }
    }
    found.sort_by_key(|found| found.message.place);
    found
}
