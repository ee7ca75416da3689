//! Soft bits of a cell beside another cell whose channel is known: what each may have sent is told apart.
//!
//! Control elements are QPSK. Where the symbols of two cells begin together, an element received is one of four points of
//! the one cell, or none, plus one of a few points of the other. Noise is only what is off all of these sums.
//!
//! ```text
//! P(own | received) = sum over all that the other may send of P(own, other | received)
//! ```

use num_complex::Complex32;

use super::{Observation, Observer, expected_of};
use crate::cell::{Cell, Ports};
use crate::channel::Channel;
use crate::diversity::Quad;
use crate::grid::{BITS_PER_CCE, ControlRegion, Grid, REGS_PER_CCE, Reg};
use crate::modulation::qpsk;
use crate::sequence::crs;

/// What an antenna received of two cells.
#[derive(Clone, Copy)]
pub struct Both<'a> {
    /// The elements.
    pub grid: &'a Grid,
    /// The channel of the cell that is read; its noise counts all that disturbs.
    pub own: &'a Channel,
    /// The gains of the other cell's ports, one or two, on every subcarrier.
    pub other: &'a [Vec<Complex32>],
}

/// Most symbols of a control region.
pub const SYMBOLS: usize = 4;

/// Most antennas that are read beside another cell; more are not.
pub const MOST_ANTENNAS: usize = 4;

/// What the other cell sends on an element of its control region.
#[derive(Clone, Copy, Debug)]
enum Element {
    /// A control symbol or nothing.
    Control,
    /// A reference signal of a port.
    Pilot(u8, Complex32),
}

/// What the other cell sends where.
pub struct Layout {
    /// By subframe and symbol: on every subcarrier.
    elements: Vec<[Vec<Element>; SYMBOLS]>,
}

impl Layout {
    /// Of a cell. Reference signals of two ports are expected; if it has one only, the other port's places are free.
    pub fn new(cell: &Cell) -> Layout {
        let count = cell.bandwidth.subcarriers();
        let of_symbol = |number: usize, symbol: usize| {
            let mut row = vec![Element::Control; count];
            for port in 0..cell.ports.count().max(2) {
                let of_two = Cell { ports: Ports::Two, ..*cell };
                let Some(pilots) = crs::pilots(&of_two, port, number, symbol) else { continue };
                for (at, value) in pilots.values.iter().enumerate() {
                    row[pilots.first + at * crs::Pilots::SPACING] = Element::Pilot(port as u8, *value);
                }
            }
            row
        };
        let elements = (0..10).map(|number| std::array::from_fn(|symbol| of_symbol(number, symbol)));
        Layout { elements: elements.collect() }
    }
}

impl Layout {
    /// The sum of products of neighbouring reference signals of a port in the first symbol of subframe `number`.
    pub fn neighbours(&self, number: usize, port: usize, row: &[Complex32]) -> Complex32 {
        let elements = self.elements[number % 10][0].iter().zip(row);
        let mut before: Option<Complex32> = None;
        let mut sum = Complex32::default();
        for (element, got) in elements {
            if let Element::Pilot(of, value) = element
                && usize::from(*of) == port
            {
                let gain = got * value.conj();
                sum += before.map_or(Complex32::default(), |before| before.conj() * gain);
                before = Some(gain);
            }
        }
        sum
    }
}

/// What is told of a unit: the elements of one symbol, or of a pair of symbols that two ports send together.
struct Unit {
    /// How likely what was received is with each that may have been sent, up to a factor common to all; the last is silence.
    own: [f32; MOST_POINTS],
    /// How far off it is in the mean, over the noise that was assumed.
    distance: f32,
    /// The likelihood that is left to what is none of the sums.
    surprise: f32,
}

/// Most points of a cell on an element: of two symbols, and none.
const MOST_POINTS: usize = 17;

/// So many points are summed side by side; and the most of the other cell, in whole lanes.
const LANES: usize = 4;
const MOST_OTHERS: usize = 20;

