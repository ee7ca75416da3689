//! Transfers in virtual time, over perfect and over failing pipes.

mod hostile;
mod pipes;
mod stories;
mod world;
