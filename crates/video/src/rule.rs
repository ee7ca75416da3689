//! Adaptation rules: how a player chooses the representation of its next segment.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use airpace_core::nearest::nearest;
use airpace_core::{Bytes, Rate, Refused, Remedy};
use serde::{Deserialize, Serialize};

use crate::ladder::Ladder;

mod buffer;
mod rate;

use buffer::BufferRule;
use rate::RateRule;

/// Factor of the throughput that a representation may use.
///
/// Source: Jiang, Sekar, Zhang 2012 (FESTIVE, p = 0.85)
const SAFETY: f64 = 0.85;

/// An adaptation rule, by its name in a configuration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Rule {
    /// By throughput: the highest representation below the harmonic mean of recent segments' throughputs, with a margin.
    #[default]
    Rate,
    /// By buffer: a map from the buffer's level to a bitrate (BBA-0), with the start-up phase of BBA-2.
    Buffer,
}

impl Rule {
    /// All rules.
    pub const ALL: [Rule; 2] = [Rule::Rate, Rule::Buffer];

    /// The rule's name.
    pub const fn name(self) -> &'static str {
        match self {
            Rule::Rate => "rate",
            Rule::Buffer => "buffer",
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Rule {
    type Err = Refused;

    /// Reads a rule's name; the error names all rules.
    fn from_str(text: &str) -> Result<Rule, Refused> {
        let names = Rule::ALL.map(Rule::name);
        Rule::ALL.into_iter().find(|rule| rule.name() == text).ok_or_else(|| {
            let meant =
                nearest(text, names).map(|name| format!("did you mean `{name}`? ")).unwrap_or_default();
            let remedy = Remedy::new(format!("{meant}give one of {}", names.join(", ")));
            Refused::new(format!("`rule` is `{text}`, which no adaptation rule is called")).but(remedy)
        })
    }
}

/// The state of a player at which a rule chooses a representation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Situation<'a> {
    pub(crate) ladder: &'a Ladder,
    /// Media in the buffer.
    pub(crate) buffered: Duration,
    pub(crate) max_buffer: Duration,
    /// Representation of the segment before.
    pub(crate) previous: Option<usize>,
}

/// A finished download.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    pub(crate) bytes: Bytes,
    /// Time from the request until the last byte.
    pub(crate) took: Duration,
}

impl Sample {
    /// The mean throughput. A download that took no time counts as one of a nanosecond.
    pub(crate) fn throughput(&self) -> Rate {
        Rate::from_bytes_per(self.bytes, self.took.max(Duration::from_nanos(1))).max(Rate::from_bps(1))
    }
}

/// A rule with its state.
#[derive(Clone, Debug)]
pub(crate) enum Adaptation {
    Rate(RateRule),
    Buffer(BufferRule),
}

impl Adaptation {
    /// The rule `rule` at the start of a session.
    pub(crate) fn new(rule: Rule) -> Adaptation {
        match rule {
            Rule::Rate => Adaptation::Rate(RateRule::default()),
            Rule::Buffer => Adaptation::Buffer(BufferRule::default()),
        }
    }

    /// Processes a finished download.
    pub(crate) fn observe(&mut self, sample: &Sample) {
        match self {
            Adaptation::Rate(rule) => rule.observe(sample),
            Adaptation::Buffer(rule) => rule.observe(sample),
        }
    }

    /// The representation of the next segment.
    pub(crate) fn choose(&mut self, situation: &Situation<'_>) -> usize {
        match self {
            Adaptation::Rate(rule) => rule.choose(situation),
            Adaptation::Buffer(rule) => rule.choose(situation),
        }
    }
}

/// The highest representation whose bitrate is at most the throughput `mbps` (Mbit/s) with the safety margin; the lowest if
/// none is.
pub(crate) fn sustainable(ladder: &Ladder, mbps: f64) -> usize {
    ladder.representation.iter().rposition(|one| one.bitrate_mbps <= SAFETY * mbps).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use airpace_core::remedy::explain_plainly;

    #[test]
    fn a_rule_is_read_by_its_name() {
        for rule in Rule::ALL {
            assert_eq!(rule.to_string().parse(), Ok(rule));
            assert_eq!(serde_json::to_string(&rule).expect("a name"), format!("\"{rule}\""));
        }
        let error = "bufer".parse::<Rule>().expect_err("a slip of the finger");
        assert_eq!(
            explain_plainly(&error),
            "`rule` is `bufer`, which no adaptation rule is called; did you mean `buffer`? give one of rate, buffer"
        );
    }
}
