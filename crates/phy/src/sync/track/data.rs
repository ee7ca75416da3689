//! Estimation of PDSCH data symbols that the receiver does not know, symbol by symbol.
//!
//! The coding of a user's data is unknown to other receivers. But QPSK data with the same transmit diversity as the control
//! channels clusters around four points, and the nearest point is mostly correct. For single-layer 16-QAM and 64-QAM, this
//! module finds the quadrant of the symbol. Data with several layers, or precoded for its user, looks like noise and is
//! ignored.

use num_complex::Complex32;

use super::{Reception, Tracker};
use crate::cell::{Cell, Ports};
use crate::diversity::{Quad, combine, pair_power, precode};
use crate::encode::is_taken;
use crate::grid::Grid;
use crate::numerology::SUBCARRIERS_PER_PRB;
use crate::sequence::crs;
use crate::sync::stream::Stream;

/// Estimates the data symbols of one cell.
pub struct DataReader {
    cell: Cell,
    /// Resource elements that may carry data, by symbol: for subframe 0, subframe 5 and any other.
    groups: [Vec<Group>; 3],
    /// Whether a symbol has reference signals: data in such a symbol may be transmitted with another power.
    has_pilots: Vec<bool>,
    heard: Vec<Heard>,
    /// Statistics by slot, PRB and whether the symbol has reference signals.
    blocks: Vec<Block>,
    /// Channel gains by antenna and port.
    gains: Vec<Vec<Vec<Complex32>>>,
}

/// The reception of a subframe, and of the following subframe if it was received.
#[derive(Clone, Copy)]
pub struct ReceivedPair<'a> {
    /// Reception of the subframe whose data is estimated.
    pub now: &'a Reception,
    /// Reception of the following subframe.
    pub next: Option<&'a Reception>,
}

/// Four resource elements of a symbol, or two if `count` is 2.
#[derive(Clone, Copy, Debug)]
struct Group {
    symbol: u8,
    prb: u16,
    count: u8,
    subcarriers: [u16; 4],
}

/// Received symbols of a group.
#[derive(Clone, Copy, Debug)]
struct Heard {
    /// Symbols, each multiplied by the power of its channel over the noise.
    symbols: Quad,
    /// Power of the channel over the noise.
    powers: [f32; 4],
}

/// Statistics of a PRB in a slot: sums over the real and imaginary parts of its symbols.
#[derive(Clone, Copy, Debug, Default)]
struct Block {
    sizes: f32,
    squares: f32,
    powers: f32,
    /// Estimated amplitude of the real or imaginary part of a symbol; 0 if there is no data that can be estimated.
    level: f32,
}

/// Minimum ratio of the squared mean magnitude of the symbols' real and imaginary parts to their mean square. Above
/// this ratio, most parts have the same magnitude.
///
/// Chosen: the ratio is 0.64 for noise and for sums of many layers, 0.86 for QPSK 8 dB above noise and interference, and
/// 0.69 for 16-QAM.
const MIN_SAMENESS: f32 = 0.69;

/// Minimum power of data relative to reference signals.
const MIN_POWER: f32 = 0.3;

/// Minimum noise power relative to the power of a symbol's real or imaginary part.
const MIN_NOISE: f32 = 1e-3;

