//! Mutual information of a coded bit: effective SINR of a block that is spread over PRBs of different quality.
//!
//! Per-RBG SINRs are converted to mutual information, and the mean over the allocation is converted back to a SINR: the
//! *effective* SINR, at which a flat channel would carry the same information. On a flat channel, the effective SINR is
//! the SINR itself.
//!
//! Chosen: the mapping by mutual information (MIESM) instead of the exponential mapping (EESM), because its curves
//! follow from the modulation alone and need no fitted factor per MCS.

use airpace_core::tables::Modulation;

/// Effective SINR in dB of an allocation for one modulation. Each part of the allocation is `(sinr_db, weight)`. The
/// result is between the smallest and the largest SINR. If all weights are zero, the result is [`SINR_FLOOR_DB`].
pub fn effective_sinr_db(modulation: Modulation, parts: impl Iterator<Item = (f64, f64)>) -> f64 {
    let (mut information, mut weight) = (0.0, 0.0);
    let (mut least, mut most) = (f64::INFINITY, f64::NEG_INFINITY);
    for (sinr_db, share) in parts {
        if share > 0.0 {
            information += share * mutual_information(modulation, sinr_db);
            weight += share;
            least = least.min(sinr_db);
            most = most.max(sinr_db);
        }
    }
    if weight == 0.0 {
        SINR_FLOOR_DB
    } else if least == most {
        least
    } else {
        sinr_db_of(modulation, information / weight).clamp(least, most)
    }
}

/// Mutual information in bits per coded bit, 0…1, of a modulation at a SINR.
pub fn mutual_information(modulation: Modulation, sinr_db: f64) -> f64 {
    let curve = curve(modulation);
    let place = (sinr_db - FIRST_DB) / STEP_DB;
    if place <= 0.0 {
        // If the SINR is very low, mutual information is proportional to the SINR.
        return curve[0] * libm::exp((sinr_db - FIRST_DB) * DB_TO_NEPERS);
    }
    let index = place as usize;
    if index + 1 >= POINTS {
        return 1.0;
    }
    curve[index] + (place - index as f64) * (curve[index + 1] - curve[index])
}

/// The SINR in dB at which a modulation has this mutual information: the inverse of [`mutual_information`]. If there
/// are several such SINRs, the lowest is returned.
pub fn sinr_db_of(modulation: Modulation, information: f64) -> f64 {
    let curve = curve(modulation);
    if information <= curve[0] {
        let ratio = (information / curve[0]).max(1e-3);
        return FIRST_DB + libm::log(ratio) / DB_TO_NEPERS;
    }
    let above = curve.partition_point(|&point| point < information);
    if above >= POINTS {
        return FIRST_DB + STEP_DB * (POINTS - 1) as f64;
    }
    let (low, high) = (curve[above - 1], curve[above]);
    FIRST_DB + STEP_DB * ((above - 1) as f64 + (information - low) / (high - low))
}

/// Minimum SINR that is returned, in dB, so that even a complete fade is a finite number.
pub const SINR_FLOOR_DB: f64 = -30.0;

fn curve(modulation: Modulation) -> &'static [f64; POINTS] {
    &BIT_INFORMATION[modulation as usize]
}

/// Factor that converts dB to the exponent of e: ln(10) / 10.
const DB_TO_NEPERS: f64 = std::f64::consts::LN_10 / 10.0;
const FIRST_DB: f64 = -20.0;
const STEP_DB: f64 = 0.5;
const POINTS: usize = 111;

