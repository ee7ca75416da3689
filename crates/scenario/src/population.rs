//! Populations: many experiments in one file whose keys are drawn at random, such as the places of a measurement campaign.
//!
//! ```toml
//! [population]
//! seed = 2020
//!
//! [population.draw]                       # of every member
//! "flow.0.rtt_ms" = { whole = [40, 70] }
//!
//! [[population.stratum]]
//! name = "busy-indoor"
//! count = 12
//! set = { "cell.carriers" = 2 }
//! draw = { "device.0.radio.channel.sinr_db" = { normal = [11, 4], within = [3, 22] } }
//! ```
//!
//! A member is a variant, named after its stratum and its number there. The seed of the population alone decides the
//! drawn values, before any scheme runs. Each value has a random stream of its own, named after stratum, number and key:
//! a further member, stratum or key does not change the others.

use airpace_core::{Rng, Streams};
use serde::Deserialize;
use toml::{Table, Value};

use crate::ScenarioError;

/// Maximum number of members of a population.
///
/// Chosen: several hundred times the largest measurement campaign of the papers.
const MAX_MEMBERS: usize = 100_000;

/// The content of `[population]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Population {
    /// Seed of the drawn values. It is independent of the seeds of runs.
    #[serde(default = "default_seed")]
    seed: u64,
    /// Keys that every member sets.
    #[serde(default)]
    set: Table,
    /// Keys that are drawn for every member.
    #[serde(default)]
    draw: Table,
    /// The groups of members.
    #[serde(default)]
    stratum: Vec<Stratum>,
}

/// A group of members with a fixed size.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stratum {
    /// Start of the names of its members.
    name: String,
    /// Number of its members.
    count: usize,
    /// Keys that each of its members sets, in addition to the population's keys.
    #[serde(default)]
    set: Table,
    /// Keys that are drawn for each of its members, in addition to the population's keys.
    #[serde(default)]
    draw: Table,
}

fn default_seed() -> u64 {
    1
}

/// The members of the population `table`, which stands in the file `file`: their names, and the keys that they set.
pub(super) fn members(table: Value, file: &str) -> Result<Vec<(String, Table)>, ScenarioError> {
    let refuse = |key: &str, reason: String| ScenarioError::in_file(file, key, reason);
    let population: Population = serde_path_to_error::deserialize(table).map_err(
        |error: serde_path_to_error::Error<toml::de::Error>| {
            let path = error.path().to_string();
            let key = if path == "." { "population".to_owned() } else { format!("population.{path}") };
            refuse(&key, format!("cannot be read: {}", error.inner().message()))
        },
    )?;
    if population.stratum.is_empty() {
        let reason =
            "has no stratum; write each group of members as `[[population.stratum]]` with `name` and `count`";
        return Err(refuse("population", reason.to_owned()));
    }
    let streams = Streams::new(population.seed);
    let mut all = Vec::new();
    for (index, stratum) in population.stratum.iter().enumerate() {
        let key = |name: &str| format!("population.stratum.{index}.{name}");
        if stratum.name.is_empty() {
            return Err(refuse(&key("name"), "is empty; the names of members start with it".to_owned()));
        }
        if population.stratum[..index].iter().any(|other| other.name == stratum.name) {
            let reason =
                format!("is `{}`, as is that of an earlier stratum; give each its own", stratum.name);
            return Err(refuse(&key("name"), reason));
        }
        if stratum.count == 0 || all.len() + stratum.count > MAX_MEMBERS {
            let reason = format!("is {}; a population has 1 to {MAX_MEMBERS} members", stratum.count);
            return Err(refuse(&key("count"), reason));
        }
        let digits = stratum.count.to_string().len();
        for number in 1..=stratum.count {
            let name = format!("{}-{number:0digits$}", stratum.name);
            let mut set = Table::new();
            let of_all = [("population.set", &population.set), ("population.draw", &population.draw)];
            let of_stratum = [(key("set"), &stratum.set), (key("draw"), &stratum.draw)];
            let tables = of_all.map(|(place, table)| (place.to_owned(), table)).into_iter().chain(of_stratum);
            for (place, table) in tables {
                let unknown = table.iter().find(|(_, value)| value.is_table() && !has_distribution(value));
                if let Some((key, _)) = unknown.filter(|_| place.ends_with("draw")) {
                    let reason = format!("has no distribution; there are {}", KINDS.join(", "));
                    return Err(refuse(&format!("{place}.{key}"), reason));
                }
                for (path, value) in flat(table) {
                    let mut rng = streams.stream(&format!("population.{}.{number}.{path}", stratum.name));
                    let drawn = fill(&value, &mut rng)
                        .map_err(|reason| refuse(&format!("{place}.{path}"), reason))?;
                    set.insert(path, drawn);
                }
            }
            all.push((name, set));
        }
    }
    Ok(all)
}

