//! Radio samples from live radios, through SoapySDR, in the same kinds of pieces as those of a recording.
//!
//! SoapySDR is a C++ library that must be installed. Only builds with the feature `sdr` use it. Other builds can still
//! parse settings, and [`open`] returns an error that names the missing feature.

#[cfg(any(feature = "sdr", test))]
mod clock;
#[cfg(feature = "sdr")]
mod soapy;

use std::fmt;

use airpace_core::Refused;
#[cfg(not(feature = "sdr"))]
use airpace_core::Remedy;

use crate::iq::{Error, MAX_ANTENNAS, Source};

/// Whether this build supports radios.
pub const IS_BUILT: bool = cfg!(feature = "sdr");

/// Instruction for a build with the feature.
pub const REMEDY: &str =
    "install libsoapysdr-dev and build with `--features sdr`, or start AIRPACE_FEATURES=sdr ./airpace";

/// Selection and configuration of a radio.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    /// SoapySDR's arguments for the device (`driver`, `serial`, …); empty for the first radio.
    pub device: Vec<(String, String)>,
    /// Indices of the radio's receivers, from 0. Several receivers are used as the antennas of one receiver. An empty
    /// list means the first receiver alone.
    pub channels: Vec<usize>,
    /// Antenna port of the receiver; `None` is the driver's default.
    pub antenna: Option<String>,
    /// Centre frequency, in Hz.
    pub frequency_hz: Option<f64>,
    /// Samples per second; `None` selects the first of [`RATES_HZ`] that the radio supports.
    pub rate_hz: Option<f64>,
    /// Bandwidth of the filter in Hz; `None` is the driver's choice for the rate.
    pub bandwidth_hz: Option<f64>,
    /// Gain setting.
    pub gain: Gain,
    /// Relative frequency error of the oscillator, in parts per million; positive if it is fast.
    pub ppm: f64,
}

/// Gain setting of a radio.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Gain {
    /// Automatic gain if possible, otherwise the middle of the gain range.
    #[default]
    Unset,
    /// Automatic gain; an error if the radio does not support it.
    Automatic,
    /// Total gain of all stages, in dB.
    Db(f64),
}

/// Sample rates at which cells are decoded without resampling. The maximum is sufficient for any cell.
///
/// Chosen: rates of FFTs of 128 to 1536 points that radios usually support.
pub const RATES_HZ: [f64; 7] = [23.04e6, 19.2e6, 15.36e6, 11.52e6, 7.68e6, 3.84e6, 1.92e6];

impl Settings {
    /// Keys of the settings that are not passed to SoapySDR.
    pub const KEYS: [&str; 7] = ["freq", "rate", "gain", "antenna", "channel", "bandwidth", "ppm"];

    /// Parses `driver=rtlsdr,serial=1,freq=806M,gain=40`. Entries with one of the [`KEYS`](Settings::KEYS) configure
    /// the reception and override `self`. The other entries are passed to SoapySDR.
    ///
    /// # Errors
    /// A word is not `KEY=VALUE`, or a value is invalid.
    pub fn with(&self, text: &str) -> Result<Settings, Refused> {
        let mut settings = self.clone();
        settings.device.clear();
        for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            let (key, value) = match word.split_once('=') {
                Some((key, value)) if !key.trim().is_empty() => (key.trim(), value.trim()),
                _ => {
                    return Err(format!(
                        "`{word}` is no KEY=VALUE; a radio is named like driver=rtlsdr,serial=1"
                    )
                    .into());
                }
            };
            let refused = |what: Refused| what.at(format_args!("{key}={value}"));
            match key {
                "freq" => settings.frequency_hz = Some(hertz(value).map_err(refused)?),
                "rate" => settings.rate_hz = Some(hertz(value).map_err(refused)?),
                "bandwidth" => settings.bandwidth_hz = Some(hertz(value).map_err(refused)?),
                "gain" => settings.gain = value.parse().map_err(refused)?,
                "antenna" => settings.antenna = Some(value.to_owned()),
                "channel" => settings.channels = channels(value).map_err(refused)?,
                "ppm" => settings.ppm = ppm(value).map_err(refused)?,
                _ if word.contains('\0') => return Err(format!("{key}: a value holds no zero byte").into()),
                _ => settings.device.push((key.to_owned(), value.to_owned())),
            }
        }
        Ok(settings)
    }

    /// Returns the radio's name for messages.
    pub fn name(&self) -> String {
        let words = self.device.iter().map(|(key, value)| format!("{key}={value}"));
        let numbers: Vec<String> = self.channels.iter().map(usize::to_string).collect();
        let is_first = matches!(self.channels[..], [] | [0]);
        let channel = (!is_first).then(|| format!("channel={}", numbers.join("+")));
        match words.chain(channel).collect::<Vec<_>>() {
            words if words.is_empty() => "the first radio".to_owned(),
            words => words.join(","),
        }
    }
}

