//! Background users of one carrier that are not devices of the scenario: users that only exchange control messages, users
//! with occasional downloads, and users with an infinite queue.
//!
//! Source: PBE-CC §4.2.1; PBE-CC SIGCOMM §6.2 (how many there are, and how few PRBs they use)

use airpace_core::{Draws, Rng, Streams};
use airpace_radio::Rnti;

use super::config::BackgroundConfig;
use super::user::Session;

/// Control-only users of one carrier: each is present for one slot, and new users keep arriving.
#[derive(Debug)]
pub(super) struct Control {
    per_ms: f64,
    rntis: Vec<Rnti>,
    /// Messages waiting for a slot with free PRBs.
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
        Control { per_ms: config.control_per_second() / 1000.0, rntis, waiting: Vec::new(), rng }
    }

    /// Draws the control-only users that appear in this millisecond.
    ///
    /// Source: PBE-CC §4.2.1 (70 % of control-only users are given exactly four PRBs, the rest fewer; Poisson is
    /// Chosen)
    pub(super) fn appear(&mut self, carrier_prbs: u16) {
        if self.per_ms == 0.0 {
            return;
        }
        for _ in 0..self.rng.poisson(self.per_ms) {
            let rnti = self.rntis[self.rng.below(self.rntis.len() as u64) as usize];
            let prbs = if self.rng.chance(0.7) { 4 } else { 1 + self.rng.below(3) as u16 };
            self.waiting.push(ControlGrant { rnti, prbs: prbs.min(carrier_prbs) });
        }
    }
}

/// Maximum number of simultaneous background downloads on a carrier. Downloads that arrive beyond this number are
/// rejected.
pub(super) const SESSION_PLACES: usize = 32;

/// Arrival process of downloads on one carrier.
#[derive(Debug)]
pub(super) struct Arrivals {
    per_ms: f64,
    mean_bits: f64,
    bits_per_ms: u64,
    draws: Draws,
}

impl Arrivals {
    /// Arrivals with a mean demand of `load` times the PRBs of the carrier (`prbs_per_ms`). The arrival rate follows from the mean size
    /// of a download and the mean number of PRBs per bit (`prbs_per_bit`, averaged over the background users that can
    /// have a download).
    pub(super) fn new(
        config: &BackgroundConfig,
        prbs_per_ms: f64,
        prbs_per_bit: f64,
        draws: Draws,
    ) -> Arrivals {
        let mean_bits = config.mean_kilobytes * 8e3;
        let per_ms = config.load() * prbs_per_ms / (mean_bits * prbs_per_bit);
        let bits_per_ms = match config.rate_mbps {
            0.0 => u64::MAX,
            mbps => libm::ceil(mbps * 1e3) as u64,
        };
        Arrivals { per_ms, mean_bits, bits_per_ms, draws }
    }

    /// The downloads that arrive in millisecond `now`, each with the user to which it is assigned. `vacant` are the users
    /// without a download. If no user is vacant, the remaining downloads are rejected.
    ///
    /// All vacant users are equally likely: each has a random number, and the user with the highest number gets the
    /// download. If one more user is vacant in another run, all downloads therefore have the same users in both runs,
    /// except the downloads of that additional user.
    pub(super) fn sessions<'a>(
        &'a self,
        now: u64,
        vacant: &'a mut Vec<u16>,
    ) -> impl Iterator<Item = (Session, u16)> + 'a {
        let count = match self.per_ms {
            0.0 => 0,
            per_ms => self.draws.at(now, 0).poisson(per_ms.min(20.0)),
        };
        (1..=u64::from(count)).map_while(move |download| {
            let draws = self.draws.at(now, download).draws();
            let number = |user: u16| draws.at(1, user.into()).uniform();
            let by_number =
                |&(_, one): &(usize, u16), &(_, other): &(usize, u16)| number(one).total_cmp(&number(other));
            let (place, user) = vacant.iter().copied().enumerate().max_by(by_number)?;
            vacant.swap_remove(place);
            let to_come = libm::ceil(draws.at(0, 0).exponential(self.mean_bits)).max(8.0) as u64;
            Some((Session { to_come, bits_per_ms: self.bits_per_ms, waiting: 0 }, user))
        })
    }
}

/// SINRs of `count` background users in dB, spread evenly over their distribution, in random order.
///
/// Chosen: the SINRs are spread evenly, so that a few users represent the distribution with any seed. No user is below
/// 0 dB, because such a user would have selected another cell.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn arrivals() -> Arrivals {
        let config = BackgroundConfig { load: Some(0.5), ..BackgroundConfig::default() };
        Arrivals::new(&config, 100.0, 1e-4, Streams::new(1).draws("arrivals"))
    }

    /// The downloads of 20,000 subframes, as (subframe, bits, user). `vacant` returns the vacant users of a subframe.
    fn sessions(vacant: impl Fn(u64) -> Vec<u16>) -> Vec<(u64, u64, u16)> {
        let arrivals = arrivals();
        let of = |now| {
            let mut vacant = vacant(now);
            let found: Vec<_> = arrivals.sessions(now, &mut vacant).collect();
            found.into_iter().map(move |(session, user)| (now, session.to_come, user))
        };
        (0..20_000).flat_map(of).collect()
    }

    #[test]
    fn a_download_takes_any_vacant_place_and_one_more_place_takes_only_its_share() {
        let all = sessions(|_| (0..8).collect());
        assert!(all.len() > 500, "{} downloads", all.len());
        let mut counts = [0; 8];
        all.iter().for_each(|&(_, _, user)| counts[usize::from(user)] += 1);
        let even = all.len() as f64 / 8.0;
        let uneven: f64 = counts.iter().map(|&count| (f64::from(count) - even).powi(2) / even).sum();
        // A chi-square variable with 7 degrees of freedom exceeds 24.3 in one of a thousand cases.
        assert!(uneven < 24.3, "places are taken {counts:?} times");

        let without_five = sessions(|_| (0..8).rev().filter(|&user| user != 5).collect());
        assert_eq!(all.len(), without_five.len(), "the same downloads come");
        let mut last = None;
        for (one, other) in all.iter().zip(&without_five) {
            assert_eq!((one.0, one.1), (other.0, other.1));
            // The user of a second download in a subframe depends on the user of the first download.
            let is_first = last.replace(one.0) != Some(one.0);
            let is_same = one.2 == other.2 || one.2 == 5;
            assert!(is_same || !is_first, "{one:?} took another place than {other:?}");
        }
    }

    #[test]
    fn downloads_that_found_no_place_change_nothing_later() {
        let full_at_first = sessions(|now| if now < 10_000 { vec![] } else { (0..8).collect() });
        let later: Vec<_> = sessions(|_| (0..8).collect()).into_iter().filter(|it| it.0 >= 10_000).collect();
        assert_eq!(full_at_first, later);
    }
}
