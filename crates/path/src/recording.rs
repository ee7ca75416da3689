//! Recording of a cell: a device that always has data to send or to receive, the times at which its packets leave the cell,
//! and the KPIs that its modem logs meanwhile.
//!
//! Source: BISCAY §5.3.1 (UDP packets of one MTU saturate the link in one direction, and the KPIs are logged in parallel)

use std::time::Duration;

use airpace_core::remedy::Remedy;
use airpace_core::{Bytes, DeviceId, Direction, Ecn, FlowId, Packet, Rate, Streams, Time};
use airpace_event::Fate;
use airpace_radio::RadioReport;

use crate::cell::{Cell, CellPlan};
use crate::link::Link;
use crate::network::DATA_BYTES;
use crate::trace::{KpiTrace, Trace, TraceError};

/// The device that is recorded.
const DEVICE: DeviceId = DeviceId(0);

/// A recorded link, with the KPIs of the modem.
#[derive(Clone, Debug, PartialEq)]
pub struct Recording {
    /// The delivery opportunities: a packet of 1500 bytes left the cell at each of them.
    pub trace: Trace,
    /// The KPIs of each millisecond.
    pub kpis: Vec<ModemKpis>,
}

/// What the modem logged in a millisecond.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ModemKpis {
    /// Size of the granted transport blocks with new data, with the headers of layer 2, over all carriers.
    pub granted: Bytes,
    /// Granted PRBs, over all slots and carriers.
    pub prbs: u32,
    /// Mean MCS index of the granted blocks; `None` without a grant.
    pub mcs: Option<f64>,
    /// SINR of the downlink on the primary carrier, in dB; `None` if the modem measured none.
    pub sinr_db: Option<f64>,
}

impl Recording {
    /// Records the first device of a cell for `length`. The random numbers are those of a run with `streams`.
    ///
    /// The device's queue is always full. A grant counts in the millisecond in which its DCI was sent, and a packet when
    /// it leaves the cell, which is some milliseconds later.
    ///
    /// Chosen: the recording starts with the first packet, so its first milliseconds have no opportunity.
    ///
    /// # Errors
    /// No packet left the cell, or more than a trace can hold.
    pub fn make(
        plan: &CellPlan,
        direction: Direction,
        length: Duration,
        streams: &Streams,
    ) -> Result<Recording, TraceError> {
        let mut cell = plan.build(streams);
        cell.set_logging(DEVICE, true);
        let end_ms = length.as_millis() as u64;
        let mut sender = Saturating { direction, capacity: plan.queue_of(DEVICE, direction), sent: 0 };
        let mut logs = vec![Log::default(); end_ms as usize];
        let mut times_ms = Vec::new();
        for now in (0..=end_ms).map(Time::from_millis) {
            while let Some(exit) = cell.pop(now) {
                if direction == Direction::Downlink && exit.fate == Fate::Delivered {
                    times_ms.push(exit.time.as_nanos().div_ceil(1_000_000));
                }
            }
            while let Some(exit) = cell.pop_uplink(now) {
                if direction == Direction::Uplink && exit.fate == Fate::Delivered {
                    times_ms.push(exit.time.as_nanos().div_ceil(1_000_000));
                }
            }
            while let Some((_, report)) = cell.pop_own_report(now) {
                if let Some(log) = logs.get_mut(report.time.as_millis() as usize) {
                    log.note(report, direction);
                }
            }
            sender.fill(&mut cell, now);
        }
        if times_ms.is_empty() {
            let remedy = Remedy::new("give the device a better channel, or a longer recording");
            return Err(TraceError { line: None, what: "no packet left the cell".to_owned(), remedy });
        }
        let trace = Trace::from_times_ms(times_ms)?.lasting(end_ms);
        Ok(Recording { trace, kpis: logs.into_iter().map(Log::kpis).collect() })
    }

