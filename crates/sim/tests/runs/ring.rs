//! The complete loop: a cell's grants are sent as radio samples, a decoder reads them, and PBE-CC uses the decoder's
//! reports.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use airpace_core::{Bits, DeviceId, Direction};
use airpace_event::{Detail, Event, Recorder, Source};
use airpace_phy::schedule::{Scheduler, implied_sinr_db};
use airpace_phy::{Bandwidth, Cell, CyclicPrefix, PhichDuration, PhichResource, Ports};
use airpace_radio::{Dci, DciFormat, PrbSet, RadioReport, Rnti};
use airpace_sim::{Scenario, SchemeSpec};

use crate::common;

use common::run;

/// A scenario of a phone beside the users of a busy hour.
const BUSY: &str = r#"
    duration_s = 1.5
    cell = { prbs = 15, background.hour = "busy" }
    flow = [{ rtt_ms = 42 }]
"#;

/// A scenario of a phone alone in its cell.
const ALONE: &str = r#"
    duration_s = 1.5
    cell = { prbs = 15 }
    flow = [{ rtt_ms = 42 }]
"#;

#[test]
fn what_was_granted_is_what_is_told() {
    let log = GrantLog::of(BUSY, "{ snr_db = 20 }");
    assert_eq!(log.subframes, 1499, "every subframe that ended is told, those before the cell was found too");
    assert!(log.latest_ms <= 20, "the first waited {} ms until the cell was found", log.latest_ms);
    let (granted, found) = (log.granted.len(), log.granted.intersection(&log.reported).count());
    assert!(granted > 1500, "{granted} grants make a busy cell");
    assert!(found as f64 >= 0.995 * granted as f64, "{found} of {granted} grants are told as they were made");
    let wrong: Vec<_> = log.reported.difference(&log.granted).collect();
    assert!(wrong.len() * 200 <= granted, "nobody made these: {wrong:?}");
}

#[test]
fn at_20_db_the_rate_is_that_of_perfect_telemetry() {
    for (text, decoder) in [(ALONE, "{ snr_db = 20 }"), (BUSY, "{ fading = 'epa', doppler_hz = 5 }")] {
        let mbps = |decoder| run(&with(text, decoder), "pbe", 1).1.flows[0].mbps(0.5, 1.5);
        let (decoded, perfect) = (mbps(Some(decoder)), mbps(None));
        assert!(
            (decoded / perfect - 1.0).abs() < 0.03,
            "{decoded} Mbit/s with a decoder {decoder}, {perfect} without"
        );
    }
}

#[test]
fn where_little_is_heard_or_nothing_pbe_falls_back() {
    let perfect = run(&with(ALONE, None), "pbe", 1).1.flows[0].mbps(0.8, 1.5);
    for (snr_db, what) in [(-6, "most messages are missed"), (-25, "no cell is found")] {
        let (_, notes) = run(&with(ALONE, Some(&format!("{{ snr_db = {snr_db} }}"))), "pbe", 1);
        let flow = &notes.flows[0];
        let state = flow.states.last().expect("states are recorded");
        assert!(state.starts_with("Fallback."), "{what} at {snr_db} dB: {:?}", flow.states);
        let part = flow.mbps(0.8, 1.5) / perfect;
        assert!(part > 0.75, "{part} of the rate at 20 dB is carried when {what}");
    }
}

#[test]
fn where_only_quiet_subframes_are_read_whole_pbe_falls_back_if_it_uses_no_others() {
    let busy = BUSY.replace("duration_s = 1.5", "duration_s = 3").replace("prbs = 15", "prbs = 6");
    let scenario = with(&busy, Some("{ snr_db = 2, fading = 'etu', doppler_hz = 70 }"));
    let (_, notes) = run(&scenario, "pbe:unread=refused", 1);
    let state = notes.flows[0].states.last().expect("states are recorded");
    assert!(state.starts_with("Fallback."), "nine of ten reports lack grants: {:?}", notes.flows[0].states);
}

#[test]
fn reports_that_say_what_they_missed_are_nearly_as_good_as_whole_ones() {
    let busy = BUSY.replace("duration_s = 1.5", "duration_s = 3");
    let flow = |decoder: Option<&str>, scheme| run(&with(&busy, decoder), scheme, 1).1.flows[0].clone();
    let perfect = flow(None, "pbe").mbps(1.0, 3.0);
    for (snr_db, least) in [(4, 0.92), (2, 0.85)] {
        let decoder = format!("{{ snr_db = {snr_db} }}");
        let decoded = flow(Some(&decoder), "pbe");
        let part = decoded.mbps(1.0, 3.0) / perfect;
        let queueing_ms = decoded.queueing_delay_ms(0.95, 1.0, 3.0);
        println!("{snr_db} dB: {part:.3} of the rate, {queueing_ms:.1} ms, {:?}", decoded.states);
        assert!(part >= least && part < 1.05, "at {snr_db} dB, {part:.3} of the rate is carried");
        assert!(queueing_ms <= 40.0, "at {snr_db} dB, the queue is {queueing_ms:.1} ms");
        assert!(decoded.states.iter().all(|state| !state.starts_with("Fallback")), "{:?}", decoded.states);
    }
}

