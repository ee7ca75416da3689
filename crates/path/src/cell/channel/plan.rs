//! Plan of a channel: a validated configuration.

use super::blockage::{BeamConfig, BlockageConfig, LossPlan};
use super::fading::FadingProfile;
use super::path_loss::{PathLossModel, power_per_subcarrier_dbm};
use super::trajectory::Trajectory;
use super::{ChannelConfig, DEFAULT_SINR_DB, Grid, Level};
use crate::config_error::{ConfigError, not_negative, positive};

/// A channel that can be instantiated on any carrier, any number of times.
#[derive(Clone, Debug)]
pub struct ChannelPlan {
    pub(super) config: ChannelConfig,
    source: LevelSource,
    pub(super) losses: Option<LossPlan>,
}

/// The source of the mean level.
#[derive(Clone, Debug)]
enum LevelSource {
    Static { sinr_db: f64 },
    Distance { distance_m: f64 },
    Points(Level),
}

impl ChannelPlan {
    /// The plan of a channel with the same SINR at all times and frequencies.
    pub(in super::super) fn at_sinr(sinr_db: f64, layers: u8) -> ChannelPlan {
        let config = ChannelConfig { sinr_db: Some(sinr_db), layers, ..ChannelConfig::default() };
        ChannelPlan { config, source: LevelSource::Static { sinr_db }, losses: None }
    }

    /// The plan of the same channel with at most this number of layers.
    pub(in super::super) fn with_at_most(&self, layers: u8) -> ChannelPlan {
        ChannelPlan {
            config: ChannelConfig { layers: self.config.layers.min(layers), ..self.config.clone() },
            source: self.source.clone(),
            losses: self.losses.clone(),
        }
    }

    /// The plan of the same channel with blockage and beam changes. All channels of a device that have the same number and
    /// the same seed have the same events.
    pub(in super::super) fn with_losses(
        self,
        device: usize,
        blockage: Option<BlockageConfig>,
        beam: Option<BeamConfig>,
    ) -> ChannelPlan {
        ChannelPlan { losses: Some(LossPlan { device, blockage, beam }), ..self }
    }

    /// The plan of the same channel, without blockage and beam changes unless it `is_blocked`.
    pub(in super::super) fn losses_if(&self, is_blocked: bool) -> ChannelPlan {
        ChannelPlan { losses: self.losses.clone().filter(|_| is_blocked), ..self.clone() }
    }

    /// The level on a carrier with this grid and centre frequency.
    pub(super) fn level(&self, grid: Grid, frequency_mhz: f64) -> Level {
        match &self.source {
            LevelSource::Static { sinr_db } => Level::Sinr(*sinr_db),
            LevelSource::Distance { distance_m } => {
                let sent_dbm = power_per_subcarrier_dbm(self.config.enb_power_dbm, grid.prbs)
                    + self.config.antenna_gain_dbi;
                Level::Rsrp(sent_dbm - self.config.path_loss.loss_db(*distance_m, frequency_mhz))
            }
            LevelSource::Points(level) => level.clone(),
        }
    }
}

impl ChannelConfig {
    /// The plan of this channel.
    ///
    /// # Errors
    /// The configuration is invalid; the error names the key and the remedy.
    pub fn plan(&self) -> Result<ChannelPlan, ConfigError> {
        self.check()?;
        Ok(ChannelPlan { config: self.clone(), source: self.source()?, losses: None })
    }

    fn source(&self) -> Result<LevelSource, ConfigError> {
        let trajectory = |key, points: &[(f64, f64)]| {
            Trajectory::new(points).map_err(|reason| ConfigError::new(key, reason.to_string()))
        };
        let rsrp_points = match self.rssi_points_dbm.is_empty() {
            true => None,
            false => Some(trajectory("rssi_points_dbm", &self.rssi_points_dbm)?),
        };
        if !self.sinr_points_db.is_empty() {
            let sinr_db = trajectory("sinr_points_db", &self.sinr_points_db)?;
            return Ok(LevelSource::Points(Level::SinrPoints { sinr_db, rsrp_dbm: rsrp_points }));
        }
        if let Some(points) = rsrp_points {
            return Ok(LevelSource::Points(Level::RsrpPoints(points)));
        }
        Ok(match self.distance_m {
            Some(distance_m) => LevelSource::Distance { distance_m },
            None => LevelSource::Static { sinr_db: self.sinr_db.unwrap_or(DEFAULT_SINR_DB) },
        })
    }

