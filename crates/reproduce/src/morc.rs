//! Experiments of MORC.

pub(crate) mod downloads;
pub(crate) mod flows;
pub(crate) mod links;
pub(crate) mod marks;
pub(crate) mod video;
