//! The runs of an experiment.

use airpace_core::count::count;
use airpace_run::metrics::{Course, FlowMetrics, RadioTrace};
use airpace_run::statistics::{self, Estimate};
use airpace_run::summary::RunSummary;

use crate::measure::{Measured, Measurement};

/// The stratum of a population's member.
pub fn stratum_of(member: &str) -> &str {
    member.rsplit_once('-').map_or(member, |(stratum, _)| stratum)
}

/// A finished run.
#[derive(Clone, Debug)]
pub struct Run {
    /// The variant of the scenario or the member of its population; empty if there are none.
    pub variant: String,
    /// The other keys that were set, with their values.
    pub set: Vec<(String, String)>,
    /// The scheme under test, as spelled.
    pub scheme: String,
    /// Seed of the run.
    pub seed: u64,
    /// All metrics.
    pub summary: RunSummary,
    /// The courses of its flows.
    pub courses: Vec<Course>,
    /// The radio in detail, if the campaign requests it.
    pub trace: Option<RadioTrace>,
}

impl Run {
    /// Metrics of the flow with this index.
    pub fn flow(&self, index: usize) -> &FlowMetrics {
        &self.summary.flows[index].metrics
    }

    /// The stratum of the population to which the member belongs.
    pub fn stratum(&self) -> &str {
        stratum_of(&self.variant)
    }
}

/// The runs of all campaigns of an experiment, and its measurements.
#[derive(Default)]
pub struct Results {
    campaigns: Vec<(&'static str, Vec<Run>)>,
    measured: Vec<(Measurement, Result<Measured, String>)>,
}

impl Results {
    /// Results with these runs by campaign.
    pub fn new(campaigns: Vec<(&'static str, Vec<Run>)>) -> Results {
        Results { campaigns, ..Results::default() }
    }

    /// The same with these measurements: the result of each, or the reason why there is none.
    pub fn with_measured(self, measured: Vec<(Measurement, Result<Measured, String>)>) -> Results {
        Results { measured, ..self }
    }

    /// The result of a measurement; `None` if it was not made.
    pub fn measured(&self, measurement: &Measurement) -> Option<&Measured> {
        let (_, result) = self.measured.iter().find(|(known, _)| known.name == measurement.name)?;
        result.as_ref().ok()
    }

    /// Sentences about the evidence: where seeds change nothing, how it was measured, why it was not. Empty if there is
    /// nothing to report.
    pub(crate) fn notes(&self) -> String {
        let commands: Vec<String> =
            self.measured.iter().map(|(measurement, _)| format!("`{}`", measurement.as_typed())).collect();
        let how = match commands.as_slice() {
            [] => None,
            commands => Some(format!(
                "Measured in real time by {}; another machine gives other numbers.",
                commands.join(", ")
            )),
        };
        let missing: Vec<&String> =
            self.measured.iter().filter_map(|(_, result)| result.as_ref().err()).collect();
        let reason = missing.first().map(|reason| match missing.len() {
            1 => format!("There is no result: {reason}."),
            count => format!("{count} results are missing. The first, because {reason}."),
        });
        let notes = [self.note_on_runs(), self.note_on_seeds()].into_iter().chain(how).chain(reason);
        notes.filter(|note| !note.is_empty()).collect::<Vec<_>>().join(" ")
    }

    /// The runs of a campaign.
    pub fn of(&self, campaign: &str) -> Runs<'_> {
        let found = self.campaigns.iter().find(|(name, _)| *name == campaign);
        Runs(found.map_or(Vec::new(), |(_, runs)| runs.iter().collect()))
    }

    /// The number of runs and their seeds; empty without runs.
    fn note_on_runs(&self) -> String {
        let runs = || self.campaigns.iter().flat_map(|(_, runs)| runs);
        let Some(last) = runs().map(|run| run.seed).max() else { return String::new() };
        let seeds = if last == 1 { "seed 1".to_owned() } else { format!("seeds 1 to {last}") };
        format!("{}, {seeds}.", count(runs().count() as u64, "run"))
    }

    /// A sentence if seeds change nothing in some runs that differ in nothing else; empty otherwise.
    fn note_on_seeds(&self) -> String {
        let (mut cases, mut same) = (0, 0);
        for (_, runs) in &self.campaigns {
            let runs = Runs(runs.iter().collect());
            for scheme in runs.schemes() {
                for its in runs.with(scheme).each_place() {
                    cases += u64::from(its.0.len() > 1);
                    same += u64::from(its.0.len() > 1 && its.differ_by_seed_only());
                }
            }
        }
        match same {
            0 => String::new(),
            _ if same == cases => "The seeds change nothing here.".to_owned(),
            _ => {
                format!("The seeds change nothing in {same} of {} of scheme and place.", count(cases, "pair"))
            }
        }
    }

