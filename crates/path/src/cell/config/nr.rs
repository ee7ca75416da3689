//! The `[cell.nr]` table: what all carriers of NR have in common.

use airpace_core::tables::nr::McsTable;
use airpace_radio::Numerology;
use serde::{Deserialize, Serialize};

use crate::config_error::ConfigError;

/// Settings of all carriers of NR of a cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NrConfig {
    /// MCS table of the downlink: 1 (up to 64QAM), 2 (up to 256QAM) or 3 (up to 64QAM, low code rates). The CQI table is
    /// the corresponding one.
    ///
    /// Source: TS 38.214 §5.1.3.1 Tables 5.1.3.1-1 to 5.1.3.1-3, §5.2.2.1 Tables 5.2.2.1-2 to 5.2.2.1-4
    pub mcs_table: u8,
    /// MCS table of the uplink, as for the downlink.
    ///
    /// Source: TS 38.214 §6.1.4.1. Chosen: 1, because the power of most handsets does not suffice for 256QAM.
    pub uplink_mcs_table: u8,
    /// OFDM symbols of the control region, 1…3.
    ///
    /// Source: TS 38.211 §7.3.2.2. Chosen: 1.
    pub coreset_symbols: u8,
    /// Number of DMRS symbols of a slot, 1…4. Each takes all 12 resource elements of a PRB.
    ///
    /// Source: TS 38.211 §7.4.1.1.2. Chosen: 1.
    pub dmrs_positions: u8,
    /// Resource elements of a PRB that carry other signals than data and DMRS (xOverhead): 0, 6, 12 or 18.
    ///
    /// Source: TS 38.214 §5.1.3.2
    pub xoverhead: u8,
    /// Number of HARQ processes of the downlink: 2, 4, 6, 8, 10, 12, 16 or 32.
    ///
    /// Source: TS 38.331 §6.3.2 (nrofHARQ-ProcessesForPDSCH). Chosen: 16, the maximum before Release 17.
    pub harq_processes: u8,
    /// Maximum number of groups of code blocks per downlink block: 2, 4, 6 or 8. Each group is acknowledged and sent again
    /// separately, and a device can receive new data in the slot of a retransmission. 0: blocks are acknowledged as a whole.
    ///
    /// Source: TS 38.331 §6.3.2 (maxCodeBlockGroupsPerTransportBlock), §6.3.3 (pdsch-ProcessingType1-DifferentTB-PerSlot: a
    /// capability of the device), TS 38.214 §5.1.7
    pub code_block_groups: u8,
    /// Uplink PRBs that each device may use without a request; absent: none.
    pub configured_grant: Option<ConfiguredGrantConfig>,
    /// Minimum number of slots from data to its acknowledgement (K1). If absent: 2 with 15 and 30 kHz, 3 above.
    ///
    /// Source: TS 38.214 §5.3 Table 5.3-1 (8, 10, 17 and 20 symbols are the minimum of a device). Chosen: the next slot
    /// with a margin.
    pub k1_min_slots: Option<u8>,
    /// Minimum number of slots from an uplink grant to its data (K2). If absent: 2 with 15 and 30 kHz, 3 above.
    ///
    /// Source: TS 38.214 §6.4 Table 6.4-1 (10, 12, 23 and 36 symbols are the minimum of a device). Chosen: the next slot
    /// with a margin, but at least 2, as networks configure it.
    pub k2_min_slots: Option<u8>,
    /// Number of slots from the end of a received slot to the first slot in which the base station can react to it. If
    /// absent: 1, 2, 2 and 4 with 15, 30, 60 and 120 kHz.
    ///
    /// Chosen: 0.5 ms to 1 ms.
    pub gnb_processing_slots: Option<u8>,
    /// Period of SIB1 in ms; 0: no SIB1, as on carriers that are only used for dual connectivity.
    ///
    /// Source: TS 38.331 §5.2.1 (the transmissions of SIB1 repeat within 160 ms; 20 ms is usual)
    pub sib1_period_ms: u32,
    /// SS blocks.
    pub ssb: SsbConfig,
}

impl Default for NrConfig {
    fn default() -> NrConfig {
        NrConfig {
            mcs_table: 2,
            uplink_mcs_table: 1,
            coreset_symbols: 1,
            dmrs_positions: 1,
            xoverhead: 0,
            harq_processes: 16,
            code_block_groups: 0,
            configured_grant: None,
            k1_min_slots: None,
            k2_min_slots: None,
            gnb_processing_slots: None,
            sib1_period_ms: 20,
            ssb: SsbConfig::default(),
        }
    }
}

/// Uplink PRBs that each device on NR may use without a request. A device without data sends nothing.
///
/// Source: TS 38.321 §5.8.2, TS 38.214 §6.1.2.3. Chosen: the MCS follows the link adaptation of the uplink, as if the base
/// station activated the grant again (type 2) with each change. Retransmissions are granted as those of other blocks.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ConfiguredGrantConfig {
    /// Period in ms: 1, 2, 4, 5, 8, 10, 16, 20, 32, 40, 64, 80, 128, 160, 320 or 640. A device uses the first uplink slot of
    /// each period; device N's periods start N ms later than those of device 0.
    ///
    /// Source: TS 38.331 §6.3.2 (periodicity of ConfiguredGrantConfig, with 15 kHz)
    pub period_ms: u32,
    /// Adjacent PRBs of each grant.
    pub prbs: u16,
}

impl Default for ConfiguredGrantConfig {
    fn default() -> ConfiguredGrantConfig {
        ConfiguredGrantConfig { period_ms: 10, prbs: 10 }
    }
}

