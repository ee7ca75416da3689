//! Experiments of MORC.

pub(crate) mod downloads;
pub(crate) mod flows;
pub(crate) mod links;
