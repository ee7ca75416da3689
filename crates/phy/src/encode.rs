//! Encoder: the resource grids and samples of whole subframes of a cell.

use airpace_radio::{PrbSet, Rnti};
use num_complex::Complex32;

use crate::cell::Cell;
use crate::diversity::{Quad, precode};
use crate::grid::{ControlRegion, Grid, Reg};
use crate::modulation::qpsk;
use crate::numerology::{Numerology, SUBCARRIERS_PER_PRB};
use crate::ofdm::Modulator;
use crate::pdcch::TransmittedMessage;
use crate::phich::Answer;
use crate::sequence::gold::{Gold, pdsch_seed};
use crate::sequence::{crs, pss, sss};
use crate::{pbch, pcfich, pdcch, phich};

/// Content of one subframe.
#[derive(Clone, Copy, Debug)]
pub struct Subframe<'a> {
    /// System frame number, 0…1023.
    pub sfn: u16,
    /// Subframe number within the frame, 0…9.
    pub number: usize,
    /// Control format indicator, 1…3.
    pub cfi: u8,
    /// Messages on the PDCCH.
    pub messages: &'a [TransmittedMessage],
    /// HARQ feedback on the PHICH.
    pub answers: &'a [Answer],
    /// Data on the PDSCH.
    pub data: &'a [Data],
}

/// Downlink data for a user, in the PRBs of the two slots. The content of the data is not modelled: its symbols are those
/// of an all-zero codeword, scrambled for the user and transmitted with transmit diversity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Data {
    /// The user.
    pub rnti: Rnti,
    /// The PRBs in each slot.
    pub prbs: [PrbSet; 2],
}

/// Reason why a subframe cannot be transmitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The subframe number or frame number is out of range.
    #[error("subframes are 0 to 9, frames 0 to 1023")]
    Number,
    /// The CFI is not 1 to 3, or too small for an extended PHICH.
    #[error("a CFI of {cfi} is not possible in this cell: use {least} to 3")]
    Cfi {
        /// Requested CFI.
        cfi: u8,
        /// Minimum CFI of the cell.
        least: u8,
    },
    /// A message is not within the CCEs of the control region, or not aligned.
    #[error("a message at CCE {cce} is outside of the {cces} CCEs or not aligned to its length")]
    Place {
        /// First CCE of the message.
        cce: u16,
        /// Number of CCEs in the control region.
        cces: usize,
    },
    /// Two messages overlap.
    #[error("two messages share CCE {cce}")]
    Overlap {
        /// First CCE of the later message.
        cce: u16,
    },
    /// The PHICH resource does not exist.
    #[error("there is no PHICH group {group} with sequence {sequence}")]
    Answer {
        /// PHICH group.
        group: usize,
        /// Sequence within the group.
        sequence: usize,
    },
}

/// Computes the resource grids of a cell's antenna ports, subframe by subframe.
#[derive(Clone, Debug)]
pub struct Encoder {
    cell: Cell,
    /// Control regions for CFI 1, 2 and 3.
    regions: Vec<ControlRegion>,
    broadcast: Vec<Reg>,
    grids: Vec<Grid>,
}

impl Encoder {
    /// Creates an encoder for a cell.
    pub fn new(cell: Cell) -> Encoder {
        Encoder {
            cell,
            regions: (1..=3).filter_map(|cfi| ControlRegion::new(&cell, cfi)).collect(),
            broadcast: pbch::elements(&cell),
            grids: vec![Grid::new(&cell); cell.ports.count()],
        }
    }

    /// The encoded cell.
    pub fn cell(&self) -> &Cell {
        &self.cell
    }

    /// Number of CCEs at a CFI of 1 to 3; zero for other values.
    pub fn cces(&self, cfi: u8) -> usize {
        self.regions.iter().find(|region| region.cfi == cfi).map_or(0, ControlRegion::cces)
    }

