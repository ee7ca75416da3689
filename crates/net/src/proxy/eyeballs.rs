//! Happy Eyeballs: connects to several addresses of a name with staggered attempts and takes the first that answers.
//!
//! Source: RFC 8305 §4–5

use std::net::SocketAddr;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

/// Delay after which the next address is tried, while the previous attempt continues.
///
/// Source: RFC 8305 §8 (Connection Attempt Delay)
const ATTEMPT_DELAY: Duration = Duration::from_millis(250);

/// Maximum number of addresses tried per name, so that a name cannot open an unlimited number of connections.
///
/// Chosen: more than names usually have.
const MAX_ADDRESSES: usize = 8;

/// Orders the addresses for the attempts: address families alternate, starting with the family of the first address.
///
/// Source: RFC 8305 §4 (First Address Family Count 1)
pub(super) fn in_turn(addresses: &[SocketAddr]) -> Vec<SocketAddr> {
    let Some(first) = addresses.first() else { return vec![] };
    let of_family = |is_v4: bool| addresses.iter().filter(move |address| address.is_ipv4() == is_v4);
    let (mut same, mut other) = (of_family(first.is_ipv4()), of_family(!first.is_ipv4()));
    let mut turns = vec![];
    loop {
        let pair = [same.next(), other.next()];
        if pair == [None, None] {
            turns.truncate(MAX_ADDRESSES);
            return turns;
        }
        turns.extend(pair.into_iter().flatten());
    }
}

/// Connects to the first address that answers and cancels the other attempts. Returns `None` without addresses; if all
/// attempts fail, the error of the last one.
pub(super) async fn first<T, E, F>(
    addresses: &[SocketAddr],
    connect: impl Fn(SocketAddr) -> F,
) -> Option<Result<T, E>>
where
    T: Send + 'static,
    E: Send + 'static,
    F: Future<Output = Result<T, E>> + Send + 'static,
{
    let mut waiting = in_turn(addresses).into_iter();
    let mut attempts = JoinSet::new();
    let mut failure = None;
    while let Some(address) = waiting.next() {
        attempts.spawn(connect(address));
        let next = Instant::now() + ATTEMPT_DELAY;
        tokio::select! {
            Some(ended) = attempts.join_next() => match ended.ok()? {
                Ok(connected) => return Some(Ok(connected)),
                Err(error) => failure = Some(Err(error)),
            },
            () = sleep_until(next), if waiting.len() > 0 => {}
        }
    }
    while let Some(ended) = attempts.join_next().await {
        match ended.ok()? {
            Ok(connected) => return Some(Ok(connected)),
            Err(error) => failure = Some(Err(error)),
        }
    }
    failure
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    fn addresses(texts: &[&str]) -> Vec<SocketAddr> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    /// Runs the attempts on a paused clock. `dead` yields `None` for an address that answers, `true` for one that never
    /// answers, and `false` for one that refuses. Returns the address that answered, the elapsed time and the number of
    /// attempts.
    fn tried(
        list: &[SocketAddr],
        dead: fn(&SocketAddr) -> Option<bool>,
    ) -> (Option<SocketAddr>, Duration, usize) {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let count = Arc::new(Mutex::new(0));
            let began = Instant::now();
            let connect = |address: SocketAddr| {
                *count.lock().unwrap() += 1;
                async move {
                    match dead(&address) {
                        None => Ok(address),
                        Some(true) => std::future::pending().await,
                        Some(false) => Err(()),
                    }
                }
            };
            let answered = tokio::time::timeout(Duration::from_secs(20), first(list, connect)).await;
            let tried = *count.lock().unwrap();
            (answered.ok().flatten().and_then(Result::ok), began.elapsed(), tried)
        })
    }

    #[test]
    fn families_alternate() {
        let list = addresses(&["[::1]:1", "[::2]:1", "1.1.1.1:1", "[::3]:1", "2.2.2.2:1"]);
        assert_eq!(in_turn(&list), addresses(&["[::1]:1", "1.1.1.1:1", "[::2]:1", "2.2.2.2:1", "[::3]:1"]));
        assert_eq!(in_turn(&vec![list[0]; 1_000]).len(), MAX_ADDRESSES);
        assert_eq!(in_turn(&[]), []);
    }

    #[test]
    fn a_dead_address_costs_a_quarter_of_a_second_and_a_refusing_one_nothing() {
        let list = addresses(&["[::1]:1", "1.1.1.1:1"]);
        let is_v6 = |address: &SocketAddr| address.is_ipv6().then_some(true);
        let (answered, took, count) = tried(&list, is_v6);
        assert_eq!((answered, count), (Some(list[1]), 2));
        // Timers have a resolution of 1 ms.
        let late = took.saturating_sub(ATTEMPT_DELAY);
        assert!(took >= ATTEMPT_DELAY && late <= Duration::from_millis(2), "{took:?}");
        let refuses = |address: &SocketAddr| address.is_ipv6().then_some(false);
        assert_eq!(tried(&list, refuses), (Some(list[1]), Duration::ZERO, 2));
        assert_eq!(tried(&list, |_| None), (Some(list[0]), Duration::ZERO, 1));
        assert_eq!(tried(&list, |_| Some(false)), (None, Duration::ZERO, 2));
        assert_eq!(tried(&list, |_| Some(true)).0, None);
        assert_eq!(tried(&[], |_| None).0, None);
    }
}
