//! `airpace diag bandwidth`: bandwidth that was granted to the modem, determined in two ways, for users, programs,
//! controllers and the simulator.

use std::sync::atomic::{AtomicBool, Ordering};

use airpace_cc::biscay::bandwidth::{CellularBandwidth, Determination, Method, Sampling};
use airpace_cc::biscay::grants::BlockTable;
use airpace_core::tables::lte;
use airpace_core::{Direction, Rate};
use airpace_diag::bandwidth::Bandwidth;
use airpace_diag::grant::GrantReport;
use airpace_diag::grant::report::{Reports, Until};
use airpace_diag::source::Item;
use airpace_diag::{Format, Message, ModemOptions, Radio};
use airpace_modem::modem::{Door, Recorded, Replay, ReplayOptions, serve};
use airpace_radio::{RadioReport, Scope, line};
use serde_json::{Value, json};

use super::diag_made::{Log, recorded};
use super::{Shell, keys};

/// Log packet 0xB139, version 102: blocks of 50 PRBs with 16QAM, with these numbers of bytes, in consecutive subframes
/// from `from` on.
fn sent(from: u64, bytes: &[u16]) -> Vec<u8> {
    let mut payload = vec![102];
    payload.extend((7 | (bytes.len() as u16) << 9).to_le_bytes());
    payload.extend([0; 5]);
    for (subframe, bytes) in (from..).zip(bytes) {
        let mut record = vec![0; 68];
        record[..2].copy_from_slice(&((subframe % 10_240) as u16).to_le_bytes());
        record[4..8].copy_from_slice(&(50_u32 << 15).to_le_bytes());
        record[8..10].copy_from_slice(&bytes.to_le_bytes());
        record[20] = 2;
        payload.extend(record);
    }
    payload
}

/// Log packet 0xB067, version 1: bytes granted in the last 100 ms.
fn summary(bytes: u32) -> Vec<u8> {
    let mut payload = vec![1, 1, 0, 0, 11, 1, 20, 0, 100, 0, 0, 0, 0];
    payload.extend(bytes.to_le_bytes());
    payload.extend([0; 7]);
    payload
}

/// A log of one second with a block of 50 PRBs in every subframe: 1,239 bytes in the first half, 1,908 in the second.
fn log() -> Log {
    log_of(1)
}

/// Like [`log`] for some seconds; half of them have the small blocks.
fn log_of(seconds: u64) -> Log {
    let mut log = Log::default().packet(1, 0, 0xB067, &summary(0));
    for ten in 0..100 * seconds {
        let bytes = if ten < 50 * seconds { 1_239 } else { 1_908 };
        log = log.packet(1, 10 * ten + 9, 0xB139, &sent(10_200 + 10 * ten, &[bytes; 10]));
        if ten % 10 == 9 {
            log = log.packet(1, 10 * ten + 10, 0xB067, &summary(u32::from(bytes) * 100));
        }
    }
    log
}

#[test]
fn the_two_ways_stand_side_by_side() {
    let shell = Shell::new();
    shell.write_bytes("phone.qmdl", &log().0);
    let told = shell.run(&["diag", "bandwidth", "phone.qmdl"]).fine();
    for part in ["radio 1, up", "blocks", "granted", "most 15.264 Mbit/s"] {
        assert!(told.contains(part), "tells `{part}`: {told}");
    }
    let windows = shell.run(&["diag", "bandwidth", "phone.qmdl", "--json"]).json();
    assert_eq!(windows.len(), 11, "the last packet begins a window");
    assert_eq!(
        keys(&windows[0]),
        ["blocks_mbps", "carriers", "direction", "granted_mbps", "radio", "time_ms", "time_utc"]
    );
    for (at, window) in windows[..10].iter().enumerate() {
        let mbps = if at < 5 { 9.912 } else { 15.264 };
        assert_eq!(
            (&window["blocks_mbps"], &window["granted_mbps"]),
            (&json!(mbps), &json!(mbps)),
            "{window}"
        );
        assert_eq!((&window["time_ms"], &window["direction"]), (&json!(100 * at), &json!("up")));
        assert_eq!(window["carriers"][0]["prbs"], 5_000);
    }
    let table = shell.run(&["diag", "bandwidth", "phone.qmdl", "--csv"]).fine();
    let rows: Vec<&str> = table.lines().collect();
    assert_eq!(rows[0], "time_ms,time_utc,radio,direction,blocks_mbps,granted_mbps,prbs,grants");
    assert_eq!(rows[1], "0,2021-03-07T06:28:02.000000,1,up,9.912,9.912,5000,100");
    assert!(rows[2].starts_with("100,"), "no row is a part of another: {}", rows[2]);
    let table = shell.run(&["diag", "bandwidth", "phone.qmdl", "--csv", "--by-carrier"]).fine();
    let rows: Vec<&str> = table.lines().collect();
    assert_eq!(rows[0], "time_ms,time_utc,radio,direction,rat,carrier,blocks_mbps,prbs,grants");
    assert_eq!(rows[1], "0,2021-03-07T06:28:02.000000,1,up,lte,0,9.912,5000,100");
    let ttis = shell.run(&["diag", "bandwidth", "phone.qmdl", "--every-ms", "1", "--json"]).json();
    assert_eq!(ttis[499]["blocks_mbps"], 9.912, "a value for each TTI");
    assert_eq!(ttis[500]["blocks_mbps"], 15.264);
}

