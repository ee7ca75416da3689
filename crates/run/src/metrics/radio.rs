//! Use of the radio by the device of a flow, and the users of its primary carrier.

use std::time::Duration;

use airpace_core::{Direction, Time};
use airpace_event::{Arrived, Fate, Owner, Subframe};
use airpace_radio::{Dci, RadioReport, Rnti};
use airpace_tables::facts::{FlowFacts, RunFacts};
use serde::{Deserialize, Serialize};

use super::fairness::Side;
use super::rounded;

/// Use of a cell by the device of a flow in the direction of the flow, over the whole run, and the users of its primary
/// carrier. All flows of the device in this direction have the same values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RadioUse {
    /// Share of the device's PRBs that carried retransmissions, in [0, 1]. A grant of a new block and a retransmitted one
    /// counts half. `None` without grants.
    pub repeated_share: Option<f64>,
    /// Share of the bits of the device's new blocks that were not packets of its flows: headers of PDCP, RLC and MAC,
    /// padding, and RLC's control data; in [0, 1]. `None` without grants.
    ///
    /// Source: PBE-CC §4.2.1 Eq. 5 (γ)
    pub overhead_share: Option<f64>,
    /// Mean number of carriers with grants to the device per 100 ms, over the intervals with a grant; `None` without grants.
    pub carriers: Option<f64>,
    /// Share of the device's PRBs that were not on its primary carrier, in [0, 1]; `None` without grants.
    pub beyond_primary_share: Option<f64>,
    /// Mean number of users with downlink grants on the primary carrier per 40 ms, the device included. `None` for a
    /// carrier of NR.
    ///
    /// Source: PBE-CC §4.2.1
    pub users: Option<f64>,
    /// The same mean over the users that pass PBE-CC's filter: grants in more than one subframe and more than four PRBs on
    /// average.
    ///
    /// Source: PBE-CC §4.2.1 (Ta > 1, Pa > 4)
    pub data_users: Option<f64>,
    /// Maximum number of the users that pass the filter in 40 ms.
    pub max_data_users: Option<f64>,
    /// Mean of Jain's index of the PRBs on the primary carrier, over the windows of 1 s in which the flow and a greedy flow
    /// of another device with the same primary carrier were active.
    ///
    /// Source: PBE-CC §6.3
    pub jain_primary: Option<f64>,
}

/// Length of the windows in which users are counted.
///
/// Source: PBE-CC §4.2.1
pub const USER_WINDOW: Duration = Duration::from_millis(40);

/// Length of the intervals in which carriers are counted.
const INTERVAL: Duration = Duration::from_millis(100);

/// The first RNTI that does not belong to one user.
///
/// Source: TS 36.321 §7.1 Table 7.1-1
const FIRST_COMMON_RNTI: u16 = 0xFFFD;

/// The users of one carrier in windows of [`USER_WINDOW`].
#[derive(Clone, Debug, Default)]
pub(crate) struct UserCounter {
    /// Number of the present window, and its users; `None` before the first report.
    window: Option<u64>,
    present: Vec<User>,
    windows: u64,
    users: u64,
    data_users: u64,
    max_data_users: u64,
}

/// A user in a window.
#[derive(Clone, Copy, Debug)]
struct User {
    rnti: Rnti,
    last_subframe: u64,
    subframes: u32,
    prbs: u32,
}

impl User {
    /// Whether the user passes the filter for users with data.
    ///
    /// Source: PBE-CC §4.2.1 (Ta > 1, Pa > 4). Chosen: Pa is the mean over the subframes with a grant, as in `pbe`.
    fn has_data(&self) -> bool {
        self.subframes > 1 && self.prbs > 4 * self.subframes
    }
}

