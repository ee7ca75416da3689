//! Format of the output of `airpace decode`: objects, tables, and pseudonyms of users.

use std::collections::{BTreeMap, BTreeSet};

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type, Int64Type, UInt8Type, UInt16Type, UInt64Type};
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::{Value, json};

use super::Shell;
use super::decode::record;

/// Collects the types of a value, such as `[[integer]]` or `null|text`.
fn shape(value: &Value, shapes: &mut BTreeSet<String>) {
    match value {
        Value::Array(values) => {
            let mut inner = BTreeSet::new();
            values.iter().for_each(|value| shape(value, &mut inner));
            if !inner.is_empty() {
                shapes.insert(format!("[{}]", inner.into_iter().collect::<Vec<_>>().join("|")));
            }
        }
        Value::Null => _ = shapes.insert("null".into()),
        Value::Bool(_) => _ = shapes.insert("boolean".into()),
        Value::Number(number) if number.is_f64() => _ = shapes.insert("number".into()),
        Value::Number(_) => _ = shapes.insert("integer".into()),
        Value::String(_) => _ = shapes.insert("text".into()),
        Value::Object(_) => _ = shapes.insert("object".into()),
    }
}

/// Keys of objects in order, each with all types that its values have.
fn schema(objects: &[Value]) -> String {
    let keys = objects[0].as_object().expect("an object").keys();
    let line = |key: &String| {
        let mut shapes = BTreeSet::new();
        objects.iter().for_each(|object| shape(&object[key], &mut shapes));
        format!("{key}: {}\n", shapes.into_iter().collect::<Vec<_>>().join(" or "))
    };
    keys.map(line).collect()
}

/// Creates a recording of a cell with uplink grants, background users and two blocks per grant.
fn record_all_sorts(shell: &Shell) {
    let truth = "a.truth";
    let words =
        ["encode", "biscay-uplink", "--out", "a", "--truth", truth, "--snr", "20", "--seconds", "0.3"];
    shell.run(&[&words[..], &["--set", "cell.background.hour=\"busy\""]].concat()).fine();
}

#[test]
fn objects_have_these_keys_and_types() {
    let shell = Shell::new();
    record_all_sorts(&shell);
    let messages = shell.run(&["decode", "a.sigmf-meta", "--json"]).json();
    insta::assert_snapshot!("messages", schema(&messages));
    let subframes = shell.run(&["decode", "a.sigmf-meta", "--subframes", "--json"]).json();
    insta::assert_snapshot!("subframes", schema(&subframes));
    let rnti = messages.iter().find(|message| message["dir"] == "DL").unwrap()["rnti"].to_string();
    let own =
        shell.run(&["decode", "a.sigmf-meta", "--json", "--rnti", &rnti, "--reports", "reports"]).json();
    let of_own: Vec<_> = own.iter().map(|message| message["own"].clone()).collect();
    insta::assert_snapshot!("own", schema(&of_own));
    let lines: Vec<Value> =
        shell.read("reports").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let reports: Vec<_> = lines.iter().map(|line| line["reports"][0].clone()).collect();
    let grants: Vec<_> =
        reports.iter().flat_map(|report| report["dcis"].as_array().unwrap().clone()).collect();
    let sides: Vec<_> =
        reports.iter().map(|report| report["own"].clone()).filter(|own| !own.is_null()).collect();
    let all = [("line", &lines), ("report", &reports), ("grant", &grants), ("own side", &sides)];
    let all = all.map(|(name, objects)| format!("{name}\n{}\n", schema(objects)));
    insta::assert_snapshot!("reports", all.concat());
}

