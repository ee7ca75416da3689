//! `prbs`: one row per run of adjacent PRBs granted to one user in one subframe of one carrier, downlink.
//!
//! | column | type | meaning |
//! | --- | --- | --- |
//! | `time_ms` | f64 | start of the subframe |
//! | `carrier` | u8 | the carrier |
//! | `rnti` | u16 | whom the grant is for |
//! | `owner` | word | whose that is: `device 0`, `background 3` or `control` |
//! | `first_prb` | u8 | lowest PRB of the run |
//! | `n_prb` | u8 | its length |
//! | `mcs` | u8 | MCS index of the first codeword sent; 29…31 are reserved for retransmissions |
//! | `tbs_bits` | u32 | bits of the grant's transport blocks; null in the second and later runs of one grant, so that sums are right |
//! | `retransmission` | bool | whether HARQ sends it again |
//! | `harq` | u8 | HARQ process |

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use airpace_core::event::{Owner, Subframe};
use airpace_core::radio::Direction;
use arrow_array::ArrayRef;
use arrow_array::builder::{
    ArrayBuilder, BooleanBuilder, Float64Builder, UInt8Builder, UInt16Builder, UInt32Builder,
};
use arrow_schema::{DataType, Field, Schema};

use super::file::TableFile;
use super::words::Words;
use super::{ROWS_PER_GROUP, fit, millis};
use crate::error::EvalError;

pub(super) struct Prbs {
    file: TableFile,
    time_ms: Float64Builder,
    carrier: UInt8Builder,
    rnti: UInt16Builder,
    owner: Words,
    owner_keys: BTreeMap<Owner, i32>,
    first_prb: UInt8Builder,
    n_prb: UInt8Builder,
    mcs: UInt8Builder,
    tbs_bits: UInt32Builder,
    retransmission: BooleanBuilder,
    harq: UInt8Builder,
}

impl Prbs {
    pub(super) fn create(path: &Path) -> Result<Prbs, EvalError> {
        let schema = Schema::new(vec![
            Field::new("time_ms", DataType::Float64, false),
            Field::new("carrier", DataType::UInt8, false),
            Field::new("rnti", DataType::UInt16, false),
            Words::field("owner"),
            Field::new("first_prb", DataType::UInt8, false),
            Field::new("n_prb", DataType::UInt8, false),
            Field::new("mcs", DataType::UInt8, true),
            Field::new("tbs_bits", DataType::UInt32, true),
            Field::new("retransmission", DataType::Boolean, false),
            Field::new("harq", DataType::UInt8, false),
        ]);
        Ok(Prbs {
            file: TableFile::create(path, schema)?,
            time_ms: Float64Builder::new(),
            carrier: UInt8Builder::new(),
            rnti: UInt16Builder::new(),
            owner: Words::default(),
            owner_keys: BTreeMap::new(),
            first_prb: UInt8Builder::new(),
            n_prb: UInt8Builder::new(),
            mcs: UInt8Builder::new(),
            tbs_bits: UInt32Builder::new(),
            retransmission: BooleanBuilder::new(),
            harq: UInt8Builder::new(),
        })
    }

    pub(super) fn push(&mut self, subframe: &Subframe<'_>) -> Result<(), EvalError> {
        let report = subframe.report;
        let time_ms = millis(report.time);
        for (dci, owner) in report.dcis.iter().zip(subframe.owners) {
            if dci.direction != Direction::Downlink {
                continue;
            }
            let key = *self.owner_keys.entry(*owner).or_insert_with(|| self.owner.define(owner_name(*owner)));
            let mcs = dci.mcs[0].or(dci.mcs[1]);
            for (run, (first, len)) in dci.prbs.runs().enumerate() {
                self.time_ms.append_value(time_ms);
                self.carrier.append_value(report.carrier.0);
                self.rnti.append_value(dci.rnti.0);
                self.owner.push_key(key);
                self.first_prb.append_value(first as u8);
                self.n_prb.append_value(len as u8);
                self.mcs.append_option(mcs);
                self.tbs_bits.append_option((run == 0).then(|| fit(dci.bits().0)));
                self.retransmission.append_value(dci.is_retransmission);
                self.harq.append_value(dci.harq);
            }
        }
        if self.time_ms.len() < ROWS_PER_GROUP {
            return Ok(());
        }
        self.write_group()
    }

    pub(super) fn finish(mut self) -> Result<(), EvalError> {
        self.write_group()?;
        self.file.finish()
    }

    fn write_group(&mut self) -> Result<(), EvalError> {
        let columns: Vec<ArrayRef> = vec![
            Arc::new(self.time_ms.finish()),
            Arc::new(self.carrier.finish()),
            Arc::new(self.rnti.finish()),
            self.owner.take(),
            Arc::new(self.first_prb.finish()),
            Arc::new(self.n_prb.finish()),
            Arc::new(self.mcs.finish()),
            Arc::new(self.tbs_bits.finish()),
            Arc::new(self.retransmission.finish()),
            Arc::new(self.harq.finish()),
        ];
        self.file.write_group(columns)
    }
}

/// The word that tables use.
fn owner_name(owner: Owner) -> String {
    match owner {
        Owner::Device(device) => format!("device {}", device.0),
        Owner::Background(index) => format!("background {index}"),
        Owner::Control => "control".to_owned(),
    }
}
