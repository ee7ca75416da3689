//! Detection of a listening server from the kernel's list of sockets of a network namespace.

use std::collections::BTreeSet;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// Returns the sockets of a namespace that accept connections or packets, as lines of table, address and inode. `None` is
/// the thread's namespace.
pub(super) fn sockets(network: Option<&File>) -> BTreeSet<String> {
    let list = || {
        let mut found = BTreeSet::new();
        for (table, states) in [("tcp", ["0A"]), ("tcp6", ["0A"]), ("udp", ["07"]), ("udp6", ["07"])] {
            let text = std::fs::read_to_string(format!("/proc/thread-self/net/{table}")).unwrap_or_default();
            found.extend(text.lines().skip(1).filter_map(|line| listener(table, line, &states)));
        }
        found
    };
    match network {
        Some(network) => in_network(network.as_fd(), list).unwrap_or_default(),
        None => list(),
    }
}

/// Returns the number of packets that an interface lost because the emulator did not read them.
pub(super) fn unread(network: &File, interface: &str) -> u64 {
    let read = || {
        let text = std::fs::read_to_string("/proc/thread-self/net/dev").unwrap_or_default();
        text.lines().find_map(|line| dropped(line, interface)).unwrap_or(0)
    };
    in_network(network.as_fd(), read).unwrap_or(0)
}

/// Runs `act` in a network namespace, on a temporary thread.
pub(super) fn in_network<T: Send>(network: BorrowedFd<'_>, act: impl FnOnce() -> T + Send) -> Option<T> {
    std::thread::scope(|scope| {
        let enter = || {
            move_into_link_name_space(network, Some(LinkNameSpaceType::Network)).ok()?;
            Some(act())
        };
        std::thread::Builder::new().spawn_scoped(scope, enter).ok()?.join().ok().flatten()
    })
}

/// Returns table, local address and inode of a socket in one of these states.
///
/// Source: man-pages proc_pid_net(5) (`tcp`)
fn listener(table: &str, line: &str, states: &[&str]) -> Option<String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let (local, state, inode) = (words.get(1)?, words.get(3)?, words.get(9)?);
    states.contains(state).then(|| format!("{table} {local} {inode}"))
}

/// Returns the number of packets that an interface dropped on transmission.
///
/// Source: man-pages proc_pid_net(5) (`dev`)
fn dropped(line: &str, interface: &str) -> Option<u64> {
    let (name, numbers) = line.split_once(':')?;
    (name.trim() == interface).then(|| numbers.split_whitespace().nth(11)?.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_tables_are_read() {
        let line = "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 12345 1";
        assert_eq!(listener("tcp", line, &["0A"]).as_deref(), Some("tcp 0100007F:1F90 12345"));
        assert_eq!(listener("tcp", line, &["07"]), None);
        assert_eq!(listener("tcp", "", &["0A"]), None);
        let line = "airpace: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16";
        assert_eq!(dropped(line, "airpace"), Some(12));
        assert_eq!(dropped(line, "lo"), None);
        assert_eq!(dropped("Inter-|   Receive", "airpace"), None);
    }

    #[test]
    fn a_new_listener_is_seen() {
        let this = File::open("/proc/thread-self/ns/net").unwrap();
        // Entering the own namespace needs privileges too; without them, this test cannot run.
        let Some(()) = in_network(this.as_fd(), || ()) else {
            return airpace_testing::skipped("no right to enter a network namespace");
        };
        let before = sockets(Some(&this));
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = format!("{:04X}", listener.local_addr().unwrap().port());
        let new: Vec<String> = sockets(Some(&this)).difference(&before).cloned().collect();
        assert!(new.iter().any(|it| it.contains(&port)), "{new:?}");
    }
}
