use std::fs;
use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use airpace_core::{Bytes, DeviceId, Direction};
use airpace_event::Fate;
use airpace_sim::Scenario;
use airpace_tables::connection::{Connection, End, Protocol};
use airpace_tables::read::Words;
use airpace_tables::{ROWS_PER_GROUP, TABLES};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type, UInt16Type, UInt32Type};
use arrow_array::{Array, RecordBatch};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use proptest::prelude::*;

use super::*;
use crate::metrics::Delays;

/// Scenario with two devices behind a wire, and with one expectation.
const STORY: &str = r#"
name = "story"
about = "Two devices"
duration_s = 60
schemes = ["reno"]

[[device]]
label = "phone"
[[device]]

[[flow]]
rtt_ms = 40

[[expect]]
say = "reno moves data"
scheme = "reno"
metric = "throughput_mbps"
at_least = 5
"#;

fn setup(out: &Path) -> Setup {
    let scenario = Scenario::load(STORY, "story.toml", &[]).expect("the story is a scenario");
    Setup {
        out: out.to_owned(),
        choice: Choice { argument: "story.toml".to_owned(), set: vec![], scenario },
        seed: 7,
        command: "airpace emulate story.toml -- curl server".to_owned(),
        host: Host::default(),
    }
}

fn end(address: &str, port: u16) -> End {
    let address: IpAddr = address.parse().expect("an address");
    End { address, port: Some(port).filter(|port| *port > 0) }
}

fn connection(protocol: Protocol, source: End, destination: End) -> Connection {
    Connection { protocol, source, destination }
}

/// A download of the first device.
fn download() -> Connection {
    connection(Protocol::Tcp, end("100.64.0.1", 5_201), end("100.68.0.1", 40_312))
}

/// A packet that entered at `at`, was queued for `waited` on a path of 20 ms, and was handed over 0.25 ms late.
fn departure(connection: Connection, at: Time, waited: Duration) -> Departure {
    let propagation_delay = Duration::from_millis(20);
    let released = at + propagation_delay + waited;
    Departure {
        device: DeviceId(0),
        direction: Direction::Downlink,
        connection,
        bytes: Bytes(1_250),
        entered: at,
        released,
        handed: Some(released + Duration::from_micros(250)),
        propagation_delay,
        fate: Fate::Delivered,
        duplicate: false,
        marked: false,
    }
}

fn dropped(departure: Departure, fate: Fate) -> Departure {
    Departure { handed: None, fate, ..departure }
}

fn capacity(at: Time, device: u16, direction: Direction, bytes: u64) -> Event<'static> {
    let (span, device) = (Duration::from_millis(100), DeviceId(device));
    Event::Capacity(airpace_event::Capacity { time: at, span, device, direction, bytes: Bytes(bytes) })
}

/// The folder of a run of two seconds with these departures. The first device has a downlink capacity of 2 Mbit/s.
fn run(out: &Path, departures: &[Departure]) -> Finished {
    let mut run = EmulatedRun::create(&setup(out)).unwrap();
    for step in 0..20 {
        run.record(capacity(Time::from_millis(step * 100), 0, Direction::Downlink, 25_000));
    }
    departures.iter().for_each(|departure| run.depart(departure));
    let finished = run.finish(Time::from_secs(2), Emulation { fit: true, ..Emulation::default() }).unwrap();
    finished.folder.write_manifest(&finished.manifest).unwrap();
    finished
}

fn rows(root: &Path) -> RecordBatch {
    let path = root.join("departures/scenario=story/scheme=program/seed=7/part.parquet");
    let reader = ParquetRecordBatchReaderBuilder::try_new(fs::File::open(path).unwrap()).unwrap();
    reader.build().unwrap().next().expect("rows").unwrap()
}

