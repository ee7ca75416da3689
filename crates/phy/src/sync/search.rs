//! Cell search: finds every cell in a window of samples, the strongest first.
//!
//! ```text
//! correlation with three PSS at many carrier offsets, folded to 5 ms ─▶ peaks
//! each peak ─▶ carrier offset ─▶ SSS of two prefixes and two duplex modes ─▶ identity, half frame, timing
//! ```

use std::sync::Arc;

use num_complex::Complex32;
use rustfft::{Fft, FftDirection};

use super::notch::Notch;
use super::{VIEW_HZ, VIEW_PASSBAND_HZ};
use crate::cell::Cell;
use crate::complex::{angle, turn_back};
use crate::numerology::{Bandwidth, CyclicPrefix, Numerology};
use crate::ofdm::Transform;
use crate::sequence::pss::{LEN, pss};
use crate::sequence::sss::sss;

/// FFT size of a symbol at [`VIEW_HZ`].
const SYMBOL: usize = 128;

/// Length of half a frame at [`VIEW_HZ`] (samples).
const HALF_FRAME: usize = VIEW_HZ as usize / 200;

/// Length of a subframe at [`VIEW_HZ`] (samples).
const SUBFRAME: usize = VIEW_HZ as usize / 1000;

/// FFT size of the block-wise correlation.
const BLOCK: usize = 1024;

/// Number of correlation values per block that are not affected by circular wrap-around.
const FRESH: usize = BLOCK - SYMBOL + 1;

/// Interval between the tested carrier offsets, in bins of [`BLOCK`]: 7.5 kHz, so that the loss in between is at most 1 dB.
const OFFSET_STEP: i64 = 4;

/// Maximum carrier offset (Hz). Beyond it, a part of the PBCH would lie outside the view's passband.
const MAX_CFO_HZ: f64 = VIEW_PASSBAND_HZ as f64 - 540_000.0;

/// Duplex mode of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Duplex {
    /// Frequency-division duplex.
    Fdd,
    /// Time-division duplex. It is recognised, but not decoded.
    Tdd,
}

/// A cell found by the search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Candidate {
    /// Physical cell identity.
    pub pci: u16,
    /// Cyclic prefix.
    pub cp: CyclicPrefix,
    /// Duplex mode.
    pub duplex: Duplex,
    /// Start of a frame, in samples of the view: the first frame that does not end before the view starts.
    pub frame_start: f64,
    /// Carrier offset: the cell's carrier frequency minus the receiver's, in Hz.
    pub cfo_hz: f64,
    /// Correlation with the PSS: its share of the power within ±0.96 MHz for the duration of the PSS, 0…1.
    pub primary: f32,
    /// Normalised correlation with the SSS, 0…1. Noise alone stays below [`Search::least_secondary`].
    pub secondary: f32,
}

/// A peak of the PSS correlation.
#[derive(Clone, Copy, Debug)]
struct Peak {
    n_id_2: u16,
    offset_bins: i64,
    /// Position within half a frame, in samples.
    at: usize,
    /// Distance of the interpolated peak from `at`, in samples.
    fraction: f64,
    fit: f32,
}

/// Searches windows of samples for cells.
pub struct Search {
    forward: Arc<dyn Fft<f32>>,
    backward: Arc<dyn Fft<f32>>,
    of_symbol: Arc<dyn Fft<f32>>,
    /// Conjugated spectrum of each PSS with [`BLOCK`] points.
    templates: [Vec<Complex32>; 3],
    /// Each PSS in the time domain, with unit energy.
    signals: [Vec<Complex32>; 3],
    /// SSS by N_ID^(2), half frame and N_ID^(1).
    secondaries: Vec<[[[f32; LEN]; 168]; 2]>,
    offsets: Vec<i64>,
    strongest_primary: f32,
    notch: Notch,
    work: Work,
}

#[derive(Default)]
struct Work {
    spectrum: Vec<Complex32>,
    product: Vec<Complex32>,
    scratch: Vec<Complex32>,
    energy: Vec<f32>,
    /// Correlation for each PSS and carrier offset, folded to half a frame.
    folded: Vec<Vec<f32>>,
}

impl Search {
    /// Creates a search for carrier offsets up to ±`max_cfo_hz`, with the fastest transforms for the machine.
    pub fn new(max_cfo_hz: f64) -> Search {
        Search::by(Transform::Fastest, max_cfo_hz)
    }

