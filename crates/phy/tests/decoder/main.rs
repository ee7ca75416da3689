//! Tests of the decoder with samples of our own transmitter, of public recordings, and of other programs. They are one
//! program, because each program takes its time to build.

mod air;
mod blind;
mod crowd;
mod recordings;
mod reference;

mod answers;
mod antennas;
mod believed;
mod beside;
mod captures;
mod fields;
mod full;
mod jumps;
mod kinds;
mod ladder;
mod leaps;
mod listen;
mod loopback;
mod missed;
mod numbers;
mod recorded;
mod release;
mod reliability;
mod repeatable;
mod robustness;
mod search;
mod sensitivity;
mod silent_losses;
mod standard;
mod station;
mod unread;
mod weaker;