impl DataReader {
    /// Creates a reader for a cell.
    pub fn new(cell: Cell) -> DataReader {
        let symbols = cell.cp.symbols_per_subframe();
        let width = if cell.ports == Ports::Four { 4 } else { 2 };
        let groups = |number: usize| {
            let mut groups = Vec::new();
            for symbol in 1..symbols {
                for prb in 0..cell.bandwidth.prbs() {
                    let first = usize::from(prb) * SUBCARRIERS_PER_PRB;
                    let all = first..first + SUBCARRIERS_PER_PRB;
                    let free: Vec<u16> =
                        all.filter(|k| !is_taken(&cell, number, symbol, *k)).map(|k| k as u16).collect();
                    for few in free.chunks(4).filter(|few| few.len() % width == 0) {
                        let subcarriers = std::array::from_fn(|i| few.get(i).copied().unwrap_or(few[0]));
                        groups.push(Group { symbol: symbol as u8, prb, count: few.len() as u8, subcarriers });
                    }
                }
            }
            groups
        };
        let is_pilot = |symbol| {
            (0..cell.ports.count()).any(|port| crs::pilot_symbols(cell.cp, port).any(|other| other == symbol))
        };
        DataReader {
            groups: [groups(0), groups(5), groups(1)],
            has_pilots: (0..symbols).map(is_pilot).collect(),
            heard: Vec::new(),
            blocks: vec![Block::default(); 4 * usize::from(cell.bandwidth.prbs())],
            gains: Vec::new(),
            cell,
        }
    }

    /// Adds the data of subframe `number`, after a control region of `cfi`, to the grids that its ports transmitted.
    pub fn read(
        &mut self,
        number: usize,
        cfi: u8,
        received: ReceivedPair<'_>,
        tracker: &mut Tracker,
        stream: &Stream<'_>,
        grids: &mut [Grid],
    ) {
        let first = self.cell.control_symbols(cfi);
        let kind = [0, 5].iter().position(|other| *other == number).unwrap_or(2);
        let groups = std::mem::take(&mut self.groups[kind]);
        let groups_there = &groups[groups.partition_point(|group| usize::from(group.symbol) < first)..];
        self.listen(groups_there, received, tracker, stream);
        if self.judge(groups_there) {
            self.fill(groups_there, grids);
        }
        self.groups[kind] = groups;
    }

    fn listen(
        &mut self,
        groups: &[Group],
        received: ReceivedPair<'_>,
        tracker: &mut Tracker,
        stream: &Stream<'_>,
    ) {
        let ReceivedPair { now, next } = received;
        self.heard.clear();
        for groups in groups.chunk_by(|a, b| a.symbol == b.symbol) {
            let symbol = usize::from(groups[0].symbol);
            now.gains_at(symbol, self.has_pilots.len(), next, &mut self.gains);
            let first = self.heard.len();
            let nothing = Heard { symbols: Quad::default(), powers: [0.0; 4] };
            self.heard.resize(first + groups.len(), nothing);
            tracker.receive_again(stream, now, symbol);
            for ((grid, gains), noise) in tracker.grids().zip(&self.gains).zip(now.noises()) {
                if gains.is_empty() {
                    continue;
                }
                let row = grid.symbol(symbol);
                let scale = 1.0 / noise.max(f32::MIN_POSITIVE);
                for (group, heard) in groups.iter().zip(&mut self.heard[first..]) {
                    let y: Quad = std::array::from_fn(|i| {
                        if i < usize::from(group.count) {
                            row[usize::from(group.subcarriers[i])]
                        } else {
                            Complex32::default()
                        }
                    });
                    let h: [Quad; 4] = std::array::from_fn(|port| match gains.get(port) {
                        Some(gains) => group.subcarriers.map(|k| gains[usize::from(k)]),
                        None => Quad::default(),
                    });
                    let symbols = combine(self.cell.ports, &y, &h);
                    for at in 0..usize::from(group.count) {
                        let power = match self.cell.ports {
                            Ports::One => h[0][at].norm_sqr(),
                            Ports::Two => pair_power([&h[0], &h[1]], at & !1, at | 1),
                            Ports::Four if at < 2 => pair_power([&h[0], &h[2]], 0, 1),
                            Ports::Four => pair_power([&h[1], &h[3]], 2, 3),
                        };
                        heard.symbols[at] += symbols[at] * scale;
                        heard.powers[at] += power * scale;
                    }
                }
            }
        }
    }

