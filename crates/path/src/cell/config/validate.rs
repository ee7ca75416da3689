//! Validation of a configuration. Every error names the key and the remedy.

use airpace_core::tables::lte;

use super::{
    AggregationConfig, BackgroundConfig, CellConfig, DeviceRadioConfig, HandoverConfig, NrCarrier, Rat,
    TelemetryConfig,
};
use crate::config_error::{ConfigError, not_negative, positive, probability};

impl CellConfig {
    /// Rejects an invalid configuration; the error names key and remedy.
    pub fn validate(&self) -> Result<(), ConfigError> {
        if !(1..=5).contains(&self.carriers) {
            return Err(ConfigError::new("carriers", format!("is {}; a cell has 1 to 5", self.carriers)));
        }
        if self.carrier.len() > usize::from(self.carriers) {
            return Err(ConfigError::new(
                "carrier",
                format!(
                    "has {} entries for `carriers = {}`; raise `carriers`",
                    self.carrier.len(),
                    self.carriers
                ),
            ));
        }
        self.check_technologies()?;
        self.prbs.map_or(Ok(()), |prbs| valid_prbs("prbs", prbs))?;
        self.frequency_ghz.map_or(Ok(()), |ghz| valid_frequency("frequency_ghz", ghz))?;
        for (index, own) in self.carrier.iter().enumerate() {
            own.prbs.map_or(Ok(()), |prbs| valid_prbs(&format!("carrier.{index}.prbs"), prbs))?;
            own.frequency_ghz
                .map_or(Ok(()), |ghz| valid_frequency(&format!("carrier.{index}.frequency_ghz"), ghz))?;
        }
        for carrier in (0..self.carriers.into()).filter(|&carrier| self.carrier_rat(carrier) == Rat::Nr) {
            self.check_beams(&self.nr_carrier(carrier)?)?;
        }
        self.nr.validate().map_err(|error| error.within("nr"))?;
        self.rrc.validate(self.nr_carriers() > 0).map_err(|error| error.within("rrc"))?;
        self.drx.validate().map_err(|error| error.within("drx"))?;
        if ![1, 2, 4].contains(&self.crs_ports()) {
            return Err(ConfigError::new("crs_ports", format!("is {}; must be 1, 2 or 4", self.crs_ports())));
        }
        if self.cfi.is_some_and(|cfi| !(1..=3).contains(&cfi)) {
            return Err(ConfigError::new("cfi", "must be 1, 2 or 3; leave it out to let it follow the load"));
        }
        if !(1.0..=1e6).contains(&self.pf_time_constant_ms) {
            return Err(ConfigError::new(
                "pf_time_constant_ms",
                format!("is {}; give 1 or more (100 is usual)", self.pf_time_constant_ms),
            ));
        }
        if self.max_users_per_subframe == 0 {
            return Err(ConfigError::new("max_users_per_subframe", "is 0: no capacity; give 1 or more"));
        }
        delay("enb_processing_ms", self.enb_processing_ms)?;
        delay("ue_processing_ms", self.ue_processing_ms)?;
        if self.harq.max_retransmissions > 7 {
            return Err(ConfigError::new("harq.max_retransmissions", "must be 0 to 7 (3 is usual)"));
        }
        self.aggregation.validate().map_err(|error| error.within("aggregation"))?;
        self.validate_uplink().map_err(|error| error.within("uplink"))?;
        self.validate_configured_grant()?;
        self.background.validate().map_err(|error| error.within("background"))?;
        if self.background.layers > LTE_LAYERS && self.nr_carriers() == 0 {
            return Err(ConfigError::new("background.layers", layers_of_lte(self.background.layers)));
        }
        self.telemetry.validate(self.carriers).map_err(|error| error.within("telemetry"))?;
        let HandoverConfig { interruption_min_ms: min, interruption_max_ms: max } = self.handover;
        not_negative("handover.interruption_min_ms", min)?;
        if !max.is_finite() || max < min {
            return Err(ConfigError::new(
                "handover.interruption_max_ms",
                format!("is {max}; must be at least interruption_min_ms ({min})"),
            ));
        }
        if self.rlc.pdcp_header_bytes.max(self.rlc.rlc_header_bytes).max(self.rlc.mac_header_bytes) > 16 {
            return Err(ConfigError::new(
                "rlc",
                "has a header above 16 bytes; PDCP, RLC and MAC take 1 to 5 each",
            ));
        }
        for (key, value) in
            [("rlc.poll_pdus", u64::from(self.rlc.poll_pdus)), ("rlc.poll_bytes", self.rlc.poll_bytes)]
        {
            if value == 0 {
                return Err(ConfigError::new(key, "is 0; give 1 to ask for a STATUS with every PDU"));
            }
        }
        Ok(())
    }

