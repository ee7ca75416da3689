//! Multipath fading: taps with the delays of a profile. Each tap is a sum of sinusoids (Jakes' model). The first tap of a
//! profile with line of sight contains one more sinusoid.
//!
//! ```text
//! h_l(t) = Σ_n a_n exp(j (2π f_n t + φ_n)),  f_n = f_d cos α_n      gain of tap l
//! H(f, t) = Σ_l h_l(t) exp(-j 2π f τ_l),     E|H|² = 1              transfer function
//! ```
//!
//! Every sinusoid is a phasor rotated by a fixed step per slot; at every multiple of [`BLOCK`] slots it is set to its
//! exact phase. The gain in a slot is therefore always the result of the same operations, even if earlier slots were not
//! computed. A slot of LTE is a subframe.

use airpace_core::Rng;

use super::Grid;

mod profile;

pub use profile::FadingProfile;
pub(super) use profile::NOMINAL_DELAY_SPREAD_NS;

/// The gain of one propagation path as a sum of sinusoids.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tap {
    /// Excess delay in nanoseconds.
    pub delay_ns: f64,
    /// The sinusoids whose sum is the gain of the tap.
    pub sinusoids: Vec<Sinusoid>,
}

/// A rotating phasor: amplitude · exp(j (2π · doppler · t + phase)).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sinusoid {
    /// Rotations per second; negative for a path that arrives from behind the moving device.
    pub doppler_hz: f64,
    /// Phase at the start of the run in radians.
    pub phase_rad: f64,
    /// Amplitude. For a mean power of 1, the squares of the amplitudes of all sinusoids of all taps sum to 1.
    pub amplitude: f64,
}

/// Draws the taps of a profile. The sinusoids of a tap have random phases and equally spaced angles of arrival, of
/// which the first is random. The path with line of sight is one sinusoid with a random phase in the first tap.
/// [`FadingProfile::Flat`] has no multipath: nothing is drawn, and there are no taps. Only the delays of TDL profiles depend on
/// `delay_spread_ns`.
///
/// Chosen: the random first angle, with which the Doppler shifts of a tap differ from each other and from the Doppler
/// shifts of other taps.
pub fn draw_taps(
    profile: FadingProfile,
    delay_spread_ns: f64,
    doppler_hz: f64,
    sinusoids_per_tap: u16,
    rng: &mut Rng,
) -> Vec<Tap> {
    let paths = profile.paths(delay_spread_ns);
    let power_of = |power_db: f64| libm::pow(10.0, power_db / 10.0);
    let los = profile.los_power_db().map(power_of);
    let powers = paths.iter().map(|&(_, power_db)| power_of(power_db));
    let total = powers.clone().sum::<f64>() + los.unwrap_or(0.0);
    let count = f64::from(sinusoids_per_tap.max(1));
    let mut taps = Vec::new();
    for (&(delay_ns, _), power) in paths.iter().zip(powers) {
        let first = rng.uniform();
        let sinusoids = (0..sinusoids_per_tap.max(1))
            .map(|n| Sinusoid {
                doppler_hz: doppler_hz * libm::cos(TURN * (f64::from(n) + first) / count),
                phase_rad: TURN * rng.uniform(),
                amplitude: libm::sqrt(power / total / count),
            })
            .collect();
        taps.push(Tap { delay_ns, sinusoids });
    }
    if let (Some(power), Some(tap)) = (los, taps.first_mut()) {
        tap.sinusoids.push(Sinusoid {
            doppler_hz: LOS_DOPPLER_SHARE * doppler_hz,
            phase_rad: TURN * rng.uniform(),
            amplitude: libm::sqrt(power / total),
        });
    }
    taps
}

/// Doppler shift of the path with line of sight as a share of the maximum Doppler shift.
///
/// Source: TR 38.901 §7.7.2 (a peak of the Doppler spectrum at 0.7 times the maximum Doppler shift)
const LOS_DOPPLER_SHARE: f64 = 0.7;

/// The fading of one carrier for one device: a power gain per PRB.
#[derive(Clone, Debug)]
pub struct Fading {
    sinusoids: Vec<Sinusoid>,
    /// Number of sinusoids of each tap, in order.
    counts: Vec<usize>,
    /// Real parts of the phasors in `slot`. `im` are the imaginary parts, and the next two fields are the rotation of each
    /// phasor per slot.
    re: Vec<f64>,
    im: Vec<f64>,
    turn_re: Vec<f64>,
    turn_im: Vec<f64>,
    /// Real part of exp(-j 2π f τ) for every tap (rows) at every PRB's centre (columns). `delay_im` is the imaginary
    /// part.
    delay_re: Vec<f64>,
    delay_im: Vec<f64>,
    slot: Option<u64>,
    /// Duration of a slot in s.
    slot_s: f64,
    /// Real part of the transfer function at every PRB. The next fields are its imaginary part and its power.
    transfer_re: Vec<f64>,
    transfer_im: Vec<f64>,
    gains: Vec<f64>,
}