/// Parses a frequency or rate in Hz: `1815.2e6`, `1815.2M`, `1920k`.
///
/// # Errors
/// The text is not a frequency.
pub fn hertz(text: &str) -> Result<f64, Refused> {
    let units = [("k", 1e3), ("M", 1e6), ("G", 1e9), ("", 1.0)];
    let read = |(unit, hz): (&str, f64)| Some(text.strip_suffix(unit)?.parse::<f64>().ok()? * hz);
    let found = units.into_iter().find_map(read).filter(|hz| *hz > 0.0 && hz.is_finite());
    found.ok_or_else(|| "give hertz above 0, such as 1815.2e6 or 1815.2M".to_owned()).map_err(Refused::from)
}

/// Parses the receivers of a radio: one receiver (`1`), or several receivers that are used in parallel (`0+1`).
///
/// # Errors
/// The text is not a list of different numbers.
pub fn channels(text: &str) -> Result<Vec<usize>, Refused> {
    let numbers: Result<Vec<usize>, _> = text.split('+').map(str::parse).collect();
    let are_different = |all: &Vec<usize>| {
        all.len() <= MAX_ANTENNAS && all.iter().enumerate().all(|(at, number)| !all[..at].contains(number))
    };
    let numbers = numbers.ok().filter(are_different);
    numbers
        .ok_or_else(|| "give a number, from 0, or several antennas such as 0+1".to_owned())
        .map_err(Refused::from)
}

/// Parses the frequency error of an oscillator, in parts per million.
///
/// # Errors
/// The text is not a number, or exceeds the error of any oscillator.
pub fn ppm(text: &str) -> Result<f64, Refused> {
    let read = text.parse().ok().filter(|ppm: &f64| ppm.abs() <= 1000.0);
    read.ok_or_else(|| "give millionths from -1000 to 1000".to_owned()).map_err(Refused::from)
}

impl std::str::FromStr for Gain {
    type Err = Refused;

    /// Parses `auto`, or a gain in dB.
    fn from_str(text: &str) -> Result<Gain, Refused> {
        match text.parse::<f64>() {
            Ok(db) if db.is_finite() => Ok(Gain::Db(db)),
            _ if text == "auto" => Ok(Gain::Automatic),
            _ => Err("give auto, or dB such as 40".into()),
        }
    }
}

/// Configuration of the reception, as reported by the radio.
#[derive(Clone, Debug, PartialEq)]
pub struct Tuned {
    /// Centre frequency, in Hz.
    pub frequency_hz: f64,
    /// Samples per second.
    pub rate_hz: f64,
    /// Gain in dB; `None` if the radio sets it automatically.
    pub gain_db: Option<f64>,
    /// Antenna port.
    pub antenna: String,
}

impl fmt::Display for Tuned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.4} MHz at {} Msps, ", self.frequency_hz / 1e6, self.rate_hz / 1e6)?;
        match self.gain_db {
            Some(db) => write!(f, "gain {db:.1} dB")?,
            None => write!(f, "gain by itself")?,
        }
        if self.antenna.is_empty() { Ok(()) } else { write!(f, ", antenna {}", self.antenna) }
    }
}