    fn check_beams(&self, carrier: &NrCarrier) -> Result<(), ConfigError> {
        let most = carrier.ss_block_symbols().len();
        match self.nr.ssb.beams {
            Some(beams) if usize::from(beams) > most => Err(ConfigError::new(
                "nr.ssb.beams",
                format!("is {beams}; a carrier of {} has at most {most} SS blocks", carrier.band.name),
            )),
            _ => Ok(()),
        }
    }

    fn validate_uplink(&self) -> Result<(), ConfigError> {
        self.uplink.prbs.map_or(Ok(()), |prbs| valid_prbs("prbs", prbs))?;
        let prbs: Vec<u16> = (0..self.carriers.into()).map(|carrier| self.carrier_prbs(carrier)).collect();
        self.uplink.validate(&prbs)
    }

    /// Checks that the PRBs of a configured grant exist. The uplink must be valid.
    fn validate_configured_grant(&self) -> Result<(), ConfigError> {
        let prbs: Vec<u16> = (0..self.carriers.into()).map(|carrier| self.carrier_prbs(carrier)).collect();
        let is_nr = |carrier: &usize| self.carrier_rat(*carrier) == Rat::Nr;
        let of_data = (0..prbs.len()).filter(is_nr).map(|carrier| {
            let edge = self.uplink.pucch_prbs_of(prbs[carrier]);
            prbs[carrier] - 2 * edge
        });
        match (&self.nr.configured_grant, of_data.max()) {
            (Some(grant), Some(most)) if grant.prbs > most => Err(ConfigError::new(
                "nr.configured_grant.prbs",
                format!("is {}; the widest uplink over NR has {most} PRBs for data", grant.prbs),
            )),
            _ => Ok(()),
        }
    }
}

impl DeviceRadioConfig {
    /// Rejects a configuration that is invalid for this cell; the error names key and remedy.
    pub fn validate(&self, cell: &CellConfig) -> Result<(), ConfigError> {
        for (index, &carrier) in self.carriers.iter().enumerate() {
            if carrier >= cell.carriers {
                return Err(ConfigError::new(
                    "carriers",
                    format!("names carrier {carrier}; the cell has 0 to {}", cell.carriers - 1),
                ));
            }
            if self.carriers[..index].contains(&carrier) {
                return Err(ConfigError::new("carriers", format!("names carrier {carrier} twice")));
            }
        }
        let carriers: Vec<u8> = cell
            .carriers_by_leg(&self.carriers, !self.without_nr_s.is_empty())
            .into_iter()
            .flatten()
            .collect();
        if self.qam256 && carriers.iter().all(|&carrier| cell.carrier_rat(carrier.into()) == Rat::Nr) {
            let reason =
                "belongs to carriers of LTE; remove it, and give cell.nr.mcs_table = 2 for 256QAM on NR";
            return Err(ConfigError::new("qam256", reason));
        }
        if self.channel.layers > LTE_LAYERS && cell.nr_carriers() == 0 {
            return Err(ConfigError::new("channel.layers", layers_of_lte(self.channel.layers)));
        }
        for (key, is_given) in [("blockage", self.blockage.is_some()), ("beam", self.beam.is_some())] {
            if is_given && !carriers.iter().any(|&carrier| cell.is_blocked(carrier.into())) {
                let reason = "lowers the level of carriers of FR2, and the device has none; remove it, or let the device \
                              use such a carrier";
                return Err(ConfigError::new(key, reason));
            }
        }
        self.blockage.map_or(Ok(()), |own| own.validate()).map_err(|error| error.within("blockage"))?;
        self.beam.map_or(Ok(()), |own| own.validate()).map_err(|error| error.within("beam"))?;
        if self.queue_bytes < 1500 {
            return Err(ConfigError::new(
                "queue_bytes",
                format!("is {}: not even one packet fits; give 1500 or more", self.queue_bytes),
            ));
        }
        self.handover_s.iter().try_for_each(|&time| not_negative("handover_s", time).map(drop))?;
        self.validate_coverage(cell)
    }

