//! Compares `TraceLink` with logs of the original mm-link, exact to the millisecond and the byte.

use std::io::Read;
use std::sync::Arc;

use airpace_core::{Bytes, DeviceId, Direction, Ecn, FlowId, Packet, Time};
use airpace_path::link::Link;
use airpace_path::trace::{Trace, TraceConfig, TraceLink, mmlink};
use flate2::read::GzDecoder;

/// The content of a recorded file; `None` if recordings are not available.
fn data(path: &str) -> Option<Vec<u8>> {
    Some(std::fs::read(airpace_testing::recordings(path)?).expect("a recording"))
}

fn log(name: &str) -> Option<String> {
    let packed = data(&format!("golden_mmlink/TMobile-LTE-short_{name}.mmlink.log.gz"))?;
    let mut text = String::new();
    GzDecoder::new(&packed[..]).read_to_string(&mut text).expect("a gzip file of text");
    Some(text)
}

/// Compares a log with a `TraceLink` over the trace of the log. Returns the numbers of compared departures and drops.
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
fn what_our_link_did_is_written_line_by_line_as_mm_link_wrote_it() {
    for name in ["cubic", "sprout"] {
        let Some(text) = log(name) else { return };
        let golden = mmlink::Log::parse(&text).expect("a log of mm-link");
        let trace = Trace::parse(&data("traces/TMobile-LTE-short.down").expect("a trace"), None);
        let config = TraceConfig { buffer: golden.buffer.clone(), ..TraceConfig::default() };
        let mut link = TraceLink::new(Arc::new(trace.expect("a trace")), &config).expect("a link");
        let head: Vec<&str> = text.lines().take_while(|line| line.starts_with('#')).collect();
        let after =
            |key: &str| head.iter().find_map(|line| line.strip_prefix(key)).expect("a line of the head");
        let (trace, log) = after("# mahimahi mm-link (Uplink) [").split_once("] > ").expect("two files");
        let mut writer = mmlink::LogWriter::new(&mmlink::LogHeader {
            direction: Direction::Uplink,
            trace,
            log,
            command_line: after("# command line: "),
            config: after("# mahimahi config: "),
            link: &config,
            init_ms: after("# init timestamp: ").parse().expect("a number"),
            base_ms: golden.base_ms,
        })
        .expect("a log");
        link.watch();
        let at = |ms: u64| Time::from_millis(ms - golden.base_ms);
        for (number, arrival) in (0..).zip(&golden.arrivals) {
            let now = at(arrival.ms);
            let (flow, device, ecn) = (FlowId(0), DeviceId(0), Ecn::NotEct);
            // Packet sizes in the log include the header of the TUN device.
            let bytes = Bytes(arrival.bytes - 4);
            link.push(now, Packet { flow, device, number, bytes, sent: Time::ZERO, ecn });
        }
        link.lines(at(golden.end_ms)).for_each(|line| writer.write(line));
        let ours = writer.take();
        let differs = ours.lines().zip(text.lines()).position(|(ours, theirs)| ours != theirs);
        let shown = differs.map(|line| (line, ours.lines().nth(line), text.lines().nth(line)));
        assert_eq!(shown, None, "{name}");
        assert_eq!(ours.lines().count(), text.lines().count(), "{name}");
    }
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
