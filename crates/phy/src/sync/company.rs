//! Interfering cell with symbol timing aligned to the tracked cell: channel estimation from its reference signals.
//!
//! The cell is detected by its synchronisation signals in symbols that are received anyway ([`super::lookout`]).
//!
//! When the tracked cell fades, the interferer may be the stronger cell. The interference is not noise: the possible
//! symbols of the interferer are known, so that the bits of both cells can be detected jointly
//! ([`crate::observation`]).

use num_complex::Complex32;

use super::antennas::Antennas;
use super::lookout::DetectedCell;
use crate::cell::{Cell, Ports};
use crate::channel::Estimator;
use crate::complex::{angle, correlate, phasor};
use crate::grid::Grid;
use crate::numerology::Numerology;
use crate::observation::{Layout, OtherSubframe, SYMBOLS, TwoCellSignal};
use crate::sequence::crs;

/// The interfering cell and its channel.
pub struct Company {
    /// Configuration of the cell. Two ports are assumed; the cell may use only one of them.
    cell: Cell,
    /// Whether the tracked cell, next to which this cell was found, has two ports.
    is_beside_two: bool,
    layout: Layout,
    /// Number of subframes by which its subframe numbers are ahead of the tracked cell's: 0 or 5.
    ahead: usize,
    antennas: Vec<Heard>,
    /// Reference signals of the tracked cell by subframe and symbol: subcarrier, port, value.
    own: Vec<Vec<Vec<(usize, usize, Complex32)>>>,
    work: Grid,
    /// Delay relative to the tracked cell (samples), and carrier offset relative to the tracked cell (cycles per subframe).
    delay: f64,
    turns_per_subframe: f64,
    turns: f64,
    /// Mean products of neighbouring reference signals of the first symbol: for each port of this cell, and for the tracked
    /// cell. Their magnitude is the received power without a contribution of noise.
    told: [Complex32; 2],
    own_told: Complex32,
    /// Noise power without this cell over noise power with it, by control symbol.
    shares: [f32; SYMBOLS],
    /// Number of subframes since the cell was found (`age`), and since its power last exceeded the minimum that
    /// matters.
    age: u32,
    absent: u32,
}

/// Channel of the interfering cell at one antenna.
struct Heard {
    estimator: Estimator,
    /// Gain by port and subcarrier.
    gains: Vec<Vec<Complex32>>,
}

/// Minimum power of the interfering cell that matters, relative to all noise and interference.
///
/// Chosen: an interferer 7 dB below the noise and interference, or 13 dB below the tracked cell, costs few messages.
const MIN_POWER: f32 = 0.2;

/// Minimum power of the interfering cell that matters, relative to the tracked cell.
const MIN_RATIO: f32 = 0.05;

/// Minimum power of the interfering cell that matters, relative to a tracked cell with two ports. With two ports, joint
/// detection computes far more sums.
///
/// Chosen: 7 dB. Two ports rarely fade together, and weaker interference costs little. With this threshold, computing
/// time is spent only during fades.
const MIN_RATIO_OF_TWO: f32 = 0.2;

/// Maximum number of subframes in which the interferer does not matter before it is dropped.
///
/// Chosen: one second. The lookout then searches for it again.
const MAX_ABSENT: u32 = 1000;

/// Number of subframes for which the channel is learnt before it is used.
///
/// Chosen: after these subframes, the estimate is as good as for a channel that is constant over this time.
const FIRST_SUBFRAMES: u32 = 3;

/// Number of subframes over which powers are averaged.
///
/// Chosen: a fade at walking pace is shorter than this.
const MEAN_OF: u32 = 100;

/// Minimum power of a second port relative to the first. If the power is lower, the cell has only one port.
///
/// Chosen: 5 dB below. The ports of one cell fade independently, but have the same mean power.
const MIN_PORT: f32 = 0.3;