impl ConfiguredGrantConfig {
    fn validate(&self) -> Result<(), ConfigError> {
        const PERIODS_MS: [u32; 16] = [1, 2, 4, 5, 8, 10, 16, 20, 32, 40, 64, 80, 128, 160, 320, 640];
        if !PERIODS_MS.contains(&self.period_ms) {
            let periods = PERIODS_MS.map(|period| period.to_string()).join(", ");
            return Err(ConfigError::new(
                "period_ms",
                format!("is {}; give one of {periods}", self.period_ms),
            ));
        }
        if self.prbs == 0 {
            return Err(ConfigError::new("prbs", "is 0; give at least 1".to_owned()));
        }
        Ok(())
    }
}

/// SS blocks of a carrier of NR: synchronisation signals and the broadcast channel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SsbConfig {
    /// Number of beams, each with its own SS block; at most 4 below 3 GHz, 8 in FR1 and 64 in FR2. If absent: 1 in FR1
    /// and 16 in FR2.
    ///
    /// Source: TS 38.213 §4.1
    pub beams: Option<u8>,
    /// Period of SS blocks in ms: 5, 10, 20, 40, 80 or 160.
    ///
    /// Source: TS 38.213 §4.1 (20 ms is assumed for a first search)
    pub period_ms: u32,
}

impl Default for SsbConfig {
    fn default() -> SsbConfig {
        SsbConfig { beams: None, period_ms: 20 }
    }
}

impl NrConfig {
    /// The MCS table of the downlink.
    pub fn table(&self) -> McsTable {
        table_of(self.mcs_table)
    }

    /// The MCS table of the uplink.
    pub fn uplink_table(&self) -> McsTable {
        table_of(self.uplink_mcs_table)
    }

    /// Minimum number of slots from data to its acknowledgement (K1).
    pub fn k1_min(&self, numerology: Numerology) -> u64 {
        self.k1_min_slots.unwrap_or(by_numerology([2, 2, 3, 3], numerology)).into()
    }

    /// Minimum number of slots from an uplink grant to its data (K2).
    pub fn k2_min(&self, numerology: Numerology) -> u64 {
        self.k2_min_slots.unwrap_or(by_numerology([2, 2, 3, 3], numerology)).into()
    }

    /// Number of slots from the end of a received slot to the first slot in which the base station can react to it.
    pub fn gnb_processing(&self, numerology: Numerology) -> u64 {
        self.gnb_processing_slots.unwrap_or(by_numerology([1, 2, 2, 4], numerology)).into()
    }

    /// Resource elements of a PRB for DMRS.
    pub fn dmrs_res_per_prb(&self) -> u16 {
        12 * u16::from(self.dmrs_positions)
    }

    /// Rejects an invalid configuration; the error names key and remedy.
    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        let refuse = |key: &str, reason: String| Err(ConfigError::new(key, reason));
        for (key, table) in [("mcs_table", self.mcs_table), ("uplink_mcs_table", self.uplink_mcs_table)] {
            if !(1..=3).contains(&table) {
                return refuse(key, format!("is {table}; give 1, 2 (256QAM) or 3"));
            }
        }
        if !(1..=3).contains(&self.coreset_symbols) {
            return refuse("coreset_symbols", format!("is {}; give 1 to 3", self.coreset_symbols));
        }
        if !(1..=4).contains(&self.dmrs_positions) {
            return refuse("dmrs_positions", format!("is {}; give 1 to 4", self.dmrs_positions));
        }
        if ![0, 6, 12, 18].contains(&self.xoverhead) {
            return refuse("xoverhead", format!("is {}; give 0, 6, 12 or 18", self.xoverhead));
        }
        if ![2, 4, 6, 8, 10, 12, 16, 32].contains(&self.harq_processes) {
            let reason = format!("is {}; give 2, 4, 6, 8, 10, 12, 16 or 32", self.harq_processes);
            return refuse("harq_processes", reason);
        }
        if ![0, 2, 4, 6, 8].contains(&self.code_block_groups) {
            let reason = format!("is {}; give 2, 4, 6 or 8, or 0 for none", self.code_block_groups);
            return refuse("code_block_groups", reason);
        }
        if let Some(grant) = &self.configured_grant {
            grant.validate().map_err(|error| error.within("configured_grant"))?;
        }
        for (key, value, least) in [
            ("k1_min_slots", self.k1_min_slots, 1),
            ("k2_min_slots", self.k2_min_slots, 1),
            ("gnb_processing_slots", self.gnb_processing_slots, 0),
        ] {
            if let Some(slots) = value.filter(|slots| !(least..=15).contains(slots)) {
                return refuse(key, format!("is {slots}; give {least} to 15, or leave it out"));
            }
        }
        if ![0, 20, 40, 80, 160].contains(&self.sib1_period_ms) {
            let reason = format!("is {}; give 20, 40, 80 or 160, or 0 for none", self.sib1_period_ms);
            return refuse("sib1_period_ms", reason);
        }
        if ![5, 10, 20, 40, 80, 160].contains(&self.ssb.period_ms) {
            let reason = format!("is {}; give 5, 10, 20, 40, 80 or 160", self.ssb.period_ms);
            return refuse("ssb.period_ms", reason);
        }
        if self.ssb.beams == Some(0) {
            return refuse("ssb.beams", "is 0; give at least 1".into());
        }
        Ok(())
    }
}

/// The value for a numerology, from those for 15, 30, 60 and 120 kHz.
fn by_numerology(values: [u8; 4], numerology: Numerology) -> u8 {
    values[usize::from(numerology.mu()).min(3)]
}

fn table_of(number: u8) -> McsTable {
    match number {
        1 => McsTable::Qam64,
        3 => McsTable::LowEfficiency,
        _ => McsTable::Qam256,
    }
}
