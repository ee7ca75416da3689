//! State of slow start in `morc`: the number of intervals without a report.
//!
//! Source: MORC §3.1

use crate::pcc::Role;
use crate::pcc::interval::Report;

/// State of slow start.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Start {
    /// The sending rate of the last interval of slow start; `None` before the first interval.
    pub sent_mbps: Option<f64>,
    /// Number of started intervals whose reports have not arrived.
    pub unknown: u32,
    /// Number of consecutive intervals with a received rate far below the sent rate.
    pub short: u32,
}

impl Start {
    /// Processes the report of an interval.
    pub fn learnt(&mut self, report: &Report) {
        self.unknown = self.unknown.saturating_sub(u32::from(report.trial.tag.role == Role::Step));
    }
}
