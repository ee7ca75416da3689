//! Radio reports must be true: while a device's queue is not empty, no PRB is reported as idle, and a link with less
//! traffic than capacity is reported with spare capacity. Cells and traces are drawn at random.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::PathBuf;

use airpace_core::{DeviceId, Rng, Streams};
use airpace_event::{Detail, Event, Recorder, Source};
use airpace_radio::{RadioReport, Scope};
use airpace_sim::{Scenario, SchemeSpec};

use crate::common;
use common::{run, scenario};

/// Keeps the radio reports of one source to device 0.
struct Told {
    source: Source,
    reports: Vec<RadioReport>,
}

impl Recorder for Told {
    fn record(&mut self, event: Event<'_>) {
        if let Event::Reported(told) = event {
            self.reports.push(told.report.clone());
        }
    }

    fn wants(&self, detail: Detail) -> bool {
        detail == Detail::Reports(DeviceId(0), self.source)
    }
}

fn told(scenario: &Scenario, source: Source, seed: u64) -> Vec<RadioReport> {
    let mut told = Told { source, reports: vec![] };
    let spec = SchemeSpec::parse("cubic").unwrap();
    let stats = airpace_sim::run(scenario, &spec, seed, &mut told, &mut |_| ControlFlow::Continue(()));
    stats.unwrap_or_else(|error| panic!("{error}"));
    assert!(!told.reports.is_empty(), "the device was told something");
    told.reports
}

/// A file that is deleted when the test ends.
struct Temporary(PathBuf);

impl Temporary {
    fn trace(name: &str, times_ms: &[u64]) -> Temporary {
        let path = std::env::temp_dir().join(format!("airpace-telemetry-{}-{name}", std::process::id()));
        let lines: String = times_ms.iter().map(|time| format!("{time}\n")).collect();
        std::fs::write(&path, lines).unwrap();
        Temporary(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Draws the times (ms) of the delivery opportunities of a link whose rate changes every 100 ms, and which has gaps.
fn chances(rng: &mut Rng) -> Vec<u64> {
    let mut times = vec![];
    for step in 0..60 {
        let per_ms = if rng.chance(0.1) { 0 } else { rng.below(4) };
        for ms in 0..100 {
            let extra = u64::from(rng.chance(0.4));
            times.extend(std::iter::repeat_n(1 + step * 100 + ms, (per_ms + extra) as usize));
        }
    }
    times.push(6_001);
    times
}

#[test]
fn a_queue_that_stands_in_a_cell_leaves_nothing_idle() {
    let mut rng = Streams::new(20).stream("cells");
    for case in 0..12 {
        let prbs = [25, 50, 75, 100][rng.below(4) as usize];
        let sinr_db = 3 + rng.below(22);
        let fading = ["none", "epa", "eva"][rng.below(3) as usize];
        let text = format!(
            "duration_s = 3
            cell.prbs = {prbs}
            cell.carriers = {}
            cell.scheduler = '{}'
            cell.background.full_buffer = {}
            device = [{{ radio.channel.sinr_db = {sinr_db}, radio.channel.fading = '{fading}' }}]
            flow = [{{ rtt_ms = {}, scheme = 'cbr:rate_mbps=600' }}]",
            1 + rng.below(3),
            ["round_robin", "proportional_fair"][rng.below(2) as usize],
            rng.below(3),
            60 + rng.below(60),
        );
        let reports = told(&scenario(&text), Source::ControlChannel, 1 + rng.below(1_000));
        let mut full = BTreeMap::<u8, u64>::new();
        for report in &reports {
            let own = report.own.as_ref().unwrap();
            assert_eq!(report.scope, Scope::Everyone);
            // The queue is never empty after the first packets, and the cell activates further carriers within 1.5 s. A
            // device that is out of range gets no grants.
            if own.active && own.bits_per_prb > Some(0.0) && report.slot.index > 1_500 {
                *full.entry(report.carrier.0).or_default() += 1;
                assert_eq!(report.idle_prbs(), Some(0), "case {case}: {report:?}\n{text}");
            }
        }
        assert!(full.values().sum::<u64>() > 1_000, "case {case}: {full:?}\n{text}");
    }
}

#[test]
fn a_queue_that_stands_before_a_trace_leaves_no_chance_idle() {
    let mut rng = Streams::new(21).stream("traces");
    for case in 0..8 {
        let trace = Temporary::trace(&format!("{case}"), &chances(&mut rng));
        for (direction, source) in [("down", Source::ControlChannel), ("up", Source::Modem)] {
            let text = format!(
                "duration_s = 5
                trace.file = '{}'
                flow = [{{ rtt_ms = 40, direction = '{direction}', scheme = 'cbr:rate_mbps=300' }}]",
                trace.path()
            );
            let reports = told(&scenario(&text), source, 1 + rng.below(1_000));
            let after = reports.iter().filter(|report| report.slot.index > 100);
            for report in after.clone() {
                let expected = if direction == "down" { Some(0) } else { None };
                assert_eq!(report.idle_prbs(), expected, "case {case}: {report:?}");
                assert_eq!(report.dcis.is_empty(), report.carrier_prbs == Some(0), "every chance is granted");
            }
            assert!(after.count() > 4_800, "every millisecond is told");
        }
    }
}

/// A flow over a single link never detects a bottleneck outside this link, for any variation of the link's rate.
#[test]
fn a_queue_that_the_link_explains_is_not_looked_for_elsewhere() {
    let mut rng = Streams::new(22).stream("links");
    let mut taken_for_elsewhere = 0;
    for case in 0..6 {
        let trace = Temporary::trace(&format!("free-{case}"), &chances(&mut rng));
        let text = format!(
            "duration_s = 12
            trace.file = '{}'
            flow = [{{ rtt_ms = {} }}]",
            trace.path(),
            20 + rng.below(100)
        );
        let (scenario, seed) = (scenario(&text), 1 + rng.below(1_000));
        let switches = |scheme: &str| {
            let (_, notebook) = run(&scenario, scheme, seed);
            notebook.flows[0].states.iter().filter(|state| **state == "Drain").count()
        };
        assert_eq!(switches("pbe"), 0, "case {case}");
        taken_for_elsewhere += switches("pbe:cell_test=off:explained_test=off");
    }
    assert!(taken_for_elsewhere > 10, "without both tests, {taken_for_elsewhere} switches");
}