/// The keys of a table by their dotted paths. A table that describes a distribution is a value.
fn flat(table: &Table) -> Vec<(String, Value)> {
    let mut found = Vec::new();
    for (key, value) in table {
        match value {
            Value::Table(inner) if !is_distribution(inner) => {
                found.extend(flat(inner).into_iter().map(|(path, value)| (format!("{key}.{path}"), value)));
            }
            value => found.push((key.clone(), value.clone())),
        }
    }
    found
}

/// A distribution: one of the kinds, and its options.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Distribution {
    uniform: Option<[f64; 2]>,
    log_uniform: Option<[f64; 2]>,
    normal: Option<[f64; 2]>,
    exponential: Option<f64>,
    whole: Option<[i64; 2]>,
    one_of: Option<Vec<Value>>,
    times: Option<[f64; 2]>,
    /// Limits of a number.
    within: Option<[f64; 2]>,
    /// Number of decimals of a number.
    decimals: Option<u32>,
    /// Weights of the values of `one_of`.
    weights: Option<Vec<f64>>,
    /// End of the list of `times`.
    until: Option<f64>,
}

/// The names of the kinds, by which a table is recognised as a distribution.
const KINDS: [&str; 7] = ["uniform", "log_uniform", "normal", "exponential", "whole", "one_of", "times"];

fn is_distribution(table: &Table) -> bool {
    KINDS.iter().any(|kind| table.contains_key(*kind))
}

/// Whether a value is a distribution, or has one in its tables and lists.
fn has_distribution(value: &Value) -> bool {
    match value {
        Value::Table(table) => is_distribution(table) || table.values().any(has_distribution),
        Value::Array(values) => values.iter().any(has_distribution),
        _ => false,
    }
}

/// The value with every distribution in it replaced by a drawn value.
fn fill(value: &Value, rng: &mut Rng) -> Result<Value, String> {
    match value {
        Value::Table(table) if is_distribution(table) => {
            let distribution: Distribution = Value::Table(table.clone())
                .try_into()
                .map_err(|error: toml::de::Error| format!("cannot be read: {}", error.message()))?;
            distribution.draw(rng)
        }
        Value::Table(table) => {
            let filled = table.iter().map(|(key, value)| Ok((key.clone(), fill(value, rng)?)));
            Ok(Value::Table(filled.collect::<Result<_, String>>()?))
        }
        Value::Array(values) => {
            Ok(Value::Array(values.iter().map(|value| fill(value, rng)).collect::<Result<_, _>>()?))
        }
        value => Ok(value.clone()),
    }
}

/// Maximum number of draws until a number lies in `within`.
///
/// Chosen: limits that hold a thousandth of the numbers are met with a probability of 99.995 %.
const MAX_TRIES: usize = 10_000;

/// Maximum number of values of `times`.
const MAX_TIMES: usize = 10_000;

impl Distribution {
    fn draw(&self, rng: &mut Rng) -> Result<Value, String> {
        let kinds = [
            self.uniform.is_some(),
            self.log_uniform.is_some(),
            self.normal.is_some(),
            self.exponential.is_some(),
            self.whole.is_some(),
            self.one_of.is_some(),
            self.times.is_some(),
        ];
        if kinds.into_iter().filter(|is_there| *is_there).count() != 1 {
            return Err(format!("has several distributions; give one of {}", KINDS.join(", ")));
        }
        self.check_options()?;
        if let Some(values) = &self.one_of {
            return fill(self.choose(values, rng)?, rng);
        }
        if let Some([least, most]) = self.whole {
            if least > most {
                return Err(format!("has the limits {least} and {most}; give the smaller one first"));
            }
            let span = most.abs_diff(least).saturating_add(1);
            return Ok(Value::Integer(least.saturating_add_unsigned(rng.below(span))));
        }
        if let Some(gaps) = self.times {
            return self.times(ordered(gaps)?, rng);
        }
        for _ in 0..MAX_TRIES {
            let number = self.rounded(self.number(rng)?);
            if self.within.is_none_or(|[least, most]| (least..=most).contains(&number)) {
                // Keys that count something do not accept a number with a decimal point.
                return Ok(match self.decimals {
                    Some(0) => Value::Integer(number as i64),
                    _ => Value::Float(number),
                });
            }
        }
        Err("is hardly ever within its limits; widen `within`".to_owned())
    }

