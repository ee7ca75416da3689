//! Computes the bits granted to a device from its own DCIs.
//!
//! ```text
//! bw = Σ over carriers of  table[PRB, TBS index] · antennas        every TTI
//! ```
//!
//! Source: BISCAY §3.2.2 Eq. 1

use airpace_core::tables::{lte, nr};
use airpace_core::{Bits, Direction};
use airpace_radio::{BitLayer, Dci, DciFormat, RadioReport};

/// The number of HARQ processes per carrier and direction.
///
/// Source: TS 36.321 §5.3.2, §5.4.2; TS 38.321 §5.3.2 (16 of NR)
const PROCESSES: usize = 16;

/// The table of block sizes that is used if a DCI does not contain the size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockTable {
    /// The tables of LTE: the MCS gives the TBS index. The TBS index and the PRBs give the size.
    ///
    /// Source: BISCAY §3.2.2; TS 36.213 §7.1.7, §8.6
    Lte(lte::McsTable),
    /// The procedure of NR: resource elements, modulation and code rate give the size.
    ///
    /// Source: BISCAY §3.2.2; TS 38.214 §5.1.3
    Nr(nr::McsTable),
}

/// Properties of a slot that NR's TBS procedure needs besides the number of PRBs and of symbols.
///
/// Chosen: one of the symbols contains only reference signals.
const NR_SLOT: nr::Allocation =
    nr::Allocation { n_prb: 0, symbols: 14, dmrs_res_per_prb: 12, overhead_res_per_prb: 0 };

/// Number of symbols of a downlink grant of NR if neither the grant nor the report contains it.
///
/// Chosen: the slot has one control symbol.
const NR_DOWNLINK_SYMBOLS: u8 = 13;

/// The corresponding number of an uplink grant. An uplink slot has no control symbol.
const NR_UPLINK_SYMBOLS: u8 = 14;

/// Sums the grants of one device in one direction.
#[derive(Clone, Debug)]
pub struct Grants {
    direction: Direction,
    table: BlockTable,
    /// For each carrier: the last block of each codeword in each HARQ process.
    carriers: Vec<[[Option<Block>; 2]; PROCESSES]>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Block {
    ndi: Option<bool>,
    bits: Bits,
}

impl Grants {
    /// A counter for grants of `direction`.
    pub fn new(direction: Direction, table: BlockTable) -> Grants {
        Grants { direction, table, carriers: vec![] }
    }

