//! The carriers of a cell: radio access technology, band, bandwidth, and TDD pattern.

use airpace_core::tables::nr::{Band, Duplex, FrequencyRange, SsBlockCase, SubcarrierSpacing};
use airpace_radio::Numerology;
use serde::{Deserialize, Serialize};

use super::super::adaptation::AdaptationConfig;
use super::super::bler::BlerConfig;
use super::super::pattern::Pattern;
use super::{Bearer, CellConfig, DualConnectivityConfig, NrConfig, RlcConfig, UplinkPath};
use crate::config_error::ConfigError;

/// Radio access technology of a carrier.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rat {
    /// LTE FDD.
    #[default]
    Lte,
    /// NR (5G), FDD or TDD.
    Nr,
}

/// Settings of one component carrier. If a value is absent, the value of the cell is used.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CarrierConfig {
    /// Radio access technology.
    pub rat: Option<Rat>,
    /// PRB pairs of a carrier of LTE: 6, 15, 25, 50, 75 or 100.
    pub prbs: Option<u16>,
    /// Carrier frequency in GHz.
    pub frequency_ghz: Option<f64>,
    /// Band of a carrier of NR, such as n78.
    pub band: Option<String>,
    /// Subcarrier spacing of a carrier of NR in kHz.
    pub scs_khz: Option<u16>,
    /// Channel bandwidth of a carrier of NR in MHz.
    pub bandwidth_mhz: Option<u16>,
    /// TDD pattern of a carrier of NR, such as DDDSU.
    pub tdd: Option<String>,
    /// Downlink, guard and uplink symbols of a special slot of NR; 14 in total.
    pub special_symbols: Option<[u8; 3]>,
}

/// A carrier of NR whose configuration is valid.
#[derive(Clone, Debug)]
pub struct NrCarrier {
    /// The band, which determines the duplex mode.
    pub band: &'static Band,
    /// Numerology, which determines the duration of a slot.
    pub numerology: Numerology,
    /// Number of PRBs.
    pub prbs: u16,
    /// Directions of the slots.
    pub pattern: Pattern,
    /// Carrier frequency in GHz.
    pub frequency_ghz: f64,
}

impl NrCarrier {
    /// The pattern of SS blocks: of the band's patterns, the one with the carrier's subcarrier spacing, or else the first.
    pub fn ss_block_case(&self) -> SsBlockCase {
        let cases = self.band.ss_blocks;
        let is_own = |case: &&SsBlockCase| case.spacing().mu() == self.numerology.mu();
        *cases.iter().find(is_own).unwrap_or(&cases[0])
    }

    /// First symbols of the SS blocks, one per possible beam.
    pub fn ss_block_symbols(&self) -> &'static [u16] {
        let carrier_khz = (self.frequency_ghz * 1e6) as u32;
        self.ss_block_case().first_symbols(carrier_khz, self.band.duplex).unwrap_or(&[])
    }
}

/// Default pattern of TDD bands, and the default symbols of its special slots.
///
/// Chosen: the pattern of most networks in the bands n41 and n78.
const TDD: &str = "DDDSU";
const SPECIAL_SYMBOLS: [u8; 3] = [10, 2, 2];

/// A key of a carrier: its value and its full name.
struct Key<T> {
    value: Option<T>,
    name: String,
    /// Whether the value belongs to the carrier itself, not to the cell.
    is_own: bool,
}

impl CellConfig {
    /// Radio access technology of a carrier.
    pub fn carrier_rat(&self, carrier: usize) -> Rat {
        self.carrier.get(carrier).and_then(|own| own.rat).unwrap_or(self.rat)
    }

    /// PRBs of a carrier; 0 if the configuration of a carrier of NR is invalid.
    pub fn carrier_prbs(&self, carrier: usize) -> u16 {
        match self.carrier_rat(carrier) {
            Rat::Lte => self.key(carrier, "prbs", |own| own.prbs, self.prbs).value.unwrap_or(LTE_PRBS),
            Rat::Nr => self.nr_carrier(carrier).map_or(0, |nr| nr.prbs),
        }
    }