#[test]
fn a_kpi_trace_of_a_log_is_in_the_form_of_trace_kpi_and_the_simulator_runs_on_it() {
    let shell = Shell::new();
    shell.write_bytes("phone.qmdl", &log().0);
    shell.run(&["diag", "bandwidth", "phone.qmdl", "--kpi-trace", "phone.kpi.csv"]).fine();
    let values: String =
        (0..10).map(|at| format!("{},{}\n", 100 * at, if at < 5 { 9.912 } else { 15.264 })).collect();
    assert_eq!(shell.read("phone.kpi.csv"), format!("time_ms,bandwidth_mbps\n{values}1000,0\n"));
    shell
        .run(&[
            "diag",
            "bandwidth",
            "phone.qmdl",
            "--kpi-trace",
            "x.csv",
            "--by",
            "granted",
            "--every-ms",
            "500",
        ])
        .fine();
    assert_eq!(shell.read("x.csv"), "time_ms,bandwidth_mbps\n0,9.912\n500,15.264\n1000,0\n");

    simulate(&shell, "phone.kpi.csv");
    shell
        .run(&["diag", "bandwidth", "phone.qmdl", "--kpi-trace", "y.csv", "--direction", "down"])
        .refused(&["no grants down", "--direction"]);
    shell
        .run(&["diag", "bandwidth", "phone.qmdl", "--kpi-trace", "-"])
        .refused(&["give --reports and --kpi-trace files"]);
    shell.run(&["diag", "bandwidth", "phone.qmdl", "--direction", "up"]).refused(&["--kpi-trace"]);
}

/// Simulates BISCAY over a synthetic trace, with this KPI trace.
fn simulate(shell: &Shell, kpi: &str) {
    let chances: String = (1..=10_000).map(|ms| format!("{ms}\n")).collect();
    shell.write("link.up", &chances);
    let kpi = format!("trace.kpi={kpi}");
    let words = [
        "sim",
        "biscay-trace",
        "--scheme",
        "biscay",
        "--set",
        "trace=link.up",
        "--set",
        &kpi,
        "--set",
        "duration_s=4",
    ];
    let told = shell.run(&[&words[..], &["--json"]].concat()).fine();
    assert!(told.contains("biscay"), "{told}");
}

/// Compares, window by window, the bandwidth that BISCAY's controller computes from a log's reports with the series.
fn both_series(log: &[u8]) -> (Vec<Option<Rate>>, Vec<Rate>) {
    let rules = Determination {
        method: Method::Blocks { ttis: 100 },
        sampling: Sampling::Every(100),
        table: BlockTable::Lte(lte::McsTable::Qam64),
        overhead: 0.0,
    };
    let (mut series, mut reports) = (Bandwidth::new(100), Reports::new(Radio::FIRST));
    Format::Hdlc.visit(log, |_, item| {
        if let Item::Message(Message::Log(packet)) = item {
            series.push(&packet, |report| {
                if let GrantReport::Grant(grant) = report {
                    reports.push(grant);
                }
            });
        }
    });
    let mut controller = CellularBandwidth::new(Direction::Uplink, rules);
    let mut looks = vec![];
    for report in reports.take(Until::End) {
        assert!(controller.on_report(&report), "it is the phone's own");
        if report.slot.subframe() % 100 == 99 {
            looks.push(controller.get());
        }
    }
    let points = series.finish();
    (looks, points.iter().filter_map(|point| point.blocks).collect())
}

