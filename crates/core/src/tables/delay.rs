//! Multipath delay profiles: delay and power of each path.

use serde::{Deserialize, Serialize};

/// The multipath delay profiles of LTE's conformance tests, and [`DelayProfile::Flat`] for a signal with one path.
///
/// A configuration (serde) uses the names that [`DelayProfile::name`] returns.
///
/// Source: TS 36.101 Annex B.2.1 Table B.2.1-2 … B.2.1-4 (TS 36.104 Annex B.2 contains the same tables)
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DelayProfile {
    /// One path, without delay.
    #[default]
    #[serde(rename = "none")]
    Flat,
    /// Extended Pedestrian A: excess delays up to 0.41 µs.
    Epa,
    /// Extended Vehicular A: excess delays up to 2.51 µs.
    Eva,
    /// Extended Typical Urban: excess delays up to 5 µs.
    Etu,
}

impl DelayProfile {
    /// All profiles.
    pub const ALL: [DelayProfile; 4] =
        [DelayProfile::Flat, DelayProfile::Epa, DelayProfile::Eva, DelayProfile::Etu];

    /// Name of the profile, in lower case.
    pub const fn name(self) -> &'static str {
        match self {
            DelayProfile::Flat => "none",
            DelayProfile::Epa => "epa",
            DelayProfile::Eva => "eva",
            DelayProfile::Etu => "etu",
        }
    }

    /// The paths as (excess delay in nanoseconds, relative power in dB), in order of delay.
    ///
    /// Source: TS 36.101 Annex B.2.1 Table B.2.1-2 … B.2.1-4
    pub const fn taps(self) -> &'static [(f64, f64)] {
        match self {
            DelayProfile::Flat => &[(0.0, 0.0)],
            DelayProfile::Epa => &[
                (0.0, 0.0),
                (30.0, -1.0),
                (70.0, -2.0),
                (90.0, -3.0),
                (110.0, -8.0),
                (190.0, -17.2),
                (410.0, -20.8),
            ],
            DelayProfile::Eva => &[
                (0.0, 0.0),
                (30.0, -1.5),
                (150.0, -1.4),
                (310.0, -3.6),
                (370.0, -0.6),
                (710.0, -9.1),
                (1090.0, -7.0),
                (1730.0, -12.0),
                (2510.0, -16.9),
            ],
            DelayProfile::Etu => &[
                (0.0, -1.0),
                (50.0, -1.0),
                (120.0, -1.0),
                (200.0, 0.0),
                (230.0, 0.0),
                (500.0, 0.0),
                (1600.0, -3.0),
                (2300.0, -5.0),
                (5000.0, -7.0),
            ],
        }
    }
}

/// The tapped delay line profiles of NR's channel model. Their delays are relative to the delay spread.
///
/// Source: TR 38.901 §7.7.2 Table 7.7.2-1 … 7.7.2-5
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TdlProfile {
    /// TDL-A, without line of sight.
    A,
    /// TDL-B, without line of sight.
    B,
    /// TDL-C, without line of sight.
    C,
    /// TDL-D, with line of sight and a K-factor of 13.3 dB.
    D,
    /// TDL-E, with line of sight and a K-factor of 22 dB.
    E,
}

impl TdlProfile {
    /// All profiles.
    pub const ALL: [TdlProfile; 5] =
        [TdlProfile::A, TdlProfile::B, TdlProfile::C, TdlProfile::D, TdlProfile::E];

