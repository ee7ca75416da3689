//! Path loss over distance, noise, and power per subcarrier.

use airpace_radio::Numerology;

/// Macro-cell path loss in dB at 2 GHz: 128.1 + 37.6 log10(d), d in km. The formula is not valid below 35 m, so the
/// loss at shorter distances is the loss at 35 m.
///
/// Source: TR 36.942
pub fn path_loss_db(distance_m: f64) -> f64 {
    128.1 + 37.6 * libm::log10(distance_m.max(NEAREST_M) / 1000.0)
}

/// Power in dBm of thermal noise and the receiver's own noise over one subcarrier: -123.2 dBm with 15 kHz and a noise
/// figure of 9 dB.
pub fn noise_per_subcarrier_dbm(noise_figure_db: f64, numerology: Numerology) -> f64 {
    let subcarrier_hz = SUBCARRIER_HZ * numerology.slots_per_subframe() as f64;
    THERMAL_NOISE_DBM_PER_HZ + 10.0 * libm::log10(subcarrier_hz) + noise_figure_db
}

/// Transmit power in dBm per subcarrier if `total_dbm` is spread over all of `prbs` PRBs.
pub fn power_per_subcarrier_dbm(total_dbm: f64, prbs: u16) -> f64 {
    total_dbm - 10.0 * libm::log10(12.0 * f64::from(prbs.max(1)))
}

const NEAREST_M: f64 = 35.0;
const THERMAL_NOISE_DBM_PER_HZ: f64 = -174.0;
const SUBCARRIER_HZ: f64 = 15_000.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_noise_floor_is_the_one_of_the_sheet() {
        assert!((noise_per_subcarrier_dbm(9.0, Numerology::KHZ_15) + 123.24).abs() < 0.01);
        assert!((noise_per_subcarrier_dbm(9.0, Numerology::KHZ_120) + 114.21).abs() < 0.01);
    }

    #[test]
    fn ten_times_the_distance_costs_37_6_db() {
        assert!((path_loss_db(1000.0) - 128.1).abs() < 1e-9);
        assert!((path_loss_db(1000.0) - path_loss_db(100.0) - 37.6).abs() < 1e-9);
        assert_eq!(path_loss_db(0.0), path_loss_db(35.0));
    }

    #[test]
    fn power_is_shared_by_the_subcarriers() {
        assert!((power_per_subcarrier_dbm(46.0, 100) - 15.2).abs() < 0.01);
    }
}
