//! Slots for connections, with a fair share per client.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Interval at which a waiting client retries to get a slot.
const ASK_AGAIN: Duration = Duration::from_millis(20);

/// Reason why a client does not get a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lack {
    /// All slots are taken.
    Full,
    /// The client has its full share; the remaining slots are reserved for other clients.
    Share,
}

/// All slots of a proxy.
#[derive(Debug)]
pub(super) struct Places {
    max: usize,
    free: Arc<Semaphore>,
    taken: Mutex<Taken>,
}

/// Number of taken slots: all, and per client.
#[derive(Debug, Default)]
struct Taken {
    all: usize,
    by_client: BTreeMap<IpAddr, usize>,
}

/// A taken slot, which becomes free on drop.
#[derive(Debug)]
pub(super) struct Place {
    places: Arc<Places>,
    client: IpAddr,
    _permit: OwnedSemaphorePermit,
}

impl Taken {
    /// Whether this client may take another of `max` slots. The first half of all slots is given out without limit per
    /// client. After that, a client's limit is `max` divided by the number of clients plus one (at least 1).
    fn may_take(&self, client: IpAddr, max: usize) -> Result<(), Lack> {
        let own = self.by_client.get(&client).copied().unwrap_or(0);
        let clients = self.by_client.len() + usize::from(own == 0);
        let share = (max / (clients + 1)).max(1);
        match self.all {
            all if all >= max => Err(Lack::Full),
            all if all >= max.div_ceil(2) && own >= share => Err(Lack::Share),
            _ => Ok(()),
        }
    }
}

impl Places {
    /// Creates this many free slots.
    pub(super) fn new(max: usize) -> Arc<Places> {
        Arc::new(Places { max, free: Arc::new(Semaphore::new(max)), taken: Mutex::default() })
    }

    /// Takes a slot for a client.
    pub(super) fn take(self: &Arc<Self>, client: IpAddr) -> Result<Place, Lack> {
        let client = owner(client);
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        taken.may_take(client, self.max)?;
        let permit = Arc::clone(&self.free).try_acquire_owned().map_err(|_| Lack::Full)?;
        taken.all += 1;
        *taken.by_client.entry(client).or_default() += 1;
        drop(taken);
        Ok(Place { places: Arc::clone(self), client, _permit: permit })
    }

    /// Waits until a client gets a slot.
    pub(super) async fn wait(self: Arc<Self>, client: IpAddr) -> Place {
        loop {
            match self.take(client) {
                Ok(place) => return place,
                Err(_) => tokio::time::sleep(ASK_AGAIN).await,
            }
        }
    }

    /// Waits until all slots are free.
    pub(super) async fn all_free(&self) {
        let all = u32::try_from(self.max).unwrap_or(u32::MAX);
        let _ = self.free.acquire_many(all).await;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.taken.lock().unwrap_or_else(PoisonError::into_inner);
        taken.all -= 1;
        if let Some(count) = taken.by_client.get_mut(&self.client) {
            *count -= 1;
            if *count == 0 {
                taken.by_client.remove(&self.client);
            }
        }
    }
}

/// Client to which an address is attributed: an IPv4 address, or the /64 network of an IPv6 address.
///
/// Source: RFC 6177 §2 (a site has at least a /64)
fn owner(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(ip) => ip.into(),
        IpAddr::V6(ip) => Ipv6Addr::from_bits(ip.to_bits() >> 64 << 64).into(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn client(number: u8) -> IpAddr {
        [10, 0, 0, number].into()
    }

    #[test]
    fn a_client_that_waits_has_the_next_place() {
        let places = Places::new(2);
        let first = places.take(client(1)).unwrap();
        assert_eq!(places.take(client(1)).unwrap_err(), Lack::Share, "the other one is for other clients");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let second = runtime.block_on(async {
            let waiting = tokio::spawn(Arc::clone(&places).wait(client(1)));
            tokio::task::yield_now().await;
            assert!(!waiting.is_finished());
            drop(first);
            waiting.await.unwrap()
        });
        assert_eq!(second.client, client(1));
    }

    #[test]
    fn one_client_never_locks_others_out() {
        let places = Places::new(20);
        let mut greedy: Vec<Place> = std::iter::from_fn(|| places.take(client(1)).ok()).collect();
        assert_eq!(greedy.len(), 10);
        assert_eq!(places.take(client(1)).unwrap_err(), Lack::Share);
        let others: Vec<Place> = (2..=11).map(|number| places.take(client(number)).unwrap()).collect();
        assert_eq!(places.take(client(12)).unwrap_err(), Lack::Full);
        drop(greedy.pop());
        assert_eq!(places.take(client(1)).unwrap_err(), Lack::Share, "it has more than its share");
        drop(places.take(client(12)).unwrap());
        drop((greedy, others));
        assert!(places.taken.lock().unwrap().by_client.is_empty());
        assert_eq!(places.free.available_permits(), 20);
    }

    #[test]
    fn a_network_of_ipv6_is_one_client() {
        let [a, b, c] =
            ["2001:db8::1", "2001:db8::ffff:2", "2001:db8:0:1::1"].map(|ip| owner(ip.parse().unwrap()));
        assert!(a == b && a != c);
        assert_eq!(owner("::ffff:10.0.0.1".parse().unwrap()), client(1));
    }

    proptest! {
        /// After any sequence of requests, a client without a slot gets one while any is free.
        #[test]
        fn a_newcomer_gets_a_free_place(max in 1usize..50, steps in prop::collection::vec((0u8..6, any::<bool>()), 0..200)) {
            let places = Places::new(max);
            let mut held: Vec<(u8, Place)> = vec![];
            for (number, takes) in steps {
                if takes {
                    if let Ok(place) = places.take(client(number)) {
                        held.push((number, place));
                    }
                } else if let Some(at) = held.iter().position(|(of, _)| *of == number) {
                    held.remove(at);
                }
                let newcomer = places.take(client(200));
                prop_assert_eq!(newcomer.is_ok(), held.len() < max);
            }
        }
    }
}
