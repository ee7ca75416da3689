//! Tests of all schemes and of what carries them. They are one program, because each program takes its time to build.

mod plan;

mod bbr;
mod bbr3;
mod biscay;
mod contract;
mod copa;
mod cubic;
mod ledbat;
mod ledger;
mod morc;
mod own;
mod reno;
mod sprout;
mod table;
mod transport;
mod vegas;
mod verus;
