//! Tests of the receiver's modules with hand-made reports.

use airpace_core::{Bits, Bytes, Ecn, Rate, Time};
use airpace_radio::{BitLayer, CarrierId, Dci, Missed, OwnRadio, PrbSet, RadioReport, Rnti, Scope, Slot};

use super::bottleneck::{Bottleneck, Evidence, Rules};
use super::capacity::Carrier;
use super::carriers::{Carriers, CellState, Measure};
use super::feedback::{Feedback, Header};
use super::receiver::PbeReceiver;
use super::unread::{Shared, Unread};
use super::users::{UserFilter, Weights};
use super::*;
use crate::controller::{Arrival, Inspect, Receiver};
use crate::registry::DeviceFlows;
use crate::schemes::SchemeSpec;

mod nr;

const OWN: Rnti = Rnti(100);

fn tuning(text: &str) -> Tuning {
    let spec = SchemeSpec::parse(text).unwrap();
    Tuning::read(spec.options()).unwrap()
}

/// The report of a subframe on a carrier with 100 PRBs. `grants` has the user and the number of PRBs of each grant;
/// every PRB carries 500 bits.
fn report(carrier: u8, subframe: u64, grants: &[(u16, u16)]) -> RadioReport {
    let mut start = 0;
    let dcis = grants.iter().map(|&(rnti, prbs)| {
        start += prbs;
        Dci {
            rnti: Rnti(rnti),
            prbs: PrbSet::run(start - prbs, prbs),
            mcs: [Some(10), None],
            tbs: [Bits(500 * u64::from(prbs)), Bits::ZERO],
            layers: 1,
            ..Dci::default()
        }
    });
    RadioReport {
        carrier: CarrierId(carrier),
        time: Time::from_millis(subframe),
        slot: Slot::subframe_of_lte(subframe),
        scope: Scope::Everyone,
        carrier_prbs: Some(100),
        cfi: Some(2),
        symbols: None,
        dcis: dcis.collect(),
        own: Some(OwnRadio {
            rnti: OWN,
            active: true,
            sinr_db: Some(15.0),
            bits_per_prb: Some(400.0),
            decoded: None,
            uplink_queue: None,
        }),
        layer: BitLayer::Physical,
    }
}

fn shared(report: &RadioReport) -> Shared {
    Unread::default().share(report, report.own.as_ref().unwrap()).unwrap()
}

fn carrier_of(reports: &[RadioReport], window: u64) -> Carrier {
    let mut carrier = Carrier::new(UserFilter::Both, Weights::Equal);
    for report in reports {
        carrier.on_report(report, shared(report), report.own.as_ref().unwrap(), 40);
        carrier.advance(report.slot.subframe(), window);
    }
    carrier
}

fn measure() -> Measure {
    tuning("pbe").measure
}

#[test]
fn idle_prbs_are_shared_equally_and_own_ones_kept() {
    let reports: Vec<_> = (0..40).map(|n| report(0, n, &[(100, 10), (7, 40)])).collect();
    let averages = carrier_of(&reports, 40).averages().unwrap();
    assert_eq!((averages.own_prbs, averages.idle_prbs, averages.users), (10.0, 50.0, 2.0));
    assert_eq!(averages.capacity_bits(), 500.0 * (10.0 + 50.0 / 2.0), "Eq. 3");
    assert_eq!(averages.fair_share_bits(), 500.0 * 100.0 / 2.0, "Eq. 2");
}

#[test]
fn without_a_grant_the_channel_quality_says_what_a_prb_carries() {
    let reports: Vec<_> = (0..40).map(|n| report(0, n, &[])).collect();
    assert_eq!(carrier_of(&reports, 40).averages().unwrap().bits_per_prb, 400.0);
    let reports: Vec<_> = (0..40).map(|n| report(0, n, if n == 0 { &[(100, 20)] } else { &[] })).collect();
    assert_eq!(
        carrier_of(&reports, 40).averages().unwrap().bits_per_prb,
        500.0,
        "the device's own grant is more exact"
    );
}