    /// The runs of the only campaign.
    pub fn all(&self) -> Runs<'_> {
        self.of("")
    }
}

/// Some runs, in the order of variants, keys, schemes and seeds.
#[derive(Clone, Debug)]
pub struct Runs<'a>(pub Vec<&'a Run>);

impl<'a> Runs<'a> {
    /// The runs with a property.
    pub fn such(&self, has: impl Fn(&Run) -> bool) -> Runs<'a> {
        Runs(self.0.iter().copied().filter(|run| has(run)).collect())
    }

    /// The runs of a scheme.
    pub fn with(&self, scheme: &str) -> Runs<'a> {
        self.such(|run| run.scheme == scheme)
    }

    /// The schemes, in the order of the campaign.
    pub fn schemes(&self) -> Vec<&'a str> {
        distinct(self.0.iter().map(|run| run.scheme.as_str()))
    }

    /// The variants, in the order of the campaign.
    pub fn variants(&self) -> Vec<&'a str> {
        distinct(self.0.iter().map(|run| run.variant.as_str()))
    }

    /// A value of each run, without those that have none.
    pub fn values(&self, of: impl Fn(&Run) -> Option<f64>) -> Vec<f64> {
        self.0.iter().filter_map(|run| of(run)).collect()
    }

    /// Mean of a value over the runs.
    pub fn mean(&self, of: impl Fn(&Run) -> Option<f64>) -> Option<Estimate> {
        Estimate::of(&self.values(of))
    }

    /// For each variant and set of keys: the mean over the seeds of a value of a run. Runs without a value are left out.
    pub fn by_place(&self, of: impl Fn(&Run) -> Option<f64>) -> Vec<(Place<'a>, f64)> {
        let value = |its: Runs<'a>| Some((Place::of(its.0.first()?), statistics::mean(&its.values(&of))?));
        self.each_place().filter_map(value).collect()
    }

    /// The runs of each variant and set of keys.
    fn each_place(&self) -> impl Iterator<Item = Runs<'a>> {
        let places = distinct(self.0.iter().map(|run| Place::of(run)));
        places.into_iter().map(|place| self.such(|run| Place::of(run) == place))
    }

    /// Whether all runs have the same results.
    fn differ_by_seed_only(&self) -> bool {
        let unseeded = |run: &Run| RunSummary { seed: 0, ..run.summary.clone() };
        self.0.windows(2).all(|pair| unseeded(pair[0]) == unseeded(pair[1]))
    }

    /// Mean over the places of the ratio of a value of the scheme `one` to that of the scheme `other` at the same place.
    pub fn ratio(&self, one: &str, other: &str, of: impl Fn(&Run) -> Option<f64> + Copy) -> Option<Estimate> {
        Estimate::of(&self.ratios(one, other, of))
    }

    /// The ratios of [`Runs::ratio`], one per place.
    pub fn ratios(&self, one: &str, other: &str, of: impl Fn(&Run) -> Option<f64> + Copy) -> Vec<f64> {
        let others = self.with(other).by_place(of);
        let ratio = |(place, value): (Place<'a>, f64)| {
            let (_, divisor) = others.iter().find(|(known, _)| *known == place)?;
            (*divisor > 0.0).then(|| value / divisor)
        };
        self.with(one).by_place(of).into_iter().filter_map(ratio).collect()
    }
}

/// Variables in which the places of a campaign differ: the variant and the keys.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Place<'a> {
    /// Name of the variant.
    pub variant: &'a str,
    /// The keys that were set, with their values.
    pub set: &'a [(String, String)],
}

impl<'a> Place<'a> {
    fn of(run: &'a Run) -> Place<'a> {
        Place { variant: &run.variant, set: &run.set }
    }
}

fn distinct<T: PartialEq + Copy>(values: impl Iterator<Item = T>) -> Vec<T> {
    let mut found: Vec<T> = Vec::new();
    for value in values {
        if !found.contains(&value) {
            found.push(value);
        }
    }
    found
}

/// Throughput of the first flow, in Mbit/s.
pub fn throughput(run: &Run) -> Option<f64> {
    Some(run.flow(0).throughput_mbps)
}

/// Mean one-way delay of the first flow, in ms.
pub fn mean_delay(run: &Run) -> Option<f64> {
    run.flow(0).one_way_delay_ms.mean
}

/// 95th percentile of the one-way delay of the first flow, in ms.
pub fn p95_delay(run: &Run) -> Option<f64> {
    run.flow(0).one_way_delay_ms.p95
}
