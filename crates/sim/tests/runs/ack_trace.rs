//! ACK traces: a trace contains every input of a controller, and the recording of a trace does not affect the run.

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};

use airpace_cc::ack_trace::{Entry, Header, Reader, Told};
use airpace_core::Bytes;
use airpace_event::Discard;
use airpace_sim::{RunStats, Scenario, SchemeSpec, builtin};

/// Returns the ACK trace of a flow of a built-in scenario, and the run's counters.
fn traced(name: &str, scheme: &str, flow: usize) -> (Vec<Entry>, RunStats) {
    let (name, text) = builtin().iter().find(|(known, _)| *known == name).expect("a built-in scenario");
    let sets = [("duration_s".to_owned(), "4".to_owned())];
    let scenario = Scenario::load(text, name, &sets).unwrap();
    let scheme = SchemeSpec::parse(scheme).unwrap();
    let entries = Arc::new(Mutex::new(vec![]));
    let kept = Arc::clone(&entries);
    let tape = Box::new(move |entry: &Entry| kept.lock().unwrap().push(entry.clone()));
    let prepared = scenario.prepare().unwrap();
    let mut go_on = |_| ControlFlow::Continue(());
    let stats = airpace_sim::run_traced(&prepared, &scheme, 1, flow, tape, &mut go_on).unwrap();
    let plain = airpace_sim::run_prepared(&prepared, &scheme, 1, &mut Discard, &mut go_on).unwrap();
    assert_eq!(stats.flows, plain.flows, "a trace changes nothing");
    let entries = std::mem::take(&mut *entries.lock().unwrap());
    (entries, stats)
}

#[test]
fn a_trace_has_every_packet_and_every_report() {
    let (entries, stats) = traced("biscay-uplink", "biscay", 0);
    let count = |is: fn(&Told) -> bool| entries.iter().filter(|entry| is(&entry.told)).count() as u64;
    assert_eq!(count(|told| matches!(told, Told::Sent { .. })), stats.flows[0].sent);
    let delivered = entries.iter().map(|entry| match &entry.told {
        Told::Acked(acked) => acked.acked,
        _ => Bytes::ZERO,
    });
    let last = entries.iter().rev().find_map(|entry| match &entry.told {
        Told::Acked(acked) => Some(acked.delivered),
        _ => None,
    });
    assert_eq!(Some(delivered.sum()), last, "every acknowledged byte is on a line");
    let reports = count(|told| matches!(told, Told::Radio { .. }));
    assert!((3_900..=4_001).contains(&reports), "a report in each of 4,000 ms, not {reports}");
    let states: Vec<&str> =
        entries.iter().filter_map(|entry| Some(entry.answer.as_ref()?.state.as_str())).collect();
    assert!(states.contains(&"Startup") && states.contains(&"Biscay"), "{states:?}");
}

#[test]
fn what_is_written_is_read() {
    for (scenario, scheme) in
        [("biscay-uplink", "biscay"), ("stationary-busy", "pbe"), ("stationary-busy", "cubic")]
    {
        let (entries, _) = traced(scenario, scheme, 0);
        let header = Header { scheme: scheme.to_owned(), mss: Bytes(1500) };
        let mut text = format!("{header}\n");
        entries.iter().for_each(|entry| text += &format!("{entry}\n"));
        let (read_header, read) = Reader::new(&text).unwrap();
        assert_eq!(read_header, header);
        let read: Vec<Entry> = read.map(|entry| entry.unwrap_or_else(|error| panic!("{error}"))).collect();
        assert_eq!(read, entries, "{scenario} under {scheme}");
    }
}