impl UserCounter {
    /// Counts the downlink grants of a subframe of LTE. `with_data` receives the users with data of each window when the
    /// window is complete.
    pub(crate) fn on_subframe(&mut self, report: &RadioReport, with_data: impl FnMut(Rnti)) {
        let window = report.time.as_nanos() / USER_WINDOW.as_nanos() as u64;
        if *self.window.get_or_insert(window) != window {
            self.close(window, with_data);
        }
        let subframe = report.slot.subframe();
        for dci in &report.dcis {
            if dci.direction != Direction::Downlink || dci.rnti.0 >= FIRST_COMMON_RNTI {
                continue;
            }
            let user = match self.present.iter_mut().find(|user| user.rnti == dci.rnti) {
                Some(user) => user,
                None => {
                    self.present.push(User {
                        rnti: dci.rnti,
                        last_subframe: u64::MAX,
                        subframes: 0,
                        prbs: 0,
                    });
                    self.present.last_mut().expect("it was just added")
                }
            };
            user.subframes += u32::from(user.last_subframe != subframe);
            user.last_subframe = subframe;
            user.prbs += u32::from(dci.prbs.len());
        }
    }

    /// Closes the present window. Windows without a report up to `next` have no users.
    fn close(&mut self, next: u64, mut with_data: impl FnMut(Rnti)) {
        let mut data_users = 0;
        for user in self.present.iter().filter(|user| user.has_data()) {
            data_users += 1;
            with_data(user.rnti);
        }
        self.windows += self.window.map_or(0, |present| next.saturating_sub(present));
        self.users += self.present.len() as u64;
        self.data_users += data_users;
        self.max_data_users = self.max_data_users.max(data_users);
        self.present.clear();
        self.window = Some(next);
    }

    /// Mean users, mean users with data, and the maximum of these, over the windows that are complete.
    pub(crate) fn counts(&self) -> Option<[f64; 3]> {
        let mean = |sum: u64| rounded(sum as f64 / self.windows as f64);
        (self.windows > 0).then(|| [mean(self.users), mean(self.data_users), self.max_data_users as f64])
    }
}

/// Receives the grants of all devices.
pub(super) struct RadioMeter {
    sides: Vec<SideMeter>,
    /// Users of the carriers that are the primary carrier of a device with downlink flows, by number of the carrier.
    users: Vec<(u8, UserCounter)>,
}

/// Grants of one device in one direction.
struct SideMeter {
    side: Side,
    primary: u8,
    prbs: u64,
    /// Twice the PRBs of retransmissions.
    repeated_half_prbs: u64,
    beyond_primary_prbs: u64,
    new_bits: u64,
    carried_bits: u64,
    /// Number of the present interval, and a bit for each carrier with a grant in it.
    interval: u64,
    carriers: u64,
    carrier_intervals: u64,
    intervals: u64,
}

impl RadioMeter {
    pub(super) fn new(facts: &RunFacts) -> RadioMeter {
        let mut sides: Vec<SideMeter> = facts.flows.iter().filter_map(SideMeter::of).collect();
        sides.sort_unstable_by_key(|meter| meter.side);
        sides.dedup_by_key(|meter| meter.side);
        let downlinks = sides.iter().filter(|meter| meter.side.1 == Direction::Downlink);
        let mut primaries: Vec<u8> = downlinks.map(|meter| meter.primary).collect();
        primaries.sort_unstable();
        primaries.dedup();
        RadioMeter {
            sides,
            users: primaries.into_iter().map(|carrier| (carrier, UserCounter::default())).collect(),
        }
    }

    fn of(&mut self, side: Side) -> Option<&mut SideMeter> {
        let place = self.sides.binary_search_by_key(&side, |meter| meter.side).ok()?;
        Some(&mut self.sides[place])
    }

    pub(super) fn on_arrived(&mut self, side: Side, arrived: &Arrived) {
        if arrived.fate == Fate::Delivered
            && let Some(meter) = self.of(side)
        {
            meter.carried_bits += arrived.packet.bytes.bits().0;
        }
    }

    pub(super) fn on_subframe(&mut self, subframe: &Subframe<'_>) {
        let report = subframe.report;
        let carrier = report.carrier.0;
        for (dci, owner) in report.dcis.iter().zip(subframe.owners) {
            if let Owner::Device(device) = owner
                && let Some(meter) = self.of((*device, dci.direction))
            {
                meter.on_grant(report.time, carrier, dci);
            }
        }
        let is_lte = report.symbols.is_none();
        if let Some((_, users)) = self.users.iter_mut().find(|(known, _)| is_lte && *known == carrier) {
            users.on_subframe(report, |_| {});
        }
    }