    /// Frequency of a carrier in GHz.
    pub fn carrier_frequency_ghz(&self, carrier: usize) -> f64 {
        match self.carrier_rat(carrier) {
            Rat::Lte => self.frequency_key(carrier).value.unwrap_or(LTE_FREQUENCY_GHZ),
            Rat::Nr => self.nr_carrier(carrier).map_or(LTE_FREQUENCY_GHZ, |nr| nr.frequency_ghz),
        }
    }

    /// Whether blockage and beam changes lower the level on a carrier: in cells with carriers of FR2, they do so on those
    /// carriers only, and otherwise on all carriers.
    ///
    /// Chosen: obstacles attenuate lower frequencies less.
    pub(in super::super) fn is_blocked(&self, carrier: usize) -> bool {
        self.is_fr2(carrier) || !(0..self.carriers.into()).any(|other| self.is_fr2(other))
    }

    /// Source: TS 38.101-2 §5.1 (FR2 starts at 24.25 GHz)
    fn is_fr2(&self, carrier: usize) -> bool {
        self.carrier_rat(carrier) == Rat::Nr && self.carrier_frequency_ghz(carrier) >= 24.25
    }

    /// Number of carriers of NR.
    pub fn nr_carriers(&self) -> usize {
        (0..self.carriers.into()).filter(|&carrier| self.carrier_rat(carrier) == Rat::Nr).count()
    }

    /// Properties of a carrier of NR.
    /// # Errors
    /// The band does not have this carrier, or the pattern is invalid; the error names key and remedy.
    pub fn nr_carrier(&self, carrier: usize) -> Result<NrCarrier, ConfigError> {
        let band_key = self.key(carrier, "band", |own| own.band.clone(), self.band.clone());
        let refuse = |key: &str, reason: String| Err(ConfigError::new(key, reason));
        let Some(name) = &band_key.value else {
            let reason = "is missing; a carrier of NR needs a band, such as \"n78\"";
            return refuse(&band_key.name, reason.into());
        };
        let Some(band) = Band::named(name) else {
            return refuse(&band_key.name, format!("is \"{name}\"; use one of {}", Band::names().join(", ")));
        };
        let spacing = self.spacing(carrier, band)?;
        let bandwidth_mhz = self.bandwidth_mhz(carrier, band, spacing)?;
        let Some(prbs) = band.max_prbs(spacing, bandwidth_mhz) else {
            unreachable!("permitted bandwidths have a number of PRBs")
        };
        let Some(numerology) = Numerology::new(spacing.mu()) else {
            unreachable!("subcarrier spacings of the tables have a numerology")
        };
        let pattern = self.pattern(carrier, band, numerology, band_key.is_own)?;
        let frequency_ghz = self.nr_frequency_ghz(carrier, band)?;
        Ok(NrCarrier { band, numerology, prbs, pattern, frequency_ghz })
    }

    /// Properties of a carrier of NR; `None` for a carrier of LTE, and if the configuration is invalid.
    pub(in super::super) fn nr_carrier_of(&self, carrier: usize) -> Option<NrCarrier> {
        match self.carrier_rat(carrier) {
            Rat::Lte => None,
            Rat::Nr => self.nr_carrier(carrier).ok(),
        }
    }

    fn spacing(&self, carrier: usize, band: &Band) -> Result<SubcarrierSpacing, ConfigError> {
        let key = self.key(carrier, "scs_khz", |own| own.scs_khz, self.scs_khz);
        let usual = match (band.range, band.duplex) {
            (FrequencyRange::Fr2, _) => SubcarrierSpacing::Khz120,
            (FrequencyRange::Fr1, Duplex::Tdd) => SubcarrierSpacing::Khz30,
            (FrequencyRange::Fr1, Duplex::Fdd) => SubcarrierSpacing::Khz15,
        };
        let Some(khz) = key.value else { return Ok(usual) };
        let spacing = SubcarrierSpacing::from_khz(khz);
        spacing.filter(|&spacing| !band.bandwidths_mhz(spacing).is_empty()).ok_or_else(|| {
            let permitted = list(band.channels.iter().map(|(spacing, _)| spacing.khz()));
            ConfigError::new(key.name, format!("is {khz}; the band {} has {permitted} kHz", band.name))
        })
    }