/// Slots between two exact evaluations of the phases.
pub const BLOCK: u64 = 32;

const TURN: f64 = 2.0 * std::f64::consts::PI;

impl Fading {
    /// Fading with these taps on this grid.
    pub fn new(taps: &[Tap], grid: Grid) -> Fading {
        let sinusoids: Vec<Sinusoid> = taps.iter().flat_map(|tap| tap.sinusoids.iter().copied()).collect();
        let slot_s = grid.slot_s();
        let turn = |s: &Sinusoid| TURN * s.doppler_hz * slot_s;
        let prbs = usize::from(grid.prbs);
        let delays: Vec<f64> = taps
            .iter()
            .flat_map(|tap| (0..grid.prbs).map(|prb| -TURN * grid.prb_centre_hz(prb) * tap.delay_ns * 1e-9))
            .collect();
        Fading {
            counts: taps.iter().map(|tap| tap.sinusoids.len()).collect(),
            re: vec![0.0; sinusoids.len()],
            im: vec![0.0; sinusoids.len()],
            turn_re: sinusoids.iter().map(|s| libm::cos(turn(s))).collect(),
            turn_im: sinusoids.iter().map(|s| libm::sin(turn(s))).collect(),
            sinusoids,
            delay_re: delays.iter().map(|&phase| libm::cos(phase)).collect(),
            delay_im: delays.iter().map(|&phase| libm::sin(phase)).collect(),
            slot: None,
            slot_s,
            transfer_re: vec![0.0; prbs],
            transfer_im: vec![0.0; prbs],
            gains: vec![0.0; prbs],
        }
    }

    /// Whether the gains never change.
    pub fn is_static(&self) -> bool {
        self.sinusoids.iter().all(|s| s.doppler_hz == 0.0)
    }

    /// Power gain |H|² at the centre of every PRB in a slot, lowest frequency first.
    ///
    /// Chosen: one value for the 180 kHz of a PRB of LTE. Within such a PRB, the largest delay of ETU rotates the phase by less
    /// than 360°, and the largest delays of the other profiles by less than 180°. LENA does the same. A PRB of NR with
    /// 120 kHz is 1.44 MHz wide: less than the coherence bandwidth, which is 1 / (5 · delay spread), up to a delay spread of
    /// 139 ns.
    pub fn at(&mut self, slot: u64) -> &[f64] {
        if self.slot != Some(slot) {
            self.turn_to(slot);
            self.sum_over_taps();
        }
        &self.gains
    }

    fn turn_to(&mut self, slot: u64) {
        let start = slot - slot % BLOCK;
        let mut at = match self.slot {
            Some(at) if (start..=slot).contains(&at) => at,
            _ => {
                self.set_exactly(start);
                start
            }
        };
        while at < slot {
            let phasors = self.re.iter_mut().zip(&mut self.im);
            for ((re, im), (turn_re, turn_im)) in phasors.zip(self.turn_re.iter().zip(&self.turn_im)) {
                (*re, *im) = (*re * turn_re - *im * turn_im, *re * turn_im + *im * turn_re);
            }
            at += 1;
        }
        self.slot = Some(slot);
    }

    fn set_exactly(&mut self, slot: u64) {
        for ((s, re), im) in self.sinusoids.iter().zip(&mut self.re).zip(&mut self.im) {
            let turns = s.doppler_hz * (slot as f64 * self.slot_s);
            let phase = s.phase_rad + TURN * (turns - libm::floor(turns));
            (*re, *im) = (s.amplitude * libm::cos(phase), s.amplitude * libm::sin(phase));
        }
    }

    fn sum_over_taps(&mut self) {
        let prbs = self.gains.len();
        self.transfer_re.fill(0.0);
        self.transfer_im.fill(0.0);
        let mut first = 0;
        for (tap, &count) in self.counts.iter().enumerate() {
            let re: f64 = self.re[first..first + count].iter().sum();
            let im: f64 = self.im[first..first + count].iter().sum();
            first += count;
            let row = tap * prbs..(tap + 1) * prbs;
            let delays = self.delay_re[row.clone()].iter().zip(&self.delay_im[row]);
            let sums = self.transfer_re.iter_mut().zip(&mut self.transfer_im);
            for ((sum_re, sum_im), (delay_re, delay_im)) in sums.zip(delays) {
                *sum_re += re * delay_re - im * delay_im;
                *sum_im += re * delay_im + im * delay_re;
            }
        }
        for ((gain, re), im) in self.gains.iter_mut().zip(&self.transfer_re).zip(&self.transfer_im) {
            *gain = re * re + im * im;
        }
    }
}

#[cfg(test)]
mod tests;