    /// Name of the profile, in lower case.
    pub const fn name(self) -> &'static str {
        match self {
            TdlProfile::A => "tdl_a",
            TdlProfile::B => "tdl_b",
            TdlProfile::C => "tdl_c",
            TdlProfile::D => "tdl_d",
            TdlProfile::E => "tdl_e",
        }
    }

    /// Relative power in dB of the path with line of sight, which has no delay and does not fade; `None` for a profile
    /// without line of sight.
    pub const fn los_power_db(self) -> Option<f64> {
        match self {
            TdlProfile::A | TdlProfile::B | TdlProfile::C => None,
            TdlProfile::D => Some(-0.2),
            TdlProfile::E => Some(-0.03),
        }
    }

    /// The scattered paths, which have Rayleigh fading, as (delay divided by the RMS delay spread, relative power in dB), in the
    /// order of the standard. In profiles with line of sight, the first path has the delay of the path with line of sight.
    #[expect(clippy::approx_constant, reason = "a delay of TDL-C is close to 2/π")]
    pub const fn taps(self) -> &'static [(f64, f64)] {
        match self {
            TdlProfile::A => &[
                (0.0, -13.4),
                (0.3819, 0.0),
                (0.4025, -2.2),
                (0.5868, -4.0),
                (0.461, -6.0),
                (0.5375, -8.2),
                (0.6708, -9.9),
                (0.575, -10.5),
                (0.7618, -7.5),
                (1.5375, -15.9),
                (1.8978, -6.6),
                (2.2242, -16.7),
                (2.1718, -12.4),
                (2.4942, -15.2),
                (2.5119, -10.8),
                (3.0582, -11.3),
                (4.081, -12.7),
                (4.4579, -16.2),
                (4.5695, -18.3),
                (4.7966, -18.9),
                (5.0066, -16.6),
                (5.3043, -19.9),
                (9.6586, -29.7),
            ],
            TdlProfile::B => &[
                (0.0, 0.0),
                (0.1072, -2.2),
                (0.2155, -4.0),
                (0.2095, -3.2),
                (0.287, -9.8),
                (0.2986, -1.2),
                (0.3752, -3.4),
                (0.5055, -5.2),
                (0.3681, -7.6),
                (0.3697, -3.0),
                (0.57, -8.9),
                (0.5283, -9.0),
                (1.1021, -4.8),
                (1.2756, -5.7),
                (1.5474, -7.5),
                (1.7842, -1.9),
                (2.0169, -7.6),
                (2.8294, -12.2),
                (3.0219, -9.8),
                (3.6187, -11.4),
                (4.1067, -14.9),
                (4.279, -9.2),
                (4.7834, -11.3),
            ],
            TdlProfile::C => &[
                (0.0, -4.4),
                (0.2099, -1.2),
                (0.2219, -3.5),
                (0.2329, -5.2),
                (0.2176, -2.5),
                (0.6366, 0.0),
                (0.6448, -2.2),
                (0.656, -3.9),
                (0.6584, -7.4),
                (0.7935, -7.1),
                (0.8213, -10.7),
                (0.9336, -11.1),
                (1.2285, -5.1),
                (1.3083, -6.8),
                (2.1704, -8.7),
                (2.7105, -13.2),
                (4.2589, -13.9),
                (4.6003, -13.9),
                (5.4902, -15.8),
                (5.6077, -17.1),
                (6.3065, -16.0),
                (6.6374, -15.7),
                (7.0427, -21.6),
                (8.6523, -22.8),
            ],
            TdlProfile::D => &[
                (0.0, -13.5),
                (0.035, -18.8),
                (0.612, -21.0),
                (1.363, -22.8),
                (1.405, -17.9),
                (1.804, -20.1),
                (2.596, -21.9),
                (1.775, -22.9),
                (4.042, -27.8),
                (7.937, -23.6),
                (9.424, -24.8),
                (9.708, -30.0),
                (12.525, -27.7),
            ],
            TdlProfile::E => &[
                (0.0, -22.03),
                (0.5133, -15.8),
                (0.544, -18.1),
                (0.563, -19.8),
                (0.544, -22.9),
                (0.7112, -22.4),
                (1.9092, -18.6),
                (1.9293, -20.8),
                (1.9589, -22.6),
                (2.6426, -22.3),
                (3.7136, -25.6),
                (5.4524, -20.2),
                (12.0034, -29.8),
                (20.6519, -29.2),
            ],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_have_the_length_of_the_standard() {
        // Source: TS 36.101 Annex B.2.1 Table B.2.1-1 (number of taps, delay span)
        let sizes = DelayProfile::ALL.map(|profile| {
            let taps = profile.taps();
            (taps.len(), taps.last().map(|tap| tap.0))
        });
        assert_eq!(sizes, [(1, Some(0.0)), (7, Some(410.0)), (9, Some(2510.0)), (9, Some(5000.0))]);
        for profile in DelayProfile::ALL {
            let taps = profile.taps();
            assert!(taps.windows(2).all(|two| two[0].0 < two[1].0), "{}: delays grow", profile.name());
            assert!(taps.iter().any(|tap| tap.1 == 0.0), "{}: powers are relative", profile.name());
        }
    }
    #[test]
    fn tdl_profiles_have_the_length_and_the_k_factor_of_the_standard() {
        // Source: TR 38.901 §7.7.2 Table 7.7.2-1 … 7.7.2-5 (number of taps, last delay, K-factor of the first tap)
        let seen = TdlProfile::ALL.map(|profile| {
            let taps = profile.taps();
            let last = taps.iter().map(|tap| tap.0).fold(0.0, f64::max);
            let k_db = profile.los_power_db().map(|los_db| (10.0 * (los_db - taps[0].1)).round() / 10.0);
            (taps.len(), last, k_db)
        });
        assert_eq!(
            seen,
            [
                (23, 9.6586, None),
                (23, 4.7834, None),
                (24, 8.6523, None),
                (13, 12.525, Some(13.3)),
                (14, 20.6519, Some(22.0))
            ]
        );
    }

    #[test]
    fn tdl_profiles_have_an_rms_delay_spread_of_one() {
        for profile in TdlProfile::ALL {
            let power = |power_db: f64| libm::pow(10.0, power_db / 10.0);
            let mut paths: Vec<_> = profile.taps().iter().map(|tap| (tap.0, power(tap.1))).collect();
            paths.extend(profile.los_power_db().map(|power_db| (0.0, power(power_db))));
            let total: f64 = paths.iter().map(|path| path.1).sum();
            let moment = |n: i32| paths.iter().map(|path| path.0.powi(n) * path.1).sum::<f64>() / total;
            let spread = libm::sqrt(moment(2) - moment(1) * moment(1));
            // The powers in the tables are rounded: to 0.1 dB, except for the line of sight of TDL-E.
            let tolerance = if profile == TdlProfile::D { 0.007 } else { 0.001 };
            assert!((spread - 1.0).abs() < tolerance, "{}: {spread}", profile.name());
        }
    }
}
