//! Cell-specific reference signals, for channel estimation.

use num_complex::Complex32;

use super::gold::{self, Gold};
use crate::cell::Cell;
use crate::modulation::qpsk;
use crate::numerology::CyclicPrefix;

/// Maximum downlink bandwidth in PRB pairs, for which the sequences are defined.
///
/// Source: TS 36.211 §6.2.1
const MAX_PRBS: usize = 110;

/// Reference signals of one port in one OFDM symbol.
#[derive(Clone, Debug, PartialEq)]
pub struct Pilots {
    /// First subcarrier with a reference signal; the other reference signals follow at a spacing of six subcarriers.
    pub first: usize,
    /// Reference symbols in order of subcarriers; two per PRB.
    pub values: Vec<Complex32>,
}

impl Pilots {
    /// Subcarriers between neighbouring reference signals.
    pub const SPACING: usize = 6;
}

/// Reference signals of `port` (0…3) in OFDM symbol `symbol` of `subframe` (0…9); `None` if it has none.
///
/// Source: TS 36.211 §6.10.1.2
pub fn pilots(cell: &Cell, port: usize, subframe: usize, symbol: usize) -> Option<Pilots> {
    let per_slot = cell.cp.symbols_per_slot();
    let (slot, l) = (2 * subframe + symbol / per_slot, symbol % per_slot);
    let v = offset(cell.cp, port, slot, l)?;
    let prbs = usize::from(cell.bandwidth.prbs());
    let mut bits = Gold::new(gold::crs_seed(cell.pci, slot, l, cell.cp.n_cp()));
    let values = bits_as_symbols(&mut bits).skip(MAX_PRBS - prbs).take(2 * prbs).collect();
    Some(Pilots { first: (v + cell.v_shift()) % Pilots::SPACING, values })
}

/// OFDM symbols of a subframe with reference signals of `port`, in order.
pub fn pilot_symbols(cp: CyclicPrefix, port: usize) -> impl Iterator<Item = usize> {
    let per_slot = cp.symbols_per_slot();
    (0..2 * per_slot).filter(move |symbol| offset(cp, port, symbol / per_slot, symbol % per_slot).is_some())
}

/// Frequency offset v of the reference signals of a port, without the cell's own shift (subcarriers).
///
/// Source: TS 36.211 §6.10.1.2
const fn offset(cp: CyclicPrefix, port: usize, slot: usize, l: usize) -> Option<usize> {
    let late = l == cp.symbols_per_slot() - 3;
    match port {
        0 if l == 0 => Some(0),
        0 if late => Some(3),
        1 if l == 0 => Some(3),
        1 if late => Some(0),
        2 if l == 1 => Some(3 * (slot % 2)),
        3 if l == 1 => Some(3 + 3 * (slot % 2)),
        _ => None,
    }
}

/// Source: TS 36.211 §6.10.1.1
fn bits_as_symbols(bits: &mut Gold) -> impl Iterator<Item = Complex32> {
    std::iter::from_fn(move || Some(qpsk(bits.next_bit(), bits.next_bit())))
}

/// Whether the resource element (`symbol` of the subframe, subcarrier `k`) is reserved for reference signals of any of
/// the first `ports` ports.
///
/// Source: TS 36.211 §6.10.1.2
pub fn is_reserved(cell: &Cell, ports: usize, symbol: usize, k: usize) -> bool {
    let per_slot = cell.cp.symbols_per_slot();
    (0..ports).any(|port| {
        offset(cell.cp, port, symbol / per_slot, symbol % per_slot)
            .is_some_and(|v| (v + cell.v_shift()) % Pilots::SPACING == k % Pilots::SPACING)
    })
}
