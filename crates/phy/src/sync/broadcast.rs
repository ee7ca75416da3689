//! Reads the PBCH of a cell of which only synchronisation is known.

use num_complex::Complex32;

use super::{VIEW_HZ, turn_back};
use crate::cell::{Cell, PhichDuration, PhichResource, Ports};
use crate::channel::Channel;
use crate::coding::Viterbi;
use crate::grid::Grid;
use crate::modulation::{Soft, soft_bits};
use crate::numerology::{Bandwidth, CyclicPrefix, Numerology};
use crate::ofdm::Demodulator;
use crate::pbch::{self, FRAMES, Mib};

/// What the PBCH of a frame told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broadcast {
    /// The master information block.
    pub mib: Mib,
    /// Antenna ports.
    pub ports: Ports,
    /// Number of the frame.
    pub sfn: u16,
}

/// Reads the PBCH frame by frame, from the six PRBs in the middle. What one frame alone does not tell, up to four in a row
/// may.
pub struct BroadcastReader {
    pci: u16,
    cp: CyclicPrefix,
    demodulator: Demodulator,
    viterbi: Viterbi,
    /// For each number of ports: soft bits of the last frames, the newest last.
    frames: [Vec<Vec<Soft>>; 3],
}

impl BroadcastReader {
    /// For a cell.
    pub fn new(pci: u16, cp: CyclicPrefix) -> BroadcastReader {
        BroadcastReader {
            pci,
            cp,
            demodulator: Demodulator::new(Numerology::nominal(Bandwidth::ALL[0], cp)),
            viterbi: Viterbi::default(),
            frames: Default::default(),
        }
    }

    /// Reads the next frame, of which `subframe` has subframe 0, at [`VIEW_HZ`]. `None` if it tells nothing, or has too
    /// few samples.
    pub fn read(&mut self, subframe: &[Complex32], cfo_hz: f64) -> Option<Broadcast> {
        let mut samples = subframe.get(..self.demodulator.numerology().subframe_samples())?.to_vec();
        turn_back(&mut samples, cfo_hz / VIEW_HZ as f64);
        for (at, ports) in Ports::ALL.into_iter().enumerate() {
            let cell = Cell {
                pci: self.pci,
                bandwidth: Bandwidth::ALL[0],
                ports,
                cp: self.cp,
                phich_duration: PhichDuration::Normal,
                phich_resource: PhichResource::One,
            };
            let mut grid = Grid::new(&cell);
            self.demodulator.demodulate(&samples, usize::MAX, &mut grid)?;
            let frames = &mut self.frames[at];
            if frames.len() == FRAMES {
                frames.remove(0);
            }
            frames.push(soft(&cell, &grid));
            let read = pbch::combine(self.pci, frames, &mut self.viterbi);
            if let Some((mib, told, sfn)) = read
                && told == ports
            {
                return Some(Broadcast { mib, ports, sfn });
            }
        }
        None
    }

    /// A frame was missed: those before do not belong to those that follow.
    pub fn skip(&mut self) {
        self.frames.iter_mut().for_each(Vec::clear);
    }
}

/// The soft bits of the PBCH in a grid of six PRBs.
fn soft(cell: &Cell, grid: &Grid) -> Vec<Soft> {
    let channel = Channel::estimate(cell, 0, cell.cp.symbols_per_slot(), grid);
    let symbols = channel.symbols(cell, grid, &pbch::elements(cell));
    let levels: Vec<f32> = symbols.iter().flatten().flat_map(|symbol| [symbol.re, symbol.im]).collect();
    let mut soft = Vec::new();
    soft_bits(&levels, &mut soft);
    soft
}
