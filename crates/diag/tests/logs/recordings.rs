//! Recorded logs compared with an index of their frames. Skipped if the recordings are not available.

use crate::recordings_folder;

use std::io::Read;

use airpace_diag::source::Item;
use airpace_diag::{Fault, Format, Message};
use flate2::read::GzDecoder;
use recordings_folder::{logs, recordings};

/// Whether two times differ by at most a microsecond. The times in the index were computed in floating point, so their
/// last digit is sometimes wrong.
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

#[test]
fn a_log_that_begins_anywhere_is_still_a_stream() {
    const CUTS: usize = 300;
    let Some(folder) = recordings() else { return };
    for log in logs(&folder) {
        let bytes = std::fs::read(&log).unwrap();
        // Offsets of the cuts: far apart, each at a different position in its frame.
        for cut in (0..CUTS).map(|number| bytes.len() * number / CUTS + number % 7) {
            let form = Format::of(&bytes[cut.min(bytes.len())..]);
            assert_eq!(form, Format::Hdlc, "{} from byte {cut}", log.display());
        }
    }
}

/// Pseudorandom number generator.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }
}

#[test]
fn a_damaged_log_is_a_stream_whatever_is_left_of_it() {
    let Some(folder) = recordings() else { return };
    let (mut tried, mut left) = (0, 0);
    for log in logs(&folder) {
        let bytes = std::fs::read(&log).unwrap();
        // One of `one_of` bytes is changed, lost or doubled.
        for (seed, one_of) in [1_000, 200, 60, 25, 12, 6, 3].into_iter().enumerate() {
            let mut noise = Noise(seed as u64);
            let mut damaged = Vec::with_capacity(bytes.len());
            for &byte in &bytes {
                match if noise.next().is_multiple_of(one_of) { noise.next() % 3 } else { 3 } {
                    0 => damaged.push(noise.next() as u8),
                    1 => {}
                    2 => damaged.extend([byte, byte]),
                    _ => damaged.push(byte),
                }
            }
            let name = log.display();
            assert_eq!(Format::of(&damaged), Format::Hdlc, "{name} with one of {one_of} bytes damaged");
            tried += 1;
            Format::Hdlc.visit(&damaged, |_, item| left += usize::from(matches!(item, Item::Message(_))));
        }
    }
    println!("{tried} damaged logs are streams; {left} messages came whole");
}

#[test]
fn random_bytes_are_no_packets() {
    for seed in 0..40 {
        let mut noise = Noise(seed);
        let bytes: Vec<u8> = (0..100_000).map(|_| noise.next() as u8).collect();
        let mut packets = 0;
        assert_eq!(Format::of(&bytes), Format::Hdlc, "seed {seed}");
        Format::Hdlc.visit(&bytes, |_, item| {
            packets += usize::from(matches!(item, Item::Message(Message::Log(_))));
        });
        assert_eq!(packets, 0, "seed {seed}");
    }
}

#[test]
fn a_log_without_frames_loses_little_to_a_wrong_length() {
    let Some(folder) = recordings() else { return };
    for log in logs(&folder) {
        let (mut packets, mut begins) = (vec![], vec![]);
        let bytes = std::fs::read(&log).unwrap();
        Format::Hdlc.visit(&bytes, |_, item| {
            if let Item::Message(Message::Log(packet)) = item {
                begins.push(packets.len());
                let mut body = vec![];
                packet.write(false, &mut body);
                packets.extend_from_slice(&body[4..]);
            }
        });
        let read = |bytes: &[u8]| {
            let (mut read, mut skipped) = (0, 0);
            Format::Dlf.visit(bytes, |_, item| match item {
                Item::Message(Message::Log(_)) => read += 1,
                Item::Skipped(bytes) => skipped += bytes,
                other => panic!("{}: {other:?}", log.display()),
            });
            (read, skipped)
        };
        let name = log.display();
        assert_eq!(read(&packets), (begins.len(), 0), "{name}");
        if begins.len() < 20 {
            continue;
        }
        let mut broken = packets.clone();
        broken[begins[3]] ^= 1;
        assert_eq!(Format::of(&broken), Format::Dlf, "{name}");
        let (left, skipped) = read(&broken);
        assert!(left + 1 >= begins.len() && skipped > 0, "{name}: {left} of {}", begins.len());
        assert_eq!(Format::of(&packets[100..]), Format::Dlf, "{name}");
        let lost = begins.iter().filter(|begin| **begin < 100).count();
        let (left, skipped) = read(&packets[100..]);
        assert!(left + lost + 2 >= begins.len(), "{name} without its begin: {left} of {}", begins.len());
        assert!(begins.contains(&(100 + skipped)), "{name}: what is skipped ends where a packet begins");
    }
}
