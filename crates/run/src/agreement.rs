//! Agreement of the emulator with the simulator: the packets of one schedule in real and in virtual time, compared packet
//! by packet.
//!
//! Each packet is compared with two runs in virtual time. *As sent*: the packet enters virtual time at its actual
//! transmission time, so that the difference is caused by the emulator alone. *As scheduled*: the packet enters virtual
//! time at its scheduled transmission time, so that the difference also contains the sender's lateness.
//!
//! If the machine did not keep up, the comparison supports no conclusion about the emulator. A comparison is *fit* only
//! if the emulated run is fit and the sender and the reader of the interface were on time.

use std::time::Duration;

use airpace_core::count::count;
use airpace_core::{Bytes, Direction, Time};
use airpace_event::Fate;
use airpace_tables::agreement::{Compared, Virtual};
use serde::{Deserialize, Serialize};

use crate::metrics::{cdf, nearest_rank};

/// Maximum 99th percentile of the differences at which real and virtual time agree (ms).
///
/// Chosen: one subframe, the time unit of cells and traces.
pub const MAX_MS: f64 = 1.0;

/// Percentiles of a set of values, in ms; `None` if the set is empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Percentiles {
    /// The median.
    pub p50: Option<f64>,
    /// The 99th percentile.
    pub p99: Option<f64>,
    /// The maximum.
    pub max: Option<f64>,
}

/// Comparison of real time with one variant of virtual time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Difference in ms between the reception by the other endpoint (real time) and the release by the network (virtual
    /// time).
    pub departures_ms: Percentiles,
    /// Packets whose fate (delivered or dropped) is known in real and in virtual time.
    pub compared: u64,
    /// Packets that were dropped in real and in virtual time.
    pub dropped_by_both: u64,
    /// Packets that were dropped in real time only.
    pub only_real: u64,
    /// Packets that were dropped in virtual time only.
    pub only_virtual: u64,
    /// Whether the same packets were dropped, and 99 % of the departures differ by at most [`MAX_MS`].
    pub agrees: bool,
    /// Distribution of the departure differences: (difference in ms, fraction of packets with at most this difference).
    pub departures_cdf: Vec<(f64, f64)>,
}

/// Throughput over time in one direction of a device.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Course {
    /// Index of the device.
    pub device: u16,
    /// The direction.
    #[serde(with = "airpace_tables::direction")]
    pub direction: Direction,
    /// Rate of packets received in real time, per interval, in Mbit/s.
    pub real_mbps: Vec<f64>,
    /// Rate of packets released in virtual time, packets as sent, per interval, in Mbit/s.
    pub as_sent_mbps: Vec<f64>,
    /// Rate of packets released in virtual time, packets as scheduled, per interval, in Mbit/s.
    pub as_scheduled_mbps: Vec<f64>,
    /// Maximum difference between real and virtual departures per interval, packets as sent, in ms; `None` without
    /// departures.
    pub apart_ms: Vec<Option<f64>>,
}

/// Comparison of a whole schedule.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Agreement {
    /// Number of packets in the schedule.
    pub packets: u64,
    /// Number of packets that the sender's kernel refused.
    pub not_sent: u64,
    /// Number of packets that the other endpoint received.
    pub delivered: u64,
    /// Number of packets that were sent but not read by the emulator, or handed over by the emulator but not received by
    /// the other endpoint.
    pub lost_outside: u64,
    /// Reasons why the comparison supports no conclusion; empty if it is fit.
    pub unfit_because: Vec<String>,
    /// Delay from scheduled to actual transmission, in ms.
    pub sent_late_ms: Percentiles,
    /// Delay from transmission until the emulator read the packet, in ms.
    pub read_late_ms: Percentiles,
    /// Delay from release by the network until the emulator had handed the packet over, in ms.
    pub handed_late_ms: Percentiles,
    /// Comparison with virtual time, packets as sent.
    pub as_sent: Comparison,
    /// Comparison with virtual time, packets as scheduled.
    pub as_scheduled: Comparison,
    /// Length of the intervals in `courses`, in s.
    pub interval_s: f64,
    /// Start of the schedule on the clock of the run, in s.
    pub start_s: f64,
    /// Throughput over time, for each direction of each device that has packets.
    pub courses: Vec<Course>,
}

/// Maximum number of intervals of a time series.
const MAX_INTERVALS: f64 = 300.0;

