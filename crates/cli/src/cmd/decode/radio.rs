//! Selection and settings of live radios.

use std::path::PathBuf;

use airpace_sdr::radio::{Gain, Settings, channels, hertz, ppm};
use anyhow::anyhow;

/// Receive channels of a radio.
#[derive(Clone, Debug, Default)]
pub struct Channels(Vec<usize>);

fn one_or_more(text: &str) -> Result<Channels, String> {
    channels(text).map(Channels)
}

/// Radios beside recordings, or instead of them.
#[derive(clap::Args)]
#[command(next_help_heading = "Live radio")]
pub struct RadioArgs {
    /// A radio, by SoapySDR's arguments, such as driver=rtlsdr,serial=1; may be given several times. The options below
    /// hold for all of them; the keys freq, rate, gain, antenna, channel, bandwidth and ppm, for the one that they are
    /// given with, as in driver=uhd,freq=806M.
    #[arg(long, value_name = "KEY=VALUE,…")]
    device: Vec<String>,
    /// The middle of the downlink carrier, such as 806e6 or 806M.
    #[arg(long, value_name = "HZ", value_parser = hertz, requires = "device")]
    freq: Option<f64>,
    /// How much to amplify. [default: auto where the radio can, else the middle of its range]
    #[arg(long, value_name = "auto|DB", requires = "device")]
    gain: Option<Gain>,
    /// Which antenna. [default: the driver's choice]
    #[arg(long, requires = "device")]
    antenna: Option<String>,
    /// Which of the radio's receivers, from 0; several, such as 0+1, are antennas of one receiver and are combined.
    #[arg(long, value_name = "N[+N…]", requires = "device", value_parser = one_or_more)]
    channel: Option<Channels>,
    /// Width of the radio's filter. [default: the driver's choice]
    #[arg(long, value_name = "HZ", value_parser = hertz, requires = "device")]
    bandwidth: Option<f64>,
    /// By how many millionths the radio's oscillator is fast.
    #[arg(long, value_parser = ppm, allow_negative_numbers = true, requires = "device")]
    ppm: Option<f64>,
    /// Keeps what radios receive: OUT.sigmf-data and OUT.sigmf-meta; of several, OUT-0, OUT-1 … by carrier.
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
