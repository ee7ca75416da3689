//! Our link compared with logs of the real mm-link, to the millisecond and the byte.

use std::io::Read;
use std::sync::Arc;

use airpace_path::trace::{Trace, mmlink};
use flate2::read::GzDecoder;

/// A file of the recordings.
fn data(path: &str) -> Option<Vec<u8>> {
    Some(std::fs::read(airpace_testing::recordings(path)?).expect("a recording"))
}

fn log(name: &str) -> Option<String> {
    let packed = data(&format!("golden_mmlink/TMobile-LTE-short_{name}.mmlink.log.gz"))?;
    let mut text = String::new();
    GzDecoder::new(&packed[..]).read_to_string(&mut text).expect("a gzip file of text");
    Some(text)
}

/// Compares a log with our link over the trace that it was made with. Returns how many departures and drops were
/// compared.
fn agreement(name: &str) -> Option<(u64, u64)> {
    let log = mmlink::Log::parse(&log(name)?).expect("a log of mm-link");
    let trace = Trace::parse(&data("traces/TMobile-LTE-short.down")?, None).expect("a trace");
    let comparison = log.compare(Arc::new(trace)).expect("a queue that we have");
    let told: Vec<String> = comparison.differences.iter().take(10).map(ToString::to_string).collect();
    assert!(told.is_empty(), "{} differences; the first:\n{}", comparison.differences.len(), told.join("\n"));
    Some((comparison.departures, comparison.drops))
}

#[test]
fn a_kernel_cubic_flow_crosses_our_link_as_it_crossed_mm_link() {
    let Some(compared) = agreement("cubic") else { return };
    assert_eq!(compared, (28_241, 61));
}

#[test]
fn sprout_with_its_varying_sizes_crosses_our_link_as_it_crossed_mm_link() {
    let Some(compared) = agreement("sprout") else { return };
    assert_eq!(compared, (19_956, 19));
}

#[test]
fn a_wrong_trace_is_told_by_name_and_line() {
    let Some(text) = log("cubic") else { return };
    let log = mmlink::Log::parse(&text).expect("a log of mm-link");
    let trace = Trace::from_times_ms((0..60_000).collect()).expect("a trace");
    let comparison = log.compare(Arc::new(trace)).expect("a queue that we have");
    assert!(comparison.differences.len() > 1000, "a trace of 12 Mbit/s should differ from the log's");
    let first = comparison.differences.iter().find(|it| matches!(it, mmlink::Difference::Expected { .. }));
    assert!(first.unwrap().to_string().starts_with("line "));
}