impl Agreement {
    /// Compares the packets of a schedule that started at `start`. `unfit_because` lists the reasons why the emulated run
    /// is not fit.
    pub fn of(packets: &[Compared], start: Time, mut unfit_because: Vec<String>) -> Agreement {
        let count =
            |of: &dyn Fn(&Compared) -> bool| packets.iter().filter(|packet| of(packet)).count() as u64;
        let spans = |of: &dyn Fn(&Compared) -> Option<(Time, Time)>| {
            Percentiles::of(packets.iter().filter_map(of).map(|(from, to)| apart_ms(from, to)).collect())
        };
        let end = packets.iter().filter_map(|packet| packet.real.received).fold(start, Time::max);
        let interval_s = ((end - start).as_secs_f64() / MAX_INTERVALS * 10.0).ceil().max(1.0) / 10.0;
        let sent_late_ms = spans(&|packet| Some((packet.scheduled, packet.sent?)));
        let read_late_ms = spans(&|packet| Some((packet.sent?, packet.real.entered?)));
        for (late, what) in [(&sent_late_ms, "sent"), (&read_late_ms, "read by the emulator")] {
            if let Some(p99) = late.p99.filter(|&p99| p99 > MAX_MS) {
                unfit_because.push(format!(
                    "one of 100 packets was {what} {p99:.2} ms late or more, and {MAX_MS} ms is allowed"
                ));
            }
        }
        Agreement {
            packets: packets.len() as u64,
            not_sent: count(&|packet| packet.sent.is_none()),
            delivered: count(&|packet| packet.real.received.is_some()),
            lost_outside: count(&|packet| packet.sent.is_some() && is_lost_outside(packet)),
            unfit_because,
            sent_late_ms,
            read_late_ms,
            handed_late_ms: spans(&|packet| Some((packet.real.released?, packet.real.handed?))),
            as_sent: Comparison::of(packets, |packet| packet.as_sent),
            as_scheduled: Comparison::of(packets, |packet| Some(packet.as_scheduled)),
            interval_s,
            start_s: start.as_secs_f64(),
            courses: courses(packets, start, Duration::from_secs_f64(interval_s)),
        }
    }

    /// Whether the machine kept up, so that the comparison is valid.
    pub fn is_fit(&self) -> bool {
        self.unfit_because.is_empty()
    }

    /// Whether the comparison is fit, every packet could be compared, and real time agrees with both variants of virtual
    /// time.
    pub fn agrees(&self) -> bool {
        let is_whole = self.not_sent == 0 && self.lost_outside == 0;
        self.is_fit() && is_whole && self.as_sent.agrees && self.as_scheduled.agrees
    }

    /// One sentence per disagreement; empty if everything agrees.
    pub fn objections(&self) -> Vec<String> {
        let mut said = vec![];
        for (comparison, what) in [(&self.as_sent, "as sent"), (&self.as_scheduled, "as scheduled")] {
            let Comparison { departures_ms, only_real, only_virtual, .. } = comparison;
            if let Some(p99) = departures_ms.p99.filter(|&p99| p99 > MAX_MS) {
                said.push(format!(
                    "packets {what}: one of 100 departures is {p99:.2} ms apart or more, and {MAX_MS} ms is allowed"
                ));
            }
            if only_real + only_virtual > 0 {
                said.push(format!(
                    "packets {what}: {only_real} were dropped in real time only, and {only_virtual} in virtual time only"
                ));
            }
            if departures_ms.p99.is_none() {
                said.push(format!("packets {what}: none was delivered in both, so nothing was compared"));
            }
        }
        if self.not_sent > 0 {
            said.push(format!("{} not sent: the kernel refused them", count(self.not_sent, "packet")));
        }
        if self.lost_outside > 0 {
            said.push(format!("{} lost outside of the emulator", count(self.lost_outside, "packet")));
        }
        said
    }
}

/// Whether a packet was lost outside of the emulated network: before the emulator read it, or after the emulator handed
/// it over.
fn is_lost_outside(packet: &Compared) -> bool {
    let real = &packet.real;
    real.entered.is_none() || (real.handed.is_some() && real.received.is_none())
}

impl Comparison {
    /// Compares the packets with their outcome in virtual time, which `of` returns.
    fn of(packets: &[Compared], of: impl Fn(&Compared) -> Option<Virtual>) -> Comparison {
        let mut departures = vec![];
        let mut comparison = Comparison::default();
        for packet in packets {
            let Some(there) = of(packet) else { continue };
            let (here, there_dropped) = (&packet.real, is_dropped(there.fate));
            // Packets that never reached the emulator are counted in `not_sent` or `lost_outside`. Packets in transit at
            // the end have no fate.
            if here.fate.is_some() && there.fate.is_some() {
                comparison.compared += 1;
                comparison.dropped_by_both += u64::from(is_dropped(here.fate) && there_dropped);
                comparison.only_real += u64::from(is_dropped(here.fate) && !there_dropped);
                comparison.only_virtual += u64::from(there_dropped && !is_dropped(here.fate));
            }
            let both = here.received.zip(there.released);
            departures.extend(both.map(|(received, released)| apart_ms(released, received)));
        }
        departures.sort_by(f64::total_cmp);
        comparison.departures_cdf = cdf(&departures);
        comparison.departures_ms = Percentiles::of(departures);
        let is_near = comparison.departures_ms.p99.is_some_and(|p99| p99 <= MAX_MS);
        comparison.agrees = is_near && comparison.only_real + comparison.only_virtual == 0;
        comparison
    }
}

