//! Path loss over distance, noise, and power per subcarrier.

use airpace_radio::Numerology;
use serde::{Deserialize, Serialize};

/// Path loss over distance and carrier frequency. The models of TR 38.901 have a device at a height of 1.5 m. Their base
/// stations have heights of 25 m (urban macro) and 10 m (urban micro, street canyon).
///
/// A line of sight is either there for the whole run (LOS) or absent (NLOS). Log-normal shadowing is configured separately.
///
/// Source: TR 38.901 §7.4.1 Table 7.4.1-1; TR 36.942 for the macro cell at 2 GHz
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum PathLossModel {
    /// Macro cell at 2 GHz, without line of sight: 128.1 + 37.6 log10(d), d in km. The loss does not depend on the carrier
    /// frequency.
    #[default]
    #[serde(rename = "macro_2ghz")]
    Macro2Ghz,
    /// Urban macro cell with line of sight.
    #[serde(rename = "uma_los")]
    UmaLos,
    /// Urban macro cell without line of sight.
    #[serde(rename = "uma_nlos")]
    UmaNlos,
    /// Urban micro cell in a street canyon, with line of sight.
    #[serde(rename = "umi_los")]
    UmiLos,
    /// Urban micro cell in a street canyon, without line of sight.
    #[serde(rename = "umi_nlos")]
    UmiNlos,
}

impl PathLossModel {
    /// Path loss in dB at a horizontal distance and a carrier frequency.
    ///
    /// The models of TR 38.901 hold for 10 m … 5 km and 0.5 … 100 GHz. Chosen: at shorter distances and lower frequencies,
    /// the loss is that at the limit, because the formulas have no meaning there.
    pub fn loss_db(self, distance_m: f64, frequency_mhz: f64) -> f64 {
        let at = |base_station_m| Geometry::new(distance_m, base_station_m, frequency_mhz);
        match self {
            PathLossModel::Macro2Ghz => path_loss_db(distance_m),
            PathLossModel::UmaLos => at(UMA_M).uma_los_db(),
            PathLossModel::UmaNlos => at(UMA_M).uma_nlos_db(),
            PathLossModel::UmiLos => at(UMI_M).umi_los_db(),
            PathLossModel::UmiNlos => at(UMI_M).umi_nlos_db(),
        }
    }

    /// Maximum distance in metres for which the model holds; `None` if the model has no limit.
    pub fn max_distance_m(self) -> Option<f64> {
        match self {
            PathLossModel::Macro2Ghz => None,
            PathLossModel::UmaLos
            | PathLossModel::UmaNlos
            | PathLossModel::UmiLos
            | PathLossModel::UmiNlos => Some(5_000.0),
        }
    }
}

/// Distances, heights and frequency of the formulas in TR 38.901 Table 7.4.1-1.
struct Geometry {
    /// Horizontal distance d_2D in metres.
    ground_m: f64,
    /// Distance between the antennas d_3D in metres.
    antennas_m: f64,
    /// Breakpoint distance d'_BP in metres, beyond which the loss with line of sight grows faster.
    breakpoint_m: f64,
    /// Height of the base station minus height of the device in metres.
    height_m: f64,
    frequency_ghz: f64,
}

impl Geometry {
    /// d'_BP = 4 h'_BS h'_UT f_c / c, where both effective heights are the heights minus 1 m.
    ///
    /// Source: TR 38.901 Table 7.4.1-1 Note 1 (for devices below 13 m; c is 3.0e8 m/s)
    fn new(distance_m: f64, base_station_m: f64, frequency_mhz: f64) -> Geometry {
        let ground_m = distance_m.max(TR_38_901_MIN_M);
        let frequency_ghz = (frequency_mhz / 1000.0).max(TR_38_901_MIN_GHZ);
        let height_m = base_station_m - DEVICE_M;
        Geometry {
            ground_m,
            antennas_m: libm::hypot(ground_m, height_m),
            breakpoint_m: 4.0
                * (base_station_m - ENVIRONMENT_M)
                * (DEVICE_M - ENVIRONMENT_M)
                * frequency_ghz
                * 1e9
                / 3.0e8,
            height_m,
            frequency_ghz,
        }
    }

