//! An emulated run that was compared with virtual time: files, and presentation on the page.

use std::fs::{self, File};
use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use airpace_core::{Bytes, DeviceId, Direction, Time};
use airpace_event::Fate;
use airpace_run::Agreement;
use airpace_run::emulation::{EmulatedRun, Setup};
use airpace_run::manifest::Emulation;
use airpace_run::{Choice, Host, RunFolder};
use airpace_sim::Scenario;
use airpace_tables::agreement::{Compared, Real, Virtual};
use airpace_tables::connection::{Connection, End, Protocol};
use airpace_tables::departures::Departure;
use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::browser::Browser;
use super::common::Temporary;
use super::{WIDTHS, data_of, list};

const START: Time = Time::from_millis(1_500);

fn setup(out: &Path) -> Setup {
    let text = "name = \"wire\"\nduration_s = 9\nschemes = [\"reno\"]\n[[device]]\n[[device]]\n[[flow]]\nrtt_ms = 40\n";
    let scenario = Scenario::load(text, "wire.toml", &[]).unwrap();
    Setup {
        out: out.to_owned(),
        choice: Choice { argument: "wire.toml".to_owned(), set: vec![], scenario },
        seed: 1,
        command: "airpace emu agree wire.toml".to_owned(),
        host: Host::default(),
    }
}

/// A packet every 5 ms, to one device and from the other. Every hundredth packet is dropped.
fn packets() -> Vec<Compared> {
    let one = |number: u64| {
        let is_up = number % 2 == 1;
        let scheduled = START + Duration::from_millis(number * 5);
        let sent = scheduled + Duration::from_micros(number % 40);
        let at = |micros: u64| Some(sent + Duration::from_millis(20) + Duration::from_micros(micros));
        let fate = if number % 100 == 99 { Fate::QueueFull } else { Fate::Delivered };
        let is_delivered = fate == Fate::Delivered;
        Compared {
            device: DeviceId(u16::from(is_up)),
            direction: if is_up { Direction::Uplink } else { Direction::Downlink },
            bytes: Bytes(1_200),
            scheduled,
            sent: Some(sent),
            real: Real {
                entered: Some(sent + Duration::from_micros(8)),
                released: at(8).filter(|_| is_delivered),
                handed: at(30 + number % 17).filter(|_| is_delivered),
                received: at(25 + number % 17).filter(|_| is_delivered),
                fate: Some(fate),
            },
            as_sent: Some(Virtual { released: at(0).filter(|_| is_delivered), fate: Some(fate) }),
            as_scheduled: Virtual {
                released: Some(scheduled + Duration::from_millis(20)).filter(|_| is_delivered),
                fate: Some(fate),
            },
        }
    };
    (0..600).map(one).collect()
}

/// The folder of the run, with its comparison.
fn run(out: &Path, packets: &[Compared]) -> RunFolder {
    let mut run = EmulatedRun::create(&setup(out)).unwrap();
    let address: IpAddr = "100.64.0.1".parse().unwrap();
    let end = End { address, port: Some(54_321) };
    for packet in packets {
        run.depart(&Departure {
            device: packet.device,
            direction: packet.direction,
            connection: Connection { protocol: Protocol::Udp, source: end, destination: end },
            bytes: packet.bytes,
            entered: packet.real.entered.unwrap(),
            released: packet.real.released.or(packet.real.entered).unwrap(),
            handed: packet.real.handed,
            propagation_delay: Duration::from_millis(20),
            fate: packet.real.fate.unwrap(),
            duplicate: false,
            marked: false,
        });
    }
    let emulation = Emulation { fit: true, ..Emulation::default() };
    let finished = run.finish(Time::from_secs(6), emulation).unwrap();
    airpace_page::complete(&finished.folder, &finished.manifest).unwrap();
    let folder = finished.folder;
    folder.write("schedule.csv", b"ms,bytes,direction\n").unwrap();
    folder.write_agreement(&Agreement::of(packets, START, vec![]), packets).unwrap();
    folder
}

#[test]
fn a_comparison_is_a_table_and_numbers_that_the_next_run_replaces() {
    let temporary = Temporary::new("agreement");
    let packets = packets();
    let folder = run(&temporary.0, &packets);
    let agreement = folder.agreement().unwrap().expect("it was written");
    assert_eq!(agreement, Agreement::of(&packets, START, vec![]));
    assert!(agreement.agrees(), "{:?}", agreement.objections());

    let file = File::open(temporary.0.join("agreement.parquet")).unwrap();
    let rows =
        ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap().next().unwrap().unwrap();
    assert_eq!(rows.num_rows(), packets.len());
    let numbers = |column: &str| rows.column_by_name(column).expect("a column").as_primitive::<Float64Type>();
    let apart = |column: &str| numbers(column).iter().flatten().fold(0.0f64, |most, it| most.max(it.abs()));
    assert!((apart("apart_as_sent_ms") - agreement.as_sent.departures_ms.max.unwrap()).abs() < 1e-6);
    let scheduled = &agreement.as_scheduled;
    assert!((apart("apart_as_scheduled_ms") - scheduled.departures_ms.max.unwrap()).abs() < 1e-6);
    assert_eq!(numbers("received_ms").iter().flatten().count() as u64, agreement.delivered);

    let arrivals = airpace_run::emulation::departures::arrivals(&folder).unwrap();
    assert_eq!(arrivals.len(), packets.len());
    for (arrival, packet) in arrivals.iter().zip(&packets) {
        assert_eq!((Some(arrival.at), arrival.device), (packet.real.entered, packet.device));
        assert_eq!((arrival.direction, arrival.bytes), (packet.direction, packet.bytes));
    }

    EmulatedRun::create(&setup(&temporary.0)).unwrap();
    assert_eq!(folder.agreement().unwrap(), None, "what an earlier run left is gone");
    assert!(!temporary.0.join("agreement.parquet").exists() && !temporary.0.join("schedule.csv").exists());
}

#[test]
fn the_page_draws_real_time_beside_virtual_time() {
    let temporary = Temporary::new("page-agreement");
    let folder = run(&temporary.0, &packets());
    let page = fs::read_to_string(airpace_page::write(&temporary.0).unwrap()).unwrap();
    let data = &data_of(&page)["scenarios"][0]["agreement"];
    assert_eq!((data["agrees"].as_bool(), data["courses"].as_array().unwrap().len()), (Some(true), 2));
    assert_eq!(data["differences"][0][3], "0.041", "the largest, as sent");
    let Some(browser) = Browser::find(&temporary.0) else { return };
    for facts in browser.measure(&page, &WIDTHS, false) {
        let width = &facts["width"];
        assert_eq!(facts["overflow"], 0, "the page is wider than {width} pixels");
        for name in ["agreement-cdf", "agreement-departures"] {
            let id = format!("wire.{name}");
            let figures = list(&facts, "figures");
            let figure =
                figures.iter().find(|it| it["id"] == *id).unwrap_or_else(|| panic!("no {id}: {figures:?}"));
            assert_eq!((&figure["drawn"], &figure["fits"]), (&true.into(), &true.into()), "{id} at {width}");
            assert!(list(figure, "collisions").is_empty(), "{id} at {width}: {}", figure["collisions"]);
            assert!(list(figure, "outside").is_empty(), "{id} at {width}: {}", figure["outside"]);
        }
    }
    drop(folder);
}
