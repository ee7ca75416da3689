//! Sums over all symbols that two cells may transmit, for the elements of a CCE in parallel.
//!
//! A unit is detected at once: one element, or a pair of elements on which two ports transmit an Alamouti pair of
//! symbols.

use num_complex::Complex32;
use pulp::{Arch, Simd, WithSimd};

use super::{Element, MAX_ANTENNAS, OtherSubframe, SENT, TwoCellSignal, exp_of_minus};
use crate::cell::Ports;
use crate::diversity::Quad;
use crate::grid::{REGS_PER_CCE, Reg};
use crate::modulation::qpsk;

/// Number of elements that are summed in parallel: the elements of a CCE, rounded up to vectors of eight.
const LANES: usize = (4 * REGS_PER_CCE).next_multiple_of(8);

/// One number per element.
type Lane = [f32; LANES];

/// Maximum number of hypotheses for the signal of a cell on an element: 16 for two symbols, and one for silence.
const MAX_POINTS: usize = 17;

/// Bits of the QPSK symbols.
const POINTS: [(u8, u8); 4] = [(0, 0), (0, 1), (1, 0), (1, 1)];

/// Likelihood of a signal that matches none of the hypothetical sums, relative to the likelihood of the correct sum.
///
/// Chosen: this value limits the log-likelihood ratio of a bit to about five nats, so a wrong channel of the other cell
/// does not cause high confidence.
const SURPRISE: f32 = 0.005;

/// Threshold of likelihood: below it, no hypothesis is likely.
const MIN_LIKELIHOOD: f32 = 1e-30;

/// Squared distance over noise power of a signal that no hypothesis explains.
const FAR: f32 = 40.0;

/// Number of hypotheses for the symbols that the decoded cell's ports transmit together.
pub(super) fn points_of(ports: Ports) -> usize {
    if ports == Ports::One { 4 } else { 16 }
}

/// One complex number per element.
#[derive(Clone, Copy)]
struct Points {
    re: Lane,
    im: Lane,
}

impl Points {
    const NONE: Points = Points { re: [0.0; LANES], im: [0.0; LANES] };

    #[inline(always)]
    fn less(&self, other: &Points) -> Points {
        let of = |a: &Lane, b: &Lane| std::array::from_fn(|lane| a[lane] - b[lane]);
        Points { re: of(&self.re, &other.re), im: of(&self.im, &other.im) }
    }

    fn put(&mut self, lane: usize, point: Complex32) {
        (self.re[lane], self.im[lane]) = (point.re, point.im);
    }
}

/// Received signal of an antenna on the elements, and the hypotheses for it.
#[derive(Clone)]
struct OfAntenna {
    got: Points,
    /// Inverse noise power.
    scales: Lane,
    /// Signal of the decoded cell, by hypothesis.
    own: Vec<Points>,
    others: Vec<Points>,
}

/// Detector for the elements of up to [`REGS_PER_CCE`] REGs.
pub(super) struct Sums<'a> {
    ports: Ports,
    both: &'a [TwoCellSignal<'a>],
    /// Subframe of the other cell. If `None`, all interference counts as noise.
    other: Option<OtherSubframe<'a>>,
    antennas: Vec<OfAntenna>,
    /// Prior probability of each point of the other cell.
    chances: Vec<Lane>,
    /// By hypothesis on the decoded cell: likelihood of each element (`likely`), and its mean squared distance (`far`).
    likely: Vec<Lane>,
    far: Vec<Lane>,
    /// Number of elements.
    count: usize,
}

/// Likelihoods of a unit.
pub(super) struct Unit {
    /// Likelihood of the received signal for each hypothesis, up to a common factor; the last hypothesis is silence.
    own: [f32; MAX_POINTS],
    /// Mean squared distance for each hypothesis over the assumed noise power, averaged over the symbols of the other
    /// cell.
    far: [f32; MAX_POINTS],
    /// Index of the hypothesis of silence, which is the number of other hypotheses.
    silent: usize,
    /// Likelihood of a signal that matches none of the hypothetical sums.
    surprise: f32,
}

impl Unit {
    /// Log-likelihood ratios of the bits of the unit's symbols, two bits per symbol.
    pub(super) fn bits(&self, out: &mut [f32]) {
        let count = out.len();
        for (bit, llr) in out.iter_mut().enumerate() {
            let (mut zero, mut one) = (self.surprise, self.surprise);
            for (of, likely) in self.own[..self.silent].iter().enumerate() {
                if of >> (count - 1 - bit) & 1 == 0 { zero += likely } else { one += likely }
            }
            *llr = libm::logf(zero / one);
        }
    }

