//! A radio behind SoapySDR: opened, tuned, and read by a dedicated thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use airpace_core::remedy::{Remedy, UserTask};
use airpace_phy::Complex32;
use soapysdr::Direction::Rx;
use soapysdr::{Args, Device, ErrorCode, Range, RxStream};

use super::clock::Clock;
use super::{Gain, RATES_HZ, Settings, Tuned};
use crate::iq::{Error, Piece, Source};

/// Maximum duration of samples that wait to be read, in s. Further samples are dropped and counted.
const MAX_WAITING_S: f64 = 0.5;
/// Duration of samples per read, in s: short, so that no sample waits long for later samples.
const BLOCK_S: f64 = 0.002;
/// Minimum number of samples per read.
const MIN_BLOCK: usize = 1024;
/// Timeout of a call that waits for samples.
const PATIENCE: Duration = Duration::from_millis(100);
/// Maximum time without samples before the radio counts as failed.
const SILENCE: Duration = Duration::from_secs(3);
/// Maximum error of the centre frequency, in Hz: the decoder searches for cells within 12 kHz.
const MAX_OFF_HZ: f64 = 10e3;
/// Maximum relative error of a sample rate that counts as the requested rate. A cell's tracker follows the remaining
/// error.
const SAME_RATE: f64 = 2e-6;
/// Maximum relative error of a sample rate that is accepted. The decoder uses the true rate.
const MAX_OFF_RATE: f64 = 0.01;

/// A radio whose reception starts at the first read.
pub struct Radio {
    name: String,
    rate_hz: f64,
    antennas: usize,
    state: State,
}

enum State {
    /// The reception has not started.
    Ready(RxStream<Complex32>),
    Listening(Pump),
    /// The radio failed, or could not be started.
    Over,
}

/// Handle of the reading thread.
struct Pump {
    blocks: Receiver<Block>,
    waiting: Arc<AtomicUsize>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// Messages that the thread sends.
enum Block {
    Samples(Vec<Complex32>),
    Gap(Option<u64>),
    Failed(Error),
}

impl Radio {
    /// Opens a radio and tunes it.
    ///
    /// # Errors
    /// There is no such radio, or the radio cannot be configured like this.
    pub fn open(settings: &Settings) -> Result<(Radio, Tuned), Error> {
        let name = settings.name();
        let channels = if settings.channels.is_empty() { vec![0] } else { settings.channels.clone() };
        let of_channel = |channel| Opening { name: &name, settings, channel };
        let most = channels.iter().copied().max().unwrap_or(0);
        let device = of_channel(most).device()?;
        let mut all: Vec<Tuned> = vec![];
        for &channel in &channels {
            all.push(of_channel(channel).tune(&device)?);
        }
        let tuned = all[0].clone();
        if let Some(other) = all.iter().find(|other| other.rate_hz != tuned.rate_hz) {
            let what = format!(
                "its receivers take {} and {} samples per second, and antennas need one rate",
                tuned.rate_hz, other.rate_hz
            );
            return Err(refused(&name, what).but(another_rate()));
        }
        let stream = device
            .rx_stream(&channels)
            .map_err(|error| refused(&name, format!("gives no samples: {}", error.message)))?;
        let (rate_hz, antennas) = (tuned.rate_hz, channels.len());
        Ok((Radio { name, rate_hz, antennas, state: State::Ready(stream) }, tuned))
    }

    fn start(&self, stream: RxStream<Complex32>) -> Result<Pump, Error> {
        let (sender, blocks) = channel();
        let (waiting, stop) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        let mut thread = Thread {
            name: self.name.clone(),
            stream,
            clock: Clock::new(self.rate_hz),
            rate_hz: self.rate_hz,
            antennas: self.antennas,
            loss: Loss::default(),
            sender,
            waiting: Arc::clone(&waiting),
            stop: Arc::clone(&stop),
        };
        let body = move || {
            let ended = thread.listen();
            let _ = thread.stream.deactivate(None);
            if let Err(error) = ended {
                // The receiver of the messages may already be dropped, so ignore the result.
                let _ = thread.sender.send(Block::Failed(error));
            }
        };
        let thread = std::thread::Builder::new().name(format!("listen {}", self.name)).spawn(body);
        let thread =
            thread.map_err(|error| refused(&self.name, format!("cannot start a thread: {error}")))?;
        Ok(Pump { blocks, waiting, stop, thread: Some(thread) })
    }
}

impl Source for Radio {
    fn sample_rate_hz(&self) -> f64 {
        self.rate_hz
    }