    /// The bandwidth that the modem was granted in each interval `every`. The last interval ends with the recording.
    ///
    /// Source: BISCAY §3.2.2 (granted bytes, summed up every 100 ms)
    ///
    /// # Panics
    /// If `every` is less than a millisecond.
    pub fn granted_bandwidth(&self, every: Duration) -> KpiTrace {
        let every_ms = every.as_millis() as usize;
        let value = |(index, kpis): (usize, &[ModemKpis])| {
            let granted: Bytes = kpis.iter().map(|kpi| kpi.granted).sum();
            let span = Duration::from_millis(kpis.len() as u64);
            ((index * every_ms) as u64, Rate::from_bytes_per(granted, span))
        };
        KpiTrace::new(self.kpis.chunks(every_ms).enumerate().map(value).collect())
    }
}

/// A sender that keeps a queue full.
struct Saturating {
    direction: Direction,
    /// Size of the queue.
    capacity: Bytes,
    /// Number of packets sent so far.
    sent: u64,
}

impl Saturating {
    /// Fills the queue.
    fn fill(&mut self, cell: &mut Cell, now: Time) {
        let room = match self.direction {
            Direction::Downlink => cell.room_for(DEVICE),
            Direction::Uplink => self.capacity - cell.uplink_backlog_of(DEVICE),
        };
        for _ in 0..room.0 / DATA_BYTES.0 {
            let packet = Packet {
                flow: FlowId(0),
                device: DEVICE,
                number: self.sent,
                bytes: DATA_BYTES,
                sent: now,
                ecn: Ecn::NotEct,
            };
            self.sent += 1;
            match self.direction {
                Direction::Downlink => cell.push(now, packet),
                Direction::Uplink => cell.push_uplink(now, packet),
            }
        }
    }
}

/// Sums over the reports of a millisecond.
#[derive(Clone, Copy, Debug, Default)]
struct Log {
    granted: Bytes,
    prbs: u32,
    mcs_sum: f64,
    blocks: u32,
    sinr_db: Option<f64>,
}

impl Log {
    fn note(&mut self, report: &RadioReport, direction: Direction) {
        if report.carrier.0 == 0 {
            self.sinr_db = report.own.and_then(|own| own.sinr_db);
        }
        for dci in report.dcis.iter().filter(|dci| dci.direction == direction) {
            self.granted += Bytes(dci.new_bits().0 / 8);
            self.prbs += u32::from(dci.prbs.len());
            for mcs in dci.mcs.iter().flatten() {
                self.mcs_sum += f64::from(*mcs);
                self.blocks += 1;
            }
        }
    }

