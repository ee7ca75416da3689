use std::fs::{self, File};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use airpace_core::{Bits, Bytes, DeviceId, Direction, Ecn, FlowId, Packet, Rate, Time};
use airpace_event::{Acked, Arrived, Capacity, Fate, Inspected, Lost, Owner, Subframe};
use airpace_radio::{
    BitLayer, CarrierId, Dci, DciFormat, Numerology, PrbSet, RadioReport, Rnti, Scope, Slot,
};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef, RecordBatch, UInt8Array};
use arrow_schema::DataType;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::file::metadata::{ColumnChunkMetaDataBuilder, ParquetMetaDataWriter};

use super::*;
use crate::facts::FlowFacts;

/// A folder that is removed when the test ends.
struct Temporary(PathBuf);

impl Temporary {
    fn new(name: &str) -> Temporary {
        let path = std::env::temp_dir().join(format!("airpace-tables-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        Temporary(path)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn facts() -> RunFacts {
    RunFacts {
        scenario: "story".to_owned(),
        scheme: "pbe@paper:floor=off".to_owned(),
        seed: 7,
        duration: Time::from_secs(10),
        flows: vec![flow(0, "phone"), flow(1, "größer, weiter")],
    }
}

fn flow(index: u16, name: &str) -> FlowFacts {
    FlowFacts {
        flow: FlowId(index),
        name: name.to_owned(),
        device: DeviceId(0),
        direction: Direction::Downlink,
        primary: None,
        scheme: "pbe".to_owned(),
        greedy: true,
        active: Vec::new(),
        size: None,
        transfers_due: 0,
    }
}

/// Every fifth packet belongs to the second flow.
fn flow_of(number: u64) -> FlowId {
    FlowId(u16::from(number % 5 == 4))
}

fn packet(number: u64) -> Packet {
    Packet {
        flow: flow_of(number),
        device: DeviceId(0),
        number,
        bytes: Bytes(1500),
        sent: Time::from_millis(number),
        ecn: if number == 7 { Ecn::Ce } else { Ecn::Ect },
    }
}

/// Writes every kind of event `packets` times.
fn write(root: &Path, packets: u64) -> Result<(), FileError> {
    write_with(root, packets, false)
}

/// Writes every kind of event `packets` times. `has_nr`: `prbs` has the columns of carriers of NR.
fn write_with(root: &Path, packets: u64, has_nr: bool) -> Result<(), FileError> {
    let inspected = ["btlbw_mbps".to_owned(), "ct_mbps".to_owned()];
    let mut tables = Tables::create(root, &facts(), FurtherColumns { inspected: &inspected, has_nr })?;
    for number in 0..packets {
        let time = Time::from_millis(number + 25);
        let fate = if number % 10 == 3 { Fate::QueueFull } else { Fate::Delivered };
        let propagation_delay = Duration::from_millis(20);
        tables.record(&Event::Sent(packet(number)));
        tables.record(&Event::Arrived(Arrived {
            time,
            packet: packet(number),
            fate,
            duplicate: false,
            propagation_delay,
        }));
        tables.record(&Event::Acked(Acked {
            time,
            flow: flow_of(number),
            largest: number,
            acked: Bytes(1500),
            inflight: Bytes(30_000),
            rtt: (number % 2 == 0).then_some(Duration::from_millis(45)),
            delivery_rate: Some(Rate::from_mbps(12.0)),
        }));
        tables.record(&Event::Lost(Lost { time, flow: flow_of(number), packets: 1, bytes: Bytes(1500) }));
        tables.record(&Event::Inspected(&Inspected {
            time,
            flow: flow_of(number),
            state: if number < 5 { "Startup" } else { "Wireless" },
            state_changed: number == 5,
            cwnd: Bytes(90_000),
            pacing_rate: (number > 0).then(|| Rate::from_mbps(60.0)),
            inflight: Bytes(30_000),
            values: &[("ct_mbps", if number == 0 { f64::NAN } else { 61.5 })],
        }));
        let scattered = PrbSet::run(0, 4).union(PrbSet::run(8, 4));
        let grants = [
            Dci {
                rnti: Rnti(100),
                prbs: scattered,
                mcs: [Some(20), Some(20)],
                tbs: [Bits(5000), Bits(3000)],
                retransmission: [true, false],
                ..Dci::default()
            },
            Dci {
                rnti: Rnti(200),
                prbs: PrbSet::run(4, 4),
                mcs: [Some(29), None],
                retransmission: [true, false],
                ..Dci::default()
            },
            Dci { rnti: Rnti(100), direction: Direction::Uplink, prbs: PrbSet::run(40, 8), ..Dci::default() },
        ];
        let report = RadioReport {
            carrier: CarrierId(1),
            slot: Slot::subframe_of_lte(number),
            time,
            scope: Scope::Everyone,
            carrier_prbs: Some(50),
            cfi: Some(1),
            symbols: None,
            dcis: grants.to_vec(),
            own: None,
            layer: BitLayer::Physical,
        };
        let owners = [Owner::Device(DeviceId(0)), Owner::Background(3), Owner::Device(DeviceId(0))];
        tables.record(&Event::Subframe(&Subframe { report: &report, owners: &owners }));
        let span = Duration::from_millis(1);
        let (device, direction, bytes) = (DeviceId(0), Direction::Downlink, Bytes(7500));
        tables.record(&Event::Capacity(Capacity { time, span, device, direction, bytes }));
    }
    tables.finish()
}

fn read(root: &Path, table: &str) -> Vec<RecordBatch> {
    let path = partition(root, table, facts().key()).join("part.parquet");
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap()).unwrap();
    reader.with_batch_size(1 << 20).build().unwrap().map(Result::unwrap).collect()
}

#[test]
fn what_is_written_is_read_back() {
    let folder = Temporary::new("round-trip");
    write(&folder.0, 20).unwrap();

    let packets = &read(&folder.0, "packets")[0];
    assert_eq!(packets.num_rows(), 20);
    let fate = packets["fate"].as_dictionary::<arrow_array::types::Int32Type>();
    let fate = fate.downcast_dict::<arrow_array::StringArray>().unwrap();
    assert_eq!(fate.into_iter().filter(|fate| *fate == Some("queue_full")).count(), 2);
    assert_eq!(packets["marked"].as_boolean().true_count(), 1, "an ECN mark is recorded");
    assert!(packets["one_way_delay_ms"].is_null(3), "a drop has no delay");
    assert!(packets["arrived_ms"].is_null(3));
    assert_eq!(packets["dropped_ms"].as_primitive::<Float64Type>().value(3), 28.0);
    assert_eq!(packets["one_way_delay_ms"].as_primitive::<Float32Type>().value(4), 25.0);
    assert_eq!(packets["queueing_delay_ms"].as_primitive::<Float32Type>().value(4), 5.0);
    assert_eq!(packets["sent_ms"].as_primitive::<Float64Type>().value(4), 4.0);

    for table in ["packets", "acks", "losses", "controller"] {
        let rows = &read(&folder.0, table)[0];
        let labels = rows["flow_label"].as_dictionary::<arrow_array::types::Int32Type>();
        let labels = labels.downcast_dict::<arrow_array::StringArray>().unwrap();
        let flows = rows["flow"].as_primitive::<UInt16Type>();
        for (row, label) in labels.into_iter().enumerate() {
            let named = ["phone", "größer, weiter"][usize::from(flows.value(row))];
            assert_eq!(label, Some(named), "row {row} of {table}");
        }
        assert_eq!(flows.values().iter().filter(|flow| **flow == 1).count(), 4, "both flows are in {table}");
    }

    let acks = &read(&folder.0, "acks")[0];
    assert!(acks["rtt_ms"].is_null(1) && !acks["rtt_ms"].is_null(2));
    assert_eq!(acks["delivery_rate_mbps"].as_primitive::<Float32Type>().value(0), 12.0);
    assert_eq!(read(&folder.0, "losses")[0].num_rows(), 20);

    let controller = &read(&folder.0, "controller")[0];
    assert!(controller["pacing_rate_mbps"].is_null(0), "unpaced is null, not zero");
    assert!(controller["ct_mbps"].is_null(0), "NaN is null");
    assert_eq!(controller["ct_mbps"].as_primitive::<Float64Type>().value(1), 61.5);
    assert_eq!(controller["btlbw_mbps"].null_count(), 20, "another scheme's value is null");

    let prbs = &read(&folder.0, "prbs")[0];
    assert_eq!(prbs.num_rows(), 80, "one grant has two runs, every other grant has one");
    assert_eq!(prbs["first_prb"].as_primitive::<UInt16Type>().values()[..4], [0, 8, 4, 40]);
    let direction = prbs["direction"].as_dictionary::<arrow_array::types::Int32Type>();
    let direction = direction.downcast_dict::<arrow_array::StringArray>().unwrap();
    let direction: Vec<_> = direction.into_iter().take(4).flatten().collect();
    assert_eq!(direction, ["down", "down", "down", "up"]);
    assert_eq!(prbs["tbs_bits"].as_primitive::<UInt32Type>().value(0), 8000);
    assert!(prbs["tbs_bits"].is_null(1), "a grant's bits are written once, so that sums are right");
    assert_eq!(prbs["new_bits"].as_primitive::<UInt32Type>().value(0), 3000, "the second block is new");
    assert!(prbs["retransmission"].as_boolean().value(0) && prbs["new_bits"].is_null(1));

    let capacity = &read(&folder.0, "capacity")[0];
    assert_eq!(capacity["capacity_mbps"].as_primitive::<Float32Type>().value(0), 60.0);
}

/// Slot 7 of a carrier of NR with two slots per subframe, and a subframe of a carrier of LTE.
fn record_both_technologies(tables: &mut Tables) {
    let of_nr = |direction, prbs, offset_slots| Dci {
        direction,
        format: DciFormat::Nr11,
        prbs,
        mcs: [Some(27), None],
        tbs: [Bits(1_277_992), Bits::ZERO],
        symbols: Some(13),
        offset_slots,
        ..Dci::default()
    };
    let slot = Slot { numerology: Numerology::KHZ_30, index: 7 };
    let mut nr = RadioReport::new(CarrierId(1), slot, Time::from_micros(3_500));
    nr.symbols = Some(13);
    let scattered = PrbSet::run(0, 16).union(PrbSet::run(257, 16));
    nr.dcis = vec![
        of_nr(Direction::Downlink, scattered, Some(0)),
        of_nr(Direction::Uplink, PrbSet::run(0, 273), Some(2)),
    ];
    let mut lte = RadioReport::new(CarrierId(0), Slot::subframe_of_lte(3), Time::from_millis(3));
    lte.dcis = vec![Dci { prbs: PrbSet::run(0, 4), ..Dci::default() }];
    for report in [&lte, &nr] {
        let owners = vec![Owner::Device(DeviceId(0)); report.dcis.len()];
        tables.record(&Event::Subframe(&Subframe { report, owners: &owners }));
    }
}

#[test]
fn prbs_of_nr_name_their_slot() {
    let folder = Temporary::new("slots");
    let further = FurtherColumns { inspected: &[], has_nr: true };
    let mut tables = Tables::create(&folder.0, &facts(), further).unwrap();
    record_both_technologies(&mut tables);
    tables.finish().unwrap();
    let memory = Memory::of(vec!["prbs"]);
    let mut tables = Tables::in_memory(&memory, &facts(), further);
    record_both_technologies(&mut tables);
    tables.finish().unwrap();

    let rows = &read(&folder.0, "prbs")[0];
    let numbers = |name: &str| rows[name].as_primitive::<UInt8Type>().iter().collect::<Vec<_>>();
    let slots: Vec<_> = rows["slot"].as_primitive::<UInt64Type>().iter().collect();
    assert_eq!(slots, [None, Some(7), Some(7), Some(7)], "the downlink grant of NR has two rows");
    assert_eq!(numbers("numerology"), [None, Some(1), Some(1), Some(1)]);
    assert_eq!(numbers("symbols"), [None, Some(13), Some(13), Some(13)]);
    assert_eq!(numbers("offset_slots"), [None, Some(0), Some(0), Some(2)]);
    let tbs_bits: Vec<_> = rows["tbs_bits"].as_primitive::<UInt32Type>().iter().collect();
    assert_eq!(tbs_bits, [Some(0), Some(1_277_992), None, Some(1_277_992)]);
    assert_eq!(rows["n_prb"].as_primitive::<UInt16Type>().values()[..], [4, 16, 16, 273]);

    let files = read::read_table(&folder.0, "prbs", &[facts().key()]).unwrap();
    assert_eq!(files, memory.table("prbs", &[facts().key()]).unwrap());
    assert!(files.schema.field_with_name("slot").is_ok());
}

#[test]
fn tables_without_carriers_of_nr_have_no_columns_of_nr() {
    let (lte, nr) = (Temporary::new("without-nr"), Temporary::new("with-nr"));
    write(&lte.0, 20).unwrap();
    write_with(&nr.0, 20, true).unwrap();
    for table in TABLES.into_iter().filter(|table| *table != "departures") {
        let names = |root: &Path| -> Vec<String> {
            read(root, table)[0].schema().fields().iter().map(|field| field.name().clone()).collect()
        };
        let of_nr: &[&str] = match table {
            "prbs" => &["slot", "numerology", "symbols", "offset_slots"],
            _ => &[],
        };
        let own: Vec<String> = fields(table).iter().map(|field| field.name().clone()).collect();
        assert!(names(&lte.0).starts_with(&own), "{table}");
        assert_eq!(names(&nr.0)[names(&lte.0).len()..], *of_nr, "{table}");
        if table != "controller" {
            assert_eq!(names(&lte.0), own, "{table}");
        }
    }
}

#[test]
fn prbs_of_an_older_version_are_read_as_wide_as_those_of_this_one() {
    let folder = Temporary::new("narrow");
    write(&folder.0, 20).unwrap();
    let path = partition(&folder.0, "prbs", facts().key()).join("part.parquet");
    let wide = read(&folder.0, "prbs").remove(0);
    let narrow = |name: &str| -> ArrayRef {
        let column = wide[name].as_primitive::<UInt16Type>();
        let narrow = |prb| u8::try_from(prb).unwrap();
        Arc::new(UInt8Array::from_unary(column, narrow))
    };
    let schema = wide.schema();
    let columns = schema.fields().iter().map(|field| match field.name().as_str() {
        name @ ("first_prb" | "n_prb") => {
            (field.as_ref().clone().with_data_type(DataType::UInt8), narrow(name))
        }
        name => (field.as_ref().clone(), wide[name].clone()),
    });
    let (fields, columns) = columns.unzip();
    let mut file = ParquetFile::new(airpace_files::Whole::create(&path).unwrap(), fields).unwrap();
    file.write_group(columns).unwrap();
    file.finish().unwrap();

    let part = read::Part::file("prbs", path);
    let mut first = vec![];
    part.for_each(&["first_prb", "mcs"], |batch| {
        first.extend_from_slice(batch["first_prb"].as_primitive::<UInt16Type>().values());
        Ok(())
    })
    .unwrap();
    assert_eq!(first, wide["first_prb"].as_primitive::<UInt16Type>().values()[..]);
}

#[test]
fn row_groups_bound_the_memory_and_lose_no_row() {
    let folder = Temporary::new("groups");
    let rows = ROWS_PER_GROUP as u64 + 10;
    write(&folder.0, rows).unwrap();
    let path = partition(&folder.0, "packets", facts().key()).join("part.parquet");
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap()).unwrap();
    assert_eq!(reader.metadata().num_row_groups(), 2);
    assert_eq!(reader.metadata().file_metadata().num_rows() as u64, rows);
}

#[test]
fn the_same_events_give_the_same_bytes() {
    let (one, two) = (Temporary::new("same-1"), Temporary::new("same-2"));
    write(&one.0, 500).unwrap();
    write(&two.0, 500).unwrap();
    for table in TABLES.into_iter().filter(|table| *table != "departures") {
        let bytes =
            |root: &Path| fs::read(partition(root, table, facts().key()).join("part.parquet")).unwrap();
        assert!(bytes(&one.0) == bytes(&two.0), "{table} differs");
    }
}

#[test]
fn an_interrupted_table_does_not_pass_for_a_whole_one() {
    let folder = Temporary::new("interrupted");
    let tables = Tables::create(&folder.0, &facts(), FurtherColumns::default()).unwrap();
    drop(tables);
    let packets = partition(&folder.0, "packets", facts().key());
    assert_eq!(fs::read_dir(packets).unwrap().count(), 0);
}

#[test]
fn a_value_without_a_column_is_named() {
    let folder = Temporary::new("new-column");
    let mut tables = Tables::create(&folder.0, &facts(), FurtherColumns::default()).unwrap();
    tables.record(&Event::Inspected(&Inspected {
        time: Time::from_secs(1),
        flow: FlowId(1),
        state: "Startup",
        state_changed: true,
        cwnd: Bytes(3000),
        pacing_rate: None,
        inflight: Bytes(0),
        values: &[("surprise_ms", 1.0)],
    }));
    let error = tables.finish().unwrap_err().to_string();
    assert!(error.contains("flow 1 names `surprise_ms`"), "{error}");
}

/// Appends a footer to the table of packets, with changed metadata of each column.
fn say_otherwise(path: &Path, change: impl Fn(ColumnChunkMetaDataBuilder) -> ColumnChunkMetaDataBuilder) {
    let sound = ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap()).unwrap();
    let mut metadata = (**sound.metadata()).clone().into_builder();
    for group in metadata.take_row_groups() {
        let columns = group.columns().iter();
        let columns = columns.map(|column| change(column.clone().into_builder()).build().unwrap()).collect();
        metadata = metadata.add_row_group(group.into_builder().set_column_metadata(columns).build().unwrap());
    }
    let mut bytes = fs::read(path).unwrap();
    ParquetMetaDataWriter::new(&mut bytes, &metadata.build()).finish().unwrap();
    fs::write(path, bytes).unwrap();
}