    fn antennas(&self) -> usize {
        self.antennas
    }

    fn read(&mut self, out: &mut Vec<Complex32>) -> Result<Piece, Error> {
        if let State::Ready(_) = self.state
            && let State::Ready(stream) = std::mem::replace(&mut self.state, State::Over)
        {
            self.state = State::Listening(self.start(stream)?);
        }
        let State::Listening(pump) = &self.state else { return Ok(Piece::End) };
        match pump.blocks.recv_timeout(PATIENCE) {
            Ok(Block::Samples(samples)) => {
                pump.waiting.fetch_sub(samples.len(), Ordering::Relaxed);
                out.extend_from_slice(&samples);
                Ok(Piece::Samples(samples.len() / self.antennas))
            }
            Ok(Block::Gap(lost)) => Ok(Piece::Gap(lost)),
            Err(RecvTimeoutError::Timeout) => Ok(Piece::Samples(0)),
            Ok(Block::Failed(error)) => {
                self.state = State::Over;
                Err(error)
            }
            Err(RecvTimeoutError::Disconnected) => {
                self.state = State::Over;
                Err(refused(&self.name, "its thread crashed".to_owned()))
            }
        }
    }

    fn progress(&self) -> Option<f64> {
        None
    }
}

impl Drop for Pump {
    /// Stops the thread, and waits until the radio is switched off.
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The reading thread.
struct Thread {
    name: String,
    stream: RxStream<Complex32>,
    clock: Clock,
    rate_hz: f64,
    antennas: usize,
    loss: Loss,
    sender: Sender<Block>,
    waiting: Arc<AtomicUsize>,
    stop: Arc<AtomicBool>,
}

/// Samples that were lost before the next received samples.
#[derive(Default)]
struct Loss {
    samples: u64,
    is_unknown: bool,
}

impl Loss {
    fn add(&mut self, lost: Option<u64>) {
        self.samples += lost.unwrap_or(0);
        self.is_unknown |= lost.is_none();
    }

    fn take(&mut self) -> Option<Option<u64>> {
        let Loss { samples, is_unknown } = std::mem::take(self);
        if is_unknown { Some(None) } else { (samples > 0).then_some(Some(samples)) }
    }
}

impl Thread {
    /// Reads samples until `stop` is set.
    fn listen(&mut self) -> Result<(), Error> {
        self.stream
            .activate(None)
            .map_err(|error| refused(&self.name, format!("cannot be switched on: {}", error.message)))?;
        let most = self.stream.mtu().unwrap_or(MIN_BLOCK).max(MIN_BLOCK);
        let length = ((self.rate_hz * BLOCK_S) as usize).clamp(MIN_BLOCK, most);
        let mut buffers = vec![vec![Complex32::default(); length]; self.antennas];
        let mut heard = Instant::now();
        while !self.stop.load(Ordering::Relaxed) {
            let mut rows: Vec<&mut [Complex32]> = buffers.iter_mut().map(Vec::as_mut_slice).collect();
            match self.stream.read(&mut rows, PATIENCE.as_micros() as i64) {
                Ok(count) if count > 0 => {
                    heard = Instant::now();
                    if !self.give(&buffers, count.min(length)) {
                        return Ok(());
                    }
                    continue;
                }
                Ok(_) => {}
                Err(error) => match error.code {
                    ErrorCode::Timeout => {}
                    ErrorCode::Overflow | ErrorCode::Corruption | ErrorCode::TimeError => {
                        self.clock.complain()
                    }
                    code => {
                        let what = format!(
                            "gives no more samples ({code:?}): it may have been unplugged, or another program took \
                             it; plug it in again and start again"
                        );
                        return Err(refused(&self.name, what));
                    }
                },
            }
            if heard.elapsed() >= SILENCE {
                let what = format!(
                    "gave no samples for {} s: unplug it and plug it in again, or try another port, another cable \
                     or a lower rate",
                    SILENCE.as_secs()
                );
                return Err(refused(&self.name, what));
            }
        }
        Ok(())
    }

