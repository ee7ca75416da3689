//! Synthetic recordings: the grants of a cell as radio samples, with all parameters that a decoder has to detect.

use airpace_core::Streams;
use airpace_phy::found::Found;
use airpace_phy::impair::{Conditions, DelayProfile, noise_power};
use airpace_phy::numerology::SUBCARRIER_HZ;
use airpace_phy::station::Station;
use airpace_phy::truth::{NeverGranted, Truth};
use airpace_phy::{Cell, Complex32, CyclicPrefix, PhichDuration};
use airpace_radio::RadioReport;
use serde_json::{Value, json};

use crate::iq::{self, Format, Meta, Writer};

/// Minimum and maximum size of the Fourier transform; sizes are multiples of the minimum.
const FFT_SIZES: [f64; 2] = [128.0, 4096.0];

/// Parameters of a synthetic recording.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The cell.
    pub cell: Cell,
    /// Size of the Fourier transform, which determines the sample rate: see [`fft_size`].
    pub fft_size: usize,
    /// System frame number of the first subframe.
    pub first_sfn: u16,
    /// Number of the receiver's antennas.
    pub antennas: usize,
    /// Signal-to-noise ratio per resource element in dB: one value for all antennas, one value per antenna, or none
    /// without noise.
    pub snr_db: Vec<f64>,
    /// Delay profile of the channel.
    pub profile: DelayProfile,
    /// Maximum Doppler shift (Hz).
    pub doppler_hz: f64,
    /// Carrier frequency offset (Hz).
    pub cfo_hz: f64,
    /// Drift of the receiver's clock (ppm).
    pub drift_ppm: f64,
    /// Sample format.
    pub format: Format,
    /// Seed of the channel.
    pub seed: u64,
}

/// Size of the Fourier transform at this sample rate; `None` if symbols would start between samples, or if the rate is
/// too low or too high: it has to be a multiple of 1.92 million samples per second, at most 61.44 million.
pub fn fft_size(sample_rate_hz: f64) -> Option<usize> {
    let size = sample_rate_hz / f64::from(SUBCARRIER_HZ);
    let [least, most] = FFT_SIZES;
    let is_fine = size.fract() == 0.0 && (least..=most).contains(&size);
    (is_fine && (size as usize).is_multiple_of(least as usize)).then_some(size as usize)
}

impl Plan {
    /// Samples per second of each antenna.
    pub fn sample_rate_hz(&self) -> f64 {
        self.fft_size as f64 * f64::from(SUBCARRIER_HZ)
    }

    /// Amplitude of a resource element. The RMS of a fully loaded carrier is a fifth of full scale, which leaves headroom
    /// for its peaks.
    fn amplitude(&self) -> f32 {
        (0.2 / (self.cell.bandwidth.subcarriers() as f64).sqrt()) as f32
    }

    /// Signal-to-noise ratio after combining all antennas, in dB; NaN without noise.
    pub fn combined_snr_db(&self) -> f32 {
        if let ([snr_db], 1) = (&self.snr_db[..], self.antennas) {
            return *snr_db as f32;
        }
        let each = if self.snr_db.len() == 1 { self.antennas as f64 } else { 1.0 };
        let ratio: f64 = self.snr_db.iter().map(|snr_db| each * f64::powf(10.0, snr_db / 10.0)).sum();
        if self.snr_db.is_empty() { f32::NAN } else { (10.0 * ratio.log10()) as f32 }
    }

    /// The transmitter; `None` if the sample rate is too low for the bandwidth.
    pub fn station(&self) -> Option<Station> {
        let (fft_size, amplitude) = (self.fft_size, self.amplitude());
        let antenna = |at: usize| {
            let snr_db = if self.snr_db.len() == 1 { self.snr_db.first() } else { self.snr_db.get(at) };
            Conditions {
                profile: self.profile,
                doppler_hz: self.doppler_hz,
                noise_power: snr_db.map_or(0.0, |&snr_db| noise_power(snr_db, fft_size, amplitude)),
                cfo_hz: self.cfo_hz,
                drift_ppm: self.drift_ppm,
                ..Conditions::perfect(self.sample_rate_hz())
            }
        };
        let conditions: Vec<Conditions> = (0..self.antennas).map(antenna).collect();
        let streams = Streams::new(self.seed);
        Station::with_antennas(self.cell, fft_size, amplitude, &conditions, self.first_sfn, &streams)
    }