    /// Creates a search for carrier offsets up to ±`max_cfo_hz`, at most ±60 kHz.
    pub fn by(transform: Transform, max_cfo_hz: f64) -> Search {
        let of_symbol = transform.plan(SYMBOL, FftDirection::Forward);
        let forward = transform.plan(BLOCK, FftDirection::Forward);
        let backward = transform.plan(BLOCK, FftDirection::Inverse);
        let to_time = transform.plan(SYMBOL, FftDirection::Inverse);
        let signals = [0, 1, 2].map(|n_id_2| {
            let mut signal = vec![Complex32::default(); SYMBOL];
            for (n, value) in pss(n_id_2).into_iter().enumerate() {
                signal[bin(n)] = value / ((SYMBOL * LEN) as f32).sqrt();
            }
            to_time.process(&mut signal);
            signal
        });
        let templates = [0, 1, 2].map(|n_id_2: usize| {
            let mut template = signals[n_id_2].clone();
            template.resize(BLOCK, Complex32::default());
            forward.process(&mut template);
            template.iter().map(|value| value.conj() / BLOCK as f32).collect()
        });
        let step_hz = (OFFSET_STEP * VIEW_HZ as i64) as f64 / BLOCK as f64;
        let steps = libm::ceil((max_cfo_hz.min(MAX_CFO_HZ) - step_hz / 2.0).max(0.0) / step_hz) as i64;
        Search {
            forward,
            backward,
            of_symbol,
            templates,
            signals,
            secondaries: (0..3)
                .map(|n_id_2| {
                    [0, 1].map(|half| std::array::from_fn(|n_id_1| sss(n_id_1 as u16, n_id_2, half)))
                })
                .collect(),
            offsets: (-steps..=steps).map(|step| step * OFFSET_STEP).collect(),
            strongest_primary: 0.0,
            notch: Notch::new(transform),
            work: Work::default(),
        }
    }

    /// Returns the correlation of the strongest PSS in the last view, 0…1.
    pub fn strongest_primary(&self) -> f32 {
        self.strongest_primary
    }

    /// Returns the correlation that noise alone occasionally reaches as the best of 336 SSS, both prefixes and both duplex
    /// modes, in a view with `halves` SSS.
    ///
    /// Chosen: the mean magnitude of a product of two Gaussians is π/4 of its standard deviation. The maximum of 1344
    /// trials is 2.9 times the standard deviation of their sum.
    pub fn least_secondary(halves: usize) -> f32 {
        2.9 * 1.27 / ((LEN * halves.max(1)) as f32).sqrt()
    }

    /// Returns `view`, at [`VIEW_HZ`], without narrow-band interference that is far stronger than a cell. Returns `None` if
    /// there is none.
    pub fn clean(&mut self, view: &[Complex32]) -> Option<Vec<Complex32>> {
        self.notch.clean(view)
    }

    /// Returns the cells in `view`, at [`VIEW_HZ`]: at most `count`, the best first. Several peaks of one cell count as one
    /// cell. A view of 5 ms is enough for a strong cell; 10 ms determine the half frame reliably.
    pub fn find(&mut self, view: &[Complex32], count: usize) -> Vec<Candidate> {
        if view.len() < SYMBOL {
            return Vec::new();
        }
        let mean = view.iter().sum::<Complex32>() / view.len() as f32;
        let view: Vec<Complex32> = view.iter().map(|sample| sample - mean).collect();
        self.correlate(&view);
        let peaks = self.peaks(2 * count + 4);
        self.strongest_primary = peaks.first().map_or(0.0, |peak| peak.fit);
        let mut found: Vec<Candidate> = Vec::new();
        for peak in peaks {
            let Some(candidate) = self.identify(&view, &peak) else { continue };
            if found.iter().all(|other| other.pci != candidate.pci) {
                found.push(candidate);
            }
        }
        found.sort_by(|a, b| (b.primary * b.secondary).total_cmp(&(a.primary * a.secondary)));
        found.truncate(count);
        found
    }