    fn check(&self) -> Result<(), ConfigError> {
        let points = !self.sinr_points_db.is_empty() || !self.rssi_points_dbm.is_empty();
        if [self.sinr_db.is_some(), self.distance_m.is_some(), points].iter().filter(|&&given| given).count()
            > 1
        {
            let others = "distance_m, sinr_points_db and rssi_points_dbm";
            return Err(ConfigError::new(
                "sinr_db",
                format!("excludes {others}; give one source of the level"),
            ));
        }
        for (key, value) in [
            ("sinr_db", self.sinr_db.unwrap_or(0.0)),
            ("enb_power_dbm", self.enb_power_dbm),
            ("antenna_gain_dbi", self.antenna_gain_dbi),
            ("sinr_cap_db", self.sinr_cap_db),
        ] {
            if !value.is_finite() {
                return Err(ConfigError::new(key, format!("is {value}; give a finite number")));
            }
        }
        not_negative("distance_m", self.distance_m.unwrap_or(0.0))?;
        self.check_path_loss()?;
        not_negative("noise_figure_db", self.noise_figure_db)?;
        not_negative("interference_margin_db", self.interference_margin_db)?;
        not_negative("shadowing_sigma_db", self.shadowing_sigma_db)?;
        positive("shadowing_decorrelation_m", self.shadowing_decorrelation_m)?;
        not_negative("speed_kmh", self.speed_kmh)?;
        not_negative("doppler_hz", self.doppler_hz.unwrap_or(0.0))?;
        not_negative("layer_penalty_db", self.layer_penalty_db)?;
        self.check_delay_spread()?;
        self.check_sinusoids()?;
        if !(4..=256).contains(&self.sinusoids_per_tap) {
            let reason = format!("is {}; give 4 to 256 (16 to 32 are usual)", self.sinusoids_per_tap);
            return Err(ConfigError::new("sinusoids_per_tap", reason));
        }
        if !(1..=4).contains(&self.layers) {
            return Err(ConfigError::new(
                "layers",
                format!("is {}; give 1 to 4 with NR, and 1 or 2 with LTE", self.layers),
            ));
        }
        Ok(())
    }

    fn check_path_loss(&self) -> Result<(), ConfigError> {
        let refuse = |reason: String| Err(ConfigError::new("path_loss", reason));
        match (self.distance_m, self.path_loss.max_distance_m()) {
            (None, _) if self.path_loss != PathLossModel::default() => {
                refuse("has no effect without a distance; give `distance_m`, or remove `path_loss`".into())
            }
            (Some(distance_m), Some(max_m)) if distance_m > max_m => refuse(format!(
                "holds up to {max_m} m, and `distance_m` is {distance_m}; give a shorter distance, or \"macro_2ghz\""
            )),
            _ => Ok(()),
        }
    }

    fn check_delay_spread(&self) -> Result<(), ConfigError> {
        let refuse = |reason: String| Err(ConfigError::new("delay_spread_ns", reason));
        match self.delay_spread_ns {
            None => Ok(()),
            Some(_) if !self.fading.is_tdl() => refuse(
                "has no effect with this profile; give `fading` \"tdl_a\" to \"tdl_e\", or remove `delay_spread_ns`".into(),
            ),
            Some(spread_ns) if !(0.1..=MAX_DELAY_SPREAD_NS).contains(&spread_ns) => refuse(format!(
                "is {spread_ns}; give 0.1 to {MAX_DELAY_SPREAD_NS} ns (10 is very short, 100 nominal, 1000 very long)"
            )),
            Some(_) => Ok(()),
        }
    }

    fn check_sinusoids(&self) -> Result<(), ConfigError> {
        let refuse = |reason: String| Err(ConfigError::new("sinusoids", reason));
        if self.sinusoids.is_empty() {
            return Ok(());
        }
        if self.fading != FadingProfile::Flat {
            return refuse("stand beside `fading`, which draws others; remove either".into());
        }
        if self.sinusoids.len() > MAX_SINUSOIDS {
            return refuse(format!("are {}; the most are {MAX_SINUSOIDS}", self.sinusoids.len()));
        }
        for (index, &(delay_ns, doppler_hz, phase_rad, amplitude)) in self.sinusoids.iter().enumerate() {
            let is_wave = (0.0..=1e6).contains(&delay_ns)
                && (-1e4..=1e4).contains(&doppler_hz)
                && (-1e4..=1e4).contains(&phase_rad)
                && (0.0..=1e3).contains(&amplitude);
            if !is_wave {
                return refuse(format!(
                    "has [{delay_ns}, {doppler_hz}, {phase_rad}, {amplitude}] at place {index}; give a delay of 0 to 1e6 \
                     ns, a Doppler shift and a phase within 1e4 Hz and rad, and an amplitude of 0 to 1000"
                ));
            }
        }
        Ok(())
    }
}

/// Maximum delay spread in nanoseconds.
///
/// Chosen: ten times the longest of TR 38.901 Table 7.7.3-1.
const MAX_DELAY_SPREAD_NS: f64 = 10_000.0;

/// Maximum number of given sinusoids.
///
/// Chosen: 64 sinusoids for each of 64 taps, which is more than any profile has.
const MAX_SINUSOIDS: usize = 4_096;