    /// Refuses an option that the distribution does not have.
    fn check_options(&self) -> Result<(), String> {
        let is_number = self.one_of.is_none() && self.whole.is_none() && self.times.is_none();
        for (name, is_given, belongs) in [
            ("within", self.within.is_some(), is_number),
            ("decimals", self.decimals.is_some(), is_number || self.times.is_some()),
            ("weights", self.weights.is_some(), self.one_of.is_some()),
            ("until", self.until.is_some(), self.times.is_some()),
        ] {
            if is_given && !belongs {
                return Err(format!("has `{name}`, which this distribution does not have; leave it out"));
            }
        }
        self.within.map_or(Ok(()), |limits| ordered(limits).map(drop))
    }

    fn number(&self, rng: &mut Rng) -> Result<f64, String> {
        if let Some(limits) = self.uniform {
            let [least, most] = ordered(limits)?;
            return Ok(rng.range(least, most));
        }
        if let Some(limits) = self.log_uniform {
            let [least, most] = ordered(limits)?;
            if least <= 0.0 {
                return Err(format!("has the limit {least}; the limits of `log_uniform` are above 0"));
            }
            return Ok(libm::exp(rng.range(libm::log(least), libm::log(most))));
        }
        if let Some([mean, deviation]) = self.normal {
            if !(mean.is_finite() && deviation.is_finite() && deviation >= 0.0) {
                return Err(format!(
                    "has the deviation {deviation}; give the mean, and a deviation of 0 or more"
                ));
            }
            return Ok(mean + deviation * rng.normal());
        }
        let mean = self.exponential.unwrap_or(f64::NAN);
        if !(mean.is_finite() && mean > 0.0) {
            return Err(format!("has the mean {mean}; the mean of `exponential` is above 0"));
        }
        Ok(rng.exponential(mean))
    }

    /// One of the values, by their weights.
    fn choose<'a>(&self, values: &'a [Value], rng: &mut Rng) -> Result<&'a Value, String> {
        let weights = self.weights.clone().unwrap_or_else(|| vec![1.0; values.len()]);
        let sum: f64 = weights.iter().sum();
        let is_valid = |weight: &f64| weight.is_finite() && *weight >= 0.0;
        if values.is_empty() || weights.len() != values.len() || !weights.iter().all(is_valid) || sum <= 0.0 {
            let reason = format!(
                "has {} values and {} weights; give a value or more, and for each a weight of 0 or more",
                values.len(),
                weights.len()
            );
            return Err(reason);
        }
        let mut rest = rng.uniform() * sum;
        for (value, weight) in values.iter().zip(&weights) {
            rest -= weight;
            if rest < 0.0 {
                return Ok(value);
            }
        }
        // The last weight may be 0, and the sum may be rounded.
        let last = weights.iter().rposition(|weight| *weight > 0.0).unwrap_or(0);
        Ok(&values[last])
    }

    /// Ascending times with uniform gaps, up to `until`.
    fn times(&self, [least, most]: [f64; 2], rng: &mut Rng) -> Result<Value, String> {
        let Some(until) = self.until.filter(|until| until.is_finite()) else {
            return Err("has `times` without `until`; give the end of the list in seconds".to_owned());
        };
        if least <= 0.0 || until / least > MAX_TIMES as f64 {
            return Err(format!(
                "has gaps of {least} s up to {until} s; give gaps above 0 for at most {MAX_TIMES} times"
            ));
        }
        let mut times = Vec::new();
        let mut now = rng.range(least, most);
        while now < until {
            times.push(Value::Float(self.rounded(now)));
            now += rng.range(least, most);
        }
        Ok(Value::Array(times))
    }

    /// Rounds a number, because people read and type it.
    ///
    /// Chosen: four significant digits, if `decimals` is absent.
    fn rounded(&self, number: f64) -> f64 {
        let text = match self.decimals {
            Some(decimals) => format!("{number:.*}", decimals.min(12) as usize),
            None => format!("{number:.3e}"),
        };
        text.parse().unwrap_or(number)
    }
}

