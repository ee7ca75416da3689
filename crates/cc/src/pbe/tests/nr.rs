//! Tests with reports of NR carriers: TDD slots and numerologies.

use airpace_core::Direction;
use airpace_core::tables::nr;
use airpace_radio::{DciFormat, Numerology};
use proptest::prelude::*;

use crate::biscay;
use crate::biscay::receiver::BiscayReceiver;

use super::*;

/// The TDD pattern DDDSU. Numbers are data symbols; the special slot has nine or ten.
const DDDSU: [[u8; 5]; 2] = [[13, 13, 13, 9, 0], [13, 13, 13, 10, 0]];

/// The TDD pattern DDDSUUDDDD.
const DDDSUUDDDD: [u8; 10] = [13, 13, 13, 9, 0, 0, 13, 13, 13, 13];

/// The width of a carrier of 100 MHz with a subcarrier spacing of 30 kHz.
const WIDE: u16 = 273;

/// Transport block of MCS 27 of table 2 with four layers.
fn block(n_prb: u16, symbols: u8) -> Bits {
    let allocation = nr::Allocation { n_prb, symbols, dmrs_res_per_prb: 12, overhead_res_per_prb: 0 };
    nr::McsTable::Qam256.tbs(27, &allocation, 4).unwrap()
}

/// A carrier: its numerology, its width, and the data symbols of each slot of its TDD pattern.
#[derive(Clone, Copy)]
struct Cell<'a> {
    mu: u8,
    prbs: u16,
    pattern: &'a [u8],
}

impl Cell<'_> {
    fn symbols(&self, index: u64) -> u8 {
        self.pattern[(index % self.pattern.len() as u64) as usize]
    }

    /// Report of slot `index` with grants of (user, PRBs).
    fn report(&self, index: u64, grants: &[(u16, u16)]) -> RadioReport {
        let symbols = self.symbols(index);
        let mut start = 0;
        let dcis = grants.iter().filter(|_| symbols > 0).map(|&(rnti, prbs)| {
            start += prbs;
            Dci {
                rnti: Rnti(rnti),
                format: DciFormat::Nr11,
                prbs: PrbSet::run(start - prbs, prbs),
                mcs: [Some(27), None],
                tbs: [block(prbs, symbols), Bits::ZERO],
                layers: 4,
                symbols: Some(symbols),
                ..Dci::default()
            }
        });
        let slot = Slot { numerology: Numerology::new(self.mu).unwrap(), index };
        RadioReport {
            time: Time::from_nanos(index * slot.numerology.slot_duration().as_nanos() as u64),
            slot,
            carrier_prbs: Some(self.prbs),
            symbols: Some(symbols),
            cfi: None,
            dcis: dcis.collect(),
            own: Some(OwnRadio {
                bits_per_prb: Some(block(self.prbs, 13).0 as f64 / f64::from(self.prbs)),
                ..super::report(0, 0, &[]).own.unwrap()
            }),
            ..super::report(0, 0, &[])
        }
    }

    /// Reports of `millis` ms.
    fn reports(&self, millis: u64, grants: &[(u16, u16)]) -> Vec<RadioReport> {
        (0..millis << self.mu).map(|index| self.report(index, grants)).collect()
    }

    /// True capacity of the idle cell in bits per ms.
    fn capacity_bits(&self) -> f64 {
        let bits = self.pattern.iter().map(|&symbols| block(self.prbs, symbols).0);
        bits.sum::<u64>() as f64 * f64::from(1 << self.mu) / self.pattern.len() as f64
    }

    /// Computed capacity relative to the true one, with `change` applied to every report.
    fn error_with(&self, grants: &[(u16, u16)], change: impl Fn(&mut RadioReport)) -> f64 {
        let mut reports = self.reports(100, grants);
        reports.iter_mut().for_each(change);
        carrier_of(&reports, 40).averages().unwrap().capacity_bits() / self.capacity_bits() - 1.0
    }

    fn error(&self, grants: &[(u16, u16)]) -> f64 {
        self.error_with(grants, |_| ())
    }
}

