//! libOD as programs use it: a daemon on one side, readers on the other.

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
