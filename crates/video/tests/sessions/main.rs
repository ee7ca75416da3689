//! Sessions of a player over links in virtual time: stories, and invariants over random links.

mod invariants;
mod link;
mod stories;
