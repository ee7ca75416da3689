//! The two determinations of bandwidth, on made packets and on recorded logs.

mod recordings_folder;

use airpace_core::radio::Direction;
use airpace_core::{Bits, Rate};
use airpace_diag::bandwidth::{Bandwidth, Method, Point, kpi_trace};
use airpace_diag::source::Item;
use airpace_diag::{Format, LogCode, LogPacket, Message, Radio, Stamp};
use recordings_folder::{logs, recordings};

const BEGIN_NANOS: u64 = 1_299_133_682_000_000_000;

fn stamp(millis: u64) -> Stamp {
    Stamp::from_nanos(BEGIN_NANOS + millis * 1_000_000)
}

/// 0xB173, version 24: one block per record, as (subframe, PRBs, MCS, bytes, process, new-data indicator).
fn blocks(records: &[(u16, u8, u8, u16, u8, u8)]) -> Vec<u8> {
    let mut payload = vec![24, records.len() as u8, 0, 0];
    for &(subframe, prbs, mcs, bytes, harq, ndi) in records {
        let (frame, within) = (subframe / 10, subframe % 10);
        payload.extend((frame << 4 | within).to_le_bytes());
        payload.extend([prbs, 1, 1, 0, harq | ndi << 6 | 0x80, 0]);
        payload.extend(bytes.to_le_bytes());
        payload.extend([mcs, prbs, 2, 0]);
        payload.extend([0; 8 + 2]);
    }
    payload
}

/// 0xB067: bytes granted in the last hundred milliseconds.
fn summary(bytes: u32) -> Vec<u8> {
    let mut payload = vec![1, 1, 0, 0, 11, 1, 20, 0, 100, 0, 0, 0, 0];
    payload.extend(bytes.to_le_bytes());
    payload.extend([0; 7]);
    payload
}

fn packet(code: u16, millis: u64, payload: &[u8]) -> LogPacket<'_> {
    LogPacket { radio: Radio::FIRST, code: LogCode(code), stamp: stamp(millis), payload }
}

#[test]
fn blocks_add_up_over_ttis_and_one_sent_again_is_no_new_bandwidth() {
    let mut bandwidth = Bandwidth::new(10);
    // 50 PRBs with MCS 9 are 7,992 bits; the last of them is sent again eight subframes later.
    bandwidth.push(&packet(0xB173, 1, &blocks(&[(0, 50, 9, 999, 0, 1)])), |_| {});
    let rest =
        [(1, 50, 9, 999, 1, 1), (2, 50, 9, 999, 2, 1), (10, 50, 29, 999, 2, 1), (12, 50, 9, 999, 4, 1)];
    bandwidth.push(&packet(0xB173, 60, &blocks(&rest)), |_| {});
    let points = bandwidth.finish();
    let bits: Vec<u64> = points.iter().map(|point| point.blocks.unwrap().as_bps() / 100).collect();
    assert_eq!(bits, [3 * 7_992, 7_992, 0, 0, 0, 0]);
    assert_eq!((points[0].carriers[0].prbs, points[0].carriers[0].grants), (150, 3));
    assert_eq!(
        (points[1].carriers[0].prbs, points[1].carriers[0].grants),
        (100, 2),
        "PRBs were taken for it"
    );
    assert!(points.iter().all(|point| point.granted.is_none()), "nothing told of granted bytes");
    assert_eq!(points[3].begin, stamp(31).max(points[3].begin));
}

#[test]
fn sums_are_of_the_time_before_they_are_told() {
    let mut bandwidth = Bandwidth::new(100);
    for (millis, bytes) in [(1_000, 1_250), (1_150, 2_500), (1_250, 5_000)] {
        bandwidth.push(&packet(0xB067, millis, &summary(bytes)), |_| {});
    }
    let points = bandwidth.finish();
    let rates: Vec<Rate> = points.iter().map(|point| point.granted.unwrap()).collect();
    // What is before the first packet is in no window; then half of 0.2 Mbit/s, half of that and 0.4, half of 0.4.
    assert_eq!(rates, [100_000, 300_000, 200_000].map(Rate::from_bps));
    assert!(points.iter().all(|point| point.direction == Direction::Uplink && point.blocks.is_none()));
}

