//! Tests of the uplink.

use airpace_core::Direction;
use airpace_core::tables::lte;
use airpace_radio::Dci;

use super::super::CellPlan;
use super::super::bler::BlerModel;
use super::super::config::uplink::UplinkConfig;
use super::super::config::{RlcConfig, RlcMode};
use super::*;

mod harq;
mod properties;
mod reports;

const PHONE: DeviceId = DeviceId(0);

/// A cell, sources in its devices, and the packets that arrived at the base station.
pub(super) struct Upload {
    pub cell: Cell,
    sources: Vec<Source>,
    pub exits: Vec<Exit>,
}

impl Upload {
    pub fn new(
        config: &CellConfig,
        devices: &[DeviceRadioConfig],
        sources: Vec<Source>,
        seed: u64,
    ) -> Upload {
        let Bench { cell, sources, exits } = Bench::with_seed(config, devices, sources, seed);
        Upload { cell, sources, exits }
    }

    /// Runs the cell until `end`, and calls `look` after every subframe.
    pub fn run(&mut self, end: Time, mut look: impl FnMut(&mut Cell)) {
        let mut subframes = self.cell.subframes_run();
        loop {
            let source = self.sources.iter_mut().min_by_key(|source| source.poll_timeout());
            let arrival = source.as_ref().map_or(Time::NEVER, |source| source.poll_timeout());
            let now = self.cell.poll_timeout().expect("a cell always has a next subframe").min(arrival);
            if now >= end {
                return;
            }
            while self.cell.pop(now).is_some() {}
            while let Some(exit) = self.cell.pop_uplink(now) {
                self.exits.push(exit);
            }
            if self.cell.subframes_run() != subframes {
                subframes = self.cell.subframes_run();
                look(&mut self.cell);
            }
            if let Some(source) = source.filter(|_| arrival == now) {
                let packet = source.packet(now);
                self.cell.push_uplink(now, packet);
            }
        }
    }

    /// Total size of the packets that were pushed.
    pub fn sources_bytes(&self) -> u64 {
        self.sources.iter().map(|source| source.number * source.bytes).sum()
    }

    pub fn pushed(&self) -> u64 {
        self.sources.iter().map(|source| source.number).sum()
    }

    fn delays_ms(&self) -> Vec<f64> {
        let delivered = self.exits.iter().filter(|exit| exit.fate == Fate::Delivered);
        delivered.map(|exit| (exit.time - exit.packet.sent).as_secs_f64() * 1e3).collect()
    }

    fn goodput_mbps(&self, device: u16, from: Time, until: Time) -> f64 {
        let is_counted = |exit: &&Exit| {
            let is_own = exit.packet.device == DeviceId(device) && exit.fate == Fate::Delivered;
            is_own && (from..until).contains(&exit.time)
        };
        let bytes: Bytes = self.exits.iter().filter(is_counted).map(|exit| exit.packet.bytes).sum();
        Rate::from_bytes_per(bytes, until - from).as_mbps()
    }
}

/// Rates (Mbit/s) of an upload and a download that both saturate the cell, in this RLC mode, with the RLC keys that
/// `change` sets.
fn both_ways_mbps(mode: RlcMode, change: impl Fn(&mut RlcConfig)) -> [f64; 2] {
    let mut config = CellConfig { prbs: Some(25), ..CellConfig::default() };
    config.rlc.mode = mode;
    change(&mut config.rlc);
    let mut cell = CellPlan::new(&config, &[device(10.0)]).expect("a valid cell").build(&Streams::new(1));
    let (mut down, mut up) = (Source::saturating(0, 1500), Source::saturating(0, 1500));
    let mut bytes = [0.0; 2];
    for now in (0..4_000).map(Time::from_millis) {
        while let Some(exit) = cell.pop(now) {
            bytes[0] += exit.packet.bytes.0 as f64;
        }
        while let Some(exit) = cell.pop_uplink(now) {
            bytes[1] += exit.packet.bytes.0 as f64;
        }
        if cell.backlog_of(PHONE) < Bytes(100_000) {
            (0..20).for_each(|_| cell.push(now, down.packet(now)));
        }
        if cell.uplink_backlog_of(PHONE) < Bytes(100_000) {
            (0..20).for_each(|_| cell.push_uplink(now, up.packet(now)));
        }
    }
    bytes.map(|bytes| bytes * 8e-6 / 4.0)
}

