//! The example reads logs, and reports an error for files that are not logs.

#[allow(dead_code, reason = "its main is that of a program")]
#[path = "../examples/read_qmdl.rs"]
mod read_qmdl;

use airpace_diag::{Framing, frame};

/// A stream of master information blocks and a packet of an unknown code.
fn stream() -> Vec<u8> {
    let mut stream = Vec::new();
    for (number, code) in [0xB0C1_u16, 0xB0C1, 0xBFFF].into_iter().enumerate() {
        let payload = [2, 42, 0, 0x14, 0x05, 0, 0, number as u8, 0, 2, 10];
        let length = (12 + payload.len() as u16).to_le_bytes();
        let mut body = vec![0x10, 0, length[0], length[1], length[0], length[1]];
        body.extend(code.to_le_bytes());
        body.extend((4_u64 << 40 | number as u64).to_le_bytes());
        body.extend(payload);
        frame::encode(Framing::Hdlc, &body, &mut stream);
    }
    stream
}

fn run(bytes: &[u8], kpis: &[&str]) -> Result<(read_qmdl::Counts, String), String> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("phone.qmdl");
    std::fs::write(&path, bytes).expect("a log");
    let kpis: Vec<String> = kpis.iter().map(|kpi| (*kpi).to_owned()).collect();
    let mut out = Vec::new();
    let counts = read_qmdl::read(&path, &kpis, &mut out).map_err(|error| error.to_string())?;
    Ok((counts, String::from_utf8(out).expect("text")))
}

#[test]
fn the_example_names_every_packet() {
    let (counts, text) = run(&stream(), &[]).expect("a log");
    assert_eq!(counts, read_qmdl::Counts { packets: 3, read: 2, samples: 0, faults: 0 });
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].ends_with("0xB0C1 LTE RRC MIB, version 2: 6 fields"), "{text}");
    assert!(lines[2].ends_with("0xBFFF unknown: 0xBFFF: unknown code"), "{text}");
}

#[test]
fn the_example_prints_the_values_of_a_field() {
    let (counts, text) = run(&stream(), &["0xB0C1:physical_cell_id"]).expect("a log");
    assert_eq!((counts.packets, counts.samples), (3, 2));
    assert!(text.lines().all(|line| line.contains("0xB0C1:physical_cell_id 42")), "{text}");
}

#[test]
fn the_example_names_what_it_cannot_read() {
    let refused = |bytes: &[u8], kpis: &[&str]| run(bytes, kpis).expect_err("not a log");
    assert!(refused(b"a text, and no log\n", &[]).contains("phone.qmdl: no log packet, "));
    assert!(refused(&[], &[]).contains("phone.qmdl: no log packet, 0 damaged parts"));
    assert!(refused(&stream(), &["lte.rsrq_dbm"]).contains("lte.rsrq_dbm"));
    let missing = read_qmdl::read("no.qmdl".as_ref(), &[], &mut Vec::new()).expect_err("no file");
    assert!(missing.to_string().starts_with("no.qmdl: No such file"), "{missing}");
}
