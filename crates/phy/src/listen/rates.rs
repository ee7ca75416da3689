//! Choice of the sample rate at which a cell is decoded.

use crate::cell::Cell;
use crate::ladder::least_rate_hz;
use crate::numerology::{Bandwidth, Numerology, SUBCARRIER_HZ};
use crate::resample::Resampler;
use crate::sync::VIEW_HZ;

/// Returns the numerology for a cell when samples arrive at `rate_hz`. If `rate_hz` is a multiple of [`VIEW_HZ`] with a
/// supported FFT size, the samples are not resampled. Otherwise the function chooses the sample rate, lower or higher,
/// with the lowest cost of resampling and FFT. Returns `None` if `rate_hz` is too low for the cell.
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
    // A wider transition band needs fewer filter taps but a larger FFT. The optimum lies below twice the minimum rate.
    let rates = (least..=2 * least).step_by(VIEW_HZ as usize);
    let work = |to_hz: u64| {
        let taps = Resampler::taps(rate_hz, to_hz, half_band_hz(cell.bandwidth))?;
        Some((taps + OF_TRANSFORM) as u64 * to_hz)
    };
    let possible = rates.filter_map(|rate_hz| Some((work(rate_hz)?, of_rate(rate_hz)?)));
    possible.min_by_key(|(work, _)| *work).map(|(_, numerology)| numerology)
}

/// Cost of an FFT per point, in filter taps.
const OF_TRANSFORM: usize = 16;

/// Half of a cell's occupied bandwidth, plus one subcarrier (Hz).
pub(super) fn half_band_hz(bandwidth: Bandwidth) -> u64 {
    (bandwidth.subcarriers() as u64 / 2 + 1) * u64::from(SUBCARRIER_HZ)
}

/// The narrowest cell fits any sample rate that the listener accepts.
const _: () = assert!(least_rate_hz(Bandwidth::ALL[0]) <= VIEW_HZ);
