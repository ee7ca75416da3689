//! Runs over a real transport and simulated runs in one folder: same metrics, one page, and a verdict on their agreement.

use std::ops::ControlFlow;
use std::path::Path;

use airpace_event::{Arrived, Event, Recorder};
use airpace_run::wire::{Verdict, beside, label};
use airpace_run::{Choice, Matrix, Outcome, Summary};
use airpace_sim::{Progress as Clock, Scenario, SchemeSpec};

/// A recorder that forwards packets with a delay of `late_ms`, and only `kept` of 100 packets.
struct Elsewhere<'a> {
    to: &'a mut dyn Recorder,
    late_ms: u64,
    kept: u64,
    seen: u64,
}

impl Recorder for Elsewhere<'_> {
    fn record(&mut self, event: Event<'_>) {
        let Event::Arrived(arrived) = event else { return self.to.record(event) };
        self.seen += 1;
        if self.seen % 100 < self.kept {
            let time = arrived.time + std::time::Duration::from_millis(self.late_ms);
            self.to.record(Event::Arrived(Arrived { time, ..arrived }));
        }
    }
}

/// Scenario with two phones behind a link. One phone pauses.
const STORY: &str = r#"
name = "story"
about = "Two phones share a link; the second pauses"
source = "made up"
duration_s = 6

[internet]
rate_mbps = 20
buffer.ms = 50

[[flow]]
label = "phone"
rtt_ms = 42

[[flow]]
label = "other"
rtt_ms = 64
start_s = 1
on_s = 2
off_s = 1
"#;

/// The story under `reno` in the simulator, and over a transport that delivers `kept` of 100 packets `late_ms` later.
fn played(out: Option<&Path>, kept: u64, late_ms: u64) -> Outcome {
    let reno = SchemeSpec::parse("reno").unwrap();
    let over = reno.labelled(label("reno", "quic"));
    let again = Some("airpace agree story.toml --scheme reno".to_owned());
    let scenario = Scenario::load(STORY, "story.toml", &[]).expect("the story is a scenario");
    let matrix = Matrix {
        scenarios: vec![Choice { argument: "story.toml".to_owned(), set: vec![], scenario }],
        schemes: vec![reno, over],
        seeds: vec![1],
        jobs: 1,
        out: out.map(Path::to_owned),
        program: "airpace".to_owned(),
        command: "airpace agree story.toml --scheme reno".to_owned(),
        qlog: false,
        again,
        page: false,
        further: vec![],
    };
    let simulate = |scenario: &Scenario,
                    scheme: &SchemeSpec,
                    seed: u64,
                    recorder: &mut dyn Recorder,
                    progress: &mut Clock<'_>| {
        let is_wire = scheme.text().contains(" over ");
        let (kept, late_ms) = if is_wire { (kept, late_ms) } else { (100, 0) };
        let mut elsewhere = Elsewhere { to: recorder, late_ms, kept, seen: 0 };
        airpace_sim::run(scenario, scheme, seed, &mut elsewhere, progress)
            .map(drop)
            .map_err(|error| error.to_string().into())
    };
    matrix.run_with(&simulate, &|_| ControlFlow::Continue(())).unwrap()
}

/// No further simulated runs.
fn none() -> Summary {
    Summary { runs: vec![], expectations: vec![], not_judged: vec![] }
}

#[test]
fn what_is_the_same_agrees_and_what_is_not_differs_in_what_differs() {
    let verdicts = |kept, late_ms| {
        let rows = beside(&played(None, kept, late_ms).summary, &[], &none());
        assert_eq!(rows.iter().map(|row| &row.flow[..]).collect::<Vec<_>>(), ["phone", "other"]);
        assert!(rows.iter().all(|row| (&row.scheme[..], &row.transport[..]) == ("reno", "quic")));
        [
            rows.iter().all(|row| row.throughput_agrees),
            rows.iter().all(|row| row.delay_agrees),
            rows.iter().all(|row| row.verdict == Verdict::Agrees),
        ]
    };
    assert_eq!(verdicts(100, 0), [true; 3]);
    assert_eq!(verdicts(98, 4), [true; 3], "2 % less and 4 ms more are within the bounds");
    assert_eq!(verdicts(95, 0), [false, true, false]);
    assert_eq!(verdicts(100, 20), [true, false, false]);
}

#[test]
fn a_difference_that_the_simulator_has_with_itself_is_told_from_one_that_it_has_not() {
    // The further simulated runs have this loss and this delay.
    let verdict = |more: &[(u64, u64)], (kept, late_ms)| {
        let mut further = none();
        for (kept, late_ms) in more {
            let mut summary = played(None, *kept, *late_ms).summary;
            summary.runs.retain(|run| run.scheme.contains(" over "));
            for run in &mut summary.runs {
                "reno".clone_into(&mut run.scheme);
            }
            further.runs.append(&mut summary.runs);
        }
        let rows = beside(&played(None, kept, late_ms).summary, &[], &further);
        assert!(rows.iter().all(|row| row.spread.is_some_and(|spread| spread.runs == more.len() + 1)));
        let verdict = rows[0].verdict;
        assert!(rows.iter().all(|row| row.verdict == verdict), "{rows:?}");
        verdict
    };
    assert_eq!(verdict(&[(80, 0), (95, 30)], (90, 20)), Verdict::WithinSpread);
    assert_eq!(
        verdict(&[(80, 0), (95, 30)], (99, 1)),
        Verdict::Agrees,
        "near the run that it is compared with"
    );
    assert_eq!(verdict(&[(80, 0), (95, 30)], (70, 20)), Verdict::Differs, "no run has so little");
    assert_eq!(verdict(&[(80, 0), (95, 30)], (90, 60)), Verdict::Differs, "no run is so late");
    assert_eq!(verdict(&[(100, 0)], (90, 0)), Verdict::Differs);
}

#[test]
fn a_run_in_which_the_machine_was_late_says_so_and_only_that_run() {
    let summary = played(None, 100, 0).summary;
    let late = vec!["the machine was late".to_owned()];
    let rows =
        beside(&summary, &[(label("reno", "quic"), late.clone()), (label("reno", "udp"), vec![])], &none());
    assert!(rows.iter().all(|row| row.unfit_because == late));
    let rows = beside(&summary, &[(label("reno", "udp"), late)], &none());
    assert!(rows.iter().all(|row| row.unfit_because.is_empty()));
}

#[test]
fn the_page_overlays_both_in_the_colour_of_their_scheme_and_names_the_command() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("run");
    let outcome = played(Some(&folder), 100, 0);
    assert!(outcome.summary.runs.iter().all(|run| run.duration_s == 6.0));
    let page = std::fs::read_to_string(airpace_page::write(&folder).unwrap()).unwrap();
    assert!(page.contains("airpace agree story.toml --scheme reno"), "the page says how to make it again");
    assert!(page.contains("reno over quic"));
    let colour = |label: &str| {
        let style = page.split(&format!("{{\"text\":\"{label}\",")).nth(1).expect("the scheme has a style");
        style
            .split("\"marker\"")
            .next()
            .and_then(|style| style.split("\"colour\":").nth(1))
            .map(str::to_owned)
    };
    assert!(colour("reno").is_some());
    assert_eq!(colour("reno"), colour("reno over quic"), "both have the scheme's colour");
}
