//! The `[cell.uplink]` table.

use airpace_core::count::count;
use serde::{Deserialize, Serialize};

use super::BackgroundConfig;
use crate::config_error::{ConfigError, not_negative, positive, probability};

/// Uplink configuration: one LTE FDD uplink for each downlink carrier. Scheduling policy, outer loop, block errors, RLC
/// and handover come from the cell's own keys.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct UplinkConfig {
    /// PRB pairs of each uplink carrier: 6, 15, 25, 50, 75 or 100. If absent, the number is the same as on the downlink
    /// carrier.
    pub prbs: Option<u16>,
    /// Maximum number of uplink carriers of a device, 1…5, in the order of its downlink carriers. Carriers after the
    /// first carrier are activated according to the device's uplink load, as configured by the cell's `aggregation`
    /// keys.
    pub carriers: u8,
    /// PRB pairs at *each* edge of a carrier that carry control information (PUCCH) and no data.
    ///
    /// Source: TS 36.211 §5.4.3 (the edges). Chosen, where absent: one for every 50 PRB pairs begun.
    pub pucch_prbs: Option<u16>,
    /// Size of a device's uplink buffer in bytes; packets that do not fit are dropped.
    ///
    /// Chosen: 3 MB, the size of a handset's modem and network interface queues together; at cell-edge rates, such a
    /// buffer holds seconds of data.
    pub queue_bytes: u64,
    /// Subframes between a device's opportunities for a scheduling request: 1, 2, 5, 10, 20, 40 or 80. The offset of a
    /// device's opportunities in the period is drawn from the stream `cell.device.N.uplink.sr`.
    ///
    /// Source: TS 36.213 §10.1.5 Table 10.1.5-1. Chosen: 10 ms.
    pub sr_period_ms: u32,
    /// Bytes of data in the grant that answers a scheduling request, without headers and buffer status report.
    ///
    /// Chosen: 100, enough for a packet that is only an acknowledgement.
    pub sr_grant_bytes: u32,
    /// Time from a buffer status report until the next one may be put on a block in place of data (periodicBSR-Timer);
    /// 0: never.
    ///
    /// Source: TS 36.321 §5.4.5, TS 36.331 §6.3.2. Chosen: 5 ms, the minimum, so that a report about new data
    /// reaches the base station before all old data has been granted.
    pub periodic_bsr_ms: u32,
    /// Time without a grant after which a device with data requests a grant again (retxBSR-Timer).
    ///
    /// Source: TS 36.321 §5.4.5, TS 36.331 §6.3.2. Chosen: 320 ms, the minimum.
    pub retx_bsr_ms: u32,
    /// Number of bytes that the base station assumes for a buffer status level, which represents a range of bytes.
    pub bsr_reading: BsrReading,
    /// Uplink SINR minus downlink SINR on the same carrier, in dB. Both directions have the same shadowing; each has
    /// its own fading.
    ///
    /// Chosen: -3 dB. A handset has 23 dB less transmit power than a macro cell. Power control and the base station's
    /// better receiver compensate for this difference in most of the cell, but not everywhere.
    pub sinr_offset_db: f64,
    /// Maximum number of PRB pairs for which a device's power is sufficient for the SINR of `sinr_offset_db`. Over more
    /// PRB pairs, the SINR falls by 10 log10(PRB pairs / this value) dB. If absent, the power is sufficient for any
    /// number of PRB pairs.
    ///
    /// Source: TS 36.213 §5.1.1.1 (P_CMAX bounds the sum over the PRB pairs)
    pub power_prbs: Option<u16>,
    /// Whether devices may send 64QAM; otherwise MCS 20 is the highest.
    pub qam64: bool,
    /// Subframes between a device's sounding signals, from which the base station measures the device's SINR.
    ///
    /// Source: TS 36.213 §8.2 Table 8.2-1. Chosen: 10 ms.
    pub srs_period_ms: u32,
    /// Subframes from a sounding signal to the first grant that can use its measurement.
    ///
    /// Chosen: 4, the processing time of the base station for all received signals.
    pub srs_delay_ms: u32,
    /// Standard deviation of the measured SINR's error in dB.
    pub measurement_sigma_db: f64,
    /// Maximum number of HARQ retransmissions of a transport block, each 8 ms after the previous transmission.
    ///
    /// Source: TS 36.331 §6.3.2 (maxHARQ-Tx counts the first as well). Chosen: 3, as on the downlink.
    pub max_retransmissions: u8,
    /// Uplink data of background users. By default there is none, even if the downlink has background users.
    ///
    /// Chosen: no background data, because the papers measured only the background of the downlink, and its numbers may
    /// not be valid for the uplink.
    pub background: UplinkBackgroundConfig,
}

impl Default for UplinkConfig {
    fn default() -> UplinkConfig {
        UplinkConfig {
            prbs: None,
            carriers: 1,
            pucch_prbs: None,
            queue_bytes: 3_000_000,
            sr_period_ms: 10,
            sr_grant_bytes: 100,
            periodic_bsr_ms: 5,
            retx_bsr_ms: 320,
            bsr_reading: BsrReading::Upper,
            sinr_offset_db: -3.0,
            power_prbs: None,
            qam64: true,
            srs_period_ms: 10,
            srs_delay_ms: 4,
            measurement_sigma_db: 0.0,
            max_retransmissions: 3,
            background: UplinkBackgroundConfig::default(),
        }
    }
}

/// Number of bytes that the base station assumes for a buffer status level, which represents a range of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BsrReading {
    /// The maximum of the range: the last grant has padding, and no data remains.
    #[default]
    Upper,
    /// The middle of the range.
    Middle,
    /// The minimum of the range: no grant is larger than needed, but the remaining data needs another grant.
    Lower,
}

