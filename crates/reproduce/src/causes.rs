//! Why numbers differ from the papers'. A cause names the runs that show it; a number that differs only in our world is not
//! called wrong.

use std::fmt;

use serde::Serialize;

use crate::number::{Number, Verdict};

/// Where the cause of a difference lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// The network of our experiment is another than the paper's, or the paper does not describe its own.
    World,
    /// Our model of the cell, or of a scheme or a program of others, behaves in another way.
    Model,
    /// The text of the paper does not give what the paper reports.
    Text,
    /// The cause is not known.
    Open,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Place::World => "our world",
            Place::Model => "our model",
            Place::Text => "the paper's text",
            Place::Open => "not known",
        })
    }
}

/// Why some numbers of an experiment differ.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Cause {
    /// Name of the experiment.
    pub experiment: &'static str,
    /// Texts of which a number's description contains one.
    pub numbers: &'static [&'static str],
    /// Where the cause lies.
    pub place: Place,
    /// The cause.
    pub why: &'static str,
    /// The runs that show it: rows of the same table, or a command with its result.
    pub seen: &'static str,
}

impl Cause {
    /// The causes of the numbers of an experiment that differ, each with those numbers. A number has the first cause that
    /// names it.
    pub fn of<'n>(experiment: &str, numbers: &'n [Number]) -> Vec<(&'static Cause, Vec<&'n Number>)> {
        let mut found: Vec<(&'static Cause, Vec<&'n Number>)> = Vec::new();
        for number in numbers.iter().filter(|number| number.verdict() == Verdict::Differs) {
            let Some(cause) = Cause::named(experiment, &number.what) else { continue };
            match found.iter_mut().find(|(known, _)| std::ptr::eq(*known, cause)) {
                Some((_, its)) => its.push(number),
                None => found.push((cause, vec![number])),
            }
        }
        found
    }

    /// The cause of a number with this description.
    pub fn named(experiment: &str, what: &str) -> Option<&'static Cause> {
        let names = |cause: &&Cause| {
            cause.experiment == experiment && cause.numbers.iter().any(|part| what.contains(part))
        };
        CAUSES.iter().find(names)
    }

    /// The numbers, where the cause lies, the cause, and the runs, as sentences.
    pub fn text(&self, numbers: &[&Number]) -> String {
        let which = match numbers {
            [one] => format!("\"{}\"", one.what),
            [one, ..] => format!("\"{}\" and {} more", one.what, numbers.len() - 1),
            [] => String::new(),
        };
        format!("{which} ({}): {} {}", self.place, self.why, self.seen)
    }
}

/// All causes. The first that names a number is taken.
pub static CAUSES: &[Cause] = &[];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::list::EXPERIMENTS;

    /// The numbers of the published page that differ, each with its experiment. Measured ones depend on the machine.
    fn published() -> Vec<(&'static str, &'static str)> {
        let page = include_str!("../../../docs/evaluation/reproduction.md");
        let is_measured = |id: &str| EXPERIMENTS.iter().any(|one| one.id == id && one.is_measured());
        let mut experiment = "";
        let mut found = Vec::new();
        for line in page.lines() {
            if let Some((id, _)) = line.strip_prefix("## ").and_then(|heading| heading.split_once(": ")) {
                experiment = id;
            }
            if line.ends_with("| differs |") && !is_measured(experiment) {
                let what = line.trim_start_matches("| ").split(" | ").next().expect("a first cell");
                found.push((experiment, what));
            }
        }
        found
    }

    #[test]
    fn each_number_of_the_published_page_that_differs_has_a_cause() {
        let without: Vec<_> =
            published().into_iter().filter(|(id, what)| Cause::named(id, what).is_none()).collect();
        assert!(without.is_empty(), "{without:#?}");
    }

    #[test]
    fn each_cause_explains_a_number_of_the_published_page() {
        let published = published();
        for cause in CAUSES {
            let explains = |(id, what): &(&str, &str)| {
                Cause::named(id, what).is_some_and(|known| std::ptr::eq(known, cause))
            };
            assert!(published.iter().any(explains), "{}: {:?}", cause.experiment, cause.numbers);
        }
    }
}