#[test]
fn the_average_covers_rtprop_subframes_and_forgets_the_rest_to_the_bit() {
    let mut reports: Vec<_> = (0..100).map(|n| report(0, n, &[(100, 33)])).collect();
    reports.extend((100..140).map(|n| report(0, n, &[(100, 90)])));
    assert_eq!(carrier_of(&reports, 40).averages().unwrap().own_prbs, 90.0);
    assert_eq!(carrier_of(&reports, 80).averages().unwrap().own_prbs, 0.5 * (33.0 + 90.0));
}

#[test]
fn parameter_updates_do_not_make_a_user() {
    // Two of the three users only update parameters: one gets four PRBs once, the other gets four PRBs from time to
    // time.
    let grants = |n: u64| match n % 10 {
        0 => vec![(100, 20), (9, 30), (200 + n as u16, 4)],
        5 => vec![(100, 20), (9, 30), (8, 4)],
        _ => vec![(100, 20), (9, 30)],
    };
    let reports: Vec<_> = (0..200).map(|n| report(0, n, &grants(n))).collect();
    assert_eq!(carrier_of(&reports, 40).users(), 2, "the device itself and the user with data");
    let last = carrier_of(&reports, 40).averages().unwrap();
    assert!(last.idle_prbs < 50.0, "but the PRBs of every user are taken: {}", last.idle_prbs);
}

#[test]
fn with_weights_users_count_by_what_a_prb_carries_to_them() {
    // A PRB of the other user carries a quarter of the bits of this device's PRBs.
    let reports: Vec<_> = (0..40)
        .map(|n| {
            let mut report = report(0, n, &[(100, 40), (7, 50)]);
            report.dcis[1].tbs[0] = Bits(125 * 50);
            report
        })
        .collect();
    let averages = |weights: Weights| {
        let mut carrier = Carrier::new(UserFilter::Both, weights);
        for report in &reports {
            carrier.on_report(report, shared(report), report.own.as_ref().unwrap(), 40);
            carrier.advance(report.slot.subframe(), 40);
        }
        carrier.averages().unwrap()
    };
    let (equal, weighted) = (averages(Weights::Equal), averages(Weights::Rate));
    assert_eq!((equal.users, weighted.users), (2.0, 5.0), "the weak user counts four times");
    assert_eq!(weighted.fair_share_prbs(), 20.0);
    // The device has 40 PRBs and its share of the ten idle PRBs, which is two. The capacity moves by a quarter of the
    // distance from 42 to 20 PRBs.
    assert_eq!(weighted.capacity_bits(), 500.0 * (42.0 - 0.25 * 22.0));
    assert_eq!(equal.capacity_bits(), 500.0 * 45.0, "Eq. 3");
}

#[test]
fn retransmissions_are_told_by_their_indicator_where_nobody_marks_them() {
    let reports = (0..2_000u64).map(|n| {
        let mut report = report(0, n, &[(100, 80)]);
        // Every fifth grant of a HARQ process is a retransmission.
        let dci = &mut report.dcis[0];
        dci.harq = Some((n % 8) as u8);
        dci.ndi = [Some((n / 8 - n / 8 / 5).is_multiple_of(2)); 2];
        report
    });
    let averages = carrier_of(&reports.collect::<Vec<_>>(), 40).averages().unwrap();
    let counted = averages.retransmissions(0.25);
    assert!((counted - 0.25).abs() < 0.02, "one PRB in five is sent again: {counted} per new one");
}

#[test]
fn a_codeword_sent_again_beside_new_data_takes_half_of_the_grant() {
    let reports = (0..4_000).map(|n| {
        let mut report = report(0, n, &[(100, 100)]);
        let dci = &mut report.dcis[0];
        (dci.mcs[1], dci.tbs[1]) = (dci.mcs[0], dci.tbs[0]);
        dci.retransmission[1] = n % 5 == 0;
        report
    });
    let again = carrier_of(&reports.collect::<Vec<_>>(), 40).averages().unwrap().retransmissions(0.0);
    assert!((again - 1.0 / 9.0).abs() < 0.01, "a tenth of all codewords is a ninth of the new ones: {again}");
}

#[test]
fn a_new_carrier_is_averaged_since_its_activation_only() {
    let mut carriers = Carriers::new(measure());
    for n in 0..100 {
        carriers.on_report(&report(0, n, &[(100, 100)]));
        let mut second = report(1, n, &[]);
        second.own.as_mut().unwrap().active = n >= 90;
        carriers.on_report(&second);
    }
    let state = carriers.state();
    assert_eq!((state.carriers, carriers.activations()), (2, 1));
    assert_eq!(state.idle_prbs, 100.0, "all of the new carrier, although it has only a few subframes");
    assert_eq!(state.physical_bits, 500.0 * 100.0 + 400.0 * 100.0);
}

