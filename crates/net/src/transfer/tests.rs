//! Tests of transfers in virtual time, over loss-free and failing connections.

mod hostile;
mod pipes;
mod stories;
mod world;
