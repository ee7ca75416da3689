//! Spelling of directions in scenarios, tables and JSON: `down` or `up`.

use airpace_core::Direction;
use serde::{Deserialize, Deserializer, Serializer};

/// Both directions, in the order in which tables and lists name them.
pub const BOTH: [Direction; 2] = [Direction::Downlink, Direction::Uplink];

/// The word of a direction.
pub const fn word(direction: Direction) -> &'static str {
    match direction {
        Direction::Downlink => "down",
        Direction::Uplink => "up",
    }
}

/// The direction of a word from [`word`].
pub fn of_word(text: &str) -> Direction {
    if text == word(Direction::Uplink) { Direction::Uplink } else { Direction::Downlink }
}

/// Whether the direction is `down`. JSON omits the field in this case, and a missing field means `down`.
pub fn is_down(direction: &Direction) -> bool {
    *direction == Direction::Downlink
}

/// Serialises a direction, for `#[serde(with)]`.
pub fn serialize<S: Serializer>(direction: &Direction, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(word(*direction))
}

/// Deserialises a direction, for `#[serde(with)]`.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Direction, D::Error> {
    let text = String::deserialize(deserializer)?;
    let known = BOTH.into_iter().find(|direction| word(*direction) == text);
    known.ok_or_else(|| serde::de::Error::unknown_variant(&text, &["down", "up"]))
}