    /// Sum of a constant, a slope over the logarithm of the distance, and a slope over the logarithm of the frequency.
    fn log_distance_db(&self, constant_db: f64, per_distance_db: f64, per_frequency_db: f64) -> f64 {
        constant_db
            + per_distance_db * libm::log10(self.antennas_m)
            + per_frequency_db * libm::log10(self.frequency_ghz)
    }

    /// Reduction of the loss beyond the breakpoint, in dB.
    fn breakpoint_db(&self, slope_db: f64) -> f64 {
        let (breakpoint_m, height_m) = (self.breakpoint_m, self.height_m);
        slope_db * libm::log10(breakpoint_m * breakpoint_m + height_m * height_m)
    }

    fn uma_los_db(&self) -> f64 {
        if self.ground_m <= self.breakpoint_m {
            self.log_distance_db(28.0, 22.0, 20.0)
        } else {
            self.log_distance_db(28.0, 40.0, 20.0) - self.breakpoint_db(9.0)
        }
    }

    /// The term for the device's height is zero at 1.5 m.
    fn uma_nlos_db(&self) -> f64 {
        self.uma_los_db().max(self.log_distance_db(13.54, 39.08, 20.0))
    }

    fn umi_los_db(&self) -> f64 {
        if self.ground_m <= self.breakpoint_m {
            self.log_distance_db(32.4, 21.0, 20.0)
        } else {
            self.log_distance_db(32.4, 40.0, 20.0) - self.breakpoint_db(9.5)
        }
    }

    /// The term for the device's height is zero at 1.5 m.
    fn umi_nlos_db(&self) -> f64 {
        self.umi_los_db().max(self.log_distance_db(22.4, 35.3, 21.3))
    }
}

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

/// Heights in metres of the base station of an urban macro cell, of the base station of an urban micro cell, of the device,
/// and of the surroundings that reflect the second path.
///
/// Source: TR 38.901 Tables 7.2-1 and 7.4.1-1
const UMA_M: f64 = 25.0;
const UMI_M: f64 = 10.0;
const DEVICE_M: f64 = 1.5;
const ENVIRONMENT_M: f64 = 1.0;

/// Minimum distance (m) and minimum carrier frequency (GHz) of the models of TR 38.901.
const TR_38_901_MIN_M: f64 = 10.0;
const TR_38_901_MIN_GHZ: f64 = 0.5;

