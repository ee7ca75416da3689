//! Estimate of a sweep's time and size, from a few of its runs.

use std::path::Path;
use std::time::{Duration, Instant};

use super::plan::{Plan, Runner};
use super::session::Todo;
use crate::error::RunError;

/// Maximum duration of an estimate; after it, no further run is started.
///
/// Chosen: the time for which users wait for an answer.
const MAX_SECONDS: Duration = Duration::from_secs(10);

/// Maximum number of runs for an estimate.
const SAMPLES: usize = 16;

/// Bytes of the dataset for each flow of a run.
///
/// Chosen: 82 were measured over 20,000 short runs of five schemes; numbers of longer runs have more digits.
const DATASET_BYTES: u64 = 120;

/// The estimated cost of a sweep.
pub struct Estimate {
    /// The runs that are missing.
    pub todo: Todo,
    /// Number of runs that were executed for the estimate.
    pub samples: usize,
    /// Time for the missing runs (s).
    pub seconds: f64,
    /// Size of their results (bytes).
    pub bytes: u64,
}

impl Estimate {
    /// Executes some of the runs that are missing in the sweep folder `folder`, and writes no files. `jobs` is the number of
    /// parallel runs.
    ///
    /// # Errors
    /// The folder contains another sweep, or a file that cannot be read.
    pub fn of(plan: &Plan, folder: Option<&Path>, jobs: usize) -> Result<Estimate, RunError> {
        let todo = Todo::of(plan, folder, jobs)?;
        let missing = todo.missing.len();
        let mut runner = Runner::new(plan);
        let (mut lengths, mut bytes, mut flows) = (vec![], 0, 0);
        let started = Instant::now();
        // Sampled runs are spread over the matrix, so that all keys and schemes are represented.
        for sample in 0..SAMPLES.min(missing) {
            let number = todo.missing[(2 * sample + 1) * missing / (2 * SAMPLES.min(missing))];
            let began = Instant::now();
            let record = runner.run(number, &|_| false).expect("nobody stops it");
            lengths.push(began.elapsed().as_secs_f64());
            bytes += record.line().len() as u64;
            flows += record.result.map_or(0, |flows| flows.len()) as u64;
            if started.elapsed() > MAX_SECONDS {
                break;
            }
        }
        let samples = lengths.len();
        let each = samples.max(1);
        Ok(Estimate {
            todo,
            samples,
            seconds: lengths.iter().sum::<f64>() / each as f64 * missing as f64 / jobs as f64,
            bytes: (bytes + flows * DATASET_BYTES) / each as u64 * missing as u64,
        })
    }
}