/// Mutual information per coded bit at SINRs from -20 to 35 dB in steps of 0.5 dB, for QPSK, 16QAM, 64QAM and 256QAM
/// with Gray labels and bitwise decisions. The values were computed by numerical integration over the noise; a test
/// repeats the integration.
#[rustfmt::skip]
const BIT_INFORMATION: [[f64; POINTS]; 4] = [
    // QPSK
    [
        0.007178, 0.008049, 0.009025, 0.010118, 0.011343, 0.012715, 0.014251, 0.015971, 0.017896, 0.020049,
        0.022458, 0.025151, 0.028160, 0.031522, 0.035276, 0.039464, 0.044134, 0.049339, 0.055133, 0.061579,
        0.068743, 0.076696, 0.085515, 0.095280, 0.106078, 0.117997, 0.131132, 0.145577, 0.161429, 0.178783,
        0.197732, 0.218360, 0.240747, 0.264957, 0.291036, 0.319011, 0.348879, 0.380604, 0.414111, 0.449282,
        0.485944, 0.523874, 0.562788, 0.602346, 0.642149, 0.681750, 0.720661, 0.758369, 0.794353, 0.828114,
        0.859194, 0.887210, 0.911880, 0.933045, 0.950681, 0.964909, 0.975980, 0.984253, 0.990164, 0.994178,
        0.996756, 0.998311, 0.999184, 0.999638, 0.999854, 0.999947, 0.999983, 0.999995, 0.999999, 1.000000,
        1.000000, 1.000000, 1.000000, 1.000000, 1.000000, 1.000000, 1.000000, 1.000000, 1.000000, 1.000000,
        1.000000, 1.000000, 1.000000, 1.000000, 1.000000, 1.000000, 1.000000, 1.000000, 1.000000, 1.000000,
        1.000000, 1.000000, 1.000000, 1.000000, 1.000000, 1.000000, 1.000000, 1.000000, 1.000000, 1.000000,
        1.000000, 1.000000, 1.000000, 1.000000, 1.000000, 1.000000, 1.000000, 1.000000, 1.000000, 1.000000,
        1.000000,
    ],
    // 16QAM
    [
        0.002880, 0.003230, 0.003623, 0.004064, 0.004558, 0.005112, 0.005733, 0.006430, 0.007210, 0.008084,
        0.009064, 0.010161, 0.011390, 0.012765, 0.014305, 0.016028, 0.017955, 0.020109, 0.022516, 0.025204,
        0.028204, 0.031549, 0.035277, 0.039428, 0.044043, 0.049171, 0.054859, 0.061160, 0.068129, 0.075824,
        0.084303, 0.093627, 0.103857, 0.115051, 0.127270, 0.140568, 0.154998, 0.170604, 0.187427, 0.205497,
        0.224835, 0.245451, 0.267342, 0.290493, 0.314870, 0.340426, 0.367094, 0.394788, 0.423403, 0.452817,
        0.482893, 0.513488, 0.544457, 0.575665, 0.606989, 0.638322, 0.669562, 0.700600, 0.731298, 0.761474,
        0.790895, 0.819271, 0.846279, 0.871579, 0.894850, 0.915814, 0.934264, 0.950083, 0.963256, 0.973876,
        0.982133, 0.988298, 0.992698, 0.995683, 0.997598, 0.998751, 0.999398, 0.999733, 0.999893, 0.999961,
        0.999987, 0.999996, 0.999999, 1.000000, 1.000000, 1.000000, 1.000000, 1.000000, 1.000000, 1.000000,
        1.000000, 1.000000, 1.000000, 1.000000, 1.000000, 1.000000, 1.000000, 1.000000, 1.000000, 1.000000,
        1.000000, 1.000000, 1.000000, 1.000000, 1.000000, 1.000000, 1.000000, 1.000000, 1.000000, 1.000000,
        1.000000,
    ],
    // 64QAM
    [
        0.001828, 0.002050, 0.002300, 0.002580, 0.002893, 0.003245, 0.003639, 0.004081, 0.004576, 0.005131,
        0.005752, 0.006448, 0.007227, 0.008100, 0.009076, 0.010168, 0.011390, 0.012755, 0.014279, 0.015982,
        0.017881, 0.019999, 0.022357, 0.024982, 0.027899, 0.031138, 0.034728, 0.038702, 0.043094, 0.047937,
        0.053268, 0.059121, 0.065534, 0.072539, 0.080171, 0.088460, 0.097432, 0.107113, 0.117521, 0.128670,
        0.140569, 0.153223, 0.166632, 0.180792, 0.195695, 0.211335, 0.227704, 0.244795, 0.262605, 0.281130,
        0.300368, 0.320316, 0.340969, 0.362313, 0.384328, 0.406985, 0.430242, 0.454046, 0.478337, 0.503042,
        0.528087, 0.553388, 0.578861, 0.604420, 0.629979, 0.655461, 0.680797, 0.705930, 0.730817, 0.755414,
        0.779666, 0.803487, 0.826745, 0.849261, 0.870811, 0.891146, 0.910011, 0.927175, 0.942450, 0.955712,
        0.966910, 0.976080, 0.983334, 0.988856, 0.992883, 0.995682, 0.997527, 0.998671, 0.999336, 0.999694,
        0.999871, 0.999951, 0.999983, 0.999995, 0.999999, 1.000000, 1.000000, 1.000000, 1.000000, 1.000000,
        1.000000, 1.000000, 1.000000, 1.000000, 1.000000, 1.000000, 1.000000, 1.000000, 1.000000, 1.000000,
        1.000000,
    ],
    // 256QAM
    [
        0.001355, 0.001520, 0.001705, 0.001912, 0.002144, 0.002405, 0.002697, 0.003024, 0.003391, 0.003802,
        0.004262, 0.004778, 0.005355, 0.006001, 0.006725, 0.007533, 0.008438, 0.009449, 0.010578, 0.011838,
        0.013244, 0.014811, 0.016556, 0.018498, 0.020656, 0.023051, 0.025705, 0.028642, 0.031887, 0.035464,
        0.039400, 0.043721, 0.048451, 0.053617, 0.059240, 0.065344, 0.071948, 0.079066, 0.086713, 0.094896,
        0.103622, 0.112889, 0.122695, 0.133035, 0.143899, 0.155277, 0.167157, 0.179529, 0.192382, 0.205706,
        0.219490, 0.233723, 0.248392, 0.263479, 0.278965, 0.294825, 0.311033, 0.327563, 0.344396, 0.361517,
        0.378924, 0.396625, 0.414638, 0.432985, 0.451689, 0.470768, 0.490226, 0.510056, 0.530235, 0.550726,
        0.571481, 0.592444, 0.613552, 0.634744, 0.655957, 0.677129, 0.698200, 0.719115, 0.739829, 0.760305,
        0.780518, 0.800446, 0.820060, 0.839306, 0.858096, 0.876299, 0.893746, 0.910242, 0.925584, 0.939585,
        0.952085, 0.962979, 0.972216, 0.979815, 0.985858, 0.990485, 0.993881, 0.996259, 0.997838, 0.998828,
        0.999407, 0.999723, 0.999882, 0.999954, 0.999984, 0.999995, 0.999999, 1.000000, 1.000000, 1.000000,
        1.000000,
    ],
];

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ALL: [Modulation; 4] = [Modulation::Qpsk, Modulation::Qam16, Modulation::Qam64, Modulation::Qam256];

    /// Mutual information per bit of one dimension of the modulation, computed by numerical integration over the noise.
    fn integrated(modulation: Modulation, sinr_db: f64) -> f64 {
        let bits = modulation.bits_per_symbol() / 2;
        let levels = 1_i32 << bits;
        let energy: f64 =
            (0..levels).map(|i| f64::from(2 * i - levels + 1).powi(2)).sum::<f64>() / f64::from(levels);
        let level = |i: i32| f64::from(2 * i - levels + 1) / energy.sqrt();
        let sigma = libm::pow(10.0, -sinr_db / 20.0);
        let step = sigma * 0.1;
        let span = ((level(levels - 1) + 8.0 * sigma) / step) as i32;
        let mut lost = 0.0;
        for k in -span..=span {
            let y = f64::from(k) * step;
            let density = |i: i32| libm::exp(-(y - level(i)).powi(2) / (2.0 * sigma * sigma));
            let total: f64 = (0..levels).map(density).sum();
            for bit in 0..bits {
                let ones: f64 = (0..levels).filter(|i| (i ^ (i >> 1)) >> bit & 1 == 1).map(density).sum();
                lost += [ones, total - ones]
                    .iter()
                    .filter(|&&p| p > 1e-200)
                    .map(|p| p * libm::log2(total / p))
                    .sum::<f64>();
            }
        }
        1.0 - lost * step
            / (libm::sqrt(2.0 * std::f64::consts::PI) * sigma * f64::from(levels) * f64::from(bits))
    }

    #[test]
    fn the_table_is_what_integration_over_the_noise_gives() {
        for modulation in ALL {
            for sinr_db in [-15.0, -5.0, 0.0, 5.0, 10.0, 15.0, 20.0] {
                let (table, sum) = (mutual_information(modulation, sinr_db), integrated(modulation, sinr_db));
                assert!(
                    (table - sum).abs() < 2e-6,
                    "{modulation:?} at {sinr_db} dB: table {table}, integral {sum}"
                );
            }
        }
    }

    #[test]
    fn half_the_band_in_a_deep_fade_halves_the_information() {
        let effective = effective_sinr_db(Modulation::Qpsk, [(20.0, 1.0), (-30.0, 1.0)].into_iter());
        assert!(
            (mutual_information(Modulation::Qpsk, effective) - 0.5).abs() < 0.01,
            "effective {effective} dB"
        );
    }

    proptest! {
        #[test]
        fn a_flat_channel_keeps_its_sinr(sinr_db in -30.0..40.0, parts in 1_usize..28, q in 0_usize..4) {
            prop_assert_eq!(effective_sinr_db(ALL[q], (0..parts).map(|_| (sinr_db, 1.0))), sinr_db);
        }

        #[test]
        fn inverse_and_curve_agree_below_saturation(sinr_db in -28.0..10.0, q in 0_usize..4) {
            let back = sinr_db_of(ALL[q], mutual_information(ALL[q], sinr_db));
            prop_assert!((back - sinr_db).abs() < 1e-3, "{} came back as {}", sinr_db, back);
        }

        #[test]
        fn a_better_part_never_makes_the_whole_worse(
            mut parts in prop::collection::vec(-25.0..35.0_f64, 2..25), gain_db in 0.0..10.0, q in 0_usize..4,
        ) {
            let of = |parts: &[f64]| effective_sinr_db(ALL[q], parts.iter().map(|&sinr_db| (sinr_db, 1.0)));
            let before = of(&parts);
            parts[0] += gain_db;
            prop_assert!(of(&parts) >= before - 1e-9);
        }
    }
}
