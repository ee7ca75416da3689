//! Parser of seeds on the command line: `1`, `1..5` (both limits included), `1,3,7`, or a combination.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use airpace_core::Refused;

use crate::shell::seeds_text;

/// Maximum number of seeds. More seeds are probably a typing error.
const MAX_SEEDS: usize = 10_000;

/// One or more seeds in the order of the command line, without duplicates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seeds(Vec<u64>);

impl Seeds {
    /// These seeds without duplicates.
    ///
    /// # Errors
    /// There are no seeds, or too many.
    pub fn of(seeds: impl IntoIterator<Item = u64>) -> Result<Seeds, Refused> {
        let mut known = BTreeSet::new();
        let seeds: Vec<u64> =
            seeds.into_iter().filter(|seed| known.insert(*seed)).take(MAX_SEEDS + 1).collect();
        match seeds.len() {
            0 => Err("no seed: give at least one".into()),
            1..=MAX_SEEDS => Ok(Seeds(seeds)),
            _ => Err(format!("more than {MAX_SEEDS} seeds; give fewer").into()),
        }
    }

    /// The seeds in order.
    pub fn as_slice(&self) -> &[u64] {
        &self.0
    }
}

impl FromStr for Seeds {
    type Err = Refused;

    fn from_str(text: &str) -> Result<Seeds, Refused> {
        let number = |text: &str| {
            text.trim().parse::<u64>().map_err(|_| {
                Refused::new(format!(
                    "`{text}` is not a seed; give whole numbers as `1`, `1..5` (both included) or `1,3,7`"
                ))
            })
        };
        let mut seeds = Vec::new();
        for part in text.split(',') {
            let (first, last) = match part.split_once("..") {
                Some((first, last)) => (number(first)?, number(last.trim_start_matches('='))?),
                None => (number(part)?, number(part)?),
            };
            if last < first {
                return Err(format!("`{part}` runs backwards; give the smaller seed first").into());
            }
            if last - first >= MAX_SEEDS as u64 || seeds.len() >= MAX_SEEDS {
                return Err(format!("more than {MAX_SEEDS} seeds; give fewer").into());
            }
            for seed in first..=last {
                if !seeds.contains(&seed) {
                    seeds.push(seed);
                }
            }
        }
        Ok(Seeds(seeds))
    }
}

impl fmt::Display for Seeds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&seeds_text(&self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_read_as_they_are_typed() {
        let read = |text: &str| text.parse::<Seeds>().map(|seeds| seeds.0);
        assert_eq!(read("7"), Ok(vec![7]));
        assert_eq!(read("1..5"), Ok(vec![1, 2, 3, 4, 5]), "both ends are included");
        assert_eq!(read("1,3..4,3"), Ok(vec![1, 3, 4]), "each once");
        assert!(read("5..1").unwrap_err().to_string().contains("backwards"));
        assert!(read("one").unwrap_err().to_string().contains("`1..5`"), "the error shows what may be typed");
        assert!(read("0..18446744073709551615").is_err(), "a slip of the finger is refused, not run");
    }

    #[test]
    fn seeds_are_written_as_they_would_be_typed() {
        let written = |text: &str| text.parse::<Seeds>().map(|seeds| seeds.to_string());
        assert_eq!(written("1,2,3"), Ok("1..3".to_owned()));
        assert_eq!(written("4"), Ok("4".to_owned()));
        assert_eq!(written("1,5"), Ok("1,5".to_owned()));
    }
}
