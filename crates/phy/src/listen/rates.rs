//! At which rate a cell is read.

use crate::cell::Cell;
use crate::ladder::least_rate_hz;
use crate::numerology::{Bandwidth, Numerology, SUBCARRIER_HZ};
use crate::resample::Resampler;
use crate::sync::VIEW_HZ;

/// The numerology for a cell when samples come at `rate_hz`. If an FFT can take this rate, the samples stay as they
/// are. Otherwise it is the rate, lower or higher, to which resampling takes the least work. `None` if the rate is too
/// low.
pub(super) fn numerology(cell: &Cell, rate_hz: u64) -> Option<Numerology> {
    let of_rate = |rate_hz: u64| {
        let size = usize::try_from(rate_hz / u64::from(SUBCARRIER_HZ)).ok()?;
        Numerology::new(cell.bandwidth, cell.cp, size)
    };
    let least = least_rate_hz(cell.bandwidth);
    if rate_hz < least {
        return None;
    }
    if rate_hz.is_multiple_of(VIEW_HZ)
        && let Some(numerology) = of_rate(rate_hz)
    {
        return Some(numerology);
    }
    // Wider filters have fewer taps, wider transforms more points: somewhere below twice the least rate is the best.
    let rates = (least..=2 * least).step_by(VIEW_HZ as usize);
    let work = |to_hz: u64| {
        let taps = Resampler::taps(rate_hz, to_hz, half_band_hz(cell.bandwidth))?;
        Some((taps + OF_TRANSFORM) as u64 * to_hz)
    };
    let possible = rates.filter_map(|rate_hz| Some((work(rate_hz)?, of_rate(rate_hz)?)));
    possible.min_by_key(|(work, _)| *work).map(|(_, numerology)| numerology)
}

/// The cost of a transform per point, in taps of a filter.
const OF_TRANSFORM: usize = 16;

/// How far a cell extends from its centre frequency.
pub(super) fn half_band_hz(bandwidth: Bandwidth) -> u64 {
    (bandwidth.subcarriers() as u64 / 2 + 1) * u64::from(SUBCARRIER_HZ)
}

/// The narrowest cell fits any rate at which the listener works.
const _: () = assert!(least_rate_hz(Bandwidth::ALL[0]) <= VIEW_HZ);