fn ordered([least, most]: [f64; 2]) -> Result<[f64; 2], String> {
    match least.is_finite() && most.is_finite() && least <= most {
        true => Ok([least, most]),
        false => Err(format!("has the limits {least} and {most}; give the smaller one first")),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::Variants;

    const BASE: &str = "name = \"places\"\nabout = \"A cell\"\nduration_s = 1\n[internet]\nrate_mbps = 10\n\
                        [[flow]]\nrtt_ms = 20\n";

    fn read(population: &str) -> Result<Variants, String> {
        Variants::read(&format!("{BASE}{population}"), "places.toml").map_err(|error| error.to_string())
    }

    fn rates(variants: &Variants) -> Vec<(String, f64)> {
        let load = |index| variants.load(index, &[]).unwrap();
        let all = (0..variants.len()).map(load);
        all.map(|one| (one.name.clone(), one.internet.as_ref().unwrap().rate_mbps)).collect()
    }

    #[test]
    fn members_have_the_sizes_of_their_strata_and_values_within_limits() {
        let text = "[population]\nseed = 7\nset = { \"flow.0.label\" = \"one\" }\n\
                    draw.flow.0.rtt_ms = { whole = [40, 70] }\n\
                    [[population.stratum]]\nname = \"slow\"\ncount = 12\n\
                    draw = { \"internet.rate_mbps\" = { log_uniform = [1, 4] } }\n\
                    [[population.stratum]]\nname = \"fast\"\ncount = 2\n\
                    draw = { \"internet.rate_mbps\" = { normal = [50, 20], within = [40, 60], decimals = 1 } }\n";
        let variants = read(text).unwrap();
        let all = rates(&variants);
        assert_eq!(all.len(), 14);
        assert_eq!((all[0].0.as_str(), all[13].0.as_str()), ("places-slow-01", "places-fast-2"));
        assert!(all[..12].iter().all(|(_, rate)| (1.0..=4.0).contains(rate)), "{all:?}");
        assert!(all[12..].iter().all(|(_, rate)| (40.0..=60.0).contains(rate)), "{all:?}");
        let first = variants.load(0, &[]).unwrap();
        assert_eq!(first.flow[0].label, "one");
        assert!((40.0..=70.0).contains(&first.flow[0].rtt_ms) && first.flow[0].rtt_ms.fract() == 0.0);
        let again = read(text).unwrap();
        assert_eq!(rates(&again), all, "the seed decides");
        assert_ne!(rates(&read(&text.replace("seed = 7", "seed = 8")).unwrap()), all);
        let more = read(&text.replace("count = 2", "count = 3").replace("slow", "calm")).unwrap();
        let rate_of = |all: &[(String, f64)], name: &str| all.iter().find(|one| one.0 == name).unwrap().1;
        let more = rates(&more);
        assert_eq!(rate_of(&more, "places-fast-2"), all[13].1, "members of other strata keep their values");
    }

    #[test]
    fn the_list_of_members_is_a_file_of_the_same_experiments() {
        let text = "[[population.stratum]]\nname = \"a\"\ncount = 3\n\
                    draw = { \"internet.rate_mbps\" = { uniform = [5, 50] }, \"duration_s\" = { one_of = [1, 2] } }\n";
        let drawn = read(text).unwrap();
        let listed = Variants::read(&format!("{BASE}{}", drawn.to_toml()), "list.toml").unwrap();
        assert_eq!(rates(&listed), rates(&drawn));
    }

    #[test]
    fn lists_and_tables_hold_drawn_values_too() {
        let text = "[[population.stratum]]\nname = \"walk\"\ncount = 4\n[population.stratum.draw]\n\
                    \"cell.prbs\" = { one_of = [25, 50], weights = [0, 1] }\n\
                    \"device.0.radio.channel.sinr_points_db\" = [[0, { uniform = [15, 24] }], [1, { uniform = [2, 7] }]]\n\
                    \"device.0.radio.handover_s\" = { times = [0.2, 0.4], until = 1 }\n";
        let text = format!("name = \"walks\"\nduration_s = 1\n[cell]\n[[flow]]\nrtt_ms = 20\n{text}");
        let variants = Variants::read(&text, "walks.toml").unwrap();
        for index in 0..4 {
            let one = variants.load(index, &[]).unwrap();
            let radio = &one.device[0].radio;
            assert_eq!(one.cell.as_ref().unwrap().prbs, Some(50), "a weight of 0 is never drawn");
            assert!((2..=4).contains(&radio.handover_s.len()), "{:?}", radio.handover_s);
        }
    }

    #[test]
    fn a_population_that_cannot_be_names_key_and_remedy() {
        let stratum = "[[population.stratum]]\nname = \"a\"\ncount = 2\n";
        let draw = |what: &str| format!("{stratum}draw = {{ \"internet.rate_mbps\" = {what} }}\n");
        for (text, expected) in [
            ("[population]\nseed = 3\n".to_owned(), "`population` has no stratum; write each group"),
            ("[population]\nseeds = 3\n".to_owned(), "unknown field `seeds`"),
            (
                stratum.replace("count = 2", "count = 0"),
                "`population.stratum.0.count` is 0; a population has 1 to",
            ),
            (stratum.replace("\"a\"", "\"\""), "`population.stratum.0.name` is empty"),
            (format!("{stratum}{stratum}"), "`population.stratum.1.name` is `a`, as is that of an earlier"),
            (
                draw("{ uniform = [9, 3] }"),
                "`population.stratum.0.draw.internet.rate_mbps` has the limits 9 and 3",
            ),
            (draw("{ log_uniform = [0, 3] }"), "are above 0"),
            (draw("{ normal = [0, -3] }"), "a deviation of 0 or more"),
            (draw("{ normal = [0, 1], within = [50, 60] }"), "widen `within`"),
            (draw("{ exponential = 0 }"), "the mean of `exponential` is above 0"),
            (draw("{ one_of = [] }"), "give a value or more"),
            (draw("{ one_of = [1], weights = [1, 2] }"), "1 values and 2 weights"),
            (draw("{ one_of = [1], until = 2 }"), "has `until`, which this distribution does not have"),
            (draw("{ uniform = [1, 2], whole = [1, 2] }"), "has several distributions"),
            (draw("{ times = [1, 2] }"), "`times` without `until`"),
            (draw("{ uniform = [1, 2], digits = 3 }"), "unknown field `digits`"),
            (
                draw("{ gaussian = [1, 2], decimals = 3 }"),
                "has no distribution; there are uniform, log_uniform, normal,",
            ),
            (format!("{stratum}[[variant]]\nname = \"b\"\n"), "stands beside `variant`"),
        ] {
            let said = read(&text).expect_err(&text);
            assert!(said.contains(expected), "{text}: {said}");
        }
        let unknown =
            read(&format!("{stratum}draw = {{ \"flow.0.rtt\" = {{ whole = [1, 2] }} }}\n")).unwrap();
        let said = unknown.load(0, &[]).unwrap_err().to_string();
        assert!(said.contains("variant `a-1`") && said.contains("rtt_ms"), "{said}");
    }

    proptest! {
        #[test]
        fn drawn_numbers_lie_within_their_limits(
            seed in 0..u64::from(u32::MAX), least in 0.01..10.0_f64, span in 0.0..50.0_f64, kind in 0..3_usize
        ) {
            let kind = ["uniform", "log_uniform", "normal"][kind];
            let (least, most) = ((least * 100.0).round() / 100.0, ((least + span) * 100.0).round() / 100.0);
            let within = if kind == "normal" { "within = [0.5, 1000]," } else { "" };
            let text = format!(
                "[population]\nseed = {seed}\n[[population.stratum]]\nname = \"m\"\ncount = 5\n\
                 draw.duration_s = {{ {kind} = [{least:?}, {most:?}], {within} decimals = 6 }}\n"
            ).replace(", }", " }");
            let variants = read(&text).unwrap();
            for index in 0..5 {
                let drawn = variants.load(index, &[]).unwrap().duration_s;
                let limits = if kind == "normal" { 0.5..=1000.0 } else { least - 1e-6..=most + 1e-6 };
                prop_assert!(limits.contains(&drawn), "{} gives {}", kind, drawn);
            }
        }
    }
}
