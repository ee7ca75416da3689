//! Users on one carrier that are not devices of the scenario: users that only exchange control messages, users that
//! download something now and then, and users whose data never ends.
//!
//! Source: PBE-CC §4.2.1 and §6.1 for how many there are and how few PRBs they use

use airpace_core::{Rng, Streams};
use airpace_radio::Rnti;

use super::config::BackgroundConfig;
use super::user::Session;

/// Control-only users of one carrier: each appears for one subframe, and new ones keep coming.
#[derive(Debug)]
pub(super) struct Control {
    per_subframe: f64,
    rntis: Vec<Rnti>,
    /// Messages that wait for a subframe with room.
    pub waiting: Vec<ControlGrant>,
    rng: Rng,
}

/// One control message.
#[derive(Clone, Copy, Debug)]
pub(super) struct ControlGrant {
    pub rnti: Rnti,
    pub prbs: u16,
}

impl Control {
    pub(super) fn new(config: &BackgroundConfig, rntis: Vec<Rnti>, rng: Rng) -> Control {
        Control { per_subframe: config.control_per_second() / 1000.0, rntis, waiting: Vec::new(), rng }
    }

    /// Draws the control-only users that appear in this subframe.
    ///
    /// Source: PBE-CC §4.2.1 (70 % of control-only users are given exactly four PRBs, the rest fewer; Poisson is
    /// Chosen)
    pub(super) fn appear(&mut self, carrier_prbs: u16) {
        if self.per_subframe == 0.0 {
            return;
        }
        for _ in 0..self.rng.poisson(self.per_subframe) {
            let rnti = self.rntis[self.rng.below(self.rntis.len() as u64) as usize];
            let prbs = if self.rng.chance(0.7) { 4 } else { 1 + self.rng.below(3) as u16 };
            self.waiting.push(ControlGrant { rnti, prbs: prbs.min(carrier_prbs) });
        }
    }
}

/// Arrivals of downloads on one carrier.
#[derive(Debug)]
pub(super) struct Arrivals {
    per_subframe: f64,
    mean_bits: f64,
    bits_per_subframe: u64,
    rng: Rng,
}

impl Arrivals {
    /// Arrivals that ask for `load` of the carrier on average. The rate follows from the mean size of a download and
    /// the mean cost of a bit (`prbs_per_bit`, averaged over the places that downloads may take).
    pub(super) fn new(config: &BackgroundConfig, carrier_prbs: u16, prbs_per_bit: f64, rng: Rng) -> Arrivals {
        let mean_bits = config.mean_kilobytes * 8e3;
        let per_subframe = config.load() * f64::from(carrier_prbs) / (mean_bits * prbs_per_bit);
        let bits_per_subframe = match config.rate_mbps {
            0.0 => u64::MAX,
            mbps => libm::ceil(mbps * 1e3) as u64,
        };
        Arrivals { per_subframe, mean_bits, bits_per_subframe, rng }
    }

    /// How many downloads arrive in this subframe.
    pub(super) fn count(&mut self) -> u32 {
        if self.per_subframe > 0.0 { self.rng.poisson(self.per_subframe.min(20.0)) } else { 0 }
    }

    /// One download, and which of the `places` free places it takes.
    pub(super) fn session(&mut self, places: usize) -> (Session, usize) {
        let to_come = libm::ceil(self.rng.exponential(self.mean_bits)).max(8.0) as u64;
        let place = self.rng.below(places as u64) as usize;
        (Session { to_come, bits_per_subframe: self.bits_per_subframe, waiting: 0 }, place)
    }
}

/// SINRs of `count` background users in dB, spread evenly over their distribution, in random order.
///
/// Chosen: even spreading, so that a few users represent the distribution with any seed. No user is below 0 dB, because
/// such a user would have gone to another cell.
pub(super) fn sinrs_db(config: &BackgroundConfig, count: usize, streams: &Streams, name: &str) -> Vec<f64> {
    let mut rng = streams.stream(name);
    let mut draws: Vec<f64> = (0..count * 16).map(|_| rng.normal()).collect();
    draws.sort_by(f64::total_cmp);
    let middle_of_each = draws.chunks_exact(16).map(|chunk| (chunk[7] + chunk[8]) / 2.0);
    let sinr_db = |normal: f64| (config.sinr_mean_db + config.sinr_deviation_db * normal).max(0.0);
    let mut sinrs_db: Vec<f64> = middle_of_each.map(sinr_db).collect();
    rng.shuffle(&mut sinrs_db);
    sinrs_db
}

/// C-RNTIs, each given once until all 65,463 are used.
#[derive(Debug)]
pub(super) struct Rntis {
    next: u64,
}

impl Rntis {
    pub(super) fn new(mut rng: Rng) -> Rntis {
        Rntis { next: rng.below(COUNT) }
    }

    /// A C-RNTI that no user has.
    pub(super) fn assign(&mut self) -> Rnti {
        // The stride has no common factor with the count, so all C-RNTIs are used before one is used again.
        self.next = (self.next + 7919) % COUNT;
        Rnti(FIRST + self.next as u16)
    }
}

/// C-RNTIs are 0x003D…0xFFF3.
///
/// Source: TS 36.321 §7.1 Table 7.1-1
const FIRST: u16 = 0x3D;
const COUNT: u64 = 0xFFF3 - 0x3D + 1;
