//! Resource grid of a subframe, and the resource element groups (REGs) of the control channels.

use num_complex::Complex32;

use crate::cell::{Cell, PhichDuration, Ports};
use crate::coding::rate_match::interleaver;
use crate::diversity::Quad;
use crate::numerology::{CyclicPrefix, SUBCARRIERS_PER_PRB};
use crate::sequence::crs;

/// Resource elements of one antenna port, or of one receive antenna, in one subframe.
///
/// Shape: OFDM symbols of a subframe × subcarriers.
#[derive(Clone, Debug, PartialEq)]
pub struct Grid {
    subcarriers: usize,
    elements: Vec<Complex32>,
}

impl Grid {
    /// Creates an empty grid for a cell.
    pub fn new(cell: &Cell) -> Grid {
        let subcarriers = cell.bandwidth.subcarriers();
        Grid {
            subcarriers,
            elements: vec![Complex32::default(); subcarriers * cell.cp.symbols_per_subframe()],
        }
    }

    /// Number of OFDM symbols.
    pub fn symbols(&self) -> usize {
        self.elements.len() / self.subcarriers
    }

    /// Resource elements of one symbol, lowest subcarrier first.
    pub fn symbol(&self, symbol: usize) -> &[Complex32] {
        &self.elements[symbol * self.subcarriers..][..self.subcarriers]
    }

    /// Resource elements of one symbol, lowest subcarrier first.
    pub fn symbol_mut(&mut self, symbol: usize) -> &mut [Complex32] {
        &mut self.elements[symbol * self.subcarriers..][..self.subcarriers]
    }

    /// Sets all elements to zero.
    pub fn clear(&mut self) {
        self.elements.fill(Complex32::default());
    }

    /// The four elements of a REG.
    #[inline]
    pub fn quad(&self, reg: &Reg) -> Quad {
        let symbol = self.symbol(usize::from(reg.symbol));
        reg.subcarriers.map(|k| symbol[usize::from(k)])
    }

    /// Adds to the four elements of a REG. Several PHICHs share a REG, so their signals add up.
    pub fn add_quad(&mut self, reg: &Reg, quad: &Quad) {
        let symbol = self.symbol_mut(usize::from(reg.symbol));
        for (&k, value) in reg.subcarriers.iter().zip(quad) {
            symbol[usize::from(k)] += value;
        }
    }
}

/// Resource element group (REG): four elements of one symbol that carry control information.
///
/// Source: TS 36.211 §6.2.4
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Reg {
    /// OFDM symbol within the subframe.
    pub symbol: u8,
    /// Lowest subcarrier of the group, including those reserved for reference signals.
    pub first: u16,
    /// The four subcarriers that carry information, lowest first.
    pub subcarriers: [u16; 4],
}

/// Number of REGs in a CCE.
///
/// Source: TS 36.211 §6.8.1
pub const REGS_PER_CCE: usize = 9;

/// Number of bits in a CCE.
pub const BITS_PER_CCE: usize = 72;

/// All REGs of control symbol `symbol` (0…3), lowest subcarrier first.
///
/// A cell with one port also reserves the reference signal elements of port 1.
///
/// Source: TS 36.211 §6.2.4
pub fn regs_of_symbol(cell: &Cell, symbol: usize) -> Vec<Reg> {
    let reserved_ports = if cell.ports == Ports::Four { 4 } else { 2 };
    let has_pilots = match symbol {
        0 => true,
        1 => cell.ports == Ports::Four,
        3 => cell.cp == CyclicPrefix::Extended,
        _ => false,
    };
    let width = if has_pilots { 6 } else { 4 };
    let free = |k: &usize| !crs::is_reserved(cell, reserved_ports, symbol, *k);
    (0..cell.bandwidth.subcarriers())
        .step_by(width)
        .map(|first| {
            let mut free = (first..first + width).filter(free).map(|k| k as u16);
            Reg {
                symbol: symbol as u8,
                first: first as u16,
                subcarriers: std::array::from_fn(|_| free.next().unwrap_or(u16::MAX)),
            }
        })
        .collect()
}

/// REGs of a cell's control channels at one CFI.
#[derive(Clone, Debug, PartialEq)]
pub struct ControlRegion {
    /// Control format indicator, 1…3.
    pub cfi: u8,
    /// The four REGs of the PCFICH, in the order of its bits.
    pub pcfich: [Reg; 4],
    /// The three REGs of each PHICH mapping unit.
    pub phich: Vec<[Reg; 3]>,
    /// REGs of the PDCCHs, in the order of their bits: CCE n consists of REGs 9n … 9n+8. Up to eight REGs at the end
    /// belong to no CCE.
    pub pdcch: Vec<Reg>,
}

impl ControlRegion {
    /// Control region of a cell at `cfi`; `None` if `cfi` is not 1…3.
    pub fn new(cell: &Cell, cfi: u8) -> Option<ControlRegion> {
        if !(1..=3).contains(&cfi) {
            return None;
        }
        let symbols = cell.control_symbols(cfi);
        let pcfich = pcfich_regs(cell);
        let free = |symbol| {
            let mut regs = regs_of_symbol(cell, symbol);
            regs.retain(|reg| !pcfich.contains(reg));
            regs
        };
        let phich = phich_regs(cell, free);
        let taken = |reg: &Reg| phich.iter().flatten().any(|other| other == reg);
        let mut regs: Vec<Reg> = (0..symbols).flat_map(free).filter(|reg| !taken(reg)).collect();
        // Source: TS 36.211 §6.8.5: upwards in frequency first, then in time.
        regs.sort_by_key(|reg| (reg.first, reg.symbol));
        Some(ControlRegion { cfi, pcfich, phich, pdcch: in_order_of_bits(cell, &regs) })
    }

