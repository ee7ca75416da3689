//! Limits on connections and subscriptions per process and user, so that no program can block others.
//!
//! Three limits apply at the same time: per process, per user, and for all users together other than root and the
//! daemon's own user. The last limit reserves a part for these two users. All other users share the remaining part;
//! several of these users together can use it up.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::peer::Peer;

/// Maximum number of connections.
///
/// Chosen: a phone has a handful of transports. The server checks each connection at every poll.
pub const MAX_PROGRAMS: usize = 128;
/// Maximum number of connections of one process.
///
/// Chosen: a process needs one connection. A process that connects once per thread or library has a few.
pub const MAX_PER_PROCESS: usize = 16;
/// Maximum number of connections of all processes of one user. The limit does not apply to root and the daemon's own
/// user.
///
/// Chosen: two users cannot use up the connections that all users other than root and the daemon's own user share.
pub const MAX_PER_USER: usize = 40;
/// Number of connections that are reserved for root and the daemon's own user.
///
/// Chosen: a quarter, enough for two processes with the maximum number of connections.
pub const RESERVED_PROGRAMS: usize = 32;
/// Maximum number of subscriptions of one process over all its connections.
pub const MAX_LEASES: u32 = 256;
/// Maximum time for which a request or answer may be unfinished, and for which a connection may be open without having
/// requested the region or a KPI.
///
/// Chosen: a running program sends its request at once. A suspended program resumes within seconds or not for a long
/// time.
pub const MAX_IDLE: Duration = Duration::from_secs(30);

/// Checks whether `newcomer` may connect in addition to the connected peers; returns the reason if not.
pub(super) fn may_connect(newcomer: Peer, connected: &[Peer]) -> Result<(), String> {
    let of = |counts: &dyn Fn(&Peer) -> bool| connected.iter().filter(|peer| counts(peer)).count();
    if of(&|peer| *peer == newcomer) >= MAX_PER_PROCESS {
        return Err(format!("a process may have {MAX_PER_PROCESS} connections"));
    }
    if !newcomer.is_trusted() {
        if of(&|peer| peer.user() == newcomer.user()) >= MAX_PER_USER {
            return Err(format!("a user may have {MAX_PER_USER} connections"));
        }
        let shared = MAX_PROGRAMS - RESERVED_PROGRAMS;
        if of(&|peer| !peer.is_trusted()) >= shared {
            return Err(format!("{shared} programs are connected already"));
        }
    }
    if connected.len() >= MAX_PROGRAMS {
        return Err(format!("{MAX_PROGRAMS} programs are connected already"));
    }
    Ok(())
}

/// Sorts the programs that wait for their turn. Root and the daemon's own user come first. Then come the first
/// connections of each other user, then their second connections, and so on: a user with many connections takes no more
/// time than a user with one connection. The sort is stable.
pub(super) fn order_turns(order: &mut [usize], who: impl Fn(usize) -> Peer) {
    let mut turns_of = BTreeMap::new();
    order.sort_by_cached_key(|&at| {
        let peer = who(at);
        if peer.is_trusted() {
            return 0;
        }
        let turns = turns_of.entry(peer.user()).or_insert(0);
        *turns += 1;
        *turns
    });
}

/// The number of subscriptions that a peer may still add.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Allowance {
    /// Number of subscriptions.
    pub leases: u32,
    /// Reason for a refusal if no subscription is left.
    pub bound: String,
}