/// Uplink users that are not devices of the scenario. The base station knows the exact size of their queues.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct UplinkBackgroundConfig {
    /// Demand of the uplink background users as a share of a carrier's PRBs, 0…1.
    pub load: f64,
    /// Mean amount of data of one uplink background user, in kB (exponentially distributed).
    pub mean_kilobytes: f64,
    /// Rate at which the data of one uplink background user arrives, in Mbit/s; 0: all data arrives immediately.
    pub rate_mbps: f64,
    /// Mean SINR of uplink background users in dB.
    pub sinr_mean_db: f64,
    /// Standard deviation of the SINR of uplink background users in dB.
    pub sinr_deviation_db: f64,
    /// Number of users with an infinite queue on each carrier.
    pub full_buffer: u16,
}

impl Default for UplinkBackgroundConfig {
    /// By default, there are no background users.
    ///
    /// Chosen: uploads have a fifth of the size of the downlink's background downloads, and a quarter of their rate.
    fn default() -> UplinkBackgroundConfig {
        UplinkBackgroundConfig {
            load: 0.0,
            mean_kilobytes: 100.0,
            rate_mbps: 5.0,
            sinr_mean_db: 10.0,
            sinr_deviation_db: 6.0,
            full_buffer: 0,
        }
    }
}

impl UplinkBackgroundConfig {
    /// Converts the settings to those of a downlink background, because the uplink uses the same arrival process.
    pub(in super::super) fn as_background(&self) -> BackgroundConfig {
        BackgroundConfig {
            load: Some(self.load),
            mean_kilobytes: self.mean_kilobytes,
            rate_mbps: self.rate_mbps,
            sinr_mean_db: self.sinr_mean_db,
            sinr_deviation_db: self.sinr_deviation_db,
            layers: 1,
            full_buffer: self.full_buffer,
            ..BackgroundConfig::default()
        }
    }

    fn validate(&self) -> Result<(), ConfigError> {
        probability("load", self.load)?;
        positive("mean_kilobytes", self.mean_kilobytes)?;
        not_negative("rate_mbps", self.rate_mbps)?;
        not_negative("sinr_deviation_db", self.sinr_deviation_db)?;
        if !self.sinr_mean_db.is_finite() {
            return Err(ConfigError::new("sinr_mean_db", "is not a number; give dB"));
        }
        if self.full_buffer > 1000 {
            return Err(ConfigError::new("full_buffer", "is above 1000 users"));
        }
        Ok(())
    }
}

impl UplinkConfig {
    /// Number of PRB pairs at each edge without data, on a carrier of `prbs`.
    pub fn pucch_prbs_of(&self, prbs: u16) -> u16 {
        self.pucch_prbs.unwrap_or(prbs.div_ceil(50))
    }

    /// Rejects a configuration that is invalid with downlink carriers of these PRB pairs; the error names key and
    /// remedy. The value of `prbs` is checked elsewhere, by the validation of the cell.
    pub(super) fn validate(&self, carriers_prbs: &[u16]) -> Result<(), ConfigError> {
        let refuse = |key: &str, reason: String| Err(ConfigError::new(key, reason));
        if !(1..=5).contains(&self.carriers) {
            return refuse("carriers", format!("is {}; a device has 1 to 5 of them", self.carriers));
        }
        if usize::from(self.carriers) > carriers_prbs.len() {
            let reason = format!(
                "is {}, but the cell has {}; give cell.carriers more",
                self.carriers,
                count(carriers_prbs.len() as u64, "carrier")
            );
            return refuse("carriers", reason);
        }
        for prbs in carriers_prbs.iter().map(|&prbs| self.prbs.unwrap_or(prbs)) {
            let edge = self.pucch_prbs_of(prbs);
            if 2 * u32::from(edge) >= u32::from(prbs) {
                let most = (prbs - 1) / 2;
                return refuse(
                    "pucch_prbs",
                    format!("is {edge} at each edge of {prbs}; give at most {most}"),
                );
            }
        }
        if self.queue_bytes < 1500 {
            let reason = "not even one packet fits; give 1500 or more";
            return refuse("queue_bytes", format!("is {}: {reason}", self.queue_bytes));
        }
        if ![1, 2, 5, 10, 20, 40, 80].contains(&self.sr_period_ms) {
            let reason = "must be one of 1, 2, 5, 10, 20, 40, 80";
            return refuse("sr_period_ms", format!("is {}; {reason}", self.sr_period_ms));
        }
        if !(1..=1500).contains(&self.sr_grant_bytes) {
            let reason = "give 1 to 1500 (100 is usual)";
            return refuse("sr_grant_bytes", format!("is {}; {reason}", self.sr_grant_bytes));
        }
        if self.retx_bsr_ms == 0 {
            return refuse("retx_bsr_ms", "is 0: devices would ask for ever; give 320 or more".into());
        }
        if !(-60.0..=60.0).contains(&self.sinr_offset_db) {
            let reason = "give -60 to 60 dB over the downlink";
            return refuse("sinr_offset_db", format!("is {}; {reason}", self.sinr_offset_db));
        }
        if self.power_prbs == Some(0) {
            return refuse("power_prbs", "is 0: no power at all; give 1 or more, or leave it out".into());
        }
        if self.srs_period_ms == 0 {
            return refuse("srs_period_ms", "is 0; give at least 1 (10 is usual)".into());
        }
        not_negative("measurement_sigma_db", self.measurement_sigma_db)?;
        if self.max_retransmissions > 27 {
            let reason = "must be 0 to 27 (3 is usual)";
            return refuse("max_retransmissions", format!("is {}; {reason}", self.max_retransmissions));
        }
        self.background.validate().map_err(|error| error.within("background"))
    }
}