#[test]
fn carriers_are_aligned_by_subframe_and_a_silent_one_does_not_stall_the_rest() {
    let mut carriers = Carriers::new(measure());
    for n in 0..100 {
        // The first carrier has been busy since subframe 50. The reports of the second arrive four subframes late.
        carriers.on_report(&report(0, n, if n < 50 { &[] } else { &[(100, 100)] }));
        if n >= 4 {
            carriers.on_report(&report(1, n - 4, if n - 4 < 50 { &[] } else { &[(100, 100)] }));
        }
        if n == 69 {
            let state = carriers.state();
            assert_eq!(state.own_prbs, 2.0 * 100.0 * 16.0 / 40.0, "both averages end with subframe 65");
        }
    }
    for n in 100..140 {
        carriers.on_report(&report(0, n, &[(100, 100)]));
    }
    let state = carriers.state();
    assert_eq!((state.carriers, state.missing), (1, 1));
    assert_eq!(state.own_prbs, 100.0);
}

#[test]
fn what_counts_transport_bits_is_not_translated() {
    let state = |layer| {
        let mut carriers = Carriers::new(measure());
        for n in 0..40 {
            carriers.on_report(&RadioReport { layer, ..report(0, n, &[(100, 50)]) });
        }
        carriers.state()
    };
    let trace = state(BitLayer::Transport);
    assert_eq!(trace.capacity_bits, trace.physical_bits);
    assert_eq!(trace.physical_bits, 50_000.0);
    assert!(state(BitLayer::Physical).capacity_bits < 0.99 * 50_000.0);
}

/// A cell in which `idle_share` of the PRBs are granted to no user.
fn cell(idle_share: f64) -> CellState {
    CellState { idle_share, long_term_share: 1.0, ..CellState::default() }
}

/// Processes `packets` packets, one per millisecond, from `from` ms on. Returns, for each packet, whether the
/// bottleneck is in the Internet after it.
fn judge(
    bottleneck: &mut Bottleneck,
    from: u64,
    packets: u64,
    late: bool,
    mbps: f64,
    cell: &CellState,
) -> Vec<bool> {
    (from..from + packets)
        .map(|ms| {
            let packet = Evidence {
                now: Time::from_millis(ms),
                late,
                capacity: Rate::from_mbps(60.0),
                fair_share: Rate::from_mbps(60.0),
                pacing_rate: Some(Rate::from_mbps(mbps)),
            };
            bottleneck.on_packet(&packet, cell);
            bottleneck.is_internet()
        })
        .collect()
}

#[test]
fn the_text_switches_at_npkt_packets_and_returns_with_the_rate() {
    let mut bottleneck = Bottleneck::new(tuning("pbe@paper").rules, Bytes(1500));
    // Npkt = 6 · 60,000 bits ÷ 12,000 bits = 30.
    let seen = judge(&mut bottleneck, 0, 40, true, 60.0, &cell(0.0));
    assert_eq!(seen.iter().position(|internet| *internet), Some(29), "Eq. 6");
    assert!(judge(&mut bottleneck, 40, 100, false, 50.0, &cell(0.0)).iter().all(|internet| *internet));
    let seen = judge(&mut bottleneck, 140, 1, false, 60.0, &cell(0.0));
    assert!(!seen[0], "Npkt packets were on time, and the rate has reached Cf");
}

#[test]
fn one_packet_in_time_breaks_the_row() {
    let mut bottleneck = Bottleneck::new(tuning("pbe@paper").rules, Bytes(1500));
    judge(&mut bottleneck, 0, 29, true, 60.0, &cell(0.0));
    judge(&mut bottleneck, 29, 1, false, 60.0, &cell(0.0));
    assert!(judge(&mut bottleneck, 30, 29, true, 60.0, &cell(0.0)).iter().all(|internet| !internet));
}

