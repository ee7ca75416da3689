//! What an NR carrier broadcasts: SS blocks, whose PRBs carry no data, and SIB1.

use airpace_radio::{PrbSet, Rnti};

use super::super::config::{NrCarrier, NrConfig};

/// Width of an SS block in PRBs of its own subcarrier spacing.
///
/// Source: TS 38.211 §7.4.3.1
const SS_BLOCK_PRBS: u16 = 20;

/// The RNTI of system information.
///
/// Source: TS 38.321 §7.1 Table 7.1-1
pub(super) const SI_RNTI: Rnti = Rnti(0xFFFF);

/// PRBs of a transmission of SIB1.
///
/// Chosen: 12 PRBs, which carry 130 bytes at MCS 4.
const SIB1_PRBS: u16 = 12;

/// Schedule of the SS blocks and of SIB1 of a carrier.
#[derive(Clone, Debug)]
pub(super) struct Broadcast {
    /// Slots with an SS block, counted from the start of the period.
    slots: Vec<u64>,
    /// Period of the SS blocks in slots.
    period: u64,
    /// PRBs that a slot with an SS block cannot use for data. They are at the centre of the carrier.
    ///
    /// Chosen: the base station leaves these PRBs empty for the whole slot.
    prbs: PrbSet,
    /// Period of SIB1 in slots; 0: there is no SIB1.
    sib1_period: u64,
    sib1_prbs: u16,
}

impl Broadcast {
    pub(super) fn new(carrier: &NrCarrier, config: &NrConfig, beams: usize) -> Broadcast {
        let mu = carrier.ss_block_case().spacing().mu();
        let slots_per_ms = carrier.numerology.slots_per_subframe();
        let slot_of = |&symbol: &u16| u64::from(symbol) * slots_per_ms / (14 << mu);
        let mut slots: Vec<u64> = carrier.ss_block_symbols().iter().take(beams).map(slot_of).collect();
        slots.dedup();
        let width = (u32::from(SS_BLOCK_PRBS) << mu).div_ceil(1 << carrier.numerology.mu()) as u16;
        let width = width.min(carrier.prbs);
        Broadcast {
            slots,
            period: u64::from(config.ssb.period_ms) * slots_per_ms,
            prbs: PrbSet::run((carrier.prbs - width) / 2, width),
            sib1_period: u64::from(config.sib1_period_ms) * slots_per_ms,
            sib1_prbs: SIB1_PRBS.min(carrier.prbs),
        }
    }

    /// PRBs that cannot carry data in this slot. An SS block in an uplink slot of the pattern is not sent.
    pub(super) fn reserved(&self, slot: u64) -> PrbSet {
        if self.slots.contains(&(slot % self.period)) { self.prbs } else { PrbSet::EMPTY }
    }

    /// Number of PRBs of the SIB1 that becomes due in this slot; `None` if there is none.
    pub(super) fn sib1(&self, slot: u64) -> Option<u16> {
        (self.sib1_period > 0 && slot.is_multiple_of(self.sib1_period)).then_some(self.sib1_prbs)
    }
}