    /// Sends the first `count` samples of each antenna; returns `false` if the receiver of the messages is gone.
    fn give(&mut self, antennas: &[Vec<Complex32>], count: usize) -> bool {
        if let Some(lost) = self.clock.take(count, self.stream.time_ns()) {
            self.loss.add(lost);
        }
        let most = (self.rate_hz * MAX_WAITING_S) as usize * self.antennas;
        let values = count * self.antennas;
        if self.waiting.load(Ordering::Relaxed) + values > most {
            self.loss.add(Some(count as u64));
            return true;
        }
        if let Some(lost) = self.loss.take()
            && self.sender.send(Block::Gap(lost)).is_err()
        {
            return false;
        }
        self.waiting.fetch_add(values, Ordering::Relaxed);
        let finite = |sample: Complex32| if sample.is_finite() { sample } else { Complex32::default() };
        let instants = (0..count).flat_map(|at| antennas.iter().map(move |samples| finite(samples[at])));
        self.sender.send(Block::Samples(instants.collect())).is_ok()
    }
}

/// A radio that is being opened.
struct Opening<'s> {
    name: &'s str,
    settings: &'s Settings,
    /// Number of the configured receiver.
    channel: usize,
}

impl Opening<'_> {
    fn refused(&self, what: String) -> Error {
        refused(self.name, what)
    }

    fn channel(&self) -> usize {
        self.channel
    }

    /// Configures the receiver.
    fn tune(&self, device: &Device) -> Result<Tuned, Error> {
        let rate_hz = self.rate(device)?;
        let frequency_hz = self.frequency(device)?;
        let antenna = self.antenna(device)?;
        let gain_db = self.gain(device)?;
        Ok(Tuned { frequency_hz, rate_hz, gain_db, antenna })
    }

    /// Returns the factor between a requested and a true frequency, due to the oscillator's error.
    fn stretch(&self) -> f64 {
        1.0 + self.settings.ppm * 1e-6
    }

    fn device(&self) -> Result<Device, Error> {
        let args: Args = self.settings.device.iter().map(|(key, value)| (&key[..], &value[..])).collect();
        let device = Device::new(args).map_err(|error| {
            let remedy = Remedy::new("the radios that are there:").task(UserTask::Examine);
            self.refused(format!("cannot be opened (SoapySDR: {})", error.message)).but(remedy)
        })?;
        let channels = device.num_channels(Rx).unwrap_or(0);
        match channels {
            0 => Err(self.refused("has no receiver: it cannot be listened to".to_owned())),
            _ if self.channel() < channels => Ok(device),
            _ => Err(self.refused(format!("has receivers 0 to {}: give such a channel", channels - 1))),
        }
    }

    /// Sets the sample rate and the filter; returns the true rate.
    fn rate(&self, device: &Device) -> Result<f64, Error> {
        let ranges = device.get_sample_rate_range(Rx, self.channel()).unwrap_or_default();
        let wish_hz = match self.settings.rate_hz {
            Some(rate_hz) => rate_hz,
            None => *RATES_HZ.iter().find(|rate_hz| has(&ranges, **rate_hz)).ok_or_else(|| {
                self.refused(format!("has no usual rate, but {}", among(&ranges))).but(another_rate())
            })?,
        };
        let set = device.set_sample_rate(Rx, self.channel(), wish_hz / self.stretch());
        let rate_hz = set.and_then(|()| device.sample_rate(Rx, self.channel())).map_err(|error| {
            let what = format!("cannot take {} Msps, but {}", wish_hz / 1e6, among(&ranges));
            self.refused(format!("{what} (SoapySDR: {})", error.message)).but(another_rate())
        })?;
        let rate_hz = rate_hz * self.stretch();
        let off = (rate_hz / wish_hz - 1.0).abs();
        if off.is_nan() || off > MAX_OFF_RATE {
            let what = format!("takes {} Msps instead of {}", rate_hz / 1e6, wish_hz / 1e6);
            return Err(self.refused(format!("{what}; it has {}", among(&ranges))).but(another_rate()));
        }
        if let Some(bandwidth_hz) = self.settings.bandwidth_hz {
            device.set_bandwidth(Rx, self.channel(), bandwidth_hz).map_err(|error| {
                let ranges = device.bandwidth_range(Rx, self.channel()).unwrap_or_default();
                let what = format!("has no filter of {} MHz, but {}", bandwidth_hz / 1e6, among(&ranges));
                self.refused(format!("{what} (SoapySDR: {})", error.message))
            })?;
        }
        Ok(if off <= SAME_RATE { wish_hz } else { rate_hz.round() })
    }

