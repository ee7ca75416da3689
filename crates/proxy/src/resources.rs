//! What the machine permits a proxy: open files, IPv6.

use std::net::{Ipv6Addr, UdpSocket};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Number of open files besides those of connections.
const OTHER_FILES: u64 = 64;

/// The limit of open files permits no connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this user may open {files} files only; raise the limit (`ulimit -n`)")]
pub struct TooFewFiles {
    /// The limit.
    pub files: u64,
}

/// Raises the limit of open files to two files per connection, as far as permitted. Returns the maximum number of
/// connections within the limit, at most `connections`.
///
/// # Errors
/// The limit permits no connection.
pub fn connections_for(connections: u32) -> Result<usize, TooFewFiles> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let wanted = 2 * u64::from(connections) + OTHER_FILES;
    let raised = maximum.map_or(wanted, |most| most.min(wanted));
    if current.is_some_and(|current| current < raised)
        && setrlimit(Resource::Nofile, Rlimit { current: Some(raised), maximum }).is_err()
    {
        return Ok(possible(current.unwrap_or(raised), connections));
    }
    let files = current.map_or(wanted, |current| current.max(raised));
    if files <= OTHER_FILES + 1 {
        return Err(TooFewFiles { files });
    }
    Ok(possible(files, connections))
}

fn possible(files: u64, connections: u32) -> usize {
    (files.saturating_sub(OTHER_FILES) / 2).clamp(1, u64::from(connections)) as usize
}

/// Whether the machine supports IPv6.
pub fn has_ipv6() -> bool {
    UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_connection_has_two_files() {
        assert_eq!(possible(1_024, 10_000), 480);
        assert_eq!(possible(1_000_000, 10_000), 10_000);
        assert_eq!(possible(10, 10_000), 1);
    }
}
