//! PBCH decoding for a cell with known synchronisation but unknown configuration.

use num_complex::Complex32;

use super::VIEW_HZ;
use crate::cell::{Cell, PhichDuration, PhichResource, Ports};
use crate::channel::Estimator;
use crate::coding::Viterbi;
use crate::complex::turn_back;
use crate::grid::{Grid, Reg};
use crate::modulation::{Soft, soft_bits};
use crate::numerology::{Bandwidth, CyclicPrefix, Numerology};
use crate::ofdm::{Demodulator, Transform};
use crate::pbch::{self, Broadcast, FRAMES};

/// Decodes the PBCH frame by frame from the six centre PRBs. If one frame is not enough, up to four consecutive frames are
/// combined.
pub struct BroadcastReader {
    demodulator: Demodulator,
    viterbi: Viterbi,
    guesses: [Guess; 3],
}

/// Hypothesis for the number of antenna ports of the cell.
struct Guess {
    cell: Cell,
    /// One estimator per antenna.
    estimators: Vec<Estimator>,
    elements: Vec<Reg>,
    /// Soft bits of the last frames, the newest frame last.
    frames: Vec<Vec<Soft>>,
}

impl BroadcastReader {
    /// Creates a reader for a cell.
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
            // A search needs few transforms, so their speed is irrelevant.
            demodulator: Demodulator::by(Transform::Reproducible, Numerology::nominal(Bandwidth::ALL[0], cp)),
            viterbi: Viterbi::default(),
            guesses: Ports::ALL.map(guess),
        }
    }

    /// Decodes the next frame. `subframes` contains its subframe 0 as received by each antenna, at [`VIEW_HZ`]. Returns
    /// `None` if the PBCH cannot be decoded, or if samples are missing.
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
            let broadcast = pbch::combine(pci, &guess.frames, &mut self.viterbi)?;
            (broadcast.ports == ports).then_some(broadcast)
        })
    }
}

impl Guess {
    /// Returns the soft bits of the PBCH in the grids of six PRBs received by the antennas, combined with weights inverse
    /// to the noise power.
    fn soft(&mut self, grids: &[Grid]) -> Vec<Soft> {
        let Guess { cell, estimators, elements, .. } = self;
        estimators.resize_with(grids.len(), || Estimator::of_subframes(cell, 1));
        let slot = cell.cp.symbols_per_slot();
        // Process the first symbol of the PBCH last, so that the estimate has the carrier phase of the PBCH.
        let symbols = [slot - 3, 2 * slot - 3, slot + 1, slot];
        let mut levels = vec![0.0; 8 * elements.len()];
        for (grid, estimator) in grids.iter().zip(estimators) {
            estimator.forget();
            estimator.begin();
            symbols.into_iter().for_each(|symbol| estimator.add(0, symbol, grid));
            let channel = estimator.finish(0);
            // The scale of the levels is irrelevant if there is a single antenna.
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