    /// Bits newly granted to the reporting device for this report's slot and carrier; `None` if the report does not
    /// identify the device. A retransmitted block does not count as new bandwidth. `later` receives the bits of grants
    /// whose data is sent in a later slot, with the number of slots until then.
    ///
    /// Source: TS 38.214 §5.1.2.1, §6.1.2.1 (K0 and K2)
    pub fn bits(&mut self, report: &RadioReport, mut later: impl FnMut(u8, Bits)) -> Option<Bits> {
        let own = report.own.as_ref()?;
        if report.layer == BitLayer::Transport {
            // All delivery opportunities of a recorded link belong to the device: the recorded device always had data
            // to send.
            // Source: BISCAY §5.3.1
            let chances = report.carrier_prbs.filter(|_| own.active).unwrap_or(0);
            return Some(Bits((own.bits_per_prb.unwrap_or(0.0).max(0.0) * f64::from(chances)) as u64));
        }
        let carrier = usize::from(report.carrier.0);
        if carrier >= self.carriers.len() {
            self.carriers.resize(carrier + 1, Default::default());
        }
        let (direction, table) = (self.direction, self.table);
        let own_grants = report.dcis.iter().filter(|dci| dci.rnti == own.rnti && dci.direction == direction);
        let processes = &mut self.carriers[carrier];
        let mut now = Bits::ZERO;
        for dci in own_grants {
            let bits = match dci.harq {
                Some(harq) => new_bits(dci, report, table, &mut processes[usize::from(harq) % PROCESSES]),
                // If the DCI does not name its HARQ process, the previous transmission is unknown.
                None => new_bits(dci, report, table, &mut [None; 2]),
            };
            match dci.offset_slots {
                None | Some(0) => now += bits,
                Some(slots) => later(slots, bits),
            }
        }
        Some(now)
    }
}

/// Total size, in bits, of the blocks of `dci` that are not retransmissions.
fn new_bits(dci: &Dci, report: &RadioReport, table: BlockTable, process: &mut [Option<Block>; 2]) -> Bits {
    let blocks = (0..2).filter(|&codeword| dci.is_sent(codeword)).count();
    let mut granted = Bits::ZERO;
    for (codeword, slot) in process.iter_mut().enumerate() {
        if !dci.is_sent(codeword) {
            continue;
        }
        let known = match dci.tbs[codeword] {
            Bits::ZERO => dci.mcs[codeword].and_then(|mcs| table.block(dci, report, mcs, blocks)),
            bits => Some(bits),
        };
        let before = *slot;
        // A reserved MCS does not define a block size. The block has the size of the previous grant of the process.
        // Source: TS 36.213 §7.1.7.2, §8.6.2; TS 38.214 §5.1.3.2
        let is_again = dci.retransmission[codeword]
            || known.is_none() && before.is_none_or(|block| block.ndi == dci.ndi[codeword]);
        let bits = known.or(before.map(|block| block.bits)).unwrap_or(Bits::ZERO);
        *slot = Some(Block { ndi: dci.ndi[codeword], bits });
        if !is_again {
            granted += bits;
        }
    }
    granted
}

impl BlockTable {
    /// Size, in bits, of one of the `blocks` blocks of `dci`, which has MCS index `mcs`; `None` if `mcs` is reserved.
    fn block(self, dci: &Dci, report: &RadioReport, mcs: u8, blocks: usize) -> Option<Bits> {
        let n_prb = dci.prbs.len();
        // The layers are divided equally among the codewords.
        let layers = (usize::from(dci.layers.max(1)) / blocks.max(1)).clamp(1, 4) as u8;
        match self {
            BlockTable::Lte(_) if dci.direction == Direction::Uplink => {
                let (_, i_tbs) = lte::uplink_mcs(mcs)?.initial?;
                lte_block(i_tbs, n_prb, layers)
            }
            BlockTable::Lte(_) if dci.format == DciFormat::F1C => lte::tbs_format_1c(mcs),
            BlockTable::Lte(table) => lte_block(table.mcs(mcs)?.i_tbs?, n_prb, layers),
            BlockTable::Nr(table) => {
                let symbols = nr_symbols(dci, report);
                table.tbs(mcs, &nr::Allocation { n_prb, symbols, ..NR_SLOT }, layers)
            }
        }
    }
}

/// Number of symbols of a grant of NR.
fn nr_symbols(dci: &Dci, report: &RadioReport) -> u8 {
    let of_slot = report.symbols.filter(|&symbols| symbols > 0);
    match dci.direction {
        Direction::Downlink => dci.symbols.or(of_slot).unwrap_or(NR_DOWNLINK_SYMBOLS),
        Direction::Uplink => dci.symbols.unwrap_or(NR_UPLINK_SYMBOLS),
    }
}

/// Size of an LTE block. The table has columns for one and two layers. Sizes for more layers are multiples of these.
///
/// Source: BISCAY §3.2.2 Eq. 1
fn lte_block(i_tbs: u8, n_prb: u16, layers: u8) -> Option<Bits> {
    match layers {
        0..=2 => lte::tbs(i_tbs, n_prb, layers.max(1)),
        _ => lte::tbs(i_tbs, n_prb, 1).map(|bits| Bits(bits.0 * u64::from(layers))),
    }
}

#[cfg(test)]
mod tests {
    use airpace_core::Time;
    use airpace_radio::{CarrierId, OwnRadio, PrbSet, Rnti, Scope, Slot};

    use super::*;

    const OWN: Rnti = Rnti(0x3D);

    impl Grants {
        /// The bits of all grants of the report.
        fn all_bits(&mut self, report: &RadioReport) -> Option<Bits> {
            let mut sum = Bits::ZERO;
            let now = self.bits(report, |_, bits| sum += bits)?;
            Some(now + sum)
        }
    }

    fn uplink(dcis: Vec<Dci>) -> RadioReport {
        RadioReport {
            carrier: CarrierId(0),
            time: Time::ZERO,
            slot: Slot::subframe_of_lte(0),
            scope: Scope::Everyone,
            carrier_prbs: Some(100),
            cfi: Some(1),
            symbols: None,
            dcis,
            own: Some(OwnRadio {
                rnti: OWN,
                active: true,
                sinr_db: Some(20.0),
                bits_per_prb: Some(700.0),
                decoded: None,
                uplink_queue: None,
            }),
            layer: BitLayer::Physical,
        }
    }

    fn grant(mcs: u8, prbs: u16) -> Dci {
        Dci {
            rnti: OWN,
            direction: Direction::Uplink,
            format: DciFormat::F0,
            prbs: PrbSet::run(0, prbs),
            mcs: [Some(mcs), None],
            layers: 1,
            ..Dci::default()
        }
    }

    fn lte() -> Grants {
        Grants::new(Direction::Uplink, BlockTable::Lte(lte::McsTable::Qam64))
    }