/// The value in a row of a column.
fn value(column: &ArrayRef, row: usize) -> Value {
    if column.is_null(row) {
        return Value::Null;
    }
    match column.data_type() {
        DataType::Boolean => json!(column.as_boolean().value(row)),
        DataType::UInt8 => json!(column.as_primitive::<UInt8Type>().value(row)),
        DataType::UInt16 => json!(column.as_primitive::<UInt16Type>().value(row)),
        DataType::UInt64 => json!(column.as_primitive::<UInt64Type>().value(row)),
        DataType::Int64 => json!(column.as_primitive::<Int64Type>().value(row)),
        DataType::Float32 => json!(column.as_primitive::<Float32Type>().value(row)),
        DataType::Float64 => json!(column.as_primitive::<Float64Type>().value(row)),
        DataType::Utf8 => json!(column.as_string::<i32>().value(row)),
        DataType::List(_) => {
            let list = column.as_list::<i32>().value(row);
            (0..list.len()).map(|at| value(&list, at)).collect()
        }
        other => panic!("no column is {other}"),
    }
}

/// The rows of a Parquet file, and its columns with their types.
fn table(shell: &Shell, name: &str) -> (Vec<BTreeMap<String, Value>>, String) {
    let file = std::fs::File::open(shell.path(name)).unwrap();
    let reader = ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap();
    let (mut rows, mut columns) = (vec![], String::new());
    for batch in reader {
        let batch = batch.unwrap();
        let schema = batch.schema();
        let describe = |field: &arrow_schema::FieldRef| {
            let null = if field.is_nullable() { " or null" } else { "" };
            let of = match field.data_type() {
                DataType::List(item) => format!("[{}]", item.data_type()),
                other => other.to_string(),
            };
            format!("{}: {of}{null}\n", field.name())
        };
        columns = schema.fields().iter().map(describe).collect();
        rows.extend((0..batch.num_rows()).map(|row| {
            let cell = |(field, column): (&arrow_schema::FieldRef, &ArrayRef)| {
                (field.name().clone(), value(column, row))
            };
            schema.fields().iter().zip(batch.columns()).map(cell).collect::<BTreeMap<_, _>>()
        }));
    }
    (rows, columns)
}

/// Whether a cell of a table equals the value of an object's field, which has fewer digits.
fn is_same(cell: &Value, said: &Value) -> bool {
    match (cell.as_f64(), said.as_f64()) {
        (Some(cell), Some(said)) => (cell - said).abs() <= 0.006,
        _ => cell == said,
    }
}

#[test]
fn a_table_of_messages_says_what_the_objects_say() {
    let shell = Shell::new();
    record_all_sorts(&shell);
    let objects = shell.run(&["decode", "a.sigmf-meta", "--json", "--parquet", "table"]).json();
    let (rows, columns) = table(&shell, "table");
    insta::assert_snapshot!("message_columns", columns);
    assert_eq!(rows.len(), objects.len());
    for (row, object) in rows.iter().zip(&objects) {
        for (key, said) in object.as_object().unwrap().iter().filter(|(key, _)| *key != "prb") {
            assert!(is_same(&row[key], said), "{key}: {} is not {said}", row[key]);
        }
        for slot in 0..2 {
            let said = object["prb"].as_array().map(|slots| slots[slot].as_array().unwrap());
            let said = said.map(|ranges| ranges.iter().flat_map(|range| range.as_array().unwrap()).cloned());
            assert_eq!(row[&format!("prb_slot{slot}")], said.map_or(Value::Null, |ends| ends.collect()));
        }
        let first = objects[0]["index"].as_u64().unwrap();
        let subframes = object["index"].as_u64().unwrap() - first;
        let since = row["time_ms"].as_f64().unwrap() - rows[0]["time_ms"].as_f64().unwrap();
        assert!((since - subframes as f64).abs() < 0.01, "a millisecond each: {since} for {subframes}");
    }
}