const THERMAL_NOISE_DBM_PER_HZ: f64 = -174.0;
const SUBCARRIER_HZ: f64 = 15_000.0;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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

    /// Asserts that the loss in dB is the value that the formula gives by hand.
    fn assert_loss(model: PathLossModel, frequency_ghz: f64, distance_m: f64, by_hand_db: f64) {
        let loss_db = model.loss_db(distance_m, frequency_ghz * 1e3);
        assert!(
            (loss_db - by_hand_db).abs() < 0.01,
            "{model:?} at {frequency_ghz} GHz and {distance_m} m: {loss_db} dB, by hand {by_hand_db} dB"
        );
    }

    // Source: TR 38.901 §7.4.1 Table 7.4.1-1
    #[test]
    fn macro_cells_have_the_loss_worked_out_by_hand() {
        use PathLossModel::{UmaLos, UmaNlos};
        // 3.5 GHz: breakpoint 4 · 24 · 0.5 · 3.5e9 / 3e8 = 560 m; 20 log10 3.5 = 10.881.
        // 100 m: d_3D = √(100² + 23.5²) = 102.724 m, log10 = 2.01167.
        assert_loss(UmaLos, 3.5, 100.0, 28.0 + 44.257 + 10.881);
        assert_loss(UmaNlos, 3.5, 100.0, 13.54 + 78.616 + 10.881);
        // 1000 m, beyond the breakpoint: d_3D = 1000.276 m, 40 log10 = 120.005;
        // 9 log10(560² + 23.5²) = 9 log10(314152) = 9 · 5.49714 = 49.474.
        assert_loss(UmaLos, 3.5, 1000.0, 28.0 + 120.005 + 10.881 - 49.474);
        // 39.08 log10 1000.276 = 39.08 · 3.00012 = 117.245.
        assert_loss(UmaNlos, 3.5, 1000.0, 13.54 + 117.245 + 10.881);
        // 28 GHz: breakpoint 4480 m; 20 log10 28 = 28.943. 300 m: d_3D = 300.919 m, log10 = 2.47845.
        assert_loss(UmaLos, 28.0, 300.0, 28.0 + 54.526 + 28.943);
        assert_loss(UmaNlos, 28.0, 300.0, 13.54 + 96.858 + 28.943);
    }

    // Source: TR 38.901 §7.4.1 Table 7.4.1-1
    #[test]
    fn street_canyons_have_the_loss_worked_out_by_hand() {
        use PathLossModel::{UmiLos, UmiNlos};
        // 3.5 GHz: breakpoint 4 · 9 · 0.5 · 3.5e9 / 3e8 = 210 m.
        // 100 m: d_3D = √(100² + 8.5²) = 100.361 m, log10 = 2.00156.
        assert_loss(UmiLos, 3.5, 100.0, 32.4 + 42.033 + 10.881);
        // 35.3 · 2.00156 = 70.655; 21.3 log10 3.5 = 11.589.
        assert_loss(UmiNlos, 3.5, 100.0, 22.4 + 70.655 + 11.589);
        // 1000 m, beyond the breakpoint: d_3D = 1000.036 m, 40 log10 = 120.001;
        // 9.5 log10(210² + 8.5²) = 9.5 log10(44172) = 9.5 · 4.64515 = 44.129.
        assert_loss(UmiLos, 3.5, 1000.0, 32.4 + 120.001 + 10.881 - 44.129);
        // 28 GHz and 100 m: the breakpoint is at 1680 m; 21.3 log10 28 = 30.825.
        assert_loss(UmiLos, 28.0, 100.0, 32.4 + 42.033 + 28.943);
        assert_loss(UmiNlos, 28.0, 100.0, 22.4 + 70.655 + 30.825);
    }

    #[test]
    fn the_default_does_not_depend_on_the_frequency() {
        for frequency_mhz in [700.0, 28_000.0] {
            assert_eq!(PathLossModel::default().loss_db(700.0, frequency_mhz), path_loss_db(700.0));
        }
    }

    proptest! {
        /// Loss grows with distance and frequency; a line of sight never has more loss than its absence.
        #[test]
        fn loss_grows_with_distance_and_frequency(
            distance_m in 0.0..5_000.0, further_m in 0.0..500.0, ghz in 0.1..100.0, higher_ghz in 0.0..10.0,
        ) {
            use PathLossModel::{UmaLos, UmaNlos, UmiLos, UmiNlos};
            for (los, nlos) in [(UmaLos, UmaNlos), (UmiLos, UmiNlos)] {
                prop_assert!(los.loss_db(distance_m, ghz * 1e3) <= nlos.loss_db(distance_m, ghz * 1e3));
                for model in [los, nlos] {
                    let near_db = model.loss_db(distance_m, ghz * 1e3);
                    prop_assert!(model.loss_db(distance_m + further_m, ghz * 1e3) >= near_db - 0.1);
                    prop_assert!(model.loss_db(distance_m, (ghz + higher_ghz) * 1e3) >= near_db - 0.1);
                    prop_assert_eq!(model.loss_db(distance_m.min(10.0), 3e3), model.loss_db(10.0, 3e3));
                }
            }
        }
    }

    #[test]
    fn power_is_shared_by_the_subcarriers() {
        assert!((power_per_subcarrier_dbm(46.0, 100) - 15.2).abs() < 0.01);
    }
}
