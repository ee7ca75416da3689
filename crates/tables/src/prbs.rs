//! `prbs`: one row per range of adjacent PRBs granted to one user in one slot of one carrier. A slot of a carrier of LTE is
//! a subframe.
//!
//! | column | type | meaning |
//! | --- | --- | --- |
//! | `time_ms` | f64 | start of the grant's slot. Uplink data follows later: four subframes on LTE, `offset_slots` on NR |
//! | `carrier` | u8 | component carrier |
//! | `direction` | word | `down` to the user or `up` from the user |
//! | `rnti` | u16 | RNTI of the grant |
//! | `owner` | word | owner of the RNTI: `device 0`, `background 3` or `control` |
//! | `first_prb` | u16 | lowest PRB of the range |
//! | `n_prb` | u16 | number of PRBs in the range, up to 275 |
//! | `mcs` | u8 | MCS index of the first transmitted codeword; 29…31 are reserved for retransmissions |
//! | `tbs_bits` | u32 | bits of the grant's transport blocks; only in the first row of a grant, so that sums are correct |
//! | `retransmission` | bool | whether HARQ retransmits any of the grant's blocks; the other block may be new |
//! | `harq` | u8 | HARQ process number |
//! | `new_bits` | u32 | bits of the grant's blocks that are transmitted for the first time; null where `tbs_bits` is null |
//!
//! If a scenario of the folder has carriers of NR, the tables of all its runs also have the following columns. They are null
//! for a grant of LTE. Without such a carrier, no table has these columns.
//!
//! | column | type | meaning |
//! | --- | --- | --- |
//! | `slot` | u64 | number of the grant's slot on its carrier, from the start of the run; it does not wrap |
//! | `numerology` | u8 | µ of the carrier: a subframe of 1 ms has 2^µ slots |
//! | `symbols` | u8 | number of OFDM symbols of the granted data, 1…14; null if unknown |
//! | `offset_slots` | u8 | number of slots from the grant to its data: K0 downlink, K2 uplink; null if unknown |

use std::collections::BTreeMap;
use std::path::Path;

use airpace_event::{Owner, Subframe};
use airpace_radio::{Dci, Slot};

use super::columns::{Columns, row};
use super::file::Table;
use super::memory::Part;
use super::words::Word;
use super::{fit, millis};
use crate::direction;
use crate::error::FileError;

row! {
    /// A range of adjacent PRBs.
    struct Row {
        time_ms: f64,
        carrier: u8,
        direction: Word,
        rnti: u16,
        owner: Word,
        first_prb: u16,
        n_prb: u16,
        mcs: Option<u8>,
        tbs_bits: Option<u32>,
        retransmission: bool,
        harq: u8,
        new_bits: Option<u32>,
    }
}

row! {
    /// The slot of a grant of NR.
    struct SlotRow in SlotRows {
        slot: Option<u64>,
        numerology: Option<u8>,
        symbols: Option<u8>,
        offset_slots: Option<u8>,
    }
}

/// The columns of every run, and the columns of runs with carriers of NR.
type AllRows = (Rows, Option<SlotRows>);

/// The columns of runs with carriers of NR.
pub(super) fn of_nr() -> impl Columns {
    SlotRows::default()
}

/// The table, and the cached dictionary words of owners. Formatting the owner for each of the many rows would cost more
/// than all other work.
pub(super) struct Prbs {
    table: Table<AllRows>,
    owners: BTreeMap<Owner, Word>,
    /// Dictionary word of each direction.
    directions: [Word; 2],
}

impl Prbs {
    /// Creates the file. `has_nr`: the table has the columns of carriers of NR.
    pub(super) fn create(path: &Path, has_nr: bool) -> Result<Prbs, FileError> {
        let (rows, directions) = Prbs::rows(has_nr);
        Ok(Prbs { table: Table::create(path, rows)?, owners: BTreeMap::new(), directions })
    }

    /// Keeps the rows in memory, or discards them for `None`. `has_nr`: the table has the columns of carriers of NR.
    pub(super) fn in_memory(part: Option<Part>, has_nr: bool) -> Prbs {
        let (rows, directions) = Prbs::rows(has_nr);
        Prbs { table: Table::in_memory(part, rows), owners: BTreeMap::new(), directions }
    }

    fn rows(has_nr: bool) -> (AllRows, [Word; 2]) {
        let mut rows = Rows::default();
        let directions = direction::BOTH.map(|way| rows.direction.word(direction::word(way)));
        ((rows, has_nr.then(SlotRows::default)), directions)
    }

    pub(super) fn push(&mut self, subframe: &Subframe<'_>) -> Result<(), FileError> {
        if !self.table.is_kept() {
            return Ok(());
        }
        let report = subframe.report;
        let (columns, of_nr) = &mut self.table.columns;
        let mut rows = 0;
        for (dci, owner) in report.dcis.iter().zip(subframe.owners) {
            let owner = *self.owners.entry(*owner).or_insert_with(|| columns.owner.word(&owner_name(*owner)));
            for (run, (first, len)) in dci.prbs.runs().enumerate() {
                rows += 1;
                columns.push(Row {
                    time_ms: millis(report.time),
                    carrier: report.carrier.0,
                    direction: self.directions[dci.direction as usize],
                    rnti: dci.rnti.0,
                    owner,
                    first_prb: first,
                    n_prb: len,
                    mcs: dci.mcs[0].or(dci.mcs[1]),
                    tbs_bits: (run == 0).then(|| fit(dci.bits().0)),
                    retransmission: dci.is_retransmission(),
                    // Broadcast messages have no HARQ process.
                    harq: dci.harq.unwrap_or(0),
                    new_bits: (run == 0).then(|| fit(dci.new_bits().0)),
                });
                if let Some(of_nr) = of_nr {
                    of_nr.push(slot_of(report.slot, dci));
                }
            }
        }
        self.table.added(rows)
    }

    pub(super) fn finish(self) -> Result<(), FileError> {
        self.table.finish()
    }
}

/// The cells of a grant in the columns of NR.
fn slot_of(slot: Slot, dci: &Dci) -> SlotRow {
    let is_nr = dci.format.is_nr();
    SlotRow {
        slot: is_nr.then_some(slot.index),
        numerology: is_nr.then_some(slot.numerology.mu()),
        symbols: dci.symbols.filter(|_| is_nr),
        offset_slots: dci.offset_slots.filter(|_| is_nr),
    }
}

/// Name of an owner in tables.
fn owner_name(owner: Owner) -> String {
    match owner {
        Owner::Device(device) => format!("device {}", device.0),
        Owner::Background(index) => format!("background {index}"),
        Owner::Control => "control".to_owned(),
    }
}