/// Opens a radio and tunes it. The radio starts to receive at the first read.
///
/// # Errors
/// There is no such radio, the radio cannot be configured like this, or this build does not support radios. The error
/// contains a remedy.
pub fn open(settings: &Settings) -> Result<(Box<dyn Source>, Tuned), Error> {
    #[cfg(feature = "sdr")]
    {
        let (radio, tuned) = soapy::Radio::open(settings)?;
        Ok((Box::new(radio), tuned))
    }
    #[cfg(not(feature = "sdr"))]
    Err(not_built(settings.name()))
}

/// Returns the available radios, each as the text that opens it.
///
/// # Errors
/// This build does not support radios, or SoapySDR fails.
pub fn devices() -> Result<Vec<String>, Error> {
    #[cfg(feature = "sdr")]
    {
        soapy::devices()
    }
    #[cfg(not(feature = "sdr"))]
    Err(not_built("live radio".to_owned()))
}

#[cfg(not(feature = "sdr"))]
fn not_built(device: String) -> Error {
    Error::Radio {
        device,
        what: "this airpace was built without SoapySDR".to_owned(),
        remedy: Some(Remedy::new(REMEDY)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_radio_is_named_and_set_in_one_line() {
        let all = Settings { gain: Gain::Db(30.0), ppm: 1.5, ..Settings::default() };
        let words = "driver=rtlsdr, serial=00=1, freq=806M,rate=1.92e6,gain=auto,antenna=RX,channel=1,bandwidth=1500k";
        let settings = all.with(words).unwrap();
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        let expected = Settings {
            device: vec![pair("driver", "rtlsdr"), pair("serial", "00=1")],
            channels: vec![1],
            antenna: Some("RX".to_owned()),
            frequency_hz: Some(806e6),
            rate_hz: Some(1.92e6),
            bandwidth_hz: Some(1.5e6),
            gain: Gain::Automatic,
            ppm: 1.5,
        };
        assert_eq!(settings, expected, "what the line says wins, the rest stays");
        assert_eq!(settings.name(), "driver=rtlsdr,serial=00=1,channel=1");
        assert_eq!(all.with("").unwrap(), all);
        assert_eq!(all.name(), "the first radio");
        assert_eq!(all.with("channel=0").unwrap().name(), "the first radio");
        assert_eq!(all.with("channel=0+1").unwrap().name(), "channel=0+1");
    }

    #[test]
    fn what_cannot_be_is_refused_with_what_can() {
        let refused = |text: &str| Settings::default().with(text).unwrap_err();
        assert!(refused("rtlsdr").to_string().contains("driver=rtlsdr"));
        assert!(refused("driver=a,freq=-3").to_string().contains("freq=-3: give hertz above 0"));
        assert!(refused("freq=nan").to_string().contains("1815.2M"));
        assert!(refused("rate=1e999").to_string().contains("hertz"));
        assert!(refused("gain=loud").to_string().contains("auto"));
        assert!(refused("channel=-1").to_string().contains("from 0"));
        assert!(refused("channel=0+0").to_string().contains("0+1"));
        assert!(refused("ppm=2000").to_string().contains("1000"));
    }

    #[test]
    fn how_it_listens_is_a_line() {
        let tuned =
            Tuned { frequency_hz: 1815.2e6, rate_hz: 11.52e6, gain_db: Some(40.0), antenna: "RX2".into() };
        assert_eq!(tuned.to_string(), "1815.2000 MHz at 11.52 Msps, gain 40.0 dB, antenna RX2");
    }

    #[cfg(not(feature = "sdr"))]
    #[test]
    fn a_build_without_it_says_how_to_get_it() {
        let error = open(&Settings::default().with("driver=rtlsdr").unwrap()).err().unwrap().to_string();
        assert!(error.starts_with("driver=rtlsdr: this airpace was built without SoapySDR"), "{error}");
        assert!(error.contains("libsoapysdr-dev") && error.contains("--features sdr"), "{error}");
    }
}