#[test]
fn acknowledging_one_direction_takes_room_in_the_other() {
    let without = both_ways_mbps(RlcMode::Unacknowledged, |_| {});
    let usual = both_ways_mbps(RlcMode::Acknowledged, |_| {});
    let often = |rlc: &mut RlcConfig| (rlc.poll_pdus, rlc.status_prohibit_ms) = (1, 0);
    let with_data = both_ways_mbps(RlcMode::Acknowledged, often);
    let alone = both_ways_mbps(RlcMode::Acknowledged, |rlc| {
        (rlc.poll_pdus, rlc.status_prohibit_ms, rlc.status_alone) = (1, 10, true);
    });
    println!(
        "UM {without:.3?}, AM {usual:.3?}, a STATUS per subframe {with_data:.3?}, alone every 10 ms {alone:.3?}"
    );
    for way in [0, 1] {
        let share = |of: [f64; 2]| of[way] / without[way];
        assert!((0.995..=1.0).contains(&share(usual)), "17 STATUS PDUs a second cost next to nothing");
        assert!((0.97..share(usual)).contains(&share(with_data)), "4 bytes of every block");
        assert!((0.88..0.92).contains(&share(alone)), "a tenth of the blocks");
    }
}

/// The uplink grants of the last subframe, with the subframe in which they were sent.
fn grants(cell: &Cell) -> Vec<(u64, Dci)> {
    let of = |subframe: airpace_event::Subframe<'_>| {
        let index = subframe.report.slot.index;
        let uplink = subframe.report.dcis.iter().filter(|dci| dci.direction == Direction::Uplink);
        uplink.map(|dci| (index, *dci)).collect::<Vec<_>>()
    };
    cell.subframes().flat_map(of).collect()
}

fn quiet(uplink: UplinkConfig) -> CellConfig {
    let mut config = CellConfig { uplink, ..CellConfig::default() };
    config.bler.model = BlerModel::None;
    config
}

/// A source of packets of 40 bytes, each sent long after the previous packet, at an offset within the subframe that
/// depends on `seed`.
fn lone_acks(seed: u64) -> Source {
    Source::new(0, 40, Rate::from_bps(1603), Time::from_micros(seed * 137 % 1000), Time::from_secs(20))
}

#[test]
fn a_lone_small_packet_waits_for_its_opportunity_and_eight_milliseconds() {
    for period in [5, 10, 20, 40, 80] {
        let mut all = Vec::new();
        for seed in 0..8 {
            let config = quiet(UplinkConfig { sr_period_ms: period, ..UplinkConfig::default() });
            let mut upload = Upload::new(&config, &[device(20.0)], vec![lone_acks(seed)], seed);
            upload.run(Time::from_secs(21), |_| {});
            assert_eq!(upload.exits.len() as u64, upload.pushed(), "nothing is lost");
            all.extend(upload.delays_ms());
        }
        // The delay has these parts: processing in the device, up to 1 ms until the next subframe starts, up to one
        // period until the opportunity for a scheduling request, 4 ms from that subframe to the grant, 4 ms from the
        // grant to the block, 1 ms for the block, and processing in the base station.
        let least = 1.0 + 4.0 + 4.0 + 1.0 + 1.0;
        let period = f64::from(period);
        let mean = all.iter().sum::<f64>() / all.len() as f64;
        let (low, high) =
            all.iter().fold((f64::MAX, 0.0_f64), |(low, high), &ms| (low.min(ms), high.max(ms)));
        println!("period {period}: {low:.2} to {high:.2} ms, mean {mean:.2} of {} packets", all.len());
        assert!(
            low >= least && high <= least + period,
            "the delays span more than a period: {low} to {high}"
        );
        assert!((mean - (least + period / 2.0)).abs() < 0.05 * period, "evenly: mean {mean}");
        let quarter = all.iter().filter(|&&ms| ms < least + period / 4.0).count() as f64 / all.len() as f64;
        assert!(
            (quarter - 0.25).abs() < 0.05,
            "a quarter of the delays should lie in the first quarter: {quarter}"
        );
    }
}