    fn bandwidth_mhz(
        &self,
        carrier: usize,
        band: &Band,
        spacing: SubcarrierSpacing,
    ) -> Result<u16, ConfigError> {
        let key = self.key(carrier, "bandwidth_mhz", |own| own.bandwidth_mhz, self.bandwidth_mhz);
        let permitted = band.bandwidths_mhz(spacing);
        let usual = match band.duplex {
            Duplex::Fdd => 20,
            Duplex::Tdd => 100,
        };
        let wanted = key.value.unwrap_or_else(|| {
            permitted.iter().copied().filter(|&mhz| mhz <= usual).max().unwrap_or(permitted[0])
        });
        if permitted.contains(&wanted) {
            return Ok(wanted);
        }
        let reason = format!(
            "is {wanted}; the band {} with {} kHz has {} MHz",
            band.name,
            spacing.khz(),
            list(permitted.iter().copied())
        );
        Err(ConfigError::new(key.name, reason))
    }

    fn pattern(
        &self,
        carrier: usize,
        band: &Band,
        numerology: Numerology,
        has_own_band: bool,
    ) -> Result<Pattern, ConfigError> {
        let tdd = self.key(carrier, "tdd", |own| own.tdd.clone(), self.tdd.clone());
        let special = self.key(carrier, "special_symbols", |own| own.special_symbols, self.special_symbols);
        if band.duplex == Duplex::Fdd {
            let contradicts = |is_given: bool, is_own: bool| is_given && (is_own || !has_own_band);
            for (is_given, is_own, name) in [
                (tdd.value.is_some(), tdd.is_own, &tdd.name),
                (special.value.is_some(), special.is_own, &special.name),
            ] {
                if contradicts(is_given, is_own) {
                    let reason = format!("belongs to TDD bands, and {} is an FDD band; remove it", band.name);
                    return Err(ConfigError::new(name, reason));
                }
            }
            return Ok(Pattern::fdd());
        }
        let symbols = special.value.unwrap_or(SPECIAL_SYMBOLS);
        let slot_us = numerology.slot_duration().as_micros() as u32;
        let parsed = Pattern::parse(tdd.value.as_deref().unwrap_or(TDD), symbols, slot_us);
        let pattern = parsed.map_err(|error| {
            let name = if error.is_about_symbols() { special.name } else { tdd.name.clone() };
            ConfigError::new(name, error.to_string())
        })?;
        match self.latest_acknowledgement(&pattern, numerology) {
            Some((slot, k1)) if k1 > MAX_K1 => {
                let reason = format!(
                    "acknowledges data of slot {slot} only {k1} slots later, and at most {MAX_K1} are possible; give a pattern \
                     with more uplink slots, or a smaller `nr.k1_min_slots`"
                );
                Err(ConfigError::new(tdd.name, reason))
            }
            _ => Ok(pattern),
        }
    }

    /// The slot of a pattern whose data is acknowledged latest, and the number of slots until then.
    fn latest_acknowledgement(&self, pattern: &Pattern, numerology: Numerology) -> Option<(u64, u64)> {
        let has_data = |slot: &u64| pattern.slot(*slot).downlink > self.nr.coreset_symbols;
        let k1 = |slot: u64| pattern.uplink_from(slot + self.nr.k1_min(numerology)) - slot;
        (0..pattern.period()).filter(has_data).map(|slot| (slot, k1(slot))).max_by_key(|(_, k1)| *k1)
    }

    fn nr_frequency_ghz(&self, carrier: usize, band: &Band) -> Result<f64, ConfigError> {
        let (low, high) =
            (f64::from(*band.downlink_mhz.start()) / 1e3, f64::from(*band.downlink_mhz.end()) / 1e3);
        let key = self.frequency_key(carrier);
        let ghz = key.value.unwrap_or((low + high) / 2.0);
        if (low..=high).contains(&ghz) {
            return Ok(ghz);
        }
        Err(ConfigError::new(
            key.name,
            format!("is {ghz}; the band {} has {low} to {high} GHz in the downlink", band.name),
        ))
    }

