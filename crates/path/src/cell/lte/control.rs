//! The control channel of an LTE carrier: the size of its control region, and the DCIs of control messages.

use airpace_core::tables::lte;
use airpace_core::{Bits, Direction};
use airpace_radio::{Dci, DciFormat, PrbSet, Rnti};

/// The CFI with which the control region of a carrier has space for `dcis` DCIs; at most 3.
///
/// Source: TS 36.211 §6.7, §6.8.1. Chosen: four control channel elements for a DCI.
pub(in super::super) fn cfi_for(dcis: usize, prbs: u16) -> u8 {
    const ELEMENTS_PER_DCI: usize = 4;
    (1..=2).find(|&cfi| ELEMENTS_PER_DCI * dcis <= elements(cfi, prbs)).unwrap_or(3)
}

/// The DCI of a control message. It has a compact format and a low MCS.
///
/// Chosen: MCS 4.
pub(in super::super) fn control_dci(rnti: Rnti, prbs: PrbSet) -> Dci {
    const MCS: u8 = 4;
    let bits = lte::McsTable::Qam64.tbs(MCS, prbs.len(), 1).unwrap_or(Bits::ZERO);
    Dci {
        rnti,
        direction: Direction::Downlink,
        format: DciFormat::F1A,
        prbs,
        mcs: [Some(MCS), None],
        tbs: [bits, Bits::ZERO],
        layers: 1,
        ..Dci::default()
    }
}

/// Number of control channel elements in a control region of `cfi` symbols. An element has nine resource element
/// groups; the groups of PCFICH and PHICH are not available.
///
/// Source: TS 36.211 §6.2.4, §6.7, §6.8.1, §6.9 (two antenna ports, N_g = 1)
fn elements(cfi: u8, prbs: u16) -> usize {
    let groups = usize::from(prbs) * (2 + 3 * (usize::from(cfi) - 1));
    groups.saturating_sub(4 + 3 * usize::from(prbs).div_ceil(8)) / 9
}
