//! Narrowband interference: a continuous-wave tone, or leakage of the receiver's oscillator.
//!
//! The interference disturbs the same few subcarriers in every symbol. There, the received signal deviates from the
//! expected signal by much more than on other subcarriers. The excess of a subcarrier is its squared deviation divided
//! by the typical squared deviation. Reference signals on such subcarriers are replaced by an interpolation of their
//! neighbours, and control elements there get lower weights.

mod elements;
mod excess;
mod median;

use num_complex::Complex32;

use self::elements::Elements;
use self::excess::{Excess, Measured};
use crate::cell::Cell;
use crate::channel::Channel;
use crate::channel::wiener::STEP;
use crate::grid::Grid;

/// State of the interference detection, by subcarrier.
#[derive(Clone, Debug)]
pub struct Narrow {
    /// Excess at every third subcarrier, measured by reference signals.
    references: Excess,
    /// Excess at the other subcarriers, measured on their control elements.
    elements: Elements,
    measured: Vec<Measured>,
    /// For each comb: indices of its disturbed reference signals.
    disturbed: [Vec<usize>; 2],
    /// Mean expected signal power, divided by the typical squared difference between received and expected values.
    signal: f32,
}

/// Weight of a new value in the averages of the excess and of the signal power.
///
/// Chosen: about thirty measurements, which are five subframes of a cell with two ports. With pure noise, the mean of
/// thirty values almost never deviates by half.
const SHARE: f32 = 0.03;

/// Threshold of channel power over its mean. The deviation of a varying channel is proportional to its power. Above this
/// threshold, the allowed deviation grows with the power.
///
/// Chosen: the median power of a fading channel, relative to its mean power.
const USUAL_POWER: f32 = 0.7;

/// Coherence distance in subcarriers. Beyond this distance, nothing is known of the channel. Within this distance, the
/// interpolation error is the squared ratio of distance and this constant, times the signal power.
///
/// Chosen: between EVA and ETU. A distance of 5 or 40 subcarriers loses as few messages in wide cells with four ports,
/// and slightly more in other cells.
const SPAN: f32 = 20.0;

/// Maximum signal power, in units of the typical deviation.
///
/// Chosen: not tuned; far above the SNR of any receiver.
const MAX_SIGNAL: f32 = 1e7;

/// Threshold of excess of a reference signal: above it, unmeasured subcarriers up to two away count as disturbed too.
const LOUD: f32 = 10.0;

impl Narrow {
    /// Creates the state for a cell with reference signals at `places` subcarriers, which are three subcarriers apart.
    pub fn new(cell: &Cell, places: usize) -> Narrow {
        Narrow {
            references: Excess::new(places),
            elements: Elements::new(cell),
            measured: Vec::new(),
            disturbed: [Vec::new(), Vec::new()],
            signal: 0.0,
        }
    }

    /// Resets all measurements.
    pub fn restart(&mut self) {
        self.references.restart();
        self.elements.restart();
        self.disturbed.iter_mut().for_each(Vec::clear);
    }

    /// Compares the reference signals `raw` of a comb with the reference signals `expected`, given the noise power.
    pub fn observe(&mut self, comb: usize, raw: &[Complex32], expected: &[Complex32], noise: f32) {
        let powers = expected.iter().map(Complex32::norm_sqr);
        let usual = USUAL_POWER * powers.clone().sum::<f32>() / expected.len().max(1) as f32;
        let each = raw.iter().zip(expected).zip(powers).map(|((raw, expected), power)| Measured {
            deviation: (raw - expected).norm_sqr(),
            allowed: (power / usual.max(f32::MIN_POSITIVE)).max(1.0),
        });
        self.measured.clear();
        self.measured.extend(each);
        let places = (comb..self.references.all().len()).step_by(2);
        if let Some(typical) = self.references.take(SHARE, places, &self.measured, noise) {
            let new = (usual / (USUAL_POWER * typical)).min(MAX_SIGNAL);
            self.signal += SHARE * (new - self.signal);
        }
        let disturbed = &mut self.disturbed[comb];
        disturbed.clear();
        if self.references.is_any() {
            let references = &self.references;
            disturbed.extend((0..raw.len()).filter(|at| references.is_disturbed(2 * at + comb)));
        }
    }

