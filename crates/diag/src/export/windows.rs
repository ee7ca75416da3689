//! Granted bandwidth as comma-separated values: a row per window, or per carrier of a window.

use airpace_core::{Direction, Rate};

use super::shown;
use crate::bandwidth::Point;

/// The columns of a table with a row per window. No row is the sum of other rows, so that the sum of a column is correct.
pub const HEAD: &str = "time_ms,time_utc,radio,direction,blocks_mbps,granted_mbps,prbs,grants\n";

/// The columns of a table with a row per carrier. `granted_mbps` is missing, because the modem reports it only for all
/// carriers together.
pub const HEAD_BY_CARRIER: &str = "time_ms,time_utc,radio,direction,rat,carrier,blocks_mbps,prbs,grants\n";

/// Appends the row of a window.
pub fn row(point: &Point, out: &mut Vec<u8>) {
    let (ms, begin, radio, way) = lead(point);
    let cell = |rate: Option<Rate>| rate.map_or(String::new(), |rate| mbps(rate).to_string());
    let (blocks, granted) = (cell(point.blocks), cell(point.granted));
    let prbs: u64 = point.carriers.iter().map(|carrier| carrier.prbs).sum();
    let grants: u32 = point.carriers.iter().map(|carrier| carrier.grants).sum();
    shown(format_args!("{ms},{begin},{radio},{way},{blocks},{granted},{prbs},{grants}\n"), out);
}

/// Appends a row for each carrier that had grants in a window.
pub fn rows_of_carriers(point: &Point, out: &mut Vec<u8>) {
    let (ms, begin, radio, way) = lead(point);
    for own in &point.carriers {
        let (rat, carrier, blocks) = (own.rat, own.carrier.0, mbps(own.blocks));
        let (prbs, grants) = (own.prbs, own.grants);
        shown(format_args!("{ms},{begin},{radio},{way},{rat},{carrier},{blocks},{prbs},{grants}\n"), out);
    }
}

fn lead(point: &Point) -> (u64, crate::Stamp, u8, &'static str) {
    (point.window * point.every_ms(), point.begin, point.radio.0, way(point.direction))
}

/// A direction as a word: `down` or `up`.
pub fn way(direction: Direction) -> &'static str {
    match direction {
        Direction::Downlink => "down",
        Direction::Uplink => "up",
    }
}

/// Converts a rate to Mbit/s. Divides by a million instead of multiplying by a millionth, so that 5,400,000 gives
/// exactly 5.4.
pub fn mbps(rate: Rate) -> f64 {
    rate.as_bps() as f64 / 1e6
}