#[test]
fn a_queue_that_may_be_the_cells_is_no_reason_to_switch() {
    let rules: Rules = tuning("pbe").rules;
    let mut bottleneck = Bottleneck::new(rules, Bytes(1500));
    assert!(judge(&mut bottleneck, 0, 500, true, 60.0, &cell(0.02)).iter().all(|internet| !internet));
    assert!(
        judge(&mut bottleneck, 500, 40, true, 60.0, &cell(0.5)).contains(&true),
        "the cell has idle PRBs, so the queue is elsewhere"
    );
    let mut bottleneck = Bottleneck::new(rules, Bytes(1500));
    let starved = CellState { long_term_share: 0.3, ..cell(0.0) };
    assert!(
        judge(&mut bottleneck, 0, 40, true, 60.0, &starved).contains(&true),
        "the share is far below the fair one, so the queue is elsewhere"
    );
}

#[test]
fn stale_telemetry_says_so() {
    let mut receiver = PbeReceiver::new(tuning("pbe"), Bytes(1500));
    let header = Header { rtprop: Some(Duration::from_millis(40)), ..Header::default() }.write();
    let mut feedback_at = |ms: u64, heard: bool| {
        if heard {
            receiver.on_radio(&report(0, ms, &[(100, 50)]));
        }
        receiver.on_packet(&Arrival {
            now: Time::from_millis(ms),
            sent: Time::from_millis(ms),
            number: ms,
            bytes: Bytes(1500),
            ecn: Ecn::NotEct,
            header: header.as_bytes(),
            device: DeviceFlows::ALONE,
        });
        Feedback::read(receiver.feedback(Time::from_millis(ms)).as_bytes()).unwrap()
    };
    assert!(!feedback_at(0, false).fresh, "no report has come yet");
    for ms in 1..100 {
        assert!(feedback_at(ms, true).fresh);
    }
    assert!(feedback_at(159, false).fresh, "60 ms: what 100 ms leave after a round trip");
    assert!(!feedback_at(160, false).fresh);
    assert!(feedback_at(191, true).fresh, "the next report makes it fresh again");
}

#[test]
fn reports_that_lack_grants_are_refused_and_counted() {
    let mut receiver = PbeReceiver::new(tuning("pbe"), Bytes(1500));
    for (ms, scope) in
        (0..).zip([Scope::Own, Scope::EveryoneBut { unexplained: 1, missed: None }, Scope::Own])
    {
        // If this report counted as a report of all grants, it would show an idle cell.
        receiver.on_radio(&RadioReport { scope, ..report(0, ms, &[(100, 5)]) });
    }
    let feedback = Feedback::read(receiver.feedback(Time::from_millis(3)).as_bytes()).unwrap();
    assert!(!feedback.fresh, "the sender falls back");
    let mut seen = Inspect::default();
    receiver.inspect(&mut seen);
    assert!(seen.values.contains(&("refused_reports_n", 3.0)), "{:?}", seen.values);
}

#[test]
fn a_carrier_whose_reports_are_mostly_partial_is_missing_until_it_is_read_again() {
    for (preset, is_believed) in [("pbe", false), ("pbe@paper", true)] {
        let mut receiver = PbeReceiver::new(tuning(preset), Bytes(1500));
        let mut is_fresh_at = |ms: u64, is_whole: bool| {
            let scope =
                if is_whole { Scope::Everyone } else { Scope::EveryoneBut { unexplained: 2, missed: None } };
            // Only the subframes with few messages can be decoded completely.
            receiver
                .on_radio(&RadioReport { scope, ..report(0, ms, &[(100, if is_whole { 5 } else { 95 })]) });
            Feedback::read(receiver.feedback(Time::from_millis(ms)).as_bytes()).unwrap().fresh
        };
        assert!((0..100).all(|ms| is_fresh_at(ms, true)));
        let with_a_few = (100..120).all(|ms| is_fresh_at(ms, ms % 3 == 0));
        assert!(with_a_few, "a short burst is not the end");
        for ms in 120..400 {
            is_fresh_at(ms, ms % 14 == 0);
        }
        assert_eq!(is_fresh_at(406, true), is_believed, "{preset}: of 280 reports 20 were whole");
        for ms in 407..600 {
            is_fresh_at(ms, true);
        }
        assert!(is_fresh_at(600, true), "{preset}: all reports were whole for 0.2 s");
    }
}