    /// Computes the resource grids of a subframe, one per antenna port.
    ///
    /// # Errors
    /// If the subframe is not valid for the cell.
    pub fn grids(&mut self, subframe: &Subframe<'_>) -> Result<&[Grid], Refused> {
        self.check(subframe)?;
        self.grids.iter_mut().for_each(Grid::clear);
        self.references(subframe.number);
        self.synchronisation(subframe.number);
        if subframe.number == 0 {
            let quads = pbch::encode(&self.cell, subframe.sfn);
            let regs = std::mem::take(&mut self.broadcast);
            self.place(&regs, &quads);
            self.broadcast = regs;
        }
        self.control(subframe);
        for data in subframe.data {
            self.fill(subframe, data);
        }
        Ok(&self.grids)
    }

    fn check(&self, subframe: &Subframe<'_>) -> Result<(), Refused> {
        if subframe.number > 9 || subframe.sfn > 1023 {
            return Err(Refused::Number);
        }
        let least = self.cell.least_cfi();
        if !(least..=3).contains(&subframe.cfi) {
            return Err(Refused::Cfi { cfi: subframe.cfi, least });
        }
        let cces = self.cces(subframe.cfi);
        for (at, message) in subframe.messages.iter().enumerate() {
            let place = message.place;
            if !pdcch::CceRange::all(cces).any(|other| other == place) {
                return Err(Refused::Place { cce: place.cce, cces });
            }
            if subframe.messages[..at].iter().any(|other| other.place.overlaps(place)) {
                return Err(Refused::Overlap { cce: place.cce });
            }
        }
        let sequences = phich::sequences(self.cell.cp);
        let missing =
            |answer: &&Answer| answer.group >= self.cell.phich_groups() || answer.sequence >= sequences;
        match subframe.answers.iter().find(missing) {
            Some(answer) => Err(Refused::Answer { group: answer.group, sequence: answer.sequence }),
            None => Ok(()),
        }
    }

    /// Source: TS 36.211 §6.10.1
    fn references(&mut self, subframe: usize) {
        for (port, grid) in self.grids.iter_mut().enumerate() {
            for symbol in crs::pilot_symbols(self.cell.cp, port) {
                if let Some(pilots) = crs::pilots(&self.cell, port, subframe, symbol) {
                    let row = grid.symbol_mut(symbol).iter_mut().skip(pilots.first);
                    for (element, value) in row.step_by(crs::Pilots::SPACING).zip(pilots.values) {
                        *element = value;
                    }
                }
            }
        }
    }

    /// Writes the synchronisation signals into the last two symbols of the first slot of subframes 0 and 5.
    ///
    /// Source: TS 36.211 §6.11.1.2 and §6.11.2.2 (frame structure type 1)
    ///
    /// Chosen: port 0; the specification leaves the port open.
    fn synchronisation(&mut self, subframe: usize) {
        if !subframe.is_multiple_of(5) {
            return;
        }
        let first = self.cell.bandwidth.subcarriers() / 2 - pss::LEN / 2;
        let last_symbol = self.cell.cp.symbols_per_slot() - 1;
        let primary = pss::pss(self.cell.n_id_2());
        self.grids[0].symbol_mut(last_symbol)[first..first + pss::LEN].copy_from_slice(&primary);
        let secondary = sss::sss(self.cell.n_id_1(), self.cell.n_id_2(), subframe / 5);
        let row = &mut self.grids[0].symbol_mut(last_symbol - 1)[first..first + pss::LEN];
        for (element, value) in row.iter_mut().zip(secondary) {
            *element = Complex32::new(value, 0.0);
        }
    }

    /// Writes PCFICH, PHICH and PDCCH.
    fn control(&mut self, subframe: &Subframe<'_>) {
        let regions = std::mem::take(&mut self.regions);
        if let Some(region) = regions.iter().find(|region| region.cfi == subframe.cfi) {
            self.place(&region.pcfich, &pcfich::encode(&self.cell, subframe.number, subframe.cfi));
            for answer in subframe.answers {
                let unit = &region.phich[phich::unit(self.cell.cp, answer.group)];
                let repetitions = phich::encode(&self.cell, subframe.number, answer);
                for (reg, quads) in unit.iter().zip(&repetitions) {
                    self.add(reg, quads);
                }
            }
            self.place(&region.pdcch, &pdcch::encode(&self.cell, region, subframe.number, subframe.messages));
        }
        self.regions = regions;
    }

