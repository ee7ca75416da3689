//! `airpace diag decode --csv`, `--parquet` and `--kpi`: logs as tables.

use std::collections::BTreeMap;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int32Type, TimestampNanosecondType, UInt64Type};
use arrow_array::{Array, RecordBatch};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::{Value, json};

use super::Shell;
use super::diag_made::{BEGIN_NANOS, Log, counts, nas, recorded, rrc};

/// Messages on two radios, and an unknown code.
fn log() -> Log {
    Log::default()
        .packet(1, 0, 0xB0C0, &rrc(7, 1650, &[0x40, 1]))
        .packet(2, 10, 0xB0C0, &rrc(3, 39_148, &[7]))
        .packet(1, 20, 0xB0EC, &nas(&[7, 0x41]))
        .packet(1, 30, 0xB1EA, &[48])
}

/// The lines of a table as maps from headings to cells. Works only for tables without quotes.
fn table(text: &str) -> Vec<BTreeMap<&str, &str>> {
    let mut lines = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let head = lines.next().expect("a head");
    lines
        .map(|cells| {
            assert_eq!(cells.len(), head.len(), "a line has a cell per column: {cells:?}");
            head.iter().copied().zip(cells).collect()
        })
        .collect()
}

fn batches(path: std::path::PathBuf) -> Vec<RecordBatch> {
    let file = std::fs::File::open(path).unwrap();
    ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap().map(Result::unwrap).collect()
}

#[test]
fn one_code_is_a_wide_table_and_several_are_a_long_one() {
    let shell = Shell::new();
    shell.write_bytes("phone.qmdl", &log().0);
    let wide = shell.run(&["diag", "decode", "phone.qmdl", "--csv", "--code", "0xB0C0"]).fine();
    let rows = table(&wide);
    let told: Vec<_> = rows
        .iter()
        .map(|row| [row["time_utc"], row["radio"], row["channel"], row["freq"], row["msg"]])
        .collect();
    assert_eq!(
        told,
        [
            ["2021-03-07T06:28:02.000000", "1", "PCCH", "1650", "4001"],
            ["2021-03-07T06:28:02.010000", "2", "BCCH-DL-SCH", "39148", "07"],
        ]
    );
    assert_eq!(
        (rows[0]["segment"], rows[0]["layout_version"]),
        ("", "26"),
        "another version's field is empty"
    );

    let long = shell.run(&["diag", "decode", "phone.qmdl", "--csv"]).fine();
    let rows = table(&long);
    assert_eq!(counts(rows.iter().map(|row| row["code"])), [("0xB0C0", 32), ("0xB0EC", 5)].into());
    let channel = rows.iter().find(|row| row["field"] == "channel").unwrap();
    assert_eq!((channel["packet"], channel["value"]), ("0", "PCCH"));
}