    /// The metrics of a flow, without the index of fairness; `None` if its last hop is no cell.
    pub(super) fn of_flow(&self, side: Side) -> Option<RadioUse> {
        let place = self.sides.binary_search_by_key(&side, |meter| meter.side).ok()?;
        let meter = &self.sides[place];
        let users = self.users.iter().find(|(carrier, _)| *carrier == meter.primary);
        let counts = users.and_then(|(_, counter)| counter.counts());
        let share = |part: f64, whole: u64| (whole > 0).then(|| rounded(part / whole as f64));
        let intervals = meter.intervals + u64::from(meter.carriers != 0);
        let carrier_intervals = meter.carrier_intervals + u64::from(meter.carriers.count_ones());
        let not_carried = meter.new_bits.saturating_sub(meter.carried_bits);
        Some(RadioUse {
            repeated_share: share(meter.repeated_half_prbs as f64 / 2.0, meter.prbs),
            overhead_share: share(not_carried as f64, meter.new_bits),
            carriers: share(carrier_intervals as f64, intervals),
            beyond_primary_share: share(meter.beyond_primary_prbs as f64, meter.prbs),
            users: counts.map(|[users, ..]| users),
            data_users: counts.map(|[_, users, _]| users),
            max_data_users: counts.map(|[.., users]| users),
            jain_primary: None,
        })
    }
}

impl SideMeter {
    fn of(flow: &FlowFacts) -> Option<SideMeter> {
        Some(SideMeter {
            side: (flow.device, flow.direction),
            primary: flow.primary?,
            prbs: 0,
            repeated_half_prbs: 0,
            beyond_primary_prbs: 0,
            new_bits: 0,
            carried_bits: 0,
            interval: 0,
            carriers: 0,
            carrier_intervals: 0,
            intervals: 0,
        })
    }

    fn on_grant(&mut self, time: Time, carrier: u8, dci: &Dci) {
        let prbs = u64::from(dci.prbs.len());
        self.prbs += prbs;
        self.beyond_primary_prbs += if carrier == self.primary { 0 } else { prbs };
        self.repeated_half_prbs += repeated_half_prbs(dci);
        self.new_bits += dci.new_bits().0;
        let interval = time.as_nanos() / INTERVAL.as_nanos() as u64;
        if interval != self.interval {
            self.intervals += u64::from(self.carriers != 0);
            self.carrier_intervals += u64::from(self.carriers.count_ones());
            (self.interval, self.carriers) = (interval, 0);
        }
        self.carriers |= 1 << (carrier % 64);
    }
}

