//! Our Reno, CUBIC and BBR compared with Linux's, over recorded links with a deep drop-tail queue.
//!
//! `kernel_truth/linux-6.18.csv` has what the kernel did, one line per run of 60 s. `docs/kernel-truth.md` says how it
//! was measured, and has the table that this test makes. If behaviour changes on purpose, the failure prints the new
//! table.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use airpace_event::{Event, Fate, Recorder};
use airpace_sim::{Scenario, SchemeSpec};

const MEASURED: &str = include_str!("kernel_truth/linux-6.18.csv");
const REPORT: &str = include_str!("../../../docs/kernel-truth.md");

/// The kernel's name of a scheme, ours, and the number of seeds; only BBR draws random numbers.
const SCHEMES: [(&str, &str, u64); 3] =
    [("reno", "reno@linux", 1), ("cubic", "cubic@linux", 1), ("bbr", "bbr", 6)];

/// Our schemes by the RFCs, where the kernel departs from them. They are compared, but need not be within the bounds.
const BY_THE_RFC: [(&str, &str, u64); 2] = [("reno", "reno", 1), ("cubic", "cubic", 1)];

/// Throughput must be within this share of the kernel's.
const THROUGHPUT: f64 = 0.05;
/// A delay must be within this share, or within this many ms, of the kernel's.
const DELAY: (f64, f64) = (0.15, 5.0);

/// Cases in which our scheme is not within the bounds, and why: trace, queue in packets, the kernel's name of the
/// scheme.
const KNOWN: [(&str, u64, &str, &str); 1] = [(
    "orca-step-10s-3-level.down",
    1_000,
    "reno",
    "half the window at the end of slow start is just what wire and queue hold, so that a burst of one packet more \
     decides whether something is lost again: what the kernel loses then is a retransmission, which does not count, \
     and what we lose is new",
)];

/// One condition: trace, queue in packets, the kernel's name of the scheme.
type Place = (String, u64, String);

/// One run, the kernel's or ours.
#[derive(Clone, Copy, Debug)]
struct Run {
    throughput_mbps: f64,
    mean_ms: f64,
    p95_ms: f64,
}

/// The mean of some runs, and their minimum and maximum.
#[derive(Clone, Copy)]
struct Spread {
    mean: f64,
    least: f64,
    most: f64,
}

fn spread(runs: &[Run], of: fn(&Run) -> f64) -> Spread {
    let values = runs.iter().map(of);
    Spread {
        mean: values.clone().sum::<f64>() / runs.len() as f64,
        least: values.clone().fold(f64::INFINITY, f64::min),
        most: values.fold(f64::NEG_INFINITY, f64::max),
    }
}

/// What the kernel did, in the order of the file.
fn measured() -> (Vec<Place>, BTreeMap<Place, Vec<Run>>) {
    let mut places = vec![];
    let mut runs: BTreeMap<Place, Vec<Run>> = BTreeMap::new();
    for line in MEASURED.lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        let [trace, queue, scheme, _, throughput, mean, p95, ..] = cells[..] else {
            panic!("a line of the kernel's runs has nine cells: {line}")
        };
        let place = (trace.to_owned(), queue.parse().unwrap(), scheme.to_owned());
        let [throughput_mbps, mean_ms, p95_ms] = [throughput, mean, p95].map(|cell| cell.parse().unwrap());
        if !runs.contains_key(&place) {
            places.push(place.clone());
        }
        runs.entry(place).or_default().push(Run { throughput_mbps, mean_ms, p95_ms });
    }
    (places, runs)
}

/// Packets that arrived.
#[derive(Default)]
struct Arrivals {
    bytes: u64,
    delays_ms: Vec<f64>,
}

impl Recorder for Arrivals {
    fn record(&mut self, event: Event<'_>) {
        if let Event::Arrived(arrived) = event
            && arrived.fate == Fate::Delivered
        {
            let one_way = arrived.time - arrived.packet.sent;
            let queueing = one_way.saturating_sub(arrived.propagation_delay);
            self.bytes += arrived.packet.bytes.0;
            self.delays_ms.push(queueing.as_secs_f64() * 1e3);
        }
    }
}

/// Our scheme under the kernel's conditions: the trace begins with the first packet, and receivers acknowledge every
/// second packet.
fn ours(trace: &Path, queue: u64, scheme: &str, seed: u64) -> Run {
    let text = format!(
        "name = \"kernel-truth\"\nduration_s = 60\n[trace]\nfile = {trace:?}\nallow_holes = true\n\
         telemetry = false\nlink.buffer.packets = {queue}\n[[flow]]\nrtt_ms = 40\nack_every = 2\nack_delay_ms = 40\n"
    );
    let scenario = Scenario::load(&text, "kernel-truth.toml", &[]).unwrap_or_else(|error| panic!("{error}"));
    let spec = SchemeSpec::parse(scheme).unwrap();
    let mut arrivals = Arrivals::default();
    airpace_sim::run(&scenario, &spec, seed, &mut arrivals, &mut |_| ControlFlow::Continue(())).unwrap();
    let Arrivals { bytes, mut delays_ms } = arrivals;
    delays_ms.sort_by(f64::total_cmp);
    Run {
        throughput_mbps: bytes as f64 * 8e-6 / 60.0,
        mean_ms: delays_ms.iter().sum::<f64>() / delays_ms.len() as f64,
        p95_ms: delays_ms[((delays_ms.len() - 1) as f64 * 0.95) as usize],
    }
}