#[test]
fn a_burst_gets_a_small_grant_first_and_the_rest_when_its_report_was_read() {
    let burst = Source::new(0, 1500, Rate::from_mbps(1e6), Time::from_millis(3), Time::from_nanos(3_000_200));
    let config = quiet(UplinkConfig::default());
    let mut upload = Upload::new(&config, &[device(20.0)], vec![burst], 3);
    upload.cell.set_recording(true);
    let mut seen = Vec::new();
    upload.run(Time::from_millis(100), |cell| seen.extend(grants(cell)));
    let bytes = upload.pushed() * 1500;
    assert!(bytes > 15_000, "{bytes} bytes are more than two blocks");
    let (first_at, first) = seen[0];
    assert!(first.bits().0 < 8 * 200, "room for a report and about 100 bytes: {:?}", first.bits());
    let (second_at, second) = seen[1];
    assert_eq!(
        second_at - first_at,
        8,
        "4 ms from the grant to data with the report, 4 more to the next grant"
    );
    assert!(second.bits().0 > 30_000, "the base station has read how much waits: {:?}", second.bits());
    let granted: u64 = seen.iter().map(|(_, dci)| dci.bits().0 / 8).sum();
    assert!((bytes..bytes * 14 / 10).contains(&granted), "{granted} granted for {bytes}");
    assert_eq!(upload.exits.len() as u64, upload.pushed());
}

#[test]
fn a_saturated_device_gets_what_the_tables_say() {
    for (prbs, data_prbs) in [(100, 96), (50, 48), (25, 20), (6, 4)] {
        let config = CellConfig { prbs: Some(prbs), ..quiet(UplinkConfig::default()) };
        let source = Source::new(0, 1500, Rate::from_mbps(100.0), Time::ZERO, Time::NEVER);
        let mut upload = Upload::new(&config, &[device(28.0)], vec![source], 1);
        let (from, until) = (Time::from_secs(1), Time::from_secs(3));
        let mut capacity = Bytes::ZERO;
        upload.run(until, |cell| {
            let of_subframe = cell.uplink_capacity(PHONE, Bytes(1500));
            if of_subframe.time >= from {
                capacity += of_subframe.bytes;
            }
        });
        // At 25 dB, the MCS is 28.
        let table_mbps = lte::tbs(26, data_prbs, 1).expect("in the table").0 as f64 / 1e3;
        let carried_mbps = upload.goodput_mbps(0, from, until);
        let capacity_mbps = Rate::from_bytes_per(capacity, until - from).as_mbps();
        println!("{prbs} PRBs: {carried_mbps:.2} Mbit/s of {table_mbps:.2}, capacity {capacity_mbps:.2}");
        assert!((0.97..1.0).contains(&(carried_mbps / table_mbps)), "headers should take at most 3 %");
        assert!(
            (carried_mbps / capacity_mbps - 1.0).abs() < 0.02,
            "the capacity should be what the air carried"
        );
    }
}

#[test]
fn two_saturated_devices_share_equally() {
    for scheduler in [Policy::ProportionalFair, Policy::RoundRobin] {
        let config = CellConfig { scheduler, ..CellConfig::default() };
        let sources = vec![Source::saturating(0, 1500), Source::saturating(1, 1500)];
        let mut upload = Upload::new(&config, &[device(20.0), device(20.0)], sources, 1);
        let (from, until) = (Time::from_secs(1), Time::from_secs(4));
        upload.run(until, |_| {});
        let [one, other] = [0, 1].map(|device| upload.goodput_mbps(device, from, until));
        println!("{scheduler:?}: {one:.2} and {other:.2} Mbit/s");
        assert!((one / other - 1.0).abs() < 0.03, "{one} and {other} Mbit/s under {scheduler:?}");
        assert!(one + other > 30.0, "together they use the carrier");
    }
}

#[test]
fn whatever_happens_on_the_uplink_is_not_seen_where_nobody_sends() {
    let download = |config: &CellConfig| {
        let mut bench = Bench::new(config, &[device(14.0)], vec![Source::saturating(0, 1500)]);
        bench.run(Time::from_secs(1), |_| {});
        bench.exits
    };
    let mut other = CellConfig::default();
    other.uplink.sr_period_ms = 80;
    other.uplink.sinr_offset_db = 3.0;
    other.uplink.background.full_buffer = 3;
    assert!(download(&CellConfig::default()) == download(&other));
}