fn without_symbols(report: &mut RadioReport) {
    report.symbols = None;
    report.dcis.iter_mut().for_each(|dci| dci.symbols = None);
}

#[test]
fn the_capacity_of_an_idle_tdd_cell_is_that_of_its_downlink_symbols() {
    let tdd = DDDSU.iter().map(|pattern| Cell { mu: 1, prbs: WIDE, pattern });
    let fdd = Cell { mu: 0, prbs: 106, pattern: &[13] };
    let mmwave = Cell { mu: 3, prbs: 264, pattern: &DDDSU[0] };
    let long = Cell { mu: 1, prbs: WIDE, pattern: &DDDSUUDDDD };
    for cell in tdd.chain([long, fdd, mmwave]) {
        for own in [0, 16, cell.prbs / 2, cell.prbs] {
            let error = cell.error(&[(100, own)][..usize::from(own > 0)]);
            // Blocks of 16 or 136 PRBs have 2.2 % fewer bits per PRB than a block of 273 PRBs (TS 38.214 §5.1.3.2).
            let is_partial = 0 < own && own < cell.prbs;
            let most = if is_partial { 0.025 } else { 0.005 };
            assert!(error.abs() < most, "{own} PRBs of {:?} granted: {error:+.4}", cell.pattern);
        }
    }
    // Three downlink slots and a special slot in 2.5 ms: (3 · 1,179,864 + 770,568) bits / 2.5 ms.
    let cell = Cell { mu: 1, prbs: WIDE, pattern: &DDDSU[0] };
    assert_eq!(cell.capacity_bits().round(), 1_724_064.0);
}

#[test]
fn without_the_symbols_of_slots_an_idle_cell_seems_a_third_faster() {
    let cell = Cell { mu: 1, prbs: WIDE, pattern: &DDDSU[0] };
    let idle = cell.error_with(&[], without_symbols);
    assert!((idle - 0.37).abs() < 0.005, "5 / (3 + 0.653): {idle:+.4}");
    let full = cell.error_with(&[(100, WIDE)], without_symbols);
    assert!((full - 0.25).abs() < 0.005, "the uplink slot seems idle: {full:+.4}");
}

#[test]
fn a_second_user_gets_half_of_a_tdd_cell() {
    let cell = Cell { mu: 1, prbs: WIDE, pattern: &DDDSU[0] };
    let averages = carrier_of(&cell.reports(100, &[(100, 136), (7, 137)]), 40).averages().unwrap();
    assert_eq!((averages.users, averages.idle_prbs), (2.0, 0.0));
    let share = averages.fair_share_bits() / cell.capacity_bits();
    assert!((share - 0.5).abs() < 0.01, "Eq. 2: {share}");
    let shorter = |report: &mut RadioReport| {
        // The other user's grant has only half of the symbols, so that half of its resource elements are idle.
        report.dcis.iter_mut().filter(|dci| dci.rnti == Rnti(7)).for_each(|dci| dci.symbols = Some(7));
    };
    let mut reports = cell.reports(100, &[(100, 136), (7, 137)]);
    reports.iter_mut().for_each(shorter);
    let averages = carrier_of(&reports, 40).averages().unwrap();
    // A PRB of seven symbols has the value 1/2: 3 downlink slots leave 68.5 PRBs each, the special slot 137 / 6.
    let idle = (3.0 * 137.0 / 2.0 + 137.0 / 6.0) / 2.5;
    assert!((averages.idle_prbs - idle).abs() < 0.01, "{} and {idle}", averages.idle_prbs);
}

