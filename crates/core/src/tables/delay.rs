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
}