#[test]
fn controllers_read_the_same_bandwidth_from_the_reports() {
    let (looks, series) = both_series(&log().0);
    let expected = [9_912_000, 15_264_000].map(Rate::from_bps);
    let seen: Vec<Rate> = looks.into_iter().flatten().collect();
    // The controller's windows start with frames, those of the series with the log. The step therefore lies within one
    // window.
    assert_eq!((seen.first(), seen.last()), (expected.first(), expected.last()));
    assert_eq!((series.first(), series.get(9)), (expected.first(), expected.last()));

    let shell = Shell::new();
    shell.write_bytes("phone.qmdl", &log().0);
    shell.run(&["diag", "bandwidth", "phone.qmdl", "--reports", "reports.jsonl"]).fine();
    let text = shell.read("reports.jsonl");
    let reports: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(reports.len(), 1_000);
    let subframes: Vec<u64> =
        reports.iter().map(|report| report["subframe_index"].as_u64().unwrap()).collect();
    assert!(
        subframes.windows(2).all(|pair| pair[1] == pair[0] + 1),
        "frame numbers wrap in the log, but not in the series"
    );
    let report = &reports[0]["reports"][0];
    assert_eq!(
        (&report["scope"], &report["idle_prbs"]),
        (&json!("own"), &Value::Null),
        "other users may have the remaining PRBs"
    );
    let dci = &report["dcis"][0];
    assert_eq!((&dci["tbs"], &dci["mcs"]), (&json!([9_912, 0]), &json!([12, null])));
    assert_eq!(dci["prb"], json!([[0, 49]]));
    let read: Vec<RadioReport> = text.lines().flat_map(|line| line::from_line(line).unwrap()).collect();
    assert!(read.len() == 1_000 && read.iter().all(|report| report.scope == Scope::Own));
}

#[test]
fn a_modem_that_is_listened_to_gives_the_same_windows() {
    let mut packets = vec![];
    Format::Hdlc.visit(&log_of(4).0, |_, item| {
        if let Item::Message(Message::Log(packet)) = item {
            packets.push(Recorded::from(&packet));
        }
    });
    let mut replay = Replay::new(packets, ReplayOptions { keeps_time: true, ..ReplayOptions::default() });
    let mut door = Door::listen("127.0.0.1:0").unwrap();
    let Door::Tcp { listener, .. } = &door else { unreachable!("a TCP port was opened") };
    let address = listener.local_addr().unwrap().to_string();
    let is_over = AtomicBool::new(false);
    let windows = std::thread::scope(|scope| {
        scope.spawn(|| {
            serve(&mut door, ModemOptions::default(), false, || replay.say(), &is_over, |_| {}).unwrap();
        });
        let words = ["diag", "bandwidth", "--tcp", &address, "--for", "7s", "--json", "--hold", "100ms"];
        let done = Shell::new().run(&words);
        is_over.store(true, Ordering::Relaxed);
        done.json()
    });
    let of = |mbps: f64| windows.iter().filter(|window| window["blocks_mbps"] == mbps).count();
    // Packets before the modem's subscription are lost. Windows at this point, and where the block size changes, may be
    // partial.
    assert!(of(9.912) >= 5 && of(15.264) >= 18, "{windows:?}");
    assert!(windows.len() <= 42, "no window comes twice: {}", windows.len());
}

#[test]
fn recorded_logs_become_series_and_a_run_of_the_simulator() {
    let shell = Shell::new();
    for log in recorded() {
        let name = log.to_str().unwrap();
        let done = shell.run(&["diag", "bandwidth", name, "--json"]);
        if done.out.is_empty() {
            done.found_nothing(&["no grants"]);
            continue;
        }
        let windows = done.json();
        let bits = |way: &str, by: &str| -> f64 {
            let of = windows.iter().filter(|window| window["direction"] == way);
            of.filter_map(|window| window[by].as_f64()).sum::<f64>() * 1e5
        };
        if name.ends_with("lte_pixel5_2023_a.qmdl") {
            let [blocks, granted] = ["blocks_mbps", "granted_mbps"].map(|by| bits("up", by).round());
            assert_eq!((blocks, granted), (2_480.0, 2_480.0), "two blocks of 93 and 217 bytes");
        }
        if name.ends_with("lte_pixel3_a.mi2log") {
            shell.run(&["diag", "bandwidth", name, "--kpi-trace", "pixel.kpi.csv"]).fine();
            simulate(&shell, "pixel.kpi.csv");
        }
    }
}
