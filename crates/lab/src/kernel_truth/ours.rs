//! Runs of Airpace's schemes in the simulator, under the conditions of the kernel's runs.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use airpace_core::Refused;
use airpace_event::{Event, Fate, Recorder};
use airpace_run::threads;
use airpace_sim::{Scenario, SchemeSpec};

use super::compare::Comparison;
use super::{Condition, Figures, Measured, figures, paths};

/// Duration of a run over a recorded link, in s.
pub const SECONDS: f64 = 60.0;

/// A scheme of Airpace with the corresponding congestion control of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Twin {
    /// Kernel's name of the congestion control.
    pub kernel: &'static str,
    /// Airpace's name of the scheme.
    pub ours: &'static str,
    /// Number of seeds over a recorded link: more than one if the scheme draws random numbers.
    pub seeds: u64,
}

/// Schemes that must agree with the kernel's within the bounds.
pub const HELD: [Twin; 4] = [
    Twin { kernel: "reno", ours: "reno@linux", seeds: 1 },
    Twin { kernel: "cubic", ours: "cubic@linux", seeds: 1 },
    Twin { kernel: "bbr", ours: "bbr", seeds: 6 },
    Twin { kernel: "morc", ours: "morc", seeds: 3 },
];

/// Schemes according to the RFCs, from which the kernel deviates. They are compared, but need not be within the bounds.
pub const BY_THE_RFC: [Twin; 2] =
    [Twin { kernel: "reno", ours: "reno", seeds: 1 }, Twin { kernel: "cubic", ours: "cubic", seeds: 1 }];

/// Collects the delivered packets.
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

/// Runs one of Airpace's schemes under a condition.
///
/// # Errors
/// The trace cannot be read, or the scheme does not exist.
fn run(traces: &Path, condition: &Condition, scheme: &str, seed: u64) -> Result<Figures, Refused> {
    let scenario = Scenario::load(&condition.scenario(traces), "kernel-truth", &[])?;
    let spec = SchemeSpec::parse(scheme).map_err(|error| error.to_string())?;
    let mut arrivals = Arrivals::default();
    airpace_sim::run(&scenario, &spec, seed, &mut arrivals, &mut |_| ControlFlow::Continue(()))
        .map_err(|error| Refused::of(&error))?;
    Ok(figures(arrivals.bytes, arrivals.delays_ms, condition.seconds()))
}

/// Compares Airpace's schemes with a kernel's runs, on as many threads as there are processors. The result contains, for
/// each scheme, the conditions in their order. `done` receives the number of completed comparisons and the number of all
/// comparisons.
///
/// # Errors
/// The error of the first failed run, in order.
pub fn compare(
    traces: &Path,
    measured: &Measured,
    twins: &[Twin],
    done: &(dyn Fn(usize, usize) + Sync),
) -> Result<Vec<Comparison>, Refused> {
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
        // Over a path, use the seeds of the kernel's runs, so that the same packets are lost in the first round trips.
        let seeds = paths::path(condition).map_or(twin.seeds, |_| truth.len() as u64);
        let ours = (1..=seeds).map(|seed| run(traces, condition, twin.ours, seed));
        Ok(Comparison::of(condition, truth, twin.ours, &ours.collect::<Result<Vec<_>, Refused>>()?))
    };
    let results: Mutex<Vec<Option<Result<Comparison, Refused>>>> =
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