#[test]
fn a_departure_is_a_row_with_all_that_is_known_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let first = departure(download(), Time::from_millis(100), Duration::from_micros(4_500));
    let ping = connection(Protocol::Icmpv6, end("fd00::68:1", 0), end("fd00::64:1", 0));
    let ping = Departure {
        device: DeviceId(1),
        direction: Direction::Uplink,
        marked: true,
        ..departure(ping, Time::from_millis(200), Duration::ZERO)
    };
    let refused = dropped(departure(download(), Time::from_millis(300), Duration::ZERO), Fate::QueueFull);
    run(folder.path(), &[first, ping, refused]);
    let rows = rows(folder.path());
    let schema = rows.schema();
    let columns = schema.fields().iter().map(|field| {
        let null = if field.is_nullable() { "?" } else { "" };
        let kind = field.data_type().to_string().replace("Dictionary(Int32, Utf8)", "word");
        format!("{} {kind}{null}", field.name())
    });
    assert_eq!(
        columns.collect::<Vec<_>>(),
        [
            "in_ms Float64",
            "release_ms Float64",
            "out_ms Float64?",
            "lateness_ms Float32?",
            "one_way_delay_ms Float32?",
            "queueing_delay_ms Float32?",
            "propagation_delay_ms Float32",
            "bytes UInt32",
            "device UInt16",
            "direction word",
            "connection word",
            "protocol word",
            "source word",
            "source_port UInt16?",
            "destination word",
            "destination_port UInt16?",
            "fate word",
            "duplicate Boolean",
            "marked Boolean",
        ]
    );
    let ms = |column: &str| rows[column].as_primitive::<Float64Type>();
    let span = |column: &str| rows[column].as_primitive::<Float32Type>();
    let port = |column: &str| rows[column].as_primitive::<UInt16Type>();
    let words = |column: &str| -> Vec<String> {
        let words = Words::of(&rows, column);
        (0..3).map(|row| words.word(row).to_owned()).collect()
    };
    assert_eq!(ms("in_ms").values()[..], [100.0, 200.0, 300.0]);
    assert_eq!(ms("release_ms").values()[..], [124.5, 220.0, 320.0]);
    assert_eq!(ms("out_ms").value(0), 124.75);
    assert_eq!(span("lateness_ms").value(0), 0.25);
    assert_eq!(span("one_way_delay_ms").value(0), 24.75);
    assert_eq!(span("queueing_delay_ms").value(0), 4.5, "the emulator's lateness is no queue");
    assert_eq!(span("propagation_delay_ms").value(0), 20.0);
    for column in ["out_ms", "lateness_ms", "one_way_delay_ms", "queueing_delay_ms"] {
        assert!(rows[column].is_null(2) && rows[column].is_valid(1), "{column}: a drop has no such time");
    }
    assert_eq!(rows["bytes"].as_primitive::<UInt32Type>().value(0), 1_250);
    assert_eq!(rows["device"].as_primitive::<UInt16Type>().values()[..], [0, 1, 0]);
    assert_eq!(words("direction"), ["down", "up", "down"]);
    assert_eq!(words("protocol"), ["tcp", "icmpv6", "tcp"]);
    assert_eq!(words("source"), ["100.64.0.1", "fd00::68:1", "100.64.0.1"]);
    assert_eq!(words("destination"), ["100.68.0.1", "fd00::64:1", "100.68.0.1"]);
    assert_eq!(
        words("connection")[..2],
        [download().to_string(), "icmpv6 fd00::68:1 → fd00::64:1".to_owned()]
    );
    assert_eq!(words("fate"), ["delivered", "delivered", "queue_full"]);
    assert_eq!((port("source_port").value(0), port("destination_port").value(0)), (5_201, 40_312));
    assert!(port("source_port").is_null(1), "a ping has no port");
    assert_eq!(rows["marked"].as_boolean().true_count(), 1);
}