impl Percentiles {
    fn of(mut values: Vec<f64>) -> Percentiles {
        values.sort_by(f64::total_cmp);
        let at = |part: f64| nearest_rank(&values, part).copied();
        Percentiles { p50: at(0.5), p99: at(0.99), max: values.last().copied() }
    }
}

fn is_dropped(fate: Option<Fate>) -> bool {
    fate.is_some_and(|fate| fate != Fate::Delivered)
}

fn apart_ms(one: Time, other: Time) -> f64 {
    (other.signed_nanos_since(one) as f64 / 1e6).abs()
}

fn courses(packets: &[Compared], start: Time, interval: Duration) -> Vec<Course> {
    let mut courses: Vec<Course> = vec![];
    let mbps = |bytes: Bytes| bytes.0 as f64 * 8e-6 / interval.as_secs_f64();
    let index = |at: Time| (at.signed_nanos_since(start).max(0) as u128 / interval.as_nanos()) as usize;
    for packet in packets {
        let is_its =
            |course: &Course| (course.device, course.direction) == (packet.device.0, packet.direction);
        let place = courses.iter().position(is_its).unwrap_or_else(|| {
            let (device, direction) = (packet.device.0, packet.direction);
            courses.push(Course { device, direction, ..Course::default() });
            courses.len() - 1
        });
        let course = &mut courses[place];
        let as_sent = packet.as_sent.and_then(|it| it.released);
        for (line, at) in [
            (&mut course.real_mbps, packet.real.received),
            (&mut course.as_sent_mbps, as_sent),
            (&mut course.as_scheduled_mbps, packet.as_scheduled.released),
        ] {
            let Some(index) = at.map(index) else { continue };
            line.resize(line.len().max(index + 1), 0.0);
            line[index] += mbps(packet.bytes);
        }
        if let Some((received, released)) = packet.real.received.zip(as_sent) {
            let (index, apart) = (index(received), apart_ms(released, received));
            course.apart_ms.resize(course.apart_ms.len().max(index + 1), None);
            let most = &mut course.apart_ms[index];
            *most = Some(most.map_or(apart, |most| most.max(apart)));
        }
    }
    for course in &mut courses {
        let lines = [&mut course.real_mbps, &mut course.as_sent_mbps, &mut course.as_scheduled_mbps];
        // Round to three decimals, the resolution of the figures.
        lines.into_iter().flatten().for_each(|mbps| *mbps = (*mbps * 1e3).round() / 1e3);
    }
    courses.sort_by_key(|course| (course.device, course.direction));
    courses
}

#[cfg(test)]
mod tests {
    use airpace_core::DeviceId;
    use airpace_tables::agreement::Real;

    use super::*;

    const START: Time = Time::from_millis(1_500);

    /// A packet that is scheduled `at_ms` after the start, sent 0.05 ms late, and delayed by 20 ms in real and virtual
    /// time.
    fn packet(at_ms: u64) -> Compared {
        let scheduled = START + Duration::from_millis(at_ms);
        let sent = scheduled + Duration::from_micros(50);
        let delay = Duration::from_millis(20);
        let at = |micros: u64| Some(sent + delay + Duration::from_micros(micros));
        Compared {
            device: DeviceId(0),
            direction: Direction::Downlink,
            bytes: Bytes(1_250),
            scheduled,
            sent: Some(sent),
            real: Real {
                entered: Some(sent + Duration::from_micros(10)),
                released: at(10),
                handed: at(40),
                received: at(30),
                fate: Some(Fate::Delivered),
            },
            as_sent: Some(Virtual { released: at(0), fate: Some(Fate::Delivered) }),
            as_scheduled: Virtual { released: Some(scheduled + delay), fate: Some(Fate::Delivered) },
        }
    }

    fn near(one: Option<f64>, other: f64) -> bool {
        one.is_some_and(|one| (one - other).abs() < 1e-9)
    }