/// Computes how many subscriptions `who` may add. `held` lists the subscriptions of all peers, `rows` is the number of
/// rows of the region. A user other than root and the daemon's own user may hold at most three eighths of the rows, and
/// all such users together three quarters.
pub(super) fn allowance(who: Peer, rows: u32, held: &[(Peer, u32)]) -> Allowance {
    let of = |counts: &dyn Fn(&Peer) -> bool| -> u32 {
        held.iter().filter(|(peer, _)| counts(peer)).map(|(_, leases)| leases).sum()
    };
    let bound = |most: u32, taken: u32, whose: &str| Allowance {
        leases: most.saturating_sub(taken),
        bound: format!("{whose} may have {most} subscriptions"),
    };
    let mut bounds = vec![bound(MAX_LEASES, of(&|peer| *peer == who), "a program")];
    if !who.is_trusted() {
        bounds.push(bound((rows * 3 / 8).max(1), of(&|peer| peer.user() == who.user()), "a user"));
        bounds.push(bound((rows * 3 / 4).max(1), of(&|peer| !peer.is_trusted()), "all users together"));
    }
    bounds.into_iter().min_by_key(|bound| bound.leases).expect("there is at least one bound")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const OURS: u32 = 1_000;

    fn peer(pid: i32, uid: u32) -> Peer {
        Peer::new(pid, uid, OURS)
    }

    /// Admits peers in this order; returns those that may connect.
    fn crowd(comers: impl IntoIterator<Item = Peer>) -> Vec<Peer> {
        let mut connected = Vec::new();
        for comer in comers {
            if may_connect(comer, &connected).is_ok() {
                connected.push(comer);
            }
        }
        connected
    }

    #[test]
    fn one_user_keeps_no_other_out() {
        let hostile = crowd((0..10_000).map(|pid| peer(pid, 2_000)));
        assert_eq!(hostile.len(), MAX_PER_USER);
        assert_eq!(
            may_connect(peer(1, 2_000), &hostile),
            Err("a user may have 40 connections".to_owned()),
            "a process that has none is told whose bound it is"
        );
        assert_eq!(may_connect(peer(1, 3_000), &hostile), Ok(()));
    }

    #[test]
    fn turns_go_to_root_and_the_daemons_user_first_and_to_others_user_by_user() {
        let users = [2_000, 2_000, 2_000, 3_000, OURS, 2_000, 0, 3_000];
        let who = |at: usize| peer(at as i32, users[at]);
        let mut order: Vec<usize> = (0..users.len()).collect();
        order_turns(&mut order, who);
        assert_eq!(order, [4, 6, 0, 3, 1, 7, 2, 5]);
        let mut again = vec![5, 7, 0, 3];
        order_turns(&mut again, who);
        assert_eq!(again, [5, 7, 0, 3], "one that was not reached before begins");
    }

    proptest! {
        #[test]
        fn nobody_takes_the_place_of_root_or_the_daemons_user(
            comers in prop::collection::vec((1..2_000_i32, 2_000..2_009_u32), 0..1_500),
        ) {
            let connected = crowd(comers.into_iter().map(|(pid, uid)| peer(pid, uid)));
            prop_assert!(connected.len() <= MAX_PROGRAMS - RESERVED_PROGRAMS);
            for trusted in [0, OURS] {
                prop_assert_eq!(may_connect(peer(1, trusted), &connected), Ok(()));
            }
            for comer in &connected {
                prop_assert!(connected.iter().filter(|other| *other == comer).count() <= MAX_PER_PROCESS);
            }
        }

        #[test]
        fn nobody_takes_all_rows_of_a_board(
            rows in 8..2_000_u32,
            askers in prop::collection::vec((1..200_i32, 2_000..2_009_u32, 0..400_u32), 0..60),
        ) {
            let mut held: Vec<(Peer, u32)> = Vec::new();
            for (pid, uid, wanted) in askers {
                let who = peer(pid, uid);
                let leases = wanted.min(allowance(who, rows, &held).leases);
                held.push((who, leases));
            }
            let taken: u32 = held.iter().map(|(_, leases)| leases).sum();
            prop_assert!(taken <= rows * 3 / 4);
            for uid in 2_000..2_009 {
                let user: u32 = held.iter().filter(|(peer, _)| peer.user() == uid).map(|(_, leases)| leases).sum();
                prop_assert!(user <= rows * 3 / 8);
            }
            for trusted in [0, OURS] {
                prop_assert_eq!(allowance(peer(1, trusted), rows, &held).leases, MAX_LEASES);
            }
        }
    }

    #[test]
    fn the_narrowest_bound_is_named() {
        let held = [(peer(1, 2_000), 256), (peer(2, 2_000), 128), (peer(3, 2_001), 380)];
        let asks = |pid, uid| allowance(peer(pid, uid), 1_024, &held);
        assert_eq!(asks(1, 2_000).bound, "a program may have 256 subscriptions");
        assert_eq!(
            asks(9, 2_000),
            Allowance { leases: 0, bound: "a user may have 384 subscriptions".to_owned() }
        );
        assert_eq!(
            asks(9, 2_002),
            Allowance { leases: 4, bound: "all users together may have 768 subscriptions".to_owned() }
        );
        assert_eq!(asks(9, 0).leases, MAX_LEASES);
    }
}
