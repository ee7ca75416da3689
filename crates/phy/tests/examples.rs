//! The example decoder reads a recording, and reports an error for a recording that it cannot read.

#[allow(dead_code, reason = "its main is that of a program")]
#[path = "../examples/decode_sigmf.rs"]
mod decode_sigmf;

use std::fs;
use std::path::Path;

use airpace_phy::{
    Bandwidth, CarrierId, Cell, Conditions, CyclicPrefix, Dci, PhichDuration, PhichResource, Ports, PrbSet,
    RadioReport, Rnti, Slot, Station, Streams, Time,
};

const META: &str =
    r#"{ "global": { "core:datatype": "ci16_le", "core:sample_rate": 1920000 }, "captures": [] }"#;

/// Writes 200 ms of a cell that grants one user 4 PRBs per subframe.
fn record(folder: &Path) {
    let cell = Cell {
        pci: 12,
        bandwidth: Bandwidth::from_prbs(6).expect("a bandwidth of LTE"),
        ports: Ports::One,
        cp: CyclicPrefix::Normal,
        phich_duration: PhichDuration::Normal,
        phich_resource: PhichResource::One,
    };
    let conditions = Conditions::perfect(1.92e6);
    let mut station =
        Station::new(cell, 128, 0.02, conditions, 0, &Streams::new(1)).expect("the FFT is large enough");
    let mut samples = Vec::new();
    for subframe in 0..200 {
        let (slot, time) = (Slot::subframe_of_lte(subframe), Time::from_millis(subframe));
        let mut report = RadioReport::new(CarrierId(0), slot, time);
        let prbs = PrbSet::run(1, 4);
        report.dcis.push(Dci { rnti: Rnti(99), prbs, mcs: [Some(3), None], ..Dci::default() });
        station.send(&report, &mut samples);
    }
    let parts = samples.iter().flat_map(|sample| [sample.re, sample.im]);
    let bytes: Vec<u8> = parts.flat_map(|part| ((part * 32_767.0) as i16).to_le_bytes()).collect();
    fs::write(folder.join("cell.sigmf-data"), bytes).expect("the samples");
    fs::write(folder.join("cell.sigmf-meta"), META).expect("the description");
}

#[test]
fn the_example_reads_the_grants_of_a_recording() {
    let folder = tempfile::tempdir().expect("a folder");
    record(folder.path());
    let mut out = Vec::new();
    let count = decode_sigmf::decode(&folder.path().join("cell.sigmf-meta"), &mut out).expect("a recording");
    let text = String::from_utf8(out).expect("text");
    assert!(text.starts_with("cell 12 of 6 PRBs\n"), "the cell comes first: {text}");
    let grants =
        text.lines().filter(|line| line.contains("RNTI 99 format ") && line.contains("PRBs 1+4")).count();
    assert!(grants > 150, "{grants} of 200 grants are read");
    assert!(count >= grants as u64);
}

#[test]
fn the_example_names_what_it_cannot_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let meta = folder.path().join("other.sigmf-meta");
    let refused = || decode_sigmf::decode(&meta, &mut Vec::new()).expect_err("not a recording").to_string();
    assert!(refused().contains("other.sigmf-meta: No such file"), "{}", refused());
    for (text, says) in [
        ("{", "EOF while parsing"),
        ("{}", "core:datatype is ``, not ci8, ci16_le or cf32_le"),
        (&META.replace("ci16_le", "rf32_le"), "core:datatype is `rf32_le`"),
        (&META.replace("core:sample_rate", "rate"), "core:sample_rate is missing"),
        (META, "other.sigmf-data: No such file"),
    ] {
        fs::write(&meta, text).expect("a description");
        assert!(refused().contains(says), "{text}: {}", refused());
    }
    fs::write(folder.path().join("other.sigmf-data"), vec![0; 400_000]).expect("samples of nothing");
    assert!(refused().contains("no message: stopped at "), "{}", refused());
}