#[test]
fn uplink_slots_are_no_evidence() {
    let cell = Cell { mu: 1, prbs: WIDE, pattern: &DDDSU[0] };
    let fresh = |change: fn(&mut RadioReport)| {
        let mut receiver = PbeReceiver::new(tuning("pbe"), Bytes(1500));
        for mut report in cell.reports(600, &[(100, 60), (7, 60)]) {
            change(&mut report);
            receiver.on_radio(&report);
        }
        let now = Time::from_millis(600);
        let is_fresh = Feedback::read(receiver.feedback(now).as_bytes()).unwrap().fresh;
        let mut seen = Inspect::default();
        receiver.inspect(&mut seen);
        let users = seen.values.iter().find(|(name, _)| *name == "users_n").unwrap().1;
        (is_fresh, users)
    };
    assert_eq!(fresh(|_| ()), (true, 2.0));
    let unread = |report: &mut RadioReport| {
        // Downlink slots are read incompletely, uplink slots have nothing to read.
        if report.symbols != Some(0) {
            report.scope = Scope::EveryoneBut { unexplained: 1, missed: None };
        }
    };
    assert!(!fresh(unread).0, "one slot in five is complete, but has no grants");
    let own = |report: &mut RadioReport| report.scope = Scope::Own;
    assert!(!fresh(own).0, "a modem's log does not contain the grants of others");
}

#[test]
fn users_outlast_a_fade_in_a_tdd_cell_too() {
    let cell = Cell { mu: 1, prbs: WIDE, pattern: &DDDSU[0] };
    let mut carrier = Carrier::new(UserFilter::Both, Weights::Equal);
    let mut users_after = |slots: std::ops::Range<u64>, grants: &[(u16, u16)], scope: Scope| {
        for index in slots {
            let mut report = cell.report(index, grants);
            if report.symbols != Some(0) {
                report.scope = scope;
            }
            carrier.on_report(&report, shared(&report), report.own.as_ref().unwrap(), 40);
        }
        carrier.users()
    };
    assert_eq!(users_after(0..100, &[(100, 60), (7, 60)], Scope::Everyone), 2);
    assert_eq!(users_after(100..600, &[], partly(0.0, 2.0)), 2, "250 ms in which almost nothing was decoded");
    assert_eq!(users_after(600..1_100, &[], partly(0.0, 2.0)), 1, "after ten times the window");
}

/// Number of users after `millis` ms of a TDD cell. `grants` returns the grants of a slot: (user, PRBs, bytes).
fn users_of(prbs: u16, grants: impl Fn(u64) -> Vec<(u16, u16, u64)>) -> u32 {
    let cell = Cell { mu: 1, prbs, pattern: &DDDSU[0] };
    let mut carrier = Carrier::new(UserFilter::Both, Weights::Equal);
    for index in 0..200 {
        let its = grants(index);
        let granted: Vec<_> = its.iter().map(|&(rnti, prbs, _)| (rnti, prbs)).collect();
        let mut report = cell.report(index, &granted);
        for (dci, (_, _, bytes)) in report.dcis.iter_mut().zip(its) {
            dci.tbs[0] = Bytes(bytes).bits();
        }
        carrier.on_report(&report, shared(&report), report.own.as_ref().unwrap(), 40);
    }
    carrier.users()
}

#[test]
fn control_users_of_a_wide_carrier_have_a_whole_resource_block_group() {
    let own = (100, 60, 9_000);
    // The window contains the last 80 slots. Slots 180 to 182 are downlink slots; 180 and 181 are in one millisecond.
    let in_slots = |slots: &'static [u64]| {
        move |index: u64| {
            if slots.contains(&index) { vec![own, (7, 32, 2_000)] } else { vec![own] }
        }
    };
    let often = |prbs, bytes| move |_: u64| vec![own, (7, prbs, bytes)];
    assert_eq!(users_of(WIDE, often(16, 2_000)), 1, "one group of 16 PRBs");
    assert_eq!(users_of(WIDE, often(17, 2_000)), 2);
    assert_eq!(users_of(106, often(8, 2_000)), 1, "one group of 8 PRBs");
    assert_eq!(users_of(106, often(9, 2_000)), 2);
    assert_eq!(users_of(24, often(5, 2_000)), 2, "the paper's four PRBs");
    assert_eq!(users_of(WIDE, often(32, 70)), 1, "70 bytes in up to two slots of a millisecond");
    assert_eq!(users_of(WIDE, often(32, 300)), 2);
    assert_eq!(users_of(WIDE, in_slots(&[180])), 1, "a single grant");
    assert_eq!(users_of(WIDE, in_slots(&[180, 181])), 1, "two slots of one millisecond");
    assert_eq!(users_of(WIDE, in_slots(&[181, 182])), 2, "two slots of two milliseconds");
    assert_eq!(users_of(WIDE, often(32, 0)), 2, "blocks of unknown size count by their PRBs");
}