    /// Correlates the view with every PSS at every carrier offset, normalised by the energy of the window, and averages
    /// over the half frames.
    fn correlate(&mut self, view: &[Complex32]) {
        let work = &mut self.work;
        let scratch_len = self.forward.get_inplace_scratch_len().max(self.backward.get_inplace_scratch_len());
        work.scratch.resize(scratch_len, Complex32::default());
        work.folded.resize(3 * self.offsets.len(), Vec::new());
        for folded in &mut work.folded {
            folded.clear();
            folded.resize(HALF_FRAME, 0.0);
        }
        let places = view.len() - SYMBOL + 1;
        energies(view, &mut work.energy);
        for start in (0..places).step_by(FRESH) {
            let here = &view[start..view.len().min(start + BLOCK)];
            work.spectrum.clear();
            work.spectrum.extend_from_slice(here);
            work.spectrum.resize(BLOCK, Complex32::default());
            self.forward.process_with_scratch(&mut work.spectrum, &mut work.scratch);
            let fresh = FRESH.min(places - start);
            for (at, folded) in work.folded.iter_mut().enumerate() {
                let template = &self.templates[at / self.offsets.len()];
                // The signal of a cell with a higher carrier is shifted up by that number of bins.
                let shift = self.offsets[at % self.offsets.len()].rem_euclid(BLOCK as i64) as usize;
                work.product.clear();
                let shifted = template[BLOCK - shift..].iter().chain(&template[..BLOCK - shift]);
                work.product.extend(work.spectrum.iter().zip(shifted).map(|(x, t)| x * t));
                self.backward.process_with_scratch(&mut work.product, &mut work.scratch);
                for (n, value) in work.product[..fresh].iter().enumerate() {
                    folded[(start + n) % HALF_FRAME] += value.norm_sqr() / work.energy[start + n];
                }
            }
        }
        // Number of half frames that contain each position.
        let (whole, rest) = (places / HALF_FRAME, places % HALF_FRAME);
        for folded in &mut work.folded {
            for (at, value) in folded.iter_mut().enumerate() {
                *value /= (whole + usize::from(at < rest)).max(1) as f32;
            }
        }
    }

    /// Returns the highest peaks of all correlations. Peaks of the same PSS that are close in time count as one.
    fn peaks(&self, count: usize) -> Vec<Peak> {
        let mut peaks: Vec<Peak> = Vec::new();
        for n_id_2 in 0..3 {
            let of_pss = &self.work.folded[n_id_2 * self.offsets.len()..][..self.offsets.len()];
            let mut own: Vec<Peak> = Vec::new();
            for (folded, &offset_bins) in of_pss.iter().zip(&self.offsets) {
                let before = folded.iter().cycle().skip(HALF_FRAME - 1);
                let after = folded.iter().cycle().skip(1);
                for (at, ((&fit, &a), &b)) in folded.iter().zip(before).zip(after).enumerate() {
                    if fit < MIN_PRIMARY || fit < a || fit <= b {
                        continue;
                    }
                    let bend = a + b - 2.0 * fit;
                    let fraction = if bend < 0.0 { f64::from(0.5 * (a - b) / bend) } else { 0.0 };
                    own.push(Peak { n_id_2: n_id_2 as u16, offset_bins, at, fraction, fit });
                }
            }
            own.sort_by(|a, b| b.fit.total_cmp(&a.fit));
            let mut kept: Vec<Peak> = Vec::new();
            for peak in own {
                let apart = |other: &Peak| {
                    let distance = peak.at.abs_diff(other.at);
                    distance.min(HALF_FRAME - distance) > NEIGHBOURS
                };
                if kept.len() < count && kept.iter().all(apart) {
                    kept.push(peak);
                }
            }
            peaks.extend(kept);
        }
        peaks.sort_by(|a, b| b.fit.total_cmp(&a.fit));
        peaks.truncate(count);
        peaks
    }