/// One line of the table.
struct Comparison {
    place: Place,
    row: String,
    is_within: bool,
}

/// Compares our scheme `choice` with the kernel's runs at a place.
fn compare(folder: &Path, place: &Place, choice: &str, seeds: u64, kernel: &[Run]) -> Comparison {
    let (trace, queue, _) = place;
    let runs: Vec<Run> = (1..=seeds).map(|seed| ours(&folder.join(trace), *queue, choice, seed)).collect();
    let of = |of: fn(&Run) -> f64| (spread(kernel, of), spread(&runs, of));
    let off = |(linux, ours): (Spread, Spread)| ours.mean / linux.mean - 1.0;
    let [throughput, mean, p95] =
        [of(|run| run.throughput_mbps), of(|run| run.mean_ms), of(|run| run.p95_ms)];
    let is_near =
        |both: (Spread, Spread)| off(both).abs() <= DELAY.0 || (both.0.mean - both.1.mean).abs() <= DELAY.1;
    let is_within = off(throughput).abs() <= THROUGHPUT && is_near(mean) && is_near(p95);
    let mut row = format!("| {} | {queue} | `{choice}` |", trace.trim_end_matches(".down"));
    let (linux, mine) = throughput;
    write!(row, " {:.2} | {:.2} ({} %) |", linux.mean, mine.mean, percent(off(throughput))).unwrap();
    for both @ (linux, mine) in [mean, p95] {
        write!(row, " {:.0} ({:.0}–{:.0}) |", linux.mean, linux.least, linux.most).unwrap();
        write!(row, " {:.0} ({} %) |", mine.mean, percent(off(both))).unwrap();
    }
    writeln!(row, " {} |", if is_within { "yes" } else { "**no**" }).unwrap();
    Comparison { place: place.clone(), row, is_within }
}

/// A share in percent, with its sign; zero has no sign.
fn percent(share: f64) -> String {
    format!("{:+.1}", (share * 1e3).round() / 10.0 + 0.0)
}

const HEAD: &str = "\
| trace | queue | ours | Mbit/s Linux | ours | mean delay, ms: Linux | ours | p95 delay, ms: Linux | ours | within |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
";

/// All comparisons, in the order of the places.
fn comparisons(folder: &Path, choices: &[(&str, &str, u64)]) -> Vec<Comparison> {
    let (places, kernel) = measured();
    let jobs: Vec<_> = choices
        .iter()
        .flat_map(|choice| {
            places.iter().filter(|place| place.2 == choice.0).map(move |place| (place, choice))
        })
        .collect();
    let done: Mutex<Vec<Option<Comparison>>> = Mutex::new(jobs.iter().map(|_| None).collect());
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some((place, (_, choice, seeds))) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let comparison = compare(folder, place, choice, *seeds, &kernel[*place]);
                    let index = jobs.iter().position(|job| job.0 == *place && job.1.1 == *choice).unwrap();
                    done.lock().unwrap()[index] = Some(comparison);
                }
            });
        }
    });
    done.into_inner().unwrap().into_iter().map(|comparison| comparison.unwrap()).collect()
}

#[test]
fn reno_cubic_and_bbr_do_what_linux_does() {
    let Some(folder) = airpace_testing::recordings("traces") else { return };
    let held = comparisons(&folder, &SCHEMES);
    for Comparison { place, row, is_within } in &held {
        let known = KNOWN.iter().find(|known| (known.0, known.1, known.2) == (&place.0, place.1, &place.2));
        match known {
            None => {
                assert!(is_within, "this is not within 5 % of throughput and 15 % or 5 ms of delay: {row}")
            }
            Some(known) => {
                assert!(
                    !is_within,
                    "this is within the bounds now; take it off the list of exceptions ({}): {row}",
                    known.3
                )
            }
        }
    }
    for (comparisons, what) in [(held, "held to Linux"), (comparisons(&folder, &BY_THE_RFC), "by the RFCs")] {
        let rows: String = comparisons.iter().map(|comparison| comparison.row.as_str()).collect();
        let table = format!("{HEAD}{rows}");
        assert!(
            REPORT.contains(&table),
            "docs/kernel-truth.md does not have the table of what is {what}; put this there:\n{table}"
        );
    }
}

#[test]
fn every_condition_was_measured_at_least_three_times_by_fit_runs() {
    let (places, runs) = measured();
    assert!(places.len() >= 15, "five traces and three schemes");
    for (place, runs) in runs {
        assert!(runs.len() >= 3, "{place:?} was measured {} times", runs.len());
    }
    for line in MEASURED.lines().skip(1) {
        let lateness_us: f64 = line.rsplit(',').next().unwrap().parse().unwrap();
        assert!(
            lateness_us < 1_000.0,
            "a run whose emulator is late by a millisecond cannot be used: {line}"
        );
    }
}