#[test]
fn a_window_contains_whole_tdd_periods() {
    for (cell, window) in [
        (Cell { mu: 1, prbs: WIDE, pattern: &DDDSU[0] }, 43),
        (Cell { mu: 1, prbs: WIDE, pattern: &DDDSUUDDDD }, 7),
        (Cell { mu: 3, prbs: 264, pattern: &DDDSU[0] }, 21),
    ] {
        let mut carriers = Carriers::new(measure());
        carriers.set_window(window);
        for (index, report) in (0u64..).zip(cell.reports(200, &[(100, cell.prbs)])) {
            carriers.on_report(&report);
            if index >= 60 << cell.mu {
                let error = carriers.state().physical_bits / cell.capacity_bits() - 1.0;
                assert!(error.abs() < 0.001, "slot {index} of {:?}: {error:+.4}", cell.pattern);
            }
        }
    }
}

#[test]
fn times_are_times_at_every_numerology() {
    for mu in 0..=3 {
        let cell = Cell { mu, prbs: 100, pattern: &[13] };
        let mut carriers = Carriers::new(measure());
        let mut missing_after = |slots: std::ops::Range<u64>, is_read: bool| {
            for index in slots {
                let scope = Scope::EveryoneBut { unexplained: 1, missed: None };
                let scope = if is_read { Scope::Everyone } else { scope };
                carriers.on_report(&RadioReport { scope, ..cell.report(index, &[(100, 50)]) });
            }
            carriers.state().missing
        };
        assert_eq!(missing_after(0..100 << mu, true), 0);
        assert_eq!(missing_after(100 << mu..160 << mu, false), 0, "60 ms of incomplete reports, µ = {mu}");
        assert_eq!(missing_after(160 << mu..180 << mu, false), 1, "80 ms of incomplete reports, µ = {mu}");
        let mut carriers = Carriers::new(measure());
        let mut lost = |slots: std::ops::Range<u64>, is_read: bool| {
            for index in slots {
                let mut report = cell.report(index, if is_read { &[(100, 50)] } else { &[] });
                report.own.as_mut().unwrap().decoded = Some(true);
                carriers.on_report(&report);
            }
            carriers.state().missing
        };
        assert_eq!(lost(0..100 << mu, true), 0);
        assert_eq!(lost(100 << mu..109 << mu, false), 0, "own grants were missed for 9 ms, µ = {mu}");
        assert_eq!(lost(109 << mu..113 << mu, false), 1, "own grants were missed for 13 ms, µ = {mu}");
    }
}

/// Whether a receiver in an idle cell locates the bottleneck in the Internet if all packets have `excess_ms` ms more
/// than the minimum delay after the first second. `reports` returns the reports of a millisecond.
fn is_internet(excess_ms: u64, reports: impl Fn(u64) -> Vec<RadioReport>) -> bool {
    let mut receiver = PbeReceiver::new(tuning("pbe"), Bytes(1500));
    let header = Header { rtprop: Some(Duration::from_millis(40)), ..Header::default() }.write();
    for ms in 0..2_000 {
        reports(ms).iter().for_each(|report| receiver.on_radio(report));
        let excess = if ms < 1_000 { 0 } else { excess_ms };
        for packet in 0..100 {
            receiver.on_packet(&Arrival {
                now: Time::from_nanos((1_000 + ms) * 1_000_000 + packet * 10_000),
                sent: Time::from_nanos((980 + ms - excess) * 1_000_000 + packet * 10_000),
                number: 100 * ms + packet,
                bytes: Bytes(1500),
                ecn: Ecn::NotEct,
                header: header.as_bytes(),
                device: DeviceFlows::ALONE,
            });
        }
    }
    Feedback::read(receiver.feedback(Time::from_secs(3)).as_bytes()).unwrap().internet
}