    fn frequency(&self, device: &Device) -> Result<f64, Error> {
        let Some(wish_hz) = self.settings.frequency_hz else {
            let remedy = Remedy::new("give")
                .parameter("freq")
                .text(", the middle of the downlink carrier, such as 1815.2M");
            return Err(self.refused("has no frequency to receive".to_owned()).but(remedy));
        };
        let ranges = device.frequency_range(Rx, self.channel()).unwrap_or_default();
        let set = device.set_frequency(Rx, self.channel(), wish_hz / self.stretch(), ());
        let frequency_hz = set.and_then(|()| device.frequency(Rx, self.channel())).map_err(|error| {
            let what = format!("cannot listen at {} MHz, but at {}", wish_hz / 1e6, among(&ranges));
            self.refused(format!("{what} (SoapySDR: {})", error.message))
        })?;
        let frequency_hz = frequency_hz * self.stretch();
        let off_hz = (frequency_hz - wish_hz).abs();
        if off_hz.is_nan() || off_hz > MAX_OFF_HZ {
            let what = format!("listens at {} MHz instead of {}", frequency_hz / 1e6, wish_hz / 1e6);
            return Err(self.refused(format!("{what}; it can at {}", among(&ranges))));
        }
        Ok(frequency_hz)
    }

    fn antenna(&self, device: &Device) -> Result<String, Error> {
        if let Some(antenna) = &self.settings.antenna {
            let there = device.antennas(Rx, self.channel()).unwrap_or_default();
            if !there.contains(antenna) {
                let what = format!("has no antenna `{antenna}`, but {}", there.join(", "));
                return Err(self.refused(what));
            }
            device.set_antenna(Rx, self.channel(), &antenna[..]).map_err(|error| {
                self.refused(format!("cannot take antenna {antenna} (SoapySDR: {})", error.message))
            })?;
        }
        Ok(device.antenna(Rx, self.channel()).unwrap_or_default())
    }

    /// Sets the gain; returns the gain in dB unless the radio sets it automatically.
    fn gain(&self, device: &Device) -> Result<Option<f64>, Error> {
        let can_itself = device.has_gain_mode(Rx, self.channel()).unwrap_or(false);
        let failed = |error: soapysdr::Error| {
            self.refused(format!("its gain cannot be set (SoapySDR: {})", error.message))
        };
        let range = device.gain_range(Rx, self.channel()).map_err(failed)?;
        let db = match self.settings.gain {
            Gain::Unset | Gain::Automatic if can_itself => {
                device.set_gain_mode(Rx, self.channel(), true).map_err(failed)?;
                return Ok(None);
            }
            Gain::Automatic => {
                let what = format!("does not find its gain by itself: give one {}", span(&range));
                return Err(self.refused(what));
            }
            Gain::Unset => f64::midpoint(range.minimum, range.maximum),
            Gain::Db(db) if db < range.minimum || db > range.maximum => {
                return Err(self.refused(format!("cannot amplify by {db} dB, but {}", span(&range))));
            }
            Gain::Db(db) => db,
        };
        if can_itself {
            device.set_gain_mode(Rx, self.channel(), false).map_err(failed)?;
        }
        device.set_gain(Rx, self.channel(), db).map_err(failed)?;
        Ok(Some(device.gain(Rx, self.channel()).unwrap_or(db)))
    }
}

/// Returns the available radios, each as the text that opens it.
///
/// # Errors
/// SoapySDR fails.
pub fn devices() -> Result<Vec<String>, Error> {
    let found = soapysdr::enumerate("").map_err(|error| refused("SoapySDR", error.message))?;
    let words = found.iter().map(|args| {
        let named =
            ["driver", "serial"].into_iter().filter_map(|key| Some(format!("{key}={}", args.get(key)?)));
        let named = named.collect::<Vec<_>>().join(",");
        args.get("label").map_or(named.clone(), |label| format!("{named} ({label})"))
    });
    Ok(words.collect())
}

fn refused(name: &str, what: String) -> Error {
    Error::Radio { device: name.to_owned(), what, remedy: None }
}

/// The remedy if a radio does not have the sample rate.
fn another_rate() -> Remedy {
    Remedy::new("give another").parameter("rate")
}

/// Returns whether a value is in one of the ranges; a single value is given as a range, too.
fn has(ranges: &[Range], value: f64) -> bool {
    ranges.iter().any(|range| value >= range.minimum - 1.0 && value <= range.maximum + 1.0)
}

/// Returns the ranges in millions, as text for messages.
fn among(ranges: &[Range]) -> String {
    let of = |range: &Range| match (range.minimum / 1e6, range.maximum / 1e6) {
        (least, most) if least == most => format!("{least}"),
        (least, most) => format!("{least} to {most}"),
    };
    match ranges {
        [] => "it does not say which".to_owned(),
        ranges => ranges.iter().map(of).collect::<Vec<_>>().join(", "),
    }
}

fn span(range: &Range) -> String {
    format!("from {} to {} dB", range.minimum, range.maximum)
}
