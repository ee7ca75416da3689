//! A direction as scenarios, tables and JSON spell it: `down` or `up`.

use airpace_core::Direction;
use serde::{Deserialize, Deserializer, Serializer};

/// Both directions, in the order in which lists show them.
pub(crate) const BOTH: [Direction; 2] = [Direction::Downlink, Direction::Uplink];

/// The word for a direction.
pub const fn word(direction: Direction) -> &'static str {
    match direction {
        Direction::Downlink => "down",
        Direction::Uplink => "up",
    }
}

/// The direction for a word that [`word`] returned.
pub(crate) fn of_word(text: &str) -> Direction {
    if text == word(Direction::Uplink) { Direction::Uplink } else { Direction::Downlink }
}

/// Whether the direction is `down`. JSON then leaves the field out: a missing direction means `down`.
pub(crate) fn is_down(direction: &Direction) -> bool {
    *direction == Direction::Downlink
}

/// For `#[serde(with)]`.
pub(crate) fn serialize<S: Serializer>(direction: &Direction, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(word(*direction))
}

/// For `#[serde(with)]`.
pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Direction, D::Error> {
    let text = String::deserialize(deserializer)?;
    let known = BOTH.into_iter().find(|direction| word(*direction) == text);
    known.ok_or_else(|| serde::de::Error::unknown_variant(&text, &["down", "up"]))
}