    /// Index of a group's block. The two blocks of one PRB and slot are adjacent; the block without reference signals comes
    /// first.
    fn block(&self, group: &Group) -> usize {
        let symbol = usize::from(group.symbol);
        let slot = symbol / self.cell.cp.symbols_per_slot();
        let prbs = usize::from(self.cell.bandwidth.prbs());
        2 * (slot * prbs + usize::from(group.prb)) + usize::from(self.has_pilots[symbol])
    }

    /// Finds the blocks whose data can be estimated. Returns whether there are any such blocks.
    fn judge(&mut self, groups: &[Group]) -> bool {
        self.blocks.fill(Block::default());
        for (group, heard) in groups.iter().zip(&self.heard) {
            let block = self.block(group);
            let block = &mut self.blocks[block];
            for (symbol, power) in heard.symbols.iter().zip(heard.powers) {
                if power > 0.0 {
                    block.sizes += symbol.re.abs() + symbol.im.abs();
                    block.squares += symbol.norm_sqr() / power;
                    block.powers += 2.0 * power;
                }
            }
        }
        let mut is_any = false;
        for pair in self.blocks.chunks_exact_mut(2) {
            let Block { sizes, squares, powers, .. } = pair[0];
            let sameness = sizes * sizes / (squares * powers).max(f32::MIN_POSITIVE);
            // The real part of a symbol with unit power has half of that power, and so has the imaginary part.
            let level = sizes / powers.max(f32::MIN_POSITIVE);
            if sameness >= MIN_SAMENESS && 2.0 * level * level >= MIN_POWER {
                is_any = true;
                for block in pair {
                    block.level = block.sizes / block.powers.max(f32::MIN_POSITIVE);
                }
            }
        }
        is_any
    }

    /// Adds the expected values of the symbols.
    fn fill(&self, groups: &[Group], grids: &mut [Grid]) {
        let mut at = 0;
        for groups in groups.chunk_by(|a, b| a.symbol == b.symbol) {
            let heard = &self.heard[at..at + groups.len()];
            at += groups.len();
            let symbol = usize::from(groups[0].symbol);
            let level = |group: &Group| self.blocks[self.block(group)].level;
            // Estimate the noise from the distances between the parts of this symbol and their amplitudes.
            let (mut distances, mut loudness, mut count) = (0.0f32, 0.0f32, 0.0f32);
            for (group, heard) in groups.iter().zip(heard) {
                let level = level(group);
                for (value, power) in heard.symbols.iter().zip(heard.powers) {
                    if level > 0.0 && power > 0.0 {
                        let part = |part: f32| (part.abs() - level * power) * (part.abs() - level * power);
                        distances += (part(value.re) + part(value.im)) / power;
                        loudness += 2.0 * level * level * power;
                        count += 2.0;
                    }
                }
            }
            let noise = distances.max(MIN_NOISE * loudness) / count.max(1.0);
            if !(noise > 0.0 && noise.is_finite()) {
                continue;
            }
            for (group, heard) in groups.iter().zip(heard) {
                let level = level(group);
                if level <= 0.0 {
                    continue;
                }
                let mean = |part: f32| level * fast_tanh(part * level / noise);
                let sent = heard.symbols.map(|value| Complex32::new(mean(value.re), mean(value.im)));
                let of_ports = precode(self.cell.ports, &sent);
                for (grid, quad) in grids.iter_mut().zip(&of_ports) {
                    let row = grid.symbol_mut(symbol);
                    for (k, value) in group.subcarriers.iter().zip(quad).take(usize::from(group.count)) {
                        row[usize::from(*k)] = *value;
                    }
                }
            }
        }
    }
}

/// Hyperbolic tangent with an error below 0.03.
fn fast_tanh(of: f32) -> f32 {
    let x = of.clamp(-3.0, 3.0);
    x * (27.0 + x * x) / (27.0 + 9.0 * x * x)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fast_tangent_is_near_the_true_one() {
        for step in -100..=100 {
            let x = step as f32 / 10.0;
            assert!((fast_tanh(x) - x.tanh()).abs() < 0.03, "{x}");
        }
    }
}