#[test]
fn the_threshold_of_the_delay_follows_the_retransmissions() {
    // DDSU.
    let cell = Cell { mu: 1, prbs: WIDE, pattern: &[13, 13, 9, 0] };
    // Every tenth block is retransmitted after eight slots, which is 4 ms: Dth − Dprop = 15 ms.
    let slots = |ms: u64| {
        [2 * ms, 2 * ms + 1].map(|index| {
            let mut report = cell.report(index, &[(100, 50)]);
            for dci in &mut report.dcis {
                (dci.harq, dci.retransmission) =
                    (Some((index % 8) as u8), [(index / 8).is_multiple_of(10), false]);
            }
            report
        })
    };
    let lte = |carrier: u8, ms: u64| {
        let mut report = report(carrier, ms, &[(100, 20)]);
        report.dcis[0].harq = Some((ms % 4) as u8);
        report.dcis[0].retransmission = [(ms / 4).is_multiple_of(10), false];
        report
    };
    assert!(!is_internet(14, |ms| slots(ms).to_vec()));
    assert!(is_internet(16, |ms| slots(ms).to_vec()));
    assert!(!is_internet(26, |ms| vec![lte(0, ms)]), "LTE keeps its constants");
    assert!(is_internet(28, |ms| vec![lte(0, ms)]));
    let both = |ms| slots(ms).into_iter().chain([lte(8, ms)]).collect();
    assert!(!is_internet(26, both), "both technologies: the larger threshold");
    assert!(is_internet(28, both));
}

#[test]
fn blocks_of_a_megabit_do_not_halve_the_goodput() {
    let cell = Cell { mu: 1, prbs: WIDE, pattern: &DDDSU[0] };
    let goodput = |scheme: &str| {
        let mut carriers = Carriers::new(tuning(scheme).measure);
        cell.reports(100, &[(100, WIDE)]).iter().for_each(|report| _ = carriers.on_report(report));
        carriers.state().capacity_bits / cell.capacity_bits()
    };
    // The headers take 1.5 %, or 6.8 % in the paper's text.
    assert!((goodput("pbe:retransmissions=sinr") - 0.985 / 1.1).abs() < 0.001);
    assert!(goodput("pbe") > 0.96, "none of the blocks failed; the prior is a tenth");
    assert!(goodput("pbe@paper") < 0.6, "the text's model");
}

#[test]
fn a_leg_that_the_network_does_not_use_does_not_count() {
    let cell = Cell { mu: 1, prbs: 106, pattern: &DDDSU[0] };
    let mut carriers = Carriers::new(tuning("pbe").measure);
    // The LTE leg has 100 PRBs of 500 bits. `lte` and `nr` are the PRBs granted to the device.
    let mut after = |subframes: std::ops::Range<u64>, lte: u16, nr: u16| {
        for subframe in subframes {
            carriers.on_report(&report(0, subframe, &[(100, lte)][..usize::from(lte > 0)]));
            for index in [2 * subframe, 2 * subframe + 1] {
                let granted = &[(100, nr)][..usize::from(nr > 0)];
                carriers.on_report(&RadioReport { carrier: CarrierId(8), ..cell.report(index, granted) });
            }
        }
        let state = carriers.state();
        let is_explained = !carriers.explained().leaves_more_than(Duration::ZERO, Duration::from_millis(20));
        let delay_ms = state.timing.radio_delay.as_millis();
        (state.carriers, state.missing, state.physical_bits / 50_000.0, delay_ms, is_explained)
    };
    let sum = 1.0 + cell.capacity_bits() / 50_000.0;
    let (counted, missing, capacity, delay_ms, _) = after(0..200, 60, 0);
    assert_eq!((counted, missing, delay_ms), (2, 0, 27), "the LTE leg has idle PRBs");
    // The LTE leg has 60 PRBs of the device and 40 idle PRBs.
    assert!((capacity - sum).abs() < 0.05, "{capacity} and {sum}");
    assert_eq!(after(200..300, 100, 0).0, 2, "less than 100 ms with a queue");
    assert_eq!(
        after(300..400, 100, 0),
        (1, 0, 1.0, 27, true),
        "the LTE leg has a queue, the NR leg no grant"
    );
    let (counted, _, capacity, ..) = after(400..1_000, 50, 0);
    assert_eq!((counted, capacity), (1, 1.0), "the queue has drained");
    assert_eq!(after(1_000..1_100, 50, 106).0, 2, "the network uses both");
    let (counted, _, capacity, delay_ms, _) = after(1_100..1_300, 0, 106);
    assert_eq!((counted, delay_ms), (1, 18), "the NR leg has a queue, the LTE leg no grant");
    assert!((capacity - (sum - 1.0)).abs() < 0.05);
}

