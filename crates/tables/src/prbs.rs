//! `prbs`: one row per range of adjacent PRBs granted to one user in one subframe of one carrier.
//!
//! | column | type | meaning |
//! | --- | --- | --- |
//! | `time_ms` | f64 | start of the grant's subframe: on the uplink, four subframes before the data |
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

use std::collections::BTreeMap;
use std::path::Path;

use airpace_event::{Owner, Subframe};

use super::columns::row;
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

/// The table, and the cached dictionary words of owners. Formatting the owner for each of the many rows would cost more
/// than all other work.
pub(super) struct Prbs {
    table: Table<Rows>,
    owners: BTreeMap<Owner, Word>,
    /// Dictionary word of each direction.
    directions: [Word; 2],
}

impl Prbs {
    pub(super) fn create(path: &Path) -> Result<Prbs, FileError> {
        let (rows, directions) = Prbs::rows();
        Ok(Prbs { table: Table::create(path, rows)?, owners: BTreeMap::new(), directions })
    }

    /// Keeps the rows in memory, or discards them for `None`.
    pub(super) fn in_memory(part: Option<Part>) -> Prbs {
        let (rows, directions) = Prbs::rows();
        Prbs { table: Table::in_memory(part, rows), owners: BTreeMap::new(), directions }
    }

    fn rows() -> (Rows, [Word; 2]) {
        let mut rows = Rows::default();
        let directions = direction::BOTH.map(|way| rows.direction.word(direction::word(way)));
        (rows, directions)
    }

    pub(super) fn push(&mut self, subframe: &Subframe<'_>) -> Result<(), FileError> {
        if !self.table.is_kept() {
            return Ok(());
        }
        let report = subframe.report;
        let columns = &mut self.table.columns;
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
            }
        }
        self.table.added(rows)
    }

    pub(super) fn finish(self) -> Result<(), FileError> {
        self.table.finish()
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
