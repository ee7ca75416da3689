//! Reads the PBCH of a cell of which only synchronisation is known.

use num_complex::Complex32;

use super::{VIEW_HZ, turn_back};
use crate::cell::{Cell, PhichDuration, PhichResource, Ports};
use crate::channel::Estimator;
use crate::coding::Viterbi;
use crate::grid::{Grid, Reg};
use crate::modulation::{Soft, soft_bits};
use crate::numerology::{Bandwidth, CyclicPrefix, Numerology};
use crate::ofdm::{Demodulator, Transform};
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

/// Reads the PBCH frame by frame, from the six PRBs in the middle. If one frame alone is not enough, up to four in a
/// row may be.
pub struct BroadcastReader {
    demodulator: Demodulator,
    viterbi: Viterbi,
    guesses: [Guess; 3],
}

/// The cell, on the assumption that it has a certain number of ports.
struct Guess {
    cell: Cell,
    /// Of each antenna.
    estimators: Vec<Estimator>,
    elements: Vec<Reg>,
    /// Soft bits of the last frames, the newest last.
    frames: Vec<Vec<Soft>>,
}

impl BroadcastReader {
    /// For a cell.
    pub fn new(pci: u16, cp: CyclicPrefix) -> BroadcastReader {
        let guess = |ports| {
            let cell = Cell {
                pci,
                bandwidth: Bandwidth::ALL[0],
                ports,
                cp,
                phich_duration: PhichDuration::Normal,
                phich_resource: PhichResource::One,
            };
            Guess { cell, estimators: Vec::new(), elements: pbch::elements(&cell), frames: Vec::new() }
        };
        BroadcastReader {
            // A search needs few transforms, so their speed does not matter.
            demodulator: Demodulator::by(Transform::Reproducible, Numerology::nominal(Bandwidth::ALL[0], cp)),
            viterbi: Viterbi::default(),
            guesses: Ports::ALL.map(guess),
        }
    }

    /// Reads the next frame; `subframes` hold its subframe 0 as each antenna heard it, at [`VIEW_HZ`]. `None` if the PBCH
    /// cannot be read, or if samples are missing.
    pub fn read<'s>(
        &mut self,
        subframes: impl IntoIterator<Item = &'s [Complex32]>,
        cfo_hz: f64,
    ) -> Option<Broadcast> {
        let mut grids = Vec::new();
        for subframe in subframes {
            let mut samples = subframe.get(..self.demodulator.numerology().subframe_samples())?.to_vec();
            turn_back(&mut samples, cfo_hz / VIEW_HZ as f64);
            let mut grid = Grid::new(&self.guesses[0].cell);
            self.demodulator.demodulate(&samples, usize::MAX, &mut grid)?;
            grids.push(grid);
        }
        self.guesses.iter_mut().find_map(|guess| {
            let Guess { cell, frames, .. } = guess;
            let (pci, ports) = (cell.pci, cell.ports);
            if frames.len() == FRAMES {
                frames.remove(0);
            }
            let soft = guess.soft(&grids);
            guess.frames.push(soft);
            let (mib, told, sfn) = pbch::combine(pci, &guess.frames, &mut self.viterbi)?;
            (told == ports).then_some(Broadcast { mib, ports, sfn })
        })
    }
}

impl Guess {
    /// The soft bits of the PBCH in the grids of six PRBs that antennas heard. What they tell adds up, each with the weight
    /// that its noise leaves it.
    fn soft(&mut self, grids: &[Grid]) -> Vec<Soft> {
        let Guess { cell, estimators, elements, .. } = self;
        estimators.resize_with(grids.len(), || Estimator::of_subframes(cell, 1));
        let slot = cell.cp.symbols_per_slot();
        // The first symbol of the PBCH comes last, so that the estimate has the carrier phase of the PBCH.
        let symbols = [slot - 3, 2 * slot - 3, slot + 1, slot];
        let mut levels = vec![0.0; 8 * elements.len()];
        for (grid, estimator) in grids.iter().zip(estimators) {
            estimator.forget();
            estimator.begin();
            symbols.into_iter().for_each(|symbol| estimator.add(0, symbol, grid));
            let channel = estimator.finish(0);
            // Of one antenna, the size of levels does not matter.
            let weight = if grids.len() == 1 { 1.0 } else { 1.0 / channel.noise().max(f32::MIN_POSITIVE) };
            let symbols = channel.symbols(cell, grid, elements);
            let parts = symbols.iter().flatten().flat_map(|symbol| [symbol.re, symbol.im]);
            levels.iter_mut().zip(parts).for_each(|(sum, level)| *sum += level * weight);
        }
        let mut soft = Vec::new();
        soft_bits(&levels, &mut soft);
        soft
    }
}