    /// Description of the recording, with the parameters that a decoder has to detect. `description` and `generator` are
    /// SigMF's fields of these names.
    pub fn meta(&self, description: &str, generator: &str) -> Meta {
        let mut meta = Meta::raw(self.format, self.sample_rate_hz());
        meta.antennas = self.antennas;
        let length = |is_normal: bool| json!(if is_normal { "normal" } else { "extended" });
        let snr_db = match self.snr_db[..] {
            [] => json!("clean"),
            [snr_db] => json!(snr_db),
            ref snr_db => json!(snr_db),
        };
        let facts: [(&str, Value); 18] = [
            ("core:description", json!(description)),
            ("core:generator", json!(generator)),
            ("lte:n_prb", json!(self.cell.bandwidth.prbs())),
            ("lte:tx_ports", json!(self.cell.ports.count())),
            ("lte:pci", json!(self.cell.pci)),
            ("lte:cp", length(self.cell.cp == CyclicPrefix::Normal)),
            ("lte:duplex", json!("FDD")),
            ("lte:phich_duration", length(self.cell.phich_duration == PhichDuration::Normal)),
            ("lte:phich_ng", json!(self.cell.phich_resource.name())),
            ("lte:fft_size", json!(self.fft_size)),
            ("lte:channel", json!(self.profile.name())),
            ("lte:doppler_hz", json!(self.doppler_hz)),
            ("lte:snr_db_per_re", snr_db),
            ("lte:cfo_hz", json!(self.cfo_hz)),
            ("lte:drift_ppm", json!(self.drift_ppm)),
            ("lte:sf0_offset_samples", json!(0)),
            ("lte:sf0_sfn", json!(self.first_sfn)),
            ("lte:sf0_subframe", json!(0)),
        ];
        meta.extra.extend(facts.map(|(name, value)| (name.to_owned(), value)));
        meta.extra.insert("lte:unit_re_amplitude".to_owned(), json!(self.amplitude()));
        meta
    }
}

/// Reason why a subframe cannot be transmitted.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// The samples cannot be written.
    #[error(transparent)]
    Samples(#[from] iq::Error),
    /// A message does not follow from a grant.
    #[error(transparent)]
    NeverGranted(#[from] NeverGranted),
}

/// Counts of transmitted subframes and messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Number of subframes.
    pub subframes: u64,
    /// Number of messages.
    pub messages: u64,
    /// Number of grants without free CCEs in the search space of their user.
    pub blocked: u64,
    /// Number of grants that no message can express.
    pub unsayable: u64,
    /// The first of these grants, with the reason.
    pub first_unsayable: Option<String>,
}

/// Encodes the subframes of one carrier and writes their samples.
pub struct Transmitter {
    station: Station,
    writer: Writer,
    truth: Option<Truth>,
    samples: Vec<Complex32>,
    sent: Sent,
}

impl Transmitter {
    /// Transmits from `station` into a recording. With `truth`, [`Transmitter::send`] returns the messages.
    pub fn new(station: Station, writer: Writer, truth: Option<Truth>) -> Transmitter {
        Transmitter { station, writer, truth, samples: vec![], sent: Sent::default() }
    }

    /// Transmits the grants of a subframe. Returns its messages as a perfect decoder would report them, if they are wanted.
    ///
    /// # Errors
    /// The samples cannot be written, or a wanted message does not follow from a grant.
    pub fn send(&mut self, report: &RadioReport) -> Result<Vec<Found>, SendError> {
        self.samples.clear();
        let announcement = self.station.send(report, &mut self.samples);
        self.sent.subframes = report.slot.index + 1;
        self.sent.messages += announcement.messages.len() as u64;
        self.sent.blocked += announcement.blocked.len() as u64;
        self.sent.unsayable += announcement.unencodable.len() as u64;
        if let (None, Some((index, why))) = (&self.sent.first_unsayable, announcement.unencodable.first()) {
            let rnti = report.dcis[*index].rnti.0;
            self.sent.first_unsayable = Some(format!("subframe {}, RNTI {rnti}: {why}", report.slot.index));
        }
        let messages = self.truth.map_or(Ok(vec![]), |truth| truth.messages(report, &announcement))?;
        self.writer.write(&self.samples)?;
        Ok(messages)
    }

    /// Completes the recording. Returns the path of its description, the number of samples that exceeded full scale and
    /// were clipped, and the transmitted grants.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn finish(self) -> Result<(std::path::PathBuf, u64, Sent), iq::Error> {
        let (description, cut) = self.writer.finish()?;
        Ok((description, cut, self.sent))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_begin_on_a_sample() {
        assert_eq!([1.92e6, 30.72e6, 61.44e6].map(fft_size), [Some(128), Some(2048), Some(4096)]);
        assert_eq!([0.96e6, 2e6, 2.4e6, 122.88e6].map(fft_size), [None; 4]);
    }
}
