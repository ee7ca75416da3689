//! Keywords of values whose types are defined in other crates.

use airpace_cc::registry::Protocol;
use airpace_core::Direction;
use serde::{Deserialize, Deserializer};

/// Reads a direction: `down` or `up`.
pub(super) fn direction<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Direction, D::Error> {
    #[derive(Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Word {
        Down,
        Up,
    }
    Ok(match Word::deserialize(deserializer)? {
        Word::Down => Direction::Downlink,
        Word::Up => Direction::Uplink,
    })
}

/// Reads a transport protocol: `tcp` or `udp`.
pub(super) fn protocol<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Protocol, D::Error> {
    #[derive(Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Word {
        Tcp,
        Udp,
    }
    Ok(match Word::deserialize(deserializer)? {
        Word::Tcp => Protocol::Tcp,
        Word::Udp => Protocol::Udp,
    })
}