    /// Indices of the disturbed reference signals of a comb.
    pub fn disturbed(&self, comb: usize) -> &[usize] {
        &self.disturbed[comb]
    }

    /// Measures the control elements in the first symbol of a subframe, given its channel.
    pub fn hear(&mut self, grid: &Grid, channel: &Channel) {
        self.elements.observe(grid, channel);
    }

    /// Moves disturbed reference signals towards the line between the nearest undisturbed reference signals of their
    /// comb. The shift grows with the interference power and shrinks with the distance of the undisturbed reference
    /// signals.
    pub fn mend(&self, comb: usize, raw: &mut [Complex32]) {
        if !self.references.is_any() {
            return;
        }
        let is_good = |at: usize| !self.references.is_disturbed(2 * at + comb);
        let mut at = 0;
        while at < raw.len() {
            if is_good(at) {
                at += 1;
                continue;
            }
            let end = (at..raw.len()).find(|&at| is_good(at)).unwrap_or(raw.len());
            let (before, behind) = (at.checked_sub(1).map(|at| raw[at]), raw.get(end).copied());
            let (Some(from), Some(to)) = (before.or(behind), behind.or(before)) else { return };
            let steps = (end - at + 1) as f32;
            for (step, value) in raw[at..end].iter_mut().enumerate() {
                let line = from + (to - from) * ((step + 1) as f32 / steps);
                let away = |is_there: bool, places: usize| if is_there { places } else { usize::MAX };
                let nearest = away(before.is_some(), step + 1).min(away(behind.is_some(), end - at - step));
                let off = (nearest as f32 * 2.0 * STEP as f32 / SPAN).min(1.0);
                let (line_off, raw_off) =
                    (self.signal * off * off, self.references.all()[2 * (at + step) + comb]);
                *value = line + (*value - line) * (line_off / (line_off + raw_off));
            }
            at = end;
        }
    }

