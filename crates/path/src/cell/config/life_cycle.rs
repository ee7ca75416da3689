//! The `[cell.rrc]` and `[cell.drx]` tables: what devices do while they have no data.

use serde::{Deserialize, Serialize};

use crate::config_error::{ConfigError, not_negative, positive};

/// RRC states of devices. By default, devices are always connected.
///
/// Source: TS 36.331 §4.2.1, TS 38.331 §4.2.1
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RrcConfig {
    /// Time without data in both directions after which a device becomes inactive, in s; cells with carriers of NR only. If
    /// absent, devices never become inactive.
    pub inactive_after_s: Option<f64>,
    /// Time without data in both directions after which a device becomes idle, in s. If absent, devices never become idle.
    ///
    /// 5 to 20 s are usual.
    pub idle_after_s: Option<f64>,
    /// Shortest time in which an inactive device becomes connected, in ms.
    ///
    /// Chosen: 10 to 20 ms, typical of networks.
    pub resume_min_ms: f64,
    /// Longest time in which an inactive device becomes connected, in ms.
    pub resume_max_ms: f64,
    /// Shortest time in which an idle device becomes connected, in ms.
    ///
    /// Chosen: 50 to 100 ms, typical of networks.
    pub setup_min_ms: f64,
    /// Longest time in which an idle device becomes connected, in ms.
    pub setup_max_ms: f64,
    /// Period in which a device that is not connected listens for paging, in ms. Downlink data waits for the next time.
    ///
    /// Source: TS 36.304 §7.1, TS 38.304 §7.1 (320, 640, 1280 or 2560 ms). Chosen: 320 ms.
    pub paging_cycle_ms: u32,
}

impl Default for RrcConfig {
    fn default() -> RrcConfig {
        RrcConfig {
            inactive_after_s: None,
            idle_after_s: None,
            resume_min_ms: 10.0,
            resume_max_ms: 20.0,
            setup_min_ms: 50.0,
            setup_max_ms: 100.0,
            paging_cycle_ms: 320,
        }
    }
}

impl RrcConfig {
    /// Rejects an invalid configuration; the error names key and remedy.
    pub(super) fn validate(&self, has_nr: bool) -> Result<(), ConfigError> {
        for (key, value) in [("inactive_after_s", self.inactive_after_s), ("idle_after_s", self.idle_after_s)]
        {
            value.map_or(Ok(0.0), |seconds| positive(key, seconds))?;
        }
        if self.inactive_after_s.is_some() && !has_nr {
            let reason = "belongs to cells with carriers of NR; use idle_after_s";
            return Err(ConfigError::new("inactive_after_s", reason));
        }
        if let (Some(inactive), Some(idle)) = (self.inactive_after_s, self.idle_after_s)
            && idle <= inactive
        {
            let reason = format!("is {idle}; must be above inactive_after_s ({inactive})");
            return Err(ConfigError::new("idle_after_s", reason));
        }
        for (min_key, min, max_key, max) in [
            ("resume_min_ms", self.resume_min_ms, "resume_max_ms", self.resume_max_ms),
            ("setup_min_ms", self.setup_min_ms, "setup_max_ms", self.setup_max_ms),
        ] {
            not_negative(min_key, min)?;
            if !(min..=60_000.0).contains(&max) {
                let reason = format!("is {max}; give {min_key} ({min}) to 60000");
                return Err(ConfigError::new(max_key, reason));
            }
        }
        if self.paging_cycle_ms > 10_240 {
            let reason = format!("is {}; give at most 10240, or 0 for no wait", self.paging_cycle_ms);
            return Err(ConfigError::new("paging_cycle_ms", reason));
        }
        Ok(())
    }
}

/// Discontinuous reception of connected devices. By default, devices always listen.
///
/// Source: TS 36.321 §5.7, TS 38.321 §5.7
///
/// Differs: a device with uplink data is always able to receive grants, because its scheduling request wakes it. A device
/// also receives all retransmissions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DrxConfig {
    /// Period in which a device listens for `on_ms`, in ms. If absent, there is no discontinuous reception.
    ///
    /// 160 to 320 ms are usual.
    pub cycle_ms: Option<u32>,
    /// Time per period for which a device listens (onDuration), in ms.
    pub on_ms: u32,
    /// Time for which a device listens after a grant of new data (drx-InactivityTimer), in ms.
    pub inactivity_ms: u32,
}

impl Default for DrxConfig {
    fn default() -> DrxConfig {
        DrxConfig { cycle_ms: None, on_ms: 10, inactivity_ms: 100 }
    }
}

impl DrxConfig {
    /// Rejects an invalid configuration; the error names key and remedy.
    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        let Some(cycle_ms) = self.cycle_ms else { return Ok(()) };
        if !(2..=10_240).contains(&cycle_ms) {
            return Err(ConfigError::new("cycle_ms", format!("is {cycle_ms}; give 2 to 10240")));
        }
        if !(1..cycle_ms).contains(&self.on_ms) {
            let reason = format!("is {}; give 1 or more, below cycle_ms ({cycle_ms})", self.on_ms);
            return Err(ConfigError::new("on_ms", reason));
        }
        Ok(())
    }
}