#[test]
fn a_connection_has_the_numbers_of_its_packets() {
    let folder = tempfile::tempdir().unwrap();
    // 1 Mbit/s for one second. Every tenth packet is dropped.
    let all = (0..100).map(|number| {
        let waited = if number % 10 == 0 { 30 } else { 5 };
        let packet =
            departure(download(), Time::from_millis(100 + 10 * number), Duration::from_millis(waited));
        if number % 10 == 1 { dropped(packet, Fate::WireLoss) } else { packet }
    });
    let departures: Vec<Departure> = all.collect();
    let finished = run(folder.path(), &departures);
    let summary = RunFolder::open(folder.path()).unwrap().summary().unwrap();
    assert_eq!(summary, finished.summary, "what was written is what is returned");
    let [run] = &summary.runs[..] else { panic!("{summary:?}") };
    assert_eq!(
        (run.scenario.as_str(), run.scheme.as_str(), run.seed, run.duration_s),
        ("story", SCHEME, 7, 2.0)
    );
    let [flow] = &run.flows[..] else { panic!("{:?}", run.flows) };
    assert_eq!(flow.flow, "tcp 100.64.0.1:5201 → 100.68.0.1:40312");
    assert_eq!(
        (flow.scheme.as_str(), flow.device, flow.direction, flow.greedy),
        (SCHEME, 0, Direction::Downlink, false)
    );
    let metrics = &flow.metrics;
    assert_eq!((metrics.packets, metrics.loss_rate), (100, Some(0.1)));
    // The active time lasts from the first packet at 100 ms to the arrival of the last packet at 1090 + 25.25 ms.
    assert_eq!(metrics.active_s, 1.01525);
    assert_eq!(metrics.throughput_mbps, 0.886_481, "90 packets of 10,000 bits");
    // Percentiles are at most 0.1 % above the exact value.
    let is_p50 =
        |delays: Delays, exact: f64| delays.p50.is_some_and(|p50| p50 >= exact && p50 <= exact * 1.001);
    let (one_way, queueing) = (metrics.one_way_delay_ms, metrics.queueing_delay_ms);
    assert!(is_p50(one_way, 25.25), "as the programs saw it, with the emulator's lateness: {one_way:?}");
    assert!(is_p50(queueing, 5.0), "as the network made it, without: {queueing:?}");
    assert_eq!(queueing.mean, Some(7.777_778), "ten packets waited 30 ms, eighty 5 ms");
    assert_eq!(metrics.jain, None, "nobody knows whether a program wants an equal share");
    let [link] = &run.links[..] else { panic!("{:?}", run.links) };
    assert_eq!((link.device, link.direction, link.connections), (0, Direction::Downlink, 1));
    assert_eq!(link.metrics.throughput_mbps, 0.45, "over both seconds");
    assert_eq!(link.metrics.utilization, Some(0.225), "of 2 Mbit/s");
}

#[test]
fn small_connections_are_added_up_and_no_packet_is_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let page = |port: u16| {
        let small = connection(Protocol::Tcp, end("fd00::64:1", 443), end("fd00::68:1", port));
        departure(small, Time::from_millis(u64::from(port)), Duration::from_millis(1))
    };
    let mut departures: Vec<Departure> = (1..=70).map(page).collect();
    departures.extend((100..110).map(|at| departure(download(), Time::from_millis(at), Duration::ZERO)));
    let run = run(folder.path(), &departures).summary.runs.remove(0);
    assert_eq!(run.flows.len(), MAX_FLOWS + 1);
    assert_eq!(run.flows[0].flow, download().to_string(), "the one with most bytes comes first");
    let others = run.flows.last().unwrap();
    assert_eq!(others.flow, "others (device 1, down)");
    assert_eq!(others.metrics.packets, 21);
    assert_eq!(run.links[0].connections, 71);
    assert_eq!(run.links[0].metrics.packets, 80);
}

#[test]
fn a_packet_that_nobody_got_before_the_end_is_in_no_number() {
    let folder = tempfile::tempdir().unwrap();
    let first = departure(download(), Time::from_millis(1), Duration::ZERO);
    let late = Departure { handed: None, ..departure(download(), Time::from_millis(1_990), Duration::ZERO) };
    let copy = Departure { duplicate: true, ..departure(download(), Time::from_millis(2), Duration::ZERO) };
    let run = run(folder.path(), &[first, copy, late]).summary.runs.remove(0);
    assert_eq!((run.flows[0].metrics.packets, run.flows[0].metrics.loss_rate), (1, Some(0.0)));
    assert_eq!(rows(folder.path()).num_rows(), 3, "the table has every row");
}