/// The scope of a report that missed messages: `recall` is the fraction of messages that can be decoded, `prbs` the
/// expected number of PRBs in the other messages.
fn partly(recall: f64, prbs: f64) -> Scope {
    Scope::EveryoneBut { unexplained: 2, missed: Some(Missed { recall, messages: 1.0, cces: 2.0, prbs }) }
}

#[test]
fn what_is_not_read_makes_careful_and_not_blind() {
    // Two users take the whole cell. Every second message for them is decoded.
    let told = |unread: &str, scope: fn(bool) -> Scope| {
        let mut receiver = PbeReceiver::new(tuning(unread), Bytes(1500));
        for ms in 0..200 {
            let all: &[(u16, u16)] = &[(100, 50), (7, 50)];
            let (grants, is_whole) = match ms % 4 {
                0 => (all, true),
                1 => (&all[..1], false),
                2 => (&all[1..], false),
                _ => (&all[..0], false),
            };
            receiver.on_radio(&RadioReport { scope: scope(is_whole), ..report(0, ms, grants) });
        }
        let mut seen = Inspect::default();
        receiver.feedback(Time::from_millis(200));
        receiver.inspect(&mut seen);
        let value = |name| seen.values.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
        (value("users_n").unwrap(), value("idle_prbs").unwrap(), value("own_prbs").unwrap())
    };
    let estimated = |is_whole| if is_whole { Scope::Everyone } else { partly(0.5, 62.5) };
    let (users, idle, own) = told("pbe", estimated);
    assert!(users == 2.0 && idle < 12.0, "{users} users, {idle} PRBs idle");
    assert!((own - 50.0).abs() < 12.0, "with its share of what was not read, {own} PRBs are its own");
    let blind = |_| Scope::Everyone;
    let (_, idle, own) = told("pbe", blind);
    assert!(
        (idle, own) == (50.0, 25.0),
        "taken for whole, such reports show a half empty cell: {idle}, {own}"
    );
    let (_, idle, _) = told("pbe:unread=refused", estimated);
    assert_eq!(idle, 0.0, "only whole reports count");
}

#[test]
fn users_outlast_a_fade_but_not_for_ever() {
    let mut carrier = Carrier::new(UserFilter::Both, Weights::Equal);
    let mut users_after = |subframes: std::ops::Range<u64>, grants: &[(u16, u16)], scope: Scope| {
        for n in subframes {
            let report = RadioReport { scope, ..report(0, n, grants) };
            carrier.on_report(&report, shared(&report), report.own.as_ref().unwrap(), 40);
        }
        carrier.users()
    };
    assert_eq!(users_after(0..50, &[(100, 20), (7, 40)], Scope::Everyone), 2);
    assert_eq!(users_after(50..250, &[], partly(0.0, 2.0)), 2, "200 subframes in which nothing was heard");
    assert_eq!(users_after(250..500, &[], partly(0.0, 2.0)), 1, "after ten times the window it is forgotten");
    assert_eq!(users_after(500..550, &[(100, 20), (7, 40)], partly(0.5, 9.0)), 2);
    assert_eq!(
        users_after(550..591, &[(100, 20)], Scope::Everyone),
        1,
        "whoever is not served while all is heard"
    );
}

#[test]
fn whoever_is_seldom_read_is_not_forgotten_between_two_readings() {
    let mut carrier = Carrier::new(UserFilter::Both, Weights::Equal);
    let mut counted = |subframes: std::ops::Range<u64>, every: u64, scope: Scope| {
        let mut counts = vec![];
        for n in subframes {
            let grants: &[(u16, u16)] =
                if n.is_multiple_of(every) { &[(100, 10), (7, 20)] } else { &[(100, 10)] };
            let report = RadioReport { scope, ..report(0, n, grants) };
            carrier.on_report(&report, shared(&report), report.own.as_ref().unwrap(), 40);
            counts.push(carrier.users());
        }
        counts
    };
    let heard_badly = partly(0.6, 2.0);
    counted(0..2_000, 60, heard_badly);
    assert!(counted(2_000..4_000, 60, heard_badly).iter().all(|&users| users == 2));
    assert_eq!(
        counted(4_001..4_700, 10_000, heard_badly).last(),
        Some(&1),
        "it is gone after eight times 60"
    );
    counted(4_700..6_000, 60, heard_badly);
    let in_a_fade = counted(6_001..6_800, 10_000, partly(0.1, 2.0));
    assert!(in_a_fade.iter().all(|&users| users == 2), "of 800 subframes 80 were heard");
    counted(7_000..9_000, 60, Scope::Everyone);
    let there = counted(9_000..11_000, 60, Scope::Everyone);
    assert!(there.contains(&1), "where all is read, who is not read is not there");
}

