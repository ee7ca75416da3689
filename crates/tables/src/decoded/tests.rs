use std::fs::File;
use std::path::Path;

use airpace_files::Whole;
use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt8Type, UInt16Type, UInt64Type};
use arrow_array::{Array, RecordBatch};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::*;

fn message(index: u64) -> Message {
    Message {
        carrier: 0,
        cell: 301,
        time_ms: index as f64,
        index,
        sfn: 0,
        subframe: 0,
        cfi: 2,
        rnti: 4660,
        rnti_type: "C",
        dir: "DL",
        format: "2A",
        format_known: true,
        l: 4,
        ncce: None,
        bits: "0110".into(),
        alloc: Some("0"),
        prb_slot0: Some(vec![0, 3, 270, 274]),
        prb_slot1: None,
        n_prb: Some(275),
        mcs: vec![9, 28],
        rv: vec![Some(0), None],
        ndi: vec![],
        modulation: vec![Some("QPSK"), None],
        tbs: vec![Some(1928), None],
        mcs_table: None,
        mcs_table_known: None,
        harq: Some(7),
        tpc: None,
        snr_db: 20.0,
        confidence: 1.0,
    }
}

fn read(path: &Path) -> RecordBatch {
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap()).unwrap();
    let mut batches = reader.build().unwrap();
    let batch = batches.next().unwrap().unwrap();
    assert!(batches.next().is_none());
    batch
}

#[test]
fn messages_gains_and_answers_are_read_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cell.parquet");
    let beside = answers_beside(&path);
    assert_eq!(beside, folder.path().join("cell.phich.parquet"));
    assert_eq!(answers_beside(Path::new("cell")), Path::new("cell.phich"));
    let [main, answers] = [&path, &beside].map(|path| Whole::create(path).unwrap());
    let mut tables = Decoded::new(main, Row::Own, Some(answers)).unwrap();
    let gain = Gain {
        new_bits: 1928,
        retransmission: vec![false, true],
        again: 1,
        unknown: 1,
        throughput_bps: 5_000_000_000,
    };
    tables.message(|| message(10), Some(&gain)).unwrap();
    tables.message(|| message(11), None).unwrap();
    tables.subframe(|| panic!("there is no table of subframes")).unwrap();
    let answer = || Answer {
        carrier: 1,
        cell: 301,
        time_ms: 14.0,
        index: 14,
        sfn: 1,
        subframe: 4,
        rnti: 4660,
        phich: "NACK",
        granted: 6,
        attempt: 2,
        snr_db: 3.0,
        confidence: 0.5,
    };
    tables.answer(answer).unwrap();
    assert!(!path.exists(), "the file gets its name only when it is complete");
    tables.finish().unwrap();

    let rows = read(&path);
    assert_eq!(rows.num_rows(), 2);
    let ranges = rows["prb_slot0"].as_list::<i32>().value(0);
    assert_eq!(ranges.as_primitive::<UInt16Type>().values(), &[0, 3, 270, 274], "as wide as NR's carriers");
    assert_eq!(rows["n_prb"].as_primitive::<UInt16Type>().value(0), 275);
    assert!(rows["prb_slot1"].is_null(0) && rows["ncce"].is_null(0) && rows["tpc"].is_null(0));
    let sizes = rows["tbs"].as_list::<i32>().value(0);
    assert_eq!((sizes.as_primitive::<Int64Type>().value(0), sizes.is_null(1)), (1928, true));
    let indicators = &rows["ndi"];
    assert!(indicators.is_valid(0) && indicators.as_list::<i32>().value(0).is_empty(), "empty is not null");
    assert_eq!(rows["own_throughput_bps"].as_primitive::<UInt64Type>().value(0), 5_000_000_000);
    let again = rows["own_retransmission"].as_list::<i32>().value(0);
    assert_eq!((again.as_boolean().value(0), again.as_boolean().value(1)), (false, true));
    assert!(rows.columns()[30..].iter().all(|column| column.is_null(1)), "no gain without a grant");

    let answers = read(&beside);
    assert_eq!(answers["phich"].as_string::<i32>().value(0), "NACK");
    assert_eq!(answers["attempt"].as_primitive::<UInt8Type>().value(0), 2);
}

#[test]
fn subframes_have_a_table_without_messages() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cell");
    let mut tables = Decoded::new(Whole::create(&path).unwrap(), Row::Subframe, None).unwrap();
    tables.message(|| panic!("there is no table of messages"), None).unwrap();
    tables.answer(|| panic!("there is no table of answers")).unwrap();
    let subframe = Subframe {
        carrier: 255,
        cell: 503,
        time_ms: 0.0,
        index: 0,
        sfn: 0,
        subframe: 0,
        cfi: 3,
        cces: 84,
        cces_used: 6,
        cces_unread: 2,
        messages: 2,
        downlink: 1,
        uplink: 1,
        formats: vec!["0", "1A"],
        prbs: 100,
        prbs_used: 40,
        prbs_idle: None,
        users: 2,
        snr_db: 12.5,
    };
    tables.subframe(|| subframe).unwrap();
    tables.finish().unwrap();
    let rows = read(&path);
    let formats = rows["formats"].as_list::<i32>().value(0);
    assert_eq!(formats.as_string::<i32>().iter().flatten().collect::<Vec<_>>(), ["0", "1A"]);
    assert!(rows["prbs_idle"].is_null(0));
}