#[test]
fn a_silent_log_has_no_windows_and_a_trace_is_its_longest_stretch() {
    let mut bandwidth = Bandwidth::new(100);
    bandwidth.push(&packet(0xB067, 0, &summary(0)), |_| {});
    bandwidth.push(&packet(0xB067, 100, &summary(100)), |_| {});
    for at in 0..5 {
        bandwidth.push(&packet(0xB067, 60_000 + 100 * at, &summary(1_250)), |_| {});
    }
    let points = bandwidth.finish();
    let windows: Vec<u64> = points.iter().map(|point| point.window).collect();
    assert_eq!(windows, [0, 1, 600, 601, 602, 603, 604], "the first packets', then those after a minute");
    let trace = kpi_trace(&points, Radio::FIRST, Direction::Uplink, Method::Granted, 100);
    let bps: Vec<(u64, u64)> = trace.iter().map(|(at, rate)| (*at, rate.as_bps())).collect();
    assert_eq!(bps, [(0, 100_000), (100, 100_000), (200, 100_000), (300, 100_000), (400, 0)]);
    assert!(kpi_trace(&points, Radio::FIRST, Direction::Uplink, Method::Blocks, 100).is_empty());
    assert!(kpi_trace(&points, Radio(2), Direction::Uplink, Method::Granted, 100).is_empty());
}

#[test]
fn windows_come_while_a_log_is_listened_to_and_are_the_same() {
    let mut packets = vec![];
    for at in 0..200u64 {
        packets.push((50 * at, summary((at * 37 % 1_000) as u32)));
    }
    let run = |takes: bool| {
        let (mut bandwidth, mut points) = (Bandwidth::new(100), vec![]);
        for (millis, payload) in &packets {
            bandwidth.push(&packet(0xB067, *millis, payload), |_| {});
            if takes {
                points.extend(bandwidth.take());
            }
        }
        let before = points.len();
        points.extend(bandwidth.finish());
        (before, points)
    };
    let ((some, listened), (_, whole)) = (run(true), run(false));
    assert!(some > 40, "{some} windows came before the end");
    assert_eq!(listened, whole);
}

/// What a recorded log says each way, added up.
fn added_up(points: &[Point], direction: Direction, method: Method, every_ms: u64) -> Bits {
    let rates =
        points.iter().filter(|point| point.direction == direction).filter_map(|point| point.by(method));
    Bits(rates.map(Rate::as_bps).sum::<u64>() * every_ms / 1_000)
}

#[test]
fn the_two_ways_agree_on_recorded_logs() {
    let Some(folder) = recordings() else { return };
    let mut compared = 0;
    for path in logs(&folder) {
        let name = path.file_name().unwrap().to_str().unwrap();
        let mut bandwidth = Bandwidth::new(100);
        Format::Hdlc.visit(&std::fs::read(&path).unwrap(), |_, item| {
            if let Item::Message(Message::Log(packet)) = item {
                bandwidth.push(&packet, |_| {});
            }
        });
        let points = bandwidth.finish();
        for direction in [Direction::Downlink, Direction::Uplink] {
            let [blocks, granted] =
                [Method::Blocks, Method::Granted].map(|method| added_up(&points, direction, method, 100).0);
            println!("{name} {direction:?}: {blocks} bits by blocks, {granted} by granted bytes");
            // Here both were logged all the time; blocks that failed and those of the last packets make the difference.
            let both = [
                ("lte_att_iphone_2016_a.mi2log", Direction::Downlink),
                ("lte_att_iphone_2016_a.mi2log", Direction::Uplink),
                ("lte_pixel3_a.mi2log", Direction::Downlink),
                ("lte_pixel5_2023_a.qmdl", Direction::Uplink),
            ];
            if both.contains(&(name, direction)) {
                compared += 1;
                let ratio = blocks as f64 / granted as f64;
                assert!((1.0..1.05).contains(&ratio), "{name} {direction:?}: {blocks} and {granted}");
            }
        }
    }
    assert_eq!(compared, 4);
}