/// Arbitrary values of a grant: user, PRBs, MCS, size, symbols, slots until the data, HARQ process, and flags.
type AnyGrant = (u16, (u16, u16), u8, u32, Option<u8>, Option<u8>, Option<u8>, [bool; 4]);

fn grant_of(&(rnti, (start, len), mcs, bits, symbols, offset_slots, harq, flags): &AnyGrant) -> Dci {
    let [is_uplink, is_nr, ndi, is_again] = flags;
    Dci {
        rnti: Rnti(rnti),
        direction: if is_uplink { Direction::Uplink } else { Direction::Downlink },
        format: if is_nr { DciFormat::Nr11 } else { DciFormat::F1 },
        prbs: PrbSet::run(start, len),
        mcs: [Some(mcs % 32), None],
        tbs: [Bits(u64::from(bits)), Bits::ZERO],
        ndi: [Some(ndi), None],
        harq,
        layers: mcs % 5,
        symbols,
        offset_slots,
        retransmission: [is_again, false],
        ..Dci::default()
    }
}

proptest! {
    #[test]
    fn any_report_gives_finite_rates(
        reports in prop::collection::vec(
            (0u8..3, 0u8..=4, 0u64..40, any::<Option<u8>>(), any::<Option<u16>>(), 0u8..4,
             prop::collection::vec(
                 (98u16..102, (0u16..200, 0u16..76), any::<u8>(), any::<u32>(), any::<Option<u8>>(),
                  any::<Option<u8>>(), any::<Option<u8>>(), any::<[bool; 4]>()),
                 0..4)),
            1..300),
    ) {
        let mut pbe = PbeReceiver::new(tuning("pbe:user_weights=rate"), Bytes(1500));
        let spec = SchemeSpec::parse("biscay:bandwidth=tbs:tbs_ttis=1:sample_ms=1:block_table=nr").unwrap();
        let mut biscay =
            BiscayReceiver::new(biscay::Tuning::read(spec.options()).unwrap(), Bytes(1500), false);
        let mut millis = 0;
        for (carrier, mu, step, symbols, carrier_prbs, scope, grants) in &reports {
            millis += step / 8;
            let slot = Slot { numerology: Numerology::new(*mu).unwrap(), index: (millis << mu) + step % (1 << mu) };
            let scope = [Scope::Everyone, partly(0.3, 20.0), Scope::Own,
                         Scope::EveryoneBut { unexplained: 1, missed: None }][usize::from(*scope)];
            let report = RadioReport {
                slot, scope, symbols: *symbols, carrier_prbs: *carrier_prbs,
                dcis: grants.iter().map(grant_of).collect(),
                ..super::report(*carrier, millis, &[])
            };
            pbe.on_radio(&report);
            biscay.on_radio(&report);
            let now = Time::from_millis(millis);
            let mut seen = Inspect::default();
            let _ = (pbe.feedback(now), biscay.feedback(now));
            pbe.inspect(&mut seen);
            for (name, value) in &seen.values {
                prop_assert!(!value.is_infinite() && (!value.is_nan() || name.ends_with("_ms")), "{name} = {value}");
            }
        }
    }
}
