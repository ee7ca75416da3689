//! Tests of the two bandwidth methods, with synthetic packets and with recorded logs.

use crate::recordings_folder;

use std::collections::BTreeMap;

use airpace_core::rng::Streams;
use airpace_core::tables::lte;
use airpace_core::{Bits, Direction, Rate, Time};
use airpace_diag::bandwidth::{Bandwidth, Method, Point, kpi_trace};
use airpace_diag::compose::{ComposeOptions, Composer};
use airpace_diag::grant::report::FIRST_OF_NR;
use airpace_diag::grant::report::{Reports, Until};
use airpace_diag::grant::{GrantReport, Grants, Rat};
use airpace_diag::source::Item;
use airpace_diag::{Format, LogCode, LogPacket, Message, Radio, Stamp};
use airpace_radio::{BitLayer, CarrierId, Dci, DciFormat, OwnRadio, PrbSet, RadioReport, Rnti, Scope, Slot};
use proptest::prelude::*;
use recordings_folder::{logs, recordings};

const BEGIN_NANOS: u64 = 1_299_133_682_000_000_000;

fn stamp(millis: u64) -> Stamp {
    Stamp::from_nanos(BEGIN_NANOS + millis * 1_000_000)
}

/// Payload of 0xB173, version 24, with one block per record. `records` contains (subframe, PRBs, MCS, bytes, process,
/// new-data indicator).
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