    /// Precodes quadruplets and writes them to the grids of all ports.
    fn place(&mut self, regs: &[Reg], quads: &[Quad]) {
        for (reg, quad) in regs.iter().zip(quads) {
            self.add(reg, &precode(self.cell.ports, quad));
        }
    }

    fn add(&mut self, reg: &Reg, quads: &[Quad; 4]) {
        for (grid, quad) in self.grids.iter_mut().zip(quads) {
            grid.add_quad(reg, quad);
        }
    }

    /// Writes a user's data into its PRBs after the control region, except on elements of other signals.
    ///
    /// Source: TS 36.211 §6.3.5 and §6.4
    fn fill(&mut self, subframe: &Subframe<'_>, data: &Data) {
        let mut bits = Gold::new(pdsch_seed(self.cell.pci, subframe.number, data.rnti.0));
        let per_slot = self.cell.cp.symbols_per_slot();
        let mut elements = Vec::new();
        for symbol in self.cell.control_symbols(subframe.cfi)..2 * per_slot {
            let prbs = data.prbs[symbol / per_slot];
            let own = |k: &usize| prbs.contains((k / SUBCARRIERS_PER_PRB) as u16);
            let free = |k: &usize| !is_taken(&self.cell, subframe.number, symbol, *k);
            let row = (0..self.cell.bandwidth.subcarriers()).filter(own).filter(free);
            elements.extend(row.map(|k| (symbol, k)));
        }
        for four in elements.chunks(4) {
            let x = std::array::from_fn(|_| qpsk(bits.next_bit(), bits.next_bit()));
            let sent = precode(self.cell.ports, &x);
            for (grid, quad) in self.grids.iter_mut().zip(&sent) {
                for (&(symbol, k), &value) in four.iter().zip(quad) {
                    grid.symbol_mut(symbol)[k] = value;
                }
            }
        }
    }
}

/// Whether an element after the control region of subframe `subframe` is not available for data.
///
/// Source: TS 36.211 §6.4
pub(crate) fn is_taken(cell: &Cell, subframe: usize, symbol: usize, k: usize) -> bool {
    let middle = cell.bandwidth.subcarriers() / 2;
    let is_middle = k.abs_diff(middle) < 36 || k + 36 == middle;
    let per_slot = cell.cp.symbols_per_slot();
    let synchronises = subframe.is_multiple_of(5) && (per_slot - 2..per_slot).contains(&symbol);
    let broadcasts = subframe == 0 && (per_slot..per_slot + 4).contains(&symbol);
    is_middle && (synchronises || broadcasts) || crs::is_reserved(cell, cell.ports.count(), symbol, k)
}

/// Generates the samples of a cell's antenna ports.
pub struct Transmitter {
    encoder: Encoder,
    modulator: Modulator,
    amplitude: f32,
}

impl Transmitter {
    /// Creates a transmitter for a cell. The sample rate is that of an FFT with `fft_size` points; `None` if
    /// [`Numerology::new`] rejects this size. A resource element of unit power is a tone of `amplitude`.
    pub fn new(cell: Cell, fft_size: usize, amplitude: f32) -> Option<Transmitter> {
        let numerology = Numerology::new(cell.bandwidth, cell.cp, fft_size)?;
        Some(Transmitter { encoder: Encoder::new(cell), modulator: Modulator::new(numerology), amplitude })
    }

    /// The encoder of the resource grids.
    pub fn encoder(&self) -> &Encoder {
        &self.encoder
    }

    /// Appends a subframe's samples to the samples of each antenna port.
    ///
    /// # Errors
    /// If the subframe is not valid for the cell; nothing is appended then.
    pub fn send(&mut self, subframe: &Subframe<'_>, ports: &mut [Vec<Complex32>]) -> Result<(), Refused> {
        for (grid, out) in self.encoder.grids(subframe)?.iter().zip(ports) {
            self.modulator.modulate(grid, self.amplitude, out);
        }
        Ok(())
    }
}