    fn frequency_key(&self, carrier: usize) -> Key<f64> {
        self.key(carrier, "frequency_ghz", |own| own.frequency_ghz, self.frequency_ghz)
    }

    /// The value of a key for a carrier: that of the carrier, or else that of the cell.
    fn key<T>(
        &self,
        carrier: usize,
        name: &str,
        of: impl Fn(&CarrierConfig) -> Option<T>,
        of_cell: Option<T>,
    ) -> Key<T> {
        match self.carrier.get(carrier).and_then(of) {
            Some(value) => {
                Key { value: Some(value), name: format!("carrier.{carrier}.{name}"), is_own: true }
            }
            None => Key { value: of_cell, name: name.to_owned(), is_own: false },
        }
    }

    /// Settings of dual connectivity.
    pub(in super::super) fn dual_connectivity(&self) -> DualConnectivityConfig {
        self.dual_connectivity.clone().unwrap_or_default()
    }

    /// The carriers that carry a device's downlink data, leg by leg: of one technology, or those of LTE and those of NR with
    /// a split bearer, or if the device `leaves_nr` at times. `usable` are the carriers that the device can use in the order
    /// of activation; empty: all.
    pub(in super::super) fn carriers_by_leg(&self, usable: &[u8], leaves_nr: bool) -> Vec<Vec<u8>> {
        let all: Vec<u8> = (0..self.carriers).collect();
        let usable = if usable.is_empty() { &all } else { usable };
        let of = |rat: Rat| -> Vec<u8> {
            let carriers = usable.iter().copied();
            carriers.filter(|&carrier| self.carrier_rat(carrier.into()) == rat).collect()
        };
        let legs = match (of(Rat::Lte), of(Rat::Nr), self.dual_connectivity().bearer) {
            (lte, nr, Bearer::Mcg) if !lte.is_empty() && !nr.is_empty() => vec![lte],
            (lte, nr, Bearer::Scg) if !lte.is_empty() && !nr.is_empty() && !leaves_nr => vec![nr],
            (lte, nr, _) => vec![lte, nr],
        };
        legs.into_iter().filter(|carriers| !carriers.is_empty()).collect()
    }

    /// The carriers that carry the uplink data of a device with these downlink carriers, leg by leg, the preferred leg
    /// first. A device has a second leg only if it `leaves_nr` at times.
    pub(in super::super) fn uplink_legs(&self, downlink: &[u8], leaves_nr: bool) -> Vec<Vec<u8>> {
        let order = match self.dual_connectivity().uplink {
            UplinkPath::Nr => [Rat::Nr, Rat::Lte],
            UplinkPath::Lte => [Rat::Lte, Rat::Nr],
        };
        let of = |rat| -> Vec<u8> {
            let carriers = downlink.iter().copied();
            carriers.filter(|&carrier| self.carrier_rat(carrier.into()) == rat).collect()
        };
        let legs = order.map(of).into_iter().filter(|carriers| !carriers.is_empty());
        legs.take(if leaves_nr { 2 } else { 1 }).collect()
    }

