//! Experiments of BISCAY.

use airpace_run::statistics::Estimate;
use airpace_sim::scenario::Recording;
use airpace_sim::{Variants, builtin};

use crate::results::{Run, Runs};

pub(crate) mod bottleneck;
pub(crate) mod correlation;
pub(crate) mod flows;
pub(crate) mod kernel;
pub(crate) mod links;
pub(crate) mod modem;
pub(crate) mod sampling;

/// The scenario with the 260 recorded links.
const LINKS: &str = "biscay-links";

/// The four scenarios of the paper's figures, with the parts of the names of their strata.
const SCENARIOS: [(&str, &str); 4] = [
    ("mobility, on-peak", "-mobile-peak"),
    ("mobility, off-peak", "-mobile-off"),
    ("static, on-peak", "-static-peak"),
    ("static, off-peak", "-static-off"),
];

/// The runs over links whose stratum has this in its name.
fn of_kind<'a>(runs: &Runs<'a>, kind: &str) -> Runs<'a> {
    runs.such(|run: &Run| run.stratum().contains(kind))
}

/// The recording of a link; `None` if there is no such link.
fn recording(member: &str) -> Option<Recording> {
    let (name, text) = builtin().iter().find(|(name, _)| *name == LINKS)?;
    let variants = Variants::read(text, name).ok()?;
    let index = variants.names().position(|name| name == member)?;
    variants.load(index, &[]).ok()?.prepare().ok()?.recording().cloned()
}

/// Ratio of two means, without an interval.
fn over(one: Option<f64>, other: Option<f64>) -> Option<Estimate> {
    let (one, other) = (one?, other?);
    (other > 0.0).then_some(Estimate { value: one / other, interval: None })
}