    /// Identifies the cell of a peak.
    fn identify(&mut self, view: &[Complex32], peak: &Peak) -> Option<Candidate> {
        let starts: Vec<usize> =
            (peak.at..=view.len() - SYMBOL).step_by(HALF_FRAME).take(MAX_HALVES).collect();
        let cfo_hz = self.carrier_offset(view, peak, &starts);
        let mut best: Option<(f32, Layout, u16, usize)> = None;
        for layout in Layout::ALL {
            let aligned: Vec<_> = starts
                .iter()
                .enumerate()
                .filter_map(|(half, &start)| Some((half, self.aligned(view, peak, start, layout, cfo_hz)?)))
                .collect();
            if aligned.is_empty() {
                continue;
            }
            let size: f32 =
                aligned.iter().flat_map(|(_, values)| values).map(|value| value.norm_sqr().sqrt()).sum();
            let secondaries = &self.secondaries[usize::from(peak.n_id_2)];
            let least = Search::least_secondary(aligned.len());
            for first_half in 0..2 {
                let fits = (0..secondaries[0].len()).map(|n_id_1| {
                    let sum: Complex32 = aligned
                        .iter()
                        .map(|(half, values)| {
                            let signs = &secondaries[(first_half + half) % 2][n_id_1];
                            values.iter().zip(signs).map(|(value, sign)| value * sign).sum::<Complex32>()
                        })
                        .sum();
                    sum.norm_sqr().sqrt() / size.max(f32::MIN_POSITIVE)
                });
                for (n_id_1, fit) in fits.enumerate() {
                    if fit > best.map_or(least, |best| best.0.max(least)) {
                        best = Some((fit, layout, n_id_1 as u16, first_half));
                    }
                }
            }
        }
        let (secondary, layout, n_id_1, first_half) = best?;
        let pci = 3 * n_id_1 + peak.n_id_2;
        let in_frame = layout.primary_start() + first_half * HALF_FRAME;
        let mut frame_start = peak.at as f64 + peak.fraction - in_frame as f64;
        if frame_start <= -((2 * HALF_FRAME) as f64) {
            frame_start += (2 * HALF_FRAME) as f64;
        }
        let cfo_hz = prefix_offset_hz(view, frame_start, layout.cp, cfo_hz);
        (pci < Cell::IDENTITIES).then_some(Candidate {
            pci,
            cp: layout.cp,
            duplex: layout.duplex,
            frame_start,
            cfo_hz,
            primary: peak.fit,
            secondary,
        })
    }

    /// Estimates the carrier offset from the phase rotation between the two halves of every PSS.
    fn carrier_offset(&self, view: &[Complex32], peak: &Peak, starts: &[usize]) -> f64 {
        let known_hz = (peak.offset_bins * VIEW_HZ as i64) as f64 / BLOCK as f64;
        let signal = &self.signals[usize::from(peak.n_id_2)];
        let mut sum = Complex32::default();
        for &start in starts {
            let mut here = view[start..start + SYMBOL].to_vec();
            turn_back(&mut here, known_hz / VIEW_HZ as f64);
            let half = |range: std::ops::Range<usize>| -> Complex32 {
                range.map(|n| here[n] * signal[n].conj()).sum()
            };
            sum += half(SYMBOL / 2..SYMBOL) * half(0..SYMBOL / 2).conj();
        }
        known_hz + angle(sum) / std::f64::consts::TAU * (VIEW_HZ as usize / (SYMBOL / 2)) as f64
    }

    /// Returns the SSS that belongs to the PSS at `start`, equalised with the channel estimated from the PSS.
    fn aligned(
        &mut self,
        view: &[Complex32],
        peak: &Peak,
        start: usize,
        layout: Layout,
        cfo_hz: f64,
    ) -> Option<[Complex32; LEN]> {
        let primary = self.subcarriers(view, start, cfo_hz)?;
        let secondary = self.subcarriers(view, start.checked_sub(layout.distance())?, cfo_hz)?;
        let sent = pss(peak.n_id_2);
        let gains: [Complex32; LEN] = std::array::from_fn(|n| primary[n] * sent[n].conj());
        // Smooth over adjacent subcarriers: their channels are nearly equal.
        let smooth = |n: usize| {
            let (from, to) = (n.saturating_sub(1), (n + 2).min(LEN));
            gains[from..to].iter().sum::<Complex32>() / (to - from) as f32
        };
        Some(std::array::from_fn(|n| secondary[n] * smooth(n).conj()))
    }

    /// Returns the 62 centre subcarriers of the symbol at `start`.
    fn subcarriers(&mut self, view: &[Complex32], start: usize, cfo_hz: f64) -> Option<[Complex32; LEN]> {
        let mut symbol = view.get(start..start + SYMBOL)?.to_vec();
        let turns = cfo_hz / VIEW_HZ as f64;
        turn_back(&mut symbol, turns);
        self.of_symbol.process(&mut symbol);
        Some(std::array::from_fn(|n| symbol[bin(n)]))
    }
}