/// Payload of 0xB067: number of bytes granted in the last hundred milliseconds.
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
    // 50 PRBs with MCS 9 are 7,992 bits. The last block is retransmitted eight subframes later.
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
fn sums_cover_the_time_before_their_report() {
    let mut bandwidth = Bandwidth::new(100);
    for (millis, bytes) in [(1_000, 1_250), (1_150, 2_500), (1_250, 5_000)] {
        bandwidth.push(&packet(0xB067, millis, &summary(bytes)), |_| {});
    }
    let points = bandwidth.finish();
    let rates: Vec<Rate> = points.iter().map(|point| point.granted.unwrap()).collect();
    // Bytes from before the first packet are in no window. The rates of the windows are then half of 0.2 Mbit/s, half
    // of the sum of 0.2 and 0.4 Mbit/s, and half of 0.4 Mbit/s.
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
fn no_stamp_makes_windows_of_empty_time() {
    const DAY: u64 = 86_400_000;
    for gap in [11_000, DAY, 365 * DAY, 50 * 365 * DAY] {
        let mut bandwidth = Bandwidth::new(1);
        bandwidth.push(&packet(0xB067, 0, &summary(100)), |_| {});
        bandwidth.push(&packet(0xB067, gap, &summary(100)), |_| {});
        let points = bandwidth.take().len() + bandwidth.finish().len();
        assert!(points <= 3, "{points} windows of a gap of {gap} ms");
    }
    let mut bandwidth = Bandwidth::new(100);
    bandwidth.push(&packet(0xB067, 0, &summary(100)), |_| {});
    for raw in [u64::MAX, 26_000_000_000_000 << 16, 1 << 63] {
        bandwidth.push(&LogPacket { stamp: Stamp(raw), ..packet(0xB067, 0, &summary(100)) }, |_| {});
    }
    bandwidth.push(&packet(0xB067, 200, &summary(100)), |_| {});
    assert_eq!(bandwidth.misstamped(), 3, "the year 3000 is nobody's time");
    assert_eq!(bandwidth.finish().len(), 3, "what comes after it is where it was");
}

#[test]
fn a_packet_without_a_time_makes_no_windows() {
    let grants = summary(100);
    let without_time = LogPacket { stamp: Stamp(0), ..packet(0xB067, 0, &grants) };
    for place in 0..3 {
        let mut bandwidth = Bandwidth::new(1);
        for at in 0..3 {
            if at == place {
                bandwidth.push(&without_time, |_| {});
            }
            bandwidth.push(&packet(0xB067, at * 100, &summary(100)), |_| {});
        }
        assert_eq!((bandwidth.unstamped(), bandwidth.begin()), (1, Some(stamp(0))), "at {place}");
        assert_eq!(bandwidth.finish().len(), 201, "the windows of the packets with a time");
    }
    // The modem counts from 1980 until its clock is set.
    for first in [1, 1 << 16, 1 << 30] {
        let mut bandwidth = Bandwidth::new(1);
        bandwidth.push(&LogPacket { stamp: Stamp(first), ..packet(0xB067, 0, &summary(100)) }, |_| {});
        bandwidth.push(&packet(0xB067, 0, &summary(100)), |_| {});
        assert!(bandwidth.finish().len() <= 2, "the years between have no windows");
    }
}

proptest! {
    /// Stamps of an arbitrary log: in any order, years apart, or zero.
    #[test]
    fn windows_are_as_many_as_packets_bear_out(stamps in prop::collection::vec(
        prop_oneof![Just(0), any::<u64>(), (0u64..1 << 32).prop_map(|at| at << 16), (0u64..60_000).prop_map(|at| stamp(at).0)],
        1..40,
    )) {
        let mut bandwidth = Bandwidth::new(100);
        let mut windows = 0;
        for raw in &stamps {
            bandwidth.push(&LogPacket { stamp: Stamp(*raw), ..packet(0xB067, 0, &summary(100)) }, |_| {});
            windows += bandwidth.take().len();
        }
        windows += bandwidth.finish().len();
        // Ten seconds without packets are a gap.
        prop_assert!(windows <= 101 * stamps.len(), "{windows} of {} packets", stamps.len());
    }
}

/// Payload of 0xB0C2, version 2: a cell with `prbs` PRBs.
fn cell(prbs: u8) -> Vec<u8> {
    let mut payload = vec![2, 0, 0, 0, 0, 0, 0, prbs, prbs];
    payload.extend([0; 16]);
    payload
}

#[test]
fn reports_wait_for_the_bandwidth_of_their_carrier() {
    let (mut grants, mut reports) = (Grants::new(), Reports::new(Radio::FIRST));
    let mut given_after = |code, millis, payload: &[u8]| {
        grants.push(&packet(code, millis, payload), |report| {
            if let GrantReport::Grant(grant) = report {
                reports.push(&grant);
            }
        });
        reports.take(Until::Behind(0))
    };
    assert!(given_after(0xB173, 5, &blocks(&[(0, 25, 9, 500, 0, 1), (3, 25, 9, 500, 1, 1)])).is_empty());
    assert!(given_after(0xB0C2, 6, &cell(50)).is_empty());
    let given = given_after(0xB173, 17, &blocks(&[(15, 25, 9, 500, 0, 0)]));
    assert_eq!(given.len(), 16, "those that waited, too");
    assert!(given.iter().all(|report| report.carrier_prbs == Some(50)), "{given:?}");
    assert!(given.windows(2).all(|pair| pair[0].time <= pair[1].time), "{given:?}");
}

/// Payload of 0xB883, version 2.8: an uplink block of 20 PRBs in the first slot of each subframe.
fn nr_blocks(subframes: &[u64], bytes: u64) -> Vec<u8> {
    let mut payload = vec![0; 16];
    payload[..4].copy_from_slice(&[8, 0, 2, 0]);
    payload[15] = subframes.len() as u8;
    for subframe in subframes {
        let (frame, slot) = ((subframe / 10 % 1024) as u16, 2 * (subframe % 10) as u8);
        payload.extend([slot, 1]);
        payload.extend(frame.to_le_bytes());
        payload.extend([1, 0, 0, 0]);
        payload.extend([1 << 7, 0, 0, 0]);
        let first = (subframe % 16) << 9 | 10 << 13 | 20 << 32 | bytes << 43;
        payload.extend(first.to_le_bytes());
        payload.extend([0; 32]);
    }
    payload
}

const NR_BYTES: u64 = 1_500;

/// A log of a phone with EN-DC, over 2,000 subframes. NR has a grant in each of them.
#[derive(Clone, Copy, Debug, Default)]
struct EnDc {
    /// Number of frames by which NR's frames are ahead of LTE's.
    frames_ahead: u64,
    /// The first subframe in which LTE has a grant.
    lte_from: u64,
    /// Number of frames by which NR's frames jump in subframe 1,000, at a change of the NR cell.
    jump: u64,
}

/// Reports and bits that a log gives.
struct FromLog {
    reports: Vec<RadioReport>,
    left_out: u64,
    bits: BTreeMap<Rat, u64>,
    lte_bits: u64,
}

impl EnDc {
    fn read(self) -> FromLog {
        let (mut bandwidth, mut reports) = (Bandwidth::new(100), Reports::new(Radio::FIRST));
        let mut composer = Composer::new(ComposeOptions::default());
        let (mut packets, mut lte_bits) = (vec![], 0);
        for index in self.lte_from..2_000 {
            let report = report(index, 0, Direction::Uplink, 10, 12, index / 8 % 2 == 0);
            lte_bits += report.dcis[0].bits().0;
            composer.push(&report, |composed| {
                packets.push((composed.at.as_millis(), composed.code.0, composed.payload))
            });
        }
        composer
            .finish(|composed| packets.push((composed.at.as_millis(), composed.code.0, composed.payload)));
        for batch in 0..100 {
            let frames = self.frames_ahead + if batch >= 50 { self.jump } else { 0 };
            let subframes: Vec<u64> = (20 * batch..20 * (batch + 1)).map(|at| at + 10 * frames).collect();
            packets.push((20 * (batch + 1), 0xB883, nr_blocks(&subframes, NR_BYTES)));
        }
        packets.sort_by_key(|(at, ..)| *at);
        bandwidth.push(&packet(0xB000, 0, &[]), |_| {});
        let mut given = vec![];
        for (at, code, payload) in &packets {
            bandwidth.push(&packet(*code, *at, payload), |report| {
                if let GrantReport::Grant(grant) = report {
                    reports.push(grant);
                }
            });
            given.extend(reports.take(Until::Behind(100)));
        }
        given.extend(reports.take(Until::End));
        let mut bits: BTreeMap<Rat, u64> = BTreeMap::new();
        for point in bandwidth.finish() {
            for own in point.carriers {
                *bits.entry(own.rat).or_default() += own.blocks.as_bps() / 10;
            }
        }
        FromLog { reports: given, left_out: reports.left_out(), bits, lte_bits }
    }
}

impl FromLog {
    fn of(&self, carrier: CarrierId) -> impl Iterator<Item = &RadioReport> {
        self.reports.iter().filter(move |report| report.carrier == carrier)
    }

    /// Number of grants of LTE's and of NR's carrier.
    fn grants(&self) -> (usize, usize) {
        let count = |carrier| self.of(carrier).map(|report| report.dcis.len()).sum();
        (count(CarrierId(0)), count(FIRST_OF_NR))
    }

    /// Asserts that reports of the same subframe have almost the same time.
    fn assert_times_agree(&self, log: EnDc) {
        let lte: BTreeMap<u64, Time> =
            self.of(CarrierId(0)).map(|report| (report.slot.subframe(), report.time)).collect();
        let mut compared = 0;
        for report in self.of(FIRST_OF_NR) {
            let Some(time) = lte.get(&report.slot.subframe()) else { continue };
            let apart_ms = report.time.as_millis().abs_diff(time.as_millis());
            assert!(apart_ms <= 25, "{log:?}: {apart_ms} ms");
            compared += 1;
        }
        assert!(compared > 900, "{log:?}: {compared} subframes have reports of both");
    }
}

/// With EN-DC, a phone has grants of LTE and of NR at once. Their carriers have the same number, and their subframes may
/// have the same number too.
#[test]
fn grants_of_lte_and_nr_in_one_subframe_are_two_grants() {
    // Frames of NR have any number in a subframe of LTE, such as the number of LTE's frame.
    for frames_ahead in [0, 1, 517] {
        let log = EnDc { frames_ahead, ..EnDc::default() };
        let read = log.read();
        // The last blocks of LTE are transmitted after the last window.
        assert!(read.bits[&Rat::Lte] > read.lte_bits * 99 / 100, "{log:?}: {:?}", read.bits);
        assert_eq!(read.bits[&Rat::Nr], 2_000 * 8 * NR_BYTES, "{log:?}");
        assert_eq!((read.left_out, read.grants()), (0, (2_000, 2_000)), "{log:?}");
        assert!(read.of(FIRST_OF_NR).all(|it| it.carrier_prbs.is_none()), "no packet has NR's bandwidth");
        assert!(read.of(FIRST_OF_NR).flat_map(|it| &it.dcis).all(|dci| dci.format == DciFormat::Nr01));
        let in_order = |pair: &[RadioReport]| pair[0].slot.subframe() <= pair[1].slot.subframe();
        assert!(read.reports.windows(2).all(in_order), "{log:?}");
        read.assert_times_agree(log);
    }
}

#[test]
fn a_log_that_starts_with_nr_numbers_lte_after_it() {
    for frames_ahead in [0, 1, 517] {
        let log = EnDc { frames_ahead, lte_from: 500, ..EnDc::default() };
        let read = log.read();
        assert_eq!((read.left_out, read.grants()), (0, (1_500, 2_000)), "{log:?}");
        read.assert_times_agree(log);
    }
}

/// A jump of the frame numbers that no packet announces looks like wrong or late records at first: the frame clock accepts
/// higher numbers with the fourth record, and lower numbers after 100 ms.
#[test]
fn a_change_of_the_nr_cell_alone_loses_no_grant_of_lte() {
    for jump in [1, 100, 310, 900] {
        let log = EnDc { frames_ahead: 3, jump, ..EnDc::default() };
        let read = log.read();
        let (lte, nr) = read.grants();
        assert_eq!((lte, nr as u64 + read.left_out), (2_000, 2_000), "{log:?}");
        let bound = if jump > 512 { 120 } else { 3 };
        assert!(read.left_out <= bound, "{log:?}: {} grants of NR are left out", read.left_out);
        for carrier in [CarrierId(0), FIRST_OF_NR] {
            let of_carrier: Vec<&RadioReport> = read.of(carrier).collect();
            let in_order =
                |pair: &[&RadioReport]| pair[0].slot < pair[1].slot && pair[0].time <= pair[1].time;
            assert!(of_carrier.windows(2).all(in_order), "{log:?}: {carrier:?}");
        }
    }
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

/// A report of a subframe on a carrier with 100 PRBs, with one new block on `prbs` of these PRBs.
fn report(index: u64, carrier: u8, direction: Direction, prbs: u16, mcs: u8, ndi: bool) -> RadioReport {
    let bits = match direction {
        Direction::Downlink => lte::McsTable::Qam64.tbs(mcs, prbs, 1),
        Direction::Uplink => lte::uplink_mcs(mcs).and_then(|row| lte::tbs(row.initial?.1, prbs, 1)),
    };
    let dci = Dci {
        rnti: Rnti(61),
        direction,
        format: if direction == Direction::Uplink { DciFormat::F0 } else { DciFormat::F1 },
        // The PRBs are resource block groups of four, as in format 1.
        prbs: PrbSet::run(0, prbs),
        mcs: [Some(mcs), None],
        tbs: [bits.unwrap(), Bits::ZERO],
        ndi: [Some(ndi), None],
        harq: Some((index % 8) as u8),
        layers: 1,
        ..Dci::default()
    };
    RadioReport {
        carrier: CarrierId(carrier),
        slot: Slot::subframe_of_lte(index),
        time: Time::from_millis(index),
        scope: Scope::Everyone,
        carrier_prbs: Some(100),
        cfi: Some(2),
        symbols: None,
        dcis: vec![dci],
        own: Some(OwnRadio {
            rnti: Rnti(61),
            active: true,
            sinr_db: Some(15.0),
            bits_per_prb: Some(300.0),
            decoded: Some(true),
            uplink_queue: None,
        }),
        layer: BitLayer::Physical,
    }
}

#[test]
fn what_a_cell_granted_comes_back_from_the_packets_of_its_modem() {
    let mut composer = Composer::new(ComposeOptions::default());
    let (mut packets, mut truth) = (vec![], [vec![0_u64; 41], vec![0_u64; 41]]);
    let mut indicators = BTreeMap::new();
    let mut rng = Streams::new(7).stream("grants");
    for index in 0..4_000_u64 {
        for (carrier, way) in [(0, Direction::Downlink), (1, Direction::Downlink), (0, Direction::Uplink)] {
            // The cell grants some subframes to other users.
            if rng.below(3) == 0 {
                continue;
            }
            let prbs = match way {
                Direction::Downlink => 4 * (1 + rng.below(25) as u16),
                Direction::Uplink => [1, 2, 5, 10, 25, 50, 90][rng.below(7) as usize],
            };
            let ndi = indicators.entry((carrier, way, index % 8)).or_insert(false);
            *ndi = !*ndi;
            let report = report(index, carrier, way, prbs, rng.below(29) as u8, *ndi);
            // The uplink block is transmitted four subframes later.
            let at = if way == Direction::Uplink { index + 4 } else { index };
            if let Some(bits) = truth[usize::from(way == Direction::Uplink)].get_mut(at as usize / 100) {
                *bits += report.dcis[0].bits().0;
            }
            composer.push(&report, |composed| packets.push(composed));
        }
    }
    composer.finish(|composed| packets.push(composed));

    let mut bandwidth = Bandwidth::new(100);
    let mut points = vec![];
    // Push a first packet at time 0, so that the log starts together with the run.
    bandwidth.push(&packet(0xB000, 0, &[]), |_| {});
    for composed in &packets {
        let at = composed.at.as_millis().min(4_050);
        bandwidth.push(&packet(composed.code.0, at, &composed.payload), |_| {});
        points.extend(bandwidth.take());
    }
    points.extend(bandwidth.finish());
    assert_eq!(bandwidth.outside(), 0);
    for (way, truth) in [Direction::Downlink, Direction::Uplink].into_iter().zip(truth) {
        let rates: Vec<u64> = points
            .iter()
            .filter(|point| point.direction == way)
            .map(|point| point.blocks.unwrap().as_bps() / 10)
            .collect();
        // The modem reports a packet two milliseconds after the start of the packet's subframe. The windows of the
        // log are therefore two milliseconds later than the windows of the cell, but the sums over all windows are
        // equal.
        let all = |bits: &[u64]| bits.iter().sum::<u64>();
        assert_eq!(all(&rates[..rates.len().min(41)]), all(&truth), "{way:?}: every bit comes back, once");
        for (window, (rate, truth)) in rates.iter().zip(&truth).take(40).enumerate() {
            let ratio = *rate as f64 / *truth as f64;
            assert!((0.9..1.1).contains(&ratio), "{way:?}, window {window}: {rate} and {truth}");
        }
    }
    let carriers: Vec<usize> = points
        .iter()
        .filter(|point| point.direction == Direction::Downlink)
        .map(|point| point.carriers.len())
        .collect();
    assert!(carriers[..40].iter().all(|count| *count == 2), "both carriers have their part in every window");
}

/// Sum of the bits that a recorded log reports in a direction.
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
            // In these logs both sources were logged continuously. The difference is due to failed blocks and to the
            // blocks of the last packets.
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