/// The bits of the symbols that a cell may send.
const POINTS: [(u8, u8); 4] = [(0, 0), (0, 1), (1, 0), (1, 1)];

/// The likelihood that is left to what is none of the sums, beside that of the right one.
///
/// Chosen: a bit is worth at most five nats then, so that a wrong channel of the other cell does not make bits sure.
const SURPRISE: f32 = 0.005;

/// Something is sent on an element by either cell with this probability.
const SENT: f32 = 0.5;

/// The least share of the noise that is left without the other cell.
const LEAST_SHARE: f32 = 1e-3;

/// How often the noise is learnt anew from a subframe.
///
/// Chosen: it starts from what the last subframes told. A third time changes nothing.
const ROUNDS: usize = 2;

/// The noise of a symbol is learnt from about so many groups of it, over the number of hypotheses of a unit.
///
/// Chosen: 24 groups of a cell with one port and 7 of one with two.
const LEARNT_FROM: usize = 120;

/// Below this, nothing is likely.
const LEAST_LIKELY: f32 = 1e-30;

/// How far off what fits nowhere is, over the noise.
const FAR: f32 = 40.0;

/// Points that the other cell may send on an element, and their probabilities.
#[derive(Clone, Copy)]
struct Others {
    re: [f32; MOST_OTHERS],
    im: [f32; MOST_OTHERS],
    chances: [f32; MOST_OTHERS],
    /// In whole lanes: the rest has no probability.
    count: usize,
}

/// The elements of a unit on an antenna.
#[derive(Clone, Copy)]
struct OfAntenna {
    got: [Complex32; 2],
    own: [[Complex32; 2]; MOST_POINTS],
    others: [Others; 2],
    /// One over the noise.
    scale: f32,
}

impl Unit {
    /// Log-likelihood ratios of the bits of its symbols, two of each.
    fn bits(&self, silent: usize, out: &mut [f32]) {
        let count = out.len();
        for (bit, llr) in out.iter_mut().enumerate() {
            let (mut zero, mut one) = (self.surprise, self.surprise);
            for (of, likely) in self.own[..silent].iter().enumerate() {
                if of >> (count - 1 - bit) & 1 == 0 { zero += likely } else { one += likely }
            }
            *llr = libm::logf(zero / one);
        }
    }

    /// The logarithm of how likely what was received is, whatever was sent.
    fn likelihood(&self, silent: usize) -> f32 {
        let sent: f32 = self.own[..silent].iter().sum();
        libm::logf((sent * SENT / silent as f32 + self.own[silent] * (1.0 - SENT)).max(LEAST_LIKELY))
    }

    /// The logarithm of how much likelier something was sent than nothing.
    fn presence(&self, silent: usize) -> f32 {
        let sent = self.own[..silent].iter().sum::<f32>() / silent as f32;
        libm::logf((sent + self.surprise) / (self.own[silent] + self.surprise))
    }
}

/// e^−x for x of 0 and more, to a part in ten thousand.
#[inline]
fn exp_of_minus(x: f32) -> f32 {
    // Not a number becomes the least.
    let turns = (x * -std::f32::consts::LOG2_E).max(-120.0);
    let whole = turns as i32 - 1;
    let part = turns - whole as f32;
    let power = 1.0 + part * (0.695_976 + part * (0.224_94 + part * 0.079_02));
    f32::from_bits(((whole + 127) << 23) as u32) * power
}

impl Others {
    /// The probability of one of the points but silence.
    fn least(&self) -> f32 {
        if self.count > LANES { self.chances[1] } else { 1.0 }
    }

    const NONE: Others =
        Others { re: [0.0; MOST_OTHERS], im: [0.0; MOST_OTHERS], chances: [0.0; MOST_OTHERS], count: LANES };

    fn put(&mut self, at: usize, point: Complex32, chance: f32) {
        (self.re[at], self.im[at], self.chances[at]) = (point.re, point.im, chance);
    }