    /// Computes the weight of each subcarrier: 1, or less if it is disturbed. Leaves `out` empty if none is disturbed.
    /// The first reference signal is at subcarrier `lowest`.
    pub fn weigh(&self, lowest: usize, out: &mut Vec<f32>) {
        out.clear();
        let (references, elements) = (&self.references, self.elements.excess());
        if !references.is_any() && !elements.is_any() {
            return;
        }
        out.extend((0..elements.all().len()).map(|k| elements.weight(k)));
        let count = out.len();
        let mut lower = |subcarriers: std::ops::Range<usize>, weight: f32, middle: usize| {
            let end = subcarriers.end.min(count);
            for (k, out) in subcarriers.clone().zip(&mut out[subcarriers.start.min(end)..end]) {
                if k == middle || !self.elements.measures(k) {
                    *out = out.min(weight);
                }
            }
        };
        for at in (0..references.all().len()).filter(|at| references.is_disturbed(*at)) {
            let (middle, excess) = (lowest + STEP * at, references.all()[at]);
            let reach = if excess > LOUD { STEP - 1 } else { STEP / 2 };
            lower(middle.saturating_sub(reach)..middle + reach + 1, references.weight(at), middle);
            // Between two strongly disturbed reference signals, the interference is stronger than at either of them.
            if let Some(next) = references.all().get(at + 1).filter(|next| excess.min(**next) > LOUD) {
                lower(middle + 1..middle + STEP, references.weight_of(10.0 * excess.max(*next)), usize::MAX);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airpace_core::Streams;

    use crate::{Bandwidth, CyclicPrefix, PhichDuration, PhichResource, Ports};

    /// Real or imaginary part of a QPSK symbol as one port transmits it: two ports share the power.
    fn part_of_symbol(ports: Ports) -> f32 {
        if ports == Ports::One { std::f32::consts::FRAC_1_SQRT_2 } else { 0.5 }
    }

    fn cell(prbs: u16) -> Cell {
        Cell {
            pci: 1,
            bandwidth: Bandwidth::from_prbs(prbs).expect("a bandwidth of LTE"),
            ports: Ports::Two,
            cp: CyclicPrefix::Normal,
            phich_duration: PhichDuration::Normal,
            phich_resource: PhichResource::One,
        }
    }

    #[test]
    fn a_tone_is_found_and_its_subcarriers_count_less() {
        let mut rng = Streams::new(1).stream("phy.narrow");
        let mut narrow = Narrow::new(&cell(25), 100);
        let flat = vec![Complex32::new(1.0, 0.0); 50];
        let mut weights = Vec::new();
        for tone in [0.0, 2.0] {
            for _ in 0..200 {
                for comb in 0..2 {
                    let mut raw = flat.clone();
                    for value in &mut raw {
                        *value += Complex32::new(rng.normal() as f32, rng.normal() as f32) * 0.1;
                    }
                    let angle = rng.normal() as f32 * 10.0;
                    raw[20] += Complex32::new(angle.cos(), angle.sin()) * tone;
                    narrow.observe(comb, &raw, &flat, 0.02);
                    narrow.mend(comb, &mut raw);
                    if tone > 0.0 && narrow.references.all()[40 + comb] > 20.0 {
                        assert!((raw[20] - flat[20]).norm() < 0.5, "{}", raw[20]);
                    }
                }
            }
            narrow.weigh(1, &mut weights);
            assert_eq!(weights.is_empty(), tone == 0.0);
        }
        let mut light = (0..weights.len()).filter(|&k| weights[k] < 1.0).collect::<Vec<_>>();
        light.retain(|&k| k == 121 || k == 124 || !(119..=126).contains(&k) || narrow.elements.measures(k));
        assert_eq!(light, [121, 124], "places 40 and 41, and what lies around them and is not measured");
    }

    #[test]
    fn a_tone_between_reference_signals_is_found_too() {
        let mut rng = Streams::new(2).stream("phy.between");
        for ports in [Ports::One, Ports::Two] {
            let cell = Cell { ports, ..cell(25) };
            let gain = vec![Complex32::new(0.6, -0.8); cell.bandwidth.subcarriers()];
            // The second port is silent, so each element carries a symbol of the first port only.
            let silent = vec![Complex32::default(); gain.len()];
            let gains = [gain.clone(), silent][..ports.count()].to_vec();
            let channel = Channel::known(gains, 0.01);
            let mut narrow = Narrow::new(&cell, 100);
            let tone = (150..).find(|&k| narrow.elements.measures(k)).expect("an element");
            let mut grid = Grid::new(&cell);
            for _ in 0..100 {
                for (k, (value, gain)) in grid.symbol_mut(0).iter_mut().zip(&gain).enumerate() {
                    let mut part = || 0.07 * rng.normal() as f32;
                    *value = Complex32::new(part(), part());
                    let is_sent = k % 36 < 24;
                    let mut sign = || if rng.chance(0.5) { 1.0 } else { -1.0 } * part_of_symbol(ports);
                    if is_sent {
                        *value += Complex32::new(sign(), sign()) * gain;
                    }
                    if k == tone {
                        *value += Complex32::new(2.0, 1.0);
                    }
                }
                narrow.hear(&grid, &channel);
            }
            let mut weights = Vec::new();
            narrow.weigh(1, &mut weights);
            let light: Vec<usize> = (0..weights.len()).filter(|&k| weights[k] < 1.0).collect();
            assert!(light.contains(&tone) && light.len() <= ports.count(), "{ports:?}: {light:?}");
            assert!(weights[tone] < 0.05, "{}", weights[tone]);
        }
    }

    /// A tone between two subcarriers leaks above the low noise of a clear cell over a hundred subcarriers. The channel
    /// phase rotates several times within this span, so linear interpolation is a poor estimate. The reference signals,
    /// 17 dB above the leakage, give a better estimate.
    #[test]
    fn reference_signals_that_are_a_little_disturbed_still_tell_of_the_channel() {
        let mut rng = Streams::new(3).stream("phy.leak");
        let mut narrow = Narrow::new(&cell(25), 100);
        let channel: Vec<_> = (0..50).map(|at| Complex32::cis(0.57 * at as f32)).collect();
        let (leak, noise) = (20..32, 1e-4_f32);
        let error = |values: &[Complex32]| {
            let of = |at: usize| (values[at] - channel[at]).norm_sqr();
            leak.clone().map(of).sum::<f32>() / leak.len() as f32
        };
        let (mut disturbed, mut mended) = (0.0, 0.0);
        for round in 0..400 {
            let mut raw = channel.clone();
            for (at, value) in raw.iter_mut().enumerate() {
                let amplitude =
                    if leak.contains(&at) { 0.02_f32 } else { noise }.sqrt() / std::f32::consts::SQRT_2;
                *value += Complex32::new(rng.normal() as f32, rng.normal() as f32) * amplitude;
            }
            narrow.observe(0, &raw, &channel, noise);
            let before = error(&raw);
            narrow.mend(0, &mut raw);
            if round >= 200 {
                (disturbed, mended) = (disturbed + before / 200.0, mended + error(&raw) / 200.0);
            }
        }
        assert!(leak.clone().all(|at| narrow.references.is_disturbed(2 * at)));
        assert!(mended < 1.2 * disturbed, "{mended} of {disturbed}");
    }

    /// The channel estimate of a fast channel has an error of a tenth. At a high SNR, transmitted elements then deviate
    /// much more than silent elements.
    #[test]
    fn elements_are_not_disturbed_by_what_was_sent_on_them() {
        let mut rng = Streams::new(4).stream("phy.sent");
        for ports in [Ports::One, Ports::Two] {
            let cell = Cell { ports, ..cell(25) };
            let subcarriers = cell.bandwidth.subcarriers();
            let silent = vec![Complex32::default(); subcarriers];
            let gains = [vec![Complex32::new(0.6, -0.8); subcarriers], silent][..ports.count()].to_vec();
            let channel = Channel::known(gains, 0.01);
            let mut narrow = Narrow::new(&cell, 100);
            let tone = (150..).find(|&k| narrow.elements.measures(k)).expect("an element");
            let mut grid = Grid::new(&cell);
            for (subframes, amplitude) in [(100, 0.0), (100, 2.0)] {
                for _ in 0..subframes {
                    // Few elements are transmitted, so the median over all elements is that of silent elements.
                    let sent = rng.below(20) as usize * 12;
                    for (k, value) in grid.symbol_mut(0).iter_mut().enumerate() {
                        let mut part = |size: f32| size * rng.normal() as f32;
                        *value = Complex32::new(part(0.01), part(0.01));
                        if (sent..sent + 60).contains(&k) {
                            let gain = Complex32::new(0.6 + part(0.07), -0.8 + part(0.07));
                            *value += gain * Complex32::new(1.0, -1.0) * part_of_symbol(ports);
                        }
                        if k == tone {
                            *value += amplitude;
                        }
                    }
                    narrow.hear(&grid, &channel);
                }
                let light: Vec<_> =
                    (0..subcarriers).filter(|&k| narrow.elements.excess().is_disturbed(k)).collect();
                assert_eq!(light.contains(&tone), amplitude > 0.0, "{ports:?}: {light:?}");
                assert!(light.len() <= 10, "{ports:?}: {light:?}");
            }
        }
    }

    #[test]
    fn what_is_not_a_number_is_survived() {
        let mut narrow = Narrow::new(&cell(6), 24);
        let odd = vec![Complex32::new(f32::NAN, f32::INFINITY); 6];
        narrow.observe(0, &odd, &odd, f32::NAN);
        narrow.observe(1, &[], &[], 0.0);
        let mut grid = Grid::new(&cell(6));
        grid.symbol_mut(0).fill(odd[0]);
        narrow.hear(&grid, &Channel::known(vec![vec![Complex32::default(); 72]; 2], 0.0));
        let mut weights = vec![1.0];
        narrow.weigh(0, &mut weights);
        assert!(weights.is_empty());
    }
}
