//! Summary of granted bandwidth, in memory that does not grow with the log.

use std::collections::BTreeMap;

use airpace_core::Direction;

use super::{Method, Point};
use crate::packet::Radio;

/// Summary of the windows of each radio and direction.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// Windows by radio and direction.
    pub each: BTreeMap<(Radio, Direction), Windows>,
}

/// The windows of one radio and direction.
#[derive(Clone, Debug, Default)]
pub struct Windows {
    /// Number of windows.
    pub windows: u64,
    /// Values of [`Method::Blocks`].
    pub blocks: Rates,
    /// Values of [`Method::Granted`].
    pub granted: Rates,
}

/// The values that one of the methods determined.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rates {
    /// Number of windows with a value.
    pub windows: u64,
    /// Sum of the values (Mbit/s).
    pub sum_mbps: f64,
    /// Maximum of the values (Mbit/s).
    pub max_mbps: f64,
    /// Number of windows in which something was granted.
    pub busy: u64,
}

impl Summary {
    /// Adds a window.
    pub fn add(&mut self, point: &Point) {
        let of = self.each.entry((point.radio, point.direction)).or_default();
        of.windows += 1;
        for (method, rates) in [(Method::Blocks, &mut of.blocks), (Method::Granted, &mut of.granted)] {
            // Divides by a million instead of multiplying by a millionth, so that 5,400,000 gives exactly 5.4.
            let Some(mbps) = point.by(method).map(|rate| rate.as_bps() as f64 / 1e6) else { continue };
            rates.windows += 1;
            rates.sum_mbps += mbps;
            rates.max_mbps = rates.max_mbps.max(mbps);
            rates.busy += u64::from(mbps > 0.0);
        }
    }
}