#[test]
fn every_code_has_its_parquet_file() {
    let shell = Shell::new();
    shell.write_bytes("phone.qmdl", &log().0);
    let done = shell.run(&["diag", "decode", "phone.qmdl", "--parquet", "tables"]);
    assert!(done.err.contains("0xB1EA (1)"), "packets that are left out are reported: {}", done.err);
    assert_eq!(done.fine(), "");
    let files: Vec<_> = counts(
        std::fs::read_dir(shell.path("tables"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap()),
    )
    .into_keys()
    .collect();
    assert_eq!(files, ["0xB0C0.parquet", "0xB0EC.parquet"]);
    let rrc = &batches(shell.path("tables/0xB0C0.parquet"))[0];
    let column = |name: &str| rrc.column_by_name(name).unwrap();
    let times = column("time_utc").as_primitive::<TimestampNanosecondType>();
    let begin = (BEGIN_NANOS + 315_964_800_000_000_000) as i64;
    assert_eq!(times.values()[0], begin, "times are since 1970");
    assert!(
        (times.values()[1] - begin - 10_000_000).abs() < 26,
        "to the modem's unit: {}",
        times.values()[1]
    );
    assert_eq!(column("freq").as_primitive::<UInt64Type>().values(), &[1650, 39_148]);
    assert_eq!(column("channel").as_string::<i32>().value(0), "PCCH");
    assert_eq!(column("msg").as_binary::<i32>().value(1), [7]);
    assert!(column("segment").is_null(0));
    shell.write("file", "");
    shell.run(&["diag", "decode", "phone.qmdl", "--parquet", "file"]).refused(&["`file`", "--parquet"]);
}

#[test]
fn kpis_are_followed_by_name_in_every_form() {
    let shell = Shell::new();
    shell.write_bytes("phone.qmdl", &log().0);
    let run = |words: &[&str]| shell.run(&[&["diag", "decode", "phone.qmdl", "--kpi"], words].concat());
    assert_eq!(
        run(&["lte.rrc.message_bytes,lte.rrc.message_bytes@2"]).fine(),
        "2021-03-07T06:28:02.000000  lte.rrc.message_bytes = 2 byte\n\
         2021-03-07T06:28:02.010000  lte.rrc.message_bytes@2 = 1 byte\n"
    );
    let expected = json!({
        "time_utc": "2021-03-07T06:28:02.010000", "kpi": "lte.rrc.message_bytes", "value": 1, "unit": "byte",
        "radio": 2, "carrier": 0, "subframe": null
    });
    assert_eq!(run(&["lte.rrc.message_bytes@2", "--json"]).json(), std::slice::from_ref(&expected));
    let second = run(&["lte.rrc.message_bytes", "--radio", "2", "--json"]).json();
    assert_eq!(second, [expected], "--radio holds for names without a radio");
    let csv = run(&["0xB0C0:freq", "--csv"]).fine();
    assert_eq!(csv.lines().nth(1), Some("2021-03-07T06:28:02.000000,0xB0C0:freq,1650,,1,0,"), "{csv}");

    run(&["0xB0C0:freq,lte.rrc.messages", "--parquet", "kpi.parquet"]).fine();
    let samples = &batches(shell.path("kpi.parquet"))[0];
    let kpis = samples.column(1).as_dictionary::<Int32Type>();
    let name = |row: usize| kpis.values().as_string::<i32>().value(kpis.keys().value(row) as usize);
    assert_eq!((samples.num_rows(), name(0), name(1)), (2, "0xB0C0:freq", "lte.rrc.messages"));
    assert_eq!(samples.column(2).as_primitive::<Float64Type>().values(), &[1650.0, 1.0]);

    run(&["lte.rsrpp"]).refused(&["no KPI `lte.rsrpp`", "`lte.rsrp`", "airpace list kpis"]);
    run(&["foo"]).refused(&["there is no KPI `foo`", "airpace list kpis"]);
    run(&["lte.rsrp", "--pcap", "x"]).refused(&["--pcap"]);
    run(&["lte.dl.mcs"]).found_nothing(&["no sample of what is wanted; it needs packets of 0xB"]);
}

/// Number of innermost records in a record of `decode --json`. A record without inner records counts as one. Tables
/// contain MAC and RLC headers as bytes.
fn innermost(record: &Value) -> usize {
    fn within(value: &Value) -> usize {
        match value {
            // Flags are a list as well.
            Value::Array(records) => records.iter().filter(|one| one.is_object()).map(innermost).sum(),
            Value::Object(part) => {
                let is_record = |(name, _): &(&String, &Value)| *name != "mac" && *name != "rlc";
                part.iter().filter(is_record).map(|(_, value)| within(value)).sum()
            }
            _ => 0,
        }
    }
    within(record).max(1)
}

#[test]
fn recorded_tables_have_a_row_for_every_innermost_record() {
    for log in recorded() {
        let shell = Shell::new();
        let name = log.to_str().unwrap();
        let mut records: BTreeMap<String, usize> = BTreeMap::new();
        for packet in shell.run(&["diag", "decode", "--json", name]).json() {
            if packet["fields"].is_object() {
                let code = packet["code"].as_str().unwrap().to_owned();
                *records.entry(code).or_default() += innermost(&packet["fields"]);
            }
        }
        shell.run(&["diag", "decode", "--parquet", "tables", name]).fine();
        for (code, records) in records {
            let rows: usize = batches(shell.path(&format!("tables/{code}.parquet")))
                .iter()
                .map(RecordBatch::num_rows)
                .sum();
            assert_eq!(rows, records, "{name}: {code} in Parquet");
            let csv = shell.run(&["diag", "decode", "--csv", "--code", &code, name]).fine();
            assert_eq!(csv.lines().count() - 1, records, "{name}: {code} in CSV");
        }
    }
}
