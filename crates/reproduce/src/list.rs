//! The list of all experiments.

use airpace_core::nearest::instead;
use airpace_core::{Refused, Remedy};

use crate::experiment::{Experiment, Size};
use crate::{biscay, morc, pbe};

/// All experiments: by paper, then in the order of the paper.
pub static EXPERIMENTS: &[&Experiment] = &[
    &pbe::places::TABLE_1,
    &pbe::second_carrier::FIG_2,
    &pbe::lost_block::FIG_3,
    &pbe::users::FIG_5,
    &pbe::overhead::FIG_6,
    &pbe::users::USERS,
    &pbe::decoder::DECODER,
    &pbe::users::FIG_11S,
    &pbe::overhead::FIG_7,
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
    &biscay::correlation::FIG_7,
    &biscay::modem::FIG_4A,
    &biscay::modem::FIG_4B,
    &biscay::modem::FIG_4C,
    &biscay::links::TABLE_1,
    &biscay::correlation::FIG_5,
    &biscay::sampling::FIG_6,
    &biscay::links::FIG_8,
    &biscay::flows::TABLE_2,
    &biscay::flows::FIG_9,
    &biscay::bottleneck::FIG_10,
    &biscay::sampling::FIG_11A,
    &biscay::kernel::FIG_11B,
    &morc::video::FIG_2,
    &morc::downloads::FIG_4,
    &morc::links::TABLE_1,
    &morc::flows::FIG_5,
    &morc::video::FIG_6,
    &morc::video::LAB,
    &morc::marks::TABLE_2,
];

/// Further tables and figures of the papers, each with an experiment that has it.
const ALSO: &[(&str, &str)] = &[
    ("pbe/fig12", "pbe/fig11"),
    ("pbe/fig15", "pbe/fig14"),
    ("pbe/fig17", "pbe/fig16"),
    ("pbe/fig18", "pbe/fig18a"),
    ("pbe/fig18", "pbe/fig18b"),
    ("pbe/fig18", "pbe/fig18c"),
    ("pbe/fig18", "pbe/fig18d"),
    ("biscay/fig1", "biscay/fig7"),
    ("biscay/fig4", "biscay/fig4a"),
    ("biscay/fig4", "biscay/fig4b"),
    ("biscay/fig4", "biscay/fig4c"),
    ("biscay/fig11", "biscay/fig11a"),
    ("biscay/fig11", "biscay/fig11b"),
    ("biscay/table3", "biscay/fig9"),
];

/// The experiments that `words` name: `all`, a paper (`pbe`), or an experiment (`pbe/fig14`). The order is that of
/// [`EXPERIMENTS`]. In the quick size, `all` and a paper leave out measurements in real time, because such numbers are not
/// the same in two runs.
///
/// # Errors
/// A word names nothing; the error has the nearest name.
pub fn named(words: &[String], size: Size) -> Result<Vec<&'static Experiment>, Refused> {
    let is_named = |word: &str, experiment: &Experiment| {
        let is_group = word == "all" || Some(word) == experiment.id.split('/').next();
        let is_also = ALSO.iter().any(|(name, id)| *name == word && *id == experiment.id);
        word == experiment.id || is_also || is_group && (size == Size::Whole || !experiment.is_measured())
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
                for campaign in experiment.campaigns(size) {
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
            named(&words, Size::Whole).map(|found| found.iter().map(|one| one.id).collect::<Vec<_>>())
        };
        assert_eq!(of(&["pbe/fig14"]).unwrap(), ["pbe/fig14"]);
        assert_eq!(of(&["pbe/fig15", "biscay/table3"]).unwrap(), ["pbe/fig14", "biscay/fig9"]);
        assert_eq!(of(&["biscay/fig11"]).unwrap(), ["biscay/fig11a", "biscay/fig11b"]);
        for (name, id) in ALSO {
            assert!(ids.contains(id) && !ids.contains(name), "{name} {id}");
        }
        assert_eq!(of(&["all"]).unwrap(), ids);
        assert!(of(&["morc"]).unwrap().iter().all(|id| id.starts_with("morc/")));
        let quick = named(&["biscay".to_owned(), "pbe/decoder".to_owned()], Size::Quick).unwrap();
        let measured: Vec<&str> = quick.iter().filter(|one| one.is_measured()).map(|one| one.id).collect();
        assert_eq!(measured, ["pbe/decoder"], "a paper leaves out measurements, their own names do not");
        let said = of(&["pbe/fig144"]).unwrap_err().to_string();
        assert!(said.contains("did you mean `pbe/fig14`?"), "{said}");
    }

    #[test]
    fn measurements_of_one_name_are_one() {
        let all: Vec<_> = EXPERIMENTS.iter().flat_map(|experiment| experiment.measurements()).collect();
        for one in &all {
            for other in all.iter().filter(|other| other.name == one.name) {
                assert_eq!(one.as_typed(), other.as_typed());
            }
        }
    }

    #[test]
    fn the_published_page_has_every_experiment() {
        let page = include_str!("../../../docs/evaluation/reproduction.md");
        for experiment in EXPERIMENTS {
            let heading =
                format!("## {}: {}\n\nSource: {}.", experiment.id, experiment.title, experiment.source);
            assert!(
                page.contains(&heading),
                "{heading} is missing; `airpace reproduce all` makes reproduction.md"
            );
        }
    }
}