    /// Logarithm of the likelihood of the received signal, over all hypotheses.
    pub(super) fn likelihood(&self) -> f32 {
        let likely = self.own[..=self.silent].iter().enumerate();
        let all: f32 = likely.map(|(at, likely)| self.chance(at) * likely).sum();
        libm::logf(all.max(MIN_LIKELIHOOD))
    }

    /// Log-likelihood ratio between a transmission and silence.
    pub(super) fn presence(&self) -> f32 {
        let sent = self.own[..self.silent].iter().sum::<f32>() / self.silent as f32;
        libm::logf((sent + self.surprise) / (self.own[self.silent] + self.surprise))
    }

    /// Mean squared distance over all hypotheses, relative to the assumed noise power.
    pub(super) fn distance(&self) -> f32 {
        let (mut all, mut mean) = (0.0, 0.0);
        for at in 0..=self.silent {
            let likely = self.chance(at) * self.own[at];
            all += likely;
            mean += likely * self.far[at];
        }
        if all > MIN_LIKELIHOOD { mean / all } else { FAR }
    }

    fn chance(&self, at: usize) -> f32 {
        if at == self.silent { 1.0 - SENT } else { SENT / self.silent as f32 }
    }
}

impl<'a> Sums<'a> {
    /// Creates a detector for a cell with these ports, and the signals of at most [`MAX_ANTENNAS`] antennas.
    pub(super) fn new(
        ports: Ports,
        both: &'a [TwoCellSignal<'a>],
        other: Option<OtherSubframe<'a>>,
    ) -> Sums<'a> {
        let both = &both[..both.len().min(MAX_ANTENNAS)];
        let of_other = match (other, both.first().map_or(0, |one| one.other.len())) {
            (None, _) | (_, 0) => 1,
            (_, 1) => 1 + 4,
            _ => 1 + 16,
        };
        let of_antenna = OfAntenna {
            got: Points::NONE,
            scales: [0.0; LANES],
            own: vec![Points::NONE; points_of(ports) + 1],
            others: vec![Points::NONE; of_other],
        };
        Sums {
            ports,
            both,
            other,
            antennas: vec![of_antenna; both.len()],
            chances: vec![[0.0; LANES]; of_other],
            likely: vec![[0.0; LANES]; points_of(ports) + 1],
            far: vec![[0.0; LANES]; points_of(ports) + 1],
            count: 0,
        }
    }

    /// Number of elements per unit.
    fn width(&self) -> usize {
        if self.ports == Ports::One { 1 } else { 2 }
    }

    /// Number of bits per unit.
    pub(super) fn bits_per_unit(&self) -> usize {
        2 * self.width()
    }

    /// Number of received values per unit.
    pub(super) fn values_per_unit(&self) -> f32 {
        (self.width() * self.both.len()) as f32
    }

    /// Removes all elements.
    pub(super) fn clear(&mut self) {
        self.count = 0;
    }

    /// Adds the four elements of a REG. `share` is the noise power without the other cell over the noise power with it.
    pub(super) fn add(&mut self, reg: &Reg, share: f32) {
        let (symbol, lanes) = (usize::from(reg.symbol), self.count..(self.count + 4).min(LANES));
        self.count = lanes.end;
        for (to, one) in self.antennas.iter_mut().zip(self.both) {
            let scale = 1.0 / (share * one.own.noise_at(reg)).max(f32::MIN_POSITIVE);
            let row = one.grid.symbol(symbol);
            put_own(self.ports, &one.own.quads(reg), lanes.clone(), &mut to.own);
            for (lane, k) in lanes.clone().zip(reg.subcarriers) {
                to.got.put(lane, row[usize::from(k)]);
                to.scales[lane] = scale;
            }
        }
        for (lane, k) in lanes.zip(reg.subcarriers) {
            let k = usize::from(k);
            let element = self.other.map(|other| other.layout.elements[other.number % 10][symbol][k]);
            let is_control = matches!(element, Some(Element::Control));
            let others = self.chances.len() - 1;
            for (at, chances) in self.chances.iter_mut().enumerate() {
                chances[lane] = match (at, is_control && others > 0) {
                    (0, true) => 1.0 - SENT,
                    (0, false) => 1.0,
                    (_, true) => SENT / others as f32,
                    (_, false) => 0.0,
                };
            }
            for (to, one) in self.antennas.iter_mut().zip(self.both) {
                put_other(element, one.other, lane, k, &mut to.others);
            }
        }
    }

    /// Computes all units, in the order in which their elements were added.
    pub(super) fn units(&mut self) -> impl Iterator<Item = Unit> {
        Arch::new().dispatch(Add {
            antennas: &self.antennas,
            chances: &self.chances,
            likely: &mut self.likely,
            far: &mut self.far,
        });
        let (width, silent) = (self.width(), points_of(self.ports));
        (0..self.count / width).map(move |unit| {
            let (first, last) = (unit * width, (unit + 1) * width - 1);
            let of_both = |of: &Lane| if width == 1 { of[first] } else { of[first] * of[last] };
            let least = |lane: usize| match self.chances.get(1) {
                Some(chances) if chances[lane] > 0.0 => chances[lane],
                _ => 1.0,
            };
            let mut told = Unit {
                own: [0.0; MAX_POINTS],
                far: [0.0; MAX_POINTS],
                silent,
                surprise: SURPRISE * if width == 1 { least(first) } else { least(first) * least(last) },
            };
            told.own.iter_mut().zip(&self.likely).for_each(|(own, likely)| *own = of_both(likely));
            for (to, far) in told.far.iter_mut().zip(&self.far) {
                *to = if width == 1 { far[first] } else { far[first] + far[last] };
            }
            told
        })
    }
}