    #[test]
    fn what_differs_is_the_emulators_as_sent_and_the_senders_too_as_scheduled() {
        let packets: Vec<Compared> = (0..200).map(packet).collect();
        let agreement = Agreement::of(&packets, START, vec![]);
        assert!(agreement.agrees(), "{:?}", agreement.objections());
        assert_eq!((agreement.packets, agreement.delivered, agreement.as_sent.compared), (200, 200, 200));
        assert!(near(agreement.sent_late_ms.max, 0.05));
        assert!(near(agreement.read_late_ms.p99, 0.01));
        assert!(near(agreement.handed_late_ms.p50, 0.03));
        assert!(near(agreement.as_sent.departures_ms.p99, 0.03), "{:?}", agreement.as_sent);
        assert!(near(agreement.as_scheduled.departures_ms.p99, 0.08));
        let [course] = &agreement.courses[..] else { panic!("{:?}", agreement.courses) };
        assert_eq!(agreement.interval_s, 0.1);
        assert!((course.real_mbps[1] - 10.0).abs() < 1e-9, "100 packets in 100 ms: {:?}", course.real_mbps);
        assert!(near(course.apart_ms[1], 0.03));
    }

    #[test]
    fn late_departures_disagree_if_there_are_more_than_one_in_a_hundred() {
        let mut packets: Vec<Compared> = (0..200).map(packet).collect();
        let later = |packet: &mut Compared| {
            packet.real.received = packet.real.received.map(|at| at + Duration::from_millis(3));
        };
        packets[..2].iter_mut().for_each(later);
        assert!(Agreement::of(&packets, START, vec![]).agrees());
        later(&mut packets[2]);
        let agreement = Agreement::of(&packets, START, vec![]);
        assert!(!agreement.agrees());
        let said = agreement.objections().join("\n");
        assert!(said.contains("as sent: one of 100 departures is 3.03 ms apart or more"), "{said}");
        assert!(said.contains("as scheduled: one of 100 departures is 3.08 ms apart or more"), "{said}");
    }

    #[test]
    fn drops_must_be_the_same_and_all_packets_accounted_for() {
        let mut packets: Vec<Compared> = (0..20).map(packet).collect();
        let drop = |it: &mut Compared| {
            it.real = Real { entered: it.real.entered, fate: Some(Fate::QueueFull), ..Real::default() };
        };
        drop(&mut packets[3]);
        let agreement = Agreement::of(&packets, START, vec![]);
        assert_eq!((agreement.as_sent.dropped_by_both, agreement.as_sent.only_real), (0, 1));
        assert_eq!((agreement.as_sent.compared, agreement.lost_outside), (20, 0));
        assert!(!agreement.agrees());
        let gone = Virtual { released: None, fate: Some(Fate::Aqm) };
        (packets[3].as_sent, packets[3].as_scheduled) = (Some(gone), gone);
        let agreement = Agreement::of(&packets, START, vec![]);
        assert!(agreement.agrees(), "dropped in all: {:?}", agreement.objections());
        assert_eq!((agreement.as_scheduled.dropped_by_both, agreement.as_scheduled.only_real), (1, 0));

        packets[5].real.received = None;
        let agreement = Agreement::of(&packets, START, vec![]);
        assert_eq!((agreement.lost_outside, agreement.agrees()), (1, false));
        packets[5] = packet(5);
        (packets[5].sent, packets[5].as_sent, packets[5].real) = (None, None, Real::default());
        let agreement = Agreement::of(&packets, START, vec![]);
        assert_eq!((agreement.not_sent, agreement.lost_outside, agreement.agrees()), (1, 0, false));
    }

    #[test]
    fn a_machine_that_was_late_proves_nothing() {
        let mut packets: Vec<Compared> = (0..200).map(packet).collect();
        let late = |packet: &mut Compared| {
            packet.scheduled = packet.sent.map_or(packet.scheduled, |sent| sent - Duration::from_millis(2));
            packet.as_scheduled.released = Some(packet.scheduled + Duration::from_millis(20));
        };
        packets[..2].iter_mut().for_each(late);
        assert!(Agreement::of(&packets, START, vec![]).agrees(), "one of a hundred may be");
        packets[2..4].iter_mut().for_each(late);
        let agreement = Agreement::of(&packets, START, vec![]);
        assert_eq!(
            agreement.unfit_because,
            ["one of 100 packets was sent 2.00 ms late or more, and 1 ms is allowed"]
        );
        assert!(!agreement.agrees() && !agreement.is_fit() && agreement.as_sent.agrees);

        let packets: Vec<Compared> = (0..200).map(packet).collect();
        let agreement = Agreement::of(&packets, START, vec!["the emulator came late".to_owned()]);
        assert!(agreement.as_sent.agrees && agreement.as_scheduled.agrees);
        assert!(!agreement.agrees(), "what looks like agreement is none");
    }

    #[test]
    fn nothing_is_no_agreement() {
        let agreement = Agreement::of(&[], START, vec![]);
        assert!(!agreement.agrees());
        assert!(agreement.objections()[0].contains("nothing was compared"));
        let text = serde_json::to_string(&agreement).unwrap();
        assert_eq!(serde_json::from_str::<Agreement>(&text).unwrap(), agreement);
    }
}