    fn set(&mut self, element: Element, gains: &[Vec<Complex32>], k: usize) {
        self.count = LANES;
        self.chances[..2 * LANES].fill(0.0);
        match (element, gains) {
            (_, []) => self.put(0, Complex32::ZERO, 1.0),
            (Element::Pilot(port, value), gains) => {
                let gain = gains.get(usize::from(port)).map_or(Complex32::ZERO, |gains| gains[k]);
                self.put(0, gain * value, 1.0);
            }
            (Element::Control, [only]) => {
                self.put(0, Complex32::ZERO, 1.0 - SENT);
                for (at, (i, q)) in POINTS.into_iter().enumerate() {
                    self.put(1 + at, only[k] * qpsk(i, q), SENT / 4.0);
                }
                self.count = 2 * LANES;
            }
            (Element::Control, [first, second, ..]) => {
                self.put(0, Complex32::ZERO, 1.0 - SENT);
                let [first, second] =
                    [first[k], second[k]].map(|gain| gain * std::f32::consts::FRAC_1_SQRT_2);
                for (at, (i, q)) in POINTS.into_iter().enumerate() {
                    for (of, (j, r)) in POINTS.into_iter().enumerate() {
                        let point = first * qpsk(i, q) + second * qpsk(j, r);
                        self.put(1 + 4 * at + of, point, SENT / 16.0);
                    }
                }
                self.chances[MOST_POINTS..].fill(0.0);
                self.count = MOST_OTHERS;
            }
        }
    }
}

/// What the ports of the cell that is read send together on the elements of the unit at `at` of a group, by what is sent.
fn own_points(ports: Ports, h: &[Quad; 4], at: usize, out: &mut [[Complex32; 2]; MOST_POINTS]) {
    if ports == Ports::One {
        for (to, (i, q)) in out.iter_mut().zip(POINTS) {
            to[0] = h[0][at] * qpsk(i, q);
        }
        return;
    }
    let half_power = std::f32::consts::FRAC_1_SQRT_2;
    for (first, (i, q)) in POINTS.into_iter().enumerate() {
        for (second, (j, r)) in POINTS.into_iter().enumerate() {
            let (a, b) = (qpsk(i, q) * half_power, qpsk(j, r) * half_power);
            out[4 * first + second] =
                [h[0][at] * a - h[1][at] * b.conj(), h[0][at + 1] * b + h[1][at + 1] * a.conj()];
        }
    }
}

/// How many elements a unit has, and which of its points is silence.
fn unit_of(ports: Ports) -> (usize, usize) {
    if ports == Ports::One { (1, 4) } else { (2, 16) }
}

/// Over all that the other cell may send on an element while the cell that is read sends `at`: the sum of the likelihoods,
/// and of their products with the distances.
#[inline]
fn sums_of(antennas: &[OfAntenna], at: usize, element: usize) -> (f32, f32) {
    let Some(first) = antennas.first() else { return (0.0, 0.0) };
    let (mut sums, mut moments) = ([0.0f32; LANES], [0.0f32; LANES]);
    for from in (0..first.others[element].count).step_by(LANES) {
        let mut distances = [0.0f32; LANES];
        for one in antennas {
            let others = &one.others[element];
            let left = one.got[element] - one.own[at][element];
            let (re, im) = (&others.re[from..from + LANES], &others.im[from..from + LANES]);
            for lane in 0..LANES {
                let (re, im) = (left.re - re[lane], left.im - im[lane]);
                distances[lane] += (re * re + im * im) * one.scale;
            }
        }
        let chances = &first.others[element].chances[from..from + LANES];
        for lane in 0..LANES {
            let part = chances[lane] * exp_of_minus(distances[lane]);
            sums[lane] += part;
            moments[lane] += part * distances[lane];
        }
    }
    (sums.iter().sum(), moments.iter().sum())
}

