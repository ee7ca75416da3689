//! libOD as programs meet it: a daemon on one side, readers on the other.

mod c;
mod control;
mod daemon;
mod folder;
mod hostile;
mod life;
mod reading;