#[test]
fn a_table_of_subframes_says_what_the_objects_say() {
    let shell = Shell::new();
    record_all_sorts(&shell);
    let objects =
        shell.run(&["decode", "a.sigmf-meta", "--subframes", "--json", "--parquet", "table"]).json();
    let (rows, columns) = table(&shell, "table");
    insta::assert_snapshot!("subframe_columns", columns);
    assert_eq!(rows.len(), objects.len());
    for (row, object) in rows.iter().zip(&objects) {
        for (key, said) in object.as_object().unwrap().iter().filter(|(key, _)| *key != "formats") {
            assert!(is_same(&row[key], said), "{key}: {} is not {said}", row[key]);
        }
        let mut counts = BTreeMap::new();
        for format in row["formats"].as_array().unwrap() {
            *counts.entry(format.as_str().unwrap()).or_insert(0) += 1;
        }
        assert_eq!(object["formats"], json!(counts), "each format has the same count");
    }
}

#[test]
fn tables_of_answers_and_of_one_user_say_what_the_objects_say() {
    let shell = Shell::new();
    record_all_sorts(&shell);
    let words = ["decode", "a.sigmf-meta", "--json", "--phich", "--parquet", "table.parquet"];
    let objects = shell.run(&words).json();
    let (answers, messages): (Vec<Value>, Vec<Value>) =
        objects.into_iter().partition(|object| object.get("phich").is_some());
    assert_eq!(table(&shell, "table.parquet").0.len(), messages.len(), "messages have a table of their own");
    let (rows, columns) = table(&shell, "table.phich.parquet");
    insta::assert_snapshot!("answer_columns", columns);
    assert!(rows.len() == answers.len() && rows.len() > 50, "{} rows, {} answers", rows.len(), answers.len());
    for (row, answer) in rows.iter().zip(&answers) {
        for (key, said) in answer.as_object().unwrap() {
            assert!(is_same(&row[key], said), "{key}: {} is not {said}", row[key]);
        }
    }

    let rnti = messages.iter().find(|message| message["dir"] == "DL").unwrap()["rnti"].to_string();
    let objects =
        shell.run(&["decode", "a.sigmf-meta", "--json", "--rnti", &rnti, "--parquet", "own"]).json();
    let (rows, columns) = table(&shell, "own");
    let (_, of_own) = columns.split_at(columns.find("own_").unwrap());
    insta::assert_snapshot!("own_columns", of_own);
    assert_eq!(rows.len(), objects.len());
    for (row, object) in rows.iter().zip(&objects) {
        for (key, said) in object["own"].as_object().unwrap() {
            assert_eq!(&row[&format!("own_{key}")], said, "{key}");
        }
    }
}

#[test]
fn what_is_written_takes_the_place_of_nothing_that_is_read_or_written_too() {
    let shell = Shell::new();
    record_all_sorts(&shell);
    let all = || {
        let files = shell.folder.path().read_dir().unwrap().map(|file| file.unwrap().path());
        let mut files: Vec<_> = files.map(|path| (path.clone(), std::fs::read(path).unwrap())).collect();
        files.sort();
        files
    };
    std::fs::copy(shell.path("a.sigmf-data"), shell.path("raw")).unwrap();
    shell.write("old", "of another day");
    let before = all();
    let raw = ["--rate", "1.92e6", "--format", "ci16_le"];
    for (words, parts) in [
        (&["a", "--parquet", "a.sigmf-data"][..], &["--parquet a.sigmf-data", "over a,"][..]),
        (
            &["a.sigmf-data", "--reports", "./a.sigmf-meta"],
            &["--reports ./a.sigmf-meta", "over a.sigmf-data,"],
        ),
        (&["raw", "--parquet", "raw"], &["--parquet raw", "over raw,"]),
        (&["a", "--parquet", "x", "--reports", "./x"], &["--parquet x and --reports ./x are one file"]),
        (
            &["a", "--phich", "--parquet", "x.p", "--reports", "x.phich.p"],
            &["--parquet x.phich.p and --reports"],
        ),
    ] {
        shell.run(&[&["decode"], words, &raw].concat()).refused(parts);
        assert!(all() == before, "{words:?}: nothing is written");
    }
    // If no cell is found, existing files are not replaced.
    shell.write("zeros", &"\0".repeat(200_000));
    let before = all();
    shell.write("older", "of another day");
    for option in ["--parquet", "--reports"] {
        shell.run(&[&["decode", "zeros", option, "old"], &raw[..]].concat()).refused(&["no cell"]);
    }
    assert_eq!(shell.read("old"), "of another day");
    assert_eq!(all().len(), before.len() + 1, "and no part is left");
}

