//! Multipath profiles of a channel.

use airpace_core::tables::delay::{DelayProfile, TdlProfile};
use serde::{Deserialize, Serialize};

/// Multipath profile of a channel: the profiles of LTE's conformance tests with fixed delays, and the TDL profiles of NR's
/// channel model, whose delays are multiples of the delay spread.
///
/// Source: TS 36.101 Annex B.2.1, TR 38.901 §7.7.2
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FadingProfile {
    /// One path, without delay and without fading.
    #[default]
    #[serde(rename = "none")]
    Flat,
    /// Extended Pedestrian A.
    Epa,
    /// Extended Vehicular A.
    Eva,
    /// Extended Typical Urban.
    Etu,
    /// TDL-A: no line of sight.
    TdlA,
    /// TDL-B: no line of sight.
    TdlB,
    /// TDL-C: no line of sight.
    TdlC,
    /// TDL-D: line of sight with a K-factor of 13.3 dB.
    TdlD,
    /// TDL-E: line of sight with a K-factor of 22 dB.
    TdlE,
}

impl FadingProfile {
    /// Whether the profile is one of the TDL profiles, which need a delay spread.
    pub fn is_tdl(self) -> bool {
        self.tdl().is_some()
    }

    /// The paths with Rayleigh fading as (delay in nanoseconds, relative power in dB).
    pub(super) fn paths(self, delay_spread_ns: f64) -> Vec<(f64, f64)> {
        if let Some(profile) = self.tdl() {
            let scaled = |&(delay, power_db): &(f64, f64)| (delay * delay_spread_ns, power_db);
            return profile.taps().iter().map(scaled).collect();
        }
        self.fixed().map_or_else(Vec::new, |profile| profile.taps().to_vec())
    }

    /// Relative power in dB of the path with line of sight; `None` if all paths have Rayleigh fading.
    pub(super) fn los_power_db(self) -> Option<f64> {
        self.tdl().and_then(TdlProfile::los_power_db)
    }

    /// The profile with fixed delays; `None` for a profile without fading or with scaled delays.
    fn fixed(self) -> Option<DelayProfile> {
        match self {
            FadingProfile::Epa => Some(DelayProfile::Epa),
            FadingProfile::Eva => Some(DelayProfile::Eva),
            FadingProfile::Etu => Some(DelayProfile::Etu),
            FadingProfile::Flat
            | FadingProfile::TdlA
            | FadingProfile::TdlB
            | FadingProfile::TdlC
            | FadingProfile::TdlD
            | FadingProfile::TdlE => None,
        }
    }

    fn tdl(self) -> Option<TdlProfile> {
        match self {
            FadingProfile::Flat | FadingProfile::Epa | FadingProfile::Eva | FadingProfile::Etu => None,
            FadingProfile::TdlA => Some(TdlProfile::A),
            FadingProfile::TdlB => Some(TdlProfile::B),
            FadingProfile::TdlC => Some(TdlProfile::C),
            FadingProfile::TdlD => Some(TdlProfile::D),
            FadingProfile::TdlE => Some(TdlProfile::E),
        }
    }
}

/// RMS delay spread in nanoseconds if the configuration gives none.
///
/// Source: TR 38.901 Table 7.7.3-1. Chosen: nominal.
pub(in super::super) const NOMINAL_DELAY_SPREAD_NS: f64 = 100.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_in_a_configuration_are_those_of_the_tables() {
        #[derive(Deserialize)]
        struct Config {
            fading: FadingProfile,
        }
        let named = |name: &str| -> FadingProfile {
            toml::from_str::<Config>(&format!("fading = \"{name}\"")).expect(name).fading
        };
        for (profile, fading) in DelayProfile::ALL.into_iter().zip([
            FadingProfile::Flat,
            FadingProfile::Epa,
            FadingProfile::Eva,
            FadingProfile::Etu,
        ]) {
            assert_eq!(named(profile.name()), fading);
        }
        for profile in TdlProfile::ALL {
            assert_eq!(named(profile.name()).tdl(), Some(profile));
        }
    }
}
