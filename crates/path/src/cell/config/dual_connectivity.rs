//! The `[cell.dual_connectivity]` table: devices on carriers of LTE and NR at the same time (EN-DC).

use serde::{Deserialize, Serialize};

use crate::config_error::{ConfigError, not_negative, positive, probability};

/// Dual connectivity of devices with carriers of LTE and NR. LTE is the master node, NR the secondary node. The packets of
/// a device wait at the NR node, which sends a part of them to the LTE node: as many as LTE can send until its next report.
///
/// Source: TS 37.340 §4.1.2 (EN-DC), §4.2.2 (bearers); the most common deployment (option 3x)
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DualConnectivityConfig {
    /// The carriers that carry a device's downlink data.
    pub bearer: Bearer,
    /// Rule by which a split bearer sends a packet to LTE or to NR.
    pub split_by: SplitBy,
    /// `split_by = "nr_first"`: bytes in the NR queue, in kB, from which on packets are sent to LTE.
    ///
    /// Chosen: 100 kB, a few slots of data.
    pub threshold_kb: f64,
    /// `split_by = "share"`: share of the bytes that are sent to NR, 0…1.
    pub nr_share: f64,
    /// Delay of packets from the NR node to the LTE node, in ms.
    ///
    /// Chosen: 2 ms, the delay of nodes in the same city. Connections with 10 ms and more exist.
    pub x2_delay_ms: f64,
    /// Maximum time for which PDCP waits for a packet that is missing before later packets (t-Reordering), in ms.
    ///
    /// Source: TS 38.323 §7.3, TS 38.331 §6.3.2. Chosen: 100 ms.
    pub reordering_ms: f64,
    /// The carriers that carry a device's uplink data.
    ///
    /// Chosen: NR. Differs: the uplink of a device is never split.
    pub uplink: UplinkPath,
}

impl Default for DualConnectivityConfig {
    fn default() -> DualConnectivityConfig {
        DualConnectivityConfig {
            bearer: Bearer::Split,
            split_by: SplitBy::Delay,
            threshold_kb: 100.0,
            nr_share: 0.7,
            x2_delay_ms: 2.0,
            reordering_ms: 100.0,
            uplink: UplinkPath::Nr,
        }
    }
}

/// Carriers of a bearer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Bearer {
    /// Carriers of LTE and NR.
    #[default]
    Split,
    /// Carriers of NR, the secondary cell group.
    Scg,
    /// Carriers of LTE, the master cell group.
    Mcg,
}

/// Rule by which a split bearer chooses LTE or NR for a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SplitBy {
    /// The one that is expected to deliver the packet earlier, from its queue and its recent capacity.
    #[default]
    Delay,
    /// NR, while its queue is below `threshold_kb`; then as `delay`.
    NrFirst,
    /// Each gets a fixed share of the bytes. The packets wait for the slower one.
    Share,
}

/// Carriers of the uplink.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UplinkPath {
    /// Carriers of NR.
    #[default]
    Nr,
    /// Carriers of LTE.
    Lte,
}

impl DualConnectivityConfig {
    /// Rejects an invalid configuration; the error names key and remedy.
    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        not_negative("threshold_kb", self.threshold_kb)?;
        probability("nr_share", self.nr_share)?;
        not_negative("x2_delay_ms", self.x2_delay_ms)?;
        positive("reordering_ms", self.reordering_ms)?;
        for (key, value) in [("x2_delay_ms", self.x2_delay_ms), ("reordering_ms", self.reordering_ms)] {
            if value > 3_000.0 {
                return Err(ConfigError::new(key, format!("is {value}; give at most 3000 ms")));
            }
        }
        Ok(())
    }
}
