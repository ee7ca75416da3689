//! Our side: our schemes under the kernel's conditions, in the simulator.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use airpace_event::{Event, Fate, Recorder};
use airpace_sim::{Scenario, SchemeSpec};

use super::compare::Comparison;
use super::{Condition, Figures, Measured, figures, paths};
use crate::threads;

/// The length of a run over a recorded link, in s.
pub const SECONDS: f64 = 60.0;

/// One of our schemes beside the kernel's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Twin {
    /// The kernel's name.
    pub kernel: &'static str,
    /// Ours.
    pub ours: &'static str,
    /// How many seeds we run over a recorded link: more than one if it draws random numbers.
    pub seeds: u64,
}

/// Our schemes that are held to the kernel's.
pub const HELD: [Twin; 4] = [
    Twin { kernel: "reno", ours: "reno@linux", seeds: 1 },
    Twin { kernel: "cubic", ours: "cubic@linux", seeds: 1 },
    Twin { kernel: "bbr", ours: "bbr", seeds: 6 },
    Twin { kernel: "morc", ours: "morc", seeds: 3 },
];

/// Our schemes by the RFCs, where the kernel departs from them. They are compared, but need not be within the bounds.
pub const BY_THE_RFC: [Twin; 2] =
    [Twin { kernel: "reno", ours: "reno", seeds: 1 }, Twin { kernel: "cubic", ours: "cubic", seeds: 1 }];

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

/// A run of our scheme.
///
/// # Errors
/// A trace that cannot be read; a scheme that does not exist.
fn run(traces: &Path, condition: &Condition, scheme: &str, seed: u64) -> Result<Figures, String> {
    let scenario = Scenario::load(&condition.scenario(traces), "kernel-truth", &[])
        .map_err(|error| error.to_string())?;
    let spec = SchemeSpec::parse(scheme).map_err(|error| error.to_string())?;
    let mut arrivals = Arrivals::default();
    airpace_sim::run(&scenario, &spec, seed, &mut arrivals, &mut |_| ControlFlow::Continue(()))
        .map_err(|error| error.to_string())?;
    Ok(figures(arrivals.bytes, arrivals.delays_ms, condition.seconds()))
}

/// Compares our schemes with a kernel's runs, on as many threads as there are processors: for each scheme, the conditions
/// in their order. `done` is told how many of how many have ended.
///
/// # Errors
/// As a run: the first, in order.
pub fn compare(
    traces: &Path,
    measured: &Measured,
    twins: &[Twin],
    done: &(dyn Fn(usize, usize) + Sync),
) -> Result<Vec<Comparison>, String> {
    let jobs: Vec<(&Condition, Vec<Figures>, Twin)> =
        twins
            .iter()
            .flat_map(|&twin| {
                measured.runs.iter().filter(move |(condition, _)| condition.scheme == twin.kernel).map(
                    move |(condition, runs)| (condition, runs.iter().map(|run| run.figures).collect(), twin),
                )
            })
            .collect();
    let compare = |(condition, truth, twin): &(&Condition, Vec<Figures>, Twin)| {
        // Over a path, with the seeds of the kernel's runs: in the first rounds, the same packets are lost.
        let seeds = paths::path(condition).map_or(twin.seeds, |_| truth.len() as u64);
        let ours = (1..=seeds).map(|seed| run(traces, condition, twin.ours, seed));
        Ok(Comparison::of(condition, truth, twin.ours, &ours.collect::<Result<Vec<_>, String>>()?))
    };
    let results: Mutex<Vec<Option<Result<Comparison, String>>>> =
        Mutex::new(jobs.iter().map(|_| None).collect());
    let (next, ended) = (AtomicUsize::new(0), AtomicUsize::new(0));
    threads::share(std::thread::available_parallelism().map_or(1, usize::from), &|| {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(job) = jobs.get(index) else { return };
            let result = compare(job);
            results.lock().expect("no thread panics with it")[index] = Some(result);
            done(ended.fetch_add(1, Ordering::Relaxed) + 1, jobs.len());
        }
    });
    let results = results.into_inner().expect("no thread panics with it");
    results.into_iter().map(|result| result.expect("every job was done")).collect()
}