/// Minimum correlation of a PSS peak that the search examines. Below it, more peaks come from noise than from cells.
const MIN_PRIMARY: f32 = 0.02;

/// Distance from a peak (samples) within which other peaks count as its slopes and echoes.
const NEIGHBOURS: usize = 6;

/// Maximum number of half frames that the search examines per cell.
const MAX_HALVES: usize = 8;

/// FFT bin of element `n` of a synchronisation signal.
const fn bin(n: usize) -> usize {
    if n < LEN / 2 { SYMBOL - LEN / 2 + n } else { n - LEN / 2 + 1 }
}

/// Energy of every window of one symbol's length, never zero.
fn energies(view: &[Complex32], out: &mut Vec<f32>) {
    out.clear();
    let mut sum: f64 = view[..SYMBOL].iter().map(|sample| f64::from(sample.norm_sqr())).sum();
    for at in 0..=view.len() - SYMBOL {
        out.push((sum as f32).max(f32::MIN_POSITIVE));
        if let Some(next) = view.get(at + SYMBOL) {
            sum += f64::from(next.norm_sqr()) - f64::from(view[at].norm_sqr());
        }
    }
    // Limit the weight of windows with little energy, next to a gap: such windows carry no information.
    let mean = out.iter().sum::<f32>() / out.len() as f32;
    out.iter_mut().for_each(|energy| *energy = energy.max(0.01 * mean));
}

/// Positions of the synchronisation signals in a frame.
#[derive(Clone, Copy, Debug)]
struct Layout {
    duplex: Duplex,
    cp: CyclicPrefix,
}

impl Layout {
    const ALL: [Layout; 4] = [
        Layout { duplex: Duplex::Fdd, cp: CyclicPrefix::Normal },
        Layout { duplex: Duplex::Fdd, cp: CyclicPrefix::Extended },
        Layout { duplex: Duplex::Tdd, cp: CyclicPrefix::Normal },
        Layout { duplex: Duplex::Tdd, cp: CyclicPrefix::Extended },
    ];

    const fn numerology(self) -> Numerology {
        Numerology::nominal(Bandwidth::ALL[0], self.cp)
    }

    /// First sample after the prefix of the first PSS of a frame.
    ///
    /// Source: TS 36.211 §6.11.1.2
    const fn primary_start(self) -> usize {
        match self.duplex {
            Duplex::Fdd => self.numerology().symbol_start(self.cp.symbols_per_slot() - 1),
            Duplex::Tdd => SUBFRAME + self.numerology().symbol_start(2),
        }
    }

    /// Samples from the SSS to the PSS.
    ///
    /// Source: TS 36.211 §6.11.2.2
    const fn distance(self) -> usize {
        let per_slot = self.cp.symbols_per_slot();
        let secondary = match self.duplex {
            Duplex::Fdd => self.numerology().symbol_start(per_slot - 2),
            Duplex::Tdd => self.numerology().symbol_start(2 * per_slot - 1),
        };
        self.primary_start() - secondary
    }
}

/// Refines the carrier offset: every prefix repeats the end of its symbol. Multiples of the subcarrier spacing are taken
/// from `near_hz`.
fn prefix_offset_hz(view: &[Complex32], frame_start: f64, cp: CyclicPrefix, near_hz: f64) -> f64 {
    let numerology = Numerology::nominal(Bandwidth::ALL[0], cp);
    let first = libm::round(frame_start) as i64;
    let mut sum = Complex32::default();
    for start in (first..view.len() as i64).step_by(SUBFRAME) {
        for symbol in 0..cp.symbols_per_subframe() {
            let end = start + numerology.symbol_start(symbol) as i64;
            // Skip the first samples, which contain echoes of the previous symbol, and the last sample, which may
            // belong to the next symbol.
            let begin = end - numerology.prefix_samples(symbol % cp.symbols_per_slot()) as i64 + 2;
            let Ok(begin) = usize::try_from(begin) else { continue };
            let Some(here) = view.get(begin..end as usize - 1 + SYMBOL) else { continue };
            sum += here.iter().zip(&here[SYMBOL..]).map(|(a, b)| a.conj() * b).sum::<Complex32>();
        }
    }
    let spacing_hz = VIEW_HZ as f64 / SYMBOL as f64;
    let within = angle(sum) / std::f64::consts::TAU * spacing_hz;
    within + spacing_hz * libm::round((near_hz - within) / spacing_hz)
}
