//! Another cell whose symbols begin together with those of the cell that is followed: its channel, by its reference signals.
//!
//! It is found by its synchronisation signals in what is received anyway ([`super::lookout`]).
//!
//! Where the followed cell fades, the other may be the louder. It is no noise: what it may send is known, so that the bits
//! of both can be told apart ([`crate::observation`]).

use num_complex::Complex32;

use super::antennas::Antennas;
use super::correlate;
use super::lookout::Sight;
use super::{angle, phasor};
use crate::cell::{Cell, Ports};
use crate::channel::Estimator;
use crate::grid::Grid;
use crate::numerology::Numerology;
use crate::observation::{Both, Layout, SYMBOLS};
use crate::sequence::crs;

/// The other cell, as it is received.
pub struct Company {
    /// With two ports, of which it may use one.
    cell: Cell,
    /// Whether the followed cell has two ports.
    is_beside_two: bool,
    layout: Layout,
    /// By how many subframes its numbers are ahead: 0 or 5.
    ahead: usize,
    antennas: Vec<Heard>,
    /// By subframe, symbol: the reference signals of the followed cell, with subcarrier and port.
    own: Vec<Vec<Vec<(usize, usize, Complex32)>>>,
    work: Grid,
    /// By how many samples it is later than the followed cell, and how far its carrier is above, in turns per subframe.
    delay: f64,
    turns_per_subframe: f64,
    turns: f64,
    /// Mean products of neighbours among the reference signals of the first symbol: of its ports, and of the followed cell.
    /// Their size is the power, to which noise adds nothing.
    told: [Complex32; 2],
    own_told: Complex32,
    /// The noise without this cell, over that with it, by control symbol.
    shares: [f32; SYMBOLS],
    /// Subframes since it was found, and since it was last loud enough to matter.
    age: u32,
    absent: u32,
}

/// What an antenna receives of it.
struct Heard {
    estimator: Estimator,
    /// By port, on every subcarrier.
    gains: Vec<Vec<Complex32>>,
}

/// The other cell matters if its power is at least this over all that disturbs, and over that of the followed cell.
///
/// Chosen: 7 dB below all that disturbs, and 13 dB below the followed cell, it costs hardly a message.
const LEAST_POWER: f32 = 0.2;
const LEAST_RATIO: f32 = 0.05;

/// The same over a followed cell of two ports, of which far more sums have to be made.
///
/// Chosen: 7 dB. Two ports seldom fade together, and what is below costs little; so that time is spent on fades alone.
const LEAST_RATIO_OF_TWO: f32 = 0.2;

/// After so many subframes in which it did not matter, it is forgotten.
///
/// Chosen: a second. It is looked for again.
const MOST_ABSENT: u32 = 1000;

/// So many subframes are taken to learn it before it is made use of.
///
/// Chosen: its channel is then known as well as one that holds still for these.
const FIRST_SUBFRAMES: u32 = 3;

/// Subframes over which powers are averaged.
///
/// Chosen: a fade at walking pace is over by then.
const MEAN_OF: u32 = 100;

/// A port with less than this share of the power of the first is none.
///
/// Chosen: 5 dB. Ports of one cell fade apart, but not in the mean.
const LEAST_PORT: f32 = 0.3;

impl Company {
    /// A cell that was seen beside `own`, on `antennas` antennas.
    pub fn new(own: &Cell, sight: Sight, antennas: usize) -> Company {
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

    /// The cell as a look would see it now.
    pub fn sight(&self) -> Sight {
        Sight { pci: self.cell.pci, ahead: self.ahead, delay: self.delay }
    }

    /// What it sends where, and the number of its subframe while that of the followed cell is `number`.
    pub fn layout(&self, number: usize) -> (&Layout, usize) {
        (&self.layout, (number + self.ahead) % 10)
    }

    /// Learns its channel from the reference signals in `symbols` of subframe `number`, which the antennas received, the
    /// first symbol last.
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
            // In the middle of the control region.
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

    /// What each antenna received of both cells, if it matters that the other is there; empty if not.
    pub fn both<'a>(&'a self, antennas: &'a Antennas) -> Vec<Both<'a>> {
        let ports = self.ports();
        let all = self.antennas.iter().zip(antennas.each());
        let both: Vec<Both<'_>> = all
            .filter_map(|(other, own)| {
                let (grid, own) = own?;
                Some(Both { grid, own, other: &other.gains[..ports] })
            })
            .collect();
        let least = if self.is_beside_two { LEAST_RATIO_OF_TWO } else { LEAST_RATIO };
        let (mut its, mut of_own) = (0.0, 0.0);
        for one in &both {
            let noise = one.own.noise().max(f32::MIN_POSITIVE);
            its += one.other.iter().map(|gains| correlate(gains, gains).re / gains.len() as f32).sum::<f32>()
                / (ports as f32 * noise);
            of_own += one.own.power_of_port() / noise;
        }
        if its > LEAST_POWER && its > least * of_own && self.age > FIRST_SUBFRAMES {
            both
        } else {
            Vec::new()
        }
    }

    /// How much louder than the followed cell it was in the mean of the last subframes, in dB; `None` before it is known.
    pub fn louder_db(&self) -> Option<f32> {
        let [its, own] =
            [self.told[0], self.own_told].map(|told| told.norm_sqr().sqrt().max(f32::MIN_POSITIVE));
        (self.age >= MEAN_OF).then(|| 10.0 * libm::log10f(its / own))
    }

    /// How many ports it has.
    fn ports(&self) -> usize {
        let [first, second] = self.told.map(|told| told.norm_sqr().sqrt());
        if second > LEAST_PORT * first { 2 } else { 1 }
    }

    /// The shares of the noise that are left without it, by control symbol.
    pub fn shares(&self) -> [f32; SYMBOLS] {
        self.shares
    }

    /// Takes what a subframe told of them.
    pub fn learn(&mut self, shares: [f32; SYMBOLS]) {
        self.absent = 0;
        for (mean, share) in self.shares.iter_mut().zip(shares) {
            if share.is_finite() {
                *mean += 0.3 * (share - *mean);
            }
        }
    }

    /// Forgets its channel: samples were lost.
    pub fn forget(&mut self) {
        self.antennas.iter_mut().for_each(|one| one.estimator.forget());
    }

    /// Counts a subframe in which it did not matter.
    pub fn is_absent(&mut self) {
        self.absent = self.absent.saturating_add(1);
    }

    /// Whether it is gone.
    pub fn is_gone(&self) -> bool {
        self.absent > MOST_ABSENT
    }
}

/// The noise without the other cell is taken for this share of that with it, until it is known.
///
/// Chosen: it is learnt within ten subframes from both sides.
const FIRST_SHARE: f32 = 0.1;

/// The shares of errors of timing and of the carrier that are corrected at once.
const LOOP_SHARE: f64 = 0.05;
const TURN_SHARE: f64 = 0.01;

fn narrow(of: num_complex::Complex64) -> Complex32 {
    Complex32::new(of.re as f32, of.im as f32)
}