/// Fills the hypotheses for the sum of the decoded cell's ports on a REG. The hypothesis of silence stays zero.
fn put_own(ports: Ports, h: &[Quad; 4], lanes: std::ops::Range<usize>, out: &mut [Points]) {
    if ports == Ports::One {
        for (to, (i, q)) in out.iter_mut().zip(POINTS) {
            lanes.clone().zip(h[0]).for_each(|(lane, gain)| to.put(lane, gain * qpsk(i, q)));
        }
        return;
    }
    let half_power = std::f32::consts::FRAC_1_SQRT_2;
    for (first, (i, q)) in POINTS.into_iter().enumerate() {
        for (second, (j, r)) in POINTS.into_iter().enumerate() {
            let (a, b) = (qpsk(i, q) * half_power, qpsk(j, r) * half_power);
            let to = &mut out[4 * first + second];
            for at in [0, 2] {
                to.put(lanes.start + at, h[0][at] * a - h[1][at] * b.conj());
                to.put(lanes.start + at + 1, h[0][at + 1] * b + h[1][at + 1] * a.conj());
            }
        }
    }
}

/// Fills the hypotheses for the other cell on an element: on a reference signal, only the known value; otherwise,
/// silence or a symbol from each port.
fn put_other(element: Option<Element>, gains: &[Vec<Complex32>], lane: usize, k: usize, out: &mut [Points]) {
    match (element, gains) {
        (Some(Element::Pilot(port, value)), gains) => {
            let gain = gains.get(usize::from(port)).map_or(Complex32::ZERO, |gains| gains[k]);
            out[0].put(lane, gain * value);
        }
        (Some(Element::Control), [only]) => {
            out[0].put(lane, Complex32::ZERO);
            out[1..].iter_mut().zip(POINTS).for_each(|(to, (i, q))| to.put(lane, only[k] * qpsk(i, q)));
        }
        (Some(Element::Control), [first, second, ..]) => {
            out[0].put(lane, Complex32::ZERO);
            let [first, second] = [first[k], second[k]].map(|gain| gain * std::f32::consts::FRAC_1_SQRT_2);
            for (at, (i, q)) in POINTS.into_iter().enumerate() {
                for (of, (j, r)) in POINTS.into_iter().enumerate() {
                    out[1 + 4 * at + of].put(lane, first * qpsk(i, q) + second * qpsk(j, r));
                }
            }
        }
        (None, _) | (_, []) => out[0].put(lane, Complex32::ZERO),
    }
}

/// The computation, generic over the processor's SIMD instructions.
struct Add<'a> {
    antennas: &'a [OfAntenna],
    chances: &'a [Lane],
    likely: &'a mut [Lane],
    far: &'a mut [Lane],
}

impl WithSimd for Add<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Add { antennas, chances, likely, far } = self;
        for (at, (likely, far)) in likely.iter_mut().zip(far).enumerate() {
            let (mut sums, mut moments) = ([0.0f32; LANES], [0.0f32; LANES]);
            for (other, chances) in chances.iter().enumerate() {
                let mut distances = [0.0f32; LANES];
                for one in antennas {
                    let off = one.got.less(&one.own[at]).less(&one.others[other]);
                    let squares = off.re.iter().zip(&off.im).map(|(re, im)| re * re + im * im);
                    for ((distance, square), scale) in distances.iter_mut().zip(squares).zip(&one.scales) {
                        *distance += square * scale;
                    }
                }
                for lane in 0..LANES {
                    let part = chances[lane] * exp_of_minus(distances[lane]);
                    sums[lane] += part;
                    moments[lane] += part * distances[lane];
                }
            }
            for lane in 0..LANES {
                far[lane] = moments[lane] / sums[lane].max(f32::MIN_POSITIVE);
            }
            *likely = sums;
        }
    }
}
