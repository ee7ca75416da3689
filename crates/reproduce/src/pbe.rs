//! Experiments of PBE-CC.

pub(crate) mod competitor;
pub(crate) mod decoder;
pub(crate) mod fairness;
pub(crate) mod lost_block;
pub(crate) mod mobility;
pub(crate) mod overhead;
pub(crate) mod places;
pub(crate) mod second_carrier;
pub(crate) mod two_flows;
pub(crate) mod users;

/// The eight schemes of the paper. Those of other authors are the programs that Pantheon runs.
pub(crate) const EIGHT: &[&str] = &[
    "pbe",
    "bbr",
    "cubic",
    "verus@pantheon",
    "sprout@pantheon",
    "copa@pantheon",
    "allegro@pantheon",
    "vivace@pantheon",
];