    /// Number of CCEs in the region.
    ///
    /// Source: TS 36.211 §6.8.1
    pub fn cces(&self) -> usize {
        self.pdcch.len() / REGS_PER_CCE
    }
}

/// Source: TS 36.211 §6.7.4
fn pcfich_regs(cell: &Cell) -> [Reg; 4] {
    let regs = regs_of_symbol(cell, 0);
    let prbs = usize::from(cell.bandwidth.prbs());
    let half_prb = SUBCARRIERS_PER_PRB / 2;
    let start = half_prb * (usize::from(cell.pci) % (2 * prbs));
    std::array::from_fn(|i| {
        let k = (start + (i * prbs / 2) * half_prb) % (prbs * SUBCARRIERS_PER_PRB);
        regs[k / half_prb]
    })
}

/// Source: TS 36.211 §6.9.3
fn phich_regs(cell: &Cell, free: impl Fn(usize) -> Vec<Reg>) -> Vec<[Reg; 3]> {
    let free = [free(0), free(1), free(2)];
    let units = match cell.cp {
        CyclicPrefix::Normal => cell.phich_groups(),
        // Two PHICH groups share one mapping unit.
        CyclicPrefix::Extended => cell.phich_groups() / 2,
    };
    let first_count = free[0].len();
    let unit = |m: usize| {
        std::array::from_fn(|i| {
            let regs = match cell.phich_duration {
                PhichDuration::Normal => &free[0],
                PhichDuration::Extended => &free[i],
            };
            let n = regs.len();
            let at = usize::from(cell.pci) * n / first_count + m + i * n / 3;
            regs[at % n]
        })
    };
    (0..units).map(unit).collect()
}

/// Interleaves and cyclically shifts the REGs, so that the bits of successive CCEs are spread over the band.
///
/// Source: TS 36.211 §6.8.5
fn in_order_of_bits(cell: &Cell, regs: &[Reg]) -> Vec<Reg> {
    let count = regs.len();
    let mut of_quad = vec![None; count];
    for (at, quad) in interleaver(count).enumerate() {
        // REG m carries the interleaved quadruplet (m + N_ID) mod M.
        let group = (at + count - usize::from(cell.pci) % count) % count;
        of_quad[quad] = Some(regs[group]);
    }
    of_quad.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::PhichResource;
    use crate::numerology::Bandwidth;
    use std::collections::BTreeSet;

    pub(crate) fn cells() -> impl Iterator<Item = Cell> {
        Bandwidth::ALL.into_iter().flat_map(|bandwidth| {
            Ports::ALL.into_iter().flat_map(move |ports| {
                [CyclicPrefix::Normal, CyclicPrefix::Extended].into_iter().flat_map(move |cp| {
                    [PhichDuration::Normal, PhichDuration::Extended].into_iter().flat_map(move |duration| {
                        PhichResource::ALL.into_iter().flat_map(move |resource| {
                            [0, 167, 301, 503].map(|pci| Cell {
                                pci,
                                bandwidth,
                                ports,
                                cp,
                                phich_duration: duration,
                                phich_resource: resource,
                            })
                        })
                    })
                })
            })
        })
    }

    #[test]
    fn control_channels_share_the_region_without_overlap_or_waste() {
        for cell in cells() {
            for cfi in cell.least_cfi()..=3 {
                let region = ControlRegion::new(&cell, cfi).expect("a CFI of 1 to 3");
                let all: usize =
                    (0..cell.control_symbols(cfi)).map(|symbol| regs_of_symbol(&cell, symbol).len()).sum();
                let of_phich: BTreeSet<_> =
                    region.phich.iter().flatten().map(|reg| (reg.symbol, reg.first)).collect();
                assert_eq!(of_phich.len(), 3 * region.phich.len(), "PHICH units overlap in {cell:?}");
                let of_pdcch: BTreeSet<_> = region.pdcch.iter().map(|reg| (reg.symbol, reg.first)).collect();
                assert_eq!(of_pdcch.len(), region.pdcch.len());
                assert!(of_phich.is_disjoint(&of_pdcch));
                assert_eq!(4 + of_phich.len() + of_pdcch.len(), all, "{cell:?} at CFI {cfi}");
            }
        }
    }

    #[test]
    fn groups_keep_reference_signals_free() {
        for cell in cells() {
            let ports = cell.ports.count();
            for symbol in 0..4 {
                for reg in regs_of_symbol(&cell, symbol) {
                    for k in reg.subcarriers {
                        assert!(usize::from(k) < cell.bandwidth.subcarriers());
                        assert!(!crs::is_reserved(&cell, ports, symbol, usize::from(k)), "{cell:?} {reg:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_region_of_100_prbs_has_the_well_known_number_of_cces() {
        let cell = Cell {
            pci: 407,
            bandwidth: Bandwidth::ALL[5],
            ports: Ports::Two,
            cp: CyclicPrefix::Normal,
            phich_duration: PhichDuration::Normal,
            phich_resource: PhichResource::One,
        };
        let cces = [1, 2, 3].map(|cfi| ControlRegion::new(&cell, cfi).map_or(0, |region| region.cces()));
        // (200 − 4 − 39) / 9 at CFI 1. Each further symbol adds 300 REGs.
        assert_eq!(cces, [17, 50, 84]);
        assert_eq!(ControlRegion::new(&cell, 0), None);
        assert_eq!(ControlRegion::new(&cell, 4), None);
    }
}
