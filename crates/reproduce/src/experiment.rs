//! Experiments of the papers, and the list of all.

use airpace_core::nearest::instead;
use airpace_core::{Refused, Remedy};
use airpace_run::RunError;
use airpace_run::sweep::{Axis, Spec, VARIANT};
use airpace_sim::{Variants, builtin};

use crate::number::Number;
use crate::results::Results;
use crate::{biscay, morc, pbe};

/// An experiment of a paper.
pub struct Experiment {
    /// Its name: the paper and the table, figure or section, such as `pbe/fig14`.
    pub id: &'static str,
    /// What it shows, in one line.
    pub title: &'static str,
    /// Place in the paper.
    pub source: &'static str,
    /// How our world differs from the paper's, and what follows for the numbers; empty if nothing does.
    pub world: &'static str,
    /// The runs that it needs.
    pub campaigns: fn(Size) -> Vec<Campaign>,
    /// Computes numbers and figures from the runs.
    pub findings: fn(&Results) -> Findings,
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
}

impl Campaign {
    /// Runs of a built-in scenario.
    pub fn of(scenario: &'static str, schemes: &'static [&'static str], seeds: Vec<u64>) -> Campaign {
        Campaign { name: "", scenario, text: "", set: Vec::new(), schemes, seeds, per_stratum: None }
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

/// The stratum of a population's member.
pub fn stratum_of(member: &str) -> &str {
    member.rsplit_once('-').map_or(member, |(stratum, _)| stratum)
}

/// Numbers and figures of an experiment.
#[derive(Default)]
pub struct Findings {
    /// The numbers, in the order of the paper.
    pub numbers: Vec<Number>,
    /// The figures.
    pub pictures: Vec<Picture>,
    /// Sentences about the result that were computed, such as that seeds change nothing.
    pub notes: Vec<String>,
}

/// A figure.
pub struct Picture {
    /// Name of the file, without its ending.
    pub name: &'static str,
    /// The figure.
    pub figure: airpace_plot::Figure,
}

/// All experiments: by paper, then in the order of the paper.
pub static EXPERIMENTS: &[&Experiment] = &[
    &pbe::places::TABLE_1,
    &pbe::places::FIG_10,
    &pbe::places::FIG_11,
    &pbe::places::FIG_13,
    &pbe::places::STATES,
    &pbe::mobility::FIG_14,
    &pbe::competitor::FIG_16,
    &pbe::fairness::FIG_18A,
    &pbe::fairness::FIG_18B,
    &pbe::fairness::FIG_18C,
    &pbe::fairness::FIG_18D,
    &pbe::two_flows::FIG_20,
    &biscay::FIG_10,
    &morc::downloads::FIG_4,
    &morc::links::TABLE_1,
    &morc::flows::FIG_5,
];

/// The experiments that `words` name: `all`, a paper (`pbe`), or an experiment (`pbe/fig14`). The order is that of
/// [`EXPERIMENTS`].
///
/// # Errors
/// A word names nothing; the error has the nearest name.
pub fn named(words: &[String]) -> Result<Vec<&'static Experiment>, Refused> {
    let is_named = |word: &str, experiment: &Experiment| {
        let paper = experiment.id.split('/').next();
        word == "all" || word == experiment.id || Some(word) == paper
    };
    let all = || EXPERIMENTS.iter().copied();
    if let Some(unknown) = words.iter().find(|word| !all().any(|experiment| is_named(word, experiment))) {
        let ids: Vec<&str> = all().map(|experiment| experiment.id).collect();
        let refused = Refused::new(format!(
            "no experiment is called `{unknown}`{}",
            instead(unknown, &ids, "there are")
        ));
        return Err(refused.but(Remedy::new("`all` names all experiments")));
    }
    Ok(all().filter(|experiment| words.iter().any(|word| is_named(word, experiment))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_campaign_is_a_valid_sweep_in_both_sizes() {
        for experiment in EXPERIMENTS {
            for size in [Size::Whole, Size::Quick] {
                for campaign in (experiment.campaigns)(size) {
                    let spec = campaign.spec();
                    assert!(spec.is_ok(), "{} {}: {:?}", experiment.id, campaign.name, spec.err());
                }
            }
        }
    }

    #[test]
    fn names_are_unique_and_found() {
        let ids: Vec<&str> = EXPERIMENTS.iter().map(|experiment| experiment.id).collect();
        let mut sorted = ids.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted.len(), ids.len(), "{ids:?}");
        let of = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            named(&words).map(|found| found.iter().map(|one| one.id).collect::<Vec<_>>())
        };
        assert_eq!(of(&["pbe/fig14"]).unwrap(), ["pbe/fig14"]);
        assert_eq!(of(&["all"]).unwrap(), ids);
        assert!(of(&["morc"]).unwrap().iter().all(|id| id.starts_with("morc/")));
        let said = of(&["pbe/fig144"]).unwrap_err().to_string();
        assert!(said.contains("did you mean `pbe/fig14`?"), "{said}");
    }

    #[test]
    fn the_published_page_has_every_experiment() {
        let page = include_str!("../../../docs/evaluation/reproduction.md");
        for experiment in EXPERIMENTS {
            let heading = format!("## {}: {}\n\nSource: {}.", experiment.id, experiment.title, experiment.source);
            assert!(page.contains(&heading), "{heading} is missing; `airpace reproduce all` makes reproduction.md");
        }
    }

    #[test]
    fn the_first_members_of_each_stratum_are_taken() {
        let names = ["a-1", "a-2", "a-3", "b-x-1", "b-x-2"];
        assert_eq!(first_members(names.into_iter(), 2), ["a-1", "a-2", "b-x-1", "b-x-2"]);
    }
}