impl Company {
    /// Creates the interfering cell of a sighting next to the tracked cell `own`, received by `antennas` antennas.
    pub fn new(own: &Cell, sight: DetectedCell, antennas: usize) -> Company {
        let cell = Cell { pci: sight.pci, ports: Ports::Two, ..*own };
        let symbols = cell.cp.symbols_per_subframe();
        let pilots_of = |number: usize, symbol: usize| -> Vec<(usize, usize, Complex32)> {
            let ports = (0..own.ports.count())
                .filter_map(|port| Some((port, crs::pilots(own, port, number, symbol)?)));
            ports
                .flat_map(|(port, pilots)| {
                    let place = move |at: usize| pilots.first + at * crs::Pilots::SPACING;
                    pilots
                        .values
                        .clone()
                        .into_iter()
                        .enumerate()
                        .map(move |(at, value)| (place(at), port, value))
                })
                .collect()
        };
        let heard = || Heard {
            estimator: Estimator::new(&cell),
            gains: vec![vec![Complex32::default(); cell.bandwidth.subcarriers()]; 2],
        };
        Company {
            cell,
            is_beside_two: own.ports == Ports::Two,
            layout: Layout::new(&cell),
            ahead: sight.ahead,
            antennas: (0..antennas).map(|_| heard()).collect(),
            own: (0..10)
                .map(|number| (0..symbols).map(|symbol| pilots_of(number, symbol)).collect())
                .collect(),
            work: Grid::new(&cell),
            delay: sight.delay,
            turns_per_subframe: 0.0,
            turns: 0.0,
            told: [Complex32::default(); 2],
            own_told: Complex32::default(),
            shares: [FIRST_SHARE; SYMBOLS],
            age: 0,
            absent: 0,
        }
    }

    /// Returns identity and present timing of the cell, in the form that the lookout reports.
    pub fn sight(&self) -> DetectedCell {
        DetectedCell { pci: self.cell.pci, ahead: self.ahead, delay: self.delay }
    }