#[test]
fn a_table_without_rows_has_its_columns() {
    let shell = Shell::new();
    record(&shell, "a", &[]);
    shell.run(&["decode", "a.sigmf-meta", "--json", "--rnti", "2", "--parquet", "table"]).fine();
    let file = std::fs::File::open(shell.path("table")).unwrap();
    let reader = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
    assert_eq!(
        (reader.metadata().file_metadata().num_rows(), reader.schema().fields().len() > 20),
        (0, true)
    );
}

#[test]
fn pseudonyms_are_the_same_every_time_and_give_no_rnti_away() {
    let shell = Shell::new();
    record(&shell, "a", &[]);
    record(&shell, "b", &["--pci", "9"]);
    let words = ["decode", "a.sigmf-meta", "b.sigmf-meta", "--json"];
    let plain = shell.run(&words).json();
    let users: BTreeSet<u64> = plain.iter().filter_map(|message| message["rnti"].as_u64()).collect();
    let followed = users.iter().next().unwrap().to_string();
    let files = ["--anonymize", "--parquet", "table", "--reports", "reports", "--stats"];
    let done = shell.run(&[&words[..], &files].concat());
    let err = done.err.clone();
    let masked = done.json();
    assert_eq!(masked, shell.run(&[&words[..], &["--anonymize"]].concat()).json());
    assert_eq!(masked.len(), plain.len());
    let mut names = BTreeMap::new();
    for (plain, masked) in plain.iter().zip(&masked) {
        let name = names.entry(plain["rnti"].as_u64()).or_insert(masked["rnti"].clone());
        assert_eq!(*name, masked["rnti"], "a user has the same pseudonym on all its carriers");
        assert_eq!(masked["ncce"], Value::Null, "positions could give RNTIs away");
    }
    let mut distinct: Vec<_> = names.values().filter_map(Value::as_u64).collect();
    distinct.sort_unstable();
    assert_eq!(distinct, (61..61 + names.len() as u64).collect::<Vec<_>>(), "numbered in order");

    // No other output contains a user's RNTI either.
    let mut said: BTreeSet<u64> = BTreeSet::new();
    for row in table(&shell, "table").0 {
        said.extend(row["rnti"].as_u64());
        assert_eq!(row["ncce"], Value::Null);
    }
    for line in shell.read("reports").lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        for report in line["reports"].as_array().unwrap() {
            assert!(report["dcis"].as_array().unwrap().iter().all(|dci| dci.get("ncce").is_none()));
            said.extend(report["dcis"].as_array().unwrap().iter().filter_map(|dci| dci["rnti"].as_u64()));
        }
    }
    assert_eq!(said, distinct.iter().copied().collect(), "names alone");
    let people = shell.run(&["decode", "a.sigmf-meta", "--anonymize"]).fine();
    assert!(!people.contains('@'), "the text shows no positions either");
    let asks =
        ["decode", "a.sigmf-meta", "--anonymize", "--rnti", &followed, "--json", "--reports", "reports"];
    let done = shell.run(&asks);
    let texts = [err, people, done.err.clone(), shell.read("reports"), done.out.clone()];
    for (text, user) in texts.iter().flat_map(|text| users.iter().map(move |user| (text, user.to_string()))) {
        let is_there = text.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| word == user);
        assert!(!is_there, "RNTI {user} is named in: {text}");
    }
    let name = &names[&followed.parse().ok()];
    assert!(
        done.json().iter().all(|message| message["rnti"] == *name),
        "the same pseudonym with all options"
    );
}