/// Twice the PRBs of a grant that carry retransmissions. Two blocks of a grant have half of its PRBs each.
pub(super) fn repeated_half_prbs(dci: &Dci) -> u64 {
    let sent = (0..2).filter(|&codeword| dci.is_sent(codeword)).count() as u64;
    let again =
        (0..2).filter(|&codeword| dci.is_sent(codeword) && dci.retransmission[codeword]).count() as u64;
    2 * u64::from(dci.prbs.len()) * again / sent.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Meter;
    use airpace_core::DeviceId;
    use airpace_event::Event;
    use airpace_radio::{CarrierId, PrbSet, Slot};

    fn report(ms: u64, grants: &[(u16, u16)]) -> RadioReport {
        let mut report = RadioReport::new(CarrierId(0), Slot::subframe_of_lte(ms), Time::from_millis(ms));
        let dci = |&(rnti, prbs): &(u16, u16)| Dci {
            rnti: Rnti(rnti),
            direction: Direction::Downlink,
            prbs: PrbSet::run(0, prbs),
            ..Dci::default()
        };
        report.dcis = grants.iter().map(dci).collect();
        report
    }

    #[test]
    fn users_count_per_window_and_the_filter_needs_time_and_prbs() {
        let (mut counter, mut with_data) = (UserCounter::default(), Vec::new());
        // The first window: 100 has data, 101 one large grant, 102 many small grants, 103 a common RNTI.
        counter.on_subframe(&report(0, &[(100, 10), (101, 50), (102, 4), (0xFFFF, 8)]), |_| {});
        counter.on_subframe(&report(7, &[(100, 10), (102, 4)]), |_| {});
        // The second window has one user, the third none.
        counter.on_subframe(&report(41, &[(100, 1)]), |rnti| with_data.push(rnti.0));
        counter.on_subframe(&report(120, &[]), |_| panic!("no user has data"));
        assert_eq!(with_data, [100]);
        assert_eq!(counter.counts(), Some([rounded(4.0 / 3.0), rounded(1.0 / 3.0), 1.0]));
    }

    #[test]
    fn devices_are_compared_on_the_primary_carrier_that_they_share() {
        let whole: &[_] = &[(0, 10_000)];
        let mut facts = crate::metrics::tests::facts(&[whole; 3]);
        for (flow, primary) in facts.flows.iter_mut().zip([0, 0, 3]) {
            flow.primary = Some(primary);
        }
        let mut meter = Meter::new(&facts);
        let mut see = |ms: u64, carrier: u8, grants: &[(u16, u16)]| {
            let mut report = report(ms, grants);
            report.carrier = CarrierId(carrier);
            report.dcis.iter_mut().for_each(|dci| dci.tbs[0] = airpace_core::Bits(1_000));
            let owners: Vec<Owner> =
                grants.iter().map(|(rnti, _)| Owner::Device(DeviceId(rnti - 100))).collect();
            meter.record(&Event::Subframe(&Subframe { report: &report, owners: &owners }));
        };
        for ms in 0..10_000 {
            see(ms, 0, &[(100, 10), (101, 10)]);
            see(ms, 1, &[(101, 30)]);
            see(ms, 3, &[(102, 5)]);
        }
        for packet in 0..5_000 {
            let at = Time::from_millis(2 * packet + 1);
            let arrived = crate::metrics::tests::arrival(0, at, Duration::from_millis(1), Fate::Delivered);
            let packet = airpace_core::Packet { bytes: airpace_core::Bytes(200), ..arrived.packet };
            meter.record(&Event::Arrived(Arrived { packet, ..arrived }));
        }
        let measured = meter.finish();
        assert_eq!(measured.jain_primary.len(), 10, "the third device has a carrier of its own");
        assert!(measured.jain_primary.iter().all(|window| window.jain == 1.0 && window.sharers == 2));
        assert!(measured.jain_prbs.iter().all(|window| window.jain < 0.7 && window.sharers == 3));
        let [one, two, three] = [0, 1, 2].map(|flow| measured.flows[flow].radio.unwrap());
        assert_eq!((one.carriers, one.beyond_primary_share), (Some(1.0), Some(0.0)));
        assert_eq!((two.carriers, two.beyond_primary_share), (Some(2.0), Some(0.75)));
        assert_eq!((one.jain_primary, three.jain_primary), (Some(1.0), None));
        assert_eq!(one.overhead_share, Some(0.2), "1600 of 2000 bits in two milliseconds");
        assert_eq!((one.users, one.data_users, three.users), (Some(2.0), Some(2.0), Some(1.0)));
    }

    #[test]
    fn a_grant_of_a_new_and_a_repeated_block_is_half_repeated() {
        let grant =
            |retransmission, mcs| Dci { retransmission, mcs, prbs: PrbSet::run(0, 10), ..Dci::default() };
        let (one, two) = ([Some(5), None], [Some(5), Some(5)]);
        assert_eq!(repeated_half_prbs(&grant([false, false], one)), 0);
        assert_eq!(repeated_half_prbs(&grant([true, false], one)), 20);
        assert_eq!(repeated_half_prbs(&grant([true, false], two)), 10);
        assert_eq!(repeated_half_prbs(&grant([true, true], two)), 20);
    }
}