    /// Returns the subframe that the interfering cell transmits during subframe `number` of the tracked cell.
    pub fn subframe(&self, number: usize) -> OtherSubframe<'_> {
        OtherSubframe { layout: &self.layout, number: (number + self.ahead) % 10 }
    }

    /// Estimates the channel from the reference signals in `symbols` of subframe `number`, received by the antennas. The
    /// first symbol must come last.
    pub fn receive(&mut self, number: usize, symbols: &[usize], antennas: &Antennas, numerology: Numerology) {
        self.turns += self.turns_per_subframe;
        self.turns -= libm::floor(self.turns);
        let its = (number + self.ahead) % 10;
        let per_subcarrier = self.delay / numerology.fft_size() as f64;
        let subframe = numerology.subframe_samples() as f64;
        let (mut neighbours, mut power, mut turn, mut noise) =
            (Complex32::default(), 0.0, Complex32::default(), 0.0);
        let count = self.cell.bandwidth.subcarriers();
        let ramp: Vec<Complex32> = (0..count).map(|k| narrow(phasor(per_subcarrier * k as f64))).collect();
        let mut told = [Complex32::default(); 2];
        let pairs = (self.antennas.len() * (2 * usize::from(self.cell.bandwidth.prbs()) - 1)) as f32;
        for (heard, (grid, channel)) in self.antennas.iter_mut().zip(antennas.every()) {
            heard.estimator.begin();
            for &symbol in symbols {
                let turns =
                    self.turns + self.turns_per_subframe * numerology.symbol_start(symbol) as f64 / subframe;
                let back = narrow(phasor(-turns));
                let row = self.work.symbol_mut(symbol);
                row.copy_from_slice(grid.symbol(symbol));
                for &(k, port, value) in &self.own[number][symbol] {
                    row[k] -= channel.gains()[port][k] * value;
                }
                row.iter_mut().zip(&ramp).for_each(|(value, ramp)| *value *= ramp * back);
                heard.estimator.add(its, symbol, &self.work);
                if symbol == 0 {
                    for (port, told) in told.iter_mut().enumerate() {
                        *told += self.layout.neighbours(its, port, self.work.symbol(0));
                    }
                }
            }
            let channel = heard.estimator.finish(its);
            // Phase in the middle of the control region.
            let turns = self.turns + self.turns_per_subframe * numerology.symbol_start(1) as f64 / subframe;
            let forth = narrow(phasor(turns));
            for (out, gains) in heard.gains.iter_mut().zip(channel.gains()) {
                for ((out, gain), ramp) in out.iter_mut().zip(gains).zip(&ramp) {
                    *out = gain * ramp.conj() * forth;
                }
            }
            let hints = heard.estimator.hints();
            neighbours += hints.neighbours;
            power += hints.power;
            turn += hints.turn;
            noise = hints.of_noise();
        }
        if neighbours.norm_sqr().sqrt() > noise * power {
            let per_sample =
                std::f64::consts::TAU * crs::Pilots::SPACING as f64 / numerology.fft_size() as f64;
            self.delay -= LOOP_SHARE * angle(neighbours) / per_sample;
            let late = numerology.cp().symbols_per_slot() - 3;
            let apart = (numerology.symbol_start(late) - numerology.symbol_start(0)) as f64 / subframe;
            let sure = f64::from(neighbours.norm_sqr().sqrt() / power);
            self.turns_per_subframe += TURN_SHARE * sure * sure * angle(turn) / std::f64::consts::TAU / apart;
        }
        for (mean, told) in self.told.iter_mut().zip(told) {
            if told.is_finite() {
                *mean += (told / pairs - *mean) / (self.age + 1).min(MEAN_OF) as f32;
            }
        }
        let hints = antennas.hints();
        let own_told = hints.neighbours / hints.pairs.max(1) as f32;
        if own_told.is_finite() {
            self.own_told += (own_told - self.own_told) / (self.age + 1).min(MEAN_OF) as f32;
        }
        self.age = self.age.saturating_add(1);
    }

    /// Returns, for each antenna, the received grid and the channels of both cells. Returns an empty list if the interferer
    /// is too weak to matter.
    pub fn both<'a>(&'a self, antennas: &'a Antennas) -> Vec<TwoCellSignal<'a>> {
        let ports = self.ports();
        let all = self.antennas.iter().zip(antennas.each());
        let both: Vec<TwoCellSignal<'_>> = all
            .filter_map(|(other, own)| {
                let (grid, own) = own?;
                Some(TwoCellSignal { grid, own, other: &other.gains[..ports] })
            })
            .collect();
        let least = if self.is_beside_two { MIN_RATIO_OF_TWO } else { MIN_RATIO };
        let (mut its, mut of_own) = (0.0, 0.0);
        for one in &both {
            let noise = one.own.noise().max(f32::MIN_POSITIVE);
            its += one.other.iter().map(|gains| correlate(gains, gains).re / gains.len() as f32).sum::<f32>()
                / (ports as f32 * noise);
            of_own += one.own.power_of_port() / noise;
        }
        if its > MIN_POWER && its > least * of_own && self.age > FIRST_SUBFRAMES { both } else { Vec::new() }
    }

    /// Mean power relative to the tracked cell over the last subframes, in dB; `None` until [`MEAN_OF`] subframes were
    /// averaged.
    pub fn louder_db(&self) -> Option<f32> {
        let [its, own] =
            [self.told[0], self.own_told].map(|told| told.norm_sqr().sqrt().max(f32::MIN_POSITIVE));
        (self.age >= MEAN_OF).then(|| 10.0 * libm::log10f(its / own))
    }

    /// Number of ports of the cell, 1 or 2.
    fn ports(&self) -> usize {
        let [first, second] = self.told.map(|told| told.norm_sqr().sqrt());
        if second > MIN_PORT * first { 2 } else { 1 }
    }

    /// Returns the shares of the noise that remain without this cell, by control symbol.
    pub fn shares(&self) -> [f32; SYMBOLS] {
        self.shares
    }

    /// Updates the shares of [`Company::shares`] with the shares measured in a subframe.
    pub fn learn(&mut self, shares: [f32; SYMBOLS]) {
        self.absent = 0;
        for (mean, share) in self.shares.iter_mut().zip(shares) {
            if share.is_finite() {
                *mean += 0.3 * (share - *mean);
            }
        }
    }

    /// Drops the channel estimate after a loss of samples.
    pub fn forget(&mut self) {
        self.antennas.iter_mut().for_each(|one| one.estimator.forget());
    }

    /// Counts a subframe in which the cell was too weak to matter.
    pub fn is_absent(&mut self) {
        self.absent = self.absent.saturating_add(1);
    }

    /// Returns whether the cell is gone.
    pub fn is_gone(&self) -> bool {
        self.absent > MAX_ABSENT
    }
}

/// Initial ratio of the noise without the interfering cell to the noise with it.
///
/// Chosen: the estimate converges within ten subframes from above and from below.
const FIRST_SHARE: f32 = 0.1;

/// Loop gain for timing errors: the share corrected per subframe.
const LOOP_SHARE: f64 = 0.05;

/// Loop gain for carrier errors: the share corrected per subframe.
const TURN_SHARE: f64 = 0.01;

fn narrow(of: num_complex::Complex64) -> Complex32 {
    Complex32::new(of.re as f32, of.im as f32)
}
