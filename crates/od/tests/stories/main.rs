//! Integration tests of libOD: a daemon and programs that read its KPIs.

mod c;
#[path = "../../../../fuzz/src/choices.rs"]
mod choices;
mod control;
mod daemon;
mod folder;
mod hostile;
mod life;
#[path = "../../../../fuzz/src/od.rs"]
mod protocol;
mod reading;
mod users;