    #[test]
    fn a_dci_without_its_size_is_looked_up_in_the_uplink_table_of_lte() {
        // Row 28 of the uplink table is TBS index 26: 75,376 bits on 100 PRBs.
        assert_eq!(lte().all_bits(&uplink(vec![grant(28, 100)])), Some(Bits(75_376)));
        let told = Dci { tbs: [Bits(1_000), Bits::ZERO], ..grant(28, 100) };
        assert_eq!(
            lte().all_bits(&uplink(vec![told])),
            Some(Bits(1_000)),
            "the size in the DCI has priority"
        );
    }

    #[test]
    fn nr_computes_the_size_for_all_layers() {
        let mut nr = Grants::new(Direction::Uplink, BlockTable::Nr(nr::McsTable::Qam256));
        let one = nr.all_bits(&uplink(vec![grant(27, 50)])).unwrap();
        let four = nr.all_bits(&uplink(vec![Dci { layers: 4, ..grant(27, 50) }])).unwrap();
        // 156 resource elements · 50 PRBs · 8 bits · 948/1024, in code blocks of whole bytes.
        assert_eq!(one, Bits(57_376));
        assert!((four.0 as f64 / one.0 as f64 - 4.0).abs() < 0.02, "{four:?}");
    }

    #[test]
    fn the_symbols_of_a_grant_give_its_size() {
        let size = |direction, symbols, of_slot| {
            let dci = Dci { direction, symbols, layers: 4, ..grant(27, 273) };
            let report = RadioReport { symbols: of_slot, ..uplink(vec![dci]) };
            Grants::new(direction, BlockTable::Nr(nr::McsTable::Qam256)).all_bits(&report).unwrap().0
        };
        assert_eq!(size(Direction::Downlink, None, None), 1_179_864, "13 symbols");
        assert_eq!(size(Direction::Downlink, None, Some(9)), 770_568, "a special slot");
        assert_eq!(size(Direction::Downlink, Some(9), Some(13)), 770_568);
        let whole = size(Direction::Uplink, None, Some(0));
        assert_eq!(whole, size(Direction::Uplink, Some(14), Some(0)), "14 symbols");
        assert!(size(Direction::Uplink, Some(7), None) < whole / 2);
    }

    #[test]
    fn data_of_a_later_slot_is_reported_with_its_slot() {
        let later = Dci { offset_slots: Some(4), ..grant(28, 100) };
        let now = Dci { offset_slots: Some(0), ..grant(28, 100) };
        let mut seen = vec![];
        let bits = lte().bits(&uplink(vec![later, now]), |slots, bits| seen.push((slots, bits)));
        assert_eq!((bits, seen), (Some(Bits(75_376)), vec![(4, Bits(75_376))]));
    }

    #[test]
    fn a_block_sent_again_is_no_new_bandwidth_however_that_is_told() {
        let mut grants = lte();
        let first = Dci { ndi: [Some(true), None], harq: Some(3), ..grant(20, 10) };
        let bits = grants.all_bits(&uplink(vec![first])).unwrap();
        assert!(bits > Bits::ZERO);
        let marked = Dci { retransmission: [true, false], tbs: [bits, Bits::ZERO], ..first };
        assert_eq!(grants.all_bits(&uplink(vec![marked])), Some(Bits::ZERO));
        let reserved = Dci { mcs: [Some(29), None], ..first };
        assert_eq!(grants.all_bits(&uplink(vec![reserved])), Some(Bits::ZERO), "the NDI has not toggled");
        let toggled = Dci { ndi: [Some(false), None], ..reserved };
        assert_eq!(
            grants.all_bits(&uplink(vec![toggled])),
            Some(bits),
            "it is a new block of the same size; its first DCI was missed"
        );
    }

    #[test]
    fn only_its_own_grants_of_its_own_direction_count() {
        let other = Dci { rnti: Rnti(7), ..grant(28, 50) };
        let down = Dci { direction: Direction::Downlink, ..grant(28, 50) };
        assert_eq!(lte().all_bits(&uplink(vec![other, down])), Some(Bits::ZERO));
        let bystander = RadioReport { own: None, ..uplink(vec![grant(28, 50)]) };
        assert_eq!(lte().all_bits(&bystander), None, "a report that does not name its device has no grants");
    }

    #[test]
    fn a_recorded_link_grants_all_its_chances() {
        let trace = RadioReport { layer: BitLayer::Transport, carrier_prbs: Some(3), ..uplink(vec![]) };
        assert_eq!(lte().all_bits(&trace), Some(Bits(2_100)));
    }
}
