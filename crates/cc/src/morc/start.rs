//! Slow start of `morc`: how many of its intervals are still without a report.
//!
//! Source: MORC §3.1

use crate::pcc::Role;
use crate::pcc::interval::Report;

/// What slow start knows.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Start {
    /// The rate of the last interval.
    pub sent_mbps: Option<f64>,
    /// Intervals begun whose reports have not come.
    pub unknown: u32,
    /// Intervals in a row that arrived much slower than they were sent.
    pub short: u32,
}

impl Start {
    /// Takes in the report of an interval.
    pub fn learnt(&mut self, report: &Report) {
        self.unknown = self.unknown.saturating_sub(u32::from(report.trial.tag.role == Role::Step));
    }
}