    fn kpis(self) -> ModemKpis {
        let mcs = (self.blocks > 0).then(|| self.mcs_sum / f64::from(self.blocks));
        ModemKpis { granted: self.granted, prbs: self.prbs, mcs, sinr_db: self.sinr_db }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::channel::ChannelConfig;
    use crate::cell::channel::fading::FadingProfile;
    use crate::cell::config::Rat;
    use crate::cell::{CellConfig, DeviceRadioConfig};

    const SECONDS: Duration = Duration::from_secs(3);

    fn phone(channel: ChannelConfig) -> DeviceRadioConfig {
        DeviceRadioConfig { channel, ..DeviceRadioConfig::default() }
    }

    fn still() -> DeviceRadioConfig {
        phone(ChannelConfig { sinr_db: Some(18.0), ..ChannelConfig::default() })
    }

    fn lte() -> CellConfig {
        CellConfig { prbs: Some(50), ..CellConfig::default() }
    }

    fn nr() -> CellConfig {
        CellConfig {
            rat: Rat::Nr,
            band: Some("n78".to_owned()),
            bandwidth_mhz: Some(20),
            ..CellConfig::default()
        }
    }

    fn record(cell: &CellConfig, radio: &DeviceRadioConfig, direction: Direction, seed: u64) -> Recording {
        let plan = CellPlan::new(cell, std::slice::from_ref(radio)).expect("a valid cell");
        Recording::make(&plan, direction, SECONDS, &Streams::new(seed)).expect("a link")
    }

    /// Capacity of an idle cell in this direction from `from` to the end of a recording, by the cell's own account of a
    /// device with a full queue.
    fn capacity(cell: &CellConfig, direction: Direction, from: Time) -> Bytes {
        let plan = CellPlan::new(cell, &[still()]).expect("a valid cell");
        let mut cell = plan.build(&Streams::new(1));
        let mut sender = Saturating { direction, capacity: plan.queue_of(DEVICE, direction), sent: 0 };
        let mut sum = Bytes::ZERO;
        for now in (0..=SECONDS.as_millis() as u64).map(Time::from_millis) {
            while cell.pop(now).is_some() {}
            while cell.pop_uplink(now).is_some() {}
            if now > from {
                sum += match direction {
                    Direction::Downlink => cell.capacity(DEVICE, DATA_BYTES).bytes,
                    Direction::Uplink => cell.uplink_capacity(DEVICE, DATA_BYTES).bytes,
                };
            }
            sender.fill(&mut cell, now);
        }
        sum
    }

    #[test]
    fn a_recording_of_an_idle_cell_has_the_cell_s_capacity_and_its_grants() {
        for (name, cell) in [("LTE", lte()), ("NR", nr())] {
            for direction in Direction::BOTH {
                let recording = record(&cell, &still(), direction, 1);
                // The first grants need a report of the channel, and in the uplink a request.
                let from_ms = 500;
                let late = recording.trace.times_ms().iter().filter(|&&time| time > from_ms).count() as u64;
                let delivered = late * DATA_BYTES.0;
                let capacity = capacity(&cell, direction, Time::from_millis(from_ms)).0;
                let share = delivered as f64 / capacity as f64;
                assert!(
                    (0.98..1.02).contains(&share),
                    "{name} {direction:?}: {delivered} of {capacity} bytes"
                );
                let granted: u64 = recording.kpis.iter().map(|kpi| kpi.granted.0).sum();
                let all = recording.trace.times_ms().len() as u64 * DATA_BYTES.0;
                let more = granted as f64 / all as f64;
                assert!(
                    (1.0..1.04).contains(&more),
                    "{name} {direction:?}: headers take 4 % at most: {granted} bytes for {all}"
                );
                let reported = recording.granted_bandwidth(Duration::from_millis(100));
                let sum_bits: u64 = reported.values().iter().map(|(_, rate)| rate.as_bps() / 10).sum();
                assert!(sum_bits.abs_diff(granted * 8) < 100, "the KPIs' sum is that of the grants");
            }
        }
    }

    #[test]
    fn a_recording_of_a_fading_link_is_that_of_its_seed() {
        let moving = phone(ChannelConfig {
            sinr_points_db: vec![(0.0, 20.0), (3.0, 4.0)],
            fading: FadingProfile::Eva,
            speed_kmh: 40.0,
            ..ChannelConfig::default()
        });
        let made = |seed| record(&lte(), &moving, Direction::Uplink, seed);
        let one = made(7);
        assert_eq!(one, made(7), "the same seed gives the same bytes");
        assert_ne!(one.trace, made(8).trace, "another seed gives other fading");
        let prbs = |kpis: &[ModemKpis]| kpis.iter().map(|kpi| kpi.granted.0).sum::<u64>();
        let (near, far) = (prbs(&one.kpis[500..1000]), prbs(&one.kpis[2500..3000]));
        assert!(far < near / 2, "the grants follow the channel: {near} and {far} bytes");
        assert!(one.kpis[500..510].iter().all(|kpi| kpi.sinr_db.is_some()));
    }

    #[test]
    fn a_link_without_packets_is_refused() {
        let lost = phone(ChannelConfig { sinr_db: Some(-30.0), ..ChannelConfig::default() });
        let plan = CellPlan::new(&lte(), &[lost]).expect("a valid cell");
        assert!(Recording::make(&plan, Direction::Uplink, SECONDS, &Streams::new(1)).is_err());
    }
}
