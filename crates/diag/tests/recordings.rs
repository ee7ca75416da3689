//! Real logs against an index of their frames; skipped where the recordings are not there.

mod recordings_folder;

use std::io::Read;

use airpace_diag::source::Item;
use airpace_diag::{Fault, Format, Message};
use flate2::read::GzDecoder;
use recordings_folder::{logs, recordings};

/// The index has times from arithmetic in floating point: its last digit is off now and then.
fn is_within_a_microsecond(time: &str, reference: &str) -> bool {
    let split = |text: &str| {
        let (seconds, micros) = text.split_once('.')?;
        Some((seconds.to_owned(), micros.parse::<i64>().ok()?))
    };
    match (split(time), split(reference)) {
        (Some(time), Some(reference)) => time.0 == reference.0 && (time.1 - reference.1).abs() <= 1,
        // A whole second is written without a fraction.
        (Some(time), None) => time.0 == reference && time.1 <= 1,
        _ => false,
    }
}

#[test]
fn every_frame_of_every_log_is_as_the_index_has_it() {
    let Some(folder) = recordings() else { return };
    for log in logs(&folder) {
        let name = log.file_name().unwrap().to_str().unwrap();
        let mut index = String::new();
        let file = std::fs::File::open(folder.join(format!("ref/{name}.index.csv.gz"))).unwrap();
        GzDecoder::new(file).read_to_string(&mut index).unwrap();
        let mut rows = index.lines().skip(1);
        let bytes = std::fs::read(&log).unwrap();
        assert_eq!(Format::of(&bytes), Format::Hdlc, "{name}");
        Format::Hdlc.visit(&bytes, |at, item| {
            if matches!(item, Item::Unfinished(_)) {
                return;
            }
            let row = rows.next().unwrap_or_else(|| panic!("{name}: {item:?} at {at} is not in the index"));
            let cells: Vec<&str> = row.split(',').collect();
            match item {
                Item::Message(Message::Log(packet)) => {
                    let said = ["log".to_owned(), packet.code.to_string(), packet.stamp.0.to_string()];
                    assert_eq!(cells[1..4], said, "{name} at {at}: {row}");
                    assert!(
                        is_within_a_microsecond(&packet.stamp.to_string(), cells[4]),
                        "{name} at {at}: {row}"
                    );
                    assert_eq!(cells[5], packet.payload.len().to_string(), "{name} at {at}: {row}");
                    let radio: u32 = cells[7].parse().unwrap_or(1);
                    assert_eq!(
                        u32::from(packet.radio.0),
                        if radio == 2 { 2 } else { 1 },
                        "{name} at {at}: {row}"
                    );
                }
                Item::Message(Message::Other { .. }) => assert_eq!(cells[1], "cmd", "{name} at {at}: {row}"),
                Item::Fault(Fault::Checksum) => assert_eq!(cells[1], "badcrc", "{name} at {at}: {row}"),
                other => panic!("{name} at {at}: {other:?} where the index has {row}"),
            }
        });
        assert_eq!(rows.next(), None, "{name}: everything in the index was found");
    }
}
