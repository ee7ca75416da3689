//! Comparison of numbers with those of an earlier `results.json`.

use std::fmt;

use airpace_run::statistics::three_digits;
use serde::{Deserialize, Serialize};

use crate::experiment::Reproduced;
use crate::number::{Number, Verdict};

/// An entry of `results.json`: a number with its experiment and verdict.
#[derive(Serialize)]
pub struct Entry<'a> {
    /// Name of the experiment.
    experiment: &'static str,
    #[serde(flatten)]
    number: &'a Number,
    verdict: Verdict,
}

impl<'a> Entry<'a> {
    /// The entries of all numbers.
    pub fn all(all: &'a [Reproduced]) -> impl Iterator<Item = Entry<'a>> {
        all.iter().flat_map(|one| {
            let experiment = one.experiment.id;
            let entry = move |number: &'a Number| Entry { experiment, number, verdict: number.verdict() };
            one.findings.numbers.iter().map(entry)
        })
    }
}

/// The contents of `results.json`: an array with an entry per line.
pub fn results_json(all: &[Reproduced]) -> String {
    let line = |entry: Entry<'_>| serde_json::to_string(&entry).expect("plain data with text keys");
    format!(
        "[
{}
]
",
        Entry::all(all).map(line).collect::<Vec<_>>().join(
            ",
"
        )
    )
}

/// A number of an earlier `results.json`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Earlier {
    experiment: String,
    what: String,
    ours: Option<EarlierOurs>,
    verdict: Verdict,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
struct EarlierOurs {
    /// `None` for an infinite number.
    value: Option<f64>,
}

/// A number that is not as it was.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Moved {
    /// Name of the experiment.
    pub experiment: String,
    /// The number.
    pub what: String,
    /// The earlier value; `None` if there was none.
    pub was: Option<f64>,
    /// The value now; `None` if there is none.
    pub is: Option<f64>,
    /// The earlier verdict; `None` if the number is new.
    pub was_verdict: Option<Verdict>,
    /// The verdict now; `None` if the number does not exist any more.
    pub is_verdict: Option<Verdict>,
}

impl fmt::Display for Moved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = |value: Option<f64>, verdict: Option<Verdict>| match verdict {
            None => "absent".to_owned(),
            Some(verdict) => format!("{} ({verdict})", value.map_or_else(|| "–".to_owned(), three_digits)),
        };
        let (was, is) = (side(self.was, self.was_verdict), side(self.is, self.is_verdict));
        write!(f, "{}: {}: was {was}, is {is}", self.experiment, self.what)
    }
}

/// The numbers of the experiments of `now` that differ from `earlier`: by more than `tolerance` (a share of the earlier
/// value), by their verdict, or by their existence. Numbers of other experiments are ignored, and numbers that are measured in
/// real time, because they depend on the machine.
pub fn moved(earlier: &[Earlier], now: &[Reproduced], tolerance: f64) -> Vec<Moved> {
    let mut moved = Vec::new();
    let is_measured =
        |id: &str| now.iter().any(|one| one.experiment.id == id && one.experiment.is_measured());
    let entries: Vec<Entry<'_>> = Entry::all(now).filter(|entry| !is_measured(entry.experiment)).collect();
    let is_same = |one: &Earlier, other: &Entry<'_>| {
        one.experiment == other.experiment && one.what == other.number.what
    };
    for entry in &entries {
        let is = entry.number.ours.map(|ours| ours.value).filter(|value| value.is_finite());
        let known = earlier.iter().find(|known| is_same(known, entry));
        let was = known.and_then(|known| known.ours.as_ref()?.value);
        let is_near = match (was, is) {
            (Some(was), Some(is)) => (is - was).abs() <= tolerance * was.abs(),
            (was, is) => was == is,
        };
        let was_verdict = known.map(|known| known.verdict);
        if !is_near || was_verdict != Some(entry.verdict) {
            moved.push(Moved {
                experiment: entry.experiment.to_owned(),
                what: entry.number.what.clone(),
                was,
                is,
                was_verdict,
                is_verdict: Some(entry.verdict),
            });
        }
    }
    let ids: Vec<&str> = now.iter().map(|one| one.experiment.id).collect();
    let gone = earlier.iter().filter(|known| {
        ids.contains(&known.experiment.as_str())
            && !is_measured(&known.experiment)
            && !entries.iter().any(|entry| is_same(known, entry))
    });
    moved.extend(gone.map(|known| Moved {
        experiment: known.experiment.clone(),
        what: known.what.clone(),
        was: known.ours.as_ref().and_then(|ours| ours.value),
        is: None,
        was_verdict: Some(known.verdict),
        is_verdict: None,
    }));
    moved
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Findings;
    use crate::list::EXPERIMENTS;
    use crate::number::Rule;
    use airpace_run::statistics::Estimate;

    fn findings(values: &[(&str, f64)]) -> [Reproduced; 1] {
        let number = |(what, value): &(&str, f64)| {
            let ours = Some(Estimate { value: *value, interval: None });
            Number::new(*what, "ms", 10.0, ours, Rule::Factor(1.5))
        };
        let numbers = values.iter().map(number).collect();
        let findings = Findings { numbers, pictures: Vec::new() };
        [Reproduced { experiment: EXPERIMENTS[0], findings, notes: String::new() }]
    }

    #[test]
    fn a_number_that_moved_is_found_by_value_verdict_and_existence() {
        let before = findings(&[
            ("kept", 10.0),
            ("moved", 10.0),
            ("judged", 14.9),
            ("gone", 1.0),
            ("never", f64::INFINITY),
        ]);
        let earlier: Vec<Earlier> = serde_json::from_str(&results_json(&before)).unwrap();
        assert!(moved(&earlier, &before, 0.0).is_empty(), "the same numbers");
        let after = findings(&[
            ("kept", 10.4),
            ("moved", 10.6),
            ("judged", 15.1),
            ("new", 2.0),
            ("never", f64::INFINITY),
        ]);
        let texts: Vec<String> = moved(&earlier, &after, 0.05).iter().map(Moved::to_string).collect();
        assert_eq!(
            texts,
            [
                "pbe/table1: moved: was 10 (reproduced), is 10.6 (reproduced)",
                "pbe/table1: judged: was 14.9 (reproduced), is 15.1 (differs)",
                "pbe/table1: new: was absent, is 2 (differs)",
                "pbe/table1: gone: was 1 (differs), is absent",
            ]
        );
    }
}