    /// Checks the spans without NR.
    fn validate_coverage(&self, cell: &CellConfig) -> Result<(), ConfigError> {
        let refuse = |reason: String| Err(ConfigError::new("without_nr_s", reason));
        let mut last = 0.0;
        for &[from, until] in &self.without_nr_s {
            not_negative("without_nr_s", from)?;
            not_negative("without_nr_s", until)?;
            if from >= until || from < last {
                return refuse(format!(
                    "has the span {from} to {until}; give spans one after the other, each with a start before its end"
                ));
            }
            last = until;
        }
        if self.without_nr_s.is_empty() {
            return Ok(());
        }
        if cell.carriers_by_leg(&self.carriers, true).len() < 2 {
            return refuse(
                "needs a device that is on carriers of NR and can use carriers of LTE; add such carriers to the cell, or \
                 remove the key"
                    .to_owned(),
            );
        }
        Ok(())
    }
}

impl AggregationConfig {
    fn validate(&self) -> Result<(), ConfigError> {
        probability("on_share", self.on_share)?;
        probability("off_share", self.off_share)?;
        positive("on_ms", f64::from(self.on_ms))?;
        positive("off_ms", f64::from(self.off_ms))?;
        positive("deactivation_timer_ms", f64::from(self.deactivation_timer_ms))?;
        Ok(())
    }
}

impl BackgroundConfig {
    fn validate(&self) -> Result<(), ConfigError> {
        not_negative("control_per_second", self.control_per_second())?;
        if self.control_per_second() > 20_000.0 {
            return Err(ConfigError::new(
                "control_per_second",
                "is above 20000; a subframe has room for few",
            ));
        }
        if self.population() == 0 && self.control_per_second() > 0.0 {
            return Err(ConfigError::new(
                "population",
                "is 0; give the control users' number, or no control_per_second",
            ));
        }
        probability("load", self.load())?;
        positive("mean_kilobytes", self.mean_kilobytes)?;
        not_negative("rate_mbps", self.rate_mbps)?;
        not_negative("sinr_deviation_db", self.sinr_deviation_db)?;
        if !self.sinr_mean_db.is_finite() {
            return Err(ConfigError::new("sinr_mean_db", "is not a number; give dB"));
        }
        if self.full_buffer > 1000 {
            return Err(ConfigError::new("full_buffer", "is above 1000 users"));
        }
        if !(1..=4).contains(&self.layers) {
            return Err(ConfigError::new("layers", format!("is {}; must be 1 to 4", self.layers)));
        }
        Ok(())
    }
}

impl TelemetryConfig {
    fn validate(&self, carriers: u8) -> Result<(), ConfigError> {
        probability("missed_dci", self.missed_dci)?;
        not_negative("false_dci_per_subframe", self.false_dci_per_subframe)?;
        if self.false_dci_per_subframe > 20.0 {
            return Err(ConfigError::new(
                "false_dci_per_subframe",
                "is above 20; a control region holds fewer",
            ));
        }
        delay("latency_ms", self.latency_ms)?;
        delay("latency_jitter_ms", self.latency_jitter_ms)?;
        for lost in &self.lost_carrier {
            if lost.carrier >= carriers {
                return Err(ConfigError::new(
                    "lost_carrier",
                    format!("names carrier {}; the cell has 0 to {}", lost.carrier, carriers - 1),
                ));
            }
            not_negative("lost_carrier.from_s", lost.from_s)?;
            not_negative("lost_carrier.until_s", lost.until_s)?;
        }
        Ok(())
    }
}

/// Maximum number of layers on carriers of LTE.
///
/// Chosen: two codewords with a layer each, as in the transmission modes of the papers' phones.
const LTE_LAYERS: u8 = 2;

fn layers_of_lte(layers: u8) -> String {
    format!("is {layers}; carriers of LTE have 1 or 2 layers, and carriers of NR (rat = \"nr\") 1 to 4")
}

fn valid_prbs(key: &str, prbs: u16) -> Result<(), ConfigError> {
    if lte::BANDWIDTH_PRBS.contains(&prbs) {
        return Ok(());
    }
    Err(ConfigError::new(key, format!("is {prbs}; must be one of 6, 15, 25, 50, 75, 100")))
}

fn valid_frequency(key: &str, ghz: f64) -> Result<(), ConfigError> {
    if (0.1..=100.0).contains(&ghz) {
        return Ok(());
    }
    Err(ConfigError::new(key, format!("is {ghz}; give the carrier frequency in GHz (0.1 to 100)")))
}

/// Rejects a delay that is negative or longer than a second.
fn delay(key: &str, ms: f64) -> Result<(), ConfigError> {
    if (0.0..=1000.0).contains(&ms) {
        return Ok(());
    }
    Err(ConfigError::new(key, format!("is {ms}; give 0 to 1000 ms")))
}
