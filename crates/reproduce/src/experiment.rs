//! Experiments of the papers.

use airpace_core::Refused;
use airpace_run::RunError;
use airpace_run::sweep::{Axis, Spec, VARIANT};
use airpace_sim::{Variants, builtin};

use crate::causes::Cause;
use crate::measure::Measurement;
use crate::number::Number;
use crate::results::{Results, stratum_of};

/// An experiment of a paper.
pub struct Experiment {
    /// Its name: the paper and the table, figure or section, such as `pbe/fig14`.
    pub id: &'static str,
    /// Title, one line.
    pub title: &'static str,
    /// Place in the paper.
    pub source: &'static str,
    /// How our world differs from the paper's, and what follows for the numbers; empty if nothing does.
    pub world: &'static str,
    /// The runs or measurements that it needs.
    pub evidence: Evidence,
    /// Computes numbers and figures from it.
    pub findings: fn(&Results) -> Findings,
}

/// Origin of an experiment's numbers.
pub enum Evidence {
    /// Runs of the simulator, which are the same on every machine.
    Simulated(fn(Size) -> Vec<Campaign>),
    /// Measurements of this machine in real time.
    Measured(&'static [Measurement]),
}

impl Experiment {
    /// The runs of the simulator that it needs.
    pub fn campaigns(&self, size: Size) -> Vec<Campaign> {
        match self.evidence {
            Evidence::Simulated(campaigns) => campaigns(size),
            Evidence::Measured(_) => Vec::new(),
        }
    }

    /// The measurements that it needs.
    pub fn measurements(&self) -> &'static [Measurement] {
        match self.evidence {
            Evidence::Simulated(_) => &[],
            Evidence::Measured(measurements) => measurements,
        }
    }

    /// Whether its numbers depend on this machine.
    pub fn is_measured(&self) -> bool {
        matches!(self.evidence, Evidence::Measured(_))
    }
}

/// How much of an experiment is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// All of it.
    Whole,
    /// A few runs, which show a regression.
    Quick,
}

impl Size {
    /// `whole` or `quick`.
    pub fn choose<T>(self, whole: T, quick: T) -> T {
        match self {
            Size::Whole => whole,
            Size::Quick => quick,
        }
    }

    /// The seeds 1 to `whole`, or only the first.
    pub fn seeds(self, whole: u64) -> Vec<u64> {
        (1..=self.choose(whole, 1)).collect()
    }
}

/// Runs of one scenario: schemes × seeds × values of keys. Campaigns of several experiments share their runs.
pub struct Campaign {
    /// Name within the experiment.
    pub name: &'static str,
    /// Name of the scenario: a built-in one, or that of `text`.
    pub scenario: &'static str,
    /// Text of the scenario; empty for a built-in one.
    pub text: &'static str,
    /// Keys that are set, each with its values as behind `--set`.
    pub set: Vec<(&'static str, String)>,
    /// The schemes.
    pub schemes: &'static [&'static str],
    /// The seeds.
    pub seeds: Vec<u64>,
    /// Number of members of each stratum of a population; `None` for all.
    pub per_stratum: Option<usize>,
    /// Start and end, in milliseconds, of the part of a run for which details of the radio are kept.
    pub traced_ms: Option<(u64, u64)>,
}

impl Campaign {
    /// Runs of a built-in scenario.
    pub fn of(scenario: &'static str, schemes: &'static [&'static str], seeds: Vec<u64>) -> Campaign {
        let (name, text, set, per_stratum, traced_ms) = ("", "", Vec::new(), None, None);
        Campaign { name, scenario, text, set, schemes, seeds, per_stratum, traced_ms }
    }

    /// The campaign with a key set.
    pub fn with(mut self, key: &'static str, value: impl ToString) -> Campaign {
        self.set.push((key, value.to_string()));
        self
    }

    /// The campaign as a sweep.
    ///
    /// # Errors
    /// The scenario or a key is invalid, which is a mistake in this crate.
    pub fn spec(&self) -> Result<Spec, RunError> {
        let text = match self.text {
            "" => builtin().iter().find(|(name, _)| *name == self.scenario).map_or("", |(_, text)| *text),
            text => text,
        };
        let mut set: Vec<Axis> =
            self.set.iter().map(|(key, values)| Axis::parse(key, values)).collect::<Result<_, Refused>>()?;
        if let Some(most) = self.per_stratum {
            let variants = Variants::read(text, self.scenario)?;
            set.insert(0, Axis::of(VARIANT, first_members(variants.names(), most))?);
        }
        let schemes: Vec<String> = self.schemes.iter().map(|scheme| (*scheme).to_owned()).collect();
        Spec::of(self.scenario.to_owned(), text.to_owned(), set, &schemes, self.seeds.clone())
    }
}

/// The first `most` members of each stratum. The name of a member is that of its stratum and a number.
fn first_members<'a>(names: impl Iterator<Item = &'a str>, most: usize) -> Vec<String> {
    let mut taken: Vec<(&str, usize)> = Vec::new();
    let mut first = Vec::new();
    for name in names {
        let stratum = stratum_of(name);
        let count = match taken.iter_mut().find(|(known, _)| *known == stratum) {
            Some((_, count)) => count,
            None => {
                taken.push((stratum, 0));
                &mut taken.last_mut().expect("it was just added").1
            }
        };
        *count += 1;
        if *count <= most {
            first.push(name.to_owned());
        }
    }
    first
}

/// Numbers and figures of an experiment.
#[derive(Default)]
pub struct Findings {
    /// The numbers, in the order of the paper.
    pub numbers: Vec<Number>,
    /// The figures.
    pub pictures: Vec<Picture>,
}

/// An experiment with its findings.
pub struct Reproduced {
    /// The experiment.
    pub experiment: &'static Experiment,
    /// Its findings.
    pub findings: Findings,
    /// Sentences about its evidence: where seeds change nothing, how it was measured, why it was not.
    pub notes: String,
}

impl Reproduced {
    /// The findings of `experiment` in these results.
    pub fn of(experiment: &'static Experiment, results: &Results) -> Reproduced {
        Reproduced { experiment, findings: (experiment.findings)(results), notes: results.notes() }
    }

    /// Why numbers differ, one text per cause.
    pub fn causes(&self) -> Vec<String> {
        let found = Cause::of(self.experiment.id, &self.findings.numbers);
        found.iter().map(|(cause, numbers)| cause.text(numbers)).collect()
    }

    /// All that is to be said about the evidence: how our world differs from the paper's, and the notes.
    pub fn about(&self) -> String {
        [self.experiment.world, &self.notes]
            .into_iter()
            .filter(|text| !text.is_empty())
            .collect::<Vec<_>>()
            .join(" ")
    }
}

/// A figure.
pub struct Picture {
    /// Name of the file, without its ending.
    pub name: &'static str,
    /// The figure.
    pub figure: airpace_plot::Figure,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_members_of_each_stratum_are_taken() {
        let names = ["a-1", "a-2", "a-3", "b-x-1", "b-x-2"];
        assert_eq!(first_members(names.into_iter(), 2), ["a-1", "a-2", "b-x-1", "b-x-2"]);
    }
}