#[test]
fn a_run_without_a_packet_has_no_flow() {
    let folder = tempfile::tempdir().unwrap();
    let finished = run(folder.path(), &[]);
    let run = &finished.summary.runs[0];
    assert!(run.flows.is_empty());
    assert_eq!(run.links[0].metrics.packets, 0, "the link was there, and idle");
}

#[test]
fn a_scenario_s_expectations_of_schemes_get_no_verdict() {
    let folder = tempfile::tempdir().unwrap();
    let summary = run(folder.path(), &[departure(download(), Time::ZERO, Duration::ZERO)]).summary;
    assert!(summary.expectations.is_empty() && summary.all_expectations_met());
    let [expect] = &summary.not_judged[..] else { panic!("{summary:?}") };
    assert_eq!((expect.scheme.as_str(), expect.say.as_str()), ("reno", "reno moves data"));
}

#[test]
fn until_it_is_finished_the_folder_says_that_the_run_is_not_complete() {
    let folder = tempfile::tempdir().unwrap();
    let begun = EmulatedRun::create(&setup(folder.path())).unwrap();
    let manifest = || RunFolder::open(folder.path()).unwrap().manifest().unwrap();
    let section = manifest().emulation.expect("it is an emulated run");
    assert!(!manifest().complete && !section.fit);
    assert_eq!(section.unfit_because, ["The run did not come to its end."]);
    drop(begun);

    run(folder.path(), &[]);
    assert!(manifest().complete && manifest().emulation.unwrap().unfit_because.is_empty());
    assert_eq!(manifest().schemes, [SCHEME]);
    assert!(manifest().choices.is_empty(), "a program has no options that we know");
}

#[test]
fn a_second_run_replaces_what_the_first_wrote_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    run(folder.path(), &[departure(download(), Time::ZERO, Duration::ZERO)]);
    let stranger = folder.path().join("departures/scenario=story/notes.txt");
    fs::write(&stranger, "mine").unwrap();
    let refusal = EmulatedRun::create(&setup(folder.path())).err().expect("a stranger is in the way");
    assert!(refusal.to_string().contains("notes.txt"), "{refusal}");
    fs::remove_file(stranger).unwrap();
    EmulatedRun::create(&setup(folder.path())).unwrap();
    let left = RunFolder::open(folder.path()).unwrap();
    assert!(left.summary().is_err(), "the first run's numbers are gone");
    assert!(left.remove().unwrap(), "all that is there belongs to the run");
}

#[test]
fn a_manifest_that_says_nonsense_of_its_emulation_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    run(folder.path(), &[]);
    let path = folder.path().join("manifest.json");
    let sound: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    for (key, value) in [
        ("fit", serde_json::json!("perhaps")),
        ("programs", serde_json::json!([{"device": -1}])),
        ("audit", serde_json::json!({"packets_in": 0.5})),
        ("foreign", serde_json::json!(3)),
    ] {
        let mut bad = sound.clone();
        bad["emulation"][key] = value;
        fs::write(&path, bad.to_string()).unwrap();
        let error = RunFolder::open(folder.path()).unwrap_err().to_string();
        assert!(error.contains("manifest.json") && error.contains("line 1"), "{key}: {error}");
    }
    let mut simulated = sound;
    simulated.as_object_mut().unwrap().remove("emulation");
    fs::write(&path, simulated.to_string()).unwrap();
    assert_eq!(RunFolder::open(folder.path()).unwrap().manifest().unwrap().emulation, None);
}

#[test]
fn every_table_of_an_emulated_run_is_a_table() {
    let folder = tempfile::tempdir().unwrap();
    run(folder.path(), &[]);
    let is_table = |name: &&str| folder.path().join(name).is_dir();
    assert_eq!(
        TABLES.into_iter().filter(|name| is_table(name)).collect::<Vec<_>>(),
        ["prbs", "capacity", "departures"]
    );
}