    /// Rejects keys of one technology on carriers of the other.
    pub(super) fn check_technologies(&self) -> Result<(), ConfigError> {
        let refuse = |key: String, reason: &str| Err(ConfigError::new(key, reason));
        const LTE_ONLY: &str = "belongs to carriers of LTE; remove it, or remove rat = \"nr\"";
        const NR_ONLY: &str = "belongs to carriers of NR; add rat = \"nr\", or remove the key";
        let nr_keys = |own: &CarrierConfig| {
            [
                ("band", own.band.is_some()),
                ("scs_khz", own.scs_khz.is_some()),
                ("bandwidth_mhz", own.bandwidth_mhz.is_some()),
                ("tdd", own.tdd.is_some()),
                ("special_symbols", own.special_symbols.is_some()),
            ]
        };
        for (index, own) in self.carrier.iter().enumerate() {
            let name = |key: &str| format!("carrier.{index}.{key}");
            match self.carrier_rat(index) {
                Rat::Nr if own.prbs.is_some() => {
                    return refuse(name("prbs"), PRBS_OF_NR);
                }
                Rat::Nr => {}
                Rat::Lte => {
                    if let Some((key, _)) = nr_keys(own).into_iter().find(|(_, is_given)| *is_given) {
                        return refuse(name(key), NR_ONLY);
                    }
                }
            }
        }
        let of_cell = CarrierConfig {
            band: self.band.clone(),
            scs_khz: self.scs_khz,
            bandwidth_mhz: self.bandwidth_mhz,
            tdd: self.tdd.clone(),
            special_symbols: self.special_symbols,
            ..CarrierConfig::default()
        };
        let nr = self.nr_carriers();
        if nr == 0
            && let Some((key, _)) = nr_keys(&of_cell).into_iter().find(|(_, is_given)| *is_given)
        {
            return refuse(key.into(), NR_ONLY);
        }
        if nr == 0 && self.nr != NrConfig::default() {
            return refuse("nr".into(), NR_ONLY);
        }
        let is_mixed = nr > 0 && nr < usize::from(self.carriers);
        let dual = self.dual_connectivity();
        if is_mixed
            && self.nr.configured_grant.is_some()
            && (dual.uplink == UplinkPath::Lte || dual.bearer == Bearer::Mcg)
        {
            let reason =
                "belongs to uplinks over NR; remove it, or let devices send over NR by dual_connectivity";
            return refuse("nr.configured_grant".into(), reason);
        }
        match &self.dual_connectivity {
            Some(_) if !is_mixed => {
                let reason = "belongs to cells with carriers of LTE and of NR; add a carrier of the other kind, or remove \
                              the table";
                return refuse("dual_connectivity".into(), reason);
            }
            Some(config) => config.validate().map_err(|error| error.within("dual_connectivity"))?,
            None => {}
        }
        if nr == usize::from(self.carriers) {
            if self.prbs.is_some() {
                return refuse("prbs".into(), PRBS_OF_NR);
            }
            let rlc = RlcConfig::default();
            for (key, is_given) in [
                ("cfi", self.cfi.is_some()),
                ("crs_ports", self.crs_ports.is_some()),
                ("uplink.prbs", self.uplink.prbs.is_some()),
                ("adaptation.qam256", self.adaptation.qam256),
                (
                    "adaptation.antenna_ports",
                    self.adaptation.antenna_ports != AdaptationConfig::default().antenna_ports,
                ),
                ("bler.by_code_block", self.bler.by_code_block != BlerConfig::default().by_code_block),
                ("rlc.status_alone", self.rlc.status_alone != rlc.status_alone),
                ("rlc.pdcp_header_bytes", self.rlc.pdcp_header_bytes != rlc.pdcp_header_bytes),
                ("rlc.rlc_header_bytes", self.rlc.rlc_header_bytes != rlc.rlc_header_bytes),
                ("rlc.mac_header_bytes", self.rlc.mac_header_bytes != rlc.mac_header_bytes),
            ] {
                if is_given {
                    return refuse(key.into(), LTE_ONLY);
                }
            }
        }
        for (key, is_given) in
            [("lena_compat", self.lena_compat), ("adaptation.lena_compat", self.adaptation.lena_compat)]
        {
            if nr > 0 && is_given {
                return refuse(key.into(), "emulates a simulator of LTE; remove it, or use carriers of LTE");
            }
        }
        Ok(())
    }
}

/// Maximum number of slots from data to its acknowledgement (K1).
///
/// Source: TS 38.331 §6.3.2 (`dl-DataToUL-ACK`)
const MAX_K1: u64 = 15;

/// Reason for the refusal of `prbs` on a carrier of NR.
const PRBS_OF_NR: &str =
    "belongs to carriers of LTE; give `bandwidth_mhz`, from which the number of PRBs of NR follows";

/// Default number of PRB pairs of a carrier of LTE.
const LTE_PRBS: u16 = 100;

/// Default frequency of a carrier of LTE in GHz.
const LTE_FREQUENCY_GHZ: f64 = 1.94;

fn list(numbers: impl Iterator<Item = u16>) -> String {
    numbers.map(|number| number.to_string()).collect::<Vec<_>>().join(", ")
}