#[test]
fn prbs_that_unread_messages_grant_are_somebody_s() {
    let users = |prbs| {
        let mut carrier = Carrier::new(UserFilter::Both, Weights::Equal);
        for n in 0..200 {
            let report = RadioReport { scope: partly(0.5, prbs), ..report(0, n, &[(100, 30)]) };
            carrier.on_report(&report, shared(&report), report.own.as_ref().unwrap(), 40);
        }
        carrier.users()
    };
    assert_eq!((users(40.0), users(3.0)), (2, 1));
}

#[test]
fn who_hears_next_to_nothing_has_no_telemetry() {
    let mut receiver = PbeReceiver::new(tuning("pbe"), Bytes(1500));
    let mut is_fresh_at = |ms: u64, recall: f64| {
        receiver.on_radio(&RadioReport { scope: partly(recall, 20.0), ..report(0, ms, &[(100, 30)]) });
        Feedback::read(receiver.feedback(Time::from_millis(ms)).as_bytes()).unwrap().fresh
    };
    assert!((0..500).all(|ms| is_fresh_at(ms, 0.4)), "of ten messages four are read");
    assert!((500..600).all(|ms| is_fresh_at(ms, 0.0)), "a fade is bridged");
    (600..800).for_each(|ms| _ = is_fresh_at(ms, 0.0));
    assert!(!is_fresh_at(800, 0.0), "but not if it lasts");
}

#[test]
fn two_flows_of_a_device_are_told_half_of_it_each() {
    let told = |flows: u16| {
        let mut receiver = PbeReceiver::new(tuning("pbe"), Bytes(1500));
        for ms in 0..50 {
            receiver.on_radio(&report(0, ms, &[(100, 50)]));
        }
        receiver.on_packet(&Arrival {
            now: Time::from_millis(50),
            sent: Time::from_millis(30),
            number: 0,
            bytes: Bytes(1500),
            ecn: Ecn::NotEct,
            header: &[],
            device: DeviceFlows { flows, ..DeviceFlows::ALONE },
        });
        Feedback::read(receiver.feedback(Time::from_millis(50)).as_bytes())
            .unwrap()
            .capacity
            .unwrap()
            .as_mbps()
    };
    assert!((told(1) / told(2) - 2.0).abs() < 1e-3);
    assert!(told(0) > 0.0, "a device that reports no flows counts as one flow");
}

#[test]
fn where_a_queue_stands_what_seems_idle_is_somebody_s() {
    let told = |scope: Scope, excess_ms: u64| {
        let mut receiver = PbeReceiver::new(tuning("pbe"), Bytes(1500));
        for ms in 0..200 {
            receiver.on_radio(&RadioReport { scope, ..report(0, ms, &[(100, 50)]) });
            let delay = if ms < 20 { 0 } else { excess_ms };
            receiver.on_packet(&Arrival {
                now: Time::from_millis(100 + ms),
                sent: Time::from_millis(80 + ms - delay),
                number: ms,
                bytes: Bytes(1500),
                ecn: Ecn::NotEct,
                header: &[],
                device: DeviceFlows::ALONE,
            });
        }
        let feedback = Feedback::read(receiver.feedback(Time::from_millis(300)).as_bytes()).unwrap();
        feedback.capacity.unwrap().as_mbps()
    };
    let (half, queued) = (told(partly(0.5, 50.0), 0), told(partly(0.5, 0.0), 16));
    // The expected ratio is 0.84, less the block errors that are expected for the larger blocks.
    assert!((0.78..0.85).contains(&(queued / half)), "of {half} Mbit/s that it has it is told {queued}");
    assert!(told(partly(0.5, 0.0), 0) > 1.9 * half, "without a queue, half of the cell is idle");
    assert!(told(Scope::Everyone, 16) > 1.9 * half, "and if all was read, it is");
}