#[test]
fn memory_does_not_grow_with_the_number_of_names() {
    let folder = tempfile::tempdir().unwrap();
    let one = |number: usize| {
        let client = End::new(std::net::Ipv6Addr::from_bits(number as u128).into(), 443);
        let departure = departure(download(), Time::from_micros(number as u64), Duration::ZERO);
        Departure { connection: Connection { source: client, ..download() }, ..departure }
    };
    let count = ROWS_PER_GROUP + 5;
    let departures: Vec<Departure> = (0..count).map(one).collect();
    let run = run(folder.path(), &departures).summary.runs.remove(0);
    let path = folder.path().join("departures/scenario=story/scheme=program/seed=7/part.parquet");
    let reader = ParquetRecordBatchReaderBuilder::try_new(fs::File::open(path).unwrap()).unwrap();
    assert_eq!(reader.metadata().num_row_groups(), 2);
    let second = reader.with_row_groups(vec![1]).build().unwrap().next().unwrap().unwrap();
    let words = second["source"].as_dictionary::<arrow_array::types::Int32Type>().values().len();
    assert_eq!(words, 5, "a row group has the names of its own rows only");
    let packets: u64 = run.flows.iter().map(|flow| flow.metrics.packets).sum();
    assert_eq!(packets, count as u64);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    /// For any departures, flows and links count the same packets, and no metric is impossible.
    #[test]
    fn flows_and_links_count_the_same(
        made in prop::collection::vec((0_u16..3, any::<bool>(), 0_u16..90, 20_u64..1_500, 0_u64..60_000, 0_u8..6), 0..300)
    ) {
        let folder = tempfile::tempdir().unwrap();
        let mut departures: Vec<Departure> = made.iter().map(|(device, is_up, port, bytes, waited_us, kind)| {
            let connection = connection(Protocol::Udp, end("fd00::1", 53), end("fd00::2", 1 + port));
            let made = Departure {
                device: DeviceId(*device),
                direction: if *is_up { Direction::Uplink } else { Direction::Downlink },
                bytes: Bytes(*bytes),
                ..departure(connection, Time::from_micros(37 * waited_us), Duration::from_micros(*waited_us))
            };
            match kind {
                0 => dropped(made, Fate::Aqm),
                1 => dropped(made, Fate::Delivered),
                2 => Departure { duplicate: true, ..made },
                _ => made,
            }
        }).collect();
        departures.sort_by_key(|departure| departure.released);
        let run = run(folder.path(), &departures).summary.runs.remove(0);
        let ended = |departure: &&Departure| !departure.duplicate && (departure.handed.is_some() || departure.fate != Fate::Delivered);
        for link in &run.links {
            let whose = (link.device, link.direction);
            let its = departures.iter().filter(|departure| (departure.device.0, departure.direction) == whose);
            prop_assert_eq!(link.metrics.packets, its.filter(ended).count() as u64);
            let of_flows = run.flows.iter().filter(|flow| (flow.device, flow.direction) == whose);
            prop_assert_eq!(link.metrics.packets, of_flows.map(|flow| flow.metrics.packets).sum::<u64>());
        }
        prop_assert_eq!(
            run.links.iter().map(|link| link.metrics.packets).sum::<u64>(),
            departures.iter().filter(ended).count() as u64
        );
        for metrics in run.flows.iter().map(|flow| &flow.metrics).chain(run.links.iter().map(|link| &link.metrics)) {
            prop_assert!(metrics.loss_rate.is_none_or(|rate| (0.0..=1.0).contains(&rate)));
            prop_assert!(metrics.utilization.is_none_or(|part| (0.0..=1.0).contains(&part)));
            prop_assert!(metrics.throughput_mbps >= 0.0);
            let (queueing, one_way) = (metrics.queueing_delay_ms.p95, metrics.one_way_delay_ms.p95);
            prop_assert!(queueing.zip(one_way).is_none_or(|(queueing, one_way)| queueing <= one_way));
        }
    }
}
