//! Rate limit for addresses that try to guess the key. A key has 128 bits, so guessing does not succeed; the limit
//! bounds the work that the attempts cause.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use airpace_core::Time;

/// Number of wrong proofs after which an address must wait.
///
/// Chosen: more attempts than a person needs who mistypes a key.
const MAX_WRONG_PROOFS: u32 = 10;

/// Waiting time after the last wrong proof. Older entries are forgotten.
const REST: Duration = Duration::from_secs(60);

/// Maximum number of addresses stored.
const PLACES: usize = 4096;

/// Number and time of wrong proofs per source address.
#[derive(Default)]
pub struct Guesses {
    places: BTreeMap<IpAddr, (u32, Time)>,
}

impl Guesses {
    /// Whether proofs from this address are ignored now.
    pub fn must_wait(&self, now: Time, from: IpAddr) -> bool {
        self.places
            .get(&place(from))
            .is_some_and(|(count, last)| *count >= MAX_WRONG_PROOFS && now < *last + REST)
    }

    /// Records a wrong proof.
    pub fn wrong(&mut self, now: Time, from: IpAddr) {
        self.places.retain(|_, (_, last)| now < *last + REST);
        if self.places.len() >= PLACES {
            let oldest = self.places.iter().min_by_key(|(_, (_, last))| *last).map(|(place, _)| *place);
            oldest.map(|oldest| self.places.remove(&oldest));
        }
        let (count, last) = self.places.entry(place(from)).or_insert((0, now));
        *count += 1;
        *last = now;
    }
}

/// Reduces an IPv6 address to its first 64 bits: the user can choose the others freely.
fn place(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6((u128::from(address) >> 64 << 64).into()),
        v4 => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_guesses_waits_and_others_do_not() {
        let mut guesses = Guesses::default();
        let [one, other, v6, v6_near]: [IpAddr; 4] =
            ["192.0.2.1", "192.0.2.2", "2001:db8::1", "2001:db8::2"].map(|text| text.parse().unwrap());
        for second in 0..10 {
            assert!(!guesses.must_wait(Time::from_secs(second), one));
            guesses.wrong(Time::from_secs(second), one);
            guesses.wrong(Time::from_secs(second), v6);
        }
        let now = Time::from_secs(10);
        assert!(guesses.must_wait(now, one) && !guesses.must_wait(now, other));
        assert!(guesses.must_wait(now, v6_near), "a user of IPv6 has 2^64 addresses");
        assert!(!guesses.must_wait(Time::from_secs(70), one), "after a minute it may try again");
    }

    #[test]
    fn a_flood_of_addresses_takes_bounded_memory() {
        let mut guesses = Guesses::default();
        for address in 0..10_000_u32 {
            guesses.wrong(Time::from_nanos(address.into()), IpAddr::V4(address.into()));
        }
        assert_eq!(guesses.places.len(), PLACES);
    }
}
