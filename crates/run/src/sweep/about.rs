//! What a page of a sweep is made from: a description of the sweep, its results point by point, and its failures.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::flows::FlowRow;

/// A page that is made while the results of a sweep are written, so that no result is read twice.
pub trait SweepReport {
    /// An empty page. `own_flows` has the indices of the flows with a scheme of their own.
    fn new(about: About, own_flows: BTreeSet<u16>) -> Self;

    /// Adds the completed runs of a scheme (by index) at a point. `places` has the index of the point's value for each
    /// axis, and `lost` is the number of runs that failed.
    fn add(&mut self, scheme: usize, places: &[usize], ended: &[&[FlowRow]], lost: usize);

    /// Returns the page as HTML. This method is called after the last [`SweepReport::add`].
    fn render(self, failures: &[Failure<'_>]) -> String;
}

/// Description of a sweep, for the top of its page.
pub struct About {
    /// Version of airpace that made the results.
    pub version: String,
    /// The command that reproduces the results.
    pub command: String,
    /// Name of the scenario.
    pub scenario: String,
    /// Description of the scenario in one line.
    pub about: String,
    /// Publication from which the scenario is taken.
    pub source: String,
    /// The schemes, as spelled.
    pub schemes: Vec<String>,
    /// Number of seeds.
    pub seeds: usize,
    /// Number of runs.
    pub cells: u64,
    /// Keys and their values, as text.
    pub axes: Vec<(String, Vec<String>)>,
}

/// A run that failed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Failure<'a> {
    /// Number of the run in the matrix.
    pub cell: u64,
    /// Scheme of the run, as spelled.
    pub scheme: &'a str,
    /// Seed of the run.
    pub seed: u64,
    /// The keys and values of the run, as `key=value`.
    pub set: String,
    /// Why the run failed.
    pub reason: &'a str,
}