#[test]
fn columns_that_do_not_lie_in_their_file_are_refused() {
    type Change = fn(ColumnChunkMetaDataBuilder) -> ColumnChunkMetaDataBuilder;
    let changes: [(&str, Change); 4] = [
        ("before it", |column| column.set_dictionary_page_offset(None).set_data_page_offset(-1)),
        ("a dictionary before it", |column| column.set_dictionary_page_offset(Some(i64::MIN))),
        ("less than nothing", |column| column.set_total_compressed_size(-1)),
        ("behind it", |column| column.set_total_compressed_size(1 << 40)),
    ];
    for (what, change) in changes {
        let folder = Temporary::new("places");
        write(&folder.0, 20).unwrap();
        let path = partition(&folder.0, "packets", facts().key()).join("part.parquet");
        let part = read::Part::file("packets", path.clone());
        say_otherwise(&path, |column| column);
        part.for_each(&["bytes"], |_| Ok(())).unwrap_or_else(|error| panic!("unchanged: {error}"));
        say_otherwise(&path, change);
        let error = part.for_each(&["bytes"], |_| Ok(())).unwrap_err().to_string();
        assert!(error.contains("lies at byte") && error.contains("part.parquet"), "{what}: {error}");
    }
}

#[test]
fn folders_are_partitions_that_readers_decode() {
    let path = partition(Path::new("RUN"), "packets", facts().key());
    assert_eq!(path, Path::new("RUN/packets/scenario=story/scheme=pbe%40paper%3Afloor%3Doff/seed=7"));
}

#[test]
fn names_of_the_table_of_controllers_are_taken() {
    for name in ["time_ms", "flow_label", "cwnd_bytes", "scenario", "scheme", "seed"] {
        assert!(is_controller_column(name), "{name}");
    }
    assert!(!is_controller_column("rate_mbps"));
}