/// The unit on the first `width` elements that antennas received.
fn unit_on(antennas: &[OfAntenna], width: usize, silent: usize) -> Unit {
    let surprise = (0..width).map(|element| antennas.first().map_or(1.0, |one| one.others[element].least()));
    let surprise = SURPRISE * surprise.product::<f32>();
    let mut unit = Unit { own: [0.0; MOST_POINTS], distance: 0.0, surprise };
    let (mut all, mut mean) = (0.0, 0.0);
    for at in 0..=silent {
        let (mut likely, mut far) = (1.0, 0.0);
        for element in 0..width {
            let (sum, moment) = sums_of(antennas, at, element);
            likely *= sum;
            far += moment / sum.max(f32::MIN_POSITIVE);
        }
        unit.own[at] = likely;
        let chance = if at == silent { 1.0 - SENT } else { SENT / silent as f32 };
        all += chance * likely;
        mean += chance * likely * far;
    }
    unit.distance = if all > LEAST_LIKELY { mean / all } else { FAR };
    unit
}

impl Observer {
    /// Each unit of a group, with the place of its first element, at a share of the noise. Without `layout`, all that
    /// disturbs counts as noise.
    fn units(
        &self,
        both: &[Both<'_>],
        other: Option<(&Layout, usize)>,
        reg: &Reg,
        share: f32,
        mut each: impl FnMut(usize, Unit),
    ) {
        let ports = self.cell.ports;
        let (width, silent) = unit_of(ports);
        let symbol = usize::from(reg.symbol);
        let nothing = [Complex32::ZERO; 2];
        let of_antenna =
            OfAntenna { got: nothing, own: [nothing; MOST_POINTS], others: [Others::NONE; 2], scale: 0.0 };
        let mut antennas = [of_antenna; MOST_ANTENNAS];
        let antennas = &mut antennas[..both.len().min(MOST_ANTENNAS)];
        for at in (0..4).step_by(width) {
            for (to, one) in antennas.iter_mut().zip(both) {
                own_points(ports, &one.own.quads(reg), at, &mut to.own);
                to.scale = 1.0 / (share * one.own.noise_at(reg)).max(f32::MIN_POSITIVE);
                for element in 0..width {
                    let k = usize::from(reg.subcarriers[at + element]);
                    to.got[element] = one.grid.symbol(symbol)[k];
                    match other {
                        None => {
                            to.others[element] = Others::NONE;
                            to.others[element].chances[0] = 1.0;
                        }
                        Some((layout, number)) => {
                            let what = layout.elements[number % 10][symbol][k];
                            to.others[element].set(what, one.other, k);
                        }
                    }
                }
            }
            each(at, unit_on(antennas, width, silent));
        }
    }

    /// The likeliest CFI as [`Observer::cfi`] tells it, beside another cell. The first of `shares` counts. Returns by how many
    /// nats it is likelier that a PCFICH was sent than that it was not.
    pub fn cfi_beside(
        &self,
        both: &[Both<'_>],
        other: (&Layout, usize),
        shares: &[f32; SYMBOLS],
        out: &mut Observation,
    ) -> f32 {
        let (mut llrs, mut presence) = ([0.0; 32], 0.0);
        let (width, silent) = unit_of(self.cell.ports);
        for (reg, eight) in self.regions[0].pcfich.iter().zip(llrs.chunks_exact_mut(8)) {
            self.units(both, Some(other), reg, shares[0], |at, unit| {
                presence += unit.presence(silent);
                unit.bits(silent, &mut eight[2 * at..][..2 * width]);
            });
        }
        self.indicator(&llrs, out);
        presence
    }

    /// Reads the bits of all CCEs as [`Observer::bits`] does, beside another cell: `number` is that of the other cell's
    /// subframe. `shares` are what the noise is without the other cell over what it is with it, by symbol; they are learnt.
    pub fn bits_beside(
        &self,
        both: &[Both<'_>],
        other: (&Layout, usize),
        shares: &mut [f32; SYMBOLS],
        out: &mut Observation,
    ) {
        self.bits(both.iter().map(|one| (one.grid, one.own)), out);
        let region = self.region(out.cfi);
        let mut is_joint = [false; SYMBOLS];
        for (symbol, is_joint) in is_joint.iter_mut().enumerate().take(self.cell.control_symbols(out.cfi)) {
            *is_joint = self.learn_share(both, other, region, symbol, &mut shares[symbol]);
        }
        let scrambling = &self.scrambling[out.number % 10];
        let (width, silent) = unit_of(self.cell.ports);
        for (cce, regs) in region.pdcch.chunks_exact(REGS_PER_CCE).enumerate() {
            if regs.iter().all(|reg| !is_joint[usize::from(reg.symbol)]) {
                continue;
            }
            let (mut expected, mut presence) = (0.0, 0.0);
            for (at, reg) in regs.iter().enumerate() {
                let first = cce * BITS_PER_CCE + 8 * at;
                let bits = &mut out.llrs[first..][..8];
                if !is_joint[usize::from(reg.symbol)] {
                    let mean = both.iter().map(|one| expected_of(one.own, reg)).sum::<f32>();
                    expected += mean;
                    // Of values with mean m and variance 2m if something is sent, and mean 0 if not.
                    presence += bits.iter().map(|llr| log_cosh(llr / 2.0)).sum::<f32>() - 2.0 * mean;
                    continue;
                }
                let signs = &scrambling[first..][..8];
                self.units(both, Some(other), reg, shares[usize::from(reg.symbol)], |at, unit| {
                    presence += unit.presence(silent);
                    let bits = &mut bits[2 * at..][..2 * width];
                    unit.bits(silent, bits);
                    for (llr, sign) in bits.iter_mut().zip(&signs[2 * at..]) {
                        // What is expected of a bit that is as sure as this one.
                        expected += *llr * libm::tanhf(*llr / 2.0) / 8.0;
                        *llr *= sign;
                    }
                });
            }
            let mean = expected / REGS_PER_CCE as f32;
            out.expected[cce] = mean;
            out.powers[cce] = if presence > 0.0 { 1.0 + mean / 2.0 } else { 1.0 };
            if presence < 0.0 {
                // Nothing was sent: what the bits tell is which of all wrong sums is the nearest.
                let factor = exp_of_minus(-presence / 4.0);
                out.llrs[cce * BITS_PER_CCE..][..BITS_PER_CCE].iter_mut().for_each(|llr| *llr *= factor);
            }
        }
    }

    /// Learns the share of the noise of a symbol. Returns whether what was received is likelier beside the other cell than if
    /// all that disturbs is noise: otherwise the other cell sends something else there, or its channel is not known.
    fn learn_share(
        &self,
        both: &[Both<'_>],
        other: (&Layout, usize),
        region: &ControlRegion,
        symbol: usize,
        share: &mut f32,
    ) -> bool {
        let (width, silent) = unit_of(self.cell.ports);
        let elements = (width * both.len()) as f32;
        let count = region.pdcch.iter().filter(|reg| usize::from(reg.symbol) == symbol).count();
        let step = (count * (silent + 1) / LEARNT_FROM).max(1);
        let regs = || region.pdcch.iter().filter(|reg| usize::from(reg.symbol) == symbol).step_by(step);
        for _ in 0..ROUNDS {
            let (mut sum, mut count) = (0.0, 0.0);
            for reg in regs() {
                self.units(both, Some(other), reg, *share, |_, unit| {
                    sum += unit.distance;
                    count += elements;
                });
            }
            if count > 0.0 && sum.is_finite() {
                *share = (*share * sum / count).clamp(LEAST_SHARE, 1.0);
            }
        }
        let (mut joint, mut alone) = (0.0, 0.0);
        let density = elements * libm::logf(*share);
        for reg in regs() {
            self.units(both, Some(other), reg, *share, |_, unit| joint += unit.likelihood(silent) - density);
            self.units(both, None, reg, 1.0, |_, unit| alone += unit.likelihood(silent));
        }
        joint > alone
    }
}

/// ln cosh x.
fn log_cosh(x: f32) -> f32 {
    let x = x.abs();
    x + libm::log1pf(libm::expf(-2.0 * x)) - std::f32::consts::LN_2
}
