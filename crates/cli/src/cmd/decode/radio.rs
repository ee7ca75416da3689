//! Selection and settings of live radios.

use std::path::PathBuf;

use airpace_core::Refused;
use airpace_sdr::radio::{Gain, Settings, channels, hertz, ppm};
use anyhow::anyhow;

/// Receive channels of a radio.
#[derive(Clone, Debug, Default)]
pub struct Channels(Vec<usize>);

fn one_or_more(text: &str) -> Result<Channels, Refused> {
    channels(text).map(Channels)
}

/// Options of live radios, which are decoded in addition to recordings or instead of them.
#[derive(clap::Args)]
#[command(next_help_heading = "Live radio")]
pub struct RadioArgs {
    /// A radio, by SoapySDR's arguments, such as driver=rtlsdr,serial=1; may be given several times.
    ///
    /// The options below apply to all radios. The keys freq, rate, gain, antenna, channel, bandwidth and ppm apply only to
    /// the radio with which they are given, as in driver=uhd,freq=806M.
    #[arg(long, value_name = "KEY=VALUE,…")]
    device: Vec<String>,
    /// Centre frequency of the downlink carrier, such as 806e6 or 806M.
    #[arg(long, value_name = "HZ", value_parser = hertz, requires = "device")]
    freq: Option<f64>,
    /// Gain of the radio. [default: auto if the radio supports it, else the middle of its range]
    #[arg(long, value_name = "auto|DB", requires = "device")]
    gain: Option<Gain>,
    /// Antenna port of the radio. [default: the driver's choice]
    #[arg(long, requires = "device")]
    antenna: Option<String>,
    /// Receive channel of the radio, from 0; several channels, such as 0+1, are combined as antennas.
    #[arg(long, value_name = "N[+N…]", requires = "device", value_parser = one_or_more)]
    channel: Option<Channels>,
    /// Bandwidth of the radio's filter. [default: the driver's choice]
    #[arg(long, value_name = "HZ", value_parser = hertz, requires = "device")]
    bandwidth: Option<f64>,
    /// Frequency error of the radio's oscillator in ppm; positive values: the oscillator is fast.
    #[arg(long, value_parser = ppm, allow_negative_numbers = true, requires = "device")]
    ppm: Option<f64>,
    /// Records the samples of the radio to OUT.sigmf-data and OUT.sigmf-meta.
    ///
    /// The recordings of several radios are OUT-0, OUT-1 … by carrier.
    #[arg(long, value_name = "OUT", requires = "device")]
    pub record: Option<PathBuf>,
}

impl RadioArgs {
    /// Number of radios.
    pub fn count(&self) -> usize {
        self.device.len()
    }

    /// Settings of each radio. `rate_hz` applies to all.
    ///
    /// # Errors
    /// The options of a radio are not valid.
    pub fn settings(&self, rate_hz: Option<f64>) -> anyhow::Result<Vec<Settings>> {
        let all = Settings {
            device: vec![],
            channels: self.channel.clone().unwrap_or_default().0,
            antenna: self.antenna.clone(),
            frequency_hz: self.freq,
            rate_hz,
            bandwidth_hz: self.bandwidth,
            gain: self.gain.unwrap_or_default(),
            ppm: self.ppm.unwrap_or(0.0),
        };
        self.device.iter().map(|words| all.with(words).map_err(|what| anyhow!("--device {what}"))).collect()
    }
}
