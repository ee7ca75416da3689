//! Synchronisation: from samples of unknown content to a tracked cell.
//!
//! | module | from | to |
//! | --- | --- | --- |
//! | [`search`] | samples at 1.92 million per second | cells: identity, prefix, duplex, timing, carrier offset |
//! | [`broadcast`] | a cell of the search | bandwidth, ports, PHICH, frame number |
//! | [`stream`] | raw samples, with gaps | requested windows of samples at the rate of an FFT |
//! | [`track`] | a known cell, samples at its own rate | one observation per subframe |

mod antennas;
pub mod broadcast;
mod company;
mod health;
pub(crate) mod lookout;
mod notch;
mod prefix;
mod ring;
pub mod search;
pub mod stream;
pub mod track;
mod tuning;

pub use ring::Ring;

/// Sample rate of the cell search, in samples per second. Samples at this rate cover the six centre PRBs that every
/// cell has.
pub const VIEW_HZ: u64 = 1_920_000;

/// Passband of the search on each side of the centre (Hz): the synchronisation signals, the PBCH and a carrier offset fit
/// in.
pub const VIEW_PASSBAND_HZ: u64 = 600_000;