#[test]
fn the_same_seed_hears_the_same() {
    let decoder = "{ snr_db = 3, fading = 'eva', doppler_hz = 70 }";
    let told = |seed| {
        let text = ALONE.replace("duration_s = 1.5", "duration_s = 0.4");
        run(&with(&text, Some(decoder)), "pbe", seed).1.fingerprint()
    };
    assert_eq!(told(1), told(1));
    assert_ne!(told(1), told(2));
}

#[test]
fn a_decoder_that_has_nothing_to_decode_is_refused() {
    let refusal = |text: &str, decoder: &str| {
        let text = format!("name = \"story\"\nflow = [{{ rtt_ms = 42 }}]\nduration_s = 1\n{text}");
        let sets = [("device".to_owned(), format!("[{{ decoder = {decoder} }}]"))];
        Scenario::load(&text, "story.toml", &sets).unwrap_err().to_string()
    };
    for (text, decoder, says) in [
        ("", "{}", "there is no `[cell]`"),
        ("cell.prbs = 40", "{}", "`cell.prbs` is 40; must be one of 6"),
        ("cell.telemetry.missed_dci = 0.1", "{}", "remove either"),
        ("cell = {}", "{ snr_db = 99 }", "`device.0.decoder.snr_db` is 99"),
        ("cell = {}", "{ doppler_hz = -1 }", "`device.0.decoder.doppler_hz` is -1"),
        ("cell = {}", "{ fading = 'epb' }", "did you mean `epa`?"),
    ] {
        let refusal = refusal(text, decoder);
        assert!(refusal.contains(says), "{refusal}");
    }
}

/// Returns the scenario `text` of one device with the decoder `decoder`.
fn with(text: &str, decoder: Option<&str>) -> Scenario {
    let decoder = decoder.map_or(String::new(), |decoder| format!(", decoder = {decoder}"));
    let radio = "radio.channel = { layers = 2, sinr_db = 16.5 }";
    common::scenario(&format!("device = [{{ {radio}{decoder} }}]\n{text}"))
}

/// The fields of a grant that its message contains: subframe, RNTI, direction, format and allocation.
type GrantKey =
    (u64, Rnti, Direction, DciFormat, Vec<(u16, u16)>, [Option<u8>; 2], [Bits; 2], [bool; 2], Option<u8>);

fn grant_key(report: &RadioReport, dci: &Dci) -> GrantKey {
    let runs = |prbs: PrbSet| prbs.runs().collect();
    // The message of an uplink grant does not contain the grant's HARQ process, which follows from the subframe. The
    // cell sends zero for fields that have no value, for example the HARQ process of a user without HARQ.
    let harq = (dci.direction == Direction::Downlink).then_some(dci.harq.unwrap_or(0));
    let Dci { rnti, direction, format, prbs, mcs, tbs, .. } = *dci;
    let ndi = dci.ndi.map(|ndi| ndi.unwrap_or(false));
    (report.slot.index, rnti, direction, format, runs(prbs), mcs, tbs, ndi, harq)
}

/// Records the grants of the cell, and the grants reported to a device.
struct GrantLog {
    scheduler: Scheduler,
    now_ms: u64,
    /// Number of subframes that were reported.
    subframes: u64,
    /// Maximum time from the start of a subframe to its report, in ms.
    latest_ms: u64,
    /// Grants whose messages fitted into the control region of their subframe.
    granted: BTreeSet<GrantKey>,
    reported: BTreeSet<GrantKey>,
}

impl GrantLog {
    /// Runs PBE-CC in the scenario `text` with a decoder, and collects the grants.
    fn of(text: &str, decoder: &str) -> GrantLog {
        let cell = Cell {
            pci: 1,
            bandwidth: Bandwidth::from_prbs(15).unwrap(),
            ports: Ports::Two,
            cp: CyclicPrefix::Normal,
            phich_duration: PhichDuration::Normal,
            phich_resource: PhichResource::One,
        };
        let mut log = GrantLog {
            scheduler: Scheduler::new(&cell),
            now_ms: 0,
            subframes: 0,
            latest_ms: 0,
            granted: BTreeSet::new(),
            reported: BTreeSet::new(),
        };
        let pbe = SchemeSpec::parse("pbe").unwrap();
        airpace_sim::run(&with(text, Some(decoder)), &pbe, 1, &mut log, &mut |_| ControlFlow::Continue(()))
            .unwrap();
        log
    }
}

impl Recorder for GrantLog {
    fn record(&mut self, event: Event<'_>) {
        let report = match event {
            Event::Subframe(subframe) => subframe.report,
            Event::Reported(reported) => return self.record_report(reported.report),
            _ => return,
        };
        // A subframe is reported after its end, and the last one is never reported.
        self.now_ms = report.slot.index;
        if report.slot.index == 1499 {
            return;
        }
        let blocked = self.scheduler.announce(report, implied_sinr_db).blocked;
        let sent = report.dcis.iter().enumerate().filter(|(index, _)| !blocked.contains(index));
        self.granted.extend(sent.map(|(_, dci)| grant_key(report, dci)));
    }

    fn wants(&self, detail: Detail) -> bool {
        matches!(detail, Detail::Subframes | Detail::Reports(DeviceId(0), Source::ControlChannel))
    }
}

impl GrantLog {
    fn record_report(&mut self, report: &RadioReport) {
        self.subframes += 1;
        self.latest_ms = self.latest_ms.max(self.now_ms - report.slot.index);
        self.reported.extend(report.dcis.iter().map(|dci| grant_key(report, dci)));
    }
}
